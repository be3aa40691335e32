"""JSON schemas as their files have them: references followed, and values made that keep to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.surfaces.projects import PersonalDataMasker

DEPTH_MAX, VALUES_MAX = 8, 2_000
"""The most levels and parts of a schema whose references are followed. What is beyond may be any value."""
# A document may ask for a list of a billion items.
ITEMS_MAX, SAMPLES_MAX, TEXT_MAX = 20, 20_000, 1000
"""The most items of a list in an example, of all lists of a document together, and the most characters of a text:
a document may ask for any number."""
FORMATS = {
    "date-time": "2026-01-01T09:00:00Z", "date": "2026-01-01", "time": "09:00:00Z", "duration": "PT1H",
    "email": "ann@example.com", "hostname": "host.example", "uri": "https://host.example/1", "url": "https://host.example/1",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "byte": "MQ==", "binary": "1",
}  # fmt: skip
KEPT = (
    "description",
    "enum",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "pattern",
    "default",
    "example",
    "examples",
    "const",
    "readOnly",
    "writeOnly",
    "nullable",
)
_NONE = object()


@dataclass
class Schemas:
    """The schemas of a document. `shown`: its name; `lacking` takes a line for what cannot be honoured."""

    root: Any
    shown: str
    personal: PersonalDataMasker
    dice: Dice
    lacking: list[str] = field(default_factory=list)
    _samples_left: int = SAMPLES_MAX

    def resolve_reference(self, value: Any) -> Any:
        """The value, or what it refers to. Raises ValueError: it refers to another file, to nothing, or round in a
        circle."""
        # Two references may lead to each other.
        visited = set[str]()
        while isinstance(value, dict) and isinstance(reference := value.get("$ref"), str):
            location = f"{self.shown}: $ref {reference[:100]!r}"
            if not reference.startswith("#"):
                raise ValueError(f"{location} leads out of the file: bundle all into one file first")
            if reference in visited:
                raise ValueError(f"{location} leads round in a circle")
            visited.add(reference)
            value = self.root
            for key in filter(None, reference[1:].split("/")):
                # In this order, as RFC 6901 has it: ~01 is ~1, and no slash.
                key = key.replace("~1", "/").replace("~0", "~")
                value = (
                    value.get(key, _NONE)
                    if isinstance(value, dict)
                    else value[int(key)]
                    if isinstance(value, list) and key.isdigit() and int(key) < len(value)
                    else _NONE
                )
                if value is _NONE:
                    raise ValueError(f"{location} leads to nothing")
        return value

    def flatten_schema(self, schema: Any, location: str) -> dict[str, Any]:
        """The schema without references, `allOf`, `oneOf` and `anyOf`. One that holds itself ends as any value."""
        # A tree of references may grow without end, level by level.
        self._left = VALUES_MAX
        return self._flatten_subschema(schema, location, ())

    def _flatten_subschema(self, schema: Any, location: str, above: tuple[str, ...]) -> dict[str, Any]:
        self._left -= 1
        reference = str(schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else ""
        definition = self.resolve_reference(schema)
        if (
            not isinstance(definition, dict)
            or self._left < 0
            or len(above) > DEPTH_MAX
            or (reference and reference in above)
        ):
            return {}
        above = (*above, reference)
        result = {key: definition[key] for key in KEPT if key in definition}
        if isinstance(description := result.get("description"), str):
            result["description"] = self.personal.mask_text(description)
        kinds = definition.get("type")
        for kind in kinds if isinstance(kinds, list) else [kinds]:  # of 3.1: null is one of several
            if isinstance(kind, str) and kind != "null":
                result.setdefault("type", kind)
        if "discriminator" in definition or len(definition.get("oneOf") or ()) > 1:
            self.lacking.append(f"{location}: of several forms (oneOf, discriminator) the first is taken")
        for key in ("oneOf", "anyOf"):
            forms = [
                self.resolve_reference(sub_schema)
                for sub_schema in definition.get(key) or ()
                if isinstance(sub_schema, dict)
            ]
            usable_forms = [
                sub_schema for sub_schema in forms if isinstance(sub_schema, dict) and sub_schema.get("type") != "null"
            ]
            if usable_forms and "properties" not in definition:
                result = self._merge_schemas(result, self._flatten_subschema(usable_forms[0], location, above))
        for sub_schema in definition.get("allOf") or ():
            result = self._merge_schemas(result, self._flatten_subschema(sub_schema, location, above))
        own_keys: dict[str, Any] = {}
        if isinstance(properties_found := definition.get("properties"), dict):
            own_keys["properties"] = {
                str(name): self._flatten_subschema(sub_schema, location, above)
                for name, sub_schema in properties_found.items()
            }
        if isinstance(needs := definition.get("required"), list):
            own_keys["required"] = [str(sub_schema) for sub_schema in needs]
        if "items" in definition:
            own_keys["items"] = self._flatten_subschema(definition["items"], location, above)
        result = self._merge_schemas(result, own_keys)
        # Without a type, fields tell that it is an object.
        return result if "type" in result or "properties" not in result else {"type": "object", **result}

    def _merge_schemas(self, first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
        both = {**second, **first}
        for key in ("properties", "required"):
            if key in first and key in second:
                both[key] = {**first[key], **second[key]} if key == "properties" else [*first[key], *second[key]]
        return both

    def make_sample(self, schema: Mapping[str, Any], name: str, *, reply: bool) -> Any:
        """A value of a whole schema: its example, or one that is drawn by the dice of its name. `reply`: without fields
        that only a request has; else without those that only a reply has."""
        if (example := find_example(schema)) is not _NONE:
            return self.mask_example(example, name)
        if isinstance(one_of := schema.get("enum"), list) and one_of:
            return self.dice(name).pick(one_of)
        match schema.get("type"):
            case "object":
                hidden = "writeOnly" if reply else "readOnly"
                fields = (schema.get("properties") or {}).items()
                return {
                    key: self.make_sample(field_schema, f"{name}.{key}", reply=reply)
                    for key, field_schema in fields
                    if not field_schema.get(hidden)
                }
            case "array":
                many = (
                    max(1, min(_number_or_default(schema.get("minItems"), 1), ITEMS_MAX))
                    if self._samples_left > 0
                    else 1
                )
                self._samples_left -= int(many)
                return [self.make_sample(schema.get("items") or {}, name, reply=reply) for _ in range(int(many))]
            case "integer" | "number" as kind:
                # The next whole number above an exclusive bound.
                low = _number_or_default(schema.get("minimum", schema.get("exclusiveMinimum")), 1) + (
                    "exclusiveMinimum" in schema
                )
                high = _number_or_default(schema.get("maximum", schema.get("exclusiveMaximum")), max(low, 1) + 99)
                number = self.dice(name).draw_between(low, max(low, high - ("exclusiveMaximum" in schema)))
                return int(number) if kind == "integer" else round(number, 2)
            case "boolean":
                return True
            case "string":
                return self._make_sample_text(schema, name)
        return None

    def _make_sample_text(self, schema: Mapping[str, Any], name: str) -> str:
        if "pattern" in schema:
            self.lacking.append(f"{name}: no example keeps to its pattern")
        kind = schema.get("format")
        if kind == "uuid":
            return draw_uuid(self.dice(name))
        text = FORMATS.get(str(kind), name.rpartition(".")[2])
        min_length = _number_or_default(schema.get("minLength"), 0)
        if min_length > TEXT_MAX:
            self.lacking.append(f"{name}: its example has {TEXT_MAX} characters, and should have {min_length:.15g}")
        text = text.ljust(int(min(min_length, TEXT_MAX)), "x")
        return text[: int(min(max(_number_or_default(schema.get("maxLength"), len(text)), 0), len(text)))]

    def mask_example(self, value: Any, name: str) -> Any:
        """An example without secrets and personal data, which the name of its field may tell."""
        key = name.rpartition(".")[2]
        # By the name of its field too: a "password" is one whatever its value looks like.
        masked_value = self.personal.mask_value({key: value})
        return masked_value[key] if isinstance(masked_value, dict) else self.personal.mask_text(str(value))


def remove_examples(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A whole schema as it is written down: an example or a default may be a secret."""
    copy = {key: value for key, value in schema.items() if key not in ("example", "examples", "default")}
    if isinstance(fields := copy.get("properties"), dict):
        copy["properties"] = {name: remove_examples(value) for name, value in fields.items()}
    return {**copy, "items": remove_examples(copy["items"])} if isinstance(copy.get("items"), dict) else copy


def find_example(schema: Mapping[str, Any]) -> Any:
    """The example, constant or default of a schema, a parameter or a medium; NONE if it has none."""
    several = schema.get("examples")
    if isinstance(several, dict) and several:  # of OpenAPI, each with a value
        several = [entry["value"] for entry in several.values() if isinstance(entry, dict) and "value" in entry]
    examples = [schema[key] for key in ("example", "const") if key in schema]
    examples += several if isinstance(several, list) else []
    return next(iter([*examples, *([schema["default"]] if schema.get("default") is not None else [])]), _NONE)


def draw_uuid(dice: Dice) -> str:
    bits = f"{dice.make_generator().getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"


def make_next_id(last: Any, number: int) -> Any:
    """An id like the last one, which it follows. `number`: of the ids that were made so."""
    if isinstance(last, int) and not isinstance(last, bool):
        return last + 1
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text := str(last)):
        # By the last id, so that each trial makes the same ones.
        return draw_uuid(Dice(text, number))
    # Up to fifteen digits: Python refuses to read very long numbers.
    head, digits = re.fullmatch(r"(.*?)(\d{0,15})", text, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{head}{int(digits) + 1:0{len(digits)}d}" if digits else f"{head}_{number + 1}"


def _number_or_default(value: Any, usual: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)  # of 3.0, a bound may be a boolean
    return value if is_number else usual


NONE = _NONE
