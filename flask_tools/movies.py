"""Film search in TMDB's format, over `data/movies.json`, which anyone may replace; if it is unusable, over the bundled
films."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chaoslab.base.files import Unreadable, read_json
from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import DATA, Answer, Refusal, Route, ServiceRequest, fold_text

# As in TMDB: 20 films a page, 500 pages.
PAGE_SIZE, PAGES_MAX = 20, 500
# TMDB numbers its errors beside HTTP's statuses.
_CODES = {401: 7, 404: 34, 429: 25, 500: 11, 503: 9, 504: 24}


def make_error_body(status: int, message: str, code: int = 5) -> Any:
    return {"success": False, "status_code": _CODES.get(status, code), "status_message": message}


SERVICE = ServiceSpec(
    name="movies",
    tools=(
        ToolSpec(
            name="search_movies",
            description="Find films by words of their title; gives title, release date, rating and overview.",
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words of the title"},
                    "year": {"type": "integer", "description": "The year of release"},
                },
                "required": ["query"],
            },
            method="GET",
            path="/3/search/movie",
            query={"query": "$query", "year": "$year"},
        ),
    ),
    errors={
        401: ErrorReply(401, make_error_body(401, "Invalid API key: You must be granted a valid key.")),
        404: ErrorReply(404, make_error_body(404, "The resource you requested could not be found.")),
        429: ErrorReply(
            429, make_error_body(429, "Your request count is over the allowed limit."), {"Retry-After": "1"}
        ),
        500: ErrorReply(500, make_error_body(500, "Internal error: Something went wrong, contact TMDB.")),
        503: ErrorReply(
            503, make_error_body(503, "Service offline: This service is temporarily offline, try again later.")
        ),
    },
    auth={"in": "header", "name": "Authorization", "prefix": "Bearer "},
)


def routes() -> tuple[Route, ...]:
    return (Route("GET", "/3/search/movie", "search_movies", _search_movies),)


@dataclass(frozen=True)
class Films:
    """The films, and the defects of the user's file, one line each."""

    films: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...] = ()


def load_films(path: Path, *, otherwise: Path) -> Films:
    """The films of the user's file; the bundled ones if it is unusable."""

    def fall_back_to_bundled(why: str) -> Films:
        bundled: list[dict[str, Any]] = json.loads(otherwise.read_text(encoding="utf-8"))
        return Films(tuple(bundled), (f"{path.name}: {why}; the bundled films are used",))

    try:
        data = read_json(path)
    except Unreadable as error:
        return fall_back_to_bundled(str(error))
    if not isinstance(data, list):
        return fall_back_to_bundled("is not a JSON array")
    good = tuple(entry for entry in data if _is_usable_film(entry))
    if not good:
        return fall_back_to_bundled("has no entry with a `name` and an `original_name`")
    bad = [number for number, entry in enumerate(data, 1) if not _is_usable_film(entry)]
    if not bad:
        return Films(good)
    shown = ", ".join(map(str, bad[:5])) + (" …" if len(bad) > 5 else "")
    return Films(good, (f"{path.name}: {len(bad)} entries left out, for want of a text `name` or so (no. {shown})",))


def _is_usable_film(entry: Any) -> bool:
    kinds: dict[str, type | tuple[type, ...]] = {"overview": str, "vote_average": (int, float), "year": int}
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str) and entry[name].strip() for name in ("name", "original_name"))
        and all(isinstance(entry.get(name), kind) for name, kind in kinds.items() if entry.get(name) is not None)
    )


@cache
def _load_default_films() -> Films:
    return load_films(DATA / "movies.json", otherwise=DATA / "bundled_movies.json")


def warnings() -> tuple[str, ...]:
    return _load_default_films().warnings


def _parse_query_number(ask: ServiceRequest, name: str, default: str) -> int:
    text = ask.query.get(name, default)
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise Refusal(400, make_error_body(400, f"Invalid parameters: {name} must be a whole number."))
    return int(text)


def _score_film(film: dict[str, Any], query: str) -> int:
    """The score of a film: 0 for no match, and more the closer a title is to the query."""
    best = 0
    # A set: most films have one title in both fields.
    for title in {_normalize_title(film["name"]), _normalize_title(film["original_name"])}:
        words = title.split()
        if title == query:
            best = max(best, 4)
        elif f" {title} ".startswith(f" {query} "):
            best = max(best, 3)
        elif f" {query} " in f" {title} ":
            best = max(best, 2)
        elif all(any(word.startswith(part) for word in words) for part in query.split()):
            best = max(best, 1)
    return best


def _normalize_title(text: str) -> str:
    return " ".join(re.findall(r"\w+", fold_text(text)))


def _search_movies(ask: ServiceRequest) -> Answer:
    query = ask.query.get("query", "")
    if not query.strip():
        raise Refusal(400, make_error_body(400, "Invalid parameters: query must be provided."))
    page = _parse_query_number(ask, "page", "1")
    if not 1 <= page <= PAGES_MAX:
        # Code 22 is TMDB's for pages.
        raise Refusal(400, make_error_body(400, "Invalid page: Pages start at 1 and max at 500.", code=22))
    year = _parse_query_number(ask, "year", "0")
    plain = _normalize_title(query)
    matches = []
    for number, film in enumerate(_load_default_films().films, 1):
        score = _score_film(film, plain) if plain and year in (0, film.get("year")) else 0
        if score:
            matches.append((-score, -float(film.get("vote_average") or 0), number, film))
    # By the score, the vote and the place, so that equal runs have equal lists.
    matches.sort(key=lambda entry: entry[:3])
    shown = matches[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    body = {
        "page": page,
        "results": [_film_to_json(number, film) for *_, number, film in shown],
        # Rounded up without floats.
        "total_pages": -(-len(matches) // PAGE_SIZE),
        "total_results": len(matches),
    }
    return Answer(body)


def _film_to_json(number: int, film: dict[str, Any]) -> dict[str, Any]:
    year = film.get("year")
    vote = film.get("vote_average") or 0.0
    return {
        "adult": False,
        "backdrop_path": None,
        "genre_ids": film.get("genres") or [],
        "id": number,
        "original_language": film.get("original_language") or "en",
        "original_title": film["original_name"],
        "overview": film.get("overview") or "",
        "popularity": round(vote * 10, 1),
        "poster_path": None,
        "release_date": film.get("release_date") or (f"{year:04d}-01-01" if year else ""),
        "title": film["name"],
        "video": False,
        "vote_average": vote,
        "vote_count": 1000 if vote else 0,
    }
