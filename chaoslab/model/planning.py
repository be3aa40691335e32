"""A request becomes steps: clause by clause, each read by the first skill that knows what it asks for."""

from __future__ import annotations

import re

from chaoslab.model import reading
from chaoslab.model.choosing import unclaimed
from chaoslab.model.skills import calculate, calendar, messages, movies, other, search, translate, weather
from chaoslab.model.story import Condition, Draft, Found, Step, said

# The order settles whose a clause is when two could claim it: what names its effect before what names its subject.
_SKILLS = (
    other.read_first,
    translate.read,
    messages.read,
    messages.read_inbox,
    calculate.read,
    movies.read,
    calendar.read,
    search.read,
    weather.read,
    other.read,
    search.read_question,
)
_IF = re.compile(
    r"^(?:only )?(?:if|in case)\s+(?P<condition>[^,]+?)(?:\s*,\s*(?:then\s+)?|\s+then\s+)(?P<rest>.+)$",
    re.I,
)
_IF_AFTER = re.compile(
    r"^(?P<rest>.+?),?\s+(?:only )?(?:if|in case)\s+(?P<condition>(?:it|the|there|i|i'm|that)\b.+)$", re.I
)
_ELSE = re.compile(r"\s*[,;.]?\s*\b(?:otherwise|or else|else|if not)\b,?\s*", re.I)
_SMALL_TALK = (
    (
        r"^(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings)(?: (?:there|everyone|again))?\W*$",
        "Hello! What can I do for you?",
    ),
    (r"^(?:many |great,? |ok,? )?(?:thanks|thank you|cheers)\b", "You are welcome."),
    (r"^(?:who|what) are you\b|\byour name\b", "I am a small offline model that answers with the tools it is given."),
    (r"^how are you\b", "I am well, thank you. What can I do for you?"),
    (r"^(?:bye|goodbye|see you)\b", "Goodbye."),
)
_SKY = {
    "rain": r"rain|drizzle|shower|thunder",
    "wet": r"rain|drizzle|shower",
    "snow": r"snow|sleet",
    "sun": r"clear|sun",
    "clear": r"clear|sun",
    "cloud": r"cloud|overcast",
}
_MORE, _LESS = (
    r"above|over|more than|warmer than|higher than|greater than|hotter than|exceeds|at least|larger than|bigger than|>",
    r"below|under|less than|colder than|lower than|cooler than|smaller than|fewer than|<",
)


def draw_up(request: str, draft: Draft) -> None:
    """Fills the draft with the steps of the request."""
    masked, draft.quotes = reading.mask(request)
    verbs = frozenset(
        found[0]
        for offer in unclaimed(draft.offers)
        if (found := re.findall(r"[a-z]{3,}", offer.name.lower())) and found[0] != "get"
    )
    for sentence in reading.sentences(masked):
        _sentence(sentence.strip(), draft, verbs)


def _sentence(sentence: str, draft: Draft, verbs: frozenset[str]) -> None:
    before_if, *after = re.split(
        r"(?:,?\s+(?:and|then|but)|;|,)\s+(?=if\s+(?!so\b|yes\b|not\b)[^,]+,)", sentence, maxsplit=1, flags=re.I
    )
    if after and not re.match(r"\W*if\b", before_if, re.I):
        _sentence(before_if, draft, verbs)
        sentence = after[0]
    stripped = reading.bare(sentence)
    if (match := _ELSE.match(stripped)) and draft.only_if is not None:
        step, condition, words = draft.only_if
        draft.only_if = (step, _not(condition), f"not ({words})")
        _clauses(stripped[match.end() :], draft, verbs)
        draft.only_if = None
        return
    draft.only_if = None
    match = _IF.match(stripped)
    if match and not _condition(match["condition"], draft):
        draft.add(_unknown(match["condition"], draft))
        return
    if match:
        then, *otherwise = _ELSE.split(match["rest"], maxsplit=1)
        _clauses(then, draft, verbs)
        if otherwise and draft.only_if is not None:
            step, condition, words = draft.only_if
            draft.only_if = (step, _not(condition), f"not ({words})")
            _clauses(otherwise[0], draft, verbs)
        return
    if (match := _IF_AFTER.match(stripped)) and not re.match(
        r"(?:ask|check|see|tell me|find out|let me know|do you know)\b", stripped, re.I
    ):
        before = len(draft.steps)
        earlier, *last = reading.clauses(match["rest"], verbs)
        if last:
            _clauses(" ; ".join([earlier, *last[:-1]]), draft, verbs)
        condition_words, *otherwise = _ELSE.split(match["condition"], maxsplit=1)
        if _condition(condition_words, draft):
            _clauses(last[-1] if last else earlier, draft, verbs)
            if otherwise and draft.only_if is not None:
                step, condition, words = draft.only_if
                draft.only_if = (step, _not(condition), f"not ({words})")
                _clauses(otherwise[0], draft, verbs)
            return
        del draft.steps[before:]
        if re.match(r"(?:delete|cancel|remove|move|reschedule|schedule|book|create|add)\b", stripped, re.I):
            draft.add(_unknown(match["condition"], draft))
            return
    _clauses(sentence, draft, verbs)


def _unknown(condition: str, draft: Draft) -> Step:
    """What hangs on a condition that was not understood is left undone."""
    return said(f"I cannot tell whether {draft.plain(condition)}, so I did nothing about it.")


def _clauses(text: str, draft: Draft, verbs: frozenset[str]) -> None:
    if _small_talk(text) and not re.search(r"[,;:]|\band\b", text):
        _unread(text, draft)
        return
    missed: list[str] = []
    for clause in map(reading.bare, reading.clauses(text, verbs)):
        if re.fullmatch(r"if (?:so|yes|it is|it does|that is so)", clause, re.I) and draft.last and draft.asked:
            draft.only_if = (draft.last[-1], *draft.asked)
            continue
        if not clause or re.fullmatch(r"if\b.{0,6}", clause, re.I):
            continue
        _note_question(clause, draft)
        if not any(skill(clause, draft) for skill in _SKILLS):
            missed.append(clause)
    for clause in missed:
        _unread(clause, draft)


def _note_question(clause: str, draft: Draft) -> None:
    """What "if so" will mean: that the sky is as this clause asks."""
    if sign := re.search(r"\b(rain|snow|sun|clear|cloud)", clause, re.I):
        pattern = _SKY[sign[1].lower()]
        words = re.sub(r"^(?:is|whether|check (?:if|whether)|does)\s+", "", draft.plain(clause), flags=re.I)
        draft.asked = (
            lambda found: re.search(pattern, found.items[0] if found.items else found.text, re.I) is not None,
            words,
        )


def _small_talk(text: str) -> str | None:
    if len(text.split()) > 8:
        return None
    return next((answer for pattern, answer in _SMALL_TALK if re.search(pattern, text.strip(), re.I)), None)


def _unread(clause: str, draft: Draft) -> None:
    """Small talk gets its reply; a courtesy beside real work needs none; the rest is admitted."""
    if reply := _small_talk(clause):
        if not draft.steps:
            draft.add(said(reply))
    elif len(clause.split()) < 2 and draft.steps:
        return
    elif re.match(r"(?:thanks|please|i am|i'm|it is|that is|we|my|sorry|great|good)\b", clause, re.I):
        if not draft.steps:
            draft.add(said("I see. What can I do for you?"))
    else:
        draft.add(said(f"I have no tool for “{draft.plain(clause)}”."))


def _not(condition: Condition) -> Condition:
    return lambda found: not condition(found)


def _condition(words: str, draft: Draft) -> bool:
    """Adds the step that settles the condition and puts what follows under it; False if the words are not understood."""
    before = len(draft.steps)
    number = re.search(r"-?\d+(?:\.\d+)?(?=\D*$)", words)
    limit = re.search(rf"(?:{_MORE})|(?P<less>{_LESS})", words, re.I)
    referring = re.match(r"(?:the (?:result|answer|temperature|sum|total|number|difference)|it|that)\b", words, re.I)
    subject = words[: limit.start()] if limit else words
    known = draft.last and referring and not weather.cities(words)
    if not known:
        skills = (calculate.read, weather.read, messages.read_inbox, calendar.read, movies.read, search.read) if limit else (
            weather.read, messages.read_inbox, calendar.read, movies.read, search.read)  # fmt: skip
        # "It is colder than 5 degrees in Oslo" names its city after the number.
        if not any(skill(text, draft) for text in (subject, words) for skill in skills):
            return False
    if not draft.last:
        return False
    if limit and number:
        bound, less = float(number[0]), bool(limit["less"])

        def compares(found: Found) -> bool:
            return bool(found.numbers) and (found.numbers[0] < bound if less else found.numbers[0] > bound)

        condition: Condition = compares
    elif sign := re.search(r"\b(rain|wet|snow|sun|clear|cloud)", words, re.I):
        pattern, negated = (
            _SKY[sign[1].lower()],
            re.search(r"\b(?:not|n't|doesn't|isn't|no)\b|n't\b", words, re.I) is not None,
        )

        def looks(found: Found) -> bool:
            return (re.search(pattern, found.items[0] if found.items else found.text, re.I) is not None) is not negated

        condition = looks
    else:
        empty = re.search(r"\b(?:no|not|nothing|free|don't|none|isn't|aren't)\b", words, re.I) is not None

        def has(found: Found) -> bool:
            return found.nothing is empty

        condition = has
    draft.only_if = (draft.last[-1], condition, draft.plain(words))
    return len(draft.steps) > before or bool(known)
