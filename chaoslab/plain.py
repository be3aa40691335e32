"""Any Python value as JSON can tell it, the same in every process: no addresses, no order of sets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

ATOMS = frozenset({str, bool, type(None)})
"""Types whose values are JSON as they are and never change."""
UNCHANGING = ATOMS | {int, float}
"""Types whose values may be told later."""
DEPTH_MAX = 12
BITS_MAX = 14_000
"""Of a whole number: fewer digits than Python turns into text (4300)."""


def plain(value: Any, *, depth: int = 0) -> Any:
    """JSON types alone; what has no content that could be told is its type's name."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is int:
        return value if value.bit_length() <= BITS_MAX else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= DEPTH_MAX:
        return "…"
    if isinstance(value, Enum):
        return plain(value.value, depth=depth + 1)
    if isinstance(value, str | int):  # a subclass
        return str(value) if isinstance(value, str) else plain(int(value), depth=depth + 1)
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
