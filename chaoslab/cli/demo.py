"""`chaoslab demo`: a real failure, found and explained, without a file."""

import argparse

from chaoslab.base.commandline import make_type, seed, whole_number
from chaoslab.base.parsers import chaos_level

HELP = "find a failure of a small agent and show how another one avoids it"
EXAMPLE = "chaoslab demo --trials 100"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chaos-level", type=make_type(chaos_level), default=0.0, help="faults of all families too, from 0 to 10"
    )
    parser.add_argument(
        "-n", "--trials", type=whole_number(1, 100_000), default=200, help="of each agent (%(default)s)"
    )
    parser.add_argument("--seed", type=seed, default=1, help="of the faults' dice (%(default)s)")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import refuse
    from chaoslab.scenarios.demo import render_demo

    try:
        for line in render_demo(options.trials, options.seed, options.chaos_level):
            print(line, flush=True)
    except ValueError as error:
        return refuse(error)
    return 0
