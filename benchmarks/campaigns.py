"""Measures the safeguards of campaigns, each figure beside its target: `python benchmarks/campaigns.py [N]`.

N random breaches of a campaign in virtual time (1,000 by default): the time until no fault is made, and what is left.
N / 10 times kill -9 of a campaign, a gateway or a manager in real time: what is left after the lease. N fuzzed plans
that are unsafe: the faults that were made beyond their limits.
"""

import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import ceil
from pathlib import Path
from typing import Any

import httpx
import yaml

from chaoslab.base import levers
from chaoslab.base.clock import iso, system
from chaoslab.campaigns.load import load
from chaoslab.campaigns.running import Runner
from chaoslab.core.events import AttemptRef, CallFinished, PromptStarted, Usage
from chaoslab.core.exchange import Call
from chaoslab.core.limits import Limits, all_of
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, Choice, Injection, Plan
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.record.runs import Run
from chaoslab.seams.gateway.routes import routes
from chaoslab.surfaces.gateway import gateway, plan_of
from chaoslab.wire.control import Control
from chaoslab.wire.toxiproxy_package import ToxiproxyServer

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
ERRORS = Injection("errors", (Choice("server_error"),), ("crm", "mail"))
LEASE_S = 1
AT_ONCE = 10
"""The processes that are killed at the same time."""
SCENARIO = "name: refund\nagent: agents:pay\ntools: [agents:pay]\nprompt: go\n"


class Virtual:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = NOW

    def monotonic(self) -> float:
        return (self.now - NOW).total_seconds()

    def utc(self) -> datetime:
        return self.now

    def sleep(self, delay_s: float) -> None:
        self.now += timedelta(seconds=delay_s)

    async def asleep(self, delay_s: float) -> None:
        self.sleep(delay_s)


# Breaches.


class Breaking:
    """A step that makes a fault at each look at it. From the look `at` on, a breach is there."""

    def __init__(self, folder: Path, clock: Virtual, breach: Callable[[], object], at: int) -> None:
        limits = all_of(json.loads((folder / "campaigns/shop/limits.json").read_text()))
        self._memory = TrialMemory(Plan(1, (ERRORS,), limits), "t", clock=clock)
        self._clock, self._breach, self._at, self.looks = clock, breach, at, 0
        self.breached_s, self.last_s = float("inf"), float("-inf")
        self.made = 0
        (folder / "broken").touch()

    def poll(self) -> int | None:
        self.looks += 1
        if self.looks == self._at:
            self.breached_s = self._clock.monotonic()
            self._breach()
        self.fault()
        return None if self.looks < 1000 else 0

    def fault(self) -> None:
        self.made += 1
        if hit(self._memory, "crm", self.made):
            self.last_s = self._clock.monotonic()

    def end(self) -> int:
        for _ in range(20):  # a step that goes on for a while
            self._clock.sleep(0.1)
            self.fault()
        return 130


def hit(memory: TrialMemory, target: str, request: int, **given: Any) -> bool:
    """True if a request is hit."""
    occasion = memory.occasion(target, target, request, 1)
    for name, value in given.items():
        setattr(occasion, name, value)
    return any(each in HITS for each in memory.decide(memory.plan.candidates(target), occasion))


def breach(kind: str, folder: Path) -> None:
    """Makes a breach of this kind."""
    logs = folder / "campaigns/shop"
    if kind == "machine":
        levers.pull(levers.LEVER, "enough")
    elif kind == "stop":
        levers.pull(logs / "stop", "enough")
    elif kind == "probe":
        with contextlib.closing(sqlite3.connect(folder / "shop.db")) as database, database:
            database.execute("DELETE FROM orders")
    elif kind != "window":
        run = Run.create(logs, now=iso(NOW), name="n")
        if kind == "harm":
            RulingsFile(run.folder, "refund", [], 1).add("p1.r1", TrialRuling(RulingState.FAILED, ("harm: twice",)))
        with run.log("info") as log:
            at = AttemptRef(trial="p1.r1", target="crm", request=1, attempt=1, request_id="")
            failed = CallFinished(at=at, tool="crm", ok=False, duration_s=9.0)
            usage = Usage(model="m", request=1, prompt_tokens=1, completion_tokens=1, cost_usd=9.0)
            for _ in range(10 if kind in ("errors", "burn") else 1):
                log.write(usage if kind == "cost" else failed, trial="p1.r1")


KINDS = ("machine", "stop", "probe", "window", "errors", "burn", "harm", "cost")


def one_breach(dice: random.Random) -> tuple[str, float, bool, bool]:
    """The kind of a random breach, the seconds until the last fault, and True if all was undone, and if the steady
    state was checked after."""
    kind, at, clock = dice.choice(KINDS), dice.randint(1, 40), Virtual()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        levers.LEVER = folder / "lever"
        (folder / "refund.chaos.yml").write_text(SCENARIO)
        (folder / "agents.py").write_text("def pay(prompt: str = '') -> str:\n    return ''\n")
        with contextlib.closing(sqlite3.connect(folder / "shop.db")) as database, database:
            database.execute("CREATE TABLE orders (id)")
            database.execute("INSERT INTO orders VALUES (1)")
        window = {"until": iso(NOW + timedelta(seconds=ceil(at / 10)))} if kind == "window" else {}
        file = folder / "shop.yml"
        query = "SELECT count(*) FROM orders"
        file.write_text(
            yaml.safe_dump({
                "campaign": "shop", "steps": [{"scenario": "refund.chaos.yml", "undo": [["rm", "broken"]]}],
                "steady": [{"name": "orders", "sql": "shop.db", "query": query, "expect": 1}], "look": "0.5s",
                "recover": 0, "stop": ["error_rate > 20% over 60s", "slo_burn > 2", "harm > 0", "cost > 1"],
                "slo": {"share": "90%", "within": "5s"}, "limits": window,
            })
        )  # fmt: skip
        campaign = _with_cost(load, file, clock)
        steps: list[Breaking] = []

        def start(*_: object) -> Breaking:
            steps.append(Breaking(folder, clock, lambda: breach(kind, folder), at))
            return steps[0]

        story = Runner(campaign, folder / "campaigns", clock=clock, tell=lambda _: None, start=start).run()
        (step,) = steps
        begin_s = float(ceil(at / 10)) if kind == "window" else step.breached_s
        undone = not (folder / "broken").exists() and not story.open and not story.not_undone
        after = bool(story.notes) or "steady" in story.why
        return kind, max(0.0, step.last_s - begin_s), undone, after


def _with_cost(loads: Any, file: Path, clock: Virtual) -> Any:
    """The campaign, whose scenario is said to ask a model."""
    scenario = file.with_name("refund.chaos.yml")
    scenario.write_text(SCENARIO + "services: {llm.test: agents:pay}\nmodels: [llm.test]\n")
    return loads(file, clock=clock)


def breaches(count: int) -> None:
    dice, began_s = random.Random(1), time.perf_counter()
    found = [one_breach(dice) for _ in range(count)]
    worst = Counter[str]()
    for kind, took_s, _, _ in found:
        worst[kind] = max(worst[kind], took_s)  # type: ignore[assignment]
    late = sum(took_s > 1.0 for _, took_s, _, _ in found)
    told = ", ".join(f"{kind} {worst[kind]:.2f}" for kind in KINDS if kind in worst)
    print(
        f"breaches: {count}; stopped later than 1 s: {late}; not undone: {sum(not each[2] for each in found)}; ", end=""
    )
    print(f"steady state not checked after: {sum(not each[3] for each in found)}")
    print(f"  longest time until the last fault, s of virtual time: {told} ({time.perf_counter() - began_s:.0f} s)")


# Kill -9.


@contextlib.contextmanager
def forked(does: Callable[[Callable[[str], None]], None]) -> Iterator[tuple[int, str]]:
    """A context with a process that does this until it is killed: its number, and what it said when it was ready."""
    came, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(came)
        with contextlib.suppress(BaseException), open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            does(lambda text: (os.write(said, text.encode() + b"\n"), None)[1])
        os._exit(0)
    os.close(said)
    with os.fdopen(came) as file:
        line = file.readline().strip()
    try:
        yield pid, line
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def killed_managers(count: int) -> int:
    """The lanes that are left on the embedded Toxiproxy after the lease."""
    port = free_port()
    words = [sys.executable, "-m", "chaoslab", "toxiproxy", "--port", str(port), "--lifeline"]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    url, left = f"http://127.0.0.1:{port}", 0
    try:
        with tempfile.TemporaryDirectory() as name, ToxiproxyServer(url) as toxiproxy:
            for n in range(count):
                with forked(partial(_manage, Path(name), url, n)) as (pid, _):
                    assert sum(each.startswith(f"lane.t{n}.") for each in toxiproxy.proxies()) == 2
                    kill(pid)
            time.sleep(LEASE_S + 1 + 2.5)  # the calls' deadline, the lease, and a look of the server's
            left = sum(each.startswith("lane.") for each in toxiproxy.proxies())
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    return left


def _manage(folder: Path, url: str, number: int, say: Callable[[str], None]) -> None:
    """A manager with two lanes."""
    own, lease = folder / str(number), folder / f"lease{number}"
    own.mkdir()
    levers.renew(lease)
    plan = Plan(
        1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 9.0}),), (f"t{number}",)),),
        (Limits(lease=str(lease), lease_s=LEASE_S),),
    )  # fmt: skip
    run = Run.create(own / "logs", now=iso(NOW))
    places = Places("127.0.0.1", "127.0.0.1", {f"t{number}": free_port()}, 1 + free_port() % 60000)
    manager = Manager(
        state=own / "state.db", logs=own / "logs", toxiproxy=ToxiproxyServer(url), places=places, clock=system
    )
    manager._standing.add = lambda proxies: None  # type: ignore[method-assign]  # noqa: ARG005 - lanes alone count
    manager._standing.look = lambda: None  # type: ignore[method-assign]
    thread = threading.Thread(target=manager.serve, daemon=True)
    thread.start()
    manager.began.wait(10)
    control = Control(own / "state.db")
    control.open_run(run.name, plan=plan.to_json(), targets={f"t{number}": "127.0.0.1:9"})
    rows = [control.ask(run.name, Call(f"t{number}", "x", "p1.r1", n, 1, f"id{n}"), deadline_s=1.0) for n in (1, 2)]
    while thread.is_alive() and any(control.answer(row) is None for row in rows):
        time.sleep(0.01)
    levers.renew(lease)
    say("ready")
    time.sleep(600)


def killed_campaigns(count: int) -> tuple[int, int]:
    """The parts that still make faults after the lease, and the campaigns that the next start did not take back."""
    still = left = 0
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        made = []
        for n in range(count):
            folder = Path(name) / str(n)
            folder.mkdir()
            (folder / "shop.yml").write_text(
                yaml.safe_dump({
                    "campaign": "shop", "lease": f"{LEASE_S}s", "recover": 0,
                    "steps": [{"command": ["sleep", "2"], "undo": [["rm", "-f", "broken"]]}],
                })
            )  # fmt: skip
            pid, _ = stack.enter_context(forked(partial(_campaign, folder)))
            limits = all_of(json.loads((folder / "campaigns/shop/limits.json").read_text()))
            memory = TrialMemory(Plan(1, (ERRORS,), limits), "t")
            assert hit(memory, "crm", 1), memory.guard.ended()
            made.append((folder, pid, memory))
        for _, pid, _ in made:
            kill(pid)
        time.sleep(LEASE_S + 0.2)
        for folder, _, memory in made:
            still += hit(memory, "crm", 2)
            Runner(load(folder / "shop.yml"), folder / "campaigns", tell=lambda _: None, start=lambda *_: _Done()).run()
            left += (folder / "broken").exists()
    return still, left


class _Done:
    """A step that is over."""

    def poll(self) -> int:
        return 0

    def end(self) -> int:
        return 0


def _campaign(folder: Path, say: Callable[[str], None]) -> None:
    runner = Runner(load(folder / "shop.yml"), folder / "campaigns", tell=lambda _: None)
    begin = runner._start

    def start(*given: Any) -> Any:
        child = begin(*given)
        (folder / "broken").touch()
        say("ready")
        return child

    runner._start = start
    runner.run()


class Ok(BaseHTTPRequestHandler):
    """A service that always answers."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


def killed_gateways(count: int) -> int:
    """The services that do not answer at their own address after their gateway was killed with a call in a fault."""
    broken = 0
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(forked(partial(_gateway, Path(name) / str(n)))) for n in range(count)]
        server = HTTPServer(("127.0.0.1", 0), Ok)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        for pid, address in pairs:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(address, timeout=0.05)  # which meets a fault that lasts
            kill(pid)
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(address, timeout=1.0)
                broken += 1  # somebody answers for the dead
        server.shutdown()
        server.server_close()
        thread.join()
    return broken


def _gateway(folder: Path, say: Callable[[str], None]) -> None:
    known = routes(["crm=http://127.0.0.1:9"])
    plan = plan_of(['{"fault": "timeout_before_effect", "target": "crm"}'], None, 1, known)
    started = PromptStarted(prompt_index=1, prompt="bench", effects=None)
    with gateway(known, plan, logs=folder, started=started) as running:
        say(running.url("crm"))
        time.sleep(600)


def kills(count: int) -> None:
    began_s, managers, campaigns = time.perf_counter(), 0, [0, 0]
    share = {"campaign": count * 4 // 10, "manager": count * 4 // 10}
    share["gateway"] = count - sum(share.values())
    for n in range(0, share["manager"], AT_ONCE):
        managers += killed_managers(min(AT_ONCE, share["manager"] - n))
    for n in range(0, share["campaign"], AT_ONCE):
        found = killed_campaigns(min(AT_ONCE, share["campaign"] - n))
        campaigns = [campaigns[0] + found[0], campaigns[1] + found[1]]
    gateways = sum(killed_gateways(min(AT_ONCE, share["gateway"] - n)) for n in range(0, share["gateway"], AT_ONCE))
    told = ", ".join(f"{number} {name}s" for name, number in share.items())
    print(
        f"kill -9: {told}; after the lease of {LEASE_S} s: {managers} lanes left, {campaigns[0]} parts that make ",
        end="",
    )
    print(f"faults, {campaigns[1]} not taken back, {gateways} outages ({time.perf_counter() - began_s:.0f} s)")


# Unsafe plans.


def unsafe(dice: random.Random, folder: Path) -> tuple[int, int]:
    """The faults of a plan that wants more than its limits allow: those beyond them, and those within."""
    clock = Virtual()
    lever, lease, tally = folder / "lever", folder / "lease", folder / "tally"
    for each in (lever, tally):
        each.unlink(missing_ok=True)
    levers.renew(lease, clock=clock)
    share = dice.choice([1.0, 0.5, 0.1, 0.01, 0.001])
    targets = dice.choice([("*",), ("crm",), ("ma*",), ("other",)])
    tenant = dice.choice([{}, {"x-tenant": ["test-*"]}])
    most, at_once = dice.choice([None, 1, 5]), dice.choice([None, 1, 2])
    closes = dice.choice([None, 3.0])
    limits = {
        "share": share, "targets": list(targets), "lever": str(lever), "lease": str(lease), "lease_s": 5,
        "tally": str(tally),
        **({"tenants": tenant} if tenant else {}), **({"faults": most} if most else {}),
        **({"at_once": at_once} if at_once else {}),
        **({"until": iso(NOW + timedelta(seconds=closes))} if closes else {}),
    }  # fmt: skip
    plan = Plan(dice.randrange(2**32), (ERRORS, Injection("slow", (Choice("delay"),), ("*",))), all_of(limits))
    memory, beyond, within = TrialMemory(plan, "t", clock=clock), 0, 0
    pulled_s = dice.choice([float("inf"), 4.0])
    dies_s = dice.choice([float("inf"), 6.0])
    asked, made, open_ = Counter[str](), Counter[str](), list[tuple[str, int]]()
    for _ in range(60):
        now_s = clock.monotonic()
        if now_s >= pulled_s:
            lever.touch()
        if now_s < dies_s:
            levers.renew(lease, clock=clock)
        target = dice.choice(["crm", "mail", "billing"])
        tenant_said = dice.choice(["test-1", "shop", ""])
        asked[target] += 1
        if dice.random() < 0.5 and open_:
            memory.guard.over(*open_.pop(0), 1)
        before = sum(met.times for met in memory.met.values())
        was_open = len(open_)
        if hit(memory, target, asked[target], headers={"x-tenant": tenant_said}):
            faults = sum(met.times for met in memory.met.values()) - before
            made[target] += 1
            open_ += [(target, asked[target])]
            allowed = (
                any(fnmatchcase(target, each) for each in targets)
                and (not tenant or tenant_said.startswith("test-"))
                and made[target] <= ceil(asked[target] * share)
                and (most is None or sum(met.times for met in memory.met.values()) <= most)
                and (at_once is None or was_open + faults <= at_once)
                and (closes is None or now_s < closes)
                and now_s < pulled_s + 0.05
                and now_s < dies_s + 5.1
            )
            beyond, within = beyond + (not allowed), within + allowed
        clock.sleep(0.2)
    return beyond, within


def unsafe_plans(count: int) -> None:
    dice, began_s = random.Random(2), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        levers.LEVER = Path(name) / "machine"
        found = [unsafe(dice, Path(name)) for _ in range(count)]
    beyond, within = (sum(each[n] for each in found) for n in (0, 1))
    print(f"unsafe plans: {count}; faults beyond a limit: {beyond}; within: {within} ", end="")
    print(f"({time.perf_counter() - began_s:.0f} s)")


if __name__ == "__main__":
    sys.path.pop(0)  # this folder has a toxiproxy of its own
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    breaches(number)
    unsafe_plans(number)
    kills(max(10, number // 10))
