"""MCP over HTTP. A call of a tool is an effect, and no other message is. A tool that only reads has none: the server
says so of it in its list of tools, as `readOnlyHint`. Nor has a call that failed, as a function has none that
raises."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chaoslab.core.json_values import parsed
from chaoslab.seams.protocols import json_rpc
from chaoslab.seams.protocols import schema as schemas
from chaoslab.seams.protocols.json_rpc import JsonRpc
from chaoslab.seams.protocols.message import Effects, Message, Part, ToolAnswer

NAME = "mcp"
CALL, LIST = "tools/call", "tools/list"
CONTENTS = {"prompts/get": "messages", "resources/read": "contents"}
"""The other methods that ask for content: the field of the result that holds it."""
_BEGINNINGS = (
    "completion/", "logging/", "notifications/", "prompts/", "resources/", "roots/", "server/", "subscriptions/",
    "tasks/", "tools/",
)  # fmt: skip
_METHODS = frozenset({"initialize", "ping"})
_SESSION = frozenset({b"mcp-session-id", b"mcp-protocol-version"})
"""The headers of a request that opens or ends a session's stream."""
_NONE = object()
_NEW = "io.modelcontextprotocol/protocolVersion"
"""The field of a request's `_meta` from protocol 2026-07-28 on, whose results have a type."""


def message(value: Mapping[str, Any]) -> Message | None:
    """The message of a request's fields; None if it is none of MCP."""
    method = value.get("method")
    if value.get("jsonrpc") != "2.0":
        return None
    if method is None and ("result" in value or "error" in value):  # the client answers the server
        return SessionMessage("answer", value)
    if not isinstance(method, str) or not (method in _METHODS or method.startswith(_BEGINNINGS)):
        return None
    params = value.get("params")
    if method == CALL and isinstance(params, Mapping) and isinstance(params.get("name"), str):
        return McpToolCall(value)
    if method == LIST:
        return Listing(value)
    return Content(value) if method in CONTENTS else SessionMessage(method, value)


def of_session(headers: Iterable[tuple[bytes, bytes]]) -> "SessionMessage | None":
    """The message that a request without a body is: it opens the stream of a session, or ends the session."""
    return SessionMessage("session", {}) if any(name.lower() in _SESSION for name, _ in headers) else None


class SessionMessage(Message):
    """A handshake, a ping, a notification, the end of a session, or another message that asks no tool."""

    part: Part = "session"

    def __init__(self, tool: str, body: Mapping[str, Any]) -> None:
        self.tool, self.arguments = tool, body

    def with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    def effects(self, arguments: Mapping[str, Any], said: Any) -> Effects:  # noqa: ARG002
        return []

    def answer(self, said: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        return None


class McpToolCall(JsonRpc):
    """A call of a tool."""

    protocol = NAME

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        given = self.arguments.get("arguments")
        self._params, self.tool = self.arguments, str(self.arguments["name"])
        self.arguments = given if isinstance(given, Mapping) else {}

    def with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.body, "params": {**self._params, "arguments": arguments}}

    def answer(self, said: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        found = super().answer(said)
        if found is None or not isinstance(found.value, Mapping):  # an error has no value
            return found
        data = found.value
        value = meaning(data) if "content" in data or "structuredContent" in data else None
        failed = data.get("isError") is True
        return ToolAnswer(value, lambda now: found.put(changed(data, now)), ok=not failed, words=str(value) * failed)

    def made(self, value: Any, schema: Any = None) -> Any:
        return super().made({**self._typed, **result(value, schema)})

    def failed(self, words: str) -> Any:
        return super().made({**self._typed, **refused(self.tool, words)})

    def fitted(self, value: Any, was: Any, schema: Any = None) -> Any:
        return fitted(value, was, schema)

    @property
    def _typed(self) -> dict[str, Any]:
        meta = self._params.get("_meta")
        return {"resultType": "complete"} if isinstance(meta, Mapping) and _NEW in meta else {}


class Content(JsonRpc):
    """A request for a prompt or a resource, whose texts are the answer."""

    protocol = NAME

    def effects(self, arguments: Mapping[str, Any], said: Any) -> Effects:  # noqa: ARG002
        return []

    def answer(self, said: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        found = super().answer(said)
        key = CONTENTS[self.tool]
        if found is None or not isinstance(found.value, Mapping) or not isinstance(found.value.get(key), list):
            return found
        data, parts = found.value, _parts(found.value[key])
        return ToolAnswer(_texts(parts), lambda now: found.put({**data, key: _told(parts, now)}))


class Listing(JsonRpc):
    """A request for the list of tools. The list is the answer."""

    protocol = NAME
    part: Part = "listing"

    def effects(self, arguments: Mapping[str, Any], said: Any) -> Effects:  # noqa: ARG002
        return []

    def answer(self, said: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        found = super().answer(said)
        if found is None or not isinstance(found.value, Mapping) or not isinstance(found.value.get("tools"), list):
            return found
        data = found.value
        return ToolAnswer(data["tools"], lambda now: found.put({**data, "tools": now}))


def tools_in(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The tools of the lists in an answer, be it JSON or a stream of events."""
    for said in json_rpc.values(body):
        found = said.get("result") if isinstance(said, Mapping) else None
        tools = found.get("tools") if isinstance(found, Mapping) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
                yield tool


def only_reads(tool: Any) -> bool:
    """True if a tool in a list says that it only reads."""
    return _notes(tool).get("readOnlyHint") is True


def may_be_repeated(tool: Any) -> bool:
    """True if a tool in a list says that several equal calls have the effect of one."""
    return _notes(tool).get("idempotentHint") is True


def _notes(tool: Any) -> Mapping[str, Any]:
    notes = tool.get("annotations") if isinstance(tool, Mapping) and "name" in tool else None
    return notes if isinstance(notes, Mapping) else {}


# A tool's result, which is the same in all transports.


def meaning(data: Mapping[str, Any]) -> Any:
    """The value of a result: the structured content, else the text or the JSON in it. Of several parts the texts."""
    if (structure := data.get("structuredContent")) is not None:
        return structure["result"] if _is_wrapped(structure) else structure
    return _texts(_parts(data.get("content")))


def changed(data: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The result with another value."""
    structure, parts = data.get("structuredContent"), _parts(data.get("content"))
    if structure is None:
        return {**data, "content": _told(parts, value)}
    indent = 2 if any("\n" in str(part.get("text")) for part in parts) else None
    told = {"structuredContent": {"result": value} if _is_wrapped(structure) else value}
    return {**data, **said(_as_text(value, indent)), **told}


def fitted(value: Any, was: Any, schema: Any) -> Any:
    """The value of a result in the form of its schema; without one, in that of the true value."""
    if not isinstance(schema, Mapping):
        return value if isinstance(was, str) else schemas.fitted(value, was, schemas.schema_of(was))
    if "result" in schema.get("properties", ()) and not (isinstance(was, Mapping) and "result" in was):
        return schemas.fitted({"result": value}, {"result": was}, schema)["result"]
    return schemas.fitted(value, was, schema)


def said(text: str) -> dict[str, Any]:
    """A result that is a text."""
    return {"content": [{"type": "text", "text": text}]}


def result(value: Any, schema: Any = None) -> dict[str, Any]:
    """A result of the lab's own, with structured content if the tool promises any."""
    made = said(_as_text(value))
    if isinstance(schema, Mapping):
        wrapped = list(schema.get("properties", ())) == ["result"]
        made["structuredContent"] = schemas.fitted({"result": value} if wrapped else value, None, schema)
    return made


def refused(name: str, words: str) -> dict[str, Any]:
    """A result that says it is an error, as a server makes it of an exception."""
    return {**said(f"Error executing tool {name}: {words}"), "isError": True}


def _parts(content: Any) -> list[Mapping[str, Any]]:
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _inner(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that has the text: itself, or the content of a prompt's message."""
    content = part.get("content")
    return content if isinstance(content, Mapping) else part


def _is_text(part: Mapping[str, Any]) -> bool:
    return isinstance(_inner(part).get("text"), str)


def _texts(parts: list[Mapping[str, Any]]) -> Any:
    """The only text; of several, a list; without any, the types of the parts."""
    texts = [_parsed(_inner(part)["text"]) for part in parts if _is_text(part)]
    return texts[0] if len(texts) == len(parts) == 1 else texts or [_inner(part).get("type", "") for part in parts]


def _told(parts: list[Mapping[str, Any]], value: Any) -> list[Mapping[str, Any]]:
    """The parts with these texts in the place of theirs. Texts that have no place come behind, and places without a
    text are left out."""
    written = [part for part in parts if _is_text(part)]
    texts = value if isinstance(value, list) and not len(written) == len(parts) == 1 else [value]
    told: list[Mapping[str, Any]] = []
    left = iter(texts)
    for part in parts:
        if not _is_text(part):
            told.append(part)
        elif (text := next(left, _NONE)) is not _NONE:
            told.append(_with_text(part, text))
    return [*told, *(_with_text(written[-1] if written else {"type": "text", "text": ""}, text) for text in left)]


def _with_text(part: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    inner = _inner(part)
    made = {**inner, "text": _as_text(value, 2 if "\n" in inner["text"] else None)}
    return made if inner is part else {**part, "content": made}


def _as_text(value: Any, indent: int | None = None) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str, indent=indent)


def _parsed(text: str) -> Any:
    """The object or list that the text is in JSON, else the text."""
    value = parsed(text)
    return text if value is None else value


def _is_wrapped(structure: Any) -> bool:
    """True for the object in which the SDK wraps a result that is none."""
    return isinstance(structure, Mapping) and list(structure) == ["result"]
