"""Web search in SerpAPI's format, over a small bundled library ranked by BM25 (Robertson & Zaragoza 2009, k1 = 1.2, b =
0.75)."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import (
    Answer,
    Refusal,
    Route,
    ServiceRequest,
    fold_text,
    format_rfc3339,
    load_bundled_json,
)

K1, B = 1.2, 0.75
TITLE_WEIGHT = 3
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in is it its me my of on or that the "
        "their this to was "
        "were what when where which who whom whose why will with you your about tell find search",
    )
)


def _make_error_reply(status: int, message: str, **headers: str) -> ErrorReply:
    return ErrorReply(status, {"error": message}, headers)


SERVICE = ServiceSpec(
    name="search",
    tools=(
        ToolSpec(
            name="search_web",
            description="Search the web for facts; gives titles, links and snippets, best first.",
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for"},
                    "count": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many results"},
                },
                "required": ["query"],
            },
            method="GET",
            path="/search.json",
            query={"engine": "google", "q": "$query", "num": "$count"},
        ),
    ),
    errors={
        401: _make_error_reply(401, "Invalid API key. Your API key should be here: https://example.org/manage-api-key"),
        404: _make_error_reply(404, "Not found."),
        429: ErrorReply(429, {"error": "Your account has run out of searches."}, {"Retry-After": "1"}),
        500: _make_error_reply(500, "We couldn't complete your search. Please try again later."),
        503: _make_error_reply(503, "The service is temporarily unavailable."),
    },
    auth={"in": "query", "name": "api_key", "prefix": ""},
)


def routes() -> tuple[Route, ...]:
    return (Route("GET", "/search.json", "search_web", _search_web),)


def stem_word(word: str) -> str:
    """The word without the commonest English endings, so that `cities` finds `city`."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and not word.endswith(("ss", "us", "is")) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def split_terms(text: str) -> list[str]:
    return [stem_word(word) for word in re.findall(r"\w+", fold_text(text)) if word not in STOP]


@dataclass(frozen=True)
class _Library:
    documents: list[dict[str, str]]
    counts: list[Counter[str]]
    lengths: list[int]
    rarity: dict[str, float]


@cache
def _load_search_index() -> _Library:
    documents = load_bundled_json("corpus.json")
    counts = [Counter(split_terms(d["title"]) * TITLE_WEIGHT + split_terms(d["body"])) for d in documents]
    document_counts = Counter(term for count in counts for term in count)
    n = len(documents)
    # The 1 in the logarithm keeps common words from counting against a text.
    rarity = {term: math.log(1 + (n - df + 0.5) / (df + 0.5)) for term, df in document_counts.items()}
    return _Library(documents, counts, [count.total() for count in counts], rarity)


def rank_documents(query: str) -> list[dict[str, str]]:
    """The documents that share a word with the query, best first."""
    library = _load_search_index()
    mean = sum(library.lengths) / len(library.lengths)
    scored = []
    for number, (count, length) in enumerate(zip(library.counts, library.lengths, strict=True)):
        score = sum(
            library.rarity[t] * count[t] * (K1 + 1) / (count[t] + K1 * (1 - B + B * length / mean))
            # Each word of the query once.
            for t in dict.fromkeys(split_terms(query))
            if t in count
        )
        if score > 0:
            scored.append((-score, number))
    # By score, then by place: equal scores must have an order.
    return [library.documents[number] for _, number in sorted(scored)]


def _search_web(ask: ServiceRequest) -> Answer:
    query = ask.query.get("q", "")
    if not query.strip():
        raise Refusal(400, {"error": "Missing query `q` parameter."})
    engine = ask.query.get("engine", "google")
    if engine != "google":
        raise Refusal(400, {"error": f"Unsupported `{engine[:40]}` search engine."})
    count = ask.query.get("num", "10")
    # `isdecimal` is true of other scripts' digits, so ASCII is asked for.
    if not (count.isascii() and count.isdecimal() and len(count) < 4 and 1 <= int(count) <= 100):
        raise Refusal(400, {"error": "Invalid value for the `num` parameter: it must be a number from 1 to 100."})
    ranked = rank_documents(query)
    created = format_rfc3339(ask.now).replace("T", " ").replace("Z", " UTC")
    identity = ask.derive_hex_digits(digits=24)
    body: dict[str, Any] = {
        "search_metadata": {
            "id": identity,
            "status": "Success",
            "json_endpoint": f"https://example.org/searches/{identity}.json",
            "created_at": created,
            "processed_at": created,
            "google_url": "https://example.org/search",
            "total_time_taken": 0.01,
        },
        "search_parameters": {
            "engine": "google",
            "q": query,
            "google_domain": "google.com",
            "hl": "en",
            "gl": "us",
            "device": "desktop",
        },
        "search_information": {
            "query_displayed": query,
            "total_results": len(ranked),
            "time_taken_displayed": 0.01,
            "organic_results_state": "Results for exact spelling" if ranked else "Fully empty",
        },
    }
    # SerpAPI tells an empty result by an error at status 200.
    if not ranked:
        return Answer(body | {"error": "Google hasn't returned any results for this query."})
    wanted = set(split_terms(query))
    results = [
        {
            "position": position,
            "title": document["title"],
            "link": document["link"],
            "displayed_link": document["link"].removeprefix("https://").replace("/", " › "),
            "snippet": document["body"],
            "snippet_highlighted_words": [
                word for word in dict.fromkeys(re.findall(r"\w+", document["body"])) if wanted & set(split_terms(word))
            ],
            "source": "Example Library",
        }
        for position, document in enumerate(ranked[: int(count)], 1)
    ]
    return Answer(body | {"organic_results": results})
