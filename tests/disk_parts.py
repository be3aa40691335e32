"""Shared by the tests of failing disks: small and read-only disks, limits, and a lab whose parts come and go."""

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoslab.base.clock import system
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core.events import PromptFinished
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.worlds.local import LocalWorld
from tests import warm
from tests.cli_parts import command, environment, free_base, warm_parts
from tests.reports.fake_run import summary
from tests.seams.lab_parts import NOW, eventually
from tests.waiting import HUNG_S

__all__ = ["NOW", "Rest", "Working", "eventually", "free_base", "limit", "read_only", "rest_of_the_lab", "small_disk"]


@contextlib.contextmanager
def small_disk(folder: Path, *, kib: int, keep: bool = True) -> Iterator[None]:
    """A disk of that size in place of the folder; what is in it is carried over. Skips where nothing may be mounted."""
    held = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} if keep else {}
    _mount("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder))
    try:
        for name, data in held.items():
            (folder / name).write_bytes(data)
        yield
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True)


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """The file or folder as on a read-only disk, for root too."""
    _mount("--bind", str(path), str(path))
    try:
        _mount("-o", "remount,ro,bind", str(path))
        yield
    finally:
        subprocess.run(("umount", "-l", str(path)), check=True)


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(("mount", *arguments), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")


def limit(process: subprocess.Popen[str], held: int) -> None:
    """From now on no file of that process may grow beyond so many bytes."""
    _, hard = resource.prlimit(warm.child(process.pid), resource.RLIMIT_FSIZE)
    resource.prlimit(warm.child(process.pid), resource.RLIMIT_FSIZE, (held, hard))


@dataclass
class Working:
    """A run under way: its manager and its agent, as processes."""

    run: Run
    state: Path
    manager: subprocess.Popen[str]
    agent: subprocess.Popen[str]

    def after(self, prompts: int) -> None:
        """Waits until so many prompts are worked through, and the run goes on."""
        assert self.goes_on_after(prompts), self.agent.communicate()

    def goes_on_after(self, prompts: int) -> bool:
        """The same; False if the run has ended meanwhile."""
        log = self.run.folder / "info.log"
        mark = f'"{PromptFinished.kind}"'.encode()
        eventually(
            lambda: self.agent.poll() is not None or (log.exists() and log.read_bytes().count(mark) >= prompts),
            within_s=HUNG_S,
        )
        return self.agent.poll() is None

    def ended(self) -> tuple[int, str]:
        """The agent's exit code and what it said in its one line, if any."""
        words = self.agent.communicate(timeout=HUNG_S)[1]
        assert words.count("\n") == (1 if words else 0), words
        return self.agent.returncode, words

    def history(self) -> History:
        """The logged records; a person's figures can be had from it."""
        history = History.read(self.run.folder)
        assert f"run {self.run.name}" in summary(history)
        return history


@dataclass
class Rest:
    """Toxiproxy, model and tools; manager and agent are the test's own."""

    world: LocalWorld
    prompts: Path

    @contextlib.contextmanager
    def working(self, state: Path, *settings: str, run: Run | None = None) -> Iterator[Working]:
        """A run over many prompts, with faults."""
        run = run or self.run()
        with contextlib.ExitStack() as stack:
            places = ("--state", str(state), "--logs", str(self.world.logs))
            manager = stack.enter_context(self._part("manager", *places))
            assert manager.stdout is not None
            assert manager.stdout.readline().startswith("ready")
            more = ("--run", run.name, "--prompts", str(self.prompts))
            agent = stack.enter_context(self._part("agent", *places, *more, *settings))
            yield Working(run, state, manager, agent)

    def run(self) -> Run:
        return Run.create(self.world.logs, now=NOW)

    @contextlib.contextmanager
    def _part(self, part: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            command(part, *arguments, python=warm.python()),
            stdout=subprocess.PIPE if part == "manager" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(self.world.environment),
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(HUNG_S)
            finally:
                process.kill()
                process.communicate()


@contextlib.contextmanager
def rest_of_the_lab(folder: Path) -> Iterator[Rest]:
    prompts = folder / "prompts.json"
    prompts.write_text("[" + ",".join(f'"What is {n} times 24?"' for n in range(17, 1017)) + "]")
    (folder / "out").mkdir()
    base = free_base()
    faulty = {"TOXIC_PROB": "0.5", "TOXICS": "latency", "LATENCY_MS": "5", "JITTER_MS": "0", "ERROR_PROB": "0"}
    variables = {**environment(), **Settings().override({**faulty, "BASE_PORT": str(base)}).to_environment()}
    with LocalWorld(Ports(base), folder / "logs", folder / "first.db", folder / "out", variables, system) as world:
        with warm_parts():
            world.start_services(now=NOW, toxiproxy=True, model=True)
        (first,) = [part for part in world.parts if part.name == "manager"]
        first.process.terminate()  # each test brings its own
        first.process.wait(HUNG_S)
        yield Rest(world, prompts)
