"""The inbox: the latest message, those of a sender, and their number."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaoslab.model._story import Ask, Draft, Step, StepResult, Story

_READ = re.compile(
    r"\b(?:who|how many|read|check|show|list|get|fetch|see|look at|find|open|any|new|unread|latest|last|recent|"
    r"newest|have|are there|is there|what|summari[sz]e|go through)\b.*\b(?:messages?|inbox|texts|dms|mail)\b"
    r"|^(?:my )?(?:messages?|inbox)\b|\bwhat (?:did|does|has|have) (?P<who>\w+) (?:\w+ )?(?:written|"
    r"write|said|say|sent|send|text|message|want|tell|ask)\b|\b(?:did|has) (?P<who2>[A-Z]\w+) (?:write|"
    r"written|messaged?|text|sent|reply|replied|answer)\b"
    r"|^(?P<who3>[A-ZÀ-Þ][\w-]*)['’]s (?:latest |last |newest )?messages?",
    re.I,
)


def plan_clause(clause: str, draft: Draft) -> bool:
    match = _READ.search(clause)
    if not match:
        return False
    person = next((match[name] for name in ("who", "who2", "who3") if match[name]), None)
    by = re.search(r"\b(?:from|by|of)\s+(?P<to>[#@]?[A-ZÀ-Þ][\w-]*)", clause) or re.search(
        r"\b(?P<to>[A-ZÀ-Þ][\w-]*)['’]s\b", clause
    )
    by = by or re.search(r"\bfrom\s+(?P<to>(?!my|the|today|this|yesterday)[a-z][\w-]*)", clause)
    sender = by["to"] if by else person
    if sender and sender.lower() in ("i", "you", "it", "anyone", "somebody", "someone", "everyone", "what", "anybody"):
        sender = None
    if sender and sender.lower() in ("he", "she", "they", "him", "her") and draft.person:
        sender = draft.person
    numbers = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
    few = re.search(
        r"\b(?:latest|last|newest|recent|first)\s+(\d+|two|three|four|five|ten)\b"
        r"|\b(\d+|two|three|four|five|ten)\s+(?:latest|last|newest|most recent|messages)",
        clause,
        re.I,
    )
    single = re.search(
        r"\b(?:latest|last|newest|most recent)\s+(?:(?:unread|new)\s+)?(?:message|one|text|dm)\b(?!s)", clause, re.I
    )
    amount = (few[1] or few[2]).lower() if few else None
    limit = (numbers.get(amount) or int(amount)) if amount else 1 if single else None

    def read_messages(_: Sequence[StepResult]) -> Story:
        slots = {**({"sender": sender} if sender else {}), **({"limit": min(100, max(1, limit))} if limit else {})}
        reply = yield Ask("read", slots)
        result = _describe_messages(reply, sender)
        if re.match(r"how many\b", clause, re.I) and result.items:
            return replace(
                result,
                sentence=f"There {'is 1 message' if len(result.items) == 1 else f'are {len(result.items)} messages'}: "
                f"{result.sentence}",
            )
        return result

    if sender:
        draft.person = sender
    draft.last = (
        draft.add_step(
            Step(f"read the messages{f' from {sender}' if sender else ''}", read_messages, topic="messages")
        ),
    )
    return True


def _describe_messages(reply: Any, sender: str | None) -> StepResult:
    replies = reply.get("messages", []) if isinstance(reply, Mapping) else reply
    messages = [message for message in replies if isinstance(message, Mapping)] if isinstance(replies, list) else []
    if not messages:
        return StepResult(f"There are no messages{f' from {sender}' if sender else ''}.", nothing=True)
    texts = tuple(str(message.get("text", "")) for message in messages)
    lines = [
        f"{message.get('user') or message.get('sender') or message.get('from') or sender or 'someone'} wrote “{text}”"
        for message, text in zip(messages, texts, strict=True)
    ]
    return StepResult("; ".join(lines) + ".", "; ".join(lines), (len(texts),), texts)
