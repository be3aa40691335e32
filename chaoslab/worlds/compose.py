"""The containers' world: runs `docker compose` with the settings in force, and takes everything down afterwards.

Compose stops its containers at Ctrl-C, but receives one Ctrl-C twice and may take the second as a request to kill. Here
it never receives any: a command that cannot stop the agent follows it, and another one stops it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from chaoslab.base.commandline import INTERRUPTED
from chaoslab.base.interrupts import Interrupts
from chaoslab.config.topology import Ports
from chaoslab.worlds.local import WorldError as WorldError
from chaoslab.worlds.stopping import Stopper

FILE = Path("docker-compose.yaml")
UNSEEN = (130, 137, 143)
"""The exit codes of an agent whose report nobody saw: it was no longer followed, or was killed before it wrote one."""
WINDING_UP_S = 60.0
"""A time that is enough to stop and take down; Ctrl-C does not interrupt that."""


LOOK_S = 0.05
"""Seconds between two looks at the shared state: a command to the engine takes some tenths."""
ANSWER_S = 20.0
"""Seconds in which the engine carries out a command on one container."""
HEALTHY = """exec 3<>/dev/tcp/127.0.0.1/$0 && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 &&
read -t 5 -r status <&3 && [[ $status == *" 200 "* ]]"""


@dataclass(frozen=True)
class Containers:
    """The containers of the services, which the engine kills, pauses and starts as this host asks (see `Processes`).
    No container has a way to the engine."""

    environment: Mapping[str, str]

    def kill(self, service: str) -> None:
        self._do("kill", service)

    def start_again(self, service: str) -> None:
        self._do("start", service)

    def pause(self, service: str) -> None:
        self._do("pause", service)

    def resume(self, service: str) -> None:
        self._do("unpause", service)

    def is_up(self, service: str) -> bool:
        """True once the service answers in its container."""
        port = str(Ports().service(service))
        return not self._ended("exec", "-T", service, "bash", "-c", HEALTHY, port).returncode

    def _do(self, *command: str) -> None:
        ended = self._ended(*command)
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
            raise OSError(f"docker compose {' '.join(command)}: {said[-1]}")

    def _ended(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ("docker", "compose", *command),
            env=dict(self.environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            start_new_session=True, check=False, timeout=ANSWER_S,
        )  # fmt: skip


@contextmanager
def _stopping(make: Callable[[Containers], Stopper] | None, environment: Mapping[str, str]) -> Iterator[None]:
    """A context in which a thread carries out the faults of processes; at its end no container is paused."""
    if make is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        try:
            stopper = make(Containers(environment))
        except sqlite3.Error as error:
            print(f"no service is stopped: the shared state cannot be used ({error})", file=sys.stderr)
            return
        try:
            while not ended.wait(LOOK_S):
                if lost := stopper.looked():  # the agent is not answered, and ends the run
                    print(lost, file=sys.stderr)
                    return
        finally:
            stopper.close()

    thread = threading.Thread(target=look, name="stopper")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(environment: Mapping[str, str], *, stopper: Callable[[Containers], Stopper] | None = None) -> int:
    """Runs the whole lab in containers, attached to the agent; returns the agent's exit code. `stopper`: makes what
    carries out the faults of processes, once the lab is up.

    Raises:
        WorldError: there is no Docker, or nothing to compose here.
    """
    if not FILE.exists():
        raise WorldError(f"there is no {FILE} here: run this from the lab's folder")
    if shutil.which("docker") is None or _docker(environment, "info", quiet=True):
        raise WorldError("no Docker engine answers: start Docker, or use WORLD=local, which needs none")
    if _docker(environment, "compose", "version", quiet=True):
        raise WorldError("docker has no 'compose' plug-in: install Docker Compose 2.40 or newer")
    for folder in ("logs", "state", "charts", "data"):
        Path(folder).mkdir(exist_ok=True)
    environment = {**environment, "STOPPER": "host", "COMPOSE_LAST": ""}
    code, ended = INTERRUPTED, None
    with Interrupts(patience_s=WINDING_UP_S) as interrupts:
        try:
            # Remains of an earlier run are removed first.
            _docker(environment, "compose", "rm", "--stop", "--force", "agent", quiet=True)
            code = _docker(environment, "compose", "up", "--build", "--detach", "agent", interrupts=interrupts)
            with nullcontext() if code else _stopping(stopper, environment):
                if not code and not _docker(environment, "compose", "logs", "--follow", "agent", interrupts=interrupts):
                    _docker(environment, "compose", "wait", "agent", interrupts=interrupts, quiet=True)
        except KeyboardInterrupt:
            pass
        try:
            _docker(environment, "compose", "stop", "agent")
            ended = _ended(environment)
            if ended in UNSEEN:
                _docker(environment, "compose", "run", "--rm", "charts", interrupts=interrupts)
        finally:
            _docker(environment, "compose", "down")
    return code if ended is None else ended


def _ended(environment: Mapping[str, str]) -> int | None:
    """The agent's exit code; None if it never ran."""
    state = '{{if eq .State "exited"}}{{.ExitCode}}{{end}}'
    command = ("docker", "compose", "ps", "--all", "--format", state, "agent")
    said = subprocess.run(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        start_new_session=True, check=False,
    ).stdout.strip()  # fmt: skip
    return int(said) if said else None


def _docker(
    environment: Mapping[str, str], *command: str, interrupts: Interrupts | None = None, quiet: bool = False
) -> int:
    """Runs a command to its end, out of reach of the terminal's Ctrl-C; `interrupts` may end it."""
    where = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(
        ("docker", *command),
        env=dict(environment), stdin=subprocess.DEVNULL, stdout=where, stderr=where, start_new_session=True,
    )  # fmt: skip
    try:
        with interrupts.heard() if interrupts is not None else nullcontext():
            return process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
