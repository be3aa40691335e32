"""`chaoslab steer`: has a run wait, go on or end, take other chances, or switch a fault off and on."""

import argparse

from chaoslab.base.commandline import RUN_HELP, parse_nonempty, print_error
from chaoslab.cli._runs_written import add_logs_option

HELP = "pause, resume or stop a run under way, or switch its faults off and on"
EXAMPLE = "chaoslab steer latest TOXIC_PROB=0.5"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=parse_nonempty, metavar="RUN", help=RUN_HELP.removesuffix(" (default: latest)"))
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="pause, resume, stop, a fault of the plan as in 'latency on search'=off or =on (of a gateway =0.3 too); "
        "of a lab in real time TOXIC_PROB=0.3, ERROR_PROB=0.3, manager=pause and manager=resume",
    )
    add_logs_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.reports.places import find_run_folder
    from chaoslab.surfaces.levers import steer_run

    try:
        print(*steer_run(find_run_folder(options.run, logs=options.logs).resolve(), options.words), sep="\n")
    except (LookupError, ValueError, OSError) as error:
        return print_error(error)
    return 0
