"""The containers' world: runs `docker compose` with the settings in force, and takes everything down afterwards.

Compose stops its containers at Ctrl-C, but receives one Ctrl-C twice and may take the second as a request to kill. Here
it never receives any: a command that cannot stop the agent follows it, and another one stops it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from chaoslab.base.commandline import INTERRUPTED
from chaoslab.base.interrupts import Interrupts
from chaoslab.worlds.local import WorldError as WorldError

FILE = Path("docker-compose.yaml")
REPORTED = (0, 3, 130, 137, 143)
"""The exit codes of an agent whose run had begun, so that there are results to show."""
WINDING_UP_S = 60.0
"""A time that is enough to stop and take down; Ctrl-C does not interrupt that."""


def run(environment: Mapping[str, str]) -> int:
    """Runs the whole lab in containers, attached to the agent; returns the agent's exit code.

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
    code, ended = INTERRUPTED, None
    with Interrupts(patience_s=WINDING_UP_S) as interrupts:
        try:
            # Remains of an earlier run are removed first.
            _docker(environment, "compose", "rm", "--stop", "--force", "agent", quiet=True)
            code = _docker(environment, "compose", "up", "--build", "--detach", "agent", interrupts=interrupts)
            if not code and not _docker(environment, "compose", "logs", "--follow", "agent", interrupts=interrupts):
                _docker(environment, "compose", "wait", "agent", interrupts=interrupts, quiet=True)
        except KeyboardInterrupt:
            pass
        try:
            _docker(environment, "compose", "stop", "agent")
            ended = _ended(environment)
            if ended in REPORTED:
                _docker(environment, "compose", "run", "--rm", "--no-deps", "--build", "charts", interrupts=interrupts)
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
