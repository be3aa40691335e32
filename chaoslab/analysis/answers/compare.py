"""One answer beside the expected one: the same, other values, alike in other words, or not to be told.

The first two are certain: they rest on equal texts in one notation, and on texts that are equal but for their values.
The third is a guess from words, and everything else is the last: no word outweighs another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import Any

from chaoslab.analysis.answers import structures
from chaoslab.analysis.answers.normal import CURRENCIES, NUMBER_WORDS, SIGN, as_written, normal, sorted_lists
from chaoslab.analysis.answers.values import READ_MAX, is_value, plain, tokens

SHOWN = 4
"""The most words that a reason names."""
SLOTS = 2
"""The most places at which equal texts have another word that still count as one finding."""
LONGEST = 2_000
"""The most tokens of a text whose differences are searched: the search is quadratic."""


class Likeness(StrEnum):
    """The result of comparing two answers.

    OTHER: equal words, and other numbers. OPPOSED, by words: equal words but for a few that turn the meaning.
    ALIKE, by words: the same values, and most words are the same ones.
    """

    SAME = "same"
    OTHER = "other"
    OPPOSED = "opposed"
    ALIKE = "alike"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Comparison:
    """The likeness of two answers. `said`: the finding, as part of a line. `kept`: every value and name of the
    expected one
    that proves something is there, in order, and none is added."""

    likeness: Likeness
    said: str
    kept: bool = False


@dataclass(frozen=True)
class Twin:
    """The results of the same trial without faults, for a comparison. `answer`: None if it cannot be compared.
    `seconds`: in the world's time; None if it cannot be compared. `calls`: the number of attempts. `effects`: the
    effects, as those that must happen again, if nothing else was stated about the trial."""

    answer: str | None
    seconds: float | None
    calls: int
    effects: Sequence[Mapping[str, Any]] | None = None


_EQUAL = Comparison(Likeness.SAME, "the same answer")


def compare(expected: str, given: str, *, asked: str = "", known: str = "") -> Comparison:
    """Compares an answer with the expected one.

    `asked`: the prompt, whose values prove nothing. `known`: a text whose values an answer may have in place of the
    expected ones, such as the effects that were rightly done.
    """
    if expected == given:
        return _EQUAL
    if max(len(expected), len(given)) > READ_MAX:
        return Comparison(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX:,} characters")
    return _compared(expected, given, asked, known)


@lru_cache(maxsize=256)
def _compared(expected: str, given: str, asked: str, known: str) -> Comparison:
    held = [structures.structure(text) for text in (expected, given)]
    if held[0] is not None and held[1] is not None:
        found = [each for each in structures.differences(held[0], held[1]) if not _same_text(each)]
        if not found:
            return Comparison(Likeness.SAME, "the same values")
        differing = [each for each in found if not structures.of_making(each)]
        other = bool(differing) and all(_contradicts(each, known) for each in differing)
        return Comparison(Likeness.OTHER if other else Likeness.UNCLEAR, structures.told(differing or found))
    if held[0] is not None or held[1] is not None:
        return Comparison(Likeness.UNCLEAR, "only one of the two answers is structured")
    one, two = normal(expected, given)
    if one == two and one:
        return Comparison(Likeness.SAME, "the same answer in another notation")
    idle = normal(_IDLE.sub("", expected), _IDLE.sub("", given))
    if idle[0] == idle[1] and idle[0]:
        return Comparison(Likeness.SAME, "the same answer but for idle words")
    lists = sorted_lists(expected), sorted_lists(given)
    if lists != (expected, given):
        listed = normal(*lists)
        if listed[0] == listed[1]:
            return Comparison(Likeness.SAME, "the same list in another order")
    if len(two) < len(one) and one[: len(two)] == two:
        return Comparison(
            Likeness.UNCLEAR, f"it is only the beginning of its twin's, without {_listed(one[len(two) :])}"
        )
    if max(len(one), len(two)) > LONGEST:
        return Comparison(Likeness.UNCLEAR, f"the answers differ and have more than {LONGEST:,} words")
    return _of_values(one, two, known) or _of_words(one, two, asked, (expected, given))


def _same_text(place: structures.Difference) -> bool:
    _, one, other = place
    return isinstance(one, str) and isinstance(other, str) and compare(one, other).likeness is Likeness.SAME


def _contradicts(place: structures.Difference, known: str) -> bool:
    """True if a place of a structured answer has another number. A flag or text may differ by an admission."""
    _, one, other = place
    if isinstance(one, str) and isinstance(other, str):
        return compare(one, other, known=known).likeness is Likeness.OTHER
    return structures.number(one) and structures.number(other) and not set(tokens(str(other))) & set(tokens(known))


def _of_values(one: Sequence[str], two: Sequence[str], known: str) -> Comparison | None:
    """The finding that two texts have the same words but for numbers, names or opposites; None if that is not so."""
    if len(one) != len(two):
        return None
    places = [at for at, (wanted, said) in enumerate(zip(one, two, strict=True)) if wanted != said]
    if any(_of_making(two, at) for at in places) or {two[at] for at in places} & set(tokens(known)):
        return None
    less, more = ([text[at] for at in places] for text in (one, two))
    said = f"it says {_listed(more)} instead of {_listed(less)}"
    if all(one[at].startswith("#") and two[at].startswith("#") for at in places):
        return None if all(_thousandfold(one[at], two[at]) for at in places) else Comparison(Likeness.OTHER, said)
    turned = [at for at in places if is_value(two[at]) or {one[at], two[at]} & TURNING]
    return Comparison(Likeness.OPPOSED, said) if len(turned) == len(places) <= SLOTS else None


def _thousandfold(one: str, two: str) -> bool:
    """True if one number is the other with a point for the thousands, as in 1.200."""
    try:
        less, more = sorted(Decimal(each.removeprefix("#")) for each in (one, two))
    except InvalidOperation:  # a name with a digit in it
        return False
    return less * 1000 == more


def _of_making(text: Sequence[str], at: int) -> bool:
    """True if a number counts what the agent did, such as its attempts or seconds."""
    return bool(MAKING & {token.rstrip("s") for token in (*text[max(0, at - 2) : at], *text[at + 1 : at + 3])})


def _of_words(one: Sequence[str], two: Sequence[str], asked: str, texts: tuple[str, str]) -> Comparison:
    """The comparison of two texts with other words."""
    differing = (Counter(one) - Counter(two)) + (Counter(two) - Counter(one))
    shown = _differing(one, two)
    given_away = set(normal(asked, asked)[0])
    wanted, said = ([token for token in each if is_value(token)] for each in (one, two))
    proving = [value for value in wanted if value not in given_away]
    lacking = [value for value in proving if value not in said]
    added = [value for value in said if value not in wanted and value not in given_away]
    if lacking:
        return Comparison(Likeness.UNCLEAR, f"it lacks {_listed(lacking)}: {shown}")
    if added:
        return Comparison(Likeness.UNCLEAR, f"it adds {_listed(added)}: {shown}")
    if not proving:
        return Comparison(Likeness.UNCLEAR, f"no value proves it, and its words differ: {shown}", kept=True)
    both = set(wanted) & set(said)
    if [value for value in wanted if value in both] != [value for value in said if value in both]:
        return Comparison(Likeness.UNCLEAR, "it has the same values in another order or number")
    names = [_names(text) for text in texts]
    if strange := [name for name in (*names[0], *names[1]) if name in differing and name not in given_away]:
        return Comparison(Likeness.UNCLEAR, f"its names differ: {_listed(strange)}")
    both = {*names[0], *names[1]} & set(one) & set(two)
    if [token for token in one if token in both] != [token for token in two if token in both]:
        return Comparison(Likeness.UNCLEAR, "it has the same names in another order")
    if against := [word for word in differing if _opposes(word, differing)]:
        return Comparison(
            Likeness.UNCLEAR, f"'{as_written(against[0])}' stands in one of the two alone: {shown}", kept=True
        )
    content = [[_stem(token) for token in each if not is_value(token) and token not in PLAIN] for each in (one, two)]
    shared = set(content[0]) & set(content[1])
    new = set(content[1]) - set(content[0]) - {_stem(token) for token in given_away}
    if [word for word in content[0] if word in shared] != [word for word in content[1] if word in shared]:
        return Comparison(Likeness.UNCLEAR, f"it has the same words in another order: {shown}", kept=True)
    if 2 * len(shared) <= max(map(len, map(set, content))) or new:
        return Comparison(Likeness.UNCLEAR, f"most of its words are other ones: {shown}", kept=True)
    return Comparison(Likeness.ALIKE, f"the same values: {_listed(proving)}; its words differ: {shown}", kept=True)


def _opposes(word: str, differing: Counter[str]) -> bool:
    """True if a word that only one text has may turn its meaning round: a negation, one of two opposites, a unit, a
    number word, a doubt, or a negated form of a word that only the other has."""
    if word in TURNING or word in CURRENCIES or word in NUMBER_WORDS or word.startswith(SIGN):
        return True
    return any(
        word.startswith(no) and word.removeprefix(no) in differing for no in ("un", "in", "im", "dis", "non", "mis")
    )


def _names(text: str) -> list[str]:
    """The capitalised words of a text that begin no sentence, in small letters."""
    found = _NAME.findall(text)
    return [plain(name) for name in found if name != "I"]


_NAME = re.compile(r"(?:(?<=[^\W_] )|(?<=, ))[^\W\d_a-z][^\W_]*")


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|d|ly)$", "", word) if len(word) > 4 else word


def _differing(one: Sequence[str], two: Sequence[str]) -> str:
    """The words that differ, as part of a line."""
    steps = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    parts = [(one[a:b], two[c:d]) for step, a, b, c, d in steps if step != "equal"]
    told = []
    for old, new in parts:
        instead = f" instead of '{_short(old)}'" if old else " added"
        told.append(f"'{_short(new)}'{instead}" if new else f"without '{_short(old)}'")
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return ", ".join(told[:SHOWN]) + more


def _short(words: Sequence[str]) -> str:
    text = " ".join(map(as_written, words))
    return text if len(text) <= 40 else f"{text[:39]}…"


def _listed(values: Sequence[str]) -> str:
    values = list(dict.fromkeys(map(as_written, values)))
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(value[:40] for value in values[:SHOWN]) + more


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDLE = re.compile(
    r"\A\s*(?:(?:ok|okay|sure|certainly|absolutely|great|alright|hello|hi|hey|thanks|thank you|well)[,.!]\s+|✅\s*)+"
    r"|\b(?:the|an|please|kindly|now|so|therefore) (?=\w)",
    re.IGNORECASE,
)
"""Words that change nothing where they stand: two answers that differ in them alone are the same."""
MAKING = _words("attempt trie try retry retrie time second sec s ms millisecond call request error failure took after")
"""Words beside a number of the agent's own way, without the s of a plural."""
PLAIN = _words(
    "a an the ok okay sure certainly absolutely great alright hello hi hey dear please kindly thanks thank well so just"
    " now then here therefore i me my we our us you your it its this that these those there he she they his her their"
    " to of in on at for with by from and or as is are was were be been being am has have had do does did"
    " will would shall should which who what"
    " i've it's i'm that's here's"
)
"""Words of which two texts share many whatever they say."""
TURNING = _words(
    "no not never none nothing nobody neither nor without except unless cannot hardly barely"
    " before after on off up down in out over under above below more less most least first last second third half twice"
    " double triple once one dozen hundred thousand million single both all any some few many only again"
    " still yet already"
    " open closed opened close enabled disabled active inactive on-time late early earlier later true"
    " false yes right wrong"
    " correct incorrect valid invalid available free busy full empty present absent included excluded with paid due"
    " approved accepted granted allowed rejected refused denied declined forbidden passed failed pass fail success"
    " succeeded error errors failure won lost win lose gain loss profit increase increased decrease decreased rise rose"
    " fall fell grew shrank higher lower high low hot cold warm cool dry wet rain sunny cloudy snow clear"
    " positive negative"
    " plus minus debit credit buy sell bought sold sent received sender recipient start end begin started"
    " ended finished"
    " arrive depart arrival departure arrives departs north south east west left top bottom inside outside"
    " min max minimum"
    " maximum oldest newest old new cheap expensive cheapest shortest longest short long same different safe unsafe"
    " could may might maybe perhaps possibly probably unknown unclear uncertain unconfirmed pending stale"
    " cached outdated"
    " today tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday am pm morning"
    " evening night noon"
    " c f kmh mph ms km cm mm m mi ft kg g lb oz l ml gal s min h d w percent degrees questionmark warning ok"
    " cancelled canceled confirmed booked refunded charged shipped delivered returned deleted created removed added"
    " atleast atmost plusminus about slash arrow back sharp"
)
"""Words by which two texts that share all others may say the opposite, or another thing."""
