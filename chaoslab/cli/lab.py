"""`chaoslab lab`: the whole lab, by the settings. As `chaoslab run`, its former name, it fails where a trial ends in
harm."""

import argparse
import sys
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
    parser.add_argument("--trials", type=parse_nonempty, help="trials in all (TRIALS)")
    parser.add_argument("--seed", type=parse_nonempty, help="seed of all dice (SEED)")
    parser.add_argument("--jobs", type=parse_nonempty, help="processes of a virtual run (JOBS)")
    parser.add_argument("--ui", action="store_true", help="show the run in the browser; its address is printed first")
    _output.add_options(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    named = [f"{name.upper()}={value}" for name in NAMED if (value := getattr(options, name)) is not None]
    settings = [*options.settings, *named]
    # Who wrote `run` into a CI file relies on its exit code.
    former = options.parser.prog == "chaoslab run"
    requirements = _requirements.build_gate_or_default(options) if former else _requirements.build_gate(options)
    with _serve_ui(options) if options.ui else nullcontext():
        return _output.run_lab(settings, options, ruled=requirements)


def _serve_ui(options: argparse.Namespace) -> AbstractContextManager[object]:
    from chaoslab.base import extras
    from chaoslab.cli.ui import serve_in_child
    from chaoslab.lab.launch import LOGS

    extras.require_extras("chaoslab lab --ui", "ui")
    return serve_in_child(LOGS, sys.stderr if options.json else sys.stdout)
