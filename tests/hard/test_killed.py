"""kill -9 in mid-run: what was logged stays, nobody is left, one line says who it was, the next run starts clean."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import parse_line
from chaoslab.record.runs import Run
from chaoslab.wire.lanes import FORGOTTEN
from chaoslab.worlds.local import LocalWorld
from tests import warm
from tests.cli_parts import chaoslab, command, environment, free_base, prompts, warm_parts
from tests.hard.dying_parts import DEADLINE_S, eventually, gone, lab, ports_are_free
from tests.waiting import HUNG_S

EASY = ("What is 17 times 24?", "What is the weather in Oslo?") * 20
SLOW = ("TOXIC_PROB=1", "TOXICS=latency", "LATENCY_MS=200", "JITTER_MS=0", "ERROR_PROB=0")
VICTIMS = {
    "agent": "the agent was killed by signal 9",
    "manager": "manager has ended in mid-run (killed by signal 9)",
}


class Tee:
    """Copies a log while it grows, as `tail -f` would."""

    def __init__(self, path: Path) -> None:
        self.seen, self._path, self._stop = b"", path, threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        with self._path.open("rb") as file:
            while not self._stop.wait(0.005):
                self.seen += file.read()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_S)


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_part_that_is_killed_ends_the_run_and_loses_nothing(tmp_path: Path, victim: str) -> None:
    with lab(tmp_path, prompts(tmp_path, EASY), *SLOW, python=warm.python()) as it:
        it.until("info.log", '"trial": "p2.r1"')
        it.until("manager.log", '"kind": "fault_armed"')
        tees = [Tee(it.run / "info.log"), Tee(it.run / "manager.log")]
        children = it.children()
        (pid,) = [pid for pid, line in children.items() if f"-m chaoslab {victim}" in line]
        os.kill(warm.child(pid), signal.SIGKILL)
        code = it.ended()
        for tee in tees:
            tee.close()
        assert (code, "Traceback" in it.said) == (3, False)
        (line,) = [line for line in it.said.splitlines() if line.startswith("the lab is down: ")]
        says_it_itself = victim == "manager" and "no proxy manager answers" in line  # it may be the first to know
        assert line.removeprefix("the lab is down: ") == VICTIMS[victim] or says_it_itself
        assert all(gone(pid) for pid in children), children
        assert ports_are_free(it.base)
    for tee, name in zip(tees, ("info.log", "manager.log"), strict=True):
        data = (it.run / name).read_bytes()
        assert len(tee.seen) > 500
        assert data.startswith(tee.seen)
        assert all(parse_line(line) for line in data.splitlines()[:-1])
    history = History.read(it.run)
    assert len(history.records) > 10
    ended = [event.reason for _, event in history.find_events(events.RunFinished)]
    assert ended == ([] if victim == "agent" else ["lab_down"])
    outcomes = [verdict.outcome for verdict in judge_all_trials(history).values()]
    assert outcomes[-1] is Outcome.UNFINISHED
    if victim == "manager":  # who leaves the most behind
        again = chaoslab(
            tmp_path, "lab", f"BASE_PORT={it.base}", prompts(tmp_path, EASY[:1]), "TOXIC_PROB=0", "ERROR_PROB=0"
        )
        assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("victim", ["toxiproxy", "manager"])
def test_a_part_that_is_killed_and_started_again(tmp_path: Path, victim: str) -> None:
    """As in containers, where nobody watches over the parts but each is started again."""
    ports = Ports(free_base())
    chosen = Settings().override(
        {"TOXIC_PROB": "0.3", "TOXICS": "latency", "LATENCY_MS": "30", "ERROR_PROB": "0", "BASE_PORT": str(ports.base)}
    )
    variables = {**environment(), **chosen.to_environment()}
    run = Run.create(tmp_path / "logs", now="2026-06-01T09:00:00Z")
    with LocalWorld(ports, tmp_path / "logs", tmp_path / "state.db", run.folder, variables, system) as world:
        with warm_parts():
            world.start_services(now=run.now, toxiproxy=True, model=True)
        agent = subprocess.Popen(
            command("agent", "--run", run.name, "--logs", str(world.logs), "--state", str(world.state),
                    prompts(tmp_path, EASY[:10]), python=warm.python()),
            env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            log = run.folder / "info.log"
            eventually(lambda: log.exists() and log.read_text().count("prompt_finished") > 3, within_s=HUNG_S)
            part = next(part for part in world.parts if part.name == victim)
            os.kill(warm.child(part.process.pid), signal.SIGKILL)
            part.process.communicate()
            part.process = subprocess.Popen(part.process.args, stdin=subprocess.PIPE, env=variables)
            said = agent.communicate(timeout=HUNG_S)[1]
        finally:
            agent.kill()
            agent.wait()
    history = History.read(run.folder)
    (end,) = [event for _, event in history.find_events(events.RunFinished)]
    if victim == "toxiproxy":
        assert (agent.returncode, said) == (0, "")
        assert (end.reason, end.processed) == ("done", 10)
        assert [event.what for _, event in history.find_events(events.LabDisturbed)] == ["Toxiproxy was restarted"]
        hit = {record.trial for record, _ in history.find_events(events.CallDisturbed)}
        assert {t for t, v in judge_all_trials(history).items() if v.outcome is Outcome.INVALID} == hit
        assert len(hit) < 4
    else:
        assert (agent.returncode, end.reason) == (3, "lab_down")
        assert said.count("\n") == 1
        assert FORGOTTEN in said or "no proxy manager answers" in said
