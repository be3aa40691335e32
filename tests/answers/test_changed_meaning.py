"""An answer whose meaning was changed is never correct for certain, whatever the twin's answer is."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.verdict.table import Outcome
from tests.verdict.trials import compared, finished, judged

TWINS = [
    "Room 12 in Oslo is booked from 9 to 11, for 45.50 EUR.",
    "Ana owes Bob 30 EUR and Bob owes Carla 45 EUR.",
    "**Dose**: 500 mg twice a day, before meals.",
    "The flight LH123 leaves at 16:45 on 7 March 2026 and is on time (12.5 %).",
    "| city | °C |\n|---|---|\n| Oslo | 12 |\n| Rome | 20 |",
    "- Oslo: 12 km/h\n- Rome: 20 km/h\n- Cairo: 33 km/h",
    "It is -5 °C and the heating is on.",
    "All 18 of 20 tests were passed; coverage is above 90 %.",
    "Your balance is $1,200.00, which is up 3.1 %.",
    "The note was saved.",
    "Version 2.4.1 was released after version 2.3.9.",
    "The parcel weighs 5 kg, takes 3 days, and is insured for two thousand euros.",
]
UNITS = {
    "EUR": "USD",
    "mg": "g",
    "km/h": "mph",
    "kg": "lb",
    "%": "",
    "°C": "°F",
    "days": "weeks",
    "$": "€",
    "euros": "yen",
}
OPPOSITES = {
    "before": "after", "on time": "late", "above": "below", "up": "down", "passed": "failed", "saved": "deleted",
    "twice": "once", "from 9 to": "from 9 and", "after": "before", "All": "None", "booked": "cancelled",
}  # fmt: skip
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NAME = re.compile(r"\b(?:Ana|Bob|Carla|Oslo|Rome|Cairo)\b")


def shortened(text: str) -> Iterator[str]:
    """Its beginnings."""
    for match in re.finditer(r"\w+", text):
        yield text[: match.start()]


def otherwise_numbered(text: str) -> Iterator[str]:
    """With another number in the place of one, or none."""
    for match in NUMBER.finditer(text):
        head, tail = text[: match.start()].removesuffix("-"), text[match.end() :]
        yield from (f"{head}{new}{tail}" for new in (f"{match[0]}7", "77", ""))


def negated(text: str) -> Iterator[str]:
    """With a negation."""
    for match in re.finditer(r"\b(?:is|was|were|are)\b", text):
        yield from (f"{text[: match.end()]}{no}{text[match.end() :]}" for no in (" not", "n't", " no longer", " never"))


def swapped(text: str) -> Iterator[str]:
    """With two numbers, or two names, in each other's place."""
    for kind in (NUMBER, NAME):
        found = list(kind.finditer(text))
        for one, other in itertools.pairwise(found):
            if one[0] != other[0]:
                between = text[one.end() : other.start()]
                yield f"{text[: one.start()]}{other[0]}{between}{one[0]}{text[other.end() :]}"


def replaced(table: dict[str, str]) -> Callable[[str], Iterator[str]]:
    """With another word in the place of one."""

    def each(text: str) -> Iterator[str]:
        for word, other in table.items():
            yield from (
                f"{text[: match.start()]}{other}{text[match.end() :]}"
                for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)
            )

    return each


def added(text: str) -> Iterator[str]:
    """With something more."""
    yield from (f"{text} {more}" for more in ("Not.", "30 EUR more.", "Or so I think.", "This is not true.", "❌", "?"))
    yield from (f"{more} {text}" for more in ("It is false that", "No:", "Almost:", "Tomorrow", "Not yet:"))


def irrelevant(_text: str) -> Iterator[str]:
    """Another text."""
    yield from ("banana", "Done.", "OK", "42", "...", "🙂", "None", "The", "I am a language model.", "{}", "[]")


CHANGES: list[Callable[[str], Iterator[str]]] = [
    shortened, otherwise_numbered, negated, swapped, replaced(UNITS), replaced(OPPOSITES), added, irrelevant,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: str(each.__qualname__).partition(".")[0])
def test_a_changed_answer_is_never_correct_for_certain(change: Callable[[str], Iterator[str]]) -> None:
    pairs = [(twin, given) for twin in TWINS for given in change(twin) if given.strip() and given != twin]
    assert len(pairs) > 8
    false = []
    for twin, answer in pairs:
        verdict = judged(compared(twin), finished(answer))
        if verdict.outcome is Outcome.CORRECT:
            false.append((twin, answer, verdict.why))
    assert false == []


SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "b", "on", "off", "12 mg", "12 g", "↑", "↓"])
)
KEYS = st.sampled_from(["rows", "ok", "entries", "status", "duration", "note"])
OBJECTS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), min_size=1)


@given(OBJECTS, OBJECTS)
def test_an_object_with_another_value_is_never_correct_for_certain(one: dict[str, Any], other: dict[str, Any]) -> None:
    verdict = judged(compared(json.dumps(one)), finished(json.dumps(other)))
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (verdict.outcome is Outcome.CORRECT) is same, verdict.why
