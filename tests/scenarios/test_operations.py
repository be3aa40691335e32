"""Operations: calls of tools without an agent, faulted and judged as an agent's calls are."""

import signal

import pytest

import chaoslab as lab
from chaoslab.core.events import TurnStarted
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.located import ScenarioError
from tests.scenarios.shop_parts import BOOK, refund, state

READ: list[int] = []


async def book(order: int) -> dict[str, int]:
    return {"order": order, "times": BOOK.get(order, 0)}


def cleared() -> str:
    BOOK.clear()
    return "cleared"


def steps() -> ScenarioBuilder:
    made = lab.scenario("steps").tools(refund, cleared).reads(book).state(state).set(trials=2)
    return made.call("cleared").call("refund", {"order": 17}).call("book", {"order": 17}, after="2h")


def test_calls_are_turns_and_time_passes_between_them() -> None:
    (result,) = steps().run()
    trial = result.rulings[0].trial
    assert (str(result.state), trial.answer) == ("passed", 'cleared\nrefunded\n{"order": 17, "times": 1}')
    assert [event.prompt for _, event in trial.history.find_events(TurnStarted)] == [
        "cleared()", "refund(order=17)", "book(order=17)"
    ]  # fmt: skip
    assert trial.seconds == 7200.0


def test_a_call_that_fails_is_judged_and_the_next_is_made() -> None:
    (result,) = steps().fault("refused", "refund", calls=[1]).run()
    trial = result.rulings[0].trial
    assert trial.answer.splitlines()[1].startswith("I could not complete refund: ")
    assert trial.answer.splitlines()[2] == '{"order": 17, "times": 0}'
    assert result.met == 2
    (lost,) = steps().fault("lost_reply", "refund", calls=[1]).run()
    assert lost.rulings[0].trial.end_state == {"17": 1}


def test_an_operation_that_fails_has_failed_and_one_that_is_late_has_not() -> None:
    (failed,) = steps().fault("tool_error", "book", calls=[1]).run()
    assert str(failed.state) == "failed"
    assert failed.rulings[0].why.startswith("operation 3 failed: book: ")
    accepting = steps().set(accept=["correct", "degraded", "failed"])
    (accepted,) = accepting.fault("tool_error", "book", calls=[1]).run()
    assert str(accepted.state) == "invalid", "its trial is unknown, which no scenario can accept"
    (late,) = steps().fault("latency", "refund", delay_s=3.0, calls=[1]).run()
    assert (str(late.state), late.met) == ("passed", 2)


def test_one_operation_alone_fails_too() -> None:
    made = lab.scenario("one").reads(book).set(trials=2).call("book", {"order": 17})
    (alone,) = made.fault("refused", "book").run()
    assert [str(ruling.state) for ruling in alone.rulings] == ["failed", "failed"]


def test_a_call_has_assertions_of_its_own() -> None:
    made = lab.scenario("once").tools(refund).set(trials=1, accept=["correct", "degraded"])
    made = made.call("refund", {"order": 1}, expect=[lab.expect.answer_contains("refunded")])
    assert made.test().passed
    (result,) = made.call("refund", {"order": 1}, expect=[{"answer_contains": "twice"}]).run()
    (missed,) = result.rulings[0].missed
    assert missed.turn == 2


def test_wrong_arguments_are_the_call_s_failure() -> None:
    made = lab.scenario("x").tools(refund).set(trials=1).call("refund", {"ordr": 1})
    with pytest.raises(ScenarioError, match="I could not complete refund: TypeError"):
        made.run()
    (result,) = made.set(anyway=True).run()
    assert "unexpected keyword argument 'ordr'" in result.rulings[0].trial.answer


def test_ctrl_c_within_an_operation_is_the_users() -> None:
    def wait() -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.scenario("x").reads(wait).set(trials=1, world="local", anyway=True).call("wait").run()
    finally:
        signal.signal(signal.SIGINT, before)
