"""The lab in containers as a person has it: a copy of this repository, driven by `docker compose`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.clock import system
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.record.history import History
from chaoslab.record.lines import parse_line
from tests.cli_parts import environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

ROOT = Path(__file__).parent.parent.parent
OWNER = 12345
"""The owner of the copy when the tests run as root: nobody in particular, so that the lab's files can be told apart."""
PARTS = ("toxiproxy", "proxy_manager", *SERVICES, MODEL)
"""The services that stay up."""
WITHIN_S = 900.0
"""The seconds in which anything has to happen. None of it takes a fifth of that on a machine that is four times slower
than others."""


def docker_missing() -> str:
    """The reason that there are no containers here; empty if there are."""
    if shutil.which("docker") is None:
        return "no docker command on PATH"
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            return f"`{' '.join(command)}` fails: {(ended.stderr.strip() or 'no words').splitlines()[-1]}"
    return ""


def until(true: Callable[[], Any], what: str) -> Any:
    """Returns what `true` gives once it is true; it is asked ten times a second."""
    began_s = system.monotonic()
    while not (found := true()):
        assert system.monotonic() - began_s < WITHIN_S, f"not within {WITHIN_S:g} s: {what}"
        system.sleep(0.1)
    return found


@dataclass
class Stack:
    """One copy of the lab. `docker`: the SDK's client; `status_port`: where the manager's status is published; `up`:
    some of its services were left running.
    """

    folder: Path
    project: str
    docker: DockerClient
    status_port: int
    toxiproxy_port: int
    up: bool = False
    begun: list[Begun] = field(default_factory=list)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Without charts, which take half of an agent's time, unless a test asks for them. What is empty is not set."""
        ports = {"STATUS_PORT": str(self.status_port), "TOXIPROXY_PORT": str(self.toxiproxy_port)}
        own = {"COMPOSE_PROJECT_NAME": self.project, "COMPOSE_CHARTS": "--no-charts"}
        return {name: value for name, value in {**environment(), **own, **ports, **given}.items() if value}

    def compose(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """`docker compose …` in the copy, to its end."""
        return subprocess.run(
            ["docker", "compose", "--ansi", "never", *arguments],
            cwd=self.folder,
            env=self.environment(settings),
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    def begin(self, command: Sequence[str], **settings: str) -> Begun:
        """A command in the copy that goes on by itself, its output in a file.

        It has a process group of its own, as a terminal gives it.
        """
        out = self.folder / "out.txt"
        with out.open("w") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment(settings), stdout=file, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.begun.append(Begun(process, out))
        return self.begun[-1]

    def stand(self) -> None:
        """Brings up all services, if they are not, and removes an agent."""
        self.without_agent()
        mine = [f"com.docker.compose.project={self.project}"]
        running = self.docker.containers.list(filters={"label": mine})
        well = self.docker.containers.list(filters={"label": mine, "health": "healthy"})
        if len(well) + 1 == len(running) == len(PARTS):  # to ask compose takes seconds; Toxiproxy has no probe
            return
        up = self.compose("up", "--detach", "--wait", *PARTS)
        assert up.returncode == 0, up.stderr

    def without_agent(self) -> None:
        for agent in self._containers("agent"):
            agent.remove(force=True)

    def end(self) -> None:
        """Ends what is still going on, and takes the containers down."""
        self.end_commands()
        self.compose("down", "--volumes", "--timeout", "5")
        self.up = False

    def end_commands(self) -> None:
        for begun in self.begun:
            if begun.process.poll() is None:
                os.killpg(begun.process.pid, signal.SIGKILL)
                begun.process.wait()
        self.begun.clear()
        (self.folder / ".env").unlink(missing_ok=True)

    def container(self, service: str) -> Container:
        """The container of a service, running or not."""
        found = self._containers(service)
        assert len(found) == 1, f"{len(found)} containers of {service}"
        return found[0]

    def _containers(self, service: str) -> list[Container]:
        labels = [f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}"]
        found: list[Container] = self.docker.containers.list(
            all=True, filters={"label": [*labels, "com.docker.compose.oneoff=False"]}
        )
        return found

    def prompts(self, asked: Sequence[object], name: str = "mine.json") -> str:
        """A prompt file of the user's, by the path that holds in and out of containers."""
        (self.folder / "data" / name).write_text(json.dumps(list(asked)))
        return f"data/{name}"

    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "logs").iterdir() if path.is_dir() and not path.is_symlink())

    def history(self, run: str = "latest") -> History:
        return History.read(self.folder / "logs" / run)

    def logged(self, kind: str, *, after: Sequence[str], at_least: int = 1) -> str:
        """Waits until a run that is none of `after` has logged so many events of a kind; returns the run's name."""

        def found() -> str:
            for run in set(self.runs()) - set(after):
                lines = b"".join(p.read_bytes() for p in (self.folder / "logs" / run).glob("*.log")).splitlines()
                records = [record for line in lines if (record := parse_line(line)) is not None]
                if sum(record.event.kind == kind for record in records) >= at_least:
                    return run
            return ""

        return str(until(found, f"{at_least} events {kind}"))


@dataclass
class Begun:
    """A command that was begun."""

    process: subprocess.Popen[bytes]
    out: Path

    def said(self, words: str) -> None:
        """Waits until the command has printed these words."""

        def found() -> bool:
            assert self.process.poll() is None or words in self.out.read_text(), self.out.read_text()[-3000:]
            return words in self.out.read_text()

        until(found, f"the words {words!r}")

    def interrupt(self) -> None:
        """Ctrl-C: to the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self) -> int:
        return self.process.wait(WITHIN_S)

    def text(self) -> str:
        return self.out.read_text()
