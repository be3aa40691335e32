"""The whole lab in one process: its services, its model and its agent, made once and used for any number of trials.
Each trial has its own clock, network, lanes, chance and service memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from chaoslab.agent import assembly
from chaoslab.agent import config as configuration
from chaoslab.agent.prompts import Prompt, prompts_to_json
from chaoslab.agent.session import Session, SessionProgress
from chaoslab.agent.tools import Toolbox
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.ledger import make_expected_effect
from chaoslab.analysis.verdict.seen import JUDGED, Twin
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId, make_nth_trial_id
from chaoslab.config.settings import Settings, turn_tracing_off
from chaoslab.config.topology import MODEL, SERVICES, Ports
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.execution.drawn import DrawnPlan
from chaoslab.execution.spec import TrialSpec
from chaoslab.flask_tools.app import make_app
from chaoslab.flask_tools.ledger import Ledger, SingleRunStore
from chaoslab.flask_tools.service_module import ServiceModule
from chaoslab.model import endpoint
from chaoslab.model.prices import compute_cost_usd
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.log import BufferedEvent, MemoryLog, mask_events
from chaoslab.record.runs import Run
from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.services.app import Wsgi
from chaoslab.worlds.virtual.machine import context
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Hung, Machine
from chaoslab.worlds.virtual.network import serving
from chaoslab.worlds.virtual.network.lanes import VirtualLanes
from chaoslab.worlds.virtual.network.network import Network
from chaoslab.worlds.virtual.network.recorded_targets import AttemptNotingLog, RecordedSockets, Recording
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World

endpoint.load_reading_rules()  # once, before this process is copied for its trials
HOST = "127.0.0.1"
_JUDGED = frozenset(JUDGED)
_PLAIN = _JUDGED - {events.Effect, events.EndState, events.PromptStarted}
"""The judged events that hold no values of services or prompts: a line gives them back as they are."""


@dataclass
class LabResult:
    """The result of a trial of the lab's agent; see `TrialResult`."""

    number: int
    seconds: float
    ok: bool
    outcome: Outcome
    witnessed: int
    run_spent_usd: float
    buffered_events: list[BufferedEvent]
    is_story_requested: bool = False
    off: tuple[str, ...] = ()
    """The injections of the plan that somebody had switched off."""
    drew: bool = False
    """A program drew chance of its own."""


@dataclass(frozen=True)
class LabSpec:
    """A run of the lab's agent as a value that any process can carry out. `prompts` are data, as in the file.
    `recorded`: the replies of foreign models and services, by the trial's key."""

    name: str
    now: str
    settings: Settings
    plan: Plan
    prompts: Sequence[Any]
    recorded: Mapping[str, Sequence[events.Replied]] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    """The targets whose replies are taken from `recorded`."""
    twins: bool = True
    """True if each answer is compared with that of the same prompt without faults."""
    calls_max: int = CALLS_MAX
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """The values that were drawn for the only trial, by name."""

    @cached_property
    def validated_prompts(self) -> list[Prompt]:
        """The prompts."""
        return [Prompt.model_validate(prompt) for prompt in self.prompts]

    def with_drawn_plan(self, drawn: DrawnPlan) -> LabSpec:
        """The same run with the plan of one trial."""
        run = replace(self, plan=drawn.apply_to_plan(self.plan), drawn=drawn.values)
        if not drawn.waits:
            return run
        (prompt,) = self.validated_prompts
        assert prompt.conversation is not None
        return replace(
            run, prompts=prompts_to_json([prompt.with_conversation(prompt.conversation.with_waits(drawn.waits))])
        )

    def get_work_item_name(self, spec: TrialSpec) -> str:
        """The trial's key, as in the logs."""
        return make_nth_trial_id(self.name, spec.number, len(self.prompts)).key

    @property
    def is_sequential(self) -> bool:
        """True if a budget in dollars counts over the whole run."""
        return any(choice.params.get("cost_usd") for i in self.plan.injections for choice in i.choices)

    def make_run_started_event(self, trials: int) -> events.RunStarted:
        """The first event of the run."""
        return assembly.make_run_start_event(self.settings, self.plan, self.validated_prompts, trials, self.now)

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], LabResult]]:
        """A context that gives a function which runs one of the trials in this process."""
        with Lab(self).install_fakes() as lab:
            yield partial(lab.run_trial, twins=self._make_twin_cache(lab))

    @contextmanager
    def open_varied_runner(self) -> Iterator[Callable[[DrawnPlan, TrialSpec], LabResult]]:
        """The same for trials that each have a plan of their own, in one lab. They may have one number, so the services
        forget each of them."""
        with Lab(self).install_fakes() as lab:
            twins = self._make_twin_cache(lab)

            def run_trial(drawn: DrawnPlan, spec: TrialSpec) -> LabResult:
                with lab.isolate_trials():
                    return lab.run_trial(spec, self.with_drawn_plan(drawn), twins=twins)

            yield run_trial

    def _make_twin_cache(self, lab: Lab) -> TwinCache | None:
        return TwinCache(lab) if self.twins and not self.foreign else None


class Lab:
    """The lab of one process."""

    def __init__(self, run: LabSpec) -> None:
        turn_tracing_off()
        self._spec, self._kept, self._events = run, list[BufferedEvent](), list[events.Event]()
        run_settings, self._ports = run.settings, Ports()
        self._now = datetime.fromisoformat(run.now)
        self._run = Run(run.name, Path(), STARTS_S, run.now)
        self._logs = {name: self._make_log(name) for name in ("agent", "info", "manager", *SERVICES)}
        self._recording = Recording()
        if run.foreign:
            self._logs["info"] = AttemptNotingLog(self._recording, self._kept, origin=STARTS_S, events=self._events)
        modules = {name: ServiceModule.load(name) for name in SERVICES}
        own_apps = {
            name: make_app(module, SingleRunStore(self._run, self._logs[name])) for name, module in modules.items()
        }
        self._ledgers: list[Ledger] = [app.extensions["ledger"] for app in own_apps.values()]
        all_apps: dict[str, Wsgi] = {**own_apps, MODEL: endpoint.create_app(token_s=run_settings.model_token_ms / 1000)}
        self._apps = {
            name: self._recording.build_app(name) if name in run.foreign else app for name, app in all_apps.items()
        }
        self.session = self._assemble_session({name: module.service for name, module in modules.items()})
        self._places = {name: (HOST, self._ports.get_service_port(name)) for name in self._apps}
        # Services listen once, on a network of no trial; each trial's network takes over its listeners.
        self._served = Network(Machine(deadline_s=0.0))
        for name, app in self._apps.items():
            for port in (self._ports.get_service_port(name), self._ports.get_proxy_port(name)):
                serving.serve_application(self._served, HOST, port, app)

    @contextmanager
    def install_fakes(self) -> Iterator[Lab]:
        """A context with fakes for all that is real."""
        with Patches():
            yield self

    def _make_log(self, name: str) -> MemoryLog:
        return MemoryLog(name, self._kept, origin=STARTS_S, events=self._events)

    def _assemble_session(self, services: dict[str, ServiceSpec]) -> Session:
        """The agent's session, over a seam that gets new lanes in each trial."""
        import httpx

        run, chosen = self._spec, self._spec.settings
        config = configuration.load_config().model_copy(update={"services": {}})
        targets = assembly.make_targets(services, config, self._ports, chosen)
        seam = self.seam = HttpSeam(
            plan=run.plan,
            targets=targets,
            # Each trial brings lanes of its own (`renew`).
            lanes=cast(Any, None),
            log=self._logs["info"],
            clock=system,
            price=compute_cost_usd,
            on_call=lambda call_name: context.get_world().machine.steps.calls.count_step(f"calls {call_name}", "calls"),
            ways=RecordedSockets(self._recording) if run.foreign else None,
        )
        client = httpx.AsyncClient(transport=seam, timeout=None)
        # Not httpx's own 5 s: the seam keeps the deadline of each target.
        toolbox = Toolbox(client, targets, services, config, chosen, self._logs["info"], system)
        graph = assembly.build_agent(chosen, targets[MODEL].url, client, toolbox)
        return Session(
            chosen,
            config,
            self._run,
            seam,
            toolbox,
            graph,
            self._logs["info"],
            self._logs["agent"],
            system,
            SessionProgress(len(run.prompts)),
            drew=lambda: context.get_world().has_program_drawn_chance,
        )

    @contextmanager
    def isolate_trials(self) -> Iterator[None]:
        """A context in which the services know of no trial before, and whose trials they forget."""
        with ExitStack() as stack:
            for ledger in self._ledgers:
                stack.enter_context(ledger.isolate_trial())
            yield

    def run_faultless_trial(self, number: int, run: LabSpec | None = None) -> LabResult:
        """Runs the trial with that number, from 0, without faults. The services know of no other, and forget it."""
        run = run or self._spec
        with self.isolate_trials():
            return self._run_trial(replace(run, plan=Plan(run.plan.seed)), TrialSpec(number), None)

    def run_trial(self, spec: TrialSpec, run: LabSpec | None = None, *, twins: TwinCache | None = None) -> LabResult:
        """Runs one prompt in a world of its own. `run`: the lab's own run with other faults, drawn values or prompts;
        None: as it is. `twins`: the answers to compare with."""
        run = run or self._spec
        prompt = make_nth_trial_id(run.name, spec.number, len(run.prompts)).prompt
        return self._run_trial(run, spec, None if twins is None else twins.find_or_run_twin(prompt, run, spec.number))

    def _run_trial(self, run: LabSpec, spec: TrialSpec, twin: Twin | None) -> LabResult:
        seam, session = self.seam, self.session
        trial = make_nth_trial_id(run.name, spec.number, len(run.prompts))
        prompt = run.validated_prompts[trial.prompt - 1]
        switched_off, plan = (
            tuple(i.name for i in run.plan.injections if i.name in spec.off),
            run.plan.with_injections_off(spec.off),
        )
        waits_s = talk.total_wait_s if (talk := prompt.conversation) is not None else 0.0
        deadline_s, calls_max = run.settings.deadline_s + waits_s, run.calls_max
        world = World(run.settings.seed, trial.key, now=self._now, deadline_s=deadline_s, calls_max=calls_max)
        # Cleared and not replaced: the logs write into these very lists.
        self._kept.clear()
        self._events.clear()
        self._recording.load_replies(run.recorded.get(trial.key, ()))
        world.network.copy_listeners(self._served)
        lanes = VirtualLanes(
            plan=plan, network=world.network, log=self._logs["manager"], clock=system, targets=self._places
        )
        seam.plan = plan
        seam.replace_lanes(lanes, spent_usd=spec.spent_usd)
        succeeded = session.progress.succeeded

        async def run_session() -> None:
            if run.drawn:
                self._logs["info"].write(events.ValuesDrawn(values=dict(run.drawn)), trial=trial.key)
            if switched_off:
                self._logs["info"].write(events.FaultsOff(injections=[*switched_off]), trial=trial.key)
            await session.run_trial(trial, prompt, twin=twin)
            await seam.aclose()

        try:
            # As if it had hung here: it did, in a process that was ended.
            if spec.stopped:
                raise Hung(spec.stopped, [])
            world.run_program_async(run_session)
        except Hung as error:
            with world.enter_world():
                session.end_hung_trial(trial, prompt, str(error), began_s=STARTS_S, began=not spec.stopped)
        seconds = round(world.machine.now - STARTS_S, 6)
        masked_events = mask_events(self._kept)
        witnessed = sum(type(event) is events.FaultWitnessed for event in self._events)
        ok, outcome = session.progress.succeeded > succeeded, self._judge_outcome(trial, masked_events, self._events)
        return LabResult(
            spec.number,
            seconds,
            ok,
            outcome,
            witnessed,
            seam.cost_usd,
            masked_events,
            off=switched_off,
            drew=world.has_program_drawn_chance,
        )

    def _judge_outcome(
        self, trial: TrialId, masked_events: Sequence[BufferedEvent], event_list: Sequence[events.Event]
    ) -> Outcome:
        """The outcome, judged by what the log's lines will hold. `event_list`: the events of `masked_events`."""
        records: list[Record | None] = []
        for number, (entry, event) in enumerate(zip(masked_events, event_list, strict=True), 1):
            kind = type(event)
            if kind in _PLAIN:  # the moment of a line, which is made of `t`, decides nothing
                records.append(Record(self._spec.now, entry.t, trial.run, entry.trial, entry.writer, number, event))
            elif kind in _JUDGED:
                records.append(entry.make_record(number, run=trial.run, began=self._now))
        return judge_trial(History(filter(None, records)), trial.key).outcome


def check_prompts(prompts: Sequence[Prompt], file: Path) -> None:
    """Checks the prompts of the file against the lab's own services, as the agent does once services describe
    themselves. Raises SettingError: a prompt states what no service can tell or do."""
    assembly.check_prompts(prompts, file, [ServiceModule.load(name).service for name in SERVICES])


class TwinCache:
    """The results of the prompts without faults, computed once per process. They depend on the run alone, so every
    process computes the same. If that trial draws chance of its own, each trial has a twin of its own."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._known: dict[tuple[int, str], BaselinePrompt] = {}

    def find_or_run_twin(self, prompt_number: int, run: LabSpec, number: int = 0) -> Twin | None:
        """The twin of that prompt of the run, counted from 1; None if it gives no answer even without faults. Of a
        prompt that states nothing it has the effects too. `number`: the trial's, from 0."""
        prompt = run.validated_prompts[prompt_number - 1]
        key = prompt_number, prompt.model_dump_json()  # other waits make another twin
        if key not in self._known:
            baseline = self._run_baseline(prompt_number - 1, run)
            if baseline.twin is not None and not prompt.has_facts_or_effects:
                # Another trial of the prompt: what differs in it depends on the trial, and is no part of a right
                # effect.
                second_effects = (
                    self._run_baseline(prompt_number - 1 + len(run.prompts), run).effects if baseline.effects else []
                )
                baseline = baseline.with_stable_effects(second_effects)
            self._known[key] = baseline
        first = self._known[key]
        if not first.drew or number < len(run.prompts):
            return first.twin
        own_twin = self._run_baseline(number, run)
        return (
            own_twin.with_stable_effects(first.effects).twin
            if own_twin.twin is not None and not prompt.has_facts_or_effects
            else own_twin.twin
        )

    def _run_baseline(self, number: int, run: LabSpec) -> BaselinePrompt:
        """The trial with that number, from 0."""
        result = self._lab.run_faultless_trial(number, run)
        end = next((entry for entry in result.buffered_events if entry.is_of_kind(events.PromptFinished)), None)
        calls = sum(entry.is_of_kind(events.CallStarted) for entry in result.buffered_events)
        effects = [entry.fields for entry in result.buffered_events if entry.is_of_kind(events.Effect)]
        twin = Twin(str(end.fields["answer"]), result.seconds, calls) if end is not None and result.ok else None
        return BaselinePrompt(
            twin, [{"effect": effect["effect"], **effect["content"]} for effect in effects], result.drew
        )


@dataclass(frozen=True)
class BaselinePrompt:
    """A trial of a prompt without faults. `drew`: it drew chance of its own."""

    twin: Twin | None
    effects: list[dict[str, Any]]
    drew: bool

    def with_stable_effects(self, another: Sequence[Mapping[str, Any]]) -> BaselinePrompt:
        """The same whose twin has its effects, without what depends on the trial: what differs in another."""
        assert self.twin is not None
        lasting_list = [make_expected_effect(effect) for effect in drop_unstable_effect_fields(self.effects, another)]
        return replace(self, twin=replace(self.twin, effects=lasting_list))


def drop_unstable_effect_fields(
    effects: Sequence[Mapping[str, Any]], another: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The effects without what depends on the trial, such as a message's time: the fields that differ in another."""
    if [effect["effect"] for effect in effects] != [effect["effect"] for effect in another]:
        return [dict(effect) for effect in effects]
    return [
        {name: value for name, value in left.items() if right.get(name) == value}
        for left, right in zip(effects, another, strict=True)
    ]
