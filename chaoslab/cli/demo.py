"""`chaoslab demo`: a real failure, found and explained, without a file."""

from __future__ import annotations

import argparse

from chaoslab.base.commandline import whole

HELP = "find a failure of a small agent and show how another one avoids it"
EXAMPLE = "chaoslab demo --trials 100"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chaos-level", type=float, default=0.0, help="faults of all families too: 0.25, 0.5, 1 or 2")
    parser.add_argument("-n", "--trials", type=whole(1, 100_000), default=200, help="of each agent (%(default)s)")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=1, help="of the faults' dice (%(default)s)")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.base.commandline import refuse

    extras.check("chaoslab demo", "virtual")
    from chaoslab.execution.scenarios.demo import lines

    try:
        for line in lines(options.trials, options.seed, options.chaos_level):
            print(line, flush=True)
    except ValueError as error:
        return refuse(error)
    return 0
