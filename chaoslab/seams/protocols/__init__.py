"""The protocols in which a request's body may name a tool and carry its arguments, one file each. They read and spell
values, and do no I/O. A request in none of them is plain HTTP: its method and path are the tool."""

from collections.abc import Iterable, Mapping
from typing import Any

from chaoslab.seams.protocols import graphql, json_rpc, mcp
from chaoslab.seams.protocols.message import Message


def parse_message(value: Mapping[str, Any], headers: Iterable[tuple[bytes, bytes]], *, body: bool) -> Message | None:
    """The message that a request is by the fields of its body and its query, or by its headers if it has no `body`;
    None for plain HTTP."""
    # MCP first, as its messages are JSON-RPC too.
    if "jsonrpc" in value:
        return mcp.read_message(value) or json_rpc.read_message(value)
    # A list of messages is a batch of MCP alone; JSON-RPC's own are plain requests.
    if isinstance(value.get("body"), list):
        return mcp.read_batch(value["body"])
    if "query" in value:
        return graphql.read_message(value)
    # With a body a session's header says nothing: the body does.
    return None if body else mcp.read_session_request(headers)
