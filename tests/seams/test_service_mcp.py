"""Of the messages of MCP over HTTP, calls of tools are effects; other services' messages are what they were."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.seams.service_mcp import effects_of, reads_in

CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": 17}}}


@pytest.mark.parametrize(
    ("message", "effects"),
    [
        (CALL, [("refund", {"order": 17})]),
        ({**CALL, "params": {"name": "refund"}}, [("refund", {})]),
        ({**CALL, "params": {"name": "refund", "arguments": [17]}}, [("refund", {})]),
        ({**CALL, "params": {"arguments": {}}}, []),  # the server refuses it
        ({**CALL, "params": None}, []),
        ({**CALL, "method": "tools/list"}, []),
        ({**CALL, "method": "initialize"}, []),
        ({**CALL, "method": "notifications/initialized"}, []),
        ({"jsonrpc": "2.0", "id": 3, "result": {}}, []),
        ({**CALL, "method": "pay"}, None),
        ({**CALL, "method": ["tools/call"]}, None),
        ({**CALL, "jsonrpc": "1.0"}, None),
        ({"method": "tools/call", "params": {"name": "refund"}}, None),
        ({"order": 17}, None),
    ],
)
def test_the_effects_of_a_message(message: dict[str, Any], effects: list[Any] | None) -> None:
    assert effects_of(message) == effects


def test_a_services_effects_are_the_calls_of_its_tools() -> None:
    def agent(_: str) -> str:
        with httpx.Client(base_url="http://shop") as client:
            for message in ({**CALL, "method": "initialize"}, CALL, {**CALL, "method": "pay"}):
                client.post("/mcp", json=message)
        return "done"

    trial = lab.run(agent, "go", services={"shop": lambda request: {"asked": request.path}}, effects=[])
    assert [effect["effect"] for effect in trial.effects] == ["refund", "POST /mcp"]
    assert trial.effects[0] == {"effect": "refund", "order": 17}


TOOLS = {
    "jsonrpc": "2.0", "id": 2,
    "result": {"tools": [
        {"name": "find", "annotations": {"readOnlyHint": True}},
        {"name": "refund", "annotations": {"readOnlyHint": False}}, {"name": "pay"},
        {"name": "odd", "annotations": []}, "none",
    ]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "kind", "reads"),
    [
        (json.dumps(TOOLS).encode(), "application/json", {"find"}),
        (
            b"event: message\ndata: " + json.dumps(TOOLS).encode() + b"\n\n",
            "text/event-stream; charset=utf-8",
            {"find"},
        ),
        (b"<html>", "text/html", set()),
        (b"[]", "application/json", set()),
        (b'{"result": {"tools": 3}}', "application/json", set()),
        (b"", "", set()),
    ],
)
def test_the_tools_without_effects(body: bytes, kind: str, reads: set[str]) -> None:
    assert reads_in(body, kind) == reads


def test_a_tool_that_the_server_calls_read_only_has_no_effect() -> None:
    find = {**CALL, "params": {"name": "find", "arguments": {"order": 17}}}

    def agent(_: str) -> str:
        with httpx.Client(base_url="http://shop") as client:
            for message in (find, {**CALL, "method": "tools/list"}, find, CALL):
                client.post("/mcp", json=message)
        return "done"

    def shop(request: Any) -> dict[str, Any]:
        return TOOLS if request.json["method"] == "tools/list" else {}

    for _ in range(2):  # nothing is known from an earlier trial
        trial = lab.run(agent, "go", services={"shop": shop}, effects=[])
        assert [effect["effect"] for effect in trial.effects] == ["find", "refund"]  # before the list was asked for
