"""The run that a person means: by its folder, by its name in `logs/`, or the latest."""

from __future__ import annotations

from pathlib import Path

from chaoslab.events import History, PromptStarted, RunStarted
from chaoslab.registry import did_you_mean

LOGS = Path("logs")
LATEST = "latest"


def read(name: str, *, logs: Path = LOGS) -> History:
    """What was logged of that run.

    Raises:
        LookupError: no such run, no run at all, or logs that are not a run's; one line says which.
    """
    folder = find(name, logs=logs)
    try:
        history = History.read(folder)
    except OSError as error:
        raise LookupError(f"{error.filename or folder} cannot be read: {error.strerror}") from None
    if history.first(RunStarted) is None and history.first(PromptStarted) is None:
        raise LookupError(f"the logs of '{name}' tell of no run: it was not started by the lab")
    return history


def find(name: str, *, logs: Path = LOGS) -> Path:
    """The folder of a run, given as a path or by its name in `logs`.

    Raises:
        LookupError: no such run, or no run at all.
    """
    for folder in (Path(name), logs / name):
        if folder.is_dir() and any(folder.glob("*.log")):
            return folder
    known = [path.name for path in sorted(logs.glob("*")) if any(path.glob("*.log"))]
    if not known:
        raise LookupError(f"no logs yet in {logs}/: run make lab first")
    raise LookupError(f"no run with logs is called '{name}': {did_you_mean(Path(name).name, known)}")
