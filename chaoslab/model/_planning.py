"""Plans the steps of a request: clause by clause, each read by the first skill that accepts it."""

import re
from collections.abc import Callable
from dataclasses import replace

from chaoslab.model import _conditions, _reading
from chaoslab.model._choosing import unclaimed
from chaoslab.model._story import Draft, Step, Under, said
from chaoslab.model.skills import calculate, calendar, inbox, messages, movies, other, search, translate, units, weather

Skill = Callable[[str, Draft], bool]

# The order decides a clause that two skills could accept: a named effect goes before a named subject.
_SKILLS: tuple[Skill, ...] = (
    other.read_first, translate.read, messages.read, inbox.read, units.read, calculate.read, movies.read,
    calendar.read, search.read, weather.read, other.read, other.read_clock, search.read_question,
)  # fmt: skip
_IF = re.compile(
    r"^(?:only )?(?:if|in case|(?P<unless>unless))\s+(?P<condition>[^,]+?)(?:\s*,\s*(?:then\s+)?|\s+then\s+"
    r"|\s+(?=(?:let|tell|message|text|send|ping|notify|remind)\s+(?:(?-i:[A-Z#@])|my|him|her|them)|(?:delete|cancel"
    r"|schedule|book|add|create)\s+(?:my|the|an?)\b))(?P<rest>.+)$",
    re.I,
)
_IF_AFTER = re.compile(
    r"^(?P<rest>.+?),?\s+(?:only )?(?:if|in case|(?P<unless>unless))\s+(?P<condition>(?:it|the|there|i|i'm|that)\b.+)$",
    re.I,
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
_IF_SO = re.compile(
    r"^if\s+(?:(?P<yes>so|yes|that is so|it (?:is|does)|there (?:is|are)(?: one| any| some)?|(?:he|she|they) "
    r"(?:has|have|did)|i (?:am|do))"
    r"|(?P<no>not|no|none|it (?:is not|isn't|doesn't|does not)|there (?:are|is) none|i(?:'m| am) not|i don't))"
    r"(?:\s*,\s*(?:then\s+)?|(?<=so)\s+|(?<=yes)\s+|(?<=not)\s+|(?<=no)\s+)(?P<rest>.+)$",
    re.I,
)
_DICTATED = re.compile(r"^\W*(?:please\s+)?(?:send|write|text|message|tell|e-?mail|reply)\b[^:.!?]{1,60}:\s+\S", re.I)


def draw_up(request: str, draft: Draft) -> None:
    """Fills the draft with the steps of the request."""
    masked, draft.quotes = _reading.mask(request)
    masked = _reading.spaced_once(masked)
    verbs = frozenset(
        found[0]
        for offer in unclaimed(draft.offers)
        if (found := re.findall(r"[a-z]{3,}", offer.name.lower())) and found[0] != "get"
    )
    for sentence in _dictated(_reading.sentences(masked), verbs):
        _sentence(sentence.strip(), draft, verbs)


def _dictated(sentences: list[str], verbs: frozenset[str]) -> list[str]:
    """The sentences, where text after "Write to Ana: …" belongs to the message until something new is asked."""
    joined: list[str] = []
    for sentence in sentences:
        dictating = joined and _DICTATED.match(joined[-1]) and not re.search(_reading.QUOTE, joined[-1])
        if dictating and not _reading.asks(sentence, verbs):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def _sentence(sentence: str, draft: Draft, verbs: frozenset[str]) -> None:
    before_if, *after = re.split(
        r"(?:,?\s+(?:and|then|but)|;|,)\s+(?=if\s+(?!so\b|yes\b|not\b)[^,]+,)", sentence, maxsplit=1, flags=re.I
    )
    if after and not re.match(r"\W*if\b", before_if, re.I):
        _sentence(before_if, draft, verbs)
        sentence = after[0]
    stripped = _reading.bare(sentence)
    if (match := _ELSE.match(stripped)) and draft.only_if is not None:
        _otherwise(stripped[match.end() :], draft, verbs)
        return
    draft.only_if = None
    if (match := _IF_SO.match(stripped)) and draft.last:
        holds, words = draft.asked or (lambda found: not found.nothing, "there is something")
        draft.only_if = Under(draft.last[-1:], holds, words, otherwise=bool(match["no"]))
        _branches(match["rest"], draft, verbs)
        return
    if match := _IF.match(stripped):
        if re.search(r"\b(?:each|apiece)\b", match["condition"]) and calculate.read(stripped, draft):
            return
        if not _condition(match["condition"], draft):
            draft.add(_unknown(match["condition"], draft))
            return
        _unless(match, draft)
        _branches(match["rest"], draft, verbs)
        return
    if (match := _IF_AFTER.match(stripped)) and not re.match(
        r"(?:ask|check|see|tell me|find out|let me know|do you know)\b", stripped, re.I
    ):
        before = len(draft.steps)
        earlier, *last = _reading.clauses(match["rest"], verbs)
        if last:
            _clauses(" ; ".join([earlier, *last[:-1]]), draft, verbs)
        condition_words, *otherwise = _ELSE.split(match["condition"], maxsplit=1)
        if _condition(condition_words, draft):
            _unless(match, draft)
            _clauses(last[-1] if last else earlier, draft, verbs)
            if otherwise:
                _otherwise(otherwise[0], draft, verbs)
            return
        del draft.steps[before:]
        if re.match(r"(?:delete|cancel|remove|move|reschedule|schedule|book|create|add)\b", stripped, re.I):
            draft.add(_unknown(match["condition"], draft))
            return
    _clauses(sentence, draft, verbs)


def _branches(rest: str, draft: Draft, verbs: frozenset[str]) -> None:
    """Adds the steps under the condition in force, and those after "otherwise" under its opposite."""
    then, *otherwise = _ELSE.split(rest, maxsplit=1)
    _clauses(then, draft, verbs)
    if otherwise:
        _otherwise(otherwise[0], draft, verbs)


def _otherwise(text: str, draft: Draft, verbs: frozenset[str]) -> None:
    if draft.only_if is None:
        return
    draft.only_if = replace(draft.only_if, otherwise=not draft.only_if.otherwise)
    _clauses(text, draft, verbs)
    draft.only_if = None


def _unless(match: re.Match[str], draft: Draft) -> None:
    if match["unless"] and draft.only_if is not None:
        draft.only_if = replace(draft.only_if, otherwise=True)


def _unknown(condition: str, draft: Draft) -> Step:
    """A step for a condition that was not understood: it does nothing and reports it."""
    return said(f"I cannot tell whether {draft.plain(condition)}, so I did nothing about it.")


def _clauses(text: str, draft: Draft, verbs: frozenset[str]) -> None:
    if _small_talk(text) and not re.search(r"[,;:]|\band\b", text):
        _unread(text, draft)
        return
    missed: list[str] = []
    for clause in map(_reading.bare, _reading.clauses(text, verbs)):
        if re.fullmatch(r"if (?:so|yes|it is|it does|that is so)", clause, re.I) and draft.last:
            draft.only_if = Under(
                draft.last[-1:], *(draft.asked or (lambda found: not found.nothing, "there is something"))
            )
            continue
        if asked := re.match(r"(?:whether|if)\s+(?=.{6})", clause, re.I):
            clause = _conditions.question(clause[asked.end() :])
        if not clause or re.fullmatch(r"if\b.{0,6}", clause, re.I):
            continue
        if not any(skill(clause, draft) for skill in _SKILLS):
            missed.append(clause)
        _note_question(clause, draft)
    for clause in missed:
        _unread(clause, draft)


def _note_question(clause: str, draft: Draft) -> None:
    """Records the meaning of a later "if so": the answer to this clause is yes."""
    if re.match(r"(?:is|are|am|do|does|did|has|have|will|any|check)\b", clause, re.I):
        asked = re.sub(r"^check (?:if|whether)\s+", "", draft.plain(clause), flags=re.I).rstrip("?")
        draft.asked = _conditions.condition(_conditions.plain(clause)), f"the answer to “{asked}” is yes"


def _small_talk(text: str) -> str | None:
    if len(text.split()) > 8:
        return None
    return next((answer for pattern, answer in _SMALL_TALK if re.search(pattern, text.strip(), re.I)), None)


def _unread(clause: str, draft: Draft) -> None:
    """Answers small talk, ignores a courtesy beside real work, and reports any other clause as unknown."""
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


def _condition(words: str, draft: Draft) -> bool:
    """Adds the step that settles the condition and puts the next steps under it; False if the words are not
    understood."""
    before = len(draft.steps)
    said, words = words, _conditions.plain(words)
    limit = _conditions.LIMIT.search(words)
    referring = re.match(r"(?:the (?:result|answer|temperature|sum|total|number|difference)|it|that)\b", words, re.I)
    known = draft.last and referring and not weather.cities(words)
    if not known:
        equal = re.search(r"\s(?:is|equals|makes)(?: not)?(?: equal to| exactly)? -?\d+(?:\.\d+)?\W*$", words, re.I)
        subject = words[: limit.start()] if limit else words[: equal.start()] if equal else _conditions.question(words)
        skills: tuple[Skill, ...] = (weather.read, inbox.read, calendar.read, movies.read, search.read)
        skills = (calculate.read, *skills) if limit or equal else skills
        # "It is colder than 5 degrees in Oslo" names its city after the number.
        if not any(skill(text, draft) for text in (subject, words) for skill in skills):
            return False
    if not draft.last:
        return False
    topic = draft.topic()
    compared = re.search(r"\b(?:warm|hott|cold|cool)er\b.*\bthan\b", words, re.I) and not re.search(r"\d", words)
    if topic == "weather" and compared and len(draft.last) == 2 and not known:
        # The comparison is the step after the two cities.
        draft.only_if = Under((len(draft.steps) - 1,), lambda found: found.items[1:] == ("first",), draft.plain(said))
        return True
    if topic in ("weather", "calculate") and not _conditions.measurable(words):
        del draft.steps[before:]
        draft.last = tuple(number for number in draft.last if number < before)
        return False
    every = re.search(r"\b(?:and|both)\b", words, re.I) is not None
    draft.only_if = Under(
        draft.last if draft.topic() == "weather" and not known else draft.last[-1:],
        _conditions.condition(words),
        draft.plain(said),
        every=every,
    )
    return len(draft.steps) > before or bool(known)
