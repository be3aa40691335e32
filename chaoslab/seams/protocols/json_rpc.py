"""JSON-RPC 2.0: the method is the tool. An answer may be the data of one of several server-sent events."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chaoslab.base.json_text import encoded
from chaoslab.core.stream import Events, json_of
from chaoslab.seams.protocols.message import Effects, Message, ToolAnswer


def values(body: bytes) -> Iterator[Any]:
    """The JSON of each event of a body; that of the body itself if there are no events in it."""
    events = Events()
    found = [*events.feed(body), events.rest]
    if any(line.startswith(b"data:") for line in body.splitlines()):
        yield from (value for event in found if (value := json_of(event)) is not None)
    else:
        try:
            yield json.loads(body)
        except (ValueError, RecursionError):
            return


def replaced(body: bytes, is_it: Callable[[Any], bool], data: str) -> bytes:
    """The body with this data in the first event whose JSON fits. Its other fields, such as `id`, stay."""
    events = Events()
    found, done = [*events.feed(body), events.rest], False
    for number, event in enumerate(found):
        if not done and is_it(json_of(event)):
            kept = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
            found[number] = b"\n".join([*kept, b"data: " + encoded(data), b"", b""])
            done = True
    return b"".join(found)


SERVER_ERROR = -32000
"""The code for errors of the server's own (JSON-RPC 2.0, section 5.1)."""


def message(value: Mapping[str, Any]) -> "JsonRpc | None":
    """The message of a request's fields; None if it is none."""
    if value.get("jsonrpc") != "2.0" or not isinstance(value.get("method"), str):
        return None
    return JsonRpc(value)


class JsonRpc(Message):
    """A request of JSON-RPC, whose fields are `body`. Arguments by position are the field `params`."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body, self.tool = body, str(body["method"])
        params = body.get("params")
        self.arguments = params if isinstance(params, Mapping) else {"params": params} if params else {}

    def with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        by_name = isinstance(self.body.get("params"), Mapping)
        return {**self.body, "params": arguments if by_name else arguments.get("params")}

    def effects(self, arguments: Mapping[str, Any], said: Any) -> Effects:
        answer = self.answer(said)
        return [(self.tool, arguments)] if answer is None or (answer.ok and answer.done) else []

    def answer(self, said: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        if not isinstance(said, Mapping) or "method" in said or not ("result" in said or "error" in said):
            return None
        if said.get("error") is not None:
            error = said["error"]
            words = error.get("message") if isinstance(error, Mapping) else error
            return ToolAnswer(None, lambda _: said, ok=False, words=str(words))
        return ToolAnswer(said.get("result"), lambda value: {**said, "result": value})

    def made(self, value: Any, schema: Any = None) -> Any:  # noqa: ARG002
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "result": value}

    def failed(self, words: str) -> Any:
        error = {"code": SERVER_ERROR, "message": words}
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "error": error}
