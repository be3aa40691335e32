"""The levers of a gateway that stands: what goes on, and the end of all faults or of one.

They are asked for below the path `/.chaoslab/TOKEN/`, which is printed at the start. Each takes effect with the next
request, and is written down.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any
from urllib.parse import unquote

from chaoslab.core.plan import Candidates, Injection
from chaoslab.seams.services.seam import ServiceSeam

PATH = "/.chaoslab/"
LEVERS = "status, faults, pause, resume, stop, faults/NAME/off and faults/NAME/on"
_NONE = Candidates(())
Answer = tuple[int, dict[str, Any]]


@dataclass
class Controls:
    """The levers. `tell` writes a line down; `stop` ends the gateway. `faults_max`: the most faults that are made;
    `until_s`: the moment on the seam's clock after which none is, or None."""

    seam: ServiceSeam
    tell: Callable[[str], object]
    stop: Callable[[], object]
    faults_max: int | None = None
    until_s: float | None = None
    paused: bool = False
    off: set[str] = field(default_factory=set)
    token: str = field(default_factory=lambda: os.urandom(16).hex(), repr=False)

    def __post_init__(self) -> None:
        self.seam.limit = self.limited
        self._told = ""
        self._left: dict[tuple[Injection, ...], Candidates] = {}

    def limited(self, reach: Candidates) -> Candidates:
        """Those of the injections that may hit now."""
        why = self._ended()
        if why and why != self._told:
            self._told = why
            self.tell(f"no more faults: {why}")
        if why or self.paused:
            return _NONE
        if not self.off:
            return reach
        kept = tuple(each for each in reach if each.name not in self.off)
        return self._left.setdefault(kept, Candidates(kept))  # the memory of a trial knows them by their identity

    def _ended(self) -> str:
        """The reason for which no faults are made any more; empty if there is none."""
        if self.faults_max is not None and self._made() >= self.faults_max:
            return f"--max-faults {self.faults_max} is reached"
        over = self.until_s is not None and self.seam.clock.monotonic() >= self.until_s
        return "the time of --until is over" if over else ""

    def _made(self) -> int:
        return sum(met.times for met in self.seam.memory.met.values())

    def asked(self, method: str, path: str) -> Answer:
        """The answer to a request at the control's path: status and JSON."""
        token, *lever = unquote(path.removeprefix(PATH)).split("/")
        if not compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return 401, {"error": f"the token is wrong: the path is {PATH}TOKEN/status, as printed at the start"}
        match method, lever:
            case "GET", ["status"]:
                pass
            case "GET", ["faults"]:
                return 200, {"faults": [self._fault(each.name) for each in self.seam.plan.injections]}
            case "POST", ["pause" | "resume" as way]:
                self.paused = way == "pause"
                self.tell(f"control: {way}d")
            case "POST", ["stop"]:
                self.tell("control: stopped")
                self.stop()
            case "POST", ["faults", name, "off" | "on" as way] if self._known(name):
                self.off = self.off - {name} if way == "on" else self.off | {name}
                self.tell(f"control: '{name}' is {way}")
                return 200, self._fault(name)
            case _:
                return 404, {"error": f"{method} {'/'.join(lever)[:80]} is no lever: {LEVERS}"}
        ended = self._ended()
        return 200, {"paused": self.paused, "ended": ended, "faults": self._made(), "under_way": len(self.seam.open)}

    def _known(self, name: str) -> bool:
        return any(each.name == name for each in self.seam.plan.injections)

    def _fault(self, name: str) -> dict[str, Any]:
        met = self.seam.memory.met.get(name)
        return {"name": name, "on": name not in self.off, "hits": met.times if met is not None else 0}
