"""A draw depends on its names alone: the same in every process, on every machine, whatever was drawn before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.intervals import clopper_pearson_interval
from chaoslab.base.dice import Dice, draw_uniform
from tests.sure import sure

names = st.lists(st.one_of(st.integers(), st.text(alphabet="abc.-1", max_size=5)), min_size=1, max_size=4)


@given(names, names)
def test_the_same_names_draw_the_same_whatever_was_drawn_between(own: list[object], others: list[object]) -> None:
    expected = [Dice(*own)("hit").uniform() for _ in range(3)]
    dice = Dice(*own)
    for _ in range(5):
        dice.uniform()
        Dice(*others).uniform()
    assert expected == [dice("hit").uniform()] * 3 == [draw_uniform(*own, "hit")] * 3


def test_a_longer_name_is_the_same_dice_however_it_is_put_together() -> None:
    assert Dice(7)("p1.r1")("latency", 3).uniform() == Dice(7, "p1.r1", "latency", 3).uniform()


def test_names_are_told_apart_where_their_letters_run_together() -> None:
    drawn = {Dice(*name).uniform() for name in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc")]}
    assert len(drawn) == 5


def test_a_stream_goes_on_under_its_name() -> None:
    dice = Dice(1, "bytes")
    drawn = [dice.uniform() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    again = Dice(1, "bytes")
    assert [again.uniform() for _ in range(1000)] == drawn


def test_the_first_draws_of_a_seed_are_for_ever() -> None:
    """Logs of old runs must replay: this changes only with a reason that the changelog tells."""
    assert [round(Dice(seed, "p1.r1", "wire", "search", 1, 1)("hit").uniform(), 6) for seed in (1, 2, 3)] == PINNED


PINNED = [0.839794, 0.033894, 0.205265]


def test_a_chance_of_0_never_hits_and_of_1_always() -> None:
    assert not any(Dice(n).draw_bool(0.0) for n in range(1000))
    assert all(Dice(n).draw_bool(1.0) for n in range(1000))


def test_a_chance_is_the_share_of_draws_below_it() -> None:
    drawn = Dice(1, "border").uniform()
    assert not Dice(1, "border").draw_bool(drawn)
    assert Dice(1, "border").draw_bool(drawn + 1e-15)


def test_first_draws_of_neighbouring_names_are_as_even_as_a_stream() -> None:
    drawn = [Dice(1, n).uniform() for n in range(20_000)]
    for tenth in range(10):
        interval = sure(
            clopper_pearson_interval(sum(int(u * 10) == tenth for u in drawn), len(drawn), confidence=0.9999)
        )
        assert 0.1 in interval


def test_between_stays_between() -> None:
    drawn = [Dice(n).draw_between(-2.0, 3.0) for n in range(2000)]
    assert -2.0 <= min(drawn) < -1.9
    assert 2.9 < max(drawn) < 3.0


def test_picking_follows_the_weights_and_never_takes_what_weighs_nothing() -> None:
    picked = [Dice(n).pick(["never", "a", "b", "no"], [0, 2, 6, 0]) for n in range(4000)]
    assert set(picked) == {"a", "b"}
    assert 0.25 in sure(clopper_pearson_interval(picked.count("a"), len(picked), confidence=0.999))
    assert {Dice(n).pick("abc") for n in range(50)} == set("abc")


def test_a_draw_on_the_border_between_two_options_is_the_second_ones() -> None:
    drawn = Dice(1, "border").uniform()
    assert drawn + (1 - drawn) == 1
    assert Dice(1, "border").pick(["below", "above"], [drawn, 1 - drawn]) == "above"


def test_an_only_option_is_picked_whatever_it_weighs() -> None:
    assert [Dice(1).pick(["only"], [weight]) for weight in (5.0, 1e-300, 0.0)] == ["only"] * 3


def test_options_and_weights_that_do_not_match_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Dice(1).pick(["a", "b", "c"], [0.0, 0.0])


def test_nothing_to_pick_from_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to pick from"):
        Dice(1).pick([])


def test_it_draws_as_its_stream_does() -> None:
    dice, stream = Dice(1, "wire"), Dice(1, "wire").make_generator()
    assert [dice.uniform() for _ in range(5)] == [stream.random() for _ in range(5)]
