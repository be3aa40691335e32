"""Reads the runs of a folder in two threads, so that no page waits for a log: one follows the runs that somebody looks
at or that go on, in small parts; the other reads the lines of the list, each of which takes whole logs at once."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The list's lines need it: a thread of the lowest priority that imports holds up everything else for long.
from chaoslab.analysis.measures import run_report  # noqa: F401
from chaoslab.base.clock import Clock, system
from chaoslab.base.jsonable import to_one_line
from chaoslab.campaigns.journal import FILE as JOURNAL
from chaoslab.record import runs
from chaoslab.record.held import has_live_writer
from chaoslab.record.steering import FILE as STEERING
from chaoslab.reports import runs as lines
from chaoslab.surfaces.ui._watched import WatchedRun

LOOK_S, LIST_S, KEPT_S = 0.1, 1.0, 60.0
"""Seconds between two looks at the logs, between two looks for new runs, and those that a run which nobody looks at is
kept in memory."""
NEWEST, TURN = 20, 100
"""The newest runs, which are looked at for changes each time, and the number of older ones that take turns."""
NAME = 100
LOW = 19
"""The priority of the two threads, as that of `nice`: 19 is the lowest."""


Signature = tuple[tuple[str, int, int], ...]


@dataclass
class ListedRun:
    """A run of the list. `version`: of the list when it changed last. `signature`: of its logs when they were read."""

    row: dict[str, Any]
    version: int
    signature: Signature = ()


class RunsReader:
    """The runs of a folder. `version` counts the changes of the list."""

    def __init__(self, logs: Path, *, clock: Clock = system) -> None:
        self.logs, self._clock = logs, clock
        self.version = 0
        self.listed: dict[str, ListedRun] = {}
        self.left = 0
        """The runs of the list that are still to be read."""
        self._watched: dict[str, WatchedRun] = {}
        self._lock, self._listing = threading.Lock(), threading.Lock()
        # Awake at once for a page that has just been opened.
        self._stopped, self._asked = False, threading.Event()
        """Set when the runs are to be looked at now."""
        self._threads = [
            threading.Thread(target=self._loop_until_stopped, args=(work,), name=work.__name__, daemon=True)
            for work in (self.poll_watched_runs, self.read_next_changed_row)
        ]
        self._folders: dict[str, Path] = {}
        self._due: dict[str, None] = {}
        """The names of the runs whose lines are to be read, in order."""
        self._reading = ""
        """That of the run whose line is being read."""
        self.found = False
        """All runs are in the list, read or not."""
        self.campaigns: list[Path] = []
        self._at = 0
        self._held: Signature = ()
        self._looked_s = -LIST_S

    def get_or_watch_run(self, name: str) -> WatchedRun:
        """The run of this name: that of its folder, behind its campaign's and a colon if one made it. Raises
        LookupError: there is no such run."""
        with self._lock:
            # Within the lock, since two pages may ask for one run.
            if name not in self._watched:
                folder = self._folders.get(name) or find_run_folders(self.logs).get(name)
                if folder is None:
                    raise LookupError(f"there is no run {to_one_line(name, NAME)} in {self.logs}")
                self._watched[name] = WatchedRun(folder, name, clock=self._clock)
                self._asked.set()
            watched_run = self._watched[name]
            watched_run.asked_s = self._clock.monotonic()
            return watched_run

    def get_run_folder(self, name: str) -> Path:
        """The folder of this name, as `run`."""
        return self.get_or_watch_run(name).folder

    # A copy, since the other thread adds to it.
    def list_run_rows_since(self, version: int) -> list[dict[str, Any]]:
        """The rows of the list that are newer than this version."""
        return [listed_run.row for listed_run in [*self.listed.values()] if listed_run.version > version]

    def poll_logs(self) -> bool:
        """One look at all. Returns True if there may be more to read at once."""
        has_more = self.poll_watched_runs()
        return self.read_next_changed_row() or has_more

    def poll_watched_runs(self) -> bool:
        """Looks for new runs, and reads the next part of each that is watched. Returns True if there may be more."""
        now_s = self._clock.monotonic()
        if now_s - self._looked_s >= LIST_S:
            self._looked_s = now_s
            self._update_run_list()
        with self._lock:
            for name, watched_run in [*self._watched.items()]:
                if not watched_run.running and now_s - watched_run.asked_s > KEPT_S:
                    watched_run.close()
                    del self._watched[name]
            watched = dict(self._watched)
        has_more = False
        for name, watched_run in watched.items():
            before = watched_run.version
            has_more |= watched_run.poll_logs()
            # The list shows a run that goes on from what is read of it anyway.
            if watched_run.version != before and watched_run.running:
                self._store_run_row(name, _make_running_row(watched_run))
        return has_more

    def _update_run_list(self) -> None:
        """Looks for new runs, changed ones, and those that are gone. A run that goes on is followed."""
        self.campaigns = find_campaigns(self.logs)
        signature_now = _compute_file_signature(self.logs, *self.campaigns)
        # The folder's own change tells of new runs; once in a turn it is read all the same.
        if signature_now != self._held or not self._at:
            self._held = signature_now
            with suppress(OSError):
                self._folders = find_run_folders(self.logs)
        for name in self.listed.keys() - self._folders.keys():
            # Kept as gone, since a page learns of changes by rows alone.
            if not self.listed[name].row.get("gone"):
                self._store_run_row(name, {**self.listed[name].row, "gone": True})
        for name, folder in self._folders.items():
            if name not in self.listed:
                begin = runs.parse_start_time(folder)
                self._store_run_row(name, {"run": name, "began": f"{begin:%Y-%m-%d %H:%M}" if begin else ""})
                self._due[name] = None
        self.found = True
        names = [*self._folders]
        # The newest change most; of thousands of older ones a part takes its turn.
        for name in {*names[:NEWEST], *names[self._at : self._at + TURN]}:
            folder = self._folders[name]
            if name != self._reading and self.listed[name].signature != compute_run_signature(folder):
                self._due.setdefault(name)
            if name not in self._watched and has_live_writer(folder):
                self.get_or_watch_run(name)
        self._at = self._at + TURN if self._at + TURN < len(names) else 0

    def read_next_changed_row(self) -> bool:
        """Reads the next line of the list that has changed; False if there is none."""
        # One that goes on has its row from what is watched.
        due = [name for name in [*self._due] if not self._is_running(name)]
        if self.left != len(due):
            self.left = len(due)
            with self._listing:
                self.version += 1
        if not due:
            return False
        self._reading = name = due[0]
        del self._due[name]
        folder = self._folders.get(name, self.logs / name)
        signature = compute_run_signature(folder)
        with suppress(OSError):
            row = {"run": name, **lines.read_run_list_entry(folder).to_page_row()}
            # It may have gone, or begun to go on, while it was read.
            if name in self._folders and not self._is_running(name):  # still
                self._store_run_row(name, row)
        # Of before it was read: what was written meanwhile makes it due again.
        self.listed[name].signature = signature
        self._reading = ""
        return True

    def _is_running(self, name: str) -> bool:
        return (watched := self._watched.get(name)) is not None and watched.running

    def _store_run_row(self, name: str, row: dict[str, Any]) -> None:
        with self._listing:
            listed_run = self.listed.get(name)
            self.listed[name] = ListedRun(
                row, self.version + 1, listed_run.signature if listed_run and not row.get("going") else ()
            )
            self.version += 1

    def _loop_until_stopped(self, look: Callable[[], bool]) -> None:
        # Who watches yields to what is watched: on a full machine the page is late, and not the run. Only on Linux
        # has each thread a priority of its own; elsewhere the number might be that of another process.
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW)
        while not self._stopped:
            if not look():
                self._asked.wait(LOOK_S)
                self._asked.clear()

    def __enter__(self) -> "RunsReader":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._asked.set()
        for thread in self._threads:
            thread.join()
        self.close()

    def close(self) -> None:
        """Closes all logs."""
        for watched_run in self._watched.values():
            watched_run.close()

    def list_running_folders(self) -> list[str]:
        """The places of the runs that go on, from the folder."""
        folders = [watched_run.folder for watched_run in [*self._watched.values()] if watched_run.running]
        return [str(folder.relative_to(self.logs)) for folder in folders]


def find_campaigns(logs: Path) -> list[Path]:
    """The folders of campaigns: this one, and those in it."""
    return [path.parent for path in (logs / JOURNAL, *sorted(logs.glob(f"*/{JOURNAL}"))) if path.is_file()]


def find_run_folders(logs: Path) -> dict[str, Path]:
    """The folders of all runs by name, newest first, and behind them those of the campaigns beside them."""
    campaigns = find_campaigns(logs)
    folders = {folder.name: folder for folder in runs.list_runs_newest_first(logs) if folder not in campaigns}
    for campaign in campaigns:
        if campaign != logs:
            folders |= {f"{campaign.name}:{folder.name}": folder for folder in runs.list_runs_newest_first(campaign)}
    return folders


def compute_run_signature(folder: Path) -> Signature:
    """The sizes and times of all that a line of the list rests on."""
    with suppress(OSError):
        return _compute_file_signature(
            *sorted(path for path in folder.iterdir() if path.suffix in (".log", ".jsonl") or path.name == STEERING)
        )
    return ()


def _compute_file_signature(*paths: Path) -> Signature:
    return tuple(
        (path.name, (file_stat := path.stat()).st_size, file_stat.st_mtime_ns) for path in paths if path.exists()
    )


def _make_running_row(run: WatchedRun) -> dict[str, Any]:
    """The row of a run that goes on."""
    state = run.get_state()
    judged = state["well"] + state["bad"]
    return {
        "run": state["run"], "name": state["name"], "world": state["world"], "trials": state["of"], "going": True,
        "began": f"{begin:%Y-%m-%d %H:%M}" if (begin := runs.parse_start_time(run.folder)) else "",
        "seed": None if state["seed"] is None else str(state["seed"]), "level": None,
        "well": f"{state['well']} of {judged}" if judged else "", "share": state["well"] / judged if judged else None,
        "harmed": state["harmed"], "faults": state["faults"], "commit": "", "ruling": "",
        "said": f"{state['done']} of {state['of']} done", "ended": state["ended"],
    }  # fmt: skip
