"""`chaoslab summary`: a run's summary."""

import argparse

from chaoslab.base.commandline import RUN_HELP, add_json_option, print_document, print_error

HELP = "print a run's figures in a table"
EXAMPLE = "chaoslab summary latest~1"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument("--full", action="store_true", help="all rows and items, not only the first of each list")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import interrupt_outside_imports

    try:
        with interrupt_outside_imports():
            from chaoslab.reports.contents import Contents
            from chaoslab.reports.formats import json, terminal

            contents = Contents.from_run_name(options.run, where=options.run)
            if options.json:
                print_document("".join(json.files(contents).values()))
            else:
                print(terminal.render_summary(contents, full=options.full), end="")
    except LookupError as error:
        return print_error(error)
    return 0
