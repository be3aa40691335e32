"""The effects of a trial beside those that were asked for: surplus, altered and lost ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from itertools import chain
from sys import intern
from typing import Any

from chaoslab.analysis.verdict._matching import (
    NO_RULES,
    NearWishes,
    Pairing,
    Wish,
    differing,
    matches,
    nearly,
)
from chaoslab.analysis.verdict._matching import Rules as Rules
from chaoslab.base.alike import alike, spelt
from chaoslab.base.identity import REPEATABLE, is_idempotency_key
from chaoslab.core.events import Effect
from chaoslab.record.effects import find_distinct_effects
from chaoslab.record.history import History
from chaoslab.record.lines import Record

SHOWN = 60
"""The most characters of a value in a finding."""


class FindingKind(StrEnum):
    """The kind of a finding. The first six are about the world, the others about the answer or the trial.

    DUPLICATE: an effect happened more often than asked. PHANTOM: nobody asked for it. ALTERED: its content is other
    than asked. ORDER: it came before one that had to come first. STATE: the end state is neither the right one nor
    the one before. LOST: what was asked for did not
    happen.
    """

    DUPLICATE = "duplicate"
    PHANTOM = "phantom"
    ALTERED = "altered"
    ORDER = "order"
    STATE = "state"
    LOST = "lost"
    FACT = "fact"
    VALUE = "value"
    ADMISSION = "admission"
    GROUND = "ground"
    NO_ANSWER = "no answer"
    NOT_MET = "not met"
    DISTURBED = "disturbed"


LINES_MAX = 6
"""The most lines of one writer that a finding shows."""


def few(numbers: Sequence[int]) -> str:
    """The numbers with commas, the first few of many."""
    more = " …" if len(numbers) > LINES_MAX else ""
    return ", ".join(map(str, numbers[:LINES_MAX])) + more


def events_of(history: History, lines: Collection[tuple[str, int]]) -> str:
    """The places of these lines in the history of one trial, as in "events 4, 9 of the trial"; empty if there are none.
    Where many trials share a log, the numbers of a trial's own history are not those of the log's lines."""
    wanted = frozenset(lines)  # a loop shows thousands
    found = [place for place, record in enumerate(history, 1) if (record.writer, record.seq) in wanted]
    return f"event{'s' if found[1:] else ''} {few(found)} of the trial" if found else ""


_PLACES = re.compile(r" \(events? [\d, …]+ of the trial\)")
_SAID = re.compile(r"(\bthe answer (?:says|does not say)[^:\"]*: ).*", re.DOTALL)
_BROKEN = re.compile("|".join(rf"\b{one.value} {one.phrase}\b" for one in HTTPStatus if one >= 500))


def anywhere(text: str) -> str:
    """The text without what differs where trials end alike: the places of `events_of`, the words that an answer is
    quoted with, and which status of 5xx it was."""
    return _BROKEN.sub("5xx", _SAID.sub(r"\1", _PLACES.sub("", text)))


@dataclass(frozen=True)
class Finding:
    """One observation behind a verdict.

    `text`: one line. `lines`: the lines of the log that show it, each as its writer and `seq`; empty if it is shown by
    something that the log lacks.
    """

    kind: FindingKind
    text: str
    lines: tuple[tuple[str, int], ...] = ()

    @property
    def where(self) -> str:
        """The lines of the log, as in "messaging.log 4, 9"."""
        return in_logs(self.lines)


def in_logs(lines: Iterable[tuple[str, int]]) -> str:
    """Lines of the log in words, as in "info.log 4, 9"; empty if there are none."""
    by_writer: dict[str, list[int]] = {}
    for writer, seq in lines:
        by_writer.setdefault(writer, []).append(seq)
    return "; ".join(f"{writer}.log {few(seqs)}" for writer, seqs in by_writer.items())


Done = tuple[Record, Effect]


def done_in(history: History, trial: str) -> list[Done]:
    """The services' effects in a trial with their records; lines with the same request id are one effect."""
    return find_distinct_effects(history.of(Effect, trial=trial))


def effects_of(history: History, trial: str) -> list[Effect]:
    """The services' effects in a trial; lines with the same request id are one effect."""
    return [effect for _, effect in done_in(history, trial)]


def wish(effect: Mapping[str, Any]) -> dict[str, Any]:
    """The effect as one that must happen again. A list in it would be a choice of values, so it is wrapped in a
    list."""
    return {name: [value] if isinstance(value, list) else value for name, value in effect.items()}


_REPEATABLE = tuple(f"{method} " for method in REPEATABLE)


def net(stated: Sequence[Wish], done: Sequence[Done], rules: Rules) -> Sequence[Done]:
    """The effects that are left: repeats of idempotent ones, and what was taken back together with what took it back,
    are not."""
    repeatable = rules.spans and any(effect.tool.startswith(_REPEATABLE) for _, effect in done)
    if not (rules.undoes or rules.idempotent or repeatable):
        return done
    kept: list[Done] = []
    once = set[str]()
    for pair in done:
        effect = pair[1]
        if effect.effect in rules.idempotent:
            spelling = spelt([effect.effect, _content(rules, effect)])
            if spelling in once:
                continue
            once.add(spelling)
        kept.append(pair)
    paired = Pairing(stated, [effect for _, effect in kept], rules).pairs
    standing = _Standing(rules)
    gone: set[int] = set()
    latest: dict[tuple[str, str], Effect] = {}
    """The last request to each address."""
    for number, (_, effect) in enumerate(kept):
        method, _, address = effect.tool.partition(" ")
        before, latest[effect.target, address] = latest.get((effect.target, address)), effect
        if number not in paired:
            if before is not None and method in REPEATABLE and _is_repeat(rules, effect, before):
                gone.add(number)  # the stamp in it is another one, and it is a repeat yet
                continue
            undone = standing.take_back(effect)
            if undone is not None:
                gone |= {number, undone}
                continue
        standing.add(number, effect, asked=number in paired)
    return [pair for number, pair in enumerate(kept) if number not in gone]


@dataclass
class _ByValue:
    """Effects by the values of some of their parameters, those that were asked for apart. `read`: how many of them."""

    numbers: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    read: int = 0


class _Standing:
    """The effects so far that others may take back, and that nothing took back yet."""

    def __init__(self, rules: Rules) -> None:
        self._rules, self._may_go = rules, frozenset(rules.undoes.values())
        self._content: dict[int, dict[str, Any]] = {}
        self._asked: set[int] = set()
        self._by_keys: dict[str, dict[tuple[str, ...], list[int]]] = {}
        self._known: dict[tuple[str, tuple[str, ...], tuple[str, ...]], _ByValue] = {}

    def add(self, number: int, effect: Effect, *, asked: bool) -> None:
        if effect.effect not in self._may_go:
            return
        content = self._content[number] = _content(self._rules, effect)
        self._by_keys.setdefault(effect.effect, {}).setdefault(tuple(sorted(content)), []).append(number)
        if asked:
            self._asked.add(number)

    def take_back(self, effect: Effect) -> int | None:
        """The latest effect that this one takes back, which stands no more: a surplus one first, else one that was
        asked for. Both have the same values for the parameters that both have."""
        target = self._rules.undoes.get(effect.effect)
        if target is None or target not in self._by_keys:
            return None
        own, found = _content(self._rules, effect), list[tuple[bool, int]]()
        for keys, numbers in self._by_keys[target].items():
            shared = tuple(key for key in keys if key in own)
            known = self._known.setdefault((target, keys, shared), _ByValue())
            self._read(known, numbers, shared)
            for surplus, stack in enumerate(known.numbers.get(spelt([own[key] for key in shared]), ())):
                while stack and stack[-1] not in self._content:
                    stack.pop()
                found += [(bool(surplus), stack[-1])] if stack else []
        if not found:
            return None
        number = max(found)[1]
        del self._content[number]
        return number

    def _read(self, known: _ByValue, numbers: Sequence[int], shared: Sequence[str]) -> None:
        for number in numbers[known.read :]:
            if number in self._content:
                value = spelt([self._content[number][key] for key in shared])
                known.numbers.setdefault(value, ([], []))[number not in self._asked].append(number)
        known.read = len(numbers)


def _content(rules: Rules, effect: Effect) -> dict[str, Any]:
    """The content of an effect of a trial without its key, with one word for the moments of the trial."""
    kept = {key: value for key, value in effect.content.items() if not is_idempotency_key(key)}
    found: dict[str, Any] = rules.spans[1].unstamped(kept) if rules.spans else kept
    return found


def _is_repeat(rules: Rules, one: Effect, other: Effect) -> bool:
    """True if two effects of a trial are the same. They may be done at two moments."""
    return one.effect == other.effect and alike(_content(rules, one), _content(rules, other))


def compare(stated: Sequence[Wish], done: Sequence[Done], rules: Rules = NO_RULES) -> list[Finding]:
    """The surplus, altered and lost effects, in this order. Equal texts are one finding with all its lines."""
    done = net(stated, done, rules)
    effects = [effect for _, effect in done]
    if len(effects) == len(stated) and all(map(partial(matches, rules), stated, effects)):
        return []  # most trials: each wish in its turn
    pairing = Pairing(stated, effects, rules)
    if rules.ordered and len(effects) == len(stated) == len(pairing.pairs):
        return _out_of_order(done, pairing.pairs)
    left, told_wishes = NearWishes(pairing), _ToldWishes(pairing)
    lines = [(intern(record.writer), record.seq) for record, _ in done]
    excess: list[Finding] = []
    unasked: dict[tuple[str, str], list[tuple[str, int]]] = {}
    repeated: set[tuple[int, str]] = set()
    repeats: dict[int, tuple[tuple[str, int], ...]] = {}
    for number, effect in enumerate(effects):
        if number in pairing.pairs:
            continue
        told = told_of(effect.effect, effect.content)
        wish = pairing.wish_of(number)
        if wish is not None:
            if (wish, told) not in repeated:
                repeated.add((wish, told))
                if wish not in repeats:  # findings share them: each of thousands may have thousands
                    repeats[wish] = tuple(lines[n] for n in pairing.alike(wish))
                excess.append(_duplicate(told, pairing.wanted(wish), repeats[wish]))
        elif (near := left.take(effect)) is not None:
            text = f"{told}, but {_difference(rules, stated[near], effect)}"
            excess.append(Finding(FindingKind.ALTERED, text, (lines[number],)))
        else:
            unasked.setdefault((told, told_wishes.difference(effect, told)), []).append(lines[number])
    for (told, content), where in unasked.items():
        times = f" {how_often(len(where))}" if len(where) > 1 else ""
        excess.append(Finding(FindingKind.PHANTOM, f"{told}{times}{content}, which was not asked for", tuple(where)))
    missing = (stated[number] for number in left.left)
    excess += [Finding(FindingKind.LOST, f"missing: {told_of(str(wish.get('effect')), wish)}") for wish in missing]
    return _once(excess)


def _duplicate(told: str, wanted: int, lines: tuple[tuple[str, int], ...]) -> Finding:
    instead = f" instead of {how_often(wanted)}" if wanted > 1 else ""
    return Finding(FindingKind.DUPLICATE, f"{told} {how_often(len(lines))}{instead}", lines)


class _ToldWishes:
    """The wishes by their words."""

    def __init__(self, pairing: Pairing) -> None:
        self._rules, self._by_words = pairing.rules, dict[tuple[str, str], list[Wish]]()
        for number, *_ in pairing.wishes.members:
            wish = pairing.stated[number]
            name = str(wish.get("effect"))
            self._by_words.setdefault((name, told_of(name, wish)), []).append(wish)

    def difference(self, effect: Effect, told: str) -> str:
        """The content by which an effect that nobody asked for differs from one that was, if both have the same words;
        else empty."""
        for wish in self._by_words.get((effect.effect, told), ()):
            if nearly(self._rules, wish, effect):
                key = differing(self._rules, wish, effect)[0]
                return f" with the {key} {_shown(effect.content.get(key))}"
        return ""


def _out_of_order(done: Sequence[Done], pairs: Mapping[int, int]) -> list[Finding]:
    """The first effect that happened before one that had to come earlier, as there is one."""
    at = next(number for number in range(len(done)) if pairs[number] > pairs[number + 1])
    (first, one), (second, other) = done[at], done[at + 1]
    text = f"{told_of(one.effect, one.content)} before {told_of(other.effect, other.content)}"
    return [Finding(FindingKind.ORDER, text, ((first.writer, first.seq), (second.writer, second.seq)))]


def _once(findings: Sequence[Finding]) -> list[Finding]:
    if len(findings) < 2:
        return [*findings]
    merged: dict[tuple[FindingKind, str], list[Finding]] = {}
    for finding in findings:
        merged.setdefault((finding.kind, finding.text), []).append(finding)
    return [
        of[0] if len(of) == 1 else Finding(*key, tuple(dict.fromkeys(chain.from_iterable(each.lines for each in of))))
        for key, of in merged.items()
    ]


def lacking(stated: Sequence[Wish], done: Sequence[Effect], rules: Rules = NO_RULES) -> list[Wish]:
    """The wishes that no effect was paired with."""
    return [stated[number] for number in Pairing(stated, done, rules).left]


def told_of(effect: str, content: Mapping[str, Any]) -> str:
    """An effect in words."""
    whom = content.get("to") or content.get("title") or content.get("id")
    if whom and effect == "message_sent":
        return f"message to {whom} sent"
    return f"{effect.replace('_', ' ')} '{whom}'" if whom else effect.replace("_", " ")


def how_often(count: int) -> str:
    """A number of times in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _difference(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> str:
    key = differing(rules, wish, effect)[0]
    return f"its {key} is {_shown(effect.content.get(key))} instead of {_shown(wish.get(key))}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(str(value)[:SHOWN])
