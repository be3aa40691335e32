"""`chaoslab settings`: every setting, its meaning and default."""

from __future__ import annotations

import argparse

HELP = "print .env.example: every setting, its meaning and default"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="as a table in Markdown instead")


def run(options: argparse.Namespace) -> int:
    from chaoslab.config.settings import example, table

    print(table() if options.markdown else example(), end="")
    return 0
