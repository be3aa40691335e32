"""A difference between two values is told by place and with both values, in one line of bounded length."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.differences import SHOWN, describe_differences

LONG = "word " * 100
MESSAGES = [{"role": "user", "content": f"message {n}"} for n in range(9)]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("bonjour", "ruojnobo", "bonjour → ruojnobo"),
        ({"amount": 1200}, {"amount": 1800}, "amount 1200 → 1800"),
        ({"list": [{"main": {"temp": 12}}]}, {"list": [{"main": {"temp": 21}}]}, "list[0].main.temp 12 → 21"),
        ({"a": 1, "b": 2}, {"a": 2, "b": 3}, "a 1 → 2; b 2 → 3"),
        ({"ok": True}, {"ok": 1}, "ok true → 1"),
        ({"n": 12}, {"n": "12"}, 'n 12 → "12"'),
        ({"n": 1}, {"n": 1.0}, "n 1 → 1.0"),
        ({"text": "a"}, {"text": ""}, 'text "a" → ""'),
        ({"text": "a b"}, {"text": "a  b"}, 'text "a b" → "a  b"'),
        ({"a": 1}, {}, "a 1 → nothing"),
        ({}, {"a": None}, "a nothing → null"),
        ({"a": [1]}, {"a": {"b": 1}}, 'a [1] → {"b": 1}'),
        ({7: "x"}, {7: "y"}, "7 x → y"),
        (
            {"messages": MESSAGES},
            {"messages": [MESSAGES[0], *MESSAGES[5:]]},
            "messages 9 → 5 (numbers 2 to 5 left out)",
        ),
        ([1, 2, 3], [1, 3], "3 → 2 (number 2 left out)"),
        ([1, 2, 3, 4], [2, 4], "4 → 2 (2 left out)"),
        ([1, 2, 3], [9, 8], "3 → 2"),
        ([1], [1, 2], "1 → 2"),
        (LONG + "yes", LONG + "no", f"…{(LONG)[-20:]}yes → …{LONG[-20:]}no"),
        ("x" * 100, "y" * 100, f"{'x' * 60}… → {'y' * 60}…"),
    ],
)
def test_each_difference_has_its_place_and_both_values(before: Any, after: Any, told: str) -> None:
    assert describe_differences(before, after, most=300) == told


def test_equal_values_differ_in_nothing() -> None:
    class Thing:
        """Copies of it are not equal, and look alike."""

    value = {"a": [1, "x", {"thing": Thing(), "nan": float("nan")}]}
    assert describe_differences(value, deepcopy(value), most=300) == ""


def test_many_differences_are_cut() -> None:
    before, after = ({f"key {n}": n + more for n in range(50)} for more in (0, 1))
    told = describe_differences(before, after, most=300)
    assert told == "; ".join(f"key {n} {n} → {n + 1}" for n in range(SHOWN)) + "; …"
    assert len(describe_differences({"k" * 900: "a" * 900}, {"k" * 900: "b" * 900}, most=300)) <= 300
    assert len(describe_differences(before, after, most=30)) == 30


def test_values_without_end_are_compared_all_the_same() -> None:
    one: dict[str, Any] = {"n": 1}
    other: dict[str, Any] = {"n": 2}
    one["self"], other["self"] = one, other
    assert describe_differences(one, other, most=300).startswith("n 1 → 2; self.n 1 → 2")
    lists = [[n] for n in range(100_000)]
    assert describe_differences(lists, [*([n] for n in range(99_999)), ["last"]], most=300) == ""  # nobody looks so far
    assert describe_differences(lists, [["first"], *([n] for n in range(1, 100_000))], most=300) == '[0][0] 0 → "first"'


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False).map(lambda x: x + 0.0)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON)
def test_it_is_empty_exactly_where_nothing_differs(one: Any, other: Any) -> None:
    told = describe_differences(one, other, most=300)
    assert bool(told) == (_spelt(one) != _spelt(other))
    assert told.translate({0x200C: None, 0x200D: None}).isprintable()
    assert len(told) <= 300


def _spelt(value: Any) -> Any:
    """With types told apart."""
    if isinstance(value, dict):
        return {key: _spelt(held) for key, held in value.items()}
    return [_spelt(held) for held in value] if isinstance(value, list) else repr(value)
