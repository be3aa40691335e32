"""A plan is data: which fault may hit which call, and with what chance. Whether it hits is a pure function of names.

The dice of an injection are named (seed, trial, injection, target, request, attempt), so that taking one injection out moves no
other, and one retry more moves no later request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from chaoslab.dice import Dice
from chaoslab.exchange import Call, Told
from chaoslab.registry import load

LAYERS = ("budget", "context", "meaning", "tool", "wire")
"""Outermost first: an exhausted budget masks everything, the wire is what is left when all else lets a call pass."""


@dataclass(frozen=True)
class Choice:
    """One of the faults that an injection may be, with its weight against the others."""

    fault: str
    weight: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Injection:
    """One source of faults. `targets`: whom it may hit. `chance` (0–1) is rolled per attempt; `calls` instead hits the first attempts
    of exactly those requests (counted from 1)."""

    name: str
    choices: tuple[Choice, ...]
    targets: tuple[str, ...]
    chance: float = 1.0
    calls: tuple[int, ...] = ()

    @property
    def layer(self) -> str:
        layer: str = load("faults", self.choices[0].fault).layer
        return layer

    @property
    def conditional(self) -> bool:
        """Whether a fault of it decides by itself if there is anything to do."""
        return any(getattr(load("faults", choice.fault), "conditional", False) for choice in self.choices)

    def covers(self, call: Call) -> bool:
        return call.target in self.targets

    @property
    def may_hit(self) -> bool:
        """Whether there is any call that it could hit."""
        return self.chance > 0 or bool(self.calls)


@dataclass(frozen=True)
class Plan:
    """A seed and its injections."""

    seed: int
    injections: tuple[Injection, ...] = ()

    def on_the_wire(self, *, wire: bool) -> tuple[Injection, ...]:
        """The injections of the wire, or all others, outermost first."""
        return self._by_wire[wire]

    def reach(self, target: str, *, wire: bool) -> tuple[Injection, ...]:
        """Those of them that may hit a call of this target."""
        found = self._reach.get((target, wire))
        if found is None:
            found = tuple(i for i in self.on_the_wire(wire=wire) if i.may_hit and target in i.targets)
            self._reach[target, wire] = found
        return found

    @cached_property
    def _reach(self) -> dict[tuple[str, bool], tuple[Injection, ...]]:
        return {}

    @cached_property
    def _by_wire(self) -> dict[bool, tuple[Injection, ...]]:
        ordered = sorted(self.injections, key=lambda i: LAYERS.index(i.layer))
        return {wire: tuple(i for i in ordered if (i.layer == "wire") is wire) for wire in (True, False)}

    def hit_on_the_wire(self, call: Call) -> tuple[Told | None, list[str]]:
        """The fault of the wire that this call shall meet, one at most, and the injections whose dice were rolled for it."""
        rolled: list[str] = []
        for injection in self.reach(call.target, wire=True):
            rolled.append(injection.name)
            if (told := self.roll(injection, call)) is not None:
                return told, rolled
        return None, rolled

    def roll(self, injection: Injection, call: Call) -> Told | None:
        """The fault that this injection has for this call, all its own chances drawn; None when it does not hit."""
        dice = Dice(self.seed, call.trial, injection.name, call.target, call.request, call.attempt)
        if injection.calls:
            if call.request not in injection.calls or call.attempt != 1:
                return None
        elif not dice("hit").hits(injection.chance):
            return None
        choice = dice("which").pick(injection.choices, [c.weight for c in injection.choices])
        fault = load("faults", choice.fault)(**choice.params).draw(dice("draw"))
        return Told(injection.name, choice.fault, fault)

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
