"""The options --json and --quiet of the commands that run the lab: the result alone on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chaoslab.base.commandline import as_json
from chaoslab.cli import _requirements, otlp

if TYPE_CHECKING:
    from chaoslab.reports.gate import Gate


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds both options, and those of the gate."""
    as_json(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, only the summary")
    otlp.add_live(parser)
    _requirements.arguments(parser)


def is_apart(options: argparse.Namespace) -> bool:
    """Tells if the trials are run in one process, which is the virtual world's. The parts of the others are processes
    of their own."""
    from chaoslab.config.settings import inherited
    from chaoslab.execution.spec import is_of_one_process

    given = {"WORLD": inherited().get("WORLD"), **dict(each.split("=", 1) for each in options.settings if "=" in each)}
    return is_of_one_process(getattr(options, "world", None) or given["WORLD"])


def run(given: Sequence[str], options: argparse.Namespace, *, ruled: Gate) -> int:
    """Runs the lab with these settings, and prints what the options ask for; returns the exit code."""
    from chaoslab.lab.launch import LOGS

    return otlp.sending(options, LOGS, lambda: _run(given, options, ruled=ruled))


def _run(given: Sequence[str], options: argparse.Namespace, *, ruled: Gate) -> int:
    from chaoslab.config.settings import with_variables
    from chaoslab.lab.launch import start
    from chaoslab.record.held import MAIN

    if not options.json and not options.quiet:
        return start(given, gate=ruled).code
    variables = {"COMPOSE_PROGRESS": "quiet"} if options.quiet else {}
    with aside(silent=options.quiet), with_variables(variables):
        code, folder = start(given, gate=ruled, quiet=options.quiet)
    if folder is not None and (folder / f"{MAIN}.log").exists():
        from chaoslab.cli import summary

        return summary.run(argparse.Namespace(run=folder.name, json=options.json, full=False)) or code
    return code


@contextmanager
def aside(*, silent: bool) -> Iterator[None]:
    """A context in which what this process and its children print goes to standard error, or nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    other = os.open(os.devnull, os.O_WRONLY) if silent else os.dup(2)
    os.dup2(other, 1)
    os.close(other)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
