"""A calendar in Google's v3 format. Creating and deleting are effects; every trial starts from the same week."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import (
    Answer,
    Done,
    Refusal,
    Route,
    ServiceRequest,
    fold_text,
    format_rfc3339,
    parse_moment,
)

EVENTS = "/calendar/v3/calendars/primary/events"
OWNER = {"email": "you@example.org", "self": True}
WEEK = (
    # (day after Monday, hour, minute, minutes, title)
    (0, 10, 0, 30, "Team sync"),
    (1, 12, 30, 60, "Lunch with Ana"),
    (1, 15, 0, 45, "Dentist appointment"),
    (2, 9, 0, 90, "Project review"),
    (2, 16, 20, 140, "Flight to Oslo"),
    (3, 14, 0, 60, "Budget meeting"),
    (4, 11, 0, 30, "Call with Bob"),
    (4, 18, 0, 120, "Chaos game day"),
)
_REASONS = {
    400: "badRequest", 401: "authError", 404: "notFound", 405: "httpMethodNotAllowed", 409: "duplicate",
    413: "uploadTooLarge", 422: "invalidIdempotencyKey", 429: "rateLimitExceeded", 503: "backendError",
}  # fmt: skip


def make_error_body(status: int, message: str, reason: str = "") -> Any:
    reason = reason or _REASONS.get(status, "backendError")
    error = {"domain": "global", "reason": reason, "message": message}
    return {"error": {"errors": [error], "code": status, "message": message}}


def _make_refusal(status: int, message: str, reason: str = "") -> Refusal:
    return Refusal(status, make_error_body(status, message, reason))


def _make_text_schema(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


SERVICE = ServiceSpec(
    name="calendar",
    tools=(
        ToolSpec(
            name="create_event",
            description="Create a calendar event (meeting, appointment, reminder).",
            parameters={
                "type": "object",
                "properties": {
                    "title": _make_text_schema("What the event is called"),
                    "start": _make_text_schema("ISO 8601 local date-time, e.g. 2026-06-02T15:00:00"),
                    "end": _make_text_schema("ISO 8601 local date-time, after the start"),
                },
                "required": ["title", "start", "end"],
            },
            method="POST",
            path=EVENTS,
            body={"summary": "$title", "start": {"dateTime": "$start"}, "end": {"dateTime": "$end"}},
            effect="event_created",
        ),
        ToolSpec(
            name="list_events",
            description="List the events in the calendar in order of time, with their ids.",
            parameters={
                "type": "object",
                "properties": {
                    "start": _make_text_schema("ISO 8601 date-time: no events that end before it"),
                    "end": _make_text_schema("ISO 8601 date-time: no events that start after it"),
                    "query": _make_text_schema("Words in the title"),
                },
                "required": [],
            },
            method="GET",
            path=EVENTS,
            query={
                "timeMin": "$start",
                "timeMax": "$end",
                "q": "$query",
                "singleEvents": "true",
                "orderBy": "startTime",
            },
        ),
        ToolSpec(
            name="delete_event",
            description="Delete (cancel) the calendar event that has this id.",
            parameters={
                "type": "object",
                "properties": {"event_id": _make_text_schema("The id of the event, as list_events gives it")},
                "required": ["event_id"],
            },
            method="DELETE",
            path=f"{EVENTS}/$event_id",
            effect="event_deleted",
        ),
    ),
    errors={
        401: ErrorReply(401, make_error_body(401, "Invalid Credentials")),
        404: ErrorReply(404, make_error_body(404, "Not Found")),
        429: ErrorReply(429, make_error_body(429, "Rate Limit Exceeded"), {"Retry-After": "1"}),
        500: ErrorReply(500, make_error_body(500, "Backend Error")),
        503: ErrorReply(503, make_error_body(503, "The service is currently unavailable.")),
    },
    auth={"in": "header", "name": "Authorization", "prefix": "Bearer "},
)


def routes() -> tuple[Route, ...]:
    return (
        Route("POST", EVENTS, "create_event", _create_event),
        Route("GET", EVENTS, "list_events", _list_events),
        Route("GET", f"{EVENTS}/<event_id>", "get_event", _get_event),
        Route("DELETE", f"{EVENTS}/<event_id>", "delete_event", _delete_event),
    )


@dataclass(frozen=True)
class _Event:
    id: str
    title: str
    start: datetime
    end: datetime

    def to_google_format(self, now: datetime) -> dict[str, Any]:
        """The event in Google's format."""
        return {
            "kind": "calendar#event", "etag": f'"{self.id}"', "id": self.id, "status": "confirmed",
            "htmlLink": f"https://example.org/calendar/event?eid={self.id}", "created": format_rfc3339(now),
            "updated": format_rfc3339(now), "summary": self.title, "creator": OWNER, "organizer": OWNER,
            "start": {"dateTime": format_rfc3339(self.start), "timeZone": "UTC"},
            "end": {"dateTime": format_rfc3339(self.end), "timeZone": "UTC"}, "iCalUID": f"{self.id}@example.org",
        }  # fmt: skip


def _collect_events(ask: ServiceRequest) -> dict[str, _Event]:
    """The seeded week, changed by this trial's effects."""
    # By the run's own day, so that equal runs have equal weeks.
    monday = (ask.now - timedelta(days=ask.now.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    events = {}
    for number, (day, hour, minute, minutes, title) in enumerate(WEEK, 1):
        start = monday + timedelta(days=day, hours=hour, minutes=minute)
        events[f"seed{number:04d}"] = _Event(f"seed{number:04d}", title, start, start + timedelta(minutes=minutes))
    for done in ask.past:
        content = done.content
        if done.effect == "event_created":
            start, end = parse_moment(content["start"]), parse_moment(content["end"])
            events[content["id"]] = _Event(content["id"], content["title"], start, end)
        else:
            events.pop(content["id"], None)
    return events


def _create_event(ask: ServiceRequest) -> Answer:
    title = ask.body.get("summary", "")
    if not isinstance(title, str) or len(title) > 1024:
        raise _make_refusal(400, "Invalid value for: summary", "invalid")
    start, end = _parse_event_time(ask, "start"), _parse_event_time(ask, "end")
    if end < start:
        raise _make_refusal(400, "The specified time range is empty.", "timeRangeEmpty")
    # Google takes an id from the client, in the digits of base32hex.
    identity = ask.body.get("id", ask.derive_hex_digits(digits=26))
    if not isinstance(identity, str) or not re.fullmatch(r"[a-v0-9]{5,1024}", identity):
        raise _make_refusal(400, "Invalid resource id value.", "invalid")
    taken = {done.content["id"] for done in ask.past}  # Google keeps the id of a deleted event taken, too
    if identity in taken or identity in _collect_events(ask):
        raise _make_refusal(409, "The requested identifier already exists.")
    event = _Event(identity, title, start, end)
    content = {"id": identity, "title": title, "start": format_rfc3339(start), "end": format_rfc3339(end)}
    return Answer(event.to_google_format(ask.now), effect=Done("event_created", content))


def _parse_event_time(ask: ServiceRequest, side: str) -> datetime:
    values = ask.body.get(side)
    if values is None:
        raise _make_refusal(400, f"Missing {side} time.", "required")
    if not isinstance(values, dict):
        raise _make_refusal(400, f"Invalid value for: {side}", "invalid")
    text = values.get("dateTime", values.get("date"))
    if not isinstance(text, str):
        raise _make_refusal(400, f"Missing {side} time.", "required")
    try:
        return parse_moment(text)
    except ValueError:
        raise _make_refusal(400, f"Invalid value for: Invalid format: {text[:60]!r}", "invalid") from None


def _list_events(ask: ServiceRequest) -> Answer:
    bounds: dict[str, datetime | None] = {}
    for name in ("timeMin", "timeMax"):
        try:
            bounds[name] = parse_moment(ask.query[name]) if name in ask.query else None
        except ValueError:
            raise _make_refusal(400, f"Invalid value for: {name}", "invalid") from None
    low, high = bounds["timeMin"], bounds["timeMax"]
    if low and high and high <= low:
        raise _make_refusal(400, "The specified time range is empty.", "timeRangeEmpty")
    words = fold_text(ask.query.get("q", "")).split()
    events = [
        event
        for event in sorted(_collect_events(ask).values(), key=lambda e: (e.start, e.id))
        # An event that ends when the range begins is none of it, as with Google.
        if (low is None or event.end > low)
        and (high is None or event.start < high)
        and all(word in fold_text(event.title) for word in words)
    ]
    return Answer(
        {
            "kind": "calendar#events",
            "etag": f'"p{len(ask.past)}"',
            "summary": OWNER["email"],
            "updated": format_rfc3339(ask.now),
            "timeZone": "UTC",
            "items": [event.to_google_format(ask.now) for event in events],
        }
    )


def _find_event(ask: ServiceRequest) -> _Event:
    event = _collect_events(ask).get(ask.path["event_id"])
    if event is None:
        raise _make_refusal(404, "Not Found")
    return event


def _get_event(ask: ServiceRequest) -> Answer:
    return Answer(_find_event(ask).to_google_format(ask.now))


def _delete_event(ask: ServiceRequest) -> Answer:
    event = _find_event(ask)
    return Answer(None, 204, effect=Done("event_deleted", {"id": event.id, "title": event.title}))
