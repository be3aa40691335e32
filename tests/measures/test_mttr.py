"""An incident opens with a trial's first witnessed fault on a target and closes with that request's right result."""

from typing import Any

import pytest

from chaoslab.analysis.measures.mttr import Ending, Incident, Mttr, find_incidents, summarize_recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    Event,
    FaultWitnessed,
    PromptStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from tests.event_parts import call_at, fault_at, prompt_finished
from tests.sure import sure

Moment = tuple[float, Event]
BEGUN = (0.5, CallStarted(**call_at("search", "search_web", 1, 1, "id")))


def mttr(history: History) -> Mttr:
    return RunReport.from_history(history).recovery.value


def history(*moments: Moment, trial: str | None = "p1.r1") -> History:
    return History(Record("", t, "run", trial, "info", n, event) for n, (t, event) in enumerate(moments))


def witnessed(t: float, fault: str, attempt: int = 1, *, request: int = 1, target: str = "search") -> Moment:
    return t, FaultWitnessed(**fault_at(fault, "wire", target, request, attempt, "id"))


def call(
    t: float, attempt: int, *, ok: bool, took_s: float = 0.1, request: int = 1, target: str = "search", **more: Any
) -> Moment:
    at = call_at(target, "search_web", request, attempt, "id")
    return t, CallFinished(**at, ok=ok, duration_s=took_s, **more)


def over(t: float) -> Moment:
    return t, prompt_finished(duration_s=t)


def effect(t: float, request_id: str = "", *, tool: str = "charge", cents: int = 12, target: str = "search") -> Moment:
    return t, Effect(
        target=target, tool=tool, request_id=request_id, effect=tool, content={"cents": cents}, reply={}, fingerprint=""
    )


def test_a_trial_whose_beginning_the_log_has_lost_is_left_out() -> None:
    """Its manager tells of the fault, and nobody of how it went on."""
    mine = history(witnessed(1, "latency"), call(2, 2, ok=True), over(3))
    begun = Record("", 0.0, "run", "p1.r1", "info", 0, PromptStarted(prompt_index=1, prompt="a prompt"))
    other = history(witnessed(4, "latency"), call(5, 2, ok=True), trial="p2.r1")
    assert [one.trial for one in mttr(History([begun, *mine.records, *other.records])).incidents] == ["p1.r1"]
    assert [one.trial for one in mttr(History([*mine.records, *other.records])).incidents] == ["p1.r1", "p2.r1"]


def only(found: History) -> tuple[str, float, float | None]:
    """The incident's end, and its length from its beginning and from its notice."""
    (incident,) = find_incidents(found)
    return incident.ending, incident.duration_s, incident.since_notice_s


def test_a_retry_closes_it_and_the_time_counts_from_the_beginning_of_the_attempt_that_met_the_fault() -> None:
    story = history(call(2, 1, ok=False, took_s=2), witnessed(2, "timeout"), call(2.1, 2, ok=True), over(9))
    assert only(story) == (Ending.RETRY, 2.1, 0.1)
    (incident,) = find_incidents(story)
    assert (incident.opened_t, incident.noticed_after_s) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("again_s", "noticed_s"),
    [
        (0.5, 0.5),  # the second of two hedged calls is the reaction
        (0.0, 0.6),  # of calls made together none is; the right answer of one is the latest notice
        (4.0, 3.0),  # the end of the call
    ],
)
def test_the_notice_comes_before_the_end_of_a_hedged_call_and_never_after_its_right_result(
    again_s: float, noticed_s: float
) -> None:
    begun = [(t, CallStarted(**call_at("search", "search_web", 1, n, "id"))) for n, t in ((1, 0.0), (2, again_s))]
    ended = [call(3.0, 1, ok=False, took_s=3), witnessed(3.0, "latency"), call(again_s + 0.6, 2, ok=True)]
    (incident,) = find_incidents(history(*sorted([*begun, *ended, over(9)], key=lambda moment: moment[0])))
    assert (incident.ending, incident.noticed_after_s) == (Ending.RETRY, noticed_s)
    assert incident.noticed_after_s + sure(incident.since_notice_s) == pytest.approx(incident.duration_s)


def asked(t: float, request: int, **arguments: object) -> Moment:
    return t, CallStarted(**call_at("search", "search_web", request, 1, f"id {request}"), arguments=arguments)


FAILED, TIMED_OUT = call(1, 1, ok=False), witnessed(1, "timeout")
LOST = [effect(0.1, "one id"), call(2, 1, ok=False, took_s=2), witnessed(2, "lost_reply")]
AGAIN = call(2.2, 2, ok=True)
ENDED: dict[str, tuple[list[Moment], Ending, float, float | None]] = {
    "it begins when the attempt left, where the log tells it": (
        [BEGUN, call(2, 1, ok=False, took_s=0.5), witnessed(2, "timeout"), call(3, 2, ok=True)],
        Ending.RETRY, 2.5, 1.0,
    ),
    "a witness of an attempt without an end is the beginning if nothing else tells it": (
        [witnessed(2, "timeout"), call(3, 2, ok=True)], Ending.RETRY, 1.0, 1.0
    ),
    "another failure on the way keeps it open": (
        [call(2, 1, ok=False), witnessed(2, "timeout"), call(3, 2, ok=False), witnessed(3, "refused", 2),
         call(5, 3, ok=True)],
        Ending.RETRY, 3.1, 3.0,
    ),
    "an attempt around the proxy is a fallback": (
        [call(2, 1, ok=False), witnessed(2, "timeout"), call(4, 2, ok=True, via="direct"), over(9)],
        Ending.FALLBACK, 2.1, 2.0,
    ),
    "a call that was only late lasts as long as the call and gave nothing to notice": (
        [call(5.0, 1, ok=True, took_s=0.7), witnessed(5.01, "latency"), over(9)], Ending.LATE, 0.7, None
    ),
    "a latency beyond the deadline is a failure": (
        [call(2, 1, ok=False, took_s=2), witnessed(2, "latency"), call(2.5, 2, ok=True), over(9)],
        Ending.RETRY, 2.5, 0.5,
    ),
    "an effect had again after an unreadable reply is a recovery with harm": (
        [asked(0, 1), effect(0.5), call(1, 1, ok=True), witnessed(1, "malformed_json"),
         asked(2, 2), effect(2.1), call(2.5, 1, ok=True, request=2), over(4)],
        Ending.HARM, 2.5, 1.5,
    ),
    "the same request id does no harm": ([*LOST, effect(2.1, "one id"), AGAIN], Ending.RETRY, 2.2, 0.2),
    "another tool does no harm": ([*LOST, effect(2.1, tool="refund"), AGAIN], Ending.RETRY, 2.2, 0.2),
    "another content does no harm": ([*LOST, effect(2.1, cents=13), AGAIN], Ending.RETRY, 2.2, 0.2),
    "another target does no harm": ([*LOST, effect(2.1, target="movies"), AGAIN], Ending.RETRY, 2.2, 0.2),
    "after it was right no effect does harm": ([*LOST, effect(2.5), AGAIN], Ending.RETRY, 2.2, 0.2),
    "an effect that happened before the fault is another wish": (
        [effect(0.1), call(0.2, 1, ok=True), call(1, 1, ok=False, request=2), witnessed(1, "refused", request=2),
         effect(1.5), call(1.6, 2, ok=True, request=2)],
        Ending.RETRY, 0.7, 0.6,
    ),
    "a fault after one that nobody could notice opens it": (
        [call(1, 1, ok=True), witnessed(1, "wrong_value"), call(2, 1, ok=False, request=2),
         witnessed(2, "timeout", request=2), call(3, 2, ok=True, request=2)],
        Ending.RETRY, 1.1, 1.0,
    ),
    "a fault of a plug-in that is not here is one that can be noticed": (
        [FAILED, witnessed(1, "solar_flare"), call(2, 2, ok=True)], Ending.RETRY, 1.1, 1.0
    ),
    "a wrong value on the retry does not close it": (
        [FAILED, TIMED_OUT, call(2, 2, ok=True), witnessed(2, "wrong_value", 2), call(3, 3, ok=True), over(9)],
        Ending.RETRY, 2.1, 2.0,
    ),
    "another request or target closes nothing": (
        [FAILED, TIMED_OUT, call(2, 1, ok=True, request=2), call(3, 2, ok=True, target="weather"), over(4)],
        Ending.NEVER, 3.1, 3.0,
    ),
    "a witness logged after the next attempt still counts": (
        [FAILED, call(1.001, 2, ok=True), witnessed(1.002, "refused"), over(4)], Ending.RETRY, 0.101, 0.001
    ),
    "a killed run censors at its last line": ([TIMED_OUT, call(7, 2, ok=False)], Ending.CENSORED, 6.0, 6.0),
}  # fmt: skip
"""The lines of a trial, and the incident's end, its length and that since its notice."""


@pytest.mark.parametrize(("moments", "ending", "took_s", "since_notice_s"), ENDED.values(), ids=ENDED)
def test_an_incident_ends(moments: list[Moment], ending: Ending, took_s: float, since_notice_s: float | None) -> None:
    assert only(history(*moments)) == (ending, took_s, since_notice_s)


@pytest.mark.parametrize("fault", ["malformed_json", "html_instead_of_json", "empty_response", "partial_success"])
def test_a_reply_that_is_no_right_one_is_none_whatever_its_status(fault: str) -> None:
    met = [asked(0, 1, q="tea"), call(1, 1, ok=True), witnessed(1, fault)]
    assert only(history(*met, over(4))) == (Ending.NEVER, 4.0, 3.0)
    other = [asked(2, 2, q="milk"), call(2.5, 1, ok=True, request=2)]
    assert only(history(*met, *other, over(4))) == (Ending.NEVER, 4.0, 3.0)
    again = [asked(2, 2, q="tea"), call(2.5, 1, ok=True, request=2), witnessed(2.5, fault, request=2)]
    once_more = [asked(3, 3, q="tea"), call(3.5, 1, ok=True, request=3)]
    first, second = find_incidents(history(*met, *again, *once_more, over(4)))
    assert (first.ending, first.duration_s) == (Ending.RETRY, 3.5)
    assert (second.ending, second.duration_s) == (Ending.RETRY, 1.5)


def test_a_lost_reply_whose_effect_is_had_again_is_a_recovery_with_harm() -> None:
    story = history(
        effect(0.1), call(2, 1, ok=False, took_s=2), witnessed(2, "lost_reply"), effect(2.1), call(2.2, 2, ok=True),
        over(9)
    )  # fmt: skip
    assert only(story) == (Ending.HARM, 2.2, 0.2)
    assert not find_incidents(story)[0].recovered


@pytest.mark.parametrize("fault", ["wrong_value", "truncate_context", "budget"])
def test_a_fault_from_which_nothing_can_recover_opens_no_incident(fault: str) -> None:
    story = history(call(1, 1, ok=True), witnessed(1, fault), call(2, 1, ok=False, request=2), over(4))
    assert find_incidents(story) == []


def test_an_answer_that_was_late_and_wrong_is_nothing_that_anybody_could_repair() -> None:
    late = [call(1, 1, ok=True), witnessed(1, "latency"), witnessed(1, "wrong_value")]
    assert find_incidents(history(*late, over(4))) == []
    failed = [call(1, 1, ok=False), witnessed(1, "truncate_context"), witnessed(1, "timeout"), call(2, 2, ok=True)]
    assert only(history(*failed, over(4)))[0] == Ending.RETRY


def test_a_trial_has_an_incident_for_each_request_that_met_a_fault() -> None:
    first = [call(1, 1, ok=False), witnessed(1, "timeout"), call(2, 2, ok=True)]
    second = [call(3, 1, ok=False, request=2), witnessed(3, "refused", request=2)]
    other = [call(3, 1, ok=False, target="movies"), witnessed(3, "tool_error", target="movies")]
    story = history(*first, *second, *other, over(4))
    assert [(i.target, i.fault, i.ending) for i in find_incidents(story)] == [
        ("search", "timeout", Ending.RETRY),
        ("movies", "tool_error", Ending.NEVER),
        ("search", "refused", Ending.NEVER),
    ]


def spell(duration_s: float, ending: Ending = Ending.RETRY, *, noticed_after_s: float = 0.0) -> Incident:
    return Incident("p1.r1", "search", 1, "timeout", "wire", 0.0, duration_s, ending, noticed_after_s)


def test_eight_incidents_by_hand() -> None:
    censored = [spell(t, Ending.CENSORED)._replace(cut=True) for t in (4, 8)]
    found = summarize_recovery([*(spell(t) for t in (1, 2, 3, 5, 6)), spell(7, Ending.FALLBACK), *censored])
    assert (found.n, found.retry, found.fallback, found.censored, found.mean_s) == (8, 5, 1, 2, 4.0)
    assert found.has_enough_data
    # S: 7/8, 6/8, 5/8 after 3 s; 4 of 4 at risk at 5 s: 5/8·3/4 = .469, which is the first at or below one half
    assert sure(found.median).value == 5
    assert found.restricted_mean is not None
    by_hand = 1 + 7 / 8 + 6 / 8 + 2 * 5 / 8 + 15 / 32 + 10 / 32 + 5 / 32
    assert found.restricted_mean.value == pytest.approx(by_hand)
    assert found.mean_interval is None  # of six
    others = [spell(float(n % 7))._replace(trial=f"p{n}.r1") for n in range(14)]
    assert 3.0 in sure(summarize_recovery(others).mean_interval)
    assert summarize_recovery([each._replace(trial="p1.r1") for each in others]).mean_interval is None  # of one trial


def test_what_never_recovers_stays_at_risk_so_the_median_may_not_be_reached() -> None:
    """The curve's own figures: 1 minus the share that recovered by each moment, where nothing is censored."""
    recovered = [spell(float(t)) for t in (1, 2, 3)]
    found = summarize_recovery([*recovered, *[spell(1.5, Ending.NEVER)] * 5])
    assert (found.n, found.never, found.median, found.horizon_s) == (8, 5, None, 3)
    # S: 7/8 after 1 s, 6/8 after 2 s, 5/8 after 3 s; as censored, the five would have left 0 of 2 at 3 s
    assert sure(found.restricted_mean).value == pytest.approx(1 + 7 / 8 + 6 / 8)
    cut = summarize_recovery([*recovered, *[spell(1.5, Ending.CENSORED)._replace(cut=True)] * 5])
    assert sure(cut.median).value == 2


def test_a_recovery_with_harm_is_counted_apart_and_is_none_for_the_curve() -> None:
    found = summarize_recovery([*[spell(float(t)) for t in (1, 2, 3, 4)], *[spell(1.5, Ending.HARM)] * 4])
    assert (found.n, found.retry, found.harmed, found.never, found.recovered_count) == (8, 4, 4, 0, 4)
    assert found.mean_s == 2.5
    # S: 7/8, 6/8, 5/8 and 4/8 after 4 s, where it rests: the four with harm are never over
    assert sure(found.median).value == 4


def test_the_mean_from_the_notice_is_over_those_that_noticed() -> None:
    found = summarize_recovery([spell(2.1, noticed_after_s=2), spell(2.5, noticed_after_s=2), spell(0.7, Ending.LATE)])
    assert found.mean_s == pytest.approx(5.3 / 3)
    assert found.since_notice_s == pytest.approx(0.3)
    assert summarize_recovery([spell(0.7, Ending.LATE)]).since_notice_s is None
    unrecovered = [spell(9, Ending.NEVER, noticed_after_s=2), spell(9, Ending.HARM, noticed_after_s=2)]
    assert summarize_recovery([spell(2.5, noticed_after_s=2), *unrecovered]).since_notice_s == 0.5
    assert summarize_recovery(unrecovered).since_notice_s is None


def test_seven_incidents_are_too_few_for_an_interval() -> None:
    found = summarize_recovery([spell(float(t)) for t in range(1, 8)])
    assert (found.mean_s, found.mean_interval, found.median) == (4.0, None, None)
    assert not found.has_enough_data


def test_incidents_are_grouped_by_fault_and_by_target_and_fault() -> None:
    story = history(
        call(1, 1, ok=False, took_s=1), witnessed(1, "timeout"), call(2, 2, ok=True),
        call(5, 1, ok=False, took_s=1, target="movies"), witnessed(5, "timeout", target="movies"),
        call(8, 2, ok=True, target="movies"),
        call(9, 1, ok=False, took_s=1, target="mail"), witnessed(9, "refused", target="mail"),
        call(10.5, 2, ok=True, target="mail"),
    )  # fmt: skip
    found = mttr(story)
    assert {fault: (group.n, group.mean_s) for fault, group in found.by_fault.items()} == {
        "refused": (1, 2.5), "timeout": (2, 3.0),
    }  # fmt: skip
    assert {place: (group.n, group.mean_s) for place, group in found.by_target.items()} == {
        ("mail", "refused"): (1, 2.5), ("movies", "timeout"): (1, 4.0), ("search", "timeout"): (1, 2.0),
    }  # fmt: skip


def test_no_incident_is_no_data_and_not_0() -> None:
    found = mttr(history(call(1, 1, ok=True), over(2)))
    assert found.overall.mean_s is None
    assert (found.incidents, found.by_fault, found.by_target) == ((), {}, {})


def test_none_recovered_has_no_mean_and_no_median() -> None:
    found = summarize_recovery([spell(2, Ending.NEVER)] * 9)
    assert (found.mean_s, found.median, found.recovered_count) == (None, None, 0)
