"""`chaoslab prove`: does a change close the failures that an exploration finds, and open none?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import as_json, filled, path, print_json, refuse, seed, whole
from chaoslab.cli._ended import telling, with_code

if TYPE_CHECKING:
    from chaoslab.search.proof import Proof

HELP = "run the map of an agent again on another one, or with a mitigation around its functions"
EXAMPLE = "chaoslab prove refund.chaos.yml --agent shop.agent:careful"
IS_APART = True
OPENED = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", metavar="RUN|SCENARIO", type=filled, help="a run of chaoslab explore, or a scenario's file")
    add("--agent", type=filled, metavar="NAME", help="the changed agent, as module:name")
    add("--fresh", type=filled, metavar="NAME", help="what makes the changed agent, as module:name")
    add("--try", dest="tries", type=filled, metavar="LIST", help="key,no-retry,read-first,backoff,deadline")
    add("-n", "--trials", type=whole(1, 1_000_000), help="the most trials of the exploration (4000)")
    add("--resume", type=path, metavar="RUN", help="an exploration of the agent as it was")
    add("--seed", type=seed, help="seed of all dice, in place of the scenario's own")
    add("--jobs", type=whole(1, 1024), default=1, help="processes (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value in place of its own")
    add("-k", dest="only", default="", metavar="TEXT", help="the scenario with this text in its name")
    add("-q", "--quiet", action="store_true", help="print no progress")
    as_json(parser)


@with_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.base.registry import did_you_mean
    from chaoslab.cli.explore import Teller
    from chaoslab.execution.prove import MITIGATIONS
    from chaoslab.scenarios.exploring import explore, prove
    from chaoslab.scenarios.load import load

    try:
        file, budget = _file(options)
    except LookupError as error:
        return refuse(error)
    given = [f"{key}={value}" for key, value in (("agent", options.agent), ("fresh", options.fresh)) if value]
    tries = options.tries.split(",") if options.tries else []
    if len(given) + bool(tries) != 1:
        return refuse(ValueError("prove takes one of --agent, --fresh and --try"))
    for each in tries:
        if each not in MITIGATIONS:
            return refuse(LookupError(f"--try has '{each:.40}': {did_you_mean(each, MITIGATIONS)}"))
    proofs: list[Proof] = []
    others = load(file, changed=[*options.set, *given])
    for scenario, other in zip(load(file, changed=options.set), others, strict=True):
        if options.only not in scenario.name:
            continue
        tell = None if options.quiet else Teller()
        with telling(lambda: f"{len(proofs)} proofs are done, and none is kept"):
            found = explore(scenario, seed=options.seed, jobs=options.jobs, resume=options.resume, tell=tell, **budget)
            made = [
                prove(scenario, other, found, mitigation=each, seed=options.seed, jobs=options.jobs)
                for each in (tries or [""])
            ]
        proofs.extend(made)
        if not options.json:
            print(scenario.name)
            print("\n".join(line for each in made for line in each.in_words()))
            if tries:
                print(_best([each.what for each in made if each.holds]))
    if not proofs:
        return refuse(LookupError(f"no scenario of {file} has '{options.only}' in its name"))
    if options.json:
        print_json(proofs=[each.data() for each in proofs])
    return 0 if any(each.holds for each in proofs) else OPENED


def _file(options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The scenario's file, and the budget of its exploration. A run fills in the options with which it was explored,
    and hardly any trial is added to it. Raises LookupError: there is no such run, or it is no exploration of a
    scenario."""
    from chaoslab.cli import explore
    from chaoslab.record.runs import command_of
    from chaoslab.reports.places import find
    from chaoslab.scenarios.located import SUFFIXES

    if Path(options.what).suffix in SUFFIXES:
        return Path(options.what), {"trials": options.trials}
    folder = find(options.what)
    if not (words := command_of(folder)):
        raise LookupError(f"{folder} holds no exploration of a scenario: give one that chaoslab explore has finished")
    parser = argparse.ArgumentParser()
    explore.arguments(parser)
    was = parser.parse_args(words)
    options.resume, options.only = folder, was.only
    options.seed, options.set = was.seed if options.seed is None else options.seed, [*was.set, *options.set]
    return Path(was.what), {"trials": options.trials or 1, "by": was.by, "tries": was.tries}


def _best(held: list[str]) -> str:
    return f"closes failures and opens none: {', '.join(held)}" if held else "none closes a failure without opening one"
