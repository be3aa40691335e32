"""Assertions are found by name, state what they saw, and name the lines of the log."""

import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import Assertion, ByFunction, FinishedTrial, Miss, load
from chaoslab.base.registry import names
from tests.sure import sure


def price(item: str) -> int:  # noqa: ARG001
    return 4


def twice(prompt: str) -> str:
    price(prompt)
    return f"It costs {price(prompt)}."


def seen() -> FinishedTrial:
    trial = lab.run(twice, "tea", reads=[price])
    return FinishedTrial(trial.history, trial.key, trial.verdict)


def test_an_assertion_is_found_by_name_and_spelt_as_it_was_stated() -> None:
    assert str(lab.expect.max_calls(5)) == "max_calls(calls=5)"
    assert str(lab.expect.max_calls(5, tool="get_*")) == "max_calls(calls=5, tool='get_*')"
    assert "max_calls" in dir(lab.expect)
    with pytest.raises(AttributeError, match="did you mean 'max_calls'"):
        _ = lab.expect.max_cals


def test_a_function_that_raises_is_named_with_the_line_that_did() -> None:
    def inner() -> None:
        raise AssertionError

    def holds(_: object) -> bool:
        inner()
        return True

    missed = sure(ByFunction(holds).check(seen()))
    assert missed.text == f"AssertionError at test_assertion.py:{inner.__code__.co_firstlineno + 1}"


def test_a_miss_names_its_lines() -> None:
    found = seen()
    assert lab.expect.max_calls(2).check(found) is None
    missed = sure(lab.expect.max_calls(1, tool="price").check(found))
    assert missed.text == "2 calls of price, at most 1 were allowed"
    (line,) = [record for record in found.history.records if record.seq == missed.lines[0][1]]
    assert (line.writer, line.event.kind) == ("info", "call_started")
    assert Miss("x", (("info", 1), ("messaging", 2), ("info", 3))).where == "info.log 1, 3; messaging.log 2"


@pytest.mark.parametrize("name", names("analysis.assertions"))
def test_every_assertion_tells_of_itself(name: str) -> None:
    found = load(name)
    assert issubclass(found, Assertion)
    assert (found.__doc__ or "").strip()
    assert found.check is not Assertion.check
