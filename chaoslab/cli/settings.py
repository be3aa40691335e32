"""`chaoslab settings`: every setting with its meaning and default, or the value in force."""

import argparse

from chaoslab.base.commandline import add_json_option, print_error, print_json

HELP = "print .env.example: every setting, its meaning and default"
EXAMPLE = "chaoslab settings --effective TOXIC_PROB=0.3"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="with --effective: settings as for a run")
    scope_group = parser.add_mutually_exclusive_group()
    scope_group.add_argument("--markdown", action="store_true", help="print a Markdown table instead")
    scope_group.add_argument(
        "--effective", action="store_true", help="print the settings in force instead, and where each comes from"
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.config.effective import list_effective_settings, render_effective_settings
    from chaoslab.config.settings import SettingError, list_settings, render_env_example, render_markdown_table

    if options.settings and not options.effective:
        options.parser.error(f"{options.settings[0].partition('=')[0][:60]} has no effect without --effective")
    if options.json and options.markdown:
        options.parser.error("--json and --markdown are two forms: leave one out")
    try:
        if options.json:
            print_json(settings=list_effective_settings(options.settings) if options.effective else list_settings())
            return 0
        listing = (
            render_effective_settings(options.settings)
            if options.effective
            else render_markdown_table()
            if options.markdown
            else render_env_example()
        )
    except SettingError as error:
        return print_error(error)
    print(listing, end="")
    return 0
