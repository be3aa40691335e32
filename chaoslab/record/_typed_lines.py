"""Parses and checks most lines of a log in one step, which takes less time than the general way (`lines.parse_line`).

For each kind of event msgspec has a struct with the fields of a line, their types and bounds. It takes no line that the
general way refuses. A line that it does not take, such as one with a lone surrogate, is read in the general way.

A struct has the attributes of the record and of its event. Where a line is looked at and not kept, it can stand for
both: to make them of it takes five times as long as to parse it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import reduce
from operator import attrgetter, or_
from sys import intern
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from chaoslab.base.shapes import DEPTH_MAX, Check, Within, allowed

R = TypeVar("R")
WHOLE = Within(-(2**63), 2**63 - 1)
"""The whole numbers that msgspec can bound."""
_FLAT = 2 * DEPTH_MAX
"""A line of so many bytes nests no values too deep. Nor does a longer one whose struct has no field for values of any
type (`free`)."""
FINITE = Within(-1e300, 1e300)


class TypedLines(Generic[R]):
    """A reader of lines. `envelope`: the class of a record, whose field `held` is the event. `kinds`: the classes of
    the events by the name of their kind. All are dataclasses that `Shape` takes. Texts in the fields `once` are kept
    once."""

    def __init__(self, envelope: type[R], held: str, kinds: Mapping[str, type], *, once: Collection[str]) -> None:
        self._make: dict[type, Callable[[Any], R]] = {}
        outer = _Class.of(envelope, without=held)
        for name, kind in kinds.items():
            inner = _Class.of(kind)
            rows = {**outer.rows(), **inner.rows(), **outer.rows()}.values()  # `trial` is in both, and required
            make, free = _maker(outer, held, inner, once), any(free_in(hint) for _, hint in inner.every())
            parts = {part: property(of.maker(once)) for part, of in inner.inner.items()}
            more = {**inner.methods(), held: property(_itself), "of": kind, "whole": make, "free": free, **parts}
            if checks := [*outer.checks(), *inner.checks()]:
                more["__post_init__"] = _checker(checks)
            struct = msgspec.defstruct(
                kind.__name__, list(rows), kw_only=True, tag_field="kind", tag=name, gc=False,
                forbid_unknown_fields=True, namespace=more,
            )  # fmt: skip  # a field that it skips may hold anything but UTF-8
            self._make[struct] = make
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


@dataclass(frozen=True)
class _Class:
    """A dataclass with the types of its fields. `inner`: its fields that are dataclasses; in a line their fields stand
    beside the others."""

    kind: type
    own: Mapping[str, tuple[Field[Any], Any]]
    inner: Mapping[str, _Class]

    @classmethod
    def of(cls, kind: type, *, without: str = "") -> _Class:
        hints = get_type_hints(kind, include_extras=True)
        inner = {f.name: cls.of(hints[f.name]) for f in fields(kind) if is_dataclass(hints[f.name])}
        rest = (f for f in fields(kind) if f.name not in inner and f.name != without)
        return cls(kind, {f.name: (f, hints[f.name]) for f in rest}, inner)

    def rows(self) -> dict[str, tuple[Any, ...]]:
        """The fields of a line, each with its name, its type and its default if it has one."""
        found: dict[str, tuple[Any, ...]] = {}
        for inner in self.inner.values():
            found |= inner.rows()
        for name, (of, hint) in self.own.items():
            default: tuple[Any, ...] = ()
            if of.default_factory is not MISSING:
                default = (msgspec.field(default_factory=of.default_factory),)
            elif of.default is not MISSING:
                default = (of.default,)
            found[name] = (name, typed(hint), *default)
        return found

    def every(self) -> Iterator[tuple[str, Any]]:
        """The fields of a line, each with its annotation."""
        for inner in self.inner.values():
            yield from inner.every()
        yield from ((name, hint) for name, (_, hint) in self.own.items())

    def methods(self) -> dict[str, Any]:
        """Its own methods and constants, which the struct has too."""
        apart = {"kind", *self.own, *self.inner}  # a field's default stands there too
        return {n: value for n, value in vars(self.kind).items() if not n.startswith("_") and n not in apart}

    def checks(self) -> list[tuple[str, Check]]:
        """The checks that msgspec does not know, by the field's name. It has checked types and bounds before."""
        own = [(name, allowed(hint).check) for name, (_, hint) in self.own.items() if further(hint)]
        inner = [check for inner in self.inner.values() for check in inner.checks()]
        return [(name, check) for name, check in own if check is not None] + inner

    def maker(self, once: Collection[str]) -> Callable[[Any], Any]:
        """A function that makes an instance of a struct with its fields."""
        new, kind, names = object.__new__, self.kind, tuple(self.own)
        values: Callable[[Any], tuple[Any, ...]] = attrgetter("__class__", *names, "__class__")  # a tuple, however few
        inner = [(name, of.maker(once)) for name, of in self.inner.items()]
        kept = [name for name in names if name in once]

        def make(struct: Any) -> Any:
            made: Any = new(kind)
            held = made.__dict__  # filled in one by one, it shares its keys with those of all other instances
            for name, of in inner:
                held[name] = of(struct)
            held.update(zip(names, values(struct)[1:-1], strict=True))
            for name in kept:
                text = held[name]
                if text is not None:
                    held[name] = intern(text)
            return made

        return make


def _checker(checks: Sequence[tuple[str, Check]]) -> Callable[[Any], None]:
    if len(checks) == 1:
        (only, holds), value = checks[0], attrgetter(checks[0][0])

        def check_one(struct: Any) -> None:
            if not holds(value(struct)):
                raise ValueError(only)

        return check_one

    def check(struct: Any) -> None:
        for name, fits in checks:
            if not fits(getattr(struct, name)):
                raise ValueError(name)

    return check


def _itself(struct: Any) -> Any:
    return struct


def _maker(outer: _Class, held: str, inner: _Class, once: Collection[str]) -> Callable[[Any], Any]:
    """A function that makes a record and its event of a struct."""
    record_of, event_of = outer.maker(once), inner.maker(once)

    def make(struct: Any) -> Any:
        record = record_of(struct)
        record.__dict__[held] = event_of(struct)
        return record

    return make


def typed(hint: Any) -> Any:
    """The annotation as msgspec takes it: what it allows is allowed by `Shape`, but for `further` checks."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = next((one for one in inner[1:] if isinstance(one, Within)), None)
        return _number(inner[0], bounds) if bounds else typed(inner[0])
    if hint in (int, float):
        return _number(hint, WHOLE if hint is int else FINITE)
    if origin in (list, dict):
        return origin[tuple(map(typed, inner))]
    return reduce(or_, map(typed, inner)) if inner else hint


def _number(kind: Any, bounds: Within) -> Any:
    """A number within bounds. A float may stand without a point, and stays a whole number then."""
    low, high = max(bounds.low, WHOLE.low), min(bounds.high, WHOLE.high)
    whole = Annotated[int, msgspec.Meta(ge=int(low), le=int(high))]
    return whole if kind is int else whole | Annotated[float, msgspec.Meta(ge=bounds.low, le=bounds.high)]


def further(hint: Any) -> bool:
    """True if the annotation has a check that msgspec does not know."""
    checks = [one for one in get_args(hint)[1:] if not isinstance(one, Within)] if get_origin(hint) is Annotated else []
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return bool(checks) or any(map(further, inner))


def free_in(hint: Any) -> bool:
    """True if the annotation allows values of any type somewhere, so of any depth."""
    return hint is Any or any(map(free_in, get_args(hint)))


def brackets(line: bytes) -> int:
    """The number of brackets that open an object or a list in a line; its values are not nested deeper."""
    return line.count(b"[") + line.count(b"{")
