"""Faults of a process on loopback: a service is killed or paused, its callers meet it, and nothing is left behind."""

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaoslab.config.settings import Settings
from chaoslab.core.events import CallFinished, Effect, FaultInjected, FaultWitnessed, ServiceResumed, ServiceStopped
from chaoslab.faults.process.service_down import ServiceDown
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from chaoslab.worlds.stopping import OutageRunner
from tests import warm
from tests.cli_parts import chaoslab, command, environment, free_base, prompts
from tests.seams.lab_parts import NOW, eventually
from tests.waiting import HUNG_S

ASKED = ("What is 17 times 24?",) * 2 + ("What is the weather in Oslo?", "Tell Carla that the review is in room 204.")
FAULTS = "service_down@calculator:1,service_paused@weather:1,crash_after_effect@messaging:1"
THIRD = ("p1.r1", "calculator", 3)
STOPPED = ("calculator", "weather", "messaging")
"""Real processes: a signal to a warm start's number would leave the process itself alone, or reach it later."""


def test_the_callers_of_a_stopped_process_meet_it_and_the_next_prompt_finds_it_back(tmp_path: Path) -> None:
    settings = (f"BASE_PORT={free_base()}", f"FAULTS={FAULTS}", "TOXIC_PROB=0", "ERROR_PROB=0")
    python = warm.python_but(tmp_path, *STOPPED)
    ended = subprocess.run(
        command("lab", *settings, prompts(tmp_path, ASKED), python=python),
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=HUNG_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Failures that nobody injected: none" in ended.stdout
    assert "invalid" not in ended.stdout
    history = History.read(tmp_path / "logs" / "latest")
    stops = [
        (record.t, (record.trial, event.fault, event.how)) for record, event in history.find_events(ServiceStopped)
    ]
    # Once each: an attempt that comes when the service is back meets its fault again, as a chance of 1 says.
    assert list(dict.fromkeys(stop for _, stop in stops)) == [
        ("p1.r1", "service_down", "killed"), ("p2.r1", "service_down", "killed"), ("p3.r1", "service_paused", "paused"),
        ("p4.r1", "crash_after_effect", "killed"),
    ]  # fmt: skip
    back = [event.target for _, event in history.find_events(ServiceResumed)]
    assert list(dict.fromkeys(back)) == ["calculator", "weather", "messaging"]
    assert len(back) == len(stops)
    met = {(r.trial, e.target, e.request, e.attempt): e.evidence for r, e in history.find_events(FaultWitnessed)}
    for trial in ("p1.r1", "p2.r1"):  # so the second one found it back
        assert met[trial, "calculator", 1, 1] == "connection closed without an answer, nothing was done"
    assert met["p4.r1", "messaging", 1, 1] == "connection reset, the work was done"
    waited = re.fullmatch(r"no answer within (\d+\.\d{3}) s", met["p3.r1", "weather", 1, 1])
    assert waited
    assert float(waited[1]) >= Settings().tool_timeout_s  # a busy machine may notice later
    assert len(met) == len(list(history.find_events(FaultInjected)))
    calls = {(r.trial, e.target, e.request, e.attempt): e for r, e in history.find_events(CallFinished)}
    assert all(name in met for name, call in calls.items() if not call.ok)
    (third_s,) = (r.t for r, e in history.find_events(CallFinished) if (r.trial, e.target, e.attempt) == THIRD)
    if third_s < stops[0][0] + ServiceDown.down_s:  # on a busy machine the process may be back
        assert met["p1.r1", "calculator", 1, 3] == "connection refused"  # around the proxy
    again = chaoslab(tmp_path, "replay", "latest")
    assert (again.returncode, again.stdout) == (2, "")
    assert "a fault stopped a tool's process, and the virtual world has none" in again.stderr
    assert [record.trial for record, event in history.find_events(Effect) if event.target == "messaging"] == ["p4.r1"]


PART = """
import signal, sys
from pathlib import Path
from chaoslab.base.interrupts import Flag
from chaoslab.base.lifeline import terminate_on_stdin_end
folder, ended = Path(sys.argv[1]), Flag()  # an event's `set` in the handler may wait for ever: see Flag
signal.signal(signal.SIGTERM, lambda *_: ended.set())
terminate_on_stdin_end()
(folder / "up").touch()
ended.wait()
(folder / "ended").touch()
"""
PAUSE = """
import os, signal, sys
from pathlib import Path
from chaoslab.base.clock import system
from chaoslab.config.topology import Ports
from chaoslab.worlds.local import LocalWorld
folder, part = Path(sys.argv[1]), sys.argv[2]
world = LocalWorld(Ports(), folder, folder / "state.db", folder, os.environ, system, alone=("weather",))
world._spawn_process("weather", (sys.executable, "-c", part, str(folder)))
while not (folder / "up").exists():
    system.sleep(0.01)
world.pause("weather")
state = Path(f"/proc/{world.parts[0].process.pid}/stat")
print(state.read_text().rsplit(")")[1].split()[0] if state.exists() else "T", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_paused_process_goes_on_and_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PAUSE, str(tmp_path), PART], capture_output=True, text=True, check=False, timeout=HUNG_S
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGKILL, "T\n", "")
    eventually((tmp_path / "ended").exists)


@dataclass
class Clock:
    """A clock that is set by hand."""

    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, tzinfo=UTC)

    def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


@dataclass
class Written:
    """Processes that write down what is done to them. `fails`: what cannot be done."""

    done: list[str] = field(default_factory=list)
    up: bool = False
    fails: str = ""

    def _does(self, what: str) -> None:
        if what == self.fails:
            raise ProcessLookupError(3, "No such process")
        self.done.append(what)

    def kill(self, service: str) -> None:
        self._does(f"kill {service}")

    def start_again(self, service: str) -> None:
        self._does(f"start {service}")

    def pause(self, service: str) -> None:
        self._does(f"pause {service}")

    def resume(self, service: str) -> None:
        self._does(f"resume {service}")

    def is_up(self, service: str) -> bool:  # noqa: ARG002
        return self.up

    def disturb_service(self, service: str, how: str, share: float) -> None:
        self._does(f"{service} {how} to {share:g}")

    def undo_disturbance(self, service: str, how: str) -> None:
        self._does(f"heal {service} {how}")


@dataclass
class Scene:
    run: Run
    clock: Clock
    processes: Written
    stopper: OutageRunner
    agent: ControlDatabase

    def stop(self, service: str, how: str, for_s: float = 2.0) -> int:
        fault = {
            "fault": "a_fault", "injection": "it", "trial": "p1.r1", "turn": 1, "request": 2, "attempt": 1,
            "request_id": "",
        }  # fmt: skip
        return self.agent.request_outage(self.run.name, service, how, for_s=for_s, fault=fault)

    def at(self, now_s: float) -> list[str]:
        """All that was done by then."""
        self.clock.now_s = now_s
        self.stopper.advance_outages()
        return self.processes.done


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    run, clock, processes = Run.create(tmp_path / "logs", now=NOW), Clock(), Written()
    state = tmp_path / "state.db"
    with contextlib.closing(ControlDatabase(state, manager="8000")) as agent:
        agent.request_run_setup(run.name, plan={}, targets={})
        stopper = OutageRunner(processes, state=state, logs=tmp_path / "logs", clock=clock, manager="8000")
        try:
            yield Scene(run, clock, processes, stopper, agent)
        finally:
            with contextlib.suppress(Exception):
                stopper.close()


def test_a_killed_process_is_started_when_its_time_is_over_and_is_back_when_it_answers(scene: Scene) -> None:
    row = scene.stop("weather", "killed")
    assert scene.at(1.0) == ["kill weather"]
    assert scene.agent.get_outage_state(row) == ("stopped", "")
    assert scene.at(2.9) == ["kill weather"]
    assert scene.at(3.0) == ["kill weather", "start weather"]
    assert scene.at(3.5) == ["kill weather", "start weather"]
    assert scene.agent.get_outage_state(row) == ("stopped", "")
    scene.processes.up = True
    scene.at(4.0)
    assert scene.agent.get_outage_state(row) == ("over", "")
    history = History.read(scene.run.folder)
    assert [(e.target, e.request, e.how) for _, e in history.find_events(ServiceStopped)] == [("weather", 2, "killed")]
    assert [(r.trial, e.target, e.lasted_s) for r, e in history.find_events(ServiceResumed)] == [
        ("p1.r1", "weather", 3.0)
    ]


def test_a_trial_that_is_over_ends_its_outage_at_once(scene: Scene) -> None:
    row = scene.stop("weather", "paused", 60.0)
    assert scene.at(1.0) == ["pause weather"]
    scene.agent.end_outages(scene.run.name)
    assert scene.at(1.5) == ["pause weather", "resume weather"]
    assert scene.agent.get_outage_state(row) == ("over", "")


def test_no_process_stays_paused_when_the_world_ends(scene: Scene) -> None:
    scene.stop("weather", "paused", 60.0)
    scene.stop("search", "killed", 60.0)
    assert scene.at(1.0) == ["pause weather", "kill search"]
    scene.stopper.close()
    assert scene.processes.done == ["pause weather", "kill search", "resume weather"]


def test_a_process_that_cannot_be_stopped_or_started_ends_the_run_with_the_reason(scene: Scene) -> None:
    scene.processes.fails = "kill weather"
    row = scene.stop("weather", "killed")
    assert scene.at(1.0) == []
    why = "the process of weather could not be killed and brought back: [Errno 3] No such process"
    assert scene.agent.get_outage_state(row) == ("failed", why)
    scene.processes.fails = "start search"
    row = scene.stop("search", "killed")
    scene.at(1.0)
    assert scene.at(9.0) == ["kill search"]
    assert scene.agent.get_outage_state(row) == ("failed", why.replace("weather", "search"))


def test_a_shared_state_that_is_gone_is_a_reason_and_no_traceback(scene: Scene, tmp_path: Path) -> None:
    assert scene.stopper.advance_outages_or_explain() == ""
    (tmp_path / "state.db").write_bytes(b"something else" * 1000)
    assert scene.stopper.advance_outages_or_explain().startswith(
        f"the shared state {tmp_path / 'state.db'} cannot be used: "
    )


def test_what_an_engine_does_ends_after_its_time_or_with_the_supervisor(scene: Scene) -> None:
    first = scene.stop("weather", "partitioned")
    assert scene.at(0) == ["weather partitioned to 1"]
    scene.processes.up = True
    assert scene.at(3) == ["weather partitioned to 1", "heal weather partitioned"]
    assert scene.agent.get_outage_state(first)[0] == "over"
    scene.stop("search", "throttled")
    scene.at(4)
    scene.stopper.close()
    assert scene.processes.done[-1] == "heal search throttled"
