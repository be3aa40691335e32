"""The smallest value that a JSON schema allows, with a text in its first free place for one."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

DEPTH_MAX, ITEMS_MAX = 24, 100
_FORMATS = {
    "date": "2026-01-01", "time": "09:00:00Z", "date-time": "2026-01-01T09:00:00Z", "duration": "PT0S",
    "email": "nobody@example.org", "hostname": "example.org", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000", "uri": "https://example.org/",
}  # fmt: skip
_GUESSES = ("", "x", "X", "0", "00", "000", "0000", "00000", *_FORMATS.values(), "AAA", "aaa", "a-b")
"""The texts that are tried for a pattern."""


class NoneFits(Exception):
    """No value was found for a part of the schema. `place`: its path; `key`: the keyword that is too much."""

    def __init__(self, path: Sequence[str], key: str) -> None:
        super().__init__(key)
        self.place, self.key = tuple(path), key


def make_minimal_value(schema: Any, text: str = "") -> Any:
    """The value. `text` stands in the first string of any content. Raises NoneFits: none was found."""
    return _MinimalValueMaker(schema, text).make_value(schema, ())


class _MinimalValueMaker:
    def __init__(self, root: Any, text: str) -> None:
        self._root, self._text = root, text

    def make_value(self, schema: Any, path: tuple[str, ...]) -> Any:
        # A schema that demands itself has no smallest value, and would be followed for ever.
        if len(path) > DEPTH_MAX:
            raise NoneFits(path[:2], "$ref")
        if not isinstance(schema, Mapping):
            return {}
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return schema["enum"][0]
        if isinstance(schema.get("$ref"), str):
            # What stands beside a $ref holds too, since draft 2019-09 of JSON Schema.
            rest = {key: entry for key, entry in schema.items() if key != "$ref"}
            return self.make_value(_merge_schemas([self._resolve_pointer(schema["$ref"], path), rest]), (*path, ""))
        if isinstance(schema.get("allOf"), list):
            parts = [self._resolve_reference(branch, path) for branch in schema["allOf"]]
            rest_of_schema = {key: entry for key, entry in schema.items() if key != "allOf"}
            return self.make_value(_merge_schemas([*parts, rest_of_schema]), (*path, ""))
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                rest_of_schema = {name: entry for name, entry in schema.items() if name != key}
                return self._make_first_choice_value(
                    [_merge_schemas([rest_of_schema, self._resolve_reference(entry, path)]) for entry in schema[key]],
                    path,
                )
        kinds = schema.get("type")
        named = kinds if isinstance(kinds, list) else [kinds or ("object" if "properties" in schema else "string")]
        kind = next((entry for entry in named if entry != "null"), "null")
        return self._make_value_by_type(str(kind), schema, path)

    def _resolve_pointer(self, reference: str, path: tuple[str, ...]) -> Any:
        target = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                # In this order, as RFC 6901 says: ~01 is ~1, not a slash.
                target = target.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        if target is None or not reference.startswith("#"):
            raise NoneFits(path, "$ref")
        return target

    def _resolve_reference(self, schema: Any, path: tuple[str, ...]) -> Any:
        """The schema, or the one that it refers to."""
        refers = isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)
        return self._resolve_pointer(schema["$ref"], path) if refers else schema

    def _make_first_choice_value(self, choices: Sequence[Any], path: tuple[str, ...]) -> Any:
        """A value of the first choice that has one; null last, as it says least."""
        ordered = sorted(choices, key=lambda choice: choice.get("type") == "null")
        for choice in ordered[:-1]:
            text = self._text
            try:
                return self.make_value(choice, (*path, ""))
            except NoneFits:
                # The choice that failed may have used the text up.
                self._text = text
        return self.make_value(ordered[-1], (*path, ""))

    def _make_value_by_type(self, kind: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        if kind == "object":
            properties = schema.get("properties") or {}
            names = [name for name in schema.get("required") or () if isinstance(name, str)]
            return {name: self.make_value(properties.get(name, True), (*path, "properties", name)) for name in names}
        if kind == "array":
            heads = list(schema.get("prefixItems") or ())
            # minItems may be any number: without a bound, a large one would fill the memory.
            count = min(int(schema.get("minItems") or 0), ITEMS_MAX)
            parts = [*heads, *[schema.get("items", True)] * (count - len(heads))]
            return [self.make_value(item_schema, (*path, "items")) for item_schema in parts]
        if kind in ("integer", "number"):
            return _make_number(schema, whole=kind == "integer")
        if kind == "boolean":
            return False
        return self._make_string(schema, path) if kind == "string" else None

    def _make_string(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        length_min, length_max = int(schema.get("minLength") or 0), schema.get("maxLength")
        pattern, form = schema.get("pattern"), _FORMATS.get(str(schema.get("format")))
        if isinstance(pattern, str):
            for guess in (self._text, *_GUESSES):
                if (
                    len(guess) >= length_min
                    and (length_max is None or len(guess) <= length_max)
                    # Patterns of JSON Schema are not anchored.
                    and re.search(pattern, guess)
                ):
                    return guess
            raise NoneFits(path, "pattern")
        if form is not None:
            return form
        text = self._text[:length_max]
        self._text = ""
        return text.ljust(length_min, "x")


def _make_number(schema: Mapping[str, Any], *, whole: bool) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf") or (1 if whole else 0)
    number: float = 0 if (low is None or low <= 0) and (high is None or high >= 0) else (high if low is None else low)
    if step:
        number = (math.ceil(number / step) if low is not None else math.floor(number / step)) * step
    if number in (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")):
        up = number == schema.get("exclusiveMinimum")
        number += (step or (high - low) / 2 if None not in (low, high) else step or 1) * (1 if up else -1)
    return int(number) if whole else number


def _merge_schemas(schemas: Sequence[Any]) -> dict[str, Any]:
    """One schema that demands what all of them do."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        if isinstance(schema, Mapping):
            required = [*merged.get("required", ()), *(schema.get("required") or ())]
            properties = {**merged.get("properties", {}), **(schema.get("properties") or {})}
            merged.update(schema)
            merged |= {key: value for key, value in (("required", required), ("properties", properties)) if value}
    return merged
