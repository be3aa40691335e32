"""`chaoslab show`: trials as stories."""

import argparse
import sys

from chaoslab.base.commandline import RUN_HELP, add_json_option, make_integer_type, print_error, print_json

HELP = "print trials as stories: calls, faults, retries, effects, answer"
EXAMPLE = "chaoslab show latest --failed"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", nargs="?", default="latest", help=RUN_HELP)
    add("--prompt", type=make_integer_type(1, 1_000_000), help="only the prompt with this number, from 1")
    add("--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; repeatable")
    add("--failed", action="store_true", help="only trials that are neither correct nor unknown")
    add("--outcome", action="append", default=[], metavar="NAME", help="only harm, wrong, failed …; repeatable")
    add("--stages", action="store_true", help="print each stage of a fault on its own line")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import interrupt_outside_imports

    try:
        with interrupt_outside_imports():
            from chaoslab.reports import places, show, trials

            outcome_names = trials.parse_outcomes(options.outcome) | (
                set(trials.WORST_FIRST) if options.failed else set()
            )
            history = places.read_history(options.run)
            chosen = outcome_names if options.outcome or options.failed else None
            select = {"prompt": options.prompt, "trials": options.trial, "outcomes": chosen}
            if options.json:
                print_json(trials=show.stories_to_json(history, **select), notes=list(history.notes))
                return 0
            print(show.render_stories(history, stages=options.stages, **select))
        for note in history.notes:
            print(f"note: {note}", file=sys.stderr)
    except LookupError as error:
        return print_error(error)
    return 0
