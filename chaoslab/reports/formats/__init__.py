"""The formats of a run's report, one file each. A format is a module with `files(contents)`, which returns each file's
text by its name."""

import errno
import pkgutil
from importlib import import_module
from pathlib import Path

from chaoslab.base.files import open_regular, replace_file
from chaoslab.reports.contents import Contents

HTML = "html"
BEGINNING = 16
"""The bytes by which a report is known, but for Markdown: that begins with a heading of its own."""
HEADING = b"## "


def list_formats() -> list[str]:
    """The formats that there are."""
    return sorted(file.name for file in pkgutil.iter_modules(__path__))


def render_files(kind: str, contents: Contents) -> dict[str, str]:
    """The report in this format: the text of each of its files, by its name."""
    texts: dict[str, str] = import_module(f"{__name__}.{kind}").files(contents)
    return texts


def write_html_report(folder: Path) -> tuple[Path, Contents]:
    """Writes the HTML of the run in this folder into it; returns its path, and what it holds. Raises Incomplete: a
    package is not installed. LookupError: there is no run. OSError: it cannot be written."""
    run_folder = folder.resolve()
    contents = Contents.from_run_name(str(run_folder), where=str(folder.parent / run_folder.name))
    (path,) = write_files(render_files(HTML, contents), run_folder)
    return folder.parent / run_folder.name / path.name, contents


def write_files(texts: dict[str, str], folder: Path) -> list[Path]:
    """Writes the files into the folder; each is replaced as a whole. Raises OSError: one could not be written."""
    folder.mkdir(parents=True, exist_ok=True)
    return [write_file(text, folder / name) for name, text in texts.items()]


def write_file(text: str, path: Path) -> Path:
    """Writes a file as a whole, in UTF-8. Raises OSError: it could not be written, or what is there is no report of
    this format; it is then unchanged."""
    # Half of a surrogate pair has no UTF-8, and a report with its escape is better than none.
    data = text.encode("utf-8", "backslashreplace")
    # Before the write: a wrong name must not cost the user a file.
    ensure_replaceable(path, data)
    with replace_file(path) as partial_file:
        partial_file.write_bytes(data)
    return path


def ensure_replaceable(path: Path, data: bytes) -> None:
    """Checks that a file is not there, is empty, or begins as what shall take its place. Raises FileExistsError: it is
    something else."""
    if not path.is_file():
        return
    with open_regular(path) as file:
        begins = file.read(BEGINNING)
    # Markdown begins with the verdict, which differs from run to run.
    if begins and begins != data[: len(begins)] and not (begins.startswith(HEADING) and data.startswith(HEADING)):
        raise FileExistsError(errno.EEXIST, "what is there is no report of this format: name another file", str(path))
