"""One answer beside the expected one: the same, other values, or unclear.

The first two are certain: they rest on texts that are equal in one notation, and on texts that are equal but for their
values. No word outweighs another: everything else is unclear, with a hint for a person.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache

from chaoslab.analysis.answers import structures
from chaoslab.analysis.answers._normal import tokenize_normalized
from chaoslab.analysis.answers.values import READ_MAX, has_digit, tokenize
from chaoslab.base.jsonable import join_truncated

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


_IDENTICAL = AnswerLikeness(Likeness.SAME, "the same answer", same_values=True)


def compare_answers(expected: str, actual: str, *, asked: str = "", known: str = "") -> AnswerLikeness:
    """Compares an answer with the expected one.

    `asked`: the prompt, whose values prove nothing. `known`: a text whose values an answer may have in place of the
    expected ones, such as the effects that were rightly done.
    """
    if expected == actual:
        return _IDENTICAL
    if max(len(expected), len(actual)) > READ_MAX:
        return AnswerLikeness(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX:,} characters")
    return _compare_unequal_answers(expected, actual, asked, known)


@lru_cache(maxsize=256)
def _compare_unequal_answers(expected: str, actual: str, prompt: str, accepted: str) -> AnswerLikeness:
    # Structures first: their fields are values, and no word of them is read.
    parsed = [structures.parse_json_structure(text) for text in (expected, actual)]
    if parsed[0] is not None and parsed[1] is not None:
        return _compare_structures(parsed[0], parsed[1], accepted)
    if parsed[0] is not None or parsed[1] is not None:
        return AnswerLikeness(Likeness.UNCLEAR, "only one of the two answers is structured")
    expected_tokens, actual_tokens = tokenize_normalized(expected), tokenize_normalized(actual)
    if expected_tokens == actual_tokens and expected_tokens:
        return _compare_accents_and_case(expected, actual, "in another notation")
    if expected_tokens and actual_tokens == expected_tokens * 2:
        return AnswerLikeness(Likeness.OTHER, "the answer stands twice")
    return _compare_numbers(expected_tokens, actual_tokens, accepted) or _make_unclear_likeness(
        expected_tokens, actual_tokens, prompt
    )


def _compare_accents_and_case(expected: str, actual: str, exception: str) -> AnswerLikeness:
    """The likeness of two texts that are the same but for this, unless they differ in signs that the notation drops:
    accents, which make other words in many languages, capitals within a name with digits, such as a key, and three
    digits behind a point, which may be thousands."""
    for find_signs in (_find_accented_letters, _find_mixed_case_codes, _THOUSANDS.findall):
        expected_signs, actual_signs = (Counter(find_signs(text)) for text in (expected, actual))
        if expected_signs != actual_signs:
            text = (
                f"they are written in two ways: "
                f"{_join_values([*(actual_signs - expected_signs), *(expected_signs - actual_signs)])}"
            )
            return AnswerLikeness(Likeness.UNCLEAR, text, same_values=True)
    return AnswerLikeness(Likeness.SAME, f"the same answer {exception}", same_values=True)


def _find_accented_letters(text: str) -> list[str]:
    """The letters of a text that have accents, or other marks of their script."""
    return [] if text.isascii() else _build_accent_pattern().findall(unicodedata.normalize("NFD", text).casefold())


@cache
def _build_accent_pattern() -> re.Pattern[str]:
    """The pattern of a letter with its marks. It takes 3 ms to make, and most answers have none."""
    marks = "".join(chr(code) for code in range(0x300, 0x3100) if unicodedata.category(chr(code)) == "Mn")
    return re.compile(f"[^{marks}][{marks}]+")


def _find_mixed_case_codes(text: str) -> list[str]:
    """The names of a text with digits, capitals and small letters."""
    # Capitals alone, or at the beginning alone, are a matter of style: ORDER17 is Order17.
    return [name for name in _KEY.findall(text) if not (name.isupper() or name.islower() or name.istitle())]


_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,]*\d)")
_KEY = re.compile(r"\b(?=\w*[^\W\d]\d)\w{4,}")  # digits before letters alone are a quantity, as in 5kWh


def _compare_structures(expected: object, actual: object, accepted: str) -> AnswerLikeness:
    differing = [
        difference for difference in structures.find_differences(expected, actual) if not _is_same_text(difference)
    ]
    if not differing:
        return AnswerLikeness(Likeness.SAME, "the same values", same_values=True)
    telling = [difference for difference in differing if not structures.has_vague_key(difference)]
    contradicted = bool(telling) and all(_is_contradiction(difference, accepted) for difference in telling)
    counts = len(telling) > 1 or any(
        structures.is_number(expected_value) and not expected_value for _, expected_value, _ in telling
    )
    likeness = Likeness.OTHER if contradicted else Likeness.UNCLEAR
    return AnswerLikeness(likeness, structures.describe_first_difference(telling or differing), may_count=counts)


def _is_same_text(difference: structures.Difference) -> bool:
    _, expected, actual = difference
    return (
        isinstance(expected, str)
        and isinstance(actual, str)
        and compare_answers(expected, actual).likeness is Likeness.SAME
    )


def _is_contradiction(difference: structures.Difference, accepted: str) -> bool:
    """True if a place of a structured answer has another number. A flag or text may differ by an admission."""
    _, expected, actual = difference
    if isinstance(expected, str) and isinstance(actual, str):
        return compare_answers(expected, actual, known=accepted).likeness is Likeness.OTHER
    numbers = structures.is_number(expected) and structures.is_number(actual)
    return numbers and not set(tokenize(str(actual))) & set(tokenize(accepted))


def _compare_numbers(expected: Sequence[str], actual: Sequence[str], accepted: str) -> AnswerLikeness | None:
    """The finding that two texts have the same words but for numbers; None if that is not so."""
    if len(expected) != len(actual):
        return None
    places = [
        at for at, (expected_value, value) in enumerate(zip(expected, actual, strict=True)) if expected_value != value
    ]
    if any(_is_attempt_count(actual, at) for at in places) or {actual[at] for at in places} & set(tokenize(accepted)):
        return None
    if not all(expected[at].startswith("#") and actual[at].startswith("#") for at in places):
        return None
    # 1.200 may be 1200: which of the two was meant cannot be told.
    if not places or _is_thousandfold(expected[places[0]], actual[places[0]]):
        return None
    text = (
        f"it says {_join_values([actual[at] for at in places])} instead of "
        f"{_join_values([expected[at] for at in places])}"
    )
    return AnswerLikeness(Likeness.OTHER, text, may_count=len(places) > 1 or expected[places[0]] == "#0")


_MAKING = frozenset(
    [
        "attempt",
        "trie",
        "try",
        "retry",
        "retrie",
        "time",
        "second",
        "sec",
        "s",
        "ms",
        "millisecond",
        "call",
        "request",
        "error",
        "failure",
        "took",
        "after",
    ]
)
"""Words beside a number of the agent's own way, without the s of a plural."""


def _is_attempt_count(text: Sequence[str], at: int) -> bool:
    """True if a number counts what the agent did, such as its attempts or seconds."""
    return bool(_MAKING & {token.rstrip("s") for token in (*text[max(0, at - 2) : at], *text[at + 1 : at + 3])})


def _is_thousandfold(left: str, right: str) -> bool:
    """True if one number is the other with a point for the thousands, as in 1.200."""
    try:
        smaller, larger = sorted(Decimal(number.removeprefix("#")) for number in (left, right))
        return smaller * 1000 == larger
    except ArithmeticError:  # a code such as 0,123, or too large a number
        return False


def _make_unclear_likeness(expected: Sequence[str], actual: Sequence[str], prompt_text: str) -> AnswerLikeness:
    """The values that one text alone has, as a hint."""
    prompt = set(tokenize_normalized(prompt_text))
    expected_values, values = (Counter(token for token in text if has_digit(token)) for text in (expected, actual))
    missing = [value for value in expected_values - values if value not in prompt]
    added = [value for value in values - expected_values if value not in prompt]
    if missing or added:
        clauses = [f"lacks {_join_values(missing)}"] * bool(missing) + [f"adds {_join_values(added)}"] * bool(added)
        return AnswerLikeness(Likeness.UNCLEAR, f"it {' and '.join(clauses)}")
    return AnswerLikeness(Likeness.UNCLEAR, "it has its twin's values in other words", same_values=True)


def _join_values(values: Sequence[str]) -> str:
    return join_truncated([value.removeprefix("#")[:40] for value in dict.fromkeys(values)], SHOWN)
