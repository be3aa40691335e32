"""Parses and checks most lines of a log in one step, which takes less time than the general way (`lines.parse_line`).

For each kind of event msgspec has a struct with the fields of a line, their types and bounds (`base/shapes.py`). It
takes no line that the general way refuses. A line that it does not take, such as one with a lone surrogate or a field
of a later lab, is read in the general way.
"""

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

import msgspec

from chaoslab.base.shapes import DEPTH_MAX, Shape, allows_any_type, build_struct

R = TypeVar("R")
_FLAT = 2 * DEPTH_MAX
"""A line of so many bytes nests no values too deep. Nor does a longer one whose struct has no field for values of any
type."""


class TypedLines(Generic[R]):
    """A reader of lines. `envelope`: the shape of a record without the event in its field `held`. `kinds`: the classes
    of the events by the name of their kind. Texts in the fields `once` are kept once."""

    def __init__(self, envelope: Shape, event_field: str, kinds: Mapping[str, type], *, once: Collection[str]) -> None:
        self._held, self._record = event_field, envelope.build_struct_maker(once)
        self._event: dict[type, Callable[[Any], Any]] = {}
        self._free: set[type] = set()
        for name, kind in kinds.items():
            inner = Shape.build(kind)
            # `trial` is in both, and required
            rows = {**envelope.collect_fields(), **inner.collect_fields(), **envelope.collect_fields()}
            of_line = build_struct(
                kind.__name__, rows.values(), [*envelope.collect_checks(), *inner.collect_checks()],
                tag_field="kind", tag=name, forbid_unknown_fields=True,
            )  # fmt: skip  # a field that it skips may hold anything but UTF-8
            self._event[of_line] = inner.build_struct_maker(once)
            if any(map(allows_any_type, inner.iterate_annotations())):
                self._free.add(of_line)
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, self._event))
        self._decode: Callable[[bytes], Any] = decoder.decode

    def parse_line(self, line: bytes) -> R | None:
        """The record of a line; None if it has to be read in the general way."""
        try:
            parsed = self._decode(line)
        except (ValueError, RecursionError):
            return None
        kind = type(parsed)
        if len(line) > _FLAT and kind in self._free and count_brackets(line) > DEPTH_MAX:
            return None
        record: Any = self._record(parsed)
        record.__dict__[self._held] = self._event[kind](parsed)
        typed_record: R = record
        return typed_record


def count_brackets(line: bytes) -> int:
    """The number of brackets that open an object or a list in a line; its values are not nested deeper."""
    return line.count(b"[") + line.count(b"{")
