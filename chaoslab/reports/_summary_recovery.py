"""The summary's part on recovery: the number of repaired incidents, the means of repair, and the time it took."""

from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.mttr import Mttr, Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.page import ListBounds, count, seconds, wrapped

SOME = 8
"""The most medians, and faults without one, that are told."""
RARE = ("fallback", "late", "harm")
"""Columns that are left out if they are empty. A fallback of a Python user's agent cannot be observed."""


def lines(report: RunReport, cut: ListBounds) -> list[str]:
    found, told = report.recovery.value, report.knows_faults
    head = "time to recovery" + ("" if told else " (inferred from failures that were noticed)")
    every = found.overall
    if not every.n:
        return [f"{head}: no data"]
    said = wrapped(f"{head}: {counted(every)}")
    for sentence in (_means(every, told=told), _censored(every)):
        said += wrapped(sentence)
    said += _medians(found.by_fault, cut)
    legend = "mean = detect (from the call's beginning to its end, or until it is made again) + repair (from there on)."
    order = "Worst first: the most with harm, then the most that never recovered, then the longest mean."
    return [
        *said,
        *_table(found, cut, told=told),
        *(wrapped(legend) if told else []),
        *(wrapped(order) if len(found.by_fault) > 1 else []),
    ]


def counted(found: Recovery) -> str:
    """The number of incidents per ending."""
    ways = {"by retry": found.retry, "by fallback": found.fallback, "late": found.late}
    by = ", ".join(f"{number} {way}" for way, number in ways.items() if number)
    harmed = f", {found.harmed} with harm ({HARMED})" if found.harmed else ""
    return (
        f"{found.recovered} of {count(found.n, 'incident')} recovered{f' ({by})' if by else ''}{harmed}, "
        f"{found.censored} never"
    )


def _means(found: Recovery, *, told: bool) -> str:
    """The mean of those that recovered, in a sentence."""
    if found.mean_s is None:
        return ""
    since = "from the beginning of the call that met the fault" if told else "from the noticed failure"
    which = "one" if found.recovered == 1 else f"{found.recovered}"
    said = f"The {which} that recovered took {_mean(found)}, {since} to the right answer"
    if not told or found.since_notice_s is None or found.detected_s is None:
        return f"{said}."
    noticed = found.recovered - found.late
    were = (
        "one that a retry or a fallback repaired was"
        if noticed == 1
        else f"{noticed} that a retry or a fallback repaired were"
    )
    whose = ":" if noticed == found.recovered else f". The {were}"
    detected, repaired = duration(found.detected_s, 2), duration(found.since_notice_s, 2)
    when = f"after {detected}, when that call ended or was made again"
    return f"{said}{whose} noticed {when}, and repaired {repaired} later."


def _mean(found: Recovery) -> str:
    assert found.mean_s is not None
    interval = found.mean_interval
    if interval is None:
        return duration(found.mean_s, 2) + (" in the mean" if found.recovered > 1 else "")
    if interval.low == interval.high:
        return f"{duration(found.mean_s, 2)} each"
    return f"{seconds(Estimate(found.mean_s, interval))} in the mean"


def _censored(found: Recovery) -> str:
    """A sentence on all incidents, of which those that did not recover are never over."""
    if not found.enough:
        return f"{count(found.n, 'fault')}: too few for a median and an interval."
    if found.recovered == found.n:
        return ""
    if not found.recovered:
        return "None recovered, so the median is not reached and there is no mean."
    median = f"{seconds(found.median)} in the median" if found.median else "median not reached"
    said = f"Of all, where what did not recover is never over (Kaplan–Meier): {median}"
    if found.restricted_mean and found.horizon_s:
        said += (
            f"; {seconds(found.restricted_mean)} in the mean, looking no further than {duration(found.horizon_s, 2)}"
        )
    return f"{said}."


def _medians(by_fault: dict[str, Recovery], cut: ListBounds) -> list[str]:
    """Kaplan–Meier's median of each fault in one paragraph, if there are enough incidents."""
    if len(by_fault) < 2 or not any(r.enough for r in by_fault.values()):
        return []
    told = sorted(by_fault.items(), key=_worst)
    known = [f"{fault} {seconds(r.median) if r.median else 'not reached'}" for fault, r in told if r.enough]
    few = [f"{fault} ({count(r.n, 'fault')}: too few)" for fault, r in told if not r.enough]
    said = f"Medians by fault: {'; '.join(cut.shown(known, SOME))}."
    said += f" None for {', '.join(cut.shown(few, SOME))}." if few else ""
    return wrapped(said) + cut.more(max(len(known) - SOME, 0) + max(len(few) - SOME, 0), "medians")


def _worst(named: tuple[str, Recovery]) -> tuple[int, int, float]:
    """Sorts recoveries, worst first."""
    _, of = named
    return -of.harmed, -of.censored, -(of.mean_s or 0.0)


def _table(found: Mttr, cut: ListBounds, *, told: bool) -> list[str]:
    """A row per fault, and one for each of its targets if there are several, worst first."""
    groups = []
    for fault, every in sorted(found.by_fault.items(), key=_worst):
        there = sorted(((target, r) for (target, name), r in found.by_target.items() if name == fault), key=_worst)
        if len(there) == 1:
            groups.append([_row(f"{fault} on {there[0][0]}", every)])
        else:
            groups.append([_row(fault, every), *(_row(f"  on {target}", r) for target, r in there)])
    header = ["recovery from", "n", "retry", "fallback", "late", "harm", "never", "mean", "detect", "repair"]
    kept = [
        n
        for n, name in enumerate(header)
        if name not in RARE or any(row[n] != "0" for group in groups for row in group)
    ]
    kept = kept if told else kept[:-2]  # an inferred incident begins with its notice
    return cut.table([header[n] for n in kept], [[[row[n] for n in kept] for row in group] for group in groups])


def _row(name: str, of: Recovery) -> list[str]:
    counts = [of.n, of.retry, of.fallback, of.late, of.harmed, of.censored]
    return [name, *map(str, counts), *map(_seconds, (of.mean_s, of.detected_s, of.since_notice_s))]


def _seconds(value: float | None) -> str:
    return "–" if value is None else duration(value, 2)
