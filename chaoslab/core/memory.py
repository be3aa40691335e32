"""The state of one trial under a plan: which injections hit so far, their memories, and the exchanges that are over."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.core.context import Exchange, TrialContext
from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.plan import HITS, LASTS, Decision, Injection, Plan

EARLIER_MAX = 256
"""The most exchanges that are kept for faults that look back."""


class TrialMemory:
    """Decides the hits of one trial, attempt by attempt in the order of beginning. `turn`: the turn that goes on."""

    __slots__ = ("_at_turn", "_kept", "earlier", "met", "plan", "trial", "turn")

    def __init__(self, plan: Plan, trial: str) -> None:
        self.plan, self.trial, self.turn = plan, trial, 1
        self.met: dict[str, Met] = {}
        self.earlier: deque[Exchange] = deque(maxlen=EARLIER_MAX)
        self._kept: dict[str, dict[str, Any]] = {}
        self._at_turn: Mapping[str, int] = {}

    def begin_turn(self, turn: int, made: Mapping[str, int]) -> None:
        """Begins a turn of the conversation. `made`: the number of requests made so far, by target."""
        self.turn, self._at_turn = turn, dict(made)

    def occasion(
        self, target: str, tool: str, request: int, attempt: int, *, elapsed_s: float = 0.0, arguments: Any = None
    ) -> Occasion:
        """The occasion of an attempt that begins now."""
        in_turn = request - self._at_turn.get(target, 0) if self._at_turn else request
        return Occasion(
            self.plan.seed, self.trial, target, tool, request, attempt, self.turn, in_turn, elapsed_s, arguments,
            self.met,
        )  # fmt: skip

    def decide(self, injections: Sequence[Injection], occasion: Occasion) -> list[Decision]:
        """The decision of each injection on this attempt, which is counted for those that hit."""
        found: list[Decision] = []
        of, hit = self.met.get, False
        for injection in injections:
            name = injection.name
            met = of(name)
            if met is None:
                met = self.met[name] = Met(name)
            decision = injection.decide(occasion, met)
            found.append(decision)
            hit = hit or decision in HITS
        if hit:  # counted when all have decided, so their order is of no weight
            for injection, decision in zip(injections, found, strict=True):
                if decision in HITS:
                    self.met[injection.name].hit(occasion, lasting=decision == LASTS)
        return found

    def context(self, injection: str, elapsed_s: float, spent: Mapping[str, float]) -> TrialContext:
        """The context of a story of this injection."""
        memory = self._kept.setdefault(injection, {})
        return TrialContext(self.trial, self.turn, elapsed_s, spent, memory, tuple(self.earlier))

    def over(self, exchange: Exchange) -> None:
        """Keeps an exchange for faults that look back."""
        self.earlier.append(exchange)
