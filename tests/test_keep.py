"""Long runs keep the stories of the trials that failed (`keep="failed"`), and their reports hold no whole history."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.cli import main
from chaoslab.core.events import CallStarted, StoryLeftOut
from chaoslab.memory import _reading as reading
from chaoslab.record.history import History
from chaoslab.reports import contents
from chaoslab.reports.contents import Contents
from tests.cli_parts import Typed

TRIALS = 40


def charge(order: int) -> str:
    return f"charged {order}"


def agent(_prompt: str) -> str:
    for _ in range(2):
        try:
            return charge(17)
        except TimeoutError:
            continue
    return "It is not charged."


def run(folder: Path, **more: Any) -> Path:
    lost = lab.inject("lost_reply", "charge", chance=0.2)
    for _ in lab.run_many(agent, "go", tools=[charge], faults=[lost], trials=TRIALS, logs=folder, **more):
        pass
    return folder / "latest"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same run twice, once without the stories of trials that ended well."""
    folder = tmp_path_factory.mktemp("runs")
    run(folder / "lines")
    run(folder / "failed", keep="failed")
    return folder


def test_stories_that_ended_well_are_left_out_and_everything_judged_is_the_same(made: Path, typed: Typed) -> None:
    whole, short = RunReport.from_folder(made / "lines" / "latest"), RunReport.from_folder(made / "failed" / "latest")
    assert short.outcomes_by_trial == whole.outcomes_by_trial
    assert (short.met, short.standings) == (whole.met, whole.standings)
    assert short.impacts == whole.impacts
    assert not short.notes
    well = sum(outcome == "correct" for outcome in whole.outcomes_by_trial.values())
    why = f"{well} stories of trials that ended well were left out (keep='failed')"
    assert short.recovery.unknown == short.calls.unknown == short.delivered.unknown == why
    history = History.read(made / "failed" / "latest")
    assert len([*history.find_events(StoryLeftOut)]) == well
    bad = {trial for trial, outcome in whole.outcomes_by_trial.items() if outcome != "correct"}
    assert {record.trial for record, _ in history.find_events(CallStarted)} == bad
    trial = next(trial for trial in whole.outcomes_by_trial if trial not in bad)
    out = typed.out("show", made / "failed" / "latest", "--trial", trial)
    assert "left out its story, as it ended well (keep='failed'): 1 call, 0 faults met" in out
    with pytest.raises(LookupError, match="lacks the stories of trials that ended well"):
        reading.read_run(made / "failed" / "latest")


@pytest.mark.parametrize("kind", ["html", "json", "markdown"])
def test_reports_tell_what_is_unknown_without_the_stories(made: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    assert main(["report", str(made / "failed" / "latest"), "--format", kind, "--out", str(out)]) == 0
    assert "stories of trials that ended well were left out (keep=" in out.read_text()


def test_a_story_that_is_left_out_counts_its_calls_and_the_faults_that_it_met(tmp_path: Path) -> None:
    late = lab.inject("latency", "charge", delay_s=1.0)
    for _ in lab.run_many(agent, "go", tools=[charge], faults=[late], trials=2, logs=tmp_path, keep="failed"):
        pass
    left_out = [event for _, event in History.read(tmp_path / "latest").find_events(StoryLeftOut)]
    assert [(each.calls, each.met) for each in left_out] == [({"charge": 1}, {"latency": {"charge": 1}})] * 2


def test_a_trial_that_was_ruled_to_fail_keeps_its_story(tmp_path: Path) -> None:
    trials = lab.run_many(agent, "go", tools=[charge], faults=[], trials=3, logs=tmp_path, keep="failed")
    for number, trial in enumerate(trials, 1):
        if number == 2:
            trial.want()
    history = History.read(tmp_path / "latest")
    assert {record.trial for record, _ in history.find_events(CallStarted)} == {"p1.r2"}
    assert history.trials == ["p1.r1", "p1.r2", "p1.r3"]


def test_frames_of_stories_that_were_left_out_count_their_calls(made: Path) -> None:
    pd.testing.assert_frame_equal(
        lab.load(made / "failed" / "latest").trials, lab.load(made / "lines" / "latest").trials
    )


def test_stories_are_held_of_the_trials_that_are_shown(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SHOWN", 2)
    monkeypatch.setattr(contents, "EXAMPLES", 0)
    monkeypatch.delattr(History, "read")
    found = Contents.from_run_name(str(made / "lines" / "latest"), where="r")
    assert {record.trial for record in found.history} == {row.trial for row in found.rows}
    assert len(found.rows) == 2
    assert all(row.answer for row in found.rows)
    assert "2 of these are shown" in found.hidden_trials_note


def test_an_option_for_the_form_of_logs_is_refused_with_what_there_is_instead(typed: Typed) -> None:
    said = typed.refused("test", "x.chaos.yaml", "--log-as", "packs")
    assert "--log-as" in said
    assert "leave it out, a log is lines of text; --keep failed makes it small" in said
