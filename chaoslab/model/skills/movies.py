"""Films by words of their title, with year and rating."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._reading import QUOTE
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story
from chaoslab.model.skills import search
from chaoslab.model.skills.search import search_web_instead

_ABOUT = re.compile(r"\b(?:movies?|films?|cinema)\b", re.I)
_RELEASED = re.compile(
    r"\brelease (?:date|year)\b|\b(?:year|when|which|first|earlier|later)\b.*\b(?:released|c[oa]me "
    r"out)\b|\b(?:rated|ratings?|plot of)\b",
    re.I,
)
"""Words about films, but not only films: if no film has the title, the web is searched."""
_COMPARED = re.compile(
    r"\b(?P<better>better|higher|best|highest)\b|\b(?P<worse>worse|lower|worst|lowest)\b"
    r"|\b(?P<newer>newer|later|newest|latest|more recent(?:ly)?)\b|\b(?P<older>older|oldest|first|earlier"
    r"|earliest)\b|\bcompare\b",
    re.I,
)
_RATED = re.compile(r"\b(?:when (?:was|did)|release (?:date|year)|rating|rated|plot|overview|directed)\b", re.I)
_TITLE = re.compile(
    r"[A-Z0-9À-Þ][\w'’.:&-]*(?:\s+(?:(?:of|the|and|in|to|a|on|for|from|with)\s+)*[A-Z0-9À-Þ][\w'’.:&-]*)*"
)
_NOISE = (
    r"^(?:search(?: (?:for|in|up))?|find(?: me| out)?|do i have(?: any)?|have i|any|look(?: up| for)?|show(?: "
    r"me)?|give(?: "
    r"me)?|list|get|tell me|check|are there|is there|do you know|what do you know|"
    r"what|which|who|when|how|was|is|did|does|i)\b\s*"
)
_WORDS = (
    r"\b(?:the )?(?:ratings?|release (?:date|year)|plot|overview|year|details?|information|info)(?: "
    r"(?:of|for|about|on))?\b|"
    r"\b(?:movies?|films?|cinema)(?: database)?\b|\b(?:called|named|titled|entitled|about|with|"
    r"whose title|containing|in (?:the|its|their) title|"
    r"(?:the )?(?:words?|title)(?: (?:has|contains?|is))?|released|come out|came out|rated|get|"
    r"have|made|directed|good|exist|from|there|database|first|earlier|later|better|higher|lower|worse)\b"
)


def plan_clause(clause: str, draft: Draft) -> bool:
    # These words ask for the calendar, also of “the cinema on Friday”.
    if re.match(r"(?:schedule|book|plan|arrange|organi[sz]e|add|put|create|cancel|delete|move|remind)\b", clause, re.I):
        return False
    quoted = re.search(QUOTE, clause)
    titled = [match[0] for match in _TITLE.finditer(re.sub(r"^\W*\w+", "", clause))]
    about = _ABOUT.search(clause) or (_RATED.search(clause) and quoted)
    if not about and not (_RELEASED.search(clause) and titled and not quoted):
        return False
    if _COMPARED.search(clause) and len(several := _list_compared_titles(clause, draft)) > 1:
        return _plan_comparison(clause, several, draft)
    year_match = re.search(r"\b(?:from|in|of|released in|made in)?\s*\(?\b((?:19|20)\d\d)\b\)?", clause)
    year = int(year_match[1]) if year_match else None
    if quoted:
        title = draft.restore_quotes(quoted[0])
    else:
        rest = clause.replace(year_match[0], " ") if year_match else clause
        while (shorter := re.sub(_NOISE, "", rest.strip(), flags=re.I)) != rest:
            rest = shorter
        rest = re.sub(_WORDS, " ", rest, flags=re.I)
        rest = re.sub(r"\s{2,}", " ", rest).strip(" ,.?!:")
        while (
            shorter := re.sub(
                r"^(?:a|an|any|some|all|was|is|did|does|of|for|and|in|by|with|out|year|me|it)\s+|\s+(?:was|is|of|and"
                r"|in|by|for|out)$",
                "",
                rest,
                flags=re.I,
            )
        ) != rest:
            rest = shorter
        capitals = _TITLE.search(rest)
        title = re.sub(r"^the(?=\s+[a-z])\s*", "", capitals[0] if capitals else rest)
    if not title:
        return False

    def look_up_movie(_: Sequence[StepResult]) -> Story:
        try:
            reply = yield Ask("movies", {"title": title, **({"year": year} if year else {})})
        except CouldNot as error:
            return (yield from search_web_instead(f"movie {title}{f' {year}' if year else ''}", instead_of=error))
        result = make_step_result(reply, title)
        if result.nothing and not about:
            reply = yield Ask("search", {"query": draft.restore_quotes(clause)})
            return search.make_step_result(reply, draft.restore_quotes(clause), 1)
        return result

    draft.last = (draft.add_step(Step(f"look up the movie “{title}”", look_up_movie, topic="movies")),)
    return True


def _list_compared_titles(clause: str, draft: Draft) -> list[str]:
    """The titles that the clause compares."""
    if quotes := re.findall(QUOTE, clause):
        return [draft.restore_quotes(quote) for quote in quotes]
    listed = re.sub(r"^\W*(?:which|what|is|are|was|compare|does|did|do|the)\b", "", clause, flags=re.I)
    pieces = re.split(r"\s+(?:or|than|vs\.?|versus)\s+|\s*,\s*(?:or\s+|and\s+)?", listed)
    # “and” may stand within a title, so it divides only where nothing else does.
    if len([piece for piece in pieces if _TITLE.search(piece)]) < 2:
        pieces = re.split(r"\s+and\s+", listed)
    return [match[0] for piece in pieces if (match := _TITLE.search(piece))]


def _plan_comparison(clause: str, titles: list[str], draft: Draft) -> bool:
    """Looks each title up, and reports the film that leads in rating or year."""
    draft.last = tuple(
        draft.add_step(Step(f"look up the movie “{title}”", _make_lookup_story(title), topic="movies"))
        for title in titles
    )
    compared = _COMPARED.search(clause)
    word = (compared.lastgroup if compared else None) or ""
    by_year = word in ("newer", "older")

    def compare_movies(results: Sequence[StepResult]) -> Story:
        # As an index and a length: the rating is number 0, the year number 1.
        rated = [result for result in results if result.items and len(result.numbers) > by_year]
        if len(rated) < len(results):
            raise CouldNot("one of them was not found")
        value = {result.items[0].split(" (")[0]: result.numbers[by_year] for result in rated}
        best = (min if word in ("worse", "older") else max)(value.values())
        leading = [name for name, number in value.items() if number == best]
        if len(leading) == len(value):
            return StepResult("In that they are equal.", "They are equal")
        comparison = (
            f"came out {'first' if word == 'older' else 'last'}"
            if by_year
            else f"is rated {'lower' if word == 'worse' else 'higher'}"
        )
        return StepResult(f"{leading[0]} {comparison}.", f"{leading[0]} {comparison}", (best,))
        yield Ask("", {})  # makes this function a generator

    if word:
        draft.last = (draft.add_step(Step("compare the films", compare_movies, draft.last, "movies")),)
    return True


def _make_lookup_story(title: str) -> Any:
    """The story of one film: the first result, which is the closest title."""

    def look_up_first(_: Sequence[StepResult]) -> Story:
        reply = yield Ask("movies", {"title": title})
        results = reply.get("results") if isinstance(reply, Mapping) else reply
        return make_step_result(results[:1] if isinstance(results, list) else [], title)

    return look_up_first


def make_step_result(reply: Any, title: str) -> StepResult:
    results = reply.get("results") if isinstance(reply, Mapping) else reply
    if not isinstance(results, list) or not results:
        return StepResult(f"I found no movie matching “{title}”.", nothing=True)
    lines: list[str] = []
    numbers: tuple[float, ...] = ()
    parts: dict[str, str] = {}
    for film in results[:5]:
        if not isinstance(film, Mapping):
            lines.append(str(film))
            continue
        name = str(film.get("title") or film.get("original_title") or film.get("name") or "?")
        year = str(film.get("release_date") or film.get("year") or "")[:4]
        rating = film.get("vote_average", film.get("rating"))
        if not lines:
            rated = (rating,) if isinstance(rating, int | float) else ()
            numbers = (*rated, int(year)) if rated and year.isdecimal() else rated
            parts = {r"rat(?:ing|ed)|scores?": f"{name} is rated {rating}"} if rating is not None else {}
            parts |= {r"year|release|released|came out|come out": f"{name} came out in {year}"} if year else {}
            parts |= {r"plot|overview|story": str(film["overview"])} if film.get("overview") else {}
        lines.append(name + (f" ({year})" if year else "") + (f", rated {rating}" if rating is not None else ""))
    plot = results[0].get("overview") if len(results) == 1 and isinstance(results[0], Mapping) else ""
    sentence = (
        ("I found the movie " if len(lines) == 1 else "I found these movies: ")
        + "; ".join(lines)
        + "."
        + (f" {plot}" if plot else "")
    )
    return StepResult(sentence, "; ".join(lines), numbers, tuple(lines), parts=parts)
