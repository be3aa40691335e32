"""The number of prompts and calls that ended in each interval of time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.core.events import CallFinished, PromptFinished, PromptStarted
from chaoslab.record.history import History

WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0, 2592000.0)
STRETCHES = 40


@dataclass(frozen=True)
class Throughput:
    """Ends per interval of `width_s`; the first begins with the first prompt. `lasted_s`: the time from there to the
    last end."""

    width_s: float
    prompts: tuple[int, ...]
    calls: tuple[int, ...]
    lasted_s: float


def first_prompt_t(history: History) -> float:
    """The time of the first prompt in seconds since the run's start. The lab's start before it is not measured."""
    return next((record.t for record, _ in history.of(PromptStarted)), 0.0)


def throughput(history: History) -> Throughput | None:
    """Counts per interval of a round width, at most 40 intervals. None if nothing ended."""
    began_t = first_prompt_t(history)
    prompts = [record.t - began_t for record, _ in history.of(PromptFinished)]
    calls = [record.t - began_t for record, _ in history.of(CallFinished)]
    lasted_s = max([*prompts, *calls], default=None)
    if lasted_s is None:
        return None
    whole_hours = math.ceil(lasted_s / WIDTHS_S[-1] / STRETCHES) * WIDTHS_S[-1]
    width_s = next((width for width in WIDTHS_S if lasted_s <= width * STRETCHES), whole_hours)
    stretches = int(max(lasted_s, 0.0) / width_s) + 1

    def binned(moments: Iterable[float]) -> tuple[int, ...]:
        counts = [0] * stretches
        for moment in moments:
            counts[int(max(moment, 0.0) / width_s)] += 1
        return tuple(counts)

    return Throughput(width_s, binned(prompts), binned(calls), lasted_s)
