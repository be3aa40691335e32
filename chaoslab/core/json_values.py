"""Places of values in any JSON value or Python value like it, and copies with another value at a place. A place is the
path of keys and positions. Nothing is changed in place: a copy shares what did not change. Besides dicts, lists and
tuples, the fields of dataclasses and of pydantic's models are entries."""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

from chaoslab.base.jsonable import BITS_MAX, render_brief

Place = tuple[Any, ...]
DEPTH_MAX = 40
PLACES_MAX = 5000
"""The most places of one value that are looked at."""
SPELT_MAX = 10_000_000
LEAVES = (bool, int, float, str, Decimal, datetime, date, UUID)


def list_entries(value: Any) -> list[tuple[Any, Any]]:
    """The value's entries as (key or position, entry); none if it is no container."""
    if isinstance(value, dict):
        return list(value.items())
    # Of another subclass of tuple nobody knows how one is made of its entries.
    if isinstance(value, list) or type(value) is tuple or hasattr(type(value), "_make"):
        return list(enumerate(value))
    if is_record(value):
        names = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else vars(value)
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return []


def is_record(value: Any) -> bool:
    """True if the value has fields by name."""
    if isinstance(value, dict):
        return True
    return not isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(type(value), "model_copy"))


def is_list(value: Any) -> bool:
    return isinstance(value, list) or type(value) is tuple


def find_places(value: Any, fits: Callable[[Any], bool]) -> list[Place]:
    """The places whose value fits, outermost first along each path, in the order of the document."""
    return list(islice(_iterate_places(value, fits, ()), PLACES_MAX))


def _iterate_places(value: Any, fits: Callable[[Any], bool], path: Place) -> Iterator[Place]:
    if fits(value):
        yield path
    if len(path) < DEPTH_MAX:
        for key, entry in list_entries(value):
            yield from _iterate_places(entry, fits, (*path, key))


def is_leaf(value: Any) -> bool:
    """True for a number, a text with characters, a flag, a moment or an id, which can be another of its type."""
    kind = type(value)
    return kind in LEAVES and value != "" and (kind is not int or value.bit_length() <= BITS_MAX)


def find_leaves(value: Any) -> list[Place]:
    """The places of all leaves."""
    return find_places(value, is_leaf)


def find_lists(value: Any, *, least: int = 1) -> list[Place]:
    """The places of lists with at least so many entries."""
    return find_places(value, lambda entry: is_list(entry) and len(entry) >= least)


def find_records(value: Any) -> list[Place]:
    """The places of records with at least one field."""
    return find_places(value, lambda entry: is_record(entry) and bool(list_entries(entry)))


def get_at(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key] if isinstance(value, dict | list | tuple) else getattr(value, key)
    return value


def replace_at(value: Any, path: Place, new: Any) -> Any:
    """A copy of the value with `new` at the place, which is there."""
    if not path:
        return new
    key, *rest = path
    # a copy of a container with another entry. Of dicts, the entry may be new.
    entry = replace_at(get_at(value, (key,)), tuple(rest), new)
    if isinstance(value, dict | list):
        container: Any = copy.copy(value)
        container[key] = entry
        return container
    if isinstance(value, tuple):
        listed = [*value[:key], entry, *value[key + 1 :]]
        return value._make(listed) if hasattr(value, "_make") else tuple(listed)
    if hasattr(type(value), "model_copy"):
        return value.model_copy(update={key: entry})
    # Not dataclasses.replace, which would run the class's own __init__ and its checks.
    container = copy.copy(value)
    object.__setattr__(container, key, entry)  # a frozen one too
    return container


def build_sequence_like(value: Any, listed: Sequence[Any]) -> Any:
    """A list or a tuple of these entries, as the value is one."""
    return tuple(listed) if type(value) is tuple else list(listed)


def group_by_column(value: Any, among: Sequence[Place]) -> list[list[Place]]:
    """The places, those together that differ only in positions: one column of a list of records each."""
    groups: dict[Place, list[Place]] = {}
    for path in among:
        groups.setdefault(_make_column_path(value, path), []).append(path)
    return list(groups.values())


def _make_column_path(value: Any, path: Place) -> Place:
    column: list[Any] = []
    for key in path:
        column.append(None if is_list(value) else key)
        value = get_at(value, (key,))
    return tuple(column)


def update_stated_length(value: Any, path: Place, length: int) -> Any:
    """A copy in which the whole numbers that state the length of the list at the place state another one. They stand
    beside the list or further out."""
    was = len(get_at(value, path))
    for depth in range(len(path)):
        around = path[:depth]
        if is_record(get_at(value, around)):
            for key, entry in list_entries(get_at(value, around)):
                if type(entry) is int and entry == was:
                    value = replace_at(value, (*around, key), length)
    return value


def parse_container(text: str) -> Any:
    """The object or list that a text is in JSON; None for any other text."""
    try:
        # A text such as "17" or "true" is JSON too, but means itself.
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def measure_json_size(value: Any) -> int:
    """The bytes of a value as JSON; an estimate for one that is none."""
    return len(_dump_json(value, ascii_only=False).encode("utf-8", "replace"))


def dump_canonical(value: Any) -> str:
    """The value as text: equal for equal values of equal types."""
    return _dump_json(value, ascii_only=True)


def _dump_json(value: Any, *, ascii_only: bool) -> str:
    try:
        return json.dumps(value, ensure_ascii=ascii_only, default=_encode_unknown_value)
    except (ValueError, TypeError, RecursionError):  # it holds itself, or keys of other types
        return render_brief(value, SPELT_MAX)


def _encode_unknown_value(value: Any) -> Any:
    if type(value) in LEAVES:
        return f"{type(value).__name__} {value}"
    if is_record(value):
        return {str(key): entry for key, entry in list_entries(value)}
    return render_brief(value, SPELT_MAX)
