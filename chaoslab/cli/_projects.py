"""The last part of the commands that write a project of scenarios and stand-ins: it writes, and says what it wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import path, refuse, whole_number

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import Personal, Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that these commands share."""
    parser.add_argument("--out", type=path, default=Path("chaos"), metavar="DIR", help="where to write (%(default)s)")
    parser.add_argument("--most", type=whole_number(1, 1000), default=20, help="scenario files at most (%(default)s)")
    parser.add_argument(
        "--no-mask", action="store_true", help="keep keys, e-mail addresses, phone and card numbers as they are"
    )


def write_project(
    options: argparse.Namespace, source: str, make: Callable[[Personal], tuple[Project, Sequence[str]]]
) -> int:
    """Writes the project and returns the exit code. `source`: what it is made of, for errors. `make` is given what
    masks, and returns the project with lines about it; it raises a ValueError, a LookupError or an OSError."""
    from chaoslab.base.json_text import encoded
    from chaoslab.scenarios.new_project import write_files
    from chaoslab.surfaces.projects import Personal

    personal = Personal(on=not options.no_mask)
    try:
        project, notes = make(personal)
        paths = write_files({options.out / name: text for name, text in project.files.items()}, options.out)
    except (ValueError, LookupError) as error:
        # Some of these name their source already.
        return refuse(error if source in str(error) else ValueError(f"{source}: {error}"))
    except OSError as error:
        return refuse(OSError(f"{error.filename or options.out}: {error.strerror or error}"))
    print(*paths, *notes, sep="\n")
    if project.masked:
        print("masked: " + ", ".join(f"{count} × {kind}" for kind, count in project.masked.items()))
    for line in dict.fromkeys(project.lacking):
        print(f"not derived: {encoded(personal.text(line)).decode()}")
    if any(name.endswith(".chaos.yaml") for name in project.files):
        print(f"next: chaoslab test {options.out}")
    return 0
