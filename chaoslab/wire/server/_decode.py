"""Reads request bodies as Go's decoder does: keys in any case, null is absent, unknown keys and trailing text ignored.
Fields are read in the order of the body. The first value of a wrong type is refused once all of them were read."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

from chaoslab.wire.server._spelling import ApiError, float32
from chaoslab.wire.toxics import Toxic

INT64 = range(-(2**63), 2**63)
TOO_DEEP = "invalid character '[' exceeded max depth"
DEPTH_MAX = 500  # Python's decoder is recursive
INTEGER = re.compile(r"-?[0-9]{1,19}")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object's pairs, in their order and with repeated keys."""

    __slots__ = ()


KINDS: Mapping[type, str] = {str: "string", bool: "bool", list: "array", Pairs: "object", Number: "number"}


class TypeMismatch(Exception):
    """A value is not of its field's type in Go. `path` is the field's, once it is known."""

    def __init__(self, value: Any, go_type: str, *, spelled: bool = False) -> None:
        super().__init__(go_type)
        kind = KINDS[type(value)]
        self.path: str | None = None
        self._shown = f"{kind} {value}" if spelled and kind == "number" else kind
        self._go_type = go_type

    def __str__(self) -> str:
        place = "value" if self.path is None else f"struct field {self.path}"
        return f"json: cannot unmarshal {self._shown} into Go {place} of type {self._go_type}"


@dataclass(frozen=True)
class Field:
    """One field of a struct: its path in Go's words, and a reader of its value (None: leave the field as it is)."""

    path: str
    read: Callable[[Any], Any]


def bad_body(reason: str) -> ApiError:
    return ApiError(400, f"bad request body: {reason}")


def read_json(body: bytes) -> Any:
    """The first JSON value of a body. Bytes that are no UTF-8 become lone surrogates. Raises ApiError: 400."""
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and depth(body) > DEPTH_MAX:
        raise bad_body(TOO_DEEP)
    text = body.decode("utf-8", errors="surrogateescape").lstrip(" \t\r\n")
    try:
        value, end = DECODER.raw_decode(text)
    except RecursionError:
        raise bad_body(TOO_DEEP) from None
    except ValueError as error:
        raise bad_body(f"no JSON: {error}" if text else "EOF") from None
    if isinstance(value, Number) and text.startswith((".", "e", "E"), end):  # of `1.x` Python reads the 1
        raise bad_body(f"no JSON: the number {value} breaks off")
    return value


def depth(body: bytes) -> int:
    """The most brackets that are open at once."""
    bare = STRING.sub(b"", body)
    return max(accumulate((1 if byte in b"[{" else -1 for byte in bare if byte in b"[]{}"), initial=0))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def read_object(value: Any, go_type: str, wanted: Mapping[str, Field]) -> dict[str, Any]:
    """The fields of a value that must be an object. null is an empty one. Raises ApiError: 400."""
    wrong: list[TypeMismatch] = []
    found = _object(value, go_type, wanted, wrong)
    _raise_first(wrong)
    return found


def read_objects(values: Any, go_type: str, wanted: Mapping[str, Field]) -> list[dict[str, Any]]:
    """The fields of each object of a value that must be an array of objects. Raises ApiError: 400."""
    wrong: list[TypeMismatch] = []
    if values is not None and type(values) is not list:
        wrong.append(TypeMismatch(values, f"[]{go_type}"))
    found = [_object(value, go_type, wanted, wrong) for value in ([] if wrong else values or [])]
    _raise_first(wrong)
    return found


def _raise_first(wrong: Sequence[TypeMismatch]) -> None:
    if wrong:
        raise bad_body(str(wrong[0]))


def _object(value: Any, go_type: str, wanted: Mapping[str, Field], wrong: list[TypeMismatch]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(value, Pairs):
        for key, item in value:
            name = key.lower().replace("ſ", "s")
            if name in wanted:
                _read(item, name, wanted[name], found, wrong)
    elif value is not None:
        wrong.append(TypeMismatch(value, go_type))
    return found


def _read(value: Any, name: str, field: Field, found: dict[str, Any], wrong: list[TypeMismatch]) -> None:
    try:
        read = field.read(value)
    except TypeMismatch as error:
        error.path = error.path or field.path
        wrong.append(error)
    else:
        if read is not None:
            found[name] = read


def text(value: Any) -> str | None:
    if value is None:
        return None
    if type(value) is not str:
        raise TypeMismatch(value, "string")
    return SURROGATE.sub("\ufffd", value)


def flag(value: Any) -> bool | None:
    if value is not None and type(value) is not bool:
        raise TypeMismatch(value, "bool")
    return value


def integer(go_type: str) -> Callable[[Any], int | None]:
    """A reader of whole numbers of 64 bits."""

    def read(value: Any) -> int | None:
        if value is None:
            return None
        if not isinstance(value, Number) or INTEGER.fullmatch(value) is None or int(value) not in INT64:
            raise TypeMismatch(value, go_type, spelled=True)
        return int(value)

    return read


def share(value: Any) -> float | None:
    """Reads a toxicity: any number that fits into a float of 32 bits."""
    if value is None:
        return None
    try:
        if isinstance(value, Number) and math.isfinite(float(value)):
            return float32(float(value))
    except OverflowError:
        pass
    raise TypeMismatch(value, "float32", spelled=True)


def ignored_object(go_type: str) -> Callable[[Any], None]:
    """A reader that only checks that the value is an object."""

    def read(value: Any) -> None:
        if value is not None and not isinstance(value, Pairs):
            raise TypeMismatch(value, go_type)

    return read


class Attributes:
    """A reader of one toxic's attributes. Correct ones are kept even if something else in the body is wrong. After a
    null, attributes that the body names once more are ignored, or, if `missing` names a type, refused as not of that
    type."""

    def __init__(self, go_type: str, toxic: Toxic, *, missing: str | None = None) -> None:
        self._toxic = toxic
        self._given: dict[str, int] = {}
        self._go_type = go_type
        read = integer("int" if go_type == "SlicerToxic" else "int64")
        self._fields = {one.name: Field(f"{go_type}.attributes.{one.name}", read) for one in fields(toxic)}
        self._missing = missing
        self._hooked = True

    def toxic(self) -> Toxic:
        """The toxic with the attributes given in place of its own."""
        return replace(self._toxic, **self._given)

    def __call__(self, value: Any) -> None:
        if value is None:
            self._hooked = False
        elif self._hooked:
            if not isinstance(value, Pairs):
                raise TypeMismatch(value, f"toxics.{self._go_type}")
            wrong: list[TypeMismatch] = []
            self._given.update(_object(value, self._go_type, self._fields, wrong))
            if wrong:
                raise wrong[0]
        elif self._missing is not None:
            raise TypeMismatch(value, self._missing)
