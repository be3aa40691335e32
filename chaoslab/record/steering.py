"""The wishes of somebody for a run that goes on: to wait, to stop, or other chances. It stands in a file of the run's
folder, which whoever runs the trials reads between two of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from chaoslab.base import files
from chaoslab.base.clock import Clock, system
from chaoslab.base.shapes import Shape, Within
from chaoslab.core.events import RunStarted
from chaoslab.record.held import MAIN, is_written
from chaoslab.record.lines import lines_of, parse_line

FILE = "steering.json"
CHANCES = ("TOXIC_PROB", "ERROR_PROB")
"""The settings that may be changed while a lab of real time runs."""
REAL = ("local", "compose")
"""The worlds of real time, in which chances may be changed."""
LOOK_S = 0.1
"""The seconds between two looks while a run waits."""
BEGINNING = 20
"""The lines of a log among which it says how it began."""
_WORDS: Mapping[str, tuple[dict[str, Any], str]] = {
    "pause": ({"hold": True}, "it waits after the trials that are under way"),
    "resume": ({"hold": False}, "it goes on"),
    "stop": ({"stop": True}, "it ends after the trials that are under way, as by Ctrl-C"),
}


@dataclass(frozen=True)
class Steering:
    """`hold`: begin no further trial until this is over. `stop`: end the run, as Ctrl-C does. `chances`: by the
    names of their settings (`CHANCES`), from 0 to 1."""

    hold: bool = False
    stop: bool = False
    chances: dict[str, Annotated[float, Within(0.0, 1.0)]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Steering:
        """The wishes for the run in this folder; nothing if the file is not there or cannot be read."""
        if os.path.exists(f"{folder}/{FILE}"):  # asked between any two trials: a Path takes twice as long
            with suppress(ValueError, OSError):
                data = files.json_of(folder / FILE)
                if isinstance(data, dict):
                    made: Steering = _SHAPE.made(data)
                    return made
        return NOTHING


NOTHING = Steering()
_SHAPE = Shape.of(Steering)


def steer(folder: Path, words: Sequence[str]) -> list[str]:
    """Asks for these beside all that was asked for before: pause, resume, stop or NAME=chance, as in TOXIC_PROB=0.3.
    Returns what will happen, a line each.

    Raises:
        ValueError: a word is none of these, or the run cannot do it; the message says why. OSError: it cannot be
            written.
    """
    asked, told = Steering.read(folder), []
    for word in words:
        name, given, value = word.partition("=")
        if word in _WORDS:
            change, said = _WORDS[word]
        elif given and name in CHANCES:
            try:
                chance = float(value)
            except ValueError:
                chance = -1.0
            if not 0 <= chance <= 1:
                raise ValueError(f"{name} should be from 0 to 1, as in {name}=0.3, and not {value[:40]!r}")
            change, said = {"chances": {**asked.chances, name: chance}}, f"{name} is {chance:g} from the next trial on"
        else:
            raise ValueError(f"{word[:40]!r} should be {', '.join(_WORDS)}, or {' or '.join(CHANCES)} with a value")
        asked = replace(asked, **change)
        told.append(said)
    if not is_written(folder):
        raise ValueError(f"nothing runs in {folder} any more")
    started = _started(folder)
    if started is not None and any(name.startswith("ROUTE_") for name in started.settings):
        raise ValueError(f"{folder.name} is of a gateway, which has levers of its own: it printed their address")
    if asked.chances and (started is None or started.world not in REAL):
        raise ValueError(
            f"{folder.name} is made of its seed and plan alone: only a lab of real time takes other chances"
        )
    with files.replacing(folder / FILE) as part:
        part.write_text(json.dumps(vars(asked)) + "\n")
    return told


def _started(folder: Path) -> RunStarted | None:
    """The event with which a run began; None if it is not at the beginning of its log."""
    with suppress(OSError):
        for text in islice(lines_of(folder / f"{MAIN}.log"), BEGINNING):
            if (record := parse_line(text)) is not None and isinstance(record.event, RunStarted):
                return record.event
    return None


def held_back(folder: Path) -> bool:
    """True if the run is asked to wait."""
    return Steering.read(folder).hold


def obey(folder: Path, *, clock: Clock = system) -> None:
    """Waits while the run is asked to.

    Raises:
        KeyboardInterrupt: the run is asked to stop.
    """
    while (now := Steering.read(folder)) is not NOTHING:
        if now.stop:
            raise KeyboardInterrupt
        if not now.hold:
            return
        clock.sleep(LOOK_S)
