"""Variations and what came of them are data: equal ones have equal keys, and both survive JSON."""

import json

from chaoslab.core.inject import inject
from chaoslab.search.variation import Made, Probe, Site, Tried, Variation
from tests.search.search_parts import ERROR, RESET, A, B, at


def test_the_key_is_that_of_the_faults_whatever_their_order() -> None:
    assert at(A, B).key == at(B, A).key
    assert len({at(A).key, at(B).key, at(A, B).key, at(A, probe=RESET).key, at(A, order=()).key, Variation().key}) == 6


def test_injections_of_one_name_get_names_of_their_own() -> None:
    twice = Variation((ERROR.at(A), ERROR.at(Site("a", 2)), ERROR.at(Site("a", 3))))
    assert [each.name for each in twice.injections] == [
        "exception on a", "exception on a (2)", "exception on a (3)",
    ]  # fmt: skip


def test_a_part_of_a_variation_is_among_its_parts() -> None:
    order = ((1, ("b", "a")),)
    assert at(A).parts < at(A, B).parts < at(A, B, order=order).parts
    assert at(A, B, order=order).size == 3
    assert at(A, B, order=order).places == {("a", 1), ("b", 1), ("", 1)}


def test_a_part_is_found_in_a_variation_of_several_faults_of_one_name() -> None:
    first, second = Site("a", 1), Site("a", 2)
    assert at(second).parts < at(first, second).parts
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
    whole = Tried(7, at(A), "born", "harm", True, "twice", "harm – twice", ("x",), made, (("a", "b"),), "w",
                  ("pay twice",), False, 12, 3.5)  # fmt: skip
    again = Tried.from_json(json.loads(json.dumps(whole.to_json())))
    assert again == whole
    assert [each.tool for each in again.sites] == ["", "pay"]


def test_a_site_and_a_probe_are_told_in_words() -> None:
    assert [str(Site("a", 2)), str(Site("a", 2, 3))] == ["a 2", "a 2, attempt 3"]
    assert Probe("delay", (("mean_s", 1.5),)).label == "delay 1.5 s"
    assert Probe("timeout", (("stream", "upstream"),)).label == "timeout upstream"
