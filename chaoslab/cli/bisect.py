"""`chaoslab bisect`: at which commit did a scenario become worse?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_integer_type,
    parse_nonempty,
    parse_path,
    print_json,
    seed,
)
from chaoslab.cli._ended import print_on_interrupt, wrap_for_exit_code
from chaoslab.cli.compare import add_open_max_option, parse_alpha

if TYPE_CHECKING:
    from chaoslab.scenarios.bisecting import TriedCommit

HELP = "find the commit that made a scenario worse, each tried in its own work tree"
EXAMPLE = "chaoslab bisect v1.2 HEAD refund.chaos.yml"
IS_APART = True
TRIALS = 2000
"""A commit that is neither shown to be good nor bad takes so many, and most take far fewer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("good", metavar="GOOD", type=parse_nonempty, help="a revision that is good")
    parser.add_argument("bad", metavar="BAD", type=parse_nonempty, help="a later one that is bad")
    parser.add_argument("file", metavar="SCENARIO", type=parse_path, help="a scenario's file, in its present state")
    parser.add_argument(
        "-n",
        "--trials",
        type=make_integer_type(1, 100_000),
        default=TRIALS,
        help="at most this many pairs per commit (%(default)s)",
    )
    parser.add_argument("--alpha", type=parse_alpha, default=0.05, help="the chance of a wrong commit (%(default)s)")
    add_open_max_option(parser)
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, instead of the scenario's")
    parser.add_argument("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of its own")
    parser.add_argument(
        "-k", dest="only", default="", metavar="TEXT", help="only scenarios with this text in their name"
    )
    add_json_option(parser)


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.bisecting import bisect_commits
    from chaoslab.scenarios.revisions import SideWork

    def print_step(step: TriedCommit) -> None:
        print(step, file=sys.stderr if options.json else sys.stdout, flush=True)

    work = SideWork(options.file, options.set, options.only, options.seed, options.jobs)
    with print_on_interrupt(lambda: "the first worse commit is not found yet, and nothing is kept"):
        bisection = bisect_commits(
            work,
            options.good,
            options.bad,
            tell=print_step,
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
