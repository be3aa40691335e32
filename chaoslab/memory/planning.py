"""`lab.plan` and `chaoslab plan`: the next experiments of a scenario or of an agent of the memory, and doing them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.base import interrupts, levers, parsers
from chaoslab.base.clock import system
from chaoslab.base.durations import span
from chaoslab.base.jsonable import shown
from chaoslab.base.registry import did_you_mean
from chaoslab.core.events import CallStarted, Effect, FaultHeldBack, PromptFinished, PromptStarted
from chaoslab.core.fault import load as fault_of
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Injection
from chaoslab.execution.journal import SearchJournal
from chaoslab.execution.trial import Trial
from chaoslab.memory._reading import Facts, experiment_of, read, revision_named
from chaoslab.memory.plans import PlanEntry, ProposedPlan, RunPrediction, RunProposal
from chaoslab.memory.store import FILE, Memory
from chaoslab.memory.store import memory as opened_memory
from chaoslab.record import provenance
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.reports.page import count
from chaoslab.scenarios.builder import ScenarioBuilder, arguments_of, load_scenario
from chaoslab.scenarios.exploring import OpenedSearch, opened
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.planning.cells import KINDS, Cell, kind_of, traits_of
from chaoslab.search.planning.chances import Chances, Prediction, brier
from chaoslab.search.planning.design import Design, enhance
from chaoslab.search.planning.evidence import Evidence, TargetKnowledge
from chaoslab.search.planning.proposals import Proposed, propose
from chaoslab.search.variation import Tried, Variation

N = 5
"""The proposals of a plan, if nothing else is said."""
TRIALS = 200
"""The trials of `--run`, if nothing else is said."""
REAL_TIME = ("local", "compose")
"""The worlds in which a trial costs the time that it takes."""


@dataclass(frozen=True)
class PlanQuestion:
    """The question to a planner. `targets`: the only ones. `tries`: the only faults. `n`: the proposals. `risk`: the
    most that is allowed. `share`: of the traffic that a fault may hit. `critical`: criticalities, by target."""

    targets: Sequence[str] = ()
    tries: Sequence[str] = ()
    n: int = N
    risk: float = 1.0
    seed: int = 0
    share: float = 1.0
    critical: Mapping[str, float] = field(default_factory=dict)

    def proposed(self, evidence: Evidence, cells: Sequence[Cell], n: int, round_: int = 0) -> Proposed:
        wanted = [each for each in cells if not self.tries or each.fault in self.tries]
        there = sorted({each.target for each in cells})
        for name in (*self.targets, *self.critical) if not round_ else ():
            if name not in there:
                hint = did_you_mean(name, there) if there else "none is known"
                raise LookupError(f"{evidence.subject} has no target {shown(name)}: {hint}")
        if self.targets:
            wanted = [each for each in wanted if each.target in self.targets]
        return propose(
            evidence, wanted, n=n, seed=self.seed, risk=self.risk, share=self.share, stated=self.critical,
            costs=_costs(evidence, wanted), round_=round_,
        )  # fmt: skip


def budget_of(budget: int | str | None) -> tuple[int, float | None]:
    """The most trials and the most seconds of a budget, as in 200 or "10m". Raises ValueError: it is neither; one
    line."""
    text = str(TRIALS if budget is None else budget).strip()
    try:
        if text.isdecimal():
            return parsers.whole(1, 1_000_000)(text), None
        return 1_000_000, parsers.seconds(str(parsers.duration(text)))
    except ValueError:
        raise ValueError(
            f"the budget is {shown(budget)}: it should be trials, as in 200, or a time, as in 10m"
        ) from None


def plan(
    memory: Memory | str | Path, scenario: Scenario | ScenarioBuilder | str | Path | None = None, *,
    subject: str = "", targets: Sequence[str] = (), tries: Sequence[str] = (), budget: int | str | None = None,
    n: int = N, risk: float = 1.0, seed: int = 0, share: float = 1.0, critical: Mapping[str, float] | None = None,
    run: bool = False, logs: str | Path | None = None, changed: Sequence[str] = (),
    tell: Callable[[RunProposal], object] | None = None,
) -> ProposedPlan:  # fmt: skip
    """The next experiments of a scenario, or of an agent that the memory knows: those with the most expected damage
    that is not known yet per cost, with the reason, the risk, the cost and the command of each. `memory`: one, or its
    folder; with a scenario, one that is not there is made. `scenario`: one, or its file; without it, `subject` is the
    name of an agent or of its scenario, by default the only one.

    `targets`, `tries`: the only targets and faults. `budget`: of `run`, as in 200 trials or "10m". `n`: the proposals.
    `risk`: the most that is allowed, from 0 to 1. `share`: of the traffic that a fault may hit. `critical`: how
    critical a target is, from 0 to 1, by name. `run`: the experiments are run in virtual time, each once, until the
    budget is spent; the run is written into `logs` and added to the memory. `changed`: values in place of the file's,
    as in "fresh=shop:naive". `tell` is called with each.

    Raises:
        ValueError, LookupError: something in it is wrong, or the memory cannot be used; one line.
        ScenarioError: something of the scenario's is wrong.
    """
    part = Limits.of({"share": share}).share
    asked = PlanQuestion(tuple(targets), tuple(tries), n, _share("risk", risk), seed, part, critical or {})
    for name, value in asked.critical.items():
        _share(f"critical of {name}", value)
    most = budget_of(budget)
    if isinstance(memory, Memory):
        store = memory
    elif scenario is None or Path(memory).suffix == ".db" or (Path(memory) / FILE).exists():
        store = opened_memory(memory)
    else:
        store = Memory(Path(memory) / FILE, make=True)
    if scenario is None:
        if run:
            raise ValueError("run needs a scenario: name its file")
        return _of_memory(store, subject, asked)
    found, place = _scenario(scenario, changed), Path(logs or store.path.parent)
    return _of_scenario(store, found, asked, most if run else None, place, changed, tell)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {shown(value)}: it should be a number from 0 to 1, or as in 10%")
    return float(value)


def _scenario(given: Scenario | ScenarioBuilder | str | Path, changed: Sequence[str]) -> Scenario:
    if isinstance(given, Scenario):
        return given
    found = (given if isinstance(given, ScenarioBuilder) else load_scenario(given)).check(changed=changed)
    if len(found) != 1:
        raise LookupError(f"these are {len(found)} scenarios ({', '.join(each.name for each in found)}): plan for one")
    return found[0]


def _of_memory(store: Memory, subject: str, asked: PlanQuestion) -> ProposedPlan:
    there = store.subjects()
    if not subject and len(there) == 1:
        (subject,) = there
    if named := store.agent_of(subject):
        subject = named
    else:
        known = f"known are {', '.join(there[:8])}" if there else "it knows none: add runs to it"
        wanted = f"no agent {shown(subject)}" if subject else "several agents: name one, or a scenario's file"
        raise LookupError(f"{store.path} knows {wanted if there else 'no agent'}; {known}")
    evidence = store.evidence(subject)
    found = asked.proposed(evidence, [*_cells_of_memory(evidence)], asked.n)
    stated = {"share": asked.share} if asked.share < 1 else {}
    return ProposedPlan(subject, evidence, [*_entries(evidence, found, stated, _python)], _left_out(found))


def _cells_of_memory(evidence: Evidence) -> Iterator[Cell]:
    """The faults that were tried anywhere and are installed here, of each kind, at each known target."""
    faults = [each for each in sorted(evidence.faults) if traits_of(each) is not None]
    for target in sorted(evidence.targets):
        for fault in faults:
            for how in KINDS:
                yield Cell.of(target, fault, {}, how)
    own = {each.cell for each in evidence.rows if each.cell is not None}
    yield from sorted((cell for cell in own if cell.params and cell.fault in faults), key=str)


def _costs(evidence: Evidence, cells: Sequence[Cell]) -> dict[Cell, float]:
    """The seconds of a trial, in worlds where time passes; nothing where none does."""
    took: dict[str, tuple[int, float]] = {}
    for each in evidence.rows:
        if each.world in REAL_TIME:
            for name in {"", each.cell.target if each.cell is not None else ""}:
                timed, seconds = took.get(name, (0, 0.0))
                took[name] = timed + each.timed, seconds + each.seconds
    mean = {name: seconds / timed for name, (timed, seconds) in took.items() if timed and seconds}
    return {cell: mean.get(cell.target, mean[""]) for cell in cells} if "" in mean else {}


def _of_scenario(
    store: Memory, scenario: Scenario, asked: PlanQuestion, budget: tuple[int, float | None] | None, logs: Path,
    changed: Sequence[str], tell: Callable[[RunProposal], object] | None,
) -> ProposedPlan:  # fmt: skip
    with opened(scenario) as made:
        ((calm, trial),) = made.session.tried([Variation()], "calm")
        started = made.session.subject.run.started(0)
        evidence = store.evidence(
            started.model or scenario.name,
            revision=revision_named((provenance.revision(), provenance.changes()), started),
        )
        # notes what the trial without faults calls and changes, for targets of which the memory knows nothing
        undoes = {each for _, event in trial.history.of(PromptStarted) for each in (event.undoes or {}).values()}
        effects = [(event.target, event.effect in undoes) for _, event in trial.history.of(Effect)]
        for target in dict.fromkeys(event.target for _, event in trial.history.of(CallStarted)):
            own = [undone for name, undone in effects if name == target]
            evidence.targets.setdefault(target, TargetKnowledge(1, 1, len(own), sum(own)))
        plan, left = ProposedPlan(evidence.subject, evidence), [*_cells_of(made, calm, asked.tries)]
        if budget is not None:
            _run(plan, made, scenario, asked, left, budget, logs, tell, calm)
        found = asked.proposed(evidence, left, asked.n, len(plan.done))
        write = partial(_command, scenario, changed)
        # The share is stated, all of it too: in virtual time no traffic is real, and what is spared teaches nothing.
        plan.entries = [*_entries(evidence, found, {"share": asked.share}, write)]
        plan.left_out = _left_out(found)
    if plan.folder is not None:
        store.add([plan.folder])
    return plan


def _cells_of(made: OpenedSearch, calm: Tried, tries: Sequence[str]) -> Iterator[Cell]:
    """The cells of a scenario: the faults that apply at what its agent calls, of each kind."""
    for name in tries:
        fault_of(name)
    probes, _ = made.session.probes(tries)
    for target in dict.fromkeys(site.target for site in calm.sites):
        for probe in probes.get(target, ()):
            for how in KINDS:
                cell = Cell.of(target, probe.fault, dict(probe.params), how)
                try:
                    made.session.subject.check(cell.injection)
                except (ValueError, LookupError):
                    continue
                yield cell


def _run(
    plan: ProposedPlan, made: OpenedSearch, scenario: Scenario, asked: PlanQuestion, left: list[Cell],
    budget: tuple[int, float | None], logs: Path, tell: Callable[[RunProposal], object] | None, calm: Tried,
) -> None:  # fmt: skip
    """Runs the best experiment, learns from it, and again, until the budget is spent. What is done leaves `left`."""
    (most, most_s), began_s = budget, system.monotonic()
    with SearchJournal(made.session.subject, logs, None) as journal:
        assert journal.folder is not None  # it has logs
        plan.folder = journal.folder
        rulings = RulingsFile(journal.folder, scenario.name, (), most)
        while not plan.ended:
            interrupts.check()
            if why := levers.of_machine():
                plan.ended = why
                break
            found = asked.proposed(plan.evidence, left, 1, len(plan.done))
            if not found.proposals:
                plan.ended = "nothing more is left to try" + (" under this risk" if found.too_risky else "")
                break
            (entry,) = _entries(plan.evidence, found, {"share": asked.share}, lambda *_: "")
            cell = entry.proposal.cell
            within = (entry.design.within,)
            made.session.number = len(plan.done)  # each is a trial of its own, by the dice of its share too
            ((tried, trial),) = made.session.tried([Variation((cell.injection,))], "plan", within)
            held = next((event.limit for _, event in trial.history.of(FaultHeldBack)), "") if not tried.met else ""
            state = RulingState.FAILED if tried.failed else RulingState.INVALID if tried.void else RulingState.PASSED
            rulings.add(journal.add(tried, trial), TrialRuling(state, (tried.why,) if tried.failed else ()))
            void = tried.void or not tried.met
            plan.done.append(RunProposal(cell, tried, entry.proposal.prediction, void, held))
            if not held:
                facts = replace(_facts(tried, cell, calm, trial), judged=not void)
                plan.evidence.add(experiment_of(plan.subject, cell, [facts], revision=plan.evidence.revision))
            seen = plan.evidence.range(cell)
            if cell.dose is None or void or seen.next in (None, cell.dose):
                left[:] = [each for each in left if replace(each, dose=cell.dose) != cell]
            if tell is not None:
                tell(plan.done[-1])
            if len(plan.done) >= most:
                plan.ended = f"the budget of {count(most, 'trial')} was spent"
            elif most_s is not None and system.monotonic() - began_s >= most_s:
                plan.ended = f"the budget of {span(most_s)} was spent"
        if plan.done:
            rulings.end(RulingState.FAILED if any(each.tried.failed for each in plan.done) else RulingState.PASSED, ())


def _facts(tried: Tried, cell: Cell, calm: Tried, trial: Trial) -> Facts:
    return Facts(
        "", tried.outcome, not tried.void, tried.failed, bool(tried.harm), (cell,),
        frozenset(each.site.target for each in tried.made), _failed(tried), _failed(calm),
        any(event.drew for _, event in trial.history.of(PromptFinished)), tried.seconds, tokens=tried.tokens,
    )  # fmt: skip


def _failed(tried: Tried) -> frozenset[str]:
    return frozenset(each.site.target for each in tried.made if each.error)


def _entries(
    evidence: Evidence, found: Proposed, limits: Mapping[str, Any], write: Callable[[Injection, Mapping[str, Any]], str]
) -> Iterator[PlanEntry]:
    """The proposals, filled in. `limits`: those that are stated. `write`: makes a command of an injection with its
    limits."""
    for one in found.proposals:
        filled = enhance(replace(Design.of(one.cell), limits=limits), evidence, chances=found.chances)
        yield PlanEntry(one, filled, write(one.cell.injection, filled.design.within.to_json()))


def _left_out(found: Proposed) -> list[str]:
    return [f"{cell} (risk {risk.value:.2f})" for cell, risk in found.too_risky]


def _command(scenario: Scenario, changed: Sequence[str], injection: Injection, limits: Mapping[str, Any]) -> str:
    if scenario.folder is None:
        return _python(injection, limits)
    own = getattr(scenario.spec, "limits", None) or ()
    given = {"faults": [arguments_of(injection)]}
    if limits:  # beside those of the file, in whose place they stand
        given["limits"] = [*([own] if isinstance(own, Mapping) else own), dict(limits)]
    words = ["chaoslab", "test", scenario.file, "--trial", "1"]
    words += [word for each in changed for word in ("--set", each)]
    words += [word for key, value in given.items() for word in ("--set", f"{key}={_json(value)}")]
    return shlex.join([*words, *(["-k", scenario.variant] if scenario.variant else [])])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python(injection: Injection, limits: Mapping[str, Any]) -> str:
    given = arguments_of(injection)
    fault, target = given.pop("fault"), given.pop("target")
    more = "".join(f", {key}={value!r}" for key, value in given.items())
    return f"faults=[lab.inject({fault!r}, {target!r}{more})]{f', limits={dict(limits)!r}' if limits else ''}"


def prediction_of(store: Memory, scenario: Scenario) -> Prediction:
    """The prediction for a trial of a scenario that meets all its faults. Raises ScenarioError: its agent cannot be
    imported."""
    cells = [
        Cell.of(target, choice.fault, choice.params, kind_of(asdict(injection)))
        for injection in scenario.faults for choice in injection.choices for target in injection.targets
    ]  # fmt: skip
    named = re.split(r"[:.]", str(scenario.spec.agent or scenario.spec.fresh))[-1]
    return Chances(store.evidence(store.agent_of(scenario.name) or named)).predict(cells)


def predict_run(store: Memory, folder: Path) -> RunPrediction:
    """The predictions for the trials of a run that there is, by what each met, from all other runs, beside what came.
    Raises LookupError: the folder holds no run of this lab; one line."""
    run = read(folder)
    chances = Chances(store.evidence(run.subject, revision=run.revision, without=[run.key]))
    judged = [each for each in run.trials if each.judged]
    known = {met: chances.predict(met) for met in {each.met for each in judged}}
    told = [(known[each.met], each.bad) for each in judged if not known[each.met].why]
    return RunPrediction(
        len(judged), sum(each.bad for each in judged), [prediction.bad for prediction, _ in told],
        [brier(prediction.bad, bad) for prediction, bad in told],
        [brier(prediction.base, bad) for prediction, bad in told],
        next((each.why for each in known.values() if each.why), "no trial of it can be judged"),
    )  # fmt: skip
