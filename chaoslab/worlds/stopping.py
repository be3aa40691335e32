"""The supervisor's part in faults of a process: stops the processes of services as the run asks, and brings them back.

It works through the rows of `outages` in the shared state (`wire/control.py`), and writes what it did into
`supervisor.log`. A world brings the `ServiceProcesses`.

On loopback and in containers nobody plays an outage: the seam asks for it (`seams/http/process_faults.py`), the
supervisor carries it out here, and the seam sends the call when the process is dead or stands still. What the call then
meets is its witness; other calls that meet the outage are told of the same injection. A tool that may be stopped has a
process of its own, the others share one. An outage ends with its trial. A paused process hangs on a shell that lets it
go on when the supervisor is gone, kill -9 included.
"""

import contextlib
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chaoslab.base.clock import Clock
from chaoslab.core.events import AttemptRef, ServiceResumed, ServiceStopped
from chaoslab.core.limits import LimitGuard
from chaoslab.record.log import Log, LogLost
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase, OutageRow, explain_database_error

# Seconds between two looks at the shared state.
LOOK_S = 0.01


class ServiceProcesses(Protocol):
    """The processes of a world's services. Each method is for one service; an error is an OSError or a
    subprocess.SubprocessError."""

    def kill(self, service: str) -> None: ...
    def start_again(self, service: str) -> None:
        """Begins to start it again."""

    def pause(self, service: str) -> None: ...
    def resume(self, service: str) -> None: ...
    def is_up(self, service: str) -> bool:
        """True once it answers."""

    def disturb_service(self, service: str, condition: str, share: float) -> None:
        """Does what only a container's engine can: see `Outage.deed`."""

    def undo_disturbance(self, service: str, condition: str) -> None:
        """Undoes that, or begins to."""


@dataclass
class _Stopped:
    """An outage that goes on. `started`: the process was started again, and need not answer yet."""

    row: OutageRow
    since_s: float
    started: bool = False


class OutageRunner:
    """Carries out the outages of a world's runs; for one thread. `close` leaves no process paused and no container
    disturbed."""

    def __init__(self, processes: ServiceProcesses, *, state: Path, logs: Path, clock: Clock, manager: str) -> None:
        self._processes, self._state, self._logs, self._clock = processes, state, logs, clock
        self._control = ControlDatabase(state, manager=manager)
        self._stopped: dict[int, _Stopped] = {}
        self._books: dict[str, Log] = {}
        self._guards: dict[str, LimitGuard] = {}

    def advance_outages(self) -> None:
        """Stops and brings back what is due. An outage that cannot be carried out is answered with the reason, which
        ends the run."""
        for row in self._control.list_outages():
            try:
                if row.state == "asked":
                    self._begin_outage(row)
                else:
                    self._continue_outage(row)
            except (OSError, subprocess.SubprocessError, LookupError, LogLost) as error:
                reason = f"the process of {row.service} could not be {row.how} and brought back: {error}"
                # Told in the row, as the seam waits for it.
                self._control.set_outage_state(row.id, "failed", error=reason)

    def advance_outages_or_explain(self) -> str:
        """Looks; returns the reason, in one line, that it cannot any more, or an empty text."""
        try:
            self.advance_outages()
        except sqlite3.Error as error:
            return explain_database_error(self._state, error)
        return ""

    def _begin_outage(self, row: OutageRow) -> None:
        began_s = self._clock.monotonic()
        # What a process's owner can do; all else needs an engine.
        if row.how in ("paused", "killed"):
            (self._processes.pause if row.how == "paused" else self._processes.kill)(row.service)
        else:
            self._processes.disturb_service(row.service, row.how, row.fault.get("share", 1.0))
        # After the work: the outage lasts from when the process stands.
        now_s = self._clock.monotonic()
        self._stopped[row.id] = _Stopped(row, now_s)
        fault = row.fault
        at = AttemptRef(
            trial=fault["trial"],
            turn=fault["turn"],
            target=row.service,
            request=fault["request"],
            attempt=fault["attempt"],
            request_id=fault["request_id"],
        )
        event = ServiceStopped(
            fault=fault["fault"], injection=fault["injection"], at=at, how=row.how, took_s=round(now_s - began_s, 6)
        )
        # Before the row: whoever sees it may look for the event.
        self._open_log(row.run).write(event, trial=fault["trial"])
        self._control.set_outage_state(row.id, "stopped")

    def _continue_outage(self, row: OutageRow) -> None:
        stopped = self._stopped[row.id]
        if not stopped.started:
            if (
                not row.ended
                and self._clock.monotonic() - stopped.since_s < row.for_s
                and not self._are_faults_ended(row.run)
            ):
                return
            stopped.started = True
            self._restore_service(row)
        # A process that was paused goes on where it was; any other has to answer again first.
        if row.how != "paused" and not self._processes.is_up(row.service):
            return
        lasted_s = round(self._clock.monotonic() - stopped.since_s, 6)
        event = ServiceResumed(target=row.service, how=row.how, lasted_s=lasted_s)
        self._open_log(row.run).write(event, trial=row.fault["trial"])
        del self._stopped[row.id]
        self._control.set_outage_state(row.id, "over")

    def _are_faults_ended(self, run: str) -> bool:
        """True if the limits of a run end its faults now."""
        if run not in self._guards:
            self._guards[run] = LimitGuard(self._control.get_plan_limits(run), clock=self._clock)
        return bool(self._guards[run].find_fault_end_reason())

    def _restore_service(self, row: OutageRow) -> None:
        if row.how in ("paused", "killed"):
            (self._processes.resume if row.how == "paused" else self._processes.start_again)(row.service)
        else:
            self._processes.undo_disturbance(row.service, row.how)

    def _open_log(self, run: str) -> Log:
        if run not in self._books:
            self._books[run] = Run.open(self._logs, run).open_log("supervisor", clock=self._clock)
        return self._books[run]

    def close(self) -> None:
        """Lets every paused process go on, and undoes what an engine did."""
        for stopped in self._stopped.values():
            # One that was killed is started by nobody any more: the world ends.
            if stopped.row.how != "killed" and not stopped.started:
                with contextlib.suppress(OSError, subprocess.SubprocessError):
                    self._restore_service(stopped.row)
        self._stopped.clear()
        for book in self._books.values():
            book.close()
        self._control.close()
