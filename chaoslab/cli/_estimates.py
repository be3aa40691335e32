"""The option --estimate of `chaoslab run`, `test` and `stress`: what the trials would cost."""

import argparse
from collections.abc import Iterable

from chaoslab.base.commandline import print_json
from chaoslab.execution.estimate import CostEstimate, summed


def say(estimates: Iterable[CostEstimate], options: argparse.Namespace) -> int:
    """Prints each estimate as it is made, and the sum of several; returns the exit code."""
    found: list[CostEstimate] = []
    for each in estimates:
        found.append(each)
        if not options.json:
            print("\n".join(each.lines()), flush=True)
    if options.json:
        print_json(estimates=[each.plain() for each in found], sum=summed(found).plain())
    elif len(found) > 1:
        print("\n".join(summed(found).lines()))
    return 0
