"""`chaoslab settings`: every setting with its meaning and default, or the value in force."""

import argparse

from chaoslab.base.commandline import as_json, print_json, refuse

HELP = "print .env.example: every setting, its meaning and default"
EXAMPLE = "chaoslab settings --effective TOXIC_PROB=0.3"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="with --effective: settings as for a run")
    scope_group = parser.add_mutually_exclusive_group()
    scope_group.add_argument("--markdown", action="store_true", help="as a table in Markdown instead")
    scope_group.add_argument(
        "--effective", action="store_true", help="the settings in force instead, and where each value was given"
    )
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.config.effective import effective, in_force
    from chaoslab.config.settings import SettingError, described, example, table

    if options.settings and not options.effective:
        options.parser.error(f"{options.settings[0].partition('=')[0][:60]} has no effect without --effective")
    if options.json and options.markdown:
        options.parser.error("--json and --markdown are two forms: leave one out")
    try:
        if options.json:
            print_json(settings=in_force(options.settings) if options.effective else described())
            return 0
        listing = effective(options.settings) if options.effective else table() if options.markdown else example()
    except SettingError as error:
        return refuse(error)
    print(listing, end="")
    return 0
