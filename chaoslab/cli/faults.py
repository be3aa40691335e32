"""`chaoslab faults`: the catalogue, a page on one fault, and the check that faults arrive."""

import argparse
import os
from collections.abc import Sequence
from itertools import groupby

from chaoslab.base.commandline import as_json, print_json, refuse, seed, whole

HELP = "list all faults, tell of one, or check that they arrive"
EXAMPLE = "chaoslab faults latency lost_reply"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", nargs="*", metavar="NAME", help="a fault, or check and the faults to check (all)")
    add("--calls", type=whole(3, 10**9), help="check: so many calls of each fault through each seam (20000)")
    add("--jobs", type=whole(1, 1024), default=os.cpu_count() or 1, help="check: processes (%(default)s)")
    add("--seed", type=seed, default=1, help="check: of all dice (%(default)s)")
    add("-q", "--quiet", action="store_true", help="check: print only the result")
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    checks, *names = options.what or [None]
    try:
        if checks == "check":
            return _check(options, names)
        if options.calls is not None:
            options.parser.error("--calls has no effect without check")
        with heard_outside_imports():
            from chaoslab.core.fault import load
            from chaoslab.reports import fault_pages

            if options.json:
                print_json(faults=fault_pages.plain([checks, *names] if checks is not None else []))
                return 0
            if checks is None:
                print(fault_pages.catalogue(), end="")
                return 0
            shown = [checks, *names]
            for name in shown:
                load(name)
            for name in shown:
                print(fault_pages.page(name, _seen(name)), end="\n" if name != shown[-1] else "")
    except LookupError as error:
        return refuse(error)
    return 0


def _seen(name: str) -> Sequence[tuple[str, Sequence[str]]]:
    """A call that meets the fault, at each seam that takes it."""
    from chaoslab.execution import delivery

    return delivery.seams_of(name)


def _check(options: argparse.Namespace, names: list[str]) -> int:
    """The exit code is 1 if a fault was not delivered, or not at the rate that was configured."""
    from chaoslab.analysis.measures.delivery import DeliveryCounts
    from chaoslab.execution import delivery
    from chaoslab.execution.workers import executor
    from chaoslab.reports import fault_check

    cells = delivery.cells(names, calls=options.calls or delivery.CALLS, seed=options.seed)
    silent = options.quiet or options.json
    if not silent:
        print(fault_check.head(delivery.CHANCES), flush=True)
    found: list[DeliveryCounts] = []
    results = executor(options.jobs, chunk_max=len(delivery.CHANCES)).map(delivery.Check(), cells)
    for _, there in groupby(results, lambda result: (result.cell.fault, result.cell.seam)):
        group = list(there)
        found += group
        if not silent:
            print(fault_check.row(group, len(cells)), flush=True)
    text, well = fault_check.foot(found)
    if options.json:
        print_json(delivered=well, cells=fault_check.plain(found))
    else:
        print(text)
    return 0 if well else 1
