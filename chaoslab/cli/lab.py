"""`chaoslab lab`: the whole lab, by the settings. As `chaoslab run`, its former name, it fails where a trial ends in
harm."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from chaoslab.base.commandline import parse_nonempty
from chaoslab.cli import _output, _requirements

HELP = "run the whole lab: services, proxies, model, agent, report and charts"
EXAMPLE = "chaoslab lab --world virtual --trials 200 TOXIC_PROB=0.3"
NAMED = ("world", "trials", "seed", "jobs", "prompts")
"""The options that are settings of the same name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    parser.add_argument("--world", type=parse_nonempty, help="local, compose or virtual (WORLD)")
    parser.add_argument("--prompts", type=parse_nonempty, help="a JSON file of prompts (PROMPTS)")
    parser.add_argument("--trials", type=parse_nonempty, help="so many in all (TRIALS)")
    parser.add_argument("--seed", type=parse_nonempty, help="of all dice (SEED)")
    parser.add_argument("--jobs", type=parse_nonempty, help="processes of a virtual run (JOBS)")
    parser.add_argument("--estimate", action="store_true", help="only tell what the run would cost")
    parser.add_argument("--ui", action="store_true", help="show the run in the browser: the address is printed first")
    _output.arguments(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    named = [f"{name.upper()}={value}" for name in NAMED if (value := getattr(options, name)) is not None]
    settings = [*options.settings, *named]
    if options.estimate:
        return _estimate(settings, options)
    # Who wrote `run` into a CI file relies on its exit code.
    former = options.parser.prog == "chaoslab run"
    requirements = _requirements.gate_or_default(options) if former else _requirements.gate_of(options)
    with _page(options) if options.ui else nullcontext():
        return _output.run(settings, options, ruled=requirements)


def _page(options: argparse.Namespace) -> AbstractContextManager[object]:
    from chaoslab.base import extras
    from chaoslab.cli.ui import serve_beside
    from chaoslab.lab.launch import LOGS

    extras.check("chaoslab lab --ui", "ui")
    return serve_beside(LOGS, sys.stderr if options.json else sys.stdout)


def _estimate(settings: Sequence[str], options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import refuse
    from chaoslab.cli._runs_written import print_estimates
    from chaoslab.config.settings import SettingError
    from chaoslab.lab.estimate import estimate_run

    try:
        return print_estimates([estimate_run(settings)], options)
    except (SettingError, OSError) as error:
        return refuse(error)
