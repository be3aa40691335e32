"""`chaoslab lab`: the whole lab, by the settings."""

from __future__ import annotations

import argparse

from chaoslab.cli import output, requirements

HELP = "run the whole lab as the settings say: services, proxies, model, agent, charts"
EXAMPLE = "chaoslab lab TOXIC_PROB=0.3 --min-correct 0.9"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    output.arguments(parser)


is_apart = output.is_apart


def run(options: argparse.Namespace) -> int:
    return output.run(options.settings, options, ruled=requirements.of(options))
