"""Any Python value as JSON, the same in every process: no addresses, no order of sets."""

import dataclasses
import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.json_text import make_json_writer, quoted

ATOMS = frozenset({str, bool, type(None)})
"""Types whose values are JSON as they are and never change."""
UNCHANGING = ATOMS | {int, float}
"""Types whose values never change, so they may be encoded later."""
DEPTH_MAX = 12
SHOWN = 60
"""The characters of a wrong value that a message shows."""
BITS_MAX = 14_000
"""The most bits of a whole number: fewer digits than Python turns into text (4300)."""
LOOKED_AT = 4
"""Characters of a text that are read for each one of a line, since whitespace is dropped."""
TEXT_MAX = 16 * 1024
"""Characters of a text that a log keeps of a request to a service."""
_WORD_MAX = 4096
_WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/=%"
WIDEST = 4
"""The most bytes of a character in UTF-8."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that are part of Persian words and some emoji."""


def to_jsonable(value: Any, *, depth: int = 0, unread: list[str] | None = None) -> Any:
    """The value in JSON types alone. An object whose class says when two are equal is what it holds, any other one is
    its type's name. `unread`: a list that takes the names of what cannot be read; then each object is what it holds."""
    return _convert(value, depth, unread)


def _convert(value: Any, depth: int, unread: list[str] | None) -> Any:
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is int:
        return (
            value
            if value.bit_length() <= BITS_MAX
            else _add_unread_name(f"whole number of {value.bit_length()} bits", unread)
        )
    if kind is float:
        # JSON has no numbers for NaN and infinity, so these are texts.
        return value if math.isfinite(value) else str(value)
    if depth >= DEPTH_MAX:
        _add_unread_name(f"value that lies deeper than {DEPTH_MAX}", unread)
        return "…"
    if kind is dict:
        return _convert_mapping(value, depth, unread)
    if kind is list:
        return _convert_entries(value, depth, unread)
    try:
        return _convert_other(value, kind, depth, unread)
    except _UnreadError:
        raise
    except BaseException as error:  # noqa: BLE001 - the value's own code
        reraise_unless_foreign(error)
    return _add_unread_name(f"{kind.__module__}.{kind.__qualname__}", unread)


def _convert_mapping(value: Mapping[Any, Any], depth: int, unread: list[str] | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, entry in value.items():
        name = key if type(key) is str else str(_convert(key, depth + 1, unread))
        fields[name] = entry if type(entry) in ATOMS else _convert(entry, depth + 1, unread)
    if len(fields) < len(value):
        _add_unread_name("mapping with keys that are one as texts", unread)
    return fields


def _convert_entries(value: Iterable[Any], depth: int, unread: list[str] | None) -> list[Any]:
    return [entry if type(entry) in ATOMS else _convert(entry, depth + 1, unread) for entry in value]


def _convert_other(value: Any, kind: type, depth: int, unread: list[str] | None) -> Any:
    """The value of any class that is not JSON's own. Raises whatever the value's own code does."""
    if isinstance(value, Enum):
        return _convert(value.value, depth + 1, unread)
    if isinstance(value, str | int):  # a subclass
        return str(value) if isinstance(value, str) else _convert(int(value), depth + 1, unread)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _convert(getattr(value, f.name), depth + 1, unread) for f in dataclasses.fields(value)}
    if hasattr(kind, "model_dump"):  # pydantic's
        return _convert(value.model_dump(), depth + 1, unread)
    if isinstance(value, Mapping):
        return _convert_mapping(value, depth, unread)
    if isinstance(value, list | tuple):
        return _convert_entries(value, depth, unread)
    if isinstance(value, set | frozenset):
        # By their texts: a set's order differs from process to process, and entries of several types have no other
        # order.
        return sorted(_convert_entries(value, depth, unread), key=repr)
    if isinstance(value, _FORMED_AS_TEXT):
        return str(value)
    if isinstance(value, bytes | bytearray):
        # Bytes that are no UTF-8 stay visible as escapes.
        return value.decode("utf-8", "backslashreplace")
    return _convert_object(value, kind, depth, unread)


_FORMED = (str, int, float, Enum, Mapping, list, tuple, set, frozenset, bytes, bytearray, type(None))
_FORMED_AS_TEXT = (date, time, timedelta, Decimal, PurePath, UUID)


def lacks_json_form(value: Any) -> bool:
    """True for an object of a class that JSON has no form for; it may have other parts than those that count."""
    kind = type(value)  # `isinstance` would ask the value for its `__class__`, which is its own code
    of_fields = hasattr(kind, "__dataclass_fields__")
    return not (of_fields or hasattr(kind, "model_dump") or issubclass(kind, _FORMED + _FORMED_AS_TEXT))


_OPAQUE = object()
PARTS_MAX = 10_000
"""The most parts of one object that are read."""
_OPEN = (object, SimpleNamespace)
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: a class in C, whose objects may hold what nobody sees


class _StrictUnreadList(list[str]):
    """The list of what was not read in an object, which is left at the first such part, or if it has too many.
    `every`: also of a class that does not say when two are equal."""

    def __init__(self, *, every: bool) -> None:
        super().__init__()
        self.left, self.every = PARTS_MAX, every

    def append(self, _: str) -> None:
        raise _UnreadError

    def limit_part_count(self, content: Any) -> None:
        self.left -= 1 + (len(content) if isinstance(content, dict | list) else 0)
        if self.left < 0:
            raise _UnreadError


class _UnreadError(Exception):
    """A part of an object cannot be read."""


def _convert_object(value: Any, kind: type, depth: int, unread: list[str] | None) -> Any:
    """The content of an object of any other class, if all of it can be read: what has a lock, a socket or a function in
    it is a tool of the program's own, and no value."""
    strict = unread if isinstance(unread, _StrictUnreadList) else _StrictUnreadList(every=unread is not None)
    try:
        # Without object, whose equality is identity.
        says_equal = any("__eq__" in vars(class_) for class_ in kind.__mro__[:-1])
        content = _read_object_content(value, kind) if strict.every or says_equal else _OPAQUE
        if content is not _OPAQUE:
            strict.limit_part_count(content)
            return _convert(content, depth + 1, strict)
    except BaseException as error:  # noqa: BLE001 - the object's own code, or `_UnreadError`
        reraise_unless_foreign(error)
    return _add_unread_name(f"{kind.__module__}.{kind.__qualname__}", unread)


def _add_unread_name(name: str, unread: list[str] | None) -> str:
    if unread is not None:
        unread.append(f"a {name}")
    return f"a {name}"


def _read_object_content(value: Any, kind: type) -> Any:
    """The content of an object as a value of another class; `_OPAQUE` if it has none that can be seen."""
    for reader in ("tolist", "to_dict"):  # numpy's and array's; of pandas, a table's
        if callable(read := getattr(kind, reader, None)):
            return read(value)
    if callable(getattr(kind, "keys", None)) and hasattr(kind, "__getitem__"):  # a row of a database
        return {name: value[name] for name in value.keys()}  # noqa: SIM118 - it is no mapping
    if isinstance(value, Collection):  # a deque, a view of a dict
        return [*value]
    if callable(value) or any(class_.__flags__ & _IMMUTABLE for class_ in kind.__mro__ if class_ not in _OPEN):
        return _OPAQUE
    names = [name for class_ in kind.__mro__ for name in _list_slots(class_) if hasattr(value, name)]
    return {name: getattr(value, name) for name in names} | getattr(value, "__dict__", {}) or _OPAQUE


def _list_slots(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    return [slot for slot in ([slots] if isinstance(slots, str) else slots) if slot not in ("__dict__", "__weakref__")]


def shorten_texts(value: Any) -> Any:
    """A value in JSON types with its beginning, its length and its SHA-256 in the place of each text that is longer
    than `TEXT_MAX`."""
    if isinstance(value, str) and len(value) > TEXT_MAX:
        head = value[:TEXT_MAX]
        shortened = head[-_WORD_MAX:].rstrip(_WORD)  # half a token could not be told for a secret
        digest = hashlib.sha256()
        for at in range(0, len(value), TEXT_MAX):  # a second copy of a large text costs as much as its digest
            digest.update(value[at : at + TEXT_MAX].encode("utf-8", "surrogatepass"))
        size = f"{len(value)} characters, SHA-256 {digest.hexdigest()}"
        return f"{head[:-_WORD_MAX] + shortened if shortened else head}… ({size})"
    if isinstance(value, dict):
        return {name: shorten_texts(entry) for name, entry in value.items()}
    return [shorten_texts(entry) for entry in value] if isinstance(value, list) else value


def repr_one_line(value: Any) -> str:
    """A wrong value as Python writes it, in one line of at most `SHOWN` characters for a message."""
    try:
        text = _replace_unprintable(" ".join(repr(value).split()))
    except BaseException as error:  # noqa: BLE001 - thousands of digits or brackets, or the value's own code fails
        reraise_unless_foreign(error)
        text = "a value that Python cannot write"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def describe_error(error: BaseException) -> str:
    """An error in words, even if its own code fails. Of a group it is the first error in it that is none."""
    left_out, note = 0, ""
    try:
        while issubclass(type(error), BaseExceptionGroup):  # an error's own `__class__` may raise
            group: Any = error
            left_out += len(group.exceptions) - 1
            error = group.exceptions[0]
        note = f" (and {left_out} more in its group)" if left_out else ""
        cause = error.__cause__ or error.__context__
        if isinstance(cause, BaseExceptionGroup) and cause.message in str(error):  # an SDK's, which repeats the group's
            note = f": {describe_error(cause)}"
        return f"{type(error).__name__}: {error}{note}"
    except BaseException as another:  # noqa: BLE001
        reraise_unless_foreign(another)
        return f"{type(error).__name__}{note}"


def to_one_line(text: str, length_max: int) -> str:
    """The start of the text as one line of at most `length_max` characters, without any that would steer a terminal."""
    head = text[: LOOKED_AT * length_max]
    flat = _replace_unprintable(" ".join(head.split()))
    return flat if len(flat) <= length_max and len(head) == len(text) else flat[: length_max - 1] + "…"


def join_truncated(names: Sequence[str], count_max: int, between: str = ", ") -> str:
    """The first `count_max` names, and how many more there are: "a, b and 3 more"."""
    rest = f" and {len(names) - count_max} more" if len(names) > count_max else ""
    return between.join(names[:count_max]) + rest


def decode_to_one_line(data: bytes, length_max: int) -> str:
    """Does the same as `to_one_line` for text in UTF-8. No more of it is decoded than `to_one_line` reads."""
    return to_one_line(data[: WIDEST * (LOOKED_AT * length_max + 1)].decode("utf-8", "replace"), length_max)


def render_brief(value: Any, length_max: int) -> str:
    """The start of the value as JSON in one line of at most `length_max` characters. Only that much of the value is
    read, and none of its own code is run: it may be of any size, and its owner may go on with it."""
    pieces: list[str] = []
    _append_value(value, pieces, length_max, length_max, 0)
    return cut_text("".join(pieces), length_max)


def cut_text(text: str, length_max: int) -> str:
    """The start of a line: at most `length_max` characters, without any that would steer a terminal."""
    return _replace_unprintable(text if len(text) <= length_max else text[: length_max - 1] + "…")


def _replace_unprintable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c in _JOINERS else "?" for c in text)


def _append_value(value: Any, pieces: list[str], length_max: int, room: int, depth: int) -> int:
    """Adds the value's pieces. Returns the characters left, below 0 if the pieces need more room than there was."""
    kind = type(value)
    if kind is str:
        piece = quoted(value if len(value) <= length_max else value[:length_max])
    elif kind is float:
        piece = float.__repr__(value) if math.isfinite(value) else quoted(float.__repr__(value))
    elif issubclass(kind, str):
        # str's own method here, and those of the other bases below: a subclass may have methods of its own.
        piece = quoted(str.__getitem__(value, slice(length_max)))
    elif value is None or kind is bool:
        piece = _quoted(value)
    elif kind is int:
        piece = (
            int.__repr__(value)
            if value.bit_length() <= BITS_MAX
            else _quoted(f"an integer of {value.bit_length()} bits")
        )
    elif kind is dict:
        # Copied at once: another thread of the agent's may change it meanwhile.
        return _append_entries(list(islice(value.items(), length_max)), pieces, length_max, room, depth)
    elif kind is list or kind is tuple:
        return _append_list(value[:length_max], pieces, length_max, room, depth)
    else:
        return _append_other(value, kind, pieces, length_max, room, depth)
    pieces.append(piece)
    return room - len(piece)


def _append_list(values: Iterable[Any], pieces: list[str], length_max: int, room: int, depth: int) -> int:
    if depth >= DEPTH_MAX:
        return _append_value("…", pieces, length_max, room, depth)
    between = "["
    for entry in values:
        pieces.append(between)
        room = _append_value(entry, pieces, length_max, room - len(between), depth + 1)
        if room < 0:
            return room
        between = ", "
    pieces.append("]" if between != "[" else "[]")
    return room - len(pieces[-1])


def _append_entries(
    entries: Iterable[tuple[Any, Any]], pieces: list[str], length_max: int, room: int, depth: int
) -> int:
    if depth >= DEPTH_MAX:
        return _append_value("…", pieces, length_max, room, depth)
    between = "{"
    for key, entry in entries:
        if type(key) is str and len(key) <= length_max:
            name = quoted(key)
        else:
            name = quoted(
                str.__getitem__(key, slice(length_max)) if isinstance(key, str) else render_brief(key, length_max)
            )
        pieces += (between, name, ": ")
        room = _append_value(entry, pieces, length_max, room - len(between) - len(name) - 2, depth + 1)
        if room < 0:
            return room
        between = ", "
    pieces.append("}" if between != "{" else "{}")
    return room - len(pieces[-1])


def _append_other(value: Any, kind: type, pieces: list[str], length_max: int, room: int, depth: int) -> int:
    """Adds the pieces of a value that is of no JSON type, or of a subclass of one."""
    if issubclass(kind, Enum):
        return _append_value(value.value, pieces, length_max, room, depth + 1)
    if issubclass(kind, int):
        # A plain number of the same value, without a call of the subclass's own methods.
        return _append_value(int.__add__(value, 0), pieces, length_max, room, depth)
    if issubclass(kind, dict):
        return _append_entries(list(islice(dict.items(value), length_max)), pieces, length_max, room, depth)
    if issubclass(kind, list | tuple):
        base = list if issubclass(kind, list) else tuple
        return _append_list(base.__getitem__(value, slice(length_max)), pieces, length_max, room, depth)
    if issubclass(kind, set | frozenset):
        entries = (
            sorted(render_brief(entry, length_max) for entry in tuple(value)) if len(value) <= length_max else ["…"]
        )
        piece = f"[{', '.join(entries)}]"
    elif dataclasses.is_dataclass(kind):
        names = [f.name for f in dataclasses.fields(kind)]
        return _append_entries([(name, getattr(value, name, None)) for name in names], pieces, length_max, room, depth)
    elif hasattr(kind, "model_fields"):  # pydantic's
        # The fields as they are kept, since properties and validators of a model are its own code.
        return _append_entries(list(vars(value).items()), pieces, length_max, room, depth)
    elif issubclass(kind, float):
        piece = float.__repr__(value) if math.isfinite(value) else _quoted(float.__repr__(value))
    elif issubclass(kind, bytes | bytearray):
        piece = _quoted(bytes(value[:length_max]).decode("utf-8", "backslashreplace"))
    elif issubclass(kind, date | time | timedelta | Decimal | PurePath | UUID):
        piece = _quoted(str(value)[:length_max])
    else:
        piece = _quoted(f"a {kind.__module__}.{kind.__qualname__}")
    pieces.append(piece)
    return room - len(piece)


_quoted = make_json_writer()
