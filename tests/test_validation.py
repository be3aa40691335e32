"""A Python user may state any value that Python can make.

It is told as a call's arguments are, or refused in one line.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.record.history import History

TEN_YEARS = f"it should be a number of seconds above 0, up to {SECONDS_MAX} (ten years)"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": value}
    return value


def within_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["in"] = value
    return value


def pay(amount: Any) -> str:
    return f"a {type(amount).__name__} is paid"


def paid(stated: Any, *, really: Any, logs: Path | None = None) -> lab.Trial:
    return lab.run(lambda _: pay(really), "Pay.", tools=[pay], effects=[{"effect": "pay", "amount": stated}], logs=logs)


@pytest.mark.parametrize(
    "amount",
    [nested(900), within_itself(), 10**5000, object, {"a", "b"}, (1, 2), {1: (2, 3)}, float("nan"), 3.5],
    ids=lambda value: type(value).__name__,
)
def test_a_stated_effect_of_any_value_is_met_by_a_call_with_that_value(amount: Any, tmp_path: Path) -> None:
    assert paid(amount, really=amount, logs=tmp_path).outcome == "correct"
    assert len(History.read(tmp_path / "latest").records) > 4
    assert paid(amount, really="another", logs=tmp_path).outcome != "correct"


def test_a_list_is_a_choice() -> None:
    assert paid([1, (2, 3)], really=1).outcome == "correct"
    assert paid([1, (2, 3)], really=(2, 3)).outcome == "correct"
    assert paid([1, (2, 3)], really=3).outcome != "correct"


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (lambda: paid("\ud800", really=1), "effects has {'effect': 'pay', 'amount': '\\ud800'} in it, with half a "
                                           "surrogate pair ('\\ud800')"),
        (lambda: paid({"\udfff": 1}, really=1), "in it, with half a surrogate pair ('\\udfff'): it should be text"),
        (lambda: lab.run(pay, "Pay.", facts=["paid \ud800"]), "facts has 'paid \\ud800' in it, with half a surrogate "
                                                              "pair ('\\ud800')"),
        (lambda: lab.run(pay, "Pay.", seed=10**5000),
         "seed is a value that Python cannot write: it should be a whole number"),
        (lambda: lab.run(pay, "Pay.", deadline_s=1e300), f"deadline_s is 1e+300: {TEN_YEARS}"),
        (lambda: lab.run(pay, "Pay.", timeout_s=1e300), f"timeout_s is 1e+300: {TEN_YEARS}"),
        (lambda: lab.run(pay, "Pay.", timeout_s=float("nan")), f"timeout_s is nan: {TEN_YEARS}"),
        (lambda: lab.inject("latency", "pay", delay_s=1e300),
         f"delay_s of latency is 1e+300: it should be a number from 0 to {SECONDS_MAX}"),
        (lambda: lab.inject("latency", "pay", jitter_s=10**400), f": it should be a number from 0 to {SECONDS_MAX}"),
        (lambda: lab.inject("latency", "pay", delay_s=float("nan")),
         "delay_s of latency is nan: it should be a number, 0 or more"),
        (lambda: lab.inject("budget", "pay", calls_max=10**400), "it should be a number from 0 to 1000000000000000"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_be_meant_is_one_line(mistake: Callable[[], Any], line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)) as told:
        mistake()
    assert "\n" not in str(told.value)


def test_who_sleeps_for_millennia_is_hung_at_the_deadline() -> None:
    def sleepy(_: str) -> None:
        time.sleep(1e12)

    trial = lab.run(sleepy, "Wait.", deadline_s=SECONDS_MAX, twin=False)
    assert (trial.outcome, trial.seconds) == ("hung", SECONDS_MAX)


def test_a_run_whose_trials_pass_the_calendars_end_is_written_down_all_the_same(tmp_path: Path) -> None:
    def sleepy(_: str) -> None:
        time.sleep(1e12)

    trials = 900
    list(lab.run_many(sleepy, "Wait.", trials=trials, deadline_s=SECONDS_MAX, effects=[], logs=tmp_path))
    history = History.read(tmp_path / "latest")
    assert len({record.trial for record in history.records} - {None}) == trials
    assert max(record.ts for record in history.records) == "9999-12-31T23:59:59.999999Z"
