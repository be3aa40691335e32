"""The level of chaos of a run, and the share of trials that pass at each level."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from chaoslab.analysis.measures.intervals import Rate, compute_pooled_rate
from chaoslab.core.events import RunStarted
from chaoslab.core.levels import LEVELS, NAMED, level_to_chance

Run = Mapping[str, Any]
"""A row of the table `runs`, without what is missing in it."""
NEAR = 0.002
"""The most that the chance of a level's injections differs from the level's own, by rounding."""


@dataclass(frozen=True)
class PassRate:
    """One line: runs that differ in nothing but the level. `points`: (level, the share that passed), rising."""

    label: str
    points: Sequence[tuple[float, Rate]]


def list_axis_levels(lines: Sequence[PassRate]) -> list[float]:
    """The levels of a chart's axis: the usual ones, and those of the lines."""
    return sorted({*LEVELS, *(level for line in lines for level, _ in line.points)})


def find_chaos_level(run: RunStarted | None) -> float | None:
    """The level of a run's plan; 0 if it has no injections of a level. None if the plan is not known, or its injections
    are of no one level."""
    if run is None or not (run.plan or run.settings):
        return None
    calm_share: dict[str, float] = defaultdict(lambda: 1.0)
    for injection in run.injections:
        name = str(injection.get("name", ""))
        if name.startswith(NAMED):
            calm_share[name.partition(" on ")[2]] *= 1 - float(injection.get("chance", 1.0))
    chances = [1 - share for share in calm_share.values()]
    if not chances:
        return 0.0
    level = round(10 * fmean(chances), 3)
    # Chances that differ are of a plan by hand, and of no level.
    return level if all(math.isclose(level_to_chance(level), chance, abs_tol=NEAR) for chance in chances) else None


def compute_correct_rate(runs: Iterable[Run]) -> Rate | None:
    """The share of correct trials of these runs together; None if nothing was judged."""
    counts: dict[str, tuple[int, int]] = {}
    for run in runs:
        for prompt, (well, judged) in json.loads(run.get("prompts", "{}")).items():
            # Trials of a prompt are added up over the runs, since the prompt is the unit of the interval.
            so_far = counts.get(prompt, (0, 0))
            counts[prompt] = so_far[0] + well, so_far[1] + judged
    return compute_pooled_rate([*counts.values()])


def pool_runs_by_level(label: str, runs: Iterable[Run]) -> PassRate:
    """The line of these runs; those of one level count together. Runs of which nothing was judged are left out."""
    runs_by_level: dict[float, list[Run]] = defaultdict(list)
    for run in runs:
        if (level := run.get("level")) is not None:
            runs_by_level[level].append(run)
    sums = {level: compute_correct_rate(level_runs) for level, level_runs in runs_by_level.items()}
    return PassRate(label, [(level, share) for level, share in sorted(sums.items()) if share is not None])
