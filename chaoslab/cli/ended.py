"""The end of the commands that run scenarios: one line and an exit code for whatever keeps them from their end."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from chaoslab.base.commandline import LAB_DOWN, refuse


def code_of(work: Callable[[], int]) -> int:
    """The exit code of `work`: 2 if something of the user's is wrong, 3 if the lab failed; both are told. Ctrl-C ends
    it between two trials."""
    from chaoslab.base.interrupts import heard_at_checks
    from chaoslab.execution.workers import WorkerLost
    from chaoslab.record.log import LogLost
    from chaoslab.scenarios.located import ScenarioError

    try:
        with heard_at_checks():
            return work()
    except ScenarioError as error:  # several lines if several things are wrong
        print(error, file=sys.stderr)
        return 2
    except (WorkerLost, LogLost) as error:
        print(f"the lab is down: {error}", file=sys.stderr)
        return LAB_DOWN
    except OSError as error:
        if error.filename is None:  # what is printed cannot be written
            raise
        return refuse(error)


def with_code(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command with an exit code for whatever keeps it from its end, as `code_of` gives it."""
    return lambda options: code_of(lambda: run(options))


def check_place(option: str, path: Path | None) -> None:
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
