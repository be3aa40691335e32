"""The end of the commands that run scenarios: one line and an exit code for whatever keeps them from their end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import LAB_DOWN, PROVES_NOTHING, print_error

if TYPE_CHECKING:
    from chaoslab.scenarios.scenario import Scenario


def run_for_exit_code(work: Callable[[], int], *refused: type[Exception]) -> int:
    """The exit code of `work`: 2 if something of the user's is wrong, 3 if the lab failed, 4 if what was tried proves
    nothing; all are told. Ctrl-C ends
    it between two trials. `refused`: further errors by which something of the user's is wrong."""
    from chaoslab.base.interrupts import interrupt_at_checks
    from chaoslab.execution.workers import WorkerLost
    from chaoslab.record.log import LogLost
    from chaoslab.scenarios.located import ProvesNothing, ScenarioError

    try:
        # Ctrl-C ends it between two trials.
        with interrupt_at_checks():
            return work()
    except ScenarioError as error:  # several lines if several things are wrong
        print(error, file=sys.stderr)
        return 2
    except ProvesNothing as error:
        return print_error(error, code=PROVES_NOTHING)
    except (WorkerLost, LogLost) as error:
        print(f"the lab is down: {error}", file=sys.stderr)
        return LAB_DOWN
    except refused as error:
        return print_error(error)
    except OSError as error:
        if error.filename is None:  # what is printed cannot be written
            raise
        return print_error(error)


@contextmanager
def print_on_interrupt(so_far: Callable[[], str]) -> Iterator[None]:
    """A context in which Ctrl-C is told in one line, with what there is so far."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"interrupted: {so_far()}", file=sys.stderr)
        raise


def wrap_for_exit_code(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command with an exit code for whatever keeps it from its end, as `run_for_exit_code` gives it."""
    return lambda options: run_for_exit_code(lambda: run(options))


def require_writable(option: str, path: Path | None) -> None:
    """Checks that a file could be written there, before anything runs. Raises ScenarioError: it could not."""
    from chaoslab.scenarios.located import ScenarioError

    if path is None:
        return
    if path.is_dir():
        raise ScenarioError(f"{option} {path}: this is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise ScenarioError(f"{option} {path}: this is no regular file; name one, which is replaced, or a new one")
    if not path.parent.is_dir():
        raise ScenarioError(f"{option} {path}: there is no folder {path.parent}")
    if path.suffix == ".log" or path.name in ("run.json", "rulings.jsonl"):
        raise ScenarioError(f"{option} {path}: this name is one of a run's own files: name another")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ScenarioError(f"{option} {path}: nothing can be written there: make it writable, or name another place")


def list_rerun_options(options: argparse.Namespace) -> list[str]:
    """The options on which a trial depends."""
    seed = ["--seed", str(options.seed)] if options.seed is not None else []
    return [*seed, *(word for setting in options.set for word in ("--set", setting))]


def select_scenarios(scenarios: Sequence[Scenario], only: str, source: str = "") -> list[Scenario]:
    """The scenarios with this text in their names. `source`: the file that has them. Raises ScenarioError: there is
    none."""
    from chaoslab.scenarios.located import ScenarioError

    if matches := [scenario for scenario in scenarios if only in scenario.name]:
        return matches
    names = ", ".join(scenario.name for scenario in scenarios)
    raise ScenarioError(f"no scenario{source and f' of {source}'} has '{only}' in its name: there are {names}")


def select_scenario(scenarios: Sequence[Scenario], only: str, source: str) -> Scenario:
    """The same, where one is wanted. Raises ScenarioError: there is none, or there are several."""
    from chaoslab.scenarios.located import ScenarioError

    matches = [scenario for scenario in scenarios if only in scenario.name]
    if len(matches) != 1:
        names = f" ({', '.join(scenario.name for scenario in matches)})" if matches else ""
        raise ScenarioError(f"{source} has {len(matches)} such scenarios{names}: choose one with -k")
    return matches[0]
