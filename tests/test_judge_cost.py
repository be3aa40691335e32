"""The judge does not read what it need not: an answer that is its twin's, and the same text twice in one comparison."""

from __future__ import annotations

import importlib

import pytest

from chaoslab.analysis import opposites
from chaoslab.analysis.answers import values
from chaoslab.analysis.answers.compare import compare
from chaoslab.analysis.verdict.judge import judge
from chaoslab.analysis.verdict.table import Outcome
from tests.test_judge import TRIAL, compared, finished, history

CLAUSES = importlib.import_module("chaoslab.analysis.stance.clauses")


def read() -> int:
    """The number of texts whose clauses were made so far."""
    return int(CLAUSES._clauses.cache_info().misses)


@pytest.mark.parametrize("answer", ["I could not pay order 4711, which nobody read before.", "Paid order 4711 anew."])
def test_an_answer_that_is_its_twins_is_not_read(answer: str) -> None:
    before = read()
    verdict = judge(history(compared(answer), finished(answer)), TRIAL)
    assert (verdict.outcome, verdict.why) == (Outcome.CORRECT, "the answer is its twin's (the same answer)")
    assert read() == before
    judge(history(compared(answer), finished(f"{answer} Truly.")), TRIAL)
    assert read() > before


def test_a_comparison_makes_the_tokens_of_a_text_once() -> None:
    before = values._kept.cache_info()
    compare("Order 4712 costs 81 EUR in Berlin.", "In Berlin you pay 81 EUR for order 4712.", asked="Order 4712?")
    after = values._kept.cache_info()
    assert after.hits - before.hits > after.misses - before.misses > 0


def test_a_word_with_an_opposite_is_tried_by_its_first_letter_alone() -> None:
    """Each group of words stands under every letter with which one of them begins."""
    found = {word.text for word in opposites.words_with_opposites("paid back 5, back to you, it went up 3 days ago")}
    assert found == {"paid back", "back to", "went up", "days ago"}
    assert opposites.one_word_each("It Rose by 5, went UP by 3") == opposites.one_word_each(
        "It grew by 5, climbed by 3"
    )
    groups = sum(len(excluding) for excluding in opposites._EXCLUDING)
    assert max(map(len, opposites._ANY.values())) < groups / 3


def test_a_letter_that_only_looks_like_one_in_another_case_begins_no_word() -> None:
    assert opposites.words_with_opposites("\u0131ncome, \u0130ncome, \u017fold") == []
