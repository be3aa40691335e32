"""The same seed draws the same faults for the same calls, in containers on the real Toxiproxy and on loopback on the
embedded one, and what befell each attempt in the containers befalls it again in virtual time.
"""

from __future__ import annotations

from pathlib import Path

from chaoslab.core.events import FaultScheduled, FaultWitnessed
from chaoslab.record.history import History
from tests.cli_parts import chaoslab, free_base
from tests.live.compose_parts import Stack

SETTINGS = {
    "SEED": "11",
    "TRIALS": "16",  # enough for all six
    "TOXIC_PROB": "0.3",
    "ERROR_PROB": "0.3",
    "TOXICS": "timeout:1,latency:1,reset_peer:1,refused:1",
}
SHORT = {"LATENCY_MS": "60", "JITTER_MS": "30", "TIMEOUT_MS": "40"}


def faults(history: History) -> dict[str, list[tuple[object, ...]]]:
    """By stage, what was met: which fault with which parameters, at which attempt of which request of which prompt."""

    def name(trial: str | None) -> str:
        return (trial or "").partition(".")[2]  # without the run's own name

    scheduled = [
        (name(r.trial), e.target, e.request, e.attempt, e.fault, e.injection, sorted(e.params.items()))
        for r, e in history.find_events(FaultScheduled)
    ]
    witnessed = [
        (name(r.trial), e.target, e.request, e.attempt, e.fault) for r, e in history.find_events(FaultWitnessed)
    ]
    return {"scheduled": sorted(scheduled, key=repr), "witnessed": sorted(witnessed, key=repr)}


def test_containers_and_loopback_meet_the_same_faults(stack: Stack, tmp_path: Path) -> None:
    ran = stack.compose("run", "--rm", "-T", "--no-deps", "agent", **SETTINGS, **SHORT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    in_containers = stack.history()
    assert not (stack.folder / "logs" / "latest" / "charts").exists()  # as told
    given = [f"{name}={value}" for name, value in (SETTINGS | SHORT).items()]
    ended = chaoslab(tmp_path, "lab", f"BASE_PORT={free_base(last=True)}", *given)
    assert ended.returncode == 0, ended.stderr
    on_loopback = History.read(tmp_path / "logs" / "latest")
    assert faults(in_containers) == faults(on_loopback)
    drawn = {event.fault for _, event in in_containers.find_events(FaultScheduled)}
    assert {"timeout", "latency", "reset_peer", "refused", "tool_error", "lost_reply"} <= drawn
    again = chaoslab(stack.folder, "replay", "latest")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[-1].endswith("as stories, times apart"), "nothing was left out"
