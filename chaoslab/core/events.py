"""Typed events: the only output of a run. record/log.py writes them, record/history.py reads them.

Each line of a log is one JSON object: `ts` (UTC, ISO 8601), `t` (seconds since the run began, by the world's monotonic
clock), `run`, `trial` ("p3.r1", or null), `writer`, `seq`, `kind`, and the fields of the kind's class below. Events are
made by keyword.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, ClassVar, NotRequired, TypedDict

from chaoslab.base.clock import add_seconds, format_iso
from chaoslab.base.json_text import quoted
from chaoslab.base.shapes import AnnotationCheck, Within, is_moment
from chaoslab.base.values import fixed

VERSION = 5
"""The log's version, which stands in `RunStarted.code` under `log`. Version 1 had no `world`, `asked` and `code`;
2 had no `reply`, `changed` and `twin`; 3 had no `turn`; 4 had no `drew`. Earlier logs can be read; only a log of this
version can be run again."""
REPLY_MAX = 300
"""Characters of a reply, or of a change, that a log keeps."""
CANCELLED = "cancelled"
"""The error of a call whose answer nobody waited for any more: its agent cancelled it."""
FILES = "files"
"""The target of effects on the files of the agent's folder, whose content is compared to the letter."""
OPEN = "open at the trial's end"
"""The error of a call that was still under way when its trial ended. Nobody had given it up."""

LASTS_MAX_S = 1e15
"""The longest a run may take, in virtual time: a million trials that wait for ten years each take 3e14 s."""

# Types that a field is checked by when its line is read. An event that is made in Python is not checked.
Seconds = Annotated[float, Within(0.0, LASTS_MAX_S)]
Amount = Annotated[float, Within(0.0, 1e15)]
Count = Annotated[int, Within(0, 2**63 - 1)]
Chance = Annotated[float, Within(0.0, 1.0)]
Moment = Annotated[str, is_moment]
Weighted = Annotated[list[str | float], lambda pair: [type(one) is str for one in pair] == [True, False]]
Setting = Annotated[Any, AnnotationCheck(str | float | bool | None | list[str | Weighted])]


class _Choice(TypedDict):
    fault: str


class _Injection(TypedDict):
    name: str
    choices: NotRequired[list[Annotated[dict[str, Any], AnnotationCheck(_Choice)]]]
    targets: NotRequired[list[str]]
    chance: NotRequired[Annotated[float, Within(0.0, 1.0)]]
    calls: NotRequired[list[Count]]
    triggers: NotRequired[dict[str, Any]]


class _Plan(TypedDict):
    injections: list[Annotated[dict[str, Any], AnnotationCheck(_Injection)]]


class _Answer(TypedDict):
    status: Count
    body: str
    headers: dict[str, str]


def collect_fault_names(injection: Mapping[str, Any]) -> set[str]:
    """The names of the faults that an injection of a plan, as data, chooses from."""
    return {str(choice["fault"]) for choice in injection.get("choices", ())}


Planned = Annotated[dict[str, Any], AnnotationCheck(_Plan, empty=True)]
Answered = Annotated[dict[str, Any], AnnotationCheck(_Answer, empty=True)]


def _shift_moment(moment: str, by_s: float) -> str:
    return format_iso(add_seconds(datetime.fromisoformat(moment), by_s))


class Event:
    """The base of all kinds; `kind` is the class's name in snake case."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Event]]] = {}
    moves: ClassVar[bool] = False
    """True if fields of the event hold moments, which `moved` moves."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """The fields that a line has only if they are not None."""

    def shift_time(self, by_s: float) -> Event:  # noqa: ARG002 - most name none
        """The same event, `by_s` later: trials that ran side by side are logged one after the other."""
        return self

    def __init_subclass__(cls, *, abstract: bool = False, kind: str = "") -> None:
        """Registers the class as a kind. `abstract`: it is a base of several kinds and none itself; `kind`: the kind's
        name where it is not made from the class's."""
        if abstract:
            return
        cls.kind = kind or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        Event.kinds[cls.kind] = cls


@fixed(frozen=True, kw_only=True)
class AttemptRef:
    """An attempt's name consists of `trial`, `target`, `request` and `attempt`.

    `trial` is the key in the line's envelope. `turn` is the turn of the conversation, counted from 1. `request` is
    counted by target within the trial, `attempt` within the request. `request_id` is the same for each attempt of a
    request, and empty where it is not known.
    """

    trial: str | None = field(default=None, compare=False)
    turn: Count = 1
    target: str
    request: Count
    attempt: Count
    request_id: str

    @cached_property
    def json_fields(self) -> str:
        """The fields as they stand in each line about the attempt: JSON without its braces, and without the trial."""
        numbers = f'"turn": {self.turn}, "request": {self.request}, "attempt": {self.attempt}'
        return f'"target": {quoted(self.target)}, {numbers}, "request_id": {quoted(self.request_id)}'


@fixed(frozen=True, kw_only=True)
class AttemptEvent(Event, abstract=True):
    """The base of events of one attempt. In a line of the log the fields of `at` stand beside the others."""

    at: AttemptRef

    @property
    def turn(self) -> int:
        return self.at.turn

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


@fixed(frozen=True, kw_only=True)
class RunStarted(Event):
    """The lab is up.

    In a log of another lab, a `seed` of None and an empty `plan`, `now` or `model` mean that it is not known.
    """

    seed: int | None
    settings: dict[str, Setting]
    """All settings in force, secrets masked."""
    plan: Planned
    prompts: Count
    """The number of trials."""
    now: Moment
    """The moment that the tools and the model call today."""
    model: str
    world: str = ""
    """local, compose or virtual."""
    asked: list[Any] = field(default_factory=list)
    """The prompts with everything stated about them."""
    code: dict[str, str] = field(default_factory=dict)
    """Digests and versions of the code that made the run, by name; a run is repeated with the same code."""

    @property
    def injections(self) -> list[dict[str, Any]]:
        """Those of the plan, as data; none if it is not known."""
        injection_list: list[dict[str, Any]] = self.plan.get("injections", [])
        return injection_list


@fixed(frozen=True, kw_only=True)
class PromptStarted(Event):
    """A trial begins."""

    prompt_index: Count
    prompt: str
    facts: list[list[str]] = field(default_factory=list)
    """The facts that a right answer shows. Each is a list of spellings, of which one must show."""
    effects: list[dict[str, Any]] | None = field(default_factory=list)
    """The effects that the trial must have, and no others. None: nothing was stated about effects."""
    stated: bool = False
    """True if a right answer was stated. If not, the outcome will be unknown."""
    twin: str | None = None
    """The answer of the same trial without faults, to compare with; None: nothing to compare with."""
    incomparable: str = ""
    """The reason why the answer (or, if `twin` is given, the effects) cannot be compared; empty: it can."""
    twin_s: Amount | None = None
    """The twin's duration in seconds of its world's time."""
    twin_calls: Count | None = None
    """The number of attempts at calls that the twin made."""
    state: Any = None
    """The end state of the twin, to compare with; None: nothing to compare with."""
    undoes: dict[str, str] | None = None
    """The effects that take others back. This and the next five stand only in the lines of trials that have them."""
    idempotent: list[str] | None = None
    """The effects that count once however often they are repeated."""
    ordered: bool | None = None
    """The effects must happen in the order of `effects`."""
    exact: bool | None = None
    """The effects are the twin's, and must have their content and no other."""
    twin_asked: list[str] | None = None
    """Digests of what scripted models were sent in the twin, each once, in order."""
    twin_failed: list[str] | None = None
    """The targets of which a call failed in the twin, if one did."""

    left_out: ClassVar[tuple[str, ...]] = ("undoes", "idempotent", "ordered", "exact", "twin_asked", "twin_failed")


@fixed(frozen=True, kw_only=True)
class ValuesDrawn(Event):
    """Values that were drawn for this trial alone, by injection and parameter, as in "latency on search.delay_s"."""

    values: dict[str, Any]


@fixed(frozen=True, kw_only=True)
class ChanceSet(Event):
    """Somebody gave a setting another chance while the run went on: TOXIC_PROB or ERROR_PROB. It holds from this trial
    on."""

    setting: str
    was: Chance
    chance: Chance

    @property
    def change_in_words(self) -> str:
        """The change in words."""
        return f"{self.setting} was {self.was:g} and was set to {self.chance:g} while the run went on"


@fixed(frozen=True, kw_only=True)
class FaultsOff(Event):
    """Injections of the plan that somebody had switched off when this trial began: they hit nothing in it."""

    injections: list[str]

    @property
    def change_in_words(self) -> str:
        """The same in words."""
        return f"switched off while the run went on: {', '.join(self.injections)}"


@fixed(frozen=True, kw_only=True)
class CallStarted(AttemptEvent):
    """One attempt leaves the seam."""

    tool: str
    arguments: Any = None
    client_retry: Count | None = None
    """The retries of its client so far, by the client's own count. It stands only in the lines of further attempts, and
    only if the client tells it, as the SDKs of OpenAI, Anthropic and Groq do."""
    traceparent: str | None = None
    """The span that sent the request, as its header of this name says (W3C Trace Context). It stands only in the lines
    of requests with such a header."""
    protocol: str | None = None
    """mcp: a request in this protocol. It stands only in the lines of such requests."""

    left_out: ClassVar[tuple[str, ...]] = ("client_retry", "traceparent", "protocol")


@fixed(frozen=True, kw_only=True)
class CallFinished(AttemptEvent):
    """The attempt is over."""

    tool: str
    ok: bool
    """True if the answer looked right to the caller."""
    duration_s: Seconds
    status: Count | None = None
    error: str | None = None
    """timed_out, refused, reset, closed, garbled, too_large, died (its agent was killed), stopped (its user stopped the
    agent), cancelled (nobody waited for the answer any more), "status 200, and no JSON" or "no body" (a reply of
    success that its caller cannot use), or the service's own message."""
    bytes: Count = 0
    via: str = "proxy"
    """proxy (clean), lane (poisoned), direct (around the proxy), function (in this process), service (on the virtual
    network) or none (it did not reach its target)."""
    rolled: list[str] = field(default_factory=list)
    """The injections whose dice were rolled for this attempt."""
    replayed: bool = False
    reply: str = ""
    """The start of the reply that the caller got, at most REPLY_MAX characters."""
    first_byte_s: Seconds | None = None
    """Seconds until the first part of a streamed reply reached the caller. This and the next stand only in the lines of
    streamed replies of which something came."""
    last_byte_s: Seconds | None = None
    """Seconds until its last part did."""
    finish_reason: str | None = None
    """The provider's word for why a model's answer ended, such as stop; empty if it broke off. Only at models that are
    services."""
    said_by: str | None = None
    """script: a model's answer that is the same whatever the model was sent (`lab.scripted`); reacting script: one of a
    script with `on_failure` that took what it was sent for no failure."""
    asked: str | None = None
    """A digest of the messages that such a model was sent."""
    broken_within: bool | None = None
    """True for a function that changes the world and failed because a function within it met a fault: what it had done
    by then is not known."""
    left_out: ClassVar[tuple[str, ...]] = (
        "first_byte_s",
        "last_byte_s",
        "finish_reason",
        "said_by",
        "asked",
        "broken_within",
    )

    @property
    def is_cancelled(self) -> bool:
        """True if nobody waited for the answer any more, or the trial ended first. It may be the doing of a fault that
        held the call back."""
        return self.error in (CANCELLED, OPEN) and not self.ok and (self.status or 0) < 400  # no service's own word


def quote_reserved_error(said: str) -> str:
    """A target's own message as the error of a call. It is not taken for the lab's word for one without an end."""
    return f"'{said}'" if said in (CANCELLED, OPEN) else said


@fixed(frozen=True, kw_only=True)
class FaultEvent(AttemptEvent, abstract=True):
    """A stage of a fault at one attempt. `fault` is its name, `injection` the name of its injection in the plan."""

    fault: str
    injection: str


@fixed(frozen=True, kw_only=True)
class FaultScheduled(FaultEvent):
    """The dice hit: this attempt shall meet the fault."""

    params: dict[str, Any] = field(default_factory=dict)


@fixed(frozen=True, kw_only=True)
class FaultArmed(FaultEvent):
    """A lane with the fault's toxics stands and was read back (faults of the wire only)."""

    lane: str = ""
    took_s: Seconds = 0.0


@fixed(frozen=True, kw_only=True)
class FaultInjected(FaultEvent):
    """The fault changed the exchange."""


@fixed(frozen=True, kw_only=True)
class FaultWitnessed(FaultEvent):
    """The caller observed the fault's effect."""

    evidence: str = ""
    """The observation, in words."""
    changed: str = ""
    """Each value that the fault changed, as in "amount 1200 → 1800", at most REPLY_MAX characters; empty: none."""


@fixed(frozen=True, kw_only=True)
class FaultHealed(FaultEvent):
    """The lane is gone, or there was none and another fault kept this one from its caller (`masked_by`). An armed fault
    that was healed unwitnessed makes its trial invalid."""

    witnessed: bool = True
    masked_by: str = ""
    """The fault of the same call that ended it first, or held it until its caller gave it up, so that this one could
    not be met; empty: none. Its trial stays valid."""
    idle: str = ""
    """The reason, in words, that the fault had nothing to do with this call; empty: none. Its trial stays valid."""


Stage = FaultScheduled | FaultArmed | FaultInjected | FaultWitnessed | FaultHealed
"""A stage that a fault reaches at an attempt."""


@fixed(frozen=True, kw_only=True)
class FaultHeldBack(AttemptEvent):
    """An injection would have hit this attempt, and a limit of the plan held it back. Nothing was done."""

    injection: str
    tool: str
    limit: str
    """The limit and its value, as in "share 0.1" or "lever FILE: the words of whoever pulled it"."""


@fixed(frozen=True, kw_only=True)
class FaultUnreached(Event):
    """The plan names this request, but its fault never acted: too few requests were made, or another fault came first.
    The trial is invalid, since it does not show what it was made to show."""

    injection: str
    target: str
    request: Count
    made: Count
    """The number of requests made to the target."""


@fixed(frozen=True, kw_only=True)
class ServiceStopped(FaultEvent):
    """The supervisor has stopped the process of a service for a fault (supervisor.log)."""

    how: str
    """killed or paused, or what a container's engine did: partitioned, throttled or out of memory."""
    took_s: Seconds = 0.0
    """Seconds from the request for it until the process had stopped."""


@fixed(frozen=True, kw_only=True)
class ServiceResumed(Event):
    """The process of a service that the supervisor had stopped answers again, or goes on (supervisor.log)."""

    target: str
    how: str
    """killed or paused, as it was stopped."""
    lasted_s: Seconds
    """Seconds since it had stopped."""


@fixed(frozen=True, kw_only=True)
class EndingEvent(AttemptEvent):
    """The agent is ended at this call."""

    tool: str

    @property
    def call_name(self) -> str:
        """The call, as in "charge (1.2)"."""
        return f"{self.target} ({self.request}.{self.attempt})"


@fixed(frozen=True, kw_only=True)
class AgentDied(EndingEvent):
    """A fault has killed the agent's process at this call, or after the turn in which it was made."""

    between: bool = False
    """It was killed between this turn and the next."""

    @property
    def call_name(self) -> str:
        return f"the end of turn {self.turn}" if self.between else super().call_name


@fixed(frozen=True, kw_only=True)
class AgentResumed(Event):
    """A fresh process of the agent goes on after its death."""

    nth: Count
    """The number of the resumption, from 1."""


@fixed(frozen=True, kw_only=True)
class UserStopped(EndingEvent):
    """The user has stopped the agent at this call, and then says something."""

    prompt: str
    """The user's words after it."""


@fixed(frozen=True, kw_only=True)
class EventRepeated(Event):
    """The agent is asked once more what it was asked, as by a queue that delivers again or an impatient user. It is
    to be done once, unless the run's `wishes` says otherwise."""

    turn: Count
    prompt: str
    at_once: bool = False
    """The first time is not answered yet."""


@fixed(frozen=True, kw_only=True)
class RepeatAnswered(Event):
    """The agent's answer to words that a fault has repeated."""

    turn: Count
    answer: str
    duration_s: Seconds


@fixed(frozen=True, kw_only=True)
class LabDisturbed(Event):
    """The clean proxies were gone and have been made anew, as after a restart of Toxiproxy, or somebody else had
    changed one (manager.log, no trial)."""

    what: str
    since: Moment
    """The moment at which it was noticed."""
    lasted_s: Seconds
    """Seconds until all proxies stood as they should, or until the run's end."""
    lanes: list[str]
    """The armed lanes that were lost."""
    epoch: Count
    """The number of times that this has happened to this manager."""


@fixed(frozen=True, kw_only=True)
class CallDisturbed(AttemptEvent):
    """An unplanned disturbance hit an attempt: it was cut, held up, its lane was lost, or somebody else had changed its
    proxy. The trial is invalid."""

    tool: str
    why: str


@fixed(frozen=True, kw_only=True)
class Retry(AttemptEvent):
    """The tool will repeat the same request after `wait_s`."""

    tool: str
    wait_s: Seconds
    reason: str


@fixed(frozen=True, kw_only=True)
class Fallback(AttemptEvent):
    """A call around the proxy, after the last retry."""

    tool: str
    address: str


@fixed(frozen=True, kw_only=True)
class Usage(Event):
    """The cost of one answer of the model. `cost_usd` is None if the model's price is not known."""

    model: str
    request: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost_usd: Amount | None = None


@fixed(frozen=True, kw_only=True)
class UsageUnstated(Event):
    """An answer of the model that does not state its usage, such as OpenAI's stream without `include_usage`. The tokens
    are the lab's estimate: one for four characters. They are in no sum; budgets count them."""

    model: str
    request: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost_usd: Amount | None = None
    finished: bool = True
    """False if the answer broke off, before it could state its usage."""

    @property
    def why(self) -> str:
        """The reason why the usage is not known, in words, and what to do."""
        if not self.finished:
            return f"the model's answer {self.request} broke off before it stated its usage"
        return (
            f"the model's answer {self.request} states no usage (of a stream, OpenAI's clients ask for it by "
            "stream_options={'include_usage': True})"
        )


@fixed(frozen=True, kw_only=True)
class Effect(Event):
    """A service did something that outlives the call: an entry of its ledger."""

    target: str
    tool: str
    request_id: str
    effect: str
    """event_created, event_deleted, message_sent, or the name of a Python function."""
    content: dict[str, Any]
    """The object as the service keeps it."""
    reply: Answered
    """The answer given: `status`, `body` as text, `headers`. A repeated request id gets it again, after a restart too.
    Of a target that is not the lab's own it stands only in the lines of calls that a fault met, and is its start."""
    fingerprint: str
    """A digest of the request's body."""
    request: Count | None = None
    """The number of the request that had the effect. This and the next stand where a seam saw it happen."""
    attempt: Count | None = None
    """The number of its attempt."""

    left_out: ClassVar[tuple[str, ...]] = ("request", "attempt")


@fixed(frozen=True, kw_only=True)
class Replied(Event):
    """A reply of a target that is not the lab's own, before any fault changed it.

    Request 0 is the lab's own question for a fact.
    """

    target: str
    request: Count
    attempt: Count
    asked: str
    """The request's id if the target is sent one; else, as for the model, a digest of the body that was sent."""
    status: Count
    content_type: str
    body: str
    failure: str = ""
    """The kind of failure if the target gave no answer and no fault was the cause; the status is 0 then. A streamed
    answer that broke off has its status and what came of it too."""
    headers: dict[str, str] = field(default_factory=dict)
    """The headers that steer the client."""
    sketch: dict[str, Any] = field(default_factory=dict)
    """The request to a model in brief: its newest messages cut to 200 characters, short values, digests of the rest."""


@fixed(frozen=True, kw_only=True)
class Budget(Event):
    """A limit was passed: `limit` is tokens, cost_usd, calls or seconds; `mode` is hard (the call was refused) or
    soft."""

    limit: str
    spent: Amount
    allowed: Amount
    mode: str
    target: str
    settings: ClassVar[dict[str, str]] = {
        "tokens": "TOKEN_LIMIT",
        "cost_usd": "COST_LIMIT_USD",
        "calls": "CALL_LIMIT",
        "seconds": "TIME_LIMIT_S",
    }

    def describe_passed_limit(self, *, setting: bool) -> str:
        """The limit in words: "the lab's CALL_LIMIT of 6" if a setting states it, "the limit of 6 calls" if Python code
        does."""
        if setting:
            return f"the lab's {self.settings.get(self.limit, self.limit)} of {self.allowed:g}"
        return f"the limit of {f'${self.allowed:g}' if self.limit == 'cost_usd' else f'{self.allowed:g} {self.limit}'}"


@fixed(frozen=True, kw_only=True)
class VariationTried(Event):
    """The result of a trial of an exploration, and what differs in it from the trial without faults. `tried`: as
    `search.variation.TriedVariation` has it."""

    tried: dict[str, Any]


@fixed(frozen=True, kw_only=True)
class CallsOrdered(Event):
    """The order that was drawn for calls that were made at the same moment (`order="seeded"`). `calls`: the names of
    their functions or requests, and of several with one name its number in the order of asking."""

    calls: list[str]


@fixed(frozen=True, kw_only=True)
class LabWarning(Event, kind="warning"):
    """A warning to the user, in one line."""

    message: str


@fixed(frozen=True, kw_only=True)
class PromptAttempt(Event):
    """One attempt at a prompt (agent.log)."""

    prompt_index: Count
    prompt: str
    response: str
    status: str
    """ok or error."""
    start_time: Moment
    end_time: Moment
    duration_s: Seconds
    error_type: str
    """model, loop, empty, agent, hung, budget (a limit of the lab's own ended it), or none."""
    prompt_attempt: Count
    error: str = ""
    moves: ClassVar[bool] = True

    def shift_time(self, by_s: float) -> PromptAttempt:
        times = {"start_time": _shift_moment(self.start_time, by_s), "end_time": _shift_moment(self.end_time, by_s)}
        return PromptAttempt(**vars(self) | times)  # in a third of the time of `replace`


@fixed(frozen=True, kw_only=True)
class TurnStarted(Event):
    """A turn of a conversation begins. A trial of one prompt has no such event."""

    turn: Count
    prompt: str
    """The user's words."""


@fixed(frozen=True, kw_only=True)
class TurnFinished(Event):
    """A turn of a conversation ends with the agent's answer."""

    turn: Count
    answer: str
    duration_s: Seconds
    twin: str | None = None
    """The answer of this turn without faults. This and the next three stand only where they are known or stated."""
    facts: list[list[str]] | None = None
    """The facts that the answer of this turn shows, as in the beginning of a trial."""
    says: dict[str, Any] | None = None
    """The values that the turn's own `says` read in its answer."""
    twin_says: dict[str, Any] | None = None
    """The same of the twin's answer."""

    left_out: ClassVar[tuple[str, ...]] = ("twin", "facts", "says", "twin_says")


@fixed(frozen=True, kw_only=True)
class EndState(Event):
    """The state of the world that the user's own function read before and after the trial, as JSON values."""

    before: Any = None
    after: Any = None
    error: str = ""
    """The reason why it could not be read; empty if it was."""


@fixed(frozen=True, kw_only=True)
class AnswerRead(Event):
    """The user's own `says` read the agent's answer: JSON values by key."""

    says: dict[str, Any] = field(default_factory=dict)
    twin: dict[str, Any] | None = None
    """The same of the twin's answer; None: there is none to compare with."""
    error: str = ""
    """The reason why it could not be read; empty if it was."""


@fixed(frozen=True, kw_only=True)
class GroundLost(Event):
    """The trial never got the value of this read, nor one in its place. The trial without faults was run once more with
    that value changed, to see what rests on it."""

    target: str
    tool: str
    answer: bool
    """The answer was another one then."""
    effects: bool
    """The effects were others then."""
    calls: bool = False
    """Other calls were made then, as by a loop that asks until it reads a value; or the trial asked more often than its
    twin."""
    shown: bool = False
    """The twin's answer has words of the read that the prompt has not."""
    sole: bool = False
    """Nothing else that the trial read or was told may have given the value, and what followed was the same then."""


@fixed(frozen=True, kw_only=True)
class TwinReordered(Event):
    """The result of the trial without faults was another one when a call began later that it makes beside others. A
    trial that did not end well is held against it too."""

    call: str
    """The call, with the number of its request."""
    answer: str | None
    effects: list[dict[str, Any]]
    state: Any = None
    """The end state; None if none is compared."""
    together: bool = False
    """Others began later together with it, so there are orders that nobody tried."""


@fixed(frozen=True, kw_only=True)
class StoryLeftOut(Event):
    """The trial ended well, and its calls and faults are counted here and have no lines (`keep="failed"`)."""

    calls: dict[str, Count]
    """The attempts at calls, by target."""
    met: dict[str, dict[str, Count]]
    """The faults that were witnessed, by fault and target."""


@fixed(frozen=True, kw_only=True)
class PromptFinished(Event):
    """A trial ends."""

    prompt_index: Count
    prompt: str
    status: str
    """ok or failed."""
    answer: str
    """The agent's last answer."""
    attempts: Count
    """The number of attempts at the prompt."""
    duration_s: Seconds
    error_type: str = "none"
    under_way: str | None = None
    """The waits that went on when the time to settle was over, and not in its twin; more may be done. It stands only in
    the lines of trials that have some."""
    drew: bool | None = None
    """In virtual time, true if the agent, or a program that it calls, drew chance of its own (`random`, `secrets`,
    `os.urandom`, `uuid4`, numpy), which is made of the run's seed and the trial."""

    left_out: ClassVar[tuple[str, ...]] = ("under_way", "drew")


@fixed(frozen=True, kw_only=True)
class RunFinished(Event):
    """The run ends. `reason` is done, interrupted, lab_down or broken. `lines`: the number of lines that each other
    writer has written at least."""

    received: Count
    processed: Count
    succeeded: Count
    duration_s: Seconds
    reason: str = "done"
    lines: dict[str, Count] = field(default_factory=dict)
