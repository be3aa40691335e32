"""Durations read as a person would write them."""

from __future__ import annotations

import pytest

from chaoslab.analysis.measures.durations import duration, span
from chaoslab.analysis.measures.intervals import Interval
from chaoslab.reports.page import between


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.497, "0.497 s"),
        (12.0, "12.000 s"),
        (0.01, "0.010 s"),
        (0.0099, "9.9 ms"),
        (0.0002, "0.2 ms"),
        (0.00005, "0.1 ms"),
        (0.000049, "49 µs"),
        (0.000001, "1 µs"),
        (0.0000009, "below 1 µs"),
        (0.0, "0 s"),
        (-0.00002, "-20 µs"),
        (-0.005, "-5.0 ms"),
        (-2.0, "-2.000 s"),
    ],
)
def test_a_duration_is_in_seconds_and_a_small_one_in_milliseconds(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(0.372, 1.81, "0.37–1.81 s"), (0.0001, 0.0099, "0.1–9.9 ms"), (0.000012, 0.000031, "12–31 µs")],
)
def test_an_interval_has_the_unit_of_its_larger_end(low: float, high: float, told: str) -> None:
    assert between(Interval(low, high)) == told


def test_a_duration_has_so_many_digits() -> None:
    assert [duration(1.23456, digits) for digits in (0, 1, 2)] == ["1 s", "1.2 s", "1.23 s"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.4, "0 s"),
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
    assert span(seconds) == told
