"""What the tests of dying parts share: a Toxiproxy that can be killed and started again at the same address."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from lab_parts import eventually, fixed_ports
from wire_parts import answers_by

from chaoslab.clock import system

__all__ = ["DEADLINE_S", "SERVERS", "Mortal", "eventually", "mortal"]

DEADLINE_S = 20.0


def _embedded() -> Callable[[int], list[str]]:
    return lambda port: [sys.executable, "-m", "chaoslab", "toxiproxy", "--port", str(port)]


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
            self.process.kill()
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
