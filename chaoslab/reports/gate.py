"""The requirements on a run, for CI: a minimum share of correct trials, and outcomes that no trial may have.

A run in which nothing could be judged has no share of correct trials, so it fails any minimum.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.judge import Outcome, Verdict
from chaoslab.analysis.measures.success import UNJUDGED, success
from chaoslab.base.registry import did_you_mean

NAMED = 8
"""The most trials that a line names."""
REFUSABLE = tuple(str(outcome) for outcome in Outcome if outcome is not Outcome.CORRECT)


@dataclass(frozen=True)
class Gate:
    """The requirements. `min_correct`: the share of the trials that could be judged, 0 to 1. `fail_on`: outcomes; a
    trial that did harm counts as "harm" whatever its outcome."""

    min_correct: float | None = None
    fail_on: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.min_correct is not None or bool(self.fail_on)


@dataclass(frozen=True)
class Ruling:
    """The gate's result, with a line on the requirement, the finding and the trials concerned."""

    passed: bool
    line: str


def share(text: str) -> float:
    """Parses --min-correct."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text[:60]} should be a share from 0 to 1, as in 0.9")
    return value


def outcomes(text: str) -> tuple[str, ...]:
    """Parses --fail-on: names with commas."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in REFUSABLE:
            raise argparse.ArgumentTypeError(f"'{name[:60]}' is no outcome to fail on: {did_you_mean(name, REFUSABLE)}")
    return tuple(dict.fromkeys(names))


def rule(
    gate: Gate, judged: Mapping[str, Verdict], *, judgeable: bool, untried: Sequence[str] = (), lost: int = 0
) -> Ruling:
    """Compares a run's verdicts with the requirements. `judgeable`: something was stated about right answers.
    `untried`: the plan's injections, if none of them had an attempt that it could hit. `lost`: the number of trials
    whose lines are lost."""
    parts = []
    if lost:
        parts.append(Ruling(False, f"the log has lost {lost} of its trials"))
    if untried:
        parts.append(Ruling(False, f"no attempt was made that a fault could hit, so none was tried: {_named(untried)}"))
    if broken := [trial for trial, verdict in judged.items() if verdict.broken]:
        parts.append(Ruling(False, f"{len(broken)} could not be judged: {_named(broken)} ({judged[broken[0]].why})"))
    if gate.min_correct is not None:
        parts.append(_of_correct(gate.min_correct, judged, judgeable=judgeable))
    if gate.fail_on:
        parts.append(_of_refused(gate.fail_on, judged))
    passed = all(part.passed for part in parts)
    return Ruling(passed, f"gate {'passed' if passed else 'FAILED'}: " + "; ".join(part.line for part in parts))


def _of_correct(least: float, judged: Mapping[str, Verdict], *, judgeable: bool) -> Ruling:
    asked = f"at least {least * 100:g} % correct were asked for"
    found = success((str(v.outcome) for v in judged.values()), judgeable=judgeable).correct
    if found is None:
        why = "nothing was stated about right answers" if not judgeable else "no trial could be judged"
        return Ruling(False, f"{asked} and no share is known, since {why if judged else 'no trial was started'}")
    passed = found.value >= least
    poor = [trial for trial, v in judged.items() if v.outcome is not Outcome.CORRECT and v.outcome not in UNJUDGED]
    counted = f"{asked}, {_percent(found.value)} are ({found.count} of {found.total} judged)"
    return Ruling(passed, counted if passed else f"{counted}; not correct: {_named(poor)}")


def _of_refused(refused: tuple[str, ...], judged: Mapping[str, Verdict]) -> Ruling:
    found = {
        name: [t for t, v in judged.items() if name == v.outcome or (name == "harm" and v.harm)] for name in refused
    }
    blamed = "; ".join(f"{len(trials)} {name}: {_named(trials)}" for name, trials in found.items() if trials)
    *others, last = refused
    asked = f"no {' or '.join(filter(None, [', '.join(others), last]))} was allowed"
    if not judged:
        return Ruling(False, f"{asked} and nothing is known, since no trial was started")
    return Ruling(not blamed, f"{asked}, there {'is none' if not blamed else f'are {blamed}'}")


def _named(trials: Sequence[str]) -> str:
    more = f" and {len(trials) - NAMED} more" if len(trials) > NAMED else ""
    return ", ".join(trials[:NAMED]) + more


def _percent(value: float) -> str:
    """The share in percent, rounded down, so that 89.96 % does not read as 90 %."""
    return f"{int(value * 1000 + 1e-9) / 10:g} %"
