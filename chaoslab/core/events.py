"""What happened, as typed events: the only output of a run. record/log.py writes them, record/history.py reads them.

Each line of a log is one JSON object: `ts` (UTC, ISO 8601), `t` (seconds since the run began, the world's monotonic clock),
`run`, `trial` ("p3.r1", or null), `writer`, `seq`, `kind`, and the fields of the kind's class below. Events are made by keyword.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, NotRequired, TypedDict

from chaoslab.base.clock import iso, later
from chaoslab.base.shapes import Like, Within, allowed, is_moment

VERSION = 4
"""Of the log: what `RunStarted.code` names `log`. 1 had no `world`, `asked` and `code`; 2 had no `reply`, `changed` and `twin`; 3 had no
`turn`. Earlier logs can be read; only a log of this version can be run again."""
REPLY_MAX = 300
"""Characters of a reply, or of a change, that a log keeps."""
UNTOLD, UNTOLD_S = "untold", math.nan
"""What a log of another lab does not tell, and a duration that it does not tell. Our own log tells all."""

LASTS_MAX_S = 1e15
"""No run takes longer, in virtual time: a million trials that wait for ten years each take 3e14 s."""

# What a field must hold for its line to be read; an event that is made in Python is not checked.
Seconds = Annotated[float, Within(0.0, LASTS_MAX_S)]
Amount = Annotated[float, Within(0.0, 1e15)]
Count = Annotated[int, Within(0, 2**63)]
Moment = Annotated[str, is_moment]
Weighted = Annotated[list[str | float], lambda pair: [type(one) is str for one in pair] == [True, False]]
Setting = Annotated[Any, allowed(str | float | bool | None | list[str | Weighted]).holds]


class _Choice(TypedDict):
    fault: str


class _Injection(TypedDict):
    name: str
    choices: NotRequired[list[Annotated[dict[str, Any], Like(_Choice)]]]
    targets: NotRequired[list[str]]
    chance: NotRequired[Annotated[float, Within(0.0, 1.0)]]
    calls: NotRequired[list[Count]]


class _Plan(TypedDict):
    injections: list[Annotated[dict[str, Any], Like(_Injection)]]


class _Answer(TypedDict):
    status: Count
    body: str
    headers: dict[str, str]


Planned = Annotated[dict[str, Any], Like(_Plan, empty=True)]
Answered = Annotated[dict[str, Any], Like(_Answer, empty=True)]


def _later(moment: str, by_s: float) -> str:
    return iso(later(datetime.fromisoformat(moment), by_s))


class Event:
    """The base of all kinds; `kind` is the class's name in snake case."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Event]]] = {}
    moves: ClassVar[bool] = False
    """Whether it names moments of its own, which `moved` moves."""

    def moved(self, by_s: float) -> Event:  # noqa: ARG002 - most name none
        """The same event, so much later: trials that ran side by side are told one after the other."""
        return self

    def __init_subclass__(cls, *, abstract: bool = False, kind: str = "") -> None:
        """`abstract`: a base of several kinds, which no line of a log is of; `kind`: another word than the class's name."""
        if abstract:
            return
        cls.kind = kind or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        Event.kinds[cls.kind] = cls


@dataclass(frozen=True, kw_only=True)
class AttemptRef:
    """Names one attempt at a request: everything that is logged of it carries this. `trial`: its key, as in the envelope of the line; `turn`:
    of the conversation, counted from 1; `request`: counted by target within the trial; `attempt`: counted by request; `request_id`: the same
    for each attempt of a request, empty where nobody knows it."""

    trial: str | None = field(default=None, compare=False)
    turn: Count = 1
    target: str
    request: Count
    attempt: Count
    request_id: str


@dataclass(frozen=True, kw_only=True)
class AttemptEvent(Event, abstract=True):
    """The base of what happens to one attempt. In a line of the log the fields of `at` stand beside the others."""

    at: AttemptRef

    @property
    def target(self) -> str:
        return self.at.target

    @property
    def request(self) -> int:
        return self.at.request

    @property
    def attempt(self) -> int:
        return self.at.attempt

    @property
    def request_id(self) -> str:
        return self.at.request_id


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """The lab is up. `settings` are all settings in force (secrets masked), `plan` is the plan as data, `now` is ISO 8601.

    `world`: local, compose or virtual. `asked`: the prompts with all that was stated about them, and `code`: what the run was made with, a
    digest or a version by name, so that it can be run again.

    From a log of another lab, a `seed` of None and an empty `plan`, `now` or `model` are not known.
    """

    seed: int | None
    settings: dict[str, Setting]
    plan: Planned
    prompts: Count
    now: Moment
    model: str
    world: str = ""
    asked: list[Any] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PromptStarted(Event):
    """A trial begins. `facts`: each a list of spellings of which one must show in the answer. `effects`: what must have happened, and nothing
    else; None: nothing was stated about effects."""

    prompt_index: Count
    prompt: str
    facts: list[list[str]] = field(default_factory=list)
    effects: list[dict[str, Any]] | None = field(default_factory=list)
    stated: bool = False
    """False: nothing was stated about a right answer, the outcome will be unknown."""
    twin: str | None = None
    """The answer of the same trial without faults, which this one's is compared with; None where it is not compared."""
    incomparable: str = ""
    """Why the answer (or where `twin` has one, the effects) can be compared with nothing, in part of a line; empty where they can."""
    twin_s: Amount | None = None
    """How long the twin took, in its world's time."""
    twin_calls: Count | None = None
    """How many attempts at calls the twin made."""


@dataclass(frozen=True, kw_only=True)
class CallStarted(AttemptEvent):
    """One attempt leaves the seam."""

    tool: str
    arguments: Any = None


@dataclass(frozen=True, kw_only=True)
class CallFinished(AttemptEvent):
    """The attempt is over. `via`: "proxy" (clean lane), "lane" (poisoned), "direct" (around the proxy), "function" (a call in
    this process) or "none" (never left).

    `ok`: the caller got a right-looking answer. `error`: timed_out, refused, reset, closed, garbled, too_large, or the service's own message.
    `rolled`: the injections whose dice were rolled for this attempt (it was eligible for them). `reply`: the start of what the caller got
    (at most REPLY_MAX characters).
    """

    tool: str
    ok: bool
    duration_s: Seconds
    status: Count | None = None
    error: str | None = None
    bytes: Count = 0
    via: str = "proxy"
    rolled: list[str] = field(default_factory=list)
    replayed: bool = False
    reply: str = ""


@dataclass(frozen=True, kw_only=True)
class FaultEvent(AttemptEvent, abstract=True):
    """A stage of a fault at one attempt. `fault`: its name; `injection`: the injection of the plan that it is of."""

    fault: str
    injection: str


@dataclass(frozen=True, kw_only=True)
class FaultScheduled(FaultEvent):
    """The dice hit: this attempt shall meet the fault."""

    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FaultArmed(FaultEvent):
    """A lane with the fault's toxics stands and was read back (faults of the wire only)."""

    lane: str = ""
    took_s: Seconds = 0.0


@dataclass(frozen=True, kw_only=True)
class FaultInjected(FaultEvent):
    """The fault changed the exchange."""


@dataclass(frozen=True, kw_only=True)
class FaultWitnessed(FaultEvent):
    """The caller observed the fault's effect; `evidence` says what. `changed`: each value that the fault changed, before and after, as in
    "amount 1200 → 1800" (at most REPLY_MAX characters); empty where it changed none."""

    evidence: str = ""
    changed: str = ""


@dataclass(frozen=True, kw_only=True)
class FaultHealed(FaultEvent):
    """The lane is gone. An armed fault that was healed unwitnessed makes its trial invalid."""

    witnessed: bool = True


@dataclass(frozen=True, kw_only=True)
class FaultUnreached(Event):
    """The plan names this request, and its fault never came up: so many requests were `made` to the target, or another fault took it first.
    Its trial is invalid, since it does not show what it was made to show."""

    injection: str
    target: str
    request: Count
    made: Count


@dataclass(frozen=True, kw_only=True)
class LabDisturbed(Event):
    """The clean proxies were gone and have been made anew: Toxiproxy was restarted, say (manager.log, without a trial).

    `since`: when it was noticed (ISO 8601); `lasted_s`: until all stood again; `lanes`: armed lanes lost with it; `epoch`: how often
    this has happened to this manager.
    """

    what: str
    since: Moment
    lasted_s: Seconds
    lanes: list[str]
    epoch: Count


@dataclass(frozen=True, kw_only=True)
class CallDisturbed(AttemptEvent):
    """An attempt was hit by something that nobody planned: it was cut, held up, or its lane was lost. Its trial is invalid."""

    tool: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Retry(AttemptEvent):
    """The tool will try the same request again after `wait_s`."""

    tool: str
    wait_s: Seconds
    reason: str


@dataclass(frozen=True, kw_only=True)
class Fallback(AttemptEvent):
    """After the last retry, one call around the proxy."""

    tool: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Usage(Event):
    """What one answer of the model cost; `cost_usd` is None for a model without a known price."""

    model: str
    request: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost_usd: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class Effect(Event):
    """A service did something that outlives the call: the ledger's entry.

    `effect`: event_created, event_deleted or message_sent; `content`: the object as the service keeps it; `reply`: the answer given
    (`status`, `body` as text, `headers`), so that a repeated request id gets it again after a restart; `fingerprint`: of the request's body.
    """

    target: str
    tool: str
    request_id: str
    effect: str
    content: dict[str, Any]
    reply: Answered
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Replied(Event):
    """What a target that is not the lab's own answered, before any story changed it.

    `asked`: the request's id where the target is told it, else (the model) a digest of the body that was sent. `headers`: those that steer
    the client. `failure`: how it ended when it gave no answer and nobody had meant it not to; its status is 0 then. Request 0 is the lab's
    own question for a fact.
    """

    target: str
    request: Count
    attempt: Count
    asked: str
    status: Count
    content_type: str
    body: str
    failure: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Budget(Event):
    """A limit was passed: `limit` is tokens, cost_usd, calls or seconds; `mode` is hard (the call was refused) or soft."""

    limit: str
    spent: Amount
    allowed: Amount
    mode: str
    target: str
    settings: ClassVar[dict[str, str]] = {
        "tokens": "TOKEN_LIMIT", "cost_usd": "COST_LIMIT_USD", "calls": "CALL_LIMIT", "seconds": "TIME_LIMIT_S",
    }  # fmt: skip

    def named(self, *, setting: bool) -> str:
        """The limit in words: "the lab's CALL_LIMIT of 6" where a setting states it, "the limit of 6 calls" where a Python user does."""
        if setting:
            return f"the lab's {self.settings.get(self.limit, self.limit)} of {self.allowed:g}"
        return f"the limit of {f'${self.allowed:g}' if self.limit == 'cost_usd' else f'{self.allowed:g} {self.limit}'}"


@dataclass(frozen=True, kw_only=True)
class LabWarning(Event, kind="warning"):
    """Something that a person should know, in one line."""

    message: str


@dataclass(frozen=True, kw_only=True)
class PromptAttempt(Event):
    """One attempt at a prompt (agent.log). `status`: ok or error; `error_type`: model, loop, empty, agent, hung, budget (a limit
    of the lab's own ended it), or none."""

    prompt_index: Count
    prompt: str
    response: str
    status: str
    start_time: Moment
    end_time: Moment
    duration_s: Seconds
    error_type: str
    prompt_attempt: Count
    error: str = ""
    moves: ClassVar[bool] = True

    def moved(self, by_s: float) -> PromptAttempt:
        return replace(self, start_time=_later(self.start_time, by_s), end_time=_later(self.end_time, by_s))


@dataclass(frozen=True, kw_only=True)
class PromptFinished(Event):
    """A trial ends. `status`: ok, failed, or (another lab's log) untold; `answer` is the agent's last word. `attempts` of None: untold."""

    prompt_index: Count
    prompt: str
    status: str
    answer: str
    attempts: Count | None
    duration_s: Seconds
    error_type: str = "none"


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event):
    """The run ends. `reason`: done, interrupted, lab_down, broken. A count of -1: another lab's log does not tell it."""

    received: Count
    processed: Count
    succeeded: Count
    duration_s: Seconds
    reason: str = "done"
