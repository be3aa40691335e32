"""`chaoslab demo`: a real failure, found and explained, without a file."""

import argparse

from chaoslab.base.commandline import make_argument_type, make_integer_type, seed
from chaoslab.base.parsers import parse_chaos_level

HELP = "show a failure of a small agent, and an agent that avoids it"
EXAMPLE = "chaoslab demo --trials 100"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chaos-level",
        type=make_argument_type(parse_chaos_level),
        default=0.0,
        help="add faults of all families, from 0 to 10",
    )
    parser.add_argument(
        "-n", "--trials", type=make_integer_type(1, 100_000), default=200, help="trials of each agent (%(default)s)"
    )
    parser.add_argument("--seed", type=seed, default=1, help="seed of the faults' dice (%(default)s)")


def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.demo import render_demo

    for line in render_demo(options.trials, options.seed, options.chaos_level):
        print(line, flush=True)
    return 0
