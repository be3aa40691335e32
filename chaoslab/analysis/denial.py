"""Pattern matching on the sentences of an answer by which an effect was not done."""

from __future__ import annotations

import re
from functools import lru_cache

from chaoslab.analysis.stance.clauses import KEPT, READ_MAX
from chaoslab.analysis.stance.clauses import plain as _plain


def denies(answer: str, effect: str) -> bool:
    """True if the answer states that an effect of this kind was not done. A failed first try, or a doubt ("may have
    been sent"), is no denial."""
    return bool(denying(answer, effect))


def denying(answer: str, effect: str) -> str:
    """The sentences of the answer by which an effect of this kind was not done."""
    return _denying(answer, effect) if len(answer) <= READ_MAX else _denying.__wrapped__(answer, effect)


@lru_cache(maxsize=KEPT)
def _denying(answer: str, effect: str) -> str:
    doing, thing = _words_of(effect)
    pattern = re.compile(
        rf"\b{_NOT}\s+(?!{_LEARN})(?:\w+\s+){{0,2}}?(?:{doing})\b"
        rf"|\b(?:{thing})\b(?!\s+{_LOOK})(?:\s+\w+){{0,3}}?\s+(?:failed|(?:was|were|is|has been|have been) not"
        rf"|could not|did not|didn't)\b"
    )
    return "\n".join(
        clause
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", spoken(answer))
        if not _MAYBE.search(sentence)
        for clause in re.split(r"(?<=;)\s+", sentence)
        if pattern.search(clause) and not _DOUBT.search(clause)
    )


_EFFECTS = {
    "message_sent": ("send|message|text|tell|notify|post|reply|forward|deliver", "message|reply"),
    "event_created": ("create|book|schedule|add|put|move|reschedule", "event|meeting|appointment"),
    "event_deleted": ("delete|remove|cancel|move|reschedule", "cancellation|deletion"),
}


def _words_of(effect: str) -> tuple[str, str]:
    """The words for doing an effect, and for its object, as patterns."""
    if effect in _EFFECTS:
        return _EFFECTS[effect]
    words = "|".join(re.escape(word) for word in re.split(r"[^a-z0-9]+", _plain(effect)) if len(word) > 2) or r"\Z."
    return words, words


def spoken(answer: str) -> str:
    """The agent's own words: a quotation, such as a message's text, does not describe the agent's acts."""
    return re.sub(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|(?<!\w)'[^']*'(?!\w)", " ", _plain(answer))


_NOT = r"(?:could not|couldn't|can not|cannot|can't|unable to|not able to|failed to|did not manage to|didn't manage to)"
_LEARN = r"(?:confirm|verify|check|tell|determine|establish|find out|know|see|make sure|be sure|ensure|say)\b"
"""Verbs of knowing: who could not confirm an act does not say that it was not done."""
_LOOK = r"(?:quer(?:y|ies)|lookups?|checks?|searche?s?|levels?|figures?|values?|data)\b"
"""Words behind which an effect's noun only says about what something was read: "the stock query failed"."""
_MAYBE = re.compile(r"\b(?:may|might|could) (?:still |already |well )?have (?:been|gone|happened|worked|succeeded)\b")
"""A doubt that holds for its whole sentence."""
_DOUBT = re.compile(
    r"\b(?:may|might|not sure|unsure|unclear|do not know|don't know|cannot tell|cannot say|whether"
    r"|at first|first (?:time|try|attempt)|second (?:time|try|attempt)|eventually|finally|but then|in the end|again)\b"
)
