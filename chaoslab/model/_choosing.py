"""The choice of an offered tool for a kind of work, by names, descriptions and parameters, never by a list of tools."""

import json
import marshal
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, eq=False)
class OfferedTool:
    """One offered tool; compared by identity, so that facts about it can be cached."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        declared = self.parameters.get("properties")
        return declared if isinstance(declared, Mapping) else {}

    @property
    def required_parameters(self) -> tuple[str, ...]:
        return tuple(name for name in self.parameters.get("required") or () if name in self.properties)


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: its verbs, its nouns, and the parameter names that each slot may have."""

    verbs: str
    nouns: str
    slots: Mapping[str, str]
    not_about: str = ""


# The names of a slot stand in the order in which they are tried: the plainest first, `q` and `text` late.
KINDS: dict[str, WorkKind] = {
    "weather": WorkKind("", "weather forecast temperature climate", {"city": "city location place town q query"}),
    "search": WorkKind(
        "search google find lookup browse query",
        "web internet google online search engine page",
        {"query": "query q search_query text term keywords", "count": "count num limit max_results n results"},
        # A tool that searches films or mail is none for the web.
        not_about="movie film event calendar message weather mail contact product word dictionary file",
    ),
    "movies": WorkKind(
        "", "movie film cinema tmdb", {"title": "query title name movie film q", "year": "year release_year"}
    ),
    "create": WorkKind(
        "create add schedule book insert new make",
        "event calendar appointment meeting",
        {
            "title": "title summary name subject event",
            "start": "start start_time begin from starts_at when",
            "end": "end end_time finish until to ends_at",
        },
    ),
    "list": WorkKind(
        "list show get read find search view",
        "event calendar appointment agenda schedule",
        {
            "start": "start time_min start_time from after since",
            "end": "end time_max end_time to until before",
            "query": "query q search text title keyword",
        },
    ),
    "delete": WorkKind("delete remove cancel", "event calendar appointment meeting", {"id": "event_id id event"}),
    "calculate": WorkKind(
        "",
        "calculate calculator compute arithmetic math evaluate expression",
        {"expression": "expression expr formula input query q"},
    ),
    "send": WorkKind(
        "send post write message notify",
        "message text chat slack sms mail dm",
        {"to": "to recipient channel person user receiver", "text": "text body message content"},
    ),
    "read": WorkKind(
        "read list get fetch show check",
        "message inbox chat mail",
        {"sender": "sender from user author person", "limit": "limit count n max num"},
    ),
    "translate": WorkKind(
        "",
        "translate translation translator",
        {
            "text": "text q query phrase content sentence",
            "target": "target to target_language target_lang language lang to_language",
            "source": "source from source_language source_lang from_language",
        },
    ),
}


@dataclass(frozen=True)
class Catalogue:
    """The functions among the tools of a chat request, and the length of all of them as JSON."""

    offers: tuple[OfferedTool, ...]
    size: int


def make_tool_catalogue(tools: Any) -> Catalogue:
    """The catalogue of the tools, cached since an agent sends equal tools with every request."""
    return _parse_tool_catalogue(marshal.dumps(tools, MARSHALLED))


# The version of marshal that encodes equal values equally. marshal is a few times faster than JSON, and only gives a
# key here.
MARSHALLED = 2


@lru_cache(64)
def _parse_tool_catalogue(text: bytes) -> Catalogue:
    tools = marshal.loads(text)
    offers = []
    for tool in tools or ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            offers.append(
                OfferedTool(function["name"], function.get("description") or "", function.get("parameters") or {})
            )
    return Catalogue(tuple(offers), len(json.dumps(tools, ensure_ascii=False)) if tools else 0)


@lru_cache(1024)
def stem_words(text: str) -> tuple[str, ...]:
    """The words of a name or sentence, lower case and without their endings."""
    # The parts of getWeather are two words, as those of get_weather are.
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return tuple(stem_word(word) for word in re.findall(r"[^\W\d_]+", spaced.lower()))


def stem_word(word: str) -> str:
    """The word without its plural or verb ending: enough to match "movies" with "movie"."""
    for ending, put in (
        ("ies", "i"),
        ("ie", "i"),
        ("y", "i"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + put
    return word


def score_tool_for_work(offer: OfferedTool, kind: WorkKind) -> int:
    """The suitability of a tool for a kind of work; 0 for none."""
    named, description_words = stem_words(offer.name), stem_words(offer.description)
    verbs, nouns, excluded = set(stem_words(kind.verbs)), set(stem_words(kind.nouns)), set(stem_words(kind.not_about))
    if (
        excluded & set(named)
        or not nouns & {*named, *description_words}
        or (verbs and not verbs & {*named, *description_words})
    ):
        return 0
    # If no slot fills a required parameter, every call of the tool would be refused.
    if set(offer.required_parameters) - set(map_slots_to_parameters(offer, kind).values()):
        return 0
    # A name says what a tool is for; a description also names what it merely touches.
    in_name = 4 * len(nouns & set(named)) + (6 * len(verbs & set(named)) if verbs else 0)
    # A tool that mentions the work only in passing does not do it.
    return (
        in_name + len(nouns & set(description_words)) + len(verbs & set(description_words))
        if in_name or set(description_words[:4]) & (nouns | verbs)
        else 0
    )


@lru_cache(1024)
def choose_tool(name: str, offered: tuple[OfferedTool, ...]) -> OfferedTool | None:
    """The offered tool that suits this kind of work best; of equals, the first."""
    kind = KINDS[name]
    best = max(offered, key=lambda offer: _score_if_no_rival_verb(offer, name, kind), default=None)
    return best if best is not None and _score_if_no_rival_verb(best, name, kind) > 0 else None


def _score_if_no_rival_verb(offer: OfferedTool, name: str, kind: WorkKind) -> int:
    """The score of a tool; 0 if its first word is another kind's verb, as delete_event for creating an event."""
    rivals = (
        {"create", "list", "delete"}
        if name in ("create", "list", "delete")
        else {"send", "read"}
        if name in ("send", "read")
        else set()
    )
    first = stem_words(offer.name)[:1]
    for rival in rivals - {name}:
        if set(first) & set(stem_words(KINDS[rival].verbs)) and not set(first) & set(stem_words(kind.verbs)):
            return 0
    return score_tool_for_work(offer, kind)


def map_slots_to_parameters(offer: OfferedTool, kind: WorkKind) -> dict[str, str]:
    """The tool's parameter for each slot."""
    by_slot: dict[str, str] = {}
    for slot, names in kind.slots.items():
        for name in names.split():
            match = next(
                (prop for prop in offer.properties if prop.lower() == name and prop not in by_slot.values()), None
            )
            if match:
                by_slot[slot] = match
                break
    return by_slot


@lru_cache(64)
def list_unclaimed_tools(offered: tuple[OfferedTool, ...]) -> tuple[OfferedTool, ...]:
    """The tools that no known kind of work chooses: only general reading is left for them."""
    chosen = {offer.name for kind in KINDS if (offer := choose_tool(kind, offered)) is not None}
    return tuple(
        offer
        for offer in offered
        if offer.name not in chosen and not any(score_tool_for_work(offer, kind) > 6 for kind in KINDS.values())
    )
