"""`chaoslab lab`: the whole lab, by the settings."""

import argparse
import sys

from chaoslab.cli import _output, _requirements

HELP = "run the whole lab as the settings say: services, proxies, model, agent, charts"
EXAMPLE = "chaoslab lab TOXIC_PROB=0.3 --min-correct 0.9"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    parser.add_argument("--ui", action="store_true", help="show the run in the browser: the address is printed first")
    _output.arguments(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    if not options.ui:
        return _output.run(options.settings, options, ruled=_requirements.of(options))
    from chaoslab.base import extras
    from chaoslab.cli.ui import beside
    from chaoslab.lab.launch import LOGS

    extras.check("chaoslab lab --ui", "ui")
    with beside(LOGS, sys.stderr if options.json else sys.stdout):
        return _output.run(options.settings, options, ruled=_requirements.of(options))
