"""The occasion of an attempt: all that a trigger may depend on. It is data, so the proxy manager can be sent it. The
state of a trial's triggers counts what they decided, for every attempt in the order of beginning, whether the fault was
reached or an outer one masked it. So taking one injection out of a plan moves no other's hits."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from chaoslab.core.exchange import Call


@dataclass(slots=True)
class HitsSoFar:
    """An injection's hits so far in one trial. `times`: their number. `in_a_row`: the number of hits in the last row,
    which `persistence` makes longer than 1. The row began at `since_s`, in seconds since the trial began, with the
    attempt `first` (target, request, attempt)."""

    injection: str
    times: int = 0
    since_s: float = 0.0
    in_a_row: int = 0
    first: tuple[str, int, int] = ("", 0, 0)

    def count_hit(self, occasion: "Occasion", *, lasting: bool) -> None:
        """Counts a hit. `lasting`: it goes on with the last row."""
        self.times += 1
        if lasting:
            self.in_a_row += 1
        else:
            self.since_s, self.in_a_row = occasion.elapsed_s, 1
            self.first = (occasion.target, occasion.request, occasion.attempt)


@dataclass(slots=True)
class Occasion:
    """One attempt and its place in the trial.

    `request` and `attempt` are the call's numbers, from 1. `turn`: the turn of the conversation, from 1. `in_turn`: the
    number of the request at its target within the turn. `elapsed_s`: seconds since the trial began; `arguments`: the
    call's; both are only set if a trigger reads them. `changes`: the call may change something. `met`: the hits of the
    trial so far, by injection. `headers`: the request's that a limit reads, in lower case; `under_way`: the faults that
    go on where it was asked. Only limits read these two.
    """

    seed: int
    trial: str
    target: str
    tool: str
    request: int
    attempt: int
    turn: int
    in_turn: int
    elapsed_s: float = 0.0
    arguments: Any = None
    met: dict[str, HitsSoFar] = field(default_factory=dict)
    headers: Mapping[str, str] | None = None
    under_way: int = 0
    changes: bool = False

    def get_hits(self, injection: str) -> HitsSoFar:
        """The hits of this injection so far."""
        hits = self.met.get(injection)
        if hits is None:
            hits = self.met[injection] = HitsSoFar(injection)
        return hits

    def to_json(self, state: Sequence[str], *, reads: bool) -> dict[str, Any]:
        """The part that the call's own row does not hold and that injections depend on. `state`, `reads`: theirs, as
        `plan.Candidates` has them."""
        hits = {name: asdict(self.met[name]) for name in state if name in self.met}
        return {
            "turn": self.turn,
            "in_turn": self.in_turn,
            "elapsed_s": self.elapsed_s,
            "arguments": self.arguments if reads else None,
            "met": hits,
            **({"headers": dict(self.headers)} if self.headers else {}),
            **({"under_way": self.under_way} if self.under_way else {}),
            **({"changes": True} if reads and self.changes else {}),
        }

    @classmethod
    def from_json(cls, seed: int, call: Call, data: Mapping[str, Any]) -> "Occasion":
        """The occasion of a call from `to_json`; from an empty mapping, one of a first turn with nothing met."""
        hits = {
            name: HitsSoFar(**{**fields, "first": tuple(fields.get("first", ("", 0, 0)))})
            for name, fields in data.get("met", {}).items()
        }
        return cls(
            seed,
            call.trial,
            call.target,
            call.tool,
            call.request,
            call.attempt,
            int(data.get("turn", 1)),
            int(data.get("in_turn", call.request)),
            float(data.get("elapsed_s", 0.0)),
            data.get("arguments"),
            hits,
            data.get("headers"),
            int(data.get("under_way", 0)),
            bool(data.get("changes")),
        )
