"""Of very many attempts a part is drawn, and all are counted."""

import math
from collections import Counter
from pathlib import Path

import pytest

from chaoslab.analysis.measures import latency, run_report
from chaoslab.analysis.measures.latency import Attempts, list_attempts
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import CallFinished
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.trial_stream import TrialStream
from chaoslab.reports.svg import timeline
from tests.event_parts import call_at
from tests.reports.fake_run import FakeRun

KEPT = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FakeRun(tmp_path_factory.mktemp("run"), prompts=60).write()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few are kept that the run has very many."""
    monkeypatch.setattr(latency, "KEPT", KEPT)
    monkeypatch.setattr(latency, "LUMP", 10)


def found(run: Path, least: int) -> Attempts:
    every = Attempts()
    for batch in TrialStream(run, least=least):
        every.take(batch)
    return every.result()


@pytest.mark.usefixtures("few")
def test_the_same_part_is_drawn_however_the_run_is_read(run: Path) -> None:
    whole = Attempts()
    whole.take(History.read(run))
    drawn = whole.result().drawn
    assert whole.one_in > 2
    assert KEPT / 4 < len(drawn) <= KEPT
    every = list_attempts(History.read(run))
    assert [attempt for attempt in every if attempt in drawn] == drawn
    assert all(found(run, least) == whole for least in (1, 30, 500))


@pytest.mark.usefixtures("few")
def test_each_target_is_drawn_by_its_share(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "KEPT", 250)
    every, drawn = list_attempts(History.read(run)), found(run, 30).drawn
    of_all, of_drawn = (Counter(attempt.target for attempt in some) for some in (every, drawn))
    for target, count in of_all.items():
        assert of_drawn[target] / len(drawn) == pytest.approx(count / len(every), abs=0.1)


@pytest.mark.usefixtures("few")
def test_all_are_counted(run: Path) -> None:
    every, all_of_them = found(run, 30), list_attempts(History.read(run))
    assert every.number() == len(all_of_them)
    assert every.number(lambda kind: kind.left and kind.known) == len(every.timed) == sum(a.timed for a in all_of_them)
    assert every.number(lambda kind: bool(kind.faults)) == sum(bool(a.faults) for a in all_of_them)
    assert len(every.calm) == sum(a.timed and not a.faults for a in all_of_them)
    assert every.ended_t == max(a.t for a in all_of_them)
    for target, durations in every.by_target.items():
        known = [a for a in all_of_them if a.target == target and (a.timed or (a.faults and a.duration_s >= 0))]
        assert [len(each) for each in durations.both] == [
            sum(not a.faults for a in known), sum(bool(a.faults) for a in known),
        ]  # fmt: skip


def test_pictures_say_so(run: Path, few: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    part = f"drawn from a random one in {found(run, 30).one_in} attempts"
    monkeypatch.setattr(run_report, "TrialStream", lambda folder: TrialStream(folder, least=30))
    report = RunReport.read(run)
    picture = timeline.draw(report)
    assert picture is not None
    assert part in picture.caption


def test_in_a_run_of_some_attempts_all_are_drawn_and_nothing_is_said(run: Path) -> None:
    report = RunReport.read(run)
    every = report.attempts.value
    assert every.drawn == list_attempts(History.read(run))
    assert (every.one_in, every.sample) == (1, "")


def test_a_target_of_which_no_duration_is_known_has_none() -> None:
    known, untold = (
        CallFinished(**call_at(target, "buy", 1, 1, ""), ok=True, duration_s=duration_s)
        for target, duration_s in (("shop", 0.5), ("bank", math.nan))
    )
    every = Attempts()
    every.take(History([Record("", 1.0, "r", "p1.r1", "info", n, end) for n, end in enumerate((known, untold), 1)]))
    assert list(every.result().by_target) == ["shop"]
    assert every.numbers() == {"shop": 1, "bank": 1}
