"""Parses and checks most lines of a log in one step, which takes less time than the general way (`lines.parse_line`).

For each kind of event msgspec has a struct with the fields of a line, their types and bounds (`base/shapes.py`). It
takes no line that the general way refuses. A line that it does not take, such as one with a lone surrogate or a field
of a later lab, is read in the general way.

A struct has the attributes of the record and of its event. Where a line is looked at and not kept, it can stand for
both: to make them of it takes five times as long as to parse it.
"""

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

import msgspec

from chaoslab.base.shapes import DEPTH_MAX, Shape, free_in, struct

R = TypeVar("R")
_FLAT = 2 * DEPTH_MAX
"""A line of so many bytes nests no values too deep. Nor does a longer one whose struct has no field for values of any
type (`free`)."""


class TypedLines(Generic[R]):
    """A reader of lines. `envelope`: the shape of a record without the event in its field `held`. `kinds`: the classes
    of the events by the name of their kind. Texts in the fields `once` are kept once."""

    def __init__(self, envelope: Shape, held: str, kinds: Mapping[str, type], *, once: Collection[str]) -> None:
        self._make: dict[type, Callable[[Any], R]] = {}
        for name, kind in kinds.items():
            inner = Shape.of(kind)
            rows = {**envelope.rows(), **inner.rows(), **envelope.rows()}  # `trial` is in both, and required
            made = _struct(envelope, held, inner, once)
            of_line = struct(
                kind.__name__, rows.values(), [*envelope.checks(), *inner.checks()],
                tag_field="kind", tag=name, forbid_unknown_fields=True, namespace=made,
            )  # fmt: skip  # a field that it skips may hold anything but UTF-8
            self._make[of_line] = made["whole"]
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, self._make))
        self._decode: Callable[[bytes], Any] = decoder.decode

    def read(self, line: bytes) -> R | None:
        """The record of a line; None if it has to be read in the general way."""
        try:
            found = self._decode(line)
        except (ValueError, RecursionError):
            return None
        if len(line) > _FLAT and found.free and brackets(line) > DEPTH_MAX:
            return None
        return self._make[type(found)](found)

    def structs(self, lines: Collection[bytes]) -> list[Any] | None:
        """The struct of each line; None if any of them has to be read in the general way. `of` is the kind of a
        struct's event, and `whole()` makes the record."""
        try:
            found = list(map(self._decode, lines))
        except (ValueError, RecursionError):
            return None
        free = [line for line, one in zip(lines, found, strict=True) if len(line) > _FLAT and one.free]
        return None if any(brackets(line) > DEPTH_MAX for line in free) else found


def _struct(outer: Shape, held: str, inner: Shape, once: Collection[str]) -> dict[str, Any]:
    """The attributes of a struct beside its fields: those of the event's class, its parts, and what makes a record."""
    record_of, event_of = outer.maker(once), inner.maker(once)

    def whole(line: Any) -> Any:
        record = record_of(line)
        record.__dict__[held] = event_of(line)
        return record

    apart = {"kind", *inner.own, *inner.inner}  # a field's default stands there too
    own = {name: each for name, each in vars(inner.kind).items() if not name.startswith("_") and name not in apart}
    parts = {part: property(of.maker(once)) for part, of in inner.inner.items()}
    free = any(map(free_in, inner.annotations()))
    return {**own, held: property(lambda line: line), "of": inner.kind, "whole": whole, "free": free, **parts}


def brackets(line: bytes) -> int:
    """The number of brackets that open an object or a list in a line; its values are not nested deeper."""
    return line.count(b"[") + line.count(b"{")
