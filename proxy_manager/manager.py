"""The manager's loop over the rows that agents write into the shared state: roll, arm, read back, answer, heal."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base import levers
from chaoslab.base.clock import Clock, format_iso
from chaoslab.base.durations import format_duration
from chaoslab.base.interrupts import Flag
from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Observation
from chaoslab.core.fault import BrokenFault
from chaoslab.core.limits import LimitGuard, Limits
from chaoslab.core.memory import make_held_back_fault_logger
from chaoslab.core.occasion import Occasion
from chaoslab.core.plan import Plan
from chaoslab.proxy_manager.arming import ArmedLane, LaneMaker, OpenRun, Places
from chaoslab.proxy_manager.clean_proxies import RepairedLoss, StandingProxies
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.record.steering import PAUSED
from chaoslab.wire import fault_lifecycle
from chaoslab.wire.control import CallRow, ControlDatabase, ManagerAnswer, RunRow, WatchedFile, explain_database_error
from chaoslab.wire.fault_lifecycle import REFUSED
from chaoslab.wire.lanes import Health
from chaoslab.wire.proxies import ToxiproxyDown, ToxiproxyError, WantedProxy

if TYPE_CHECKING:
    from chaoslab.proxy_manager.figures import RunMetrics
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer

# A call waits for the answer, so the look is short while calls come.
BUSY_POLL_S, IDLE_POLL_S = 0.001, 0.01
# The time between two looks at the state, as a share of the time since it last held something to do: so a call waits
# little after its like, and a manager costs little while calls are slow. BUSY_POLL_S at least, IDLE_POLL_S at most.
IDLE_SHARE = 0.02
# Leases, levers and the clean proxies are looked at twice a second.
EXPIRE_POLL_S = 0.5
# The wait for Toxiproxy's answer after which `health` reports that the lab is recovering.
SLOW_S = 0.5
# The time after which the loop counts as stuck, if it does not wait for Toxiproxy.
STILL_S = 5.0
# The number of times that a fault is armed if Toxiproxy restarts in the middle.
TRIES = 3


class Manager:
    """The server of every run that an agent opens, until stopped. Only `serve` uses Toxiproxy and the state; `health`,
    `status` and `metrics` may be called from any thread."""

    def __init__(
        self, *, state: Path, logs: Path, toxiproxy: ToxiproxyServer, places: Places, clock: Clock, name: str = ""
    ) -> None:
        self._name = name
        self._state, self._logs, self._toxiproxy, self.places, self._clock = state, logs, toxiproxy, places, clock
        self._runs: dict[str, OpenRun] = {}
        self._served: list[str] = []
        """The runs that were ever opened here, oldest first."""
        self._counts: Counter[tuple[str, str]] = Counter()
        self._asked = 0
        self._figures: RunMetrics | None = None
        self._lock = threading.Lock()
        self.paused = threading.Event()
        self.stopping = Flag()
        self.began = threading.Event()
        self._arming = LaneMaker(toxiproxy, places=places, clock=clock)
        self._standing = StandingProxies(toxiproxy, clock=clock, stopping=self.stopping)
        self._wants_reconciled: list[threading.Event] = []
        self._held: set[int] = set()
        self._foreign: dict[str, tuple[str, datetime]] = {}
        """The changes by somebody else to the clean proxies: the target, and when they were found."""
        self._lately: list[tuple[OpenRun, CallRow]] = []
        """The calls sent over clean proxies since these were last looked at."""
        self.tell: Callable[[str], None] = lambda _: None
        """Called with a line of information for a person who follows the manager."""
        self.broken = ""
        """The reason why the loop has failed; `health` reports it as long as it can."""

    # Methods for any thread.

    def health(self) -> Health:
        """The present health: the loop checks its proxies first, unless it is repairing them."""
        if self.broken:
            return Health(self.broken)
        if not self.began.is_set():  # a run opened before the state is cleared would be cleared too
            return Health("the proxy manager has not begun yet")
        looked = threading.Event()
        with self._lock:
            self._wants_reconciled.append(looked)
        began_s = self._clock.monotonic()
        # In short waits, since the loop may begin to mend meanwhile.
        while not looked.wait(0.02):
            if self._standing.recovering:
                return Health(epoch=self._standing.epoch, recovering=True)
            if self.broken or self.stopping.is_set():
                return Health(self.broken or "the proxy manager is being stopped")
            # Toxiproxy answers nobody while a proxy that is being deleted dials its upstream.
            waited_s = self._clock.monotonic() - began_s
            if self._toxiproxy.waiting and waited_s > SLOW_S:
                return Health(epoch=self._standing.epoch, recovering=True)
            if waited_s > STILL_S:
                return Health("the proxy manager's loop stands still")
        return Health(self._standing.gone or self._arming.trouble, self._standing.epoch)

    def status(self) -> dict[str, Any]:
        """The runs served, the counts per fault of the wire and stage, and the lanes in force. Of other faults, which
        are made in the agent, only logs and `metrics` tell."""
        with self._lock:
            faults: dict[str, dict[str, int]] = {}
            for (fault, stage), n in sorted(self._counts.items()):
                # Read by other threads, so under the lock.
                faults.setdefault(fault, {})[stage] = n
            return {
                "paused": self.paused.is_set(),
                "runs": [e.run for e in self._runs.values()],
                "calls": self._asked,
                "wire_faults": faults,
                "lanes": [
                    {
                        "lane": lane.proxy,
                        "fault": lane.fault_names,
                        "target": lane.row.call.target,
                        "trial": lane.row.call.trial,
                    }
                    for e in self._runs.values()
                    for lane in e.lanes.values()
                ],
            }

    def render_metrics(self) -> str:
        """All figures in Prometheus's text format."""
        from chaoslab.proxy_manager.figures import RunMetrics  # all that reads and judges logs, which few ask for

        with self._lock:
            runs, lanes, served = [*self._runs], sum(len(e.lanes) for e in self._runs.values()), [*self._served]
            self._figures = figures = self._figures or RunMetrics(self._logs)
        return figures.render_text(runs, lanes=lanes, served=served)

    # The loop.

    def serve(self) -> None:
        """Serves until `stopping` is set; then deletes every proxy that this manager made. Raises sqlite3.Error,
        LogLost: the shared state or a log cannot be used; `broken` has the reason in one line."""
        with self._record_fatal_error():
            control = ControlDatabase.open_fresh(self._state, manager=self._name)
        self.began.set()
        state = WatchedFile(self._state, self._clock)
        busy_s = expired_s = looked_s = self._clock.monotonic()
        try:
            with self._record_fatal_error():
                while not self.stopping.is_set():
                    now_s = self._clock.monotonic()
                    due = now_s - expired_s > EXPIRE_POLL_S
                    self._reconcile_proxies_if_asked(control, anyway=due and bool(self._runs))
                    if state.may_have_changed() or now_s - looked_s > IDLE_POLL_S:
                        looked_s = now_s
                        if self._handle_runs_and_calls(control):
                            busy_s = now_s
                    if due:
                        expired_s = now_s
                        # SQLite notices a file that was moved only when it writes.
                        control.check_file_in_place()
                        self._expire_lanes()
                        self._close_ended_runs(control)
                    # A fiftieth of the quiet so far: a call waits 2 % longer at most.
                    self._clock.sleep(min(max((now_s - busy_s) * IDLE_SHARE, BUSY_POLL_S), IDLE_POLL_S))
        finally:
            for run in tuple(self._runs):
                self._close_run(run)
            if self._figures is not None:
                self._figures.close()
            control.close()

    @contextlib.contextmanager
    def _record_fatal_error(self) -> Iterator[None]:
        """A context that records the error which ends the loop in `broken`, before anything is taken down."""
        try:
            yield
        except sqlite3.Error as error:
            self.broken = explain_database_error(self._state, error)
            raise
        except LogLost as lost:
            self.broken = str(lost)
            raise

    def _handle_runs_and_calls(self, control: ControlDatabase) -> bool:
        for opened in control.list_requested_runs():
            self._open_run(control, opened)
        if not self._runs:
            return False
        rows = control.list_pending_calls(self._runs)
        for row in rows:
            experiment = self._runs[row.run]
            try:
                if row.state == "asked":
                    self._answer_call(control, experiment, row)
                else:
                    self._finish_call(control, experiment, row)
            # A fault whose code is broken fails its run, and not the loop.
            except (BrokenFault, LogLost) as lost:
                self._fail_call_and_run(control, experiment, row, str(lost))
        return bool(rows)

    def _fail_call_and_run(self, control: ControlDatabase, experiment: OpenRun, row: CallRow, why: str) -> None:
        """Undoes a step that could not be logged, or whose fault is broken: the lane goes, call and run fail."""
        with self._lock:
            lane = experiment.lanes.pop(row.id, None)
        if lane is not None and lane.has_own_proxy:
            self._arming.delete_proxy(lane.proxy)
        control.set_run_state(experiment.run, "failed", error=why)
        if row.state == "asked":
            control.write_call_answer(row.id, ManagerAnswer("failed", error=why))
        else:
            control.mark_call_healed(row.id)

    def _open_run(self, control: ControlDatabase, opened: RunRow) -> None:
        """Makes the clean lane of every target and the port that refuses; reaps expired lanes."""
        self._close_ended_runs(control)
        try:
            run, plan = Run.open(self._logs, opened.run), Plan.from_json(opened.plan)
            plan.check()
            wanted = [
                WantedProxy(target, f"{self.places.bind}:{self.places.proxy_ports[target]}", upstream)
                for target, upstream in opened.targets.items()
            ]
            # A proxy that is never enabled: each call to it is refused.
            wanted.append(WantedProxy(REFUSED, f"{self.places.bind}:{self.places.refused_port}", "127.0.0.1:1", False))
            self._standing.add_proxies(wanted)
            self._arming.delete_expired_lanes(own={name for e in self._runs.values() for name in e.proxy_names})
            log = run.open_log("manager", clock=self._clock)
        except (ToxiproxyError, LookupError, OSError, TypeError, ValueError) as error:
            why = error.args[0] if isinstance(error, LookupError) and error.args else error
            self.tell(f"run {opened.run} cannot be served: {why}")
            control.set_run_state(opened.run, "failed", error=str(why))
            if not self._runs:
                self._delete_clean_proxies()
            return
        with self._lock:
            lever = run.folder.absolute() / PAUSED
            self._served += [opened.run] if opened.run not in self._served else []
            # The run's own lever beside those of the plan's limits.
            made = self._runs[opened.run] = OpenRun(opened.run, plan, log, dict(opened.targets), lever)
            made.guard = LimitGuard((*plan.limits, Limits(lever=str(lever))), clock=self._clock)
            made.guard.tell = make_held_back_fault_logger(lambda held: log.write(held, trial=held.at.trial))
            made.guard.others = lambda: sum(len(lane.active) for lane in made.lanes.values())
        self.tell(f"run {opened.run} is open")
        control.set_run_state(opened.run, "ready")

    # The proxies, and their recovery.

    def _reconcile_proxies_if_asked(self, control: ControlDatabase, *, anyway: bool) -> None:
        with self._lock:
            wanted, self._wants_reconciled = self._wants_reconciled, []
        if wanted or anyway:
            self._reconcile_proxies(control)
        for item in wanted:
            item.set()

    def _reconcile_proxies(self, control: ControlDatabase) -> bool:
        """Checks the clean proxies and makes missing ones, marking the calls under way. Returns True if the proxies
        stand."""
        try:
            outage = self._standing.repair_missing_proxies()
        except ToxiproxyError:
            return False
        self._report_foreign_changes()
        if outage is not None:
            # Those that wait for an answer were held up by the mending, which is no time of their target's.
            for experiment in self._runs.values():
                self._mark_lost_lanes(experiment, outage)
            self._held |= {row.id for row in control.list_pending_calls(self._runs) if row.state == "asked"}
        return True

    def _report_foreign_changes(self) -> None:
        """Tells what somebody else has done to the clean proxies, or undone, since the last look. The calls sent over
        them in between may have been hit."""
        now, foreign = self._clock.utc(), self._standing.foreign
        for what in sorted(foreign.keys() - self._foreign):
            self._foreign[what] = foreign[what], now
            message = f"not from this lab: {what} since {now:%H:%M:%S}"
            self._log_in_all_runs(events.LabWarning(message=message), message)
            with contextlib.suppress(LogLost):
                for experiment, row in self._lately:
                    if row.call.target == foreign[what] and experiment.run in self._runs:
                        self._log_disturbed_call(
                            experiment, row, f"{what}, which is not from this lab, was found after it began"
                        )
        self._lately.clear()
        for what in sorted(self._foreign.keys() - foreign):
            since = self._foreign.pop(what)[1]
            self._log_in_all_runs(
                self._make_disturbed_event(what, since), f"{what}, which was not from this lab, is gone"
            )

    def _make_disturbed_event(self, what: str, since: datetime) -> events.LabDisturbed:
        lasted_s = round((self._clock.utc() - since).total_seconds(), 6)
        message = f"not from this lab: {what}"
        return events.LabDisturbed(
            what=message, since=format_iso(since), lasted_s=max(0.0, lasted_s), lanes=[], epoch=self._standing.epoch
        )

    def _log_in_all_runs(self, event: events.Event, message: str) -> None:
        self.tell(message)
        for experiment in self._runs.values():
            with contextlib.suppress(LogLost):  # the run's next call will report it
                experiment.log.write(event)

    def _mark_lost_lanes(self, experiment: OpenRun, outage: RepairedLoss) -> None:
        lost = [
            lane
            for lane in experiment.lanes.values()
            # "Refused" is no lane of a call's, and stands again with the clean ones.
            if lane.proxy in outage.missing or (lane.proxy != REFUSED and lane.proxy not in outage.held)
        ]
        for lane in lost:
            lane.lost = True
        experiment.standing = {key: lane for key, lane in experiment.standing.items() if lane.proxy in outage.held}
        names, since = [lane.proxy for lane in lost], format_iso(outage.since)
        self.tell(
            f"{outage.what}; all stands again after {format_duration(outage.lasted_s, 2)}, {len(names)} lanes lost"
        )
        with contextlib.suppress(LogLost):  # the run's next call will report it
            experiment.log.write(
                events.LabDisturbed(
                    what=outage.what, since=since, lasted_s=outage.lasted_s, lanes=names, epoch=self._standing.epoch
                )
            )

    def _log_disturbed_call(self, experiment: OpenRun, row: CallRow, why: str) -> None:
        call = row.call
        event = events.CallDisturbed(at=call.attempt_ref, tool=call.tool, why=why)
        experiment.log.write(event, trial=call.trial)

    # One call.

    def _answer_call(self, control: ControlDatabase, experiment: OpenRun, row: CallRow) -> None:
        self._asked += 1
        if experiment.log.lost is not None:
            raise experiment.log.lost
        rolled: list[str] = []
        active: list[ActiveFault] = []
        if not self.paused.is_set():
            if (number := row.occasion.get("plan", 1)) != experiment.plans:
                # Another plan is in force since this call was made; the row has the number.
                experiment.plan, experiment.plans = Plan.from_json(control.get_plan(row.run)), number
            plan = experiment.plan
            asked = Occasion.from_json(plan.seed, row.call, row.occasion)
            active, rolled = plan.find_wire_hits(row.call, asked, experiment.guard)
            # Until its lane is counted, the call itself is.
            # its lane counts from now on
            experiment.guard.end_attempt(row.call.target, row.call.request, row.call.attempt)
        if self._standing.gone:
            control.write_call_answer(row.id, ManagerAnswer("failed", rolled=rolled, error=self._standing.gone))
        elif not active:
            for what, (target, since) in self._foreign.items():
                if target == row.call.target:
                    self._log_disturbed_call(experiment, row, f"{what} since {since:%H:%M:%S} is not from this lab")
            # Kept until the next look at the clean proxies.
            self._lately.append((experiment, row))
            self._send_call_answer(control, experiment, row, ManagerAnswer("clear", rolled=rolled))
        else:
            self._arm_and_answer_call(control, experiment, row, active, rolled)

    def _arm_and_answer_call(
        self, control: ControlDatabase, experiment: OpenRun, row: CallRow, active: list[ActiveFault], rolled: list[str]
    ) -> None:
        self._arming.delete_idle_shared_lanes(experiment, trial=row.call.trial)
        for item in active:
            self._log_fault_event(experiment, row, item.build_scheduled_event(row.call))
        began_s = self._clock.monotonic()
        for left in range(TRIES - 1, -1, -1):
            try:
                lane, port = self._arming.make_lane_for_call(experiment, row, active)
                break
            except ToxiproxyError as error:
                epoch = self._standing.epoch
                # Toxiproxy may have been restarted in the middle.
                stands = self._reconcile_proxies(control)
                restarted = isinstance(error, ToxiproxyDown) or self._standing.epoch != epoch
                if stands and restarted and left:
                    continue
                why = f"a fault could not be armed: {error}"  # /health may tell the caller before its row does
                self._arming.trouble = "" if isinstance(error, ToxiproxyDown) else why
                control.write_call_answer(
                    row.id, ManagerAnswer("failed", rolled=rolled, error=self._standing.gone or why)
                )
                return
        took_s = round(self._clock.monotonic() - began_s, 6)
        with self._lock:
            experiment.lanes[row.id] = lane
        for event in fault_lifecycle.iterate_armed_events(active, row.call, lane=lane.proxy, took_s=took_s):
            self._log_fault_event(experiment, row, event)
        self._send_call_answer(
            control, experiment, row, ManagerAnswer("armed", self.places.dial, port, rolled, stands=lane.stands)
        )

    def _send_call_answer(
        self, control: ControlDatabase, experiment: OpenRun, row: CallRow, answer: ManagerAnswer
    ) -> None:
        held = row.id in self._held
        if held:
            self._held.discard(row.id)
            self._log_disturbed_call(experiment, row, "it had to wait until the clean proxies stood again")
        control.write_call_answer(row.id, replace(answer, epoch=self._standing.epoch, held=held))

    def _finish_call(self, control: ControlDatabase, experiment: OpenRun, row: CallRow) -> None:
        """Ends a call: takes its lane down, and logs if its fault was witnessed."""
        lane = experiment.lanes.get(row.id)
        if lane is not None:
            self._take_down_lane(control, lane)
            # Of a lost lane the caller's observation is no witness.
            seen = None if lane.lost else Observation(**row.observation)
            if lane.lost:
                self._log_disturbed_call(experiment, row, f"its lane {lane.proxy} was lost before it was over")
            evidence: list[str] = []
            for event in fault_lifecycle.iterate_healed_events(lane.active, row.call, seen):
                self._log_fault_event(experiment, row, event)
                evidence += [event.evidence] if isinstance(event, events.FaultWitnessed) else []
            call = row.call
            met = "lost with its lane" if lane.lost else ", ".join(evidence) or "NOT witnessed"
            self.tell(f"{lane.fault_names} on {call.target}.{call.tool}, {call.trial} attempt {call.attempt}: {met}")
            with self._lock:
                del experiment.lanes[row.id]
        control.mark_call_healed(row.id)

    def _take_down_lane(self, control: ControlDatabase, lane: ArmedLane) -> None:
        """Deletes the lane; an error shows that it was lost before."""
        # Twice: the first try may meet a Toxiproxy that is being restarted.
        for _ in range(2):
            if lane.lost:
                return
            try:
                if lane.has_own_proxy:
                    self._toxiproxy.destroy(lane.proxy)
                else:
                    self._toxiproxy.fetch_proxy(lane.proxy)
                return
            except ToxiproxyError as error:
                # Deleting it must find it; else it was lost before.
                if error.status == 404:
                    lane.lost = True
                elif not isinstance(error, ToxiproxyDown):
                    self._arming.trouble = str(error)
                    return
                self._reconcile_proxies(control)
        lane.lost = True

    def _expire_lanes(self) -> None:
        """Takes down the lanes whose agent was killed before it reported the end of its call, and all of a run whose
        limits end its faults."""
        now_s = self._clock.monotonic()
        for experiment in self._runs.values():
            self._log_pause_change(experiment)
            if experiment.lanes or experiment.standing:
                self._delete_lanes_if_faults_ended(experiment)
            for lane in [lane for lane in experiment.lanes.values() if lane.until_s < now_s]:
                with self._lock:
                    del experiment.lanes[lane.row.id]
                if lane.has_own_proxy:
                    self._arming.delete_proxy(lane.proxy)
                with contextlib.suppress(LogLost):  # nobody is left to be told, and the loop has other runs to serve
                    for event in fault_lifecycle.iterate_healed_events(lane.active, lane.row.call, None):
                        self._log_fault_event(experiment, lane.row, event)
            self._arming.delete_idle_shared_lanes(experiment)

    def _log_pause_change(self, experiment: OpenRun) -> None:
        """Logs that somebody has paused the manager, or lets it go on."""
        if (lever := levers.read_stop_reason(experiment.lever)) != experiment.paused:
            now = "makes no fault" if lever else "makes faults again"
            message = f"the proxy manager {now}: {lever or 'its lever was released'}"
            experiment.paused = lever
            self.tell(message)
            with contextlib.suppress(LogLost):  # the run's next call will report it
                experiment.log.write(events.LabWarning(message=message))

    def _delete_lanes_if_faults_ended(self, experiment: OpenRun) -> None:
        """Deletes the lanes of a run whose limits end its faults now. Calls that are under way there are marked when
        they end."""
        why = experiment.guard.find_fault_end_reason() or (
            "the proxy manager is paused" if self.paused.is_set() else ""
        )
        if not why:
            return
        for proxy in sorted(experiment.proxy_names - {REFUSED}):
            self._arming.delete_proxy(proxy)
        experiment.standing.clear()
        cut = [lane for lane in experiment.lanes.values() if lane.proxy != REFUSED and not lane.lost]
        for lane in cut:
            lane.lost = True
        if cut:
            self._log_in_all_runs(
                events.LabWarning(message=f"{len(cut)} lanes were taken down: {why}"), f"lanes down: {why}"
            )

    def _close_ended_runs(self, control: ControlDatabase) -> None:
        for run in control.list_ended_runs() & self._runs.keys():
            self._close_run(run)

    def _close_run(self, run: str) -> None:
        """Takes down a run's lanes, and the clean proxies unless another run shares them."""
        with self._lock:
            experiment = self._runs.pop(run)
        self.tell(f"run {run} is over")
        for what, (_, since) in self._foreign.items():
            with contextlib.suppress(LogLost):
                experiment.log.write(self._make_disturbed_event(what, since))
        for proxy in sorted(experiment.proxy_names - {REFUSED}):
            self._arming.delete_proxy(proxy)
        if not self._runs:
            self._delete_clean_proxies()
        experiment.log.close()

    def _delete_clean_proxies(self) -> None:
        """Deletes the clean proxies after the last run, and clears the trouble."""
        self._held.clear()
        self._foreign.clear()
        self._arming.trouble = ""
        try:
            self._standing.delete_own_proxies()
        except ToxiproxyError as error:
            self._arming.trouble = str(error)

    def _log_fault_event(self, experiment: OpenRun, row: CallRow, event: Any) -> None:
        experiment.log.write(event, trial=row.call.trial)
        with self._lock:
            self._counts[(event.fault, event.kind.removeprefix("fault_"))] += 1
