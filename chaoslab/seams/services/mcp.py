"""The messages of MCP over HTTP, all of which are POST requests: a call of a tool is an effect, and no other is.

A tool that only reads has none: the server says so of it in its list of tools, as `readOnlyHint`. Nor has a call that
failed, as a function has none that raises.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

CALL, LIST = "tools/call", "tools/list"
_BEGINNINGS = ("completion/", "logging/", "notifications/", "prompts/", "resources/", "roots/", "server/", "tools/")
_METHODS = frozenset({"initialize", "ping"})


def effects_of(value: Mapping[str, Any], none: Collection[str] = ()) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The effects of the message that a request's body is; None if it is no message of MCP. `none`: the tools whose
    calls are no effects."""
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0":
        return None
    if method is None and ("result" in value or "error" in value):  # the client answers the server
        return []
    if not isinstance(method, str) or not (method in _METHODS or method.startswith(_BEGINNINGS)):
        return None
    if method != CALL or not isinstance(params, Mapping) or not isinstance(params.get("name"), str):
        return []
    if params["name"] in none:
        return []
    arguments = params.get("arguments")
    return [(params["name"], arguments if isinstance(arguments, Mapping) else {})]


def lists(value: Mapping[str, Any]) -> bool:
    """True if the message asks for the list of tools."""
    return value.get("method") == LIST and value.get("jsonrpc") == "2.0"


def read_only(body: bytes) -> set[str]:
    """The tools that only read, by the lists of tools in an answer: JSON, or a stream of events."""
    found: set[str] = set()
    for message in _messages(body):
        result = message.get("result") if isinstance(message, dict) else None
        tools = result.get("tools") if isinstance(result, dict) else None
        found.update(str(tool["name"]) for tool in tools if only_reads(tool)) if isinstance(tools, list) else None
    return found


def only_reads(tool: Any) -> bool:
    """True if a tool in a list says that it only reads."""
    notes = tool.get("annotations") if isinstance(tool, dict) and "name" in tool else None
    return isinstance(notes, dict) and notes.get("readOnlyHint") is True


def failed(body: bytes) -> bool:
    """True if an answer says that the call failed: by an error, or by a result that says it is one."""
    for message in _messages(body):
        result = message.get("result") if isinstance(message, dict) else None
        if (isinstance(message, dict) and "error" in message) or (
            isinstance(result, dict) and result.get("isError") is True
        ):
            return True
    return False


def _messages(body: bytes) -> Iterator[Any]:
    texts = [line[5:] for line in body.splitlines() if line.startswith(b"data:")] or [body]
    for text in texts:
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue
