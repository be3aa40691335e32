"""Events: create, list, delete and move. An event to delete is looked up first, never guessed."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from chaoslab.model._dates import NamedDay, parse_days_and_times
from chaoslab.model._reading import QUOTE
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story

_THING = (
    r"(?:events?|meetings?|appointments?|calendar|call|lunch|dinner|breakfast|schedule|agenda|"
    r"party|interview|session|reservation|reminder|visit|class|review|stand-?up|coffee)"
)
_MAKE = re.compile(
    r"^(?:(?:schedule|book|block(?: out| off)?|arrange|organi[sz]e|plan)\b|(?:create|add|make|set(?: up)?|put|insert|"
    r"enter|block(?: out)?|new|have|i have)\b(?=.*"
    rf"(?:\b{_THING}\b|{QUOTE}.*\b(?:at|on|from|tomorrow|today)\b))|remind me (?:to|about|of)\b)\s*",
    re.I,
)
_DROP = re.compile(r"^(?:delete|remove|cancel|clear|drop|get rid of|call off|scrap)\b\s*", re.I)
_MOVE = re.compile(
    r"^(?:move|reschedule|postpone|shift|push(?: back)?|change|bring "
    r"forward)\b\s*(?P<what>.+?)\s+(?:to|until|till|for)\s+(?P<to>.+)$",
    re.I,
)
_PUT_OFF = re.compile(
    r"^(?:postpone|delay|push|move|shift|bring)\s+(?:back\s+|forward\s+)?(?P<what>.+?)(?:\s+(?:back|forward|up"
    r"|earlier|later))?\s+by\s+(?P<by>.+)$",
    re.I,
)
_LIST = re.compile(
    (
        r"\b(?:calendar|agenda|schedule|appointments?|events?|meetings?)\b|^(?:am i (?:free|busy|"
        r"available|booked)|do i have|have i (?:got )?|when (?:am i|do i|are we|do we)\b|"
        r"what do i have|what am i doing|(?:when|what time)(?:'s| is) (?:my|"
        r"the)|(?:when|what time) (?:does|do|will) (?:my|the|our)\b(?=.*\b(?:start|begin|end|finish|over)\b)|"
        r"what(?:'s| is) (?:on|planned|happening|up))\b"
    ),
    re.I,
)
_FILLER = (
    r"(?:in|to|on|into|from|at) (?:my|the|our)(?: \w+)? (?:calendar|agenda|schedule)\b|\b(?:in|on|to) "
    r"(?:calendar|schedule)\b"
)


def plan_clause(clause: str, draft: Draft) -> bool:
    clause = re.sub(r"^is my (\w+(?: \w+)?) (free|busy|booked)$", r"am I \2 on \1", clause, flags=re.I)
    if (match := _PUT_OFF.match(clause)) and (by := parse_days_and_times(match["by"], draft.now).lasting):
        back = re.match(r"bring|move .* (?:up|forward|earlier)", clause, re.I) is not None
        return _plan_move(match["what"], "", draft, by=-by if back else by)
    if (match := _MOVE.match(clause)) and (re.search(rf"\b{_THING}\b|{QUOTE}|^(?:my|the)\b", match["what"], re.I)):
        return _plan_move(match["what"], match["to"], draft)
    if (match := _DROP.match(clause)) and not re.search(r"\bmessages?\b", clause, re.I):
        return _plan_delete(clause[match.end() :], draft)
    if (match := _MAKE.match(clause)) and not re.search(r"\b(?:message|note|email) to\b", clause, re.I):
        return _plan_create(clause[match.end() :], draft)
    if _LIST.search(clause) and not re.search(r"\bweather\b", clause, re.I):
        return _plan_list(clause, draft)
    return False


def _plan_create(rest: str, draft: Draft) -> bool:
    rest = re.sub(
        r"^(?:two |both |the )?(?:events?|meetings|appointments) (?:for|called) (?=.+\band\b)", "", rest, flags=re.I
    )
    pieces = re.split(r"\s*,?\s+and\s+(?:an? )?(?=\D)", rest, maxsplit=1)
    # Only if each half has a time of its own: “lunch with Ana and Ben” is one event.
    if len(pieces) == 2 and all(
        (at := parse_days_and_times(piece, draft.now)).start and len(at.rest) > 2 for piece in pieces
    ):
        before = draft.last
        _plan_create(pieces[0], draft)
        first_added, draft.last = draft.last, before
        return _plan_create(pieces[1], draft) and bool(first_added)
    moment = parse_days_and_times(rest, draft.now)
    # “Add it to my calendar”, after the event was made, asks for nothing new.
    if draft.get_last_topic() == "calendar" and re.fullmatch(
        r"(?:it|that|this)(?: (?:to|in|on|into) (?:my|the) \w+)?", rest.strip(), re.I
    ):
        return True
    named = re.search(
        rf"\b(?:called|titled|named|with the title|entitled|title[d:]?)\s*:?\s*({QUOTE}|.+)$", moment.rest, re.I
    )
    if named:
        title = named[1]
    elif quote := re.search(QUOTE, moment.rest):
        title = quote[0]
    else:
        title = re.sub(_FILLER, " ", moment.rest, flags=re.I)
        title = re.sub(
            r"^(?:an? |the |my |me |up |in |new |calendar |event\W+|for |block |entry |: ?)+(?=\S)",
            "",
            title.strip(),
            flags=re.I,
        )
    title = _trim_edge_words(
        draft.restore_quotes(re.sub(_FILLER, " ", title, flags=re.I)), also="on|at|for|from|to|in|the|calendar"
    )
    title = title[:1].upper() + title[1:] if title else "Event"
    is_repeat = re.fullmatch(r"(?:it|that|this|one|the same)(?: again)?", title, re.I) is not None
    needs = draft.last if is_repeat and draft.get_last_topic() == "calendar" and not draft.thing else ()
    title = draft.thing if is_repeat and draft.thing else title

    def create_event(results: Sequence[StepResult]) -> Story:
        name = results[0].text.split(" (")[0].split(", ")[0].strip("“”") if results and results[0].text else title
        if re.search(r"\b(?:every|each)\b|\b(?:daily|weekly|monthly)\b", moment.rest, re.I):
            raise CouldNot("I can add single events only, not ones that repeat")
        start = _compute_event_start(moment, draft.now)
        end = (
            datetime.combine(start.date(), moment.end) if moment.end else start + (moment.lasting or timedelta(hours=1))
        )
        # An event until after midnight.
        if end <= start:
            end += timedelta(days=1)
        reply = yield Ask("create", {"title": name, "start": start.isoformat(), "end": end.isoformat()})
        return _describe_created_event(reply, "I added")

    _remember_person(title, draft)
    draft.last = (draft.add_step(Step(f"add “{title}” to the calendar", create_event, needs, "calendar")),)
    return True


def _compute_event_start(moment: NamedDay, now: datetime | None) -> datetime:
    day = moment.day or (now.date() if now and moment.start else None)
    if day is None:
        raise CouldNot("I do not know today's date" if now is None else "you did not say when")
    start = datetime.combine(day, moment.start) if moment.start else datetime(day.year, day.month, day.day, 9)
    # A time of day that is over today is meant for tomorrow.
    return start + timedelta(days=1) if moment.day is None and now is not None and start < now else start


def _describe_created_event(reply: Any, verb: str) -> StepResult:
    title, span = _get_event_title(reply), _format_event_span(reply)
    sentence = f"{verb} “{title}” {'on ' + span if span else 'to the calendar'}."
    return StepResult(sentence, f"{title}, {span}" if span else title)


def _plan_list(clause: str, draft: Draft) -> bool:
    moment = parse_days_and_times(re.sub(r"\bi have (?:an?y?(?:thing)?|got)\b", " ", clause, flags=re.I), draft.now)
    query = _extract_title_words(moment.rest, draft)
    named = re.search(rf"\b{_THING}\b(?: with [A-ZÀ-Þ]\w*)?", moment.rest)
    draft.thing = named[0][:1].upper() + named[0][1:] if named and " with " in named[0] else ""
    slots: dict[str, Any] = {}
    if moment.day:
        slots["start"], slots["end"] = moment.to_iso_bounds()
        if moment.start and re.search(r"\b(?:morning|afternoon|evening)\b", clause, re.I):
            bounds = {"morning": ("00", "12"), "afternoon": ("12", "18"), "evening": ("18", "23")}
            part_of_day = next(name for name in bounds if name in clause.lower())
            slots = {
                "start": f"{moment.day}T{bounds[part_of_day][0]}:00:00",
                "end": f"{moment.day}T{bounds[part_of_day][1]}:00:00",
            }
    elif draft.now and re.search(r"\b(?:next|upcoming|coming)\b", clause, re.I):
        slots["start"] = draft.now.isoformat()
    if query:
        slots["query"] = query

    def list_events(_: Sequence[StepResult]) -> Story:
        events = _extract_events((yield Ask("list", slots)))
        span = (
            f" on {_format_day(moment.day)}"
            if moment.day and not moment.last_day
            else f" from {_format_day(moment.day)} to {_format_day(moment.last_day)}"
            if moment.day and moment.last_day
            else ""
        )
        about = f" matching “{query}”" if query else ""
        free = re.match(r"am i (free|available)\b", clause, re.I)
        if free and not events:
            return StepResult(
                f"You are {free[1]}: there is nothing{about} in the calendar{span}.", f"I am {free[1]}", nothing=True
            )
        if not events:
            return StepResult(
                f"There is nothing{about} in the calendar{span}.",
                f"There is nothing{about} in the calendar{span}.",
                nothing=True,
            )
        if re.search(r"\bnext (?:event|meeting|appointment)\b|^what(?:'s| is)(?: up)? next\b", clause, re.I):
            events = events[:1]
        listed = tuple(f"{_get_event_title(event)} ({_format_event_span(event)})" for event in events)
        verb = "is one event" if len(events) == 1 else f"are {len(events)} events"
        sentence = f"There {verb}{about}{span}: {'; '.join(listed)}."
        answer = f"You are not {free[1]}. {sentence}" if free else sentence
        return StepResult(answer, sentence, (len(events),), listed)

    draft.last = (draft.add_step(Step("read the calendar", list_events, topic="calendar")),)
    return True


def _plan_delete(rest: str, draft: Draft) -> bool:
    moment = parse_days_and_times(rest, draft.now)
    every = re.search(r"\b(?:all|every|everything|both)\b", rest, re.I) is not None
    query = _extract_title_words(moment.rest, draft)
    if re.fullmatch(r"(?:it|that|this|them)", moment.rest, re.I) and draft.get_last_topic() != "calendar":
        return False

    def delete_events(results: Sequence[StepResult]) -> Story:
        if results and not query:
            # Of a list, the first event; the text of an event that was made begins with its title.
            named = results[0].items[0] if results[0].items else results[0].text
            slots, is_specific = {"query": named.split(",")[0].split(" (")[0]}, True
        else:
            slots, is_specific = _make_search_slots(moment, query), bool(query or moment.day)
        if not is_specific and draft.now and re.search(r"\bnext (?:event|meeting|appointment)\b", rest, re.I):
            slots, is_specific = {"start": draft.now.isoformat()}, True
        if not is_specific:
            raise CouldNot("you did not say which event")
        events = [
            event
            for event in _extract_events((yield Ask("list", slots)))
            # The list is asked for whole days, so the time of day is compared here.
            if moment.start is None or _format_start_time(event).endswith(f"{moment.start:%H:%M}")
        ]
        if not events:
            raise CouldNot(f"I found no event matching “{query or draft.restore_quotes(rest)}”")
        deleted = []
        # Unless all are meant, the first alone: a deletion cannot be undone.
        for event in events if every else events[:1]:
            yield Ask("delete", {"id": str(event.get("id"))})
            deleted.append(f"“{_get_event_title(event)}” ({_format_event_span(event)})")
        return StepResult(f"I deleted {' and '.join(deleted)} from the calendar.", " and ".join(deleted))

    _remember_person(query, draft)
    needs = draft.last if re.fullmatch(r"(?:it|that|this|them)", moment.rest, re.I) else ()
    draft.last = (
        draft.add_step(Step(f"delete {draft.restore_quotes(rest) or 'the event'}", delete_events, needs, "calendar")),
    )
    return True


def _plan_move(event_text: str, to: str, draft: Draft, *, by: timedelta | None = None) -> bool:
    old, new = parse_days_and_times(event_text, draft.now), parse_days_and_times(to, draft.now)
    query = _extract_title_words(old.rest, draft)
    _remember_person(old.rest, draft)

    def move_event(_: Sequence[StepResult]) -> Story:
        events = _extract_events((yield Ask("list", _make_search_slots(old, query))))
        if not events:
            raise CouldNot(f"I found no event matching “{query}”")
        event = events[0]
        start, end = _get_event_time(event, "start"), _get_event_time(event, "end")
        if start is None or (by is None and new.day is None and new.start is None):
            raise CouldNot("I do not know to when")
        begins = datetime.combine(new.day or start.date(), new.start or start.time()) + (by or timedelta(0))
        ends = (
            datetime.combine(begins.date(), new.end)
            if new.end
            else begins + (new.lasting or (end - start if end else timedelta(hours=1)))
        )
        # The new event is made first, so that a failure in between loses nothing.
        reply = yield Ask(
            "create", {"title": _get_event_title(event), "start": begins.isoformat(), "end": ends.isoformat()}
        )
        created = _describe_created_event(reply, "I moved it: there is now")
        try:
            yield Ask("delete", {"id": str(event.get("id"))})
        except CouldNot as error:
            raise CouldNot(
                f"“{_get_event_title(event)}” is now also at the new time, but the old one could not be deleted: "
                f"{error}"
            ) from error
        return StepResult(f"I moved “{_get_event_title(event)}” to {_format_event_span(reply)}.", created.text)

    draft.last = (draft.add_step(Step(f"move {draft.restore_quotes(event_text)}", move_event, topic="calendar")),)
    return True


def _make_search_slots(moment: NamedDay, query: str) -> dict[str, Any]:
    slots: dict[str, Any] = {}
    if moment.day:
        slots["start"], slots["end"] = moment.to_iso_bounds()
    if query:
        slots["query"] = query
    return slots


def _extract_title_words(rest: str, draft: Draft) -> str:
    """The words of a title that the clause names, without the words around them."""
    if quote := re.search(QUOTE, rest):
        return draft.restore_quotes(quote[0])
    rest = re.sub(
        rf"{_FILLER}|\bmy (?:calendar|agenda|schedule)\b|\b(?:calendar|agenda|schedule)\b", " ", rest, flags=re.I
    )
    rest = re.sub(
        r"\b(?:events?|meetings?|appointments?)\b(?=\s+(?:called|titled|named|about|with|for)\b)|\b(?:called|titled"
        r"|named|about)\b",
        " ",
        rest,
        flags=re.I,
    )
    rest = re.sub(
        r"\b(?:(?:my|the|that|this|whole) day|how long|how many|having|"
        r"what(?:'s|s)?|when(?:'s)?|which|who|show|list|give|get|read|check|tell|me|do|does|"
        r"did|i|have|has|is|are|am|there|anything|something|nothing|my|the|an?|any|"
        r"all|every|everything|both|of|on|in|for|at|from|free|busy|available|planned|happening|up|"
        r"upcoming|coming|next|scheduled|please|got|doing|our|look|see|find|see if|it|that|this|them|"
        r"going|be|will|to|today|events?|whole|entries|if|whether|out|into|take|"
        r"starts?|begins?|ends?|finish(?:es)?|last|time|with|and|look at)\b",
        # These words stay within a title, as in “lunch with Ana”; at its ends they are trimmed.
        lambda match: match[0] if match[0].lower() in ("with", "and", "of") else " ",
        rest,
        flags=re.I,
    )
    rest = _trim_edge_words(rest, also="with|and|of")
    return (
        ""
        if re.fullmatch(r"(?:meetings?|appointments?|[\W\d]*)", rest, re.I)
        else re.sub(r"\s+(?:meetings|appointments?)$", "", draft.restore_quotes(rest))
    )


def _remember_person(title: str, draft: Draft) -> None:
    """Records the referent of "her" and "him" after "lunch with Ana"."""
    draft.thing = ""
    if match := re.search(r"\bwith ([A-ZÀ-Þ][\w-]*)", title):
        draft.person = match[1]


def _trim_edge_words(text: str, *, also: str) -> str:
    text = re.sub(r"\s{2,}", " ", text).strip(" ,.:;?!-")
    while (shorter := re.sub(rf"^(?:{also})\b\s*|\s+(?:{also})$", "", text, flags=re.I).strip(" ,.:;?!")) != text:
        text = shorter
    return text


def _extract_events(reply: Any) -> list[Mapping[str, Any]]:
    items = reply.get("items", reply.get("events", [])) if isinstance(reply, Mapping) else reply
    return [event for event in items if isinstance(event, Mapping)] if isinstance(items, list) else []


def _get_event_title(event: Any) -> str:
    return (
        str(event.get("summary") or event.get("title") or event.get("name") or "untitled")
        if isinstance(event, Mapping)
        else str(event)
    )


def _get_event_time(event: Any, edge: str) -> datetime | None:
    value = event.get(edge) if isinstance(event, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("dateTime") or value.get("date")
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).replace(tzinfo=None)
    except ValueError:
        return None


def _format_start_time(event: Any) -> str:
    moment = _get_event_time(event, "start")
    return f"{moment:%H:%M}" if moment else ""


def _format_event_span(event: Any) -> str:
    start, end = _get_event_time(event, "start"), _get_event_time(event, "end")
    if start is None:
        return ""
    until = (
        ""
        if end is None
        else f"–{end:%H:%M}"
        if end.date() == start.date()
        else f" to {_format_day(end.date())} {end:%H:%M}"
    )
    return f"{_format_day(start.date())}, {start:%H:%M}{until}"


def _format_day(day: date | None) -> str:
    return f"{day:%A} {day.isoformat()}" if day else ""
