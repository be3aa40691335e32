"""The lab's prompts under every fault there is, on loopback and again in virtual time: each attempt meets the same and
ends alike.

The third world is tried in tests/live, where there are containers.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab.core.events import Budget, FaultScheduled, FaultWitnessed
from chaoslab.record.history import History
from tests import warm
from tests.cli_parts import chaoslab, command, environment, free_base, prompts
from tests.waiting import HUNG_S

LAB = Path(__file__).parent.parent.parent / "agent" / "prompts.json"
QUIET = ("TOXIC_PROB=0", "ERROR_PROB=0")
SHORT = ("LATENCY_MS=60", "JITTER_MS=30")
EVERY = "TOXICS=latency:1,timeout:1,reset_peer:1,refused:1"
RUNS = {
    "tools": (16, ("SEED=11", "TOXIC_PROB=0.35", EVERY, *SHORT, "TIMEOUT_MS=400", "ERROR_PROB=0.3",
                   "HALLUCINATION_PROB=0.15",
                   "CONTEXT_PROB=0.15")),
    "model": (12, ("SEED=3", *QUIET, "MODEL_TOXIC_PROB=0.35", EVERY, *SHORT, "TIMEOUT_MS=400", "BUDGET=soft",
                   "CALL_LIMIT=3",
                   "TOKEN_LIMIT=2000")),
    "silence": (12, ("SEED=5", "TOXIC_PROB=0.2", "ERROR_PROB=0", "MODEL_TOXIC_PROB=0.1", "TOXICS=timeout",
                     "TIMEOUT_MS=0",
                     "MODEL_TIMEOUT_S=2", "CALL_LIMIT=4", "TOKEN_LIMIT=2000", "BUDGET=hard")),
}  # fmt: skip
"""The number of prompts, and the settings. Delays are far from every deadline, and those after which a connection
closes are longer than a busy machine takes to send a request, so that nothing may go either way."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The folder of each run. All ran on loopback, side by side."""
    asked = json.loads(LAB.read_text())
    with contextlib.ExitStack() as stack:
        started: dict[str, tuple[Path, subprocess.Popen[str]]] = {}
        for name, (count, settings) in RUNS.items():
            folder = tmp_path_factory.mktemp(name)
            asking = prompts(folder, asked[:count])
            line = command("lab", f"BASE_PORT={free_base()}", asking, *settings, python=warm.python())
            process = subprocess.Popen(
                line, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            stack.callback(process.kill)
            started[name] = folder, stack.enter_context(process)
        for name, (_, process) in started.items():
            said, _ = process.communicate(timeout=HUNG_S)
            assert process.returncode == 0, f"{name}: {said}"
        yield {name: folder for name, (folder, _) in started.items()}


@pytest.mark.parametrize("name", RUNS)
def test_each_attempt_meets_the_same_in_virtual_time(name: str, folders: dict[str, Path]) -> None:
    again = chaoslab(folders[name], "replay", "latest")
    assert again.returncode == 0, again.stdout + again.stderr
    last = again.stdout.splitlines()[-1]
    assert last.startswith(f"equal: {RUNS[name][0]} trials, ")
    assert last.endswith("as stories, times apart"), "nothing was left out"


def test_every_fault_was_met(folders: dict[str, Path]) -> None:
    """The stories tell of each attempt that its fault was witnessed, so it was in both worlds."""
    met, spent = set(), set()
    for folder in folders.values():
        history = History.read(folder / "logs" / "latest")
        drawn = {(r.trial, e.injection, e.request_id, e.attempt): e for r, e in history.find_events(FaultScheduled)}
        for record, event in history.find_events(FaultWitnessed):
            params = drawn[record.trial, event.injection, event.request_id, event.attempt].params
            how = params.get("status") or ("never" if params.get("after_s") == 0 and event.fault == "timeout" else "")
            met.add((event.fault, "model" if event.target == "model" else "tool", how))
        spent |= {(event.limit, event.mode) for _, event in history.find_events(Budget)}
    wire = {("latency", ""), ("timeout", ""), ("timeout", "never"), ("reset_peer", ""), ("refused", "")}
    assert {(fault, who, how) for fault, how in wire for who in ("tool", "model")} <= met
    assert {("tool_error", "tool", status) for status in (500, 503, 429, 401, 404)} <= met
    assert {("lost_reply", "tool", ""), ("wrong_value", "tool", ""), ("truncate_context", "model", "")} <= met
    assert ("budget", "model", "") in met
    assert spent == {(limit, mode) for limit in ("tokens", "calls") for mode in ("hard", "soft")}
