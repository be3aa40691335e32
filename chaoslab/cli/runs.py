"""`chaoslab runs`: the runs in logs/."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import as_json, path, print_json, refuse

HELP = "list the runs, newest first: when, world, seed, scenario, commit, level, outcomes, harm, faults"
EXAMPLE = "chaoslab runs --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.reports import runs

            if options.json:
                print_json(runs=[line.plain() for line in runs.list_runs(options.logs)])
            else:
                print(runs.render_runs(options.logs), end="")
    except LookupError as error:
        return refuse(error)
    return 0
