"""The levers of a gateway that stands, and the share of failed requests above which it makes no more faults.

The levers are asked for below the path `/.chaoslab/TOKEN/`, which is printed at the start. Each takes effect with the
next request, and is written down.
"""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from typing import Any
from urllib.parse import unquote

from chaoslab.base import parsers
from chaoslab.base.registry import suggest_name
from chaoslab.core.plan import Candidates, Injection
from chaoslab.seams.services.line import ClientEnd
from chaoslab.seams.services.seam import ServiceSeam

PATH = "/.chaoslab/"
LEVERS = "status, faults, pause, resume, stop, faults/NAME/off, faults/NAME/on and faults/NAME/chance/0.5"
# The fewest requests that have a rate of errors.
RATED_MIN = 10
_NONE = Candidates(())
Answer = tuple[int, dict[str, Any]]


class FailureShare:
    """The share of failed requests over a time that moves on, in twenty steps."""

    def __init__(self, over_s: float) -> None:
        self._over_s, self._steps = over_s, deque[list[float]]()

    def add_request(self, now_s: float, *, failed: bool) -> float:
        """The share with one request more; 0 for too few."""
        # Counted in steps of a twentieth of the window, so that the memory does not grow with the requests.
        if not self._steps or now_s - self._steps[-1][0] > self._over_s / 20:
            self._steps.append([now_s, 0, 0])
        self._steps[-1][1] += 1
        self._steps[-1][2] += failed
        while now_s - self._steps[0][0] > self._over_s:
            self._steps.popleft()
        count = sum(step[1] for step in self._steps)
        # A first failure would be 100 % of one request.
        return sum(step[2] for step in self._steps) / count if count >= RATED_MIN else 0.0


@dataclass
class Controls:
    """The levers. `tell` writes a line down; `stop` ends what the gateway is for; without it, there are no levers.
    `stop_if`: the share of failed requests (0–1) above which no more faults are made, and the seconds over which it is
    taken."""

    seam: ServiceSeam
    tell: Callable[[str], object]
    stop: Callable[[], object] | None
    stop_if: tuple[float, float] | None = None
    paused: bool = False
    off: set[str] = field(default_factory=set)
    chances: dict[str, float] = field(default_factory=dict)
    # 128 random bits, since whoever has it ends the gateway; not drawn by the dice, which anybody could repeat.
    token: str = field(default_factory=lambda: os.urandom(16).hex(), repr=False)

    def __post_init__(self) -> None:
        self.seam.limit = self.filter_enabled_injections
        self._named = {injection.name: injection for injection in self.seam.plan.injections}
        self._over = ""
        self._left: dict[int, Candidates] = {}
        self.now: Callable[[], float] = self.seam.clock.monotonic
        self._rate = FailureShare(self.stop_if[1]) if self.stop_if is not None else None

    def filter_enabled_injections(self, reach: Candidates) -> Candidates:
        """Those of the injections that may hit now."""
        if self._over or self.paused:
            return _NONE
        if not self.off and not self.chances:
            return reach
        if id(reach) not in self._left:  # the memory of a trial knows them by their identity, and keeps them
            self._left[id(reach)] = Candidates(
                self._adjust_chance(injection) for injection in reach if injection.name not in self.off
            )
        return self._left[id(reach)]

    def stop_faults(self, reason: str = "the gateway is to end, and only passes traffic on") -> None:
        """Makes no more faults, for good."""
        if not self._over:
            self._over = reason
            self.tell(f"no more faults: {reason}")

    @property
    def fault_stop_reason(self) -> str:
        """The reason for which no faults are made any more, by its own or the plan's limits; empty if there is none."""
        return self._over or self.seam.memory.guard.find_fault_end_reason()

    def record_request_end(self, end: ClientEnd) -> None:
        """Takes the end of a request on its client's side."""
        if self._rate is None or self.stop_if is None:
            return
        share_max, over_s = self.stop_if
        # By what the client saw: a service that is down answers nothing at all.
        failed = end.answer is None or end.answer[0] >= 400 or end.error is not None
        share = self._rate.add_request(self.now(), failed=failed)
        if share > share_max:
            self.stop_faults(
                f"{share:.0%} of the requests failed (--stop-if error_rate > {share_max:g} over {over_s:g} s)"
            )

    def _adjust_chance(self, injection: Injection) -> Injection:
        chance = self.chances.get(injection.name)
        return injection if chance is None else replace(injection, chance=chance)

    def _count_hits(self) -> int:
        return sum(counts.times for counts in self.seam.memory.met.values())

    def answer_control_request(self, method: str, path: str) -> Answer:
        """The answer to a request at the control's path: status and JSON."""
        token, *lever = map(unquote, path.removeprefix(PATH).split("/"))  # a name may have a slash
        # In constant time: how long a wrong token takes must not tell how much of it is right.
        if not compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return 401, {"error": f"the token is wrong: the path is {PATH}TOKEN/status, as printed at the start"}
        match method, lever:
            case "GET", ["status"]:
                pass
            case "GET", ["faults"]:
                return 200, {"faults": [*map(self._describe_fault, self._named)]}
            case "POST", ["pause" | "resume" as way]:
                self.paused = way == "pause"
                self.tell(f"control: {way}d")
            case "POST", ["stop"] if self.stop is not None:
                self.tell("control: stopped")
                self.stop()
            case "POST", ["faults", name, _, *_] if name not in self._named:
                return 404, {"error": f"no fault is called '{name[:60]}': {suggest_name(name, self._named)}"}
            case "POST", ["faults", name, "off" | "on" as way]:
                self.off = self.off - {name} if way == "on" else self.off | {name}
                self.tell(f"control: '{name}' is {way}")
            case "POST", ["faults", name, "chance", text]:
                try:
                    chance = parsers.parse_bounded_number(text, 0.0, 1.0, "a chance from 0 to 1")
                except ValueError as error:
                    return 400, {"error": f"{text[:60]!r} should be {error}"}
                if not self._named[name].may_hit:
                    return 400, {"error": f"'{name}' has the chance 0 in the plan: begin above it, and pause"}
                self.tell(
                    f"control: '{name}' has the chance {chance:g}, after "
                    f"{self._adjust_chance(self._named[name]).chance:g}"
                )
                self.chances[name] = chance
            case _:
                return 404, {"error": f"{method} {'/'.join(lever)[:80]} is no lever: {LEVERS}"}
        if lever[0] == "faults":
            # The choices that were made with the old chances.
            self._left.clear()
            return 200, self._describe_fault(lever[1])
        return 200, {
            "paused": self.paused, "ended": self.fault_stop_reason, "faults": self._count_hits(),
            "under_way": len(self.seam.open),
        }  # fmt: skip

    def _describe_fault(self, name: str) -> dict[str, Any]:
        counts = self.seam.memory.met.get(name)
        return {
            "name": name, "on": name not in self.off, "chance": self._adjust_chance(self._named[name]).chance,
            "hits": counts.times if counts is not None else 0,
        }  # fmt: skip
