"""The contents of a run's report, before they have a format. Every format shows the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import format_duration
from chaoslab.base.jsonable import to_one_line
from chaoslab.config import settings
from chaoslab.record.history import History
from chaoslab.record.trial_stream import read_trial_history
from chaoslab.reports.contents._matrix import Matrix, build_matrix, rank_harmful_faults
from chaoslab.reports.contents._parts import build_sections
from chaoslab.reports.contents._rows import (
    FailureWay,
    TrialRow,
    build_trial_rows,
    group_failures,
    sort_trials_worst_first,
    trial_needs_attention,
)
from chaoslab.reports.contents._table import Figure, Section
from chaoslab.reports.contents.advice import Advice, collect_advice
from chaoslab.reports.contents.headline import (
    Harm,
    Headline,
    build_headline,
    build_headline_figures,
    describe_harm,
    list_harms,
)
from chaoslab.reports.contents.outcomes import outcome_word
from chaoslab.reports.places import read_report
from chaoslab.reports.text import escape_and_shorten

NAME, ASKED = 200, 1000
"""The most characters of a run's name or folder, and of what a scenario asks for."""
SHOWN, EXAMPLES = 1000, 3
"""The most trials of a run that are all shown one by one, and of those in trouble of a longer run; the most examples of
a piece of advice."""


@dataclass(frozen=True)
class Contents:
    """A run's report: of a run in memory or in a folder. `where`: the run as a command takes it, such as its folder.
    `program`: chaoslab as the user's shell finds it. Each part is made when it is first asked for, and stories are read
    for `rows` alone."""

    source: History | Path
    report: RunReport
    where: str
    program: str = field(default_factory=settings.get_program_name)

    @classmethod
    def from_source(cls, source: History | Path, *, where: str, report: RunReport | None = None) -> Contents:
        """The contents of the report on a run: on its history, or on the run in a folder. `report`: its report, if it
        was made before. Raises FileNotFoundError, OSError: as `RunReport.read`."""
        if report is None:
            report = RunReport.from_history(source) if isinstance(source, History) else RunReport.from_folder(source)
        return cls(source, report, to_one_line(where, NAME))

    @classmethod
    def from_run_name(cls, name: str, *, where: str) -> Contents:
        """The same, of a run by its name. Raises LookupError: as `places.read`."""
        report, source = read_report(name)
        return cls.from_source(source, where=where, report=report)

    @cached_property
    def headline(self) -> Headline:
        return build_headline(self.report)

    @cached_property
    def headline_figures(self) -> Sequence[Figure]:
        return build_headline_figures(self.report)

    @property
    def outcome_counts_text(self) -> str:
        """The number of trials of each outcome."""
        rates = self.report.success.value.by_outcome
        return (
            ", ".join(f"{rate.count} {outcome_word(name)}" for name in Outcome if (rate := rates.get(name))) or "none"
        )

    @cached_property
    def harms(self) -> Sequence[Harm]:
        """Each kind of harm; none if such a log knows none."""
        return list_harms(self.report, self.trials_worst_first)

    @property
    def harm_sentence(self) -> str:
        return describe_harm(self.report)

    @cached_property
    def matrix(self) -> Matrix:
        return build_matrix(self.report)

    @cached_property
    def most_harmful_faults(self) -> Sequence[str]:
        """The faults that hurt, each at its target, worst first."""
        return rank_harmful_faults(self.report, self.matrix)

    @cached_property
    def trials_worst_first(self) -> Sequence[str]:
        """The run's trials, worst first."""
        return sort_trials_worst_first(self.report)

    @cached_property
    def failure_ways(self) -> Sequence[FailureWay]:
        return group_failures(self.report, self.trials_worst_first)

    @cached_property
    def report_sections(self) -> Sequence[Section]:
        return build_sections(self.report)

    @property
    def all_key_figures(self) -> list[dict[str, Any]]:
        """Every figure of the run as plain values, with its section."""
        sections = [Section("Verdict", self.headline_figures), *self.report_sections]
        return [{"section": part.title, **figure._asdict()} for part in sections for figure in part.figures]

    @cached_property
    def advice(self) -> Sequence[Advice]:
        return collect_advice(self.report, self.trials_worst_first)

    @cached_property
    def _shown_trials(self) -> Sequence[str]:
        """The trials that are shown one by one: all of them, or of a long run the worst that did not end well, and
        examples of the advice."""
        if len(self.trials_worst_first) <= SHOWN:
            return self.trials_worst_first
        examples = [trial for item in self.advice for trial in item.trials[:EXAMPLES]]
        worst = islice((trial for trial in self.trials_worst_first if trial_needs_attention(self.report, trial)), SHOWN)
        # Each once: the worst may be an example too.
        return [*dict.fromkeys([self.trials_worst_first[0], *worst, *examples])]

    @cached_property
    def history(self) -> History:
        """The stories of the trials that are shown, at least."""
        return (
            self.source if isinstance(self.source, History) else read_trial_history(self.source, {*self._shown_trials})
        )

    @cached_property
    def rows(self) -> Sequence[TrialRow]:
        """The trials that are shown."""
        return build_trial_rows(self.report, self._shown_trials, self.history)

    def build_rows_for(self, trials: Iterable[str]) -> Sequence[TrialRow]:
        """These trials, of which no story is read."""
        return build_trial_rows(self.report, trials, self.source if isinstance(self.source, History) else None)

    @cached_property
    def all_rows(self) -> Sequence[TrialRow]:
        """All trials, in the order of `order`. Of those that are not shown no answer is known."""
        return (
            build_trial_rows(self.report, self.trials_worst_first, self.history)
            if len(self.rows) < len(self.trials_worst_first)
            else self.rows
        )

    @cached_property
    def hidden_trials_note(self) -> str:
        """One sentence on the trials that are not shown one by one, with the command that shows them; empty if all
        are."""
        if len(self.rows) == len(self.trials_worst_first):
            return ""
        bad = sum(trial_needs_attention(self.report, trial) for trial in self.trials_worst_first)
        shown_bad = sum(trial_needs_attention(self.report, row.trial) for row in self.rows)
        return (
            f"Of {len(self.trials_worst_first):,} trials {bad:,} did not end well or prove nothing. {shown_bad:,} of "
            "these are shown, the worst and those that show the advice. All of them: "
            f"{self.program} show {self.shell_quoted_run} --failed"
        )

    @property
    def name(self) -> str:
        return to_one_line(self.report.name or self.where, NAME)

    @property
    def run_facts(self) -> dict[str, str]:
        """The run's seed, world, model and end, as texts by name."""
        run, end = self.report.started, self.report.finished
        facts = {"run": self.name, "folder": self.where}
        if (rulings := self.report.rulings) is not None:
            facts |= {
                "scenario": escape_and_shorten(rulings.scenario, NAME),
                "asked for": escape_and_shorten("; ".join(rulings.asked), ASKED),
            }
        if run is not None:
            facts |= {
                "seed": "not known" if run.seed is None else str(run.seed),
                "world": to_one_line(run.world, NAME) or "not known",
                "agent" if self.report.of_functions else "model": to_one_line(run.model, NAME) or "not known",
            }
        if (drew := self.report.figures.value.has_drawn_randomness) is not None:
            facts["own chance"] = "drawn" if drew else "none"
        ended = end.reason if end else "still running" if self.report.running else "not finished"
        if end is not None:
            ended += f" after {format_duration(end.duration_s, 1)}"
        return facts | {"end": to_one_line(ended, NAME)}

    @property
    def worst_row(self) -> TrialRow | None:
        """The worst trial, unless it ended well."""
        row = self.rows[0] if self.rows else None
        # What ended well is worth a look all the same if it did harm, or could not do all.
        if row is None or row.standing is not Standing.WELL:
            return row
        return row if row.ruling is None and (row.harm or row.outcome is Outcome.DEGRADED) else None

    @property
    def seconds_label(self) -> str:
        """The kind of the seconds in this run, as in "seconds (virtual)"."""
        world = to_one_line(self.report.started.world, NAME) if self.report.started else ""
        return f"seconds ({world})" if world else "seconds"

    @property
    def shell_quoted_run(self) -> str:
        """`where` as a shell takes it."""
        return quote(self.where)

    def build_replay_command(self, trial: str) -> str:
        """The command that runs the trial again, or shows it where nothing in the run's folder leads to its program."""
        ruling = self.report.rulings.by_trial.get(trial) if self.report.rulings is not None else None
        if ruling is not None and ruling.again:
            return ruling.again
        # Where values were drawn or somebody switched faults off, the plan alone does not tell the trial.
        unlike = self.report.figures.value.figures_by_key.get(trial, TrialFigures()).noticed.unlike
        verb = "show" if self.report.of_functions or unlike else "replay"
        return f"{self.program} {verb} {self.shell_quoted_run} --trial {trial}"
