"""Stand-ins for the tools of recorded traces: each call gets the reply that was recorded of it."""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaoslab.base.files import read_json

TRIES = 3
"""The attempts at a call of the agent that repeats a trace, as many as most clients make."""


class Replies:
    """The recorded replies, as `chaoslab from-traces` writes them. `begin` selects a trace."""

    def __init__(self, traces: Mapping[str, Mapping[str, Any]]) -> None:
        self._traces = traces
        self._trace, self._given = "", Counter[str]()

    @classmethod
    def read(cls, path: Path) -> "Replies":
        """The replies of a file. Raises ValueError: it cannot be read, or is not as `from-traces` writes it."""
        try:
            traces = read_json(path)["traces"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not as chaoslab from-traces writes it ({error})") from None
        return cls(traces)

    def begin(self, trace: str, agent: Callable[[str], Any] | None, tools: Mapping[str, Any]) -> Callable[[str], Any]:
        """Begins a trace anew, and returns the agent, or if there is none, one that repeats the trace's calls.
        `tools`: the stand-ins by name."""
        self._trace, self._given = trace, Counter()
        return agent or (lambda _: self._repeated(self._traces[trace], tools))

    def _repeated(self, trace: Mapping[str, Any], tools: Mapping[str, Any]) -> str:
        for call in trace["calls"]:
            for attempt in range(1, TRIES + 1):
                try:
                    tools[call["function"]](**call["arguments"])
                    break
                except Exception:
                    if attempt == TRIES:
                        raise
        return str(trace["answer"])

    def of(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The reply to a call: of several that were recorded, the next one, and the last again. Raises LookupError:
        none was recorded of these arguments. It names the nearest."""
        asked = spelt(tool, arguments)
        traces = [self._traces[self._trace], *self._traces.values()] if self._trace else [*self._traces.values()]
        for trace in traces:
            known = [call["reply"] for call in trace["calls"] if spelt(call["tool"], call["arguments"]) == asked]
            if known:
                self._given[asked] += 1
                return known[min(self._given[asked], len(known)) - 1]
        there = {spelt(c["tool"], c["arguments"]) for trace in traces for c in trace["calls"] if c["tool"] == tool}
        nearest = difflib.get_close_matches(asked, there, 1, 0.0)
        raise LookupError(f"no reply to {asked} was recorded" + (f"; the nearest is {nearest[0]}" if nearest else ""))


def spelt(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call as text, alike for equal ones. An argument that is None is one that was not given."""
    arguments_given = {name: value for name, value in arguments.items() if value is not None}
    return f"{tool}({json.dumps(arguments_given, sort_keys=True, ensure_ascii=False, default=str)})"
