"""Stories of a trial, and differences of them that are only a matter of time."""

from __future__ import annotations

from chaoslab.analysis.measures.trace_diff import Difference, matter_of_time, tell
from chaoslab.core.events import AttemptRef, FaultScheduled, Retry
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
