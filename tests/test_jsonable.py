"""Any value in one short line: bounded whatever its size, and without running its own code."""

import array
import dataclasses
import json
import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from enum import Enum
from io import BytesIO
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from pydantic import BaseModel

from chaoslab.base.jsonable import PARTS_MAX, decode_to_one_line, describe_error, render_brief, to_jsonable, to_one_line


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass(slots=True)
class Point:
    x: int
    y: float


class Order(BaseModel):
    number: int
    items: list[str]


class Dozens(int):
    """A whole number with a text of its own."""

    def __repr__(self) -> str:
        return f"{self // 12} dozen"

    __str__ = __repr__


class Share(float):
    """A number with a text of its own."""

    def __repr__(self) -> str:
        return "half"


class Guarded:
    """Tells everybody who looks at it."""

    def __repr__(self) -> str:
        raise AssertionError("its own code was run")

    __str__ = __eq__ = __iter__ = __len__ = __repr__  # type: ignore[assignment]
    __hash__ = object.__hash__


class Rows(list[int]):
    """A list that would fetch what is asked for."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("its own code was run")

    def __getitem__(self, _: Any) -> NoReturn:
        raise AssertionError("its own code was run")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "null"),
        (True, "true"),
        (12, "12"),
        (1.5, "1.5"),
        (float("nan"), '"nan"'),
        ("bonjour", '"bonjour"'),
        ("two\nlines", '"two\\nlines"'),
        ({"a": [1, {"b": None}], 2: ()}, '{"a": [1, {"b": null}], "2": []}'),
        ({"b", "a"}, '["a", "b"]'),
        (b"raw", '"raw"'),
        (date(2026, 6, 1), '"2026-06-01"'),
        (Decimal("1.10"), '"1.10"'),
        (Colour.RED, '"red"'),
        (Point(1, 2.0), '{"x": 1, "y": 2.0}'),
        (Order(number=17, items=["lamp"]), '{"number": 17, "items": ["lamp"]}'),
        (Guarded(), '"a tests.test_jsonable.Guarded"'),
        (Rows([1, 2]), "[1, 2]"),
        (Dozens(24), "24"),
        (Counter("aba"), '{"a": 2, "b": 1}'),
        (Share(0.5), "0.5"),
        (10**5000, '"an integer of 16610 bits"'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_told_as_json(value: Any, told: str) -> None:
    assert render_brief(value, 100) == told


def test_of_a_huge_value_only_the_beginning_is_looked_at() -> None:
    seen: list[int] = []

    class Spy(Decimal):
        def __str__(self) -> str:
            seen.append(1)
            return "1.0"

    told = render_brief([Spy(1) for _ in range(100_000)], 60)
    assert len(told) == 60
    assert told.endswith("…")
    assert len(seen) < 20
    endless: list[Any] = []
    endless.append(endless)
    for huge in ("x" * 10_000_000, {n: n for n in range(100_000)}, set(range(100_000)), endless, "𝄞" * 400):
        assert len(render_brief(huge, 60)) <= 60


def test_what_was_cut_ends_with_a_sign_and_what_was_not_does_not() -> None:
    assert render_brief("x" * 8, 10) == '"xxxxxxxx"'
    assert render_brief("x" * 9, 10) == '"xxxxxxxx…'
    assert to_one_line("x" * 10, 10) == "x" * 10
    assert to_one_line("x" * 11, 10) == "x" * 9 + "…"
    assert to_one_line("x" + " " * 50 + "y", 10) == "x…"


@pytest.mark.parametrize(
    "text",
    ["x" * 10, "x" * 11, "𝔵" * 10, "𝔵" * 11, "x" + " " * 39 + "y", "\u3000" * 30 + "x", "\u3000" * 40 + "x", "𝔵" * 99],
)
def test_bytes_are_told_as_the_text_that_they_are(text: str) -> None:
    assert decode_to_one_line(text.encode(), 10) == to_one_line(text, 10)
    assert decode_to_one_line(b"\xff" + text.encode(), 10) == to_one_line("\ufffd" + text, 10)


@pytest.mark.parametrize("make", [to_one_line, render_brief])
def test_nothing_steers_a_terminal_and_everything_can_be_written(make: Any) -> None:
    told = make("\x1b[2J\u202eab\ud800\x9b", 60)
    assert told.isprintable()
    assert "ab" in told
    told.encode()
    assert make("می\u200cخواهم 👨\u200d👩", 60).strip('"') == "می\u200cخواهم 👨\u200d👩"


def test_short_json_comes_back_from_its_text() -> None:
    value = {"list": [1, 2.5, None, True, "ä"], "deep": {"er": {}}}
    assert json.loads(render_brief(value, 300)) == value


def test_an_error_that_repeats_the_words_of_a_group_is_told_with_the_error_in_it() -> None:
    group = ExceptionGroup("unhandled errors in a TaskGroup", [TimeoutError("no answer from crm")])
    try:
        raise RuntimeError(f"Failed to call tool 'refund': {group}") from group
    except RuntimeError as error:
        said = describe_error(error)
    assert said == (
        "RuntimeError: Failed to call tool 'refund': unhandled errors in a TaskGroup (1 sub-exception): "
        "TimeoutError: no answer from crm"
    )
    assert describe_error(group) == "TimeoutError: no answer from crm"


class Account:
    """A value, with a private part."""

    def __init__(self, paid: Any) -> None:
        self._paid = paid


class Slotted:
    """A value without a dict."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


class Empty:
    """A sign of the program's own."""


class Called(Account):
    """A function of the program's own."""

    def __call__(self) -> None: ...


class Failing(Account):
    """A list that cannot be read."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        raise ValueError

    def __contains__(self, _: object) -> bool:
        return False


class Named(BytesIO):
    """A thing in C, with a dict."""


def row() -> sqlite3.Row:
    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        found: sqlite3.Row = db.execute("SELECT 17 AS number, 'tea' AS item").fetchone()
    return found


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (Account(30), {"_paid": 30}),
        ([Account(Slotted(30))], [{"_paid": {"n": 30}}]),
        (SimpleNamespace(to="ana"), {"to": "ana"}),
        (deque(["ana", "ben"]), ["ana", "ben"]),
        ({"a": 1}.values(), [1]),
        (array.array("i", [1, 2]), [1, 2]),
        (bytearray(b"raw"), "raw"),
        (row(), {"number": 17, "item": "tea"}),
        (Colour.RED, "red"),
        (Order(number=17, items=["lamp"]), {"number": 17, "items": ["lamp"]}),
        (date(2026, 6, 1), "2026-06-01"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_is_what_it_holds(value: Any, read: Any) -> None:
    unread: list[str] = []
    assert (to_jsonable(value, unread=unread), unread) == (read, [])


def test_what_has_an_identity_of_its_own_is_no_value_until_all_is_to_be_read() -> None:
    held = {"shop": Account(30), "to": SimpleNamespace(name="ana"), "of": SimpleNamespace(shop=Account(30))}
    assert to_jsonable(held) == {
        "shop": "a tests.test_jsonable.Account", "to": {"name": "ana"}, "of": "a types.SimpleNamespace",
    }  # fmt: skip
    assert to_jsonable(held, unread=[]) == {
        "shop": {"_paid": 30}, "to": {"name": "ana"}, "of": {"shop": {"_paid": 30}},
    }  # fmt: skip


def in_itself() -> Account:
    made = Account(1)
    made._paid = [made]
    return made


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (threading.Lock(), "_thread.lock"),
        (Account(threading.Lock()), "tests.test_jsonable.Account"),  # a tool of the program's own
        (in_itself(), "tests.test_jsonable.Account"),
        (Account([Account(1)] * (PARTS_MAX + 1)), "tests.test_jsonable.Account"),
        (Called(1), "tests.test_jsonable.Called"),
        (Failing(1), "tests.test_jsonable.Failing"),
        (Named(), "tests.test_jsonable.Named"),
        (object(), "builtins.object"),
        (Empty(), "tests.test_jsonable.Empty"),
        ((n for n in "ab"), "builtins.generator"),
        (2**20_000, "whole number of 20001 bits"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_read_is_named_and_told(value: Any, name: str) -> None:
    unread: list[str] = []
    assert to_jsonable({"a": value}) == to_jsonable({"a": value}, unread=unread) == {"a": f"a {name}"}
    assert unread == [f"a {name}"]


def test_what_lies_too_deep_or_has_no_name_of_its_own_is_told() -> None:
    deep: Any = 1
    for _ in range(13):
        deep = [deep]
    unread: list[str] = []
    to_jsonable([deep, {1: "a", "1": "b"}], unread=unread)
    assert unread == ["a value that lies deeper than 12", "a mapping with keys that are one as texts"]
