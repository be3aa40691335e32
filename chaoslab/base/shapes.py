"""Checks values from JSON against a class's annotations: type, range and form of each field. msgspec does it, by a
struct of the same fields that is made once a class.

An annotation is made of the types of JSON (`str`, `int`, `float`, `bool`, `None`, `list[…]`, `dict[str, …]`, `Any`) and
of unions of them. `Annotated[type, Within(low, high)]` bounds a number; any other function there tells if a value of
that type is allowed. A number is always finite, and a whole number has 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property, reduce
from operator import attrgetter, or_
from sys import intern
from types import UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

DEPTH_MAX = 200
"""The most levels of lists and objects within each other: fewer than any reader's recursion can follow."""
Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Within:
    """Bounds of a number. NaN is within none."""

    low: float
    high: float


WHOLE = Within(-(2**63), 2**63 - 1)
"""The whole numbers that msgspec can bound."""
FINITE = Within(-1e300, 1e300)


@dataclass(frozen=True)
class AnnotationCheck:
    """A check that a value is what an annotation allows, or has the keys and types of a TypedDict. `empty`: an object
    without any key passes too."""

    annotation: Any
    empty: bool = False

    def __call__(self, value: Any) -> bool:
        if self.empty and not value:
            return True
        try:
            self._shape.parse_struct(value if is_typeddict(self.annotation) else {"value": value})
        except ValueError:
            return False
        return True

    @cached_property
    def _shape(self) -> Shape:
        annotation = self.annotation
        return (
            Shape.build(annotation)
            if is_typeddict(annotation)
            else Shape(AnnotationCheck, {"value": (annotation, ())}, {})
        )


def is_moment(value: str) -> bool:
    """A check that a text is a moment in ISO 8601."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Shape:
    """A class's fields, each with its annotation and its default if it has one. `inner`: by name, the fields that are
    dataclasses; in JSON their fields stand beside the others."""

    kind: type
    own: Mapping[str, tuple[Any, tuple[Any, ...]]]
    inner: Mapping[str, Shape]

    @classmethod
    def build(cls, kind: type, *, without: Collection[str] = ()) -> Shape:
        """The shape of a dataclass, except the fields `without`, or of a TypedDict."""
        hints = get_type_hints(kind, include_extras=True)
        if is_typeddict(kind):
            keys = ((name, hint, get_origin(hint) is NotRequired) for name, hint in hints.items())
            return cls(kind, {n: (get_args(h)[0], (msgspec.UNSET,)) if may else (h, ()) for n, h, may in keys}, {})
        inner = {f.name: cls.build(hints[f.name]) for f in fields(kind) if is_dataclass(hints[f.name])}
        own_fields: dict[str, tuple[Any, tuple[Any, ...]]] = {}
        for member in fields(kind):
            if member.name not in inner and member.name not in without:
                factory = member.default_factory
                default = msgspec.field(default_factory=factory) if factory is not MISSING else member.default
                own_fields[member.name] = (hints[member.name], () if default is MISSING else (default,))
        return cls(kind, own_fields, inner)

    def make_instance(self, data: Any) -> Any:
        """The dataclass's instance of these fields. Other keys of `data` are ignored. Raises ValueError: a field is
        missing or is not allowed."""
        return self._instance_maker(self.parse_struct(data))

    def parse_struct(self, data: Any) -> Any:
        """The struct of these fields. Raises ValueError: as `make_instance`."""
        try:
            return msgspec.convert(data, self._struct_type)
        except msgspec.ValidationError as error:
            # msgspec tells the field in its message alone.
            message = str(error)
            if name := re.search(r"missing required field `(\w+)`", message):
                raise ValueError(f"{name[1]} is missing") from None
            if name := re.search(r" - at `\$\.(\w+)", message):
                raise ValueError(f"{name[1]} is not what it should be") from None
            raise

    @cached_property
    def _struct_type(self) -> type:
        return build_struct(self.kind.__name__, self.collect_fields().values(), self.collect_checks())

    @cached_property
    def _instance_maker(self) -> Callable[[Any], Any]:
        return self.build_struct_maker()

    def collect_fields(self) -> dict[str, tuple[Any, ...]]:
        """The fields of a line, each with its name, its type as msgspec takes it, and its default if it has one."""
        rows: dict[str, tuple[Any, ...]] = {}
        for inner in self.inner.values():
            rows |= inner.collect_fields()
        return rows | {name: (name, _convert_type_hint(hint), *default) for name, (hint, default) in self.own.items()}

    def iterate_annotations(self) -> Iterator[Any]:
        """The annotations of the fields of a line."""
        for inner in self.inner.values():
            yield from inner.iterate_annotations()
        yield from (hint for hint, _ in self.own.values())

    def collect_checks(self) -> list[tuple[str, Check]]:
        """The checks that msgspec does not know, by the field's name. It has checked types and bounds before."""
        own_checks = [
            (name, check) for name, (hint, _) in self.own.items() if (check := _build_check(hint)) is not None
        ]
        own_checks = [
            (name, _allow_unset(check) if self.own[name][1] == (msgspec.UNSET,) else check)
            for name, check in own_checks
        ]
        return own_checks + [check for inner in self.inner.values() for check in inner.collect_checks()]

    def build_struct_maker(self, once: Collection[str] = ()) -> Callable[[Any], Any]:
        """A function that makes an instance of a struct with its fields. Texts in the fields `once` are kept once."""
        new, kind, names = object.__new__, self.kind, tuple(self.own)
        values: Callable[[Any], tuple[Any, ...]] = attrgetter("__class__", *names, "__class__")  # a tuple, however few
        inner = [(name, shape.build_struct_maker(once)) for name, shape in self.inner.items()]
        interned = [name for name in names if name in once]

        def make_from_struct(struct: Any) -> Any:
            instance: Any = new(kind)  # the __init__ of a frozen class sets each field through a call
            attributes = instance.__dict__  # filled in one by one, it shares its keys with those of all other instances
            for name, make_inner in inner:
                attributes[name] = make_inner(struct)
            attributes.update(zip(names, values(struct)[1:-1], strict=True))
            for name in interned:
                text = attributes[name]
                if text is not None:
                    attributes[name] = intern(text)
            return instance

        return make_from_struct


def build_struct(
    name: str, rows: Collection[tuple[Any, ...]], checks: Sequence[tuple[str, Check]], **options: Any
) -> type:
    """A msgspec struct of these fields that makes these checks. `options`: further ones of msgspec's."""
    namespace = dict(options.pop("namespace", {}))
    if checks:
        namespace["__post_init__"] = _build_checker(checks)
    # gc=False: the structs hold JSON values alone, which are in no cycles, and live for a moment.
    return msgspec.defstruct(name, list(rows), kw_only=True, gc=False, namespace=namespace, **options)


def _build_checker(checks: Sequence[tuple[str, Check]]) -> Callable[[Any], None]:
    if len(checks) == 1:
        (only, holds), value = checks[0], attrgetter(checks[0][0])

        def check_one_field(struct: Any) -> None:
            if not holds(value(struct)):
                raise ValueError(f"{only} is not what it should be")

        return check_one_field

    def check_fields(struct: Any) -> None:
        for name, fits in checks:
            if not fits(getattr(struct, name)):
                raise ValueError(f"{name} is not what it should be")

    return check_fields


def _convert_type_hint(hint: Any) -> Any:
    """The annotation as msgspec takes it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = next((mark for mark in inner[1:] if isinstance(mark, Within)), None)
        return _build_bounded_number_type(inner[0], bounds) if bounds else _convert_type_hint(inner[0])
    if hint in (int, float):
        return _build_bounded_number_type(hint, WHOLE if hint is int else FINITE)
    if origin in (list, dict):
        return origin[tuple(map(_convert_type_hint, inner))]
    return reduce(or_, map(_convert_type_hint, inner)) if inner else hint


def _build_bounded_number_type(kind: Any, bounds: Within) -> Any:
    """A number within bounds. A float may stand without a point, and stays a whole number then."""
    low, high = max(bounds.low, WHOLE.low), min(bounds.high, WHOLE.high)
    integer = Annotated[int, msgspec.Meta(ge=int(low), le=int(high))]
    return integer if kind is int else integer | Annotated[float, msgspec.Meta(ge=bounds.low, le=bounds.high)]


def _build_check(hint: Any) -> Check | None:
    """The functions in an annotation as one check of a value of its type; None if it has none."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        checks = [
            part_check
            for part_check in (_build_check(inner[0]), *inner[1:])
            if part_check is not None and not isinstance(part_check, Within)
        ]
        (check,) = checks or (None,)  # no annotation has two
        return check
    if origin in (Union, UnionType):
        options = [
            (_get_value_class(part_check), check)
            for part_check in inner
            if (check := _build_check(part_check)) is not None
        ]
        return (
            (lambda value: all(part_check(value) for class_, part_check in options if isinstance(value, class_)))
            if options
            else None
        )
    entry_check = _build_check(inner[-1]) if origin in (list, dict) else None
    if entry_check is None:
        return None
    return (
        (lambda value: all(map(entry_check, value.values())))
        if origin is dict
        else (lambda value: all(map(entry_check, value)))
    )


def _allow_unset(check: Check) -> Check:
    return lambda value: value is msgspec.UNSET or check(value)


def _get_value_class(hint: Any) -> type:
    """The class of an annotation's values."""
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    class_: type = object if bare is Any else get_origin(bare) or bare
    return class_


def allows_any_type(hint: Any) -> bool:
    """True if the annotation allows values of any type somewhere, so of any depth."""
    return hint is Any or any(map(allows_any_type, get_args(hint)))


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Tells if lists and objects are nested deeper than `levels`."""
    layer = [value]
    for _ in range(levels + 1):
        nested = [nested_value for nested_value in layer if isinstance(nested_value, list | dict)]
        if not nested:
            return False
        layer = [
            inner
            for nested_value in nested
            for inner in (nested_value.values() if isinstance(nested_value, dict) else nested_value)
        ]
    return True
