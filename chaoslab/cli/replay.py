"""`chaoslab replay`: replays a run from its log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaoslab.base import extras
from chaoslab.base.commandline import RUN_HELP, add_json_option, print_error, print_json

if TYPE_CHECKING:
    from chaoslab.lab.recorded_run import RecordedRun

EQUAL, DIFFERENT = 0, 1
HELP = "replay a run of the lab's own agent from its log, in virtual time, and compare the two"
EXAMPLE = "chaoslab replay latest --trial p3.r2"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument(
        "--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; repeatable"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import interrupt_outside_imports
    from chaoslab.config.settings import SettingError
    from chaoslab.lab.recorded_run import Unrepeatable, read_recorded_run

    try:
        with interrupt_outside_imports():
            log = read_recorded_run(options.run)  # first, since many a run cannot be replayed, whatever is installed
            extras.require_extras("chaoslab replay", "tools", "agent", install="lab")
            return _replay_trials(log, options.trial, quiet=options.quiet, json=options.json)
    except (LookupError, Unrepeatable, SettingError) as error:
        return print_error(error)


def _replay_trials(log: RecordedRun, chosen_trials: Sequence[str], *, quiet: bool, json: bool) -> int:
    from chaoslab.lab.replay import Rerun
    from chaoslab.reports import replay as report
    from chaoslab.reports.progress import WorkProgress

    rerun = Rerun(log, chosen_trials)
    for note in rerun.replay.notes:
        print(note, file=sys.stderr, flush=True)
    if not json:
        print(report.render_heading(rerun.replay), flush=True)
    trials = []
    with WorkProgress(len(rerun.replay.trials), quiet=quiet or json) as progress:
        for trial in rerun.replay_trials():
            trials.append(trial)
            progress.count_trial(trial.seconds, outcome=trial.outcome, faults=trial.witnessed)
    if json:
        print_json(**report.replay_to_json(rerun.replay, trials))
    else:
        print(*report.render_results(rerun.replay, trials), sep="\n")
    return DIFFERENT if any(trial.difference for trial in trials) else EQUAL
