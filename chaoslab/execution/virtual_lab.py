"""The whole lab in one process: its services, its model and its agent, made once and then used for any number of trials.

Each trial has a world of its own, and nothing of an earlier one: clock, network, lanes, chance, what the services remember.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from chaoslab.agent import assembly
from chaoslab.agent import config as configuration
from chaoslab.agent.prompts import Prompt
from chaoslab.agent.session import Progress, Session
from chaoslab.agent.tools import Toolbox
from chaoslab.analysis.answers import Twin
from chaoslab.analysis.judge import JUDGED, Outcome, judge
from chaoslab.base.clock import system
from chaoslab.base.identity import Trial, nth
from chaoslab.config.settings import Settings, keep_tracing_off
from chaoslab.config.topology import MODEL, SERVICES, Ports
from chaoslab.core.events import CallStarted, FaultWitnessed, PromptFinished, Replied
from chaoslab.core.plan import Plan
from chaoslab.core.service_spec import Service
from chaoslab.flask_tools.app import Desk, app_of
from chaoslab.flask_tools.ledger import OneRun
from chaoslab.model import endpoint
from chaoslab.model.prices import cost_usd
from chaoslab.record.history import History
from chaoslab.record.lines import parse_line
from chaoslab.record.log import Kept, Shelf, lines_of
from chaoslab.record.runs import Run
from chaoslab.seams.function import CALLS_MAX
from chaoslab.seams.http import HttpSeam
from chaoslab.worlds.virtual import context, serving
from chaoslab.worlds.virtual.in_process_transport import Ways
from chaoslab.worlds.virtual.lanes import Lanes
from chaoslab.worlds.virtual.machine import STARTS_S, Hung
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.recorded_targets import Hearing, Recording
from chaoslab.worlds.virtual.world import World

HOST = "127.0.0.1"
SWEPT, SWEPT_WELL = 5, 100
"""Trials between two collections of garbage: a trial leaves cycles, and looking for them at a time of its own would cost more. Most look
only at what is new, which spares them all that the lab remembers."""


@dataclass(frozen=True)
class Unit:
    """One trial to be done: its number in the run, from 0, and what the run has spent before it."""

    number: int
    spent_usd: float = 0.0


@dataclass(frozen=True)
class Done:
    """What came of a trial. `kept`: its events, in the order of their happening."""

    number: int
    seconds: float
    ok: bool
    outcome: Outcome
    witnessed: int
    spent_usd: float
    kept: list[Kept]


@dataclass(frozen=True)
class Order:
    """A run of the lab as a value, which any process can carry out. `prompts` are data, as in the file; `recorded`: what a model or a
    service that is not the lab's own said in each trial, by the trial's key."""

    run: str
    now: str
    settings: Settings
    plan: Plan
    prompts: Sequence[Any]
    recorded: Mapping[str, Sequence[Replied]] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    """Whose words are taken from there."""
    twins: bool = True
    """Whether each answer is compared with that of the same prompt without faults."""
    calls_max: int = CALLS_MAX

    def named(self, unit: Unit) -> str:
        """What its logs call that trial."""
        return nth(self.run, unit.number, len(self.prompts)).key

    @contextmanager
    def opened(self) -> Iterator[Callable[[Unit], Done]]:
        """What does a unit of it, in this process."""
        lab = Lab(self)
        twins = Twins(Lab(replace(self, plan=Plan(self.plan.seed)))) if self.twins and not self.foreign else None
        with lab.ready():
            yield partial(lab.trial, twins=twins)


class Lab:
    """The lab of one process."""

    def __init__(self, order: Order) -> None:
        keep_tracing_off()
        self._order, self._kept = order, list[Kept]()
        chosen, self._ports = order.settings, Ports()
        self._now = datetime.fromisoformat(order.now)
        self._run = Run(order.run, Path(), STARTS_S, order.now)
        self._logs = {name: self._shelf(name) for name in ("agent", "manager", *SERVICES)}
        self._recording = Recording()
        self._logs["info"] = Hearing(self._recording, self._kept, origin=STARTS_S)
        desks = {name: Desk.load(name, chosen) for name in SERVICES}
        self._apps: dict[str, serving.Wsgi] = {
            name: self._recording.app(name)
            if name in order.foreign
            else app_of(desk, OneRun(self._run, self._logs[name]))
            for name, desk in desks.items()
        }
        self._apps[MODEL] = self._recording.app(MODEL) if MODEL in order.foreign else endpoint.create_app()
        self.session = self._assembled({name: desk.service for name, desk in desks.items()})
        self._done = 0

    @contextmanager
    def ready(self) -> Iterator[None]:
        """For trials: with stand-ins for all that is real, and garbage collected when that is cheap."""
        collecting = gc.isenabled()
        with Patches():
            gc.collect()
            gc.freeze()
            gc.disable()
            try:
                yield
            finally:
                gc.unfreeze()
                if collecting:
                    gc.enable()

    def _shelf(self, name: str) -> Shelf:
        return Shelf(name, self._kept, origin=STARTS_S)

    def _assembled(self, services: dict[str, Service]) -> Session:
        """The agent's own session, over a seam that each trial gives other lanes."""
        import httpx

        order, chosen = self._order, self._order.settings
        config = configuration.load().model_copy(update={"services": {}})
        self._prompts = [Prompt.model_validate(prompt) for prompt in order.prompts]
        targets = assembly.targets(services, config, self._ports, chosen)
        seam = self.seam = HttpSeam(
            plan=order.plan,
            targets=targets,
            lanes=cast(Any, None),
            log=self._logs["info"],
            clock=system,
            price=cost_usd,
            on_call=lambda what: context.world().machine.steps.calls.step(f"calls {what}", "calls"),
            ways=Ways(),
        )
        client = httpx.AsyncClient(transport=seam, timeout=None)
        toolbox = Toolbox(client, targets, services, config, chosen, self._logs["info"], system)
        graph = assembly.graph(chosen, targets[MODEL].url, client, toolbox)
        return Session(
            chosen, config, self._run, seam, toolbox, graph, self._logs["info"], self._logs["agent"], system,
            Progress(len(self._prompts)),
        )  # fmt: skip

    def trial(self, unit: Unit, *, twins: Twins | None = None) -> Done:
        """One prompt in a world of its own. `twins`: whose answers to compare with."""
        order, seam, session = self._order, self.seam, self.session
        trial = nth(order.run, unit.number, len(self._prompts))
        prompt = self._prompts[trial.prompt - 1]
        twin = None if twins is None else twins.of(trial.prompt)
        deadline_s, calls_max = order.settings.deadline_s, order.calls_max
        world = World(order.settings.seed, trial.key, now=self._now, deadline_s=deadline_s, calls_max=calls_max)
        self._recording.begin(order.recorded.get(trial.key, ()))
        for name, app in self._apps.items():
            for port in (self._ports.service(name), self._ports.proxy(name)):
                serving.serve(world.network, HOST, port, app)
        lanes = Lanes(
            plan=order.plan, network=world.network, log=self._logs["manager"], clock=system,
            targets={name: (HOST, self._ports.service(name)) for name in self._apps},
        )  # fmt: skip
        seam.renew(lanes, spent_usd=unit.spent_usd)
        succeeded = session.progress.succeeded

        async def main() -> None:
            await session.trial(trial, prompt, twin=twin)
            await seam.aclose()

        try:
            world.run_async(main)
        except Hung as error:
            with world.entered():
                session.hung(trial, prompt, str(error), began_s=STARTS_S)
        seconds = round(world.machine.now - STARTS_S, 6)
        kept = self._kept[:]
        self._kept.clear()
        self._done += 1
        if self._done % SWEPT == 0:
            gc.collect(0 if self._done % SWEPT_WELL else 2)
        witnessed = sum(entry.is_a(FaultWitnessed) for entry in kept)
        ok, outcome = session.progress.succeeded > succeeded, self._judged(trial, kept)
        return Done(unit.number, seconds, ok, outcome, witnessed, seam.cost_usd, kept)

    def _judged(self, trial: Trial, kept: Sequence[Kept]) -> Outcome:
        """The outcome, by what the log will say of the trial."""
        lines = lines_of(
            (entry for entry in kept if any(map(entry.is_a, JUDGED))),
            run=trial.run,
            began=self._now,
            after_s=0.0,
            seqs={},
        )
        history = History(record for line in lines if (record := parse_line(line)) is not None)
        return judge(history, trial.key).outcome


class Twins:
    """The prompts of a lab without faults: what a process has learnt once, it keeps. They depend on nothing but the order, so every process
    learns the same."""

    def __init__(self, calm: Lab) -> None:
        self._calm = calm
        self._known: dict[int, Twin | None] = {}

    def of(self, prompt: int) -> Twin | None:
        """Of the prompt of that number, counted from 1; None where it gives no answer without faults too."""
        if prompt not in self._known:
            done = self._calm.trial(Unit(prompt - 1))
            ended = next((entry for entry in done.kept if entry.is_a(PromptFinished)), None)
            calls = sum(entry.is_a(CallStarted) for entry in done.kept)
            answer = str(ended.fields["answer"]) if ended is not None and done.ok else None
            self._known[prompt] = None if answer is None else Twin(answer, done.seconds, calls)
        return self._known[prompt]


def one_by_one(plan: Plan) -> bool:
    """Whether a trial depends on what those before it spent, so that they cannot be done side by side."""
    return any(choice.params.get("cost_usd") for i in plan.injections for choice in i.choices)
