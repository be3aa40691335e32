"""A report from Python: the figures of trials as values, and the report's files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.incidents import Incident
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.reliability import Reliability
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.record.history import History, WithHistory
from chaoslab.record.lines import Record
from chaoslab.record.spoken import JudgeOpinions, Opinion
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents

KINDS = {".html": "html", ".json": "json", ".md": "markdown"}
"""The format of a file by the end of its name."""


class Report:
    """The report on a run, or on trials in memory. It prints as the one screen with which a command ends."""

    def __init__(self, source: History | Path, known: RunReport | None = None) -> None:
        """`source`: the run's history, or its folder. `known`: its measures, if they were made before."""
        self._source, self._known = source, known

    @cached_property
    def contents(self) -> Contents:
        """All that a report holds, before it has a format."""
        location = self._source.run_name if isinstance(self._source, History) else str(self._source)
        return Contents.from_source(self._source, where=location, report=self._known)

    @property
    def headline(self) -> str:
        """The verdict on the run, in one sentence."""
        return self.contents.headline.said

    @property
    def recovery(self) -> Recovery:
        """The recovery over all incidents: `mean_s` is the MTTR, `detected_s` and `since_notice_s` its two parts."""
        return self.contents.report.recovery.value.overall

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every request that met a fault, in the order in which they began."""
        return self.contents.report.recovery.value.incidents

    @property
    def reliability(self) -> Reliability | None:
        """Nines and error budgets; None if nothing could be judged."""
        return self.contents.report.reliability.value

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The figures as plain values, as under `figures` in the report's JSON: each with its section, name, value,
        interval, unit, number of observations and sentence."""
        return self.contents.all_key_figures

    def save(self, path: str | Path) -> Path:
        """Writes the report as the kind of file that the name ends in: .html, .json or .md. What is there
        is replaced if it is a report of that kind.

        Raises:
            ValueError: the name ends otherwise, or a package that the format needs is not installed.
            OSError: the file cannot be written.
        """
        path = Path(path)
        if (kind := KINDS.get(path.suffix)) is None:
            raise ValueError(f"{path} should end in {', '.join(KINDS)}")
        return formats.write_file(next(iter(formats.render_files(kind, self.contents).values())), path)

    def __str__(self) -> str:
        from chaoslab.reports.formats import terminal

        # Loaded here: a report that is only saved needs no terminal.
        return terminal.render_short_summary(self.contents)


def report(trials: Iterable[WithHistory]) -> Report:
    """The report on trials of `run_many`, as if each had begun when the one before it was over."""
    records: list[Record] = []
    after_s, opinions = 0.0, dict[str, Opinion]()
    for history in (trial.history for trial in trials):
        opinions |= history.spoken.opinions
        moved = [replace(record, t=record.t + after_s) for record in history.records]
        after_s = max((record.t for record in moved), default=after_s)
        records += moved
    return Report(History(records, spoken=JudgeOpinions(opinions=opinions)))
