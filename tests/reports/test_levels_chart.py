"""Runs at several levels of chaos: their level, their share of correct trials, and its chart."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from chaoslab.analysis.measures._grounds import summarize_success
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import MeasureResult
from chaoslab.analysis.verdict.standing import get_outcome_standing
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import RunStarted
from chaoslab.core.levels import FAMILIES, LEVELS, level
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports import charts
from chaoslab.reports.frames import Frames, JoinedRunFrames, summarize_run
from chaoslab.reports.levels import find_chaos_level, pool_runs_by_level
from tests.event_parts import run_started


def at(value: float, *outcomes: str, own: tuple[Any, ...] = (), **settings: Any) -> RunReport:
    """A run at a level whose trials ended so."""
    injections = [
        {"name": each.name, "chance": each.chance, "choices": [], "targets": [], "calls": []}
        for each in level(value, "shop", families=("network", "tool"))
    ]
    started = run_started(settings=settings, plan={"seed": 1, "injections": [*injections, *own]}, now="", model="m")
    report = RunReport.from_history(History([Record("", 0.0, "r", None, "info", 1, started)]))
    judged = [Verdict(Outcome(outcome), "") for outcome in outcomes]
    found = summarize_success(judged, [*map(get_outcome_standing, outcomes)], [None] * len(judged))
    return replace(report, success=MeasureResult(found))


def overlay(reports: Iterable[RunReport]) -> dict[str, Figure]:
    return charts.draw_multi_run_charts(JoinedRunFrames(Frames(History([]), report) for report in reports))


@pytest.mark.parametrize("value", [*LEVELS, 0.75, 1.5, 3.3, 10])
@pytest.mark.parametrize("families", [("tool",), ("network", "tool", "meaning"), FAMILIES])
def test_a_plan_says_its_level(value: float, families: tuple[str, ...]) -> None:
    injections = [
        {"name": each.name, "chance": each.chance} for each in level(value, "shop", families=families, of_bytes=True)
    ]
    started = RunStarted(seed=1, settings={}, plan={"injections": injections, "seed": 1}, prompts=1, now="", model="")
    assert find_chaos_level(started) == value


def test_a_plan_of_no_one_level_says_none() -> None:
    mixed = [{"name": "level tool on a", "chance": 0.1}, {"name": "level tool on b", "chance": 0.2}]
    started = RunStarted(seed=1, settings={}, plan={"injections": mixed}, prompts=1, now="", model="")
    assert find_chaos_level(started) is None
    assert find_chaos_level(None) is None, "a log that does not say how it was started"


def test_runs_of_one_level_count_together_and_an_unjudged_run_is_no_zero() -> None:
    runs = [at(2, "wrong"), at(0, "correct", "wrong"), at(0, "correct", "wrong"), at(1, "unknown")]
    found = pool_runs_by_level("all", map(summarize_run, runs))
    assert [(value, share.count, share.total) for value, share in found.points] == [(0, 2, 4), (2, 0, 1)]


def test_runs_at_several_levels_are_one_line_and_another_plan_makes_another() -> None:
    (figure,) = overlay([at(0, "correct"), at(1, "correct", "wrong")]).values()
    (axes,) = figure.axes
    assert figure.get_suptitle() == "Pass rate over the level of chaos"
    (line,) = [one for one in axes.lines if one.get_linestyle() == "-"]
    assert np.asarray(line.get_xydata()).tolist() == [[0, 1], [3, 0.5]]
    assert axes.get_legend_handles_labels()[1] == ["all runs together (3)"]
    mine = {"name": "mine", "chance": 0.5, "choices": [], "targets": [], "calls": []}
    (figure,) = overlay([at(0, "correct"), at(1, "correct"), at(1, "wrong", own=(mine,))]).values()
    assert len(figure.axes[0].get_legend_handles_labels()[1]) == 2


def test_runs_of_one_level_have_no_such_chart() -> None:
    prob: dict[str, Any] = {"TOXIC_PROB": 0.1}
    of_prob = [f"{what}_vs_toxic_prob" for what in ("success", "mttr", "time")]
    assert list(overlay([at(1, "correct", **prob)] * 2)) == of_prob
    assert list(overlay([at(1, "correct", **prob), at(2, "correct", **prob)])) == [*of_prob, "pass_rate_vs_level"]
