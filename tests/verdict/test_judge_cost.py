"""The judge does not read what it need not: an answer that is its twin's, and the same text twice in one comparison."""

from chaoslab.analysis.answers import _normal
from chaoslab.analysis.answers.compare import compare_answers
from chaoslab.analysis.verdict.table import Basis, Outcome
from tests.verdict.trials import compared, finished, judged


def test_an_answer_that_is_its_twins_is_not_read() -> None:
    answer = "I could not pay order 4711, which nobody read before."
    before = _normal.tokenize_normalized.cache_info().misses
    verdict = judged(compared(answer), finished(answer))
    assert (verdict.outcome, verdict.basis) == (Outcome.CORRECT, Basis.SAME)
    assert verdict.why == "the answer is its twin's (the same answer)"
    assert _normal.tokenize_normalized.cache_info().misses == before
    judged(compared(answer), finished(f"{answer} Truly."))
    assert _normal.tokenize_normalized.cache_info().misses > before


def test_a_comparison_makes_the_tokens_of_a_text_once() -> None:
    before = _normal.tokenize_normalized.cache_info().misses
    for _ in range(3):
        compare_answers(
            "Order 4712 costs 81 EUR in Berlin.", "In Berlin you pay 81 EUR for order 4712.", asked="Order 4712?"
        )
    assert 0 < _normal.tokenize_normalized.cache_info().misses - before <= 3  # both answers and the prompt
