"""The judge reads a text of one word, over and over, in a time that grows with its length and not with its square."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable

import pytest

from chaoslab.analysis.answers.admit import read
from chaoslab.analysis.answers.compare import Likeness, compare
from chaoslab.analysis.answers.facts import shows
from chaoslab.analysis.answers.values import READ_MAX

TWIN = (
    "Refunded order 17 with 30 EUR at 16:45. The test passed with 80 points. It is 1.08 dollars per euro; total: 500."
)
SHORT, LONG = READ_MAX // 8, READ_MAX // 2
GROWTH_MAX = 9.0
"""Four times the text takes four times as long where the time is linear, and sixteen times where it is quadratic."""


def compared(text: str) -> None:
    compare(TWIN, text, asked="Refund order 17")
    compare(f"{text}.", text)


def admitted(text: str) -> None:
    read(text, ("refund_order",), TWIN)


def stated(text: str) -> None:
    shows(["no such fact", "16:45", "20 °C"], text)


def grows_slowly(part: Callable[[str], None], short: str, long: str) -> bool:
    """True if the processor's times for the part on both texts are within the bound. Neighbours of a busy machine only
    ever add to a time, so the long text has twelve tries, and the short one three at first and then one for each."""
    spares = itertools.count()  # what was read before is kept, so no text is given twice

    def seconds(text: str) -> float:
        own = f"{text}{' ' * next(spares)}"
        begun = time.process_time()
        part(own)
        return time.process_time() - begun

    quick, slow = min(seconds(short) for _ in range(3)), math.inf
    for _ in range(12):
        slow = min(slow, seconds(long))
        if slow < GROWTH_MAX * max(quick, 0.002):
            return True
        quick = min(quick, seconds(short))
    return False


@pytest.mark.parametrize(
    ("part", "unit"),
    [
        *((admitted, unit) for unit in ("cannot ", "n't ", "not ", "no ", "was ", "| ", '"', "'a ", "\n", "a\n", ": ")),
        *((compared, unit) for unit in ("1", "0", "\n", "x", "_", "! ", "x\n", "five past six ", "1\n", "( ", "- ")),
        *((compared, unit) for unit in ("-", "<", "(1", "1/", "- x\n", "the ", "ok. ", "10 km ", "↑", "🙂", "[", '{"')),
        *((stated, unit) for unit in ("1", "111,", "2026-1-", "1e1", "1.", "five past six ", "10 km ")),
    ],
    ids=lambda each: each.__name__ if callable(each) else repr(each),
)
def test_four_times_the_text_takes_no_more_than_nine_times_as_long(part: Callable[[str], None], unit: str) -> None:
    short, long = ((unit * length)[:length] for length in (SHORT, LONG))
    assert grows_slowly(part, short, long)


@pytest.mark.parametrize(
    "text",
    ["1" * 100_000, "111," * 25_000 + "a", "“" * 50_000, "'a" * 50_000, '"' * 50_001, "could not " * 10_000,
     "2026-1-" * 12_000, "1e1" * 25_000, "1." * 50_000, "1e" + "9" * 50_000, "[" * 50_000, '{"a":' * 10_000],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_an_answer_of_any_length_is_read(text: str) -> None:
    assert not shows(["no such fact"], text)
    assert not read(text).claims
    assert compare(text, text[:-1]).likeness is Likeness.UNCLEAR
    assert compare(text, text).likeness is Likeness.SAME
