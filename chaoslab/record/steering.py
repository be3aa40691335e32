"""Requests to a run under way: to wait, to stop, other chances, or faults off. They stand in a file
of the run's folder, which whoever runs the trials reads between two of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from chaoslab.base import files, levers
from chaoslab.base.clock import Clock, system
from chaoslab.base.registry import suggest_name
from chaoslab.base.shapes import Shape, Within
from chaoslab.core.events import RunStarted
from chaoslab.record.held import MAIN, has_live_writer
from chaoslab.record.lines import iterate_lines, parse_line

FILE = "steering.json"
CHANCES = ("TOXIC_PROB", "ERROR_PROB")
"""The settings that may be changed while a lab of real time runs."""
REAL = ("local", "compose")
"""The worlds of real time, in which chances may be changed."""
LOOK_S = 0.1
"""The seconds between two looks while a run waits."""
BEGINNING = 20
"""The lines of a log among which it says how it began."""
PAUSED = "manager.paused"
"""The lever in a run's folder that pauses the proxy manager for this run."""
_WORDS: Mapping[str, tuple[dict[str, Any], str]] = {
    "pause": ({"hold": True}, "it waits after the trials that are under way"),
    "resume": ({"hold": False}, "it goes on"),
    "stop": ({"stop": True}, "it ends after the trials that are under way, as by Ctrl-C"),
}
_OF_MANAGER = {
    "manager=pause": "the proxy manager makes no fault, and removes those that it has armed",
    "manager=resume": "the proxy manager makes faults again",
}
KNOWN = f"{', '.join(_WORDS)}, {' or '.join(CHANCES)} with a value, or a fault of its plan with =off or =on"


@dataclass(frozen=True)
class RunSteering:
    """`hold`: begin no further trial until this is over. `stop`: end the run, as Ctrl-C does. `chances`: by the
    names of their settings (`CHANCES`), from 0 to 1. `off`: the injections of the plan that are to hit nothing."""

    hold: bool = False
    stop: bool = False
    chances: dict[str, Annotated[float, Within(0.0, 1.0)]] = field(default_factory=dict)
    off: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> RunSteering:
        """The requests to the run in this folder; nothing if the file is not there or cannot be read."""
        # Asked between any two trials: `Path.exists` takes four times as long.
        if os.access(f"{folder}/{FILE}", os.F_OK):
            with suppress(ValueError, OSError):
                data = files.read_json(folder / FILE)
                if isinstance(data, dict):
                    steering: RunSteering = _SHAPE.make_instance(data)
                    return steering
        return NOTHING


NOTHING = RunSteering()
_SHAPE = Shape.build(RunSteering)


def steer_run(folder: Path, changes_asked: Sequence[str]) -> list[str]:
    """Asks for these beside all that was asked for before: pause, resume, stop, NAME=chance as in TOXIC_PROB=0.3,
    FAULT=off or FAULT=on, manager=pause or manager=resume. Returns what will happen, a line each. Raises ValueError: a
    word is none of these, or the run cannot do it; the message says why. OSError: it cannot be written."""
    if not has_live_writer(folder):
        raise ValueError(f"nothing runs in {folder} any more")
    started = read_start_event(folder)
    if started is None:
        raise ValueError(f"{folder.name} has not begun yet: its log does not tell its plan")
    if is_gateway_run(started):
        raise ValueError(f"{folder.name} has no levers: chaoslab gateway has some, and chaoslab exec with --levers")
    steering, outcomes = RunSteering.read(folder), []
    for word in changes_asked:
        change, outcome = _parse_steering_change(folder.name, started, steering, word)
        steering = replace(steering, **change)
        outcomes.append(outcome)
    for word in filter(_OF_MANAGER.__contains__, changes_asked):
        if word == "manager=pause":
            levers.write_stop_file(folder / PAUSED, "somebody paused it")
        else:
            levers.remove_stop_file(folder / PAUSED)
    with files.replace_file(folder / FILE) as draft:
        draft.write_text(json.dumps(vars(steering)) + "\n")
    return outcomes


def _parse_steering_change(
    run: str, started: RunStarted, steering: RunSteering, word: str
) -> tuple[dict[str, Any], str]:
    """The change of the requests that a word asks for, and the words for it."""
    name, _, value = word.rpartition("=")
    if word in _WORDS:
        return _WORDS[word]
    if word in _OF_MANAGER:
        if not is_real_time_lab_run(started):
            raise ValueError(f"{run} has no proxy manager: only a lab of real time has one")
        return {}, _OF_MANAGER[word]
    if name in CHANCES:
        change = _parse_chance_change(steering, name, value)
        if not is_real_time_lab_run(started):
            raise ValueError(f"{run} is made of its seed and plan alone: only a lab of real time takes other chances")
        return change
    if name and value in ("off", "on"):
        if name not in (fault_names := list_injection_names(started)):
            raise ValueError(f"{name[:60]!r} is no fault of the run's plan: {suggest_name(name, fault_names)}")
        faults_off = [*(fault for fault in steering.off if fault != name), *([name] if value == "off" else [])]
        return {"off": faults_off}, f"'{name}' is {value} from the next trial on"
    raise ValueError(f"{word[:40]!r} should be {KNOWN}")


def _parse_chance_change(steering: RunSteering, name: str, value: str) -> tuple[dict[str, Any], str]:
    try:
        chance = float(value)
    except ValueError:
        chance = -1.0
    if not 0 <= chance <= 1:
        raise ValueError(f"{name} should be from 0 to 1, as in {name}=0.3, and not {value[:40]!r}")
    return {"chances": {**steering.chances, name: chance}}, f"{name} is {chance:g} from the next trial on"


def list_injection_names(started: RunStarted) -> list[str]:
    """The names of the injections of a run's plan."""
    return [injection["name"] for injection in started.injections]


def is_real_time_lab_run(started: RunStarted) -> bool:
    """True for a run of the lab in real time."""
    return started.world in REAL and CHANCES[0] in started.settings


def is_gateway_run(started: RunStarted) -> bool:
    """True for a run of `chaoslab gateway`, `chaoslab exec` or `chaoslab mcp`."""
    return any(name.startswith("ROUTE_") or name == "SERVER" for name in started.settings)


def read_start_event(folder: Path) -> RunStarted | None:
    """The event with which a run began; None if it is not at the beginning of its log."""
    with suppress(OSError):
        for text in islice(iterate_lines(folder / f"{MAIN}.log"), BEGINNING):
            if (record := parse_line(text)) is not None and isinstance(record.event, RunStarted):
                return record.event
    return None


def obey_pause_and_stop(folder: Path, *, clock: Clock = system) -> None:
    """Waits while the run is asked to. Raises KeyboardInterrupt: the run is asked to stop."""
    # The very object: no file is there, or none that can be read.
    while (now := RunSteering.read(folder)) is not NOTHING:
        if now.stop:
            raise KeyboardInterrupt
        if not now.hold:
            return
        clock.sleep(LOOK_S)
