"""Plans as data: which fault may hit which call, with what chance. A hit is a pure function of names.

The dice of an injection are named (seed, trial, injection, target, request, attempt). So taking one injection out
changes no other, and one retry more changes no later request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.core.chain import ActiveFault
from chaoslab.core.context import TrialContext
from chaoslab.core.events import Event, FaultInjected, FaultWitnessed
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.fault import LAYERS as LAYERS
from chaoslab.core.fault import guarded, load, trait


@dataclass(frozen=True)
class Choice:
    """One fault that an injection may choose, with its weight against the others."""

    fault: str
    weight: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Injection:
    """One source of faults for its `targets`. `chance` (0–1) is rolled per attempt. `calls` instead hits the first
    attempts of exactly those requests (counted from 1)."""

    name: str
    choices: tuple[Choice, ...]
    targets: tuple[str, ...]
    chance: float = 1.0
    calls: tuple[int, ...] = ()

    @property
    def layer(self) -> str:
        return load(self.choices[0].fault).layer

    @property
    def conditional(self) -> bool:
        """True if one of its faults decides itself if it acts."""
        return any(trait(load(choice.fault), "conditional") for choice in self.choices)

    def covers(self, call: Call) -> bool:
        return call.target in self.targets

    @property
    def may_hit(self) -> bool:
        """True if there is any call that it could hit."""
        return self.chance > 0 or bool(self.calls)


@dataclass(frozen=True)
class Plan:
    """A seed and its injections."""

    seed: int
    injections: tuple[Injection, ...] = ()

    @cached_property
    def named(self) -> tuple[tuple[Injection, str, int], ...]:
        """Each request to be hit by its number: the injection, the target and the number."""
        return tuple((i, target, request) for i in self.injections for target in i.targets for request in i.calls)

    def on_the_wire(self, *, wire: bool) -> tuple[Injection, ...]:
        """The injections of the wire, or all others, outermost first."""
        return self._by_wire[wire]

    def candidates(self, target: str, *, wire: bool) -> tuple[Injection, ...]:
        """The injections of `on_the_wire` that may hit a call of this target."""
        found = self._candidates.get((target, wire))
        if found is None:
            found = tuple(i for i in self.on_the_wire(wire=wire) if i.may_hit and target in i.targets)
            self._candidates[target, wire] = found
        return found

    @cached_property
    def _candidates(self) -> dict[tuple[str, bool], tuple[Injection, ...]]:
        return {}

    @cached_property
    def _by_wire(self) -> dict[bool, tuple[Injection, ...]]:
        ordered = sorted(self.injections, key=lambda i: LAYERS.index(i.layer))
        return {wire: tuple(i for i in ordered if (i.layer == "wire") is wire) for wire in (True, False)}

    def hit_on_the_wire(self, call: Call) -> tuple[ActiveFault | None, list[str]]:
        """The fault of the wire that hits this call, if any, and the injections whose dice were rolled for it."""
        rolled: list[str] = []
        for injection in self.candidates(call.target, wire=True):
            rolled.append(injection.name)
            if (active := self.roll(injection, call)) is not None:
                return active, rolled
        return None, rolled

    def hits(self, injection: Injection, trial: str, target: str, request: int, attempt: int) -> bool:
        """Tells if the injection hits this attempt."""
        if injection.calls:
            return request in injection.calls and attempt == 1
        return Dice(self.seed, trial, injection.name, target, request, attempt, "hit").hits(injection.chance)

    def fault_for(self, injection: Injection, call: Call) -> ActiveFault:
        """The fault with which an injection hits this call, all its chances drawn."""
        dice = Dice(self.seed, call.trial, injection.name, call.target, call.request, call.attempt)
        choice, *others = injection.choices
        if others:
            choice = dice("which").pick(injection.choices, [c.weight for c in injection.choices])
        fault = load(choice.fault)(**choice.params)
        with guarded(choice.fault, "draw"):
            fault = fault.draw(dice("draw"))
        return ActiveFault(injection.name, choice.fault, fault)

    def roll(self, injection: Injection, call: Call) -> ActiveFault | None:
        """The fault with which the injection hits this call, or None."""
        hit = self.hits(injection, call.trial, call.target, call.request, call.attempt)
        return self.fault_for(injection, call) if hit else None

    def check(self) -> None:
        """Checks the plan by making each of its faults once.

        Raises: LookupError: one is not installed here, or cannot be used. TypeError, ValueError: one has no such
        parameters.
        """
        for choice in (choice for injection in self.injections for choice in injection.choices):
            load(choice.fault)(**choice.params)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        return cls(
            seed=int(data["seed"]),
            injections=tuple(
                Injection(
                    name=i["name"],
                    choices=tuple(Choice(**c) for c in i["choices"]),
                    targets=tuple(i["targets"]),
                    chance=float(i["chance"]),
                    calls=tuple(i["calls"]),
                )
                for i in data["injections"]
            ),
        )


class AttemptFaults:
    """The faults of one attempt. Rolls each injection's dice when it is reached, and notes the stages of those that
    hit.

    `rolled`: the names of the injections whose dice were rolled; `active`: the faults that hit. `context` is the trial
    around the call, `note` takes the events.
    """

    __slots__ = ("_call", "_context", "_note", "_plan", "active", "rolled")

    def __init__(self, plan: Plan, call: Call, note: Callable[[Event], object], context: TrialContext) -> None:
        self._plan, self._call, self._note, self._context = plan, call, note, context
        self.rolled: list[str] = []
        self.active: list[ActiveFault] = []

    def candidates(self, injections: Iterable[Injection]) -> list[Callable[[Call], ActiveFault | None]]:
        """A function per injection, in the same order, for `chain`."""
        return [partial(self._roll, injection) for injection in injections]

    def _roll(self, injection: Injection, call: Call) -> ActiveFault | None:
        self.rolled.append(injection.name)
        hit = self._plan.hits(injection, call.trial, call.target, call.request, call.attempt)
        return self.begin(injection, call) if hit else None

    def begin(self, injection: Injection, call: Call) -> ActiveFault:
        """Begins the fault of an injection whose dice have hit; `chain` calls it."""
        active = self._plan.fault_for(injection, call)
        active.context = self._context
        self.active.append(active)
        if not injection.conditional:
            self._note(active.scheduled(self._call))
        return active

    def injected(self, active: ActiveFault) -> None:
        """Notes that the story has changed the exchange; `chain` calls it."""
        if trait(active.fault, "conditional"):
            self._note(active.scheduled(self._call))
        self._note(FaultInjected(fault=active.fault_name, injection=active.injection, at=self._call.at))

    def witnessed(self, seen: Observation) -> None:
        """Notes which of the faults the caller met, once the attempt is over."""
        for active in self.active:
            changed = active.call or active.reply
            its = replace(seen, changed_call=active.call, changed_reply=active.reply) if changed else seen
            evidence = active.injected and active.evidence(its)
            if evidence:
                self._note(
                    FaultWitnessed(
                        fault=active.fault_name,
                        injection=active.injection,
                        at=self._call.at,
                        evidence=evidence,
                        changed=active.changed(),
                    )
                )
