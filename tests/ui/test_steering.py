"""A run that goes on is paused, resumed and stopped from outside, and a lab of real time takes other chances."""

import json
from pathlib import Path
from typing import Any

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.cli import main
from chaoslab.core.events import RunFinished, RunStarted
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.record.steering import FILE, NOTHING, RunSteering, is_real_time_lab_run, obey_pause_and_stop, steer_run
from tests.event_parts import run_started
from tests.ui.parts import read, seen, trials

NOW = "2026-06-01T09:00:00Z"


class Clock(SystemClock):
    """Asks for the next thing each time that somebody waits."""

    def __init__(self, folder: Path, asked: list[str]) -> None:
        self._folder, self._asked, self.waits = folder, asked, 0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.waits += 1
        (self._folder / FILE).write_text(self._asked.pop(0))


def test_a_run_that_is_paused_waits_and_goes_on(tmp_path: Path) -> None:
    obey_pause_and_stop(tmp_path)
    (tmp_path / FILE).write_text('{"hold": true}')
    clock = Clock(tmp_path, ['{"hold": true}', '{"hold": false}'])
    obey_pause_and_stop(tmp_path, clock=clock)
    assert clock.waits == 2


@pytest.mark.parametrize("text", ["", "[]", '{"hold": "yes"}', '{"chances": {"TOXIC_PROB": 7}}', '{"hold": tr'])
def test_what_cannot_be_read_asks_for_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    assert RunSteering.read(tmp_path) is NOTHING


def test_a_run_that_is_stopped_ends_as_by_ctrl_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    going = trials(tmp_path, trials=9)
    next(going)
    assert main(["steer", "latest", "pause", "--logs", str(tmp_path)]) == 0
    assert RunSteering.read(tmp_path / "latest").hold
    assert main(["steer", "latest", "resume", "stop", "--logs", str(tmp_path)]) == 0
    told = "it waits after the trials that are under way\nit goes on\n"
    assert capsys.readouterr().out == f"{told}it ends after the trials that are under way, as by Ctrl-C\n"
    with pytest.raises(KeyboardInterrupt):
        list(going)
    end = History.read(tmp_path / "latest").find_first_event(RunFinished)
    assert end is not None
    assert (end.reason, end.processed) == ("interrupted", 2)
    assert main(["steer", "latest", "pause", "--logs", str(tmp_path)]) == 2
    assert "nothing runs in" in capsys.readouterr().err


def test_what_a_run_cannot_do_is_refused(tmp_path: Path) -> None:
    settings = {"TOXIC_PROB": 0.1, "ERROR_PROB": 0.1}
    started = run_started(settings=settings, plan={"injections": []}, prompts=2, now=NOW, model="m", world="local")
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as info:
        with pytest.raises(ValueError, match="has not begun yet"):
            steer_run(run.folder, ["pause"])
        info.write(started)
        for word, why in (
            ("jump", "should be pause, resume, stop, TOXIC_PROB or ERROR_PROB with a value, or a fault of its plan"),
            ("TOXIC_PROB=2", "from 0 to 1"),
            ("ERROR_PROB=often", "from 0 to 1"),
            ("SEED=2", "should be pause"),
        ):
            with pytest.raises(ValueError, match=why):
                steer_run(run.folder, [word])
        assert steer_run(run.folder, ["TOXIC_PROB=0.5", "ERROR_PROB=0"]) == [
            "TOXIC_PROB is 0.5 from the next trial on",
            "ERROR_PROB is 0 from the next trial on",
        ]
        assert json.loads((run.folder / FILE).read_text())["chances"] == {"TOXIC_PROB": 0.5, "ERROR_PROB": 0.0}
        with seen(run.folder) as watched:
            assert watched.get_state()["manager"] is False
            assert steer_run(run.folder, ["manager=pause"]) == [
                "the proxy manager makes no fault, and removes those that it has armed"
            ]
            read(watched)
            assert watched.get_state()["manager"] is True
            assert steer_run(run.folder, ["manager=resume"]) == ["the proxy manager makes faults again"]
            read(watched)
            assert watched.get_state()["manager"] is False
    going = trials(tmp_path / "virtual", trials=2)
    next(going)
    with pytest.raises(ValueError, match="made of its seed and plan alone"):
        steer_run((tmp_path / "virtual" / "latest").resolve(), ["TOXIC_PROB=0.5"])
    going.close()  # type: ignore[attr-defined]
    gate = Run.create(tmp_path / "gate", now=NOW)
    with gate.open_log("info") as info:
        info.write(
            RunStarted(seed=1, settings={"ROUTE_A": "x"}, plan={"injections": []}, prompts=1, now=NOW, model="m")
        )
        with pytest.raises(ValueError, match="has no levers: chaoslab gateway has some, and chaoslab exec with"):
            steer_run(gate.folder, ["stop"])


def test_a_fault_of_the_plan_is_switched_off_and_on_by_its_name(tmp_path: Path) -> None:
    plan = {"injections": [{"name": "slow"}, {"name": "late=x"}]}
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as info:
        info.write(RunStarted(seed=1, settings={}, plan=plan, prompts=2, now=NOW, model="m", world="virtual"))
        for words, said, off in (
            (["slow=off", "late=x=off"], ["'slow' is off", "'late=x' is off"], ["slow", "late=x"]),
            (["slow=off"], ["'slow' is off"], ["late=x", "slow"]),
            (["late=x=on", "pause"], ["'late=x' is on"], ["slow"]),
        ):
            told = steer_run(run.folder, words)
            assert told[: len(said)] == [f"{each} from the next trial on" for each in said]
            assert RunSteering.read(run.folder).off == off
        assert RunSteering.read(run.folder).hold
        for word, why in (
            ("slw=off", r"'slw' is no fault of the run's plan: did you mean 'slow'\?"),
            ("slow=maybe", "should be pause"),
            ("=off", "should be pause"),
            ("manager=pause", "has no proxy manager: only a lab of real time has one"),
            ("TOXIC_PROB=2", "should be from 0 to 1"),
        ):
            with pytest.raises(ValueError, match=why):
                steer_run(run.folder, [word])
    assert RunSteering.read(run.folder).off == ["slow"]


@pytest.mark.parametrize(
    ("world", "settings", "found"),
    [
        ("local", {"TOXIC_PROB": 0.1}, True), ("compose", {"TOXIC_PROB": 0.1}, True), ("local", {}, False),
        ("virtual", {"TOXIC_PROB": 0.1}, False),
    ],
)  # fmt: skip
def test_a_lab_of_real_time_has_its_settings(world: Any, settings: dict[str, Any], found: bool) -> None:
    assert (
        is_real_time_lab_run(RunStarted(seed=1, settings=settings, plan={}, prompts=1, now=NOW, model="m", world=world))
        is found
    )
