"""An incident opens with a trial's first witnessed fault on a target and closes with that request's right result."""

from __future__ import annotations

import pytest

from chaoslab.events import CallFinished, Event, FaultWitnessed, PromptFinished
from chaoslab.history import History, Record
from chaoslab.measures.mttr import Ending, Incident, incidents, mttr, recovery, told

Moment = tuple[float, Event]


def history(*moments: Moment, trial: str = "p1.r1") -> History:
    return History(Record("", t, "run", trial, "info", n, event) for n, (t, event) in enumerate(moments))


def witnessed(t: float, fault: str, attempt: int = 1, *, request: int = 1, target: str = "search") -> Moment:
    return t, FaultWitnessed(fault, "wire", target, request, attempt, "id")


def call(
    t: float,
    attempt: int,
    *,
    ok: bool,
    took_s: float = 0.1,
    request: int = 1,
    via: str = "proxy",
    target: str = "search",
) -> Moment:
    return t, CallFinished(target, "search_web", request, attempt, "id", ok, took_s, via=via)


def over(t: float) -> Moment:
    return t, PromptFinished(1, "a prompt", "ok", "an answer", 1, t)


def only(found: History) -> tuple[str, float]:
    (incident,) = incidents(found)
    return incident.ending, incident.duration_s


def test_a_retry_closes_it() -> None:
    story = history(call(2.0, 1, ok=False), witnessed(2.0, "timeout"), call(2.5, 2, ok=True), over(9))
    assert only(story) == (Ending.RETRY, 0.5)


def test_another_failure_on_the_way_keeps_it_open() -> None:
    story = history(
        call(2, 1, ok=False),
        witnessed(2, "timeout"),
        call(3, 2, ok=False),
        witnessed(3, "refused", 2),
        call(5, 3, ok=True),
    )
    assert only(story) == (Ending.RETRY, 3.0)
    assert incidents(story)[0].fault == "timeout"


def test_an_attempt_around_the_proxy_is_a_fallback() -> None:
    story = history(call(2, 1, ok=False), witnessed(2, "timeout"), call(4, 2, ok=True, via="direct"), over(9))
    assert only(story) == (Ending.FALLBACK, 2.0)


def test_a_call_that_was_only_late_lasts_as_long_as_the_call() -> None:
    story = history(call(5.0, 1, ok=True, took_s=0.7), witnessed(5.01, "latency"), over(9))
    assert only(story) == (Ending.LATE, 0.7)


def test_a_latency_beyond_the_deadline_is_a_failure() -> None:
    story = history(call(2, 1, ok=False, took_s=2), witnessed(2, "latency"), call(2.5, 2, ok=True), over(9))
    assert only(story) == (Ending.RETRY, 0.5)


def test_a_wrong_value_is_no_right_result_however_ok_it_looks() -> None:
    story = history(call(1, 1, ok=True), witnessed(1, "wrong_value"), over(4))
    assert only(story) == (Ending.CENSORED, 3.0)


def test_a_wrong_value_on_the_retry_does_not_close_it() -> None:
    story = history(
        call(1, 1, ok=False),
        witnessed(1, "timeout"),
        call(2, 2, ok=True),
        witnessed(2, "wrong_value", 2),
        call(3, 3, ok=True),
        over(9),
    )
    assert only(story) == (Ending.RETRY, 2.0)


def test_another_request_or_target_closes_nothing() -> None:
    story = history(
        call(1, 1, ok=False),
        witnessed(1, "timeout"),
        call(2, 1, ok=True, request=2),
        call(3, 2, ok=True, target="weather"),
        over(4),
    )
    assert only(story) == (Ending.CENSORED, 3.0)


def test_a_trial_has_one_incident_per_target() -> None:
    story = history(
        call(1, 1, ok=False),
        witnessed(1, "timeout"),
        call(2, 2, ok=True),
        call(3, 1, ok=False, request=2),
        witnessed(3, "refused", request=2),
        call(3, 1, ok=False, target="movies"),
        witnessed(3, "tool_error", target="movies"),
        over(4),
    )
    assert [(i.target, i.fault, i.ending) for i in incidents(story)] == [
        ("search", "timeout", Ending.RETRY),
        ("movies", "tool_error", Ending.CENSORED),
    ]


def test_a_witness_logged_after_the_next_attempt_still_counts() -> None:
    story = history(call(1, 1, ok=False), call(1.001, 2, ok=True), witnessed(1.002, "refused"), over(4))
    assert only(story) == (Ending.RETRY, 0.0)


def test_a_killed_run_censors_at_its_last_line() -> None:
    assert only(history(witnessed(1, "timeout"), call(7, 2, ok=False))) == (Ending.CENSORED, 6.0)


def spell(duration_s: float, ending: Ending = Ending.RETRY) -> Incident:
    return Incident("p1.r1", "search", 1, "timeout", "wire", 0.0, duration_s, ending)


def test_eight_incidents_by_hand() -> None:
    censored = [spell(4, Ending.CENSORED), spell(8, Ending.CENSORED)]
    found = recovery([*(spell(t) for t in (1, 2, 3, 5, 6)), spell(7, Ending.FALLBACK), *censored])
    assert (found.n, found.retry, found.fallback, found.censored, found.mean_s) == (8, 5, 1, 2, 4.0)
    # S: 7/8, 6/8, 5/8 after 3 s; 4 of 4 at risk at 5 s: 5/8·3/4 = .469, which is the first at or below one half
    assert found.median is not None
    assert found.median.value == 5
    assert found.restricted_mean is not None
    by_hand = 1 + 7 / 8 + 6 / 8 + 2 * 5 / 8 + 15 / 32 + 10 / 32 + 5 / 32
    assert found.restricted_mean.value == pytest.approx(by_hand)
    assert found.mean_interval is not None
    assert 4.0 in found.mean_interval


def test_seven_incidents_are_too_few_for_an_interval() -> None:
    found = recovery([spell(float(t)) for t in range(1, 8)])
    assert (found.mean_s, found.mean_interval, found.median) == (4.0, None, None)
    assert told(found).endswith("7 faults: too few")
    assert "[" not in told(found)


def test_no_incident_is_no_data_and_not_0() -> None:
    found = mttr(history(call(1, 1, ok=True), over(2)))
    assert found.overall.mean_s is None
    assert told(found.overall) == "no data"
    assert (found.incidents, found.by_fault, found.by_target) == ((), {}, {})


def test_none_recovered_has_no_mean_and_no_median() -> None:
    found = recovery([spell(2, Ending.CENSORED)] * 9)
    assert (found.mean_s, found.median, found.recovered) == (None, None, 0)
    assert "median not reached" in told(found)
