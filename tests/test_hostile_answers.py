"""The judge reads a text of one word, over and over, in a time that grows with its length and not with its square."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from chaoslab.analysis.stance import admissions, clauses

from chaoslab.analysis import elsewhere, labels, reported
from chaoslab.analysis.answers import compare as answers
from chaoslab.analysis.answers.values import READ_MAX

TWIN = (
    "Refunded order 17 with 30 EUR at 16:45. The test passed with 80 points. It is 1.08 dollars per euro; total: 500."
)
WISH = {"effect": "refund", "order": 17}
SHORT, LONG = READ_MAX // 8, READ_MAX // 2
GROWTH_MAX = 9.0
"""Four times the text takes four times as long where the time is linear, and sixteen times where it is quadratic."""


def compared(text: str) -> None:
    answers.compare(TWIN, text, asked="Refund order 17", tries=False)
    answers.compare(f"{text}.", text)


def stance(text: str) -> None:
    clauses(text)


def claimed(text: str) -> None:
    elsewhere.mistakes(f"17 {text}", TWIN, admissions(text), [WISH], [WISH, {"effect": "refund", "order": 18}])
    elsewhere.claimed_beside_a_reading(f"17 {text}", TWIN, admissions(text), [WISH], ["total"])


def results(text: str) -> None:
    reported.without_known(admissions(text), f"{text} failed")
    reported.contradicted(f"{text} it passed", f"{text} it failed")


def grows_slowly(part: Callable[[str], None], short: str, long: str) -> bool:
    """True if the processor's times for the part on both texts, each at its quickest of three, are within the bound.
    Neighbours of a busy machine only ever add to a time, so there are four rounds."""
    spares = itertools.count()  # what was read before is kept, so no text is given twice

    def seconds(text: str) -> float:
        own = f"{text}{' ' * next(spares)}"
        begun = time.process_time()
        part(own)
        return time.process_time() - begun

    def within() -> bool:
        quick, slow = (min(seconds(text) for _ in range(3)) for text in (short, long))
        return slow < GROWTH_MAX * max(quick, 0.002)

    return any(within() for _ in range(4))


@pytest.mark.parametrize(
    ("part", "unit"),
    [
        *((stance, unit) for unit in ("cannot ", "n't ", "not ", "neither a ", "had to ", "a glitch now ", "| ", '"')),
        *((compared, unit) for unit in ("1", "0", "\n", "x", "_", "! ", "x\n", "five past six ", "1\n", "( ", "- ")),
        *((claimed, unit) for unit in ("not ", "--", "17 ")),
        *((results, unit) for unit in ("failed\n", "test failed, ", "failed. ")),
    ],
    ids=lambda each: each.__name__ if callable(each) else repr(each),
)
def test_four_times_the_text_takes_no_more_than_nine_times_as_long(part: Callable[[str], None], unit: str) -> None:
    short, long = ((unit * length)[:length] for length in (SHORT, LONG))
    assert grows_slowly(part, short, long)


def test_a_label_is_looked_for_close_to_its_value_alone() -> None:
    """A pattern that may begin at each of these signs takes a time that grows with the cube of their number."""

    def labelled(text: str) -> None:
        labels.differing(labels.read("Total: 17"), labels.read(f"{text}sum 17"), "")

    short, long = ("( " * (labels.READ_MAX // part) for part in (16, 4))
    assert grows_slowly(labelled, short, long)
