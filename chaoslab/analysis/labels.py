"""The words beside each value of two answers: contradictions, values that changed places, and labels that differ."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from chaoslab.analysis.answers.values import in_iso, tokens, words_of
from chaoslab.analysis.opposites import Word, contradiction, words_with_opposites
from chaoslab.analysis.stance.clauses import folded

READ_MAX = 4_000
"""The most characters of an answer whose labels are read."""

_VALUE = re.compile(
    r"(?<![\w.])(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?|-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)|\w*\d\w*)(?:st|nd|rd|th)?"
)
_BREAK = re.compile(r"\([^()\n]*\)|[,;|()\n]|\band\b|\bbut\b|\bwhile\b|[.!?:](?=\s)")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_MARKS = re.compile(r"[*_`#>]+")


class Beside(NamedTuple):
    """A value with the words before and behind it, and those of them that have opposites. `shown`: the value as the
    text has it. `told`: the place of its sentence."""

    value: str
    shown: str
    before: str
    behind: str
    opposed: list[Word]
    told: tuple[int, int]


class Read(NamedTuple):
    """The values of a text in their order, and all of its words that have opposites."""

    besides: list[Beside]
    opposed: list[Word]


def read(text: str) -> Read:
    """Reads the words beside each value: those up to the value before, but for what stands before the first break
    between the two."""
    text = re.sub(r"[^\S\n]+", " ", _MARKS.sub("", folded(in_iso(text[:READ_MAX]))))
    opposed = words_with_opposites(text)
    places = list(_VALUE.finditer(text))
    ends = list(_END.finditer(text))
    begins = [0, *(end.end() for end in ends)]
    found = []
    start = 0
    for match, following in zip(places, [*places[1:], None], strict=False):
        between = text[match.end() : following.start() if following else len(text)]
        cut = _BREAK.search(between)
        if cut is None:
            stop = match.end() if following else len(text)
        else:
            stop = match.end() + (cut.end() if cut[0].endswith(")") else cut.start())
        at = bisect_right(begins, match.start()) - 1
        told = begins[at], ends[at].start() if at < len(ends) else len(text)
        begun = max(start, told[0])
        near = [word for word in opposed if begun <= word.start < stop]
        value = "".join(tokens(match[0]))
        found.append(Beside(value, match[0], text[begun : match.start()], text[match.end() : stop], near, told))
        start = stop
    return Read(found, opposed)


_END = re.compile(r"[.!?](?=\s)|\n")


# --- contradictions ---


class Contradiction(NamedTuple):
    """Words of two texts that exclude each other. `value`: the value beside which they stand; empty if there is none
    that both texts have in the same sentence."""

    expected: str
    given: str
    value: str


def contradicted(expected: Read, given: Read) -> Contradiction | None:
    """The first contradiction between the words beside a value of both texts, else between all of their words."""
    both = _in_both(expected.besides, given.besides)
    for one, other in both.values():
        if found := contradiction([w for b in one for w in b.opposed], [w for b in other for w in b.opposed]):
            return Contradiction(found[0].text, found[1].text, other[0].shown)
    found = contradiction(expected.opposed, given.opposed)
    if found is None:
        return None
    beside = next(
        (other[0].shown for one, other in both.values() if _tells(one, found[0]) and _tells(other, found[1])), ""
    )
    return Contradiction(found[0].text, found[1].text, beside)


def _tells(besides: Sequence[Beside], word: Word) -> bool:
    """True if the word stands in the sentence of one of these."""
    return any(beside.told[0] <= word.start < beside.told[1] for beside in besides)


def _in_both(expected: Iterable[Beside], given: Iterable[Beside]) -> Mapping[str, tuple[list[Beside], list[Beside]]]:
    """The places of each value that both texts have."""
    found: dict[str, tuple[list[Beside], list[Beside]]] = {}
    for at, beside in enumerate((expected, given)):
        for each in beside:
            found.setdefault(each.value, ([], []))[at].append(each)
    return {value: pair for value, pair in found.items() if all(pair)}


# --- values that changed places ---

_PER = re.compile(r"(?<![^\W\d])([^\W\d]+)\s+(?:per|for each|for every)\s+([^\W\d]+)")


def inverted(expected: str, given: str) -> bool:
    """True if a rate has its two units the other way round: dollars per euro, and euros per dollar."""
    rates = [
        {(a.removesuffix("s"), b.removesuffix("s")) for a, b in _PER.findall(folded(t))} for t in (expected, given)
    ]
    return any((b, a) in rates[1] and (a, b) not in rates[1] for a, b in rates[0] if a != b)


_PLAIN = words_of(
    "the a an of to for in on at is are was were be been it its i you your my our their his her have has had and or but"
    " that this there here so now just by with as from we will would can currently today about around approximately"
    " roughly nearly almost exactly only also still eur usd gbp jpy percent celsius fahrenheit degree degrees c f km m"
    " cm mm kg g s h min minutes hours seconds euros euro dollars dollar while both respectively stands comes"
)


def owners(expected: Read, given: Read) -> bool | None:
    """If the values of both texts belong to the same words: True if each does, whatever their order; False if some
    changed places; None if that cannot be told."""
    both = _in_both(expected.besides, given.besides)
    shared = {value for value, (one, other) in both.items() if len(one) == len(other) == 1}
    if len(shared) < 2:
        return None
    first, second = (_owned(text.besides, shared) for text in (expected, given))
    kept, moved = set(), []
    for word, value in first.items():
        if word in second:
            kept |= {value} if second[word] == value else set()
            moved += [(value, second[word])] if second[word] != value else []
    if moved:
        left, come = {value for value, _ in moved}, {value for _, value in moved}
        return False if left == come and not left & kept else None
    if shared != {beside.value for beside in expected.besides}:
        return None
    return True if len(kept) >= len(shared) - 1 >= len(moved) else None  # the last value has no other place


def _owned(besides: Iterable[Beside], shared: set[str]) -> dict[str, str]:
    """The words that belong to one value alone, with the value."""
    said = [(beside.value, _said(f"{beside.before} {beside.behind}")) for beside in besides]
    often = Counter(word for _, words in said for word in words)
    return {word: value for value, words in said for word in words if often[word] == 1 and value in shared}


def _said(text: str) -> set[str]:
    return {word.removesuffix("'s") for word in _WORD.findall(text)} - _PLAIN


# --- labels ---

_LABEL = re.compile(
    r"(?:^|.*[,;.!?\n(]|^(?:so|and|then|yes|sure|ok)\b)\W*(?P<label>[^\W\d_]+(?:[ '/-][^\W\d_]+){0,3}?)\s*"
    r"(?:[:=|–—]+|-|\b(?:is|was|are|were|(?:comes?|came|adds? up|amounts?|amounted) to|equals?|stands at|of)\b)"
    r"\s*(?:(?:now|currently|about|approximately|around|exactly|only|roughly|just|eur|usd|gbp|jpy)\s+|[$€£¥:|-]\s*)*$",
    re.DOTALL,
)
_SHORT = re.compile(r"\W*(?P<label>[^\W\d_]+(?: [^\W\d_]+)?(?<!ed)(?<!paid)(?<!sent)(?<!made)) \W*")
_LABEL_MAX = 120
"""The most characters before a value in which its label is looked for."""
_UNIT_ONLY = re.compile(r"\W*(?:[^\W\d_]{1,9})?\W*")
_PRONOUNS = words_of("it that this there you i we he she they here which what who one that's it's there's")
_ALIKE = [
    words_of(group)
    for group in (
        "total sum bill price cost costs due invoice grand overall altogether pay payable charge",
        "balance account funds money",
        "distance length way route far",
        "duration time length trip journey ride",
        "temperature weather degrees thermometer",
        "population inhabitants residents people",
        "price rate quote fare cost ticket",
        "revenue sales turnover income",
        "profit earnings gain surplus income",
        "count quantity stock inventory units items",
        "deadline due",
        "meeting appointment event call demo review session",
        "confirmation reference booking reservation",
        "score points rating grade mark",
        "height altitude elevation",
        "weight mass parcel package",
        "speed velocity",
        "rate exchange course",
        "order purchase",
        "refund reimbursement",
        "start beginning begin opening",
        "end finish closing",
    )
]
"""Labels that may stand for the same."""
_ANYTHING = words_of(
    "answer result value output figure number amount reading response data final current new latest name"
)
"""Labels that may stand for anything."""


def differing(expected: Read, given: Read, asked: str) -> str:
    """The labels of a value that have nothing in common, as part of a line; empty if there are none."""
    both = _in_both(expected.besides, given.besides)
    for one, other in both.values():
        if len(one) != 1 or len(other) != 1 or _say_the_same(one[0].opposed, other[0].opposed):
            continue
        labels = [_label(each) for each in (one[0], other[0])]
        words = [_said(label) - _PRONOUNS for label in labels]
        if not all(words) or any(each & _ANYTHING for each in words) or _akin(words[0], words[1]):
            continue
        if len(both) == 1 and words[1] <= set(tokens(asked)):
            continue
        return f"'{labels[1][:40]}' stands for '{labels[0][:40]}' beside {other[0].shown}"
    return ""


def _say_the_same(one: Sequence[Word], other: Sequence[Word]) -> bool:
    return bool({word.group for word in one} & {word.group for word in other})


def _label(beside: Beside) -> str:
    """The name that the text gives to the value, as in "Total: 5" or "the total is 5"; empty if it gives none."""
    before = beside.before
    if len(before) > _LABEL_MAX:
        before = before[-_LABEL_MAX:].partition(" ")[2]
    found = _LABEL.match(before)
    if found is None and _UNIT_ONLY.fullmatch(beside.behind):
        found = _SHORT.fullmatch(before)
    if found is None or _PRONOUNS & set(_WORD.findall(found["label"])):
        return ""
    return found["label"].strip()


def _akin(one: set[str], other: set[str]) -> bool:
    """True if the labels share a word, a beginning of one, or a meaning."""
    for first in one:
        for second in other:
            short, long = sorted((first, second), key=len)
            if long.startswith(short[: max(4, len(short) - 2)]) or any(first in g and second in g for g in _ALIKE):
                return True
    return False
