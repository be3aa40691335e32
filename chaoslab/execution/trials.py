"""The trials of `run_many`, run one after the other as they are taken."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from chaoslab.base.durations import format_duration
from chaoslab.reports.text import make_one_line

if TYPE_CHECKING:
    import pandas as pd

    from chaoslab.analysis.verdict.table import Verdict
    from chaoslab.record.history import History
    from chaoslab.reports.report import Report

ROWS, WHY = 20, 80
"""The most trials in the table, and the most characters of a reason."""
HEADER = ("trial", "outcome", "time", "why")


class TakenTrial(Protocol):
    """A trial, as far as the tables show it."""

    @property
    def history(self) -> History: ...
    @property
    def key(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def verdict(self) -> Verdict: ...


T = TypeVar("T", bound=TakenTrial)


class _TrialRow:
    """The rest of a trial that was taken. The trial itself is not kept, so its verdict is unknown if nobody asked."""

    __slots__ = ("_trial", "_verdict", "key", "seconds")

    def __init__(self, trial: TakenTrial) -> None:
        # Weak, so that a table keeps no trial with all its events.
        self._trial = weakref.ref(trial)
        self._verdict: Verdict | None = None
        self.key, self.seconds = trial.key, trial.seconds

    def keep_verdict(self) -> None:
        """Keeps the verdict if the trial was judged."""
        trial = self._trial()
        if trial is not None:
            # Not `trial.verdict`, which would judge it now.
            self._verdict = vars(trial).get("verdict")

    @property
    def verdict(self) -> Verdict | None:
        trial = self._trial()
        return self._verdict if trial is None else trial.verdict

    @property
    def is_verdict_final(self) -> bool:
        """True if its verdict is what it will be: it was kept, or nobody can ask any more."""
        return self._verdict is not None or self._trial() is None

    @property
    def outcome_name(self) -> str:
        verdict = self.verdict
        return "not judged" if verdict is None else str(verdict.outcome)

    @property
    def cells(self) -> tuple[str, ...]:
        verdict = self.verdict
        return (
            self.key,
            self.outcome_name,
            format_duration(self.seconds),
            "" if verdict is None else make_one_line(verdict.why, WHY),
        )


class Trials(Iterator[T]):
    """The trials of `run_many`. Each is run when it is asked for, and then not kept here.

    `len` is the number of trials that were asked for, run or not. In a console and in a notebook it shows a table of
    those that were taken, and runs none. One that was neither judged nor kept has no outcome there.
    """

    def __init__(self, trials: Generator[T, None, None], count: int) -> None:
        self._trials, self._asked, self._rows = trials, count, list[_TrialRow]()
        self._later, self._counted = deque[_TrialRow](), Counter[str]()
        """Those behind the rows of the table: the open ones, and the outcomes of the others."""

    def __next__(self) -> T:
        last = self._later or self._rows
        if last:
            # The trial before is let go with this one, so it is known now if somebody judged it.
            last[-1].keep_verdict()
        trial = next(self._trials)
        while self._later and self._later[0].is_verdict_final:
            self._counted[self._later.popleft().outcome_name] += 1
        (self._rows if len(self._rows) < ROWS else self._later).append(_TrialRow(trial))
        return trial

    def __len__(self) -> int:
        return self._asked

    def close(self) -> None:
        """Ends them early."""
        self._trials.close()

    def frame(self) -> pd.DataFrame:
        """Runs all trials, as one DataFrame: the columns of `lab.load(…).trials`, a row a trial.

        Raises:
            ValueError: some were taken before, and are not here any more.
            Incomplete: pandas is not installed.
        """
        if self._rows:
            raise ValueError("these trials were taken before: keep them in a list, and give that to lab.frame")
        from chaoslab.reports.frames import frame

        return frame(self)

    def report(self) -> Report:
        """Runs all trials; their report, with the figures as values and `save("report.html")`.

        Raises:
            ValueError: some were taken before, and are not here any more.
        """
        if self._rows:
            raise ValueError("these trials were taken before: keep them in a list, and give that to lab.report")
        from chaoslab.reports.report import report

        return report(self)

    def __repr__(self) -> str:
        rows = [HEADER, *(row.cells for row in self._rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows[: len(rows) if self._rows else 0])
        return "\n".join([self._headline, *lines, *self._omission_notes])

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row.cells)}</tr>" for row in self._rows
        )
        header = "".join(f"<th>{name}</th>" for name in HEADER)
        table = f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in self._omission_notes)
        return f"<p>{html.escape(self._headline)}</p>{table}{notes}"

    @property
    def _headline(self) -> str:
        """The number of those that were run, and their outcomes."""
        if not self._rows:
            return f"{self._asked} trials, none of them run yet: each is run when it is taken, as by list(…)"
        outcome_counts = Counter(row.outcome_name for row in self._rows)
        outcome_counts.update(self._counted)
        outcome_counts.update(row.outcome_name for row in self._later)
        counts = ", ".join(f"{count} {name}" for name, count in outcome_counts.most_common())
        return f"{outcome_counts.total()} of {self._asked} trials run: {counts}"

    @property
    def _omission_notes(self) -> list[str]:
        uncounted = self._counted.total() + len(self._later)
        return [f"… and {uncounted} more"] if uncounted > 0 else []
