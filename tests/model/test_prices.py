"""A known price is reckoned per million tokens; an unknown one is not nothing."""

import pytest

from chaoslab.model.prices import compute_cost_usd


def test_a_million_tokens_each_way_cost_the_listed_prices() -> None:
    assert compute_cost_usd("llama-3.3-70b-versatile", 1_000_000, 1_000_000) == pytest.approx(0.59 + 0.79)


def test_the_offline_model_is_known_to_be_free_and_a_strange_one_is_not() -> None:
    assert compute_cost_usd("chaoslab-offline", 10, 10) == 0.0
    assert compute_cost_usd("never-heard-of", 10, 10) is None
