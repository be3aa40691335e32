"""The requirements on a run, for CI: a minimum share of correct trials, and outcomes that no trial may have. Certain
verdicts count. Those that rest on words are listed, and count only if that is asked for. A run in which nothing could
be judged has no share of correct trials, so it fails any minimum."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import rate
from chaoslab.analysis.verdict.table import UNJUDGED, Outcome, Verdict
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.jsonable import listed
from chaoslab.base.registry import did_you_mean

NAMED = 8
"""The most trials that a line names."""
REFUSABLE = tuple(str(outcome) for outcome in Outcome if outcome is not Outcome.CORRECT)


@dataclass(frozen=True)
class Gate:
    """The requirements. `min_correct`: the share of the trials that could be judged, 0 to 1. `fail_on`: outcomes; a
    trial that did harm counts as "harm" whatever its outcome. `count_words`: verdicts that rest on words count too."""

    min_correct: float | None = None
    fail_on: tuple[str, ...] = ()
    count_words: bool = False

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


def outcomes(text: str) -> tuple[str, ...]:
    """Parses --fail-on: names with commas."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in REFUSABLE:
            raise argparse.ArgumentTypeError(f"'{name[:60]}' is no outcome to fail on: {did_you_mean(name, REFUSABLE)}")
    return tuple(dict.fromkeys(names))


def rule(
    gate: Gate, judged: Mapping[str, Verdict], *, judgeable: bool, untried: Sequence[str] = (),
    unmet: Sequence[str] = (), lost: int = 0,
) -> GateRuling:  # fmt: skip
    """Compares a run's verdicts with the requirements. `judgeable`: something was stated about right answers.
    `untried`: the plan's injections, if none of them had an attempt that it could hit. `unmet`: lines about those that
    had to hit and hit nothing. `lost`: the number of trials of which lines are lost."""
    nothing = []
    if untried:
        nothing.append(f"no attempt was made that a fault could hit, so none was tried: {listed(untried, NAMED)}")
    elif unmet:
        nothing.append("; ".join(unmet))
    if judged and all(verdict.outcome is Outcome.INVALID for verdict in judged.values()):
        nothing.append(f"no trial proves anything: {next(iter(judged.values())).why}")
    parts = [GateRuling(False, f"the log has lost lines of {lost} of its trials")] if lost else []
    if broken := [trial for trial, verdict in judged.items() if verdict.broken]:
        parts.append(
            GateRuling(False, f"{len(broken)} could not be judged: {listed(broken, NAMED)} ({judged[broken[0]].why})")
        )
    if gate.min_correct is not None:
        parts.append(_of_correct(gate, judged, judgeable=judgeable))
    if gate.fail_on:
        parts.append(_of_refused(gate, judged))
    guessed = [f"{trial} {verdict.name}" for trial, verdict in judged.items() if _passed_over(gate, verdict)]
    if guessed and not gate.count_words:
        rest = "1 rests" if len(guessed) == 1 else f"{len(guessed)} rest"
        parts.append(GateRuling(True, f"{rest} on words and did not count (--count-words): {listed(guessed, NAMED)}"))
    missed = not all(part.passed for part in parts)
    code = GATE_FAILED if missed else PROVES_NOTHING if nothing else 0
    said = "; ".join([*nothing, *(part.line for part in parts if gate.given or not part.passed)])
    how = f"gate {'FAILED' if code else 'passed'}" if gate.given else "FAILED" if missed else "proves nothing"
    return GateRuling(not code, f"{how}: {said}", code)


def _passed_over(gate: Gate, verdict: Verdict) -> bool:
    """True if a requirement would have taken the outcome had it been certain."""
    if verdict.certain:
        return False
    return (gate.min_correct is not None and verdict.correct is None) or verdict.outcome in gate.fail_on


def _is_correct(verdict: Verdict, *, count_words: bool) -> bool | None:
    """True or False for a trial that counts, else None."""
    if verdict.correct is not None or not count_words or verdict.outcome in UNJUDGED:
        return verdict.correct
    return verdict.outcome is Outcome.CORRECT


def _of_correct(gate: Gate, judged: Mapping[str, Verdict], *, judgeable: bool) -> GateRuling:
    least = gate.min_correct or 0.0
    asked = f"at least {least * 100:g} % correct were asked for"
    counts = {trial: _is_correct(verdict, count_words=gate.count_words) for trial, verdict in judged.items()}
    counting = {trial: right for trial, right in counts.items() if right is not None}
    found = rate(sum(counting.values()), len(counting)) if judgeable else None
    if found is None:
        why = "nothing was stated about right answers" if not judgeable else "no trial could be judged"
        return GateRuling(False, f"{asked} and no share is known, since {why if judged else 'no trial was started'}")
    passed = found.value >= least
    poor = [trial for trial, right in counting.items() if not right]
    counted = f"{asked}, {_percent(found.value)} are ({found.count} of {found.total} judged)"
    return GateRuling(passed, counted if passed else f"{counted}; not correct: {listed(poor, NAMED)}")


def _of_refused(gate: Gate, judged: Mapping[str, Verdict]) -> GateRuling:
    refused = gate.fail_on

    def ended(verdict: Verdict, name: str) -> bool:
        counts = verdict.certain or gate.count_words
        return (name == verdict.outcome and counts) or (name == "harm" and bool(verdict.harm))

    found = {name: [trial for trial, verdict in judged.items() if ended(verdict, name)] for name in refused}
    blamed = "; ".join(f"{len(trials)} {name}: {listed(trials, NAMED)}" for name, trials in found.items() if trials)
    *others, last = refused
    asked = f"no {' or '.join(filter(None, [', '.join(others), last]))} was allowed"
    if not judged:
        return GateRuling(False, f"{asked} and nothing is known, since no trial was started")
    return GateRuling(not blamed, f"{asked}, there {'is none' if not blamed else f'are {blamed}'}")


def _percent(value: float) -> str:
    """The share in percent, rounded down, so that 89.96 % does not read as 90 %."""
    return f"{int(value * 1000 + 1e-9) / 10:g} %"
