"""A scenario proves nothing if too many of its trials are invalid. Unknown trials are told, and are not fatal."""

import re
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.scenarios.tell import result_to_json
from chaoslab.surfaces.pytest_plugin import Chaos

SAYS = {"*": {"undone": "could not"}}
SOMETIMES = lab.inject("timeout_before_effect", "first", chance=0.04)
MUST = lab.inject("latency", "second", calls=[1], delay_s=1)


def first() -> int:
    return 17


def second() -> int:
    return 18


def noted(order: int) -> str:
    return f"page {order}"


def evasive(_: str) -> str:
    try:
        return f"The stock is {first()}."
    except TimeoutError:
        return "The harbour lay under a grey sky."


def gives_up(_: str) -> str:
    try:
        return f"The stock is {first() + second()}."
    except TimeoutError:
        return "I could not find out what the stock is."


def asked(agent: Any, *faults: lab.Injection, **keys: Any) -> Any:
    made = lab.scenario("stock").agent(agent).reads(first, second).ask("What is the stock?").set(says=SAYS, **keys)
    for fault in faults:
        made = made.fault(fault)
    return made


def result(agent: Any, *faults: lab.Injection, **keys: Any) -> Any:
    (found,) = asked(agent, *faults, trials=100, **keys).run()
    return found


def test_unknown_trials_are_told_and_not_fatal() -> None:
    found = result(evasive, SOMETIMES)
    unknown = sum(ruling.trial.outcome is lab.Outcome.UNKNOWN for ruling in found.rulings)
    assert unknown
    data = result_to_json(found)
    assert (data["state"], data["passed"], data["open"], data["why"]) == ("passed", 100 - unknown, unknown, "")
    assert data["open_as"] == {"unknown": unknown}


def test_work_left_undone_of_which_no_word_tells_proves_nothing_although_an_assertion_holds() -> None:
    def agent(_: str) -> str:
        return f"Order 17: {noted(17)}"

    made = lab.scenario("note").agent(agent).tools(noted).ask("Note order 17.").set(trials=20)
    (found,) = made.fault("silent_no_op", "noted", chance=0.5).expect(lab.expect.max_calls(1)).run()
    undone = [ruling for ruling in found.rulings if ruling.trial.verdict.world == "left undone"]
    assert 0 < len(undone) < 20
    assert {str(ruling.state) for ruling in undone} == {"invalid"}
    assert (str(found.state), found.unproven_reason.split(":")[0]) == (
        "invalid",
        f"{len(undone)} of 20 trials prove nothing",
    )


def test_a_scenario_of_which_nothing_is_known_proves_nothing() -> None:
    (found,) = asked(evasive, lab.inject("timeout_before_effect", "first"), trials=3).run()
    assert str(found.state) == "invalid"
    assert found.reasons[0].startswith("3 of 3 trials prove nothing: unknown: ")


@pytest.mark.parametrize(
    ("keys", "state"), [({}, "passed"), ({"invalid_rate": 0}, "invalid"), ({"invalid_rate": 1}, "passed")]
)
def test_a_scenario_is_invalid_if_more_of_its_trials_are_than_the_stated_share(keys: Any, state: str) -> None:
    found = result(gives_up, SOMETIMES, MUST, **keys)
    invalid = sum(ruling.trial.outcome is lab.Outcome.INVALID for ruling in found.rulings)
    assert 0 < invalid <= 5
    assert result_to_json(found)["state"] == state
    assert result_to_json(found)["open"] == invalid
    assert result_to_json(found)["open_as"] == {"invalid": invalid}
    assert state == "passed" or found.reasons[0].startswith(f"{invalid} of 100 trials prove nothing: ")


def test_a_fault_that_had_to_hit_and_hit_nothing_makes_it_invalid() -> None:
    found = result(evasive, SOMETIMES, MUST)
    assert found.met
    assert found.reasons == [
        "100 of 100 trials prove nothing: 'latency on second' is for request 1 of second, and there were 0"
    ]


def test_the_plug_in_rules_alike(chaos: Chaos, recwarn: pytest.WarningsRecorder) -> None:
    given: dict[str, Any] = {"reads": [first, second], "trials": 100, "prompt": "What is the stock?", "says": SAYS}
    chaos.run(evasive, faults=[SOMETIMES], **given)
    (warned,) = [str(each.message) for each in recwarn if each.category is pytest.PytestWarning]
    assert re.match(r"chaos: \d of 100 trials are open: unknown: ", warned)
    chaos.run(gives_up, faults=[SOMETIMES, MUST], **given)
    with pytest.raises(pytest.fail.Exception, match=r"^1 of \d+ trials prove nothing: .*\ntrial \d+ invalid: "):
        chaos.run(gives_up, faults=[SOMETIMES, MUST], invalid_rate=0, **given)
    with pytest.raises(pytest.fail.Exception, match=r"invalid_rate is 2: it should be a number from 0 to 1"):
        chaos.run(gives_up, invalid_rate=2, **given)
