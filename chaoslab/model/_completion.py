"""A chat request, validated and answered in Groq's wire format, whole or as a stream of events; no I/O here. Tokens are
estimated at four characters each, a rule of thumb for English; the same request always counts the same."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from chaoslab.base.json_text import make_json_writer
from chaoslab.core.answers import split_in_half, split_words
from chaoslab.model._chat import ChatReply, extract_message_text
from chaoslab.model._choosing import make_tool_catalogue

_spelt = make_json_writer()
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def count_tokens(value: Any) -> int:
    """The estimated tokens of a text, or of anything as JSON: its length by four, rounded up."""
    text = value if isinstance(value, str) else _spelt(value)
    return _estimate_token_count(len(text))


def _estimate_token_count(characters: int) -> int:
    return -(-characters // 4)


def find_request_error(body: Any) -> str | None:
    """The reason, in words, that a body is no request for a chat completion; None if it is one."""
    if not isinstance(body, dict):
        return "request body must be a JSON object"
    for name, kind in (("model", str), ("messages", list)):
        if name not in body:
            return f"'{name}' : property '{name}' is missing"
        if not isinstance(body[name], kind):
            return f"'{name}' : value must be {'a string' if kind is str else 'an array'}"
    if not body["messages"]:
        return "'messages' : minimum number of items is 1"
    for number, message in enumerate(body["messages"]):
        if not isinstance(message, dict):
            return f"'messages.{number}' : value must be an object"
        if message.get("role") not in _ROLES:
            return f"'messages.{number}' : discriminator property 'role' has invalid value"
        if not isinstance(message.get("content"), str | list | None):
            return f"'messages.{number}.content' : value must be a string or an array"
        if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
            return f"'messages.{number}' : for 'role:tool' property 'tool_call_id' is missing"
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(
            isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
        ):
            return f"'messages.{number}.tool_calls' : value must be an array of function calls"
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(
        isinstance(tool, dict)
        and isinstance(tool.get("function"), dict)
        and isinstance(tool["function"].get("name"), str)
        for tool in tools
    ):
        return "'tools' : value must be an array of objects with a 'function'"
    return None


class Completion:
    """One answered chat request. `asked`: its bytes, of which the id is a hash. `created`: seconds since 1970. The
    object is cached and shared, so it never changes. `groq`: in Groq's format, else in OpenAI's."""

    def __init__(self, body: Mapping[str, Any], request_bytes: bytes, *, reply: ChatReply, groq: bool = True) -> None:
        tools = [] if body.get("tool_choice") == "none" else body.get("tools") or []
        offered = make_tool_catalogue(tools)
        self.reply = reply
        digest = hashlib.blake2s(request_bytes, digest_size=16).hexdigest()
        self._head = {"id": f"chatcmpl-{digest}", "model": body["model"], "system_fingerprint": "fp_offline"}
        self.groq = {"id": f"req_{digest[:26]}"}
        self._extra: dict[str, Any] = {"x_groq": self.groq} if groq else {}
        self._of_groq = groq
        self.calls: list[dict[str, Any]] = [
            {
                "id": call.id,
                # Four more for each message: it costs tokens for its role and its marks too.
                "type": "function",
                "function": {"name": call.name, "arguments": _spelt(call.arguments)},
            }
            for call in self.reply.tool_calls
        ]
        self.finish = reply.finish or ("tool_calls" if self.calls else "stop")
        prompt = sum(
            4
            + count_tokens(extract_message_text(message))
            + (count_tokens(message["tool_calls"]) if message.get("tool_calls") else 0)
            for message in body["messages"]
        )
        # The catalogue is cached, and knows the length of the tools as JSON.
        prompt += _estimate_token_count(offered.size)
        spent = reply.answers * (count_tokens(self.reply.content) + (count_tokens(self.calls) if self.calls else 0))
        self.usage = {"prompt_tokens": prompt, "completion_tokens": spent, "total_tokens": prompt + spent}
        self.streamed = body.get("stream") is True
        options = body.get("stream_options")
        self.include_usage = isinstance(options, Mapping) and options.get("include_usage") is True

    def build_json(self, created: int) -> dict[str, Any]:
        # An answer of calls alone has null here, not an empty text.
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.content or None}
        if self.calls:
            message["tool_calls"] = self.calls
        # OpenAI's messages have these fields, Groq's have not.
        if not self._of_groq:
            message |= {"refusal": None, "annotations": []}
        choice = {"message": message, "logprobs": None, "finish_reason": self.finish}
        choices = [{"index": number, **choice} for number in range(self.reply.answers)]
        about = {"object": "chat.completion", "choices": choices, "usage": self.usage, **self._extra}
        return {**self._head, "created": created, **about}

    def build_stream_events(self, created: int, *, whole: bool = False) -> Iterator[bytes]:
        """The answer word by word, or call by call, as server-sent events. `whole`: a call comes in one event. Usage
        comes in the last chunk, as Groq sends it, and in a chunk of its own if it was asked for, as OpenAI does."""
        chunk = {**self._head, "created": created, "object": "chat.completion.chunk"}
        # OpenAI has the field in every chunk then, and null in all but the last.
        if self.include_usage and not self._of_groq:
            chunk["usage"] = None
        # Groq tells the usage in the last chunk, also unasked, and in a field of its own.
        used = {"x_groq": {**self.groq, "usage": self.usage}} if self._of_groq else {}
        for number in range(self.reply.answers):
            yield _make_chunk_event(chunk, {"role": "assistant", "content": ""}, number, **self._extra)
            for index, call in enumerate(self.calls):
                function = call["function"]
                named = {"index": index, **call, "function": function if whole else {**function, "arguments": ""}}
                yield _make_chunk_event(chunk, {"tool_calls": [named]}, number)
                # In parts, as a provider sends them: a client that takes the first part for the whole fails here too.
                for piece in () if whole else split_in_half(function["arguments"]):
                    yield _make_chunk_event(
                        chunk, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, number
                    )
            for word in split_words(self.reply.content):
                yield _make_chunk_event(chunk, {"content": word}, number)
            yield _make_chunk_event(chunk, {}, number, finish=self.finish, **used)
        if self.include_usage:
            yield _format_sse_event({**chunk, "choices": [], "usage": self.usage})
        yield b"data: [DONE]\n\n"


def _make_chunk_event(
    chunk: Mapping[str, Any], delta: Mapping[str, Any], number: int, *, finish: str | None = None, **extra: Any
) -> bytes:
    choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _format_sse_event({**chunk, "choices": [choice], **extra})


def _format_sse_event(event: Mapping[str, Any]) -> bytes:
    return f"data: {_spelt(event)}\n\n".encode()
