"""The values of a run's measures as rows of tables, so that a picture needs nothing but the table."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from chaoslab.analysis.measures.intervals import kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH, spells
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports._inputs import others, settings
from chaoslab.reports.contents import _figures as figures
from chaoslab.reports.contents._matrix import matrix
from chaoslab.reports.contents._spent import added
from chaoslab.reports.levels import level_in

Rows = Iterable[Mapping[str, Any]]


def of_run(report: RunReport) -> dict[str, Any]:
    """A run in one row, with each setting that its log states under its own name."""
    run, judged, met = report.started, report.success, report.delivered
    row: dict[str, Any] = {**settings(run), "trials": len(report.trials), "level": level_in(run)}
    if report.rulings is not None:
        row["scenario"] = report.rulings.scenario or None
    if run is not None:
        row |= {"world": run.world or None, "model": run.model or None, "inputs": json.dumps(others(run))}
        row["seed"] = None if run.seed is None else str(run.seed)
    if not judged.unknown:
        ended, done = judged.value.ended, judged.value.done
        row |= {"judged": ended.judged, "well": ended.well, "open": ended.open}
        row |= {"done": done.well, "not_done": done.bad} if done is not None else {}
    if not met.unknown:
        row["faults"] = sum(one.witnessed for one in met.value.by_fault)
    if not report.recovery.unknown:
        of_all = report.recovery.value.overall
        row |= {"incidents": of_all.n, "recovered": of_all.recovered, "mttr_s": of_all.mean_s}
    return row


def _outcomes(report: RunReport) -> Rows:
    for outcome, of in report.success.value.by_outcome.items():
        yield {"outcome": outcome, "trials": of.count, "share": of.value, **vars(of.interval)}


def _recovery(report: RunReport) -> Iterator[dict[str, Any]]:
    """The corners, and between them the incidents that were cut short."""
    if (found := curve(report)) is None:
        return
    corners = zip(found.times_s, found.shares, found.lows, found.highs, strict=True)
    rows = [dict(zip(("seconds", "share", "low", "high"), corner, strict=True)) for corner in corners]
    still_open = [{"seconds": seconds, "share": share, "open": True} for seconds, share in found.censored]
    yield from sorted([*({**row, "open": False} for row in rows), *still_open], key=itemgetter("seconds"))


def _mttr(report: RunReport) -> Rows:
    """As under `recovery` in the report's JSON."""
    for fault, of in report.recovery.value.by_fault.items():
        row = figures.recovery(of)
        ends = row["median_s"] or {}
        yield {
            "fault": fault, **row, "median_s": ends.get("value"), "median_low_s": ends.get("low"),
            "median_high_s": ends.get("high"),
        }  # fmt: skip


def _latency(report: RunReport) -> Rows:
    for target, of in report.attempts.value.by_target.items():
        for met, found in zip((False, True), of.both, strict=True):
            if found:
                yield {
                    "target": target, "met": met, "attempts": len(found),
                    "p10_s": found.at(0.1), "p50_s": found.at(0.5), "p90_s": found.at(0.9),
                }  # fmt: skip


def _throughput(report: RunReport) -> Rows:
    if (found := report.throughput.value) is not None:
        for n, (trials, calls) in enumerate(zip(found.prompts, found.calls, strict=True)):
            edges = {"from_s": n * found.width_s, "to_s": (n + 1) * found.width_s}
            yield {**edges, "trials": trials, "calls": calls}


def _costs(report: RunReport) -> Rows:
    return ({"fault": row.fault, "trials": row.trials, **row.amounts} for row in added(report))


def _matrix(report: RunReport) -> Rows:
    for cell in (cell for cells in matrix(report).rows.values() for cell in cells):
        figures = {} if cell.bad is None else {
            "bad": cell.bad.count, "judged": cell.bad.total, **vars(cell.bad.interval),
        }  # fmt: skip
        worst = None if cell.worst is None else str(cell.worst)
        yield {**vars(cell), "state": str(cell.state), "bad": None, **figures, "worst": worst}


def _reliability(report: RunReport) -> Rows:
    """As in the report's JSON, with the recovery of the run."""
    if (found := figures.reliability(report)) is None:
        return
    of_run = found if report.recovery.unknown else {**figures.recovery(report.recovery.value.overall), **found}
    judged, well = (found["available"][name] for name in ("total", "count"))
    for budget in found["error_budgets"]:
        yield {**of_run, **budget, "judged": judged, "well": well, "budget_left": budget["left"]}


MEASURED: Mapping[str, Callable[[RunReport], Rows]] = {
    "runs": lambda report: [of_run(report)] if report.started or report.trials else [],
    "outcomes": _outcomes, "recovery": _recovery, "mttr": _mttr, "latency": _latency,
    "amplification": figures.amplification, "throughput": _throughput, "costs": _costs, "matrix": _matrix,
    "reliability": _reliability,
}  # fmt: skip
"""Table → its rows. All others are made of the log's lines."""


@dataclass(frozen=True)
class Curve:
    """The corners of a step curve. `times_s`: seconds since the fault began. `shares`: the share of the incidents that
    are not over, 0 to 1, at each corner; `lows`, `highs`: its 95 % interval (log–log). `censored`: (seconds, share) of
    the incidents that were open when the log ended. `n`: the number of incidents. `never`: of those that never
    recovered, or did so with harm."""

    times_s: tuple[float, ...]
    shares: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    censored: tuple[tuple[float, float], ...]
    n: int
    never: int

    @property
    def end_s(self) -> float:
        """The longest observed duration in seconds, and at least a microsecond."""
        return max(self.times_s[-1], 1e-6)


def curve(report: RunReport) -> Curve | None:
    """The curve of a run's incidents; None below 8 of them, where its interval would be misleading."""
    incidents = report.recovery.value.incidents
    if len(incidents) < ENOUGH:
        return None
    never = sum(not one.recovered and not one.censored for one in incidents)
    found = kaplan_meier(spells(incidents), [incident.trial for incident in incidents])
    if found is None:
        return None
    corners = [(0.0, 1.0, 1.0, 1.0)]
    for step in found.steps:
        _, *level = corners[-1]
        corners.append((step.at_s, level[0], level[1], level[2]))
        corners.append((step.at_s, step.share, step.interval.low, step.interval.high))
    if found.horizon_s > corners[-1][0]:
        corners.append((found.horizon_s, *corners[-1][1:]))
    times, shares, lows, highs = zip(*corners, strict=True)
    at = sorted({one.duration_s for one in incidents if one.censored})
    censored = tuple((t, next(share for when, share, *_ in reversed(corners) if when <= t)) for t in at)
    return Curve(times, shares, lows, highs, censored, len(incidents), never)
