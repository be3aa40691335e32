"""Messaging in Slack's format: most refusals are a 200 with `ok: false`. Sending is an effect; the inbox is seeded."""

import re
from datetime import datetime, timedelta
from typing import Any

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import Answer, Done, Refusal, Route, ServiceRequest, fold_text

# Slack's own bound.
TEXT_MAX = 40_000
_CHANNEL = re.compile(r"[#@]?[\w.@#-]+(?: [\w.@#-]+){0,3}")
_WORDS = {
    400: "invalid_arguments", 404: "unknown_method", 405: "method_not_supported", 413: "request_too_large",
    422: "idempotency_key_reused", 500: "internal_error",
}  # fmt: skip
INBOX = (
    (50.0, "Ana", "The March invoices are 1250, 830 and 415 euros. Could you send me the sum?"),
    (26.5, "Bob", "My flight is SK4721. It lands in Oslo on Wednesday at 18:40."),
    (20.0, "Carla", "The project review moves to room 204, please tell the others."),
    (5.0, "Dmitri", "Did you see the outage report? The search service was down for 12 minutes."),
    (2.0, "Ana", "Good morning! Are you free for lunch on Tuesday?"),
    (0.5, "Emma", "Please bring the signed contract to the meeting."),
)


def make_error_body(status: int, message: str) -> Any:
    return {"ok": False, "error": _WORDS.get(status, "fatal_error"), "detail": message}


def _make_refusal(error: str) -> Refusal:
    return Refusal(200, {"ok": False, "error": error})


SERVICE = ServiceSpec(
    name="messaging",
    tools=(
        ToolSpec(
            name="send_message",
            description="Send a text message to a person or a channel.",
            parameters={
                "type": "object",
                "properties": {
                    "to": {"type": "string", "description": "The person or channel who gets it"},
                    "text": {"type": "string", "description": "The message"},
                },
                "required": ["to", "text"],
            },
            method="POST",
            path="/api/chat.postMessage",
            body={"channel": "$to", "text": "$text"},
            effect="message_sent",
        ),
        ToolSpec(
            name="read_messages",
            description="Read the messages in the inbox, newest first, of everyone or of one sender.",
            parameters={
                "type": "object",
                "properties": {
                    "sender": {"type": "string", "description": "Only messages from this person"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most"},
                },
                "required": [],
            },
            method="GET",
            path="/api/conversations.history",
            query={"channel": "inbox", "user": "$sender", "limit": "$limit"},
        ),
    ),
    errors={
        401: ErrorReply(200, {"ok": False, "error": "invalid_auth"}),
        404: ErrorReply(200, {"ok": False, "error": "channel_not_found"}),
        429: ErrorReply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "1"}),
        500: ErrorReply(500, {"ok": False, "error": "internal_error"}),
        503: ErrorReply(503, {"ok": False, "error": "service_unavailable"}),
    },
    auth={"in": "header", "name": "Authorization", "prefix": "Bearer "},
    failed_if={"ok": False},
)


def routes() -> tuple[Route, ...]:
    return (
        Route("POST", "/api/chat.postMessage", "send_message", _send_message),
        Route("GET", "/api/conversations.history", "read_messages", _read_messages),
    )


def _make_message_id(moment: datetime, micros: int) -> str:
    """Slack's message id: seconds since 1970 and six digits that distinguish messages of one second."""
    return f"{int(moment.timestamp())}.{micros % 1_000_000:06d}"


def _send_message(ask: ServiceRequest) -> Answer:
    channel, text = ask.body.get("channel"), ask.body.get("text")
    if not isinstance(channel, str) or len(channel) > 80 or not _CHANNEL.fullmatch(channel):
        raise _make_refusal("channel_not_found")
    if not isinstance(text, str) or not text.strip():
        raise _make_refusal("no_text")
    if len(text) > TEXT_MAX:
        raise _make_refusal("msg_too_long")
    # Slack's ids are times, so a text's comes from the run's clock and the request's id.
    ts = _make_message_id(ask.now, int(ask.derive_hex_digits(), 16))
    message = {"type": "message", "user": "U0CHAOSLAB", "text": text, "ts": ts}
    body = {"ok": True, "channel": channel, "ts": ts, "message": message}
    return Answer(body, effect=Done("message_sent", {"to": channel, "text": text, "ts": ts}))


def _read_messages(ask: ServiceRequest) -> Answer:
    if ask.query.get("channel", "") != "inbox":
        raise _make_refusal("channel_not_found")
    limit = ask.query.get("limit", "100")
    # `isdecimal` is true of other scripts' digits, which int takes as well.
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 5 and 1 <= int(limit) <= 100):
        raise _make_refusal("invalid_limit")
    sender = fold_text(ask.query.get("user", "").lstrip("@"))
    messages = [
        {
            "type": "message",
            "user": user,
            "text": text,
            "ts": _make_message_id(ask.now - timedelta(hours=hours), number),
        }
        for number, (hours, user, text) in enumerate(INBOX, 1)
        if not sender or fold_text(user) == sender
    ][::-1]
    return Answer({"ok": True, "messages": messages[: int(limit)], "has_more": len(messages) > int(limit)})
