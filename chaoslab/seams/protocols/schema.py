"""A changed value that keeps to the JSON schema of the true one, so that a client which checks it takes it."""

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

# Schemas may refer to themselves.
DEPTH_MAX = 40
_OF_NUMBERS = {"minimum": lt, "maximum": gt, "exclusiveMinimum": le, "exclusiveMaximum": ge}
# The bounds of values and of lengths, each with the comparison that breaks it.
BOUNDS: Mapping[str, Mapping[str, Callable[[Any, Any], bool]]] = {
    "integer": _OF_NUMBERS, "number": _OF_NUMBERS, "boolean": {},
    "string": {"minLength": lt, "maxLength": gt}, "array": {"minItems": lt, "maxItems": gt},
}  # fmt: skip
EMPTY: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}, "null": None
}  # fmt: skip


def fit_to_schema(value: Any, was: Any, schema: Any) -> Any:
    """The value, with what the schema requires and without what it forbids. A required field that is missing is empty,
    and a value that cannot be made to fit is the true one, `was`."""
    return _fit_value(value, was, schema, schema, DEPTH_MAX)


def build_schema_of_value(value: Any) -> dict[str, Any]:
    """The schema of values like this one: the same fields of the same types."""
    kind = _get_type_name(value)
    if kind == "object":
        return {
            "type": kind,
            "properties": {k: build_schema_of_value(v) for k, v in value.items()},
            "required": list(value),
        }
    if kind == "array":
        kinds = {_get_type_name(item) for item in value}
        # Mixed items tell nothing about their type.
        return {"type": kind, "items": build_schema_of_value(value[0]) if len(kinds) == 1 else {}}
    # Of null nothing is known: the field may hold anything.
    return {} if kind == "null" else {"type": kind}


def _fit_value(value: Any, was: Any, schema: Any, root: Any, depth: int) -> Any:
    schema = _resolve_schema(schema, root, was, depth)
    kinds = _list_types(schema)
    # A whole number is a number in JSON Schema.
    if kinds and _get_type_name(value) not in kinds and not (_get_type_name(value) == "integer" and "number" in kinds):
        # A value that was changed to another type falls back; one that was emptied becomes the schema's own empty.
        if value or isinstance(value, bool | int | float):
            return was
        return _empty_value(was, schema, root, depth)
    if isinstance(value, Mapping) and depth:
        return _fit_object(value, was if isinstance(was, Mapping) else {}, schema, root, depth)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping) and depth:
        # Items beyond those of the true list are compared with its last.
        true = was if isinstance(was, list) and was else [None]
        value = [
            _fit_value(item, true[min(n, len(true) - 1)], schema["items"], root, depth - 1)
            for n, item in enumerate(value)
        ]
    return value if _is_within_bounds(value, schema) else was


def _fit_object(
    value: Mapping[str, Any], was: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    properties = schema.get("properties")
    known_properties = properties if isinstance(properties, Mapping) else {}
    # Only if the schema closes the object: unknown fields are allowed by default.
    closed = schema.get("additionalProperties") is False
    fields = {
        key: _fit_value(field, was.get(key), known_properties[key], root, depth - 1)
        if key in known_properties
        else field
        for key, field in value.items()
        if key in known_properties or not closed
    }
    required = schema.get("required")
    for key in required if isinstance(required, list) else ():
        if key not in fields:
            fields[key] = _empty_value(
                was.get(key), _resolve_schema(known_properties.get(key), root, was.get(key), depth), root, depth - 1
            )
    return fields


def _empty_value(was: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    """The emptiest value of the schema; the true one if none is allowed."""
    kinds = _list_types(schema) or [_get_type_name(was)]
    # null first: it is the emptiest that the schema allows.
    kind = "null" if "null" in kinds else kinds[0]
    empty = EMPTY.get(kind)
    if kind == "object" and depth > 0:
        return _fit_object({}, was if isinstance(was, Mapping) else {}, schema, root, depth)
    return empty if was is None or _is_within_bounds(empty, schema) else was


def _resolve_schema(schema: Any, root: Mapping[str, Any], was: Any, depth: int) -> Mapping[str, Any]:
    """The schema that a reference leads to, and of several ones that of the true value."""
    for _ in range(depth + 1):
        if not isinstance(schema, Mapping):
            return {}
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
            schema = root
            for key in reference[2:].split("/"):
                # The escapes of JSON pointers (RFC 6901, section 4).
                schema = schema.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
            continue
        several = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(several, list) or not several:
            return schema
        inner = [_resolve_schema(option, root, was, depth - 1) for option in several] if depth else []
        # The option that the true value was made by.
        schema = next(
            (option for option in inner if not _list_types(option) or _get_type_name(was) in _list_types(option)), {}
        )
    return schema if isinstance(schema, Mapping) else {}


def _list_types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    return [kinds] if isinstance(kinds, str) else [str(kind) for kind in kinds] if isinstance(kinds, list) else []


def _get_type_name(value: Any) -> str:
    match value:
        case bool():
            # Before int, as True is one to Python.
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case list():
            return "array"
    return "null"


def _is_within_bounds(value: Any, schema: Mapping[str, Any]) -> bool:
    """True if the bounds of the schema allow a value of its type."""
    one_of = schema.get("enum")
    if (isinstance(one_of, list) and value not in one_of) or ("const" in schema and value != schema["const"]):
        return False
    size = value if isinstance(value, int | float) else len(value) if isinstance(value, str | list) else None
    for key, breaks in BOUNDS[_get_type_name(value)].items() if size is not None else ():
        bound = schema.get(key)
        if isinstance(bound, int | float) and breaks(size, bound):
            return False
    return not isinstance(value, str) or "pattern" not in schema  # a server's pattern may take for ever
