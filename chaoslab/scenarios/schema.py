"""The JSON Schema of scenario files, for editors."""

import inspect
from collections.abc import Mapping
from typing import Any

from chaoslab.analysis.assertions import GROUP, load
from chaoslab.base.registry import names
from chaoslab.core import triggers
from chaoslab.scenarios.spec import ITS_OWN, FaultSpec, ScenarioSpec, meanings

DRAFT = "http://json-schema.org/draft-07/schema#"


def schema() -> dict[str, Any]:
    """The schema (draft-07), with the names of all faults and assertions that are installed."""
    made: dict[str, Any] = ScenarioSpec.model_json_schema(mode="validation")
    made = _renamed(made)
    definitions = made["definitions"]
    definitions["FaultSpec"]["properties"]["fault"] = {"enum": list(names("faults")), "type": "string"}
    definitions["FaultSpec"]["properties"]["target"] = _texts()
    turn = definitions["TurnSpec"]
    made["properties"]["turns"]["items"] = {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/definitions/TurnSpec"}]
    }
    made["properties"]["facts"]["items"] = _texts()
    definitions["Assertion"] = _assertion()
    operation = definitions["OperationSpec"]
    for holder in (each["properties"]["expect"] for each in (made, turn, operation)):
        holder["items"] = {"$ref": "#/definitions/Assertion"}
    said = {"": meanings(ScenarioSpec), "FaultSpec": meanings(FaultSpec)}
    for name, holder in {"": made, **definitions}.items():
        _describe(holder.get("properties", {}), said.get(name, {}))
    for name in triggers.names():
        definitions["FaultSpec"]["properties"][name] = {"description": _meaning(triggers.load(name))}
    made["properties"]["variants"] |= _variants(made["properties"])
    return {**made, "$schema": DRAFT, "title": "A scenario of the chaos lab"}


def _describe(properties: dict[str, Any], said: Mapping[str, str]) -> None:
    """Adds the meaning of each key, which editors show. A title, which is only the key once more, goes."""
    for key, of in properties.items():
        of.pop("title", None)
        if key in said:
            of["description"] = said[key]


def _variants(properties: dict[str, Any]) -> dict[str, Any]:
    """A list of named variants, or lists of values by key. A key with a dot is a parameter of a fault."""
    own = {key: each for key, each in properties.items() if key not in ITS_OWN}
    closed = {"type": "object", "additionalProperties": False}
    named = {"name": {"type": "string", "minLength": 1, "maxLength": 100}, **own}
    lists = {key: {"type": "array", "items": each, "minItems": 1} for key, each in own.items()}
    one = {**closed, "properties": named, "required": ["name"], "patternProperties": {r"\.": {}}}
    values = {r"\.": {"type": "array", "minItems": 1}}
    return {"anyOf": [{"type": "array", "items": one}, {**closed, "properties": lists, "patternProperties": values}]}


def _texts() -> dict[str, Any]:
    text = {"type": "string"}
    return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}


def _assertion() -> dict[str, Any]:
    known = names(GROUP)
    properties = {name: {"description": _meaning(load(name))} for name in known}
    one = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [{"enum": list(known), "type": "string"}, one]}


def _meaning(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split())


def _renamed(value: Any) -> Any:
    """The same with draft-07's name for definitions."""
    if isinstance(value, dict):
        return {("definitions" if key == "$defs" else key): _renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    return value.replace("#/$defs/", "#/definitions/") if isinstance(value, str) else value
