"""Another value in the place of a true one: of the same type and form, by little or by far. `severity` goes from 0 (one
digit, one day, a near word) to 1 (obvious). A value is known by its type and form, never by the name of its field."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from chaoslab.base.dice import Dice

Kind = Literal["flag", "number", "moment", "id", "email", "url", "text"]
DAYS_MAX = 365
EPOCHS = ((1_000_000_000, 2_100_000_000, 1), (1_000_000_000_000, 2_100_000_000_000, 1000))
"""Whole numbers that are moments: from, to, and how many of them are a second."""
DIGITS_MAX = 300
"""The most digits of a number in a text. A longer one is an id."""
NEAR = (
    ("confirmed", "pending", "cancelled"),
    ("open", "closed"),
    ("paid", "unpaid", "refunded"),
    ("active", "inactive"),
    ("shipped", "delivered", "returned"),
    ("success", "failure"),
    ("succeeded", "failed"),
    ("available", "unavailable"),
    ("accepted", "rejected", "approved", "declined"),
    ("yes", "no"),
    ("true", "false"),
    ("on", "off"),
    ("high", "low"),
    ("up", "down"),
    ("clear", "rainy", "cloudy", "sunny", "snowy"),
    ("north", "south", "east", "west"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("am", "pm"),
    ("january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december"),
    ("eur", "usd", "gbp", "chf"),
    ("oslo", "rome", "paris", "berlin", "madrid", "vienna", "london", "tokyo"),
    ("red", "green", "blue", "black", "white"),
    ("first", "second", "third"),
    ("always", "never"),
    ("all", "none"),
    ("increased", "decreased"),
    ("before", "after"),
    ("more", "less"),
    ("enabled", "disabled"),
    ("left", "right"),
)
"""Words of one sort, each an untrue one for the others."""
_NEAR = {word: [each for each in group if each != word] for group in NEAR for word in group}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?![\d-])")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAY, _MONTH = ("|".join(f"{name[:3]}(?:{name[3:]})?" for name in names) for names in (WEEKDAYS, MONTHS))
# The three forms of HTTP (RFC 9110, 5.6.7), and those near to them, with the time and its zone if they follow.
_DATE = re.compile(
    rf"(?<!\w)(?:(?P<weekday>{_WEEKDAY}),? )?(?:(?P<day>\d\d?)[ -](?P<month>{_MONTH})|(?P<month_first>{_MONTH}) "
    rf"(?P<day_last>[ \d]?\d))(?: \d\d:\d\d:\d\d|,)?(?:[ -](?=\d{{4}})|-)(?P<year>\d{{4}}|\d\d)(?![\d:])"
    r"(?: \d\d:\d\d(?::\d\d)?(?: ?[A-Z]{0,3}[+-]\d{4})?)?"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+\Z")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+\Z", re.IGNORECASE)
URLS = re.compile(r"""https?://[^\s"'<>)\]]+""")
_ID = re.compile(r"[A-Za-z0-9]+(?:[-_.:#/+][A-Za-z0-9]+)*\Z")
_WORD = re.compile(rf"{_DATE.pattern}|\w+(?:[-.:]\w+)*")
_VERB = re.compile(r"\b(is|are|was|were|has|have|will|can|may|must|should)\b(?! not)", re.IGNORECASE)


def classify_value(value: Any) -> Kind:
    """The sort of a leaf, by its type and form."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float | Decimal):
        return "moment" if is_epoch(value) else "number"
    if isinstance(value, date):
        return "moment"
    if isinstance(value, UUID):
        return "id"
    if _MOMENT.match(value) or _DATE.match(value):
        return "moment"
    if _NUMBER.match(value) and len(value) <= DIGITS_MAX:
        return "number"
    if _URL.match(value):
        return "url"
    if _EMAIL.match(value):
        return "email"
    has_digit = any(c.isdigit() for c in value)
    return "id" if has_digit and any(c.isalpha() for c in value) and _ID.match(value) else "text"


def is_epoch(value: Any) -> bool:
    """True for a whole number of the size of the seconds or milliseconds since 1970."""
    return type(value) is int and any(low <= value < high for low, high, _ in EPOCHS)


def make_untrue_value(value: Any, severity: float, dice: Dice) -> Any:
    """Another value of the leaf's type and form, drawn by the dice."""
    new_value = _make_untrue_value(value, severity, dice)
    if repr(new_value) == repr(value) or type(new_value) is not type(
        value
    ):  # a flag, or nothing of its form is left to change
        new_value = f"{value}0" if isinstance(value, str) else not value
    return new_value


def _make_untrue_value(value: Any, severity: float, dice: Dice) -> Any:
    sort = classify_value(value)
    if isinstance(value, UUID):
        return UUID(make_other_id(str(value), severity, dice))
    if sort == "moment":
        days = round(DAYS_MAX**severity) * (1 if dice("later").draw_bool(0.5) else -1)
        return shift_moment(value, days)
    if isinstance(value, str):
        change_text: Callable[[str, float, Dice], str] = _TEXTS[sort]
        return change_text(value, severity, dice)
    return make_other_number(value, severity, dice)


def make_other_number(value: Any, severity: float, dice: Dice) -> Any:
    """A number off by 1 % (`severity` 0) to ten times (1), at least by one of its last digit. Its sign stays."""
    share = 0.01 * 1000**severity
    # Less by all of it, or more, would change the sign.
    less = share < 0.9 and dice("less").draw_bool(0.5)
    if isinstance(value, int):
        # In whole numbers, since a float would lose the digits of a large one.
        step = max(1, abs(value) * round(share * 1000) // 1000)
        return value - step if (less and value > 1) or value < 0 else value + step
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            return Decimal(0)
        digits_number = make_other_number(int("".join(map(str, digits))), severity, dice)
        return Decimal((sign, tuple(map(int, str(digits_number))), exponent))
    # As many decimals as it had, so that it has the same form.
    decimals = len(repr(value).partition(".")[2]) if "e" not in repr(value) else 0
    number = round(value * (1 - share if less else 1 + share), decimals) if decimals else value * (1 + share)
    if number == value:
        number = round(value + 10.0**-decimals, decimals)
    return number if math.isfinite(number) else 0.0


def shift_moment(value: Any, days: int) -> Any:
    """A moment so many days later; a day the other way if the calendar ends before. Text, number or Python's own."""
    if isinstance(value, int):
        # Milliseconds first: their numbers are above the lower bound of seconds too.
        per_second = next(unit for low, _, unit in reversed(EPOCHS) if low <= value)
        return value + days * 86_400 * per_second
    for offset_days in (days, -days):
        with suppress(ValueError, OverflowError):
            if isinstance(value, date):
                return value + timedelta(days=offset_days)
            return shift_date(value, offset_days)
    return make_other_id(value, 0.0, Dice(days))


def shift_date(text: str, days: int) -> str:
    """The text with the date at its beginning so many days later, in its form. Raises ValueError, OverflowError: the
    calendar has no such day."""
    if (match := _DATE.match(text)) is None:
        return (date.fromisoformat(text[:10]) + timedelta(days=days)).isoformat() + text[10:]
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    month_name, day = ("month", "day") if "day" in parts else ("month_first", "day_last")
    year = int(parts["year"])
    if len(parts["year"]) == 2:  # as POSIX reads it
        year += 2000 if year < 69 else 1900
    month = 1 + next(n for n, name in enumerate(MONTHS) if name.startswith(parts[month_name]))
    moved = date(year, month, int(parts[day])) + timedelta(days=days)
    # C has a time before the year, and a space before a day of one digit.
    fill = " " if ":" in text[match.end(day) : match.start("year")] else "0"
    new_parts = {
        "weekday": WEEKDAYS[moved.weekday()],
        month_name: MONTHS[moved.month - 1],
        day: str(moved.day).rjust(len(parts[day]), fill),
        "year": f"{moved.year:04}"[-len(parts["year"]) :],
    }
    for name in sorted(parts, key=match.start, reverse=True):
        new_part = new_parts[name][:3] if name in ("weekday", month_name) and len(parts[name]) == 3 else new_parts[name]
        text = text[: match.start(name)] + new_part + text[match.end(name) :]
    return text


def make_other_id(text: str, severity: float, dice: Dice) -> str:
    """An id of the same form: one character is another (`severity` 0), or all are (1)."""
    spots = [n for n, c in enumerate(text) if c.isascii() and c.isalnum()]
    digits = [n for n in spots if text[n].isdigit()]
    count = max(1, round(severity * len(spots)))
    chosen = spots if count == len(spots) else (digits[-count:] or spots[-count:])
    hexadecimal = all(c in "0123456789abcdef" for c in text if c.isalnum())
    characters = list(text)
    for n in chosen:
        c = text[n]
        # Without l and o, which read like 1 and 0.
        among = "0123456789" if c.isdigit() else "abcdef" if hexadecimal else "abcdefghijkmnpqrstuvwxyz"
        replacement = dice("char", n).pick([character for character in among if character != c.lower()])
        characters[n] = replacement.upper() if c.isupper() else replacement
    return "".join(characters)


def _make_other_number_text(text: str, severity: float, dice: Dice) -> str:
    return str(make_other_number(Decimal(text), severity, dice))


def make_other_email(text: str, severity: float, dice: Dice) -> str:
    """An address with another name, and from `severity` 0.5 on at another host."""
    name, _, host = text.rpartition("@")
    new_name = make_other_word(name, severity, dice)
    return f"{new_name}@{host if severity < 0.5 else 'mail.invalid'}"


def make_other_url(text: str, severity: float, dice: Dice) -> str:
    """A link that ends at another page, and from `severity` 0.5 on at a host that does not exist (RFC 2606)."""
    scheme, _, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    new_path = make_other_id(path, severity, dice)
    if new_path == path:
        new_path = f"{path}{dice('page').pick(range(1000, 10_000))}"
    return f"{scheme}://{host if severity < 0.5 else 'www.invalid'}{slash or '/'}{new_path}"


def make_other_word(text: str, severity: float, dice: Dice) -> str:
    """A word near to it in meaning, else one with other letters."""
    near = _NEAR.get(text.lower())
    if near:
        word = dice("near").pick(near)
        return word.upper() if text.isupper() else word.capitalize() if text[0].isupper() else word
    return make_other_id(text, severity, dice)


def make_other_text(text: str, severity: float, dice: Dice) -> str:
    """A text with another number, day or word in it (`severity` 0), or with all of them others (1). One without any
    such says the contrary, or has other letters."""
    word_matches = [match for match in _WORD.finditer(text) if _is_changeable_word(match[0])]
    if not word_matches and (verb := _VERB.search(text)):
        return f"{text[: verb.end()]} not{text[verb.end() :]}"
    if not word_matches:
        word_matches = [match for match in _WORD.finditer(text) if len(match[0]) > 2] or list(_WORD.finditer(text))
    if not word_matches:
        return f"{text} (no)"
    count = max(1, round(severity * len(word_matches)))
    first = int(dice("word").uniform() * len(word_matches))
    # From the end, so that the positions before stay right.
    chosen = sorted(
        (word_matches[(first + n) % len(word_matches)] for n in range(count)), key=lambda match: -match.start()
    )
    for match in chosen:
        new_word = _change_word_in_text(match[0], severity, dice("word", match.start()))
        text = text[: match.start()] + new_word + text[match.end() :]
    return text


def _is_changeable_word(word: str) -> bool:
    return word.lower() in _NEAR or any(c.isdigit() for c in word)


def _change_word_in_text(word: str, severity: float, dice: Dice) -> str:
    if word.lower() in _NEAR:
        return make_other_word(word, severity, dice)
    if classify_value(word) == "moment" or (word.isascii() and _NUMBER.match(word) and len(word) <= DIGITS_MAX):
        return str(make_untrue_value(word, severity, dice))
    return make_other_id(word, severity, dice)


_TEXTS: dict[Kind, Callable[[str, float, Dice], str]] = {
    "number": _make_other_number_text,
    "id": make_other_id,
    "email": make_other_email,
    "url": make_other_url,
    "text": lambda text, severity, dice: (
        make_other_word(text, severity, dice) if text.lower() in _NEAR else make_other_text(text, severity, dice)
    ),
}
