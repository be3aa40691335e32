"""Containers of services that the engine kills and pauses in mid-run, asked by the command on this host."""

from __future__ import annotations

import sys

from chaoslab.core.events import (
    Effect,
    FaultInjected,
    FaultWitnessed,
    PromptFinished,
    ServiceResumed,
    ServiceStopped,
)
from tests.live.compose_parts import Stack

ASKED = [
    "What is 17 times 24?",
    "What is the weather in Oslo?",
    "Send a message to Ana saying that the meeting is at 3.",
]
ENGINES = (
    "container_out_of_memory@calculator:1,container_partitioned@weather:1,container_restarted@messaging:1,"
    "container_throttled@translator:1"
)
FAULTS = "service_down@calculator:1,service_paused@weather:1,crash_after_effect@messaging:1"


def test_the_callers_of_a_stopped_container_meet_it_and_all_come_back(stack: Stack) -> None:
    settings = (f"FAULTS={FAULTS}", "TOXIC_PROB=0", "ERROR_PROB=0", f"PROMPTS={stack.prompts(ASKED)}")
    begun = stack.begin([sys.executable, "-P", "-m", "chaoslab", "lab", "WORLD=compose", *settings])
    assert begun.ended() == 0, begun.text()[-3000:]
    assert "failures that nobody injected: none" in begun.text()
    history = stack.history()
    assert len(list(history.of(PromptFinished))) == len(ASKED)
    assert [(record.trial, event.target, event.how) for record, event in history.of(ServiceStopped)] == [
        ("p1.r1", "calculator", "killed"), ("p2.r1", "weather", "paused"), ("p3.r1", "messaging", "killed"),
    ]  # fmt: skip
    assert [event.target for _, event in history.of(ServiceResumed)] == ["calculator", "weather", "messaging"]
    met = {(r.trial, e.target, e.request, e.attempt): e.evidence for r, e in history.of(FaultWitnessed)}
    assert met["p1.r1", "calculator", 1, 1].endswith(", nothing was done")
    assert met["p2.r1", "weather", 1, 1].startswith("no answer within ")
    assert met["p3.r1", "messaging", 1, 1].endswith(", the work was done")
    assert [record.trial for record, event in history.of(Effect) if event.target == "messaging"] == ["p3.r1"]


def test_what_only_an_engine_can_do_is_met_and_undone(stack: Stack) -> None:
    asked = [*ASKED, "Translate good morning into French."]
    settings = (f"FAULTS={ENGINES}", "TOXIC_PROB=0", "ERROR_PROB=0", f"PROMPTS={stack.prompts(asked)}")
    begun = stack.begin([sys.executable, "-P", "-m", "chaoslab", "lab", "WORLD=compose", *settings])
    assert begun.ended() == 0, begun.text()[-3000:]
    assert "failures that nobody injected: none" in begun.text()
    history = stack.history()
    ways = ["out of memory", "partitioned", "killed", "throttled"]
    assert [event.how for _, event in history.of(ServiceStopped)] == ways
    assert [event.how for _, event in history.of(ServiceResumed)] == ways
    met = {event.fault for _, event in history.of(FaultWitnessed)}
    assert met == {name.partition("@")[0] for name in ENGINES.split(",")}
    assert len(list(history.of(FaultWitnessed))) == len(list(history.of(FaultInjected)))
