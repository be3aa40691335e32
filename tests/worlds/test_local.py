"""The lab on loopback, started, broken off and started again as a person would."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import Settings, build_child_environment
from chaoslab.config.topology import Ports
from chaoslab.core.events import CallFinished, FaultArmed, FaultWitnessed, PromptFinished, RunFinished
from chaoslab.core.exchange import Call, Reply
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.reports.charts import list_charts
from chaoslab.worlds import local
from chaoslab.worlds.local import LocalWorld, PortTaken, WorldError, run_local_world
from tests import warm
from tests.cli_parts import chaoslab, command, environment, free_base, prompts, warm_parts
from tests.plan_parts import roll
from tests.seams.lab_parts import Heard, said, site
from tests.waiting import HUNG_S, eventually

EASY = ({"prompt": "What is 17 times 24?", "facts": ["408"]}, "What is the weather in Oslo?")
CHARTS = {*list_charts()}


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in that folder, up to its first prompt's end; killed afterwards if it is still there."""
    process = subprocess.Popen(
        command(*arguments, python=warm.python()),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("trial"):
                break
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_one_command_gets_from_nothing_to_pictures_and_a_second_one_works_at_once(tmp_path: Path) -> None:
    """Here warm; test_wheel.py starts one with Python itself."""
    base = f"BASE_PORT={free_base()}"
    for drawn in (True, False):
        ended = chaoslab(tmp_path, "lab", base, prompts(tmp_path, EASY), "TOXIC_PROB=0", "ERROR_PROB=0", drawn=drawn)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "2 of 2 judged trials ended well" in ended.stdout
    assert {path.stem for path in (tmp_path / "charts").glob("*.png")} == CHARTS
    history = History.read(tmp_path / "logs" / "latest")
    assert [judge_trial(history, trial).outcome for trial in ("p1.r1", "p2.r1")] == [Outcome.CORRECT] * 2
    assert len(list((tmp_path / "logs").glob("2*"))) == 2


def test_the_faults_that_are_met_are_those_that_the_seed_draws(tmp_path: Path) -> None:
    """So equal seeds draw equal faults for equal calls: the plan is asked, where only the run's calls are known."""
    settings = ("TOXIC_PROB=0.5", "ERROR_PROB=0.3", "LATENCY_MS=20", "JITTER_MS=5", "TIMEOUT_MS=20", "SEED=11")
    ended = chaoslab(tmp_path, "lab", f"BASE_PORT={free_base()}", prompts(tmp_path, EASY * 5), *settings)
    assert ended.returncode == 0, ended.stderr
    history = History.read(tmp_path / "logs" / "latest")
    plan = plan_from_settings(Settings().override(dict(setting.split("=") for setting in settings)))
    drawn = {
        (record.trial, call.target, call.request, call.attempt, told.fault_name)
        for record, call in history.find_events(CallFinished)
        for injection in plan.injections
        if injection.name in call.rolled
        if (told := roll(plan, injection, Call(call.target, call.tool, str(record.trial), call.request, call.attempt)))
    }
    assert len(drawn) > 3
    met = {(r.trial, e.target, e.request, e.attempt, e.fault) for r, e in history.find_events(FaultWitnessed)}
    assert met <= drawn
    assert {call[:4] for call in met} == {call[:4] for call in drawn}  # one of two that a call draws may hide the other


def test_after_kill_9_no_part_is_left_and_the_next_run_starts_clean(tmp_path: Path) -> None:
    base = f"BASE_PORT={free_base()}"
    slow = ("TOXIC_PROB=1", "TOXICS=latency", "LATENCY_MS=300", "JITTER_MS=0")
    with started(tmp_path, "lab", base, prompts(tmp_path, EASY * 20), *slow) as process:
        os.kill(warm.child(process.pid), signal.SIGKILL)
        process.wait(HUNG_S)
    killed = (tmp_path / "logs" / "latest").resolve()
    ended = chaoslab(tmp_path, "lab", base, prompts(tmp_path, EASY), "TOXIC_PROB=0", "ERROR_PROB=0")
    assert ended.returncode == 0, ended.stderr
    assert "2 of 2 judged trials ended well" in ended.stdout
    kept = History.read(killed)
    assert len(list(kept.find_events(PromptFinished))) >= 1


SECRETS = {"GROQ_API_KEY": "gsk_0fTheUserAbcdefghijkl"}
PASSWORD = "N0tForYourEyes"


def under(pid: int) -> dict[int, str]:
    """The command lines of a process and of all that it has started, by their numbers."""
    parents, found = dict[int, int](), dict[int, str]()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
    mine, more = {pid}, {pid}
    while more := {child for child, parent in parents.items() if parent in more} - mine:
        mine |= more
    return {each: found[each] for each in mine if each in found}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it reads command lines in /proc")
def test_no_part_shows_a_key_in_its_command_line(tmp_path: Path) -> None:
    """The model looks while it is asked, when all parts run."""
    shown: dict[int, str] = {}

    def looks(asked: Heard) -> Reply:
        if asked.method == "GET":
            return said({"data": [{"id": "a-model"}]})
        shown.update(under(lab.pid) | under(warm.child(lab.pid)))
        return said({}, 503)

    with site(looks) as server:
        own = {**SECRETS, "MODEL": "a-model", "MODEL_URL": f"http://me:{PASSWORD}@{server.address}"}
        line = "lab", f"BASE_PORT={free_base()}", prompts(tmp_path, EASY[1:]), "TOXIC_PROB=0", "PROMPT_LIMIT=0"
        typed = command(*line, python=warm.python())
        with subprocess.Popen(
            typed,
            cwd=tmp_path,
            env={**environment(), **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as lab:
            told = lab.communicate(timeout=HUNG_S)[0]
    for part in ("toxiproxy", "tools", "manager", "agent", "lab"):
        assert any(f"chaoslab {part}" in line for line in shown.values()), (part, told)
    for secret in (*SECRETS.values(), PASSWORD):
        assert [line for line in shown.values() if secret in line] == []
        assert secret not in told


def test_ctrl_c_keeps_and_sums_up_what_there_is(tmp_path: Path) -> None:
    slow = ("TOXIC_PROB=1", "TOXICS=latency", "LATENCY_MS=300", "JITTER_MS=0")
    base = free_base()
    with started(tmp_path, "lab", f"BASE_PORT={base}", prompts(tmp_path, EASY * 20), *slow) as process:
        assert process.stdout is not None
        os.kill(process.pid, signal.SIGINT)
        # a terminal tells the whole group; here only the supervisor is told, and it must tell the agent
        said = process.stdout.read()
        assert process.wait(HUNG_S) == 130
    assert "interrupted after" in said
    ended = next(event for _, event in History.read(tmp_path / "logs" / "latest").find_events(RunFinished))
    assert ended.reason == "interrupted"
    assert 1 <= ended.processed < 40
    for port in Ports(base).list_all_ports().values():
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_when_toxiproxy_dies_the_agent_says_so_and_does_not_carry_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "logs", now="2026-06-01T09:00:00Z")
    slow = Settings().override({"TOXIC_PROB": "0.5", "TOXICS": "latency", "LATENCY_MS": "200", "JITTER_MS": "0"})
    ports = Ports(free_base())
    chosen = slow.override(
        {"BASE_PORT": str(ports.base), "PROMPTS": prompts(tmp_path, EASY * 50).removeprefix("PROMPTS=")}
    )
    variables = {**environment(), **chosen.to_environment()}
    places = (tmp_path / "logs", tmp_path / "state.db", run.folder)
    with warm_parts(), LocalWorld(ports, *places, variables, system) as world:
        world.start_services(now=run.now, toxiproxy=True, model=True)
        codes: list[int] = []
        agent = threading.Thread(target=lambda: codes.append(world.run_agent(("--run", run.name))))
        agent.start()
        log = run.folder / "manager.log"
        eventually(lambda: log.exists() and b"fault_witnessed" in log.read_bytes(), within_s=HUNG_S)
        toxiproxy = next(part for part in world.parts if part.name == "toxiproxy")
        os.kill(warm.child(toxiproxy.process.pid), signal.SIGKILL)
        agent.join(HUNG_S)
        assert codes == [3]
    said = capfd.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0] == "the lab is down: toxiproxy has ended in mid-run (killed by signal 9)"
    history = History.read(run.folder)
    assert [event.reason for _, event in history.find_events(RunFinished)] == ["lab_down"]
    last_armed = max((record.t for record, _ in history.find_events(FaultArmed)), default=0.0)
    assert not [e for r, e in history.find_events(CallFinished) if r.t > last_armed + 15]


def test_an_agent_that_is_told_and_does_not_end_is_no_agent_that_has_done_its_work(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "TOLD_S", 0.01)
    with subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE) as agent:
        try:
            code = local._end_agent_as_lab_down(agent, "the manager has ended in mid-run")
        finally:
            agent.kill()
    assert (code, capfd.readouterr().err) == (3, "the lab is down: the manager has ended in mid-run\n")


def test_a_taken_base_is_waited_for_and_then_named(tmp_path: Path) -> None:
    base = free_base()
    with socket.create_server(("127.0.0.1", Ports(base).get_proxy_port("movies"))):
        ended = chaoslab(tmp_path, "lab", f"BASE_PORT={base}", prompts(tmp_path, EASY))
    assert ended.returncode == 2
    assert ended.stderr == (
        f"port {base + 1002} (movies's proxy) is in use: end what holds it, or choose another BASE_PORT than {base}\n"
    )
    assert not (tmp_path / "logs").exists()
    assert not (tmp_path / "state").exists()  # a lab that runs there shares it


def test_where_every_base_is_taken_the_bases_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "BASES", (base := free_base(),))
    with (
        socket.create_server(("127.0.0.1", Ports(base).get_proxy_port("movies"))),
        pytest.raises(WorldError, match=f"^ports are in use at each of the bases {base}: choose one with BASE_PORT$"),
    ):
        local.find_free_ports(None, system)


def test_a_part_whose_output_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    world = LocalWorld(Ports(free_base()), tmp_path, tmp_path / "state.db", tmp_path / "gone", environment(), system)
    with world, pytest.raises(WorldError, match=r"/gone/\w+\.out cannot be written: No such file or directory$"):
        world.start_services(now="2026-06-01T09:00:00Z", toxiproxy=True, model=True)


@contextlib.contextmanager
def raced(
    folder: Path, parts: Sequence[str], *, places: int = 3, movable: bool = True
) -> Iterator[tuple[list[int], LocalWorld]]:
    """A lab that may stand at so many bases.

    Whenever it has looked at one and is about to start there, somebody takes the next part's port.
    """
    bases = [free_base() for _ in range(places)]
    run = Run.create(folder / "logs", now="2026-06-01T09:00:00Z")
    with warm_parts(), contextlib.ExitStack() as others:

        def make(ports: Ports) -> LocalWorld:
            for part in parts[bases.index(ports.base) :][:1]:
                others.enter_context(site(lambda _: said({}), port=ports.list_all_ports()[part]))  # of another lab
            variables = environment() | Settings().override({"BASE_PORT": str(ports.base)}).to_environment()
            return LocalWorld(ports, folder / "logs", folder / "state.db", run.folder, variables, system)

        with run_local_world(
            Ports(bases[0]), make, now=run.now, toxiproxy=True, model=True, movable=movable, bases=bases
        ) as world:
            yield bases, world


@pytest.mark.parametrize("parts", [("search", "movies's proxy"), ("toxiproxy", "proxy manager")])
def test_a_port_that_is_taken_after_the_look_moves_the_lab(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], parts: Sequence[str]
) -> None:
    with raced(tmp_path, parts) as (bases, world):
        assert world.ports.base == bases[2]
        assert [part.process.poll() for part in world.parts] == [None] * 4
    assert capfd.readouterr().out.splitlines() == [
        f"some port from {before} on was taken meanwhile: this lab starts again at {after}"
        for before, after in itertools.pairwise(bases)
    ]


@pytest.mark.parametrize(("places", "movable"), [(1, True), (2, False)])
def test_with_nowhere_else_to_go_the_port_is_named_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], places: int, movable: bool
) -> None:
    in_use = r"^port \d+ \(model\) is in use: end what holds it, or choose another BASE_PORT than \d+$"
    with (
        pytest.raises(PortTaken, match=in_use),
        raced(tmp_path, ["model"], places=places, movable=movable),
    ):
        pytest.fail("it is up")
    assert capfd.readouterr().out == ""


def test_a_child_gets_the_settings_in_force() -> None:
    chosen = Settings().override({"TOXIC_PROB": "0.3", "SEED": "7", "TOKEN_LIMIT": "900"})
    assert {"TOXIC_PROB": "0.3", "SEED": "7", "TOKEN_LIMIT": "900"}.items() <= build_child_environment(chosen).items()
