"""Containers of services that the engine kills, pauses and disturbs in mid-run, asked by the command on this host."""

from __future__ import annotations

import os
import sys

import pytest

from chaoslab.core.events import (
    CallFinished,
    Effect,
    FaultInjected,
    FaultWitnessed,
    PromptFinished,
    ServiceResumed,
    ServiceStopped,
)
from chaoslab.worlds.compose import Containers
from tests.live.compose_parts import Stack

FAULTS = {
    "What is 17 times 24?": ("container_out_of_memory", "calculator", "out of memory"),
    "What is the weather in Oslo?": ("container_partitioned", "weather", "partitioned"),
    "Send a message to Ana saying that the meeting is at 3.": ("container_restarted", "messaging", "killed"),
    "Translate good morning into French.": ("container_throttled", "translator", "throttled"),
    "When did the movie Interstellar come out?": ("service_down", "movies", "killed"),
    "Who discovered penicillin?": ("service_paused", "search", "paused"),
    "Schedule a dentist appointment tomorrow at 3pm for 45 minutes.": ("crash_after_effect", "calendar", "killed"),
}
"""By prompt, the fault that it meets, at which service, and how that is stopped."""


def test_a_container_has_afterwards_what_it_had_before(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stack.folder)
    deeds = ("partitioned", "throttled", "out of memory")
    containers = Containers({**os.environ, "COMPOSE_PROJECT_NAME": stack.project})
    limited = stack.container("movies")
    limited.update(mem_limit=2**28, memswap_limit=2**29, cpu_period=50_000, cpu_quota=40_000)
    for service in ("calculator", "movies"):
        before = limits_and_networks(stack, service)
        for how in deeds * 2:
            containers.disturb_service(service, how, 0.5)
        assert stack.container(service).attrs["State"]["OOMKilled"]
        for how in deeds * 2:
            containers.undo_disturbance(service, how)
        assert limits_and_networks(stack, service) == before
    containers.close()


def limits_and_networks(stack: Stack, service: str) -> dict[str, object]:
    """As the engine tells of them. A limit that is none, or all there is, is 0; no quota has no period."""
    attrs, whole = stack.container(service).attrs, stack.docker.info()["MemTotal"]
    found = {name: max(0, attrs["HostConfig"][name]) for name in ("Memory", "MemorySwap", "CpuQuota")}
    found["Memory"] %= whole
    if found["CpuQuota"]:
        found["CpuPeriod"] = attrs["HostConfig"]["CpuPeriod"]
    return found | {"running": attrs["State"]["Status"], "networks": sorted(attrs["NetworkSettings"]["Networks"])}


def test_the_callers_of_a_stopped_container_meet_it_and_all_come_back(stack: Stack) -> None:
    faults = ",".join(f"{fault}@{target}:1" for fault, target, _ in FAULTS.values())
    # Patient with a busy machine, and yet less than the 5 s for which search is paused.
    knobs = ("TOXIC_PROB=0", "ERROR_PROB=0", "TOOL_TIMEOUT_S=4.5")
    settings = (f"FAULTS={faults}", *knobs, f"PROMPTS={stack.prompts([*FAULTS])}")
    begun = stack.begin([sys.executable, "-P", "-m", "chaoslab", "lab", "WORLD=compose", *settings])
    assert begun.ended() == 0, begun.text()[-3000:]
    history = stack.history()
    ended = [event for _, event in history.find_events(CallFinished) if not event.ok]
    assert "Failures that nobody injected: none" in begun.text(), ended
    assert len(list(history.find_events(PromptFinished))) == len(FAULTS)
    own = {f"p{number}.r1": each for number, each in enumerate(FAULTS.values(), start=1)}  # search stands in for others
    stopped = [(r.trial, e.fault, e.target, e.how) for r, e in history.find_events(ServiceStopped)]
    # Once each: an attempt that comes when the service is back meets its fault again, as a chance of 1 says.
    assert list(dict.fromkeys(each for each in stopped if own[each[0] or ""] == each[1:])) == [
        (trial, *each) for trial, each in own.items()
    ]
    back = [(r.trial, e.target, e.how) for r, e in history.find_events(ServiceResumed)]
    assert sorted(back) == sorted((trial, target, how) for trial, _, target, how in stopped)
    assert len(list(history.find_events(FaultWitnessed))) == len(list(history.find_events(FaultInjected)))
    met = {(r.trial, e.fault, e.request, e.attempt): e.evidence for r, e in history.find_events(FaultWitnessed)}
    assert all((trial, fault, 1, 1) in met for trial, (fault, _, _) in own.items())
    assert met["p5.r1", "service_down", 1, 1].endswith(", nothing was done")
    assert met["p6.r1", "service_paused", 1, 1].startswith("no answer within ")
    assert met["p7.r1", "crash_after_effect", 1, 1].endswith(", the work was done")
    assert [record.trial for record, event in history.find_events(Effect) if event.target == "calendar"] == ["p7.r1"]
