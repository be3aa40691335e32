"""Trials with plans of their own in one lab: each is what it is in a lab that has run no other."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.conversation import turn, turns
from chaoslab.core.events import CallFinished, Effect, PromptStarted, Replied, ValuesDrawn
from chaoslab.core.fault import BrokenFault
from chaoslab.core.inject import inject
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Injection
from chaoslab.execution.drawn import DrawnPlan, DrawnRun
from chaoslab.execution.forked import ChildExecutor
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab._virtual_lab import LabResult, LabSpec
from tests.plugin_parts import installed
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

CLEAN = {"TOXIC_PROB": "0", "ERROR_PROB": "0", "SEED": "3", "DEADLINE_S": "100"}
ASKED = 'Send Ana the message "hello". Then tell me the weather in Oslo.'
BREAKS = """
@dataclass(frozen=True)
class Sock(Fault):
    '''It raises once the agent has done something.'''

    layer = "tool"

    def flow(self, call, context):
        yield call
        raise ValueError("broken")
"""


def work(prompt: Any = ASKED, **settings: str) -> LabSpec:
    reader: Any = importlib.import_module("chaoslab.agent.prompts")
    return lab_runs.spec({**CLEAN, **settings}, [reader.Prompt.build(prompt)])


def told(one: LabResult) -> tuple[Any, ...]:
    return one.number, one.seconds, one.ok, one.outcome, one.witnessed, one.run_spent_usd, one.off, one.buffered_events


def drawn(*injections: Injection, limits: Sequence[Limits] = (), **values: Any) -> DrawnPlan:
    return DrawnPlan(injections, values, limits=tuple(limits))


PLANS = {
    "sent": drawn(),
    "sent twice": drawn(inject("lost_reply", "messaging", calls=[1]), n=1),
    "never answered": drawn(inject("timeout", "*", chance=1)),
    "over budget": drawn(inject("budget", "*", calls_max=2, mode="hard"), n=2),
    "another context": drawn(inject("truncate_context", "model", calls=[2]), inject("latency", "model", delay_s=1.5)),
    "refused": drawn(inject("refused", "model", chance=0.5), inject("wrong_value", "weather"), n=3),
    "within limits": drawn(inject("server_error", "*", chance=0.7), limits=[Limits(faults=1)]),
}
SPECS = {
    "alike": TrialSpec(0),
    "after spending": TrialSpec(0, spent_usd=0.5),
    "ended from outside": TrialSpec(0, stopped="it had not ended after 1 s"),
    "switched off": TrialSpec(0, off=("lost_reply on messaging",)),
    "of another number": TrialSpec(4),
}


@contextmanager
def trials(run: LabSpec) -> Iterator[Any]:
    with run.open_varied_runner() as trial:
        yield trial


def alone(run: LabSpec, plan: DrawnPlan, spec: TrialSpec) -> LabResult:
    with trials(run) as trial:
        found: LabResult = trial(plan, spec)
        return found


@pytest.mark.parametrize("stream", ["off", "on"])
def test_a_trial_among_others_of_the_same_number_is_what_it_is_alone(stream: str) -> None:
    run = work(STREAM=stream)
    asked = [(plan, SPECS["alike"]) for plan in PLANS.values()]
    asked += [(PLANS["sent twice"], spec) for spec in SPECS.values()]
    expected = [told(alone(run, *one)) for one in asked]
    for order in (asked, asked[::-1]) if stream == "off" else (asked[::-1],):
        with trials(run) as trial:
            found = [told(trial(*one)) for one in order]
        assert found == (expected if order is asked else expected[::-1])
    outcomes = {each[3] for each in expected}
    assert {Outcome.CORRECT, Outcome.HUNG} < outcomes
    assert len({repr(each) for each in expected}) == len(asked) - 1  # "sent twice" is there twice


def test_the_services_know_of_no_trial_before() -> None:
    """The same request of another trial of the same number is no repeated one, and each mailbox holds one message."""
    with trials(work('Send Ana the message "hello".')) as trial:
        found = [trial(PLANS["sent"], TrialSpec(0)) for _ in range(3)]
    for one in found:
        assert sum(each.is_of_kind(Effect) for each in one.buffered_events) == 1
        assert not any(each.fields["replayed"] for each in one.buffered_events if each.is_of_kind(CallFinished))


def test_a_trial_after_one_that_a_fault_broke_is_what_it_is_alone(tmp_path: Path) -> None:
    run = work()
    with installed(tmp_path, BREAKS), trials(run) as trial:
        with pytest.raises(BrokenFault):
            trial(drawn(inject("gremlin", "messaging")), TrialSpec(0))
        after = trial(PLANS["sent twice"], TrialSpec(0))
    assert told(after) == told(alone(run, PLANS["sent twice"], TrialSpec(0)))


def waiting(number: int) -> DrawnPlan:
    after_s = (1.0, 7200.0, 60.0)[number % 3]
    return DrawnPlan((inject("latency", "weather", delay_s=0.5),), {"after": after_s}, {2: after_s})


def test_a_trial_whose_waits_are_its_own_has_a_twin_of_its_own() -> None:
    run = DrawnRun(work(turns("Hello?", turn("What is the weather in Oslo?", after_s=5.0))), waiting)
    found = list(InProcessExecutor().map(run, [TrialSpec(number) for number in range(4)]))
    for one in found:
        started = next(each.fields for each in one.buffered_events if each.is_of_kind(PromptStarted))
        values = next(each.fields for each in one.buffered_events if each.is_of_kind(ValuesDrawn))["values"]
        assert values["after"] < started["twin_s"] < values["after"] + 1 < one.seconds + 1
        assert one.ok
    assert [told(one) for one in ChildExecutor(2).map(run, [TrialSpec(number) for number in range(4)])] == [
        *map(told, found)
    ]


def spelt(body: str, request: int, asked: str) -> Replied:
    return Replied(
        target="weather", request=request, attempt=1, asked=asked, status=200, content_type="application/json",
        body=body,
    )  # fmt: skip


def plan_of(number: int) -> DrawnPlan:
    return [PLANS["sent"], PLANS["another context"], PLANS["refused"]][number % 3]


def test_each_trial_hears_the_replies_that_were_recorded_for_it() -> None:
    calm = work("What is the weather in Oslo?")
    specs = [TrialSpec(number) for number in range(6)]
    recorded: Mapping[str, Sequence[Replied]] = {
        calm.get_work_item_name(spec): [
            spelt(f'{{"main": {{"temp": {spec.number + 30}}}}}', each.fields["request"], each.fields["request_id"])
            for each in one.buffered_events
            if each.is_of_kind(CallFinished) and each.fields["target"] == "weather"
        ]
        for spec, one in zip(specs, InProcessExecutor().map(calm, specs), strict=True)
    }
    run = DrawnRun(replace(calm, foreign=("weather",), recorded=recorded), plan_of)
    found = list(InProcessExecutor().map(run, specs))
    for spec, one in zip(specs, found, strict=True):
        replies = [
            each.fields
            for each in one.buffered_events
            if each.is_of_kind(CallFinished) and each.fields["target"] == "weather"
        ]
        assert replies
        if spec.number % 3 == 0:
            assert str(spec.number + 30) in replies[0]["reply"]
        (by_itself,) = InProcessExecutor().map(run, [spec])
        assert told(one) == told(by_itself)
