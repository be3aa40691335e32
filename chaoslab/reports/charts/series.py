"""The axis and the lines of a chart of several runs: the axis is a setting in which they differ, and the runs of a line
differ only in it, in the seed and in the number of trials."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.identity import digest
from chaoslab.config.settings import AGENTS, described
from chaoslab.core.levels import NAMED

AXIS, LEVEL = "TOXIC_PROB", "CHAOS_LEVEL"
"""The axis of runs that differ in no setting, and the name of the level of chaos."""
FREE = ("SEED", "REPEATS", "TRIALS", "JOBS", "BASE_PORT", "TOXIPROXY_URL")
"""Settings that may differ between the runs of a line: the seed, the number of trials, and those that affect no
result."""
NO_KNOBS = (*FREE, "PROMPTS", "NOW")
"""Settings that are no axis."""
WIDE = 100
"""The factor between positive levels above which they are drawn at even distances."""
WIRE = "wire"
"""The injection that TOXIC_PROB makes; the settings describe it completely."""
SHOWN = 3
"""The most differences that a label names."""


@dataclass(frozen=True)
class Series:
    """The runs of one line, in the order given. `label`: the difference from the other lines; empty if there is only
    one."""

    label: str
    runs: tuple[RunReport, ...]


@dataclass(frozen=True)
class Axis:
    """A setting as the axis of a chart. `levels`: its values in the runs, as text, in their order on the axis.
    `numbers`: their places, the values themselves if these are numbers of one size."""

    name: str
    levels: tuple[str, ...]
    places: tuple[float, ...]
    even: bool
    """The levels stand at even distances, each with its own text."""

    @classmethod
    def of(cls, name: str, reports: Sequence[RunReport]) -> Axis:
        """The axis of runs that all state this setting."""
        values = list(dict.fromkeys(level_in(report, name) for report in reports))
        numbers = {text: number for text in values if (number := _number(text)) is not None}
        levels = sorted(values, key=numbers.__getitem__) if len(numbers) == len(values) else values
        above = [number for number in numbers.values() if number > 0]
        even = len(numbers) < len(values) or (len(above) > 1 and max(above) / min(above) > WIDE)
        return cls(name, tuple(levels), tuple(range(len(levels)) if even else map(numbers.__getitem__, levels)), even)

    def place(self, report: RunReport) -> float:
        return self.places[self.levels.index(level_in(report, self.name))]

    def level(self, place: float) -> str:
        return self.levels[self.places.index(place)]

    @property
    def span(self) -> float:
        return (self.places[-1] - self.places[0]) or 0.5

    @property
    def meaning(self) -> str:
        """The name with what the setting means."""
        means = {one["name"]: one["meaning"].partition(". ")[0].partition(":")[0].rstrip(".") for one in described()}
        return f"{self.name}: {means[self.name][:1].lower()}{means[self.name][1:]}" if self.name in means else self.name


def level_in(report: RunReport, name: str) -> str:
    """The value of a setting in a run's log, as text."""
    settings = report.started.settings if report.started else {}
    return _text(settings[name]) if name in settings else ""


def states(report: RunReport, name: str) -> bool:
    """True if the run's log holds this setting with a value."""
    return bool(level_in(report, name))


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def knobs(reports: Sequence[RunReport]) -> list[str]:
    """The settings in which the runs differ and which all of them state: numbers before words, those of more values
    first. What AGENT decides is left out where AGENT differs."""
    every = [report.started.settings if report.started else {} for report in reports]
    names = [name for name in every[0] if name not in NO_KNOBS and all(states(report, name) for report in reports)]
    values = {name: [level_in(report, name) for report in reports] for name in names}
    found = {name: levels for name, levels in values.items() if len(set(levels)) > 1}
    decided = {name.upper() for name in AGENTS["default"]} if "AGENT" in found else set()
    follows = {
        n
        for n in decided & found.keys()
        if len({*zip(found["AGENT"], found[n], strict=True)}) == len({*found["AGENT"]})
    }

    def rank(name: str) -> tuple[bool, int, bool]:
        return any(_number(level) is None for level in found[name]), -len(set(found[name])), name != AXIS

    return sorted(found.keys() - follows, key=lambda name: (rank(name), names.index(name)))


def axis_of(reports: Sequence[RunReport]) -> Axis | None:
    """The axis of these runs: the first of their knobs. None if they differ in none and do not all state TOXIC_PROB."""
    name = next(iter(knobs(reports)), AXIS)
    if not all(states(report, name) for report in reports):
        return None
    return Axis.of(name, reports)


def told(report: RunReport, axes: Collection[str] = (AXIS,)) -> dict[str, str]:
    """The inputs of a run without the free ones and the axes, each by name as text. Inputs that the log lacks are left
    out."""
    run = report.started
    if run is None:
        return {}
    found: dict[str, Any] = {name: value for name, value in run.settings.items() if name not in {*FREE, *axes}}
    if "AGENT" in axes:
        found = {name: value for name, value in found.items() if name.lower() not in AGENTS["default"]}
    if run.asked:  # the prompts themselves, from any source
        found.pop("PROMPTS", None)
        found["prompts"] = digest(run.asked)[:6]
    # Settings hold these too, if there are any; NOW=now is another time in each run.
    found |= {name: value for name, value in (("MODEL", run.model), ("WORLD", run.world)) if value and name not in axes}
    if run.now:
        found.setdefault("NOW", run.now)
    injections = [] if _follows(run.plan, run.settings) else run.plan.get("injections", [])
    found |= {f"injection {i.get('name')}": _rest(i) for i in injections if i.get("name") != WIRE}
    found |= {f"version of {name}": value for name, value in run.code.items()}
    return {name: _text(value) for name, value in found.items()}


def _follows(plan: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """True if the plan is what the settings ask for, so that they say it all."""
    from chaoslab.config.scenario import from_settings
    from chaoslab.config.settings import SettingError, Settings

    try:
        made = from_settings(Settings.from_shown(settings, where="a log")).to_json()
        return digest(made) == digest(dict(plan))
    except (SettingError, TypeError, ValueError):
        return False


def _beside_level(report: RunReport) -> dict[str, str]:
    inputs = told(report, (LEVEL,))
    return {name: value for name, value in inputs.items() if not name.startswith(f"injection {NAMED}")}


def _rest(injection: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in injection.items() if key != "name"}


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    return digest(value)[:6] if isinstance(value, dict) else json.dumps(value, ensure_ascii=False, default=str)


def lines(reports: Iterable[RunReport], *axes: str, of_levels: bool = False) -> list[Series]:
    """The runs by line, in the order of their first runs; those of a line differ in the axes alone (TOXIC_PROB if none
    is named). `of_levels`: the axis is the level of chaos, so what it decides makes no line of its own."""
    groups: list[tuple[dict[str, str], list[RunReport]]] = []
    for report in reports:
        made_with = _beside_level(report) if of_levels else told(report, axes or (AXIS,))
        for known, runs in groups:
            if known == made_with:
                runs.append(report)
                break
        else:
            groups.append((made_with, [report]))
    labels = _labels([made_with for made_with, _ in groups])
    return [Series(label, tuple(runs)) for label, (_, runs) in zip(labels, groups, strict=True)]


def _labels(groups: Sequence[Mapping[str, str]]) -> list[str]:
    """The label of each line. A log with few settings is compared only with others like it."""
    if len(groups) == 1:
        return [""]
    every = {name for group in groups for name in group}
    labels: list[str] = []
    for group in groups:
        silent = _silent(group, every)
        label = _label(group, _differing([other for other in groups if _silent(other, every) == silent]), silent=silent)
        twice = sum(known == label or known.startswith(f"{label}, otherwise ") for known in labels)
        labels.append(f"{label}, otherwise {twice + 1}" if twice else label)
    return labels


def _silent(group: Mapping[str, str], every: Collection[str]) -> bool:
    """True if it holds less than half of the settings that the others hold."""
    return len(group) < len(every) / 2


def _differing(groups: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for group in groups for name in group)
    differing = [name for name in names if len({group.get(name) for group in groups}) > 1]
    if "AGENT" in differing:
        differing = [name for name in differing if name.lower() not in AGENTS["default"]]
    if any(name.isupper() for name in differing):  # the plan follows from the settings
        return [name for name in differing if not name.startswith("injection ")]
    return differing


def _label(group: Mapping[str, str], differing: Sequence[str], *, silent: bool) -> str:
    parts = [f"{name}={group[name] or 'empty'}" if name in group else f"{name} not told" for name in differing]
    if len(parts) > SHOWN:
        parts[SHOWN:] = [f"{len(parts) - SHOWN} more"]
    if silent:
        parts.append("other settings not told" if parts else "settings not told")
    return ", ".join(parts) or "the others"


def said(found: Sequence[Series], axis: str = AXIS) -> str:
    """A text on the lines and the reason for several; empty if there is one."""
    if len(found) == 1:
        return ""
    each = "; ".join(f"{one.label} ({len(one.runs)} run{'' if len(one.runs) == 1 else 's'})" for one in found)
    return f"the runs differ in more than {axis}, so they are {len(found)} lines: {each}"
