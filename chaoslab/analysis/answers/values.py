"""The words and values of a text in one spelling, so that two texts can be compared token by token, and the facts that
an answer shows."""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from chaoslab.analysis.answers._notation import convert_to_24_hours, format_iso_date, normalize_numbers
from chaoslab.base.alike import round_to_digits

READ_MAX = 20_000
"""The most characters of an answer that are read."""
EXPONENT_MAX = 40
"""The largest exponent of a number that is written out: 1e3 is 1000."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts without spaces between words, so each sign is a token."""
_TOKEN = re.compile(
    rf"""
    (?P<sign>[{_UNSPACED}])
    | (?P<dotted>\d+(?:\.\d+){{2,}})                                           # 1.2.3 is a name, not a number
    | (?P<number>(?:(?<![\w.)])-)?
        (?:(?<!\d,)\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)
        (?:e[+-]?\d+)?)
      (?=$|[\W_]|[^\W\d_]+(?:$|[\W_])|t\d)                                     # 12, 12km, 02T15 – but not 4f2a
    | (?P<word>[^\W_]+(?:(?<=\d)\.\d+)*)
    """,
    re.VERBOSE,
)
_STAMP = re.compile(r"(?<=\d)t(?=\d\d:)")


def normalize_text(text: str) -> str:
    """The text with folded case, no accents, single spaces, and one kind of minus and of apostrophe."""
    return " ".join(fold_text(text).split())


def fold_text(text: str) -> str:
    """The text with folded case, no accents, and one kind of minus and of apostrophe."""
    if text.isascii():  # nothing else is to be folded, and looking at each character takes long
        return text.casefold()
    unaccented = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return unaccented.casefold().replace("−", "-").replace("’", "'")


@lru_cache(maxsize=128)
def tokenize(text: str) -> tuple[str, ...]:
    """The words and numbers of a text in a canonical spelling; a number begins with #."""
    matches = _TOKEN.finditer(_STAMP.sub(" t ", convert_to_24_hours(normalize_text(text))))
    return tuple(_canonicalize_number(match["number"]) if match["number"] else match[0] for match in matches)


_CODE = re.compile(r"0\d\d+")
"""Digits that are a name: 0042 is no 42."""
FLOAT_DIGITS = 15
"""The most digits that somebody wrote: more of them are those of a float."""


# The answers of a search's trials differ in a word or two, so most numbers and tokens come again.
@lru_cache(maxsize=1024)
def _canonicalize_number(number: str) -> str:
    digits, _, exponent = number.replace(",", "").partition("e")
    if _CODE.fullmatch(digits):
        return f"#{number}"
    # 1e999999 would be a million digits, written out.
    if exponent and (len(exponent) > 5 or abs(int(exponent)) > EXPONENT_MAX):
        return f"#{digits}e{exponent}"
    text = f"{Decimal(f'{digits}e{exponent or 0}'):f}"
    if "." in text:
        # More digits than anybody writes are a float's, as in 0.30000000000000004.
        if len(text.strip("-0").replace(".", "")) > FLOAT_DIGITS:
            text = f"{Decimal(repr(round_to_digits(float(text)))):f}"
        text = text.rstrip("0").rstrip(".")
    return "#0" if text in ("-0", "") else f"#{text}"


@lru_cache(maxsize=1024)
def has_digit(token: str) -> bool:
    """True for a number, and for a name with a digit in it, such as bk-17."""
    return any(map(str.isdigit, token))


# --- dates ---

_MONTH = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec"
)
_MONTHS = [name[:3] for name in _MONTH.split("|")[:12]]
_DATE = re.compile(
    rf"\b(?P<y>\d{{4}})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})(?:t(?=\d\d:)|(?!\d))"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m2>{_MONTH})\.?,? (?P<y2>\d{{4}})\b"
    rf"|\b(?P<m3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y3>\d{{4}})\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\d{4}")
"""A text without it has no date."""


def convert_dates_to_iso(text: str) -> str:
    """The text with its dates in ISO 8601."""
    if not _YEAR.search(text):
        return text
    return _DATE.sub(_to_iso_date, text)


def _to_iso_date(match: re.Match[str]) -> str:
    year, month, day = (match[n] or match[f"{n}2"] or match[f"{n}3"] for n in "ymd")
    number = month if month.isdecimal() else str(_MONTHS.index(month[:3].casefold()) + 1)
    return format_iso_date(year, number, day, otherwise=match[0].rstrip("tT")) + " " * match[0].endswith(("t", "T"))


def contains_any_spelling(spellings: Sequence[str], text: str) -> bool:
    """True if one of the spellings occurs in the text as whole words and whole numbers. Case, accents and spacing do
    not count."""
    rewritten = convert_to_24_hours(normalize_numbers(text))
    # In both ways, since the fact itself may be stated in either notation.
    return _matches_any_spelling(spellings, text) or (rewritten != text and _matches_any_spelling(spellings, rewritten))


def _matches_any_spelling(spellings: Sequence[str], text: str) -> bool:
    words = tokenize(text)
    for spelling in spellings:
        spelling_tokens = tokenize(str(spelling))
        if not spelling_tokens:  # a sign without words, such as "→"
            sign = normalize_text(str(spelling)).strip()
            if sign and sign in normalize_text(text):
                return True
        elif any(words[at : at + len(spelling_tokens)] == spelling_tokens for at in range(len(words))):
            return True
    return False
