"""The effects of a trial beside those that were asked for: surplus, altered and lost ones."""

from __future__ import annotations

import re
from collections import Counter
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
    EffectPairing,
    NearExpectedEffects,
    Wish,
    list_differing_keys,
    matches_expected_effect,
    nearly_matches_expected,
)
from chaoslab.analysis.verdict._matching import EffectRules as EffectRules
from chaoslab.base.alike import are_equal, spell_canonically
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


def join_first_numbers(numbers: Sequence[int]) -> str:
    """The numbers with commas, the first few of many."""
    ellipsis = " …" if len(numbers) > LINES_MAX else ""
    return ", ".join(map(str, numbers[:LINES_MAX])) + ellipsis


def describe_event_positions(history: History, lines: Collection[tuple[str, int]]) -> str:
    """The places of these lines in the history of one trial, as in "events 4, 9 of the trial"; empty if there are none.
    Where many trials share a log, the numbers of a trial's own history are not those of the log's lines."""
    line_set = frozenset(lines)  # a loop shows thousands
    positions = [position for position, record in enumerate(history, 1) if (record.writer, record.seq) in line_set]
    return f"event{'s' if positions[1:] else ''} {join_first_numbers(positions)} of the trial" if positions else ""


_PLACES = re.compile(r" \(events? [\d, …]+ of the trial\)")
_SAID = re.compile(r"(\bthe answer (?:says|does not say)[^:\"]*: ).*", re.DOTALL)
_BROKEN = re.compile("|".join(rf"\b{status.value} {status.phrase}\b" for status in HTTPStatus if status >= 500))


def strip_varying_details(text: str) -> str:
    """The text without what differs where trials end alike: the places of `describe_event_positions`, the words that an
    answer is quoted with, and which status of 5xx it was."""
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


def describe_log_lines(lines: Iterable[tuple[str, int]]) -> str:
    """Lines of the log in words, as in "info.log 4, 9"; empty if there are none."""
    by_writer: dict[str, list[int]] = {}
    for writer, seq in lines:
        by_writer.setdefault(writer, []).append(seq)
    return "; ".join(f"{writer}.log {join_first_numbers(seqs)}" for writer, seqs in by_writer.items())


RecordedEffect = tuple[Record, Effect]


def find_recorded_effects(history: History, trial: str) -> list[RecordedEffect]:
    """The services' effects in a trial with their records; lines with the same request id are one effect."""
    return find_distinct_effects(history.find_events(Effect, trial=trial))


def list_effects(history: History, trial: str) -> list[Effect]:
    """The services' effects in a trial; lines with the same request id are one effect."""
    return [effect for _, effect in find_recorded_effects(history, trial)]


def make_expected_effect(effect: Mapping[str, Any]) -> dict[str, Any]:
    """The effect as one that must happen again. A list in it would be a choice of values, so it is wrapped in a
    list."""
    return {name: [value] if isinstance(value, list) else value for name, value in effect.items()}


_REPEATABLE = tuple(f"{method} " for method in REPEATABLE)


def compute_net_effects(
    wishes: Sequence[Wish], effects: Sequence[RecordedEffect], rules: EffectRules
) -> Sequence[RecordedEffect]:
    """The effects that are left: repeats of idempotent ones, and what was taken back together with what took it back,
    are not."""
    repeatable = rules.spans and any(effect.tool.startswith(_REPEATABLE) for _, effect in effects)
    if not (rules.undoes or rules.idempotent or repeatable):
        return effects
    counted: list[RecordedEffect] = []
    idempotent_seen = set[str]()
    for pair in effects:
        effect = pair[1]
        if effect.effect in rules.idempotent:
            spelling = spell_canonically([effect.effect, _normalize_content(rules, effect)])
            if spelling in idempotent_seen:
                continue
            idempotent_seen.add(spelling)
        counted.append(pair)
    paired = EffectPairing(wishes, [effect for _, effect in counted], rules).pairs
    standing = _OpenEffects(rules)
    dropped: set[int] = set()
    latest: dict[tuple[str, str], Effect] = {}
    """The last request to each address."""
    for number, (_, effect) in enumerate(counted):
        method, _, address = effect.tool.partition(" ")
        previous, latest[effect.target, address] = latest.get((effect.target, address)), effect
        if number not in paired:
            if previous is not None and method in REPEATABLE and _is_same_effect(rules, effect, previous):
                dropped.add(number)  # the stamp in it is another one, and it is a repeat yet
                continue
            undone_number = standing.pop_undone_effect(effect)
            if undone_number is not None:
                dropped |= {number, undone_number}
                continue
        standing.add(number, effect, asked=number in paired)
    return [pair for number, pair in enumerate(counted) if number not in dropped]


@dataclass
class _ByValue:
    """Effects by the values of some of their parameters, those that were asked for apart. `read`: how many of them."""

    numbers: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    read: int = 0


class _OpenEffects:
    """The effects so far that others may take back, and that nothing took back yet."""

    def __init__(self, rules: EffectRules) -> None:
        self._rules, self._reversible = rules, frozenset(rules.undoes.values())
        self._content: dict[int, dict[str, Any]] = {}
        self._asked: set[int] = set()
        self._by_keys: dict[str, dict[tuple[str, ...], list[int]]] = {}
        self._known: dict[tuple[str, tuple[str, ...], tuple[str, ...]], _ByValue] = {}

    def add(self, number: int, effect: Effect, *, asked: bool) -> None:
        if effect.effect not in self._reversible:
            return
        content = self._content[number] = _normalize_content(self._rules, effect)
        self._by_keys.setdefault(effect.effect, {}).setdefault(tuple(sorted(content)), []).append(number)
        if asked:
            self._asked.add(number)

    def pop_undone_effect(self, effect: Effect) -> int | None:
        """The latest effect that this one takes back, which stands no more: a surplus one first, else one that was
        asked for. Both have the same values for the parameters that both have."""
        target = self._rules.undoes.get(effect.effect)
        if target is None or target not in self._by_keys:
            return None
        content, candidates = _normalize_content(self._rules, effect), list[tuple[bool, int]]()
        for keys, numbers in self._by_keys[target].items():
            shared = tuple(key for key in keys if key in content)
            by_value = self._known.setdefault((target, keys, shared), _ByValue())
            self._index_by_value(by_value, numbers, shared)
            for is_surplus, stack in enumerate(
                by_value.numbers.get(spell_canonically([content[key] for key in shared]), ())
            ):
                while stack and stack[-1] not in self._content:
                    stack.pop()
                candidates += [(bool(is_surplus), stack[-1])] if stack else []
        if not candidates:
            return None
        # A surplus one first, and of these the latest.
        number = max(candidates)[1]
        del self._content[number]
        return number

    def _index_by_value(self, by_value: _ByValue, numbers: Sequence[int], shared: Sequence[str]) -> None:
        for number in numbers[by_value.read :]:
            if number in self._content:
                value = spell_canonically([self._content[number][key] for key in shared])
                by_value.numbers.setdefault(value, ([], []))[number not in self._asked].append(number)
        by_value.read = len(numbers)


def _normalize_content(rules: EffectRules, effect: Effect) -> dict[str, Any]:
    """The content of an effect of a trial without its key, with one word for the moments of the trial."""
    without_keys = {key: value for key, value in effect.content.items() if not is_idempotency_key(key)}
    content: dict[str, Any] = rules.spans[1].replace_moments(without_keys) if rules.spans else without_keys
    return content


def _is_same_effect(rules: EffectRules, left: Effect, right: Effect) -> bool:
    """True if two effects of a trial are the same. They may be done at two moments."""
    return left.effect == right.effect and are_equal(_normalize_content(rules, left), _normalize_content(rules, right))


def compare_effects(
    wishes: Sequence[Wish], effects_done: Sequence[RecordedEffect], rules: EffectRules = NO_RULES
) -> list[Finding]:
    """The surplus, altered and lost effects, in this order. Equal texts are one finding with all its lines."""
    effects_done = compute_net_effects(wishes, effects_done, rules)
    effects = [effect for _, effect in effects_done]
    if len(effects) == len(wishes) and all(map(partial(matches_expected_effect, rules), wishes, effects)):
        return []  # most trials: each stated effect in its turn
    pairing = EffectPairing(wishes, effects, rules)
    if rules.ordered and len(effects) == len(wishes) == len(pairing.pairs):
        return _find_misordered_effect(effects_done, pairing.pairs)
    near_wishes, wish_texts = NearExpectedEffects(pairing), _ExpectedByText(pairing)
    lines = [(intern(record.writer), record.seq) for record, _ in effects_done]
    excess: list[Finding] = []
    unasked: dict[tuple[str, str], list[tuple[str, int]]] = {}
    repeated: set[tuple[int, str]] = set()
    repeats: dict[int, tuple[tuple[str, int], ...]] = {}
    for number, effect in enumerate(effects):
        if number in pairing.pairs:
            continue
        text_of_effect = describe_effect(effect.effect, effect.content)
        wish = pairing.find_matching_expected(number)
        if wish is not None:
            if (wish, text_of_effect) not in repeated:
                repeated.add((wish, text_of_effect))
                if wish not in repeats:  # findings share them: each of thousands may have thousands
                    repeats[wish] = tuple(lines[n] for n in pairing.list_matching_effects(wish))
                excess.append(
                    _make_duplicate_finding(text_of_effect, pairing.count_equal_expected(wish), repeats[wish])
                )
        elif (near_wish := near_wishes.take_nearest_expected(effect)) is not None:
            part = _describe_missing_diff_lines(wishes[near_wish], effect)
            text = f"{text_of_effect}, but {_describe_difference(rules, wishes[near_wish], effect)}"
            kind = FindingKind.LOST if part else FindingKind.ALTERED
            excess.append(Finding(kind, f"missing: {part} of {text_of_effect}" if part else text, (lines[number],)))
        else:
            unasked.setdefault((text_of_effect, wish_texts.describe_difference(effect, text_of_effect)), []).append(
                lines[number]
            )
    for (text_of_effect, content), shown_lines in unasked.items():
        times = f" {describe_repetition_count(len(shown_lines))}" if len(shown_lines) > 1 else ""
        excess.append(
            Finding(
                FindingKind.PHANTOM, f"{text_of_effect}{times}{content}, which was not asked for", tuple(shown_lines)
            )
        )
    missing = (wishes[number] for number in near_wishes.remaining_expected)
    excess += [
        Finding(FindingKind.LOST, f"missing: {describe_effect(str(wish.get('effect')), wish)}") for wish in missing
    ]
    return _merge_equal_findings(excess)


def _make_duplicate_finding(effect_text: str, expected_count: int, lines: tuple[tuple[str, int], ...]) -> Finding:
    instead = f" instead of {describe_repetition_count(expected_count)}" if expected_count > 1 else ""
    return Finding(FindingKind.DUPLICATE, f"{effect_text} {describe_repetition_count(len(lines))}{instead}", lines)


class _ExpectedByText:
    """The stated effects by their words."""

    def __init__(self, pairing: EffectPairing) -> None:
        self._rules, self._by_words = pairing.rules, dict[tuple[str, str], list[Wish]]()
        for number, *_ in pairing.wishes.members:
            wish = pairing.stated[number]
            name = str(wish.get("effect"))
            self._by_words.setdefault((name, describe_effect(name, wish)), []).append(wish)

    def describe_difference(self, effect: Effect, effect_text: str) -> str:
        """The content by which an effect that nobody asked for differs from one that was, if both have the same words;
        else empty."""
        for wish in self._by_words.get((effect.effect, effect_text), ()):
            if nearly_matches_expected(self._rules, wish, effect):
                key = list_differing_keys(self._rules, wish, effect)[0]
                return f" with the {key} {_quote_value(effect.content.get(key))}"
        return ""


def _find_misordered_effect(effects: Sequence[RecordedEffect], pairs: Mapping[int, int]) -> list[Finding]:
    """The first effect that happened before one that had to come earlier, as there is one."""
    index = next(number for number in range(len(effects)) if pairs[number] > pairs[number + 1])
    (earlier_record, earlier_effect), (later_record, later_effect) = effects[index], effects[index + 1]
    text = (
        f"{describe_effect(earlier_effect.effect, earlier_effect.content)} before "
        f"{describe_effect(later_effect.effect, later_effect.content)}"
    )
    return [
        Finding(
            FindingKind.ORDER,
            text,
            ((earlier_record.writer, earlier_record.seq), (later_record.writer, later_record.seq)),
        )
    ]


def _merge_equal_findings(findings: Sequence[Finding]) -> list[Finding]:
    if len(findings) < 2:
        return [*findings]
    merged: dict[tuple[FindingKind, str], list[Finding]] = {}
    for finding in findings:
        merged.setdefault((finding.kind, finding.text), []).append(finding)
    return [
        equal_findings[0]
        if len(equal_findings) == 1
        else Finding(
            *key, tuple(dict.fromkeys(chain.from_iterable(finding_entry.lines for finding_entry in equal_findings)))
        )
        for key, equal_findings in merged.items()
    ]


def find_missing_effects(
    wishes: Sequence[Wish], effects: Sequence[Effect], rules: EffectRules = NO_RULES
) -> list[Wish]:
    """The stated effects that no effect was paired with."""
    return [wishes[number] for number in EffectPairing(wishes, effects, rules).unpaired_expected]


def describe_effect(effect: str, content: Mapping[str, Any]) -> str:
    """An effect in words."""
    subject = content.get("to") or content.get("title") or content.get("id")
    if subject and effect == "message_sent":
        return f"message to {subject} sent"
    name = effect.replace("_", " ") if effect.isidentifier() else effect  # a path keeps its own
    return f"{name} '{subject}'" if subject else name


def describe_repetition_count(count: int) -> str:
    """A number of times in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _describe_difference(rules: EffectRules, wish: Mapping[str, Any], effect: Effect) -> str:
    key = list_differing_keys(rules, wish, effect)[0]
    return f"its {key} is {_quote_value(effect.content.get(key))} instead of {_quote_value(wish.get(key))}"


def _describe_missing_diff_lines(wish: Mapping[str, Any], effect: Effect) -> str:
    """The lines of a file's diff that an effect lacks, in words, if it has no other lines than those of the stated one;
    else empty: something else was done."""
    wished_lines, effect_lines = (
        Counter(line for line in str(content.get("diff", "")).splitlines() if line[:1] in ("+", "-"))
        for content in (wish, effect.content)
    )
    is_whole = all("diff" in content and "sha256" not in content for content in (wish, effect.content))
    if not is_whole or not effect_lines < wished_lines:
        return ""
    return f"{(wished_lines - effect_lines).total()} of {wished_lines.total()} changed lines"


def _quote_value(value: Any) -> str:
    return "nothing" if value is None else repr(str(value)[:SHOWN])
