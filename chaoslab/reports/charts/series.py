"""The lines of a chart of several runs: the runs of a line differ only in TOXIC_PROB, the seed and the number of
trials."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.identity import digest
from chaoslab.core.levels import NAMED

AXIS, LEVEL = "TOXIC_PROB", "CHAOS_LEVEL"
FREE = (AXIS, "SEED", "REPEATS", "TRIALS", "JOBS", "BASE_PORT")
"""Settings that may differ between the runs of a line: the axis, the seed, the number of trials, and those that affect
no result."""
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


def toxic_prob(report: RunReport) -> float | None:
    """The TOXIC_PROB in a run's log; None if it is not there."""
    run = report.started
    try:
        prob = float(run.settings[AXIS]) if run else math.nan
    except (KeyError, TypeError, ValueError):
        return None
    return prob if math.isfinite(prob) else None


def told(report: RunReport) -> dict[str, str]:
    """The inputs of a run without the free ones, each by name as text. Inputs that the log lacks are left out."""
    run = report.started
    if run is None:
        return {}
    found: dict[str, Any] = {name: value for name, value in run.settings.items() if name not in FREE}
    if run.asked:  # the prompts themselves, from any source
        found.pop("PROMPTS", None)
        found["prompts"] = digest(run.asked)[:6]
    # Settings hold these too, if there are any; NOW=now is another time in each run.
    found |= {name: value for name, value in (("MODEL", run.model), ("WORLD", run.world)) if value}
    if run.now:
        found.setdefault("NOW", run.now)
    injections = run.plan.get("injections", [])
    found |= {f"injection {i.get('name')}": _rest(i) for i in injections if i.get("name") != WIRE}
    found |= {f"version of {name}": value for name, value in run.code.items()}
    return {name: _text(value) for name, value in found.items()}


def _beside_level(report: RunReport) -> dict[str, str]:
    inputs = {name: value for name, value in told(report).items() if name != LEVEL}
    prob = toxic_prob(report)
    inputs |= {} if prob is None else {AXIS: f"{prob:g}"}
    return {name: value for name, value in inputs.items() if not name.startswith(f"injection {NAMED}")}


def _rest(injection: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in injection.items() if key != "name"}


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    return digest(value)[:6] if isinstance(value, dict) else json.dumps(value, ensure_ascii=False, default=str)


def lines(reports: Iterable[RunReport], *, of_levels: bool = False) -> list[Series]:
    """The runs by line, in the order of their first runs. `of_levels`: the axis is the level of chaos, so what it
    decides makes no line of its own, and TOXIC_PROB does."""
    groups: list[tuple[dict[str, str], list[RunReport]]] = []
    for report in reports:
        made_with = _beside_level(report) if of_levels else told(report)
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


def said(found: Sequence[Series]) -> str:
    """A text on the lines and the reason for several; empty if there is one."""
    if len(found) == 1:
        return ""
    each = "; ".join(f"{one.label} ({len(one.runs)} run{'' if len(one.runs) == 1 else 's'})" for one in found)
    return f"the runs differ in more than {AXIS}, so they are {len(found)} lines: {each}"
