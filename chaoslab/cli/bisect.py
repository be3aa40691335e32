"""`chaoslab bisect`: at which commit did a scenario become worse?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from chaoslab.base.commandline import PROVES_NOTHING, as_json, parse_nonempty, path, print_json, seed, whole_number
from chaoslab.cli._ended import report_interrupt, returns_exit_code
from chaoslab.cli.compare import add_open_max, alpha

if TYPE_CHECKING:
    from chaoslab.scenarios.bisecting import TriedCommit

HELP = "find the commit at which a scenario became worse, each tried in a work tree of its own"
EXAMPLE = "chaoslab bisect v1.2 HEAD refund.chaos.yml"
IS_APART = True
TRIALS = 2000
"""A commit that is neither shown to be good nor bad takes so many, and most take far fewer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("good", metavar="GOOD", type=parse_nonempty, help="a revision that is well")
    parser.add_argument("bad", metavar="BAD", type=parse_nonempty, help="a later one that is worse")
    parser.add_argument("file", metavar="SCENARIO", type=path, help="a scenario's file, as it is now")
    parser.add_argument(
        "-n", "--trials", type=whole_number(1, 100_000), default=TRIALS, help="most pairs a commit (%(default)s)"
    )
    parser.add_argument("--alpha", type=alpha, default=0.05, help="the chance of a wrong commit (%(default)s)")
    add_open_max(parser)
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, in place of the scenario's own")
    parser.add_argument("--jobs", type=whole_number(1, 1024), default=1, help="processes (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value in place of its own")
    parser.add_argument("-k", dest="only", default="", metavar="TEXT", help="the scenarios with this text in the name")
    as_json(parser)


@returns_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.bisecting import bisect
    from chaoslab.scenarios.revisions import SideWork

    def tell(step: TriedCommit) -> None:
        print(step, file=sys.stderr if options.json else sys.stdout, flush=True)

    work = SideWork(options.file, options.set, options.only, options.seed, options.jobs)
    with report_interrupt(lambda: "the first worse commit is not found yet, and nothing is kept"):
        bisection = bisect(
            work,
            options.good,
            options.bad,
            tell=tell,
            trials=options.trials,
            alpha=options.alpha,
            open_max=options.open_max,
        )
    first = [tried_commit.commit for tried_commit in bisection.first]
    if options.json:
        print_json(first=first, good=bisection.good, steps=[vars(tried_commit) for tried_commit in bisection.steps])
    elif not first:
        print(f"{options.bad} is not shown to be worse than {options.good}: there is nothing to find")
    elif len(first) > 1:
        named = ", ".join(tried_commit[:10] for tried_commit in first)
        print(f"the first worse commit is between {bisection.good[:10]} and {first[0][:10]}: one of {named}")
    else:
        sure = f"with a chance of {options.alpha:.0%} at most that it is another"
        print(f"the first worse commit is {bisection.first[0].commit[:10]}, {sure}: {bisection.first[0].subject}")
    return 0 if len(first) == 1 else PROVES_NOTHING
