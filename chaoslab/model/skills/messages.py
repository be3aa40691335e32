"""Messages are sent with words given, asked for or found before, and the inbox is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaoslab.model.reading import QUOTE, bare
from chaoslab.model.skills import calculate, movies, search, translate, weather
from chaoslab.model.skills import calendar as events
from chaoslab.model.story import Ask, CouldNot, Draft, Found, Step, Story

_ONE = (
    r"(?:[#@][\w-]+|[A-ZÀ-Þ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]*)?|(?i:her|him|them|everyone|everybody)\b|"
    r"(?i:my|the|our) (?i:\w+ )?(?i:team|channel|boss|manager|wife|husband|mother|father|mom|"
    r"mum|dad|sister|brother|friend|group|colleagues?|landlord|doctor|assistant)\b)"
)
_WHO = rf"(?P<to>{_ONE}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)(?:to\s+)?{_ONE})*)"
_LOWER = r"(?P<to>(?!(?:me|us|you|it|that|this|a|an|the|him|her|if|whether|what|all|my|to|about|when|i|saying|them)\b)[a-zà-ÿ][\w-]*)"
_DIRECT = (
    r"(?i:reply|respond|answer|write back|send|write|drop|shoot|text|message|tell|notify|inform|"
    r"ping|dm|e-?mail|remind|warn|ask|let|give|update)"
)
_MOVED = r"(?i:send|write|drop|shoot|text|message|e-?mail|post|share|forward|pass|put|report|announce|say|give|dm|relay|deliver|leave)"
_PATTERNS = (
    re.compile(
        rf"^(?P<verb>{_DIRECT})\s+(?:to\s+)?(?!(?i:them)\s+to\s+[A-ZÀ-Þ#@]){_WHO}(?P<rest>(?:[\s,:].*|{QUOTE}.*)?)$"
    ),
    re.compile(
        rf"^(?P<verb>{_MOVED})\s+(?P<what>.*?)\s*\b(?i:to|with|(?:in|on|into|for)(?=\s+(?:the\s+)?(?:#|"
        rf"(?:my|our|the)\b)))\s+(?:(?i:the\s+)(?=#))?{_WHO}(?P<rest>.*)$"
    ),
    re.compile(rf"^(?P<verb>(?i:tell|message|text|ping|notify|dm|inform|email))\s+{_LOWER}\b(?P<rest>.*)$"),
    re.compile(
        rf"^(?P<verb>{_MOVED})\s+(?P<what>(?i:it|that|this|the result|the answer|an? (?:message|note|"
        rf"text)|{QUOTE}|.*{QUOTE}))\s*\b(?i:to)\s+{_LOWER}\b(?P<rest>.*)$"
    ),
)
_LEAD = re.compile(
    r"^(?:[\s,:]+|(?:an?|the|this|my|following|short|quick|another)\s+(?=(?:\w+ )?(?:message|text|note|dm|sms|reminder|line|words?)\b)|"
    r"(?:quick |short |following )?(?:message|text|note|dm|sms|reminder|line)s?\b(?!\s+from)|"
    r"(?:saying|that says|which says|to say|that reads|reading|with the (?:text|message|words)|"
    r"with|containing|know|to (?:let (?:her|him|them) know|tell (?:her|him|them))|telling (?:her|"
    r"him|them))(?: that)?\b|that\b(?=\s+\S))",
    re.I,
)
_REFERS = re.compile(
    r"^(?:(?:about|of|with|all|both) )*(?:(?:when|where|what|how \w+) (?:it|that|they|he|she) "
    r"(?:is|are|was|were|starts?|begins?|costs?)|it|that|this|them|both|all(?: of (?:it|them|that))?|"
    r"everything|those|these|what (?:you|it|she|he|they|i)\b.*|whatever you find|how many\b.*|how it (?:went|is|looks)|"
    r"(?:the |its |your )?(?:\w+ )?(?:results?|answers?|outcome|translations?|sum|total|difference|"
    r"average|product|number|weather|forecast|temperatures?|titles?|list|summary|details|"
    r"findings?|snippet|conditions|events?|times?|news|rating|release year|year|movies?|films?|"
    r"schedule|info|information|translated (?:text|message|version)|first (?:result|hit|one)|"
    r"top (?:result|hit)|best (?:result|hit)|reply|comparison))$",
    re.I,
)
_ASKS = re.compile(
    r"^(?:(?:about )?(?:what|how|when|which|who)\b|(?:about )?the (?:current |latest )?(?:weather|"
    r"temperatures?|forecast|result|sum|product|answer|difference|square root|rating|events|"
    r"schedule|average)\b|"
    r"(?:the list of )?(?:all )?my (?:schedule|agenda|calendar|events|meetings|appointments)|whether it (?:is|will)|if it (?:is|will))",
    re.I,
)
_READ = re.compile(
    r"\b(?:who|how many|read|check|show|list|get|fetch|see|look at|find|open|any|new|unread|latest|last|recent|"
    r"newest|have|are there|what)\b.*\b(?:messages?|inbox|texts|dms|mail)\b"
    r"|^(?:my )?(?:messages?|inbox)\b|\bwhat (?:did|does|has|have) (?P<who>\w+) (?:\w+ )?(?:written|"
    r"write|said|say|sent|send|text|message|want|tell)\b|\b(?:did|has) (?P<who2>[A-Z]\w+) (?:write|"
    r"written|messaged?|text|sent|reply|replied|answer)\b"
    r"|^(?P<who3>[A-ZÀ-Þ][\w-]*)['’]s (?:latest |last |newest )?messages?",
    re.I,
)


_ITS_MESSAGE = re.compile(r"(?:(?:the|my|all) )?(?:\w+ ){0,2}messages?\b.* from\b|[A-ZÀ-Þ]\w*['’]s (?:\w+ )?messages?$")


def read(clause: str, draft: Draft) -> bool:
    if re.match(r"(?:tell|give|show|let|send) (?:me|us)\b|tell .* apart", clause, re.I):
        return False
    match = next((found for pattern in _PATTERNS if (found := pattern.match(clause))), None)
    if match is None or re.match(r"(?:what|read|show|list)\b", clause, re.I):
        return False
    groups = match.groupdict()
    what, rest = (groups.get("what") or "").strip(), (groups.get("rest") or "").strip()
    verb = groups["verb"].lower()
    if verb == "say" and re.fullmatch(
        r"hello|hi|hey|goodbye|good (?:morning|night)|thanks?(?: you)?|congratulations", what, re.I
    ):
        what = f"saying {what}"
    elif verb in ("say", "put", "give", "write", "leave") and not re.search(
        rf"{QUOTE}|\b(?:it|that|this|result|message|note|answer|them)\b", f"{what} {rest}", re.I
    ):
        return False
    if re.match(r"(?:translate|translation)\b", what, re.I):
        return False
    people = _people(groups["to"], draft)
    what = re.sub(r"\s+(?:in|into|as)\s+an? (?:\w+ )?(?:message|note|text|dm)$", "", what, flags=re.I)
    body = _stripped(what) or _stripped(rest)
    if verb == "let":
        body = re.sub(r"^know\b\s*", "", rest, flags=re.I)
        body = _stripped(body)
    needs, literal = _body(body, verb, draft, quoted=re.search(QUOTE, what + rest))
    if not needs and not literal and (draft.last or draft.earlier):
        needs, literal = draft.last, "" if draft.last else draft.earlier
    for person in people:
        draft.add(Step(f"send a message to {person}", _story(person, literal, body), needs))
    draft.person = people[-1]
    return True


def _people(named: str, draft: Draft) -> list[str]:
    people = []
    for person in re.split(r"\s*,\s*and\s+(?:to\s+)?|\s*,\s*(?:to\s+)?|\s+and\s+(?:to\s+)?|\s*&\s*", named):
        if person.lower() in ("her", "him", "them") and draft.person:
            person = draft.person
        people.append(re.sub(r"^(?:the|my|our)\s+(?=\S)", "", re.sub(r"['’]s$", "", person), flags=re.I))
    return list(dict.fromkeys(people))


def _stripped(text: str) -> str:
    while (shorter := _LEAD.sub("", text, count=1).strip()) != text:
        text = shorter
    return text


def _body(body: str, verb: str, draft: Draft, *, quoted: re.Match[str] | None) -> tuple[tuple[int, ...], str]:
    """What the message says: the steps whose findings it passes on, or its own words."""
    if quoted and re.match(r"(?:the )?translation of\b", body, re.I):
        translate.read(body, draft)
        return draft.last, ""
    if quoted:
        return (), draft.plain(quoted[0])
    if not body:
        return (), ""
    if _REFERS.match(body) and (draft.last or draft.earlier):
        everything = re.match(
            r"(?:about |of )?(?:both|all|everything|the results|what you find|them|those|these)\b", body, re.I
        )
        telling = tuple(n for n, step in enumerate(draft.steps) if step.topic)
        return (telling if everything else draft.last), "" if draft.last else draft.earlier
    if _ASKS.match(body) and (nested := _nested(body, draft)):
        return nested, ""
    if _ITS_MESSAGE.match(body) and read_inbox(body, draft):
        return draft.last, ""
    if wish := re.fullmatch(r"an? (.+) (?:message|note|text|wish)", body, re.I):
        return (), draft.plain(wish[1][:1].upper() + wish[1][1:])
    if verb == "ask":
        if match := re.match(
            r"(?:if|whether) (?:s?he|they) (is|are|can|could|will|would|has|have|wants?|needs?|likes?)\b(.*)",
            body,
            re.I,
        ):
            helper = {"is": "Are you", "has": "Have you", "have": "Have you"}.get(
                match[1].lower(), f"{match[1].capitalize()} you"
            )
            helper = (
                f"Do you {match[1].lower().rstrip('s')}"
                if match[1].lower() in ("want", "wants", "need", "needs", "like", "likes")
                else helper
            )
            return (), draft.plain(f"{helper}{match[2]}?")
        if re.match(r"(?:what|how|when|where|who|which|why)\b", body, re.I):
            return (), draft.plain(body[0].upper() + body[1:] + "?")
    if verb in ("ask", "tell", "remind", "message", "text", "email") and (
        match := re.match(r"(not )?to (?=\w+)", body, re.I)
    ):
        start = "Please do not " if match[1] else "Please "
        return (), draft.plain(start + body[match.end() :])
    return (), draft.plain(body[:1].upper() + body[1:])


def _nested(body: str, draft: Draft) -> tuple[int, ...]:
    before, clause = len(draft.steps), re.sub(r"^about ", "", bare(body), flags=re.I)
    clause = re.sub(r"^(?:whether|if) it ", "is it ", clause, flags=re.I)
    if any(
        skill(clause, draft)
        for skill in (calculate.read, translate.read, weather.read, movies.read, events.read, search.read_question)
    ):
        return draft.last if len(draft.steps) > before else ()
    return ()


def _story(person: str, literal: str, body: str) -> Any:
    def act(found: Sequence[Found]) -> Story:
        text = literal
        if found:
            first = re.match(r"(?:the )?(?:first|top|best|latest|last|newest)\b", body, re.I) and found[0].items
            text = found[0].items[0] if first else " ".join(one.text for one in found if one.text)
        if not text:
            raise CouldNot(f"you did not say what to tell {person}")
        reply = yield Ask("send", {"to": person, "text": text})
        channel = reply.get("channel") if isinstance(reply, Mapping) else None
        return Found(f"I sent {person} the message “{text}”.", text, items=(str(channel or person),))

    return act


def read_inbox(clause: str, draft: Draft) -> bool:
    match = _READ.search(clause)
    if not match:
        return False
    who = next((match[name] for name in ("who", "who2", "who3") if match[name]), None)
    by = re.search(r"\b(?:from|by|of)\s+(?P<to>[#@]?[A-ZÀ-Þ][\w-]*)", clause) or re.search(
        r"\b(?P<to>[A-ZÀ-Þ][\w-]*)['’]s\b", clause
    )
    by = by or re.search(r"\bfrom\s+(?P<to>(?!my|the|today|this|yesterday)[a-z][\w-]*)", clause)
    sender = by["to"] if by else who
    if sender and sender.lower() in ("i", "you", "it", "anyone", "somebody", "someone", "everyone", "what", "anybody"):
        sender = None
    if sender and sender.lower() in ("he", "she", "they", "him", "her") and draft.person:
        sender = draft.person
    numbers = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
    few = re.search(
        r"\b(?:latest|last|newest|recent|first)\s+(\d+|two|three|four|five|ten)\b|\b(\d+)\s+(?:latest|last|newest|most recent|messages)",
        clause,
        re.I,
    )
    single = re.search(
        r"\b(?:latest|last|newest|most recent)\s+(?:(?:unread|new)\s+)?(?:message|one|text|dm)\b(?!s)", clause, re.I
    )
    amount = (few[1] or few[2]).lower() if few else None
    limit = (numbers.get(amount) or int(amount)) if amount else 1 if single else None

    def act(_: Sequence[Found]) -> Story:
        slots = {**({"sender": sender} if sender else {}), **({"limit": min(100, max(1, limit))} if limit else {})}
        reply = yield Ask("read", slots)
        found = _told(reply, sender)
        if re.match(r"how many\b", clause, re.I) and found.items:
            return replace(
                found,
                sentence=f"There {'is 1 message' if len(found.items) == 1 else f'are {len(found.items)} messages'}: {found.sentence}",
            )
        return found

    if sender:
        draft.person = sender
    draft.last = (draft.add(Step(f"read the messages{f' from {sender}' if sender else ''}", act, topic="messages")),)
    return True


def _told(reply: Any, sender: str | None) -> Found:
    found = reply.get("messages", []) if isinstance(reply, Mapping) else reply
    messages = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    if not messages:
        sentence = f"There are no messages{f' from {sender}' if sender else ''}."
        return Found(sentence, sentence, nothing=True)
    texts = tuple(str(one.get("text", "")) for one in messages)
    lines = [
        f"{one.get('user') or one.get('sender') or one.get('from') or sender or 'someone'} wrote “{text}”"
        for one, text in zip(messages, texts, strict=True)
    ]
    return Found("; ".join(lines) + ".", "; ".join(lines), (len(texts),), texts)
