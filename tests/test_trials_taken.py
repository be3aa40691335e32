"""The table of trials that were taken: it shows the first of them and counts all, and holds none."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.execution.trials import ROWS, Trials
from chaoslab.record.history import History


@dataclass
class Taken:
    """A trial that is judged when it is asked."""

    number: int
    seconds: float = 1.0
    history: History = field(default_factory=lambda: History([]))

    @property
    def key(self) -> str:
        return f"p1.r{self.number}"

    @cached_property
    def verdict(self) -> Verdict:
        return Verdict(Outcome.HARM if self.number % 4 == 0 else Outcome.CORRECT, "because")


def trials(count: int) -> Trials[Taken]:
    def each() -> Iterator[Taken]:
        yield from map(Taken, range(1, count + 1))

    return Trials(each(), count)  # type: ignore[arg-type]


def test_all_are_counted_and_the_first_are_shown() -> None:
    taken = trials(ROWS + 30)
    for trial in taken:
        assert trial.verdict
    head, *rows, more = repr(taken).splitlines()
    assert head == f"{ROWS + 30} of {ROWS + 30} trials run: {ROWS + 30 - 12} correct, 12 harm"
    assert [row.split()[0] for row in rows[1:]] == [f"p1.r{n}" for n in range(1, ROWS + 1)]
    assert more == "… and 30 more"


def test_a_long_run_leaves_a_row_of_few_trials() -> None:
    taken = trials(500)
    for trial in taken:
        assert trial.verdict
    assert len(taken._rows) + len(taken._later) < ROWS + 5
    assert taken._counted.total() > 400


def test_trials_that_are_kept_are_judged_when_the_table_is_shown() -> None:
    taken = trials(ROWS + 8)
    kept = list(taken)
    assert repr(taken).startswith(f"{len(kept)} of {len(kept)} trials run: 21 correct, 7 harm")


def test_trials_that_nobody_judged_or_kept_are_told_as_such() -> None:
    taken = trials(ROWS + 8)
    for trial in taken:
        del trial  # nobody holds it
    gc.collect()
    assert repr(taken).startswith(f"{ROWS + 8} of {ROWS + 8} trials run: {ROWS + 8} not judged")
