"""Request bodies, read as Go's decoder reads them: keys in any case, null is absent, unknown keys and trailing text ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from chaoslab.wire.server.errors import ApiError
from chaoslab.wire.toxics import Toxic

T = TypeVar("T")
INT64_MAX = 2**63 - 1
KINDS: Mapping[type, str] = {str: "string", bool: "bool", list: "array", dict: "object", int: "number", float: "number"}
GO_TYPES: Mapping[type, str] = {str: "string", bool: "bool", float: "float32"}


def bad_body(reason: str) -> ApiError:
    return ApiError(400, f"bad request body: {reason}")


def read_json(body: bytes) -> Any:
    """The first JSON value of a body.

    Raises:
        ApiError: 400.
    """
    try:
        text = body.decode("utf-8", errors="replace").lstrip(" \t\r\n")
        if not text:
            raise bad_body("EOF")
        value, _ = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
            raise bad_body("unexpected EOF") from None
        wanted = "object key string" if "property name" in error.msg else "value"
        raise bad_body(f"invalid character '{text[error.pos]}' looking for beginning of {wanted}") from None
    except (ValueError, RecursionError) as error:
        raise bad_body(str(error)) from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def read_object(body: bytes, go_type: str) -> dict[str, Any]:
    """A body that must be an object, with lower-case keys (null is an empty one).

    Raises:
        ApiError: 400.
    """
    return as_object(read_json(body), go_type)


def as_object(value: Any, go_type: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_body(f"json: cannot unmarshal {kind(value)} into Go value of type {go_type}")
    return {key.lower(): item for key, item in value.items() if item is not None}


def field(data: Mapping[str, Any], name: str, default: T, *, where: str) -> T:
    """One field, of its default's type.

    Raises:
        ApiError: 400, naming the field `where`.
    """
    value = data.get(name)
    if value is None:
        return default
    wanted = type(default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not wanted:
        raise bad_body(
            f"json: cannot unmarshal {kind(value)} into Go struct field {where}.{name} of type {GO_TYPES[wanted]}"
        )
    return value


def attributes(given: Any, toxic: Toxic) -> Toxic:
    """The toxic with the given attributes in place of its own; all of them or, on an error, none.

    Raises:
        ApiError: 400.
    """
    if given is None:
        return toxic
    go_type = f"{type(toxic).__name__}Toxic"
    if not isinstance(given, dict):
        raise bad_body(
            f"json: cannot unmarshal {kind(given)} into Go struct field ToxicWrapper.attributes of type {go_type}"
        )
    names = {one.name for one in fields(toxic)}
    merged = {name: getattr(toxic, name) for name in names}
    for key, value in given.items():
        name = key.lower()
        if name in names and value is not None:
            merged[name] = _int64(value, where=f"{go_type}.attributes.{name}")
    return type(toxic)(**merged)


def _int64(value: Any, *, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -INT64_MAX - 1 <= value <= INT64_MAX:
        return value
    shown = f"number {value}" if kind(value) == "number" else kind(value)
    raise bad_body(f"json: cannot unmarshal {shown} into Go struct field {where} of type int64")


def kind(value: Any) -> str:
    """What JSON calls the type of a value."""
    return KINDS[type(value)]
