"""A run is read while it is written: each event once, in the order of its writer, up to the run's end."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from chaoslab.core.events import (
    AttemptRef,
    CallStarted,
    Event,
    FaultArmed,
    FaultHealed,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
    RunFinished,
    RunStarted,
)
from chaoslab.record import follow as follow_module
from chaoslab.record.follow import Follower
from chaoslab.record.lines import Record
from chaoslab.record.runs import Run
from chaoslab.reports.progress import LiveRun
from tests.event_parts import prompt_finished

NOW = "2026-06-01T09:00:00Z"
AT = AttemptRef(trial="p1.r1", target="search", request=1, attempt=1, request_id="id")
ARMED = FaultArmed(fault="latency", injection="wire", at=AT, lane="lane.1")
MET = FaultWitnessed(fault="latency", injection="wire", at=AT, evidence="late")
HEALED = FaultHealed(fault="latency", injection="wire", at=AT)
BEGUN = RunStarted(seed=1, settings={}, plan={"injections": []}, prompts=2, now=NOW, model="offline")
ENDED = RunFinished(received=2, processed=2, succeeded=2, duration_s=1.0)


def asked(n: int) -> PromptStarted:
    return PromptStarted(prompt_index=n, prompt="What is\n6 times 7?")


def answered(n: int, error_type: str = "none") -> PromptFinished:
    return prompt_finished("42", prompt_index=n, duration_s=0.051, error_type=error_type)


def kinds(records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(record.writer, record.event.kind) for record in records]


def test_a_reader_that_is_behind_sees_what_other_parts_wrote_before_a_trial_ended(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as info, run.open_log("manager") as manager, run.open_log("calendar") as calendar:
        info.write(BEGUN)
        for number in (1, 2):
            info.write(asked(number), trial=f"p{number}.r1")
            manager.write(ARMED, trial=f"p{number}.r1")
            manager.write(MET, trial=f"p{number}.r1")
            calendar.write(MET, trial=f"p{number}.r1")
            manager.write(HEALED, trial=f"p{number}.r1")
            info.write(answered(number), trial=f"p{number}.r1")
        info.write(ENDED)
    watched, lines = LiveRun(), list[str]()
    with Follower(run.folder) as follower:
        for record in follower.read_new_records():
            watched.add_records([record])
            lines += watched.describe_ended_trials()
    assert [line.split(":")[0].split(", ")[1] for line in lines] == ["met 2 × latency"] * 2


def test_a_long_log_comes_in_parts_each_with_what_others_wrote_before_its_end(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as info, run.open_log("manager") as manager:
        info.write(BEGUN)
        manager.write(ARMED, trial="p1.r1")
        part = (run.folder / "info.log").stat().st_size
        info.write(ENDED)
    with Follower(run.folder) as follower:
        assert kinds(follower.read_new_records(part)) == [("info", "run_started"), ("manager", "fault_armed")]
        assert (follower.more, follower.ended) == (True, False)
        assert kinds(follower.read_new_records(2 * part)) == [("info", "run_finished")]
        assert (follower.more, follower.ended) == (False, True)
        assert follower.read_new_records() == []
        assert not follower.more


def test_each_event_comes_once_and_a_line_without_its_end_waits_for_it(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)
    with Follower(run.folder) as follower, run.open_log("info") as info:
        assert follower.read_new_records() == []
        info.write(BEGUN)
        info.write(asked(1), trial="p1.r1")
        assert kinds(follower.read_new_records()) == [("info", "run_started"), ("info", "prompt_started")]
        assert follower.read_new_records() == []
        with run.open_log("manager") as manager:  # a writer that begins later
            manager.write(ARMED, trial="p1.r1")
        whole = (run.folder / "manager.log").read_bytes()
        with (run.folder / "info.log").open("ab") as file:
            file.write(whole[:50])
        assert kinds(follower.read_new_records()) == [("manager", "fault_armed")]
        with (run.folder / "info.log").open("ab") as file:
            file.write(whole[50:] + b"not a line\n")
        assert kinds(follower.read_new_records()) == [("manager", "fault_armed")]
        assert not follower.ended
        with (run.folder / "info.log").open("ab") as file:
            file.write(whole.replace(b"fault_armed", b"unknown"))
        assert follower.read_new_records() == []


def test_of_what_others_wrote_later_a_bounded_reader_reads_no_more_than_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "PART", 1000)
    run = Run.create(tmp_path, now=NOW)
    with Follower(run.folder) as follower, run.open_log("info") as info, run.open_log("manager") as manager:
        info.write(BEGUN)
        for _ in range(100):
            manager.write(ARMED, trial="p1.r1")
        first, rest = follower.read_new_records(10_000), follower.read_new_records(-1)
    assert 1 < len(first) < 20
    assert len(first) + len(rest) == 101
    (run.folder / "info.log").unlink()
    with Follower(run.folder) as follower:  # of a log whose main part is lost
        assert len(follower.read_new_records(10_000)) == 100


def test_it_reads_what_another_thread_writes_meanwhile(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)

    def write() -> None:
        with run.open_log("info") as info:
            for n in range(1, 400):
                info.write(asked(n), trial=f"p{n}.r1")
            info.write(ENDED)

    writer = threading.Thread(target=write)
    writer.start()
    found = list[Record]()
    with Follower(run.folder) as follower:
        while not follower.ended:
            found += follower.read_new_records()
    writer.join()
    assert [record.seq for record in found] == list(range(1, 401))


def watched(*events: Event) -> LiveRun:
    seen = LiveRun()
    seen.add_records(Record("", 0.0, "run", "p1.r1", "info", n, event) for n, event in enumerate(events))
    return seen


@pytest.mark.parametrize(
    ("error_type", "said"),
    [
        ("none", "trial   1/2 answered   0.05 s  p1.r1: What is 6 times 7?"),
        ("model", "trial   1/2 no answer: model error   0.05 s  p1.r1: What is 6 times 7?"),
    ],
)
def test_a_prompt_that_has_ended_is_a_line(error_type: str, said: str) -> None:
    seen = watched(BEGUN, asked(1), answered(1, error_type))
    assert list(seen.describe_ended_trials()) == [said]
    assert list(seen.describe_ended_trials()) == []


def test_a_prompt_waits_for_its_lanes_since_only_then_it_is_known_what_it_met() -> None:
    seen = watched(BEGUN, asked(1), ARMED, answered(1))
    assert list(seen.describe_ended_trials()) == []
    seen.add_records([Record("", 0.0, "run", "p1.r1", "manager", n, event) for n, event in enumerate((MET, HEALED))])
    assert list(seen.describe_ended_trials()) == [
        "trial   1/2 answered   0.05 s  p1.r1, met latency: What is 6 times 7?"
    ]
    assert len(list(watched(BEGUN, asked(1), ARMED, answered(1)).describe_ended_trials(all_of_them=True))) == 1


def test_faults_are_counted_by_name() -> None:
    (line,) = watched(BEGUN, asked(1), MET, MET, answered(1)).describe_ended_trials()
    assert ", met 2 × latency: " in line


def test_what_happens_now_is_one_line() -> None:
    seen = watched(BEGUN, asked(1), CallStarted(at=AT, tool="search_web"), MET)
    assert (
        " ".join(seen.render_progress_line(200).split())
        == "trial 1 of 2 · search.search_web · 1 fault · What is 6 times 7?"
    )
    assert seen.render_progress_line(30).endswith("…")
    assert len(seen.render_progress_line(30)) == 30
    seen.add_records([Record("", 0.0, "run", "p1.r1", "info", 9, answered(1))])
    assert seen.render_progress_line(200).startswith("━━━━━━━━━━ ")
    assert watched().render_progress_line(200).split()[:4] == ["trial", "0", "of", "0"]


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (lambda log: log.write_bytes(b""), "info.log was cut off while it was read"),
        (lambda log: log.unlink(), "info.log was deleted"),
        (lambda log: log.write_bytes(log.rename(log.with_name("old")).read_bytes()),
         "another file is in the place of info.log"),
        (Path.stat, ""),
    ],
)  # fmt: skip
def test_the_fate_of_a_log_that_was_read_is_told(fate: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as info:
        info.write(BEGUN)
    with Follower(run.folder) as follower:
        follower.read_new_records()
        fate(run.folder / "info.log")
        assert follower.describe_log_loss() == words
