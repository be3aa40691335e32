"""The messages of MCP over HTTP, all of which are POST requests: a call of a tool is an effect, and no other is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CALL = "tools/call"
_BEGINNINGS = ("completion/", "logging/", "notifications/", "prompts/", "resources/", "roots/", "server/", "tools/")
_METHODS = frozenset({"initialize", "ping"})


def effects_of(value: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The effects of the message that a request's body is; None if it is no message of MCP."""
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
    return [(params["name"], arguments if isinstance(arguments, Mapping) else {})]
