"""pass^k, pass@k and consistency, against values worked out by hand and by counting."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.consistency import consistency
from tests.sure import sure


def test_values_worked_out_by_hand() -> None:
    found = sure(consistency({"1": [True, True, True, False], "2": [False, True, False, False]}))
    assert (found.prompts, found.trials) == (2, 4)
    assert found.all_pass == pytest.approx({1: 0.5, 2: (3 / 6 + 0) / 2, 3: (1 / 4 + 0) / 2, 4: 0})
    assert found.one_passes == pytest.approx({1: 0.5, 2: (1 + 3 / 6) / 2, 3: (1 + 3 / 4) / 2, 4: 1})
    assert found.consistency == pytest.approx(((2 * 0.75 - 1) ** 2 + (2 * 0.25 - 1) ** 2) / 2)


@given(st.lists(st.booleans(), min_size=2, max_size=7))
def test_they_are_the_shares_of_all_choices_of_k_trials(trials: list[bool]) -> None:
    found = sure(consistency({"1": trials}))
    for k in found.all_pass:
        chosen = list(combinations(trials, k))
        assert found.all_pass[k] == pytest.approx(sum(map(all, chosen)) / len(chosen))
        assert found.one_passes[k] == pytest.approx(sum(map(any, chosen)) / len(chosen))


def test_alike_is_1_and_half_is_0() -> None:
    for trials, alike in (([True] * 4, 1), ([False] * 4, 1), ([True, False] * 2, 0)):
        assert sure(consistency({"1": trials})).consistency == alike


@pytest.mark.parametrize("passed", [{}, {"1": []}, {"1": [True]}, {"1": [True], "2": [False]}])
def test_one_trial_of_a_prompt_says_nothing(passed: dict[str, list[bool]]) -> None:
    assert consistency(passed) is None


def test_a_prompt_with_one_trial_is_left_out_and_k_goes_as_far_as_the_fewest() -> None:
    found = sure(consistency({"1": [True] * 20, "2": [True, False, True], "3": [True]}))
    assert (found.prompts, found.trials, list(found.all_pass)) == (2, 3, [1, 2, 3])
    assert list(sure(consistency({"1": [True] * 20})).all_pass) == list(range(1, 9))
