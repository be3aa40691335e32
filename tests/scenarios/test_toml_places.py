"""The line and column of each value in a TOML text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.scenarios import toml_places
from chaoslab.scenarios.located import ScenarioError, parse
from chaoslab.scenarios.toml_places import TooDeep, Unknown, lines, places

TEXT = '''# a scenario
name = "a # b" # no [table]
prompt = """first
[not.a.table]
said ""twice"\\""""
seed = 3
'a key'.b."c.d" = [1, # one
  "two]", {e = 5, f = { g = 1979-05-27 07:32:00 }},
]
raw = \'\'\'it's [x] = 1\'\'\'

[agent]
command = ["node", "a.js"]

[[faults]]
fault = "latency"
[[faults]]
fault = 'lost_reply'
target = "refund"
[[faults.more]]
deep.er = true
'''


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from paths(each, (*path, key))


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "", "a=[[],{}]", "a=''\n[b]\n[b.c]\n", '"" = 1'])
def test_every_value_has_a_place(text: str) -> None:
    marks, keys = places(text, depth_max=40)
    found = set(paths(tomllib.loads(text)))
    assert set(marks) == found
    assert set(keys) == {path for path in found if path and isinstance(path[-1], str)}


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("name",), (2, 8), (2, 1)),
        (("seed",), (6, 8), (6, 1)),
        (("a key", "b", "c.d", 1), (8, 3), None),
        (("a key", "b", "c.d", 2, "f", "g"), (8, 29), (8, 25)),
        (("raw",), (10, 7), (10, 1)),
        (("agent", "command", 1), (13, 20), None),
        (("faults", 1), (17, 3), None),
        (("faults", 1, "target"), (19, 10), (19, 1)),
        (("faults", 1, "more", 0, "deep", "er"), (21, 11), (21, 6)),
    ],
)
def test_a_place_is_where_the_value_or_the_key_begins(
    path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int] | None
) -> None:
    marks, keys = places(TEXT, depth_max=40)
    assert (marks[path], keys.get(path)) == (value, key)


def test_an_error_of_meaning_names_line_and_column() -> None:
    located = parse(TEXT, "a.toml", suffix=".toml")
    assert str(located.error(("faults", 1, "fault"), "no")) == "a.toml:18:9: no"
    assert str(located.error(("faults", 0, "target"), "is missing")) == "a.toml:15:3: is missing"
    with pytest.raises(ScenarioError, match=r"a\.toml:2:5: this is no TOML"):
        parse("a = 1\nb = \n", "a.toml", suffix=".toml")


KEYS = st.lists(
    st.sampled_from(["a", "b", "-", "1", '"a"', "'b c'", '""', r'"\u0061 = ["']), min_size=1, max_size=3
).map(" . ".join)
PLAIN = ["1", "-1e3", "inf", "true", "0x1F", "1979-05-27 07:32:00", "07:32:00"]
QUOTED = [
    '""',
    "''",
    r'"\\"',
    r'"\" # ["',
    "'# x = ['",
    '""""""',
    '"""\n""a"""""',
    '"""\\\n  [a]\n"""',
    "'''\n[a]'' '''''",
]
SCALARS = st.sampled_from([*PLAIN, *QUOTED])
GAPS = st.sampled_from(["", " ", "\t", "\n", "\r\n", " # ]}\"'\n"])


def listed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    entries = st.lists(st.tuples(GAPS, inner, GAPS).map("".join), max_size=3).map(",".join)
    pairs = st.lists(st.tuples(KEYS, inner).map(" = ".join), max_size=2).map(", ".join)
    return st.tuples(entries, GAPS).map(lambda made: f"[{''.join(made)}]") | pairs.map("{{{}}}".format)


VALUES = st.recursive(SCALARS, listed, max_leaves=6)
LINES = st.tuples(KEYS, VALUES).map(" = ".join) | KEYS.map("[{}]".format) | KEYS.map("[[ {} ]]".format)
DOCUMENTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", " # [b]\n\n"])).map("".join)).map("".join)


@settings(derandomize=True, database=None)
@given(text=DOCUMENTS)
def test_whatever_tomllib_reads_has_all_its_places(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    marks, keys = places(text, depth_max=40)
    assert set(marks) == set(paths(data))
    assert set(keys) <= set(marks)


@settings(derandomize=True, database=None)
@given(text=st.lists(st.sampled_from([*"ab.=[]{},\"'\\#\n 1"])).map("".join))
def test_what_is_no_toml_is_told_and_never_another_error(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(ScenarioError):
            parse(text, "a.toml", suffix=".toml")
    else:
        assert parse(text, "a.toml", suffix=".toml").data == data


@pytest.mark.parametrize("text", ["a", "[", "a = ", r'"\x" = 1', "a = 'x", "= 1", "a.\n"])
def test_half_a_text_is_unknown(text: str) -> None:
    with pytest.raises(Unknown):
        places(text, depth_max=40)


def test_a_deep_value_is_told_before_tomllib_reads_it() -> None:
    for text, place in (("\n a.b.c = 1", (2, 2)), ("a = [[[1]]]", (1, 7)), ("[x.y]\na.b=1", (2, 5))):
        with pytest.raises(TooDeep) as error:
            places(text, depth_max=2)
        assert error.value.place == place


def test_a_form_that_is_not_known_leaves_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_places, "_BARE_VALUE", re.compile("[0-9]+,"))
    located = parse(TEXT, "a.toml", suffix=".toml")
    assert str(located.error(("faults", 1, "target"), "no")) == "a.toml:19: no"
    assert str(located.error(("faults", 1, "fault"), "no")) == "a.toml:18: no"
    assert str(located.error(("agent", "command", 1), "no")) == "a.toml:13: no"
    assert str(located.error(("a key", "b"), "no")) == "a.toml: no"


def test_lines_are_those_of_values_that_are_there() -> None:
    text = 'x = """\n[y]\nz = 1\n"""\n[t]\n"u" = 2\n'
    assert lines(text, tomllib.loads(text))[0] == {("x",): (1, 0), ("t",): (5, 0), ("t", "u"): (6, 0)}
