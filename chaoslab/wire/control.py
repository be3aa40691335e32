"""The protocol of the agent's seam and the proxy manager: one row a call in `state/state.db`.

    asked ─▶ clear                        no fault of the wire was drawn: use the clean lane
          └▶ armed ─▶ done ─▶ healed      a lane of its own stands; used and observed; gone
          └▶ failed                       it could not be armed: the lab is broken, and the agent must not carry on

A row of `outages` is a fault of a process, which the supervisor of the world carries out:

    asked ─▶ stopped ─▶ over             the process is killed or paused; it answers again
          └▶ failed                      nobody could stop it

The log is the durable record, so the database is fast rather than safe: a rollback journal (bind mounts of Docker
Desktop lack what WAL needs), no fsync, short transactions, never one held across HTTP. A connection belongs to one
thread.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaoslab.base.clock import Clock
from chaoslab.core.exchange import Call
from chaoslab.core.limits import Limits

VERSION = 3
"""The version of the tables below. State of another version is thrown away, since the log has all of it."""

_SCHEMA = (
    # Dropping the tables is the whole migration: what an earlier version left here is in the log too.
    "DROP TABLE IF EXISTS runs",
    "DROP TABLE IF EXISTS calls",
    "DROP TABLE IF EXISTS outages",
    """CREATE TABLE runs (
        run TEXT PRIMARY KEY, manager TEXT NOT NULL, plan TEXT NOT NULL, targets TEXT NOT NULL, state TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '')""",
    """CREATE TABLE calls (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL, state TEXT NOT NULL, trial TEXT NOT NULL, target TEXT NOT NULL,
        tool TEXT NOT NULL, request INTEGER NOT NULL, attempt INTEGER NOT NULL, request_id TEXT NOT NULL,
        occasion TEXT NOT NULL,
        deadline_s REAL NOT NULL, answer TEXT NOT NULL DEFAULT '{}', observation TEXT NOT NULL DEFAULT '{}')""",
    """CREATE TABLE outages (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL, state TEXT NOT NULL, service TEXT NOT NULL, how TEXT NOT NULL,
        for_s REAL NOT NULL, fault TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '')""",
    # Partial, since the manager looks for these two states all the time and nearly all rows of a run are healed.
    "CREATE INDEX pending ON calls (state) WHERE state IN ('asked', 'done')",
    f"PRAGMA user_version = {VERSION}",
)
# The lab's own transactions take milliseconds, so whoever holds the file for longer is none of its parts.
BUSY_S = 2.0
FIRST: Mapping[str, Any] = MappingProxyType({})
"""The occasion of a call in a first turn before which nothing was met."""

_REMEDIES = {
    "SQLITE_BUSY": "end what holds it and start again",
    "SQLITE_CANTOPEN": "it should be a file in a folder that can be written",
    "SQLITE_CORRUPT": "something wrote over it; start again, and it is made anew",
    "SQLITE_ERROR": "something emptied or replaced it; start again, and it is made anew",
    "SQLITE_FULL": "make room and start again",
    "SQLITE_IOERR": "see to its disk and start again",
    "SQLITE_NOTADB": "something wrote over it; start again, and it is made anew",
    "SQLITE_READONLY": "make it writable, then start again",
    "SQLITE_READONLY_DBMOVED": "it was deleted or moved in mid-run; start again, and it is made anew",
}


def explain_database_error(path: Path, error: sqlite3.Error) -> str:
    """The file, its error and the remedy, in one line."""
    name = getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR"
    # An extended code (SQLITE_IOERR_WRITE) takes the remedy of its base code, unless it has one of its own.
    remedy = _REMEDIES.get(name) or _REMEDIES.get("_".join(name.split("_")[:2]), _REMEDIES["SQLITE_IOERR"])
    return f"the shared state {path} cannot be used: {error}; {remedy}"


@dataclass(frozen=True)
class ManagerAnswer:
    """The manager's answer to a call. `state`: clear, armed or failed. `rolled`: the injections whose dice were rolled.
    `epoch`: the number of times that the clean proxies were made anew. `held`: the answer had to wait for that.
    `stands`: the lane stays for further calls, so connections to it may be kept."""

    state: str
    host: str = ""
    port: int = 0
    rolled: list[str] = field(default_factory=list)
    error: str = ""
    epoch: int = 0
    held: bool = False
    stands: bool = False


@dataclass(frozen=True)
class CallRow:
    """A call that waits for the manager: asked, or done with the seam's observation."""

    id: int
    run: str
    state: str
    call: Call
    deadline_s: float
    observation: Mapping[str, Any]
    # All that triggers ask about the call, so that the manager needs no memory of the trial.
    occasion: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutageRow:
    """An outage that a seam asked for: `service` is to be `how` (killed or paused) for `for_s` seconds. `fault`: the
    fields of its `ServiceStopped`, and the trial. `ended`: it is to be over now."""

    id: int
    run: str
    state: str
    service: str
    how: str
    for_s: float
    fault: Mapping[str, Any]
    ended: bool = False


@dataclass(frozen=True)
class RunRow:
    """A run that the agent opened: its plan as data, and each target's upstream as host:port."""

    run: str
    plan: Mapping[str, Any]
    targets: Mapping[str, str]


class ControlDatabase:
    """One thread's connection to the state that agent and manager share.

    `manager` names the manager of the runs that are opened here, so several labs may share the file. Raises
    sqlite3.Error: the file is locked for longer than 2 s, not a database, or cannot be written.
    """

    def __init__(self, path: Path, *, manager: str = "") -> None:
        self._manager = manager
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            # `mkdir` names the folder that could not be made, which may be a parent of this one.
            reason = f"{error.filename or path.parent}: {error.strerror or error}"
            raise _make_error(reason, "SQLITE_CANTOPEN") from error
        self._path = path
        # None: sqlite3 would begin deferred transactions by itself, which take the write lock only at their first
        # statement.
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            # PERSIST keeps the journal's file, so that a commit neither makes nor deletes one.
            self._db.execute("PRAGMA journal_mode = PERSIST")
            # No fsync: what a crash of the machine loses here is in the log.
            self._db.execute("PRAGMA synchronous = OFF")
            self._migrate_schema()
            self._file = _identify_file(path)
        except sqlite3.Error:
            self._db.close()
            raise

    def _migrate_schema(self) -> None:
        if self._is_schema_current():
            return
        with self._open_transaction():
            if not self._is_schema_current():  # another process may have been first
                for statement in _SCHEMA:
                    self._db.execute(statement)

    @classmethod
    def open_fresh(cls, path: Path, *, manager: str = "") -> "ControlDatabase":
        """A connection for a manager that begins. Drops its earlier runs, and makes a broken file anew."""
        try:
            control = cls(path, manager=manager)
            try:
                control.delete_earlier_runs()
                # Asked at the start, since damage in a page that nobody reads yet would end a run in its middle. 1: one
                # finding is enough.
                check_result = control._db.execute("PRAGMA quick_check(1)").fetchone()[0]
                if check_result != "ok":
                    raise sqlite3.DatabaseError(check_result)
            except sqlite3.Error:
                control.close()
                raise
        # It is a DatabaseError too, but who cannot open, lock or write the file must not delete it: it may be whole.
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # not a database, or a broken one
            # SQLite would play a journal that is left alone back into the new file.
            for name in (path, path.with_name(f"{path.name}-journal")):
                name.unlink(missing_ok=True)
            control = cls(path, manager=manager)
        return control

    def close(self) -> None:
        self._db.close()

    def check_file_in_place(self) -> None:
        """Checks that the file is still in place, which SQLite itself notices only when it writes. Raises
        sqlite3.OperationalError: another file stands there, or none."""
        if _identify_file(self._path) != self._file:
            raise _make_error("it is not the file that was opened", "SQLITE_READONLY_DBMOVED")

    # The agent's methods.

    def request_run_setup(self, run: str, *, plan: Mapping[str, Any], targets: Mapping[str, str]) -> None:
        """Asks the manager to make the clean lanes of a new run."""
        self._execute_write(
            "INSERT OR REPLACE INTO runs (run, manager, plan, targets, state) VALUES (?, ?, ?, ?, 'asked')",
            (run, self._manager, json.dumps(plan), json.dumps(targets)),
        )

    def get_run_state(self, run: str) -> tuple[str, str]:
        """(state, error) of a run: asked, ready, failed or over."""
        row = self._db.execute("SELECT state, error FROM runs WHERE run = ?", (run,)).fetchone()
        return (row[0], row[1]) if row else ("missing", "")

    def set_plan(self, run: str, plan: Mapping[str, Any]) -> None:
        """Puts another plan in force; the occasions of the calls from now on have its number."""
        self._execute_write("UPDATE runs SET plan = ? WHERE run = ?", (json.dumps(plan), run))

    def get_plan(self, run: str) -> dict[str, Any]:
        """The plan of a run as data; empty without such a run."""
        row = self._db.execute("SELECT plan FROM runs WHERE run = ?", (run,)).fetchone()
        return _decode_json_object(row[0]) if row else {}

    def end_run(self, run: str) -> None:
        self._execute_write("UPDATE runs SET state = 'over' WHERE run = ?", (run,))

    def request_call_address(
        self, run: str, call: Call, *, deadline_s: float, occasion: Mapping[str, Any] = FIRST
    ) -> int:
        """Asks for the address of this call on this occasion (`Occasion.to_json`). Returns the row's id."""
        columns = (
            run,
            "asked",
            call.trial,
            call.target,
            call.tool,
            call.request,
            call.attempt,
            call.request_id,
            json.dumps(dict(occasion)),
            deadline_s,
        )
        return self._execute_write(
            "INSERT INTO calls (run, state, trial, target, tool, request, attempt, request_id, occasion,"
            " deadline_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            columns,
        )

    def get_call_answer(self, row: int) -> ManagerAnswer | None:
        """The manager's answer, or None while there is none."""
        columns = self._db.execute("SELECT state, answer FROM calls WHERE id = ?", (row,)).fetchone()
        # A manager that starts anew drops the rows of its earlier runs, also under a call that waits.
        if columns is None:
            return ManagerAnswer("failed", error="the call's row has vanished from the shared state")
        return None if columns[0] == "asked" else ManagerAnswer(**_decode_json_object(columns[1]))

    def mark_call_done(self, row: int, observation: Mapping[str, Any]) -> None:
        """Notes the end of the attempt over the lane."""
        self._execute_write(
            "UPDATE calls SET state = 'done', observation = ? WHERE id = ?", (json.dumps(observation), row)
        )

    def request_outage(self, run: str, service: str, manner: str, *, for_s: float, fault: Mapping[str, Any]) -> int:
        """Asks the supervisor to stop a service's process. Returns the row's id."""
        return self._execute_write(
            "INSERT INTO outages (run, state, service, how, for_s, fault) VALUES (?, 'asked', ?, ?, ?, ?)",
            (run, service, manner, for_s, json.dumps(dict(fault))),
        )

    def get_outage_state(self, row: int) -> tuple[str, str]:
        """(state, error) of an outage: asked, stopped, failed or over."""
        columns = self._db.execute("SELECT state, error FROM outages WHERE id = ?", (row,)).fetchone()
        # As with calls: a manager that starts anew drops the rows of its earlier runs.
        return (
            (columns[0], columns[1]) if columns else ("failed", "the outage's row has vanished from the shared state")
        )

    def end_outages(self, run: str) -> None:
        """Asks the supervisor to end the run's outages now."""
        # Only noted: the supervisor alone knows how a process is brought back, and says when it answers.
        self._execute_write("UPDATE outages SET ended = 1 WHERE run = ? AND state IN ('asked', 'stopped')", (run,))

    # The supervisor's methods.

    def list_outages(self) -> list[OutageRow]:
        """The outages of this manager's runs that are asked for or go on, oldest first."""
        rows = self._db.execute(
            "SELECT id, run, state, service, how, for_s, fault, ended FROM outages WHERE state IN ('asked', 'stopped')"
            " AND run IN (SELECT run FROM runs WHERE manager = ?) ORDER BY id",
            (self._manager,),
        ).fetchall()
        return [OutageRow(r[0], r[1], r[2], r[3], r[4], r[5], _decode_json_object(r[6]), bool(r[7])) for r in rows]

    def get_plan_limits(self, run: str) -> tuple[Limits, ...]:
        """The limits of a run's plan."""
        row = self._db.execute("SELECT plan FROM runs WHERE run = ?", (run,)).fetchone()
        return tuple(map(Limits.build, _decode_json_object(row[0]).get("limits", ()))) if row else ()

    def set_outage_state(self, row: int, state: str, *, error: str = "") -> None:
        self._execute_write("UPDATE outages SET state = ?, error = ? WHERE id = ?", (state, error, row))

    # The manager's methods.

    def list_requested_runs(self) -> list[RunRow]:
        rows = self._db.execute(
            "SELECT run, plan, targets FROM runs WHERE state = 'asked' AND manager = ?", (self._manager,)
        ).fetchall()
        return [RunRow(run, _decode_json_object(plan), _decode_json_object(targets)) for run, plan, targets in rows]

    def list_ended_runs(self) -> set[str]:
        """The runs that their agent has ended."""
        rows = self._db.execute(
            "SELECT run FROM runs WHERE state = 'over' AND manager = ?", (self._manager,)
        ).fetchall()
        return {row[0] for row in rows}

    def set_run_state(self, run: str, state: str, *, error: str = "") -> None:
        # Unless its agent has ended it while its clean lanes were being made: an ended run must not come back to life.
        self._execute_write(
            "UPDATE runs SET state = ?, error = ? WHERE run = ? AND state != 'over'", (state, error, run)
        )

    def list_pending_calls(self, runs: Iterable[str]) -> list[CallRow]:
        """The calls of these runs that wait for the manager, oldest first."""
        names = tuple(runs)
        rows = self._db.execute(
            "SELECT id, run, state, trial, target, tool, request, attempt, request_id, occasion, deadline_s,"
            " observation"
            # In the order of asking, so that no call waits for those that came after it.
            f" FROM calls WHERE state IN ('asked', 'done') AND run IN ({','.join('?' * len(names))}) ORDER BY id",
            names,
        ).fetchall()
        return [
            CallRow(
                r[0],
                r[1],
                r[2],
                Call(r[4], r[5], r[3], r[6], r[7], r[8]),
                r[10],
                _decode_json_object(r[11]),
                _decode_json_object(r[9]),
            )
            for r in rows
        ]

    def write_call_answer(self, row: int, answer: ManagerAnswer) -> None:
        self._execute_write(
            "UPDATE calls SET state = ?, answer = ? WHERE id = ?", (answer.state, json.dumps(vars(answer)), row)
        )

    def mark_call_healed(self, row: int) -> None:
        self._execute_write("UPDATE calls SET state = 'healed' WHERE id = ?", (row,))

    def delete_earlier_runs(self) -> None:
        """Drops the earlier runs of this manager, at once for those who read. One that was never ended cannot go on."""
        condition = "run IN (SELECT run FROM runs WHERE manager = ?)"
        # In one transaction: who reads meanwhile sees a run with all its rows or not at all, and so blames the right
        # part.
        with self._open_transaction():
            for table in ("calls", "outages", "runs"):
                self._db.execute(f"DELETE FROM {table} WHERE {condition}", (self._manager,))

    def _is_schema_current(self) -> bool:
        return bool(self._db.execute("PRAGMA user_version").fetchone()[0] == VERSION)

    @contextlib.contextmanager
    def _open_transaction(self) -> Iterator[None]:
        # IMMEDIATE takes the write lock where SQLite waits for it up to `BUSY_S`; raising a read lock later may fail at
        # once.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        # BaseException: a Ctrl-C that left the transaction open would lock the other process out.
        except BaseException:
            if self._db.in_transaction:  # on a full disk SQLite has rolled back by itself
                self._db.execute("ROLLBACK")
            raise

    def _execute_write(self, statement: str, values: Sequence[Any]) -> int:
        with self._open_transaction():
            return self._db.execute(statement, values).lastrowid or 0


def _make_error(reason: str, name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(reason)
    # SQLite sets the name on its own errors alone, and `explain_database_error` finds the remedy by it.
    error.sqlite_errorname = name
    return error


def _identify_file(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _decode_json_object(text: str) -> dict[str, Any]:
    """A column's JSON object. Any other text is damage of the database."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a row is garbled ({error})") from None
    # Checked here, since another value would fail only where its fields are read, far from the damage.
    if not isinstance(value, dict):
        raise sqlite3.DatabaseError("a row is garbled")
    return value


# A file system's clock ticks every few milliseconds, so a second write may have the time of the first one. A write that
# is older than this when the file is read has a time of its own.
SETTLED_S = 0.05


class WatchedFile:
    """The times of one file's writes. `may_have_changed` is asked before each reading."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._seen: tuple[int, int, int] | None = None
        self._settled = False

    def may_have_changed(self) -> bool:
        """True if the file may have been written since this last returned True."""
        try:
            status = os.stat(self._path)
        except OSError:  # its reader says what is wrong
            self._seen = None
            return True
        # Inode and size too: a file that was replaced, or written twice within a tick, may have the time of the one
        # before.
        stamp = status.st_mtime_ns, status.st_ino, status.st_size
        if stamp == self._seen and self._settled:
            return False
        self._seen = stamp
        # By the wall clock, since the file system's times are of that one.
        self._settled = self._clock.utc().timestamp() - status.st_mtime_ns / 1e9 > SETTLED_S
        return True
