"""Checks values from JSON against a class's annotations: type, range and form of each field, compiled once a class.

An annotation is made of the types of JSON (`str`, `int`, `float`, `bool`, `None`, `list[…]`, `dict[str, …]`, `Any`) and
of unions of them. `Annotated[type, Within(low, high)]` bounds a number; any other function there tells if a value of
that type is allowed. A number is always finite, and a whole number has at most 20 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

DEPTH_MAX = 200
"""The most levels of lists and objects within each other: fewer than any reader's recursion can follow."""
Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Within:
    """Bounds of a number. NaN is within none."""

    low: float
    high: float


@dataclass(frozen=True)
class Like:
    """A check that an object has the keys and types of a TypedDict. `empty`: an object without any key passes too."""

    keys: type
    empty: bool = False

    def __call__(self, value: Any) -> bool:
        return (self.empty and not value) or self._shape.fits(value)

    @cached_property
    def _shape(self) -> Shape:
        return Shape.of(self.keys)


def is_moment(value: str) -> bool:
    """A check that a text is a moment in ISO 8601."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


class Allowed(NamedTuple):
    """The values that an annotation allows: types, bounds of numbers, and a further check."""

    types: frozenset[type]
    bounds: Within | None = None
    check: Check | None = None

    def holds(self, value: Any) -> bool:
        return (
            type(value) in self.types
            and (self.bounds is None or value is None or self.bounds.low <= value <= self.bounds.high)
            and (self.check is None or self.check(value))
        )


_NUMBERS: frozenset[type] = frozenset({int, float})
_ALL: frozenset[type] = _NUMBERS | {str, bool, NoneType, list, dict}
_PLAIN: dict[Any, Allowed] = {
    Any: Allowed(_ALL),
    str: Allowed(frozenset({str})),
    bool: Allowed(frozenset({bool})),
    NoneType: Allowed(frozenset({NoneType})),
    int: Allowed(frozenset({int}), Within(-(2**64), 2**64)),
    float: Allowed(_NUMBERS, Within(-1e300, 1e300)),
}


def allowed(annotation: Any) -> Allowed:
    """An annotation, compiled. Raises TypeError: it is of no type that JSON has."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        within = allowed(inner[0])
        bounds = next((one for one in inner[1:] if isinstance(one, Within)), within.bounds)
        checks = [one for one in (within.check, *inner[1:]) if one is not None and not isinstance(one, Within)]
        return Allowed(within.types, bounds, _all(checks))
    if origin in (Union, UnionType):
        return _either([allowed(one) for one in inner])
    if origin in (list, dict):
        return Allowed(frozenset({origin}), None, _each(allowed(inner[-1]), values=origin is dict))
    raise TypeError(f"{annotation} is no type that JSON has")


def _all(checks: list[Check]) -> Check | None:
    return checks[0] if len(checks) == 1 else (lambda value: all(one(value) for one in checks)) if checks else None


def _either(options: list[Allowed]) -> Allowed:
    types = frozenset[type]().union(*(one.types for one in options))
    bounded = [one for one in options if one.bounds]
    if len(bounded) <= 1 and types <= _NUMBERS | {NoneType} and not any(one.check for one in options):
        return Allowed(types, bounded[0].bounds if bounded else None)
    if not bounded and not any(one.check for one in options):
        return Allowed(types)
    return Allowed(types, None, lambda value: any(one.holds(value) for one in options))


def _each(inner: Allowed, *, values: bool) -> Check | None:
    types, further = inner.types, inner.bounds is not None or inner.check is not None
    if types == _ALL and not further:
        return None

    def each(value: Any) -> bool:
        held: Iterable[Any] = value.values() if values else value
        return types.issuperset(map(type, held)) and (not further or all(map(inner.holds, held)))

    return each


class FieldShape(NamedTuple):
    """One field: the values that it may hold, and its default."""

    name: str
    types: frozenset[type]
    low: float | None
    high: float
    check: Check | None
    required: bool
    default: Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """A class's fields. `inner`: by name, the fields that are dataclasses; in JSON their fields stand beside the
    others."""

    kind: type
    rows: tuple[FieldShape, ...]
    inner: tuple[tuple[str, Shape], ...] = ()

    @classmethod
    def of(cls, kind: type, *, without: Collection[str] = ()) -> Shape:
        """The shape of a dataclass, except the fields `without`, or of a TypedDict. Raises TypeError: an annotation is
        of no type that JSON has."""
        hints = get_type_hints(kind, include_extras=True)
        if is_typeddict(kind):
            rows = [(name, hint, get_origin(hint) is NotRequired) for name, hint in hints.items()]
            return cls(kind, tuple(_row(n, get_args(h)[0] if may else h, required=not may) for n, h, may in rows))
        nested = {f.name: cls.of(hints[f.name]) for f in fields(kind) if is_dataclass(hints[f.name])}
        own = (f for f in fields(kind) if f.name not in without and f.name not in nested)
        return cls(kind, tuple(_of_field(f, hints[f.name]) for f in own), tuple(nested.items()))

    def made(self, data: Mapping[str, Any]) -> Any:
        """The dataclass's instance of these fields. Other keys of `data` are ignored. Raises ValueError: a field is
        missing or is not allowed."""
        made: Any = object.__new__(self.kind)
        held = made.__dict__  # the __init__ of a frozen class sets each field through a call
        for name, shape in self.inner:
            held[name] = shape.made(data)
        for name, types, low, high, check, required, default in self.rows:
            if name in data:
                held[name] = value = data[name]
                if (
                    type(value) not in types
                    or (low is not None and value is not None and not low <= value <= high)
                    or (check is not None and not check(value))
                ):
                    raise ValueError(f"{name} is not what it should be")
            elif required:
                raise ValueError(f"{name} is missing")
            else:
                held[name] = default()
        return made

    def fits(self, data: Mapping[str, Any]) -> bool:
        """Tells if `data` has the required keys and only allowed values."""
        return all(
            Allowed(row.types, None if row.low is None else Within(row.low, row.high), row.check).holds(data[row.name])
            if row.name in data
            else not row.required
            for row in self.rows
        )


def _row(name: str, annotation: Any, *, required: bool, default: Callable[[], Any] = lambda: None) -> FieldShape:
    types, bounds, check = allowed(annotation)
    low, high = (bounds.low, bounds.high) if bounds else (None, 0.0)
    return FieldShape(name, types, low, high, check, required, default)


def _of_field(field: Field[Any], annotation: Any) -> FieldShape:
    if field.default_factory is not MISSING:
        return _row(field.name, annotation, required=False, default=field.default_factory)
    if field.default is not MISSING:
        return _row(field.name, annotation, required=False, default=partial(_itself, field.default))
    return _row(field.name, annotation, required=True)


def _itself(value: Any) -> Any:
    return value


def deeper(value: Any, levels: int) -> bool:
    """Tells if lists and objects are nested deeper than `levels`."""
    layer = [value]
    for _ in range(levels + 1):
        nested = [one for one in layer if isinstance(one, list | dict)]
        if not nested:
            return False
        layer = [inner for one in nested for inner in (one.values() if isinstance(one, dict) else one)]
    return True
