"""Effects beside the stated ones: which of them match, and as many pairs as possible.

Equal effects are one class, and equal stated ones too, so that thousands of equal ones cost no more than to be counted.
Which classes may match is looked up before it is checked: the work grows with the number of effects, not with its
square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from chaoslab.analysis.answers.values import contains_any_spelling, tokenize
from chaoslab.base.alike import TrialTimeSpan, are_equal, normalize_unicode, round_to_digits, spell_canonically
from chaoslab.base.identity import canonical, is_idempotency_key
from chaoslab.core.events import FILES, Effect, PromptStarted

Wish = Mapping[str, Any]
SHOWN_DIGITS = 12
"""The digits of a number by which those that may be equal are found."""


@dataclass(frozen=True)
class EffectRules:
    """The user's statements about effects. `undoes`: the effects that take others back. `idempotent`: those that count
    once however often they are repeated. `ordered`: they must happen in the order of the right ones. `exact`: the right
    ones are the twin's, so an effect has their content and no other. One that a user states may leave fields out, and a
    text of it stands for each text that holds it. `spans`: the times of the twin and of the trial."""

    undoes: Mapping[str, str] = field(default_factory=dict)
    idempotent: Collection[str] = ()
    ordered: bool = False
    exact: bool = False
    spans: tuple[TrialTimeSpan, TrialTimeSpan] | None = None

    @classmethod
    def from_prompt_event(cls, started: PromptStarted) -> EffectRules:
        """Those of a trial."""
        if not (started.undoes or started.idempotent or started.ordered):
            return _AS_TWIN if started.exact else NO_RULES
        return cls(started.undoes or {}, started.idempotent or (), bool(started.ordered), bool(started.exact))


NO_RULES, _AS_TWIN = EffectRules(), EffectRules(exact=True)


def matches_expected_effect(rules: EffectRules, wish: Mapping[str, Any], effect: Effect) -> bool:
    if wish.get("effect") != effect.effect:
        return False
    plain = _PLAIN_TYPES.issuperset(map(type, wish.values())) and _PLAIN_TYPES.issuperset(
        map(type, effect.content.values())
    )
    return (plain and wish == {**effect.content, "effect": effect.effect}) or not list_differing_keys(
        rules, wish, effect
    )


_PLAIN_TYPES = frozenset({str, int, float, type(None)})
"""The types of which equal values are the same; True is no 1. Most effects have no others, and are as stated."""


def nearly_matches_expected(rules: EffectRules, wish: Mapping[str, Any], effect: Effect) -> bool:
    return wish.get("effect") == effect.effect and (
        not wish.get("to") or "to" not in list_differing_keys(rules, wish, effect)
    )


def list_differing_keys(rules: EffectRules, wish: Mapping[str, Any], effect: Effect) -> list[str]:
    """The keys in which the effect differs. A repetition under another idempotency key is still a repetition."""
    keys = dict.fromkeys([*wish, *effect.content]) if rules.exact else wish
    same = partial(_is_equal_value, rules.spans) if rules.exact or effect.target == FILES else _is_expected_value
    return [
        key
        for key in keys
        if key != "effect" and not is_idempotency_key(key) and not same(key, wish.get(key), effect.content.get(key))
    ]


def _is_equal_value(spans: tuple[TrialTimeSpan, TrialTimeSpan] | None, _key: str, expected: Any, value: Any) -> bool:
    """True if a value of an effect is the twin's, or both are the moments at which it was done. Two texts are compared
    letter by letter, since the lab does not know the meaning of a path, a command or an id."""
    if spans is not None and expected != value:
        expected, value = (
            span.replace_moments(content) for span, content in zip(spans, (expected, value), strict=True)
        )
    if isinstance(expected, str) and isinstance(value, str):
        moment = _parse_moment(expected)
        return normalize_unicode(expected) == normalize_unicode(value) or (
            moment is not None and moment == _parse_moment(value)
        )
    return are_equal(expected, value) or _text_equals_number(expected, value) or _text_equals_number(value, expected)


def _text_equals_number(text: Any, number: Any) -> bool:
    """True if a text is a number and nothing else, as "30" is 30."""
    if not isinstance(text, str) or isinstance(number, bool) or not isinstance(number, int | float):
        return False
    try:
        return Decimal(text) == Decimal(str(number))
    except InvalidOperation:
        return False


def _is_expected_value(key: str, expected: Any, value: Any) -> bool:
    if value == expected:
        return True
    if value is None or expected is None:  # the word "None" is not nothing
        return False
    options = expected if isinstance(expected, list) else [expected]
    if key in ("start", "end"):
        moments = [_parse_moment(option) for option in options]
        if _parse_moment(value) is not None and any(moments):
            return _parse_moment(value) in moments
    # A receiver is compared as a whole, unlike other texts, which only have to be shown.
    if key == "to":  # a message to "ana maria" is not one to "ana"
        return any(tokenize(str(value)) == tokenize(str(option)) for option in options)
    return contains_any_spelling([str(option) for option in options], str(value))


def _parse_moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _make_content_key(name: Any, content: Wish) -> str:
    """A text that effects, or stated ones, share that nothing tells apart but their keys."""
    compared = {key: value for key, value in content.items() if key != "effect" and not is_idempotency_key(key)}
    return canonical([str(name), compared])


def _make_match_key(rules: EffectRules, name: Any, content: Wish) -> str:
    """A text that a stated effect shares with all effects that match it, and with few others."""
    if not rules.exact:
        return str(name)
    compared = ((key, value) for key, value in content.items() if key != "effect" and not is_idempotency_key(key))
    return canonical([str(name), {key: _make_value_key(rules, value) for key, value in compared if value is not None}])


def _make_value_key(rules: EffectRules, value: Any) -> str:
    """A text that a value shares with all that are equal to it by `_is_equal_value`."""
    for span in rules.spans or ():
        value = span.replace_moments(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return spell_canonically(value)
    try:
        return f"#{round_to_digits(float(value)):.{SHOWN_DIGITS}g}"
    except (ValueError, OverflowError):
        moment = _parse_moment(value)
        return normalize_unicode(str(value)) if moment is None else f"@{moment.timestamp()}"


class _Classes:
    """Numbered things by their classes. `of`: the class of each; `members`: the numbers of each class."""

    def __init__(self, spellings: Sequence[str]) -> None:
        class_numbers = dict[str, int]()
        self.of = [class_numbers.setdefault(class_number, len(class_numbers)) for class_number in spellings]
        self.members: list[list[int]] = [[] for _ in class_numbers]
        for number, class_number in enumerate(self.of):
            self.members[class_number].append(number)


class EffectPairing:
    """As many pairs of stated effects and effects as possible: a vague one leaves an exact one the only effect that
    fits. `pairs`: the stated effect's number of each effect that has one, by the effect's number."""

    def __init__(self, wishes: Sequence[Wish], effects: Sequence[Effect], rules: EffectRules) -> None:
        self.stated, self.done, self.rules = wishes, effects, rules
        self.wishes = _Classes([_make_content_key(wish_number.get("effect"), wish_number) for wish_number in wishes])
        self.effects = _Classes([_make_content_key(effect.effect, effect.content) for effect in effects])
        self._like_effect, self._like_wish = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        firsts = [effects[number] for number, *_ in self.effects.members] if wishes else []
        self._outlines = [_make_match_key(rules, first.effect, first.content) for first in firsts]
        for class_number, outline in enumerate(self._outlines):
            self._like_effect[outline].append(class_number)
        for class_number, (number, *_) in enumerate(self.wishes.members):
            self._like_wish[_make_match_key(rules, wishes[number].get("effect"), wishes[number])].append(class_number)
        self._first_wish: dict[int, int | None] = {}
        self._classes_by_wish: dict[int, list[int]] = {}
        self._effects_by_wish: dict[int, list[int]] = {}
        self._places: dict[int, int] = {}
        self._owners: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.pairs: dict[int, int] = {}
        hopeless = set[int]()
        for wish_number, wish_class in enumerate(self.wishes.of):
            if wish_class in hopeless:
                continue
            free = self._find_unpaired_effect(wish_class)
            if free is not None:
                self._add_pair(wish_number, free)
            elif not self._pair_by_reassigning(wish_number):
                hopeless.add(wish_class)  # no later pair opens a way that there is none of now

    @property
    def unpaired_expected(self) -> list[int]:
        """The stated effects that did not happen."""
        paired = set(self.pairs.values())
        return [number for number in range(len(self.stated)) if number not in paired]

    def find_matching_expected(self, effect: int) -> int | None:
        """The first stated effect that the one with this number matches, whether they are a pair or not."""
        effect_class = self.effects.of[effect]
        if effect_class not in self._first_wish:
            effect_entry = self.done[effect]
            candidates = self._like_wish[self._outlines[effect_class]] if self.stated else ()
            numbers = (self.wishes.members[class_number][0] for class_number in candidates)
            self._first_wish[effect_class] = next(
                (n for n in numbers if matches_expected_effect(self.rules, self.stated[n], effect_entry)), None
            )
        return self._first_wish[effect_class]

    def list_matching_effects(self, wish: int) -> list[int]:
        """The effects that match this stated one, in order."""
        return self._list_class_effects(self.wishes.of[wish])

    def count_equal_expected(self, wish: int) -> int:
        """The number of stated effects like this one."""
        return len(self.wishes.members[self.wishes.of[wish]])

    def _list_matching_classes(self, wish_class: int) -> list[int]:
        """The classes of effects that match a class of stated ones."""
        if wish_class not in self._classes_by_wish:
            wish = self.stated[self.wishes.members[wish_class][0]]
            candidates = self._like_effect[_make_match_key(self.rules, wish.get("effect"), wish)]
            firsts = ((class_number, self.done[self.effects.members[class_number][0]]) for class_number in candidates)
            self._classes_by_wish[wish_class] = [
                class_number for class_number, first in firsts if matches_expected_effect(self.rules, wish, first)
            ]
        return self._classes_by_wish[wish_class]

    def _list_class_effects(self, wish_class: int) -> list[int]:
        """The effects that match a class of stated ones, in order."""
        if wish_class not in self._effects_by_wish:
            fitting = (
                number
                for class_number in self._list_matching_classes(wish_class)
                for number in self.effects.members[class_number]
            )
            self._effects_by_wish[wish_class] = sorted(fitting)
        return self._effects_by_wish[wish_class]

    def _find_unpaired_effect(self, wish_class: int) -> int | None:
        """The first effect that matches a class of stated ones and is not paired. None that is paired is ever free
        again, so nothing is looked at twice."""
        matching, position = self._list_class_effects(wish_class), self._places.get(wish_class, 0)
        while position < len(matching) and matching[position] in self.pairs:
            position += 1
        self._places[wish_class] = position
        return matching[position] if position < len(matching) else None

    def _add_pair(self, wish: int, effect: int) -> None:
        self.pairs[effect] = wish
        self._owners[self.effects.of[effect]][self.wishes.of[wish]].append(effect)

    def _pair_by_reassigning(self, wish: int) -> bool:
        """Pairs the stated effect with one whose partner takes another, and so on; False if there is no such way."""
        start = self.wishes.of[wish]
        reached_from: dict[int, tuple[int, int]] = {start: (start, -1)}
        queue = [start]
        for wish_class in queue:  # grows
            for effect_class in self._list_matching_classes(wish_class):
                for owner, numbers in self._owners[effect_class].items():
                    if not numbers or owner in reached_from:
                        continue
                    reached_from[owner] = wish_class, effect_class
                    queue.append(owner)
                    free = self._find_unpaired_effect(owner)
                    if free is not None:
                        self._reassign_partners(wish, owner, free, reached_from)
                        return True
        return False

    def _reassign_partners(self, wish: int, owner: int, free: int, reached_from: Mapping[int, tuple[int, int]]) -> None:
        while owner != self.wishes.of[wish]:
            previous_owner, effect_class = reached_from[owner]
            moved = self._owners[effect_class][owner].pop()
            self._add_pair(self.pairs.pop(moved), free)
            owner, free = previous_owner, moved
        self._add_pair(wish, free)


class NearExpectedEffects:
    """Stated effects that did not happen, found by an effect that is meant for one and has other content."""

    def __init__(self, pairing: EffectPairing) -> None:
        self._of, self._left = pairing, dict.fromkeys(pairing.unpaired_expected)
        self._by_receiver = defaultdict[tuple[str, str], list[int]](list)
        # The last first: then the first is at the end of its list, where it is taken off.
        for number in reversed(self._left):
            wish = pairing.stated[number]
            for key in self._make_receiver_keys(wish.get("to"), wished=True):
                self._by_receiver[str(wish.get("effect")), key].append(number)

    @property
    def remaining_expected(self) -> list[int]:
        return [*self._left]

    def take_nearest_expected(self, effect: Effect) -> int | None:
        """The first stated effect that this one is meant for, which is left no more."""
        near: list[int] = []
        for key in self._make_receiver_keys(effect.content.get("to"), wished=False):
            numbers = self._by_receiver[effect.effect, key]
            while numbers and numbers[-1] not in self._left:
                numbers.pop()
            fitting = (n for n in reversed(numbers) if n in self._left)
            first = next(
                (n for n in fitting if nearly_matches_expected(self._of.rules, self._of.stated[n], effect)), None
            )
            near += [] if first is None else [first]
        if not near:
            return None
        del self._left[min(near)]
        return min(near)

    def _make_receiver_keys(self, to: Any, *, wished: bool) -> set[str]:
        """The texts of which a stated effect and an effect share one if they may have one receiver."""
        if wished and not to:
            return {""}
        rules = self._of.rules
        if rules.exact:
            receivers = {_make_value_key(rules, to)}
        else:
            options = to if wished and isinstance(to, list) else [to]
            receivers = {canonical(to), *(" ".join(tokenize(str(option))) for option in options)}
        return receivers if wished else {"", *receivers}
