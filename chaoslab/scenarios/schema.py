"""The JSON Schema of scenario files, for editors."""

import inspect
from collections.abc import Mapping
from typing import Any

from chaoslab.analysis.assertions import GROUP, load_assertion
from chaoslab.base.registry import list_plugins
from chaoslab.core import triggers
from chaoslab.scenarios.spec import ITS_OWN, FaultSpec, ScenarioSpec, collect_key_meanings

DRAFT = "http://json-schema.org/draft-07/schema#"


def build_schema() -> dict[str, Any]:
    """The schema (draft-07), with the names of all faults and assertions that are installed."""
    schema_root: dict[str, Any] = ScenarioSpec.model_json_schema(mode="validation")
    schema_root = _convert_defs_to_draft07(schema_root)
    definitions = schema_root["definitions"]
    definitions["FaultSpec"]["properties"]["fault"] = {"enum": list(list_plugins("faults")), "type": "string"}
    definitions["FaultSpec"]["properties"]["target"] = _build_text_or_list_schema()
    turn = definitions["TurnSpec"]
    schema_root["properties"]["turns"]["items"] = {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/definitions/TurnSpec"}]
    }
    schema_root["properties"]["facts"]["items"] = _build_text_or_list_schema()
    definitions["Assertion"] = _build_assertion_schema()
    operation = definitions["OperationSpec"]
    for holder in (definition["properties"]["expect"] for definition in (schema_root, turn, operation)):
        holder["items"] = {"$ref": "#/definitions/Assertion"}
    meanings_by_type = {"": collect_key_meanings(ScenarioSpec), "FaultSpec": collect_key_meanings(FaultSpec)}
    for name, holder in {"": schema_root, **definitions}.items():
        _add_descriptions(holder.get("properties", {}), meanings_by_type.get(name, {}))
    for name in triggers.list_trigger_names():
        definitions["FaultSpec"]["properties"][name] = {"description": _read_docstring(triggers.load_trigger(name))}
    schema_root["properties"]["variants"] |= _build_variants_schema(schema_root["properties"])
    return {**schema_root, "$schema": DRAFT, "title": "A scenario of the chaos lab"}


def _add_descriptions(properties: dict[str, Any], meaning_by_key: Mapping[str, str]) -> None:
    """Adds the meaning of each key, which editors show. A title, which is only the key once more, goes."""
    for key, property_schema in properties.items():
        property_schema.pop("title", None)
        if key in meaning_by_key:
            property_schema["description"] = meaning_by_key[key]


def _build_variants_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """A list of named variants, or lists of values by key. A key with a dot is a parameter of a fault."""
    # A variant has its own name and no variants.
    replaceable = {key: property_schema for key, property_schema in properties.items() if key not in ITS_OWN}
    closed = {"type": "object", "additionalProperties": False}
    named = {"name": {"type": "string", "minLength": 1, "maxLength": 100}, **replaceable}
    lists = {
        key: {"type": "array", "items": property_schema, "minItems": 1} for key, property_schema in replaceable.items()
    }
    variant_schema = {**closed, "properties": named, "required": ["name"], "patternProperties": {r"\.": {}}}
    values = {r"\.": {"type": "array", "minItems": 1}}
    return {
        "anyOf": [
            {"type": "array", "items": variant_schema},
            {**closed, "properties": lists, "patternProperties": values},
        ]
    }


def _build_text_or_list_schema() -> dict[str, Any]:
    text = {"type": "string"}
    return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}


def _build_assertion_schema() -> dict[str, Any]:
    assertion_names = list_plugins(GROUP)
    properties = {name: {"description": _read_docstring(load_assertion(name))} for name in assertion_names}
    single_schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [{"enum": list(assertion_names), "type": "string"}, single_schema]}


def _read_docstring(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split())


def _convert_defs_to_draft07(value: Any) -> Any:
    """The same with draft-07's name for definitions."""
    if isinstance(value, dict):
        return {
            ("definitions" if key == "$defs" else key): _convert_defs_to_draft07(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_convert_defs_to_draft07(item) for item in value]
    return value.replace("#/$defs/", "#/definitions/") if isinstance(value, str) else value
