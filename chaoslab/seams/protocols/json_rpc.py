"""JSON-RPC 2.0: the method is the tool. An answer may be the data of one of several server-sent events."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chaoslab.base.json_text import encode_text
from chaoslab.core.stream import EventSplitter, parse_event_json
from chaoslab.seams.protocols.message import Effects, Message, ToolAnswer


def iterate_json_values(body: bytes) -> Iterator[Any]:
    # A body may be JSON or events, whatever its header says.
    """The JSON of each event of a body; that of the body itself if there are no events in it."""
    events = EventSplitter()
    chunks = [*events.feed(body), events.rest]
    if any(line.startswith(b"data:") for line in body.splitlines()):
        yield from (value for event in chunks if (value := parse_event_json(event)) is not None)
    else:
        try:
            yield json.loads(body)
        except (ValueError, RecursionError):
            return


def replace_matching_event(body: bytes, is_it: Callable[[Any], bool], data: str) -> bytes:
    """The body with this data in the first event whose JSON fits. Its other fields, such as `id`, stay."""
    events = EventSplitter()
    chunks, is_replaced = [*events.feed(body), events.rest], False
    for number, event in enumerate(chunks):
        # The first that answers: others on the stream are progress, or for other requests.
        if not is_replaced and is_it(parse_event_json(event)):
            other_lines = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
            # One line, as JSON has no line breaks of its own.
            chunks[number] = b"\n".join([*other_lines, b"data: " + encode_text(data), b"", b""])
            is_replaced = True
    return b"".join(chunks)


SERVER_ERROR = -32000
"""The code for errors of the server's own (JSON-RPC 2.0, section 5.1)."""


def read_message(value: Mapping[str, Any]) -> "JsonRpc | None":
    """The message of a request's fields; None if it is none."""
    # The version's field is what tells JSON-RPC from a service with a field `method`.
    if value.get("jsonrpc") != "2.0" or not isinstance(value.get("method"), str):
        return None
    return JsonRpc(value)


class JsonRpc(Message):
    """A request of JSON-RPC, whose fields are `body`. Arguments by position are the field `params`."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body, self.tool = body, str(body["method"])
        params = body.get("params")
        # By position they have no names, so the list is one argument.
        self.arguments = params if isinstance(params, Mapping) else {"params": params} if params else {}

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        by_name = isinstance(self.body.get("params"), Mapping)
        return {**self.body, "params": arguments if by_name else arguments.get("params")}

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:
        answer = self.extract_tool_answer(reply)
        # An answer that is not known may have been a success.
        return [(self.tool, arguments)] if answer is None or (answer.ok and answer.done) else []

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        # With `method` it is the server's own request, on the same stream.
        if not isinstance(reply, Mapping) or "method" in reply or not ("result" in reply or "error" in reply):
            return None
        if reply.get("error") is not None:
            error = reply["error"]
            error_text = error.get("message") if isinstance(error, Mapping) else error
            return ToolAnswer(None, lambda _: reply, ok=False, words=str(error_text))
        return ToolAnswer(reply.get("result"), lambda value: {**reply, "result": value})

    def build_result_reply(self, value: Any, schema: Any = None) -> Any:  # noqa: ARG002
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "result": value}

    def build_error_reply(self, error_text: str) -> Any:
        error = {"code": SERVER_ERROR, "message": error_text}
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "error": error}
