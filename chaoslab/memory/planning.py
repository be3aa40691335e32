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
from chaoslab.base.durations import format_long_duration
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.core.events import CallStarted, Effect, FaultHeldBack, PromptFinished, PromptStarted
from chaoslab.core.fault import load_fault
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Injection
from chaoslab.execution.journal import SearchJournal
from chaoslab.execution.trial import Trial
from chaoslab.memory._reading import Facts, build_revision_name, make_experiment, read_run
from chaoslab.memory.plans import PlanEntry, ProposedPlan, RunPrediction, RunProposal
from chaoslab.memory.store import FILE, Memory
from chaoslab.memory.store import memory as opened_memory
from chaoslab.record import provenance
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.reports.page import format_count
from chaoslab.scenarios.builder import ScenarioBuilder, injection_arguments, load_scenario
from chaoslab.scenarios.exploring import ScenarioSearch, explain_unproven_search, open_scenario_search
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.planning.cells import KINDS, Cell, classify_once_or_always, load_fault_class
from chaoslab.search.planning.chances import Chances, Prediction, brier_score
from chaoslab.search.planning.design import Design, fill_missing_fields
from chaoslab.search.planning.evidence import Evidence, TargetKnowledge
from chaoslab.search.planning.proposals import Proposed, propose_experiments
from chaoslab.search.variation import TriedVariation, Variation

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

    def propose_cells(self, evidence: Evidence, cells: Sequence[Cell], n: int, round_: int = 0) -> Proposed:
        candidates = [cell for cell in cells if not self.tries or cell.fault in self.tries]
        known_targets = sorted({cell.target for cell in cells})
        for name in (*self.targets, *self.critical) if not round_ else ():
            if name not in known_targets:
                hint = suggest_name(name, known_targets) if known_targets else "none is known"
                raise LookupError(f"{evidence.subject} has no target {repr_one_line(name)}: {hint}")
        if self.targets:
            candidates = [cell for cell in candidates if cell.target in self.targets]
        return propose_experiments(
            evidence,
            candidates,
            n=n,
            seed=self.seed,
            risk=self.risk,
            share=self.share,
            stated=self.critical,
            costs=_estimate_trial_costs(evidence, candidates),
            round_=round_,
        )


def parse_budget(budget: int | str | None) -> tuple[int, float | None]:
    """The most trials and the most seconds of a budget, as in 200 or "10m". Raises ValueError: it is neither; one
    line."""
    text = str(TRIALS if budget is None else budget).strip()
    try:
        if text.isdecimal():
            return parsers.make_integer_parser(1, 1_000_000)(text), None
        return 1_000_000, parsers.parse_seconds(str(parsers.parse_duration(text)))
    except ValueError:
        raise ValueError(
            f"the budget is {repr_one_line(budget)}: it should be trials, as in 200, or a time, as in 10m"
        ) from None


def plan(
    memory: Memory | str | Path,
    scenario: Scenario | ScenarioBuilder | str | Path | None = None,
    *,
    subject: str = "",
    targets: Sequence[str] = (),
    tries: Sequence[str] = (),
    budget: int | str | None = None,
    n: int = N,
    risk: float = 1.0,
    seed: int = 0,
    share: float = 1.0,
    critical: Mapping[str, float] | None = None,
    run: bool = False,
    logs: str | Path | None = None,
    changed: Sequence[str] = (),
    tell: Callable[[RunProposal], object] | None = None,
) -> ProposedPlan:
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
    share_value = Limits.build({"share": share}).share
    question = PlanQuestion(
        tuple(targets), tuple(tries), n, _parse_share("risk", risk), seed, share_value, critical or {}
    )
    for name, value in question.critical.items():
        _parse_share(f"critical of {name}", value)
    limits = parse_budget(budget)
    if isinstance(memory, Memory):
        store = memory
    elif scenario is None or Path(memory).suffix == ".db" or (Path(memory) / FILE).exists():
        store = opened_memory(memory)
    else:
        store = Memory(Path(memory) / FILE, make=True)
    if scenario is None:
        if run:
            raise ValueError("run needs a scenario: name its file")
        return _plan_from_memory(store, subject, question)
    loaded, logs_folder = _load_single_scenario(scenario, changed), Path(logs or store.path.parent)
    return _plan_scenario(store, loaded, question, limits if run else None, logs_folder, changed, tell)


def _parse_share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {repr_one_line(value)}: it should be a number from 0 to 1, or as in 10%")
    return float(value)


def _load_single_scenario(source: Scenario | ScenarioBuilder | str | Path, changed: Sequence[str]) -> Scenario:
    if isinstance(source, Scenario):
        return source
    scenarios = (source if isinstance(source, ScenarioBuilder) else load_scenario(source)).check(changed=changed)
    if len(scenarios) != 1:
        raise LookupError(
            f"these are {len(scenarios)} scenarios ({', '.join(scenario.name for scenario in scenarios)}): plan for one"
        )
    return scenarios[0]


def _plan_from_memory(store: Memory, subject: str, question: PlanQuestion) -> ProposedPlan:
    known_subjects = store.list_agents()
    if not subject and len(known_subjects) == 1:
        (subject,) = known_subjects
    if agent_name := store.find_agent(subject):
        subject = agent_name
    else:
        known_text = f"known are {', '.join(known_subjects[:8])}" if known_subjects else "it knows none: add runs to it"
        wanted_text = (
            f"no agent {repr_one_line(subject)}" if subject else "several agents: name one, or a scenario's file"
        )
        raise LookupError(f"{store.path} knows {wanted_text if known_subjects else 'no agent'}; {known_text}")
    evidence = store.collect_evidence(subject)
    proposed = question.propose_cells(evidence, [*_list_cells_of_known_targets(evidence)], question.n)
    limits = {"share": question.share} if question.share < 1 else {}
    return ProposedPlan(
        subject,
        evidence,
        [*_build_proposals(evidence, proposed, limits, _render_python_arguments)],
        _describe_risky_cells(proposed),
    )


def _list_cells_of_known_targets(evidence: Evidence) -> Iterator[Cell]:
    """The faults that were tried anywhere and are installed here, of each kind, at each known target."""
    faults = [entry for entry in sorted(evidence.faults) if load_fault_class(entry) is not None]
    for target in sorted(evidence.targets):
        for fault in faults:
            for kind in KINDS:
                yield Cell.build(target, fault, {}, kind)
    tried_cells = {entry.cell for entry in evidence.rows if entry.cell is not None}
    yield from sorted((cell for cell in tried_cells if cell.params and cell.fault in faults), key=str)


def _estimate_trial_costs(evidence: Evidence, cells: Sequence[Cell]) -> dict[Cell, float]:
    """The seconds of a trial, in worlds where time passes; nothing where none does."""
    sums: dict[str, tuple[int, float]] = {}
    for row in evidence.rows:
        if row.world in REAL_TIME:
            for name in {"", row.cell.target if row.cell is not None else ""}:
                timed, seconds = sums.get(name, (0, 0.0))
                sums[name] = timed + row.timed, seconds + row.seconds
    mean = {name: seconds / timed for name, (timed, seconds) in sums.items() if timed and seconds}
    return {cell: mean.get(cell.target, mean[""]) for cell in cells} if "" in mean else {}


def _plan_scenario(
    store: Memory,
    scenario: Scenario,
    question: PlanQuestion,
    budget: tuple[int, float | None] | None,
    logs: Path,
    changed: Sequence[str],
    tell: Callable[[RunProposal], object] | None,
) -> ProposedPlan:
    with open_scenario_search(scenario) as search:
        ((baseline, trial),) = search.session.assess_variations([Variation()], "calm")
        started = search.session.subject.run.make_run_started_event(0)
        evidence = store.collect_evidence(
            started.model or scenario.name,
            revision=build_revision_name(
                (provenance.read_git_commit(), provenance.digest_uncommitted_changes()), started
            ),
        )
        # notes what the trial without faults calls and changes, for targets of which the memory knows nothing
        undoes = {
            effect_name
            for _, event in trial.history.find_events(PromptStarted)
            for effect_name in (event.undoes or {}).values()
        }
        effects = [(event.target, event.effect in undoes) for _, event in trial.history.find_events(Effect)]
        for target in dict.fromkeys(event.target for _, event in trial.history.find_events(CallStarted)):
            undone_flags = [undone for name, undone in effects if name == target]
            evidence.targets.setdefault(target, TargetKnowledge(1, 1, len(undone_flags), sum(undone_flags)))
        plan, remaining = (
            ProposedPlan(evidence.subject, evidence),
            [*_list_scenario_cells(search, baseline, question.tries)],
        )
        if budget is not None:
            _run_plan(plan, search, scenario, question, remaining, budget, logs, tell, baseline)
        proposed = question.propose_cells(evidence, remaining, question.n, len(plan.done))
        write = partial(_render_test_command, scenario, changed)
        # The share is stated, all of it too: in virtual time no traffic is real, and what is spared teaches nothing.
        plan.entries = [*_build_proposals(evidence, proposed, {"share": question.share}, write)]
        plan.left_out = _describe_risky_cells(proposed)
    if plan.folder is not None:
        store.add([plan.folder])
    return plan


def _list_scenario_cells(search: ScenarioSearch, baseline: TriedVariation, tries: Sequence[str]) -> Iterator[Cell]:
    """The cells of a scenario: the faults that apply at what its agent calls, of each kind."""
    for name in tries:
        load_fault(name)
    probes, _ = search.session.find_applicable_probes(tries)
    for target in dict.fromkeys(site.target for site in baseline.attempt_sites):
        for probe in probes.get(target, ()):
            for kind in KINDS:
                yield Cell.build(target, probe.fault, dict(probe.params), kind)


def _run_plan(
    plan: ProposedPlan,
    search: ScenarioSearch,
    scenario: Scenario,
    question: PlanQuestion,
    remaining: list[Cell],
    budget: tuple[int, float | None],
    logs: Path,
    tell: Callable[[RunProposal], object] | None,
    baseline: TriedVariation,
) -> None:
    """Runs the best experiment, learns from it, and again, until the budget is spent. What is done leaves
    `remaining`."""
    (trial_max, most_s), began_s = budget, system.monotonic()
    with SearchJournal(search.session.subject, logs, None) as journal:
        assert journal.folder is not None  # it has logs
        plan.folder = journal.folder
        rulings = RulingsFile(journal.folder, scenario.name, (), trial_max)
        while not plan.ended:
            interrupts.check_interrupt()
            if lever_reason := levers.describe_pulled_lever():
                plan.ended = lever_reason
                break
            proposed = question.propose_cells(plan.evidence, remaining, 1, len(plan.done))
            if not proposed.proposals:
                plan.ended = "nothing more is left to try" + (" under this risk" if proposed.too_risky else "")
                break
            # Without a command: it is run here and now.
            (entry,) = _build_proposals(plan.evidence, proposed, {"share": question.share}, lambda *_: "")
            cell = entry.proposal.cell
            within = (entry.design.run_limits,)
            search.session.number = len(plan.done)  # each is a trial of its own, by the dice of its share too
            ((tried, trial),) = search.session.assess_variations([Variation((cell.injection,))], "plan", within)
            hold_limit = (
                next((event.limit for _, event in trial.history.find_events(FaultHeldBack)), "")
                if not tried.met
                else ""
            )
            state = (
                RulingState.FAILED
                if tried.failed
                else RulingState.INVALID
                if tried.is_inconclusive
                else RulingState.PASSED
            )
            rulings.add_ruling(
                journal.add_trial(tried, trial), TrialRuling(state, (tried.why,) if tried.failed else ())
            )
            void = tried.is_inconclusive or not tried.met
            plan.done.append(RunProposal(cell, tried, entry.proposal.prediction, void, hold_limit))
            # Held back by a limit, it taught nothing of the agent.
            if not hold_limit:
                facts = replace(_make_trial_facts(tried, cell, baseline, trial), judged=not void)
                plan.evidence.add_row(make_experiment(plan.subject, cell, [facts], revision=plan.evidence.revision))
            dose_range = plan.evidence.get_dose_range(cell)
            # A cell with a dose stays until its edge is known: another dose of it is the next question.
            if cell.dose is None or void or dose_range.next_dose in (None, cell.dose):
                remaining[:] = [entry_left for entry_left in remaining if replace(entry_left, dose=cell.dose) != cell]
            if tell is not None:
                tell(plan.done[-1])
            if len(plan.done) >= trial_max:
                plan.ended = f"the budget of {format_count(trial_max, 'trial')} was spent"
            elif most_s is not None and system.monotonic() - began_s >= most_s:
                plan.ended = f"the budget of {format_long_duration(most_s)} was spent"
        if plan.done:
            trials = [proposal.tried for proposal in plan.done]
            failed, unproven_reason = any(tried.failed for tried in trials), explain_unproven_search(trials)
            rulings.write_final_ruling(
                RulingState.FAILED if failed else RulingState.INVALID if unproven_reason else RulingState.PASSED,
                [] if failed or not unproven_reason else [unproven_reason],
            )


def _make_trial_facts(tried: TriedVariation, cell: Cell, baseline: TriedVariation, trial: Trial) -> Facts:
    return Facts(
        "",
        tried.outcome,
        not tried.is_inconclusive,
        tried.failed,
        bool(tried.harm),
        (cell,),
        frozenset(call.site.target for call in tried.made),
        _list_failed_targets(tried),
        _list_failed_targets(baseline),
        any(event.drew for _, event in trial.history.find_events(PromptFinished)),
        tried.seconds,
        tokens=tried.tokens,
    )


def _list_failed_targets(tried: TriedVariation) -> frozenset[str]:
    return frozenset(call.site.target for call in tried.made if call.error)


def _build_proposals(
    evidence: Evidence,
    proposed: Proposed,
    limits: Mapping[str, Any],
    write: Callable[[Injection, Mapping[str, Any]], str],
) -> Iterator[PlanEntry]:
    """The proposals, filled in. `limits`: those that are stated. `write`: makes a command of an injection with its
    limits."""
    for proposal in proposed.proposals:
        filled = fill_missing_fields(
            replace(Design.build_from_fields(proposal.cell), limits=limits), evidence, chances=proposed.chances
        )
        yield PlanEntry(proposal, filled, write(proposal.cell.injection, filled.design.run_limits.to_json()))


def _describe_risky_cells(proposed: Proposed) -> list[str]:
    return [f"{cell} (risk {risk.value:.2f})" for cell, risk in proposed.too_risky]


def _render_test_command(
    scenario: Scenario, changed: Sequence[str], injection: Injection, limits: Mapping[str, Any]
) -> str:
    if scenario.folder is None:
        return _render_python_arguments(injection, limits)
    file_limits = getattr(scenario.spec, "limits", None) or ()
    values = {"faults": [injection_arguments(injection)]}
    if limits:  # beside those of the file, in whose place they stand
        values["limits"] = [*([file_limits] if isinstance(file_limits, Mapping) else file_limits), dict(limits)]
    arguments = ["chaoslab", "test", scenario.file, "--trial", "1"]
    arguments += [word for change in changed for word in ("--set", change)]
    arguments += [word for key, value in values.items() for word in ("--set", f"{key}={_render_json(value)}")]
    return shlex.join([*arguments, *(["-k", scenario.variant] if scenario.variant else [])])


def _render_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _render_python_arguments(injection: Injection, limits: Mapping[str, Any]) -> str:
    arguments = injection_arguments(injection)
    fault, target = arguments.pop("fault"), arguments.pop("target")
    keywords = "".join(f", {key}={value!r}" for key, value in arguments.items())
    return f"faults=[lab.inject({fault!r}, {target!r}{keywords})]{f', limits={dict(limits)!r}' if limits else ''}"


def predict_scenario(store: Memory, scenario: Scenario) -> Prediction:
    """The prediction for a trial of a scenario that meets all its faults. Raises ScenarioError: its agent cannot be
    imported."""
    cells = [
        Cell.build(target, choice.fault, choice.params, classify_once_or_always(asdict(injection)))
        for injection in scenario.faults for choice in injection.choices for target in injection.targets
    ]  # fmt: skip
    named = re.split(r"[:.]", str(scenario.spec.agent or scenario.spec.fresh))[-1]
    return Chances(store.collect_evidence(store.find_agent(scenario.name) or named)).predict(cells)


def predict_run(store: Memory, folder: Path) -> RunPrediction:
    """The predictions for the trials of a run that there is, by what each met, from all other runs, beside what came.
    Raises LookupError: the folder holds no run of this lab; one line."""
    run = read_run(folder)
    # The run's own rows are left out, else it would foretell itself.
    chances = Chances(store.collect_evidence(run.subject, revision=run.revision, without=[run.key]))
    judged = [item for item in run.trials if item.judged]
    predictions = {cells: chances.predict(cells) for cells in {item.met for item in judged}}
    pairs = [(predictions[item.met], item.bad) for item in judged if not predictions[item.met].why]
    return RunPrediction(
        len(judged),
        sum(item.bad for item in judged),
        [prediction.bad for prediction, _ in pairs],
        [brier_score(prediction.bad, bad) for prediction, bad in pairs],
        [brier_score(prediction.base, bad) for prediction, bad in pairs],
        next((item.why for item in predictions.values() if item.why), "no trial of it can be judged"),
    )
