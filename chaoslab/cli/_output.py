"""The options --json and --quiet of the commands that run the lab: the result alone on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chaoslab.base.commandline import add_json_option
from chaoslab.cli import _requirements

if TYPE_CHECKING:
    from chaoslab.reports.gate import Gate


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds both options, and those of the gate."""
    add_json_option(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print five lines at most")
    _requirements.add_options(parser)


def is_apart(options: argparse.Namespace) -> bool:
    """Tells if the trials are run in one process, which is the virtual world's. The parts of the others are processes
    of their own."""
    from chaoslab.config.settings import copy_environment
    from chaoslab.execution.spec import is_single_process

    # The command line counts more than the environment.
    world_setting = {
        "WORLD": copy_environment().get("WORLD"),
        **dict(setting.split("=", 1) for setting in options.settings if "=" in setting),
    }
    return is_single_process(getattr(options, "world", None) or world_setting["WORLD"])


def run_lab(settings: Sequence[str], options: argparse.Namespace, *, ruled: Gate) -> int:
    """Runs the lab with these settings, and prints what the options ask for; returns the exit code."""
    from chaoslab.config.settings import set_variables
    from chaoslab.lab.launch import start_lab
    from chaoslab.record.held import MAIN

    if not options.json and not options.quiet:
        return start_lab(settings, gate=ruled).code
    variables = {"COMPOSE_PROGRESS": "quiet"} if options.quiet else {}
    with redirect_stdout(silent=options.quiet), set_variables(variables):
        code, folder = start_lab(settings, gate=ruled, quiet=options.quiet)
    if folder is not None and (folder / f"{MAIN}.log").exists():
        from chaoslab.cli import summary

        return summary.run(argparse.Namespace(run=folder.name, json=options.json, full=False)) or code
    return code


@contextmanager
def redirect_stdout(*, silent: bool) -> Iterator[None]:
    """A context in which what this process and its children print goes to standard error, or nowhere."""
    # What Python has in its buffer belongs to the old one.
    sys.stdout.flush()
    # The descriptor, since children print too.
    stdout_copy = os.dup(1)
    replacement = os.open(os.devnull, os.O_WRONLY) if silent else os.dup(2)
    os.dup2(replacement, 1)
    os.close(replacement)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout_copy, 1)
        os.close(stdout_copy)
