"""A measure that raises is unknown, with the reason in a line, and takes no other with it."""

import pickle
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from chaoslab.analysis.measures import faults, run_report
from chaoslab.analysis.measures._calls import CallCount, EndTimes, ExceededLimits, UsageTotals
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict import judge as judging
from chaoslab.analysis.verdict.guard import Unknown
from chaoslab.analysis.verdict.judge import judge_all_trials, judge_trial
from chaoslab.analysis.verdict.seen import TrialEvents
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import PromptStarted
from chaoslab.record.history import History
from chaoslab.reports import charts, contents, frames, show
from chaoslab.reports.charts import errors as errors_chart
from chaoslab.reports.charts import mttr as mttr_chart
from chaoslab.reports.charts._style import read_blank_reason
from chaoslab.reports.contents import _parts, _tables
from chaoslab.reports.frames import Frames, JoinedRunFrames
from chaoslab.reports.gate import Gate, apply_gate
from tests.reports.fake_run import FakeRun, summary


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History.read(FakeRun(tmp_path_factory.mktemp("run"), prompts=30).write())


@pytest.fixture(scope="module")
def text(history: History) -> str:
    """The summary, without a measure that fails."""
    return summary(history)


@dataclass(frozen=True)
class Drawing:
    """Charts, their pictures, and the figures that matplotlib drew for them, each as often as it did."""

    figures: Mapping[str, Figure]
    pictures: Mapping[str, bytes]
    drawn: Sequence[Figure]


@pytest.fixture(scope="module")
def drawing(history: History) -> Drawing:
    """Without a measure that fails."""
    drawn, real = list[Figure](), Figure.draw

    def counted(figure: Figure, renderer: Any) -> None:
        drawn.append(figure)
        real(figure, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "draw", counted)
        figures = charts.draw_charts(Frames(history))
        return Drawing(figures, charts.render_pngs(figures), drawn)


@pytest.fixture(scope="module")
def pictures(drawing: Drawing) -> Mapping[str, bytes]:
    return drawing.pictures


def raises(*_: object, **__: object) -> object:
    raise ValueError("no such\n\nthing " + "x" * 999)


PARTS = [
    (run_report, "summarize_success", "verdict: unknown"),
    (contents, "describe_harm", "harm: unknown"),
    (faults.FaultStages, "count_by_injection", "faults: unknown"),
    (faults.UnwitnessedFaults, "add_history", "faults that were not witnessed: unknown"),
    (faults.UninjectedFailures, "add_history", "failures that nobody injected: unknown"),
    (faults.Disturbances, "add_history", "disturbances of the lab: unknown"),
    (run_report, "compute_impacts", "what the faults led to: unknown"),
    (IncidentTimes, "compute_mttr", "time to recovery: unknown"),
    (_parts, "summarize_latency", "latency: unknown"),
    (CallCount, "add_history", "calls: unknown"),
    (UsageTotals, "add_history", "usage: unknown"),
    (ExceededLimits, "add_history", "budget: unknown"),
    (_tables, "Counter", "warnings: unknown"),
]


RESTING = ("what hurt most", "reliability", "trials", "fault coverage")
"""The lines that rest on other measures: on the faults and what they led to, on the recovery, and on the verdicts."""


def paragraphs(text: str) -> set[str]:
    """The text of each measure; the wrapped lines of one are together."""
    return set(re.split(r"\n(?! )", text))


@pytest.mark.parametrize(("module", "name", "said"), PARTS, ids=[said.partition(":")[0] for _, _, said in PARTS])
def test_in_the_summary_it_reads_unknown_and_every_other_line_stands(
    module: object, name: str, said: str, history: History, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, raises)
    found = summary(history)
    (line, *others) = sorted(
        (part for part in paragraphs(found) if " unknown (" in part), key=lambda part: (not part.startswith(said), part)
    )
    assert len(others) <= 2
    assert all(part.startswith(RESTING) for part in others)
    assert " ".join(line.split()).startswith(f"{said} (ValueError: no such thing xxx")
    assert all(len(each) <= 80 for each in found.splitlines())
    assert line.count("\n") <= 3
    stands = {part for part in paragraphs(found) - {line, *others} if not text.startswith(part.rstrip("."))}
    assert stands <= paragraphs(text), "the headline lacks the sentence of such failures"
    assert len(found.splitlines()) > 0.4 * len(text.splitlines())


BROKEN = {
    "errors": (errors_chart, "errors"), "mttr": (mttr_chart, "mttr"), "throughput": (EndTimes, "compute_throughput"),
    "recovery_curve": (frames, "kaplan_meier"),
}  # fmt: skip


def test_each_picture_is_drawn_once(drawing: Drawing) -> None:
    """Left to itself, matplotlib draws a picture with a layout twice."""
    assert drawing.drawn == [figure for figure in drawing.figures.values() if not read_blank_reason(figure)]


def test_pictures_of_it_say_unknown_and_the_others_are_drawn(
    history: History, pictures: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pictures that cannot be drawn, and two whose measures cannot be taken. The others are the same to the byte,
    drawn again."""
    for module, name in BROKEN.values():
        monkeypatch.setattr(module, name, raises)
    figures = charts.draw_charts(Frames(history))
    for picture in BROKEN:
        words = " ".join(text.get_text() for text in figures[picture].findobj(Text)).replace("\n", " ")
        assert "unknown (ValueError: no such thing xxx" in words
    drawn = charts.render_pngs(figures)
    assert set(drawn) == set(pictures)
    assert {file for file in drawn if drawn[file] != pictures[file]} == {f"{picture}.png" for picture in BROKEN}


def test_a_picture_that_fails_only_when_it_is_written_says_unknown_too_and_the_others_are_the_same(
    history: History, pictures: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Frames(history)
    figures = {name: charts.draw_charts(run, only=name)[name] for name in (*BROKEN, "success_rate")}
    monkeypatch.setattr(figures["success_rate"], "draw", raises)
    drawn = charts.render_pngs(figures)
    assert set(drawn) == {f"{name}.png" for name in figures}
    assert {file for file in drawn if drawn[file] != pictures[file]} == {"success_rate.png"}
    assert drawn["success_rate.png"].startswith(b"\x89PNG")


def test_a_trial_that_cannot_be_judged_is_unknown_and_passes_no_gate(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judge_all_trials(history)
    real = judging._compare_end_state

    def of_state(seen: TrialEvents, started: PromptStarted) -> object:
        return raises() if seen.find_events(PromptStarted)[0][0].trial == "p3.r1" else real(seen, started)

    monkeypatch.setattr(judging, "_compare_end_state", of_state)
    judged = judge_all_trials(history)
    assert {trial for trial in judged if judged[trial] != whole[trial]} == {"p3.r1"}
    assert judged["p3.r1"].outcome is Outcome.UNKNOWN
    assert judged["p3.r1"].why.startswith("it could not be judged (ValueError: no such thing xxx")
    asked = Gate(min_correct=0.0)
    whole = {trial: verdict for trial, verdict in whole.items() if verdict.outcome is not Outcome.UNKNOWN}
    assert apply_gate(asked, whole).passed
    ruling = apply_gate(asked, judged)
    assert not ruling.passed
    assert "1 could not be judged: p3.r1 (it could not be judged (ValueError" in ruling.line
    assert "verdict  unknown: it could not be judged (ValueError" in show.render_stories(history, trials=["p3.r1"])
    with pytest.raises(LookupError, match=r"no trial is called 'p99\.r1'"):
        judge_trial(history, "p99.r1")


def test_a_report_is_data_that_another_process_can_have(history: History) -> None:
    report = RunReport.from_history(history)
    assert pickle.loads(pickle.dumps(report)) == report
    assert summary(pickle.loads(pickle.dumps(report))) == summary(report)


def test_what_a_measure_failed_at_is_said_to_whoever_asks_it(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IncidentTimes, "add_history", raises)
    report = RunReport.from_history(history)
    assert report.recovery.unknown.startswith("ValueError: no such thing xxx")
    with pytest.raises(Unknown, match="ValueError: no such thing xxx"):
        print(report.recovery.value)
    assert RunReport.from_history(History([])).usage.value is None


def test_an_interrupt_is_no_failure_of_a_measure(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> object:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was not heard")

    monkeypatch.setattr(IncidentTimes, "add_history", interrupted)
    with pytest.raises(KeyboardInterrupt):
        summary(history)


def test_a_measure_that_raises_takes_no_other_chart_of_several_runs_with_it(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "find_incidents", raises)
    figures = charts.draw_multi_run_charts(JoinedRunFrames([Frames(history)] * 2, only=charts.OVERLAID))
    unknown = {
        name for name, each in figures.items() if "unknown (" in " ".join(t.get_text() for t in each.axes[0].texts)
    }
    assert unknown == {"mttr_vs_toxic_prob"} < figures.keys()
