"""Durations read as a person would write them."""

import pytest

from chaoslab.base.durations import format_difference, format_duration, format_long_duration, format_range


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.497, "0.497 s"),
        (12.0, "12.000 s"),
        (0.01, "0.010 s"),
        (0.0099, "9.9 ms"),
        (0.0002, "0.2 ms"),
        (0.0001, "0.1 ms"),
        (0.00004, "40 µs"),
        (0.000001, "1 µs"),
        (4e-10, "below 1 µs"),
        (0.0, "0 s"),
        (-0.005, "-5.0 ms"),
        (-2.0, "-2.000 s"),
    ],
)
def test_a_small_duration_is_in_a_smaller_unit(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told


def test_a_duration_has_so_many_digits() -> None:
    assert [format_duration(1.23456, digits) for digits in (0, 1, 2)] == ["1 s", "1.2 s", "1.23 s"]


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
@pytest.mark.parametrize("power", range(-12, 6))
def test_only_no_duration_is_told_as_none(power: int, digits: int) -> None:
    for seconds in (1.0 * 10**power, 4.9 * 10**power, 9.99 * 10**power):
        for told in (
            format_duration(seconds, digits),
            format_difference(max(seconds, 1e-6), digits),
            format_long_duration(seconds),
        ):
            assert any(digit in told for digit in "123456789"), (seconds, told)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.37, 1.812, "0.37–1.81 s"),
        (0.002, 0.005, "2.0–5.0 ms"),
        (0.000005, 0.002, "5 µs–2.0 ms"),
        (0.004, 1.5, "4.0 ms–1.50 s"),
        (0.0, 1.5, "0–1.50 s"),
        (4e-9, 0.00001, "below 1 µs–10 µs"),
    ],
)
def test_an_interval_says_the_unit_of_both_its_ends(low: float, high: float, told: str) -> None:
    assert format_range(low, high) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.624, "+0.62 s"), (-2.0, "-2.00 s"), (0.003, "+3.0 ms"), (-0.00002, "-20 µs"), (0.0, "+0.00 s")],
)
def test_a_difference_has_a_sign(seconds: float, told: str) -> None:
    assert format_difference(seconds) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 s"),
        (0.4, "0.4 s"),
        (0.00002, "20 µs"),
        (12.0, "12 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (60.0, "1 min 0 s"),
        (200.0, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (3600.0, "1 h 0 min"),
        (7500.0, "2 h 5 min"),
        (90_000.0, "25 h 0 min"),
    ],
)
def test_a_span_is_in_the_two_units_that_say_most(seconds: float, told: str) -> None:
    assert format_long_duration(seconds) == told
