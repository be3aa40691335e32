"""The pictures say what happened, say so when nothing did, and never write one word over another."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from chaoslab.analysis.measures._grounds import summarize_success
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import MeasureResult
from chaoslab.analysis.verdict.standing import get_outcome_standing
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import (
    CallDisturbed,
    CallFinished,
    CallStarted,
    Effect,
    Event,
    FaultWitnessed,
    LabDisturbed,
    PromptStarted,
)
from chaoslab.record.history import History
from chaoslab.reports import charts
from chaoslab.reports.charts import _palette as palette
from chaoslab.reports.charts import _style, draw_charts, draw_multi_run_charts, main
from chaoslab.reports.charts._palette import FAULTS, LONE, OUTCOMES
from chaoslab.reports.charts._style import read_blank_reason
from chaoslab.reports.charts.errors import errors
from chaoslab.reports.charts.fault_matrix import fault_matrix
from chaoslab.reports.charts.mttr import mttr
from chaoslab.reports.charts.network_latency import network_latency
from chaoslab.reports.charts.success_rate import success_rate
from chaoslab.reports.charts.tool_latency import tool_latency
from chaoslab.reports.frames import Frames, JoinedRunFrames
from chaoslab.reports.places import explain_no_runs
from tests.cli_parts import Typed, execute
from tests.event_parts import call_at, fault_at, prompt_finished
from tests.event_parts import story as told
from tests.reports.fake_run import TARGETS, FakeRun, ScriptedClock, stated

NAMES = [
    "errors", "fault_matrix", "mttr", "network_latency",
    "recovery_curve", "success_rate", "throughput", "tool_latency",
]  # fmt: skip
ROWED = {"success_rate", "tool_latency", "errors", "mttr", "fault_matrix"}
"""The charts with a name on each row, whose upright axis has no unit."""
FAMILY = {f"service_number_{n:02}_with_a{'_really_long_name' * (1 + n % 2 * 7)}": "ask" for n in range(12)}
"""Names that differ in their midst, long ones and very long ones."""


def history(folder: Path, *, chance: float = 0.3, prompts: int = 60, targets: dict[str, str] | None = None) -> History:
    return History.read(FakeRun(folder, prompts=prompts, chance=chance, targets=targets or dict(TARGETS)).write())


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(tmp_path_factory.mktemp("usual"), prompts=300)


@pytest.fixture(scope="module")
def rich(usual: History) -> dict[str, Figure]:
    """The charts of a usual run, to look at."""
    return draw_charts(Frames(usual))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    return draw_charts(Frames(history(tmp_path_factory.mktemp("calm"), prompts=25, chance=0.0)))


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    return draw_charts(Frames(history(tmp_path_factory.mktemp("family"), prompts=60, chance=0.5, targets=FAMILY)))


@pytest.fixture(scope="module")
def one_prompt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    return draw_charts(Frames(history(tmp_path_factory.mktemp("one"), prompts=1)))


def call(target: str, request: int, *, ok: bool = False, duration_s: float = 0.0, **more: Any) -> CallFinished:
    return CallFinished(**call_at(target, "call", request, 1, ""), ok=ok, duration_s=duration_s, **more)


def met(fault: str, target: str, request: int) -> FaultWitnessed:
    return FaultWitnessed(**fault_at(fault, "mine", target, request, 1, ""))


def color_of(drawn: Any) -> str:
    """The colour of what a legend shows."""
    if isinstance(drawn, tuple):
        drawn = drawn[0]
    if isinstance(drawn, Line2D):
        return to_hex(drawn.get_color())
    face = np.atleast_2d(drawn.get_facecolor())
    return to_hex(face[0] if face.size and face[0][3] else np.atleast_2d(drawn.get_edgecolor())[0])


def words(figure: Figure, *, placed: bool = True) -> list[Text]:
    """Every text that is seen; tick labels outside of their axis are not drawn. `placed`: laid out as in the file."""
    if placed:
        figure.draw_without_rendering()
    ticks, drawn = set(), set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_ticklabels(which="both")  # gives the ticks their words
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                ticks |= {tick.label1, tick.label2}
                if axes.axison and tick.label1.get_visible() and low <= tick.get_loc() <= high:
                    drawn.add(tick.label1)
        if not axes.axison:
            ticks |= {axes.xaxis.label, axes.yaxis.label}
    found = [t for t in figure.findobj(Text) if isinstance(t, Text)]
    return [t for t in found if t.get_text().strip() and t.get_visible() and (t not in ticks or t in drawn)]


def said(figure: Figure) -> str:
    """All words of a picture, a text a line, however it was wrapped."""
    return "\n".join(" ".join(text.get_text().split()) for text in words(figure, placed=False))


def check_legible(figure: Figure) -> None:
    texts = words(figure)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for (one, here), (other, there) in combinations(boxes, 2):
        overlap = min(here.x1, there.x1) - max(here.x0, there.x0), min(here.y1, there.y1) - max(here.y0, there.y0)
        assert min(overlap) < 1, f"{one!r} lies over {other!r}"
    width, height = figure.canvas.get_width_height()
    for text, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{text!r} is cut off"


@pytest.mark.parametrize("which", ["calm", "one_prompt", "rich", "family"])
def test_every_picture_is_legible(which: str, request: pytest.FixtureRequest) -> None:
    figures: dict[str, Figure] = request.getfixturevalue(which)
    assert list(figures) == NAMES
    for figure in figures.values():
        assert figure.get_suptitle()
        if not read_blank_reason(figure):  # such a one is not written
            check_legible(figure)


def test_names_of_one_family_are_told_apart(family: dict[str, Figure]) -> None:
    (axes,) = family["fault_matrix"].axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert len(set(names)) == len(names) == 9
    assert all(f"…{n:02}_" in name for n, name in enumerate(names)), names


def test_what_lies_beside_the_dotted_line_is_told_at_the_axis() -> None:
    """There the places of points are no durations: they only keep the groups apart."""
    found = Frames(told(call("search", 1, ok=True), call("search", 2, ok=True, duration_s=2.0)))
    figures = draw_charts(found)
    ((across,), (up,)) = (figures[name].axes for name in ("tool_latency", "network_latency"))
    assert across.get_xlabel() == "duration of the attempt (s; left of the dotted line: 0)"
    assert up.get_ylabel() == "duration of the attempt (s;\nbelow the dotted line: 0)"


def test_axes_have_names_and_units(rich: dict[str, Figure]) -> None:
    for name, figure in rich.items():
        (axes,) = figure.axes
        assert "(" in axes.get_xlabel(), name
        rows = name in ROWED
        assert rows or "(" in axes.get_ylabel(), name


def test_witnessed_faults_are_marked_and_counted(rich: dict[str, Figure], tmp_path: Path) -> None:
    latency, recovery, errors = (said(rich[name]) for name in ("network_latency", "mttr", "errors"))
    for fault in ("latency", "timeout", "tool_error", "lost_reply", "wrong_value"):
        assert f"{fault} (" in latency
        assert (f"{fault} (" in recovery) == (fault != "wrong_value"), "nobody recovers from that one"
    assert "never recovered (at least so long)" in recovery
    assert "Kaplan–Meier median" in recovery
    assert "too few" in said(mttr(Frames(history(tmp_path, prompts=20))))
    assert "failed, nobody injected (" in latency
    assert "nobody injected (" in errors


def test_a_censored_incident_is_an_open_arrow(rich: dict[str, Figure]) -> None:
    (axes,) = rich["mttr"].axes
    (arrows,) = [c for c in axes.collections if str(c.get_label()).startswith("never recovered")]
    assert len(arrows.get_facecolor()) == 0


def test_no_point_is_cut_in_half_at_the_end_of_an_axis(rich: dict[str, Figure]) -> None:
    for name in ("network_latency", "tool_latency", "mttr"):
        (axes,) = rich[name].axes
        points = [c for c in axes.collections if isinstance(c, PathCollection) and len(np.asarray(c.get_offsets()))]
        assert points
        assert not any(group.get_clip_on() for group in points), name


def test_one_colour_means_one_thing_over_all_pictures(usual: History, rich: dict[str, Figure]) -> None:
    meanings: dict[str, set[str]] = {}
    for figure in [
        *rich.values(),
        *draw_multi_run_charts(JoinedRunFrames(map(Frames, [usual, stated(usual)]))).values(),
    ]:
        (axes,) = figure.axes
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            if "recover" not in label and not label.startswith("late"):  # those a shape alone tells apart
                meaning = "median" if "median" in label else label.split(" (")[0].split(",")[0]
                meanings.setdefault(color_of(handle), set()).add(meaning)
    assert meanings.pop(LONE.color.lower()) == {"failed", "nobody injected"}, "the same in two pictures"
    assert meanings[FAULTS["tool_error"].color.lower()] == {"tool_error"}
    assert {color: said for color, said in meanings.items() if len(said) > 1} == {}


def test_an_error_is_named_by_target_and_status_and_never_in_a_services_words() -> None:
    run = told(
        call("search", 1, status=503, error="Please try again in 20 ms"),
        call("search", 2, status=503, error="down for repairs, back at 5"),
        call("weather", 3, error="timed_out"),
        call("messaging", 4, status=200, error="channel_not_found"),
        call("price", 5, error="KeyError: 'pen'", via="function"),
        call("price", 6, error="something with words"),
        call("price", 7),
        call("model", 9, error="closed"),
        CallDisturbed(**call_at("model", "call", 9, 1, ""), why="it ended when the clean proxies went away under it"),
        call("model", 10, status=429, error="You exceeded your current quota."),
        met("budget", "model", 10),
    )
    (axes,) = (figure := errors(Frames(run))).axes
    assert {label.get_text() for label in axes.get_yticklabels()} == {
        "search 503", "weather timed out", "messaging 200 with an error in it", "price KeyError", "price failed",
        "price failed, no reason given", "model closed", "model 429",
    }  # fmt: skip
    assert axes.get_yticklabels()[0].get_text() == "search 503"
    for words in ("budget (1)", "the lab was disturbed (1)", "nobody injected (7)"):
        assert words in said(figure)
    assert "1 failed attempts with a witnessed fault, 7 that nobody injected" in said(figure)


def test_a_disturbance_of_the_lab_lies_behind_the_attempts() -> None:
    disturbed = LabDisturbed(what="search", since="2026-06-01T09:00:01Z", lasted_s=2.0, lanes=[], epoch=1)
    figure = network_latency(Frames(told(PromptStarted(prompt_index=1, prompt="?"), call("search", 1), disturbed)))
    assert "the lab was disturbed (1)" in said(figure)
    assert "hit. search since 09:00:01." in said(figure)


def test_faults_without_a_colour_of_their_own_can_be_told_apart_and_look_alike_in_all_charts() -> None:
    names = ["auth_error", "not_found", "dns_failure", "flapping", "rate_limit", "server_error"]
    events: list[Event] = [PromptStarted(prompt_index=1, prompt="?")]
    for n, name in enumerate(names, 1):
        events += [call("search", n, status=500), met(name, "search", n)]
    events.append(call("search", 9, ok=True))
    run = Frames(told(*events))
    bars = {
        text.get_text(): (to_hex(patch.get_facecolor()), patch.get_hatch())
        for drawn in (errors(run),)
        for patch, text in zip(drawn.legends[0].get_patches(), drawn.legends[0].get_texts(), strict=True)
    }
    assert len(set(bars.values())) == len(bars) > len(names)
    some = palette.choose_fault_looks_of_run(run.measures, ["dns_failure", "rate_limit"])
    assert some == {
        name: look for name, look in palette.choose_fault_looks_of_run(run.measures, names).items() if name in some
    }
    assert some != palette.choose_fault_looks(some)


def test_an_attempt_that_met_two_faults_failed_by_the_one_that_fails() -> None:
    both = (met(name, "search", 1) for name in ("wrong_value", "timeout"))
    assert "timeout (1)" in (words := said(errors(Frames(told(call("search", 1, error="timed_out"), *both)))))
    assert "wrong_value" not in words


@pytest.mark.parametrize("longest_s", [0.02, 30.0], ids=["linear", "logarithmic"])
def test_what_took_no_time_is_drawn_at_the_edge_and_counted(longest_s: float) -> None:
    """A refused call never reached its target."""
    calls = [call("search", n, ok=True, duration_s=longest_s if n == 3 else 0.01) for n in range(1, 4)]
    refused = [call("search", n, error="refused", via="none") for n in (4, 5)]
    witnessed = [met("refused", "search", n) for n in (4, 5)]
    run = told(*calls, *refused, *witnessed, call("search", 6, error="timed_out", duration_s=0.0))
    for figure, across in ((network_latency(Frames(run)), 1), (tool_latency(Frames(run)), 0)):
        check_legible(figure)
        (axes,) = figure.axes
        (marks,) = [c for c in axes.collections if str(c.get_label()) == "refused (2)"]
        low, high = sorted((axes.get_xlim, axes.get_ylim)[across]())
        edge = [float(place[across]) for place in np.asarray(marks.get_offsets())]
        assert all(low < place < high for place in edge)
        smallest = [float(p[across]) for c in axes.collections for p in np.asarray(c.get_offsets()) if c is not marks]
        assert max(edge) < sorted(smallest)[1], "only the one that took no time is at the edge too"
        assert "0" in said(figure).splitlines()
        assert "2 attempts never reached the target" in said(figure)
        assert "agent" not in said(figure), "a service's seam refuses what has left the agent"


def test_a_fault_that_answers_in_place_of_its_target_has_its_row_beside_the_others() -> None:
    """The caller waited for the end of these calls, though the target was not asked."""
    calm = [call("crm", n, ok=True, duration_s=0.01, via="service") for n in (1, 2)]
    hung = call("crm", 3, error="timed_out", duration_s=5.0, via="none")
    run = Frames(told(*calm, hung, met("timeout", "crm", 3), call("crm", 4, error="budget", via="none")))
    assert [*zip(run.latency.met, run.latency.attempts, strict=True)] == [(False, 2), (True, 1)]


def test_a_box_has_the_quartiles_and_its_whiskers_end_at_points() -> None:
    durations = [0.010, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 0.017, 0.1]
    run = told(*(call("search", n, ok=True, duration_s=took) for n, took in enumerate(durations, 1)))
    boxes, medians = tool_latency(Frames(run)).axes[0].lines
    xs = [x for x in np.asarray(boxes.get_xdata()).tolist() if x == x]
    first, median, third = np.percentile(durations, [25, 50, 75])
    assert sorted(set(xs)) == pytest.approx([0.010, first, third, 0.017]), "the slowest is farther than 1.5 boxes"
    assert np.asarray(medians.get_xdata())[:2].tolist() == pytest.approx([median] * 2)
    few = tool_latency(Frames(told(*(call("search", n, ok=True, duration_s=0.1) for n in range(1, 8)))))
    assert not any(np.isfinite(np.asarray(line.get_xdata(), dtype=float)).any() for line in few.axes[0].lines)


def test_the_labs_start_is_no_part_of_a_time_axis(tmp_path: Path) -> None:
    late = History.read(FakeRun(tmp_path / "late", prompts=9, clock=ScriptedClock(now_s=500.0)).write())
    soon = History.read(FakeRun(tmp_path / "soon", prompts=9).write())
    for name in ("throughput", "network_latency"):
        figure, other_figure = (draw_charts(Frames(run), only=name)[name] for run in (late, soon))
        (axes,), (other,) = figure.axes, other_figure.axes
        assert "500" not in said(figure)
        assert axes.get_xlabel() == "time since the first trial began (s)"
        assert axes.get_xlim() == pytest.approx(other.get_xlim())


def ended(*outcomes: str) -> Frames:
    """A run whose prompts ended so."""
    judged = [Verdict(Outcome(outcome), "") for outcome in outcomes]
    run = History([])
    found = summarize_success(judged, [*map(get_outcome_standing, outcomes)], [None] * len(judged))
    return Frames(run, replace(RunReport.from_history(run), success=MeasureResult(found)))


def test_each_outcome_that_occurred_has_a_bar_and_no_other_has_one() -> None:
    figure = success_rate(ended("harm", "correct", "hung", "harm"))
    (axes,) = figure.axes
    assert [(color_of(bar), bar.get_width()) for bar in axes.patches if isinstance(bar, Rectangle)] == [
        (OUTCOMES[name].color.lower(), share) for name, share in (("correct", 0.25), ("harm", 0.5), ("hung", 0.25))
    ]
    assert said(figure).count("none") == 8
    none = success_rate(ended("unknown"))
    assert "0 of 0 judged trials ended well; 1 open" in said(none)
    assert len(none.axes[0].patches) == 1


def test_a_share_next_to_all_is_not_called_all() -> None:
    run = ended("wrong", *["correct"] * 2999)
    assert "(>99%)" in said(figure := success_rate(run))
    assert "(<1%)" in said(figure)


def test_a_recovery_that_did_harm_is_drawn_as_harm() -> None:
    place = ("refund", "refund", 1)
    effect = Effect(
        target="refund", tool="refund", request_id="", effect="refund", content={"order": 17}, reply={}, fingerprint=""
    )
    run = told(
        PromptStarted(prompt_index=1, prompt="?"),
        CallStarted(**call_at(*place, 1, "")),
        effect,
        CallFinished(**call_at(*place, 1, ""), ok=False, duration_s=2.0, error="timed_out"),
        met("lost_reply", "refund", 1),
        CallStarted(**call_at(*place, 2, "")),
        effect,
        CallFinished(**call_at(*place, 2, ""), ok=True, duration_s=0.1),
        prompt_finished(duration_s=3.0),
    )
    (axes,) = (figure := mttr(Frames(run))).axes
    assert "recovered with harm (1)" in said(figure)
    assert "0 of 1 incident recovered, 1 with harm" in said(figure)
    drawn = [c for c in axes.collections if len(np.asarray(c.get_offsets())) == 1]
    assert [color_of(c) for c in drawn] == [OUTCOMES["harm"].color.lower()]


def test_of_a_huge_run_not_every_point_is_drawn_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_style, "POINTS", 200)
    run = Frames(told(*(call("search", n, ok=True, duration_s=0.01 + n / 1e6) for n in range(9 * 200))))
    for figure in (network_latency(run), tool_latency(run)):
        (points,) = figure.axes[0].collections
        assert len(np.asarray(points.get_offsets())) == 200
        assert "no fault (1,800, every 9th drawn)" in said(figure)
        check_legible(figure)


def test_a_run_without_faults_says_so(calm: dict[str, Figure]) -> None:
    assert "no faults were witnessed in this run" in said(calm["network_latency"])
    assert "no data: no faults were witnessed in this run" in said(calm["mttr"])
    assert "no attempt failed in this run" in said(calm["errors"])


def test_a_run_without_anything_says_so_on_every_picture() -> None:
    for figure in draw_charts(Frames(History([]))).values():
        assert "no " in said(figure) or "nothing" in said(figure)


def test_a_further_chart_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
from chaoslab.reports.charts._style import make_figure

def further(run):
    return make_figure("Further")[0]
"""
    (tmp_path / "further.py").write_text(text)
    monkeypatch.setattr(charts, "__path__", [*charts.__path__, str(tmp_path)])
    figures = draw_charts(Frames(History([])))
    del sys.modules[f"{charts.__name__}.further"]
    del vars(charts)["further"]
    assert sorted(figures) == sorted([*NAMES, "further"])


def test_runs_are_laid_over_each_other_against_toxic_prob(tmp_path: Path) -> None:
    runs = [stated(history(tmp_path / str(chance), chance=chance, prompts=25)) for chance in (0.0, 0.1, 0.4)]
    figures = draw_multi_run_charts(JoinedRunFrames(map(Frames, runs)))
    assert list(figures) == ["success_vs_toxic_prob", "mttr_vs_toxic_prob", "time_vs_toxic_prob"]
    for figure in figures.values():
        check_legible(figure)
        assert "TOXIC_PROB" in figure.axes[0].get_xlabel()
    assert "no data" in said(figures["mttr_vs_toxic_prob"])
    line = next(line for line in figures["success_vs_toxic_prob"].axes[0].lines if line.get_marker() == "o")
    assert np.asarray(line.get_xdata()).tolist() == [0.0, 0.1, 0.4]


def test_runs_without_faults_have_no_recovery_to_draw(tmp_path: Path) -> None:
    runs = [history(tmp_path / name, chance=0.0, prompts=2) for name in "ab"]
    assert "no data" in said(draw_multi_run_charts(JoinedRunFrames(map(Frames, runs)))["mttr_vs_toxic_prob"])


def test_the_door_draws_the_latest_run_and_names_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"errors": errors, "mttr": mttr, "success_rate": success_rate}
    monkeypatch.setattr(charts, "_iterate_chart_functions", lambda: [*names.items()])
    logs, out = tmp_path / "logs", tmp_path / "out"
    history(logs / "20260601-090000", prompts=3)
    (logs / "latest").symlink_to("20260601-090000")
    assert main(out=out, logs=logs) == 0
    words = capsys.readouterr()
    drawn, empty = words.out.splitlines(), [line.split()[1].removesuffix(":") for line in words.err.splitlines()]
    assert drawn == [str(out / f"{name}.png") for name in names if f"{name}.png" not in empty]
    assert "no errors.png: no attempt failed in this run\n" in words.err
    assert main(["20260601-090000", str(logs / "latest")], out=out, logs=logs) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(out / f"{n}_vs_toxic_prob.png") for n in ("success", "mttr", "time")
    ]


def small(*names: str) -> Callable[[], list[tuple[str, Callable[[Frames], Figure]]]]:
    """Charts of these names that are quickly drawn, for tests of where they are put."""
    return lambda: [(name, lambda _: Figure(figsize=(1, 1))) for name in names]


@pytest.mark.usefixtures("here")
def test_the_pictures_of_a_run_lie_with_it_and_the_latest_ones_in_charts_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(charts, "_iterate_chart_functions", small("success_rate", "throughput"))
    logs = Path("logs")
    for name in ("20260601-090000", "20260601-100000"):
        history(logs / name, prompts=2)
    (logs / "latest").symlink_to("20260601-100000")
    assert main([]) == 0
    newest = {path.name: path.read_bytes() for path in (logs / "20260601-100000" / "charts").iterdir()}
    assert sorted(newest) == sorted(f"{name}.png" for name in ("success_rate", "throughput"))
    assert {path.name: path.read_bytes() for path in Path("charts").iterdir()} == newest
    assert capsys.readouterr().out.splitlines()[0] == "logs/20260601-100000/charts/success_rate.png"
    Path("charts/success_rate.png").unlink()
    assert main(["20260601-090000"]) == 0
    assert len(list((logs / "20260601-090000" / "charts").iterdir())) == 2
    assert not Path("charts/success_rate.png").exists(), "an older run is not the latest"
    assert main(["20260601-090000"], out=Path("mine")) == 0
    assert len(list(Path("mine").iterdir())) == 2
    assert History.read(logs / "latest").unreadable_counts == {}


@pytest.mark.usefixtures("here")
def test_a_chart_with_nothing_to_show_is_not_drawn_and_an_older_one_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        charts, "_iterate_chart_functions", lambda: [("errors", errors), ("success_rate", success_rate)]
    )
    history(Path("logs/run"), prompts=1)
    Path("logs/latest").symlink_to("run")
    Path("charts").mkdir()
    Path("charts/errors.png").write_bytes(b"of the run before")
    assert main([]) == 0
    assert [path.name for path in Path("charts").iterdir()] == ["success_rate.png"]


@pytest.mark.usefixtures("here")
def test_a_run_whose_folder_takes_no_pictures_is_one_line(monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    monkeypatch.setattr(charts, "_iterate_chart_functions", small("success_rate", "throughput"))
    history(Path("logs/run"), prompts=1)
    Path("logs/latest").symlink_to("run")
    Path("logs/run/charts").write_text("mine")
    words = typed("charts")
    assert (words.code, words.err) == (2, "cannot draw into logs/run/charts: File exists; --out should name a folder\n")
    assert words.out.splitlines() == [f"charts/{name}.png" for name in ("success_rate", "throughput")], (
        "charts/ has them all the same"
    )


def test_a_backend_that_matplotlib_does_not_know_is_not_needed(tmp_path: Path) -> None:
    history(tmp_path / "logs" / "run", prompts=1, chance=0.0)
    script = Path(__file__).parents[2] / "charts.py"
    done = execute(
        [sys.executable, "-X", "importtime", script, "run"], cwd=tmp_path, env={**os.environ, "MPLBACKEND": "nonsense"}
    )
    imports = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    others = [line for line in done.stderr.splitlines() if not line.startswith(("import time:", "no "))]
    assert (done.returncode, others) == (0, []), "nothing else is said but what is not drawn"
    assert any("matplotlib.figure" in line for line in imports)
    assert not any("matplotlib.pyplot" in line for line in imports), "it takes longer to load than a chart to draw"
    assert (done.stdout + done.stderr).count(".png") == len(NAMES), "drawn, or said not to be"


def test_a_wrong_name_gets_one_line_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(tmp_path / "20260601-090000", prompts=1)
    assert main(["logs/20260601-09000"], logs=tmp_path) == 2
    error = capsys.readouterr().err
    assert error == "no run with logs is called 'logs/20260601-09000': did you mean '20260601-090000'?\n"


def test_runs_that_do_not_state_their_toxic_prob_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(tmp_path / "one", prompts=1)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "info.log").write_text("not of the lab\n")
    assert main(["one", "foreign"], logs=tmp_path) == 2
    assert capsys.readouterr().err == "the logs of 'foreign' tell of no run: this lab did not write them\n"


def test_without_logs_the_script_says_what_to_do(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "charts.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", explain_no_runs(Path("logs")) + "\n")


def test_charts_that_are_empty_for_one_reason_share_a_line() -> None:
    empty = {"mttr.png": "no data: no faults", "errors.png": "no attempt failed", "cost.png": "no faults"}
    assert charts.describe_blank_charts(empty) == [
        "no mttr.png, cost.png: no faults",
        "no errors.png: no attempt failed",
    ]


def test_the_matrix_has_a_row_for_each_fault_that_was_scheduled_and_none_for_one_that_a_plan_only_names(
    tmp_path: Path,
) -> None:
    level = {"name": "level", "targets": ["search"], "choices": [{"fault": "bandwidth"}, {"fault": "timeout"}]}
    plan = {"seed": 1, "injections": [level]}
    met, calm = (stated(history(tmp_path / str(chance), chance=chance), plan=plan, prompts=60) for chance in (0.5, 0.0))
    rows = fault_matrix(Frames(met)).axes[0].get_yticklabels()
    names = {label.get_text() for label in rows}
    assert {"timeout", "latency"} < names
    assert "bandwidth" not in names
    assert "no fault was scheduled in this run" in said(fault_matrix(Frames(calm)))
