"""A request to a model in brief, and how near two of these are."""

from typing import Any

import pytest

from chaoslab.base.identity import hash_value
from chaoslab.core.dialog import CHAT, NEWEST, WORDS, build_request_sketch, measure_request_likeness


def of(*said: tuple[str, str], **rest: Any) -> dict[str, Any]:
    return build_request_sketch(CHAT, {"messages": [{"role": role, "content": words} for role, words in said], **rest})


def test_what_came_behind_the_last_answer_is_told_and_the_rest_is_a_digest() -> None:
    found = of(("user", "a"), ("assistant", "b"), ("user", "c" * (WORDS + 1)), temperature=0.5, note="n" * 61, tools=[])
    told, earlier, note = found["messages"], found["earlier"], found["note"]
    assert told == [f"user: {'c' * (WORDS - 1)}…"]
    assert earlier not in ("none", of(("user", "a"), ("assistant", "x"), ("user", "c"))["earlier"])
    assert (found["temperature"], found["tools"]) == (0.5, "[]")
    assert of(("user", "a"))["earlier"] == "none"
    assert len(of(*[("user", str(n)) for n in range(NEWEST + 1)])["messages"]) == NEWEST
    assert of(long=["word"] * 30)["long"].startswith("30 entries, ")
    short = of(note="n" * 60, list=["n" * 56], none=None, flag=True)
    assert (short["note"], short["list"], short["none"], short["flag"]) == ("n" * 60, f'["{"n" * 56}"]', None, True)
    assert of(list=["n" * 57])["list"] == f"1 entries, {hash_value(['n' * 57])[:8]}"
    assert note == f"a text, {hash_value('n' * 61)[:8]}"
    assert build_request_sketch(CHAT, ["no object"]) == {}


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ({"messages": ["a"], "earlier": "x", "t": 1}, {"messages": ["a"], "earlier": "x", "t": 1}, 3.0),
        ({"messages": ["a"], "earlier": "x", "t": 1}, {"messages": ["a"], "earlier": "y", "t": 1}, 1.5),
        ({"messages": ["a"], "earlier": "x", "t": 1}, {"messages": ["b"], "earlier": "x", "t": 1}, 2.0),
        ({"messages": ["a"], "earlier": "x", "t": 1}, {"messages": ["a"], "earlier": "x", "t": 2}, 2.5),
        ({"messages": ["a"], "earlier": "x", "t": 1, "u": None}, {"messages": ["a"], "earlier": "x", "t": 1}, 2.75),
        ({"earlier": "x"}, {"earlier": "x"}, 2.5),
    ],
)
def test_the_earlier_messages_weigh_most_then_the_newest_then_the_rest(
    one: dict[str, Any], other: dict[str, Any], near: float
) -> None:
    assert measure_request_likeness(one, other) == measure_request_likeness(other, one) == near
