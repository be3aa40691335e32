"""Times a call's wait for the proxy manager, over the embedded Toxiproxy and the real one: ask → clear, ask → armed.

Run as `python benchmarks/arming.py [ROUNDS]`. Both servers and a manager each are up at the same time and take turns,
so that what else the machine does meets both alike. Times are of this process, in milliseconds.
"""

import asyncio
import contextlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from chaoslab.base.clock import system
from chaoslab.config import settings
from chaoslab.config.settings import DEFAULT_NOW, Settings
from chaoslab.config.topology import Ports
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.runs import Run
from chaoslab.wire.control import Control
from chaoslab.wire.lanes import Health, Lanes

ROUNDS = 200
START_S = 20.0
POISONED, CLEAN = "weather", "movies"
PLAN = Plan(1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.01}),), (POISONED,)),))


@dataclass
class Side:
    """One of the servers compared, with the times of its manager's answers in seconds."""

    name: str
    lanes: Lanes
    times: dict[str, list[float]] = field(default_factory=lambda: {"clear": [], "armed": []})

    async def ask(self, target: str, number: int, expected: str) -> None:
        began_s = system.monotonic()
        row, answer = await self.lanes.ask(Call(target, "tool", "p1.r1", number, 1), deadline_s=1.0)
        took_s = system.monotonic() - began_s
        if answer.state != expected:
            raise RuntimeError(f"{self.name} answered {answer.state}, not {expected}: nothing was measured")
        self.times[expected].append(took_s)
        if expected == "armed":
            self.lanes.done(row, Observation(0.02, 1.0, None, 200))


async def healthy() -> Health:
    return Health()


@contextlib.contextmanager
def process(command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[None]:
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE
    )
    try:
        yield
    finally:
        child.terminate()
        child.communicate()


def answered(url: str) -> None:
    deadline = system.monotonic() + START_S
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        if system.monotonic() > deadline:
            raise RuntimeError(f"{url} does not answer")
        system.sleep(0.05)


def free_base(start: int) -> int:
    """A base whose ports are all free."""
    for base in range(start, start + 4000, 200):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in Ports(base).all().values():
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return base
    raise RuntimeError(f"no free ports from {start} on")


@contextlib.contextmanager
def side(name: str, binary: Sequence[str], base: int, folder: Path) -> Iterator[Side]:
    """A server, its manager, and a run that is ready."""
    ports = Ports(base)
    chosen = Settings(base_port=base, toxiproxy_url=f"http://127.0.0.1:{ports.toxiproxy}")
    logs, state = folder / "logs", folder / "state.db"
    manager = (sys.executable, "-m", "proxy_manager", "--state", str(state), "--logs", str(logs))
    with contextlib.ExitStack() as stack:
        stack.enter_context(process((*binary, "--port", str(ports.toxiproxy))))
        answered(f"{chosen.toxiproxy_url}/version")
        stack.enter_context(process(manager, settings.child_environment(chosen)))
        answered(f"http://127.0.0.1:{ports.manager}/health")
        run = Run.create(logs, now=DEFAULT_NOW)
        control = Control(state, manager=str(ports.manager))
        stack.callback(control.close)
        control.open_run(run.name, plan=PLAN.to_json(), targets=dict.fromkeys((POISONED, CLEAN), "127.0.0.1:9"))
        deadline = system.monotonic() + START_S
        while (found := control.run_state(run.name))[0] != "ready":
            if found[0] == "failed" or system.monotonic() > deadline:
                raise RuntimeError(f"{name}: {found}")
            system.sleep(0.01)
        lanes = Lanes(state, run.name, clock=system, healthy=healthy)
        stack.callback(lanes.close)
        yield Side(name, lanes)


async def measure(sides: Sequence[Side], rounds: int) -> None:
    for number in range(1, rounds + 1):
        for one in sides:
            await one.ask(CLEAN, number, "clear")
            await one.ask(POISONED, number, "armed")


def table(sides: Sequence[Side]) -> str:
    lines = [f"{'server':<10} {'answer':<7} {'n':>5} {'median ms':>10} {'p95 ms':>8} {'max ms':>8}"]
    for one in sides:
        for answer, times in one.times.items():
            ms = sorted(1000 * took_s for took_s in times)
            p95 = statistics.quantiles(ms, n=20)[-1]
            lines.append(
                f"{one.name:<10} {answer:<7} {len(ms):>5} {statistics.median(ms):>10.2f} {p95:>8.2f} {ms[-1]:>8.2f}"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    rounds = int(arguments[0]) if arguments else ROUNDS
    binaries: dict[str, Sequence[str]] = {"embedded": (sys.executable, "-m", "chaoslab", "toxiproxy")}
    if real := shutil.which("toxiproxy-server"):
        binaries["real"] = (real,)
    else:
        print("skipped: toxiproxy-server is not on PATH")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides = []
        for n, (name, binary) in enumerate(binaries.items()):
            place = Path(folder, name)
            place.mkdir()
            sides.append(stack.enter_context(side(name, binary, free_base(22000 + 4000 * n), place)))
        asyncio.run(measure(sides, rounds))
        print(table(sides))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
