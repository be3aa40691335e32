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
    """One trial: its label by the ground truth, the judge's outcome, what was planted, what was stated, what decided,
    and a line on it."""

    true: str
    outcome: str
    planted: str
    category: str
    stated: str
    basis: str
    side: str
    line: str


MEASURED = """
import json
from tests.planted.measure import SHARE, STATED, by_basis, by_stated, measured, rows

all_of = [each for stated in STATED for each in measured(stated, 1, SHARE)]
print(json.dumps([rows(all_of), by_basis(all_of), by_stated(all_of)]))
"""


@pytest.fixture(scope="module")
def measured() -> tuple[list[Judged], str, str]:
    """The trials and their tables, from a process of its own: what pytest holds would be searched for each trial."""
    command = [sys.executable, "-c", MEASURED]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    rows, *tables = json.loads(said)
    return [Judged(*row) for row in rows], tables[0], tables[1]


@pytest.fixture
def judged(measured: tuple[list[Judged], str, str]) -> list[Judged]:
    return measured[0]


def test_the_labels_are_the_planted_ones_and_cover_each_category(judged: list[Judged]) -> None:
    assert len(judged) >= 800
    assert [each.planted for each in judged] == [each.true for each in judged]
    assert {each.category for each in judged} >= set(CATEGORIES)


def test_no_verdict_is_false(judged: list[Judged]) -> None:
    assert not [each.line for each in judged if each.side not in ("right", "open")]
    assert sum(each.side == "right" for each in judged) > 500


@pytest.mark.parametrize("label", ["harm", "failed", "hung"])
def test_what_the_ledger_and_the_end_decide_is_always_found(judged: list[Judged], label: str) -> None:
    found = Counter(each.outcome for each in judged if each.true == label)
    assert found[label] == found.total() > 0, found


@pytest.mark.parametrize(
    ("less", "more"),
    [("nothing", "facts"), ("nothing", "says"), ("says", "facts and says"), ("facts", "facts and says")],
)
def test_who_states_more_leaves_no_trial_open_that_was_decided(judged: list[Judged], less: str, more: str) -> None:
    pairs = zip(*([each for each in judged if each.stated == stated] for stated in (less, more)), strict=True)
    assert not [other.line for one, other in pairs if one.side != "open" and other.side == "open"]
    left = Counter(each.stated for each in judged if each.side == "open")
    assert left[less] >= left[more] > left["judge"] == 0


def test_what_is_left_undone_is_open_or_told_by_something_certain(judged: list[Judged]) -> None:
    undone = [each for each in judged if each.outcome == "undone"]
    assert undone
    assert {each.basis for each in undone} <= {"none", "says"}
    assert {each.true for each in undone} == {"degraded", "false_success"}


def test_the_tables_in_the_documents_are_the_measured_ones(measured: tuple[list[Judged], str, str]) -> None:
    page = (ROOT / "docs" / "explanation" / "verdicts.md").read_text(encoding="utf-8")
    for table in measured[1:]:
        assert table in page, "run: python -m tests.planted.measure, and paste its tables"
