"""The calculator agrees with Python's own numbers, and refuses what has no value or no end."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.flask_tools.arithmetic import Wrong, calculate

Pair = tuple[str, int | float]


def _join(sign: str, pair: tuple[Pair, Pair]) -> Pair:
    (left, a), (right, b) = pair
    value = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[sign]()
    return f"({left} {sign} {right})", value


leaves: st.SearchStrategy[Pair] = st.one_of(
    st.integers(0, 10**6).map(lambda n: (str(n), n)),
    st.floats(0, 1e6, allow_subnormal=False).map(lambda x: (repr(x), x)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        *(st.tuples(inner, inner).map(partial(_join, sign)) for sign in "+-*"),
        inner.map(lambda pair: (f"-{pair[0]}", -pair[1])),
    ),
    max_leaves=12,
)


@given(trees)
def test_an_expression_has_the_value_that_python_gives_its_tree(tree: Pair) -> None:
    text, value = tree
    assert calculate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-2^2", -4), ("2^3^2", 512), ("2**-1", 0.5), ("6/3", 2), ("7//2 + 7%4", 6), ("1,000 + 1", 1001),
        ("max(1,000)", 1),
        ("3 × 4 ÷ 2 − 1", 5), ("sqrt(144)", 12), ("1.5e3", 1500.0), ("factorial(5)", 120), ("log(1000)", 3.0),
        ("round(2.567, 1)", 2.6),
        ("2 * PI", math.tau), ("round(2.5)", 2),
        ("1" + "0" * 300 + "-1", 10**300 - 1), ("2*(3+4)", 14),
    ],
)  # fmt: skip
def test_values(text: str, value: float) -> None:
    assert calculate(text) == pytest.approx(value) if isinstance(value, float) else calculate(text) == value


@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        ("", "syntax", 0), ("1 +", "syntax", 3), ("1/0", "division_by_zero", 1), ("10^10^10", "overflow", 2),
        ("factorial(1001)", "overflow", 0),
        ("sqrt(-1)", "domain", 0), ("(-8)^0.5", "domain", 4), ("__import__('os')", "syntax", 0),
        ("foo(1)", "unknown_name", 0),
        ("(" * 101 + "1" + ")" * 101, "too_deep", 100), ("1" * 1001, "too_long", None), ("2 $ 3", "syntax", 2),
        ("1e999", "overflow", 0),
        ("(1", "syntax", 2), ("sqrt 4", "syntax", 5), ("10^3009 * 100", "overflow", 8),
        ("factorial(1.5)", "domain", 0), ("factorial(-1)", "domain", 0), ("round(1, 0.5)", "domain", 0),
        ("sin(1, 2)", "arguments", 0), ("2 3", "syntax", 2), ("9^9^9^9", "overflow", None),
    ],
)  # fmt: skip
def test_nonsense_is_refused_where_it_stands(text: str, kind: str, position: int | None) -> None:
    with pytest.raises(Wrong) as caught:
        calculate(text)
    assert caught.value.kind == kind
    assert position is None or caught.value.position == position


def test_a_factorial_is_exact_up_to_1000_and_the_bound_is_said() -> None:
    assert calculate("factorial(1000)") == math.factorial(1000)
    assert calculate("factorial(1000) / factorial(999)") == 1000
    with pytest.raises(Wrong, match=r"^factorial goes up to 1000$"):
        calculate("factorial(1001)")
    with pytest.raises(Wrong, match=r"too large: whole numbers may have 3010 digits"):
        calculate("factorial(1000)^2")
    assert len(str(calculate("10^3009"))) == 3010
