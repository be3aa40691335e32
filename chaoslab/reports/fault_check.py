"""The check of the catalogue as text: a line for each fault and seam, and the result."""

from collections.abc import Sequence
from typing import Any

from chaoslab.analysis.measures.delivery import CONFIDENCE, DeliveryCounts
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import explain_where_fault_works
from chaoslab.reports.page import format_count, wrap_text

NAME_WIDTH, SEAM_WIDTH, RATE_WIDTH = 22, 8, 23


def render_header_row(chances: Sequence[float]) -> str:
    """The heading of the rows. Each rate is followed by its exact interval."""
    rates = "  ".join(f"{f'at {chance:g}':{RATE_WIDTH}}" for chance in chances)
    return f"{'fault':{NAME_WIDTH}}  {'seam':{SEAM_WIDTH}}  {rates}  witnessed of injected"


def render_row(results: Sequence[DeliveryCounts], cells: int) -> str:
    """The results of one fault at one seam, each at a chance. `cells`: all cells of the check."""
    first = results[0]
    text = f"{first.cell.fault:{NAME_WIDTH}}  {first.cell.seam:{SEAM_WIDTH}}  "
    if first.refusal:
        return f"{text}not there: {first.refusal}"
    rates = "  ".join(f"{_format_rate(result, cells):{RATE_WIDTH}}" for result in results)
    injected, witnessed = sum(r.injected for r in results), sum(r.witnessed for r in results)
    unchanged_count = sum(r.scheduled for r in results) - injected
    text += f"{rates}  {witnessed:,} of {injected:,}"
    if unchanged_count:
        text += f"; {unchanged_count:,} had nothing to change"
    return f"{text}  ← WRONG" if any(describe_delivery_problem(result, cells) for result in results) else text


def _format_rate(result: DeliveryCounts, cells: int) -> str:
    interval = result.compute_rate_interval(cells)
    if interval is None:
        return "no call"
    return f"{result.scheduled / result.eligible:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def describe_delivery_problem(result: DeliveryCounts, cells: int) -> str:
    """The reason, in words, that a cell does not prove its fault's delivery; empty if it does."""
    if result.refusal:
        return ""
    if not result.eligible:
        return "no call reached it"
    if not result.is_fully_delivered:
        return f"{result.injected - result.witnessed:,} of {result.injected:,} were not witnessed"
    if result.unlike:
        return result.unlike
    if not result.is_rate_as_planned(cells):
        return f"the rate {_format_rate(result, cells)} excludes {result.cell.chance:g}"
    return ""


def results_to_json(results: Sequence[DeliveryCounts]) -> list[dict[str, Any]]:
    """The results as JSON values: counts, the exact interval of the rate, and the reasons against it or null."""
    rows = []
    for result in results:
        interval = result.compute_rate_interval(len(results))
        rows.append(
            {
                "fault": result.cell.fault,
                "seam": result.cell.seam,
                "chance": result.cell.chance,
                "calls": result.cell.calls,
                "eligible": result.eligible,
                "scheduled": result.scheduled,
                "injected": result.injected,
                "witnessed": result.witnessed,
                "refusal": result.refusal or None,
                "interval": None if interval is None else [interval.low, interval.high],
                "pieces": result.unlike if result.unlike is None else not result.unlike,
                "wrong": describe_delivery_problem(result, len(results)) or None,
            }
        )
    return rows


def render_check_summary(results: Sequence[DeliveryCounts]) -> tuple[str, bool]:
    """The result in lines, and True if all is well."""
    delivered = [result for result in results if not result.refusal]
    bad = [(result, problem) for result in results if (problem := describe_delivery_problem(result, len(results)))]
    faults = sorted({result.cell.fault for result in results})
    seams = dict.fromkeys((r.cell.fault, r.cell.seam) for r in delivered)
    injected_pairs = {(r.cell.fault, r.cell.seam) for r in delivered if r.injected}
    missing = [
        f"{fault} was never injected at a {seam}" for fault, seam in seams if (fault, seam) not in injected_pairs
    ]
    without_seam = [fault for fault in faults if all(fault != name for name, _ in seams)]
    # Some faults need a process or a protocol that the check has not.
    elsewhere = [fault for fault in without_seam if explain_where_fault_works(fault)]
    missing += [f"{fault} has no seam" for fault in without_seam if fault not in elsewhere or not delivered]
    lines = wrap_text(
        f"{format_count(len(faults), 'fault')}, {sum(r.eligible for r in delivered):,} calls, "
        f"{sum(r.injected for r in delivered):,} faults injected, {sum(r.witnessed for r in delivered):,} witnessed"
    )
    if not bad and not missing:
        untried = list[str]()
        summary = f"all rates are as configured (exact intervals, {CONFIDENCE:.1%} together)"
        if conditional_faults := [
            fault for fault in faults if fault not in elsewhere and get_trait(load_fault(fault), "conditional")
        ]:
            summary += (
                f", but for those that are no chances, since a fault decides when it acts: "
                f"{', '.join(conditional_faults)}"
            )
        if pieces := [result.cell.fault for result in delivered if result.unlike is not None]:
            summary += f"; the bytes arrive piece by piece as the page says of {', '.join(pieces)}"
        for where in dict.fromkeys(map(explain_where_fault_works, elsewhere)):
            those = [fault for fault in elsewhere if explain_where_fault_works(fault) == where]
            untried += wrap_text(f"not tried: {', '.join(those)}; {'each' if len(those) > 1 else 'it'} {where}")
        return "\n".join([*lines, *wrap_text(summary), *untried]), True
    lines += [text for r, problem in bad for text in wrap_text(f"WRONG: {r.cell.fault} at a {r.cell.seam}: {problem}")]
    lines += [text for problem in missing for text in wrap_text(f"WRONG: {problem}")]
    return "\n".join(lines), False
