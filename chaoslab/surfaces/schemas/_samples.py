"""JSON schemas as their files have them: references followed, and values made that keep to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.surfaces.projects import Personal

DEPTH_MAX, VALUES_MAX = 8, 2_000
"""The most levels and parts of a schema whose references are followed. What is beyond may be any value."""
ITEMS_MAX, SAMPLES_MAX, TEXT_MAX = 20, 20_000, 1000
"""The most items of a list in an example, of all lists of a document together, and the most characters of a text:
a document may ask for any number."""
FORMATS = {
    "date-time": "2026-01-01T09:00:00Z", "date": "2026-01-01", "time": "09:00:00Z", "duration": "PT1H",
    "email": "ann@example.com", "hostname": "host.example", "uri": "https://host.example/1", "url": "https://host.example/1",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "byte": "MQ==", "binary": "1",
}  # fmt: skip
KEPT = (
    "description", "enum", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
    "maxLength", "minItems", "pattern", "default", "example", "examples", "const", "readOnly", "writeOnly", "nullable",
)  # fmt: skip
_NONE = object()


@dataclass
class Schemas:
    """The schemas of a document. `shown`: its name; `lacking` takes a line for what cannot be honoured."""

    root: Any
    shown: str
    personal: Personal
    dice: Dice
    lacking: list[str] = field(default_factory=list)
    _samples_left: int = SAMPLES_MAX

    def at(self, value: Any) -> Any:
        """The value, or what it refers to. Raises ValueError: it refers to another file, to nothing, or round in a
        circle."""
        seen = set[str]()
        while isinstance(value, dict) and isinstance(place := value.get("$ref"), str):
            shown = f"{self.shown}: $ref {place[:100]!r}"
            if not place.startswith("#"):
                raise ValueError(f"{shown} leads out of the file: bundle all into one file first")
            if place in seen:
                raise ValueError(f"{shown} leads round in a circle")
            seen.add(place)
            value = self.root
            for key in filter(None, place[1:].split("/")):
                key = key.replace("~1", "/").replace("~0", "~")
                value = (
                    value.get(key, _NONE) if isinstance(value, dict)
                    else value[int(key)] if isinstance(value, list) and key.isdigit() and int(key) < len(value)
                    else _NONE
                )  # fmt: skip
                if value is _NONE:
                    raise ValueError(f"{shown} leads to nothing")
        return value

    def whole(self, schema: Any, where: str) -> dict[str, Any]:
        """The schema without references, `allOf`, `oneOf` and `anyOf`. One that holds itself ends as any value."""
        self._left = VALUES_MAX
        return self._whole(schema, where, ())

    def _whole(self, schema: Any, where: str, above: tuple[str, ...]) -> dict[str, Any]:
        self._left -= 1
        place = str(schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else ""
        found = self.at(schema)
        if not isinstance(found, dict) or self._left < 0 or len(above) > DEPTH_MAX or (place and place in above):
            return {}
        above = (*above, place)
        made = {key: found[key] for key in KEPT if key in found}
        if isinstance(said := made.get("description"), str):
            made["description"] = self.personal.text(said)
        kinds = found.get("type")
        for kind in kinds if isinstance(kinds, list) else [kinds]:  # of 3.1: null is one of several
            if isinstance(kind, str) and kind != "null":
                made.setdefault("type", kind)
        if "discriminator" in found or len(found.get("oneOf") or ()) > 1:
            self.lacking.append(f"{where}: of several forms (oneOf, discriminator) the first is taken")
        for key in ("oneOf", "anyOf"):
            forms = [self.at(each) for each in found.get(key) or () if isinstance(each, dict)]
            parts = [each for each in forms if isinstance(each, dict) and each.get("type") != "null"]
            if parts and "properties" not in found:
                made = self._merged(made, self._whole(parts[0], where, above))
        for each in found.get("allOf") or ():
            made = self._merged(made, self._whole(each, where, above))
        own: dict[str, Any] = {}
        if isinstance(of := found.get("properties"), dict):
            own["properties"] = {str(name): self._whole(each, where, above) for name, each in of.items()}
        if isinstance(needs := found.get("required"), list):
            own["required"] = [str(each) for each in needs]
        if "items" in found:
            own["items"] = self._whole(found["items"], where, above)
        made = self._merged(made, own)
        return made if "type" in made or "properties" not in made else {"type": "object", **made}

    def _merged(self, one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
        both = {**other, **one}
        for key in ("properties", "required"):
            if key in one and key in other:
                both[key] = {**one[key], **other[key]} if key == "properties" else [*one[key], *other[key]]
        return both

    def sample(self, schema: Mapping[str, Any], name: str, *, reply: bool) -> Any:
        """A value of a whole schema: its example, or one that is drawn by the dice of its name. `reply`: without fields
        that only a request has; else without those that only a reply has."""
        if (given := example_of(schema)) is not _NONE:
            return self.masked(given, name)
        if isinstance(one_of := schema.get("enum"), list) and one_of:
            return self.dice(name).pick(one_of)
        match schema.get("type"):
            case "object":
                hidden = "writeOnly" if reply else "readOnly"
                fields = (schema.get("properties") or {}).items()
                return {key: self.sample(of, f"{name}.{key}", reply=reply) for key, of in fields if not of.get(hidden)}
            case "array":
                many = max(1, min(_number(schema.get("minItems"), 1), ITEMS_MAX)) if self._samples_left > 0 else 1
                self._samples_left -= int(many)
                return [self.sample(schema.get("items") or {}, name, reply=reply) for _ in range(int(many))]
            case "integer" | "number" as kind:
                low = _number(schema.get("minimum", schema.get("exclusiveMinimum")), 1) + ("exclusiveMinimum" in schema)
                high = _number(schema.get("maximum", schema.get("exclusiveMaximum")), max(low, 1) + 99)
                found = self.dice(name).between(low, max(low, high - ("exclusiveMaximum" in schema)))
                return int(found) if kind == "integer" else round(found, 2)
            case "boolean":
                return True
            case "string":
                return self._text(schema, name)
        return None

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        if "pattern" in schema:
            self.lacking.append(f"{name}: no example keeps to its pattern")
        kind = schema.get("format")
        if kind == "uuid":
            return uuid_of(self.dice(name))
        text = FORMATS.get(str(kind), name.rpartition(".")[2])
        least = _number(schema.get("minLength"), 0)
        if least > TEXT_MAX:
            self.lacking.append(f"{name}: its example has {TEXT_MAX} characters, and should have {least:.15g}")
        text = text.ljust(int(min(least, TEXT_MAX)), "x")
        return text[: int(min(max(_number(schema.get("maxLength"), len(text)), 0), len(text)))]

    def masked(self, value: Any, name: str) -> Any:
        """An example without secrets and personal data, which the name of its field may tell."""
        key = name.rpartition(".")[2]
        found = self.personal.value({key: value})
        return found[key] if isinstance(found, dict) else self.personal.text(str(value))


def without_examples(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A whole schema as it is written down: an example or a default may be a secret."""
    made = {key: each for key, each in schema.items() if key not in ("example", "examples", "default")}
    if isinstance(fields := made.get("properties"), dict):
        made["properties"] = {name: without_examples(each) for name, each in fields.items()}
    return {**made, "items": without_examples(made["items"])} if isinstance(made.get("items"), dict) else made


def example_of(schema: Mapping[str, Any]) -> Any:
    """The example, constant or default of a schema, a parameter or a medium; NONE if it has none."""
    several = schema.get("examples")
    if isinstance(several, dict) and several:  # of OpenAPI, each with a value
        several = [each["value"] for each in several.values() if isinstance(each, dict) and "value" in each]
    found = [schema[key] for key in ("example", "const") if key in schema]
    found += several if isinstance(several, list) else []
    return next(iter([*found, *([schema["default"]] if schema.get("default") is not None else [])]), _NONE)


def uuid_of(dice: Dice) -> str:
    bits = f"{dice.stream().getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"


def next_id(last: Any, number: int) -> Any:
    """An id like the last one, which it follows. `number`: of the ids that were made so."""
    if isinstance(last, int) and not isinstance(last, bool):
        return last + 1
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text := str(last)):
        return uuid_of(Dice(text, number))
    head, digits = re.fullmatch(r"(.*?)(\d{0,15})", text, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{head}{int(digits) + 1:0{len(digits)}d}" if digits else f"{head}_{number + 1}"


def _number(value: Any, usual: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)  # of 3.0, a bound may be a boolean
    return value if is_number else usual


NONE = _NONE
