"""The runs of a folder are listed newest first, each with what it came to, also those that cannot be read."""

import json
from collections import Counter
from pathlib import Path

import pytest

from chaoslab.analysis.measures.intervals import compute_flag_rate
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import ENDED_WELL
from chaoslab.cli import main
from chaoslab.core.events import FaultWitnessed, PromptStarted, RunStarted
from chaoslab.record.history import History
from chaoslab.record.log import Log
from chaoslab.record.rulings import Rulings, RulingsFile, RulingState, TrialRuling
from chaoslab.reports import runs
from chaoslab.reports.page import format_rate
from chaoslab.reports.trials import format_outcome_counts
from tests.event_parts import run_started
from tests.reports.fake_run import FakeRun
from tests.sure import sure


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Runs of all kinds: two that ended, one that was killed, and four that cannot be read, or told of."""
    folder = tmp_path / "logs"
    FakeRun(folder / "20261120-090000", prompts=12).write()
    FakeRun(folder / "20261122-090000", prompts=7, seed=99).write()
    (folder / "latest").symlink_to("20261122-090000")
    with Log(folder / "20261121-090000", "info", run="v3-1f2e", origin=0.0) as log:
        log.write(run_started(seed=3, plan={}, prompts=8, model="any", world="virtual"))
    (folder / "20261119-080000").mkdir()
    (folder / "20261119-080000" / "run.json").write_text(json.dumps({"name": "x", "origin": 0.0, "now": ""}))
    (folder / "20261118-080000").mkdir()
    (folder / "20261118-080000" / "info.log").write_bytes(b"\x00\xff nonsense\n")
    (folder / "20261116-080000").mkdir()
    (folder / "20261116-080000" / "info.log").symlink_to("info.log")
    (folder / "notes").mkdir()
    (folder / "notes" / "todo.txt").write_text("no run")
    return folder


def entry(text: str, name: str) -> list[str]:
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(name))
    more = (n for n, line in enumerate(lines) if n > first and not line.startswith("  "))
    return lines[first : next(more, len(lines))]


def test_each_run_has_its_moment_world_seed_outcomes_and_faults_newest_first(logs: Path) -> None:
    text = runs.render_runs(logs)
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert [head[:15] for head in heads] == [f"202611{day}-0{hour}0000" for day, hour in
        ((22, 9), (21, 9), (20, 9), (19, 8), (18, 8), (16, 8))]  # fmt: skip
    history = History.read(logs / "20261122-090000")
    outcomes = format_outcome_counts(Counter(v.outcome for v in judge_all_trials(history).values()))
    faults = sum(1 for _ in history.find_events(FaultWitnessed))
    head, *said = entry(text, "20261122-090000")
    assert head == "20261122-090000 · 2026-11-22 09:00 UTC · world not known · seed 99"
    assert faults > 1
    judged = judge_all_trials(history).values()
    prompts = {record.trial: event.prompt for record, event in history.find_events(PromptStarted)}
    well = format_rate(sure(compute_flag_rate((str(v.outcome) in ENDED_WELL for v in judged), prompts.values())))
    assert said[0] == f"  chaoslab-offline · {well} ended well · harm in {sum(bool(v.harm) for v in judged)}"
    assert " ".join(" ".join(said[1:]).split()) == f"7 trials: {outcomes}; {faults} faults witnessed"
    assert entry(text, "20261121-090000") == [
        "20261121-090000 · 2026-11-21 09:00 UTC · virtual · seed 3",
        "  any",
        "  8 trials: none; 0 faults witnessed; not finished",
    ]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_run_names_the_commit_that_was_checked_out(logs: Path) -> None:
    place = logs / "20261122-090000" / "run.json"
    place.write_text(json.dumps({"name": "x", "revision": "0123456789ab"}))
    assert entry(runs.render_runs(logs), "20261122-090000")[1].startswith("  chaoslab-offline · commit 0123456789ab · ")
    assert next(runs.list_runs(logs)).to_dict()["revision"] == "0123456789ab"


def test_what_cannot_be_read_is_said_in_its_place(logs: Path) -> None:
    text = runs.render_runs(logs)
    assert entry(text, "20261119-080000")[1] == "  it has left no logs"
    assert "cannot be read: the logs of" in entry(text, "20261118-080000")[1]
    assert entry(text, "20261116-080000")[1] == "  it has left no logs"  # what it has is no file


def test_a_log_that_the_system_does_not_let_read_is_said(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("chaoslab.record.lines.iterate_lines", refused)
    said = " ".join(entry(runs.render_runs(logs), "20261122-090000")[1:])
    assert "info.logcannotberead:Permissiondenied" in "".join(said.split())  # a long path is broken anywhere


def test_a_run_whose_measure_fails_is_said_and_the_others_stand(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = judge_all_trials

    def failing(history: History) -> object:
        if history.find_first_event(RunStarted) and len(history.trials) == 12:
            raise ValueError("a bug")
        return real(history)

    whole = runs.render_runs(logs)
    monkeypatch.setattr(runs, "judge_all_trials", failing)
    text = runs.render_runs(logs)
    assert entry(text, "20261120-090000")[1] == "  cannot be read: ValueError: a bug"
    assert entry(text, "20261122-090000") == entry(whole, "20261122-090000")


def test_of_a_large_run_only_the_beginning_is_read(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "COUNTED_MAX", 3000)
    text = runs.render_runs(logs)
    assert entry(text, "20261122-090000") == [
        "20261122-090000 · 2026-11-22 09:00 UTC · world not known · seed 99",
        "  chaoslab-offline",
        "  7 trials: too large to count outcomes",
    ]
    (plain,) = (each.to_dict() for each in runs.list_runs(logs) if each.folder.name == "20261122-090000")
    assert (plain["outcomes"], plain["harmed"], plain["standings"]) == (None, None, None)


def test_a_run_of_a_scenario_is_listed_with_its_ruling(tmp_path: Path) -> None:
    FakeRun(tmp_path / "20261122-090000", prompts=2).write()
    file = RulingsFile(tmp_path / "20261122-090000", "refund", [], 2)
    for trial in ("p1.r1", "p2.r1"):
        file.add_ruling(trial, TrialRuling(RulingState.FAILED, ("no",)))
    file.write_final_ruling(RulingState.FAILED, ["no"])
    (one,) = runs.list_runs(tmp_path)
    assert (one.name, one.ruling, one.well and one.well.count) == ("refund", "failed", 0)
    assert "  refund: failed · 0/2 (0%, 0%–84%) ended well" in one.render_run_text()
    assert {key: one.to_dict()[key] for key in ("name", "ruling", "standings")} == {
        "name": "refund", "ruling": "failed", "standings": {"well": 0, "bad": 2, "open": 0}
    }  # fmt: skip


@pytest.mark.parametrize("state", [RulingState.PASSED, RulingState.INVALID])
def test_a_scenario_that_was_interrupted_has_no_ruling(state: RulingState, tmp_path: Path) -> None:
    FakeRun(tmp_path / "20261122-090000", prompts=2).write()
    file = RulingsFile(tmp_path / "20261122-090000", "refund", [], 3)
    for trial in ("p1.r1", "p2.r1"):
        file.add_ruling(trial, TrialRuling(RulingState.PASSED))
    file.write_final_ruling(state, [])
    (one,) = runs.list_runs(tmp_path)
    assert (one.name, one.ruling, one.well and one.well.count) == ("refund", "", 2)
    assert "passed" not in one.render_run_text()


@pytest.mark.parametrize(("state", "final"), [(RulingState.PASSED, None), (RulingState.FAILED, RulingState.FAILED)])
def test_a_scenario_of_which_the_log_lost_a_trial_that_passed_has_not_passed(
    state: RulingState, final: RulingState | None, tmp_path: Path
) -> None:
    file = RulingsFile(tmp_path, "refund", [], 2)
    for trial in ("p1.r1", "p2.r1"):
        file.add_ruling(trial, TrialRuling(RulingState.PASSED))
    file.write_final_ruling(state, [])
    rulings = Rulings.read(tmp_path)
    assert rulings is not None
    assert rulings.final_state is state
    assert rulings.drop_passes_with_gaps({"p2.r1"}).final_state is final


def test_the_command_prints_the_list(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(logs.parent)
    assert main(["runs"]) == 0
    assert capsys.readouterr().out == runs.render_runs(Path("logs"))
    assert main(["runs", "--logs", "elsewhere"]) == 2
    said = "no logs yet in elsewhere/: run make lab or chaoslab test first, or lab.run with logs='elsewhere'\n"
    assert capsys.readouterr().err == said
