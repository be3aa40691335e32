"""The contents of a run's report, before they have a format. Every format shows the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from shlex import quote

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import duration
from chaoslab.base.jsonable import line
from chaoslab.core.events import FaultsOff, ValuesDrawn
from chaoslab.record.history import History
from chaoslab.reports.contents.advice import Advice, advice
from chaoslab.reports.contents.failures import command
from chaoslab.reports.contents.headline import Harm, Headline, harms, headline
from chaoslab.reports.contents.matrix import Matrix, matrix
from chaoslab.reports.contents.parts import REAL_TIME, Part, parts
from chaoslab.reports.contents.rows import Row, rows
from chaoslab.reports.text import visible

NAME, ASKED = 200, 1000
"""The most characters of a run's name or folder, and of what a scenario asks for."""


@dataclass(frozen=True)
class Contents:
    """A run's report. `where`: the run as a command takes it, such as its folder. `rows`: its trials, worst first."""

    history: History
    report: RunReport
    where: str
    headline: Headline
    harms: Sequence[Harm]
    matrix: Matrix
    rows: Sequence[Row]
    parts: Sequence[Part]
    advice: Sequence[Advice]

    @classmethod
    def of(cls, history: History, *, where: str, report: RunReport | None = None) -> Contents:
        """The contents of the report on a run. `report`: its report, if it was made before."""
        report = report or RunReport.of(history)
        found = rows(history, report)
        return cls(
            history=history, report=report, where=line(where, NAME), headline=headline(report),
            harms=harms(found) if report.knows_effects else (), matrix=matrix(report), rows=found,
            parts=parts(report), advice=advice(history, report, found),
        )  # fmt: skip

    @property
    def name(self) -> str:
        return line(self.report.name or self.where, NAME)

    @property
    def facts(self) -> dict[str, str]:
        """The run's seed, world, model and end, as texts by name."""
        run, end = self.report.started, self.report.finished
        found = {"run": self.name, "folder": self.where}
        if (rulings := self.report.rulings) is not None:
            found |= {
                "scenario": visible(rulings.scenario, NAME),
                "asked for": visible("; ".join(rulings.asked), ASKED),
            }
        if run is not None:
            found |= {
                "seed": "not known" if run.seed is None else str(run.seed),
                "world": line(run.world, NAME) or "not known",
                "agent" if self.report.of_functions else "model": line(run.model, NAME) or "not known",
            }
        ended = end.reason if end else "still running" if self.report.running else "not finished"
        if end is not None and end.duration_s == end.duration_s:
            ended += f" after {duration(end.duration_s, 1)}"
        return found | {"end": line(ended, NAME)}

    @property
    def worst(self) -> Row | None:
        """The worst trial, unless it ended well."""
        row = self.rows[0] if self.rows else None
        if row is None or row.standing is not Standing.WELL:
            return row
        return row if row.ruling is None and (row.harm or row.outcome is Outcome.DEGRADED) else None

    @property
    def real_time(self) -> bool:
        """True if its seconds are real ones."""
        return self.report.started is None or self.report.started.world in REAL_TIME

    @property
    def unit(self) -> str:
        """The kind of the seconds in this run, as in "seconds (virtual)"."""
        world = line(self.report.started.world, NAME) if self.report.started else ""
        return f"seconds ({world})" if world else "seconds"

    @property
    def quoted(self) -> str:
        """`where` as a shell takes it."""
        return quote(self.where)

    def replay(self, trial: str) -> str:
        """The command that runs the trial again, or shows it where nothing in the run's folder leads to its program."""
        replayed = not self.history.unknown and trial not in self._unlike
        return command(self.report, trial, where=self.where, replayed=replayed)

    @cached_property
    def _unlike(self) -> frozenset[str | None]:
        """The trials that are not told by the run's plan alone: values were drawn, or somebody switched faults off."""
        return frozenset(record.trial for kind in (ValuesDrawn, FaultsOff) for record, _ in self.history.of(kind))
