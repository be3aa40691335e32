"""`chaoslab compare`: is the new side worse than the base, on the same trials?"""

from __future__ import annotations

import argparse
import sys

from chaoslab.base.commandline import as_json, filled, path, print_json, refuse, seed, whole
from chaoslab.cli.ended import code_of

HELP = "run two agents through the same trials and tell which is worse, as soon as that is shown"
EXAMPLE = "chaoslab compare refund.chaos.yml --agent shop.agent:new"
WORSE, FEW = 1, 4


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", type=path, help="the scenario file of the base")
    parser.add_argument("new", metavar="NEW", type=path, nargs="?", help="that of the new side (the same)")
    parser.add_argument("--agent", type=filled, metavar="NAME", help="the agent of the new side, as module:name")
    parser.add_argument("--fresh", type=filled, metavar="NAME", help="what makes the agent of the new side")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value of the new side")
    parser.add_argument("-n", "--trials", type=whole(1, 100_000), default=200, help="the most pairs (%(default)s)")
    parser.add_argument("--alpha", type=_alpha, default=0.05, help="the chance of a false verdict (%(default)s)")
    parser.add_argument("--a-a", type=whole(1, 1000), metavar="N", help="compare the base with itself, so many times")
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, in place of the scenario's own")
    parser.add_argument("--jobs", type=whole(1, 1024), default=1, help="processes (%(default)s)")
    parser.add_argument("-k", dest="only", default="", metavar="TEXT", help="the scenario with this text in its name")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    as_json(parser)


def _alpha(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text[:60]} should be a number between 0 and 1, as in 0.05")
    return value


def is_apart(_: argparse.Namespace) -> bool:
    return True


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.check("chaoslab compare", "scenarios", "virtual")
    return code_of(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.comparing import against_itself, compared
    from chaoslab.scenarios.load import load
    from chaoslab.search.comparing import FEW as TOO_FEW
    from chaoslab.search.comparing import WORSE as IS_WORSE
    from chaoslab.search.comparing import Comparison

    given = [f"{key}={value}" for key, value in (("agent", options.agent), ("fresh", options.fresh)) if value]
    changed = [*options.set, *given]
    if options.a_a is None and options.new is None and not changed:
        return refuse(ValueError("both sides are the same: give NEW, --agent, --fresh or --set, or --a-a N"))
    bases = [each for each in load(options.base) if options.only in each.name]
    news = [each for each in load(options.new or options.base, changed=changed) if options.only in each.name]
    if len(bases) != 1 or len(news) != 1:
        names = ", ".join(each.name for each in bases)
        return refuse(LookupError(f"there are {len(bases)} scenarios and {len(news)} ({names}): choose one with -k"))

    def tell(found: Comparison) -> None:
        if not options.quiet:
            print(f"{len(found.pairs)} of {options.trials} pairs: {found.verdict}", file=sys.stderr, flush=True)

    base_seed = bases[0].spec.seed if options.seed is None else options.seed
    settings = {"trials": options.trials, "jobs": options.jobs, "alpha": options.alpha}
    if options.a_a is not None:
        said, differ = against_itself(bases[0], options.a_a, seed=base_seed, **settings)
        if options.json:
            print_json(times=options.a_a, worse=said, differ=differ)
        else:
            print(f"{bases[0].name}: called worse than itself {said} of {options.a_a} times, each with other seeds")
            same = f"trials {differ} differ: it is not deterministic" if differ else "no trial differs"
            print(f"with the same seed {same}")
        return 0
    found = compared(bases[0], news[0], seed=base_seed, tell=tell, **settings)
    if options.json:
        print_json(name=bases[0].name, **found.data())
    else:
        print("\n".join([bases[0].name, *found.told()]))
    return {IS_WORSE: WORSE, TOO_FEW: FEW}.get(found.verdict, 0)
