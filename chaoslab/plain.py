"""Any Python value as JSON can tell it, the same in every process: no addresses, no order of sets."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

ATOMS = frozenset({str, int, bool, type(None)})
"""Types whose values are JSON as they are and never change."""
UNCHANGING = ATOMS | {float}
"""Types whose values may be told later."""
DEPTH_MAX = 12
BITS_MAX = 4000
"""Of an integer that is spelt out in a brief text; Python itself refuses to spell much longer ones."""
_JOINERS = "\u200c\u200d"
"""No sign of their own, and part of how Persian words and some emoji are written."""


def plain(value: Any, *, depth: int = 0) -> Any:
    """JSON types alone; what has no content that could be told is its type's name."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= DEPTH_MAX:
        return "…"
    if isinstance(value, Enum):
        return plain(value.value, depth=depth + 1)
    if isinstance(value, str | int):  # a subclass
        return str(value) if isinstance(value, str) else int(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), depth=depth + 1) for f in dataclasses.fields(value)}
    if hasattr(kind, "model_dump"):  # pydantic's
        return plain(value.model_dump(), depth=depth + 1)
    if isinstance(value, Mapping):
        return {str(plain(key, depth=depth + 1)): plain(held, depth=depth + 1) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held, depth=depth + 1) for held in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(held, depth=depth + 1) for held in value), key=repr)
    if isinstance(value, date | time | timedelta | Decimal | PurePath | UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return f"a {kind.__module__}.{kind.__qualname__}"


def named(error: BaseException) -> str:
    """An error in words, whatever its own code makes of them."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001
        return type(error).__name__


def line(text: str, most: int) -> str:
    """The start of the text as one line of at most so many characters, without any that would steer a terminal."""
    head = text[: 4 * most]
    flat = _printable(" ".join(head.split()))
    return flat if len(flat) <= most and len(head) == len(text) else flat[: most - 1] + "…"


def brief(value: Any, most: int) -> str:
    """The start of the value as JSON in one line of at most so many characters. Only what is told is looked at, and none of the value's
    own code is run: it may be of any size, and belong to somebody who goes on with it."""
    pieces, left = [], most
    for piece in _pieces(value, most, 0):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            break
    return cut("".join(pieces), most)


def cut(text: str, most: int) -> str:
    """The start of a line as at most so many characters that no terminal takes for a command."""
    return _printable(text if len(text) <= most else text[: most - 1] + "…")


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c in _JOINERS else "?" for c in text)


def _pieces(value: Any, most: int, depth: int) -> Iterator[str]:
    kind = type(value)
    if value is None or kind is bool:
        yield _quoted(value)
    elif issubclass(kind, Enum):
        yield from _pieces(value.value, most, depth + 1)
    elif issubclass(kind, str):
        yield _quoted(str.__getitem__(value, slice(most)))
    elif issubclass(kind, int):
        bits = int.bit_length(value)
        yield int.__repr__(value) if bits <= BITS_MAX else _quoted(f"an integer of {bits} bits")
    elif issubclass(kind, float):
        yield float.__repr__(value) if math.isfinite(value) else _quoted(float.__repr__(value))
    elif issubclass(kind, bytes | bytearray):
        yield _quoted(bytes(value[:most]).decode("utf-8", "backslashreplace"))
    elif issubclass(kind, date | time | timedelta | Decimal | PurePath | UUID):
        yield _quoted(str(value)[:most])
    else:
        yield from _pieces_of_many(value, kind, most, depth)


def _pieces_of_many(value: Any, kind: type, most: int, depth: int) -> Iterator[str]:
    """Of what holds other values."""
    if depth >= DEPTH_MAX:
        yield "…"
    elif issubclass(kind, dict):
        # Taken at once: another thread of the agent's may change it meanwhile.
        yield from _pieces_of_entries(list(islice(dict.items(value), most)), most, depth)
    elif issubclass(kind, list | tuple):
        yield "["
        for number, held in enumerate((list if issubclass(kind, list) else tuple).__getitem__(value, slice(most))):
            yield ", " if number else ""
            yield from _pieces(held, most, depth + 1)
        yield "]"
    elif issubclass(kind, set | frozenset):
        told = sorted(brief(held, most) for held in tuple(value)) if len(value) <= most else ["…"]
        yield f"[{', '.join(told)}]"
    elif dataclasses.is_dataclass(kind):
        names = [f.name for f in dataclasses.fields(kind)]
        yield from _pieces_of_entries([(name, getattr(value, name, None)) for name in names], most, depth)
    elif hasattr(kind, "model_fields"):  # pydantic's
        yield from _pieces_of_entries(list(vars(value).items()), most, depth)
    else:
        yield _quoted(f"a {kind.__module__}.{kind.__qualname__}")


def _pieces_of_entries(entries: Iterable[tuple[Any, Any]], most: int, depth: int) -> Iterator[str]:
    yield "{"
    for number, (key, held) in enumerate(entries):
        yield ", " if number else ""
        yield _quoted(str.__getitem__(key, slice(most)) if isinstance(key, str) else brief(key, most))
        yield ": "
        yield from _pieces(held, most, depth + 1)
    yield "}"


_quoted = json.JSONEncoder(ensure_ascii=False).encode
