"""`chaoslab compare`: two runs, trial by trial."""

from __future__ import annotations

import argparse
from pathlib import Path

from chaoslab.base.commandline import RUN_HELP, refuse

HELP = "compare two runs trial by trial: what became better, what worse, and if chance explains it"
EXAMPLE = "chaoslab compare latest~1 latest --format markdown"
FORMATS = ("text", "html", "json", "markdown")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help=RUN_HELP)
    parser.add_argument("after", metavar="AFTER", nargs="?", default="latest", help="the run now (default: latest)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="what to write (default: %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="a file to write to (default: it is printed)")
    parser.add_argument("--fail-on-worse", action="store_true", help="exit code 1 if a trial became worse")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.analysis.comparison import Run, compare
            from chaoslab.reports import comparison
            from chaoslab.reports.folder import read
            from chaoslab.reports.formats import Missing, put

            found = compare(*(Run.of(read(name), name) for name in (options.before, options.after)))
            try:
                text = comparison.FORMATS[options.format](found)
            except Missing as error:
                return refuse(LookupError(f"chaoslab compare: {error}"))
    except LookupError as error:
        return refuse(error)
    if options.out:
        path = Path(options.out)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            print(put(text, path))
        except OSError as error:
            return refuse(LookupError(f"cannot write {error.filename or options.out}: {error.strerror or error}"))
    else:
        print(text, end="")
    if not found.pairs:
        return refuse(
            LookupError("chaoslab compare: the runs have no trial in common: name two runs of the same prompts")
        )
    return int(options.fail_on_worse and bool(found.worse))
