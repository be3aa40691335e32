"""Unknown kinds of work, done by the unknown tool that matches the clause best."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._arguments import fill_arguments
from chaoslab.model._choosing import OfferedTool, list_unclaimed_tools, stem_words
from chaoslab.model._dates import parse_days_and_times
from chaoslab.model._story import Ask, Draft, Step, StepResult, Story, make_statement_step

_COMMON = frozenset([
    "get", "find", "the", "a", "an", "of", "to", "for", "in", "on", "by", "with", "and", "or", "it", "is", "from",
    "this", "that", "given", "return", "give", "make", "do", "use", "tool", "any",
])  # fmt: skip


def plan_by_tool_verb(clause: str, draft: Draft) -> bool:
    """Accepts a clause that opens with the verb of an unknown tool, before the known skills see it."""
    opening = stem_words(clause)[:1]
    return any(
        stem_words(offer.name)[:1] == opening and opening[0] not in _COMMON
        for offer in list_unclaimed_tools(draft.offers)
        if opening
    ) and plan_clause(clause, draft)


def plan_clause(clause: str, draft: Draft) -> bool:
    best = max(list_unclaimed_tools(draft.offers), key=lambda offer: _score_word_overlap(offer, clause), default=None)
    # One word of a tool's name counts three; less than that is chance.
    if best is None or _score_word_overlap(best, clause) < 3:
        return False
    arguments = fill_arguments(best, clause, draft)
    if arguments is None:
        return False
    chosen = best

    def call_tool(_: Sequence[StepResult]) -> Story:
        reply = yield Ask("", arguments, tool=chosen.name)
        text = flatten_json(reply)
        return StepResult(f"{chosen.name.replace('_', ' ').capitalize()}: {text}.", text, _extract_numbers(reply))

    draft.last = (draft.add_step(Step(f"{chosen.name.replace('_', ' ')}", call_tool, topic="other")),)
    return True


def plan_clock_question(clause: str, draft: Draft) -> bool:
    """Answers with the day and the time from the system prompt; no tool knows them better."""
    question = re.fullmatch(
        r"what(?:'s| is)? (?:(?:the )?(?:current |today's )?(?:time|date|day)(?: and (?:the )?(?:time|date))?"
        r"(?: is it| is today)?|is today|today)(?: (?:is it|now|today|right now|please))*",
        clause,
        re.I,
    )
    until = re.fullmatch(r"how many days (?:are there |is it |are left )?(?:until|till|to|before) (.+)", clause, re.I)
    if until and draft.now and (day := parse_days_and_times(until[1], draft.now).day):
        days = (day - draft.now.date()).days
        draft.add_step(make_statement_step(f"It is {days} day{'' if days == 1 else 's'} until {day:%A %Y-%m-%d}."))
        return True
    if not question or draft.now is None:
        return False
    draft.add_step(make_statement_step(f"It is {draft.now:%A %Y-%m-%d, %H:%M} UTC."))
    return True


def _score_word_overlap(offer: OfferedTool, clause: str) -> int:
    """The number of shared words; those of the tool's name count three times, those of its description once."""
    clause_words = set(stem_words(clause)) - _COMMON
    named = set(stem_words(offer.name)) - _COMMON
    return 3 * len(clause_words & named) + len(clause_words & (set(stem_words(offer.description)) - named - _COMMON))


def flatten_json(reply: Any) -> str:
    """Any JSON as "key: value" pairs, two levels deep."""
    if isinstance(reply, Mapping):
        return ", ".join(f"{key}: {_flatten_value(value)}" for key, value in reply.items())
    return _flatten_value(reply)


def _flatten_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items() if not isinstance(item, Mapping | list))
    if isinstance(value, list):
        return "; ".join(_flatten_value(item) for item in value[:5])
    return re.sub(r"\.$", "", str(value))


def _extract_numbers(reply: Any) -> tuple[float, ...]:
    values = reply.values() if isinstance(reply, Mapping) else [reply]
    # Before the other numbers of the reply, which may repeat what was sent.
    preferred = (
        [reply[key] for key in ("result", "value", "total", "converted", "amount") if key in reply]
        if isinstance(reply, Mapping)
        else []
    )
    return tuple(
        value for value in (*preferred, *values) if isinstance(value, int | float) and not isinstance(value, bool)
    )
