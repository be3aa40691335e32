"""`chaoslab follow`: a live view of a run, in another terminal or another container."""

import argparse
import sys

from chaoslab.base.commandline import LAB_DOWN, print_error
from chaoslab.base.durations import format_duration

HELP = "follow a run live: a line for each trial that ends"
EXAMPLE = "chaoslab follow latest"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")


def run(options: argparse.Namespace) -> int:
    from chaoslab.core.events import RunFinished
    from chaoslab.record.history import History
    from chaoslab.reports.places import find_run_folder
    from chaoslab.reports.progress import LiveRun

    try:
        folder = find_run_folder(options.run).resolve()
    except LookupError as error:
        return print_error(error)
    watched, has_records = LiveRun(), False
    for record in History.follow_run(folder):
        has_records = True
        watched.add_records([record])
        finished = record.event if isinstance(record.event, RunFinished) else None
        # At its end all: lanes that are up are not waited for.
        for line in watched.describe_ended_trials(all_of_them=finished is not None):
            print(line, flush=True)
        if finished is not None:
            print(f"run {folder.name}: {finished.reason} after {format_duration(finished.duration_s, 1)}", flush=True)
            return 0
    if not has_records:
        return print_error(
            LookupError(f"the logs of '{options.run}' tell of no run of this lab, and no process writes them")
        )
    print(f"run {folder.name}: no process writes it any more, and it never ended", file=sys.stderr)
    return LAB_DOWN
