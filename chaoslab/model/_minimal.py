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

    def __init__(self, place: Sequence[str], key: str) -> None:
        super().__init__(key)
        self.place, self.key = tuple(place), key


def make_minimal(schema: Any, text: str = "") -> Any:
    """The value. `text` stands in the first string of any content. Raises NoneFits: none was found."""
    return _Maker(schema, text).value(schema, ())


class _Maker:
    def __init__(self, root: Any, text: str) -> None:
        self._root, self._text = root, text

    def value(self, schema: Any, place: tuple[str, ...]) -> Any:
        if len(place) > DEPTH_MAX:
            raise NoneFits(place[:2], "$ref")
        if not isinstance(schema, Mapping):
            return {}
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return schema["enum"][0]
        if isinstance(schema.get("$ref"), str):
            rest = {key: each for key, each in schema.items() if key != "$ref"}
            return self.value(_merged([self._at(schema["$ref"], place), rest]), (*place, ""))
        if isinstance(schema.get("allOf"), list):
            parts = [self._whole(part, place) for part in schema["allOf"]]
            own = {key: each for key, each in schema.items() if key != "allOf"}
            return self.value(_merged([*parts, own]), (*place, ""))
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                own = {name: each for name, each in schema.items() if name != key}
                return self._first([_merged([own, self._whole(each, place)]) for each in schema[key]], place)
        kinds = schema.get("type")
        named = kinds if isinstance(kinds, list) else [kinds or ("object" if "properties" in schema else "string")]
        kind = next((each for each in named if each != "null"), "null")
        return self._of_kind(str(kind), schema, place)

    def _at(self, reference: str, place: tuple[str, ...]) -> Any:
        found = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if found is None or not reference.startswith("#"):
            raise NoneFits(place, "$ref")
        return found

    def _whole(self, schema: Any, place: tuple[str, ...]) -> Any:
        """The schema, or the one that it refers to."""
        refers = isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)
        return self._at(schema["$ref"], place) if refers else schema

    def _first(self, choices: Sequence[Any], place: tuple[str, ...]) -> Any:
        """A value of the first choice that has one; null last, as it says least."""
        ordered = sorted(choices, key=lambda each: each.get("type") == "null")
        for number, each in enumerate(ordered):
            text = self._text
            try:
                return self.value(each, (*place, ""))
            except NoneFits:
                self._text = text
                if number == len(ordered) - 1:
                    raise
        return None

    def _of_kind(self, kind: str, schema: Mapping[str, Any], place: tuple[str, ...]) -> Any:
        if kind == "object":
            known = schema.get("properties") or {}
            names = [name for name in schema.get("required") or () if isinstance(name, str)]
            return {name: self.value(known.get(name, True), (*place, "properties", name)) for name in names}
        if kind == "array":
            heads = list(schema.get("prefixItems") or ())
            least = min(int(schema.get("minItems") or 0), ITEMS_MAX)
            parts = [*heads, *[schema.get("items", True)] * (least - len(heads))]
            return [self.value(part, (*place, "items")) for part in parts]
        if kind in ("integer", "number"):
            return _number(schema, whole=kind == "integer")
        if kind == "boolean":
            return False
        return self._string(schema, place) if kind == "string" else None

    def _string(self, schema: Mapping[str, Any], place: tuple[str, ...]) -> str:
        least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
        pattern, form = schema.get("pattern"), _FORMATS.get(str(schema.get("format")))
        if isinstance(pattern, str):
            for each in (self._text, *_GUESSES):
                if len(each) >= least and (most is None or len(each) <= most) and re.search(pattern, each):
                    return each
            raise NoneFits(place, "pattern")
        if form is not None:
            return form
        said = self._text[:most]
        self._text = ""
        return said.ljust(least, "x")


def _number(schema: Mapping[str, Any], *, whole: bool) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf") or (1 if whole else 0)
    found: float = 0 if (low is None or low <= 0) and (high is None or high >= 0) else (high if low is None else low)
    if step:
        found = (math.ceil(found / step) if low is not None else math.floor(found / step)) * step
    if found in (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")):
        up = found == schema.get("exclusiveMinimum")
        found += (step or (high - low) / 2 if None not in (low, high) else step or 1) * (1 if up else -1)
    return int(found) if whole else found


def _merged(schemas: Sequence[Any]) -> dict[str, Any]:
    """One schema that demands what all of them do."""
    found: dict[str, Any] = {}
    for each in schemas:
        if isinstance(each, Mapping):
            wanted = [*found.get("required", ()), *(each.get("required") or ())]
            known = {**found.get("properties", {}), **(each.get("properties") or {})}
            found.update(each)
            found |= {key: value for key, value in (("required", wanted), ("properties", known)) if value}
    return found
