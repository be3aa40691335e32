"""The objects by which the seam of HTTP and the code of an agent know a request, its target and its trial."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from chaoslab.base.identity import Request, Requests, TrialId
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.core.memory import TrialMemory
from chaoslab.core.service_spec import ErrorReply
from chaoslab.seams.http._streamed import StreamedBody

EXTENSION = "chaoslab"
MODEL_TOOL = "chat"
AT_ONCE = 16
"""The most attempts at tools that a trial has under way. A model may ask for a thousand in one message; the others wait
in its order."""


@dataclass(frozen=True)
class Target:
    """A service or the model. `url` is its real address, `lane` the (host, port) of its clean proxy, `errors` its own
    error replies."""

    name: str
    url: str
    lane: tuple[str, int]
    deadline_s: float
    errors: Mapping[int, ErrorReply] = field(default_factory=dict)
    failed_if: Mapping[str, Any] = field(default_factory=dict)
    recorded: bool = False
    """True if its replies go into the log, since they could not be made again."""

    def is_failure(self, reply: Reply) -> bool:
        """Tells if the reply is a failure. One with status 200 is if `failed_if` matches or its body cannot be read."""
        # Unreadable too: a body that is no JSON is no success to a tool's client.
        if not 200 <= reply.status < 300 or reply.unreadable:
            return True
        if not self.failed_if or not isinstance(reply.value, dict):
            return False
        # `...` is a value that no JSON has, so a missing field never matches.
        return any(reply.value.get(key, ...) == bad for key, bad in self.failed_if.items())


@dataclass
class TrialState:
    """A trial's state in the seam: its requests, its spending, the last limit of the lab's that made the model refuse,
    and the streamed replies that are being read."""

    trial: TrialId
    requests: Requests
    began_s: float
    memory: TrialMemory
    spent: dict[str, float] = field(default_factory=lambda: {"tokens": 0.0, "calls": 0.0})
    # A semaphore serves in the order of asking, which is the model's.
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    stopped_by: events.Budget | None = None
    reading: dict[int, StreamedBody] = field(default_factory=dict)


@dataclass(frozen=True)
class RequestTag:
    """A tool's description of its request, in `extensions={"chaoslab": RequestTag(…)}`. `direct`: around the proxy."""

    request: Request
    attempt: int
    arguments: Any
    direct: bool = False


@dataclass(frozen=True)
class ProbeTag:
    """A caller's description of the lab's own question, which goes around every proxy and every story. The answer of a
    `recorded` target goes into the log as that of request 0. `asked` is the question's id, which the request carries
    too; `trial` is the trial that it is for."""

    within_s: float
    target: str
    asked: str
    trial: str


# A context variable: agents run their tools in tasks of their own, which inherit it.
_episode: ContextVar[TrialState] = ContextVar("episode")


def get_current_trial_state() -> TrialState:
    """The trial in which this code runs."""
    return _episode.get()


@contextmanager
def enter_trial(state: TrialState) -> Iterator[TrialState]:
    """A context in which `get_current_trial_state` is this trial."""
    token = _episode.set(state)
    try:
        yield state
    finally:
        # A copy, since a body that ends takes itself out. Streams that nobody reads on would keep their attempts open.
        for body in list(state.reading.values()):
            body.end_with_trial()
        _episode.reset(token)
