"""Web search, on request or for a question that no other skill accepted."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story

_ASKED = re.compile(
    r"^(?:(?:do|run|make) an? (?:quick )?(?:web |online |internet )?search (?:for|on|about)"
    r"|(?:web[- ])?search(?: (?:on )?(?:the )?(?:web|internet|net|google|online))?(?: (?:for|"
    r"about|on|up))?|google|look (?:online |on the (?:web|internet) )?(?:up|for)|look|"
    r"(?:find|get|give)(?: me)?(?: out)?(?: (?:some|any|more))? ?(?:information|info|articles?|"
    r"pages?|websites?|results?|news|facts|details|something|anything|everything)?"
    r"(?: online| on the web)? ?(?:about|on|regarding|for)|find(?: out)?(?: me)?|browse(?: "
    r"for)?|research)\s+(?P<query>.+)$",
    re.I,
)
_QUESTION = re.compile(
    r"^(?:what|who|where|when|why|how|which|whose|is|are|was|were|does|did|do|tell me "
    r"about|explain|define|describe|compare)\b",
    re.I,
)
_TOP = re.compile(
    (
        r"\b(?:(?:the )?(?:top|first|best)\s+)?(\d{1,2}|one|two|three|four|five|ten)\s+(?:results?|"
        r"hits?|links?|pages?|articles?)(?:\s+(?:for|about|on))?\b"
    ),
    re.I,
)
_UNIT = (
    r"°|%|(?:square |kilo|centi|milli)?(?:met(?:re|er)s?|grams?|km|kg)\b|miles?\b|feet\b|years?\b|degrees?\b"
    r"|percent\b|(?:m|b)illion\b"
)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}


def plan_clause(clause: str, draft: Draft) -> bool:
    match = _ASKED.match(clause)
    top = _TOP.search(clause)
    # "Look up the weather" is not about the web, unless the clause mentions it.
    if re.match(
        r"(?:look|find|get|give)\b(?!.*\b(?:news|articles?|online|web)\b).*\b(?:weather|forecast|temperatures?)\b",
        clause,
        re.I,
    ):
        return False
    if re.fullmatch(
        r"(?:give|show|tell)(?: me)? (?:the )?(?:top|first|best|main|\w+)? ?(?:results?|hits?|ones?)", clause, re.I
    ):
        return draft.get_last_topic() == "search"
    if not match and not top:
        return False
    count = min(20, max(1, int(_NUMBERS.get(top[1].lower()) or top[1]))) if top else None
    clause = _TOP.sub("", clause).strip()
    match = _ASKED.match(clause)
    query = match["query"] if match else re.sub(r"^(?:give|show|get|find)(?: me)?\s+", "", clause, flags=re.I)
    query = re.sub(r"\s+(?:on|in) (?:the )?(?:web|internet|google|net)\b|\s+online$", "", query, flags=re.I)
    query = re.sub(r"^(?:the web for|for|about|up)\s+|(?:,?\s*and|,)?\s*(?:give|show)(?: me)?$", "", query, flags=re.I)
    return _add_search_step(draft, query, count)


def plan_question(clause: str, draft: Draft) -> bool:
    """Searches the web for a question that no other skill accepted."""
    command = re.match(r"(?:explain|define|describe)\b", clause, re.I)
    if not _QUESTION.match(clause) or len(clause.split()) < (2 if command else 3):
        return False
    # The web knows nothing of the user, nor of this model.
    if re.search(r"\b(?:your|you|my)\b", clause, re.I):
        return False
    return _add_search_step(
        draft, re.sub(r"^(?:tell me about|explain|define|describe|compare)\s+", "", clause, flags=re.I), None
    )


def _add_search_step(draft: Draft, query: str, count: int | None) -> bool:
    query = draft.restore_quotes(query).strip(" .,?!")
    if not query:
        return False

    def search_web(_: Sequence[StepResult]) -> Story:
        reply = yield Ask("search", {"query": query, **({"count": count} if count else {})})
        return make_step_result(reply, query, count or 3)

    draft.last = (draft.add_step(Step(f"search the web for “{query}”", search_web, topic="search")),)
    return True


def search_web_instead(query: str, *, instead_of: CouldNot) -> Story:
    """A web search in place of a failed tool; if it fails too, the first reason stands."""
    try:
        reply = yield Ask("search", {"query": query})
    except CouldNot:
        raise instead_of from None
    result = make_step_result(reply, query, 1)
    query_words = [word for word in re.findall(r"\w+", query.casefold()) if len(word) > 3]
    # A page on the Olympic Games of Athens does not answer a question on the weather in Athens.
    if result.nothing or not all(word in result.text.casefold() for word in query_words):
        raise instead_of
    return StepResult(
        f"I could not look that up directly ({instead_of}), but a web search says: {result.sentence}", result.text
    )


def make_step_result(reply: Any, query: str, count: int) -> StepResult:
    """The first results with title and snippet."""
    results = reply.get("organic_results", reply.get("results")) if isinstance(reply, Mapping) else reply
    if not isinstance(results, list) or not results:
        return StepResult(f"A search for “{query}” found nothing.", nothing=True)
    lines = []
    for result in results[:count]:
        if isinstance(result, Mapping):
            title, snippet = str(result.get("title") or result.get("link") or ""), str(result.get("snippet") or "")
            lines.append(f"{title}: {snippet}".strip(": "))
        else:
            lines.append(str(result))
    listed = " ".join(f"({n}) {line}" for n, line in enumerate(lines, 1)) if len(lines) > 1 else lines[0]
    return StepResult(f"For “{query}” I found: {listed}", lines[0], _find_numbers_with_units(lines[0]), tuple(lines))


def _find_numbers_with_units(text: str) -> tuple[float, ...]:
    """The numbers with a unit in a text; without any, its only number."""
    amounts = [
        (match[2] is None, float(match[1].replace(",", "")))
        for match in re.finditer(rf"(?<![\w.,])(\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)\b(?:\s*({_UNIT}))?", text)
    ]
    measured = tuple(number for bare, number in amounts if not bare)
    # It is unknown which of several bare numbers was meant.
    return measured or tuple(number for _, number in amounts if len(amounts) == 1)
