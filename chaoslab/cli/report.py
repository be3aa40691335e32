"""`chaoslab report`: the reports of runs, as files to read or to send."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from chaoslab.base import extras, former
from chaoslab.base.commandline import RUN_HELP, choose_failed_write_exit_code, parse_nonempty, print_error

HELP = "write a run's report: HTML, JSON or Markdown"
EXAMPLE = "chaoslab report latest --format html --open"
HTML = "html"
FORMATS = (HTML, "json", "markdown")
STDOUT = "-"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--format",
        type=_parse_format,
        choices=FORMATS,
        help="what to write (default: summary, HTML and charts, as `chaoslab lab` does)",
    )
    parser.add_argument(
        "--out",
        type=parse_nonempty,
        metavar="PATH",
        help="a file, or a folder for several; - prints it (default: the run's folder). Needs --format",
    )
    parser.add_argument("--open", action="store_true", help="show the HTML in the browser")


def _parse_format(text: str) -> str:
    if text in former.FORMATS:
        raise argparse.ArgumentTypeError(former.FORMATS[text])
    return text


def run(options: argparse.Namespace) -> int:
    names = options.runs or ["latest"]
    try:
        _require_valid_options(options, names)
        if options.format:
            return max(_write_report(name, options, alone=len(names) == 1) for name in names)
        extras.require_extras("chaoslab report", "charts")
        return max(_write_default_report(name, options) for name in names)
    except LookupError as error:
        return print_error(error)


def _require_valid_options(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raises LookupError if the options contradict each other, or a run that was named is not there."""
    from chaoslab.reports.places import find_run_folder

    if options.open and (options.format or HTML) != HTML:
        raise LookupError(f"--open shows HTML in the browser, and --format {options.format} is none: leave one out")
    if options.open and options.out == STDOUT:
        raise LookupError("--open needs a file, and --out - writes none: leave one out")
    if options.out and not options.format:
        raise LookupError("--out needs --format, which says what to write: html, json or markdown")
    for name in options.runs:  # before the first is written, or an extra is asked for
        find_run_folder(name)
    if options.out == STDOUT and len(names) > 1:
        raise LookupError(f"--out - prints one file, and there are {len(names)} runs: name a folder")


def _write_default_report(name: str, options: argparse.Namespace) -> int:
    from chaoslab.lab.launch import print_end_report
    from chaoslab.reports.loaded import Loaded
    from chaoslab.reports.places import find_run_folder

    folder = find_run_folder(name)
    # The link latest is named by what it leads to.
    run_folder = folder.parent / folder.resolve().name
    # By its folder, so that a name that fits several means the same one twice.
    run = Loaded.read(name if Path(name).exists() else str(folder))
    code = print_end_report(run_folder, 0, run=run)
    return _open_in_browser(run_folder / "report.html", code) if options.open else code


def _write_report(name: str, options: argparse.Namespace, *, alone: bool) -> int:
    """Writes the report of one run and prints the paths; returns the exit code."""
    from chaoslab.base.interrupts import interrupt_outside_imports
    from chaoslab.reports import formats, places
    from chaoslab.reports.contents import Contents

    with interrupt_outside_imports():
        run_folder = places.find_charts_folder(name).parent
        contents = Contents.from_run_name(name, where=str(run_folder))
        texts = formats.render_files(options.format, contents)
        for note in contents.report.notes:
            print(f"note: {note}", file=sys.stderr)
        if options.out == STDOUT:
            print(*texts.values(), sep="", end="")
            return 0
        try:
            paths = _write_report_files(texts, options.out, run_folder, alone=alone)
        except OSError as error:
            location = error.filename2 or error.filename or options.out
            return print_error(
                LookupError(f"cannot write {location}: {error.strerror or error}"),
                code=choose_failed_write_exit_code(error),
            )
    print(*paths, sep="\n")
    return _open_in_browser(paths[0], 0) if options.open else 0


def _write_report_files(texts: dict[str, str], out: str | None, run_folder: Path, *, alone: bool) -> list[Path]:
    """Writes the files: into the run's folder, into the folder `out` (one for each run), or one file to the path `out`.
    Raises LookupError: a file should be in a folder that is not there. OSError: one could not be written."""
    from chaoslab.reports import formats

    if not out:
        return formats.write_files(texts, run_folder)
    target = Path(out)
    if not alone:
        # One folder for each, since all have the same file names.
        return formats.write_files(texts, target / run_folder.resolve().name)
    if len(texts) > 1 or target.is_dir() or out.endswith((os.sep, "/")):
        return formats.write_files(texts, target)
    if not target.parent.is_dir():  # as `--junit` and `--chart`, which take a file too
        raise LookupError(f"--out {out}: there is no folder {target.parent}")
    return [formats.write_file(text, target) for text in texts.values()]


def _open_in_browser(path: Path, code: int) -> int:
    """Opens the page in the browser; returns the code, or 2 if there is no browser."""
    import webbrowser

    if not path.exists():
        return code or 2
    if not webbrowser.open(path.resolve().as_uri()):
        return print_error(LookupError(f"no browser could be started: open {path} in one"))
    return code
