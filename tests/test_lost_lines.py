"""Lines that a log has lost: every reader tells of them, and the trials that they touch are unfinished."""

import json
import shutil
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.config.topology import WRITERS
from chaoslab.record.gaps import Gap, torn
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.reports import charts, runs
from chaoslab.reports.charts.success_rate import success_rate
from chaoslab.reports.contents.headline import Tone, verdict
from chaoslab.reports.gate import Gate, rule
from tests.cli_parts import Typed
from tests.reports.fake_run import FakeRun

PROMPTS = 26
LOGS = ("info.log", "manager.log", "messaging.log")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FakeRun(tmp_path_factory.mktemp("run"), prompts=PROMPTS).write()


@pytest.fixture(scope="module")
def intact(kept: Path) -> RunReport:
    return RunReport.read(kept)


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "run"))


def lose(folder: Path, log: str, first: int, last: int) -> None:
    """Takes these lines out of a log, counted from 1."""
    lines = (folder / log).read_bytes().splitlines(keepends=True)
    (folder / log).write_bytes(b"".join(lines[: first - 1] + lines[last:]))


def of_effect(folder: Path, trial: str) -> int:
    """The number of the line of the trial's effect."""
    lines = (folder / "messaging.log").read_bytes().splitlines()
    return next(n for n, line in enumerate(lines, 1) if json.loads(line)["trial"] == trial)


def test_a_lost_effect_is_no_harm_and_its_trial_is_unfinished(run: Path, intact: RunReport) -> None:
    trial = next(t for t, v in intact.verdicts.items() if v.outcome is Outcome.CORRECT and int(t[1:-3]) > 3)
    number = of_effect(run, trial)
    lose(run, "messaging.log", number, number)
    report, told = RunReport.read(run), f"line {number} of messaging.log is lost"
    assert report.verdicts[trial].outcome is Outcome.UNFINISHED
    assert report.verdicts[trial].why == f"its log is not whole: {told}"
    assert report.notes == (told,)
    assert judge(History.read(run), trial) == report.verdicts[trial]
    others = {t: v for t, v in report.verdicts.items() if v.outcome is not Outcome.UNFINISHED}
    assert others == {t: intact.verdicts[t] for t in others}
    assert len(others) > PROMPTS - 6


def test_every_reader_tells_of_it(run: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_charts", lambda: [("success_rate", success_rate)])
    lose(run, "messaging.log", 3, 3)
    for command in (["summary"], ["show"], ["show", "--json"], ["report", "--format", "json"], ["report"], ["charts"]):
        said = typed(*command, run)
        assert said.code == 0
        assert "line 3 of messaging.log is lost" in " ".join((said.out + said.err).split()), command
    outcomes = runs.of(run).outcomes
    assert outcomes is not None
    assert outcomes[Outcome.UNFINISHED] == list(RunReport.read(run).outcomes.values()).count("unfinished")


def test_trials_that_vanished_are_counted_and_pass_no_gate(run: Path, intact: RunReport) -> None:
    lose(run, "info.log", 60, 159)
    report = RunReport.read(run)
    assert report.lost == len(intact.trials) - len(report.trials) > 0
    assert "lines 60 to 159 of info.log are lost" in report.notes
    ruling = rule(Gate(min_correct=0.0), report.verdicts, judgeable=True, lost=report.lost)
    assert not ruling.passed
    assert f"the log has lost {report.lost} of its trials" in ruling.line
    assert verdict(report)[1] is not Tone.GOOD


def test_a_run_that_has_lost_trials_did_not_all_end_well(tmp_path: Path) -> None:
    def rate() -> int:
        return 42

    def agent(_: str) -> str:
        for _again in range(9):
            try:
                return f"The rate is {rate()}."
            except Exception:  # noqa: BLE001 - any fault
                continue
        return "I could not find the rate."

    faults = [lab.inject("exception", "rate", chance=0.4)]
    for _ in lab.run_many(agent, "What is the rate?", trials=26, reads=[rate], faults=faults, logs=tmp_path):
        pass
    folder = tmp_path / "latest"
    assert verdict(RunReport.read(folder)) == ("All of 26 judged trials ended well", Tone.GOOD)
    lose(folder, "info.log", 40, 139)
    report = RunReport.read(folder)
    said, tone = verdict(report)
    assert tone is Tone.OPEN
    assert said.startswith(f"{report.lost} trials were lost from the log: all of ")


def test_a_missing_end_is_told(run: Path) -> None:
    lines = (run / "messaging.log").read_bytes().count(b"\n")
    lose(run, "messaging.log", lines - 1, lines)
    report = RunReport.read(run)
    assert report.notes == (f"lines {lines - 1} to {lines} of messaging.log are lost",)
    assert report.verdicts[report.trials[-1]].outcome is Outcome.UNFINISHED
    assert report.verdicts[report.trials[0]].outcome is not Outcome.UNFINISHED


@pytest.mark.parametrize("empty", [True, False])
def test_a_log_that_is_lost_leaves_no_trial_finished(run: Path, empty: bool) -> None:
    (run / "messaging.log").write_bytes(b"") if empty else (run / "messaging.log").unlink()
    report = RunReport.read(run)
    assert {*report.outcomes.values()} == {"unfinished"}
    assert all(
        "of messaging.log are lost" in note if empty else "messaging.log is lost" in note for note in report.notes
    )
    assert len(report.notes) == 1


def test_a_run_names_its_writers_so_a_killed_one_tells_of_a_lost_log(tmp_path: Path) -> None:
    made = Run.create(tmp_path, now="2026-06-01T09:00:00Z", writers=WRITERS)
    assert json.loads((made.folder / "run.json").read_bytes())["writers"] == [*WRITERS]
    FakeRun(made.folder, prompts=3).write()
    lose(made.folder, "info.log", *[(made.folder / "info.log").read_bytes().count(b"\n")] * 2)  # its end
    assert RunReport.read(made.folder).notes == ()
    (made.folder / "calendar.log").unlink()
    report = RunReport.read(made.folder)
    assert report.notes == ("calendar.log is lost",)
    assert {*report.outcomes.values()} == {"unfinished"}


def test_a_line_that_stands_twice_touches_its_own_trial_alone(run: Path, intact: RunReport) -> None:
    number = of_effect(run, trial := intact.trials[4])
    lines = (run / "messaging.log").read_bytes().splitlines(keepends=True)
    (run / "messaging.log").write_bytes(b"".join([*lines[:number], lines[number - 1], *lines[number:]]))
    report = RunReport.read(run)
    assert report.notes == (f"line {number} of messaging.log is there twice",)
    assert [t for t, outcome in report.outcomes.items() if outcome == "unfinished"] == [trial]


def test_a_line_that_cannot_be_read_is_told_once_and_touches_its_trial(run: Path, intact: RunReport) -> None:
    number = of_effect(run, trial := intact.trials[4])
    lines = (run / "messaging.log").read_bytes().splitlines(keepends=True)
    lines[number - 1] = b"\0" * 40 + b"\n"
    (run / "messaging.log").write_bytes(b"".join(lines))
    report = RunReport.read(run)
    assert report.notes == (f"messaging.log: line {number} could not be read",)
    assert report.outcomes[trial] == "unfinished"


_GAPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([(), ("p0",), (None, "p3")])), max_size=5
)


@settings(max_examples=50)
@given(gaps=_GAPS, trials=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 5, inf])), max_size=5))
def test_a_gap_touches_whom_it_stands_beside_and_whose_time_it_meets(
    gaps: list[tuple[int, int, tuple[str | None, ...]]], trials: list[tuple[int, float]]
) -> None:
    """A trial's time goes on until the next one begins."""
    lost = [Gap("a.log", 2 * n + 1, 2 * n + 1, at, at + lasts, beside) for n, (at, lasts, beside) in enumerate(gaps)]
    spans = {f"p{n}": (float(begin), begin + lasts) for n, (begin, lasts) in enumerate(trials)}
    touching: dict[str, set[str]] = {}
    for trial, (begin, end) in spans.items():
        over = min((other for other, _ in spans.values() if other >= end), default=inf)
        met = {g.in_words for g in lost if trial in g.beside or (begin < g.until and g.since < over)}
        touching |= {trial: met} if met else {}
    found = torn(lost, spans)
    assert list(found) == list(touching)
    assert all(told in touching[trial] for trial, told in found.items())


@settings(max_examples=60, deadline=None)
@given(log=st.sampled_from(LOGS), place=st.floats(0, 1), many=st.integers(1, 120))
def test_whatever_is_lost_no_verdict_is_another(
    kept: Path, tmp_path_factory: pytest.TempPathFactory, intact: RunReport, log: str, place: float, many: int
) -> None:
    folder = Path(shutil.copytree(kept, tmp_path_factory.mktemp("lost") / "run"))
    count = (folder / log).read_bytes().count(b"\n")
    first = 1 + int(place * (count - 1))
    lose(folder, log, first, last := min(count, first + many - 1))
    report = RunReport.read(folder)
    changed = {t for t, found in report.verdicts.items() if found != intact.verdicts[t]}
    assert {report.verdicts[t].outcome for t in changed} <= {Outcome.UNFINISHED}
    assert report.notes or (log == "info.log" and last == count)
    if log == "info.log" and last == count:
        assert report.finished is None
    assert report == RunReport.of(History.read(folder))
