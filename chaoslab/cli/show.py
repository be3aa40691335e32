"""`chaoslab show`: trials as stories."""

import argparse
import sys

from chaoslab.base.commandline import RUN_HELP, as_json, print_json, refuse, whole_number

HELP = "trials as stories: calls, faults, retries, effects, answer"
EXAMPLE = "chaoslab show latest --failed"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", nargs="?", default="latest", help=RUN_HELP)
    add("--prompt", type=whole_number(1, 1_000_000), help="only the prompt of this number, counted from 1")
    add("--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; may be given again")
    add("--failed", action="store_true", help="only trials that are neither correct nor unknown")
    add("--outcome", action="append", default=[], metavar="NAME", help="only harm, wrong, failed …; may be given again")
    add("--stages", action="store_true", help="each stage of a fault in a line of its own")
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.reports import places, show, trials

            outcome_names = trials.parse_outcomes(options.outcome) | (
                set(trials.WORST_FIRST) if options.failed else set()
            )
            history = places.read_history(options.run)
            chosen = outcome_names if options.outcome or options.failed else None
            select = {"prompt": options.prompt, "trials": options.trial, "outcomes": chosen}
            if options.json:
                print_json(trials=show.stories_data(history, **select), notes=list(history.notes))
                return 0
            print(show.render_stories(history, stages=options.stages, **select))
        for note in history.notes:
            print(f"note: {note}", file=sys.stderr)
    except LookupError as error:
        return refuse(error)
    return 0
