"""Cohere's chat, version 2."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from chaoslab.core.answers import AnswerContent, Answers, FunctionCall, ReadAnswer, halves, new_id, pieces
from chaoslab.core.dialog import Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.core.stream import spelt_event
from chaoslab.model._completion import find_error
from chaoslab.model.formats.common import (
    QUOTA,
    Chat,
    Constraints,
    Format,
    ModelAnswer,
    ModelRefused,
    check_texts,
    text_in,
    with_headers,
)


def _error(status: int, message: str) -> ErrorReply:
    return ErrorReply(status, {"id": "0f0e0d0c-0000-0000-0000-000000000000", "message": message})


KNOWN = {
    401: _error(401, "invalid api token"),
    QUOTA: _error(402, "Please add or update your payment method at https://dashboard.cohere.com/billing to continue"),
    404: _error(404, "model not found, make sure the correct model ID was used and that you have access to the model."),
    429: with_headers(
        _error(429, "You are past the per minute request limit, please wait and try again later."), retry_after="1"
    ),
    500: _error(500, "internal server error, this has been reported to our developers."),
    CONTEXT_LENGTH: _error(400, "too many tokens: total number of tokens in the prompt exceeds the limit of 128000."),
}  # fmt: skip
# Version 2 has no reason of its own for a filter.
_FINISHES = {"length": "MAX_TOKENS", "content_filter": "ERROR"}


class CohereAnswers(Answers):
    """Answers with a list of parts of text, and calls as OpenAI has them."""

    last, ends = (
        spelt_event({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}),
        frozenset({"message-end"}),
    )
    failed = spelt_event({"type": "message-end", "delta": {"error": "internal server error", "finish_reason": "ERROR"}})

    def hear(self, heard: ReadAnswer, value: Any) -> None:
        self._counted(heard, value)
        message = value["message"]
        heard.text = text_in(message.get("content"))
        for number, call in enumerate(message.get("tool_calls") or ()):
            heard.called(number, call["function"]["name"], call["function"].get("arguments"), call)
        heard.ended(value.get("finish_reason"))

    def hear_event(self, heard: ReadAnswer, value: Any) -> None:
        delta = value.get("delta") or {}
        message = delta.get("message") or {}
        kind = value["type"]
        if kind == "content-delta":
            heard.text += message["content"].get("text") or ""
        elif kind in ("tool-call-start", "tool-call-delta"):
            call = message["tool_calls"]
            heard.called(value["index"], call["function"].get("name"), call["function"].get("arguments"), call)
        elif kind == "message-end":
            self._counted(heard, delta)
            heard.ended(delta.get("finish_reason"))

    @staticmethod
    def _counted(heard: ReadAnswer, value: Mapping[str, Any]) -> None:
        used = (value.get("usage") or {}).get("tokens") or {}
        heard.counted(used.get("input_tokens"), used.get("output_tokens"))

    def with_said(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        message = {key: entry for key, entry in value["message"].items() if key not in ("content", "tool_calls")}
        if content.text or not content.calls:
            message["content"] = [{"type": "text", "text": content.text}]
        if content.calls:
            message["tool_calls"] = [_call(call, content.calls, number) for number, call in enumerate(content.calls)]
        return {**value, "message": message, "finish_reason": _finish(content.finish, called=bool(content.calls))}

    def retold(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        yield from (event for event in events if event["type"] == "message-start")
        calls = [_call(call, content.calls, number) for number, call in enumerate(content.calls)]
        yield from _events(content.text, calls)
        for event in events:
            if event["type"] == "message-end":
                reason = _finish(content.finish, called=bool(calls))
                yield {**event, "delta": {**event["delta"], "finish_reason": reason}}


class Cohere(Format):
    """`POST …/v2/chat`."""

    name = "Cohere chat"
    dialog: ClassVar[Dialog] = Dialog(answers=CohereAnswers())
    known, form = KNOWN, re.compile(r"/v2/chat\Z")

    def chat(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> Chat:  # noqa: ARG002
        if error := find_error(body):
            raise ModelRefused(400, f"invalid request: {error}")
        messages = [{**message, "content": _text(message.get("content"))} for message in body["messages"]]
        tools = [] if body.get("tool_choice") == "NONE" else body.get("tools") or []
        return Chat(body["model"], messages, tools, body, request_bytes, events=body.get("stream") is True)

    def constraints(self, chat: Chat) -> Constraints:
        body, form = chat.native, chat.native.get("response_format") or {}
        wants_json = form.get("type") == "json_object"
        return Constraints(
            schema=(form.get("json_schema") or form.get("schema") or {}) if wants_json else None,
            forced=body.get("tool_choice") == "REQUIRED",
            tokens_max=body.get("max_tokens"),
            stop=tuple(check_texts("stop_sequences", body.get("stop_sequences"))),
        )

    def whole(self, answer: ModelAnswer) -> Any:
        calls = _calls(answer)
        message: dict[str, Any] = {"role": "assistant"}
        if answer.reply.content or not calls:
            message["content"] = [{"type": "text", "text": answer.reply.content}]
        if calls:
            message["tool_calls"] = calls
        reason = _reason(answer)
        return {"id": _id(answer), "finish_reason": reason, "message": message, "usage": _usage(answer)}

    def stream(self, answer: ModelAnswer) -> Iterator[bytes]:
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        yield spelt_event({"type": "message-start", "id": _id(answer), "delta": {"message": message}})
        calls = _calls(answer)
        yield from map(spelt_event, _events(answer.reply.content, calls))
        ending = {"finish_reason": _reason(answer), "usage": _usage(answer)}
        yield spelt_event({"type": "message-end", "delta": ending})

    def refusal(self, status: int, message: str, code: str | None = None, param: str | None = None) -> ErrorReply:  # noqa: ARG002
        return _error(status, message)

    def model(self, name: str) -> Any:
        return {"name": name, "endpoints": ["chat"], "context_length": 131072}


def _text(content: Any) -> Any:
    """The text of a message; of a result in documents, their data."""
    documents = (
        [piece.get("document") for piece in content if isinstance(piece, Mapping)] if type(content) is list else []
    )
    if any(documents):
        return "\n".join(text_in((document or {}).get("data")) for document in documents)
    return text_in(content) if content is not None else None


def _reason(answer: ModelAnswer) -> str:
    if answer.reply.stopped_by:
        return "STOP_SEQUENCE"
    return _finish(answer.reply.finish, called=bool(answer.reply.tool_calls))


def _finish(finish: str, *, called: bool) -> str:
    return _FINISHES.get(finish) or ("TOOL_CALL" if called else "COMPLETE")


def _call(call: FunctionCall, calls: Sequence[FunctionCall], number: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {**(call.native or {"type": "function"}), "id": new_id(call, calls, number), "function": function}


def _calls(answer: ModelAnswer) -> list[dict[str, Any]]:
    calls = [
        FunctionCall(tool_call.name, "{}", {"id": tool_call.id}).with_values(tool_call.arguments)
        for tool_call in answer.reply.tool_calls
    ]
    return [{"type": "function", **_call(call, calls, number)} for number, call in enumerate(calls)]


def _events(text: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events of a text and of calls."""
    for index, call in enumerate(calls):
        named = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": named}}}
        for piece in halves(call["function"]["arguments"]):
            message = {"tool_calls": {"function": {"arguments": piece}}}
            yield {"type": "tool-call-delta", "index": index, "delta": {"message": message}}
        yield {"type": "tool-call-end", "index": index}
    if text or not calls:
        yield {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}}
        for piece in pieces(text):
            yield {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
        yield {"type": "content-end", "index": 0}


def _usage(answer: ModelAnswer) -> dict[str, Any]:
    used = {"input_tokens": answer.chat.tokens, "output_tokens": answer.tokens}
    return {"billed_units": used, "tokens": used}


def _id(answer: ModelAnswer) -> str:
    head = answer.chat.id
    return "-".join((head[:8], head[8:12], head[12:16], head[16:20], head[20:32]))
