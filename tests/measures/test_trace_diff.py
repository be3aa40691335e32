"""Stories of a trial, and differences of them that are only a matter of time."""

from dataclasses import replace
from typing import Any

import pytest

from chaoslab.analysis.measures.trace_diff import (
    Difference,
    build_story,
    explain_incomparable,
    explain_timing_difference,
    find_first_difference,
    find_story_difference,
)
from chaoslab.core.events import (
    AttemptRef,
    Budget,
    CallDisturbed,
    CallFinished,
    CallStarted,
    Effect,
    Event,
    Fallback,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultScheduled,
    FaultUnreached,
    FaultWitnessed,
    PromptStarted,
    Retry,
)
from chaoslab.record.lines import Record
from tests.event_parts import call_at, fault_at
from tests.verdict.trials import finished, raised

LATE = FaultScheduled(**fault_at("latency", "slow", "search", 1, 1, "a"), params={"delay_s": 2.0})
AGAIN = Retry(at=AttemptRef(target="search", request=1, attempt=1, request_id="a"), tool="find", wait_s=1.0, reason="")
RECORDS = [Record("", n, "run", "p1.r1", "info", n, event) for n, event in enumerate((LATE, AGAIN), 1)]


def test_a_delay_about_as_long_as_the_deadline_is_one_where_it_was_scheduled() -> None:
    def why(place: str, trial: str, tool_s: float) -> str:
        found = Difference(place, "error", "timeout", "")
        return explain_timing_difference(RECORDS, trial, found, tool_s=tool_s, model_s=60)

    assert [bool(why("search 1.1", "p1.r1", tool_s)) for tool_s in (0.9, 1, 4, 4.1)] == [False, True, True, False]
    assert why("search 1.1", "p1.r1", 3) == "a delay within a factor of 2 of the deadline"
    assert [why("search 1.1", "p1.r1", 9), why("search 1.2", "p1.r1", 3), why("search 1.1", "p1.r2", 3)] == ["", "", ""]


@pytest.mark.parametrize(
    ("fault", "what", "was", "now", "told"),
    [
        ("limit_data", "error", "closed", "reset", True), ("limit_data", "error", "reset", "closed", True),
        ("limit_data", "status", "reset", "closed", False), ("limit_data", "error", "reset", "timed_out", False),
        ("latency", "error", "closed", "reset", False),
    ],
)  # fmt: skip
def test_a_closed_connection_may_be_seen_as_reset(fault: str, what: str, was: str, now: str, told: bool) -> None:
    event = FaultScheduled(**fault_at(fault, "it", "search", 1, 1, "a"), params={"after_s": "soon"})
    records = [Record("", n, "run", "p1.r1", "info", n, each) for n, each in enumerate((AGAIN, event), 1)]
    why = explain_timing_difference(records, "p1.r1", Difference("search 1.1", what, was, now), tool_s=3, model_s=60)
    assert why == (f"{fault} closes a connection of which not all may have been read" if told else "")


def test_a_story_has_the_facts_of_each_event_at_its_place() -> None:
    first, second = fault_at("latency", "slow", "search", 1, 1, "a"), fault_at("refused", "no", "search", 1, 2, "b")
    call = call_at("search", "find", 1, 1, "a")
    own: dict[str, Any] = {"target": "search", "tool": "find", "reply": {}, "fingerprint": ""}
    events = [
        PromptStarted(prompt_index=1, prompt="x", facts=[["1"]], effects=[], stated=True),
        CallStarted(**call, arguments={"q": 1}), LATE, FaultInjected(**first), FaultWitnessed(**first),
        FaultHealed(**first, witnessed=True), FaultArmed(**second), FaultHealed(**second, witnessed=False),
        CallFinished(**call, ok=False, duration_s=0.5, via="proxy", status=503, error="closed", rolled=["slow", "a"]),
        AGAIN, Fallback(at=AGAIN.at, tool="find", address="x"),
        *(FaultUnreached(injection=name, target="search", request=4, made=1) for name in ("late", "later")),
        Budget(limit="calls", spent=2, allowed=1, mode="hard", target="search"),
        Budget(limit="calls", spent=3, allowed=1, mode="soft", target="mail"),
        Effect(request_id="a", effect="paid", content={"k": 1}, **own),
        Effect(request_id="z", effect="paid", content={"k": 2}, **own),
        Effect(request_id="z", effect="sent", content={}, **own), raised("boom")[1], finished("y"),
    ]  # fmt: skip
    records = [Record("", n, "run", "p1.r1", "info", n, event) for n, event in enumerate(events, 1)]
    other = Record("", 1, "run", "p1.r2", "info", 1, replace(LATE, at=replace(AGAIN.at, attempt=9)))
    faults = {"latency of slow": {
        "stages": ["scheduled", "injected", "witnessed", "healed"], "params": {"delay_s": 2.0}
    }}  # fmt: skip
    assert build_story([*records, other], "p1.r1") == {
        "prompt": {"asked": "x", "facts": [["1"]], "effects": []},
        "search 1.1": {
            "faults": faults, "tool": "find", "arguments": {"q": 1}, "ok": False, "status": 503, "error": "closed",
            "via": "proxy", "rolled": ["a", "slow"], "replayed": False, "retry": True, "fallback": True,
        },
        "search 1.2": {"faults": {"refused of no": {"stages": ["armed", "healed, not witnessed"]}}},
        "search 4": {"not reached by": ["late", "later"]},
        "budget": {"calls": [["hard", "search"], ["soft", "mail"]]},
        "effects of search 1": {"happened": [["paid", {"k": 1}]]},
        "effects of search": {"happened": [["paid", {"k": 2}], ["sent", {}]]},
        "prompt, attempt 1": {"status": "error", "error": "agent"},
        "end": {"status": "ok", "error": "none", "answer": "y", "outcome": "harm"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ({"x": {"t": 1}, "y": {"u": [1]}}, None),
        ({"x": {"t": 1}}, Difference("y", "", {"u": [1]}, None)),
        ({"y": {"u": [2]}, "x": {"t": 1}}, Difference("y", "u[0]", 1, 2)),
        ({"x": {"t": 1}, "y": {"u": [1]}, "z": {"w": 1}}, Difference("z", "", None, {"w": 1})),
    ],
)
def test_the_first_difference_of_two_stories_is_told_with_its_place(now: Any, found: Difference | None) -> None:
    assert find_story_difference({"x": {"t": 1}, "y": {"u": [1]}}, now) == found


def test_a_real_disturbance_or_a_budget_of_seconds_is_compared_with_nothing() -> None:
    at = AttemptRef(target="search", request=1, attempt=1, request_id="a")
    cut = CallDisturbed(at=at, tool="find", why="it was cut")
    spent = Budget(limit="seconds", spent=2, allowed=1, mode="hard", target="search")
    calls = Budget(limit="calls", spent=2, allowed=1, mode="hard", target="search")

    def why(*events: Event) -> str:
        return explain_incomparable(
            [Record("", n, "run", "p1.r1", "info", n, event) for n, event in enumerate(events)], "p1.r1"
        )

    assert why(LATE, calls) == ""
    assert why(LATE, cut) == "the lab itself got in the way (it was cut)"
    assert why(calls, spent) == "it ran out of seconds, which no two worlds count alike"
    assert explain_incomparable([Record("", 0, "run", "p1.r2", "info", 0, cut)], "p1.r1") == ""


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"a": 1, "b": [1, {"c": 2}]}, None),
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 3}], "a": 1}, ("b[1].c", 2, 3)),
        ({"a": 1}, {"a": 1, "b": 2}, ("b", None, 2)),
        ({"b": 2, "a": 1}, {"a": 2}, ("b", 2, None)),
        ([1, 2], [1], ("", [1, 2], [1])),
        ([1], "a", ("", [1], "a")),
        ("a", [1], ("", "a", [1])),
        ({"a": 1}, "a", ("", {"a": 1}, "a")),
        ("a", {"a": 1}, ("", "a", {"a": 1})),
        ([[1], [2]], [[1], [3]], ("[1][0]", 2, 3)),
        (1, True, ("", 1, True)),
    ],
)
def test_the_first_place_that_differs_is_told_with_both_values(was: Any, now: Any, found: Any) -> None:
    assert find_first_difference(was, now) == found
