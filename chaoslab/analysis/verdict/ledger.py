"""The effects of a trial beside those that were asked for: surplus, altered and lost ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from sys import intern
from typing import Any

from chaoslab.analysis.answers.values import shows, tokens
from chaoslab.base.alike import Span, alike, as_text
from chaoslab.base.identity import REPEATABLE, is_idempotency_key
from chaoslab.core.events import Effect, PromptStarted
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
    DENIAL = "denial"
    FACT = "fact"
    VALUE = "value"
    ADMISSION = "admission"
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
    return done(history.of(Effect, trial=trial))


def done(found: Iterable[Done]) -> list[Done]:
    """The effects of one trial; lines with the same request id are one effect."""
    effects: dict[tuple[str, str | int], Done] = {}
    for nth, pair in enumerate(found):
        effects.setdefault((pair[1].target, pair[1].request_id or nth), pair)
    return list(effects.values())


def effects_of(history: History, trial: str) -> list[Effect]:
    """The services' effects in a trial; lines with the same request id are one effect."""
    return [effect for _, effect in done_in(history, trial)]


def wish(effect: Mapping[str, Any]) -> dict[str, Any]:
    """The effect as one that must happen again. A list in it would be a choice of values, so it is wrapped in a
    list."""
    return {name: [value] if isinstance(value, list) else value for name, value in effect.items()}


@dataclass(frozen=True)
class Rules:
    """The user's statements about effects. `undoes`: the effects that take others back. `idempotent`: those that count
    once however often they are repeated. `ordered`: they must happen in the order of the right ones. `exact`: the right
    ones are the twin's, so an effect has their content and no other. One that a user states may leave fields out, and a
    text of it stands for each text that holds it. `spans`: the times of the twin and of the trial."""

    undoes: Mapping[str, str] = field(default_factory=dict)
    idempotent: Collection[str] = ()
    ordered: bool = False
    exact: bool = False
    spans: tuple[Span, Span] | None = None

    @classmethod
    def of(cls, started: PromptStarted) -> Rules:
        """Those of a trial."""
        if not (started.undoes or started.idempotent or started.ordered):
            return _AS_TWIN if started.exact else _NO_RULES
        return cls(started.undoes or {}, started.idempotent or (), bool(started.ordered), bool(started.exact))


_NO_RULES, _AS_TWIN = Rules(), Rules(exact=True)


def net(stated: Sequence[Mapping[str, Any]], done: Sequence[Done], rules: Rules) -> Sequence[Done]:
    """The effects that are left: repeats of idempotent ones, and what was taken back together with what took it back,
    are not."""
    if not (rules.undoes or rules.idempotent or rules.spans):
        return done
    kept: list[Done] = []
    for pair in done:
        effect = pair[1]
        again = effect.effect in rules.idempotent and any(_agree(rules, effect, other, whole=True) for _, other in kept)
        if not again:
            kept.append(pair)
    paired = _pair(stated, [effect for _, effect in kept], rules)
    gone: set[int] = set()
    latest: dict[tuple[str, str], Effect] = {}
    """The last request to each address."""
    for number, (_, effect) in enumerate(kept):
        target = rules.undoes.get(effect.effect)
        method, _, address = effect.tool.partition(" ")
        before, latest[effect.target, address] = latest.get((effect.target, address)), effect
        if number in paired:
            continue
        if before is not None and method in REPEATABLE and _agree(rules, effect, before, whole=True):
            gone.add(number)  # the stamp in it is another one, and it is a repeat yet
            continue
        same = [n for n, (_, other) in enumerate(kept[:number]) if other.effect == target and n not in gone]
        undone = [n for n in same if _agree(rules, effect, kept[n][1])]
        if undone:  # a surplus one first, else the one that was asked for
            gone |= {number, next((n for n in reversed(undone) if n not in paired), undone[-1])}
    return [pair for number, pair in enumerate(kept) if number not in gone]


def _agree(rules: Rules, one: Effect, other: Effect, *, whole: bool = False) -> bool:
    """True if two effects of a trial have the same values for all parameters, or for those that both have. They may be
    done at two moments."""
    held = [{key: value for key, value in each.content.items() if not is_idempotency_key(key)} for each in (one, other)]
    if rules.spans:
        held = [rules.spans[1].unstamped(each) for each in held]
    if whole and (one.effect != other.effect or held[0].keys() != held[1].keys()):
        return False
    return all(held[0][key] == held[1][key] for key in held[0].keys() & held[1].keys())


def compare(stated: Sequence[Mapping[str, Any]], done: Sequence[Done], rules: Rules = _NO_RULES) -> list[Finding]:
    """The surplus, altered and lost effects, in this order. Equal texts are one finding with all its lines."""
    done = net(stated, done, rules)
    effects = [effect for _, effect in done]
    if len(effects) == len(stated) and all(map(partial(_matches, rules), stated, effects)):
        return []  # most trials: each wish in its turn
    pairs = _pair(stated, effects, rules)
    if rules.ordered and len(effects) == len(stated) == len(pairs):
        return _out_of_order(done, pairs)
    left = _left(stated, pairs)
    excess: list[Finding] = []
    unasked: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for number, (record, effect) in enumerate(done):
        if number in pairs:
            continue
        told = told_of(effect.effect, effect.content)
        here = (intern(record.writer), record.seq)
        wish = next((wish for wish in stated if _matches(rules, wish, effect)), None)
        if wish is not None:
            repeats = [(intern(r.writer), r.seq) for r, other in done if _matches(rules, wish, other)]
            wanted = sum(other == wish for other in stated)
            instead = f" instead of {how_often(wanted)}" if wanted > 1 else ""
            excess.append(Finding(FindingKind.DUPLICATE, f"{told} {how_often(len(repeats))}{instead}", tuple(repeats)))
        elif (near := next((wish for wish in left if _nearly(rules, wish, effect)), None)) is not None:
            left.remove(near)
            excess.append(Finding(FindingKind.ALTERED, f"{told}, but {_difference(rules, near, effect)}", (here,)))
        else:
            unasked.setdefault((told, _apart_from(rules, stated, effect, told)), []).append(here)
    for (told, content), lines in unasked.items():
        times = f" {how_often(len(lines))}" if len(lines) > 1 else ""
        excess.append(Finding(FindingKind.PHANTOM, f"{told}{times}{content}, which was not asked for", tuple(lines)))
    excess += [Finding(FindingKind.LOST, f"missing: {told_of(str(wish.get('effect')), wish)}") for wish in left]
    return _once(excess)


def _out_of_order(done: Sequence[Done], pairs: Mapping[int, int]) -> list[Finding]:
    """The first effect that happened before one that had to come earlier, as there is one."""
    at = next(number for number in range(len(done)) if pairs[number] > pairs[number + 1])
    (first, one), (second, other) = done[at], done[at + 1]
    text = f"{told_of(one.effect, one.content)} before {told_of(other.effect, other.content)}"
    return [Finding(FindingKind.ORDER, text, ((first.writer, first.seq), (second.writer, second.seq)))]


def _once(findings: Sequence[Finding]) -> list[Finding]:
    if len(findings) < 2:
        return [*findings]
    merged: dict[tuple[FindingKind, str], Finding] = {}
    for finding in findings:
        before = merged.get((finding.kind, finding.text))
        lines = dict.fromkeys([*(before.lines if before else ()), *finding.lines])
        merged[finding.kind, finding.text] = Finding(finding.kind, finding.text, tuple(lines))
    return list(merged.values())


def lacking(
    stated: Sequence[Mapping[str, Any]], done: Sequence[Effect], rules: Rules = _NO_RULES
) -> list[Mapping[str, Any]]:
    """The wishes that no effect was paired with."""
    return _left(stated, _pair(stated, done, rules))


def _left(stated: Sequence[Mapping[str, Any]], pairs: Mapping[int, int]) -> list[Mapping[str, Any]]:
    return [wish for number, wish in enumerate(stated) if number not in pairs.values()]


def told_of(effect: str, content: Mapping[str, Any]) -> str:
    """An effect in words."""
    whom = content.get("to") or content.get("title") or content.get("id")
    if whom and effect == "message_sent":
        return f"message to {whom} sent"
    return f"{effect.replace('_', ' ')} '{whom}'" if whom else effect.replace("_", " ")


def how_often(count: int) -> str:
    """A number of times in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _pair(stated: Sequence[Mapping[str, Any]], done: Sequence[Effect], rules: Rules) -> dict[int, int]:
    """The wish of each effect, with as many pairs as possible: a vague wish leaves to an exact one the only effect that
    fits it."""
    pairs: dict[int, int] = {}
    for wish in range(len(stated)):
        _place(wish, set(), pairs, stated, done, rules)
    return pairs


def _place(
    wish: int, seen: set[int], pairs: dict[int, int], stated: Sequence[Mapping[str, Any]], done: Sequence[Effect],
    rules: Rules,
) -> bool:  # fmt: skip
    """Pairs the wish with an effect, if need be by giving the effect's own wish another. No closure: it would be a
    cycle for the garbage collector, with all effects of the trial in it."""
    for number, effect in enumerate(done):
        if number in seen or not _matches(rules, stated[wish], effect):
            continue
        seen.add(number)
        if number not in pairs or _place(pairs[number], seen, pairs, stated, done, rules):
            pairs[number] = wish
            return True
    return False


def _matches(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> bool:
    if wish.get("effect") != effect.effect:
        return False
    plain = _PLAIN.issuperset(map(type, wish.values())) and _PLAIN.issuperset(map(type, effect.content.values()))
    return (plain and wish == {**effect.content, "effect": effect.effect}) or not _differing(rules, wish, effect)


_PLAIN = frozenset({str, int, float, type(None)})
"""The types of which equal values are the same; True is no 1. Most effects have no others, and are as stated."""


def _nearly(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> bool:
    return wish.get("effect") == effect.effect and (not wish.get("to") or "to" not in _differing(rules, wish, effect))


def _differing(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> list[str]:
    """The keys in which the effect differs. A repetition under another idempotency key is still a repetition."""
    keys = dict.fromkeys([*wish, *effect.content]) if rules.exact else wish
    same = partial(_equal, rules.spans) if rules.exact else _same
    return [
        key
        for key in keys
        if key != "effect" and not is_idempotency_key(key) and not same(key, wish.get(key), effect.content.get(key))
    ]


def _apart_from(rules: Rules, stated: Sequence[Mapping[str, Any]], effect: Effect, told: str) -> str:
    """The content by which an effect that nobody asked for differs from one that was, if both have the same words;
    else empty."""
    for wish in stated:
        if _nearly(rules, wish, effect) and told_of(str(wish.get("effect")), wish) == told:
            key = _differing(rules, wish, effect)[0]
            return f" with the {key} {_shown(effect.content.get(key))}"
    return ""


def _difference(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> str:
    key = _differing(rules, wish, effect)[0]
    return f"its {key} is {_shown(effect.content.get(key))} instead of {_shown(wish.get(key))}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(str(value)[:SHOWN])


def _equal(spans: tuple[Span, Span] | None, _key: str, wished: Any, value: Any) -> bool:
    """True if a value of an effect is the twin's, or both are the moments at which it was done. Two texts are compared
    letter by letter, since the lab does not know the meaning of a path, a command or an id."""
    if spans is not None and wished != value:
        wished, value = (span.unstamped(each) for span, each in zip(spans, (wished, value), strict=True))
    if isinstance(wished, str) and isinstance(value, str):
        moment = _moment(wished)
        return as_text(wished) == as_text(value) or (moment is not None and moment == _moment(value))
    return alike(wished, value) or _as_number(wished, value) or _as_number(value, wished)


def _as_number(text: Any, number: Any) -> bool:
    """True if a text is a number and nothing else, as "30" is 30."""
    if not isinstance(text, str) or isinstance(number, bool) or not isinstance(number, int | float):
        return False
    try:
        return Decimal(text) == Decimal(str(number))
    except InvalidOperation:
        return False


def _same(key: str, wished: Any, value: Any) -> bool:
    if value == wished:
        return True
    if value is None or wished is None:  # the word "None" is not nothing
        return False
    options = wished if isinstance(wished, list) else [wished]
    if key in ("start", "end"):
        moments = [_moment(option) for option in options]
        if _moment(value) is not None and any(moments):
            return _moment(value) in moments
    if key == "to":  # a message to "ana maria" is not one to "ana"
        return any(tokens(str(value)) == tokens(str(option)) for option in options)
    return shows([str(option) for option in options], str(value))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
