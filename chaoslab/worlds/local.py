"""The local world: the parts of the lab as processes on loopback, which end with their supervisor however it ends."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.base.clock import Clock
from chaoslab.base.commandline import INTERRUPTED, LAB_DOWN
from chaoslab.base.files import open_regular
from chaoslab.config.topology import BASE_PORT, MODEL, SERVICES, Ports
from chaoslab.worlds.stopping import LOOK_S, OutageRunner

HOST = "127.0.0.1"
_LISTEN = re.compile(r"listen (?:on|tcp) \S*:(?P<port>[0-9]{1,5})\b")
NOWHERE = 1
"""A port without a listener."""
BASES = (BASE_PORT, 15000, 25000)
START_S, END_S, FREE_S, WATCH_S = 30.0, 5.0, 3.0, 0.1
# The most seconds of an agent that was told why the lab is down: it has a log to close, and says the reason itself.
TOLD_S = 30.0


class WorldError(Exception):
    """The world cannot be made; one line has the reason and a remedy."""


class PortTaken(WorldError):
    """Another process listens on a port that was free when it was checked."""


@dataclass
class LocalProcess:
    """One process of the world. Its output goes to a file, which is quoted if it dies."""

    name: str
    process: subprocess.Popen[bytes]
    words: Path
    command: Sequence[str] = ()

    @property
    def output_lines(self) -> list[str]:
        if not self.words.exists():
            return []
        with open_regular(self.words) as file:
            return file.read().decode("utf-8", "replace").strip().splitlines()

    @property
    def is_ready(self) -> bool:
        """True if it has its ports: until then an answer there may come from another process."""
        # A line of its own, since a port may answer for another lab.
        return any(line.startswith("ready:") for line in self.output_lines)

    def describe_end(self) -> str:
        lines = self.output_lines
        code = self.process.returncode
        ending = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        # Of one that was ready the last line says nothing about its end.
        return ending if not lines or lines[-1].startswith("ready:") else lines[-1]


@dataclass
class LocalWorld:
    """The parts and their ports. `start_services` brings them up, `close` takes them down; use it as a context."""

    ports: Ports
    logs: Path
    state: Path
    folder: Path
    environment: Mapping[str, str]
    clock: Clock
    parts: list[LocalProcess] = field(default_factory=list)
    alone: Sequence[str] = ()
    """The services with a process of their own each, which may be stopped; all others share one."""
    _killed: set[str] = field(default_factory=set)
    _guards: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_services(self, *, now: str, toxiproxy: bool, model: bool) -> None:
        """Starts everything but the agent. `toxiproxy`, `model`: start the lab's own. Raises PortTaken: a part cannot
        listen on its port; WorldError: a part did not come up."""
        chaoslab = (*_get_python_command(), "chaoslab")
        if toxiproxy:
            self._spawn_process("toxiproxy", (*chaoslab, "toxiproxy", "--port", str(self.ports.toxiproxy_port)))
        if model:
            self._spawn_process("model", (*chaoslab, "model", "--port", str(self.ports.get_service_port(MODEL))))
        base = ("--base-port", str(self.ports.base), "--logs", str(self.logs), "--now", now)
        # One process for all is the quickest start; a process can only be stopped for one service.
        together = [service for service in SERVICES if service not in self.alone]
        if together:
            self._spawn_process("tools", (*chaoslab, "tools", *(together if self.alone else ()), *base))
        for service in self.alone:
            self._spawn_process(service, (*chaoslab, "tools", service, *base))
        self._spawn_process("manager", (*chaoslab, "manager", "--state", str(self.state), "--logs", str(self.logs)))
        health = {
            "toxiproxy": (self.ports.toxiproxy_port, "/version"),
            "model": (self.ports.get_service_port(MODEL), "/health"),
        }
        for process in self.parts:
            if process.name in health:
                self._wait_until_ready(process, *health[process.name])
        # Before the manager, so that nobody else takes the ports meanwhile.
        if toxiproxy:
            self._occupy_proxy_ports()
        for service in SERVICES:
            self._wait_until_ready(self._find_process(service), self.ports.get_service_port(service), "/health")
        self._wait_until_ready(self.parts[-1], self.ports.manager_port, "/health")

    def run_agent(self, arguments: Sequence[str], *, stopper: OutageRunner | None = None) -> int:
        """Runs the agent to its end, with its output on this terminal; returns its exit code. Its lifeline ends it if a
        part has died, since its results would mean nothing, or if the user interrupts. `stopper`: carries out the
        faults of processes."""
        command = (
            *_get_python_command(),
            "chaoslab",
            "agent",
            "--lifeline",
            "--logs",
            str(self.logs),
            "--state",
            str(self.state),
        )
        agent = subprocess.Popen(
            (*command, *arguments),
            # Here the agent is told why the lab is down. Any end of this process closes it, which ends the agent.
            stdin=subprocess.PIPE,
            # A tool's key is for the tools alone.
            env=dict(self.environment),
            start_new_session=True,
        )
        try:
            while (code := _wait_for_exit(agent, WATCH_S if stopper is None else LOOK_S)) is None:
                if stopper is not None and (lost := stopper.advance_outages_or_explain()):
                    return _end_agent_as_lab_down(agent, lost)
                watched = (process for process in self.parts if process.name not in self._killed)
                dead = next((process for process in watched if process.process.poll() is not None), None)
                if dead is not None:
                    return _end_agent_as_lab_down(agent, f"{dead.name} has ended in mid-run ({dead.describe_end()})")
            # Of a signal that nobody here sent, as from the kernel for want of memory.
            if code < 0:
                print(f"the lab is down: the agent was killed by signal {-code}", file=sys.stderr)
                return LAB_DOWN
            return code
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            # Also after a return: it must not outlive its supervisor.
            _end_processes([agent])

    def _find_process(self, service: str) -> LocalProcess:
        name = service if service in self.alone else "tools"
        return next(process for process in self.parts if process.name == name)

    # The processes that may be stopped; see `Processes`.

    def kill(self, service: str) -> None:
        """Kills the service's process, and returns when it is dead."""
        self._killed.add(service)
        process = self._find_process(service).process
        process.kill()
        process.wait()

    def start_again(self, service: str) -> None:
        process = self._find_process(service)
        self.parts.remove(process)
        if process.process.stdin is not None:
            process.process.stdin.close()
        self._spawn_process(service, process.command)

    def is_up(self, service: str) -> bool:
        """True once it answers. Raises ChildProcessError: it has ended."""
        process = self._find_process(service)
        if process.process.poll() is not None:
            raise ChildProcessError(process.describe_end())
        if not (process.is_ready and _does_port_answer(self.ports.get_service_port(service), "/health")):
            return False
        self._killed.discard(service)
        return True

    def pause(self, service: str) -> None:
        """Stops the service's process, and returns when it stands. A shell lets it go on when this process closes its
        pipe or is gone, so even after kill -9 nothing stays stopped."""
        pid = self._find_process(service).process.pid
        self._guards[service] = subprocess.Popen(
            ("/bin/sh", "-c", 'read -r _; kill -CONT "$1"', "sh", str(pid)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.kill(pid, signal.SIGSTOP)
        # SIGSTOP takes effect later than `kill` returns.
        os.waitpid(pid, os.WUNTRACED)

    def disturb_service(self, service: str, condition: str, share: float) -> None:
        raise OSError(f"{service} is a process on loopback, and only a container can be {condition} (to {share:g})")

    def undo_disturbance(self, service: str, condition: str) -> None:
        """Does nothing: nothing was disturbed."""

    def resume(self, service: str) -> None:
        """Lets a paused process go on."""
        guard = self._guards.pop(service)
        assert guard.stdin is not None
        guard.stdin.close()
        # Waited for: by then it has sent SIGCONT.
        guard.wait()

    def close(self) -> None:
        """Tells every part to end and waits until all have. None stays paused."""
        for service in list(self._guards):
            self.resume(service)
        processes = [started.process for started in self.parts]
        try:
            _end_processes(processes)
        except KeyboardInterrupt:  # the only one: see `Interrupts`
            _end_processes(processes)
            raise
        finally:
            self.parts.clear()

    def __enter__(self) -> "LocalWorld":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn_process(self, name: str, command: Sequence[str]) -> None:
        output_path = self.folder / f"{name}.out"
        try:
            out = output_path.open("wb")
        except OSError as error:
            raise WorldError(f"{output_path} cannot be written: {error.strerror or error}") from error
        with out:
            process = subprocess.Popen(
                (*command, "--lifeline"),
                # It closes with this process, even by kill -9, and with it the part ends: nothing outlives the lab.
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                start_new_session=True,  # Ctrl-C is for the agent; the supervisor ends the parts
            )
        self.parts.append(LocalProcess(name, process, output_path, command))

    def _occupy_proxy_ports(self) -> None:
        """Has the embedded Toxiproxy occupy the proxies' ports, until the manager makes the proxies themselves."""
        from chaoslab.wire.proxies import ToxiproxyError
        from chaoslab.wire.toxiproxy_package import ToxiproxyServer

        ports = {target: self.ports.get_proxy_port(target) for target in (*SERVICES, MODEL)}
        # Port 1 has no listener: a call before the run is refused and not sent.
        placeholders = [
            {"name": target, "listen": f"{HOST}:{port}", "upstream": f"{HOST}:{NOWHERE}"}
            for target, port in ports.items()
        ]
        with ToxiproxyServer(f"http://{HOST}:{self.ports.toxiproxy_port}") as toxiproxy:
            try:
                toxiproxy.populate(placeholders)
            except ToxiproxyError as error:
                self._raise_if_port_taken(str(error))
                raise WorldError(f"toxiproxy cannot hold the proxies' ports: {error}") from None

    def _raise_if_port_taken(self, output: str) -> None:
        """Raises PortTaken if a part's last output says that a port of the lab is in use. It may not have got one for
        another reason, such as a limit of open files."""
        named = _LISTEN.search(output) if "in use" in output else None
        for name, port in self.ports.list_all_ports().items() if named else ():
            if named and str(port) == named["port"]:
                raise PortTaken(_describe_taken_port(name, port, self.ports))

    def _wait_until_ready(self, part: LocalProcess, port: int, path: str) -> None:
        began_s = self.clock.monotonic()
        while True:
            if part.process.poll() is not None:
                output = part.describe_end()
                self._raise_if_port_taken(output)
                raise WorldError(f"{part.name} did not come up: {output}")
            if part.is_ready and _does_port_answer(port, path):
                return
            if self.clock.monotonic() - began_s > START_S:
                raise WorldError(f"{part.name} does not answer on {HOST}:{port}{path}; see {part.words}")
            self.clock.sleep(0.02)


def _get_python_command() -> tuple[str, ...]:
    """The command that runs a module of the lab. It searches the current folder only if this process does: a user's
    file may have a part's name."""
    # `-P` keeps a file of the user that is named like the package from taking its place.
    return (sys.executable, "-m") if {"", str(Path.cwd())} & {*sys.path} else (sys.executable, "-P", "-m")


def _end_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Closes the children's lifelines, and kills those that do not end."""
    for process in processes:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
    for process in processes:
        if _wait_for_exit(process, END_S) is None:
            process.kill()
            process.wait()


def _end_agent_as_lab_down(agent: subprocess.Popen[bytes], reason: str) -> int:
    """Has the agent report why the lab is down, or reports it if the agent cannot; returns the exit code."""
    assert agent.stdin is not None
    with contextlib.suppress(OSError):
        agent.stdin.write(reason.encode())
        agent.stdin.close()
    code = _wait_for_exit(agent, TOLD_S)
    if code not in (0, LAB_DOWN):
        print(f"the lab is down: {reason}", file=sys.stderr)
    # 0 stays: an agent that has ended well has its report.
    return 0 if code == 0 else LAB_DOWN


def _wait_for_exit(process: subprocess.Popen[bytes], for_s: float) -> int | None:
    try:
        return process.wait(for_s)
    except subprocess.TimeoutExpired:
        return None


def _does_port_answer(port: int, path: str) -> bool:
    # A part that hangs must not hang its supervisor.
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def run_local_world(
    ports: Ports,
    make: Callable[[Ports], LocalWorld],
    *,
    now: str,
    toxiproxy: bool,
    model: bool,
    movable: bool,
    bases: Sequence[int] = BASES,
) -> Iterator[LocalWorld]:
    """A context with a running world at these ports. If it is `movable` and a port was taken after the check, it uses
    one of the other `bases`. Raises PortTaken: it is not movable, or no other base is free; WorldError: see
    `LocalWorld.start_services`."""
    tried = {ports.base}
    while True:
        with make(ports) as world:
            try:
                world.start_services(now=now, toxiproxy=toxiproxy, model=model)
            except PortTaken:
                free_bases = [base for base in bases if base not in tried and not _find_taken_port(Ports(base))]
                if not (movable and free_bases):
                    raise
            else:
                yield world
                return
        print(
            f"some port from {ports.base} on was taken meanwhile: this lab starts again at {free_bases[0]}", flush=True
        )
        ports = Ports(free_bases[0])
        tried.add(ports.base)


def find_free_ports(base_wanted: int | None, clock: Clock) -> Ports:
    """Free ports: at the wanted base, or at the first of a few bases where all are free.

    A run that was just killed may hold its ports for a moment, so a wanted base is waited for. Raises WorldError: names
    what is taken.
    """
    if base_wanted is not None:
        began_s = clock.monotonic()
        while port_in_use := _find_taken_port(Ports(base_wanted)):
            if clock.monotonic() - began_s > FREE_S:
                raise WorldError(_describe_taken_port(*port_in_use, Ports(base_wanted)))
            clock.sleep(0.05)
        return Ports(base_wanted)
    for base in BASES:
        if not _find_taken_port(Ports(base)):
            return Ports(base)
    bases = ", ".join(str(base) for base in BASES)
    raise WorldError(f"ports are in use at each of the bases {bases}: choose one with BASE_PORT")


def _describe_taken_port(name: str, port: int, ports: Ports) -> str:
    return f"port {port} ({name}) is in use: end what holds it, or choose another BASE_PORT than {ports.base}"


def _find_taken_port(ports: Ports) -> tuple[str, int] | None:
    for name, port in ports.list_all_ports().items():
        # Bound and not connected: a listener that does not answer holds the port too.
        with socket.socket() as probe:
            # Else a port in TIME_WAIT, which a server may take, would count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                return name, port
    return None
