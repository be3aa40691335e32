"""The ten tools answered in memory in their real wire formats, and a loop that lets the model talk until it is done."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.model._chat import answer_conversation

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
SYSTEM = "You are a helpful assistant.\nToday is Monday 2026-06-01, 09:00 UTC."


def tool(name: str, description: str, properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool(
        "search_web",
        "Search the web; returns titles, links and snippets.",
        {"query": STRING, "count": INTEGER},
        "query",
    ),
    tool("current_weather", "The weather in a city right now, in degrees Celsius.", {"city": STRING}, "city"),
    tool("search_movies", "Find films by words of their title.", {"query": STRING, "year": INTEGER}, "query"),
    tool(
        "create_event",
        "Add an event to the calendar.",
        {"title": STRING, "start": STRING, "end": STRING},
        "title",
        "start",
        "end",
    ),
    tool(
        "list_events",
        "List the calendar's events in a span of time.",
        {"start": STRING, "end": STRING, "query": STRING},
    ),
    tool("delete_event", "Delete an event from the calendar by its id.", {"event_id": STRING}, "event_id"),
    tool("calculate", "Evaluate an arithmetic expression.", {"expression": STRING}, "expression"),
    tool("send_message", "Send a message to a person or a channel.", {"to": STRING, "text": STRING}, "to", "text"),
    tool("read_messages", "Read the messages in the inbox, newest first.", {"sender": STRING, "limit": INTEGER}),
    tool("translate", "Translate a text.", {"text": STRING, "target": STRING, "source": STRING}, "text", "target"),
]
DICE = tool("roll_dice", "Roll a die with the given number of sides.", {"sides": INTEGER}, "sides")
MONEY = tool(
    "convert_currency",
    "Convert an amount of money.",
    {"amount": NUMBER, "from_currency": STRING, "to_currency": STRING},
    "amount",
    "from_currency",
    "to_currency",
)
WORD = tool("define_word", "The dictionary definition of a word.", {"word": STRING}, "word")

_SKY = {
    "Oslo": (12.4, "light rain"),
    "Rome": (24.1, "clear sky"),
    "Bergen": (9.8, "moderate rain"),
    "Madrid": (28.0, "few clouds"),
}
_EVENTS = [
    ("e1", "Dentist", "2026-06-02T09:00:00Z", "2026-06-02T09:45:00Z"),
    ("e2", "Lunch with Ana", "2026-06-03T12:00:00Z", "2026-06-03T13:00:00Z"),
    ("e3", "Team meeting", "2026-06-05T10:00:00Z", "2026-06-05T11:00:00Z"),
]
_FILMS = [
    ("Dune", "2021-09-15", 7.8),
    ("Dune", "1984-12-14", 6.2),
    ("Heat", "1995-12-15", 7.9),
    ("Alien", "1979-05-25", 8.1),
]
_INBOX = [("Dmitri", "Lunch at noon?"), ("Ana", "See you tomorrow"), ("Ana", "I have the tickets")]
_SUMS = {
    "17 * 24": 408,
    "12*7": 84,
    "15 / 100 * 80": 12,
    "2+2": 4,
    "12.4 + 24.1": 36.5,
    "sqrt(144) + 12 ^ 2": 156,
    "8 * 7": 56,
    "2 * 56": 112,
}


def reply_of(name: str, arguments: Mapping[str, Any]) -> Any:
    """The answer of the service behind a tool."""
    return _REPLIES[name](arguments)


def _weather(arguments: Mapping[str, Any]) -> Any:
    city = arguments["city"]
    degrees, sky = _SKY.get(city, (18.5, "overcast clouds"))
    if city == "Atlantis":
        return "Error: weather answered 404: city not found"
    return {
        "name": city,
        "weather": [{"id": 500, "main": "x", "description": sky}],
        "main": {"temp": degrees, "humidity": 80} | ({"feels_like": 9.5} if city == "Bergen" else {}),
        "cod": 200,
    }


def _events(arguments: Mapping[str, Any]) -> Any:
    words = arguments.get("query", "").lower()
    fitting = [
        event
        for event in _EVENTS
        if words in event[1].lower() and arguments.get("start", "") <= event[2] <= (arguments.get("end") or "9999")
    ]
    return {"kind": "calendar#events", "items": [_event(*event) for event in fitting]}


def _event(key: str, title: str, start: str, end: str) -> dict[str, Any]:
    return {
        "kind": "calendar#event",
        "id": key,
        "summary": title,
        "start": {"dateTime": start},
        "end": {"dateTime": end},
    }


def _films(arguments: Mapping[str, Any]) -> Any:
    fitting = [film for film in _FILMS if arguments["query"].lower() in film[0].lower()]
    fitting = [film for film in fitting if film[1].startswith(str(arguments.get("year", "")))]
    return {
        "page": 1,
        "results": [{"title": t, "release_date": d, "vote_average": r, "overview": ""} for t, d, r in fitting],
    }


def _inbox(arguments: Mapping[str, Any]) -> Any:
    fitting = [(user, text) for user, text in _INBOX if arguments.get("sender", user) == user][
        : arguments.get("limit", 100)
    ]
    return {
        "ok": True,
        "messages": [{"type": "message", "user": user, "text": text, "ts": "1"} for user, text in fitting],
    }


def _found(arguments: Mapping[str, Any]) -> Any:
    query = arguments["query"]
    return {
        "search_information": {"organic_results_state": "Results for exact spelling"},
        "organic_results": [
            {"position": 1, "title": f"All about {query}", "link": "http://x", "snippet": f"What there is on {query}."}
        ],
    }


def _sum(arguments: Mapping[str, Any]) -> Any:
    result = _SUMS.get(arguments["expression"], 42)
    return {"expression": arguments["expression"], "result": result, "text": str(result)}


_REPLIES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "search_web": _found,
    "current_weather": _weather,
    "search_movies": _films,
    "create_event": lambda a: _event("e9", a["title"], a["start"] + "Z", a["end"] + "Z"),
    "list_events": _events,
    "delete_event": lambda _: {"deleted": True},
    "calculate": _sum,
    "send_message": lambda a: {"ok": True, "channel": a["to"], "ts": "2", "message": {"text": a["text"]}},
    "read_messages": _inbox,
    "translate": lambda a: {"translatedText": f"{a['text']} [{a['target']}]"},
    "roll_dice": lambda a: {"sides": a["sides"], "result": 4},
    "convert_currency": lambda a: {"amount": a["amount"], "converted": 91.5, "currency": a["to_currency"]},
    "define_word": lambda a: {"word": a["word"], "definition": "a happy accident"},
}


@dataclass
class Talk:
    """A whole conversation: the model's calls in order, by turn, and its last words."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    answer: str = ""


def talk(
    prompt: str,
    tools: list[dict[str, Any]] | None = None,
    replies: Callable[[str, Mapping[str, Any], int], Any] = lambda name, arguments, _: reply_of(name, arguments),
    before: list[dict[str, Any]] | None = None,
    system: str = SYSTEM,
) -> Talk:
    """Plays the tools until an answer comes.

    `replies` is given name, arguments and how often that very call was made before.
    """
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": system},
        *(before or []),
        {"role": "user", "content": prompt},
    ]
    done = Talk()
    for _ in range(12):
        reply = answer_conversation(messages, TOOLS if tools is None else tools)
        if not reply.tool_calls:
            done.answer = reply.content
            return done
        done.turns.append(len(reply.tool_calls))
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in reply.tool_calls
        ]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        for call in reply.tool_calls:
            value = replies(call.name, call.arguments, done.calls.count((call.name, dict(call.arguments))))
            done.calls.append((call.name, dict(call.arguments)))
            content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    raise AssertionError(f"no answer after {len(done.calls)} calls: {done.calls}")
