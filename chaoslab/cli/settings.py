"""`chaoslab settings`: every setting with its meaning and default, or the value in force."""

from __future__ import annotations

import argparse

from chaoslab.base.commandline import refuse

HELP = "print .env.example: every setting, its meaning and default"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="with --effective: settings as for a run")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--markdown", action="store_true", help="as a table in Markdown instead")
    how.add_argument(
        "--effective", action="store_true", help="the settings in force instead, and where each value was given"
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.config.effective import effective
    from chaoslab.config.settings import SettingError, example, table

    if options.settings and not options.effective:
        options.parser.error(f"{options.settings[0].partition('=')[0][:60]} has no effect without --effective")
    try:
        shown = effective(options.settings) if options.effective else table() if options.markdown else example()
    except SettingError as error:
        return refuse(error)
    print(shown, end="")
    return 0
