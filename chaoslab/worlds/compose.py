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
from chaoslab.worlds.stopping import OutageRunner

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
    """By service and action, the container as each fault found it. The last one to heal undoes the action."""

    def kill(self, service: str) -> None:
        with _translate_docker_errors(service, "killed"):
            self._find_container(service).kill()

    def start_again(self, service: str) -> None:
        with _translate_docker_errors(service, "started"):
            self._find_container(service).start()

    def pause(self, service: str) -> None:
        from docker.errors import APIError

        with _translate_docker_errors(service, "paused"):
            container = self._find_container(service)
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
        with _translate_docker_errors(service, "resumed"):
            self._find_container(service).unpause()

    def is_up(self, service: str) -> bool:
        """True once the service answers in its container."""
        from docker.errors import DockerException

        port = str(Ports().get_service_port(service))
        try:
            return self._find_container(service).exec_run(["bash", "-c", HEALTHY, port]).exit_code == 0
        except DockerException:  # it does not run
            return False

    def disturb_service(self, service: str, condition: str, share: float) -> None:
        with _translate_docker_errors(service, condition):
            container = self._find_container(service)
            before = self._before.setdefault((service, condition), [])
            # As each fault found it: the last one to heal restores what the first one found.
            before.append(container.attrs)
            if condition == "throttled":
                container.update(cpu_period=PERIOD_US, cpu_quota=max(LEAST_US, round(PERIOD_US * share)))
            elif len(before) > 1:
                return
            elif condition == "partitioned":
                for name in before[0]["NetworkSettings"]["Networks"]:
                    self._docker_client.networks.get(name).disconnect(container, force=True)
            elif container.status == "running":
                self._exhaust_memory(container)

    def undo_disturbance(self, service: str, condition: str) -> None:
        with _translate_docker_errors(service, f"brought back after it was {condition}"):
            container = self._find_container(service)
            before = self._before[service, condition]
            attrs = before.pop()
            if before:
                return
            host = attrs["HostConfig"]
            if condition == "partitioned":
                for name, network in attrs["NetworkSettings"]["Networks"].items():
                    # Its aliases are lost with the network, and the others know it by them.
                    self._docker_client.networks.get(name).connect(
                        container, aliases=[*(network["Aliases"] or ()), service]
                    )
            elif condition == "throttled":
                # The engine tells of no quota as 0 and takes it as -1.
                container.update(cpu_period=host["CpuPeriod"] or PERIOD_US, cpu_quota=host["CpuQuota"] or NONE)
            else:
                # No update takes a limit of memory back: where there was none, it is all the memory.
                limit = host["Memory"] or self._docker_client.info()["MemTotal"]
                container.update(mem_limit=limit, memswap_limit=host["MemorySwap"] or NONE)
                container.start()

    def _exhaust_memory(self, container: Container) -> None:
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
        self.undo_disturbance(container.labels["com.docker.compose.service"], "out of memory")
        raise OSError(f"{container.name} was not killed for want of memory at {limit >> 20} MiB")

    def _find_container(self, service: str) -> Container:
        """The service's container, running or not. Raises LookupError: there is none."""
        # By the labels of compose, so that another project's service of this name is none.
        label_values = {"service": service, "oneoff": "False", "project.working_dir": str(Path.cwd())}
        if project := self.environment.get("COMPOSE_PROJECT_NAME"):
            label_values["project"] = project
        labels = [f"com.docker.compose.{name}={value}" for name, value in label_values.items()]
        containers: list[Container] = self._docker_client.containers.list(all=True, filters={"label": labels})
        if not containers:
            raise LookupError(f"there is no container of {service}")
        return containers[0]

    @property
    def _docker_client(self) -> DockerClient:
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
def _translate_docker_errors(service: str, action: str) -> Iterator[None]:
    """A context in which the SDK's errors are an OSError of one line."""
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        reason = getattr(error, "explanation", None) or error
        raise OSError(f"{service} could not be {action}: {reason}") from error


@contextmanager
def _run_outage_thread(
    make: Callable[[Containers], OutageRunner] | None, environment: Mapping[str, str]
) -> Iterator[None]:
    """A context in which a thread carries out the faults of processes; at its end no container is paused."""
    if make is None:
        yield
        return
    ended = threading.Event()

    def watch_outages() -> None:
        containers = Containers(environment)
        try:
            stopper = make(containers)
        except sqlite3.Error as error:
            print(f"no service is stopped: the shared state cannot be used ({error})", file=sys.stderr)
            return
        try:
            while not ended.wait(LOOK_S):
                if lost := stopper.advance_outages_or_explain():  # the agent is not answered, and ends the run
                    print(lost, file=sys.stderr)
                    return
        finally:
            stopper.close()
            containers.close()

    thread = threading.Thread(target=watch_outages, name="stopper")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run_in_containers(
    environment: Mapping[str, str],
    *,
    run: str = "",
    stopper: Callable[[Containers], OutageRunner] | None = None,
    drawn: bool = True,
) -> int:
    """Runs the whole lab in containers, attached to the agent; returns the agent's exit code. `run`: the name of the
    run's folder, which the agent makes. `stopper`: makes what
    carries out the faults of processes, once the lab is up. `drawn`: the agent draws charts. Raises WorldError: there
    is no Docker, or nothing to compose here."""
    if not FILE.exists():
        raise WorldError(f"there is no {FILE} here: run this from the lab's folder")
    if shutil.which("docker") is None or _run_docker(environment, "info", quiet=True):
        raise WorldError("no Docker engine answers: start Docker, or use WORLD=local, which needs none")
    if _run_docker(environment, "compose", "version", quiet=True):
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
            _run_docker(environment, "compose", "rm", "--stop", "--force", "agent", quiet=True)
            code = _run_docker(environment, "compose", "up", "--build", "--detach", "agent", interrupts=interrupts)
            with nullcontext() if code else _run_outage_thread(stopper, environment):
                if not code and not _run_docker(
                    environment, "compose", "logs", "--follow", "agent", interrupts=interrupts
                ):
                    # `logs` may end before the container has, whose exit code is wanted.
                    _run_docker(environment, "compose", "wait", "agent", interrupts=interrupts, quiet=True)
        except KeyboardInterrupt:
            pass
        try:
            _print_exited_parts(environment)
            _run_docker(environment, "compose", "stop", "agent")
            # Before `down`, which removes the container and its code with it.
            ended = _read_agent_exit_code(environment)
            if ended in UNSEEN:
                _run_docker(environment, "compose", "run", "--rm", "charts", interrupts=interrupts)
        finally:
            # In a `finally`: nothing may stay up, not even after an error.
            _run_docker(environment, "compose", "down")
    return code if ended is None else ended


def _print_exited_parts(environment: Mapping[str, str]) -> None:
    """Shows the last lines of each part that has exited though it should be up; nothing where all are."""
    state = '{{if eq .State "exited" "dead"}}{{.Service}} {{.ExitCode}}{{end}}'
    for line in _read_compose_output(environment, "ps", "--all", "--format", state).splitlines():
        service, _, code = line.partition(" ")
        if service and service not in ENDING:
            output = _read_compose_output(environment, "logs", "--no-log-prefix", "--tail", str(LAST_LINES), service)
            print(f"{service} has exited with code {code}; its last lines:", file=sys.stderr)
            print(*(f"  {line_}" for line_ in output.splitlines()), sep="\n", file=sys.stderr, flush=True)


def _read_agent_exit_code(environment: Mapping[str, str]) -> int | None:
    """The agent's exit code; None if it never ran."""
    state = '{{if eq .State "exited"}}{{.ExitCode}}{{end}}'
    output = _read_compose_output(environment, "ps", "--all", "--format", state, "agent").strip()
    return int(output) if output else None


def _read_compose_output(environment: Mapping[str, str], *command: str) -> str:
    """The output of a command of compose, out of reach of the terminal's Ctrl-C."""
    return subprocess.run(
        ("docker", "compose", *command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # A session of its own: Ctrl-C goes to this process alone.
        text=True,
        start_new_session=True,
        check=False,
    ).stdout


def _run_docker(
    environment: Mapping[str, str], *command: str, interrupts: Interrupts | None = None, quiet: bool = False
) -> int:
    """Runs a command to its end, out of reach of the terminal's Ctrl-C; `interrupts` may end it."""
    stream = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(
        ("docker", *command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=stream,
        start_new_session=True,
    )
    try:
        with interrupts.raise_on_signal() if interrupts is not None else nullcontext():
            return process.wait()
    except KeyboardInterrupt:
        # To the group, since `docker` starts plug-ins of its own.
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
