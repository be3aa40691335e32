"""Two faults of different layers on one call: each is met, or the log says why it was not."""

import itertools
import json
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import FaultUnreached, FaultWitnessed
from chaoslab.core.fault import LAYERS
from tests.measure_parts import unmet
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

MODEL = "api.openai.com"
FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "budget": ("budget", {"calls_max": 1.0}),
    "context": ("truncate_context", {}),
    "meaning": ("wrong_value", {}),
    "tool, not asked": ("tool_error", {"status": 503}),
    "tool, asked": ("lost_reply", {}),
    "stream": ("cut", {"after_events": 2}),
    "wire, late": ("latency", {"delay_s": 0.5}),
    "wire, cut": ("reset_peer", {}),
}
NOT_ASKED = ("budget", "tool, not asked")
"""Those that answer themselves: no fault further in is reached."""
NO_REPLY = ("tool, not asked", "tool, asked", "wire, cut")
"""Those after which there is no reply of the model's that another could change or withhold."""
MASKED = "its call met another fault instead"
NOTHING = "there was nothing in it to change"


def expected(outer: str, inner: str) -> dict[str, str]:
    """The reason by which a fault of the pair is not met; empty for one that is."""
    if outer in NOT_ASKED:
        return {outer: "", inner: "unreached"}
    if outer == "context":  # a call that is sent is changed, whatever becomes of its reply
        return {outer: MASKED if inner in ("tool, not asked", "wire, cut") else "", inner: ""}
    if inner == "stream":
        return {outer: NOTHING, inner: ""} if outer == "meaning" else {outer: "", inner: MASKED}
    return {outer: MASKED if inner in NO_REPLY else "", inner: ""}


def body(*, stream: bool) -> bytes:
    told = [("system", "Be brief."), ("user", "What is 2 + 2?"), ("assistant", "4."), ("user", "What is 17 times 24?")]
    messages = [{"role": role, "content": content} for role, content in told]
    return json.dumps({"model": "gpt-5", "messages": messages, "stream": stream}).encode()


@pytest.mark.parametrize(("outer", "inner"), list(itertools.combinations(FAULTS, 2)))
def test_each_is_met_or_the_log_says_why_it_was_not(outer: str, inner: str) -> None:
    def agent(_: str) -> str:
        for _turn in range(2):
            connection = HTTPConnection(MODEL, timeout=2)
            with suppress(OSError):
                connection.request("POST", "/v1/chat/completions", body(stream="stream" in (outer, inner)))
                connection.getresponse().read()
            connection.close()
        return "done"

    faults = []
    alike = outer.partition(",")[0] == inner.partition(",")[0]
    for name in (outer, inner) if alike else (inner, outer):  # the plan's order counts only within a layer
        fault, params = FAULTS[name]
        occasion: dict[str, Any] = {} if name == "budget" else {"calls": [2]}
        faults.append(lab.inject(fault, MODEL, name=name, **occasion, **params))
    trial = lab.run(agent, "ask", services={MODEL: lab.offline_model()}, faults=faults, twin=False)
    assert trial.error is None
    found = {event.injection: "" for _, event in trial.history.find_events(FaultWitnessed)}
    found |= {event.injection: "unreached" for _, event in trial.history.find_events(FaultUnreached)}
    reasons = {each.fault: each.why for each in unmet(trial.history)}
    found |= {name: reasons[FAULTS[name][0]] for name in (outer, inner) if name not in found}
    assert found == expected(outer, inner)


def test_every_layer_is_in_a_pair() -> None:
    assert {name.partition(",")[0] for name in FAULTS} == set(LAYERS)


OF_STREAM: dict[str, dict[str, Any]] = {"corrupt_chunk": {"after_events": 1}, "slow_chunks": {"delay_s": 0.1}}


@pytest.mark.parametrize("holding", ["refusal", "garbled_answer"])
@pytest.mark.parametrize("held", OF_STREAM)
def test_a_stream_that_a_fault_holds_back_shows_what_befell_it_before(held: str, holding: str) -> None:
    def agent(_: str) -> str:
        connection = HTTPConnection(MODEL, timeout=2)
        connection.request("POST", "/v1/chat/completions", body(stream=True))
        return str(len(connection.getresponse().read()))

    faults = [lab.inject(holding, MODEL), lab.inject(held, MODEL, **OF_STREAM[held])]
    trial = lab.run(agent, "ask", services={MODEL: lab.offline_model()}, faults=faults, twin=False)
    assert (trial.error, held in {event.fault for _, event in trial.history.find_events(FaultWitnessed)}) == (
        None,
        True,
    )


def test_a_process_that_dies_instead_of_answering_with_an_error_is_met() -> None:
    def agent(_: str) -> str:
        connection = HTTPConnection("bank", timeout=2)
        with suppress(ConnectionResetError):
            connection.request("POST", "/transfers")
            return str(connection.getresponse().status)
        return "reset"

    faults = [lab.inject(name, "bank", calls=[1]) for name in ("crash_after_effect", "server_error")]
    trial = lab.run(agent, "pay", services={"bank": lambda _: {"paid": 1}}, faults=faults, twin=False)
    met = [(event.fault, event.evidence) for _, event in trial.history.find_events(FaultWitnessed)]
    assert met == [("crash_after_effect", "connection reset, another fault had kept it from the work")]
    assert (trial.outcome, trial.effects) == (lab.Outcome.UNKNOWN, [])
