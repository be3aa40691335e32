"""A service as data: it survives its own JSON, and a tool's arguments find their place in its request."""

import importlib
import json
from typing import Any

import pytest

from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec, fill_template

TOOL = ToolSpec("send", "Sends a message.", {"type": "object"}, "POST", "/send", body={"to": "$to"})


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_says_of_itself_reaches_the_agent_over_http(name: str) -> None:
    service: ServiceSpec = importlib.import_module(f"chaoslab.flask_tools.{name}").SERVICE
    assert ServiceSpec.from_json(json.loads(json.dumps(service.to_json()))) == service
    assert service.name == name


def test_what_may_be_left_out_has_a_default() -> None:
    said = {"name": "bank", "tools": [], "errors": {"429": {"status": 200, "body": {"ok": False}}}}
    assert ServiceSpec.from_json(said) == ServiceSpec("bank", (), {429: ErrorReply(200, {"ok": False})})


@pytest.mark.parametrize(
    ("template", "arguments", "filled"),
    [
        ({"q": "$city", "units": "metric"}, {"city": "Oslo"}, {"q": "Oslo", "units": "metric"}),
        ({"q": "$city", "lang": "$language"}, {"city": "Oslo"}, {"q": "Oslo"}),
        ({"q": "$city", "lang": "$language"}, {"city": "Oslo", "language": None}, {"q": "Oslo"}),
        ({"start": {"dateTime": "$start", "zone": "$zone"}}, {"start": "10:00"}, {"start": {"dateTime": "10:00"}}),
        ({"n": "$n", "flag": "$flag", "text": "$text"}, {"n": 0, "flag": False, "text": ""},
         {"n": 0, "flag": False, "text": ""}),
        ({"text": "$text"}, {"text": "$to costs $5", "to": "Ana"}, {"text": "$to costs $5"}),
        ({"limit": 5, "deep": True, "none": None}, {}, {"limit": 5, "deep": True, "none": None}),
        ("$city", {"city": "Oslo"}, "Oslo"),
        ("plain", {}, "plain"),
    ],
)  # fmt: skip
def test_arguments_find_their_place(template: Any, arguments: dict[str, Any], filled: Any) -> None:
    before = json.dumps(template)
    assert fill_template(template, arguments) == filled
    assert json.dumps(template) == before


def test_only_a_get_is_safe_to_ask_again() -> None:
    assert not TOOL.is_safe
    assert ToolSpec("look", "Looks.", {}, "GET", "/look").is_safe
    assert not ToolSpec("drop", "Drops.", {}, "DELETE", "/drop").is_safe
