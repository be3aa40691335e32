"""Reads a line of a log: checks it and makes its event."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sys import intern
from typing import Annotated, Any

from chaoslab.base.files import open_regular
from chaoslab.base.shapes import DEPTH_MAX, Shape, Within, is_nested_deeper
from chaoslab.core.events import LASTS_MAX_S, Count, Event
from chaoslab.record._typed_lines import TypedLines, count_brackets

LINE_MAX = 1 << 26
"""The most bytes of a line. The longest line that a run writes holds a reply of 4 MiB."""


@dataclass(frozen=True)
class Record:
    """One line of a log: the envelope and its event."""

    ts: str
    t: Annotated[float, Within(-LASTS_MAX_S, LASTS_MAX_S)]
    run: str
    trial: str | None
    writer: str
    seq: Count
    event: Event


def list_log_files(folder: Path) -> list[Path]:
    """The logs in a folder. Only regular files: a pipe or a device has no end."""
    return sorted(path for path in folder.glob("*.log") if path.is_file())


def iterate_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their ends. A line longer than LINE_MAX is cut off there, so it cannot be read. Raises
    OSError: the file cannot be read."""
    with open_regular(path) as file:
        while line := file.readline(LINE_MAX):
            rest = line
            while len(rest) == LINE_MAX and not rest.endswith(b"\n"):
                rest = file.readline(LINE_MAX)
            yield line


_OFTEN = ("run", "trial", "writer", "target", "request_id", "tool", "fault", "injection", "via", "error")
"""Fields whose texts recur in a log, so that each is kept once: a quarter of the memory of a long run."""
_DECODER = json.JSONDecoder()
_ENVELOPE = Shape.build(Record, without=("event",))


@cache
def _build_event_shape(kind: type[Event]) -> Shape:
    return Shape.build(kind)


def _decode_json(line: bytes) -> Any:
    """`json.loads`, without its search for the encoding where the line looks like the lab's own."""
    if not line.startswith(b'{"'):
        return json.loads(line)
    text = line.decode("utf-8", "surrogatepass")
    data, end = _DECODER.raw_decode(text)
    return data if text[end:] == "\n" else json.loads(text)


@cache
def _make_typed_lines(kinds: int) -> TypedLines[Record]:  # noqa: ARG001 - a package may add kinds, and the reader is made anew
    return TypedLines(_ENVELOPE, "event", Event.kinds, once=_OFTEN)


def parse_line(line: bytes) -> Record | None:
    """The record of a line. None if the line is cut or foreign, if its kind is unknown, or if a field is not of its
    type or out of its range (`events`). A reader of records need not check any of that again."""
    record = _make_typed_lines(len(Event.kinds)).parse_line(line)
    return _parse_any_line(line) if record is None else record


def iterate_records(path: Path, *, cut: Callable[[int], object]) -> Iterator[Record]:
    """The records of a log. `cut` is called with the number of each line that cannot be read. Raises OSError: the file
    cannot be read."""
    for number, line in enumerate(iterate_lines(path), 1):
        record = parse_line(line)
        if record is not None:
            yield record
        elif line.strip():
            cut(number)


def _parse_any_line(line: bytes) -> Record | None:
    """The same for any line, in the general way, such as for one with a lone surrogate or a number of 80 digits."""
    try:
        data = _decode_json(line)
    except (ValueError, RecursionError):
        return None
    if type(data) is not dict:
        return None
    return make_record(data, brackets=count_brackets(line))


def make_record(data: dict[str, Any], *, brackets: int) -> Record | None:
    """The record of a line's fields, checked as `parse_line` says. `brackets`: the number of those that open an object
    or a list in the line's text."""
    if type(data.get("kind")) is not str:
        return None
    kind = Event.kinds.get(data["kind"])
    if kind is None or (brackets > DEPTH_MAX and is_nested_deeper(data, DEPTH_MAX)):
        return None
    for name in _OFTEN:
        if type(data.get(name)) is str:
            data[name] = intern(data[name])
    try:
        record: Record = _ENVELOPE.make_instance(data)
        vars(record)["event"] = _build_event_shape(kind).make_instance(data)  # type: ignore[arg-type]  # mypy looks for the hash of an instance
    except ValueError:
        return None
    return record
