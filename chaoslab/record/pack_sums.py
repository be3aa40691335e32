"""The sums of a pack: a file beside it, with all that the measures take from its trials, so that nobody has to read
their stories for a report.

It names the code that made it and has a digest of the pack. With other code, or another pack, it stands for nothing and
the pack is read. The sums themselves are bytes here (`analysis/measures/sums.py`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

import msgspec

from chaoslab.base import files
from chaoslab.base.files import replacing
from chaoslab.record.packs import BYTES_MAX, Pack, Packs
from chaoslab.record.provenance import PACKAGE, digest_of

LEVEL = 3


class NoSums(Exception):
    """A pack has no sums that stand for it."""


class Block(msgspec.Struct, array_like=True, gc=False):
    """The sums of a number of trials, one after the other in the log. `after_s`: the beginning of each, in seconds
    since the run's. `lines`: the number of lines in the log before each."""

    after_s: list[float]
    lines: list[int]
    sums: bytes


class _Head(msgspec.Struct, gc=False):
    code: str
    pack: str
    """The digest of the pack's bytes."""


_HEAD, _BLOCKS = msgspec.json.Decoder(_Head), msgspec.msgpack.Decoder(list[Block])


@cache
def _code() -> str:
    """The digest of the code that measures. Plug-ins are not in it."""
    return digest_of(PACKAGE)


def _digest(pack: bytes) -> str:
    return hashlib.blake2b(pack, digest_size=16).hexdigest()


def path_of(pack: Path) -> Path:
    """The file of a pack's sums: info.000001.sums.zst of info.000001.log.zst."""
    return pack.with_name(pack.name.replace(".log.", ".sums."))


def has_sums(folder: Path) -> bool:
    """True if some pack of a run in this folder has sums."""
    return next(folder.glob("*.sums.zst"), None) is not None


def write(pack: Path, data: bytes, blocks: Sequence[Block]) -> None:
    """Writes the sums of a pack. `data`: its bytes. Raises OSError: they cannot be written."""
    import zstandard

    head = msgspec.json.encode(_Head(_code(), _digest(data)))
    with replacing(path_of(pack)) as part:
        packed = zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(msgspec.msgpack.encode([*blocks]))
        part.write_bytes(head + b"\n" + packed)


@dataclass
class SummedPacks(Packs):
    """Opens no pack: each has sums that stand for it. `there`: the files of these."""

    there: list[Path] = field(default_factory=list)

    def take(self, folder: Path, pack: Pack) -> BinaryIO | None:
        """Notes the sums of a pack. Raises NoSums: none stand for it."""
        path = folder / pack.pack
        try:
            data, head = files.read(path), files.read(path_of(path)).partition(b"\n")[0]
            found = _HEAD.decode(head)
        except (files.Unreadable, msgspec.DecodeError):
            raise NoSums from None
        if found != _Head(_code(), _digest(data)):
            raise NoSums
        self.there.append(path_of(path))
        return None

    def blocks(self) -> Iterator[Block]:
        """The sums of all packs, in their order. Raises NoSums: some cannot be read."""
        import zstandard

        for path in self.there:
            try:
                packed = files.read(path).partition(b"\n")[2]
                with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
                    yield from _BLOCKS.decode(reader.read(BYTES_MAX))
            except (files.Unreadable, zstandard.ZstdError, msgspec.DecodeError):
                raise NoSums from None
