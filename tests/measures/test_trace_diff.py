"""Stories of a trial, and differences of them that are only a matter of time."""

from typing import Any

import pytest

from chaoslab.analysis.measures.trace_diff import Difference, first_unlike, incomparable, matter_of_time, tell
from chaoslab.core.events import AttemptRef, Budget, CallDisturbed, Event, FaultScheduled, Retry
from chaoslab.record.lines import Record
from tests.event_parts import fault_at

LATE = FaultScheduled(**fault_at("latency", "slow", "search", 1, 1, "a"), params={"delay_s": 2.0})
AGAIN = Retry(at=AttemptRef(target="search", request=1, attempt=1, request_id="a"), tool="find", wait_s=1.0, reason="")
RECORDS = [Record("", n, "run", "p1.r1", "info", n, event) for n, event in enumerate((LATE, AGAIN), 1)]


def test_a_delay_about_as_long_as_the_deadline_is_one_where_it_was_scheduled() -> None:
    def why(place: str, trial: str, tool_s: float) -> str:
        found = Difference(place, "error", "timeout", "")
        return matter_of_time(RECORDS, trial, found, tool_s=tool_s, model_s=60)

    assert why("search 1.1", "p1.r1", 3) == "a delay within a factor of 2 of the deadline"
    assert [why("search 1.1", "p1.r1", 9), why("search 1.2", "p1.r1", 3), why("search 1.1", "p1.r2", 3)] == ["", "", ""]


def test_a_story_has_the_facts_of_an_attempt_at_its_place() -> None:
    stages = {"latency of slow": {"stages": ["scheduled"], "params": {"delay_s": 2.0}}}
    assert tell(RECORDS, "p1.r1") == {"search 1.1": {"faults": stages, "retry": True}}


def test_a_real_disturbance_or_a_budget_of_seconds_is_compared_with_nothing() -> None:
    at = AttemptRef(target="search", request=1, attempt=1, request_id="a")
    cut = CallDisturbed(at=at, tool="find", why="it was cut")
    spent = Budget(limit="seconds", spent=2, allowed=1, mode="hard", target="search")
    calls = Budget(limit="calls", spent=2, allowed=1, mode="hard", target="search")

    def why(*events: Event) -> str:
        return incomparable(
            [Record("", n, "run", "p1.r1", "info", n, event) for n, event in enumerate(events)], "p1.r1"
        )

    assert why(LATE, calls) == ""
    assert why(LATE, cut) == "the lab itself got in the way (it was cut)"
    assert why(calls, spent) == "it ran out of seconds, which no two worlds count alike"
    assert incomparable([Record("", 0, "run", "p1.r2", "info", 0, cut)], "p1.r1") == ""


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"a": 1, "b": [1, {"c": 2}]}, None),
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 3}], "a": 1}, ("b[1].c", 2, 3)),
        ({"a": 1}, {"a": 1, "b": 2}, ("b", None, 2)),
        ({"b": 2, "a": 1}, {"a": 2}, ("b", 2, None)),
        ([1, 2], [1], ("", [1, 2], [1])),
        ([[1], [2]], [[1], [3]], ("[1][0]", 2, 3)),
        (1, True, ("", 1, True)),
    ],
)
def test_the_first_place_that_differs_is_told_with_both_values(was: Any, now: Any, found: Any) -> None:
    assert first_unlike(was, now) == found
