"""Rolls, arms, reads back, answers, heals: one loop over the rows that agents write into the shared state."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaoslab import events
from chaoslab.clock import Clock
from chaoslab.events import Log, LogLost
from chaoslab.exchange import Seen, Told, Toxic
from chaoslab.plan import Plan
from chaoslab.runs import Run
from chaoslab.wire.client import ProxyInfo, ToxicInfo, ToxiproxyClient, ToxiproxyDown, ToxiproxyError
from chaoslab.wire.control import Answer, Control, Row, RunRow, explain

BUSY_POLL_S, IDLE_POLL_S, IDLE_AFTER_S = 0.001, 0.01, 2.0
EXPIRE_POLL_S = 0.5
LEASE_S = 60
"""How long past its deadline a lane may stand; one that stands longer has lost its owner, and any manager may reap it."""

UNITS: dict[str, dict[str, tuple[str, int]]] = {
    "latency": {"delay_s": ("latency", 1000)},
    "timeout": {"after_s": ("timeout", 1000)},
    "reset_peer": {"after_s": ("timeout", 1000)},
}
"""Toxic type → the lab's parameter → Toxiproxy's attribute and how many of its units make one of ours."""


@dataclass(frozen=True)
class Places:
    """Where Toxiproxy binds, and where callers find what it bound: in containers these are two addresses."""

    bind: str
    dial: str
    proxy_ports: dict[str, int]
    refused_port: int


@dataclass
class Lane:
    """An armed fault and the proxy that carries it."""

    told: Told
    proxy: str
    row: Row
    until_s: float
    """When its lease runs out, by the monotonic clock: the wall clock may be set while it stands."""


@dataclass
class Experiment:
    """A run as the manager serves it."""

    run: str
    plan: Plan
    log: Log
    targets: dict[str, str]
    lanes: dict[int, Lane] = field(default_factory=dict)
    count: int = 0


class Manager:
    """Serves every run that an agent opens, until stopped. Only `serve` touches Toxiproxy and the state; `status` may be asked
    from any thread."""

    def __init__(
        self, *, state: Path, logs: Path, toxiproxy: ToxiproxyClient, places: Places, clock: Clock, name: str = ""
    ) -> None:
        self._name = name
        self._state, self._logs, self._toxiproxy, self.places, self._clock = state, logs, toxiproxy, places, clock
        self._runs: dict[str, Experiment] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._asked = 0
        self._lock = threading.Lock()
        self.paused = threading.Event()
        self.stopping = threading.Event()
        self._began = threading.Event()
        self._ticked_s = clock.monotonic()
        self.trouble = ""
        self.broken = ""
        """Why the loop is over, once it has broken: `health` says so while there is still somebody to ask."""

    # What may be asked from any thread.

    def health(self) -> str:
        """Empty when all is well, else what is wrong in a line."""
        if self.broken:
            return self.broken
        if not self._began.is_set():  # a run that is opened before the state is cleared would be cleared with it
            return "the proxy manager has not begun yet"
        try:
            self._toxiproxy.version()
        except ToxiproxyError as error:
            return str(error)
        if self._clock.monotonic() - self._ticked_s > 5:
            return "the proxy manager's loop stands still"
        return self.trouble

    def status(self) -> dict[str, Any]:
        """The runs served, counts per fault and stage, and the lanes in force."""
        with self._lock:
            faults: dict[str, dict[str, int]] = {}
            for (fault, stage), n in sorted(self._counts.items()):
                faults.setdefault(fault, {})[stage] = n
            return {
                "paused": self.paused.is_set(),
                "runs": [e.run for e in self._runs.values()],
                "calls": self._asked,
                "faults": faults,
                "lanes": [
                    {
                        "lane": lane.proxy,
                        "fault": lane.told.fault_name,
                        "target": lane.row.call.target,
                        "trial": lane.row.call.trial,
                    }
                    for e in self._runs.values()
                    for lane in e.lanes.values()
                ],
            }

    # The loop.

    def serve(self) -> None:
        """Until `stopping` is set; then every proxy that this manager made is taken down.

        Raises:
            sqlite3.Error, LogLost: the shared state or a log cannot be used; `broken` says it in a line.
        """
        with self._blamed():
            control = Control.fresh(self._state, manager=self._name)
        self._began.set()
        busy_s = expired_s = self._clock.monotonic()
        try:
            with self._blamed():
                while not self.stopping.is_set():
                    self._ticked_s = self._clock.monotonic()
                    if self._tick(control):
                        busy_s = self._ticked_s
                    if self._ticked_s - expired_s > EXPIRE_POLL_S:
                        expired_s = self._ticked_s
                        self._expire()
                        self._close_ended(control)
                    idle = self._ticked_s - busy_s > IDLE_AFTER_S
                    self._clock.sleep(IDLE_POLL_S if idle else BUSY_POLL_S)
        finally:
            for run in tuple(self._runs):
                self._close(run)
            control.close()

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        """What breaks the loop is known to `health` before anything is taken down for it."""
        try:
            yield
        except sqlite3.Error as error:
            self.broken = explain(self._state, error)
            raise
        except LogLost as lost:
            self.broken = str(lost)
            raise

    def _tick(self, control: Control) -> bool:
        for opened in control.asked_runs():
            self._open(control, opened)
        if not self._runs:
            return False
        rows = control.pending(self._runs)
        for row in rows:
            experiment = self._runs[row.run]
            try:
                if row.state == "asked":
                    self._answer(control, experiment, row)
                else:
                    self._heal(control, experiment, row)
            except LogLost as lost:
                self._unrecorded(control, experiment, row, lost)
        return bool(rows)

    def _unrecorded(self, control: Control, experiment: Experiment, row: Row, lost: LogLost) -> None:
        """What could not be written down was not done: the lane goes, the call fails, and the run with it."""
        with self._lock:
            lane = experiment.lanes.pop(row.id, None)
        if lane is not None and lane.proxy != "refused":
            self._destroy(lane.proxy)
        control.set_run(experiment.run, "failed", error=str(lost))
        if row.state == "asked":
            control.reply(row.id, Answer("failed", error=str(lost)))
        else:
            control.healed(row.id)

    def _open(self, control: Control, opened: RunRow) -> None:
        """Makes the clean lane of every target and the port that refuses; reaps what lost its owner."""
        self._close_ended(control)
        try:
            run = Run.open(self._logs, opened.run)
            self._reap()
            wanted = [
                ProxyInfo(target, f"{self.places.bind}:{self.places.proxy_ports[target]}", upstream)
                for target, upstream in opened.targets.items()
            ]
            wanted.append(ProxyInfo("refused", f"{self.places.bind}:{self.places.refused_port}", "127.0.0.1:1", False))
            for proxy in wanted:
                self._destroy(proxy.name)
            self._toxiproxy.populate([p for p in wanted if p.enabled])
            refused = wanted[-1]
            self._toxiproxy.create(refused.name, upstream=refused.upstream, listen=refused.listen, enabled=False)
            log = run.log("manager", clock=self._clock)
        except (ToxiproxyError, LookupError, OSError, ValueError) as error:
            control.set_run(opened.run, "failed", error=str(error))
            return
        with self._lock:
            self._runs[opened.run] = Experiment(opened.run, Plan.from_json(opened.plan), log, dict(opened.targets))
        control.set_run(opened.run, "ready")

    def _answer(self, control: Control, experiment: Experiment, row: Row) -> None:
        self._asked += 1
        if experiment.log.lost is not None:
            raise experiment.log.lost
        rolled: list[str] = []
        told: Told | None = None
        if not self.paused.is_set():
            for injection in experiment.plan.on_the_wire(wire=True):
                if told is None and injection.covers(row.call):
                    rolled.append(injection.name)
                    told = experiment.plan.roll(injection, row.call)
        if told is None:
            control.reply(row.id, Answer("clear", rolled=rolled))
            return
        self._write(experiment, row, events.FaultScheduled(*_fault(told, row), params=vars(told.fault)))
        began_s = self._clock.monotonic()
        try:
            proxy, port = self._arm(experiment, row, told)
        except ToxiproxyError as error:
            self.trouble = "" if isinstance(error, ToxiproxyDown) else str(error)
            control.reply(row.id, Answer("failed", rolled=rolled, error=f"a fault could not be armed: {error}"))
            return
        took_s = round(self._clock.monotonic() - began_s, 6)
        with self._lock:
            experiment.lanes[row.id] = Lane(told, proxy, row, began_s + row.deadline_s + LEASE_S)
        self._write(experiment, row, events.FaultArmed(*_fault(told, row), lane=proxy, took_s=took_s))
        control.reply(row.id, Answer("armed", self.places.dial, port, rolled))

    def _arm(self, experiment: Experiment, row: Row, told: Told) -> tuple[str, int]:
        """A proxy for this call alone with its toxics, read back; its name and port."""
        if any(toxic.type == "refused" for toxic in told.fault.toxics()):
            held = self._toxiproxy.get("refused")
            if held.enabled:
                raise ToxiproxyError("the proxy 'refused' has been enabled by somebody else", status=None)
            return "refused", self.places.refused_port
        toxics = [_toxic_info(toxic) for toxic in told.fault.toxics()]
        experiment.count += 1
        expires = int(self._clock.utc().timestamp() + row.deadline_s) + LEASE_S
        name = f"lane.{row.call.target}.{experiment.run}.{experiment.count}.{expires}"
        armed = self._toxiproxy.arm(
            name, upstream=experiment.targets[row.call.target], listen=f"{self.places.bind}:0", toxics=toxics
        )
        return name, int(armed.listen.rpartition(":")[2])

    def _heal(self, control: Control, experiment: Experiment, row: Row) -> None:
        """The call is over: says whether the fault was met, and takes the lane down."""
        with self._lock:
            lane = experiment.lanes.pop(row.id, None)
        if lane is not None:
            if lane.proxy != "refused":
                self._destroy(lane.proxy)
            seen = Seen(**row.observation)
            fault = _fault(lane.told, row)
            evidence = lane.told.fault.witnessed(seen)
            if evidence:
                self._write(experiment, row, events.FaultInjected(*fault))
                self._write(experiment, row, events.FaultWitnessed(*fault, evidence=evidence))
            self._write(experiment, row, events.FaultHealed(*fault, witnessed=evidence is not None))
        control.healed(row.id)

    def _expire(self) -> None:
        """Takes down the lanes whose agent never said how its call ended: it was killed."""
        now_s = self._clock.monotonic()
        for experiment in self._runs.values():
            for lane in [lane for lane in experiment.lanes.values() if lane.until_s < now_s]:
                with self._lock:
                    del experiment.lanes[lane.row.id]
                if lane.proxy != "refused":
                    self._destroy(lane.proxy)
                with contextlib.suppress(LogLost):  # nobody is left to be told, and the loop has other runs to serve
                    self._write(experiment, lane.row, events.FaultHealed(*_fault(lane.told, lane.row), witnessed=False))

    def _reap(self) -> None:
        """Deletes the lanes whose lease has run out, whoever made them; its own are `_expire`'s, which no wall clock misleads."""
        now = self._clock.utc().timestamp()
        own = {lane.proxy for experiment in self._runs.values() for lane in experiment.lanes.values()}
        for name in self._toxiproxy.proxies():
            expires = name.rpartition(".")[2]
            if name.startswith("lane.") and expires.isdigit() and int(expires) < now and name not in own:
                self._destroy(name)

    def _close_ended(self, control: Control) -> None:
        for run in control.ended_runs() & self._runs.keys():
            self._close(run)

    def _close(self, run: str) -> None:
        """Takes down what a run had: its lanes, and the clean ones unless another run shares them."""
        with self._lock:
            experiment = self._runs.pop(run)
        shared = ("refused", *experiment.targets)
        for lane in experiment.lanes.values():
            if lane.proxy not in shared:
                self._destroy(lane.proxy)
        for name in () if self._runs else shared:
            self._destroy(name)
        experiment.log.close()

    def _destroy(self, proxy: str) -> None:
        """Takes down what may be gone already; what else goes wrong makes /health say so, and the loop goes on."""
        try:
            self._toxiproxy.destroy(proxy)
        except ToxiproxyError as error:
            if error.status != 404:
                self.trouble = str(error)

    def _write(self, experiment: Experiment, row: Row, event: Any) -> None:
        experiment.log.write(event, trial=row.call.trial)
        with self._lock:
            self._counts[(event.fault, event.kind.removeprefix("fault_"))] += 1


def _fault(told: Told, row: Row) -> tuple[str, str, str, int, int, str]:
    call = row.call
    return (told.fault_name, told.injection, call.target, call.request, call.attempt, call.request_id)


def _toxic_info(toxic: Toxic) -> ToxicInfo:
    names = UNITS.get(toxic.type, {})
    attributes = {names[key][0]: round(value * names[key][1]) for key, value in toxic.params.items()}
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)
