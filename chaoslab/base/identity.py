"""The names of trials and requests, the same in every process and every world."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from chaoslab.base.json_text import decode_json, make_json_writer

ALONE = "alone"
"""The run of a call that names none, e.g. one made by hand with curl."""
KEY_DEPTH_MAX = 3
"""The depth at which an idempotency key may lie within the arguments, as in GraphQL's `input`."""
_OF_KEYS = frozenset({"idempotencykey", "xidempotencykey"})
"""The names of idempotency keys without case and signs, as in Idempotency-Key, idempotency_key and idempotencyKey."""

REPEATABLE = frozenset({"PUT", "DELETE"})
"""The unsafe methods of which several equal requests have the effect of one (RFC 9110, section 9.2.2)."""

_TRIAL = re.compile(
    r"(?P<run>[A-Za-z0-9_-]{1,64})\.p(?P<prompt>\d{1,6})\.r(?P<repeat>\d{1,9})(?P<truth>\.truth)?", re.ASCII
)


@lru_cache(1024)
def is_idempotency_key(name: str) -> bool:
    """True if a parameter, a header or a field has the name of an idempotency key. Requests with one key have one
    effect. The lab trusts the service or the function in this."""
    return name.replace("-", "").replace("_", "").lower() in _OF_KEYS


def find_idempotency_key(arguments: Any, depth: int = 0) -> str:
    """The idempotency key of a request's arguments, which may lie within one of them; empty if there is none."""
    if not isinstance(arguments, Mapping) or depth > KEY_DEPTH_MAX:
        return ""
    for name, value in arguments.items():
        if isinstance(value, str | int) and value and isinstance(name, str) and is_idempotency_key(name):
            return str(value)
    return next(filter(None, (find_idempotency_key(value, depth + 1) for value in arguments.values())), "")


@dataclass(frozen=True)
class TrialId:
    """One prompt with its retries. Its header `X-Trial` reads `<run>.p<prompt>.r<repeat>`, counted from 1. A `truth`
    trial is the lab's own question to a service, around every proxy, to learn what a right answer shows. It has a state
    of its own, so it cannot disturb the trial that it is asked for."""

    run: str
    prompt: int
    repeat: int = 1
    truth: bool = False

    @cached_property
    def key(self) -> str:
        """The trial's name within its run, e.g. `p3.r1`, in dice and logs."""
        return f"p{self.prompt}.r{self.repeat}" + (".truth" if self.truth else "")

    @property
    def header(self) -> str:
        return f"{self.run}.{self.key}"

    @classmethod
    def parse(cls, header: str | None) -> TrialId:
        """The trial of a header; the trial of the run `alone` if there is none. Raises ValueError: the header has
        another form."""
        return _parse_trial_header(header) if header else cls(ALONE, 0, 0)


@lru_cache(256)
def _parse_trial_header(header: str) -> TrialId:
    match = _TRIAL.fullmatch(header)
    if match is None:
        raise ValueError(f"X-Trial is {header[:80]!r}; it should read like 20261121-091500.p3.r1")
    return TrialId(match["run"], int(match["prompt"]), int(match["repeat"]), truth=match["truth"] is not None)


def make_nth_trial_id(run: str, number: int, prompts: int) -> TrialId:
    """The trial of that number (from 0) if all prompts are asked in order and then again from the first."""
    return TrialId(run, number % prompts + 1, number // prompts + 1)


canonical = make_json_writer(separators=(",", ":"), sort_keys=True)
"""The value as JSON with one spelling per value, to hash and to compare."""


@lru_cache(16)
def parse_json(text: bytes) -> Any:
    """The value of a JSON text. Callers must not change it: all calls with the same text get the same object. Raises
    ValueError: it is no JSON."""
    return decode_json(text)


def hash_value(value: Any) -> str:
    """16 hex digits for a value's canonical JSON."""
    return hashlib.blake2b(canonical(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def make_request_id(trial: str, tool: str, arguments: Any, nth: int) -> str:
    """32 hex digits: hash(trial, tool, canonical arguments, n). So the same request asked again has the same id."""
    return _hash_request(trial, tool, canonical(arguments), nth)


def _hash_request(trial: str, tool: str, content: str, nth: int) -> str:
    text = "\x1f".join((trial, tool, content, str(nth)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


TOGETHER_S = 0.05
"""An equal call that begins so soon after one that is still under way is another request, and no retry of that one:
nobody gives a call up so soon."""


@dataclass(slots=True, eq=False)
class Request:
    """One request of the agent to a target: the `make_nth_trial_id` with this intent, tried `attempts` times so far.
    `under_way`: its
    attempts that have not ended, of which the latest began at `began_s`. Both stay as they are where nobody tells
    (`begin_attempt`, `end_attempt`). `beside`: the equal requests that were made together with it, itself too."""

    trial: TrialId
    target: str
    tool: str
    number: int
    intent: tuple[str, Hashable]
    nth: int = 1
    attempts: int = 0
    known_id: str = ""
    under_way: int = 0
    began_s: float = 0.0
    answered: bool = False
    beside: list[Request] | None = None

    @property
    def id(self) -> str:
        """Its id by its first intent; it keeps that when it takes the place of another."""
        if not self.known_id:
            tool, spelt = self.intent
            self.known_id = _hash_request(self.trial.header, tool, str(spelt), self.nth)
        return self.known_id

    def count_attempt(self) -> int:
        self.attempts += 1
        return self.attempts

    def begin_attempt(self, now_s: float) -> int:
        """Begins the next attempt, whose end will be told."""
        self.under_way += 1
        self.began_s = now_s
        return self.count_attempt()

    def end_attempt(self) -> None:
        """Ends an attempt that was begun."""
        self.under_way -= 1


@dataclass
class Requests:
    """A trial's requests. Numbers them per target in the order first asked, and recognizes a repeated one."""

    trial: TrialId
    _answered: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    _known: dict[Hashable, Request] = field(default_factory=dict)
    """By intent; a later one than the first by (intent, nth)."""
    _count: dict[str, int] = field(default_factory=dict)
    _safe: set[tuple[str, Hashable]] = field(default_factory=set)
    turn: int = 1
    """The turn of the conversation that goes on."""
    _earlier: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    """The requests that were answered before this turn."""

    def find_or_create(
        self,
        target: str,
        tool: str,
        arguments: Any,
        *,
        safe: bool = False,
        spelt: Hashable = None,
        instead: Request | None = None,
        now_s: float | None = None,
    ) -> Request:
        """The request with this intent. It is the same one as before unless an identical one was answered for good.

        `spelt`: in place of the arguments, a value that is the same for the same ones. The id needs a text.
        `safe` marks a request without effects (HTTP's safe methods), which `restart_prompt` need not take up again.
        `instead`: a request that was numbered before its intent was known. A new one takes its place.
        `now_s`: the moment, where each attempt tells its begin and its end: an equal call beside one that has only just
        begun is a request of its own.
        """
        intent = (tool, spelt if spelt or (spelt is not None and spelt != "") else canonical(arguments))
        if safe:
            self._safe.add(intent)
        return self.find_or_create_by_intent(target, intent, instead, now_s)

    def find_or_create_by_intent(
        self,
        target: str,
        intent: tuple[str, Hashable],
        instead: Request | None = None,
        now_s: float | None = None,
    ) -> Request:
        """The request with this intent (tool, a value that is the same for the same arguments), as `find_or_create`
        gives it."""
        nth = self._answered.get(intent, 0) + 1
        key: Hashable = intent if nth == 1 else (intent, nth)
        request = self._known.get(key)
        if request is None:
            request = self._known[key] = self._create_request(target, intent, nth, instead)
        elif now_s is not None and (request.under_way or request.beside):
            return self._match_parallel_request(request, instead, now_s)
        return request

    def _create_request(self, target: str, intent: tuple[str, Hashable], nth: int, instead: Request | None) -> Request:
        if instead is not None:
            instead.intent, instead.nth = intent, nth
            return instead
        self._count[target] = number = self._count.get(target, 0) + 1
        return Request(self.trial, target, intent[0], number, intent, nth)

    def _match_parallel_request(self, first: Request, instead: Request | None, now_s: float) -> Request:
        """The request that an equal call is beside some that are not all answered: the retry of one that failed, else a
        new one. If one has been under way for long, it is asked for again."""
        group = first.beside or [first]
        for member in group:
            if not member.under_way and not member.answered:
                return member
        waiting = [member for member in group if member.under_way]
        if not any(member.answered for member in group) and all(
            now_s - member.began_s >= TOGETHER_S for member in waiting
        ):
            return waiting[0]
        new_request = self._create_request(first.target, first.intent, first.nth + len(group), instead)
        group.append(new_request)
        first.beside = new_request.beside = group
        return new_request

    def count_requests(self, target: str) -> int:
        """The number of requests to this target so far."""
        return self._count.get(target, 0)

    @property
    def counts_by_target(self) -> dict[str, int]:
        """The number of requests so far, by target."""
        return dict(self._count)

    def mark_answered(self, request: Request) -> None:
        """Notes that the request was answered for good: an identical one is a new request from now on."""
        request.answered = True
        group = request.beside
        if group is None:
            self._answered[request.intent] = self._answered.get(request.intent, 0) + 1
        elif all(member.answered for member in group):  # the next one has the number behind theirs
            self._answered[request.intent] = self._answered.get(request.intent, 0) + len(group)

    def restart_prompt(self) -> None:
        """Starts the prompt, or the turn that goes on, over. An effect that it asks for again has the id it had, so it
        happens once."""
        safe = {intent: n for intent, n in self._answered.items() if intent in self._safe}
        self._answered = {**self._earlier, **safe}

    def begin_turn(self, number: int) -> None:
        """Begins a turn of the conversation: an effect of an earlier turn that is asked for again is another one."""
        self.turn, self._earlier = number, dict(self._answered)
