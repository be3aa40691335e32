"""The last part of the commands that write a project of scenarios and fakes: it writes, and says what it wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import make_integer_type, parse_path, print_error

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import PersonalDataMasker, Project


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that these commands share."""
    parser.add_argument(
        "--out", type=parse_path, default=Path("chaos"), metavar="DIR", help="where to write (%(default)s)"
    )
    parser.add_argument(
        "--most", type=make_integer_type(1, 1000), default=20, help="at most this many scenario files (%(default)s)"
    )
    parser.add_argument(
        "--no-mask", action="store_true", help="do not mask keys, e-mail addresses, phone and card numbers"
    )


def write_project(
    options: argparse.Namespace, source: str, make: Callable[[PersonalDataMasker], tuple[Project, Sequence[str]]]
) -> int:
    """Writes the project and returns the exit code. `source`: what it is made of, for errors. `make` is given what
    masks, and returns the project with lines about it; it raises a ValueError, a LookupError or an OSError."""
    from chaoslab.base.json_text import encode_text
    from chaoslab.scenarios.new_project import write_files
    from chaoslab.surfaces.projects import PersonalDataMasker

    personal = PersonalDataMasker(on=not options.no_mask)
    try:
        project, notes = make(personal)
        paths = write_files({options.out / name: text for name, text in project.files.items()}, options.out)
    except (ValueError, LookupError) as error:
        # Some of these name their source already.
        return print_error(error if source in str(error) else ValueError(f"{source}: {error}"))
    except OSError as error:
        return print_error(OSError(f"{error.filename or options.out}: {error.strerror or error}"))
    print(*paths, *notes, sep="\n")
    if project.masked:
        print("masked: " + ", ".join(f"{count} × {kind}" for kind, count in project.masked.items()))
    for line in dict.fromkeys(project.lacking):
        print(f"not derived: {encode_text(personal.mask_text(line)).decode()}")
    if any(name.endswith(".chaos.yaml") for name in project.files):
        print(f"next: chaoslab test {options.out}")
    return 0
