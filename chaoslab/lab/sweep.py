"""A sweep: the lab's runs over a grid of one or two settings. A cell that has a complete run is not run again."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.files import open_regular
from chaoslab.base.identity import canonical
from chaoslab.config import settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.events import RunFinished, RunStarted
from chaoslab.lab.launch import LabEnd
from chaoslab.record import provenance, runs
from chaoslab.record.gaps import read_last_record
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


def build_grid(words: Sequence[str]) -> list[GridCell]:
    """The cells of the settings, of which one or two have several values, with commas, or with semicolons where a value
    holds commas itself. Raises SettingError: a name or a value is wrong, or no setting or more than two have several
    values."""
    several: dict[str, list[str]] = {}
    alone: list[str] = []
    for word in words:
        name, _, text = word.partition("=")
        values = _split_setting_values(name, text)
        if len(values) > 1:
            several[name] = values
        else:
            alone.append(word)
    # make passes its command line in the environment too, where a setting has all its values at once
    settings.load_settings(
        alone, environment={name: text for name, text in settings.copy_environment().items() if name not in several}
    )
    if not several or len(several) > KNOBS_MAX:
        problem = f"{', '.join(several)} have several values" if several else "no setting has several values"
        raise SettingError(f"{problem}: a sweep takes one or two, as in TOXIC_PROB=0,0.1,0.2 ERROR_PROB=0,0.2")
    for name, values in several.items():
        if name in FREE:
            raise SettingError(f"{name} has several values, and no chart is drawn over it: sweep another setting")
        if len(set(values)) < len(values):
            raise SettingError(f"{name}={','.join(values)[:60]} has a value twice")
    cells = []
    for levels in itertools.product(*([(name, value) for value in values] for name, values in several.items())):
        cell_words = (*alone, *(f"{name}={value}" for name, value in levels))
        cells.append(GridCell(levels, cell_words, settings.load_settings(cell_words)))
    if len(cells) > CELLS_MAX:
        raise SettingError(f"the grid has {len(cells)} cells; {CELLS_MAX} at most")
    return cells


def _split_setting_values(name: str, text: str) -> list[str]:
    """The values of a setting: the text itself where it is one, else its parts."""
    # The whole text first, since a value may hold commas itself, as that of TOXICS does.
    try:
        Settings().override({name: text})
    except SettingError:
        parts = [value.strip() for value in text.split(";" if ";" in text else ",")]
        if len(parts) == 1 or not all(parts):
            raise
        for value in parts:
            Settings().override({name: value}, where="command line")
        return parts
    return [text]


def run_grid_cells(
    cells: Sequence[GridCell],
    prompts: Sequence[Any],
    start: Callable[[Sequence[str]], LabEnd],
    *,
    logs: Path,
) -> Iterator[DoneCell]:
    """Runs the cells in their order, but for those that have a complete run in `logs`. `prompts`: as the log of a run
    has them. `start`: runs the lab with these settings, as `launch.start`. Raises Stopped: a run did not come to its
    end."""
    complete_runs = _find_complete_runs(cells, prompts, logs)
    took_s: list[float] = []
    for number, cell in enumerate(cells, 1):
        folder = complete_runs.get(cell)
        if folder is None:
            began_s = system.monotonic()
            code, folder = start(cell.given)
            if code or folder is None:
                raise CellStopped(cell, number, code or 2)
            took_s.append(system.monotonic() - began_s)
        remaining = sum(later_cell not in complete_runs for later_cell in cells[number:])
        left_s = remaining * sum(took_s) / len(took_s) if took_s else None if remaining else 0.0
        yield DoneCell(cell, logs / folder.name, cell in complete_runs, number, left_s)


def _find_complete_runs(cells: Sequence[GridCell], prompts: Sequence[Any], logs: Path) -> dict[GridCell, Path]:
    """The newest complete run of each cell: of its settings and prompts, and made by the code that is here."""
    code, prompts_text = provenance.collect_versions(), canonical(list(prompts))
    cells_by_settings = {canonical(_drop_settings_without_effect(cell.chosen.to_masked_dict())): cell for cell in cells}
    complete_runs: dict[GridCell, Path] = {}
    for folder in runs.list_runs_newest_first(logs):
        started = _read_run_started(folder)
        # A sweep keeps no file of its own: what is done is read from the runs.
        if started is None or canonical(started.asked) != prompts_text:
            continue
        cell = cells_by_settings.get(canonical(_drop_settings_without_effect(started.settings)))
        # Absent is no other code: a container holds only what it runs.
        is_same_code = all(started.code.get(name) in (code[name], provenance.ABSENT) for name in provenance.OWN)
        if cell is not None and cell not in complete_runs and is_same_code and _is_run_complete(folder):
            complete_runs[cell] = folder
    return complete_runs


def _drop_settings_without_effect(shown_settings: dict[str, Any]) -> dict[str, Any]:
    """The settings on which the result depends. The virtual world uses no real model."""
    without_effect = (
        "BASE_PORT",
        "TOXIPROXY_URL",
        *(("GROQ_API_KEY", "MODEL_URL") if shown_settings.get("WORLD") == "virtual" else ()),
    )
    return {name: value for name, value in shown_settings.items() if name not in without_effect}


def _read_run_started(folder: Path) -> RunStarted | None:
    """The beginning of a run; None if its log does not tell it."""
    try:
        with open_regular(folder / "info.log") as log:
            record: Record | None = parse_line(log.readline().rstrip(b"\n"))
    except OSError:
        return None
    return record.event if record is not None and isinstance(record.event, RunStarted) else None


def _is_run_complete(folder: Path) -> bool:
    """True if the run came to its end."""
    end = read_last_record(folder / "info.log")
    return end is not None and isinstance(end.event, RunFinished) and end.event.reason == "done"
