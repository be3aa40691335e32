"""The state of one trial under a plan: which injections hit so far, their memories, and the exchanges that are over."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.core.events import AttemptRef, FaultHeldBack
from chaoslab.core.exchange import Call, PastAttempt, TrialContext, UserActs
from chaoslab.core.limits import SHADOW, LimitGuard, Told
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.plan import BEGINS, HITS, LASTS, SPARED, Candidates, Decision, Injection, Plan

EARLIER_MAX = 256
"""The most exchanges that are kept for faults that look back."""


class Decisions(list[Decision]):
    """The decision of each injection on one attempt. `asked`: the names of those whom the attempt concerned. `hit`:
    one of them hits it."""

    __slots__ = ("asked", "hit")

    def __init__(self, injections: Sequence[Injection] = (), decisions: Sequence[Decision] = ()) -> None:
        super().__init__(decisions)
        self.hit = BEGINS in decisions or LASTS in decisions
        self.asked = [injection.name for injection, decision in zip(injections, decisions, strict=True) if decision]


NOBODY = Decisions()
"""The decisions where no injection was asked."""


class TrialMemory:
    """Decides the hits of one trial, attempt by attempt in the order of beginning. `turn`: the turn that goes on.
    `guard`: keeps to the plan's limits."""

    __slots__ = ("_at_turn", "_kept", "earlier", "guard", "met", "plan", "trial", "turn", "user")

    def __init__(
        self, plan: Plan, trial: str, *, clock: Clock = system, note: Callable[[FaultHeldBack], object] | None = None
    ) -> None:
        """`note` takes the faults that are held back."""
        self.plan, self.trial, self.turn = plan, trial, 1
        self.guard = LimitGuard(plan.limits, clock=clock)
        if note is not None:
            self.guard.tell = make_held_back_fault_logger(note)
        self.user: Callable[[UserActs, Call], bool] = lambda step, call: False  # noqa: ARG005
        """Does what a story wants of whoever asks the agent; True if that was done."""
        self.met: dict[str, HitsSoFar] = {}
        self.earlier: deque[PastAttempt] = deque(maxlen=EARLIER_MAX)
        self._kept: dict[str, dict[str, Any]] = {}
        self._at_turn: Mapping[str, int] = {}

    def begin_turn(self, turn: int, counts: Mapping[str, int]) -> None:
        """Begins a turn of the conversation. `counts`: the number of requests made so far, by target."""
        self.turn, self._at_turn = turn, dict(counts)

    def build_occasion(
        self,
        target: str,
        tool: str,
        request: int,
        attempt: int,
        *,
        elapsed_s: float = 0.0,
        arguments: Any = None,
        changes: bool = False,
    ) -> Occasion:
        """The occasion of an attempt that begins now."""
        in_turn = request - self._at_turn.get(target, 0) if self._at_turn else request
        return Occasion(
            self.plan.seed,
            self.trial,
            target,
            tool,
            request,
            attempt,
            self.turn,
            in_turn,
            elapsed_s,
            arguments,
            self.met,
            changes=changes,
        )

    def decide_hits(self, injections: Candidates, occasion: Occasion) -> Decisions:
        """The decision of each injection on this attempt, which is counted for those that hit."""
        decision_list = [
            candidate.decide(occasion, self.met.get(name) or self.met.setdefault(name, HitsSoFar(name)))
            for candidate, name in zip(injections, injections.names, strict=True)
        ]
        decisions = Decisions(injections, decision_list)
        if decisions.hit:
            decisions, shadowed = self._apply_limits(injections, decisions, occasion)
            for name in shadowed:
                self.met[name].count_hit(occasion, lasting=False)
            for injection, decision in zip(injections, decisions, strict=True):  # when all have decided
                if decision in HITS:
                    self.met[injection.name].count_hit(occasion, lasting=decision == LASTS)
        return decisions

    def _apply_limits(
        self, injections: Sequence[Injection], decisions: Decisions, occasion: Occasion
    ) -> tuple[Decisions, list[str]]:
        """The decisions without hits beyond the plan's limits, and the injections whose hits count though they are held
        back as a shadow."""
        reasons = {
            i.name: reason
            for i, decision in zip(injections, decisions, strict=True)
            if decision in HITS and (reason := self.guard.find_limit_or_count_hit(i.name, occasion))
        }
        if not reasons:
            return decisions, []
        limited_decisions = [
            SPARED if i.name in reasons else decision for i, decision in zip(injections, decisions, strict=True)
        ]
        return Decisions(injections, limited_decisions), [name for name, reason in reasons.items() if reason == SHADOW]

    def build_trial_context(self, injection: str, elapsed_s: float, spent: Mapping[str, float]) -> TrialContext:
        """The context of a story of this injection."""
        memory = self._kept.setdefault(injection, {})
        return TrialContext(self.trial, self.turn, elapsed_s, spent, memory, tuple(self.earlier))

    def keep_exchange(self, exchange: PastAttempt) -> None:
        """Keeps an exchange for faults that look back."""
        self.earlier.append(exchange)


def make_held_back_fault_logger(note: Callable[[FaultHeldBack], object]) -> Told:
    """Takes a fault that was held back, and notes it."""

    def log_held_back(injection: str, occasion: Occasion, limit: str) -> None:
        at = AttemptRef(
            trial=occasion.trial,
            turn=occasion.turn,
            target=occasion.target,
            request=occasion.request,
            attempt=occasion.attempt,
            request_id="",
        )
        note(FaultHeldBack(injection=injection, at=at, tool=occasion.tool, limit=limit))

    return log_held_back
