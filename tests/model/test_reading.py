"""A request is cut where a new thing is asked, and nowhere else."""

import pytest

from chaoslab.model._reading import mask_quotes, split_clauses, split_sentences, strip_politeness


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("check Oslo and send it to Bob", ["check Oslo", "send it to Bob"]),
        ("check Oslo, then Rome", ["check Oslo", "Rome"]),
        ("search for salt and pepper", ["search for salt and pepper"]),
        ("tell Ana that I'm late and hungry", ["tell Ana that I'm late and hungry"]),
        ("check Oslo; also, find films", ["check Oslo", "find films"]),
    ],
)
def test_clauses(text: str, parts: list[str]) -> None:
    assert split_clauses(text, frozenset()) == parts


def test_a_tools_own_verb_opens_a_clause() -> None:
    assert split_clauses("check Oslo and juggle 3 balls", frozenset({"juggle"})) == ["check Oslo", "juggle 3 balls"]


def test_quotes_are_never_cut() -> None:
    masked, quotes = mask_quotes("say 'stop. Then go; and send' to Ana's friend")
    assert quotes == ("stop. Then go; and send",)
    assert len(split_sentences(masked)) == len(split_clauses(masked, frozenset())) == 1


def test_points_in_numbers_and_abbreviations_end_no_sentence() -> None:
    assert len(split_sentences("Meet Dr. Lee at 3 p.m. on Friday. Add 2.5 and 3.")) == 2


def test_courtesies_fall_away() -> None:
    assert strip_politeness("Hi, could you please also check Oslo for me?") == "check Oslo"
