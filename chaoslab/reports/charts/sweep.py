"""Several runs over each other: what more faults on the network cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaoslab.events import FaultWitnessed
from chaoslab.history import History
from chaoslab.judge import judgeable, verdicts
from chaoslab.measures.intervals import Estimate
from chaoslab.measures.mttr import Incident, incidents, recovery
from chaoslab.measures.success import UNJUDGED, success
from chaoslab.reports.charts import toxic_prob
from chaoslab.reports.charts.style import BLUE, GREY, ORANGE, VERMILION, canvas, legend, nothing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def success_vs_toxic_prob(histories: Sequence[History]) -> Figure:
    """The share of correct prompts: each run a grey point, all runs of one TOXIC_PROB together with their Wilson interval."""
    runs = [(_prob(h), [str(v.outcome) for v in verdicts(h).values()] if judgeable(h) else []) for h in histories]
    judged = sum(outcome not in UNJUDGED for _, outcomes in runs for outcome in outcomes)
    figure, axes = canvas(
        "Success against TOXIC_PROB", f"{len(runs)} runs, {judged} judged prompts; bars: 95 % Wilson interval"
    )
    if not judged:
        nothing(axes, "no prompt could be judged in these runs")
        return figure
    single = [(prob, found.correct.value) for prob, o in runs if (found := success(o)).correct]
    axes.scatter(
        [x for x, _ in single],
        [y for _, y in single],
        s=26,
        facecolors="none",
        edgecolors=GREY,
        label="one run",
        zorder=2,
    )
    points = []
    for prob in sorted({prob for prob, _ in runs}):
        rate = success([o for p, outcomes in runs if p == prob for o in outcomes]).correct
        if rate:
            points.append((prob, rate.value, rate.value - rate.interval.low, rate.interval.high - rate.value))
    xs, ys, below, above = zip(*points, strict=True)
    axes.errorbar(xs, ys, yerr=[below, above], color=BLUE, marker="o", capsize=4, label="all runs together")
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_ylabel("correct, of the judged prompts (%)")
    _along(figure, axes, [prob for prob, _ in runs])
    return figure


def mttr_vs_toxic_prob(histories: Sequence[History]) -> Figure:
    """Kaplan–Meier's median and the mean of the recovered, with intervals, where there are incidents enough."""
    pooled: dict[float, list[Incident]] = {}
    for history in histories:
        pooled.setdefault(_prob(history), []).extend(incidents(history))
    total = sum(map(len, pooled.values()))
    censored = sum(recovery(found).censored for found in pooled.values())
    note = f"{len(histories)} runs, {total} incidents, {censored} never recovered; bars: 95 % intervals"
    inferred = sum(not history.tells(FaultWitnessed) for history in histories)
    note += f"; inferred in {inferred} of the runs, whose logs tell of no faults" if inferred else ""
    figure, axes = canvas("Time to recovery against TOXIC_PROB", note)
    if not total:
        nothing(axes, "no data: no faults were witnessed in these runs")
        return figure
    span = (max(pooled) - min(pooled)) or 1.0
    top, few = 0.0, []
    drawn: set[str] = set()
    for prob, found in sorted(pooled.items()):
        known = recovery(found)
        if not known.enough:
            few.append((prob, len(found)))
            continue
        mean = Estimate(known.mean_s, known.mean_interval) if known.mean_s and known.mean_interval else None
        for name, estimate, color, marker, shift in (
            ("Kaplan–Meier median", known.median, BLUE, "o", -1),
            ("mean of the recovered", mean, ORANGE, "s", 1),
        ):
            if estimate is None:
                continue
            value, low, high = estimate.value, estimate.interval.low, estimate.interval.high
            high = max(value, known.horizon_s or value) if math.isinf(high) else high
            top = max(top, high)
            axes.errorbar(
                [prob + shift * span * 0.008],
                [value],
                yerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
                color=color,
                marker=marker,
                capsize=4,
                label="" if name in drawn else name,
            )
            drawn.add(name)
    axes.set_ylim(0, top * 1.08 or 1.0)
    for prob, count in few:
        axes.text(
            prob,
            0.02,
            f"{count} faults: too few" if count else "no data",
            transform=axes.get_xaxis_transform(),
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=9,
            color=VERMILION,
        )
    axes.set_ylabel("time to recovery (s)")
    _along(figure, axes, list(pooled))
    return figure


def _along(figure: Figure, axes: Axes, probs: Sequence[float]) -> None:
    margin = ((max(probs) - min(probs)) or 0.5) * 0.06
    axes.set_xlim(min(probs) - margin, max(probs) + margin)
    axes.set_xlabel("TOXIC_PROB: chance that an attempt goes over a poisoned connection (0 to 1)")
    legend(figure, axes)


def _prob(history: History) -> float:
    prob = toxic_prob(history)
    if prob is None:
        raise LookupError("a run does not state its TOXIC_PROB")
    return prob
