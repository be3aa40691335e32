"""A fault may be given as an object."""

from dataclasses import dataclass

import pytest

import chaoslab as lab
from chaoslab.core.inject import inject
from chaoslab.faults.tool.lost_reply import LostReply
from chaoslab.plugins import Call, Fault, Flow, TrialContext


@dataclass(frozen=True)
class Doubled(Fault):
    layer = "tool"
    corrupts = "reply"
    times: int = 2

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        reply = yield call
        return reply.with_value(reply.value * self.times)


def price(order: int) -> int:  # noqa: ARG001
    return 3


def agent(prompt: str) -> str:  # noqa: ARG001
    return f"It costs {price(17)}."


def test_a_fault_of_ones_own_is_an_object() -> None:
    trial = lab.run(agent, "Go.", reads=[price], faults=[lab.inject(Doubled(3), "price", calls=[1])])
    assert (trial.answer, str(trial.outcome)) == ("It costs 9.", "wrong")
    assert "fault    price 1.1 doubled: 3 → 9 – witnessed" in trial.story()


def test_an_object_is_the_same_as_its_name() -> None:
    assert inject(LostReply(), "price", chance=0.5) == inject("lost_reply", "price", chance=0.5)


def test_an_object_that_cannot_be_used_is_refused() -> None:
    @dataclass(frozen=True)
    class Latency(Doubled):
        pass

    class Plain(Fault):
        pass

    with pytest.raises(ValueError, match="there is a fault 'latency' already: give the class Latency another name"):
        inject(Latency(), "price")
    with pytest.raises(LookupError, match="'plain' cannot be used: it is no dataclass"):
        inject(Plain(), "price")
    with pytest.raises(TypeError, match=r"Doubled\(…\) has its parameters already, and times is given"):
        inject(Doubled(), "price", times=3)
    with pytest.raises(ValueError, match="times of doubled is 'x': it should be a whole number"):
        inject(Doubled("x"), "price")  # type: ignore[arg-type]


def test_a_metric_of_another_library_is_refused_in_a_line_that_says_how_to_call_it() -> None:
    class Exact:
        def measure(self, test_case: object) -> float:  # noqa: ARG002
            return 1.0

    for metric in (Exact, Exact()):
        with pytest.raises(TypeError, match="call it in a function of the trial"):
            lab.check(lab.run(agent, "Go.", reads=[price]), metric)
