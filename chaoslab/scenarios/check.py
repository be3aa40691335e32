"""`check`: holds one trial to assertions, as a scenario does."""

from __future__ import annotations

import shlex
from typing import Any

from chaoslab.analysis.opinion import Opinion, Unjudged
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.execution.trial import Trial
from chaoslab.scenarios.checks import of_data
from chaoslab.scenarios.running import TrialRules, missing


def check(trial: Trial, *assertions: Any) -> None:
    """Holds a trial to assertions as a scenario does: `lab.check(trial, lab.expect.no_duplicate_effects())`.

    An assertion is one of `lab.expect`, its name, or a function that gets the trial: it holds if the function returns
    True or None, and is missed if it returns False or a text, which is the reason, or raises AssertionError; or a
    metric, an object with `measure(test_case)` as those of DeepEval.

    Raises:
        AssertionError: an assertion is missed, or the trial is invalid and so proves nothing; the message has the
            events that show it, and leads to the story.
        LookupError, ValueError, TypeError: no trial, no assertion, or one that is none.
    """
    if not isinstance(trial, Trial):
        raise TypeError(f"lab.check takes a trial of lab.run or lab.run_many first, and this is {trial!r:.60}")
    if not assertions:
        raise ValueError("lab.check has no assertion: give some of lab.expect, as in lab.expect.no_duplicate_effects()")
    rules, opinions = TrialRules(expect=[of_data(each) for each in assertions]), list[Opinion]()
    try:
        wrong = [str(each) for each in missing(rules, trial, opinions)]
    except Unjudged as error:
        raise AssertionError(_told(trial, [str(error)])) from error.__cause__
    if not wrong and trial.outcome is Outcome.INVALID:
        wrong = [f"the trial is invalid and proves nothing: {trial.why}"]
    if wrong:
        raise AssertionError(_told(trial, wrong))


def _told(trial: Trial, wrong: list[str]) -> str:
    told = f"{trial.key} ({trial.verdict.outcome})"
    command = shlex.join(["chaoslab", "show", str(trial.folder), "--trial", trial.key])
    return "\n".join([*(f"{told}: {each}" for each in wrong), f"story: {command if trial.folder else 'trial.story()'}"])
