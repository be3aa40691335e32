"""The options --min-correct and --fail-on: requirements on a run; the exit code is 1 if it does not meet them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from chaoslab.base.commandline import make_argument_type
from chaoslab.base.parsers import parse_bounded_number

if TYPE_CHECKING:
    from chaoslab.reports.gate import Gate

SHARE = make_argument_type(lambda text: parse_bounded_number(text, 0.0, 1.0, "a share from 0 to 1, as in 0.9"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add = parser.add_argument
    add("--min-correct", type=SHARE, metavar="SHARE", help="exit code 1 below this share of correct trials, as in 0.9")
    add(
        "--fail-on",
        type=parse_outcomes,
        default=(),
        metavar="OUTCOMES",
        help="exit code 1 if a trial has one of these outcomes: harm,wrong,failed,hung …",
    )


def build_gate(options: argparse.Namespace) -> Gate:
    """The gate that the options describe."""
    from chaoslab.reports.gate import Gate

    return Gate(options.min_correct, options.fail_on)


def build_gate_or_default(options: argparse.Namespace) -> Gate:
    """The same; where the options ask for nothing, the requirements that hold by themselves."""
    from chaoslab.reports.gate import BY_ITSELF

    return build_gate(options) or BY_ITSELF


def parse_outcomes(text: str) -> tuple[str, ...]:
    from chaoslab.reports import gate

    return gate.parse_outcomes(text)
