"""The selection of a run's trials by name, number, prompt or outcome. All commands accept the same names."""

import re
from collections.abc import Iterable, Mapping, Sequence

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.base.registry import suggest_name
from chaoslab.core.events import PromptStarted, RunStarted
from chaoslab.record.history import History

WORST_FIRST = (
    Outcome.HARM,
    Outcome.FALSE_SUCCESS,
    Outcome.UNDONE,
    Outcome.WRONG,
    Outcome.FAILED,
    Outcome.HUNG,
    Outcome.DEGRADED,
    Outcome.INVALID,
    Outcome.UNFINISHED,
)
"""The outcomes that a person wants to examine."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_PROMPT = re.compile(r"p\d{1,9}", re.ASCII)


def expand_trial_name(name: str, trial_keys: Sequence[str], *, prompts: int) -> list[str]:
    """The existing trials that a name stands for: a number counted from 1 ("3"), a range ("1-6"), a trial ("p3.r2"), or
    a prompt with all its repeats ("p3"). Raises LookupError: there is no such trial."""
    match = _RANGE.fullmatch(name)
    if _PROMPT.fullmatch(name):
        keys = [key for key in trial_keys if key.startswith(f"{name}.")]
    elif match is None:
        keys = [name]
    else:
        first, last = int(match[1]), int(match[2] or match[1])
        last = min(last, first + len(trial_keys))  # one beyond the last is enough to be missed
        keys = [make_nth_trial_id("", number - 1, prompts).key for number in range(first, last + 1)] if first else []
    if not keys or not set(trial_keys).issuperset(keys):
        span = (
            f"its trials are 1 to {len(trial_keys)} ({trial_keys[0]} to {trial_keys[-1]})"
            if len(trial_keys) > 1
            else f"it has {trial_keys[0]}"
        )
        raise LookupError(f"this run has no trial {name}: {span}")
    return keys


def count_prompts(history: History) -> int:
    """The number of the run's prompts, each counted once."""
    run = history.find_first_event(RunStarted)
    return (
        # Of a log without a beginning the highest number that began.
        len(run.asked)
        if run and run.asked
        else max((e.prompt_index for _, e in history.find_events(PromptStarted)), default=1)
    )


def parse_outcomes(words: Iterable[str]) -> set[Outcome]:
    """The outcomes of these names; one text may hold several, with commas. Raises LookupError: there is no such
    outcome."""
    chosen = set()
    for name in (name.strip() for text in words for name in text.split(",")):
        # A list, since `in` of an enum of texts raises for a text before Python 3.12.
        if name not in list(Outcome):
            raise LookupError(f"no outcome is called '{name}': {suggest_name(name, list(Outcome))}")
        chosen.add(Outcome(name))
    return chosen


def format_outcome_counts(outcomes: Mapping[Outcome, int]) -> str:
    """The count of each outcome, as text."""
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcomes.get(outcome)) or "none"
