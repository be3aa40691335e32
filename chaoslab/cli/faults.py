"""`chaoslab faults`: the catalogue, a page on one fault, and the check that faults arrive."""

import argparse
import os
from collections.abc import Sequence
from itertools import groupby

from chaoslab.base.commandline import add_json_option, make_integer_type, print_error, print_json, seed

HELP = "list all faults, describe one, or check that they arrive"
EXAMPLE = "chaoslab faults latency lost_reply"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", nargs="*", metavar="NAME", help="a fault; or `check` and the faults to check (default: all)")
    add("--calls", type=make_integer_type(3, 10**9), help="check: calls of each fault through each seam (20000)")
    add("--jobs", type=make_integer_type(1, 1024), default=os.cpu_count() or 1, help="check: processes (%(default)s)")
    add("--seed", type=seed, default=1, help="check: seed of all dice (%(default)s)")
    add("-q", "--quiet", action="store_true", help="check: print five lines at most")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import interrupt_outside_imports

    checks, *names = options.what or [None]
    try:
        if checks == "check":
            return _run_delivery_check(options, names)
        if options.calls is not None:
            options.parser.error("--calls has no effect without check")
        with interrupt_outside_imports():
            from chaoslab.core.fault import load_fault
            from chaoslab.reports import fault_pages

            if options.json:
                print_json(faults=fault_pages.catalogue_to_json([checks, *names] if checks is not None else []))
                return 0
            if checks is None:
                print(fault_pages.render_catalogue(), end="")
                return 0
            # All before the first page: a wrong name prints nothing else.
            fault_names = [checks, *names]
            for name in fault_names:
                load_fault(name)
            for name in fault_names:
                print(
                    fault_pages.render_fault_page(name, _list_example_calls(name)),
                    end="\n" if name != fault_names[-1] else "",
                )
    except LookupError as error:
        return print_error(error)
    return 0


def _list_example_calls(name: str) -> Sequence[tuple[str, Sequence[str]]]:
    """A call that meets the fault, at each seam that takes it."""
    from chaoslab.execution import delivery

    return delivery.list_example_stories_by_seam(name)


def _run_delivery_check(options: argparse.Namespace, names: list[str]) -> int:
    """The exit code is 1 if a fault was not delivered, or not at the rate that was configured."""
    from chaoslab.analysis.measures.delivery import DeliveryCounts
    from chaoslab.execution import delivery
    from chaoslab.execution.forked import make_executor
    from chaoslab.reports import fault_check

    cells = delivery.plan_delivery_cells(names, calls=options.calls or delivery.CALLS, seed=options.seed)
    silent = options.quiet or options.json
    if not silent:
        print(fault_check.render_header_row(delivery.CHANCES), flush=True)
    counts: list[DeliveryCounts] = []
    results = make_executor(options.jobs).map(delivery.DeliveryCheck(), cells)
    for _, results_of_fault in groupby(results, lambda result: (result.cell.fault, result.cell.seam)):
        group = list(results_of_fault)
        counts += group
        if not silent:
            print(fault_check.render_row(group, len(cells)), flush=True)
    text, well = fault_check.render_check_summary(counts)
    if options.json:
        print_json(delivered=well, cells=fault_check.results_to_json(counts))
    else:
        print(text)
    return 0 if well else 1
