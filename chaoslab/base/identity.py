"""The names of trials and requests, the same in every process and every world."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from chaoslab.base.json_text import speller, value_of

ALONE = "alone"
"""The run of a call that names none, e.g. one made by hand with curl."""
IDEMPOTENCY_KEY = "idempotency_key"
"""The parameter of a function whose calls with one key have one effect. The lab trusts the function in this."""

_TRIAL = re.compile(
    r"(?P<run>[A-Za-z0-9_-]{1,64})\.p(?P<prompt>\d{1,6})\.r(?P<repeat>\d{1,6})(?P<truth>\.truth)?", re.ASCII
)


@dataclass(frozen=True)
class TrialId:
    """One prompt with its retries. Its header `X-Trial` reads `<run>.p<prompt>.r<repeat>`, counted from 1.

    A `truth` trial is the lab's own question to a service, around every proxy, to learn what a right answer shows. It
    has a state of its own, so it cannot disturb the trial that it is asked for.
    """

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
        """The trial of a header; the trial of the run `alone` if there is none.

        Raises:
            ValueError: the header has another form.
        """
        return _trial_of(header) if header else cls(ALONE, 0, 0)


@lru_cache(256)
def _trial_of(header: str) -> TrialId:
    match = _TRIAL.fullmatch(header)
    if match is None:
        raise ValueError(f"X-Trial is {header[:80]!r}; it should read like 20261121-091500.p3.r1")
    return TrialId(match["run"], int(match["prompt"]), int(match["repeat"]), truth=match["truth"] is not None)


def nth(run: str, number: int, prompts: int) -> TrialId:
    """The trial of that number (from 0) if all prompts are asked in order and then again from the first."""
    return TrialId(run, number % prompts + 1, number // prompts + 1)


canonical = speller(separators=(",", ":"), sort_keys=True)
"""The value as JSON with one spelling per value, to hash and to compare."""


@lru_cache(16)
def parsed(text: bytes) -> Any:
    """The value of a JSON text. Callers must not change it: all calls with the same text get the same object.

    Raises:
        ValueError: it is no JSON.
    """
    return value_of(text)


def digest(value: Any) -> str:
    """16 hex digits for a value's canonical JSON."""
    return hashlib.blake2b(canonical(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def request_id(trial: str, tool: str, arguments: Any, nth: int) -> str:
    """32 hex digits: hash(trial, tool, canonical arguments, n). So the same request asked again has the same id."""
    return _id(trial, tool, canonical(arguments), nth)


def _id(trial: str, tool: str, wanted: str, nth: int) -> str:
    text = "\x1f".join((trial, tool, wanted, str(nth)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(slots=True)
class Request:
    """One request of the agent to a target: the `nth` with this intent, tried `attempts` times so far."""

    trial: TrialId
    target: str
    tool: str
    number: int
    intent: tuple[str, Hashable]
    nth: int = 1
    attempts: int = 0
    known_id: str = ""

    @property
    def id(self) -> str:
        """Its id by its first intent; it keeps that when it takes the place of another."""
        if not self.known_id:
            tool, spelt = self.intent
            self.known_id = _id(self.trial.header, tool, str(spelt), self.nth)
        return self.known_id

    def next_attempt(self) -> int:
        self.attempts += 1
        return self.attempts


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

    def ask(
        self,
        target: str,
        tool: str,
        arguments: Any,
        *,
        safe: bool = False,
        spelt: Hashable = None,
        instead: Request | None = None,
    ) -> Request:
        """The request with this intent. It is the same one as before unless an identical one was answered for good.

        `spelt`: in place of the arguments, a value that is the same for the same ones. The id needs a text.
        `safe` marks a request without effects (HTTP's safe methods), which `restart_prompt` need not take up again.
        `instead`: a request that was numbered before its intent was known. A new one takes its place.
        """
        intent = (tool, spelt if spelt or (spelt is not None and spelt != "") else canonical(arguments))
        if safe:
            self._safe.add(intent)
        return self.numbered(target, intent, instead)

    def numbered(self, target: str, intent: tuple[str, Hashable], instead: Request | None = None) -> Request:
        """The request with this intent (tool, a value that is the same for the same arguments), as `ask` gives it."""
        nth = self._answered.get(intent, 0) + 1
        key: Hashable = intent if nth == 1 else (intent, nth)
        request = self._known.get(key)
        if request is None:
            if instead is not None:
                instead.intent, instead.nth = intent, nth
                request = self._known[key] = instead
            else:
                self._count[target] = number = self._count.get(target, 0) + 1
                request = self._known[key] = Request(self.trial, target, intent[0], number, intent, nth)
        return request

    def made(self, target: str) -> int:
        """The number of requests to this target so far."""
        return self._count.get(target, 0)

    @property
    def counts(self) -> dict[str, int]:
        """The number of requests so far, by target."""
        return dict(self._count)

    def answered(self, request: Request) -> None:
        """Notes that the request was answered for good: an identical one is a new request from now on."""
        self._answered[request.intent] = self._answered.get(request.intent, 0) + 1

    def restart_prompt(self) -> None:
        """Starts the prompt, or the turn that goes on, over. An effect that it asks for again has the id it had, so it
        happens once."""
        safe = {intent: n for intent, n in self._answered.items() if intent in self._safe}
        self._answered = {**self._earlier, **safe}

    def begin_turn(self, number: int) -> None:
        """Begins a turn of the conversation: an effect of an earlier turn that is asked for again is another one."""
        self.turn, self._earlier = number, dict(self._answered)
