"""`chaoslab prove`: does a change close the failures that an exploration finds, and open none?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_integer_type,
    parse_nonempty,
    parse_path,
    print_error,
    print_json,
    seed,
)
from chaoslab.cli._ended import print_on_interrupt, wrap_for_exit_code

if TYPE_CHECKING:
    from chaoslab.search.proof import Proof

HELP = "repeat an exploration on a changed agent, or with mitigations around its functions"
EXAMPLE = "chaoslab prove refund.chaos.yml --agent shop.agent:careful"
IS_APART = True
OPENED = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", metavar="RUN|SCENARIO", type=parse_nonempty, help="a run of chaoslab explore, or a scenario's file")
    add("--agent", type=parse_nonempty, metavar="NAME", help="the changed agent, as module:name")
    add("--fresh", type=parse_nonempty, metavar="NAME", help="the factory of the changed agent, as module:name")
    add("--try", dest="tries", type=parse_nonempty, metavar="LIST", help="key,no-retry,read-first,backoff,deadline")
    add("-n", "--trials", type=make_integer_type(1, 1_000_000), help="at most this many trials (4000)")
    add("--resume", type=parse_path, metavar="RUN", help="an earlier exploration of the unchanged agent")
    add("--seed", type=seed, help="seed of all dice, instead of the scenario's")
    add("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of its own")
    add("-k", dest="only", default="", metavar="TEXT", help="only the scenario with this text in its name")
    add("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.base.registry import suggest_name
    from chaoslab.cli.explore import ProgressPrinter
    from chaoslab.execution.prove import MITIGATIONS
    from chaoslab.scenarios.exploring import explore_scenario, rerun_exploration_on_change
    from chaoslab.scenarios.load import load_file_scenarios

    try:
        file, budget = _find_scenario_and_budget(options)
    except LookupError as error:
        return print_error(error)
    changed_agent = [f"{key}={value}" for key, value in (("agent", options.agent), ("fresh", options.fresh)) if value]
    tries = options.tries.split(",") if options.tries else []
    if len(changed_agent) + bool(tries) != 1:
        return print_error(ValueError("prove takes one of --agent, --fresh and --try"))
    # All before the first exploration, which may take long.
    for mitigation in tries:
        if mitigation not in MITIGATIONS:
            return print_error(LookupError(f"--try has '{mitigation:.40}': {suggest_name(mitigation, MITIGATIONS)}"))
    proofs: list[Proof] = []
    mended_scenarios = load_file_scenarios(file, changed=[*options.set, *changed_agent])
    # Pairs by their order: a change of the agent leaves the scenarios as many.
    for scenario, mended in zip(load_file_scenarios(file, changed=options.set), mended_scenarios, strict=True):
        if options.only not in scenario.name:
            continue
        tell = None if options.quiet else ProgressPrinter()
        with print_on_interrupt(lambda: f"{len(proofs)} proofs are done, and none is kept"):
            exploration = explore_scenario(
                scenario, seed=options.seed, jobs=options.jobs, resume=options.resume, tell=tell, **budget
            )
            new_proofs = [
                rerun_exploration_on_change(
                    scenario, mended, exploration, mitigation=mitigation, seed=options.seed, jobs=options.jobs
                )
                for mitigation in (tries or [""])
            ]
        proofs.extend(new_proofs)
        if not options.json:
            print(scenario.name)
            print("\n".join(line for mitigation in new_proofs for line in mitigation.describe_in_words()))
            if tries:
                print(_describe_mitigations([mitigation.what for mitigation in new_proofs if mitigation.holds]))
    if not proofs:
        return print_error(LookupError(f"no scenario of {file} has '{options.only}' in its name"))
    if options.json:
        print_json(proofs=[mitigation.to_json_data() for mitigation in proofs])
    if any(mitigation.holds for mitigation in proofs):
        return 0
    return PROVES_NOTHING if any(mitigation.unproven_reason for mitigation in proofs) else OPENED


def _find_scenario_and_budget(options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The scenario's file, and the budget of its exploration. A run fills in the options with which it was explored,
    and hardly any trial is added to it. Raises LookupError: there is no such run, or it is no exploration of a
    scenario."""
    from chaoslab.cli import explore
    from chaoslab.record.runs import read_rerun_command
    from chaoslab.reports.places import find_run_folder
    from chaoslab.scenarios.located import SUFFIXES

    if Path(options.what).suffix in SUFFIXES:
        return Path(options.what), {"trials": options.trials}
    folder = find_run_folder(options.what)
    if not (command_words := read_rerun_command(folder)):
        raise LookupError(f"{folder} holds no exploration of a scenario: give one that chaoslab explore has finished")
    # Its words are read by the options of explore, as they were typed then.
    parser = argparse.ArgumentParser()
    explore.arguments(parser)
    former_options = parser.parse_args(command_words)
    options.resume, options.only = folder, former_options.only
    # What is given now counts more than what was given then.
    options.seed, options.set = (
        former_options.seed if options.seed is None else options.seed,
        [*former_options.set, *options.set],
    )
    return Path(former_options.what), {
        # The exploration is there: hardly a trial is added to it.
        "trials": options.trials or 1,
        "by": former_options.by,
        "tries": former_options.tries,
    }


def _describe_mitigations(mitigations: list[str]) -> str:
    return (
        f"closes failures and opens none: {', '.join(mitigations)}"
        if mitigations
        else "none closes a failure without opening one"
    )
