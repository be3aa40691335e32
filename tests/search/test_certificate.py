"""The certificate of an exploration: it says that it tried what was tried, order by order."""

from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.inject import inject
from chaoslab.scenarios.exploring import explain_unproven_search
from chaoslab.search._seen_kinds import classify_what_caller_saw
from chaoslab.search.strategies.singles import adapt_delays_to_timeouts
from chaoslab.search.variation import Made, Probe, SearchKnowledge, Variation
from tests.search.search_parts import PROBES, A, B, tried


def primary() -> str:
    return "49"


def mirror() -> str:
    return "49"


def archive() -> str:
    return "49"


def pay() -> str:
    return "paid"


def twice_after_two_timeouts(prompt: str) -> str:  # noqa: ARG001
    """Two other errors are handled well, and each timeout alone."""
    late = 0
    for function in (primary, mirror, archive):
        try:
            function()
        except TimeoutError:
            late += 1
        except Exception:  # noqa: BLE001 - any other error of the tool
            pass
    try:
        pay()
    except Exception:  # noqa: BLE001 - any error of the tool
        return "I could not pay."
    if late == 2:
        pay()
    return "It is paid."


READS = [primary, mirror, archive]
GIVEN: dict[str, Any] = {"tools": [pay], "reads": READS}


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_by_kind_is_tried_on_any_seed(seed: int) -> None:
    found = lab.explore(twice_after_two_timeouts, "Pay.", **GIVEN, seed=seed, by=["singles", "pairs"])
    pairs = {
        frozenset(target for target, _ in each.variation.targeted_requests_and_moments)
        for each in found.trials
        if each.failed
    }
    names = [function.__name__ for function in READS]
    assert {frozenset(pair) for pair in combinations(names, 2)} <= pairs
    *_, by_kind = found.map.coverage_by_fault_count
    assert (by_kind.tried, by_kind.name) == (by_kind.of, "pairs by kind")
    assert by_kind.tried > 100
    assert f"lasting 0 of 188, pairs by kind {by_kind.of} of {by_kind.of}; " in str(found)
    assert "every applicable cell was tried" not in str(found)


def test_a_budget_that_ended_is_in_the_first_line_and_no_call_that_nobody_tried_counts() -> None:
    found = lab.explore(twice_after_two_timeouts, "Pay.", **GIVEN, trials=1)
    first, _, third, fourth, *_ = str(found).splitlines()
    assert first.startswith("the budget of 1 trials was spent: no failure was found in 1 trial, ")
    assert third.startswith("map: 0 of ")
    assert third.endswith("Single points of failure, by faults that hit once: 0 of 4 calls, 4 undecided.")
    assert fourth.endswith("lasting 0 of 188, pairs by kind not begun; higher orders not tried")


def test_the_default_budget_covers_all_pairs_by_kind_of_ten_calls() -> None:
    def ten(prompt: str) -> str:  # noqa: ARG001
        for number in range(9):
            with suppress(Exception):
                by_number(number)
        try:
            pay()
        except Exception:  # noqa: BLE001 - any error of the tool
            return "I could not pay."
        return "Paid."

    found = lab.explore(ten, "Pay.", tools=[pay], reads=[by_number])
    orders = {each.name: each for each in found.map.coverage_by_fault_count}
    assert all(each.tried == each.of for each in orders.values())
    assert (orders["pairs by kind"].of or 0) > 2000


def by_number(number: int) -> int:
    return number


def test_the_seconds_of_a_budget_hold_also_while_failures_are_shrunk() -> None:
    found = lab.explore(twice_after_two_timeouts, "Pay.", **GIVEN, seconds=0.05)
    assert found.ended == "the budget of 0.05 s was spent"
    assert str(found).startswith("the budget of 0.05 s was spent: ")
    assert len(found.trials) < 200  # without a budget there are 966


@pytest.mark.parametrize(
    ("fault", "error", "kind"),
    [
        ("lost_reply", "timed_out", "timed out"), ("refused", "refused", "refused"),
        ("dns_failure", "dns", "refused"), ("reset_peer", "reset", "cut"), ("cut", "closed", "cut"),
        ("server_error", "Bad Gateway", "error status"), ("exception", "internal error", "error status"),
        ("malformed_json", "status 200, and no JSON", "wrong value"), ("wrong_value", "", "wrong value"),
        ("redelivery", "", "duplicate"), ("latency", "", "late"), ("latency", "timed_out", "timed out"),
    ],
)  # fmt: skip
def test_the_kind_of_a_fault_is_what_its_caller_sees(fault: str, error: str, kind: str) -> None:
    injection = inject(fault, "a", calls=[1])
    came = replace(tried(Variation((injection,))), made=(Made(A, error), Made(B, "refused")))
    assert classify_what_caller_saw(came, injection) == kind


def test_trials_whose_faults_nobody_met_prove_nothing() -> None:
    one = tried(Variation((inject("refused", "a", calls=[1]),)))
    assert explain_unproven_search([one, replace(one, met=())]) == ""
    assert explain_unproven_search([replace(one, met=())]) == "no trial met a fault"
    assert explain_unproven_search([tried(Variation(), sites=())]) == "no call was made that a fault could hit"
    assert explain_unproven_search([tried(Variation(), sites=(A,))]) == "no fault was tried"


def test_a_delay_is_tried_around_each_timeout_that_was_met() -> None:
    known = SearchKnowledge(
        replace(tried(Variation()), made=(Made(A, "timed_out", 0, 2.0), Made(A, "timed_out", 0, 8.0))), PROBES, seed=1
    )
    doses = [dict(each.params)["delay_s"] for each in adapt_delays_to_timeouts(known, Probe("latency"), "a")]
    assert doses == [1.0, 3.0, 4.0, 12.0]
    known.freeze_timeouts("b")
    known.add_trial(
        replace(tried(Variation((inject("refused", "b", calls=[1]),))), made=(Made(B, "timed_out", 0, 5.0),))
    )
    doses = [dict(each.params)["delay_s"] for each in adapt_delays_to_timeouts(known, Probe("latency"), "b")]
    assert doses == [1.0, 10.0, 60.0, 600.0]  # what is tried later has the doses of what was tried before
    known.longest_s = 10.0  # of a command, whose trials take real time: up to this, and no longer
    doses = [dict(each.params)["delay_s"] for each in adapt_delays_to_timeouts(known, Probe("latency"), "b")]
    assert doses == [1.0, 10.0]


def test_a_call_that_nobody_gives_up_gets_delays_up_to_ten_minutes() -> None:
    found = lab.explore(lambda _: primary(), "How much?", reads=[primary], by=["singles"], tries=["latency", "timeout"])
    lengths = {
        each.choices[0].params["delay_s"] for one in found.trials for each in one.variation.injections
        if each.choices[0].fault == "latency"
    }  # fmt: skip
    assert lengths == {1.0, 10.0, 60.0, 600.0}  # the run's own 30 s are nobody's timeout
