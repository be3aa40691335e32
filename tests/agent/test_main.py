"""`chaoslab agent` as a process: a lab that breaks is said in one line and by an exit code of its own."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab.base.clock import SystemClock, system
from chaoslab.config import settings
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core import events
from chaoslab.core.exchange import Call
from chaoslab.core.plan import Plan
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.seams.http.tags import Target
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import Health, LabDown
from chaoslab.worlds.local import LocalWorld
from tests import warm
from tests.cli_parts import chaoslab, command, free_base, warm_parts
from tests.seams.lab_parts import NOW, embedded, eventually, managed, said, site
from tests.waiting import HUNG_S


@pytest.fixture(scope="module")
def base() -> int:
    return free_base()


@contextlib.contextmanager
def lab(folder: Path, base: int) -> Iterator[LocalWorld]:
    """Everything but the agent, as processes."""
    (folder / "out").mkdir()
    chosen = Settings(base_port=base, toxic_prob=0.2, latency_ms=5, error_prob=0.0)
    world = LocalWorld(
        Ports(base),
        folder / "logs",
        folder / "state.db",
        folder / "out",
        settings.build_child_environment(chosen),
        system,
    )
    with world:
        with warm_parts():
            world.start_services(now=NOW, toxiproxy=True, model=True)
        yield world


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    """One for the tests that leave it whole: each has a run of its own, the latest."""
    with lab(tmp_path_factory.mktemp("up"), free_base()) as world:
        yield world


def agent(world: LocalWorld, *more: str, really: bool = False) -> subprocess.Popen[str]:
    """`really`: with a start of Python itself, whose imports go on while the run begins."""
    places = ("--logs", str(world.logs), "--state", str(world.state))
    (world.logs / "latest").unlink(missing_ok=True)
    return subprocess.Popen(
        command("agent", *places, *more, python=sys.executable if really else warm.python()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(world.environment),
    )


def many_prompts(folder: Path, count: int) -> Path:
    path = folder / "prompts.json"
    path.write_text(json.dumps([f"What is {n} times 24?" for n in range(17, 17 + count)]))
    return path


def state_of(world: LocalWorld) -> str:
    """The state in which the latest run was left."""
    with contextlib.closing(sqlite3.connect(world.state)) as db:
        runs: dict[str, str] = dict(db.execute("SELECT run, state FROM runs").fetchall())
        return runs[(world.logs / "latest").resolve().name]


@pytest.mark.parametrize("part", ["manager", "toxiproxy"])
def test_a_lab_that_breaks_ends_the_run_with_a_code_of_its_own(tmp_path: Path, base: int, part: str) -> None:
    with lab(tmp_path, base) as world:
        process = agent(world, "--prompts", str(many_prompts(tmp_path, 2000)))
        try:
            log = world.logs / "latest" / "info.log"
            eventually(
                lambda: process.poll() is not None or (log.exists() and log.read_text().count("prompt_finished") > 3),
                within_s=HUNG_S,
            )
            assert process.poll() is None, process.communicate()[1]
            os.kill(warm.child(next(p.process.pid for p in world.parts if p.name == part)), signal.SIGKILL)
            words = process.communicate(timeout=HUNG_S)[1]  # Toxiproxy might have come back
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 3
        assert words.startswith("the lab is down: ")
        assert words.count("\n") == 1, words
        history = History.read(world.logs / "latest")
        finished = history.find_first_event(events.RunFinished)
        assert finished is not None
        assert finished.reason == "lab_down"
        assert finished.processed < finished.received
        assert state_of(world) == "over"


class Leaping(SystemClock):
    """A clock whose naps are over at once and take as long as asked."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


def open_run(folder: Path, healthy: str, clock: SystemClock) -> tuple[str, str]:
    """Tries to open a run; the words with which that failed, and the state in which the run was left."""
    from chaoslab.agent.command import _open_lanes

    run = Run.create(folder / "logs", now=NOW)
    targets = {"weather": Target("weather", "http://127.0.0.1:9", ("127.0.0.1", 1), 1.0)}
    with contextlib.closing(ControlDatabase(folder / "state.db")) as control:

        async def asked() -> Health:
            return Health(healthy)

        with pytest.raises(LabDown) as down:
            asyncio.run(_open_lanes(run, control, Plan(1).to_json(), targets, clock, asked))
        return str(down.value), control.get_run_state(run.name)[0]


def test_a_manager_that_is_not_there_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    assert open_run(tmp_path, "no proxy manager answers", Leaping()) == ("no proxy manager answers", "missing")


def test_a_run_that_gets_no_lanes_is_not_left_asked(tmp_path: Path) -> None:
    assert open_run(tmp_path, "", Leaping()) == ("the proxy manager does not make the run's lanes", "over")


def test_a_run_is_not_done_before_the_manager_has_written_down_its_last_lane(tmp_path: Path) -> None:
    from chaoslab.agent.command import _wait_for_pending_lanes

    class Manager(Leaping):
        """Heals the lane while the agent waits."""

        async def sleep_async(self, delay_s: float) -> None:
            await super().sleep_async(delay_s)
            if self.now_s > 1:
                manager.mark_call_healed(row)

    with (
        contextlib.closing(ControlDatabase(tmp_path / "state.db")) as control,
        contextlib.closing(ControlDatabase(tmp_path / "state.db")) as manager,
    ):
        control.request_run_setup("r1", plan={}, targets={})
        manager.set_run_state("r1", "ready")
        row = control.request_call_address("r1", Call("weather", "t", "p1.r1", 1, 1), deadline_s=1)
        control.mark_call_done(row, {})
        clock = Manager()
        asyncio.run(_wait_for_pending_lanes(control, "r1", clock))
        assert clock.now_s > 1
        control.mark_call_done(row, {})
        with pytest.raises(LabDown, match="has not said what became of the last lane"):
            asyncio.run(_wait_for_pending_lanes(control, "r1", Leaping()))
        manager.mark_call_healed(row)
        manager.set_run_state("r1", "failed", error="manager.log cannot be written")
        with pytest.raises(LabDown, match=r"manager\.log cannot be written"):
            asyncio.run(_wait_for_pending_lanes(control, "r1", Leaping()))


def test_lanes_that_cannot_be_made_end_the_run_before_it_begins(tmp_path: Path) -> None:
    with embedded() as url, managed(tmp_path, url, ["weather"]) as manager:
        with socket.create_server(("127.0.0.1", manager.places.proxy_ports["weather"])):
            words, state = open_run(tmp_path, "", system)
        assert "in use" in words
        assert state == "over"


def test_a_service_is_called_where_the_configuration_says(tmp_path: Path, up: LocalWorld) -> None:
    answer = said({"expression": "17 * 24", "result": 9, "text": "9"})
    with site(lambda _: answer) as other:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"services": {"calculator": {"url": other.url}}}))
        one = ("--prompts", str(many_prompts(tmp_path, 1)), "TOXIC_PROB=0")
        process = agent(up, *one, "--config", str(config))
        words = process.communicate(timeout=HUNG_S)
        assert process.returncode == 0, words
        (heard,) = other.heard
        assert (heard.method, heard.path, heard.headers["host"]) == ("POST", "/calculate", other.address)
        (finished,) = [event for _, event in History.read(up.logs / "latest").find_events(events.PromptFinished)]
        assert "9" in finished.answer
        assert "408" not in finished.answer


def test_a_run_from_start_to_end(tmp_path: Path, up: LocalWorld) -> None:
    process = agent(up, "--prompts", str(many_prompts(tmp_path, 3)), "TOXIC_PROB=0.5", "SEED=3")
    words = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, words
    history = History.read(up.logs / "latest")
    answers = [event.answer for _, event in history.find_events(events.PromptFinished)]
    assert [n in answer for n, answer in zip(("408", "432", "456"), answers, strict=True)] == [True] * 3
    armed = [event for _, event in history.find_events(events.FaultArmed)]
    assert armed
    assert len(list(history.find_events(events.FaultHealed))) == len(armed)
    started = history.find_first_event(events.RunStarted)
    assert started is not None
    assert (started.seed, started.now, started.settings["TOXIC_PROB"]) == (3, NOW, 0.5)
    assert state_of(up) == "over"


def test_an_interrupted_run_writes_down_what_it_has(tmp_path: Path, up: LocalWorld) -> None:
    process = agent(up, "--prompts", str(many_prompts(tmp_path, 2000)))
    log = up.logs / "latest" / "info.log"
    eventually(
        lambda: process.poll() is not None or (log.exists() and log.read_text().count("prompt_finished") > 3),
        within_s=HUNG_S,
    )
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=HUNG_S)[1]
    assert (process.returncode, words) == (130, "")
    finished = History.read(up.logs / "latest").find_first_event(events.RunFinished)
    assert finished is not None
    assert finished.reason == "interrupted"
    assert 0 < finished.processed < finished.received


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGTERM, signal.SIGINT)])
def test_a_run_that_was_begun_is_ended_however_soon_it_is_interrupted(
    tmp_path: Path, up: LocalWorld, numbers: tuple[signal.Signals, ...]
) -> None:
    process = agent(up, "--prompts", str(many_prompts(tmp_path, 2000)), really=True)
    log = up.logs / "latest" / "info.log"
    eventually(
        lambda: process.poll() is not None or (log.exists() and "run_started" in log.read_text()), within_s=HUNG_S
    )
    assert process.poll() is None, process.communicate()[1]
    for number in numbers:
        process.send_signal(number)
    words = process.communicate(timeout=HUNG_S)[1]
    assert (process.returncode, words) == (130, "")
    finished = History.read(up.logs / "latest").find_first_event(events.RunFinished)
    assert finished is not None
    assert finished.reason == "interrupted"
    assert state_of(up) == "over"


def test_a_signal_that_is_held_back_until_it_can_be_heard_ends_it_before_it_begins(tmp_path: Path) -> None:
    """As in a container, whose first process never gets a signal that it cannot hear yet. Its engine sends SIGTERM;
    tests/test_interrupts.py has each of them."""
    process = subprocess.Popen(
        (sys.executable, "-m", "chaoslab", "agent", "--logs", str(tmp_path / "logs"), "--state",
         str(tmp_path / "state.db")),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings.build_child_environment(Settings()),
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]),
    )  # fmt: skip
    process.send_signal(signal.SIGTERM)
    words = process.communicate(timeout=HUNG_S)[1]
    assert (process.returncode, words) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["TOXIC_PROB=2"], "TOXIC_PROB=2 (command line) should be a chance from 0 to 1"),
        (["TOXIK_PROB=0.1"], "TOXIK_PROB is not a setting (command line); did you mean TOXIC_PROB?"),
        (["--prompts", "none.json"], "PROMPTS=none.json cannot be read: No such file or directory"),
        (["--run", "never-was"], "no run is called 'never-was'"),
        (["--config", "none.json"], "none.json cannot be read: No such file or directory"),
    ],
)
def test_what_was_typed_wrong_gets_one_line(
    tmp_path: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from chaoslab.cli import main

    assert main(["agent", "--logs", str(tmp_path), "--state", str(tmp_path / "state.db"), *arguments]) == 2
    words = capsys.readouterr().err
    assert words.startswith(complaint)
    assert words.count("\n") == 1


def test_tools_that_are_not_there_are_said_in_one_line(tmp_path: Path, base: int) -> None:
    places = "--logs", str(tmp_path), "--state", str(tmp_path / "state.db")
    ended = chaoslab(tmp_path, "agent", *places, f"BASE_PORT={base}")
    assert ended.returncode == 2
    assert "search does not say what it offers" in ended.stderr
    assert "is `chaoslab tools` running?" in ended.stderr
    assert ended.stderr.count("\n") == 1
