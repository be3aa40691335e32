"""The messages of MCP over HTTP, all of which are POST requests: a call of a tool is an effect, and no other is.

A tool is none either if the server has said so in the list of its tools (`readOnlyHint`).
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Any

from chaoslab.core.stream import EVENT_STREAM, Events, data_of

CALL, LIST = "tools/call", "tools/list"
_BEGINNINGS = ("completion/", "logging/", "notifications/", "prompts/", "resources/", "roots/", "server/", "tools/")
_METHODS = frozenset({"initialize", "ping"})


def effects_of(value: Mapping[str, Any], reads: Container[str] = ()) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The effects of the message that a request's body is; None if it is no message of MCP. `reads`: the tools that
    have none."""
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0":
        return None
    if method is None and ("result" in value or "error" in value):  # the client answers the server
        return []
    if not isinstance(method, str) or not (method in _METHODS or method.startswith(_BEGINNINGS)):
        return None
    if method != CALL or not isinstance(params, Mapping) or not isinstance(params.get("name"), str):
        return []
    arguments = params.get("arguments")
    if params["name"] in reads:
        return []
    return [(params["name"], arguments if isinstance(arguments, Mapping) else {})]


def asks_for_tools(value: Mapping[str, Any]) -> bool:
    """True if the message asks for the list of tools."""
    return value.get("jsonrpc") == "2.0" and value.get("method") == LIST


def reads_in(body: bytes, content_type: str) -> set[str]:
    """The tools without effects in a list of tools, which is an object or a stream of events; none if it is none."""
    found: set[str] = set()
    with suppress(ValueError, RecursionError):
        streamed = content_type.startswith(EVENT_STREAM)
        for text in map(data_of, Events().feed(body)) if streamed else (body,):
            message = json.loads(text) if text else None
            result = message.get("result") if isinstance(message, dict) else None
            tools = result.get("tools") if isinstance(result, dict) else None
            for tool in tools if isinstance(tools, list) else ():
                hints = tool.get("annotations") if isinstance(tool, dict) else None
                if isinstance(hints, dict) and hints.get("readOnlyHint") is True:
                    found.add(str(tool.get("name")))
    return found
