"""`chaoslab shrink`: a cause of a trial that failed, of which no fault can be left out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import add_json_option, parse_nonempty, parse_path, print_json, seed
from chaoslab.cli._ended import print_on_interrupt, select_scenario, wrap_for_exit_code

if TYPE_CHECKING:
    from chaoslab.execution.explore import FoundFailure
    from chaoslab.scenarios.scenario import Scenario

HELP = "reduce a failed trial to the faults that it needs, and print a test that reproduces it"
EXAMPLE = "chaoslab shrink latest --trial p1.r7"
IS_APART = True


def arguments(parser: argparse.ArgumentParser) -> None:
    named = "a run of a scenario, in logs/ or by its path, or a scenario's file (%(default)s)"
    parser.add_argument("what", metavar="RUN|SCENARIO", type=parse_nonempty, nargs="?", default="latest", help=named)
    parser.add_argument("--trial", default="", metavar="K", help="the trial, as 7 or p1.r7")
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, instead of the scenario's")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of its own")
    parser.add_argument(
        "-k", dest="only", default="", metavar="TEXT", help="only the scenario with this text in its name"
    )
    parser.add_argument("--test", type=parse_path, metavar="FILE", help="write the test into this file, too")
    add_json_option(parser)


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.reports.formats import write_file
    from chaoslab.scenarios.exploring import build_rerun_command, failure_to_json, render_pytest, shrink_failing_trial

    scenario, number = _load_scenario(options)
    with print_on_interrupt(lambda: f"the cause of trial {number} is not found yet, and nothing was written"):
        failure = shrink_failing_trial(scenario, number, seed=options.seed)
    test = render_pytest(scenario, failure, changed=options.set)
    if options.json:
        print_json(**failure_to_json(failure, build_rerun_command(scenario, failure, changed=options.set)), test=test)
    else:
        print(render_failure(scenario, failure, options.set, test))
    if options.test is not None:
        write_file(test, options.test)
    return 0


def render_failure(scenario: Scenario, failure: FoundFailure, changed: list[str], test: str) -> str:
    """The failure for the terminal."""
    from chaoslab.scenarios.exploring import build_rerun_command

    minimal = "no fault can be left out" if failure.minimal else "not shown that none can be left out: too many trials"
    lines = [f"{failure.outcome}: {failure.cause}", f"found in {failure.reruns} trials; {minimal}"]
    if (contrast := failure.contrast) is not None:
        lines.append(f"{contrast}{'' if contrast.holds else ': on other chance it is not shown to be the cause'}")
    if not failure.shown_fails:
        lines.append(f"the trial shown here did not fail: {failure.trial.outcome}")
    lines += [
        "",
        failure.story().rstrip(),
        "",
        f"rerun: {build_rerun_command(scenario, failure, changed=changed)}",
        "",
        test.rstrip(),
    ]
    return "\n".join(lines)


def _load_scenario(options: argparse.Namespace) -> tuple[Scenario, int]:
    """The scenario and the number of the trial, from 1."""
    from chaoslab.cli import test as test_command
    from chaoslab.reports.places import find_run_folder
    from chaoslab.scenarios.exploring import find_rerun_arguments
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.located import SUFFIXES, ScenarioError

    if Path(options.what).suffix not in SUFFIXES:
        # The words of the run's own command, read as chaoslab test reads them.
        parser = argparse.ArgumentParser()
        test_command.arguments(parser)
        try:
            rerun_arguments = parser.parse_args(find_rerun_arguments(find_run_folder(options.what), options.trial))
        except LookupError as error:
            raise ScenarioError(str(error.args[0])) from None
        options.what, options.trial, options.only = (
            rerun_arguments.files[0],
            str(rerun_arguments.trial),
            rerun_arguments.only,
        )
        # What is given now counts more than what was given then.
        options.set, options.seed = (
            [*rerun_arguments.set, *options.set],
            rerun_arguments.seed if options.seed is None else options.seed,
        )
    # A key such as p1.r7 ends in the trial's number.
    number = options.trial.rpartition("r")[2] or "1"
    if not number.isdecimal() or int(number) < 1:
        raise ScenarioError(f"--trial {options.trial} should be a number from 1, or a key such as p1.r7")
    return select_scenario(
        load_file_scenarios(Path(options.what), changed=options.set), options.only, options.what
    ), int(number)
