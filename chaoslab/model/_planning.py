"""Plans the steps of a request: clause by clause, each read by the first skill that accepts it."""

import re
from collections.abc import Callable
from dataclasses import replace

from chaoslab.model import _conditions, _reading
from chaoslab.model._choosing import list_unclaimed_tools
from chaoslab.model._story import Draft, Step, StepCondition, make_statement_step
from chaoslab.model.skills import calculate, calendar, inbox, messages, movies, other, search, translate, units, weather

Skill = Callable[[str, Draft], bool]

# The order decides a clause that two skills could accept: a named effect goes before a named subject.
_SKILLS: tuple[Skill, ...] = (
    other.plan_by_tool_verb,
    translate.plan_clause,
    messages.plan_clause,
    inbox.plan_clause,
    units.plan_clause,
    calculate.plan_clause,
    movies.plan_clause,
    calendar.plan_clause,
    search.plan_clause,
    weather.plan_clause,
    other.plan_clause,
    other.plan_clock_question,
    search.plan_question,
)
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


def plan_steps(request: str, draft: Draft) -> None:
    """Fills the draft with the steps of the request."""
    masked, draft.quotes = _reading.mask_quotes(request)
    # After the quotes are hidden: a text that is to be sent keeps its spaces.
    masked = _reading.collapse_spaces(masked)
    verbs = frozenset(
        name_words[0]
        for offer in list_unclaimed_tools(draft.offers)
        if (name_words := re.findall(r"[a-z]{3,}", offer.name.lower())) and name_words[0] != "get"
    )
    for sentence in _join_dictated_sentences(_reading.split_sentences(masked), verbs):
        _plan_sentence(sentence.strip(), draft, verbs)


def _join_dictated_sentences(sentences: list[str], verbs: frozenset[str]) -> list[str]:
    """The sentences, where text after "Write to Ana: …" belongs to the message until something new is asked."""
    joined: list[str] = []
    for sentence in sentences:
        dictating = joined and _DICTATED.match(joined[-1]) and not re.search(_reading.QUOTE, joined[-1])
        if dictating and not _reading.is_request_sentence(sentence, verbs):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def _plan_sentence(sentence: str, draft: Draft, verbs: frozenset[str]) -> None:
    before_if, *after = re.split(
        r"(?:,?\s+(?:and|then|but)|;|,)\s+(?=if\s+(?!so\b|yes\b|not\b)[^,]+,)", sentence, maxsplit=1, flags=re.I
    )
    if after and not re.match(r"\W*if\b", before_if, re.I):
        _plan_sentence(before_if, draft, verbs)
        sentence = after[0]
    stripped = _reading.strip_politeness(sentence)
    if (match := _ELSE.match(stripped)) and draft.only_if is not None:
        _plan_otherwise_branch(stripped[match.end() :], draft, verbs)
        return
    # A condition holds for its sentence, and for an “otherwise” that follows.
    draft.only_if = None
    if (match := _IF_SO.match(stripped)) and draft.last:
        holds, condition_text = draft.asked or (lambda result: not result.nothing, "there is something")
        draft.only_if = StepCondition(draft.last[-1:], holds, condition_text, otherwise=bool(match["no"]))
        _plan_if_branches(match["rest"], draft, verbs)
        return
    if match := _IF.match(stripped):
        # “If pens cost 2 each, …” is a sum, not a condition.
        if re.search(r"\b(?:each|apiece)\b", match["condition"]) and calculate.plan_clause(stripped, draft):
            return
        if not _plan_condition(match["condition"], draft):
            draft.add_step(_make_unclear_step(match["condition"], draft))
            return
        _negate_unless_condition(match, draft)
        _plan_if_branches(match["rest"], draft, verbs)
        return
    # “Tell me if it rains” asks, and makes nothing depend on the answer.
    if (match := _IF_AFTER.match(stripped)) and not re.match(
        r"(?:ask|check|see|tell me|find out|let me know|do you know)\b", stripped, re.I
    ):
        before = len(draft.steps)
        # Of several clauses, a condition behind them belongs to the last.
        earlier, *last = _reading.split_clauses(match["rest"], verbs)
        if last:
            _plan_clauses(" ; ".join([earlier, *last[:-1]]), draft, verbs)
        condition_words, *otherwise = _ELSE.split(match["condition"], maxsplit=1)
        if _plan_condition(condition_words, draft):
            _negate_unless_condition(match, draft)
            _plan_clauses(last[-1] if last else earlier, draft, verbs)
            if otherwise:
                _plan_otherwise_branch(otherwise[0], draft, verbs)
            return
        del draft.steps[before:]
        # What changes something is not done without the condition that was put on it.
        if re.match(r"(?:delete|cancel|remove|move|reschedule|schedule|book|create|add)\b", stripped, re.I):
            draft.add_step(_make_unclear_step(match["condition"], draft))
            return
    _plan_clauses(sentence, draft, verbs)


def _plan_if_branches(rest: str, draft: Draft, verbs: frozenset[str]) -> None:
    """Adds the steps under the condition in force, and those after "otherwise" under its opposite."""
    then, *otherwise = _ELSE.split(rest, maxsplit=1)
    _plan_clauses(then, draft, verbs)
    if otherwise:
        _plan_otherwise_branch(otherwise[0], draft, verbs)


def _plan_otherwise_branch(text: str, draft: Draft, verbs: frozenset[str]) -> None:
    draft.only_if = draft.only_if and replace(draft.only_if, otherwise=not draft.only_if.otherwise)
    _plan_clauses(text, draft, verbs)
    draft.only_if = None


def _negate_unless_condition(match: re.Match[str], draft: Draft) -> None:
    if match["unless"] and draft.only_if is not None:
        draft.only_if = replace(draft.only_if, otherwise=True)


def _make_unclear_step(condition: str, draft: Draft) -> Step:
    """A step for a condition that was not understood: it does nothing and reports it."""
    return make_statement_step(f"I cannot tell whether {draft.restore_quotes(condition)}, so I did nothing about it.")


def _plan_clauses(text: str, draft: Draft, verbs: frozenset[str]) -> None:
    if _find_small_talk_reply(text) and not re.search(r"[,;:]|\band\b", text):
        _answer_unread_clause(text, draft)
        return
    missed: list[str] = []
    for clause in map(_reading.strip_politeness, _reading.split_clauses(text, verbs)):
        if re.fullmatch(r"if (?:so|yes|it is|it does|that is so)", clause, re.I) and draft.last:
            draft.only_if = StepCondition(
                draft.last[-1:], *(draft.asked or (lambda result: not result.nothing, "there is something"))
            )
            continue
        if opening := re.match(r"(?:whether|if)\s+(?=.{6})", clause, re.I):
            clause = _conditions.condition_to_question(clause[opening.end() :])
        if not any(skill(clause, draft) for skill in _SKILLS):
            missed.append(clause)
        _remember_yes_condition(clause, draft)
    for clause in missed:
        _answer_unread_clause(clause, draft)


def _remember_yes_condition(clause: str, draft: Draft) -> None:
    """Records the meaning of a later "if so": the answer to this clause is yes."""
    if re.match(r"(?:is|are|am|do|does|did|has|have|will|any|check)\b", clause, re.I):
        question_text = re.sub(r"^check (?:if|whether)\s+", "", draft.restore_quotes(clause), flags=re.I).rstrip("?")
        draft.asked = (
            _conditions.make_condition(_conditions.replace_freezing_words(clause)),
            f"the answer to “{question_text}” is yes",
        )


def _find_small_talk_reply(text: str) -> str | None:
    if len(text.split()) > 8:
        return None
    return next((answer for pattern, answer in _SMALL_TALK if re.search(pattern, text.strip(), re.I)), None)


def _answer_unread_clause(clause: str, draft: Draft) -> None:
    """Answers small talk, ignores a courtesy beside real work, and reports any other clause as unknown."""
    if reply := _find_small_talk_reply(clause):
        if not draft.steps:
            draft.add_step(make_statement_step(reply))
    elif len(clause.split()) < 2 and draft.steps:
        return
    elif re.match(r"(?:thanks|please|i am|i'm|it is|that is|we|my|sorry|great|good)\b", clause, re.I):
        if not draft.steps:
            draft.add_step(make_statement_step("I see. What can I do for you?"))
    else:
        draft.add_step(make_statement_step(f"I have no tool for “{draft.restore_quotes(clause)}”."))


def _plan_condition(wording: str, draft: Draft) -> bool:
    """Adds the step that settles the condition and puts the next steps under it; False if the words are not
    understood."""
    before = len(draft.steps)
    original, wording = wording, _conditions.replace_freezing_words(wording)
    limit = _conditions.LIMIT.search(wording)
    referring = re.match(r"(?:the (?:result|answer|temperature|sum|total|number|difference)|it|that)\b", wording, re.I)
    refers_back = draft.last and referring and not weather.find_cities(wording)
    if not refers_back:
        equal = re.search(r"\s(?:is|equals|makes)(?: not)?(?: equal to| exactly)? -?\d+(?:\.\d+)?\W*$", wording, re.I)
        subject = (
            wording[: limit.start()]
            if limit
            else wording[: equal.start()]
            if equal
            else _conditions.condition_to_question(wording)
        )
        skills: tuple[Skill, ...] = (
            weather.plan_clause,
            inbox.plan_clause,
            calendar.plan_clause,
            movies.plan_clause,
            search.plan_clause,
        )
        skills = (calculate.plan_clause, *skills) if limit or equal else skills
        # "It is colder than 5 degrees in Oslo" names its city after the number.
        if not any(skill(text, draft) for text in (subject, wording) for skill in skills):
            return False
    if not draft.last:
        return False
    topic = draft.get_last_topic()
    compared = re.search(r"\b(?:warm|hott|cold|cool)er\b.*\bthan\b", wording, re.I) and not re.search(r"\d", wording)
    if topic == "weather" and compared and len(draft.last) == 2 and not refers_back:
        # The comparison is the step after the two cities.
        draft.only_if = StepCondition(
            (len(draft.steps) - 1,), lambda result: result.items[1:] == ("first",), draft.restore_quotes(original)
        )
        return True
    # “If it is nice out” has no measure to hold a finding against.
    if topic in ("weather", "calculate") and not _conditions.is_measurable_condition(wording):
        del draft.steps[before:]
        draft.last = tuple(number for number in draft.last if number < before)
        return False
    every = re.search(r"\b(?:and|both)\b", wording, re.I) is not None
    draft.only_if = StepCondition(
        draft.last if draft.get_last_topic() == "weather" and not refers_back else draft.last[-1:],
        _conditions.make_condition(wording),
        draft.restore_quotes(original),
        every=every,
    )
    return len(draft.steps) > before or bool(refers_back)
