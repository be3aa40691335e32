"""`chaoslab runs`: the runs in logs/."""

import argparse

from chaoslab.base.commandline import add_json_option, print_error, print_json
from chaoslab.cli._runs_written import add_logs_option

HELP = "list the runs, newest first: when, world, seed, scenario, commit, level, outcomes, harm, faults"
EXAMPLE = "chaoslab runs --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_logs_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import interrupt_outside_imports

    try:
        with interrupt_outside_imports():
            from chaoslab.reports import runs

            if options.json:
                print_json(runs=[line.to_dict() for line in runs.list_runs(options.logs)])
            else:
                print(runs.render_runs(options.logs), end="")
    except LookupError as error:
        return print_error(error)
    return 0
