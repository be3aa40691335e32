"""The ids and links in the answer lead nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.nonexistent_reference import NonexistentReference
from tests.faults.fault_parts import CALL
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, keeps_the_laws, leaves_others_alone, refuses, told


def test_ids_links_and_numbers_of_records_are_others_and_the_rest_is_true() -> None:
    got = told(NonexistentReference(severity=0.0), ORDERS)
    changed = {
        key for one, true in zip(got["orders"], ORDERS["orders"], strict=True) for key in true if one[key] != true[key]
    }
    assert changed == {"id", "number"}
    assert {key for key in ORDERS if got[key] != ORDERS[key]} == {"orders", "next"}
    assert got["next"].startswith("https://shop.example.org/orders?page=")
    assert told(NonexistentReference(severity=1.0), ORDERS)["next"].startswith("https://www.invalid/")


def test_a_number_that_repeats_an_argument_is_a_reference_and_the_same_one_everywhere() -> None:
    call = replace(CALL, value={"order": 17})
    got = told(NonexistentReference(severity=0.0), {"order": 17, "paid": 30, "items": [{"order": 17}]}, call=call)
    assert got["order"] == got["items"][0]["order"] != 17
    assert got["paid"] == 30


def test_a_link_in_a_text_is_one() -> None:
    got = told(NonexistentReference(severity=1.0), "See https://example.org/help, please.")
    assert got.startswith("See https://www.invalid/")
    assert got.endswith(" please.")


def test_an_answer_without_references_passes() -> None:
    assert told(NonexistentReference(), {"temp": 20.5, "sky": "clear"}) == {"temp": 20.5, "sky": "clear"}


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(NonexistentReference().draw(Dice(seed)), value)
    assert injected or value not in ("ord_17", "https://a.example/b")


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(NonexistentReference())


@pytest.mark.parametrize(
    ("params", "line"),
    [({"severity": 2}, "severity of nonexistent_reference is 2: it should be a number from -1 to 1")],
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("nonexistent_reference", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({NonexistentReference().draw(Dice(seed)) for seed in range(9)}) > 1
