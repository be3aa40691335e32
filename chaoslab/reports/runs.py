"""The list of a folder's runs, newest first: time, world, seed, scenario, level, outcomes, harm and witnessed
faults."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.reliability import compute_ended_well_rate
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.standing import StandingCount, Standings
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.jsonable import to_one_line
from chaoslab.core.events import FaultWitnessed, PromptStarted, RunFinished, RunStarted
from chaoslab.record import runs
from chaoslab.record.held import has_live_writer
from chaoslab.record.history import History
from chaoslab.record.lines import Record, iterate_lines, list_log_files, parse_line
from chaoslab.record.rulings import Rulings
from chaoslab.reports import places
from chaoslab.reports.levels import find_chaos_level
from chaoslab.reports.page import WIDTH, format_count, format_rate, wrap_text
from chaoslab.reports.trials import format_outcome_counts

COUNTED_MAX = 64 * 2**20
"""The largest logs, in bytes, whose outcomes are counted."""
BEGINNING = 100
"""The lines of a larger log that are searched for its first events."""
NAME_WIDTH, CELL, REVISION = 30, 100, 12
"""The most characters of a name in the terminal and on a page, and of a commit's."""


@dataclass(frozen=True)
class RunListEntry:
    """One run of the list. `name`: the scenario's, or else the agent's or the model's. `ruling`: the scenario's on the
    whole. `level`: of chaos. `revision`: the commit that was checked out. `standings`: the trials that ended well,
    badly, and are open. `well`: the share of the first among the judged; None if none was. `harmed`: those with harm.
    `outcomes`, `harmed`: None if they were not counted. `trouble`: the reason why it cannot be read, or empty."""

    folder: Path
    began: datetime
    world: str = ""
    seed: int | None = None
    prompts: int = 0
    outcomes: Counter[Outcome] | None = None
    witnessed: int | None = None
    ended: str = ""
    trouble: str = ""
    name: str = ""
    ruling: str = ""
    level: float | None = None
    standings: StandingCount = StandingCount()
    well: Rate | None = None
    harmed: int | None = None
    revision: str = ""

    def render_run_text(self) -> str:
        """The run in lines of at most 80 columns."""
        head = f"{to_one_line(self.folder.name, NAME_WIDTH)} · {self.began:%Y-%m-%d %H:%M} UTC"
        if self.trouble:
            return "\n".join([head, *wrap_text(self.trouble, indent="  ")])
        seed = "not known" if self.seed is None else self.seed
        head = to_one_line(f"{head} · {self.world or 'world not known'} · seed {seed}", WIDTH)
        outcomes = "too large to count outcomes" if self.outcomes is None else format_outcome_counts(self.outcomes)
        faults = "" if self.witnessed is None else f"; {format_count(self.witnessed, 'fault')} witnessed"
        ended = "" if self.ended in ("", "done") else f"; {self.ended}"
        counts_text = f"{format_count(self.prompts, 'trial')}: {outcomes}{faults}{ended}"
        ruling = f": {self.ruling}" if self.ruling else ""
        details = [f"{to_one_line(self.name, NAME_WIDTH)}{ruling}"] if self.name else []
        details += [f"commit {to_one_line(self.revision, REVISION)}"] if self.revision else []
        details += [f"level {self.level:g}"] if self.level else []
        details += [f"{format_rate(self.well)} ended well"] if self.well else []
        details += [f"{self.standings.open} open"] if self.standings.open else []
        details += [f"harm in {self.harmed}"] if self.harmed else []
        return "\n".join([head, *wrap_text(" · ".join(details), indent="  "), *wrap_text(counts_text, indent="  ")])

    def to_page_row(self) -> dict[str, Any]:
        """The run as a row of a page's list; None is not known."""
        return {
            "name": to_one_line(self.name, CELL), "began": f"{self.began:%Y-%m-%d %H:%M}",
            "world": to_one_line(self.world, CELL),
            "seed": None if self.seed is None else str(self.seed), "level": self.level, "trials": self.prompts,
            "well": format_rate(self.well) if self.well else "", "share": self.well.value if self.well else None,
            "open": self.standings.open, "harmed": self.harmed, "faults": self.witnessed, "ruling": self.ruling,
            "commit": to_one_line(self.revision, REVISION), "ended": self.ended,
            "said": self.trouble or ("" if self.outcomes is None else format_outcome_counts(self.outcomes)),
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON values; null is not known."""
        return {
            "run": self.folder.name, "folder": str(self.folder), "began": self.began.isoformat(),
            "world": self.world or None, "seed": self.seed, "prompts": None if self.trouble else self.prompts,
            "name": self.name or None, "revision": self.revision or None,
            "ruling": self.ruling or None, "level": self.level,
            "standings": None if self.outcomes is None else vars(self.standings), "harmed": self.harmed,
            "outcomes": None if self.outcomes is None else {str(k): n for k, n in self.outcomes.items()},
            "faults_witnessed": self.witnessed, "ended": self.ended or None, "trouble": self.trouble or None,
        }  # fmt: skip


def render_runs(logs: Path = places.LOGS) -> str:
    """The list of all runs in a folder, newest first, as text. Raises LookupError: there is none."""
    return "\n".join(line.render_run_text() for line in list_runs(logs)) + "\n"


def list_runs(logs: Path = places.LOGS) -> Iterator[RunListEntry]:
    """The lines of all runs in a folder, newest first. Raises LookupError: there is none."""
    run_folders = runs.list_runs_newest_first(logs)
    if not run_folders and logs.exists() and not logs.is_dir():
        raise LookupError(f"{logs}: this is a file; name the folder that the runs are in")
    if not run_folders:
        raise LookupError(places.explain_no_runs(logs))
    yield from (read_run_list_entry(folder) for folder in run_folders)


def read_run_list_entry(folder: Path) -> RunListEntry:
    """The line of one run, also of one that cannot be read."""
    # A folder without a name of the lab's: the time of its last change.
    start = runs.parse_start_time(folder) or datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return run_guarded(
        # One run that cannot be read must not end the list.
        lambda: _build_run_list_entry(folder, start),
        lambda reason: RunListEntry(folder, start, trouble=f"cannot be read: {reason}"),
    )


def _build_run_list_entry(folder: Path, start: datetime) -> RunListEntry:
    files = list_log_files(folder)
    if not files:
        return RunListEntry(folder, start, trouble="it has left no logs")
    running = has_live_writer(folder)
    # Judging reads all of a log; the list of a hundred runs should come at once.
    large = sum(path.stat().st_size for path in folder.glob("*.log") if path.is_file()) > COUNTED_MAX
    try:
        # The first lines of each file: its beginning is there.
        history = History(_read_first_records(files), running=running) if large else History.read(folder)
        if history.find_first_event(RunStarted) is None:
            # A large log without a beginning would have to be read as a whole.
            if large:
                return RunListEntry(
                    folder, start, trouble="cannot be read: it is large, and does not tell how it began"
                )
            history = places.read_history(str(folder))
    except LookupError as error:
        return RunListEntry(folder, start, trouble=f"cannot be read: {error.args[0]}")
    except OSError as error:
        return RunListEntry(folder, start, trouble=places.explain_unreadable(folder, error))
    run, end = history.find_first_event(RunStarted), history.find_first_event(RunFinished)
    rulings = Rulings.read(folder)
    run_verdicts = {} if large else judge_all_trials(history)
    if rulings is not None:
        rulings = rulings.drop_passes_with_gaps(history.gaps_by_trial)
    standings = Standings(rulings.by_trial if rulings is not None else {})
    state = rulings.final_state if rulings is not None else None
    standings_by_trial = standings.map_standings(
        {trial: str(verdict.outcome) for trial, verdict in run_verdicts.items()}
    )
    prompts = {record.trial: event.prompt for record, event in history.find_events(PromptStarted)}
    return RunListEntry(
        folder,
        start,
        run.world if run else "",
        run.seed if run else None,
        run.prompts if run else len(history.trials),
        None if large else Counter(verdict.outcome for verdict in run_verdicts.values()),
        sum(1 for _ in history.find_events(FaultWitnessed)) if not large else None,
        # Of a large log the end was not read.
        end.reason if end else "still running" if running else "" if large else "not finished",
        name=rulings.scenario if rulings is not None else run.model if run else "",
        ruling=str(state or "") if rulings is not None else "",
        level=find_chaos_level(run),
        standings=StandingCount.from_standings(standings_by_trial.values()),
        well=compute_ended_well_rate(standings_by_trial.values(), map(prompts.get, standings_by_trial)),
        harmed=None if large else sum(bool(verdict.harm) for verdict in run_verdicts.values()),
        revision=runs.read_revision(folder),
    )


def _read_first_records(files: Iterable[Path]) -> Iterator[Record]:
    """The events among the first lines of each file."""
    # Of each: the beginning of a run may stand in any writer's file.
    for path in files:
        yield from filter(None, map(parse_line, islice(iterate_lines(path), BEGINNING)))
