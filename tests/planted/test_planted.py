"""The judge finds the outcomes that were planted. The labels come from the domains' own ground truth."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.planted.recipes import CATEGORIES
from tests.test_readme import ROOT

BAD = ("degraded", "wrong", "false_success", "harm", "failed", "hung")


@dataclass(frozen=True)
class Judged:
    """One trial: its label by the ground truth, the judge's outcome, and what was planted."""

    true: str
    outcome: str
    planted: str
    category: str
    answer: str


Measured = tuple[list[Judged], str]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """The trials and their table, from a process of its own: what pytest holds would be searched for each trial."""
    command = [sys.executable, "-m", "tests.planted.measure", "--json"]
    rows, table = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    return [Judged(*row) for row in rows], table


@pytest.fixture
def judged(measured: Measured) -> list[Judged]:
    return measured[0]


def test_the_labels_are_the_planted_ones_and_cover_each_category(judged: list[Judged]) -> None:
    assert len(judged) >= 500
    assert [each.planted for each in judged] == [each.true for each in judged]
    assert {each.category for each in judged} >= set(CATEGORIES)


@pytest.mark.parametrize("label", BAD)
def test_a_bad_outcome_is_found(judged: list[Judged], label: str) -> None:
    found = Counter(each.outcome for each in judged if each.true == label)
    assert found[label] >= 0.99 * found.total() > 0, found


def test_a_correct_trial_raises_no_false_alarm(judged: list[Judged]) -> None:
    found = Counter(each.outcome for each in judged if each.true == "correct")
    assert sum(found[name] for name in BAD) <= 0.01 * found.total(), found
    assert found["correct"] >= 0.9 * found.total(), found


def test_nothing_wrong_is_judged_correct(judged: list[Judged]) -> None:
    assert not [each.answer for each in judged if each.true != "correct" and each.outcome == "correct"]


def test_wordings_that_mended_nothing_raise_no_false_alarm_and_hide_nothing() -> None:
    command = [sys.executable, "-m", "tests.planted.measure", "--json", "--words", "last", "--share", "0"]
    rows, _ = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    last = [Judged(*row) for row in rows]
    assert not [each for each in last if each.true == "correct" and each.outcome in BAD]
    assert not [each for each in last if each.true != "correct" and each.outcome == "correct"]


def test_the_matrix_in_the_documents_is_the_measured_one(measured: Measured) -> None:
    page = (ROOT / "docs" / "explanation" / "verdicts.md").read_text(encoding="utf-8")
    assert measured[1] in page, "run: python -m tests.planted.measure, and paste its table"
