"""The judge finds the outcomes that were planted. The labels come from the domains' own ground truth."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.planted.recipes import CATEGORIES
from tests.test_readme import ROOT


@dataclass(frozen=True)
class Judged:
    """One trial: its label by the ground truth, the judge's outcome, what was planted, and what decided."""

    true: str
    outcome: str
    planted: str
    category: str
    answer: str
    basis: str
    certain: bool
    side: str


MEASURED = """
import json
from tests.planted.measure import SETS, by_basis, measured, rows

voices = measured(SETS["voices"], 1)
print(json.dumps([rows(voices), by_basis(voices), rows(measured(SETS["products"], 1, 0))]))
"""


@pytest.fixture(scope="module")
def measured() -> tuple[list[Judged], str, list[Judged]]:
    """The trials, their table, and the trials of other wordings, from a process of its own: what pytest holds would be
    searched for each trial."""
    command = [sys.executable, "-c", MEASURED]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    voices, table, others = json.loads(said)
    return [Judged(*row) for row in voices], table, [Judged(*row) for row in others]


@pytest.fixture
def judged(measured: tuple[list[Judged], str, list[Judged]]) -> list[Judged]:
    return measured[0]


def test_the_labels_are_the_planted_ones_and_cover_each_category(judged: list[Judged]) -> None:
    assert len(judged) >= 500
    assert [each.planted for each in judged] == [each.true for each in judged]
    assert {each.category for each in judged} >= set(CATEGORIES)


def test_a_certain_verdict_is_never_false(judged: list[Judged]) -> None:
    sure = [each for each in judged if each.certain and each.outcome != "unknown"]
    assert len(sure) > 200
    assert not [each for each in sure if each.side != "right"]


@pytest.mark.parametrize("label", ["harm", "failed", "hung"])
def test_what_the_ledger_and_the_end_decide_is_always_found(judged: list[Judged], label: str) -> None:
    found = Counter(each.outcome for each in judged if each.true == label)
    assert found[label] == found.total() > 0, found


def test_words_are_seldom_wrong_and_often_say_nothing(judged: list[Judged]) -> None:
    for label, error in (((True), "good called bad"), ((False), "bad called good")):
        of = [each for each in judged if (each.true in ("correct", "degraded")) is label]
        assert sum(each.side == error for each in of) <= 0.02 * len(of), error
    assert sum(each.outcome == "unknown" for each in judged) <= 0.35 * len(judged)


def test_other_wordings_make_no_certain_verdict_false(measured: tuple[list[Judged], str, list[Judged]]) -> None:
    last = measured[2]
    assert last
    assert not [each for each in last if each.certain and each.outcome != "unknown" and each.side != "right"]


def test_the_table_in_the_documents_is_the_measured_one(measured: tuple[list[Judged], str, list[Judged]]) -> None:
    page = (ROOT / "docs" / "explanation" / "verdicts.md").read_text(encoding="utf-8")
    assert measured[1] in page, "run: python -m tests.planted.measure, and paste its table"
