"""Plans as data: which fault may hit which call, and when. A hit is a pure function of seed, names and occasion. The
dice of an injection are named (seed, trial, injection, target, request, attempt). So taking one injection out changes
no other, and one retry more changes no later request."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import translate
from functools import cached_property
from typing import Any, Literal

from chaoslab.base.dice import Dice
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.core import triggers
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call
from chaoslab.core.fault import LAYERS as LAYERS
from chaoslab.core.fault import Fault, get_trait, guarded, load_fault
from chaoslab.core.limits import LimitGuard, Limits
from chaoslab.core.machine import TARGETS
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.triggers import Trigger
from chaoslab.core.triggers.counting import Attempts, Persistence
from chaoslab.core.triggers.looking import WindowS

Decision = Literal["", "spared", "begins", "lasts"]
"""An injection's decision on an attempt. APART: it does not concern it, by its number, its tool and the like; SPARED:
it does not hit, by its dice or since another has not hit; BEGINS: it hits; LASTS: an earlier hit goes on."""
APART: Decision = ""
SPARED: Decision = "spared"
BEGINS: Decision = "begins"
LASTS: Decision = "lasts"
HITS = (BEGINS, LASTS)
Decide = Callable[[Occasion, HitsSoFar], Decision]
WILDCARDS = frozenset("*?[")
"""The characters that make a target's name a pattern."""
WINDOW = ("", 0, 0)
"""The attempt that the fault of a window has lasted from: none, so all attempts in the window meet the same fault."""
STATE = ("after", "max_times", "persistence")
"""The triggers that depend on the hits so far."""


@dataclass(frozen=True)
class Choice:
    """One fault that an injection may choose, with its weight against the others."""

    fault: str
    weight: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def build_fault(self) -> Fault:
        """The fault with these parameters. Raises LookupError: it is not installed here, or cannot be used. TypeError,
        ValueError: it takes no such value."""
        return load_fault(self.fault)(**self.params)


@dataclass(frozen=True)
class Injection:
    """One source of faults for its `targets`: names, or patterns with `*`.

    It hits an attempt if all its triggers hold. The two usual ones have a field each: `chance` (0–1) is rolled for
    each attempt, `calls` are the requests' numbers, from 1. `triggers` holds all others, by name.
    """

    name: str
    choices: tuple[Choice, ...]
    targets: tuple[str, ...]
    chance: float = 1.0
    calls: tuple[int, ...] = ()
    triggers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Injection:
        """The injection of its fields, as `dataclasses.asdict` gives them."""
        return cls(
            name=data["name"],
            choices=tuple(Choice(**choice) for choice in data["choices"]),
            targets=tuple(data["targets"]),
            chance=float(data["chance"]),
            calls=tuple(data["calls"]),
            triggers=dict(data.get("triggers", {})),
        )

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is made of them is made again in another process."""
        return {member.name: getattr(self, member.name) for member in fields(self)}

    @cached_property
    def layer(self) -> str:
        return load_fault(self.choices[0].fault).layer

    @cached_property
    def conditional(self) -> bool:
        """True if one of its faults decides itself if it acts."""
        return any(get_trait(load_fault(choice.fault), "conditional") for choice in self.choices)

    @cached_property
    def of_process(self) -> bool:
        """True if one of its faults stops the process of a service."""
        return any(get_trait(load_fault(choice.fault), "of_process") for choice in self.choices)

    @cached_property
    def of_listing(self) -> bool:
        """True if it hits requests for the list of a service's tools, and no others."""
        return any(get_trait(load_fault(choice.fault), "of_listing") for choice in self.choices)

    @cached_property
    def _target_patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(target)) for target in self.targets)

    @cached_property
    def _agent_machine_targets(self) -> frozenset[str]:
        """The targets of the agent's own machine that its faults know."""
        return frozenset(name for choice in self.choices for name in get_trait(load_fault(choice.fault), "of_machine"))

    def covers(self, target: str) -> bool:
        if target in self.targets:
            return True
        known = target not in TARGETS or target in self._agent_machine_targets
        return known and any(pattern.match(target) for pattern in self._target_patterns)

    @property
    def may_hit(self) -> bool:
        """True if it is not switched off."""
        return self.chance > 0

    @property
    def certain(self) -> bool:
        """True if it must hit exactly the requests of `calls`, to targets that are named in full."""
        open_ended = self.triggers or any(set(target) & WILDCARDS for target in self.targets)
        return bool(self.calls) and self.chance == 1 and not open_ended

    @cached_property
    def by_name(self) -> dict[str, Trigger]:
        """Its triggers that can fail, by name. Raises LookupError: no such trigger. ValueError: one takes no such
        value."""
        values = {**({"calls": self.calls} if self.calls else {}), **self.triggers}
        if self.chance != 1:
            values["chance"] = self.chance
        return {name: triggers.parse_trigger(name, value, where=f" of '{self.name}'") for name, value in values.items()}

    @cached_property
    def _persistence_trigger(self) -> Persistence | None:
        trigger = self.by_name.get("persistence")
        return trigger if isinstance(trigger, Persistence) else None

    @cached_property
    def _sorted_triggers(self) -> tuple[tuple[Trigger, ...], tuple[Trigger, ...]]:
        """The triggers that say which attempts are concerned, and the others, cheap ones first."""
        triggers_by_name = dict(self.by_name)
        # A request that is named by its number is hit once, so its retries are spared unless attempts= says otherwise.
        if "attempts" not in triggers_by_name and ("calls" in triggers_by_name or "every" in triggers_by_name):
            triggers_by_name["attempts"] = Attempts((1,))
        ordered = sorted(triggers_by_name.values(), key=lambda trigger: trigger.order)
        return tuple(t for t in ordered if t.place), tuple(t for t in ordered if not t.place)

    @cached_property
    def decide(self) -> Decide:
        """The injection's decision on an attempt, given its own hits so far."""
        places, begins = (
            [trigger.holds for trigger in trigger_group if not trigger.spares]
            for trigger_group in self._sorted_triggers
        )
        spares = [trigger.holds for trigger in self._sorted_triggers[1] if trigger.spares]
        lasts = self._persistence_trigger.is_still_active if self._persistence_trigger is not None else None

        def decide_attempt(occasion: Occasion, hits: HitsSoFar) -> Decision:
            for holds in places:
                if not holds(occasion, hits):
                    return APART
            # Before what says when it begins: a fault that goes on hits attempts at which it could not begin.
            if lasts is not None and hits.times and lasts(occasion, hits):
                return LASTS
            for holds in begins:
                if not holds(occasion, hits):
                    return APART
            for holds in spares:
                if not holds(occasion, hits):
                    return SPARED
            return BEGINS

        return decide_attempt

    @cached_property
    def stands(self) -> bool:
        """True if a fault of it goes on for a time: for_s, for_good, or a window that alone says when."""
        if self._persistence_trigger is not None:
            return self._persistence_trigger.is_time_limited
        _, begins = self._sorted_triggers
        return [type(trigger) for trigger in begins] == [WindowS]

    def check(self, *, turns: int | None = None) -> None:
        """Checks the faults and triggers. `turns`: the conversation's, if known.

        Raises:
            LookupError: a fault or trigger is not installed here, or cannot be used. TypeError, ValueError: one takes
            no such value, the faults are of several layers, or the injection can never hit.
        """
        layers = dict.fromkeys(load_fault(choice.fault).layer for choice in self.choices)
        if len(layers) > 1:
            fault_names = ", ".join(f"{choice.fault} ({load_fault(choice.fault).layer})" for choice in self.choices)
            raise ValueError(
                f"'{self.name}' chooses between faults of several layers: {fault_names}; make one of each layer"
            )
        for choice in self.choices:
            choice.build_fault()
        triggers_by_name = self.by_name
        for name, trigger in triggers_by_name.items():
            reason = trigger.explain_never_holding(
                {other: triggers_by_name[other] for other in triggers_by_name if other != name}
            )
            if not reason and turns and (reason := trigger.explain_too_few_turns(turns)):
                reason += f", and the conversation has {turns} turn{'s' if turns != 1 else ''}"
            if reason:
                raise ValueError(f"'{self.name}' can never hit: {reason}")


class Candidates(tuple[Injection, ...]):
    """Injections that may hit the calls of one target, outermost first."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The injections alone, as `Injection.__getstate__`."""
        return Candidates, (tuple(self),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(injection.name for injection in self)

    @cached_property
    def needs_time(self) -> bool:
        """True if a trigger of theirs reads the time."""
        return any(trigger.timed for injection in self for trigger in injection.by_name.values())

    @cached_property
    def needs_arguments(self) -> bool:
        """True if a trigger of theirs reads the arguments."""
        return any(trigger.reads for injection in self for trigger in injection.by_name.values())

    @cached_property
    def without_outages(self) -> Candidates:
        """Those whose faults stop no process, for a target that stands still: its process is not stopped once more."""
        return Candidates(injection for injection in self if not injection.of_process)

    @cached_property
    def hit_dependencies(self) -> list[str]:
        """The names of the injections whose hits their triggers depend on."""
        own_names = [i.name for i in self if any(name in i.triggers for name in STATE)]
        return list(dict.fromkeys([*own_names, *(i.by_name["after"].value for i in self if "after" in i.triggers)]))


@dataclass(frozen=True)
class Plan:
    """A seed, its injections, and the limits to all of these."""

    seed: int
    injections: tuple[Injection, ...] = ()
    limits: tuple[Limits, ...] = ()

    @cached_property
    def numbered_requests(self) -> tuple[tuple[Injection, str, int], ...]:
        """Each request to be hit by its number: the injection, the target and the number."""
        return tuple(
            (i, target, request) for i in self.injections if i.certain for target in i.targets for request in i.calls
        )

    def find_candidates(self, target: str, *, wire: bool | None = None) -> Candidates:
        """The injections that may hit a call of this target: those of the wire, or all others, by default all, each
        outermost first."""
        candidates = self._candidates_cache.get((target, wire))
        if candidates is None:
            # The wire last: it is the innermost layer.
            among = (
                self._injections_by_wire[False] + self._injections_by_wire[True]
                if wire is None
                else self._injections_by_wire[wire]
            )
            candidates = self._candidates_cache[target, wire] = Candidates(
                i for i in among if i.may_hit and i.covers(target)
            )
        return candidates

    @cached_property
    def _candidates_cache(self) -> dict[tuple[str, bool | None], Candidates]:
        return {}

    @cached_property
    def _injections_by_wire(self) -> dict[bool, tuple[Injection, ...]]:
        # Stable, so within a layer the plan's order stays.
        ordered = sorted(self.injections, key=lambda i: LAYERS.index(i.layer))
        return {wire: tuple(i for i in ordered if (i.layer == "wire") is wire) for wire in (True, False)}

    @cached_property
    def needs_hit_counts(self) -> bool:
        """True if a trigger depends on the hits so far, so all hits must be counted."""
        return any(name in injection.triggers for injection in self.injections for name in STATE)

    @cached_property
    def needs_earlier_exchanges(self) -> bool:
        """True if a fault reads the earlier exchanges, so they must be kept."""
        return any(get_trait(load_fault(choice.fault), "looks_back") for i in self.injections for choice in i.choices)

    @cached_property
    def outage_targets(self) -> tuple[str, ...]:
        """The targets, as they are named, of the injections that stop the process of a service."""
        named = (target for i in self.injections if i.may_hit and i.of_process for target in i.targets)
        return tuple(dict.fromkeys(named))

    def find_wire_hits(
        self, call: Call, occasion: Occasion, guard: LimitGuard | None = None
    ) -> tuple[list[ActiveFault], list[str]]:
        """The faults of the wire that this call meets, in the plan's order, and the injections that were asked; without
        those that a refusal masks, and those that the guard holds back."""
        asked_names: list[str] = []
        hits: list[ActiveFault] = []
        for injection in self.find_candidates(call.target, wire=True):
            earlier_hits = occasion.get_hits(injection.name)
            decision = injection.decide(occasion, earlier_hits)
            if decision:
                asked_names.append(injection.name)
                if decision in HITS and not (
                    guard is not None and guard.find_limit_or_count_hit(injection.name, occasion)
                ):
                    hits.append(self.draw_fault(injection, call, earlier_hits.first if decision == LASTS else None))
        reachable = select_wire_faults(hits)
        masked = {active.injection for active in hits}.difference(active.injection for active in reachable)
        return reachable, [name for name in asked_names if name not in masked]

    def draw_fault(self, injection: Injection, call: Call, first: tuple[str, int, int] | None = None) -> ActiveFault:
        """The fault with which an injection hits this call, all its chances drawn. `first`: the attempt (target,
        request, attempt) that it has lasted from, since a fault that lasts stays the same."""
        if injection.stands and first is None and "window_s" in injection.triggers:
            first = WINDOW if injection.by_name.get("persistence") is None else None
        dice = Dice(self.seed, call.trial, injection.name, *(first or (call.target, call.request, call.attempt)))
        choice, *others = injection.choices
        if others:
            choice = dice("which").pick(injection.choices, [c.weight for c in injection.choices])
        fault = choice.build_fault()
        with guarded(choice.fault, "draw"):
            fault = fault.draw(dice("draw"))
        return ActiveFault(injection.name, choice.fault, fault, stands=injection.stands)

    def with_injections_off(self, names: Collection[str]) -> Plan:
        """The plan with these injections switched off: they keep their places, and hit nothing."""
        if not names:
            return self
        injections = (
            replace(injection, chance=0.0) if injection.name in names else injection for injection in self.injections
        )
        return replace(self, injections=tuple(injections))

    def check(self, *, turns: int | None = None) -> None:
        """Checks each injection, and that no two wait for each other.

        Raises: LookupError: a fault or trigger is not installed here, or cannot be used. TypeError, ValueError: one
        takes no such value, or an injection can never hit.
        """
        for injection in self.injections:
            injection.check(turns=turns)
        check_after_references(self.injections)

    def to_json(self) -> dict[str, Any]:
        # Without the limits, which asdict would take apart: they have a JSON of their own.
        plain = asdict(replace(self, limits=()))
        del plain["limits"]
        return {**plain, "limits": [limit.to_json() for limit in self.limits]} if self.limits else plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        return cls(
            seed=int(data["seed"]),
            injections=tuple(map(Injection.from_json, data["injections"])),
            limits=tuple(map(Limits.build, data.get("limits", ()))),
        )


def select_wire_faults(hit: Sequence[ActiveFault]) -> list[ActiveFault]:
    """The faults of the wire that one call meets: all that hit it, or the first that refuses its connection, since
    then there is none for the others."""
    refusing = next((active for active in hit if get_trait(active.fault, "refuses")), None)
    return list(hit) if refusing is None else [refusing]


def check_after_references(injections: Iterable[Injection]) -> None:
    """Checks that each `after` names another injection that can hit first. Raises ValueError: one names an injection
    that is not there, one whose fault decides itself if it acts, one that is switched off, or itself, be it through
    others."""
    names = {injection.name: injection for injection in injections}
    waits = {name: after.value for name, i in names.items() if (after := i.by_name.get("after")) is not None}
    for name, cause in waits.items():
        if cause not in names:
            raise ValueError(
                f"'{name}' is after {repr_one_line(cause)}, which is no injection: {suggest_name(cause, names)}"
            )
        if names[cause].conditional and not names[cause].of_process:  # which acts whenever the dice hit
            raise ValueError(f"'{name}' is after '{cause}', whose fault decides itself if it acts: name another one")
        if not names[cause].may_hit:
            raise ValueError(f"'{name}' can never hit: it is after '{cause}', whose chance is 0")
        visited, at = {name}, cause
        # A circle without `name` ends this too; it is told at one of its own members.
        while at in waits and at not in visited:
            visited.add(at)
            at = waits[at]
        if at == name:
            raise ValueError(f"'{name}' can never hit: it is after '{cause}', which waits for '{name}' itself")
