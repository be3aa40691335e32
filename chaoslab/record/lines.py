"""Reads a line of a log: checks it and makes its event."""

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count, islice
from pathlib import Path
from sys import intern
from typing import Annotated, Any, BinaryIO

from chaoslab.base.files import opened
from chaoslab.base.shapes import DEPTH_MAX, Shape, Within, deeper
from chaoslab.core.events import LASTS_MAX_S, Count, Event
from chaoslab.record._typed_lines import TypedLines, brackets
from chaoslab.record.packs import PACK, Packs

CHUNK = 1 << 15
"""The bytes of a log that are parsed at once: about a hundred lines."""
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


def log_files(folder: Path) -> list[Path]:
    """The logs in a folder. Only regular files: a pipe or a device has no end."""
    return sorted(path for path in folder.glob("*.log") if path.is_file())


def lines_of(path: Path, packs: Packs | None = None) -> Iterator[bytes]:
    """The lines of a file with their ends, and those of packs in the place of the lines that stand for them. A line
    longer than LINE_MAX is cut off there, so it cannot be read. `packs`: opens them, and is told what they lack. Raises
    OSError: the file cannot be read. Incomplete: it has packs, and the package that reads them is not installed."""
    with opened(path) as file:
        for line in _lines_in(file):
            if line.startswith(PACK):
                yield from _lines_in((packs or Packs()).open(path.parent, line))
            else:
                yield line


def _lines_in(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE_MAX):
        rest = line
        while len(rest) == LINE_MAX and not rest.endswith(b"\n"):
            rest = file.readline(LINE_MAX)
        yield line


_OFTEN = ("run", "trial", "writer", "target", "request_id", "tool", "fault", "injection", "via", "error")
"""Fields whose texts recur in a log, so that each is kept once: a quarter of the memory of a long run."""
_DECODER = json.JSONDecoder()
_ENVELOPE = Shape.of(Record, without=("event",))


@cache
def _shape(kind: type[Event]) -> Shape:
    return Shape.of(kind)


def _decoded(line: bytes) -> Any:
    """`json.loads`, without its search for the encoding where the line looks like the lab's own."""
    if not line.startswith(b'{"'):
        return json.loads(line)
    text = line.decode("utf-8", "surrogatepass")
    data, end = _DECODER.raw_decode(text)
    return data if text[end:] == "\n" else json.loads(text)


@cache
def _typed(kinds: int) -> TypedLines[Record]:  # noqa: ARG001 - a package may add kinds, and the reader is made anew
    return TypedLines(_ENVELOPE, "event", Event.kinds, once=_OFTEN)


def parse_line(line: bytes) -> Record | None:
    """The record of a line. None if the line is cut or foreign, if its kind is unknown, or if a field is not of its
    type or out of its range (`events`). A reader of records need not check any of that again."""
    found = _typed(len(Event.kinds)).read(line)
    return _parsed(line) if found is None else found


def records_of(path: Path, packs: Packs, *, cut: Callable[[int], None]) -> Iterator[list[Record]]:
    """The records of a log, in lists. `cut` is called with the number of each line that cannot be read. `packs`: as in
    `lines_of`.

    Most stand for a record and are none: structs with the attributes of the record and of its event. Their `event` is
    the struct itself. `whole` makes the record. Raises OSError: the file cannot be read. Incomplete: as `lines_of`.
    """
    with opened(path) as file:
        yield from _records_in(file, partial(packs.open, path.parent), cut, count(1))


def _records_in(
    file: BinaryIO, pack: Callable[[bytes], BinaryIO] | None, cut: Callable[[int], None], numbers: Iterator[int]
) -> Iterator[list[Record]]:
    """The records of a file. `pack`: opens a pack by its line; None in a pack, which has none. `numbers`: those of the
    lines."""
    while True:
        begin = file.tell()
        lines = file.read(CHUNK)
        lines += file.readline(LINE_MAX)
        found = None if pack and PACK in lines else _structs(lines)
        if found is not None:
            deque(islice(numbers, len(found)), maxlen=0)
            yield found
            continue
        end = begin + len(lines)
        records: list[Record] = []
        file.seek(begin)
        for line in _lines_in(file):
            if pack and line.startswith(PACK):
                yield records
                records = []
                yield from _records_in(pack(line), None, cut, numbers)
            else:
                number, record = next(numbers), parse_line(line)
                if record is not None:
                    records.append(record)
                elif line.strip():
                    cut(number)
            if file.tell() >= end:
                break
        else:
            return
        yield records


def _structs(lines: bytes) -> list[Any] | None:
    *each, rest = lines.split(b"\n")
    return None if rest or not each else parsed_lines(each)


def parsed_lines(lines: Collection[bytes]) -> list[Any] | None:
    """The structs of whole lines, as `records_of` says; None if any of them has to be read in the general way."""
    return _typed(len(Event.kinds)).structs(lines)


def whole(record: Record) -> Record:
    """The record that a struct stands for."""
    made: Record = record if type(record) is Record else record.whole()  # type: ignore[attr-defined]
    return made


def kind_of(record: Record) -> type[Event]:
    """The kind of the event of a record, or of a struct that stands for one."""
    kind: type[Event] = type(record.event) if type(record) is Record else type(record).of  # type: ignore[attr-defined]
    return kind


def _parsed(line: bytes) -> Record | None:
    """The same for any line, in the general way."""
    try:
        data = _decoded(line)
    except (ValueError, RecursionError):
        return None
    if type(data) is not dict:
        return None
    return record_of(data, brackets=brackets(line))


def record_of(data: dict[str, Any], *, brackets: int) -> Record | None:
    """The record of a line's fields, checked as `parse_line` says. `brackets`: the number of those that open an object
    or a list in the line's text."""
    if type(data.get("kind")) is not str:
        return None
    kind = Event.kinds.get(data["kind"])
    if kind is None or (brackets > DEPTH_MAX and deeper(data, DEPTH_MAX)):
        return None
    for name in _OFTEN:
        if type(data.get(name)) is str:
            data[name] = intern(data[name])
    try:
        record: Record = _ENVELOPE.made(data)
        vars(record)["event"] = _shape(kind).made(data)  # type: ignore[arg-type]  # mypy looks for the hash of an instance
    except ValueError:
        return None
    return record
