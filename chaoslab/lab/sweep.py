"""A sweep: the lab's runs over a grid of one or two settings. A cell that has a complete run is not run again."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.base.files import opened
from chaoslab.base.identity import canonical
from chaoslab.config import settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.events import RunFinished, RunStarted
from chaoslab.lab.launch import LabEnd
from chaoslab.record import provenance, runs
from chaoslab.record.gaps import last_of
from chaoslab.record.lines import Record, parse_line
from chaoslab.reports.charts.series import FREE
from chaoslab.reports.sweeps import DoneCell, GridCell

KNOBS_MAX = 2
CELLS_MAX = 400


class CellStopped(Exception):
    """A cell's run did not come to its end. `code`: its exit code."""

    def __init__(self, cell: GridCell, number: int, code: int) -> None:
        super().__init__(f"stopped at {cell}, {number - 1} done before it: the same command goes on from there")
        self.code = code


def grid(given: Sequence[str]) -> list[GridCell]:
    """The cells of the settings, of which one or two have several values, with commas, or with semicolons where a value
    holds commas itself. Raises SettingError: a name or a value is wrong, or no setting or more than two have several
    values."""
    several: dict[str, list[str]] = {}
    alone: list[str] = []
    for word in given:
        name, _, text = word.partition("=")
        values = _values(name, text)
        if len(values) > 1:
            several[name] = values
        else:
            alone.append(word)
    # make passes its command line in the environment too, where a setting has all its values at once
    settings.load(alone, environment={name: text for name, text in settings.inherited().items() if name not in several})
    if not several or len(several) > KNOBS_MAX:
        what = f"{', '.join(several)} have several values" if several else "no setting has several values"
        raise SettingError(f"{what}: a sweep takes one or two, as in TOXIC_PROB=0,0.1,0.2 ERROR_PROB=0,0.2")
    for name, values in several.items():
        if name in FREE:
            raise SettingError(f"{name} has several values, and no chart is drawn over it: sweep another setting")
        if len(set(values)) < len(values):
            raise SettingError(f"{name}={','.join(values)[:60]} has a value twice")
    cells = []
    for levels in itertools.product(*([(name, value) for value in values] for name, values in several.items())):
        own = (*alone, *(f"{name}={value}" for name, value in levels))
        cells.append(GridCell(levels, own, settings.load(own)))
    if len(cells) > CELLS_MAX:
        raise SettingError(f"the grid has {len(cells)} cells; {CELLS_MAX} at most")
    return cells


def _values(name: str, text: str) -> list[str]:
    """The values of a setting: the text itself where it is one, else its parts."""
    try:
        Settings().override({name: text})
    except SettingError:
        parts = [part.strip() for part in text.split(";" if ";" in text else ",")]
        if len(parts) == 1 or not all(parts):
            raise
        for part in parts:
            Settings().override({name: part}, where="command line")
        return parts
    return [text]


def sweep(
    cells: Sequence[GridCell], prompts: Sequence[Any], start: Callable[[Sequence[str]], LabEnd], *, logs: Path,
    clock: Clock = system,
) -> Iterator[DoneCell]:  # fmt: skip
    """Runs the cells in their order, but for those that have a complete run in `logs`. `prompts`: as the log of a run
    has them. `start`: runs the lab with these settings, as `launch.start`. Raises Stopped: a run did not come to its
    end."""
    kept = _kept(cells, prompts, logs)
    took_s: list[float] = []
    for number, cell in enumerate(cells, 1):
        folder = kept.get(cell)
        if folder is None:
            began_s = clock.monotonic()
            code, folder = start(cell.given)
            if code or folder is None:
                raise CellStopped(cell, number, code or 2)
            took_s.append(clock.monotonic() - began_s)
        rest = sum(other not in kept for other in cells[number:])
        left_s = rest * sum(took_s) / len(took_s) if took_s else None if rest else 0.0
        yield DoneCell(cell, logs / folder.name, cell in kept, number, left_s)


def _kept(cells: Sequence[GridCell], prompts: Sequence[Any], logs: Path) -> dict[GridCell, Path]:
    """The newest complete run of each cell: of its settings and prompts, and made by the code that is here."""
    code, asked = provenance.code(), canonical(list(prompts))
    wanted = {canonical(_of_result(cell.chosen.shown())): cell for cell in cells}
    found: dict[GridCell, Path] = {}
    for folder in runs.newest_first(logs):
        started = _first(folder)
        # A sweep keeps no file of its own: what is done is read from the runs.
        if started is None or canonical(started.asked) != asked:
            continue
        cell = wanted.get(canonical(_of_result(started.settings)))
        same = all(started.code.get(name) in (code[name], provenance.ABSENT) for name in provenance.OWN)
        if cell is not None and cell not in found and same and _is_done(folder):
            found[cell] = folder
    return found


def _of_result(shown: dict[str, Any]) -> dict[str, Any]:
    """The settings on which the result depends. The virtual world uses no real model."""
    none = ("BASE_PORT", "TOXIPROXY_URL", *(("GROQ_API_KEY", "MODEL_URL") if shown.get("WORLD") == "virtual" else ()))
    return {name: value for name, value in shown.items() if name not in none}


def _first(folder: Path) -> RunStarted | None:
    """The beginning of a run; None if its log does not tell it."""
    try:
        with opened(folder / "info.log") as log:
            record: Record | None = parse_line(log.readline().rstrip(b"\n"))
    except OSError:
        return None
    return record.event if record is not None and isinstance(record.event, RunStarted) else None


def _is_done(folder: Path) -> bool:
    """True if the run came to its end."""
    end = last_of(folder / "info.log")
    return end is not None and isinstance(end.event, RunFinished) and end.event.reason == "done"
