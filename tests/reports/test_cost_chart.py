"""The chart of the cost of chaos: the sums of the measure, and no figure where nothing can be compared."""

from dataclasses import replace
from fractions import Fraction

from matplotlib.patches import Rectangle

from chaoslab.analysis.measures.cost import Costs, Spending
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import Section
from chaoslab.record.history import History
from chaoslab.reports.charts.cost_of_chaos import cost_of_chaos
from chaoslab.reports.contents._of_calls import _amounts
from chaoslab.reports.contents._spent import SEVERAL, added, amount, apart
from chaoslab.reports.frames import Frames
from tests.reports.test_charts import check_legible, said

NONE = Spending()


def spending(trials: int, **amounts: float | None) -> Spending:
    known = {name: None if value is None else Fraction(value) for name, value in amounts.items()}
    return Spending(trials=trials, **known)


def report(costs: Costs | None) -> RunReport:
    return replace(RunReport.of(History([])), costs=Section(costs), met={"p1.r1": 1}, knows_faults=True)


def of(no_fault: Spending, shared: Spending = NONE, no_comparison: Spending = NONE, **faults: Spending) -> RunReport:
    return report(Costs(faults, shared, NONE, no_fault, no_comparison, NONE, NONE))


def test_each_fault_has_a_bar_as_long_as_its_sum_dearest_first_and_several_at_once_last() -> None:
    run = of(
        spending(9, seconds=10, calls=20),
        spending(1, seconds=99, calls=3),
        spending(2, seconds=50),
        latency=spending(3, seconds=1.5),
        timeout=spending(2, seconds=4, calls=2),
        cut=spending(1, seconds=-0.5, calls=-1),
    )
    (axes,) = (figure := cost_of_chaos(Frames(History([]), run))).axes
    assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == [4, 1.5, -0.5, 99]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "timeout (2)", "latency (3)", "cut (1)", f"{SEVERAL} (1)",
    ]  # fmt: skip
    assert [text.get_text() for text in axes.texts] == ["+2 calls", "+0 calls", "-1 calls", "+3 calls"]
    low, high = axes.get_xlim()
    assert low < -0.5
    assert high > 99
    assert "2 trials cannot be compared" in said(figure)
    check_legible(figure)


def test_an_amount_that_nothing_can_be_compared_by_has_no_figure() -> None:
    calm = spending(4, calls=7, seconds=3)  # of trials without a fault, which may be of other prompts
    run = of(calm, no_comparison=spending(0, tokens=300), latency=spending(3, calls=1))
    (row,) = added(run)
    assert row.amounts == {"calls": 1.0}
    assert apart(run) == ""
    other = of(calm, latency=spending(3, calls=1, tokens=None), cut=spending(1, calls=None), jitter=spending(1))
    assert [(row.fault, row.amounts) for row in added(other)] == [("latency", {"calls": 1.0}), ("jitter", {"calls": 0})]
    (axes,) = cost_of_chaos(Frames(History([]), run)).axes
    assert axes.get_xlabel().startswith("added calls (sum")


def test_without_a_comparison_the_chart_says_so() -> None:
    runs = {
        "no data: no trial of the same prompt": of(NONE, no_comparison=spending(3), latency=spending(3)),
        "no more was spent than without faults; 1 trial cannot": of(
            NONE, no_comparison=spending(1), latency=spending(3)
        ),
        "no more was spent than without faults": of(NONE, latency=spending(3)),
        "no data": report(None),
    }
    for reason, run in runs.items():
        assert added(run) == ()
        assert reason in said(cost_of_chaos(Frames(History([]), run)))


def test_an_amount_next_to_nothing_is_not_negative() -> None:
    assert [amount(name, -0.0000004) for name in ("seconds", "usd")] == ["+0.00 s", "+0.000000 USD"]
    cells = _amounts(spending(1, usd=-0.0000004, seconds=-0.0000004), (), "+")
    assert (cells[2], cells[-1]) == ("+0.000000", "+0.00")


def test_a_small_time_is_not_nothing() -> None:
    assert _amounts(spending(1, seconds=-0.0004), (), "+")[-1] == "-0.4 ms"
    assert _amounts(spending(1, seconds=0.00002), ())[-1] == "20 µs"


def test_the_cost_of_one_answer_of_a_cheap_model_is_not_nothing() -> None:
    assert amount("usd", 0.000023) == "+0.000023 USD"
    assert _amounts(spending(1, usd=-0.000023), (), "+")[2] == "-0.000023"


def test_amounts_have_their_sign_and_unit() -> None:
    said = [amount(name, value) for name, value in (("seconds", -0.5), ("calls", 3), ("tokens", 1234), ("usd", 0.01))]
    assert said == ["-0.50 s", "+3 calls", "+1,234 tokens", "+0.010000 USD"]
