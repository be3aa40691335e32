"""Reads a run's logs into rows of the memory: its experiments, its targets and the facts about the run."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.incidents import Traits, find_incidents
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.standing import Standing, Standings
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import files
from chaoslab.core import events
from chaoslab.record import runs
from chaoslab.record.history import History
from chaoslab.record.lines import list_log_files
from chaoslab.record.rulings import Rulings
from chaoslab.record.trial_stream import TrialStream, Unordered
from chaoslab.reports import places
from chaoslab.reports.levels import find_chaos_level
from chaoslab.search.planning.cells import ONCE, Cell, classify_once_or_always, get_dose_parameter
from chaoslab.search.planning.evidence import Experiment, TargetKnowledge
from chaoslab.search.probes import ASIDE

NEAR = "degraded"
"""The outcome of a near miss: the fault came through, and nothing untrue was said."""


AGENT = "the agent"
"""The name, in a run's `code`, of the digest of the file of the agent."""
_StatedInjection = tuple[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Facts:
    """One trial. `judged`: it allows a conclusion. `harm`: something was done that should not have been. `met`: the
    cells of its faults. `called`, `failed`: the targets that were called, and those of which a call failed.
    `twin_failed`: the latter of its twin; None if it has none. `drew`: it drew chance of its own. `seconds`: None if it
    did not end."""

    trial: str
    outcome: str
    judged: bool
    bad: bool
    harm: bool
    met: tuple[Cell, ...] = ()
    called: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    twin_failed: frozenset[str] | None = None
    drew: bool = False
    seconds: float | None = None
    tokens: int = 0
    usd: float = 0.0


@dataclass
class RunRead:
    """A run: the facts about it, its experiments, and what it tells of each target. `subject`: its agent; the scenario
    if that has no name. `revision`: the commit that was checked out, and a digest of the file of the agent."""

    key: str
    name: str
    folder: Path
    began: datetime
    world: str = ""
    subject: str = ""
    scenario: str = ""
    seed: int | None = None
    level: float | None = None
    revision: str = ""
    trials: list[Facts] = field(default_factory=list)
    experiments: list[Experiment] = field(default_factory=list)
    targets: dict[str, TargetKnowledge] = field(default_factory=dict)


def compute_run_key(folder: Path) -> str:
    """The key of a run: a digest of the bytes of its logs, and of what was ruled and said of it. A run of virtual time
    that is done twice has one key. Raises OSError: a file cannot be read."""
    digest = hashlib.blake2b(digest_size=12)
    # What is ruled, judged or noted later makes other rows of the same logs, so it belongs to the key.
    for path in [*list_log_files(folder), *sorted(folder.glob("*.jsonl"))]:
        with files.open_regular(path) as file:
            digest.update(path.name.encode() + b"\0")
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def read_run(folder: Path) -> RunRead:
    """The run in a folder. Raises LookupError: it holds no run of this lab; one line. OSError: a log cannot be read."""
    try:
        reader = _RunReader(folder)
        for history in TrialStream(folder):
            reader.add_history(history)
    except Unordered:
        reader = _RunReader(folder)
        # Trials side by side cannot be cut apart, so the run is read as a whole.
        reader.add_history(places.read_history(str(folder)))
    except FileNotFoundError as error:
        raise LookupError(str(error)) from None
    return reader.build_run()


class _RunReader:
    """Collects a run trials by trials."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rulings, self.traits = folder, Rulings.read(folder), Traits()
        self.started: events.RunStarted | None = None
        self.name, self.plan = "", dict[str, _StatedInjection]()
        self.facts: list[Facts] = []
        self.incidents: dict[Cell, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self.unmet = Counter[Cell]()
        self.targets: dict[str, TargetKnowledge] = {}
        self.stated, self.running = False, False

    def add_history(self, history: History) -> None:
        # Trials that ended well have no lines then, so each fault would look as if it always broke the agent.
        if events.StoryLeftOut in history.event_kinds:
            raise LookupError(
                f"{self.folder} lacks the stories of trials that ended well (keep='failed'): add one with all"
            )
        self.name = self.name or history.run_name
        self.running = history.running and history.find_first_event(events.RunFinished) is None
        if self.started is None and (started := history.find_first_event(events.RunStarted)) is not None:
            self.started = started
            self.plan = self._index_injections(started.injections)
        judged = judge_all_trials(history)
        self.stated = self.stated or any(event.stated for _, event in history.find_events(events.PromptStarted))
        plans = {
            record.trial: self._index_injections(event.tried["variation"]["injections"])
            for record, event in history.find_events(events.VariationTried)
        }
        held_back = {record.trial for record, _ in history.find_events(events.FaultHeldBack)}
        for record, event in history.find_events(events.VariationTried):
            injections = event.tried["variation"]["injections"]
            # A limit that held the fault back says nothing of whether the fault can be met.
            if len(injections) == 1 and not event.tried["met"] and record.trial not in held_back:
                (choice, *_), (target, *_) = injections[0]["choices"], injections[0]["targets"]
                self.unmet[
                    Cell.build(target, choice["fault"], choice["params"], classify_once_or_always(injections[0]))
                ] += 1
        cells: dict[str | None, dict[tuple[str, str, str], Cell]] = {}
        for trial, target, fault, injection, drawn in _iterate_faults_met(history):
            kind, names = {**self.plan, **plans.get(trial, {})}.get(injection, (ONCE, {}))
            params = {key: drawn[key] for key in (*names.get(fault, ()), get_dose_parameter(fault)) if key in drawn}
            trial_cells = cells.setdefault(trial, {})
            trial_cells.setdefault((target, fault, injection), Cell.build(target, fault, params, kind))
        self._add_trial_facts(history, judged, cells)
        for incident in find_incidents(history, self.traits):
            cell = cells.get(incident.trial, {}).get((incident.target, incident.fault, incident.injection))
            if cell is not None:
                sums = self.incidents[cell]
                sums[0] += 1
                sums[1] += incident.recovered
                sums[2] += incident.duration_s if incident.recovered else 0.0

    def _index_injections(self, injections: Any) -> dict[str, _StatedInjection]:
        """Of each injection by name, its kind, and the names of the parameters that were stated: others are drawn, and
        tell two experiments apart that were asked for alike."""
        return {
            str(injection.get("name", "")): (
                classify_once_or_always(injection),
                {str(choice["fault"]): tuple(choice.get("params", ())) for choice in injection.get("choices", ())},
            )
            for injection in injections
        }

    def _add_trial_facts(
        self, history: History, judged: Mapping[str, Verdict], cells: Mapping[str | None, Mapping[Any, Cell]]
    ) -> None:
        called: dict[str | None, set[str]] = defaultdict(set)
        failed: dict[str | None, set[str]] = defaultdict(set)
        for record, call in history.find_events(events.CallStarted):
            called[record.trial].add(call.target)
        dropped = history.given_up_attempts
        for record, finished_call, at in history.find_attempt_events(events.CallFinished):
            # A call that its caller gave up, as the loser of two hedged requests, neither failed nor succeeded.
            if not finished_call.ok and at not in dropped:
                failed[record.trial].add(finished_call.target)
        usage_sums: dict[str | None, list[float]] = defaultdict(lambda: [0, 0.0])
        for record, usage in history.find_events(events.Usage):
            usage_sums[record.trial][0] += usage.prompt_tokens + usage.completion_tokens
            usage_sums[record.trial][1] += usage.cost_usd or 0.0
        ends = {record.trial: event for record, event in history.find_events(events.PromptFinished)}
        undoes: set[str] = set()
        failed_by_trial = {
            record.trial: bool(event.tried["failed"]) for record, event in history.find_events(events.VariationTried)
        }
        rulings = self.rulings.drop_passes_with_gaps(history.gaps_by_trial).by_trial if self.rulings is not None else {}
        standings = Standings(rulings)
        for record, started in history.find_events(events.PromptStarted):
            trial = record.trial or ""
            if (verdict := judged.get(trial)) is None:
                continue
            standing = standings.get_standing(trial, str(verdict.outcome))
            is_ruled = trial in rulings
            if (
                not is_ruled and trial in failed_by_trial and standing is not Standing.OPEN
            ):  # by its scenario's requirements
                standing = Standing.BAD if failed_by_trial[trial] else Standing.WELL
            end = ends.get(record.trial)
            twin = None if started.twin_calls is None else frozenset(started.twin_failed or ())
            self.facts.append(
                Facts(
                    trial,
                    str(verdict.outcome),
                    standing is not Standing.OPEN,
                    standing is Standing.BAD,
                    bool(verdict.harm),
                    tuple(dict.fromkeys(cells.get(trial, {}).values())),
                    frozenset(called[trial]),
                    frozenset(failed[trial]),
                    twin,
                    bool(end is not None and end.drew),
                    None if end is None else end.duration_s,
                    int(usage_sums[trial][0]),
                    usage_sums[trial][1],
                )
            )
            undoes |= {*(started.undoes or {}).values()}
        effects = Counter(event.target for _, event in history.find_events(events.Effect))
        undoable = Counter(event.target for _, event in history.find_events(events.Effect) if event.effect in undoes)
        call_counts = Counter(target for trial in judged for target in called[trial])
        for target in {*call_counts, *effects}:
            knowledge = TargetKnowledge(0, call_counts[target], effects[target], undoable[target])
            self.targets[target] = self.targets.get(target, TargetKnowledge()) + knowledge

    def build_run(self) -> RunRead:
        """The run, when all was taken. Raises LookupError: it is no run, or is not over."""
        if self.started is None and not self.facts:
            raise LookupError(f"{self.folder} tells of no run of this lab")
        if self.running:
            raise LookupError(f"{self.folder} is still being written: add it when it has ended")
        started, trials = self.started, len(self.facts)
        scenario = self.rulings.scenario if self.rulings is not None else ""
        subject = (started.model if started is not None else "") or scenario
        begin = runs.parse_start_time(self.folder) or datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)
        world = started.world if started is not None else ""
        # The number of trials is known at the end alone.
        targets = {name: replace(knowledge, trials=trials) for name, knowledge in self.targets.items()}
        return RunRead(
            compute_run_key(self.folder),
            self.name,
            self.folder,
            begin,
            world,
            subject,
            scenario,
            None if started is None else started.seed,
            find_chaos_level(started),
            build_revision_name([runs.read_revision(self.folder, name) for name in ("revision", "changed")], started),
            self.facts,
            [*self._iterate_experiments(subject, world)],
            targets,
        )

    def _iterate_experiments(self, subject: str, world: str) -> Iterator[Experiment]:
        by_cell: dict[Cell | None, list[Facts]] = defaultdict(list)
        for trial_facts in self.facts:
            for cell in trial_facts.met or (None,):
                by_cell[cell].append(trial_facts)
        yield from (Experiment(subject, cell, void=count, world=world) for cell, count in self.unmet.items())
        for cell, trials in by_cell.items():
            experiment = make_experiment(subject, cell, trials, world)
            count, recovered, repair_s = self.incidents[cell] if cell is not None else (0.0, 0.0, 0.0)
            yield replace(experiment, incidents=int(count), recovered=int(recovered), repair_s=repair_s)


def build_revision_name(tree: Sequence[str], started: events.RunStarted | None) -> str:
    """The revision of an agent. `tree`: the commit, and the digest of what was changed since. The file of the agent has
    a digest of its own, for where there is no Git."""
    code = {} if started is None else started.code
    return ".".join(part_text for part_text in (*tree, code.get(AGENT) or code.get("agent", "")) if part_text)


def make_experiment(
    subject: str, cell: Cell | None, trials: list[Facts], world: str = "", revision: str = ""
) -> Experiment:
    """The row of the trials that met one cell."""
    single_fault = [trial_facts for trial_facts in trials if len(trial_facts.met) < 2]
    judged, joint = (
        [trial_facts for trial_facts in single_fault if trial_facts.judged],
        [trial_facts for trial_facts in trials if len(trial_facts.met) > 1],
    )
    affected: dict[str, tuple[int, int, int]] = {}
    for trial_facts in single_fault:
        if cell is None or trial_facts.twin_failed is None:
            continue
        for other_target in trial_facts.called - {cell.target}:
            lost, regained, all_ = affected.get(other_target, (0, 0, 0))
            now, calm = other_target in trial_facts.failed, other_target in trial_facts.twin_failed
            affected[other_target] = lost + (now and not calm), regained + (calm and not now), all_ + 1
    timed = [trial_facts.seconds for trial_facts in trials if trial_facts.seconds is not None]
    return Experiment(
        subject,
        cell,
        len(judged),
        sum(trial_facts.bad for trial_facts in judged),
        sum(trial_facts.harm for trial_facts in judged),
        sum(trial_facts.outcome == NEAR and not trial_facts.bad for trial_facts in judged),
        sum(trial_facts.judged for trial_facts in joint),
        sum(trial_facts.judged and trial_facts.bad for trial_facts in joint),
        len(single_fault) - len(judged),
        Counter(trial_facts.outcome for trial_facts in judged),
        {name: affected[name] for name in sorted(affected)},
        any(trial_facts.drew for trial_facts in trials),
        timed=len(timed),
        seconds=math.fsum(timed),
        squares=math.fsum(trial_facts * trial_facts for trial_facts in timed),
        tokens=sum(trial_facts.tokens for trial_facts in trials),
        usd=math.fsum(trial_facts.usd for trial_facts in trials),
        world=world,
        revision=revision,
    )


def _iterate_faults_met(history: History) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
    """The faults that were witnessed in trials: trial, target, fault, injection and parameters."""
    drawn = {
        (at, event.injection, event.fault): event.params
        for _, event, at in history.find_attempt_events(events.FaultScheduled)
    }
    for record, event, at in history.find_attempt_events(events.FaultWitnessed):
        if record.trial is not None and event.fault not in ASIDE:
            params = drawn.get((at, event.injection, event.fault), {})
            yield record.trial, event.target, event.fault, event.injection, params
