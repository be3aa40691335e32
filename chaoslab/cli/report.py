"""`chaoslab report`: the reports of runs, as files to read or to send."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from chaoslab.base import extras
from chaoslab.base.commandline import RUN_HELP, code_for, filled, refuse

HELP = "a run's report: HTML, JSON, JUnit, Markdown, CSV, Parquet, charts; without --format as `chaoslab lab` leaves it"
EXAMPLE = "chaoslab report latest --format html --open"
CHARTS, CSV, HTML, PARQUET = "charts", "csv", "html", "parquet"
FORMATS = (HTML, "json", "junit", "markdown", CSV, PARQUET, CHARTS)
STDOUT = "-"
PAIR = 2
"""The number of runs that are compared too."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"{RUN_HELP}. Two are compared too, trial by trial")
    parser.add_argument("--format", choices=FORMATS, help="what to write; without it: summary, HTML and charts")
    parser.add_argument(
        "--out",
        type=filled,
        metavar="PATH",
        help="a file, or a folder for several; - prints it, of two runs their comparison (default: the run's folder). "
        "Needs --format",
    )
    parser.add_argument("--open", action="store_true", help="show the HTML in the browser")
    parser.add_argument(
        "--index",
        action="store_true",
        help="one page over all runs of a folder, logs/ or RUN: the trend of each scenario, and links to the reports",
    )


def run(options: argparse.Namespace) -> int:
    names = options.runs or ["latest"]
    try:
        if options.index:
            return _index(options)
        _check(options, names)
        if options.format == CHARTS:
            from chaoslab.reports import charts

            return charts.main(names, out=Path(options.out) if options.out else None)
        if options.format == PARQUET:
            extras.check("chaoslab report --format parquet", PARQUET)
            return max(_tables(name, options, alone=len(names) == 1) for name in names)
        if options.out == STDOUT and len(names) == PAIR:
            return _compare(names, options)
        if options.format:
            code = max(_write(name, options, alone=len(names) == 1) for name in names)
        else:
            extras.check("chaoslab report", "charts")
            code = max(_leave(name, options) for name in names)
        return code or (_compare(names, options) if len(names) == PAIR else 0)
    except LookupError as error:
        return refuse(error)


def _check(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raises LookupError if the options contradict each other, or one of several runs is not there."""
    from chaoslab.reports.places import find

    if options.open and (options.format or HTML) != HTML:
        raise LookupError(f"--open shows HTML in the browser, and --format {options.format} is none: leave one out")
    if options.open and options.out == STDOUT:
        raise LookupError("--open needs a file, and --out - writes none: leave one out")
    if options.out and not options.format:
        raise LookupError(
            "--out needs --format, which says what to write: html, json, junit, markdown, csv, parquet or charts"
        )
    for name in names if len(names) > 1 else ():  # before the first is written
        find(name)
    if options.out == STDOUT and len(names) == PAIR and options.format == "junit":
        raise LookupError("--out - prints the comparison of two runs as html, json or markdown: name another --format")
    if options.out == STDOUT and (options.format in (CHARTS, PARQUET, CSV) or len(names) > PAIR):
        what = f"there are {len(names)} runs" if len(names) > PAIR else f"--format {options.format} writes several"
        raise LookupError(f"--out - prints one file, and {what}: name a folder")


def _index(options: argparse.Namespace) -> int:
    """Writes the page over all runs and prints its path; returns the exit code."""
    from chaoslab.reports import index
    from chaoslab.reports.places import LOGS

    if options.format or options.out or len(options.runs) > 1:
        raise LookupError("--index takes one folder of runs, and neither --format nor --out")
    logs = Path(options.runs[0]) if options.runs else LOGS
    try:
        path = index.write(logs)
    except OSError as error:
        return refuse(
            OSError(f"{logs / index.PAGE} cannot be written: {error.strerror or error}"), code=code_for(error)
        )
    print(path)
    return _shown(path, 0) if options.open else 0


def _leave(name: str, options: argparse.Namespace) -> int:
    from chaoslab.lab.launch import leave
    from chaoslab.reports.loaded import Loaded
    from chaoslab.reports.places import find

    folder = find(name)
    own = folder.parent / folder.resolve().name
    run = Loaded.read(name if Path(name).exists() else str(folder))
    code = leave(own, 0, run=run, summarized=len(options.runs) != PAIR)
    return _shown(own / "report.html", code) if options.open else code


def _write(name: str, options: argparse.Namespace, *, alone: bool) -> int:
    """Writes the report of one run and prints the paths; returns the exit code."""
    from chaoslab.base.interrupts import heard_outside_imports
    from chaoslab.reports import formats, places
    from chaoslab.reports.contents import Contents

    with heard_outside_imports():
        own = places.charts_of(name).parent
        where = str(own)
        # a table of all calls is made of all stories
        of_all = options.format == CSV
        contents = Contents.of(places.read(name), where=where) if of_all else Contents.read(name, where=where)
        texts = formats.files(options.format, contents)
        for note in contents.report.notes:
            print(f"note: {note}", file=sys.stderr)
        if options.out == STDOUT:
            print(*texts.values(), sep="", end="")
            return 0
        try:
            paths = _put(texts, options.out, own, alone=alone)
        except OSError as error:
            where = error.filename2 or error.filename or options.out
            return refuse(LookupError(f"cannot write {where}: {error.strerror or error}"), code=code_for(error))
    print(*paths, sep="\n")
    return _shown(paths[0], 0) if options.open else 0


def _tables(name: str, options: argparse.Namespace, *, alone: bool) -> int:
    """Writes the tables of one run as Parquet and prints the paths; returns the exit code."""
    from chaoslab.reports import places
    from chaoslab.reports.frames import Frames, write_parquet

    own = places.charts_of(name).parent
    folder = own if not options.out else Path(options.out) if alone else Path(options.out) / own.resolve().name
    try:
        print(*write_parquet(Frames.read(name), folder), sep="\n")
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # pyarrow's own text has its words around the reason
        said = f"cannot write {error.filename or folder}: {why}"
        return refuse(LookupError(said), code=code_for(error))
    return 0


def _compare(names: Sequence[str], options: argparse.Namespace) -> int:
    """Tells what changed from the first run to the second, and writes it as the second's report is; returns the exit
    code."""
    from chaoslab.base.interrupts import heard_outside_imports
    from chaoslab.reports import formats, places
    from chaoslab.reports.changes import Changes
    from chaoslab.reports.changes.formats import FORMATS as CHANGES
    from chaoslab.reports.changes.formats import text
    from chaoslab.reports.contents import Contents

    if options.format and options.format not in CHANGES:
        return 0
    with heard_outside_imports():
        owns = [places.charts_of(name).parent for name in names]
        runs = [Contents.read(name, where=str(own)) for name, own in zip(names, owns, strict=True)]
        found = Changes.of(*runs)
        file, make = CHANGES[options.format or HTML]
        made = make(found)
        if options.out == STDOUT:
            print(made, end="")
            return 0
        folder = Path(options.out) if options.out else owns[1]
        try:
            path = formats.write({file: made}, folder)[0]
        except OSError as error:
            said = f"cannot write {folder / file}: {error.strerror or error}"
            return refuse(LookupError(said), code=code_for(error))
    if options.format:
        print(path)
    else:
        print(f"changes {path}\n\n{text(found)}", end="")
    return 0


def _put(texts: dict[str, str], out: str | None, own: Path, *, alone: bool) -> list[Path]:
    """Writes the files: into the run's folder, into the folder `out` (one for each run), or one file to the path `out`.
    Raises LookupError: a file should be in a folder that is not there. OSError: one could not be written."""
    from chaoslab.reports import formats

    if not out:
        return formats.write(texts, own)
    target = Path(out)
    if not alone:
        return formats.write(texts, target / own.resolve().name)
    if len(texts) > 1 or target.is_dir() or out.endswith((os.sep, "/")):
        return formats.write(texts, target)
    if not target.parent.is_dir():  # as `--junit` and `--chart`, which take a file too
        raise LookupError(f"--out {out}: there is no folder {target.parent}")
    return [formats.put(text, target) for text in texts.values()]


def _shown(path: Path, code: int) -> int:
    """Opens the page in the browser; returns the code, or 2 if there is no browser."""
    import webbrowser

    if not path.exists():
        return code or 2
    if not webbrowser.open(path.resolve().as_uri()):
        return refuse(LookupError(f"no browser could be started: open {path} in one"))
    return code
