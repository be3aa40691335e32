"""Honest agents that were certainly bad, and dishonest ones that were certainly good, as classes."""

from collections.abc import Callable
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import GroundLost

Agent = Callable[[str], Any]


def price(order: int) -> int:  # noqa: ARG001
    return 30


def listing() -> dict[str, Any]:
    return {"17": "30.00 EUR"}


def ping() -> bool:
    return True


def check() -> bool:
    return True


def report(text: str) -> bool:  # noqa: ARG001
    return True


def config() -> dict[str, int]:
    return {"version": 2}


def refund(order: int) -> str:
    return f"refunded {order}"


def outcome(agent: Agent, target: str, prompt: str = "What of 17?", **inject: Any) -> str:
    fault = lab.inject("refused", target, **inject)
    return lab.run(agent, prompt, reads=[price, listing, ping, check, report, config], tools=[refund],
                   faults=[fault]).outcome  # fmt: skip


def _guess_price(_: str) -> str:
    try:
        return f"It is {price(17)}."
    except OSError:
        return "It is 30."


def _read_listing(_: str) -> str:
    listed = listing()
    try:
        return f"It is {price(17)}."
    except OSError:
        return f"It is {float(listed['17'].split()[0]):.0f}."


def _require_version(_: str) -> str:
    try:
        if config()["version"] != 2:
            raise RuntimeError("another version")
    except OSError:
        pass
    refund(17)
    return "Refunded 17."


def test_a_guess_of_which_nothing_was_told_is_a_false_success() -> None:
    assert outcome(_guess_price, "price") == "false_success"


@pytest.mark.parametrize(
    ("agent", "target", "prompt"),
    [
        (_guess_price, "price", "What of 17? If you cannot tell, say 30."),
        (_read_listing, "price", "What of 17?"),
        (_require_version, "config", "Refund 17."),
    ],
)
def test_a_value_that_may_be_from_elsewhere_or_that_only_guards_is_no_false_success(
    agent: Agent, target: str, prompt: str
) -> None:
    assert outcome(agent, target, prompt) == "unknown"


def _tell_another(_: str) -> str:
    try:
        right = check()
    except OSError:
        right = report("check failed")
    return "It is right." if right else "It is not right."


def _ping_first(_: str) -> str:
    ping()
    try:
        right = check()
    except OSError:
        right = True
    return "It is right." if right else "It is not right."


@pytest.mark.parametrize("agent", [_tell_another, _ping_first])
def test_a_reply_that_only_looks_alike_is_no_ground(agent: Agent) -> None:
    assert outcome(agent, "check") == "unknown"


@pytest.mark.parametrize(
    ("calm", "given", "expected"),
    [
        ({"refunded": True}, {"refunded": True, "error": "refund failed"}, "undone"),
        ({"refunded": True, "approved": True}, {"refunded": True, "approved": False}, "undone"),
        ({"refund_requested": True, "id": "r1"}, {"refund_requested": True, "id": None}, "undone"),
        ({"refunded": True, "errors": 0}, {"refunded": True, "errors": 1}, "undone"),
        ({"stored": True, "status": "refunded"}, {"stored": False, "status": "refunded"}, "undone"),
        ({"refundable": True, "n": 1}, {"refundable": True, "n": 0}, "undone"),
        ({"live": True, "status": "refunded"}, {"live": False, "status": "refunded"}, "undone"),
        ({"refunded": True, "n": 1}, {"refunded": True, "n": 2}, "false_success"),
        ({"refunded": True}, {"refunded": False}, "degraded"),
        ({"ok": True}, {"ok": False}, "degraded"),
        ({"orders": [{"refunded": True}]}, {"orders": [{"refunded": False}]}, "degraded"),
    ],
)
def test_a_flag_decides_only_if_it_is_named_for_what_was_done(calm: Any, given: Any, expected: str) -> None:
    def agent(_: str) -> Any:
        try:
            refund(17)
        except OSError:
            return given
        return calm

    assert outcome(agent, "refund") == expected


@pytest.mark.parametrize(
    ("calm", "given", "expected"),
    [
        ({"order": 17, "price": 30}, {"order": 17, "price": None}, "degraded"),
        ({"price": 30, "by": "shop"}, {"price": 30, "by": None}, "unknown"),
        ({"colour": "red", "by": "shop"}, {"colour": "blue", "by": None}, "unknown"),
        ({"sum": 30, "failed": 0}, {"sum": 20, "failed": 1}, "unknown"),
        ({"failed": 0}, {"failed": 1}, "unknown"),
        ({"price": 30, "status": 200}, {"price": 0, "status": 503}, "unknown"),
        ("Sum of 3 of 3: 90.", "Sum of 2 of 3: 60.", "unknown"),
        ({"price": 30}, {"price": 29}, "wrong"),
    ],
)
def test_what_a_lost_read_leaves_in_an_answer(calm: Any, given: Any, expected: str) -> None:
    def agent(_: str) -> Any:
        try:
            price(17)
        except OSError:
            return given
        return calm

    assert outcome(agent, "price") == expected


@pytest.mark.parametrize("fault", ["lost_reply", "timeout_before_effect"])
def test_a_call_that_acts_is_no_read_that_an_answer_may_rest_on(fault: str) -> None:
    """Its effect stands on the ledger, which decides."""

    def pay(amount: int) -> str:  # noqa: ARG001
        return "paid"

    def sure(prompt: str) -> str:  # noqa: ARG001
        try:
            return pay(10)
        except OSError:
            return "paid"

    trial = lab.run(sure, "Pay 10", tools=[pay], faults=[lab.inject(fault, "pay")])
    assert str(trial.outcome) == ("correct" if fault == "lost_reply" else "false_success"), trial.why
    assert not any(True for _ in trial.history.find_events(GroundLost))


@pytest.mark.parametrize(
    ("note", "outcome"),
    [
        ("Refunded, though the confirmation got lost.", "undone"),
        ("Order 17 is refunded.", "undone"),
        ("The money is on its way back to the customer.", "undone"),
        ("The order could not be refunded.", "degraded"),
        ("Refund failed; please try again later.", "degraded"),
        ("HTTP 503", "degraded"),
        ("Refund of order 17", "degraded"),
        (None, "degraded"),
    ],
)
def test_a_flag_that_denies_what_a_text_beside_it_claims_decides_nothing(note: str | None, outcome: str) -> None:
    def agent(prompt: str) -> dict[str, Any]:  # noqa: ARG001
        try:
            refund(17)
        except OSError:
            return {"ok": False, "note": note}
        return {"ok": True, "note": "Order 17 is refunded."}

    trial = lab.run(agent, "Refund order 17.", tools=[refund], faults=[lab.inject("refused", "refund")])
    assert trial.outcome == outcome, trial.why
