"""The requirements on a run, for CI: a minimum share of correct trials, and outcomes that no trial may have. Trials
that are open are counted as such: where they could turn the ruling, the run proves nothing."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.verdict.standing import (
    OPEN_MAX,
    Standing,
    StandingCount,
    classify_share,
    get_fact_standing,
    get_outcome_standing,
)
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.jsonable import join_truncated
from chaoslab.base.registry import suggest_name
from chaoslab.reports.page import format_count

NAMED = 8
"""The most trials that a line names."""
REFUSABLE = tuple(str(outcome) for outcome in Outcome if outcome is not Outcome.CORRECT)


@dataclass(frozen=True)
class Gate:
    """The requirements. `min_correct`: the share of the trials that could be judged, 0 to 1. `fail_on`: outcomes; a
    trial that did harm counts as "harm" whatever its outcome."""

    min_correct: float | None = None
    fail_on: tuple[str, ...] = ()
    given: bool = True
    """False if nobody asked for it: then nothing is said of what passes."""

    def __bool__(self) -> bool:
        return self.min_correct is not None or bool(self.fail_on)


BY_ITSELF = Gate(fail_on=("harm", "wrong", "false_success"), given=False)
"""The requirements where none are given."""


@dataclass(frozen=True)
class GateRuling:
    """The gate's result, with a line on the requirement, the finding and the trials concerned. `code`: the exit code of
    the command."""

    passed: bool
    line: str
    code: int = 0


def parse_outcomes(text: str) -> tuple[str, ...]:
    """Parses --fail-on: names with commas."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in REFUSABLE:
            raise argparse.ArgumentTypeError(f"'{name[:60]}' is no outcome to fail on: {suggest_name(name, REFUSABLE)}")
    return tuple(dict.fromkeys(names))


def apply_gate(
    gate: Gate,
    judged: Mapping[str, Verdict],
    *,
    untried: Sequence[str] = (),
    unmet: Sequence[str] = (),
    lost: int = 0,
) -> GateRuling:
    """Compares a run's verdicts with the requirements. `untried`: the plan's injections, if none of them had an attempt
    that it could hit. `unmet`: lines about those that had to hit and hit nothing. `lost`: the number of trials of which
    lines are lost, which are unfinished."""
    unproven = []
    if untried:
        unproven.append(
            f"no attempt was made that a fault could hit, so none was tried: {join_truncated(untried, NAMED)}"
        )
    elif unmet:
        unproven.append("; ".join(unmet))
    ended = StandingCount.from_standings(get_outcome_standing(str(verdict.outcome)) for verdict in judged.values())
    if ended.open > OPEN_MAX * ended.total:
        first = next((v.why for v in judged.values() if get_outcome_standing(str(v.outcome)) is Standing.OPEN), "")
        reason_text = f": {first}" if first else ""
        verb = "is" if ended.open == 1 else "are"
        unproven.append(f"{ended.open} of {format_count(ended.total, 'trial')} {verb} open{reason_text}")
    parts = [GateRuling(False, f"the log has lost lines of {lost} of its trials")] if lost else []
    if broken := [trial for trial, verdict in judged.items() if verdict.broken]:
        parts.append(
            GateRuling(
                False, f"{len(broken)} could not be judged: {join_truncated(broken, NAMED)} ({judged[broken[0]].why})"
            )
        )
    if gate.min_correct is not None:
        parts.append(_rule_on_correct_share(gate.min_correct, judged))
    if gate.fail_on:
        parts.append(_rule_on_outcomes(gate, judged))
    # A part that proves nothing has not failed, and has not passed either.
    missed = not all(part.passed or part.code == PROVES_NOTHING for part in parts)
    open_parts = any(part.code == PROVES_NOTHING for part in parts)
    code = GATE_FAILED if missed else PROVES_NOTHING if unproven or open_parts else 0
    message = "; ".join([*unproven, *(part.line for part in parts if gate.given or not part.passed)])
    result_word = "FAILED" if missed else "passed" if not code else "proves nothing"
    return GateRuling(not code, f"{'gate ' * gate.given}{result_word}: {message}", code)


def _rule_on_correct_share(least: float, judged: Mapping[str, Verdict]) -> GateRuling:
    """The ruling on the share of correct trials, with the open ones as bounds."""
    requirement = f"at least {least * 100:g} % correct were asked for"
    counted = StandingCount.from_standings(get_fact_standing(verdict.correct) for verdict in judged.values())
    if not judged:
        return GateRuling(False, f"{requirement} and no share is known, since no trial was started", PROVES_NOTHING)
    if counted.well_share is None:
        return GateRuling(False, f"{requirement} and no share is known, since no trial could be judged", PROVES_NOTHING)
    standing = classify_share(counted, least)
    low, high = counted.share_bounds
    text = f"{requirement}, {_format_percent(counted.well_share)} are ({counted.well} of {counted.judged_count} judged)"
    if counted.open:
        text += f"; with {counted.open} open, {_format_percent(low)} to {_format_percent(high)}"
    if standing is Standing.OPEN:
        return GateRuling(False, text, PROVES_NOTHING)
    incorrect = [trial for trial, verdict in judged.items() if verdict.correct is False]
    passed = standing is Standing.WELL
    return GateRuling(passed, text if passed else f"{text}; not correct: {join_truncated(incorrect, NAMED)}")


def _rule_on_outcomes(gate: Gate, judged: Mapping[str, Verdict]) -> GateRuling:
    trials = {
        name: [t for t, verdict in judged.items() if name == verdict.outcome or (name == "harm" and verdict.harm)]
        for name in gate.fail_on
    }
    blamed = "; ".join(f"{len(keys)} {name}: {join_truncated(keys, NAMED)}" for name, keys in trials.items() if keys)
    *other_outcomes, last = gate.fail_on
    requirement = f"no {' or '.join(filter(None, [', '.join(other_outcomes), last]))} was allowed"
    if not judged:
        return GateRuling(False, f"{requirement} and nothing is known, since no trial was started", PROVES_NOTHING)
    return GateRuling(not blamed, f"{requirement}, there {'is none' if not blamed else f'are {blamed}'}")


def _format_percent(value: float) -> str:
    """The share in percent, rounded down, so that 89.96 % does not read as 90 %."""
    return f"{int(value * 1000 + 1e-9) / 10:g} %"
