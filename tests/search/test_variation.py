"""Variations and what came of them are data: equal ones have equal keys, and both survive JSON."""

import json

from chaoslab.core.events import AttemptRef, CallFinished, CallsOrdered, CallStarted, FaultWitnessed, Usage
from chaoslab.core.inject import inject
from chaoslab.execution.exploring import TrialView
from chaoslab.search.variation import Made, Probe, Site, TriedVariation, Variation
from tests.event_parts import story as history
from tests.search.search_parts import ERROR, RESET, A, B, at
from tests.verdict.trials import message


def test_the_key_is_that_of_the_faults_whatever_their_order() -> None:
    assert at(A, B).key == at(B, A).key
    assert len({at(A).key, at(B).key, at(A, B).key, at(A, probe=RESET).key, at(A, order=()).key, Variation().key}) == 6


def test_injections_of_one_name_get_names_of_their_own() -> None:
    twice = Variation((ERROR.make_injection(A), ERROR.make_injection(Site("a", 2)), ERROR.make_injection(Site("a", 3))))
    assert [each.name for each in twice.injections] == [
        "exception on a", "exception on a (2)", "exception on a (3)",
    ]  # fmt: skip


def test_a_part_of_a_variation_is_among_its_parts() -> None:
    order = ((1, ("b", "a")),)
    assert at(A).part_texts < at(A, B).part_texts < at(A, B, order=order).part_texts
    assert at(A, B, order=order).part_count == 3
    assert at(A, B, order=order).targeted_requests_and_moments == {("a", 1), ("b", 1), ("", 1)}


def test_a_part_is_found_in_a_variation_of_several_faults_of_one_name() -> None:
    first, second = Site("a", 1), Site("a", 2)
    assert at(second).part_texts < at(first, second).part_texts
    assert at(first, second).key == at(second, first).key


def test_it_survives_json() -> None:
    whole = Variation(
        (
            inject("exception", "a", calls=[1], attempts=[2]),
            inject("delay", "b", calls=[1], mean_s=2.0),
            inject("exception", "a", calls=[2], chance=0.5),
        ),
        ((1, ("b", "a")), (2, ("a 2", "a 1"))),
    )
    for each in (whole, Variation(), Variation(order=())):
        again = Variation.from_json(json.loads(json.dumps(each.to_json())))
        assert again == each
        assert again.key == each.key


def test_what_came_of_it_survives_json() -> None:
    made = (Made(A), Made(Site("b", 1, 2, "pay"), "timed_out", 3, 2.5))
    whole = TriedVariation(7, at(A), "born", "harm", True, "twice", "harm – twice", ("x",), made, (("a", "b"),), "w",
                  ("pay twice",), 12, 3.5)  # fmt: skip
    again = TriedVariation.from_json(json.loads(json.dumps(whole.to_json())))
    assert again == whole
    assert [each.tool for each in again.attempt_sites] == ["", "pay"]


def test_a_site_and_a_probe_are_told_in_words() -> None:
    assert [str(Site("a", 2)), str(Site("a", 2, 3))] == ["a 2", "a 2, attempt 3"]
    assert Probe("delay", (("mean_s", 1.5),)).label == "delay 1.5 s"
    assert Probe("timeout", (("stream", "upstream"),)).label == "timeout upstream"


def test_what_a_trial_made_is_read_from_its_events() -> None:
    first, again, other, last = (
        AttemptRef(target="pay", request=request, attempt=attempt, request_id="x")
        for request, attempt in ((1, 1), (1, 2), (2, 1), (3, 1))
    )
    witnessed = [FaultWitnessed(fault="latency", injection=name, at=first) for name in ("late", "more", "late")]
    told = history(
        CallStarted(at=first, tool="pay"),
        CallFinished(at=first, tool="pay", ok=False, duration_s=2.5, error="timed_out", via="lane"),
        CallFinished(at=first, tool="pay", ok=True, duration_s=9.0, via="lane"),
        *witnessed,
        CallsOrdered(calls=["a", "b"]),
        message("ana", "hi"),
        CallStarted(at=again, tool="pay"),
        CallFinished(at=again, tool="pay", ok=False, duration_s=1.0, via="lane"),
        message("bob", "hi"),
        CallStarted(at=other, tool="pay"),
        CallStarted(at=last, tool="pay"),
        CallFinished(at=last, tool="pay", ok=True, duration_s=1.0, error="none of it", via="lane"),
        Usage(model="m", request=1, prompt_tokens=3, completion_tokens=4),
        Usage(model="m", request=2, prompt_tokens=10, completion_tokens=20),
    )
    sites = [Site("pay", 1), Site("pay", 1, 2), Site("pay", 2), Site("pay", 3)]
    made = [("timed_out", 0, 2.5, "a.py:1"), ("failed", 1, None, "a.py:2"), ("", 2, None, ""), ("", 2, None, "")]
    assert TrialView.build(told, ["a.py:1", "a.py:2"]) == TrialView(
        met=("late", "more"),
        made=tuple(
            Made(site, error, effects, after_s, line)
            for site, (error, effects, after_s, line) in zip(sites, made, strict=True)
        ),
        moments=(("a", "b"),),
        effects=["message_sent"] * 2,
        tokens=37,
        drew=False,
    )
