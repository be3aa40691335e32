"""The cost of chaos: the rows of the faults and the others add up to the ledger exactly."""

import math
import time
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.analysis.measures.cost import Costs, Spending, compute_fault_costs
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.core.events import AttemptRef, CallStarted, Event, FaultWitnessed, PromptFinished, PromptStarted, Usage
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents._parts import build_sections
from tests.measure_parts import usage
from tests.sure import sure

FAULTS = ("latency", "lost_reply", "timeout")


def log(
    *trials: tuple[set[str], list[tuple[int, float | None]], float],
    twin_s: float | None = None,
    outside_usd: float | None = 0.1,
) -> History:
    """A log of trials of one prompt: the faults met, the tokens and dollars of each answer, and the duration."""
    records: list[Record] = []

    def add(trial: str | None, event: Event) -> None:
        n = len(records) + 1
        records.append(Record(ts="2026-06-01T09:00:00Z", t=n, run="r", trial=trial, writer="lab", seq=n, event=event))

    for number, (faults, answers, duration_s) in enumerate(trials, 1):
        trial = f"p1.r{number}"
        add(trial, PromptStarted(prompt_index=1, prompt="x", twin_s=twin_s))
        for request, (tokens, usd) in enumerate(answers, 1):
            at = AttemptRef(trial=trial, target="model", request=request, attempt=1, request_id="")
            add(trial, CallStarted(at=at, tool="POST /chat"))
            add(trial, Usage(model="m", request=request, prompt_tokens=tokens, completion_tokens=1, cost_usd=usd))
        for fault in sorted(faults):
            at = AttemptRef(trial=trial, target="model", request=1, attempt=1, request_id="")
            add(trial, FaultWitnessed(at=at, fault=fault, injection=fault))
        add(
            trial, PromptFinished(prompt_index=1, prompt="x", status="ok", answer="", attempts=1, duration_s=duration_s)
        )
    add(None, Usage(model="m", request=1, prompt_tokens=5, completion_tokens=2, cost_usd=outside_usd))
    return History(records)


def costs(history: History, outcomes: dict[str, str]) -> Costs | None:
    return compute_fault_costs(TrialTable.from_history(history, outcomes))


def rows(found: Costs) -> list[Spending]:
    others = [found.shared, found.matched, found.no_fault, found.no_comparison, found.outside]
    return [*found.by_fault.values(), *others]


def floats(row: Spending) -> list[float]:
    return [float(getattr(row, field.name)) for field in fields(Spending)]


def test_values_worked_out_by_hand() -> None:
    calm: list[tuple[set[str], list[tuple[int, float | None]], float]] = [
        (set(), [(99, 0.5)], 2.0),
        (set(), [(99, 0.5)], 4.0),
    ]
    found = sure(costs(log(*calm, ({"timeout"}, [(99, 0.5), (59, 0.25)], 10.0), ({"timeout", "latency"}, [], 1.0)), {}))
    assert found.by_fault == {
        "timeout": Spending(1, Fraction(60), Fraction(1, 4), Fraction(1), Fraction(0), Fraction(7))
    }
    assert found.shared == Spending(1, Fraction(-100), Fraction(-1, 2), Fraction(-1), Fraction(0), Fraction(-2))
    assert floats(found.no_fault) == floats(found.matched) == [2, 200, 1, 2, 0, 6]
    assert floats(found.outside) == [0, 7, 0.1, 0, 0, 0]
    assert floats(found.total) == [4, 367, pytest.approx(1.85), 4, 0, 17]


def test_one_fault_at_two_targets_is_not_shared() -> None:
    one = log(({"timeout"}, [(99, 0.5)], 10.0), twin_s=4.0)
    met = next(record for record in one.records if isinstance(record.event, FaultWitnessed))
    at = AttemptRef(trial="p1.r1", target="search", request=1, attempt=1, request_id="")
    more = replace(met, seq=99, event=FaultWitnessed(at=at, fault="timeout", injection="timeout"))
    found = sure(costs(History([*one.records, more]), {}))
    assert found.by_fault["timeout"].seconds == Fraction(6)
    assert found.shared == Spending()


ANSWERS = st.lists(
    st.tuples(st.integers(0, 10**6), st.none() | st.floats(0, 9, allow_subnormal=False)), max_size=3
)  # fmt: skip
TRIALS = st.lists(st.tuples(st.sets(st.sampled_from(FAULTS)), ANSWERS, st.floats(0, 1e4)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(
    TRIALS,
    st.none() | st.floats(0, 100),
    st.lists(st.sampled_from(["correct", "hung", "wrong"]), min_size=6, max_size=6),
)
def test_the_rows_add_up_to_the_ledger_exactly(
    trials: list[tuple[set[str], list[tuple[int, float | None]], float]], twin_s: float | None, ends: list[str]
) -> None:
    history = log(*trials, twin_s=twin_s)
    found = costs(history, {f"p1.r{n}": end for n, end in enumerate(ends, 1)})
    if not any(faults for faults, _, _ in trials):
        assert found is None
        return
    assert found is not None
    for unit in fields(Spending):
        if unit.name != "trials":
            assert sum(getattr(row, unit.name) or 0 for row in rows(found)) == getattr(found.total, unit.name)
    spent = sure(usage(history))
    assert found.total.tokens == spent.prompt_tokens + spent.completion_tokens
    assert float(found.total.usd or 0) == spent.cost_usd
    assert float(found.total.seconds or 0) == math.fsum(s for _, _, s in trials)


def price(*, item: str) -> int:
    return len(item)


def patient(_prompt: str) -> str:
    for _ in range(2):
        try:
            return f"It costs {price(item='pen')}."
        except Exception:  # noqa: BLE001
            time.sleep(3)
    return "I could not find the price."


def test_a_real_run_is_compared_with_its_twin() -> None:
    trial = lab.run(patient, "x", reads=[price], faults=[lab.inject("server_error", "price", calls=[1])])
    found = sure(costs(trial.history, {}))
    cost = found.by_fault["server_error"]
    assert (cost.tokens, cost.usd) == (None, None), "a twin's tokens are not in the log"
    assert cost.seconds == pytest.approx(Fraction(3))
    assert cost == Spending(1, None, None, Fraction(1), Fraction(0), cost.seconds)
    assert found.matched == replace(found.matched, tokens=None, usd=None, calls=Fraction(1))
    assert found.total.calls == 2
    assert found.no_fault == Spending()
    assert floats(found.no_comparison) == [0, 0, 0, 0, 0, 0]


def test_a_trial_with_nothing_to_compare_it_with_adds_no_amount_to_its_fault() -> None:
    found = sure(costs(log(({"timeout"}, [(99, 0.5)], 10.0)), {}))
    assert found.by_fault == {"timeout": Spending(1, None, None, None, None, None)}
    assert found.matched == Spending(0, None, None, None, None, None)
    assert floats(found.no_comparison) == [1, 100, 0.5, 1, 0, 10]


def spent(history: History) -> list[list[str]]:
    """The rows of the report's table."""
    (part,) = (part for part in build_sections(RunReport.from_history(history)) if part.title == "Cost")
    (table,) = (table for table in part.tables if table.caption.startswith("Cost of chaos"))
    return table.cell_texts


def test_each_row_of_the_table_tells_of_its_own_trials_and_no_data_is_no_zero() -> None:
    trial = lab.run(patient, "x", reads=[price], faults=[lab.inject("server_error", "price", calls=[1])])
    assert spent(trial.history) == [
        ["server_error", "1", "–", "–", "+1", "+0", "+3.00"],
        ["the same trials without faults", "1", "–", "–", "1", "0", "0.00"],
        ["all", "1", "–", "–", "2", "0", "3.00"],
    ]
    assert spent(log((set(), [(9, None)], 2.0), ({"timeout"}, [(9, None)], 5.0), outside_usd=None)) == [
        ["timeout", "1", "+0", "–", "+0", "+0", "+3.00"],
        ["the same trials without faults", "1", "10", "–", "1", "0", "2.00"],
        ["trials that met no fault", "1", "10", "–", "1", "0", "2.00"],
        ["outside of trials", "–", "7", "–", "0", "0", "0.00"],
        ["all", "2", "27", "–", "2", "0", "7.00"],
    ]
