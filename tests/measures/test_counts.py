"""Successes, faults, latency, throughput and usage are counted as stated, and no data is None."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures import faults
from chaoslab.analysis.measures._calls import WIDTHS_S
from chaoslab.analysis.measures._grounds import Success, summarize_success
from chaoslab.analysis.measures.errors import NOBODY
from chaoslab.analysis.measures.incidents import Ending, find_incidents
from chaoslab.analysis.measures.latency import AttemptDurations, find_unusually_slow_attempts, summarize_latency
from chaoslab.analysis.measures.quantiles import Quantiles, compute_percentile
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import StandingCount, get_outcome_standing
from chaoslab.analysis.verdict.table import Outcome, Verdict, WorldState
from chaoslab.core.events import (
    CallDisturbed,
    CallFinished,
    Event,
    Fallback,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    LabDisturbed,
    PromptStarted,
    Retry,
    RunStarted,
    Usage,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.trial_stream import TrialStream
from chaoslab.reports.contents._rows import build_trial_rows
from tests.event_parts import call_at, fault_at, prompt_finished, run_started
from tests.event_parts import story as history
from tests.measure_parts import attempts, by_injection, calls, errors, taken, throughput, uninjected, unmet, usage
from tests.reports.fake_run import FakeRun
from tests.sure import sure


def call(attempt: int = 1, *, ok: bool = True, duration_s: float = 0.5, **more: Any) -> CallFinished:
    return CallFinished(**call_at("search", "search_web", 1, attempt, "id"), ok=ok, duration_s=duration_s, **more)


def plan(chance: float, calls: tuple[int, ...] = ()) -> RunStarted:
    wire = {"name": "wire", "chance": chance, "calls": list(calls)}
    return run_started(plan={"injections": [wire]}, now="", model="")


PLACE = ("latency", "wire", "search", 1, 1, "id")


def succeeded(*outcomes: str, world: WorldState = WorldState.NOT_STATED, lost: int = 0) -> Success:
    verdicts = [Verdict(Outcome(outcome), "", world=world) for outcome in outcomes]
    return summarize_success(verdicts, [*map(get_outcome_standing, outcomes)], [None] * len(outcomes), lost=lost)


def test_rates_are_of_all_and_what_ended_well_is_of_the_judged() -> None:
    found = succeeded("correct", "degraded", "wrong", "unknown", "invalid", "unfinished", lost=2)
    assert (found.total, found.by_outcome["correct"].value, "failed" in found.by_outcome) == (6, 1 / 6, False)
    assert (found.ended, found.ended.well_share, found.done) == (StandingCount(2, 1, 5), 2 / 3, None)


def test_what_was_done_is_counted_where_something_was_stated() -> None:
    assert succeeded("correct", "wrong", world=WorldState.AS_ASKED).done == StandingCount(2, 0, 0)
    assert succeeded("undone", "degraded", world=WorldState.UNDONE, lost=1).done == StandingCount(0, 2, 1)
    assert succeeded("unknown", world=WorldState.MAY).done == StandingCount(0, 0, 1)


def test_where_nothing_was_judged_there_is_no_share() -> None:
    assert (
        succeeded().ended.well_share is succeeded("unknown", "undone", "invalid", "unfinished").ended.well_share is None
    )


def test_a_fault_is_counted_through_its_life() -> None:
    story = history(
        call(1, rolled=["wire", "errors"]),
        call(2, rolled=["wire"]),
        FaultScheduled(**fault_at(*PLACE)),
        FaultInjected(**fault_at(*PLACE)),
        FaultWitnessed(**fault_at(*PLACE)),
        scheduled("timeout", 2),
    )
    late, lost = taken(faults.FaultStages(), story).counts_by_fault
    assert late == faults.FaultCount("wire", "latency", "search", 2, 1, 0, 1, 1)
    assert lost == faults.FaultCount("wire", "timeout", "search", 2, 1, 0, 0, 0)
    errors, wire = by_injection(story)
    assert (errors.injection, errors.eligible, errors.scheduled) == ("errors", 1, 0)
    assert (wire.eligible, wire.scheduled, wire.injected, wire.witnessed) == (2, 2, 1, 1)


@pytest.mark.parametrize(
    ("chance", "calls", "hits", "plausible"),
    [(0.1, (), 10, True), (0.1, (), 40, False), (0.1, (), 0, True), (0.5, (), 10, False), (1.0, (1,), 1, None)],
)
def test_hits_are_held_against_the_plan(
    chance: float, calls: tuple[int, ...], hits: int, plausible: bool | None
) -> None:
    rolled = [call(n, rolled=["wire"]) for n in range(60)]
    (count,) = by_injection(history(plan(chance, calls), *rolled, *[FaultScheduled(**fault_at(*PLACE))] * hits))
    assert (count.eligible, count.plausible) == (60, plausible)


def test_an_injection_that_met_no_call_has_its_line() -> None:
    (count,) = by_injection(history(plan(0.1)))
    assert (count.eligible, count.plausible) == (0, None)


def test_a_failure_without_a_witness_is_nobodys() -> None:
    story = history(
        call(1, ok=False, error="timed_out"),
        FaultWitnessed(**fault_at(*PLACE)),
        call(2, ok=False, error="rate limited", status=429),
        call(3, ok=False, error="rate limited", status=429),
        call(4, ok=False, status=500),
        call(5),
    )
    assert uninjected(story) == [
        faults.UnexplainedFailure("search", "rate limited", 2, late=2, met=("latency on search",)),
        faults.UnexplainedFailure("search", "status 500", 1, late=1, met=("latency on search",)),
    ]


def test_a_slow_call_that_failed_otherwise_failed_by_itself() -> None:
    """Latency makes a call time out, and makes no 404."""

    def shop(_request: Any) -> tuple[int, dict[str, str]]:
        return 404, {"error": "no such order"}

    def agent(_: str) -> str:
        return str(httpx.get("http://shop/orders/17", timeout=5).status_code)

    slow = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("latency", "shop", delay_s=1.0)])
    assert [(one.target, one.count) for one in uninjected(slow.history)] == [("shop", 1)]
    (causes,) = errors(slow.history).values()
    assert causes == {NOBODY: 1}
    late = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("latency", "shop", delay_s=9.0)])
    assert uninjected(late.history) == []
    (causes,) = errors(late.history).values()
    assert causes == {"latency": 1}


def test_what_the_lab_did_to_its_own_experiment_is_neither_a_failure_nor_a_latency() -> None:
    cut = LabDisturbed(what="restarted", since="2026-06-01T12:03:01Z", lasted_s=0.4, lanes=[], epoch=1)
    story = history(call(1, ok=False, error="closed"), DISTURBED, cut, call(2))
    assert uninjected(story) == []
    assert [len(of.calm) for of in attempts(story).by_target.values()] == [1]
    found = sure(taken(faults.Disturbances(), story).build_disturbance())
    assert (found.span_count, found.total_seconds, found.attempt_count) == (1, 0.4, 1)
    ((record, _),) = story.find_events(LabDisturbed)
    assert found.spans[0].begin_s == record.t - 0.4
    assert found.spans_text == "restarted since 12:03:01"
    assert taken(faults.Disturbances(), history(call(1))).build_disturbance() is None


def test_calls_without_a_fault_that_took_far_longer_than_the_first_ones_are_told() -> None:
    usual = [call(number, duration_s=0.01) for number in range(1, 25)]
    slow = [call(25, duration_s=1.5), call(26, duration_s=0.2), call(27, duration_s=2.0, ok=False, error="timed_out")]
    met = FaultWitnessed(**fault_at("latency", "wire", "search", 1, 28, "id"))
    taken = AttemptDurations()
    taken.add_history(history(*usual, *slow, call(28, duration_s=3.0), met))
    said = "1 call to search took up to 1.500 s without a fault, where its first 20 took 0.010 s in the median"
    assert [each.summary_text for each in find_unusually_slow_attempts(taken)] == [said]


def scheduled(fault: str, attempt: int = 1) -> FaultScheduled:
    return FaultScheduled(**fault_at(fault, "wire", "search", 1, attempt, "id"))


DISTURBED = CallDisturbed(**call_at("search", "search_web", 1, 1, "id"), why="cut")
WITNESSED = FaultWitnessed(**fault_at("timeout", "other", "search", 1, 1, "id"))
ARMED = FaultArmed(**fault_at(*PLACE))
HEALED = FaultHealed(**fault_at(*PLACE), witnessed=False, masked_by="", idle="nothing to cut: the answer has 0 bytes")


@pytest.mark.parametrize(
    ("fault", "more", "why"),
    [
        ("wrong_value", [call()], "there was nothing in it to change"),
        ("truncate_context", [call(ok=False), WITNESSED], "there was nothing in it to change"),
        (
            "stale", [call()],
            "there was nothing in it to change: it needs an earlier, different answer of the same tool in its trial",
        ),
        ("disconnect", [call()], "there was nothing in it to change: it needs a streamed reply with more events"),
        ("disconnect", [call(ok=False)], "its call failed without it"),
        ("wrong_value", [call(ok=False), WITNESSED], "its call met another fault instead"),
        ("wrong_value", [call(ok=False, status=404)], "its call failed without it"),
        ("lost_reply", [call(ok=False)], "its call failed without it"),
        ("latency", [call(ok=False, error="cancelled")], "its call was cancelled first"),
        ("latency", [], "its prompt ended first"),
        ("latency", [call(2)], "its prompt ended first"),
        ("latency", [call(), DISTURBED], "the lab itself got in the way"),
        ("latency", [call(), ARMED], "it was armed and not met, so its prompt is invalid"),
        ("latency", [call(), ARMED, HEALED], "there was nothing in it to change"),
        ("latency", [call(), ARMED, replace(HEALED, idle="")], "it was armed and not met, so its prompt is invalid"),
        ("latency", [call()], "no reason is known"),
    ],
)  # fmt: skip
def test_a_fault_that_was_scheduled_and_not_met_has_a_reason(fault: str, more: list[Event], why: str) -> None:
    assert unmet(history(scheduled(fault), *more)) == [faults.Unmet(fault, why, 1)]


def test_what_was_met_needs_no_reason_and_the_others_are_counted_most_frequent_first() -> None:
    met = FaultWitnessed(**fault_at("wrong_value", "wire", "search", 1, 1, "id"))
    tries = [event for n in (2, 3, 4) for event in (scheduled("wrong_value", n), call(n, ok=n == 4))]
    found = unmet(history(scheduled("wrong_value"), met, *tries))
    assert found == [
        faults.Unmet("wrong_value", "its call failed without it", 2),
        faults.Unmet("wrong_value", "there was nothing in it to change", 1),
    ]


def test_percentiles_lie_between_the_nearest_ranks() -> None:
    assert [compute_percentile([1, 2, 3, 4], share) for share in (0, 0.5, 0.9, 1)] == [1, 2.5, pytest.approx(3.7), 4]
    assert summarize_latency(Quantiles()) is None
    found = sure(summarize_latency(Quantiles([0.3, 0.1, 0.2])))
    assert (found.n, found.p50_s, found.longest_s) == (3, 0.2, 0.3)


def test_an_attempt_knows_its_faults_and_one_that_never_left_is_none() -> None:
    refused = call(3, via="none", ok=False)
    found = attempts(history(call(1), call(2), refused, FaultWitnessed(**fault_at(*PLACE))))
    (durations,) = found.by_target.values()
    assert (len(durations.met), len(durations.calm), found.unreached) == (1, 1, 1)


def test_a_streamed_reply_has_the_times_of_its_first_and_its_last_part_and_another_has_none() -> None:
    found = attempts(history(call(first_byte_s=0.5, last_byte_s=2.5), call(2, last_byte_s=9.0)))
    assert (found.first_byte, found.last_byte) == (Quantiles([0.5]), Quantiles([2.5]))


def test_a_fault_has_the_durations_of_its_attempts_even_where_the_target_was_not_asked() -> None:
    met = [FaultWitnessed(**fault_at("timeout", "mine", "search", 1, n, "id")) for n in (2,)]
    calls = [call(1, duration_s=0.5), call(2, via="none", ok=False, duration_s=5.0)]
    calls.append(call(4, via="none", ok=False, duration_s=1.0))
    every = AttemptDurations()
    every.add_history(history(*calls, *met))
    found = every.sort_targets().by_target
    assert {
        name: [(len(each), each.value_at(0.5)) for each in of.unfaulted_and_faulted] for name, of in found.items()
    } == {"search": [(1, 0.5), (1, 5.0)]}


def test_the_durations_are_the_same_however_the_run_is_read(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, prompts=60).write()
    whole = attempts(History.read(run))
    for least in (1, 30, 500):
        parts = AttemptDurations()
        for part in TrialStream(run, least=least):
            parts.add_history(part)
        assert parts.sort_targets() == whole


def test_a_retry_is_counted_as_recovery_takes_it_whoever_made_it() -> None:
    """The model's SDK, or a new plan, leaves no `Retry` in the log: only the tools of the lab's agent do."""
    again = Retry(**call_at("search", "search_web", 1, 1, "id"), wait_s=1.0, reason="no answer")
    around = Fallback(**call_at("search", "search_web", 1, 3, "id"), address="http://127.0.0.1:5000")
    ends: dict[Ending, tuple[list[Event], tuple[int, int]]] = {
        Ending.RETRY: ([call(2)], (1, 0)),
        Ending.FALLBACK: ([again, call(2, ok=False), around, call(3, via="direct")], (1, 1)),
    }
    for ending, (events, counted) in ends.items():
        found = history(call(ok=False), FaultWitnessed(**fault_at(*PLACE)), *events)
        (incident,) = find_incidents(found)
        assert incident.ending is ending
        assert (calls(found).retries, calls(found).fallbacks) == counted
        begun = PromptStarted(prompt_index=1, prompt="?")
        with_trial = history(begun, *(record.event for record in found))
        (row,) = build_trial_rows(RunReport.from_history(with_trial), with_trial.trials)
        assert row.retries == counted[0]


def test_ends_are_counted_in_stretches_of_a_round_width() -> None:
    finished = prompt_finished()
    found = sure(throughput(history(call(), call(), finished, call())))
    assert (found.width_s, found.lasted_s, len(found.calls)) == (0.1, 3.0, 31)
    assert (sum(found.calls), sum(found.prompts), found.prompts[20], found.calls[30]) == (3, 1, 1, 1)
    assert throughput(history()) is None


def ended_at(*moments: float, began_t: float = 0.0) -> History:
    """A run that began at a moment, with a prompt's end at each of the others."""
    begun = PromptStarted(prompt_index=1, prompt="", facts=[], effects=[], stated=True)
    ended = prompt_finished()
    told: list[tuple[float, Event]] = [(began_t, begun), *((t, ended) for t in moments)]
    return History(Record("", t, "run", "p1.r1", "info", n, event) for n, (t, event) in enumerate(told))


@pytest.mark.parametrize("width_s", WIDTHS_S)
def test_a_width_is_taken_up_to_forty_stretches_of_it(width_s: float) -> None:
    below, above = sure(throughput(ended_at(40 * width_s))), sure(throughput(ended_at(40.1 * width_s)))
    assert (below.width_s, len(below.prompts)) == (width_s, 41)  # the last one begins as the run ends
    assert above.width_s > width_s


def test_the_widths_are_what_a_person_reads_at_once() -> None:
    minute, hour, day = 60, 3600, 86400
    assert (
        0.1, 0.2, 0.5, 1, 2, 5, 10, 30, minute, 5 * minute, 10 * minute, hour, 6 * hour, day, 7 * day, 30 * day,
    ) == WIDTHS_S  # fmt: skip


def test_stretches_begin_with_the_first_prompt_and_what_ended_before_it_counts_in_the_first() -> None:
    found = sure(throughput(ended_at(5.0, 5.05, 5.4, began_t=5.0)))
    assert found.lasted_s == pytest.approx(0.4)
    assert found.prompts == (2, 0, 0, 0, 1)
    early = sure(throughput(ended_at(4.0, began_t=5.0)))
    assert (early.lasted_s, early.prompts, early.calls) == (-1.0, (1,), (0,))


def test_a_run_of_any_length_has_forty_stretches_at_most() -> None:
    """Virtual time may go on for years."""
    ended = Record("", 1e9, "run", "p1.r1", "info", 1, prompt_finished())
    found = sure(throughput(History([ended])))
    assert (found.width_s % 3600, len(found.prompts), sum(found.prompts)) == (0, 39, 1)


def test_usage_is_summed_and_an_unknown_price_is_not_free() -> None:
    priced, free = (
        Usage(model="m", request=1, prompt_tokens=10, completion_tokens=2, cost_usd=0.5),
        Usage(model="m", request=2, prompt_tokens=5, completion_tokens=1),
    )
    both, unpriced = sure(usage(history(priced, free))), sure(usage(history(free)))
    assert (both.prompt_tokens, both.completion_tokens, both.cost_usd, both.unpriced) == (15, 3, 0.5, 1)
    assert unpriced.cost_usd is None
    assert usage(history()) is None


def test_a_report_begins_with_its_first_trial_and_has_hits_of_trials_that_it_knows_alone() -> None:
    """A cut log may hold witnesses of trials whose beginning it lacks."""
    story = [(FaultWitnessed(**fault_at(*PLACE)), "p0.r1"), (PromptStarted(prompt_index=1, prompt="?"), "p1.r1")]
    story += [(FaultWitnessed(**fault_at(*PLACE)), "p1.r1"), (PromptStarted(prompt_index=2, prompt="?"), "p2.r1")]
    found = RunReport.from_history(
        History(Record("", n + 1.0, "run", at, "info", n, event) for n, (event, at) in enumerate(story))
    )
    assert (found.began_t, found.met) == (2.0, {"p1.r1": 1})


def test_damage_is_added_up_and_the_longest_wait_is_told() -> None:
    found = faults.UninjectedDamage()
    found.add_failed_call("p1.r1", call(ok=False, error="timed_out", duration_s=3.0))
    found.add_failed_call("p1.r1", call(ok=False, error="reset", duration_s=9.0))
    found.add_failed_call("p2.r1", call(ok=False, error="timed_out", duration_s=5.0))
    found.add_failed_call("p2.r1", call(ok=False, error="timed_out", duration_s=4.0))
    assert found == faults.UninjectedDamage(Counter({"p1.r1": 2, "p2.r1": 2}), Counter({"search": 3}), 5.0)
