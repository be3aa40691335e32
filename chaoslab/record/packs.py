"""Packs: the lines of a long run's log in compressed files, each of whole trials, beside the log.

In the log one line stands for each pack. It names the file, the numbers of its lines and the trials in it, so it is
the index too. A reader puts the lines of the pack in its place (`lines.lines_of`), which makes those of a log without
packs.
"""

import io
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from chaoslab.base import extras
from chaoslab.base.files import opened
from chaoslab.base.jsonable import line as in_one_line
from chaoslab.base.shapes import Shape
from chaoslab.core.events import Count

PACK = b'{"pack": "'
"""The beginning of a line that stands for a pack."""
BYTES_MAX = 1 << 30
"""The most bytes that the lines of one pack may have: a small file must not fill the memory."""
_BLOCK, _NAMED = 1 << 20, 80
_FILE = re.compile(r"[A-Za-z0-9_-]+\.\d{6,}\.log\.zst", re.ASCII)
_KEY = re.compile(r"(p\d+)\.r(\d+)", re.ASCII)


@dataclass(frozen=True)
class Pack:
    """The line of a pack. `pack`: its file. `run`: the run's name. `first`, `last`: the numbers of its lines. `trials`:
    the lowest and the highest number of the trials in it, by prompt, as in {"p1": [1, 900]}."""

    pack: str
    run: str
    first: Count
    last: Count
    trials: dict[str, list[Count]]

    def has(self, trial: str) -> bool:
        """Tells if the trial of this key can be in it."""
        prompt, number = place_of(trial)
        least, *_, most = self.trials.get(prompt) or (1, 0)
        return least <= number <= most


_PACK = Shape.of(Pack)


def place_of(trial: str) -> tuple[str, int]:
    """The prompt and the number of a trial by its key; a key that is none has the number 0."""
    match = _KEY.fullmatch(trial)
    return (match[1], int(match[2])) if match else ("", 0)


@dataclass
class Packs:
    """Opens the packs of one reading of a run. `wanted`: only those with these trials; None is all. `damaged`: a line
    for each that is not whole. `left_out`: the numbers of the first and the last line of those that were not read."""

    wanted: Collection[str] | None = None
    damaged: list[str] = field(default_factory=list)
    left_out: list[tuple[int, int]] = field(default_factory=list)

    def open(self, folder: Path, line: bytes) -> BinaryIO:
        """The lines of the pack for which a line stands, as a file; as far as they can be read. Raises Incomplete: the
        package that reads them is not installed. OSError: the file cannot be read."""
        try:
            pack: Pack = _PACK.made(json.loads(line))
            if not _FILE.fullmatch(pack.pack) or not 0 < pack.first <= pack.last:
                raise ValueError
        except (ValueError, RecursionError):
            self.damaged.append(f"a pack of {in_one_line(folder.name, _NAMED)} is not named by its line")
            return io.BytesIO()
        lines = self.take(folder, pack)
        if lines is None:
            self.left_out.append((pack.first, pack.last))
        return lines or io.BytesIO()

    def take(self, folder: Path, pack: Pack) -> BinaryIO | None:
        """The lines of a pack, as far as they can be read; None if they are to be left out. Raises Incomplete, OSError:
        as `open`."""
        if self.wanted is not None and not any(map(pack.has, self.wanted)):
            return None
        found, why = _lines_of(folder / pack.pack, pack)
        if why:
            self.damaged.append(f"{pack.pack} {why}")
        return io.BytesIO(found)

    def expanded(self, folder: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, and those of packs in the place of the lines that stand for them. Raises Incomplete, OSError: as
        `open`."""
        for line in lines:
            if line.startswith(PACK):
                yield from self.open(folder, line)
            else:
                yield line

    def spared(self, first: int, last: int) -> bool:
        """True if all of these lines were left out."""
        merged: list[tuple[int, int]] = []
        for begin, end in self.left_out:
            if merged and merged[-1][1] + 1 == begin:
                begin = merged.pop()[0]
            merged.append((begin, end))
        return any(begin <= first and last <= end for begin, end in merged)


def _lines_of(path: Path, pack: Pack) -> tuple[bytes, str]:
    """The lines of a pack, as far as they can be read, and the reason why some cannot."""
    extras.check(f"reading {path.name}", "zstd")
    import zstandard

    found, broken = bytearray(), False
    try:
        with opened(path) as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader:
            while len(found) <= BYTES_MAX and (block := reader.read(_BLOCK)):
                found += block
    except FileNotFoundError:
        return b"", "is not there: its trials are lost, unless it is put back"
    except zstandard.ZstdError:
        broken = True
    lines = bytes(found[: found.rfind(b"\n") + 1])
    of = _run_in(lines)
    if lines and of != pack.run:
        other = in_one_line(of, _NAMED) or "none"
        return (
            b"",
            f"is of another run ({other}), and was to be of {in_one_line(pack.run, _NAMED)}: put the right one back",
        )
    count, wanted = lines.count(b"\n"), pack.last - pack.first + 1
    if broken or count != wanted:
        return lines, f"is cut or damaged: {count} of its {wanted} lines can be read"
    return lines, ""


def _run_in(lines: bytes) -> str:
    """The run of the first line; empty if it tells none."""
    try:
        return str(json.loads(lines[: lines.find(b"\n")])["run"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def names(stem: str) -> Iterator[str]:
    """The names of a log's packs, in order."""
    number = 0
    while True:
        number += 1
        yield f"{stem}.{number:06}.log.zst"
