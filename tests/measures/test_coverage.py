"""Fault coverage: each planned pair of target and fault, and how far it came."""

from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.measures._coverage import Coverage, Reach
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.record.history import History
from tests.sure import sure


def price(*, item: str) -> int:
    return len(item)


def stock() -> None:
    return None


def refund() -> str:
    return "refunded"


def agent(_prompt: str) -> str:
    try:
        stock()
    except Exception:  # noqa: BLE001
        return f"It costs {price(item='pen')}, and I could not look into the stock."
    try:
        return f"It costs {price(item='pen')}."
    except Exception:  # noqa: BLE001
        return "I could not find the price."


def coverage(history: History) -> Coverage | None:
    return RunReport.of(history).coverage.value


def covered(folder: Path, *faults: Any) -> Coverage | None:
    lab.run(agent, "x", reads=[price, stock], tools=[refund], faults=faults, logs=folder)
    return coverage(History.read(folder / "latest"))


@pytest.mark.filterwarnings("ignore:'wrong_value on stock' changed nothing")
def test_each_pair_has_its_stage(tmp_path: Path) -> None:
    found = sure(covered(
        tmp_path, lab.inject("tool_error", "price"), lab.inject("wrong_value", "stock"),
        lab.inject("lost_reply", "refund"), lab.inject("latency", "stock", chance=1e-9),
    ))  # fmt: skip
    assert {(pair.target, pair.fault): pair.reach for pair in found.pairs} == {
        ("price", "tool_error"): Reach.WITNESSED,
        ("stock", "wrong_value"): Reach.NOT_MET,
        ("refund", "lost_reply"): Reach.NOT_CALLED,
        ("stock", "latency"): Reach.NOT_DRAWN,
    }
    assert (found.witnessed, found.bare) == (1, ())
    first = next(pair for pair in found.pairs if pair.fault == "tool_error")
    assert (first.eligible, first.scheduled, first.armed, first.witnessed) == (1, 1, 0, 1)


def test_a_pattern_plans_for_each_called_target_and_a_target_without_a_plan_is_bare(tmp_path: Path) -> None:
    every = sure(covered(tmp_path / "a", lab.inject("tool_error", "*")))
    assert [(pair.target, pair.fault) for pair in every.pairs] == [("price", "tool_error"), ("stock", "tool_error")]
    none = sure(covered(tmp_path / "c", lab.inject("tool_error", "price"), lab.inject("latency", "re*")))
    assert [(pair.target, pair.fault) for pair in none.pairs] == [("price", "tool_error")]
    assert sure(covered(tmp_path / "b", lab.inject("tool_error", "price"))).bare == ("stock",)


def test_without_a_fault_there_is_none(tmp_path: Path) -> None:
    assert covered(tmp_path) is None
    assert coverage(History([])) is None
