"""Films by words of their title, with year and rating."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model.reading import QUOTE
from chaoslab.model.skills.search import looked_up
from chaoslab.model.story import Ask, CouldNot, Draft, Found, Step, Story

_ABOUT = re.compile(r"\b(?:movies?|films?|cinema)\b", re.I)
_RATED = re.compile(r"\b(?:when (?:was|did)|release (?:date|year)|rating|rated|plot|overview|directed)\b", re.I)
_NOISE = (
    r"^(?:search(?: (?:for|in|up))?|find(?: me| out)?|do i have(?: any)?|have i|any|look(?: up| for)?|show(?: me)?|give(?: "
    r"me)?|list|get|tell me|check|are there|is there|do you know|what do you know|"
    r"what|which|who|when|how|was|is|did|does|i)\b\s*"
)
_WORDS = (
    r"\b(?:the )?(?:rating|release (?:date|year)|plot|overview|year|details?|information|info)(?: (?:of|for|about|on))?\b|"
    r"\b(?:movies?|films?|cinema)(?: database)?\b|\b(?:called|named|titled|entitled|about|with|"
    r"whose title|containing|in (?:the|its|their) title|"
    r"(?:the )?(?:words?|title)(?: (?:has|contains?|is))?|released|come out|came out|rated|get|"
    r"have|made|directed|good|exist|from|there|database)\b"
)


def read(clause: str, draft: Draft) -> bool:
    quoted = re.search(QUOTE, clause)
    if not _ABOUT.search(clause) and not (_RATED.search(clause) and quoted):
        return False
    year_match = re.search(r"\b(?:from|in|of|released in|made in)?\s*\(?\b((?:19|20)\d\d)\b\)?", clause)
    year = int(year_match[1]) if year_match else None
    if quoted:
        title = draft.plain(quoted[0])
    else:
        rest = clause.replace(year_match[0], " ") if year_match else clause
        while (shorter := re.sub(_NOISE, "", rest.strip(), flags=re.I)) != rest:
            rest = shorter
        rest = re.sub(_WORDS, " ", rest, flags=re.I)
        rest = re.sub(r"\s{2,}", " ", rest).strip(" ,.?!:")
        while (
            shorter := re.sub(
                r"^(?:a|an|any|some|all|was|is|did|does|of|for|and|in|by|with|out|year|me|it)\s+|\s+(?:was|is|of|and|in|by|for|out)$",
                "",
                rest,
                flags=re.I,
            )
        ) != rest:
            rest = shorter
        capitals = re.search(
            r"[A-Z0-9À-Þ][\w'’.:&-]*(?:\s+(?:(?:of|the|and|in|to|a|on|for|from|with)\s+)*[A-Z0-9À-Þ][\w'’.:&-]*)*", rest
        )
        title = re.sub(r"^the(?=\s+[a-z])\s*", "", capitals[0] if capitals else rest)
    if not title:
        return False

    def act(_: Sequence[Found]) -> Story:
        try:
            reply = yield Ask("movies", {"title": title, **({"year": year} if year else {})})
        except CouldNot as why:
            return (yield from looked_up(f"movie {title}{f' {year}' if year else ''}", instead_of=why))
        return told(reply, title)

    draft.last = (draft.add(Step(f"look up the movie “{title}”", act, topic="movies")),)
    return True


def told(reply: Any, title: str) -> Found:
    results = reply.get("results") if isinstance(reply, Mapping) else reply
    if not isinstance(results, list) or not results:
        return Found(f"I found no movie matching “{title}”.", f"I found no movie matching “{title}”.", nothing=True)
    lines, ratings = [], []
    for film in results[:5]:
        if not isinstance(film, Mapping):
            lines.append(str(film))
            continue
        name = str(film.get("title") or film.get("original_title") or film.get("name") or "?")
        year = str(film.get("release_date") or film.get("year") or "")[:4]
        rating = film.get("vote_average", film.get("rating"))
        if isinstance(rating, int | float):
            ratings.append(rating)
        lines.append(name + (f" ({year})" if year else "") + (f", rated {rating}" if rating is not None else ""))
    plot = results[0].get("overview") if len(results) == 1 and isinstance(results[0], Mapping) else ""
    sentence = (
        ("I found the movie " if len(lines) == 1 else "I found these movies: ")
        + "; ".join(lines)
        + "."
        + (f" {plot}" if plot else "")
    )
    return Found(sentence, "; ".join(lines), tuple(ratings[:1]), tuple(lines))
