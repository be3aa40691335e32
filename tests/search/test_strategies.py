"""Each strategy asks for what is new, in the order of what it promises."""

from dataclasses import replace

import pytest

from chaoslab.core.plan import Injection
from chaoslab.search import strategies
from chaoslab.search.probes import find_applicable_probes
from chaoslab.search.variation import Made, Probe, Site, TriedVariation, Variation, get_injection_site
from tests.search.search_parts import ERROR, RESET, A, B, C, places, searched, tried

LATER = Site("a", 1, 2)
"""A retry."""


def test_singles_hit_each_call_with_each_fault_once() -> None:
    _, asked = searched(tried, ["singles"])
    assert [(places(each)[0], each.injections[0].choices[0].fault) for each in asked] == [
        (f"{name} 1/1", fault) for fault in ("exception", "rate_limit") for name in "abc"
    ]


def test_a_delay_is_tried_on_both_sides_of_the_timeout_that_another_fault_showed() -> None:
    def came(variation: Variation) -> TriedVariation:
        found = tried(variation, sites=(A, B))
        late = [each for each in variation.injections if each.choices[0].fault == "exception"]
        made = (
            (Made(A, "timed_out", given_up_s=4.0), Made(B)) if late and get_injection_site(late[0]) == A else found.made
        )
        return replace(found, made=made)

    _, asked = searched(came, ["singles"], {"a": [Probe("delay"), ERROR], "b": [Probe("delay")]})
    delays = [each.injections[0] for each in asked if each.injections[0].choices[0].fault == "delay"]
    assert sorted((each.targets[0], dict(each.choices[0].params)["mean_s"]) for each in delays) == [
        ("a", 2.0), ("a", 6.0), *(("b", seconds) for seconds in (1.0, 10.0, 60.0, 600.0)),
    ]  # fmt: skip


def test_each_fault_is_tried_for_good_from_the_first_call_of_each_target() -> None:
    def came(variation: Variation) -> TriedVariation:
        return tried(variation, sites=(A, LATER, B))

    known, asked = searched(came, ["lasting", "born", "pairs"], {"a": [ERROR, RESET], "b": [ERROR]})
    assert [(places(each), each.injections[0].triggers) for each in asked] == [
        (["a 1/1"], {"persistence": "for_good"}), (["a 1/1"], {"persistence": "for_good"}),
        (["b 1/1"], {"persistence": "for_good"}),
    ]  # fmt: skip
    assert not [*known.list_single_fault_trials()]


def retrying(variation: Variation) -> TriedVariation:
    """It asks `a` again after an error, and fails after the second."""
    hit = places(variation)
    if {"a 1/1", "a 1/2"} <= {*hit}:
        return tried(variation, "failed", sites=(A, LATER))
    return tried(variation, sites=(A, LATER, B) if "a 1/1" in hit else (A, B))


def test_a_retry_is_tried_beside_the_fault_that_brings_it_up() -> None:
    _, asked = searched(retrying, ["singles", "born"], {"a": [ERROR, RESET], "b": [ERROR]})
    born = [each for each in asked if len(each.injections) == 2]
    assert [(places(each), each.injections[1].choices[0].fault) for each in born] == [
        (["a 1/1", "a 1/2"], "exception"), (["a 1/1", "a 1/2"], "rate_limit"),
    ]  # fmt: skip


def test_a_retry_after_work_that_was_done_is_another_than_one_after_none() -> None:
    def came(variation: Variation) -> TriedVariation:
        faults = {each.choices[0].fault for each in variation.injections}
        again = bool(variation.injections)
        return tried(
            variation, sites=(A, LATER) if again else (A,), effects={LATER: 1 if "rate_limit" in faults else 0}
        )

    _, asked = searched(came, ["singles", "born"], {"a": [ERROR, RESET]})
    before = [each.injections[0].choices[0].fault for each in asked if len(each.injections) == 2]
    assert before == ["exception", "rate_limit", "exception", "rate_limit"]


@pytest.mark.parametrize("outcome", ["harm", "hung", "failed", "invalid"])
def test_nothing_is_tried_behind_what_ended_the_trial(outcome: str) -> None:
    def came(variation: Variation) -> TriedVariation:
        hit = bool(variation.injections)
        return tried(variation, outcome if hit else "correct", sites=(A, LATER) if hit else (A,))

    assert len(searched(came, ["singles", "born"], {"a": [ERROR]})[1]) == 1
    assert len(searched(came, ["singles", "pairs"], {"a": [ERROR], "b": [ERROR]})[1]) == 1


def test_a_pair_needs_its_second_call_to_be_made_under_its_first_fault() -> None:
    def came(variation: Variation) -> TriedVariation:  # without `a` it asks `b` no more, nor `b` without `a`
        hit = {name[0] for name in places(variation)}
        sites = [A, B] if not hit else [A] if "a" in hit else [B, A] if hit == {"b"} else [A, B]
        return tried(variation, sites=[*sites, C] if "c" not in hit else sites[:1])

    _, asked = searched(came, ["singles", "pairs"], {name: [ERROR] for name in "ab"})
    assert [places(each) for each in asked if len(each.injections) == 2] == [["a 1/1", "b 1/1"]]


def test_of_faults_that_lead_the_same_way_one_is_paired_and_those_that_changed_most_come_first() -> None:
    def came(variation: Variation) -> TriedVariation:
        hit = {name[0] for name in places(variation)}
        return tried(variation, world="changed" if hit in ({"b"}, {"c"}) else "")

    _, asked = searched(came, ["singles", "pairs"])
    pairs = [places(each) for each in asked if len(each.injections) == 2]
    assert pairs == [["b 1/1", "c 1/1"], ["a 1/1", "b 1/1"], ["a 1/1", "c 1/1"]]


def test_all_that_was_survived_alone_is_tried_together_before_any_pair() -> None:
    def came(variation: Variation) -> TriedVariation:
        return tried(variation, "failed" if places(variation) == ["b 1/1"] else "correct", sites=(A, B, C))

    _, asked = searched(came, ["singles", "pairs"], {name: [ERROR] for name in "abc"})
    assert [places(each) for each in asked if len(each.injections) > 2] == []  # two are left
    _, asked = searched(tried, ["singles", "pairs"])
    together = [places(each) for each in asked if len(each.injections) > 1]
    assert together[0] == ["a 1/1", "b 1/1", "c 1/1"]
    assert len(together) == 1 + 3


def parallel(variation: Variation) -> TriedVariation:
    return tried(variation, moments=() if variation.order is None else [("a", "b", "c"), ("x", "y")])


def test_orders_are_one_swap_at_a_time_before_those_by_dice() -> None:
    _, asked = searched(parallel, ["orders"])
    first, *others = asked
    assert first.order == ()
    assert [each.order for each in others[:4]] == [
        ((1, ("b", "a", "c")),), ((1, ("c", "b", "a")),), ((1, ("a", "c", "b")),), ((2, ("y", "x")),),
    ]  # fmt: skip
    assert all(len(each.order or ()) == 2 for each in others[4:])
    assert len({each.key for each in asked}) == len(asked) <= 1 + 4 + 3 * 2 * 2


def test_without_parallel_calls_there_are_no_orders() -> None:
    assert len(searched(tried, ["orders"])[1]) == 1


def test_random_plans_never_repeat_and_end_where_nothing_new_is_found() -> None:
    _, asked = searched(tried, ["random_plans"], {name: [ERROR] for name in "abc"})
    assert sorted(tuple(places(each)) for each in asked if len(each.injections) == 3) == [("a 1/1", "b 1/1", "c 1/1")]
    assert len({each.key for each in asked}) == len(asked) <= 3 + 3 + 1
    assert searched(tried, ["random_plans"], {"a": [ERROR, RESET]})[1] == []


def test_the_same_seed_asks_for_the_same_and_another_for_other_plans() -> None:
    asked = [[each.key for each in searched(parallel, strategies.ORDER, seed=seed)[1]] for seed in (1, 1, 2)]
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


def test_what_applies_is_what_can_be_checked_and_the_rest_has_its_reason() -> None:
    def checked(injection: Injection) -> None:
        if injection.targets == ("b",) or injection.choices[0].fault == "disconnect":
            raise ValueError("b has no stream")

    apply, others = find_applicable_probes(["a", "b"], checked, ["timeout", "exception", "disconnect"])
    assert [each.label for each in apply["a"]] == ["timeout upstream", "timeout downstream", "exception"]
    assert not apply["b"]
    assert others["b"]["exception"] == "b has no stream"
    assert "budget" not in {each.fault for each in find_applicable_probes(["a"], lambda _: None)[0]["a"]}
