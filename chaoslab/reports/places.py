"""The folder that a run's name stands for, and the history in it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.jsonable import join_truncated
from chaoslab.base.registry import suggest_name
from chaoslab.core.events import PromptStarted, RunStarted
from chaoslab.record import runs
from chaoslab.record.history import History

if TYPE_CHECKING:
    from chaoslab.analysis.measures.run_report import RunReport

LOGS = Path("logs")
LATEST = "latest"
NAMED = 60
"""The most characters of an unknown name that a message repeats."""
CANDIDATES = 6
"""The most runs that a message names if a prefix fits several."""
_BACK = re.compile(rf"{LATEST}~(?P<number>\d{{1,6}})", re.ASCII)


def read_history(name: str, *, logs: Path = LOGS) -> History:
    """The history of a run: a folder or its name in `logs`. Raises LookupError: there is no such run, or its logs tell
    of none."""
    folder = find_run_folder(name, logs=logs)
    try:
        history = History.read(folder)
        if history.find_first_event(RunStarted) or history.find_first_event(PromptStarted):
            return history
        # Records and no beginning: info.log is what is missing.
        if history.records:
            raise LookupError(f"the logs of '{name}' do not tell how its run began: info.log is missing or cut")
    except FileNotFoundError as error:
        raise LookupError(str(error)) from None
    except OSError as error:
        raise LookupError(explain_unreadable(folder, error)) from None
    raise LookupError(f"the logs of '{name}' tell of no run: this lab did not write them")


def expand_run_pattern(name: str) -> list[str]:
    """The name, or the folders of the runs that it is a pattern of, as in `2026*`: oldest first, each run once. Raises
    LookupError: no run is called so."""
    # A folder may have such a sign in its name.
    if not set(name) & set("*?[") or Path(name).exists():
        return [name]
    pattern = Path(name)
    folder = pattern.parent if pattern.parent.name or pattern.is_absolute() else LOGS
    if set(str(folder)) & set("*?["):
        raise LookupError(f"'{name[:NAMED]}': only the run's own name may be a pattern, as in {LOGS}/2026*")
    matches = [
        candidate
        for candidate in sorted(folder.glob(pattern.name))
        # latest is a link to one of the others.
        if not candidate.is_symlink() and _has_logs(candidate)
    ]
    if not matches:
        raise LookupError(f"no run is called like '{name[:NAMED]}'")
    return [*map(str, matches)]


def read_report(name: str, *, logs: Path = LOGS) -> tuple[RunReport, History | Path]:
    """The report on the run that `read_history` finds by this name, and where its stories are: its folder, or its
    history if
    that had to be read. A log of this lab is not held as a whole. Raises LookupError: as `read_history`."""
    from chaoslab.analysis.measures.run_report import RunReport  # all measures: who only finds a run needs none

    try:
        folder = find_run_folder(name, logs=logs)
        report = RunReport.from_folder(folder)
    except OSError:
        pass  # `read_history` says why
    else:
        if report.started or report.trials:
            return report, folder
    history = read_history(name, logs=logs)
    return RunReport.from_history(history), history


def explain_no_runs(logs: Path) -> str:
    """One line on a folder without runs."""
    return f"no logs yet in {logs}/: run make lab or chaoslab test first, or lab.run with logs={str(logs)!r}"


def explain_unreadable(folder: Path, error: OSError) -> str:
    """One line on a log that the system does not allow to be read."""
    return f"{error.filename or folder} cannot be read: {error.strerror or error}"


def find_run_folder(name: str, *, logs: Path = LOGS) -> Path:
    """The folder of a run. The name is a path (also of a log in it), the folder's name in `logs`, the name that the run
    prints, a unique prefix of either, `latest`, or `latest~2` for the second before it; without the link, `latest` is
    the newest run. Of several runs with one name it is the newest, with a note on stderr. Raises LookupError: there is
    no such run, several, or no run at all."""
    _check_run_name(name)
    is_log = name.endswith(".log") and Path(name).is_file()
    # First as a path: what is there needs no search.
    for folder in (Path(name), Path(name).parent if is_log else Path(name), logs / name):
        if folder.is_dir() and _has_logs(folder):
            return folder
    for parent, run_name in ((logs, name), (Path(name).parent, Path(name).name)):
        same_name = [folder for folder in runs.group_folders_by_name(parent).get(run_name, []) if _has_logs(folder)]
        if len(same_name) > 1:
            print(
                f"{len(same_name)} runs are called {run_name}: {same_name[-1]} is the newest of them", file=sys.stderr
            )
        if same_name:
            return same_name[-1]
    if back_match := _BACK.fullmatch(name):
        return _find_run_before_latest(int(back_match["number"]), logs)
    if Path(name).name == LATEST:
        parent = logs if name == LATEST else Path(name).parent
        # a link to a run that has no logs yet is taken at its word
        if not (parent / LATEST).exists() and any(map(_has_logs, runs.list_runs_newest_first(parent))):
            newest = _find_run_before_latest(0, parent)
            if (parent / LATEST).is_symlink():
                missing_name = (parent / LATEST).readlink().name
                print(f"the latest run, {missing_name}, is not there any more: this is {newest.name}", file=sys.stderr)
            return newest
    for parent, prefix in ((logs, name), (Path(name).parent, Path(name).name)):
        if match := _find_run_by_prefix(prefix, parent):
            return match
    run_names = {path.name for path in logs.glob("*") if _has_logs(path)}
    if run_names and not Path(name).exists():
        hint = suggest_name(Path(name).name, run_names, other=runs.group_folders_by_name(logs))
        raise LookupError(f"no run with logs is called '{name}': {hint}")
    if Path(name).is_dir():
        raise LookupError(f"'{name}' is no run's folder: there are no logs in it")
    if Path(name).exists():
        raise LookupError(f"'{name}' is no log of a run: name a run, its folder or a .log in it")
    raise LookupError(
        explain_no_runs(logs) if name == LATEST else f"no run is called '{name}', and {explain_no_runs(logs)}"
    )


def _find_run_before_latest(number: int, logs: Path) -> Path:
    """The run `number` places before the latest. Runs without logs do not count."""
    run_folders = list(filter(_has_logs, runs.list_runs_newest_first(logs)))
    latest = (logs / LATEST).resolve()
    # The link may point to an older run than the newest.
    first = next((n for n, folder in enumerate(run_folders) if folder.resolve() == latest), 0)
    if not run_folders:
        raise LookupError(explain_no_runs(logs))
    if number >= len(run_folders) - first:
        oldest = len(run_folders) - first - 1
        raise LookupError(
            f"there is no {LATEST}~{number}: the oldest run in {logs}/ is {LATEST}~{oldest}, {run_folders[-1].name}"
        )
    return run_folders[first + number]


def _find_run_by_prefix(text: str, parent: Path) -> Path | None:
    """The only run in the place whose folder or own name begins with the text; None if there is none."""
    if not text:
        return None
    names_by_folder = {
        folder: name for name, folders in runs.group_folders_by_name(parent).items() for folder in folders
    }
    run_folders = list(filter(_has_logs, runs.list_runs_newest_first(parent)))
    matches = [folder for folder in run_folders if folder.name.startswith(text)]
    # By the runs' own names only if no folder is called so.
    if not matches:
        matches = [folder for folder in run_folders if names_by_folder.get(folder, "").startswith(text)]
        if len({names_by_folder[folder] for folder in matches}) == 1:
            return find_run_folder(names_by_folder[matches[0]], logs=parent)
    if len(matches) > 1:
        names = join_truncated([folder.name for folder in matches], CANDIDATES)
        raise LookupError(f"'{text[:NAMED]}' is the beginning of {len(matches)} runs: {names}")
    return matches[0] if matches else None


def find_charts_folder(name: str, *, logs: Path = LOGS) -> Path:
    """The folder for the charts of the run that `read_history` finds by this name: it is in the run's folder."""
    folder = find_run_folder(name, logs=logs)
    return (folder.parent / folder.resolve().name if folder.is_symlink() else folder) / "charts"


def _has_logs(folder: Path) -> bool:
    return any(folder.glob("*.log"))


def _check_run_name(name: str) -> None:
    """Raises LookupError if the name is empty, or the system cannot have a file of that name."""
    if not name:
        raise LookupError("the run's name is empty: give its name, its folder or latest")
    try:
        # lstat asks the system: a name may be too long, or have a NUL in it.
        Path(name).lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise LookupError(f"no run is called '{name[:NAMED]}{'…' if len(name) > NAMED else ''}': {reason}") from None
