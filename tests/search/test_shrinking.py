"""A failure is shrunk to a cause of which no part can be left out."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from chaoslab.core.inject import inject
from chaoslab.core.plan import Choice, Injection
from chaoslab.search.shrinking import iterate_without_each_part, shrink_by_all_passes
from chaoslab.search.variation import Site, Variation
from tests.search.search_parts import ERROR, at


def shrunk(
    failing: Variation, fails: Callable[[Variation], bool], moments: Sequence[Sequence[str]] = ()
) -> tuple[Variation, int]:
    """The smallest that fails, and the number of different variations that were asked for."""
    search, asked = shrink_by_all_passes(failing, moments), dict[str, bool]()
    try:
        wanted = next(search)
        while True:
            wanted = search.send(asked.setdefault(wanted.key, fails(wanted)))
    except StopIteration as ended:
        found: Variation = ended.value
        return found, len(asked)


def sites(variation: Variation) -> set[int]:
    return {each.calls[0] for each in variation.injections}


@given(st.data())
def test_the_result_fails_and_no_part_of_it_can_go(data: st.DataObject) -> None:
    whole = data.draw(st.integers(1, 9))
    planted = [data.draw(st.sets(st.integers(1, whole), min_size=1)) for _ in range(data.draw(st.integers(1, 2)))]

    def fails(variation: Variation) -> bool:
        return any(each <= sites(variation) for each in planted)

    found, asked = shrunk(at(*(Site("a", n) for n in range(1, whole + 1))), fails)
    assert fails(found)
    assert not any(fails(each) for each in iterate_without_each_part(found))
    assert asked <= whole * whole + 3 * whole


def test_a_planted_pair_of_twenty_is_found_in_few_trials() -> None:
    found, asked = shrunk(at(*(Site("a", n) for n in range(1, 21))), lambda each: {7, 15} <= sites(each))
    assert sites(found) == {7, 15}
    assert asked <= 57


def test_an_order_is_left_out_if_it_is_not_needed_and_is_made_one_swap_if_it_is() -> None:
    failing = Variation((), ((1, ("c", "b", "a")), (2, ("y", "x"))))
    moments = [("a", "b", "c"), ("x", "y")]

    def late(variation: Variation) -> bool:  # b is overtaken by c
        names = dict(variation.order or ()).get(1, ("a", "b", "c"))
        return names.index("c") < names.index("b")

    found, _ = shrunk(failing, late, moments)
    assert found.order == ((1, ("a", "c", "b")),)


def test_a_swap_of_calls_far_apart_stays_if_no_nearer_one_does() -> None:
    failing = Variation((), ((1, ("c", "b", "a")),))
    found, _ = shrunk(failing, lambda each: dict(each.order or ()).get(1, ("a",))[0] == "c", [("a", "b", "c")])
    assert found == failing


def test_an_order_of_another_moment_and_a_choice_between_faults_stay() -> None:
    other = Variation((), ((3, ("b", "a")),))
    assert shrunk(other, lambda each: bool(each.order), [("a", "b")])[0] == other
    either = Injection("either", (Choice("delay", params={"mean_s": 9.0}), Choice("latency")), ("a",))
    (found,) = shrunk(Variation((either,)), lambda each: bool(each.injections))[0].injections
    assert found.choices == either.choices


def test_parameters_go_and_delays_are_halved() -> None:
    slow = inject("delay", "a", calls=[1], mean_s=16.0, spike_s=9.0)
    found, _ = shrunk(Variation((slow,)), lambda each: each.injections[0].choices[0].params.get("mean_s", 0) >= 3)
    assert found.injections[0].choices[0].params == {"mean_s": 4.0}


def test_triggers_go_and_of_several_calls_one_is_kept() -> None:
    often = inject("exception", "a", calls=[1, 2, 3], attempts=[1, 2])
    found, _ = shrunk(Variation((often,)), lambda each: 2 in each.injections[0].calls)
    assert found.injections[0].calls == (2,)
    assert not found.injections[0].triggers


def test_what_is_plainer_is_looked_at_again() -> None:
    """A fault without its trigger may be enough alone."""
    both = Variation((ERROR.make_injection(Site("a", 1)), ERROR.make_injection(Site("b", 1, 2))))

    def fails(variation: Variation) -> bool:
        hit = {(each.targets[0], bool(each.triggers)) for each in variation.injections}
        return ("b", False) in hit or {("a", False), ("b", True)} <= hit

    found, _ = shrunk(both, fails)
    assert found == at(Site("b", 1))
