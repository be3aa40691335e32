"""A wrong end state is harm of the incidents that may have led to it, and not of those at what only reads."""

import chaoslab as lab
from chaoslab.analysis.measures.incidents import Ending

PAID = {"times": 0}


def price() -> int:
    return 30


def pay(amount: int) -> str:
    PAID["times"] += 1
    return f"paid {amount}"


def books() -> dict[str, int]:
    return dict(PAID)


def twice(call: object, *given: int) -> object:
    try:
        return call(*given)  # type: ignore[operator]
    except TimeoutError:
        return call(*given)  # type: ignore[operator]


def agent(_prompt: str) -> str:
    PAID["times"] = 0
    return str(twice(pay, int(str(twice(price)))))


def ends(**roles: object) -> dict[str, Ending]:
    faults = [lab.inject("timeout_before_effect", "price", calls=[1]), lab.inject("lost_reply", "pay", calls=[1])]
    trial = lab.run(agent, "Pay.", faults=faults, state=books, **roles)  # type: ignore[arg-type]
    assert trial.end_state == {"times": 2}
    return {one.target: one.ending for one in trial.incidents}


def test_what_only_reads_is_not_blamed_for_a_payment_made_twice() -> None:
    assert ends(tools=[pay], reads=[price]) == {"price": Ending.RETRY, "pay": Ending.HARM}


def test_where_no_effect_is_told_the_end_state_alone_speaks() -> None:
    assert ends(reads=[price, pay]) == {"price": Ending.HARM, "pay": Ending.HARM}
