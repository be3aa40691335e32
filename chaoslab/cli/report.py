"""`chaoslab report`: the reports of runs, as files to read or to send."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from chaoslab.base import extras
from chaoslab.base.commandline import RUN_HELP, code_for, parse_nonempty, refuse

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
        type=parse_nonempty,
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
            return _write_index(options)
        _check_options(options, names)
        if options.format == CHARTS:
            from chaoslab.reports import charts

            return charts.main(names, out=Path(options.out) if options.out else None)
        if options.format == PARQUET:
            extras.check("chaoslab report --format parquet", PARQUET)
            return max(_write_tables(name, options, alone=len(names) == 1) for name in names)
        if options.out == STDOUT and len(names) == PAIR:
            return _write_changes(names, options)
        if options.format:
            code = max(_write_report(name, options, alone=len(names) == 1) for name in names)
        else:
            extras.check("chaoslab report", "charts")
            code = max(_write_default_report(name, options) for name in names)
        # The comparison comes after both reports, and only if they could be written.
        return code or (_write_changes(names, options) if len(names) == PAIR else 0)
    except LookupError as error:
        return refuse(error)


def _check_options(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raises LookupError if the options contradict each other, or one of several runs is not there."""
    from chaoslab.reports.places import find_run

    if options.open and (options.format or HTML) != HTML:
        raise LookupError(f"--open shows HTML in the browser, and --format {options.format} is none: leave one out")
    if options.open and options.out == STDOUT:
        raise LookupError("--open needs a file, and --out - writes none: leave one out")
    if options.out and not options.format:
        raise LookupError(
            "--out needs --format, which says what to write: html, json, junit, markdown, csv, parquet or charts"
        )
    for name in names if len(names) > 1 else ():  # before the first is written
        find_run(name)
    if options.out == STDOUT and len(names) == PAIR and options.format == "junit":
        raise LookupError("--out - prints the comparison of two runs as html, json or markdown: name another --format")
    if options.out == STDOUT and (options.format in (CHARTS, PARQUET, CSV) or len(names) > PAIR):
        obstacle = f"there are {len(names)} runs" if len(names) > PAIR else f"--format {options.format} writes several"
        raise LookupError(f"--out - prints one file, and {obstacle}: name a folder")


def _write_index(options: argparse.Namespace) -> int:
    """Writes the page over all runs and prints its path; returns the exit code."""
    from chaoslab.reports import index
    from chaoslab.reports.places import LOGS

    if options.format or options.out or len(options.runs) > 1:
        raise LookupError("--index takes one folder of runs, and neither --format nor --out")
    logs = Path(options.runs[0]) if options.runs else LOGS
    try:
        # code_for: a full disk is no mistake of the user's.
        path = index.write_index(logs)
    except OSError as error:
        return refuse(
            OSError(f"{logs / index.PAGE} cannot be written: {error.strerror or error}"), code=code_for(error)
        )
    print(path)
    return _open_page(path, 0) if options.open else 0


def _write_default_report(name: str, options: argparse.Namespace) -> int:
    from chaoslab.lab.launch import report_end
    from chaoslab.reports.loaded import Loaded
    from chaoslab.reports.places import find_run

    folder = find_run(name)
    # The link latest is named by what it leads to.
    run_folder = folder.parent / folder.resolve().name
    # By its folder, so that a name that fits several means the same one twice.
    run = Loaded.read(name if Path(name).exists() else str(folder))
    code = report_end(run_folder, 0, run=run, summarized=len(options.runs) != PAIR)
    return _open_page(run_folder / "report.html", code) if options.open else code


def _write_report(name: str, options: argparse.Namespace, *, alone: bool) -> int:
    """Writes the report of one run and prints the paths; returns the exit code."""
    from chaoslab.base.interrupts import heard_outside_imports
    from chaoslab.reports import formats, places
    from chaoslab.reports.contents import Contents

    with heard_outside_imports():
        run_folder = places.charts_folder(name).parent
        location = str(run_folder)
        # a table of all calls is made of all stories
        needs_stories = options.format == CSV
        contents = (
            Contents.build(places.read_history(name), where=location)
            if needs_stories
            else Contents.read(name, where=location)
        )
        texts = formats.files(options.format, contents)
        for note in contents.report.notes:
            print(f"note: {note}", file=sys.stderr)
        if options.out == STDOUT:
            print(*texts.values(), sep="", end="")
            return 0
        try:
            paths = _write_files(texts, options.out, run_folder, alone=alone)
        except OSError as error:
            location = error.filename2 or error.filename or options.out
            return refuse(LookupError(f"cannot write {location}: {error.strerror or error}"), code=code_for(error))
    print(*paths, sep="\n")
    return _open_page(paths[0], 0) if options.open else 0


def _write_tables(name: str, options: argparse.Namespace, *, alone: bool) -> int:
    """Writes the tables of one run as Parquet and prints the paths; returns the exit code."""
    from chaoslab.reports import places
    from chaoslab.reports.frames import Frames, write_parquet

    run_folder = places.charts_folder(name).parent
    folder = (
        run_folder if not options.out else Path(options.out) if alone else Path(options.out) / run_folder.resolve().name
    )
    try:
        print(*write_parquet(Frames.read(name), folder), sep="\n")
    except OSError as error:
        reason = (
            os.strerror(error.errno) if error.errno else error
        )  # pyarrow's own text has its words around the reason
        message = f"cannot write {error.filename or folder}: {reason}"
        return refuse(LookupError(message), code=code_for(error))
    return 0


def _write_changes(names: Sequence[str], options: argparse.Namespace) -> int:
    """Tells what changed from the first run to the second, and writes it as the second's report is; returns the exit
    code."""
    from chaoslab.base.interrupts import heard_outside_imports
    from chaoslab.reports import formats, places
    from chaoslab.reports.changes import FORMATS as CHANGES
    from chaoslab.reports.changes import Changes, render_text
    from chaoslab.reports.contents import Contents

    if options.format and options.format not in CHANGES:
        return 0
    with heard_outside_imports():
        run_folders = [places.charts_folder(name).parent for name in names]
        runs = [Contents.read(name, where=str(run_folder)) for name, run_folder in zip(names, run_folders, strict=True)]
        changes = Changes.build(*runs)
        file, make = CHANGES[options.format or HTML]
        rendered = make(changes)
        if options.out == STDOUT:
            print(rendered, end="")
            return 0
        # Beside the newer run, whose change it is.
        folder = Path(options.out) if options.out else run_folders[1]
        try:
            path = formats.write({file: rendered}, folder)[0]
        except OSError as error:
            message = f"cannot write {folder / file}: {error.strerror or error}"
            return refuse(LookupError(message), code=code_for(error))
    if options.format:
        print(path)
    else:
        print(f"changes {path}\n\n{render_text(changes)}", end="")
    return 0


def _write_files(texts: dict[str, str], out: str | None, run_folder: Path, *, alone: bool) -> list[Path]:
    """Writes the files: into the run's folder, into the folder `out` (one for each run), or one file to the path `out`.
    Raises LookupError: a file should be in a folder that is not there. OSError: one could not be written."""
    from chaoslab.reports import formats

    if not out:
        return formats.write(texts, run_folder)
    target = Path(out)
    if not alone:
        # One folder for each, since all have the same file names.
        return formats.write(texts, target / run_folder.resolve().name)
    if len(texts) > 1 or target.is_dir() or out.endswith((os.sep, "/")):
        return formats.write(texts, target)
    if not target.parent.is_dir():  # as `--junit` and `--chart`, which take a file too
        raise LookupError(f"--out {out}: there is no folder {target.parent}")
    return [formats.write_file(text, target) for text in texts.values()]


def _open_page(path: Path, code: int) -> int:
    """Opens the page in the browser; returns the code, or 2 if there is no browser."""
    import webbrowser

    if not path.exists():
        return code or 2
    if not webbrowser.open(path.resolve().as_uri()):
        return refuse(LookupError(f"no browser could be started: open {path} in one"))
    return code
