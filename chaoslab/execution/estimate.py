"""The cost of a run before it starts: trials, time, tokens and dollars, by a pilot or by the log of an earlier run."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.durations import span
from chaoslab.core.events import PromptFinished, PromptStarted, RunStarted, Usage, UsageUnstated
from chaoslab.record.runs import newest_first
from chaoslab.reports import places

PILOT, PILOT_S = 6, 5.0
"""The most trials of a pilot, and the seconds after which it begins no third one."""
REMEMBERED = 50
"""The most earlier runs that are looked at, newest first."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Sample:
    """Trials that were run. `source`: where. `seconds`: of one in the mean. `once_s`: the time before the first one.
    `tokens`, `dollars`: of all of them, for models; None if not known."""

    source: str
    trials: int
    seconds: float
    once_s: float = 0.0
    tokens: int | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class CostEstimate:
    """The cost of a number of trials. `seconds`: of real time. `tokens`, `dollars`: of a real model; all None if not
    known. `source`: what the figures rest on. `limit_usd`: the limit in dollars, if there is one. `notes`: what the
    figures leave out, and how to know more."""

    name: str
    trials: int
    seconds: float | None
    tokens: int | None
    dollars: float | None
    source: str = ""
    limit_usd: float | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def build(
        cls, name: str, trials: int, sample: Sample | None, *, real: bool, jobs: int = 1,
        limit_usd: float | None = None, notes: Sequence[str] = (),
    ) -> "CostEstimate":  # fmt: skip
        """The cost of `trials` trials in `jobs` processes. `sample`: None if nothing is known. `real`: a real model may
        be asked."""
        if sample is None:
            # In virtual time no real model is asked, so that is known to be nothing.
            tokens = None if real else 0
            return cls(name, trials, None, tokens, None if real else 0.0, "", limit_usd, tuple(notes))
        # More processes than processors end no sooner.
        at_once = max(1, min(jobs, trials, os.cpu_count() or 1))
        seconds = sample.once_s + sample.seconds * trials / at_once
        tokens, dollars = (sample.tokens, sample.dollars) if real else (0, 0.0)
        # A share of the sample: its tokens and dollars are those of all its trials, its seconds those of one.
        share = trials / sample.trials
        return cls(
            name, trials, seconds, None if tokens is None else round(tokens * share),
            None if dollars is None else dollars * share, sample.source, limit_usd, tuple(notes),
        )  # fmt: skip

    def lines(self) -> Iterator[str]:
        """The estimate as text."""
        yield f"{self.name}: {self.trials:,} trial{'s' if self.trials != 1 else ''}"
        source = f", by {self.source}" if self.source else ""
        yield f"  time     {UNKNOWN if self.seconds is None else f'about {span(self.seconds)}'}{source}"
        if self.tokens == 0 and self.dollars == 0:
            yield "  model    no tokens and no dollars: no real model is asked"
        else:
            yield f"  tokens   {UNKNOWN if self.tokens is None else f'about {self.tokens:,}'}"
            limit = f"; the limit is ${self.limit_usd:g}" if self.limit_usd is not None else ""
            yield f"  dollars  {UNKNOWN if self.dollars is None else f'about ${self.dollars:.2g}'}{limit}"
        yield from (f"  {note}" for note in self.notes)

    def plain(self) -> dict[str, Any]:
        """The estimate as JSON values; null is not known."""
        return asdict(self)


def sum_estimates(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """The sum of several estimates; what is not known of one is not known of all."""
    seconds, tokens, dollars = (
        None if None in values else sum(values)
        for values in zip(
            *((estimate.seconds, estimate.tokens, estimate.dollars) for estimate in estimates), strict=True
        )
    )
    return CostEstimate("in all", sum(estimate.trials for estimate in estimates), seconds, tokens, dollars)


def run_pilot(trials: Iterable[object]) -> Sample | None:
    """Takes up to `PILOT` trials and measures the real time that they take. The first one counts as the beginning, with
    imports and the trial without faults, unless it is alone."""
    times_s = [system.monotonic()]
    for _ in trials:
        times_s.append(system.monotonic())
        # Two trials at least, since the first carries the imports and the trial without faults.
        if len(times_s) > PILOT or (len(times_s) > 2 and times_s[-1] - times_s[0] >= PILOT_S):
            break
    count = len(times_s) - 1
    if not count:
        return None
    first_s = times_s[1] - times_s[0]
    each_s = (times_s[-1] - times_s[1]) / (count - 1) if count > 1 else first_s
    # The first one may be the fastest by chance, and a beginning takes no negative time.
    return Sample(f"a pilot of {count} trial{'s' if count > 1 else ''}", count, each_s, max(0.0, first_s - each_s))


def find_earlier_sample(
    logs: Path | None, fits: Callable[[Path], bool], *, world: str, model: str = ""
) -> Sample | None:
    """The trials of the newest run that `fits`, in this world of real time and with this model, if one is named; None
    if there is none."""
    for folder in newest_first(logs)[:REMEMBERED] if logs is not None and logs.is_dir() else ():
        try:
            history = places.read_history(str(folder)) if fits(folder) else None
        except (LookupError, OSError):
            continue
        run_started = history.first(RunStarted) if history is not None else None
        if (
            history is None
            or run_started is None
            or run_started.world != world
            or (model and run_started.model != model)
        ):
            continue
        starts = [record.t for record, _ in history.of(PromptStarted)]
        ends = [record.t for record, _ in history.of(PromptFinished)]
        if starts and ends:
            count, each_s = len(ends), max(0.0, max(ends) - min(starts)) / len(ends)
            answers = [e for _, e in history.of(Usage)] + [e for _, e in history.of(UsageUnstated)]
            costs = [usage.cost_usd for usage in answers]
            tokens = sum(usage.prompt_tokens + usage.completion_tokens for usage in answers) if answers else None
            # One answer of unknown price leaves the sum unknown: a part of it would be read as the whole.
            dollars = sum(filter(None, costs)) if answers and None not in costs else None
            source = f"the {count} trial{'s' if count > 1 else ''} of {folder}"
            return Sample(source, count, each_s, tokens=tokens, dollars=dollars)
    return None
