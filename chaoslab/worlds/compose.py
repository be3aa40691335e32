"""The containers' world: `docker compose` from here, with the settings in force, and everything taken down afterwards."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from chaoslab.worlds.local import WorldError as WorldError
from chaoslab.worlds.local import interrupted_once

FILE = Path("docker-compose.yaml")
REPORTED = (0, 3, 130, 137, 143)
"""Exit codes of an agent whose run had begun: then there are figures to be shown."""


def run(environment: Mapping[str, str]) -> int:
    """The whole lab in containers, attached to the agent; the agent's exit code.

    Raises:
        WorldError: there is no Docker, or nothing to compose here.
    """
    if not FILE.exists():
        raise WorldError(f"there is no {FILE} here: run this from the lab's folder")
    if shutil.which("docker") is None or _call(("docker", "info"), environment, quiet=True):
        raise WorldError("no Docker engine answers: start Docker, or use WORLD=local, which needs none")
    if _call(("docker", "compose", "version"), environment, quiet=True):
        raise WorldError("docker has no 'compose' plug-in: install Docker Compose 2.40 or newer")
    for folder in ("logs", "state", "charts", "data"):
        Path(folder).mkdir(exist_ok=True)
    compose = ("docker", "compose")
    code = 130
    try:
        with interrupted_once():
            code = _call((*compose, "up", "--build", "--exit-code-from", "agent", "agent"), environment)
    except KeyboardInterrupt:  # compose was told by the terminal too, and has ended its containers
        pass
    try:
        if code in REPORTED:
            _call((*compose, "run", "--rm", "--no-deps", "--build", "charts"), environment)
    finally:
        _call((*compose, "down", "--timeout", "5"), environment)
    return code


def _call(command: tuple[str, ...], environment: Mapping[str, str], *, quiet: bool = False) -> int:
    where = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, env=dict(environment), stdout=where, stderr=where)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise
