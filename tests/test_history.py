"""Reading is parsing: what a log's line holds is looked at once, where it becomes an event, and no reader meets anything else."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from event_parts import ENVELOPE, sample

from chaoslab import remembered, running, settings
from chaoslab.cli import main
from chaoslab.events import CallFinished, Event, PromptFinished, PromptStarted, RunStarted
from chaoslab.history import LINE_MAX, History, Record, parse_line, unread
from chaoslab.remembered import Unrepeatable
from chaoslab.reports import charts, show, summary
from chaoslab.runs import Run
from chaoslab.settings import SettingError
from chaoslab.shapes import DEPTH_MAX

ASKED = (
    {"prompt": "What is 17 times 24?", "facts": ["408"]},
    "Tell Carla that the review is in room 204.",
)
FAULTS = ("WORLD=virtual", "TRIALS=4", "TOXIC_PROB=0.5", "ERROR_PROB=0.4", "MODEL_TOXIC_PROB=0.1", "SEED=4")
DEEP = "[" * 100_000 + "]" * 100_000
VALUES = (
    "null", "true", "0", "-1", "0.5", "1e30", "-1e30", "1e999", "NaN", "Infinity", "-Infinity", "9" * 19, "9" * 4000, "9" * 5000,
    '""', '"text"', '"1"', '"\\ud800"', '"\\u0000"', '"2026-13-45T99:00:00Z"', '"\\u001b[2J$x^{"',
    "[]", "[null]", "[1]", '["a", "b"]', '[["a"]]', "[[1]]", "[[null]]", "[{}]", '[{"effect": 1}]', '[["a", "b"]]', "[[[]]]",
    "{}", '{"a": null}', '{"a": {"b": []}}', '{"injections": null}', '{"injections": [1]}', '{"injections": [{}]}',
    '{"seed": 1, "injections": [{"name": "a", "choices": [{}], "chance": "x"}]}', '{"status": "x", "body": 1, "headers": null}',
    "[" * (DEPTH_MAX - 2) + "]" * (DEPTH_MAX - 2), "[" * 990 + "]" * 990, '{"a":' * 990 + "1" + "}" * 990, DEEP,
)  # fmt: skip
"""As JSON spells them. Each is wrong somewhere."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    """The lines of a run in virtual time, by file, with an event of every kind in them."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "mine.json").write_text(json.dumps(ASKED))
    chosen = settings.load((*FAULTS, f"PROMPTS={folder / 'mine.json'}"), environment={}, env_file=folder / ".env")
    asked = running._check(chosen)
    order = running.order_of(chosen, asked)
    run = Run.create(folder / "logs", now=order.now, name=order.run)
    assert running.carry_out(order, asked, run.folder) == 0
    lines = {path.name: path.read_bytes().splitlines(keepends=True) for path in sorted(run.folder.glob("*.log"))}
    there = {json.loads(line)["kind"] for each in lines.values() for line in each}
    envelope = {key: value for key, value in json.loads(lines["info.log"][1]).items() if key in ENVELOPE}
    for name, kind in Event.kinds.items():
        if name not in there:
            lines["info.log"].append(json.dumps({**envelope, "kind": name, **vars(sample(kind))}).encode() + b"\n")
    assert {name for name in Event.kinds} == {parse(line).event.kind for each in lines.values() for line in each}
    return lines


def parse(line: bytes) -> Record:
    record = parse_line(line)
    assert record is not None, line
    return record


def spoilt(line: bytes, field: str, value: str) -> bytes:
    """The line with that value in the place of the field's own."""
    data = json.loads(line)
    data[field] = "@here@"
    return json.dumps(data).replace('"@here@"', value).encode() + b"\n"


def write(folder: Path, lines: dict[str, list[bytes]]) -> Path:
    for name, each in lines.items():
        (folder / name).write_bytes(b"".join(each))
    return folder


def replay(folder: Path) -> None:
    """What a replay does with the log before it runs anything."""
    run = remembered.read(str(folder))
    remembered.choose(run, ())
    remembered.order(run)


READERS: dict[str, Callable[[Path], object]] = {
    "show": lambda folder: show.render(History.read(folder)),
    "summary": lambda folder: summary.render(History.read(folder)),
    "replay": replay,
    "charts": lambda folder: charts.draw(History.read(folder)),
}
QUICK = ("show", "summary", "replay")


def read_by(names: Sequence[str], folder: Path) -> None:
    """Each reads it, or says in one line why it does not."""
    for name in names:
        try:
            READERS[name](folder)
        except (LookupError, Unrepeatable, SettingError) as refusal:
            assert "\n" not in str(refusal.args[0]), name


# Each field of each kind.


@pytest.mark.parametrize("kind", Event.kinds)
def test_no_reader_meets_a_value_that_is_none_of_its_fields(
    kind: str, logs: dict[str, list[bytes]], tmp_path: Path
) -> None:
    name, at = next((n, i) for n, each in logs.items() for i, line in enumerate(each) if parse(line).event.kind == kind)
    write(tmp_path, logs)
    names = [*ENVELOPE, *(f.name for f in fields(Event.kinds[kind]))]  # type: ignore[arg-type]
    broken = [spoilt(logs[name][at], field, value) for field in names for value in VALUES]
    read = [line for line in broken if parse_line(line) is not None]
    assert 0 < len(read) < len(broken) - len(names) * 5
    for line in ["", *read]:
        pass
