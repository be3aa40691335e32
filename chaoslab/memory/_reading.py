"""Reads a run's logs into rows of the memory: its experiments, its targets and the facts about the run."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.incidents import Traits, incidents
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.standing import Standing, Standings
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import files
from chaoslab.core import events
from chaoslab.record import runs
from chaoslab.record.history import History
from chaoslab.record.lines import log_files
from chaoslab.record.rulings import Rulings
from chaoslab.record.trial_stream import TrialStream, Unordered
from chaoslab.reports import places
from chaoslab.reports.levels import level_in
from chaoslab.search.planning import hooks
from chaoslab.search.planning.cells import ONCE, Cell, dose_of
from chaoslab.search.planning.evidence import Experiment, TargetKnowledge
from chaoslab.search.probes import ASIDE

NEAR = "degraded"
"""The outcome of a near miss: the fault came through, and nothing untrue was said."""


_Stated = tuple[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Facts:
    """One trial, as an outcome of one's own is asked about it. `judged`: it allows a conclusion. `harm`: something was
    done that should not have been. `seconds`: None if it did not end. `twin_s`: of the trial without faults."""

    trial: str
    outcome: str
    judged: bool
    bad: bool
    harm: bool
    met: tuple[Cell, ...] = ()
    called: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    seconds: float | None = None
    twin_s: float | None = None
    tokens: int = 0
    usd: float = 0.0


@dataclass
class RunRead:
    """A run: the facts about it, its experiments, and what it tells of each target."""

    key: str
    name: str
    folder: Path
    began: datetime
    world: str = ""
    subject: str = ""
    agent: str = ""
    seed: int | None = None
    level: float | None = None
    revision: str = ""
    trials: list[Facts] = field(default_factory=list)
    experiments: list[Experiment] = field(default_factory=list)
    targets: dict[str, TargetKnowledge] = field(default_factory=dict)


def key_of(folder: Path) -> str:
    """The key of a run: a digest of the bytes of its logs, and of what was ruled and said of it. A run of virtual time
    that is done twice has one key. Raises OSError: a file cannot be read."""
    found = hashlib.blake2b(digest_size=12)
    for path in [*log_files(folder), *sorted(folder.glob("*.jsonl"))]:
        with files.opened(path) as file:
            found.update(path.name.encode() + b"\0")
            while part := file.read(1 << 20):
                found.update(part)
    return found.hexdigest()


def read(folder: Path) -> RunRead:
    """The run in a folder. Raises LookupError: it holds no run of this lab; one line. OSError: a log cannot be read."""
    try:
        taken = _Taking(folder)
        for history in TrialStream(folder):
            taken.take(history)
    except Unordered:
        taken = _Taking(folder)
        taken.take(places.read(str(folder)))
    except FileNotFoundError as error:
        raise LookupError(str(error)) from None
    return taken.run()


class _Taking:
    """Collects a run trials by trials."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rulings, self.traits = folder, Rulings.read(folder), Traits()
        self.started: events.RunStarted | None = None
        self.name, self.plan = "", dict[str, _Stated]()
        self.facts: list[Facts] = []
        self.incidents: dict[Cell, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self.targets: dict[str, TargetKnowledge] = {}
        self.stated, self.running = False, False
        self._outcomes = [*hooks.all_of("outcomes")]

    def take(self, history: History) -> None:
        if events.StoryLeftOut in history.kinds:
            raise LookupError(
                f"{self.folder} lacks the stories of trials that ended well (keep='failed'): add one with all"
            )
        self.name = self.name or history.run
        self.running = history.running and history.first(events.RunFinished) is None
        if self.started is None and (started := history.first(events.RunStarted)) is not None:
            self.started = started
            self.plan = self._stated(started.injections)
        judged = verdicts(history)
        self.stated = self.stated or any(event.stated for _, event in history.of(events.PromptStarted))
        plans = {
            record.trial: self._stated(event.tried["variation"]["injections"])
            for record, event in history.of(events.VariationTried)
        }
        cells: dict[str | None, dict[tuple[str, str, str], Cell]] = {}
        for trial, target, fault, injection, drawn in _met(history):
            how, names = {**self.plan, **plans.get(trial, {})}.get(injection, (ONCE, {}))
            params = {key: drawn[key] for key in (*names.get(fault, ()), dose_of(fault)) if key in drawn}
            own = cells.setdefault(trial, {})
            own.setdefault((target, fault, injection), Cell.of(target, fault, params, how))
        self._trials(history, judged, cells)
        for one in incidents(history, self.traits):
            cell = cells.get(one.trial, {}).get((one.target, one.fault, one.injection))
            if cell is not None:
                sums = self.incidents[cell]
                sums[0] += 1
                sums[1] += one.recovered
                sums[2] += one.duration_s if one.recovered else 0.0

    def _stated(self, injections: Any) -> dict[str, _Stated]:
        """Of each injection by name, its kind, and the names of the parameters that were stated: others are drawn, and
        tell two experiments apart that were asked for alike."""
        return {
            str(each.get("name", "")): (
                kind_of(each),
                {str(one["fault"]): tuple(one.get("params", ())) for one in each.get("choices", ())},
            )
            for each in injections
        }

    def _trials(
        self, history: History, judged: Mapping[str, Verdict], cells: Mapping[str | None, Mapping[Any, Cell]]
    ) -> None:
        called: dict[str | None, set[str]] = defaultdict(set)
        failed: dict[str | None, set[str]] = defaultdict(set)
        for record, call in history.of(events.CallStarted):
            called[record.trial].add(call.target)
        gone = history.given_up
        for record, over, at in history.placed(events.CallFinished):
            if not over.ok and at not in gone:
                failed[record.trial].add(over.target)
        used: dict[str | None, list[float]] = defaultdict(lambda: [0, 0.0])
        for record, usage in history.of(events.Usage):
            used[record.trial][0] += usage.prompt_tokens + usage.completion_tokens
            used[record.trial][1] += usage.cost_usd or 0.0
        ends = {record.trial: event.duration_s for record, event in history.of(events.PromptFinished)}
        undoes: set[str] = set()
        tried = {record.trial: bool(event.tried["failed"]) for record, event in history.of(events.VariationTried)}
        rulings = self.rulings.of_whole(history.torn).by_trial if self.rulings is not None else {}
        standings = Standings(rulings)
        for record, started in history.of(events.PromptStarted):
            trial = record.trial or ""
            if (verdict := judged.get(trial)) is None:
                continue
            standing = standings.of(trial, str(verdict.outcome))
            ruled = trial in rulings
            if not ruled and trial in tried and standing is not Standing.OPEN:  # by its scenario's requirements
                standing = Standing.BAD if tried[trial] else Standing.WELL
            took = ends.get(record.trial)
            facts = Facts(
                trial, str(verdict.outcome), standing is not Standing.OPEN,
                standing is Standing.BAD, bool(verdict.harm), tuple(dict.fromkeys(cells.get(trial, {}).values())),
                frozenset(called[trial]), frozenset(failed[trial]),
                None if took is None or math.isnan(took) else took, started.twin_s,
                int(used[trial][0]), used[trial][1],
            )  # fmt: skip
            self.facts.append(self._own(facts))
            undoes |= {*(started.undoes or {}).values()}
        effects = Counter(event.target for _, event in history.of(events.Effect))
        undoable = Counter(event.target for _, event in history.of(events.Effect) if event.effect in undoes)
        there = Counter(target for trial in judged for target in called[trial])
        for target in {*there, *effects}:
            own = TargetKnowledge(0, there[target], effects[target], undoable[target])
            self.targets[target] = self.targets.get(target, TargetKnowledge()) + own

    def _own(self, facts: Facts) -> Facts:
        """The facts with an outcome of the user's own, if one is true of them."""
        for name, kind in self._outcomes:
            if hooks.ask_plugin("outcomes", name, partial(kind.of, facts)):
                return replace(facts, outcome=name, judged=True, bad=bool(kind.bad))
        return facts

    def run(self) -> RunRead:
        """The run, when all was taken. Raises LookupError: it is no run, or is not over."""
        if self.started is None and not self.facts:
            raise LookupError(f"{self.folder} tells of no run of this lab")
        if self.running:
            raise LookupError(f"{self.folder} is still being written: add it when it has ended")
        started, trials = self.started, len(self.facts)
        agent = started.model if started is not None else ""
        subject = self.rulings.scenario if self.rulings is not None and self.rulings.scenario else agent
        began = runs.began(self.folder) or datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)
        world = started.world if started is not None else ""
        targets = {name: replace(each, trials=trials) for name, each in self.targets.items()}
        return RunRead(
            key_of(self.folder), self.name, self.folder, began, world, subject, agent,
            None if started is None else started.seed, level_in(started), runs.revision_of(self.folder),
            self.facts, [*self._experiments(subject, world)], targets,
        )  # fmt: skip

    def _experiments(self, subject: str, world: str) -> Iterator[Experiment]:
        by_cell: dict[Cell | None, list[Facts]] = defaultdict(list)
        for each in self.facts:
            for cell in each.met or (None,):
                by_cell[cell].append(each)
        for cell, trials in by_cell.items():
            found = experiment_of(subject, cell, trials, world)
            count, recovered, repair_s = self.incidents[cell] if cell is not None else (0.0, 0.0, 0.0)
            yield replace(found, incidents=int(count), recovered=int(recovered), repair_s=repair_s)


def kind_of(injection: Mapping[str, Any]) -> str:
    """The kind of experiment that an injection makes, as its fields in a log tell."""
    for name, kind in hooks.all_of("experiments"):
        if hooks.ask_plugin("experiments", name, partial(kind.is_one, injection)):
            return name
    return ONCE


def experiment_of(subject: str, cell: Cell | None, trials: list[Facts], world: str = "") -> Experiment:
    """The row of the trials that met one cell."""
    judged = [each for each in trials if each.judged]
    bad, harm = [each for each in judged if each.bad], [each for each in judged if each.harm]
    affected: dict[str, tuple[int, int]] = {}
    for each in trials:
        for other in each.called.difference(own.target for own in each.met) if cell is not None else ():
            failed, all_ = affected.get(other, (0, 0))
            affected[other] = failed + (other in each.failed), all_ + 1
    timed = [each.seconds for each in trials if each.seconds is not None]
    return Experiment(
        subject, cell, len(judged), len(bad), sum(1 / max(1, len(each.met)) for each in bad),
        sum(len(each.met) < 2 for each in bad), len(harm), sum(1 / max(1, len(each.met)) for each in harm),
        sum(each.outcome == NEAR and not each.bad for each in judged),
        Counter(each.outcome for each in judged), {name: affected[name] for name in sorted(affected)},
        timed=len(timed), seconds=math.fsum(timed), squares=math.fsum(each * each for each in timed),
        tokens=sum(each.tokens for each in trials), usd=math.fsum(each.usd for each in trials), world=world,
    )  # fmt: skip


def _met(history: History) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
    """The faults that were witnessed in trials: trial, target, fault, injection and parameters."""
    drawn = {(at, event.injection, event.fault): event.params for _, event, at in history.placed(events.FaultScheduled)}
    for record, event, at in history.placed(events.FaultWitnessed):
        if record.trial is not None and event.fault not in ASIDE:
            params = drawn.get((at, event.injection, event.fault), {})
            yield record.trial, event.target, event.fault, event.injection, params
