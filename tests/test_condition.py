"""Conditions on a call's arguments: texts that hold or not, texts that are none, and properties of all of them."""

import copy
import math
import operator
import pickle
import sys
from collections import defaultdict
from dataclasses import FrozenInstanceError, asdict
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chaoslab.core._condition import Condition, parse_condition

NAN = math.nan


class Level(IntEnum):
    HIGH = 3


class City(StrEnum):
    OSLO = "Oslo"


class Odd(float):
    """A number whose comparisons give no booleans, as those of some libraries do."""

    def __gt__(self, other: float) -> Any:
        return [float(self) > other] * float(self).__gt__(other)


class Touchy:
    """A value that cannot be compared, counted or used as a truth."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError


def cyclic() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def deep(levels: int, end: Any) -> Any:
    for _ in range(levels):
        end = [end]
    return end


def shared(levels: int) -> Any:
    """A list that is small in memory and has 2 ** levels entries."""
    held: Any = [1]
    for _ in range(levels):
        held = [held, held]
    return held


PAID = {"amount": 150, "currency": "EUR", "to": "Ana", "text": "a refund, please", "note": None, "tags": ["urgent"]}
NESTED = {"items": [{"price": 9.5}, {"price": 3}], "options": {"retry": True, "strange key": 1, "in": 2}, "e": "é"}


@pytest.mark.parametrize(
    ("text", "arguments", "holds"),
    [
        # the examples of the documents
        ('amount > 100 and currency == "EUR"', PAID, True),
        ('amount > 100 and currency == "USD"', PAID, False),
        ('not (to == "Ana" or text contains "refund")', PAID, False),
        ('not (to == "Bo" or text contains "charge")', PAID, True),
        ("items[0].price >= 9.5", NESTED, True),
        ("items[1].price >= 9.5", NESTED, False),
        ('city in ["Oslo", "Rome"]', {"city": "Rome"}, True),
        ('city in ["Oslo", "Rome"]', {"city": "Bonn"}, False),
        ("note == null", PAID, True),
        ('"urgent" in tags', PAID, True),
        ("options.retry", NESTED, True),
        ("has note", PAID, True),
        ("has email", PAID, False),
        # numbers
        ("a == 1", {"a": 1.0}, True),
        ("a == 1.50e1", {"a": 15}, True),
        ("a > -1", {"a": -0.5}, True),
        ("a < 1E-2", {"a": 0.001}, True),
        ("a == 9007199254740993", {"a": 9007199254740992.0}, False),
        ("a > 9007199254740992", {"a": 9007199254740993}, True),
        ("a < 1", {"a": -(10**400)}, True),
        ("a <= 1.7e308", {"a": 10**400}, False),
        ("a <= 2 and a >= 2", {"a": 2}, True),
        ("a < 2 or a > 2", {"a": 2}, False),
        ("a > 2", {"a": math.inf}, True),
        ("007 == a", {"a": 7}, True),
        # texts
        (r"a == 'it\'s'", {"a": "it's"}, True),
        (r'a == "\"\\\n\t\'"', {"a": "\"\\\n\t'"}, True),
        ('a < "b"', {"a": "abc"}, True),
        ('a == ""', {"a": ""}, True),
        ("'é' == e", NESTED, True),
        ('a == "and"', {"a": "and"}, True),
        ('a contains "B"', {"a": "abc"}, False),
        ('"" in a', {"a": "abc"}, True),
        ("1 in a", {"a": "123"}, False),
        ('"key" in a', {"a": {"key": 1}}, False),
        # kinds
        ('a == "1"', {"a": 1}, False),
        ('a != "1"', {"a": 1}, True),
        ('a < "1"', {"a": 0}, False),
        ('a >= "1"', {"a": 2}, False),
        ("a == 1", {"a": True}, False),
        ("a != 1", {"a": True}, True),
        ("a >= 0", {"a": True}, False),
        ("a == true", {"a": 1}, False),
        ("a == true", {"a": True}, True),
        ("a == false", {"a": 0}, False),
        ("a < true", {"a": False}, False),
        ("a == null", {"a": 0}, False),
        ("null == null", None, True),
        ("a <= null", {"a": None}, False),
        ("a < b", {"a": [1], "b": [2]}, False),
        # NaN
        ("a == a", {"a": NAN}, False),
        ("a != 1", {"a": NAN}, False),
        ("1 != a", {"a": NAN}, False),
        ("a < 1 or a > 1 or a <= 1 or a >= 1", {"a": NAN}, False),
        ("a == b", {"a": [NAN], "b": [NAN]}, False),
        ("a in b", {"a": NAN, "b": [NAN]}, False),
        ("a", {"a": NAN}, True),
        # missing
        ('city == "Oslo"', {}, False),
        ('city != "Oslo"', {}, False),
        ('"Oslo" != city', {}, False),
        ("a == b", {}, False),
        ("a != b", {}, False),
        ("a < 1", {}, False),
        ("a in [null]", {}, False),
        ("a contains 1", {}, False),
        ("1 in a", {}, False),
        ("a == null", {}, False),
        ("not a == null", {}, True),
        ("not a < 1", {}, True),
        ("a", {}, False),
        ("not a", {}, True),
        # lists
        ("a == [1, 2]", {"a": [1, 2]}, True),
        ("a == [1, 2]", {"a": (1, 2)}, True),
        ("a == [1, 2]", {"a": [1, 2, 3]}, False),
        ("a == [1]", {"a": [True]}, False),
        ("a != [1]", {"a": [True]}, True),
        ("a == []", {"a": []}, True),
        ("a in []", {"a": 1}, False),
        ("a in [1, 'x', null]", {"a": None}, True),
        ("a in [1]", {"a": True}, False),
        ("a in [1.0]", {"a": 1}, True),
        ("a contains b", {"a": [[1], [2]], "b": [2]}, True),
        ("a == b", {"a": {"x": [1]}, "b": {"x": [1.0]}}, True),
        ("a == b", {"a": {"x": 1}, "b": {"y": 1}}, False),
        ("a == b", {"a": {"x": 1}, "b": {"x": True}}, False),
        ("a == b", {"a": {"x": 1}, "b": {"x": 1, "y": 1}}, False),
        ("a == b", {"a": {"x": None}, "b": {"y": None}}, False),
        ("a == b", {"a": [{}], "b": [[]]}, False),
        # paths
        ("$ == a", {"a": 1}, False),
        ("$", {}, False),
        ("$[0] == 1", [1], True),
        ("a == 1", [1], False),
        ("a == 1", None, False),
        ("$ == 'x'", "x", True),
        ('options["strange key"] == 1', NESTED, True),
        ('$["options"]["strange key"] == 1', NESTED, True),
        ("options.in == 2 and $.options['in'] == 2", NESTED, True),
        ("$.in", {"in": 1}, True),
        ("has $.has", {"has": None}, True),
        ("has items[1]", NESTED, True),
        ("has items[2]", NESTED, False),
        ("has items[99999999999999999999999999999999999999999999999999]", NESTED, False),
        ("has items.price", NESTED, False),
        ("has items['0']", NESTED, False),
        ("has e[0]", NESTED, False),
        ("has a[1]", {"a": {1: 1}}, False),
        ("größe > 1", {"größe": 2}, True),
        ("or_ == 1", {"or_": 1}, True),
        ("a . b [ 0 ] == 1", {"a": {"b": (1,)}}, True),
        # joints
        ("a or b and c", {"a": 1, "b": 0, "c": 0}, True),
        ("(a or b) and c", {"a": 1, "b": 0, "c": 0}, False),
        ("not a and b", {"a": 0, "b": 0}, False),
        ("not (a and b)", {"a": 0, "b": 0}, True),
        ("not not a", {"a": 1}, True),
        ("not a in [1]", {"a": 2}, True),
        ("\n a\t==\r\n1 ", {"a": 1}, True),
        ("(a)and(b)", {"a": 1, "b": 1}, True),
        # bare paths
        ("a", {"a": 0}, False),
        ("a", {"a": "0"}, True),
        ("a", {"a": []}, False),
        ("a", {"a": None}, False),
        # values beyond JSON's
        ("a == 3 and a > 2", {"a": Level.HIGH}, True),
        ("a == 'Oslo' and a contains 'sl'", {"a": City.OSLO}, True),
        ("a > 2 and a", {"a": Odd(3)}, True),
        ("a > 2 or has b", {"a": Odd(1)}, False),
        ("a.b", {"a": defaultdict(lambda: 1)}, False),
        ("a.b", {"a": MappingProxyType({"b": 1})}, False),
        ("a and has a", {"a": Touchy()}, True),
        ("a == a or a == 1 or a < 1 or a in [1] or a contains 1 or a.b or a[0]", {"a": Touchy()}, False),
        ("a != 1", {"a": Touchy()}, True),
        ("a in b", {"a": 1, "b": [Touchy(), 1]}, True),
        ("a.b == 1", Touchy(), False),
        ("a", type, False),
        # depth, cycles and sharing
        ("a == b", {"a": deep(100_000, 1), "b": deep(100_000, 1)}, True),
        ("a == b", {"a": deep(100_000, 1), "b": deep(100_000, 2)}, False),
        ("a == b", {"a": cyclic(), "b": cyclic()}, True),
        ("a == b", {"a": shared(60), "b": shared(60)}, True),
    ],
)  # fmt: skip
def test_a_condition_holds_or_not(text: str, arguments: Any, holds: bool) -> None:
    assert parse_condition(text).matches_arguments(arguments) is holds


class Watched(dict[str, Any]):
    """Arguments with a value that ends the test when it is compared."""

    def __init__(self) -> None:
        class Bomb(str):
            def __eq__(self, other: object) -> bool:
                raise AssertionError

            __hash__ = str.__hash__

        super().__init__(yes=1, no=0, bomb=Bomb())


@pytest.mark.parametrize(("text", "holds"), [("yes or bomb == ''", True), ("no and bomb == ''", False)])
def test_what_cannot_matter_is_not_asked(text: str, holds: bool) -> None:
    assert parse_condition(text).matches_arguments(Watched()) is holds
    with pytest.raises(AssertionError):
        parse_condition("bomb == ''").matches_arguments(Watched())


A_VALUE = "a value should stand"
A_CONDITION = "a condition should stand"
ENTRY = "a number, a text, true, false or null should stand"
PLACE = "a position from 0 or a key in quotes should stand"
AFTER_PATH = "an operator or the end should stand"
AFTER = "'and', 'or' or the end should stand"
ESCAPE = r"""\\, \", \', \n or \t should stand"""
CLOSING = "a text with its closing quote should stand"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", f"1 has the end, where {A_CONDITION}"),
        ("  ", f"3 has the end, where {A_CONDITION}"),
        ("amount >> 100", f"9 has '>', where {A_VALUE}"),
        ("amount >", f"9 has the end, where {A_VALUE}"),
        ("amount > ", f"10 has the end, where {A_VALUE}"),
        ("> 100", f"1 has '>', where {A_CONDITION}"),
        ("a = 1", "3 has '=', where '==' should stand"),
        ("1 = a", "3 has '=', where '==' should stand"),
        ("a === 1", f"5 has '=', where {A_VALUE}"),
        ("a <> 1", "3 has '<>', where '!=' should stand"),
        ("a == 1 = 2", f"8 has '=', where {AFTER}"),
        ("a && b", "3 has '&&', where 'and' should stand"),
        ("a == 1 || b", "8 has '||', where 'or' should stand"),
        ("a AND b", "3 has 'AND', where 'and' should stand"),
        ("(a == 1 OR b)", "9 has 'OR', where 'or' should stand"),
        ("!a", "1 has '!', where 'not' should stand"),
        ("a == !b", f"6 has '!', where {A_VALUE}"),
        ("a == True", "6 has 'True', where 'true' should stand"),
        ("False", "1 has 'False', where 'false' should stand"),
        ("a in [None]", "7 has 'None', where 'null' should stand"),
        ("a b", f"3 has 'b', where {AFTER_PATH}"),
        ("a is null", f"3 has 'is', where {AFTER_PATH}"),
        ("a == 1 b", f"8 has 'b', where {AFTER}"),
        ("0 < a < 3", f"7 has '<', where {AFTER}"),
        ("(a) == 1", "5 has '==', where 'and', 'or' or the end should stand"),
        ("100", "4 has the end, where an operator should stand"),
        ("true", "5 has the end, where an operator should stand"),
        ('"x" and a', "5 has 'and', where an operator should stand"),
        ("[1] or a", "5 has 'or', where an operator should stand"),
        ("a and", f"6 has the end, where {A_CONDITION}"),
        ("and a", f"1 has 'and', where {A_CONDITION}"),
        ("a or or b", f"6 has 'or', where {A_CONDITION}"),
        ("not", f"4 has the end, where {A_CONDITION}"),
        ("a not in [1]", f"3 has 'not', where {AFTER_PATH}"),
        ("()", f"2 has ')', where {A_CONDITION}"),
        ("(a", "3 has the end, where an operator or ')' should stand"),
        ("(a == 1", "8 has the end, where 'and', 'or' or ')' should stand"),
        ("a)", f"2 has ')', where {AFTER_PATH}"),
        ("a in (1, 2)", f"6 has '(', where {A_VALUE}"),
        ("has", "4 has the end, where a path should stand"),
        ("has 5", "5 has '5', where a path should stand"),
        ("has true", "5 has 'true', where a path should stand"),
        ("has a == 1", f"7 has '==', where {AFTER}"),
        ("a.", "3 has the end, where a name should stand"),
        ("a..b", "3 has '.', where a name should stand"),
        ("a.0", "3 has '0', where a name should stand"),
        ("$.'x'", "3 has ''x'', where a name should stand"),
        ("$a", f"2 has 'a', where {AFTER_PATH}"),
        (".5 < a", f"1 has '.', where {A_CONDITION}"),
        ("a > 5.", f"6 has '.', where {AFTER}"),
        ("a > +5", f"5 has '+', where {A_VALUE}"),
        ("a > - 5", f"5 has '-', where {A_VALUE}"),
        ("a -1", f"3 has '-1', where {AFTER_PATH}"),
        ("user-id == 1", f"5 has '-', where {AFTER_PATH}"),
        ("a > 0x10", f"6 has 'x10', where {AFTER}"),
        ("a > 1_000", f"6 has '_000', where {AFTER}"),
        ("a > 1e999", "5 has '1e999', where a number below 1.8e308 should stand"),
        ("a > -1e999", "5 has '-1e999', where a number below 1.8e308 should stand"),
        ("a > ٣", f"5 has '٣', where {A_VALUE}"),
        ("a[", f"3 has the end, where {PLACE}"),
        ("a[]", f"3 has ']', where {PLACE}"),
        ("a[-1]", f"3 has '-1', where {PLACE}"),
        ("a[1.0]", f"3 has '1.0', where {PLACE}"),
        ("a[true]", f"3 has 'true', where {PLACE}"),
        ("a[b]", f"3 has 'b', where {PLACE}"),
        ("a[0", "4 has the end, where ']' should stand"),
        ("a[0, 1]", "4 has ',', where ']' should stand"),
        ("a['x]", f"3 has ''x]', where {CLOSING}"),
        ("a in [1", "8 has the end, where ',' or ']' should stand"),
        ("a in [1 2]", "9 has '2', where ',' or ']' should stand"),
        ("a in [1,]", f"9 has ']', where {ENTRY}"),
        ("a in [,]", f"7 has ',', where {ENTRY}"),
        ("a in [[1]]", f"7 has '[', where {ENTRY}"),
        ("a in [b]", f"7 has 'b', where {ENTRY}"),
        ("a in {1}", f"6 has '{{', where {A_VALUE}"),
        ('to == "Ana', f"""7 has '"Ana', where {CLOSING}"""),
        (r'to == "Ana\"', rf"""7 has '"Ana\"', where {CLOSING}"""),
        ("to == 'a\" or b and c or d", f"""7 has ''a" or b and c or d', where {CLOSING}"""),
        (r"to == 'a\x'", rf"9 has '\x', where {ESCAPE}"),
        (r'a == "\u0041"', rf"7 has '\u', where {ESCAPE}"),
        (r'a["\d"] == 1', rf"4 has '\d', where {ESCAPE}"),
        ("to == 'it''s'", f"11 has ''s'', where {AFTER}"),
        ("__import__('os')", f"11 has '(', where {AFTER_PATH}"),
        ("a == 1; b", f"7 has ';', where {AFTER}"),
        ("a + 1 > 2", f"3 has '+', where {AFTER_PATH}"),
        ("a # b", f"3 has '#', where {AFTER_PATH}"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_condition_says_where_and_what_would_be_right(text: str, wrong: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole line is compared
        parse_condition(text)
    assert str(raised.value) == f"column {wrong}"
    assert type(raised.value) is ValueError


NINES = "9" * 51


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a" * 501, "501 has 'a', where the end after 500 characters should stand"),
        ("a" + " " * 500, "501 has ' ', where the end after 500 characters should stand"),
        ("(" * 500, "21 has '(', where no 'not' or '(' within 20 others should stand"),
        ("not " * 125, "81 has 'not', where no 'not' or '(' within 20 others should stand"),
        ("not(" * 125, "41 has 'not', where no 'not' or '(' within 20 others should stand"),
        (f"a > {NINES}", f"5 has '{'9' * 19}…', where a number of at most 50 characters should stand"),
        (f"$[{NINES}]", f"3 has '{'9' * 19}…', where a number of at most 50 characters should stand"),
        ("a in [" + "1," * 100 + "1]", "206 has ',', where ']' after 100 entries should stand"),
        ("[" * 500, f"2 has '[', where {ENTRY}"),
        ("a\u2028b\nc", f"2 has '?', where {AFTER_PATH}"),
        ("a\x00", f"2 has '?', where {AFTER_PATH}"),
        ("a\ud800", f"2 has '?', where {AFTER_PATH}"),
    ],
)  # fmt: skip
def test_what_is_beyond_a_bound_is_cut_in_the_line(text: str, wrong: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole line is compared
        parse_condition(text)
    assert str(raised.value) == f"column {wrong}"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20 + "a" + ")" * 20,
        "not " * 20 + "a",
        "not (" * 10 + "a" + ")" * 10,
        "((a) and (b)) or " * 29 + "a",
        " and ".join(["a"] * 83),
        "a" + ".b" * 249,
        "a > " + "9" * 50,
        "a in [" + "1," * 99 + "1]",
        f"a == '{'x' * 493}'",
    ],
)
def test_what_is_within_the_bounds_parses(text: str) -> None:
    assert len(text) <= 500
    assert parse_condition(text).matches_arguments({}) in (True, False)
    assert parse_condition(text).text == text


def test_the_canonical_text_keeps_groups_and_drops_all_other_parentheses() -> None:
    assert str(parse_condition("( ( a==1 ) )or(b and((not(c))))")) == "a == 1 or b and not c"
    assert str(parse_condition("not(a or b)and((a and b)and c)")) == "not (a or b) and ((a and b) and c)"
    assert str(parse_condition("""$["a"]['b c'] in ['"', -0, 1E2,null]""")) == r"""a["b c"] in ["\"", 0, 100.0, null]"""
    assert str(parse_condition("$.or[007].or==$ or has $.True")) == "$.or[7].or == $ or has $.True"


def test_a_condition_is_a_value() -> None:
    condition = parse_condition("a > 1 and b")
    assert {condition: 1}[parse_condition("a > 1 and b")] == 1
    assert condition != parse_condition("a > 1  and b")
    assert condition.matches_arguments({"a": 2, "b": 1})
    for other in (pickle.loads(pickle.dumps(condition)), copy.deepcopy(condition), copy.copy(condition)):
        assert other == condition
        assert other.matches_arguments({"a": 2, "b": 1})
    assert repr(condition) == "Condition(text='a > 1 and b')"
    assert asdict(condition) == {"text": "a > 1 and b"}
    with pytest.raises(FrozenInstanceError):
        condition.text = "b"  # type: ignore[misc]
    with pytest.raises(ValueError, match="column 1 has the end"):
        Condition("")


# Trees of the tests' own: ("or" | "and", trees), ("not", tree), ("has" | "bare", steps), (sign, operand, operand).
# An operand is ("path", steps) or ("value", value).
Tree = tuple[Any, ...]
SIGNS = ("==", "!=", "<", "<=", ">", ">=", "in", "contains")
WORDS = {"or", "and", "not", "in", "contains", "has", "true", "false", "null", "True", "False", "None"}
KEYS = ("a", "b", "in", "True", "ß9", "strange key", 'x"\\\n', "")

scalars = (
    st.sampled_from([0, 1, 2, True, False, None, "a", "b", "ab", "", 1.0, -0.0, 2**53, 2.0**53, 2**53 + 1])
    | st.integers(-(10**48), 10**48)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
paths = st.lists(st.sampled_from(KEYS) | st.integers(0, 2), max_size=3).map(tuple)
operands = (
    st.tuples(st.just("path"), paths)
    | st.tuples(st.just("value"), scalars)
    | st.tuples(st.just("value"), st.lists(scalars, max_size=3).map(tuple))
)
leaves = st.tuples(st.sampled_from(["has", "bare"]), paths) | st.tuples(st.sampled_from(SIGNS), operands, operands)
trees: st.SearchStrategy[Tree] = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.just("not"), inner)
        | st.tuples(st.sampled_from(["or", "and"]), st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
held = st.recursive(
    scalars | st.sampled_from([NAN, math.inf, 10**400]) | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


def quoted(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def of_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(of_value(one) for one in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return quoted(value) if isinstance(value, str) else repr(value)


def of_path(steps: tuple[str | int, ...], *, long: bool = False) -> str:
    named = [isinstance(step, str) and step.isidentifier() and not long for step in steps]
    bare = bool(steps) and named[0] and steps[0] not in WORDS
    text = str(steps[0]) if bare else "$"
    for step, name in list(zip(steps, named, strict=True))[bare:]:
        text += f".{step}" if name else f"[ {of_value(step)} ]" if long else f"[{of_value(step)}]"
    return text


def of_operand(operand: Any, *, long: bool) -> str:
    return of_path(operand[1], long=long) if operand[0] == "path" else of_value(operand[1])


def of_tree(tree: Tree, *, long: bool = False) -> str:
    """The canonical text; with `long`, one with all the parentheses and blanks that there may be."""
    match tree:
        case ("or" | "and" as word, parts):
            inner = [of_tree(part, long=long) for part in parts]
            if not long:
                loose = ("or",) if word == "or" else ("or", "and")
                inner = [f"({text})" if part[0] in loose else text for part, text in zip(parts, inner, strict=True)]
            text = f" {word} ".join(inner)
        case ("not", part):
            inside = of_tree(part, long=long)
            text = f"not ({inside})" if part[0] in ("or", "and") and not long else f"not {inside}"
        case ("has", steps):
            text = f"has {of_path(steps, long=long)}"
        case ("bare", steps):
            text = of_path(steps, long=long)
        case (sign, left, right):
            text = f"{of_operand(left, long=long)} {sign} {of_operand(right, long=long)}"
    return f"\t( {text}\r\n)" if long else text


@given(trees)
def test_the_canonical_text_of_any_condition_parses_to_itself(tree: Tree) -> None:
    text = of_tree(tree)
    assume(len(text) <= 500)
    condition = parse_condition(text)
    assert str(condition) == text
    assert str(parse_condition(str(condition))) == text
    long = of_tree(tree, long=True)
    assume(len(long) <= 500)
    assert str(parse_condition(long)) == text


MISSING = object()


def kind_of(value: Any) -> str:
    for types, kind in (((bool,), "flag"), ((int, float), "number"), ((list, tuple), "list")):
        if isinstance(value, types):
            return kind
    return {str: "text", dict: "object", type(None): "null"}.get(type(value), "other")


def same(left: Any, right: Any) -> bool:
    match kind_of(left), kind_of(right):
        case ("other", _) | (_, "other"):
            return False
        case ("list", "list"):
            return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
        case ("object", "object"):
            return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
        case (one, other):
            return one == other and bool(left == right)


def follow(steps: tuple[str | int, ...], value: Any) -> Any:
    for step in steps:
        if isinstance(step, str) != isinstance(value, dict) or not isinstance(value, dict | list | tuple):
            return MISSING
        try:
            value = value[step]  # type: ignore[index]
        except LookupError:
            return MISSING
    return value


def compared(sign: str, left: Any, right: Any) -> bool:
    if sign == "contains":
        return compared("in", right, left)
    if any(value is MISSING or (kind_of(value) == "number" and value != value) for value in (left, right)):
        return False
    kinds = (kind_of(left), kind_of(right))
    if sign in ("==", "!="):
        return same(left, right) is (sign == "==")
    if sign == "in":
        return left in right if kinds == ("text", "text") else kinds[1] == "list" and any(same(left, x) for x in right)
    orders = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return kinds in (("number", "number"), ("text", "text")) and bool(orders[sign](left, right))


def true_of(tree: Tree, arguments: Any) -> bool:
    """The rules of the documents, applied to the tests' own tree."""
    match tree:
        case ("or", parts):
            return any(true_of(part, arguments) for part in parts)
        case ("and", parts):
            return all(true_of(part, arguments) for part in parts)
        case ("not", part):
            return not true_of(part, arguments)
        case ("has", steps):
            return follow(steps, arguments) is not MISSING
        case ("bare", steps):
            value = follow(steps, arguments)
            return value is not MISSING and bool(value)
        case (sign, left, right):
            both = [follow(given, arguments) if what == "path" else given for what, given in (left, right)]
            return compared(sign, *both)
    raise AssertionError(tree)


@given(trees, st.dictionaries(st.sampled_from(KEYS), held) | held)
def test_any_condition_holds_as_its_tree_says(tree: Tree, arguments: Any) -> None:
    text = of_tree(tree)
    assume(len(text) <= 500)
    assert parse_condition(text).matches_arguments(arguments) is true_of(tree, arguments)


PIECES = (*SIGNS, *WORDS, "(", ")", "[", "]", ",", ".", "$", "a", "b1", "1", "-2.5e3", "1e999", '"x"', "'y'", '"', "'",
          "\\", "\\n", "=", "&&", "!", " ", "\n", "\u2028", "é", "\ud800", "9" * 60)  # fmt: skip
CALLS_MAX = 40
"""The most events of calls and returns, of Python's functions and C's, for each character of a text."""


def read(text: str) -> tuple[int, str]:
    """The calls of functions that the parser makes, and the line with which it refuses the text, if it does."""
    calls, line = 0, ""

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse_condition(text)
    except ValueError as wrong:
        line = repr(wrong) if type(wrong) is not ValueError or len(str(wrong).splitlines()) > 1 else str(wrong)
    finally:
        sys.setprofile(before)
    return calls, line


@given(st.text(max_size=600) | st.lists(st.sampled_from(PIECES), max_size=200).map(" ".join).map(lambda t: t[:600])
       | st.lists(st.sampled_from(PIECES), max_size=200).map("".join).map(lambda t: t[:600]))  # fmt: skip
@example("(" * 600)
@example("not " * 125)
@example("a and " * 83 + "a")
@example("a or " * 99 + "a")
@example("a" + "[0]" * 166)
@example("'\\" * 250)
@example("\"'" * 250)
@example("a == '" + "\\\\" * 246 + "'")
@example("9" * 500)
@example("1e" * 250)
@example("." * 500)
@example("((a))or" * 70 + "a")
def test_any_text_parses_or_is_refused_in_one_line_and_in_linear_time(text: str) -> None:
    calls, line = read(text)
    assert line == "" or line.startswith("column ")
    assert len(line) <= 200
    assert calls <= CALLS_MAX * (len(text) + 20)
