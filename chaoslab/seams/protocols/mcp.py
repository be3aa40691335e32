"""The messages of MCP, of the protocols from 2025-03-26 to 2026-07-28. A call of a tool is an effect, and no other
message is. A tool that only reads has none: the server says so of it in its list of tools, as `readOnlyHint`. Nor has
a call that failed, as a function has none that raises.

An answer to a call is not always its result. The server may ask its client first, who then calls again
(`input_required`, 2026-07-28), or accept the call as a task, whose result is asked for later (2025-11-25). Several
messages may come as one, a batch (2025-03-26).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chaoslab.core.json_values import parse_container
from chaoslab.core.page import Page
from chaoslab.seams.protocols import json_rpc
from chaoslab.seams.protocols import schema as schemas
from chaoslab.seams.protocols.json_rpc import JsonRpc
from chaoslab.seams.protocols.message import Effects, Message, Part, ToolAnswer

NAME = "mcp"
CALL, LIST, TASK_RESULT = "tools/call", "tools/list", "tasks/result"
BEGIN = "initialize"
_FAILED = ("failed", "cancelled")
"""The states of a task that ended without a result (2025-11-25)."""
CONTENTS = {"prompts/get": "messages", "resources/read": "contents"}
"""The other methods that ask for content: the field of the result that holds it."""
_BEGINNINGS = (
    "completion/",
    "logging/",
    "notifications/",
    "prompts/",
    "resources/",
    "roots/",
    "server/",
    "subscriptions/",
    "tasks/",
    "tools/",
)
_METHODS = frozenset({BEGIN, "ping"})
_SESSION = frozenset({b"mcp-session-id", b"mcp-protocol-version"})
"""The headers of a request that opens or ends a session's stream."""
_NONE = object()
VERSION = "io.modelcontextprotocol/protocolVersion"
"""The field of a request's `_meta` from protocol 2026-07-28 on, whose results have a type."""


def read_message(value: Mapping[str, Any]) -> "JsonRpc | SessionMessage | None":
    """The message of a request's fields; None if it is none of MCP."""
    method = value.get("method")
    if value.get("jsonrpc") != "2.0":
        return None
    # An answer of the client's to a question of the server's keeps the session up.
    if method is None and ("result" in value or "error" in value):  # the client answers the server
        return SessionMessage("answer", value)
    # By known beginnings: another JSON-RPC service may have a method called `search`.
    if not isinstance(method, str) or not (method in _METHODS or method.startswith(_BEGINNINGS)):
        return None
    params = value.get("params")
    if method == CALL and isinstance(params, Mapping) and isinstance(params.get("name"), str):
        return McpToolCall(value)
    if method == LIST:
        return ToolListRequest(value)
    # Content has a value that faults may change; all other talk keeps up the session.
    return ContentRequest(value) if method in CONTENTS else SessionMessage(method, value)


def read_batch(items: Sequence[Any]) -> "Batch | None":
    """The message that several are together; None if one of them is none of MCP."""
    messages = [read_message(item) if isinstance(item, Mapping) else None for item in items]
    # A batch with one message that is none of MCP is somebody else's.
    if not messages or None in messages:
        return None
    return Batch(
        items, {index: item_message for index, item_message in enumerate(messages) if isinstance(item_message, JsonRpc)}
    )


def read_session_request(headers: Iterable[tuple[bytes, bytes]]) -> "SessionMessage | None":
    """The message that a request without a body is: it opens the stream of a session, or ends the session."""
    return SessionMessage("session", {}) if any(name.lower() in _SESSION for name, _ in headers) else None


class SessionMessage(Message):
    """A handshake, a ping, a notification, the end of a session, or another message that asks no tool."""

    part: Part = "session"

    def __init__(self, tool: str, body: Mapping[str, Any]) -> None:
        self.tool, self.arguments = tool, body

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:  # noqa: ARG002
        return []

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        return None


class McpToolCall(JsonRpc):
    """A call of a tool."""

    protocol = NAME

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        tool_arguments = self.arguments.get("arguments")
        self._params, self.tool = self.arguments, str(self.arguments["name"])
        self.arguments = tool_arguments if isinstance(tool_arguments, Mapping) else {}

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.body, "params": {**self._params, "arguments": arguments}}

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        rpc_answer = super().extract_tool_answer(reply)
        if rpc_answer is None or not isinstance(rpc_answer.value, Mapping):  # an error has no value
            return rpc_answer
        data = rpc_answer.value
        if not is_tool_result(data):
            # A question to the client, or a task: the call has no result yet, and a change of it would break the
            # exchange.
            return ToolAnswer(None, lambda _: reply, done=False)
        value = get_result_value(data) if "content" in data or "structuredContent" in data else None
        failed = data.get("isError") is True
        return ToolAnswer(
            value, lambda now: rpc_answer.put(replace_result_value(data, now)), ok=not failed, words=str(value) * failed
        )

    def build_result_reply(self, value: Any, schema: Any = None) -> Any:
        return super().build_result_reply({**self._result_type_field, **make_tool_result(value, schema)})

    def build_error_reply(self, error_text: str) -> Any:
        return super().build_result_reply({**self._result_type_field, **make_error_result(self.tool, error_text)})

    def fit_value(self, value: Any, was: Any, schema: Any = None) -> Any:
        return fit_value_to_schema(value, was, schema)

    @property
    def _result_type_field(self) -> dict[str, Any]:
        # Only from 2026-07-28 on a result has a type.
        meta = self._params.get("_meta")
        return {"resultType": "complete"} if isinstance(meta, Mapping) and VERSION in meta else {}


class TaskResult(McpToolCall):
    """A request for the result of a call that was accepted as a task. It is of the call's tool, with its arguments."""

    def __init__(self, body: Mapping[str, Any], call: McpToolCall, task: str) -> None:
        self.body, self.task = body, task
        self.tool, self.arguments, self._params = call.tool, call.arguments, body["params"]

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - the server has them
        return self.body


class Tasks:
    """The calls that a server has accepted as tasks, by the tasks' ids. A task has one effect, however often its result
    is asked for."""

    def __init__(self) -> None:
        self._calls: dict[str, McpToolCall] = {}
        self._open: set[str] = set()

    def find_call_of_task_result(self, message: Message | None) -> Message | None:
        """The call whose result a message asks for; the message itself if it asks for none."""
        if isinstance(message, SessionMessage) and message.tool == TASK_RESULT:
            params = message.arguments.get("params")
            task = params.get("taskId") if isinstance(params, Mapping) else None
            if isinstance(task, str) and task in self._calls:
                return TaskResult(message.arguments, self._calls[task], task)
        return message

    def record_reply(self, reply: Any, message: Message | None = None) -> bool:
        """Takes what a server says, in answer to this message if it is one. False: it tells the result of a task that
        had ended before."""
        if isinstance(message, TaskResult):
            has_ended = self.asks_ended_task(message)
            self._open.discard(message.task)
            return not has_ended
        # Beside answers, notifications tell of a task's state.
        data = reply.get("result", reply.get("params")) if isinstance(reply, Mapping) else None
        if isinstance(data, Mapping):
            if isinstance(message, McpToolCall) and (task := _get_task_id(data)) is not None:
                self._calls[task] = message
                self._open.add(task)
            # A task that failed did nothing, as a call that failed.
            elif data.get("status") in _FAILED or _is_error_result(data.get("result")):
                self._open.discard(str(data.get("taskId")))
        return True

    def asks_ended_task(self, question: Message | None) -> bool:
        """True if a message asks for the result of a task whose end is known."""
        return isinstance(question, TaskResult) and question.task not in self._open

    def list_unfinished_calls(self) -> list[McpToolCall]:
        """The calls of tasks whose end nobody has heard of, which therefore may have done their work."""
        # Sorted, as a set has no order.
        return [self._calls[task] for task in sorted(self._open)]


class Batch(Message):
    """Several messages in one (2025-03-26). Of several calls, all tools are its tool, and the arguments are by id."""

    protocol = NAME

    def __init__(self, items: Sequence[Any], calls: Mapping[int, JsonRpc]) -> None:
        """`calls`: those of the messages that are no talk of a session, by their places."""
        self._items, self._calls = items, calls
        # Ids may be numbers or texts, and a client matches either.
        self._ids = {index: str(call.body.get("id")) for index, call in calls.items()}
        # Alone, the one call's tool and arguments are those of the batch.
        self._alone = next(iter(calls.values())) if len(calls) == 1 else None
        self.tool = ", ".join(call.tool for call in calls.values())
        several = {self._ids[index]: call.arguments for index, call in calls.items()}
        self.arguments = several if self._alone is None else self._alone.arguments
        if all(call.part == "listing" for call in calls.values()):
            self.part = "listing" if calls else "session"

    def _get_call_part(self, value: Any, index: int) -> Any:
        """One call's part of what is by id."""
        return value if self._alone is not None else value.get(self._ids[index]) if isinstance(value, Mapping) else None

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        items = list(self._items)
        for index, call in self._calls.items():
            items[index] = call.build_body_with_arguments(self._get_call_part(arguments, index) or {})
        return {"body": items}

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:
        answers = self._find_answers(reply)
        return [
            effect for index, call in self._calls.items()
            for effect in call.list_effects(self._get_call_part(arguments, index) or {}, answers.get(index))
        ]  # fmt: skip

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:
        answers = self._find_answers(reply)
        by_index = {index: call.extract_tool_answer(answers.get(index), schema) for index, call in self._calls.items()}
        parts = {index: tool_answer for index, tool_answer in by_index.items() if tool_answer is not None}
        if not parts:
            return None

        def put_values(value: Any) -> Any:
            changed = {
                id(answers[index]): tool_answer.put(self._get_call_part(value, index))
                for index, tool_answer in parts.items()
            }
            # By identity: two answers may be equal.
            return [changed.get(id(item), item) for item in reply]

        values = {self._ids[index]: tool_answer.value for index, tool_answer in parts.items()}
        return ToolAnswer(
            # Some parts may have failed; the batch did its work if one has.
            next(iter(values.values())) if self._alone is not None else values,
            put_values,
            any(p.ok for p in parts.values()),
            next((p.words for p in parts.values() if p.words), ""),
            any(p.done for p in parts.values()),
        )

    def build_result_reply(self, value: Any, schema: Any = None) -> Any:
        return [call.build_result_reply(value, schema) for call in self._calls.values()]

    def build_error_reply(self, error_text: str) -> Any:
        return [call.build_error_reply(error_text) for call in self._calls.values()]

    def fit_value(self, value: Any, was: Any, schema: Any = None) -> Any:
        return value if self._alone is None else self._alone.fit_value(value, was, schema)

    def _find_answers(self, reply: Any) -> dict[int, Any]:
        """The answer to each call, by the call's place."""
        by_id = {str(item["id"]): item for item in reply if isinstance(item, Mapping) and "id" in item} if isinstance(
            reply, list) else {}  # fmt: skip
        return {index: by_id[call_id] for index, call_id in self._ids.items() if call_id in by_id}


class ContentRequest(JsonRpc):
    """A request for a prompt or a resource, whose texts are the answer."""

    protocol = NAME

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:  # noqa: ARG002
        return []

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        rpc_answer = super().extract_tool_answer(reply)
        key = CONTENTS[self.tool]
        if (
            rpc_answer is None
            or not isinstance(rpc_answer.value, Mapping)
            or not isinstance(rpc_answer.value.get(key), list)
        ):
            return rpc_answer
        data, parts = rpc_answer.value, _list_content_parts(rpc_answer.value[key])
        return ToolAnswer(_extract_texts(parts), lambda now: rpc_answer.put({**data, key: _replace_texts(parts, now)}))


class ToolListRequest(JsonRpc):
    """A request for the list of tools. The list is the answer."""

    protocol = NAME
    part: Part = "listing"

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:  # noqa: ARG002
        return []

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        rpc_answer = super().extract_tool_answer(reply)
        if (
            rpc_answer is None
            or not isinstance(rpc_answer.value, Mapping)
            or not isinstance(rpc_answer.value.get("tools"), list)
        ):
            return rpc_answer
        data = rpc_answer.value
        return ToolAnswer(data["tools"], lambda now: rpc_answer.put(replace_listed_tools(data, now)))


def replace_listed_tools(data: Mapping[str, Any], tools: Any) -> dict[str, Any]:
    """A list of tools with others. A page of them says where the next one is."""
    return {**data, "tools": tools, **({"nextCursor": tools.cursor} if isinstance(tools, Page) else {})}


def iterate_listed_tools(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The tools of the lists in an answer, be it JSON or a stream of events."""
    # Both forms of an answer, as the transport allows either.
    for reply in json_rpc.iterate_json_values(body):
        result = reply.get("result") if isinstance(reply, Mapping) else None
        tools = result.get("tools") if isinstance(result, Mapping) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
                yield tool


def is_read_only_tool(tool: Any) -> bool:
    """True if a tool in a list says that it only reads."""
    # `is True`, since a hint of another type is no statement.
    return _get_annotations(tool).get("readOnlyHint") is True


def is_idempotent_tool(tool: Any) -> bool:
    """True if a tool in a list says that several equal calls have the effect of one."""
    return _get_annotations(tool).get("idempotentHint") is True


def _get_annotations(tool: Any) -> Mapping[str, Any]:
    notes = tool.get("annotations") if isinstance(tool, Mapping) and "name" in tool else None
    return notes if isinstance(notes, Mapping) else {}


# A tool's result, which is the same in all transports.


def is_tool_result(data: Mapping[str, Any]) -> bool:
    """True if the result of a call is the tool's own, and no question to the client nor a task that was accepted."""
    kind = data.get("resultType")
    if kind is not None:
        # Named by the server since 2026-07-28; before, it shows in the fields.
        return bool(kind == "complete")
    return "content" in data or "structuredContent" in data or _get_task_id(data) is None


def _get_task_id(data: Mapping[str, Any]) -> str | None:
    """The id of the task that a call was accepted as; None if it was not. An extension of 2026-07-28 has it beside the
    type."""
    task = data if data.get("resultType") == "task" else data.get("task")
    task_id = task.get("taskId") if isinstance(task, Mapping) else None
    return task_id if isinstance(task_id, str) and "content" not in data else None


def _is_error_result(data: Any) -> bool:
    return isinstance(data, Mapping) and data.get("isError") is True


def get_result_value(data: Mapping[str, Any]) -> Any:
    """The value of a result: the structured content, else the text or the JSON in it. Of several parts the texts."""
    if (structure := data.get("structuredContent")) is not None:
        # The SDK wraps what is no object, so its content is the value.
        return structure["result"] if _is_wrapped_result(structure) else structure
    return _extract_texts(_list_content_parts(data.get("content")))


def replace_result_value(data: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The result with another value."""
    structure, parts = data.get("structuredContent"), _list_content_parts(data.get("content"))
    if structure is None:
        # Without structured content the text is all that the client reads.
        return {**data, "content": _replace_texts(parts, value)}
    # A text that the server indents stays indented, so that the fault changes its value alone.
    indent = 2 if any("\n" in str(item.get("text")) for item in parts) else None
    new_structure = {"structuredContent": {"result": value} if _is_wrapped_result(structure) else value}
    return {**data, **make_text_result(_value_to_text(value, indent)), **new_structure}


def fit_value_to_schema(value: Any, was: Any, schema: Any) -> Any:
    """The value of a result in the form of its schema; without one, in that of the true value."""
    if not isinstance(schema, Mapping):
        # The form of a true value stands in for a schema, unless it is a text, which has none.
        return value if isinstance(was, str) else schemas.fit_to_schema(value, was, schemas.build_schema_of_value(was))
    # A schema of the SDK's wrapping is for the object around.
    if "result" in schema.get("properties", ()) and not (isinstance(was, Mapping) and "result" in was):
        return schemas.fit_to_schema({"result": value}, {"result": was}, schema)["result"]
    return schemas.fit_to_schema(value, was, schema)


def make_text_result(text: str) -> dict[str, Any]:
    """A result that is a text."""
    return {"content": [{"type": "text", "text": text}]}


def make_tool_result(value: Any, schema: Any = None) -> dict[str, Any]:
    """A result of the lab's own, with structured content if the tool promises any."""
    content = make_text_result(text := _value_to_text(value))
    if isinstance(schema, Mapping):
        # As the Python SDK's server wraps what is no object: a function's text stays a text.
        if list(parts := schema.get("properties", {})) == ["result"]:
            of_text = isinstance(parts["result"], Mapping) and parts["result"].get("type") == "string"
            value = {"result": text if of_text else value}
        content["structuredContent"] = schemas.fit_to_schema(value, None, schema)
    return content


def make_error_result(name: str, error_text: str) -> dict[str, Any]:
    """A result that says it is an error, as a server makes it of an exception."""
    # In the words of the Python SDK's server.
    return {**make_text_result(f"Error executing tool {name}: {error_text}"), "isError": True}


def _list_content_parts(content: Any) -> list[Mapping[str, Any]]:
    return [item for item in content if isinstance(item, Mapping)] if isinstance(content, list) else []


def _get_text_holder(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that has the text: itself, or the content of a prompt's message."""
    content = item.get("content")
    return content if isinstance(content, Mapping) else item


def _is_text_part(item: Mapping[str, Any]) -> bool:
    return isinstance(_get_text_holder(item).get("text"), str)


def _extract_texts(parts: list[Mapping[str, Any]]) -> Any:
    """The only text; of several, a list; without any, the types of the parts."""
    texts = [_parse_text(_get_text_holder(item)["text"]) for item in parts if _is_text_part(item)]
    # Of images and the like only the type is a value that can be changed.
    return (
        texts[0]
        if len(texts) == len(parts) == 1
        else texts or [_get_text_holder(item).get("type", "") for item in parts]
    )


def _replace_texts(parts: list[Mapping[str, Any]], value: Any) -> list[Mapping[str, Any]]:
    """The parts with these texts in the place of theirs. Texts that have no place come behind, and places without a
    text are left out."""
    written = [item for item in parts if _is_text_part(item)]
    # A list for several texts; for the only one a list is its value.
    texts = value if isinstance(value, list) and not len(written) == len(parts) == 1 else [value]
    items: list[Mapping[str, Any]] = []
    rest = iter(texts)
    for item in parts:
        if not _is_text_part(item):
            items.append(item)
        elif (text := next(rest, _NONE)) is not _NONE:
            items.append(_replace_text(item, text))
    # In the form of the last text, so that a client reads them alike.
    return [*items, *(_replace_text(written[-1] if written else {"type": "text", "text": ""}, text) for text in rest)]


def _replace_text(item: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    inner = _get_text_holder(item)
    # Indented as it was, so that only the value differs.
    new = {**inner, "text": _value_to_text(value, 2 if "\n" in inner["text"] else None)}
    return new if inner is item else {**item, "content": new}


def _value_to_text(value: Any, indent: int | None = None) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str, indent=indent)


def _parse_text(text: str) -> Any:
    """The object or list that the text is in JSON, else the text."""
    value = parse_container(text)
    return text if value is None else value


def _is_wrapped_result(structure: Any) -> bool:
    """True for the object in which the SDK wraps a result that is none."""
    return isinstance(structure, Mapping) and list(structure) == ["result"]
