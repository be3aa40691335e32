"""A run's folder is written from its trials as if they had been done one after the other."""

import json
from pathlib import Path

import pytest

from chaoslab.core.events import Event, PromptAttempt, PromptFinished, PromptStarted, RunFinished
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent, LogLost
from chaoslab.worlds.virtual.run_writer import RunWriter
from tests.event_parts import run_started

NOW = "2026-06-01T09:00:00Z"
STARTED = run_started(prompts=2, now=NOW, world="virtual", asked=[], code={})
ATTEMPT = PromptAttempt(
    prompt_index=1,
    prompt="Hello?",
    response="Hello",
    status="ok",
    start_time="2026-06-01T09:00:00.500000Z",
    end_time="2026-06-01T09:00:02.000000Z",
    duration_s=1.5,
    error_type="none",
    prompt_attempt=1,
    error="",
)


def trial(number: int) -> list[BufferedEvent]:
    """Two seconds: asked at 0.25, answered at 2."""
    key = f"p1.r{number}"

    def kept(writer: str, t: float, event: Event) -> BufferedEvent:
        return BufferedEvent.build(writer, t, key, event)

    return [
        kept("info", 0.25, PromptStarted(prompt_index=1, prompt="Hello?")),
        kept("agent", 2.0, ATTEMPT),
        kept(
            "info",
            2.0,
            PromptFinished(
                prompt_index=1,
                prompt="Hello?",
                status="ok",
                answer="Hello",
                attempts=1,
                duration_s=1.75,
                error_type="none",
            ),
        ),
    ]


def write(folder: Path, trials: int, reason: str = "done") -> History:
    with RunWriter(folder, "v1-abc", NOW) as book:
        book.write_start(STARTED)
        for number in range(1, trials + 1):
            book.write_trial(trial(number), seconds=2.0, ok=number != 2)
        book.write_end(reason)
    return History.read(folder)


def test_each_trial_begins_where_the_one_before_it_ended(tmp_path: Path) -> None:
    history = write(tmp_path, 3)
    assert [(record.trial, record.t) for record, _ in history.find_events(PromptStarted)] == [
        ("p1.r1", 0.25), ("p1.r2", 2.25), ("p1.r3", 4.25),
    ]  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "info.log").read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, 9))
    assert [line["ts"] for line in lines[1:4]] == [
        "2026-06-01T09:00:00.250000Z", "2026-06-01T09:00:02.000000Z", "2026-06-01T09:00:02.250000Z",
    ]  # fmt: skip
    assert {line["run"] for line in lines} == {"v1-abc"}
    (end,) = [event for _, event in history.find_events(RunFinished)]
    assert (end.received, end.processed, end.succeeded, end.duration_s, end.reason) == (2, 3, 2, 6.0, "done")


def test_moments_that_an_event_names_move_with_it(tmp_path: Path) -> None:
    attempts = [event for _, event in write(tmp_path, 2).find_events(PromptAttempt)]
    assert [event.start_time for event in attempts] == ["2026-06-01T09:00:00.500000Z", "2026-06-01T09:00:02.500000Z"]
    assert [event.duration_s for event in attempts] == [1.5, 1.5]


def test_a_run_that_was_broken_off_tells_what_there_is(tmp_path: Path) -> None:
    history = write(tmp_path, 1, "interrupted")
    (end,) = [event for _, event in history.find_events(RunFinished)]
    assert (end.received, end.processed, end.reason) == (2, 1, "interrupted")


def test_a_folder_that_is_gone_is_said_and_nothing_is_written_into_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with RunWriter(folder, "v1-abc", NOW) as book:
        book.write_start(STARTED)
        (folder / "info.log").unlink()
        with pytest.raises(LogLost, match=r"info\.log cannot be written \(it was deleted\)"):
            book.write_trial(trial(1), seconds=2.0, ok=True)
    assert not (folder / "info.log").exists()
