"""One answer beside the expected one: the same, other values, or unclear.

The first two are certain: they rest on texts that are equal in one notation, and on texts that are equal but for their
values. No word outweighs another: everything else is unclear, with a hint for a person.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache, lru_cache

from chaoslab.analysis.answers import structures
from chaoslab.analysis.answers._normal import as_written, normal_tokens
from chaoslab.analysis.answers.values import READ_MAX, is_value, tokens
from chaoslab.base.jsonable import listed

SHOWN = 4
"""The most words that a reason names."""


class Likeness(StrEnum):
    """The result of comparing two answers. OTHER: equal words, and other numbers, or the same twice."""

    SAME = "same"
    OTHER = "other"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class AnswerLikeness:
    """The likeness of two answers. `text`: the finding, as part of a line. `same_values`: every value of the expected
    one that is not in the prompt is there, and none is added. `may_count`: other numbers may count what failed, as in
    `{"sum": 20, "failed": 1}`: several differ, or one that was 0."""

    likeness: Likeness
    text: str
    same_values: bool = False
    may_count: bool = False


_EQUAL = AnswerLikeness(Likeness.SAME, "the same answer", same_values=True)


def compare(expected: str, given: str, *, asked: str = "", known: str = "") -> AnswerLikeness:
    """Compares an answer with the expected one.

    `asked`: the prompt, whose values prove nothing. `known`: a text whose values an answer may have in place of the
    expected ones, such as the effects that were rightly done.
    """
    if expected == given:
        return _EQUAL
    if max(len(expected), len(given)) > READ_MAX:
        return AnswerLikeness(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX:,} characters")
    return _compare(expected, given, asked, known)


@lru_cache(maxsize=256)
def _compare(expected: str, given: str, asked: str, known: str) -> AnswerLikeness:
    # Structures first: their fields are values, and no word of them is read.
    parsed = [structures.parse_structure(text) for text in (expected, given)]
    if parsed[0] is not None and parsed[1] is not None:
        return _compare_structures(parsed[0], parsed[1], known)
    if parsed[0] is not None or parsed[1] is not None:
        return AnswerLikeness(Likeness.UNCLEAR, "only one of the two answers is structured")
    one, two = normal_tokens(expected), normal_tokens(given)
    if one == two and one:
        return _unless_ambiguous(expected, given, "in another notation")
    if one and normal_tokens(_IDLE.sub("", expected)) == normal_tokens(_IDLE.sub("", given)):
        return _unless_ambiguous(expected, given, "but for idle words")
    if one and two == [*one, *one]:
        return AnswerLikeness(Likeness.OTHER, "the answer stands twice")
    return _compare_values(one, two, known) or _describe_difference(one, two, asked)


_IDLE = re.compile(
    r"\A\s*(?:(?:ok|okay|sure|certainly|absolutely|great|alright|hello|hi|hey|thanks|thank you|well)[,.!]\s+|✅\s*)+"
    r"|\b(?:the|an|please|kindly|now|so|therefore) (?=\w)",
    re.IGNORECASE,
)
"""Words that change nothing where they stand: two answers that differ in them alone are the same."""


def _unless_ambiguous(expected: str, given: str, but: str) -> AnswerLikeness:
    """The likeness of two texts that are the same but for this, unless they differ in signs that the notation drops:
    accents, which make other words in many languages, capitals within a name with digits, such as a key, and three
    digits behind a point, which may be thousands."""
    for find_signs in (_find_accents, _find_keys, _THOUSANDS.findall):
        one, two = (Counter(find_signs(text)) for text in (expected, given))
        if one != two:
            text = f"they are written in two ways: {_list([*(two - one), *(one - two)])}"
            return AnswerLikeness(Likeness.UNCLEAR, text, same_values=True)
    return AnswerLikeness(Likeness.SAME, f"the same answer {but}", same_values=True)


def _find_accents(text: str) -> list[str]:
    """The letters of a text that have accents, or other marks of their script."""
    return [] if text.isascii() else _accent_pattern().findall(unicodedata.normalize("NFD", text).casefold())


@cache
def _accent_pattern() -> re.Pattern[str]:
    """The pattern of a letter with its marks. It takes 3 ms to make, and most answers have none."""
    marks = "".join(chr(code) for code in range(0x300, 0x3100) if unicodedata.category(chr(code)) == "Mn")
    return re.compile(f"[^{marks}][{marks}]+")


def _find_keys(text: str) -> list[str]:
    """The names of a text with digits, capitals and small letters."""
    return [name for name in _KEY.findall(text) if not (name.isupper() or name.islower() or name.istitle())]


_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,]*\d)")
_KEY = re.compile(r"\b(?=\w*[^\W\d]\d)\w{4,}")  # digits before letters alone are a quantity, as in 5kWh


def _compare_structures(expected: object, given: object, known: str) -> AnswerLikeness:
    differing = [place for place in structures.differences(expected, given) if not _is_same_text(place)]
    if not differing:
        return AnswerLikeness(Likeness.SAME, "the same values", same_values=True)
    telling = [place for place in differing if not structures.is_of_making(place)]
    other = bool(telling) and all(_contradicts(place, known) for place in telling)
    counts = len(telling) > 1 or any(structures.is_number(one) and not one for _, one, _ in telling)
    likeness = Likeness.OTHER if other else Likeness.UNCLEAR
    return AnswerLikeness(likeness, structures.differences_text(telling or differing), may_count=counts)


def _is_same_text(place: structures.Difference) -> bool:
    _, one, other = place
    return isinstance(one, str) and isinstance(other, str) and compare(one, other).likeness is Likeness.SAME


def _contradicts(place: structures.Difference, known: str) -> bool:
    """True if a place of a structured answer has another number. A flag or text may differ by an admission."""
    _, one, other = place
    if isinstance(one, str) and isinstance(other, str):
        return compare(one, other, known=known).likeness is Likeness.OTHER
    numbers = structures.is_number(one) and structures.is_number(other)
    return numbers and not set(tokens(str(other))) & set(tokens(known))


def _compare_values(one: Sequence[str], two: Sequence[str], known: str) -> AnswerLikeness | None:
    """The finding that two texts have the same words but for numbers; None if that is not so."""
    if len(one) != len(two):
        return None
    places = [at for at, (wanted, value) in enumerate(zip(one, two, strict=True)) if wanted != value]
    if any(_counts_attempts(two, at) for at in places) or {two[at] for at in places} & set(tokens(known)):
        return None
    if not all(one[at].startswith("#") and two[at].startswith("#") for at in places):
        return None
    # 1.200 may be 1200: which of the two was meant cannot be told.
    if not places or _is_thousandfold(one[places[0]], two[places[0]]):
        return None
    text = f"it says {_list([two[at] for at in places])} instead of {_list([one[at] for at in places])}"
    return AnswerLikeness(Likeness.OTHER, text, may_count=len(places) > 1 or one[places[0]] == "#0")


_MAKING = frozenset(
    [
        "attempt", "trie", "try", "retry", "retrie", "time", "second", "sec", "s", "ms", "millisecond", "call",
        "request", "error", "failure", "took", "after",
    ]
)  # fmt: skip
"""Words beside a number of the agent's own way, without the s of a plural."""


def _counts_attempts(text: Sequence[str], at: int) -> bool:
    """True if a number counts what the agent did, such as its attempts or seconds."""
    return bool(_MAKING & {token.rstrip("s") for token in (*text[max(0, at - 2) : at], *text[at + 1 : at + 3])})


def _is_thousandfold(one: str, two: str) -> bool:
    """True if one number is the other with a point for the thousands, as in 1.200."""
    try:
        less, more = sorted(Decimal(number.removeprefix("#")) for number in (one, two))
    except InvalidOperation:  # a name with a digit in it
        return False
    return less * 1000 == more


def _describe_difference(one: Sequence[str], two: Sequence[str], asked: str) -> AnswerLikeness:
    """The values that one text alone has, as a hint."""
    prompt = set(normal_tokens(asked))
    wanted, values = (Counter(token for token in text if is_value(token)) for text in (one, two))
    lacking = [value for value in wanted - values if value not in prompt]
    added = [value for value in values - wanted if value not in prompt]
    if lacking or added:
        parts = [f"lacks {_list(lacking)}"] * bool(lacking) + [f"adds {_list(added)}"] * bool(added)
        return AnswerLikeness(Likeness.UNCLEAR, f"it {' and '.join(parts)}")
    return AnswerLikeness(Likeness.UNCLEAR, "it has its twin's values in other words", same_values=True)


def _list(values: Sequence[str]) -> str:
    return listed([value[:40] for value in dict.fromkeys(map(as_written, values))], SHOWN)
