"""`chaoslab run`: like `chaoslab lab`, with the settings of a sweep as options."""

import argparse
from collections.abc import Sequence

from chaoslab.base.commandline import filled
from chaoslab.cli import _output, _requirements

HELP = "run the lab, its world, prompts, trials, seed and processes given as options"
EXAMPLE = "chaoslab run --world virtual --trials 200 TOXIC_PROB=0.3"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    parser.add_argument("--world", type=filled, help="local, compose or virtual (WORLD)")
    parser.add_argument("--prompts", type=filled, help="a JSON file of prompts (PROMPTS)")
    parser.add_argument("--trials", type=filled, help="so many in all (TRIALS)")
    parser.add_argument("--seed", type=filled, help="of all dice (SEED)")
    parser.add_argument("--jobs", type=filled, help="processes of a virtual run (JOBS)")
    parser.add_argument("--estimate", action="store_true", help="only tell what the run would cost")
    _output.arguments(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    named = {"WORLD": options.world, "TRIALS": options.trials, "SEED": options.seed, "JOBS": options.jobs}
    given = [f"{name}={value}" for name, value in (*named.items(), ("PROMPTS", options.prompts)) if value is not None]
    if options.estimate:
        return _estimate([*options.settings, *given], options)
    return _output.run([*options.settings, *given], options, ruled=_requirements.of_or_by_itself(options))


def _estimate(given: Sequence[str], options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import refuse
    from chaoslab.cli._runs_written import say_estimates
    from chaoslab.config.settings import SettingError
    from chaoslab.lab.estimate import estimated

    try:
        return say_estimates([estimated(given)], options)
    except (SettingError, OSError) as error:
        return refuse(error)
