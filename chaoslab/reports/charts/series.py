"""The axis and the lines of a chart of several runs: the axis is a setting in which they differ, and the runs of a line
differ only in it, in the seed and in the number of trials. A run is a row of the table `runs`."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from chaoslab.config.settings import AGENTS, list_settings
from chaoslab.core.levels import NAMED
from chaoslab.reports._columns import extract_settings, format_setting_value
from chaoslab.reports._types import DataFrame
from chaoslab.reports.levels import Run

AXIS, LEVEL = "TOXIC_PROB", "CHAOS_LEVEL"
"""The axis of runs that differ in no setting, and the name of the level of chaos."""
FREE = ("SEED", "REPEATS", "TRIALS", "JOBS", "BASE_PORT", "TOXIPROXY_URL")
"""Settings that may differ between the runs of a line: the seed, the number of trials, and those that affect no
result."""
NO_KNOBS = (*FREE, "PROMPTS", "NOW")
"""Settings that are no axis."""
WIDE = 100
"""The factor between positive levels above which they are drawn at even distances."""
SHOWN = 3
"""The most differences that a label names."""


@dataclass(frozen=True)
class Series:
    """The runs of one line, in the order given. `label`: the difference from the other lines; empty if there is only
    one."""

    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class SettingAxis:
    """A setting as the axis of a chart. `levels`: its values in the runs, as text, in their order on the axis.
    `numbers`: their places, the values themselves if these are numbers of one size."""

    name: str
    levels: tuple[str, ...]
    places: tuple[float, ...]
    even: bool
    """The levels stand at even distances, each with its own text."""

    @classmethod
    def from_runs(cls, name: str, runs: Sequence[Run]) -> Self:
        """The axis of runs that all state this setting."""
        values = list(dict.fromkeys(get_setting_text(run, name) for run in runs))
        numbers = {text: number for text in values if (number := _parse_number(text)) is not None}
        levels = sorted(values, key=numbers.__getitem__) if len(numbers) == len(values) else values
        positive = [number for number in numbers.values() if number > 0]
        # Words have no distances, and values of several powers of ten would lie on each other.
        is_evenly_spaced = len(numbers) < len(values) or (len(positive) > 1 and max(positive) / min(positive) > WIDE)
        return cls(
            name,
            tuple(levels),
            tuple(range(len(levels)) if is_evenly_spaced else map(numbers.__getitem__, levels)),
            is_evenly_spaced,
        )

    def get_position(self, run: Run) -> float:
        return self.places[self.levels.index(get_setting_text(run, self.name))]

    def get_level(self, position: float) -> str:
        return self.levels[self.places.index(position)]

    @property
    def axis_length(self) -> float:
        # or 0.5, where all runs have one value.
        return (self.places[-1] - self.places[0]) or 0.5

    @property
    def description(self) -> str:
        """The name with what the setting means."""
        # Only what is before the first full stop or colon: the whole meaning would not fit under a chart.
        means = {
            setting["name"]: setting["meaning"].partition(". ")[0].partition(":")[0].rstrip(".")
            for setting in list_settings()
        }
        return f"{self.name}: {means[self.name][:1].lower()}{means[self.name][1:]}" if self.name in means else self.name


def table_to_rows(runs: DataFrame) -> list[Run]:
    """The rows of the table `runs`."""
    # One call for the whole table: pandas is slow cell by cell.
    known_cells = runs.notna().to_numpy()
    names, values = list(runs.columns), runs.itertuples(index=False, name=None)
    return [
        {name: value for name, value, is_known in zip(names, row, known_row, strict=True) if is_known}
        for row, known_row in zip(values, known_cells, strict=True)
    ]


def differ_in_chaos_level(runs: Sequence[Run]) -> bool:
    """True if the runs are of several levels of chaos, and all of one that is known."""
    levels = {run.get("level") for run in runs}
    return len(levels) > 1 and None not in levels


def get_setting_text(run: Run, name: str) -> str:
    """The value of a setting of a run, as text."""
    return format_setting_value(run[name]) if name in run else ""


def has_setting(run: Run, name: str) -> bool:
    """True if the run's log holds this setting with a value."""
    return bool(get_setting_text(run, name))


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def find_varied_settings(runs: Sequence[Run]) -> list[str]:
    """The settings in which the runs differ and which all of them state: numbers before words, those of more values
    first. What AGENT decides is left out where AGENT differs."""
    names = [
        name
        for name in extract_settings(runs[0])
        if name not in NO_KNOBS and all(has_setting(run, name) for run in runs)
    ]
    values = {name: [get_setting_text(run, name) for run in runs] for name in names}
    varied = {name: levels for name, levels in values.items() if len(set(levels)) > 1}
    decided = {name.upper() for name in AGENTS["default"]} if "AGENT" in varied else set()
    # What each agent decides alike in all its runs is no difference of its own.
    dependent = {
        n
        for n in decided & varied.keys()
        if len({*zip(varied["AGENT"], varied[n], strict=True)}) == len({*varied["AGENT"]})
    }

    def rank_setting(name: str) -> tuple[bool, int, bool]:
        return any(_parse_number(level) is None for level in varied[name]), -len(set(varied[name])), name != AXIS

    return sorted(varied.keys() - dependent, key=lambda name: (rank_setting(name), names.index(name)))


def choose_axis(runs: Sequence[Run]) -> SettingAxis | None:
    """The axis of these runs: the first of their knobs. None if they differ in none and do not all state TOXIC_PROB."""
    name = next(iter(find_varied_settings(runs)), AXIS)
    if not all(has_setting(run, name) for run in runs):
        return None
    return SettingAxis.from_runs(name, runs)


def collect_run_inputs(run: Run, axes: Collection[str]) -> dict[str, str]:
    """The inputs of a run without the free ones and the axes, each by name as text. Inputs that the log lacks are left
    out."""
    inputs = {name: value for name, value in extract_settings(run).items() if name not in {*FREE, *axes}}
    if "AGENT" in axes:
        inputs = {name: value for name, value in inputs.items() if name.lower() not in AGENTS["default"]}
    other_inputs: dict[str, str] = json.loads(run.get("inputs", "{}"))
    # A file of prompts has another name in each checkout; their digest decides.
    if "prompts" in other_inputs:  # the prompts themselves, from any source
        inputs.pop("PROMPTS", None)
    return inputs | {name: value for name, value in other_inputs.items() if name not in axes}


def _collect_inputs_but_level(run: Run) -> dict[str, str]:
    inputs = collect_run_inputs(run, (LEVEL,))
    # The injections that a level makes have a name of their own, and follow from the level.
    return {name: value for name, value in inputs.items() if not name.startswith(f"injection {NAMED}")}


def group_into_series(runs: Iterable[Run], *axes: str, of_levels: bool = False) -> list[Series]:
    """The runs by line, in the order of their first runs; those of a line differ in the axes alone (TOXIC_PROB if none
    is named). `of_levels`: the axis is the level of chaos, so what it decides makes no line of its own."""
    groups: list[tuple[dict[str, str], list[Run]]] = []
    for run in runs:
        made_with = _collect_inputs_but_level(run) if of_levels else collect_run_inputs(run, axes or (AXIS,))
        for group_inputs, members in groups:
            if group_inputs == made_with:
                members.append(run)
                break
        else:
            groups.append((made_with, [run]))
    labels = _make_line_labels([made_with for made_with, _ in groups])
    return [Series(label, tuple(members)) for label, (_, members) in zip(labels, groups, strict=True)]


def _make_line_labels(groups: Sequence[Mapping[str, str]]) -> list[str]:
    """The label of each line."""
    if len(groups) == 1:
        return [""]
    differing = _find_differing_inputs(groups)
    labels: list[str] = []
    for group in groups:
        parts = [f"{name}={group[name] or 'empty'}" if name in group else f"{name} not stated" for name in differing]
        if len(parts) > SHOWN:
            parts[SHOWN:] = [f"{len(parts) - SHOWN} more"]
        label = ", ".join(parts)
        # Two lines of one label could not be told apart.
        twice = sum(earlier == label or earlier.startswith(f"{label}, otherwise ") for earlier in labels)
        labels.append(f"{label}, otherwise {twice + 1}" if twice else label)
    return labels


def _find_differing_inputs(groups: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for group in groups for name in group)
    differing = [name for name in names if len({group.get(name) for group in groups}) > 1]
    if "AGENT" in differing:
        differing = [name for name in differing if name.lower() not in AGENTS["default"]]
    if any(name.isupper() for name in differing):  # the plan follows from the settings
        return [name for name in differing if not name.startswith("injection ")]
    return differing


def describe_series(series: Sequence[Series], axis: str = AXIS) -> str:
    """A text on the lines and the reason for several; empty if there is one."""
    if len(series) == 1:
        return ""
    listing = "; ".join(f"{line.label} ({len(line.runs)} run{'' if len(line.runs) == 1 else 's'})" for line in series)
    return f"the runs differ in more than {axis}, so they are {len(series)} lines: {listing}"
