"""Shared by the tests of dying parts: a Toxiproxy to kill and start again, and a lab to be killed or broken off."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoslab.base.clock import system
from chaoslab.worlds.local import find_free_ports
from tests import warm
from tests.cli_parts import command, environment, execute, free_base
from tests.seams.lab_parts import eventually, fixed_ports
from tests.waiting import HUNG_S
from tests.wire.wire_parts import answers_by

__all__ = ["DEADLINE_S", "SERVERS", "Lab", "Mortal", "eventually", "gone", "lab", "mortal", "ports_are_free"]

DEADLINE_S = 20.0


def _embedded() -> Callable[[int], list[str]]:
    return lambda port: command("toxiproxy", "--port", str(port), python=warm.python())


def _real() -> Callable[[int], list[str]]:
    binary = shutil.which("toxiproxy-server")
    if binary is None:
        pytest.skip("toxiproxy-server is not on PATH")
    return lambda port: [binary, "-port", str(port)]


SERVERS = {"embedded": _embedded, "real": _real}


@dataclass
class Mortal:
    """A Toxiproxy as a process of its own, always at the same address."""

    command: list[str]
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """It will answer in a moment."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """With SIGKILL, as by a crash or by the kernel's memory killer."""
        if self.process is not None:
            warmly = self.command[0] == warm.python()
            os.kill(warm.child(self.process.pid) if warmly else self.process.pid, signal.SIGKILL)
            self.process.wait(DEADLINE_S)

    def restart(self) -> None:
        self.kill()
        self.start()


@contextlib.contextmanager
def mortal(server: str) -> Iterator[Mortal]:
    """One that answers."""
    command = SERVERS[server]()
    (port,) = fixed_ports(1, start=31500)
    made = Mortal(command(port), port)
    made.start()
    try:
        answers_by(port, system.monotonic() + DEADLINE_S)
        yield made
    finally:
        made.kill()


@dataclass
class Lab:
    """`chaoslab lab` as a process with a terminal's process group of its own; what it says goes to a file."""

    process: subprocess.Popen[bytes]
    python: str
    folder: Path
    base: int
    words: Path

    @property
    def said(self) -> str:
        return self.words.read_text()

    @property
    def run(self) -> Path:
        """The folder of its run."""
        return max((self.folder / "logs").glob("2*"))

    def until(self, file: str, word: str) -> None:
        """Waits until the word is in that file of the run, or in what the lab says ("said.txt")."""

        def there() -> bool:
            assert self.process.poll() is None, f"ended without '{word}' in {file}: {self.said}"
            if file == "said.txt":
                return word in self.said
            return any(word in path.read_text() for path in (self.folder / "logs").glob(f"2*/{file}"))

        eventually(there, within_s=HUNG_S)

    @property
    def supervisor(self) -> int:
        """Its own process id, also of a warm start."""
        return self.process.pid if self.python == sys.executable else warm.child(self.process.pid)

    def children(self) -> dict[int, str]:
        """Each child's process id and command."""
        supervisor = self.supervisor
        table = execute(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], check=True)
        rows = [line.split(None, 2) for line in table.stdout.splitlines()]
        return {int(row[0]): row[2] for row in rows if len(row) == 3 and int(row[1]) == supervisor}

    def interrupt(self) -> None:
        """As the terminal does at Ctrl-C: to the whole group."""
        os.killpg(self.supervisor, signal.SIGINT)

    def ended(self) -> int:
        return self.process.wait(HUNG_S)


@contextlib.contextmanager
def lab(
    folder: Path, *arguments: str, base: int | None = None, said: str = "said.txt", python: str = sys.executable
) -> Iterator[Lab]:
    """The lab on its way; killed afterwards if it is still there."""
    base = base or free_base()
    with (folder / said).open("wb") as out:
        process = subprocess.Popen(
            command("lab", f"BASE_PORT={base}", *arguments, python=python), cwd=folder, env=environment(), stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield Lab(process, python, folder, base, folder / said)
    finally:
        process.kill()
        process.wait()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def ports_are_free(base: int) -> bool:
    return find_free_ports(base, system).base == base
