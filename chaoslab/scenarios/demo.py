"""A demonstration: two agents with the same task under the same faults."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.durations import format_duration
from chaoslab.core.inject import inject
from chaoslab.core.levels import level
from chaoslab.core.plan import Injection
from chaoslab.execution.agents.functions import fresh
from chaoslab.execution.trial import Trial, run_many
from chaoslab.scenarios import _example

LOST_CHANCE = 0.2
"""The chance that a refund's answer is lost."""


def render_demo(trials: int, seed: int, chaos_level: float = 0.0) -> Iterator[str]:
    """The demonstration, line by line. Raises ValueError: there is no such level."""
    faults = [
        inject("lost_reply", "refund", chance=LOST_CHANCE),
        inject("timeout_before_effect", "get_order", chance=0.1),
        *(level(chaos_level, ["refund", "get_order"]) if chaos_level else ()),
    ]
    yield "An agent is asked: Refund order 17. It calls get_order and refund."
    yield f"In {LOST_CHANCE:.0%} of the calls the refund is made but its reply lost; {trials} trials, in virtual time."
    yield ""
    worst = None
    for name, make in (("naive", _example.naive), ("careful", _example.careful)):
        began_s = system.monotonic()
        demo_trials = _run_trials(make, trials, seed, faults)
        took_s = system.monotonic() - began_s
        counts = Counter(str(trial.outcome) for trial in demo_trials)
        outcome_text = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        seconds = sum(trial.seconds for trial in demo_trials)
        yield f"the {name} agent: {outcome_text} ({seconds:.0f} virtual seconds in {format_duration(took_s, 1)})"
        if worst is None:
            # One with harm, since that is what the demonstration is about.
            worst = next((trial for trial in demo_trials if trial.verdict.harm), None)
            if worst is not None:
                yield from ("", *_explain_trial(worst), "")
    yield ""
    yield "The careful agent sends an idempotency key, so it can retry safely, and it says what it does not know."
    yield "next: chaoslab init my_project; cd my_project; chaoslab test"


def _run_trials(make: Callable[[], Any], trials: int, seed: int, faults: list[Injection]) -> list[Trial]:
    return list(
        run_many(
            fresh(make),
            "Refund order 17.",
            trials=trials,
            seed=seed,
            faults=faults,
            tools=[_example.refund],
            reads=[_example.get_order],
            state=_example.books,
        )
    )


def _explain_trial(trial: Trial) -> Iterator[str]:
    yield "One of its trials:"
    yield from (f"  {line}" for line in trial.story().rstrip().splitlines())
    yield "Why: it retries after a failure, as here, and cannot know that the first refund was made."
    source = inspect.getsource(_example.naive).splitlines()
    begins = next(n for n, line in enumerate(source) if "for _ in" in line)
    yield from (f"  {line.removeprefix('        ')}" for line in source[begins : begins + 6])
