"""Effects beside the wishes that they fulfil: which of them match, and as many pairs as possible.

Equal effects are one class, and equal wishes too, so that thousands of equal ones cost no more than to be counted.
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

from chaoslab.analysis.answers.values import shows, tokens
from chaoslab.base.alike import Span, alike, as_text, rounded, spelt
from chaoslab.base.identity import canonical, is_idempotency_key
from chaoslab.core.events import Effect, PromptStarted

Wish = Mapping[str, Any]
SHOWN_DIGITS = 12
"""The digits of a number by which those that may be equal are found."""


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
            return _AS_TWIN if started.exact else NO_RULES
        return cls(started.undoes or {}, started.idempotent or (), bool(started.ordered), bool(started.exact))


NO_RULES, _AS_TWIN = Rules(), Rules(exact=True)


def matches(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> bool:
    if wish.get("effect") != effect.effect:
        return False
    plain = _PLAIN.issuperset(map(type, wish.values())) and _PLAIN.issuperset(map(type, effect.content.values()))
    return (plain and wish == {**effect.content, "effect": effect.effect}) or not differing(rules, wish, effect)


_PLAIN = frozenset({str, int, float, type(None)})
"""The types of which equal values are the same; True is no 1. Most effects have no others, and are as stated."""


def nearly(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> bool:
    return wish.get("effect") == effect.effect and (not wish.get("to") or "to" not in differing(rules, wish, effect))


def differing(rules: Rules, wish: Mapping[str, Any], effect: Effect) -> list[str]:
    """The keys in which the effect differs. A repetition under another idempotency key is still a repetition."""
    keys = dict.fromkeys([*wish, *effect.content]) if rules.exact else wish
    same = partial(_equal, rules.spans) if rules.exact else _same
    return [
        key
        for key in keys
        if key != "effect" and not is_idempotency_key(key) and not same(key, wish.get(key), effect.content.get(key))
    ]


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
    # A receiver is compared as a whole, unlike other texts, which only have to be shown.
    if key == "to":  # a message to "ana maria" is not one to "ana"
        return any(tokens(str(value)) == tokens(str(option)) for option in options)
    return shows([str(option) for option in options], str(value))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _spelling(name: Any, content: Wish) -> str:
    """A text that effects, or wishes, share that nothing tells apart but their keys."""
    kept = {key: value for key, value in content.items() if key != "effect" and not is_idempotency_key(key)}
    return canonical([str(name), kept])


def _outline(rules: Rules, name: Any, content: Wish) -> str:
    """A text that a wish shares with all effects that match it, and with few others."""
    if not rules.exact:
        return str(name)
    kept = ((key, value) for key, value in content.items() if key != "effect" and not is_idempotency_key(key))
    return canonical([str(name), {key: _rough(rules, value) for key, value in kept if value is not None}])


def _rough(rules: Rules, value: Any) -> str:
    """A text that a value shares with all that are equal to it by `_equal`."""
    for span in rules.spans or ():
        value = span.unstamped(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return spelt(value)
    try:
        return f"#{rounded(float(value)):.{SHOWN_DIGITS}g}"
    except (ValueError, OverflowError):
        moment = _moment(value)
        return as_text(str(value)) if moment is None else f"@{moment.timestamp()}"


class _Classes:
    """Numbered things by their classes. `of`: the class of each; `members`: the numbers of each class."""

    def __init__(self, spellings: Sequence[str]) -> None:
        known = dict[str, int]()
        self.of = [known.setdefault(each, len(known)) for each in spellings]
        self.members: list[list[int]] = [[] for _ in known]
        for number, each in enumerate(self.of):
            self.members[each].append(number)


class Pairing:
    """As many pairs of wishes and effects as possible: a vague wish leaves to an exact one the only effect that fits.
    `pairs`: the wish's number of each effect that has one, by the effect's number."""

    def __init__(self, stated: Sequence[Wish], done: Sequence[Effect], rules: Rules) -> None:
        self.stated, self.done, self.rules = stated, done, rules
        self.wishes = _Classes([_spelling(wish.get("effect"), wish) for wish in stated])
        self.effects = _Classes([_spelling(effect.effect, effect.content) for effect in done])
        self._like_effect, self._like_wish = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        firsts = [done[number] for number, *_ in self.effects.members] if stated else []
        self._outlines = [_outline(rules, first.effect, first.content) for first in firsts]
        for each, outline in enumerate(self._outlines):
            self._like_effect[outline].append(each)
        for each, (number, *_) in enumerate(self.wishes.members):
            self._like_wish[_outline(rules, stated[number].get("effect"), stated[number])].append(each)
        self._first_wish: dict[int, int | None] = {}
        self._fits: dict[int, list[int]] = {}
        self._fitting: dict[int, list[int]] = {}
        self._places: dict[int, int] = {}
        self._owners: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.pairs: dict[int, int] = {}
        hopeless = set[int]()
        for wish, of in enumerate(self.wishes.of):
            if of in hopeless:
                continue
            free = self._free(of)
            if free is not None:
                self._put(wish, free)
            elif not self._make_room(wish):
                hopeless.add(of)  # no later pair opens a way that there is none of now

    @property
    def left(self) -> list[int]:
        """The wishes without an effect."""
        paired = set(self.pairs.values())
        return [number for number in range(len(self.stated)) if number not in paired]

    def wish_of(self, effect: int) -> int | None:
        """The first wish that the effect with this number matches, whether they are a pair or not."""
        of = self.effects.of[effect]
        if of not in self._first_wish:
            found = self.done[effect]
            among = self._like_wish[self._outlines[of]] if self.stated else ()
            numbers = (self.wishes.members[each][0] for each in among)
            self._first_wish[of] = next((n for n in numbers if matches(self.rules, self.stated[n], found)), None)
        return self._first_wish[of]

    def alike(self, wish: int) -> list[int]:
        """The effects that match this wish, in order."""
        return self._all(self.wishes.of[wish])

    def wanted(self, wish: int) -> int:
        """The number of wishes like this one."""
        return len(self.wishes.members[self.wishes.of[wish]])

    def _classes(self, of: int) -> list[int]:
        """The classes of effects that match a class of wishes."""
        if of not in self._fits:
            wish = self.stated[self.wishes.members[of][0]]
            among = self._like_effect[_outline(self.rules, wish.get("effect"), wish)]
            firsts = ((each, self.done[self.effects.members[each][0]]) for each in among)
            self._fits[of] = [each for each, first in firsts if matches(self.rules, wish, first)]
        return self._fits[of]

    def _all(self, of: int) -> list[int]:
        """The effects that match a class of wishes, in order."""
        if of not in self._fitting:
            fitting = (number for each in self._classes(of) for number in self.effects.members[each])
            self._fitting[of] = sorted(fitting)
        return self._fitting[of]

    def _free(self, of: int) -> int | None:
        """The first effect that matches a class of wishes and has no wish yet. None that is paired is ever free again,
        so nothing is looked at twice."""
        fitting, at = self._all(of), self._places.get(of, 0)
        while at < len(fitting) and fitting[at] in self.pairs:
            at += 1
        self._places[of] = at
        return fitting[at] if at < len(fitting) else None

    def _put(self, wish: int, effect: int) -> None:
        self.pairs[effect] = wish
        self._owners[self.effects.of[effect]][self.wishes.of[wish]].append(effect)

    def _make_room(self, wish: int) -> bool:
        """Pairs the wish with an effect whose own wish takes another, and so on; False if there is no such way."""
        start = self.wishes.of[wish]
        came: dict[int, tuple[int, int]] = {start: (start, -1)}
        queue = [start]
        for at in queue:  # grows
            for each in self._classes(at):
                for owner, numbers in self._owners[each].items():
                    if not numbers or owner in came:
                        continue
                    came[owner] = at, each
                    queue.append(owner)
                    free = self._free(owner)
                    if free is not None:
                        self._shift(wish, owner, free, came)
                        return True
        return False

    def _shift(self, wish: int, owner: int, free: int, came: Mapping[int, tuple[int, int]]) -> None:
        while owner != self.wishes.of[wish]:
            before, each = came[owner]
            moved = self._owners[each][owner].pop()
            self._put(self.pairs.pop(moved), free)
            owner, free = before, moved
        self._put(wish, free)


class NearWishes:
    """Wishes that nothing fulfilled, found by an effect that is meant for one and has other content."""

    def __init__(self, pairing: Pairing) -> None:
        self._of, self._left = pairing, dict.fromkeys(pairing.left)
        self._by_receiver = defaultdict[tuple[str, str], list[int]](list)
        for number in reversed(self._left):
            wish = pairing.stated[number]
            for key in self._receivers(wish.get("to"), wished=True):
                self._by_receiver[str(wish.get("effect")), key].append(number)

    @property
    def left(self) -> list[int]:
        return [*self._left]

    def take(self, effect: Effect) -> int | None:
        """The first wish that the effect is meant for, which is left no more."""
        near: list[int] = []
        for key in self._receivers(effect.content.get("to"), wished=False):
            numbers = self._by_receiver[effect.effect, key]
            while numbers and numbers[-1] not in self._left:
                numbers.pop()
            fitting = (n for n in reversed(numbers) if n in self._left)
            first = next((n for n in fitting if nearly(self._of.rules, self._of.stated[n], effect)), None)
            near += [] if first is None else [first]
        if not near:
            return None
        del self._left[min(near)]
        return min(near)

    def _receivers(self, to: Any, *, wished: bool) -> set[str]:
        """The texts of which a wish and an effect share one if they may have one receiver."""
        if wished and not to:
            return {""}
        rules = self._of.rules
        if rules.exact:
            found = {_rough(rules, to)}
        else:
            options = to if wished and isinstance(to, list) else [to]
            found = {canonical(to), *(" ".join(tokens(str(each))) for each in options)}
        return found if wished else {"", *found}
