"""The containers' world: runs `docker compose` with the settings in force, and takes everything down afterwards.
Compose stops its containers at Ctrl-C, but receives one Ctrl-C twice and may take the second as a request to kill. Here
it never receives any: a command that cannot stop the agent follows it, and another one stops it."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.clock import system
from chaoslab.base.commandline import INTERRUPTED
from chaoslab.base.interrupts import Interrupts
from chaoslab.config.topology import Ports
from chaoslab.worlds.local import WorldError as WorldError
from chaoslab.worlds.stopping import Stopper

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

FILE = Path("docker-compose.yaml")
# The exit codes of an agent whose report nobody saw: it was no longer followed, or was killed before it wrote one.
UNSEEN = (130, 137, 143)
# The parts that end by themselves, whose words were shown, and the lines that are shown of another that has exited.
ENDING, LAST_LINES = ("agent", "settings"), 5
# A time that is enough to stop and take down; Ctrl-C does not interrupt that.
WINDING_UP_S = 240.0


# Seconds between two looks at the shared state: a command to the engine takes some tenths.
LOOK_S = 0.05
ANSWER_S = 30.0
"""Seconds in which the engine carries out a command on one container."""
LOOKS = 400
"""The looks for a container that the kernel kills."""
PERIOD_US, LEAST_US = 100_000, 1000
"""The kernel's period for shares of a CPU, and the least share of it, in microseconds."""
# The engine's word for no limit, where it tells of none as 0.
NONE = -1
# The bytes of memory beyond what is in use that a container gets which runs out of it.
SPARE = 8 * 2**20
FILL = "/tmp/fill"
"""A file in a file system of the container's memory, which ends with its process."""
# bash speaks TCP itself; the images have no curl.
HEALTHY = """exec 3<>/dev/tcp/127.0.0.1/$0 && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 &&
read -t 5 -r status <&3 && [[ $status == *" 200 "* ]]"""


@dataclass
class Containers:
    """The containers of the services, which the engine kills, pauses, starts and disturbs as this host asks it by its
    SDK (see `Processes`). No container has a way to the engine."""

    environment: Mapping[str, str]
    _client: DockerClient | None = None
    _before: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    """By service and deed, the container as each fault found it. The last one to heal undoes the deed."""

    def kill(self, service: str) -> None:
        with _translate_errors(service, "killed"):
            self._of(service).kill()

    def start_again(self, service: str) -> None:
        with _translate_errors(service, "started"):
            self._of(service).start()

    def pause(self, service: str) -> None:
        from docker.errors import APIError

        with _translate_errors(service, "paused"):
            container = self._of(service)
            for tries_left in (2, 1, 0):
                try:
                    container.pause()
                except APIError:  # the runtime has little time to freeze it, and a busy machine may need more
                    container.reload()
                    if container.status != "paused":
                        if tries_left:
                            continue
                        raise
                return

    def resume(self, service: str) -> None:
        with _translate_errors(service, "resumed"):
            self._of(service).unpause()

    def is_up(self, service: str) -> bool:
        """True once the service answers in its container."""
        from docker.errors import DockerException

        port = str(Ports().service(service))
        try:
            return self._of(service).exec_run(["bash", "-c", HEALTHY, port]).exit_code == 0
        except DockerException:  # it does not run
            return False

    def disturb(self, service: str, condition: str, share: float) -> None:
        with _translate_errors(service, condition):
            container = self._of(service)
            before = self._before.setdefault((service, condition), [])
            # As each fault found it: the last one to heal restores what the first one found.
            before.append(container.attrs)
            if condition == "throttled":
                container.update(cpu_period=PERIOD_US, cpu_quota=max(LEAST_US, round(PERIOD_US * share)))
            elif len(before) > 1:
                return
            elif condition == "partitioned":
                for name in before[0]["NetworkSettings"]["Networks"]:
                    self._docker.networks.get(name).disconnect(container, force=True)
            elif container.status == "running":
                self._fill(container)

    def heal(self, service: str, condition: str) -> None:
        with _translate_errors(service, f"brought back after it was {condition}"):
            container = self._of(service)
            before = self._before[service, condition]
            attrs = before.pop()
            if before:
                return
            host = attrs["HostConfig"]
            if condition == "partitioned":
                for name, network in attrs["NetworkSettings"]["Networks"].items():
                    # Its aliases are lost with the network, and the others know it by them.
                    self._docker.networks.get(name).connect(container, aliases=[*(network["Aliases"] or ()), service])
            elif condition == "throttled":
                # The engine tells of no quota as 0 and takes it as -1.
                container.update(cpu_period=host["CpuPeriod"] or PERIOD_US, cpu_quota=host["CpuQuota"] or NONE)
            else:
                # No update takes a limit of memory back: where there was none, it is all the memory.
                limit = host["Memory"] or self._docker.info()["MemTotal"]
                container.update(mem_limit=limit, memswap_limit=host["MemorySwap"] or NONE)
                container.start()

    def _fill(self, container: Container) -> None:
        """Lowers the limit of memory to little more than what is in use, and fills a file in memory until the kernel
        kills the process of the service, which is the largest. Raises OSError: it did not."""
        figures: Any = container.stats(stream=False, one_shot=True)
        limit = figures["memory_stats"]["usage"] + SPARE
        limit = min(limit, container.attrs["HostConfig"]["Memory"] or limit)
        # Swap included, or the kernel would swap in place of killing.
        container.update(mem_limit=limit, memswap_limit=limit)
        container.exec_run(["dd", "if=/dev/zero", f"of={FILL}", "bs=1M", f"count={2 * SPARE >> 20}"], detach=True)
        for _ in range(LOOKS):
            container.reload()
            if container.status != "running":
                return
            system.sleep(LOOK_S)
        self.heal(container.labels["com.docker.compose.service"], "out of memory")
        raise OSError(f"{container.name} was not killed for want of memory at {limit >> 20} MiB")

    def _of(self, service: str) -> Container:
        """The service's container, running or not. Raises LookupError: there is none."""
        # By the labels of compose, so that another project's service of this name is none.
        label_values = {"service": service, "oneoff": "False", "project.working_dir": str(Path.cwd())}
        if project := self.environment.get("COMPOSE_PROJECT_NAME"):
            label_values["project"] = project
        labels = [f"com.docker.compose.{name}={value}" for name, value in label_values.items()]
        containers: list[Container] = self._docker.containers.list(all=True, filters={"label": labels})
        if not containers:
            raise LookupError(f"there is no container of {service}")
        return containers[0]

    @property
    def _docker(self) -> DockerClient:
        """The engine that the command `docker` asks too."""
        if self._client is None:
            from docker import DockerClient
            from docker.context import ContextAPI

            # As the command `docker` does: the variable, else the context in use.
            host = self.environment.get("DOCKER_HOST") or ContextAPI.get_current_context().Host
            self._client = DockerClient(base_url=host, timeout=int(ANSWER_S))
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


@contextmanager
def _translate_errors(service: str, action: str) -> Iterator[None]:
    """A context in which the SDK's errors are an OSError of one line."""
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        reason = getattr(error, "explanation", None) or error
        raise OSError(f"{service} could not be {action}: {reason}") from error


@contextmanager
def _run_stopper(make: Callable[[Containers], Stopper] | None, environment: Mapping[str, str]) -> Iterator[None]:
    """A context in which a thread carries out the faults of processes; at its end no container is paused."""
    if make is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        containers = Containers(environment)
        try:
            stopper = make(containers)
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
            containers.close()

    thread = threading.Thread(target=look, name="stopper")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(
    environment: Mapping[str, str], *, run: str = "", stopper: Callable[[Containers], Stopper] | None = None,
    drawn: bool = True,
) -> int:  # fmt: skip
    """Runs the whole lab in containers, attached to the agent; returns the agent's exit code. `run`: the name of the
    run's folder, which the agent makes. `stopper`: makes what
    carries out the faults of processes, once the lab is up. `drawn`: the agent draws charts. Raises WorldError: there
    is no Docker, or nothing to compose here."""
    if not FILE.exists():
        raise WorldError(f"there is no {FILE} here: run this from the lab's folder")
    if shutil.which("docker") is None or _docker(environment, "info", quiet=True):
        raise WorldError("no Docker engine answers: start Docker, or use WORLD=local, which needs none")
    if _docker(environment, "compose", "version", quiet=True):
        raise WorldError("docker has no 'compose' plug-in: install Docker Compose 2.40 or newer")
    # Made here: the engine would make what is missing as root.
    for folder in ("logs", "state", "charts", "data"):
        Path(folder).mkdir(exist_ok=True)
    environment = {**environment, "STOPPER": "host", "COMPOSE_LAST": "", "COMPOSE_RUN": run}
    if not drawn:
        environment["COMPOSE_CHARTS"] = "--no-charts"
    # As if interrupted, until a command says otherwise.
    code, ended = INTERRUPTED, None
    with Interrupts(patience_s=WINDING_UP_S) as interrupts:
        try:
            # Remains of an earlier run are removed first.
            _docker(environment, "compose", "rm", "--stop", "--force", "agent", quiet=True)
            code = _docker(environment, "compose", "up", "--build", "--detach", "agent", interrupts=interrupts)
            with nullcontext() if code else _run_stopper(stopper, environment):
                if not code and not _docker(environment, "compose", "logs", "--follow", "agent", interrupts=interrupts):
                    # `logs` may end before the container has, whose exit code is wanted.
                    _docker(environment, "compose", "wait", "agent", interrupts=interrupts, quiet=True)
        except KeyboardInterrupt:
            pass
        try:
            _tell_exited(environment)
            _docker(environment, "compose", "stop", "agent")
            # Before `down`, which removes the container and its code with it.
            ended = _agent_exit_code(environment)
            if ended in UNSEEN:
                _docker(environment, "compose", "run", "--rm", "charts", interrupts=interrupts)
        finally:
            # In a `finally`: nothing may stay up, not even after an error.
            _docker(environment, "compose", "down")
    return code if ended is None else ended


def _tell_exited(environment: Mapping[str, str]) -> None:
    """Shows the last lines of each part that has exited though it should be up; nothing where all are."""
    state = '{{if eq .State "exited" "dead"}}{{.Service}} {{.ExitCode}}{{end}}'
    for line in _read_output(environment, "ps", "--all", "--format", state).splitlines():
        service, _, code = line.partition(" ")
        if service and service not in ENDING:
            output = _read_output(environment, "logs", "--no-log-prefix", "--tail", str(LAST_LINES), service)
            print(f"{service} has exited with code {code}; its last lines:", file=sys.stderr)
            print(*(f"  {line_}" for line_ in output.splitlines()), sep="\n", file=sys.stderr, flush=True)


def _agent_exit_code(environment: Mapping[str, str]) -> int | None:
    """The agent's exit code; None if it never ran."""
    state = '{{if eq .State "exited"}}{{.ExitCode}}{{end}}'
    output = _read_output(environment, "ps", "--all", "--format", state, "agent").strip()
    return int(output) if output else None


def _read_output(environment: Mapping[str, str], *command: str) -> str:
    """The output of a command of compose, out of reach of the terminal's Ctrl-C."""
    return subprocess.run(
        ("docker", "compose", *command), env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        # A session of its own: Ctrl-C goes to this process alone.
        text=True, start_new_session=True, check=False,
    ).stdout  # fmt: skip


def _docker(
    environment: Mapping[str, str], *command: str, interrupts: Interrupts | None = None, quiet: bool = False
) -> int:
    """Runs a command to its end, out of reach of the terminal's Ctrl-C; `interrupts` may end it."""
    stream = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(
        ("docker", *command),
        env=dict(environment), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True,
    )  # fmt: skip
    try:
        with interrupts.interruptible() if interrupts is not None else nullcontext():
            return process.wait()
    except KeyboardInterrupt:
        # To the group, since `docker` starts plug-ins of its own.
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
