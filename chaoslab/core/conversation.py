"""A conversation: several turns of one user with one agent, within one trial."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chaoslab.base.clock import Clock
from chaoslab.base.identity import Requests
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.events import Event, TurnFinished, TurnStarted
from chaoslab.core.memory import TrialMemory

READ_MAX = 20_000
"""The most characters of an answer in which a pattern is sought."""
TURNS_MAX = 1000
ReadTurn = Callable[[Any, str], dict[str, Any] | None]
"""Reads an answer by a `says`: values by key; None if it cannot."""
USER_TURNS_MAX = 10
"""The most turns of a conversation with a scripted user, if no other number is stated."""


@dataclass(frozen=True)
class Turn:
    """One turn: the user's words, or an answer that depends on the agent's last one. `say`: the words. `reply`: words
    by pattern (a regular expression); the first that is found in the last answer is said, and if none is found the
    conversation ends. `after_s`: the time that passes before it, in seconds. `facts`, `says`, `expect`: what its answer
    shows, how it is read, and the assertions about the turn."""

    say: str = ""
    reply: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    facts: tuple[tuple[str, ...], ...] = ()
    says: Any = None
    expect: tuple[Any, ...] = ()

    def choose_words(self, answer: str) -> str | None:
        """The user's words after that answer; None if no pattern is found in it."""
        if not self.reply:
            return self.say
        # A user's pattern may take very long on a long text.
        read = answer[:READ_MAX]
        return next((text for pattern, text in self.reply.items() if re.search(pattern, read)), None)

    def __str__(self) -> str:
        return self.say or " or ".join(self.reply.values())


@dataclass(frozen=True)
class Conversation:
    """The turns of a conversation, in their order. `user`: the turn that is repeated after them, until none of its
    patterns is found or the conversation has `turns_max` turns."""

    turns: tuple[Turn, ...]
    user: Turn | None = None
    turns_max: int = 0

    @property
    def turn_count_max(self) -> int:
        """The most turns that it can have."""
        return max(len(self.turns), self.turns_max if self.user else 0)

    def get_turn(self, number: int) -> Turn | None:
        """The turn with this number, from 1; None if there is none."""
        if number <= len(self.turns):
            return self.turns[number - 1]
        return self.user if number <= self.turn_count_max else None

    @property
    def total_wait_s(self) -> float:
        """The time that passes between the turns, in seconds."""
        return sum(turn.after_s for turn in self.turns)

    def with_waits(self, waits_s: Mapping[int, float]) -> Conversation:
        """The same with other times before the turns with these numbers, in seconds."""
        turns = (replace(turn, after_s=waits_s.get(n, turn.after_s)) for n, turn in enumerate(self.turns, 1))
        return replace(self, turns=tuple(turns))

    def limit_repeats(self, wishes: int) -> Conversation:
        """The same with the words of a turn at most so many times; the times before those left out pass all the same.
        Itself if none of its words come more often."""
        kept, counts, wait_s = list[Turn](), Counter[str](), 0.0
        for turn in self.turns:
            counts[turn.say] += 1
            wait_s += turn.after_s
            if not turn.say or counts[turn.say] <= wishes:
                kept.append(replace(turn, after_s=wait_s))
                wait_s = 0.0
        return self if len(kept) == len(self.turns) else replace(self, turns=tuple(kept))

    def iterate_without_turn(self) -> Iterator[Conversation]:
        """The same without each of its turns, the last one first, if more than one is left."""
        for n in reversed(range(len(self.turns) if len(self.turns) > 1 else 0)):
            # A conversation cannot begin with a reply to an answer.
            if not (rest := self.turns[:n] + self.turns[n + 1 :])[0].reply:
                yield replace(self, turns=rest)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.turns, self.user) if self.user else self.turns))


def turn(
    say: str = "",
    *,
    reply: Mapping[str, str] | None = None,
    after_s: float = 0.0,
    facts: Sequence[str | Sequence[str]] = (),
    says: Any = None,
    expect: Sequence[Any] = (),
) -> Turn:
    """One turn of a conversation, for `turns`: the user's words, or `reply`, words by a pattern (a regular expression)
    that is sought in the agent's last answer. `after_s` seconds of the world's time pass before it. `facts`, `says`: as
    those of `run`, about the answer of this turn. `expect`: assertions about this turn, for the fixture of pytest.

    Raises:
        ValueError, TypeError: an argument is invalid.
    """
    replies = dict(reply or {})
    if bool(say) == bool(replies):
        raise ValueError("a turn has either the user's words or reply={pattern: words}")
    if not isinstance(say, str) or not all(isinstance(text, str) for pair in replies.items() for text in pair):
        raise TypeError("the words and the patterns of a turn should be texts")
    for pattern in replies:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"the pattern {pattern!r:.60} cannot be read: {error}") from None
    if isinstance(after_s, bool) or not isinstance(after_s, int | float) or not 0 <= after_s <= SECONDS_MAX:
        raise ValueError(f"after_s is {after_s!r:.60}: it should be a number from 0 to {SECONDS_MAX}")
    if isinstance(facts, str):
        raise TypeError(f"facts is {facts!r:.60}: it should be a list of texts")
    spellings = tuple((fact,) if isinstance(fact, str) else tuple(map(str, fact)) for fact in facts)
    return Turn(say, replies, float(after_s), spellings, says, tuple(expect))


def turns(*each: str | Turn, user: Mapping[str, str] | None = None, turns_max: int = USER_TURNS_MAX) -> Conversation:
    """A conversation, as a prompt for `run`: `lab.run(agent, lab.turns("Refund order 17.", "Is it done?"), …)`. The
    agent is called once a turn and keeps what it remembers; services keep their state. `user`: words by pattern, for a
    scripted user who goes on answering after these turns, until no pattern is found in the agent's last answer or the
    conversation has `turns_max` turns.

    Raises:
        ValueError, TypeError: there is no turn, the first one waits for an answer, or the user can say nothing.
    """
    turn_list = tuple(turn(entry) if isinstance(entry, str) else entry for entry in each)
    if not turn_list or len(turn_list) > TURNS_MAX:
        raise ValueError(f"a conversation has 1 to {TURNS_MAX} turns")
    if not all(isinstance(entry, Turn) for entry in turn_list):
        raise TypeError("a turn is a text or lab.turn(…)")
    if turn_list[0].reply:
        raise ValueError("the first turn has no answer to reply to: it should be the user's words")
    if isinstance(turns_max, bool) or not isinstance(turns_max, int) or not 1 <= turns_max <= TURNS_MAX:
        raise ValueError(f"turns_max is {turns_max!r:.60}: it should be a whole number from 1 to {TURNS_MAX}")
    if user and turns_max <= len(turn_list):
        raise ValueError(f"turns_max is {turns_max}: it leaves the user no turn after the first {len(turn_list)}")
    return Conversation(turn_list, turn(reply=user), turns_max) if user else Conversation(turn_list)


class RunningConversation:
    """A conversation under way in a trial. Use: `while (words := talk.next()) is not None:` wait `talk.wait_s`,
    `begin_turn`, ask the agent, `finish_turn`."""

    def __init__(
        self,
        conversation: Conversation,
        note: Callable[[Event], object],
        requests: Requests,
        memory: TrialMemory,
        clock: Clock,
        *,
        twins: Sequence[str] = (),
        read: ReadTurn = lambda says, text: None,  # noqa: ARG005
        wishes: int = TURNS_MAX,
    ) -> None:
        """`twins`: the answers of the twin, by turn. `read`: reads an answer by the turn's `says`. `wishes`: words that
        come more often are an event that is repeated."""
        self._twins, self._read, self._wishes, self._heard = twins, read, wishes, Counter[str]()
        self._note, self._requests, self._memory, self._clock = note, requests, memory, clock
        self._conversation, self._number, self._began_s = conversation, 0, 0.0
        self.answers: list[str] = []
        self.words = ""
        """The user's words of the turn that goes on."""
        self.wait_s = 0.0
        """The time that passes before the turn that `next` gave."""

    def advance_turn(self) -> str | None:
        """The user's words of the next turn; None if the conversation is over."""
        turn = self._conversation.get_turn(self._number + 1)
        if turn is None:
            return None
        self._number += 1
        self.wait_s = turn.after_s
        return turn.choose_words(self.answers[-1] if self.answers else "")

    def begin_turn(self, prompt: str) -> bool:
        """Begins the turn; True if its words are an event that was there before."""
        # The first turn has begun with the trial.
        if self._number > 1:
            self._requests.begin_turn(self._number)
            self._memory.begin_turn(self._number, self._requests.counts_by_target)
        self._began_s, self.words = self._clock.monotonic(), prompt
        self._note(TurnStarted(turn=self._number, prompt=prompt))
        self._heard[prompt] += 1
        return self._heard[prompt] > self._wishes

    @property
    def has_next(self) -> bool:
        return self._conversation.get_turn(self._number + 1) is not None

    @property
    def is_answered(self) -> bool:
        """True if the turn that began last has its answer."""
        return len(self.answers) == self._number

    def begin_overlapping_turn(self) -> str | None:
        """Begins the next turn beside the one that goes on, as another session does, and gives its words; None if no
        words are due."""
        turn = self._conversation.get_turn(self._number + 1)
        if turn is None or turn.reply:
            return None
        self._note(TurnStarted(turn=self._number + 1, prompt=turn.say))
        return turn.say

    def finish_overlapping_turn(self, text: str) -> None:
        """Takes the answer of the turn that began beside the last."""
        self._number += 1
        self.finish_turn(text)

    def finish_turn(self, text: str) -> None:
        """Takes the agent's answer."""
        duration_s = round(self._clock.monotonic() - self._began_s, 6)
        self.answers.append(text)
        turn = self._conversation.get_turn(self._number) or Turn()
        twin = self._twins[self._number - 1] if self._number <= len(self._twins) else None
        self._note(
            TurnFinished(
                turn=self._number,
                answer=text,
                duration_s=duration_s,
                twin=twin,
                facts=[list(fact) for fact in turn.facts] or None,
                says=None if turn.says is None else self._read(turn.says, text),
                twin_says=None if turn.says is None or twin is None else self._read(turn.says, twin),
            )
        )

    @property
    def joined_answers(self) -> str:
        """All answers, a line or more each: the trial's answer."""
        return "\n".join(self.answers)
