"""`offline_model`: the offline model as an application, for the services of anybody's agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from chaoslab.base.identity import parse_json
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.service_spec import ErrorReply
from chaoslab.model._chat import (
    REQUEST_MAX,
    ChatReply,
    ToolCall,
    answer_with_offered_tools,
    extract_message_text,
    find_last_user_index,
    load_reading_rules,
)
from chaoslab.model._choosing import make_tool_catalogue
from chaoslab.model._completion import Completion, count_tokens, find_request_error
from chaoslab.model._minimal import NoneFits, make_minimal_value
from chaoslab.model.app import LiveModel
from chaoslab.model.formats.common import Chat, Constraints, ModelRefused, spelt
from chaoslab.model.formats.openai_chat import GroqChat


class OfflineModel(LiveModel):
    """The offline model: rules that read the last request and choose among the offered tools."""

    obeys = True

    def make_reply(self, chat: Chat, key: bytes) -> ChatReply:  # noqa: ARG002 - equal requests have equal answers
        # The last request alone is bounded, since the rules go over it and over nothing else.
        last = find_last_user_index(chat.messages)
        length = 0 if last is None else len(extract_message_text(chat.messages[last]))
        if length > REQUEST_MAX:
            raise ModelRefused(
                400,
                f"Please reduce the length of the messages: message {last} has {length} characters, and {REQUEST_MAX} "
                "are read.",
                code="context_length_exceeded",
            )
        return answer_within_constraints(chat, chat.limits)


def answer_within_constraints(chat: Chat, limits: Constraints) -> ChatReply:
    """The reply to a chat within the constraints of its request. Raises Refused: nothing fits its schema."""
    offers = make_tool_catalogue(list(chat.tools)).offers
    if limits.tools is not None:
        offers = tuple(offer for offer in offers if offer.name in limits.tools)
    reply = answer_with_offered_tools(chat.messages, offers)
    # What is left out is asked for in the next turn, since the plan is made anew from each conversation.
    calls = reply.tool_calls[: None if limits.parallel else 1]
    try:
        # tool_choice demands a call, and the rules found none: the smallest one that the schema allows.
        if not calls and limits.forced and offers:
            minimal = make_minimal_value(offers[0].parameters)
            arguments = minimal if isinstance(minimal, Mapping) else {}
            calls = (ToolCall(f"call_{chat.id[:16]}", offers[0].name, arguments),)
            reply = ChatReply("", calls)
        if not calls and limits.schema is not None:
            value = make_minimal_value(limits.schema or _ANY, reply.content)
            reply = replace(reply, content=spelt(value))
    except NoneFits as mismatch:
        raise ModelRefused(
            400,
            f"Invalid schema: In context={mismatch.place}, '{mismatch.key}' is not permitted.",
            code="invalid_json_schema",
        ) from None
    # After the schema: an answer that is cut is broken JSON, as it is from a provider.
    return _cut_reply_to_limits(replace(reply, tool_calls=calls, answers=limits.answers), limits)


_ANY = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
"""The schema of an answer that may be any JSON."""


def _cut_reply_to_limits(reply: ChatReply, limits: Constraints) -> ChatReply:
    """The reply up to the first text that ends it, and within its length: a call that does not fit is left out."""
    places = [(at, stop) for stop in limits.stop if stop and (at := reply.content.find(stop)) >= 0]
    if places and not reply.tool_calls:
        at, stop = min(places)
        reply = replace(reply, content=reply.content[:at], stopped_by=stop)
    if limits.tokens_max is None:
        return reply
    text, calls, tokens_left = reply.content, list[ToolCall](), limits.tokens_max - count_tokens(reply.content)
    # The whole text is too long. Four characters are a token, as `count_tokens` has it.
    if tokens_left < 0:
        return replace(reply, content=text[: 4 * limits.tokens_max], tool_calls=(), finish="length", stopped_by="")
    for call in reply.tool_calls:
        tokens_left -= count_tokens([call.name, dict(call.arguments)])
        if tokens_left < 0:
            return replace(reply, tool_calls=tuple(calls), finish="length")
        calls.append(call)
    return reply


def complete_chat(request_bytes: bytes) -> Completion | ErrorReply:
    """The answer to a chat request in Groq's format, or its refusal. The model is deterministic and agents in repeated
    trials ask the same, so answers to short requests are cached. Raises ValueError: it is no JSON."""
    return (
        _complete_cached(request_bytes)
        if len(request_bytes) <= REMEMBERED_BYTES_MAX
        else _complete_uncached(request_bytes)
    )


# The cache keeps requests as its keys: 256 of this size are 16 MiB.
REMEMBERED_BYTES_MAX = 64 * 1024
_GROQ, _MODEL = GroqChat(), OfflineModel()


@lru_cache(256)
def _complete_cached(request_bytes: bytes) -> Completion | ErrorReply:
    return _complete_uncached(request_bytes)


def _complete_uncached(request_bytes: bytes) -> Completion | ErrorReply:
    body = parse_json(request_bytes)
    try:
        if not isinstance(body, dict):
            raise ModelRefused(400, find_request_error(body) or "")
        chat = _GROQ.parse_request("", "", body, request_bytes)
        reply = _MODEL.make_reply(replace(chat, limits=_GROQ.read_constraints(chat)), request_bytes)
    except ModelRefused as refused:
        return _GROQ.make_error_reply(refused.status, refused.message, refused.code, refused.param)
    # `find_request_error` looks at what every chat has; what is nested deeper may be of any type.
    except (AttributeError, TypeError):
        return _GROQ.make_error_reply(400, "The request body cannot be read.")
    return Completion(body, request_bytes, reply=reply)


def offline_model(*, token_s: float = 0.0) -> OfflineModel:
    """A model for `services=` that needs no key and no network: `services={"api.openai.com": lab.offline_model()}`.

    It answers by rules, so equal requests get equal answers. It reads simple English requests, calls the offered tools
    that fit, and reports their results. It speaks OpenAI's chat completions (Groq's too) and responses, Anthropic's
    messages, and Gemini's generateContent, whole or streamed, and takes any model's name and any key. `token_s`: the
    seconds before each event of a streamed answer but the first.

    Raises:
        ValueError: token_s is no number of seconds.
    """
    model = OfflineModel(token_s=check_seconds(token_s))
    # Now, since a process that is copied for trials would load the rules in each of them.
    load_reading_rules()
    return model


def check_seconds(token_s: float) -> float:
    """The value, if it is a number of seconds. Raises ValueError: it is none."""
    # True is an int, and would be a second.
    fits = isinstance(token_s, int | float) and not isinstance(token_s, bool) and 0 <= token_s <= SECONDS_MAX
    if not fits:
        raise ValueError(f"token_s is {token_s!r:.60}: it should be a number of seconds from 0 to {SECONDS_MAX}")
    return token_s
