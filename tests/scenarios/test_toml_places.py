"""The line and column of each value in a TOML text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from chaoslab.execution.scenarios.located import ScenarioError, parse
from chaoslab.execution.scenarios.toml_places import places

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
    marks, keys = places(text)
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
    marks, keys = places(TEXT)
    assert (marks[path], keys.get(path)) == (value, key)


def test_an_error_of_meaning_names_line_and_column() -> None:
    located = parse(TEXT, "a.toml", suffix=".toml")
    assert str(located.error(("faults", 1, "fault"), "no")) == "a.toml:18:9: no"
    assert str(located.error(("faults", 0, "target"), "is missing")) == "a.toml:15:3: is missing"
    with pytest.raises(ScenarioError, match=r"a\.toml:2:5: this is no TOML"):
        parse("a = 1\nb = \n", "a.toml", suffix=".toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a = {'9' * 5000}", "a.toml: this is no TOML: Exceeds the limit"),
        (f"a = {'[' * 500}{']' * 500}", "a.toml: it is nested more than"),
    ],
)
def test_what_the_parser_gives_up_is_one_line(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse(text, "a.toml", suffix=".toml")
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


def test_what_the_scan_does_not_know_costs_no_more_than_the_places() -> None:
    """As a form of a later TOML would be: what was read before has its place, the rest that of what is around."""
    assert places("name = 1\n§ = 2")[0][("name",)] == (1, 8)
