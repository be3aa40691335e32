"""A run's folder. `logs/<run>/run.json` holds the facts that all processes of the run share; `logs/latest` names the
newest run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Annotated

from chaoslab.base import files
from chaoslab.base.clock import Clock, format_iso, system
from chaoslab.base.identity import ALONE
from chaoslab.base.shapes import Shape, Within
from chaoslab.core.events import LASTS_MAX_S, Moment
from chaoslab.record.held import MAIN
from chaoslab.record.log import Log
from chaoslab.record.provenance import digest_uncommitted_changes, read_git_commit

NAME_MAX, REVISION_MAX = 64, 12
STAMP = "%Y%m%d-%H%M%S"
"""The format of a run's folder name, by the wall clock (UTC)."""
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}", re.ASCII)


@dataclass(frozen=True)
class Run:
    """One start of the lab. `origin`: the monotonic time at which it began. `now`: the tools' today (ISO 8601)."""

    name: str
    folder: Path
    origin: Annotated[float, Within(-LASTS_MAX_S, LASTS_MAX_S)]
    now: Moment

    def open_log(self, writer: str, *, clock: Clock = system, secrets: Sequence[str] = ()) -> Log:
        """The log of one writer in this run. It masks the secrets."""
        return Log(self.folder, writer, run=self.name, origin=self.origin, clock=clock, secrets=secrets)

    @classmethod
    def create(
        cls,
        logs: Path,
        *,
        now: str,
        name: str = "",
        folder: str = "",
        writers: Sequence[str] = (MAIN,),
        clock: Clock = system,
    ) -> Run:
        """Makes a new folder, named by the wall clock, or of the name `folder`. A run with a `name` is not of real
        time: it begins at `now`, and its files do not show the wall clock. Each of the `writers` but the main one gets
        its log, so that one that is missing later is known to be lost. Raises OSError: a file is in the way; its
        `filename` names it."""
        cls.prepare_logs_folder(logs)
        latest = logs / "latest"
        if latest.is_dir() and not latest.is_symlink():
            raise FileExistsError(errno.EEXIST, "it should be a link to the newest run: rename it", str(latest))
        if folder:
            _make_run_folder(logs, folder)
        else:
            # mkdir decides: of two runs that begin within one second, the second takes the next name.
            for folder in _iterate_folder_names(clock):
                with contextlib.suppress(FileExistsError):
                    (logs / folder).mkdir()
                    break
        if name:
            run = cls(name, logs / folder, 0.0, now)
            started = now
        else:
            run = cls(folder, logs / folder, clock.monotonic(), now)
            started = format_iso(clock.utc())
        for writer in (folder_name for folder_name in writers if folder_name != MAIN):
            (run.folder / f"{writer}.log").touch()
        run._write_run_json(started=started, writers=writers)
        return run

    @staticmethod
    def prepare_logs_folder(logs: Path) -> None:
        """Makes the folder of runs, if it is not there. Raises OSError: it cannot be made or written to; its `filename`
        names it."""
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "it should be a folder: rename it", str(logs)) from None
        if not os.access(logs, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "nothing can be written into it: make it writable", str(logs))

    def link_as_latest(self) -> None:
        """Points `logs/latest` to this run, which has begun."""
        # A link cannot be made over another; one that is renamed takes its place in one step.
        newest = self.folder.with_name(f".latest-{self.folder.name}")
        newest.symlink_to(self.folder.name)
        newest.replace(self.folder.with_name("latest"))

    @classmethod
    def open(cls, logs: Path, name: str, *, now: str = "", clock: Clock = system) -> Run:
        """The run of that name as its maker described it. The run `alone`, which has no maker, begins now.

        Only `alone` is made on demand: a stranger's X-Trial header must not make folders. Raises LookupError: no such
        run.
        """
        folder = logs / name
        try:
            if not _NAME.fullmatch(name):
                raise files.Unreadable("is no run's folder", missing=True)
            data = files.read_json(folder / "run.json")
            stated_run: Run = _TOLD.make_instance(data if isinstance(data, dict) else {})
            return cls(name, folder, stated_run.origin, stated_run.now)
        except files.Unreadable as error:
            if not error.missing:
                raise LookupError(_describe_unreadable_run(folder, error)) from None
            if name != ALONE:
                raise LookupError(f"no run is called '{name[:NAME_MAX]}' in {logs}") from None
        except ValueError as error:
            raise LookupError(_describe_unreadable_run(folder, error)) from None
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(name, folder, clock.monotonic(), now)
        run._write_run_json(started=format_iso(clock.utc()))
        return run

    def _write_run_json(self, *, started: str, writers: Sequence[str] = ()) -> None:
        data = {"name": self.name, "origin": self.origin, "now": self.now, "started": started, "writers": [*writers]}
        if commit := read_git_commit():
            data["revision"] = commit
            if changed := digest_uncommitted_changes():
                data["changed"] = changed
        # `alone` is made on demand, maybe by two threads or processes at once: each writes a file of its own.
        with files.replace_file(self.folder / "run.json") as draft:
            draft.write_text(json.dumps(data, indent=2) + "\n")


def read_revision(folder: Path, name: str = "revision") -> str:
    """The commit at which the run in this folder was made; empty if its run.json names none. `name`: "changed" for the
    digest of what was not committed."""
    try:
        commit = files.read_json(folder / "run.json")[name]
    except (ValueError, TypeError, KeyError):
        return ""
    return commit[:REVISION_MAX] if isinstance(commit, str) else ""


def write_rerun_command(folder: Path, command: Sequence[str]) -> None:
    """Writes down in run.json the words of the command that makes such a run again. Raises OSError: it cannot be
    written."""
    data = {**files.read_json(folder / "run.json"), "again": [*command]}
    with files.replace_file(folder / "run.json") as draft:
        draft.write_text(json.dumps(data, indent=2) + "\n")


def read_rerun_command(folder: Path) -> list[str]:
    """The words that `write_rerun_command` wrote; none if there are none."""
    try:
        command = files.read_json(folder / "run.json")["again"]
    except (ValueError, TypeError, KeyError):
        return []
    return [word for word in command if isinstance(word, str)] if isinstance(command, list) else []


def choose_free_run_name(logs: Path, *, clock: Clock = system) -> str:
    """A name for the folder of a run that another process makes (`Run.create`, `folder`)."""
    return next(name for name in _iterate_folder_names(clock) if not (logs / name).exists())


def _iterate_folder_names(clock: Clock) -> Iterator[str]:
    stem = clock.utc().strftime(STAMP)
    return chain((stem,), (f"{stem}-{n}" for n in count(2)))


def _make_run_folder(logs: Path, folder: str) -> None:
    """Makes the folder of that name. Raises OSError: no run can be called so, or one is: two would write into it."""
    if not _NAME.fullmatch(folder):
        raise OSError(errno.EINVAL, f"a run's name has up to {NAME_MAX} letters, digits, - and _", str(logs / folder))
    try:
        (logs / folder).mkdir()
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "there is a run of this name already", str(logs / folder)) from None


_STAMPED = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?", re.ASCII)


def group_folders_by_name(logs: Path) -> dict[str, list[Path]]:
    """The folders of all runs by the name in their run.json, the newest last."""
    folders_by_name: dict[str, list[Path]] = {}
    folders = (path for path in logs.glob("*") if not path.is_symlink() and (path / "run.json").is_file())
    for folder in sorted(folders, key=_make_age_key):
        try:
            name = files.read_json(folder / "run.json")["name"]
        except (ValueError, TypeError, KeyError):  # it is no run that could be named
            continue
        if isinstance(name, str):
            folders_by_name.setdefault(name, []).append(folder)
    return folders_by_name


def parse_start_time(folder: Path) -> datetime | None:
    """The moment (UTC) in the name of a run's folder, or None."""
    match = _STAMPED.fullmatch(folder.name)
    try:
        return datetime.strptime(match[1], STAMP).replace(tzinfo=UTC) if match else None
    except ValueError:  # digits that are no date
        return None


def list_runs_newest_first(logs: Path) -> list[Path]:
    """Every folder with logs or a run.json, by the moment in its name. Folders without a moment come last."""
    folders = (path for path in logs.glob("*") if path.is_dir() and not path.is_symlink())
    runs = (folder for folder in folders if (folder / "run.json").is_file() or any(folder.glob("*.log")))
    return sorted(runs, key=_make_age_key, reverse=True)


def _make_age_key(folder: Path) -> tuple[str, int, str]:
    """A key that sorts folders by the moment in their names, then by the number behind it."""
    match = _STAMPED.fullmatch(folder.name)
    return (match[1], int(match[2] or 1), "") if match else ("", 0, folder.name)


def _describe_unreadable_run(folder: Path, error: ValueError) -> str:
    return f"{folder / 'run.json'} does not describe a run ({error}): delete {folder}"


_TOLD = Shape.build(Run, without=("folder",))
