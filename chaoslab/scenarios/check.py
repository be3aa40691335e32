"""`check`: holds one trial to assertions, as a scenario does."""

from __future__ import annotations

import shlex
from typing import Any

from chaoslab.analysis.opinion import Opinion, Unjudged
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.execution.trial import Trial
from chaoslab.scenarios.checks import parse_assertion
from chaoslab.scenarios.running import TrialRules, find_missed_assertions


def check(trial: Trial, *assertions: Any) -> None:
    """Holds a trial to assertions as a scenario does: `lab.check(trial, lab.expect.no_duplicate_effects())`.

    An assertion is one of `lab.expect`, its name, or a function that gets the trial: it holds if the function returns
    True or None, and is missed if it returns False or a text, which is the reason, or raises AssertionError.

    Raises:
        AssertionError: an assertion is missed, or the trial is invalid and so proves nothing; the message has the
            events that show it, and leads to the story.
        LookupError, ValueError, TypeError: no trial, no assertion, or one that is none.
    """
    if not isinstance(trial, Trial):
        raise TypeError(f"lab.check takes a trial of lab.run or lab.run_many first, and this is {trial!r:.60}")
    if not assertions:
        raise ValueError("lab.check has no assertion: give some of lab.expect, as in lab.expect.no_duplicate_effects()")
    rules, opinions = TrialRules(expect=[parse_assertion(assertion) for assertion in assertions]), list[Opinion]()
    try:
        misses = [str(assertion) for assertion in find_missed_assertions(rules, trial, opinions)]
    except Unjudged as error:
        # The cause is the model's error, which says more.
        raise AssertionError(_describe_failed_checks(trial, [str(error)])) from error.__cause__
    # An assertion that holds of an invalid trial is luck.
    if not misses and trial.outcome is Outcome.INVALID:
        misses = [f"the trial is invalid and proves nothing: {trial.why}"]
    if misses:
        raise AssertionError(_describe_failed_checks(trial, misses))


def _describe_failed_checks(trial: Trial, wrong: list[str]) -> str:
    head = f"{trial.key} ({trial.verdict.outcome})"
    command = shlex.join(["chaoslab", "show", str(trial.folder), "--trial", trial.key])
    return "\n".join([*(f"{head}: {text}" for text in wrong), f"story: {command if trial.folder else 'trial.story()'}"])
