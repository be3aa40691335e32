"""JSON-RPC 2.0: the method is the tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaoslab.seams.protocols.message import Answer, Effects, Message

SERVER_ERROR = -32000
"""The code for errors of the server's own (JSON-RPC 2.0, section 5.1)."""


def message(value: Mapping[str, Any]) -> JsonRpc | None:
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

    def asked(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        by_name = isinstance(self.body.get("params"), Mapping)
        return {**self.body, "params": arguments if by_name else arguments.get("params")}

    def effects(self, arguments: Mapping[str, Any], said: Any) -> Effects:
        answer = self.answer(said)
        return [(self.tool, arguments)] if answer is None or answer.ok else []

    def answer(self, said: Any, schema: Any = None) -> Answer | None:  # noqa: ARG002
        if not isinstance(said, Mapping) or "method" in said or not ("result" in said or "error" in said):
            return None
        if said.get("error") is not None:
            error = said["error"]
            words = error.get("message") if isinstance(error, Mapping) else error
            return Answer(None, lambda _: said, ok=False, words=str(words))
        return Answer(said.get("result"), lambda value: {**said, "result": value})

    def made(self, value: Any, schema: Any = None) -> Any:  # noqa: ARG002
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "result": value}

    def failed(self, words: str) -> Any:
        error = {"code": SERVER_ERROR, "message": words}
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "error": error}
