"""A fault and a metric may be given as objects."""

from dataclasses import dataclass

import pytest

import chaoslab as lab
from chaoslab.analysis.metric import Measured
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


@dataclass
class Exact:
    """A metric in the form of DeepEval's."""

    threshold: float = 0.5
    score: float | None = None
    reason: str | None = None

    def measure(self, test_case: Measured) -> float:
        assert (test_case.input, [call.name for call in test_case.tools_called]) == ("Go.", ["price"])
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.reason = f"{test_case.actual_output!r} and {test_case.expected_output!r}"
        return self.score


@dataclass
class Successful(Exact):
    def is_successful(self) -> bool:
        return True


class Raises:
    def measure(self, test_case: Measured) -> float:
        raise OSError(f"no key for {test_case.input}")


def test_a_metric_is_an_assertion() -> None:
    lab.check(lab.run(agent, "Go.", reads=[price]), Exact())
    wrong = lab.run(agent, "Go.", reads=[price], faults=[lab.inject(Doubled(), "price", calls=[1])])
    with pytest.raises(AssertionError, match=r"Exact: the score is 0\.0: 'It costs 6\.' and 'It costs 3\.'"):
        lab.check(wrong, Exact())
    lab.check(wrong, Successful())
    with pytest.raises(AssertionError, match="Raises raised OSError: no key for Go"):
        lab.check(wrong, Raises())
    with pytest.raises(TypeError, match=r"Exact is a class: give an object of it, as in Exact\(threshold=0\.7\)"):
        lab.check(wrong, Exact)


def test_a_metric_of_deepeval_gets_its_own_test_case() -> None:
    metrics = pytest.importorskip("deepeval.metrics")
    calm = lab.run(agent, "Go.", reads=[price])
    lab.check(calm, metrics.ExactMatchMetric(), metrics.PatternMatchMetric(pattern=r"It costs \d\."))
    with pytest.raises(AssertionError, match="PatternMatchMetric: the score is 0"):
        lab.check(calm, metrics.PatternMatchMetric(pattern="nothing"))
