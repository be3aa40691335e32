"""Parsers of settings. Each returns the text's value, or raises a ValueError that says what would be right."""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from chaoslab.base.clock import system

SECONDS_MAX = 315_360_000
"""The longest wait, ten years, which clocks and calendars can carry."""

# Python's years are 1 to 9999: one is left at each end for time zones and waits.
FIRST_YEAR, LAST_YEAR = 2, 9998
Weights = tuple[tuple[str, float], ...]


def parse_chance(text: str) -> float:
    return parse_bounded_number(text, 0.0, 1.0, "a chance from 0 to 1")


def parse_positive(text: str) -> float:
    return _parse_above_zero(text, math.inf, "a number above 0")


def parse_seconds(text: str) -> float:
    return _parse_above_zero(text, SECONDS_MAX, f"a number above 0, up to {SECONDS_MAX} (ten years)")


UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min|m|h|d)")


def parse_duration(text: str) -> float:
    """The seconds of a duration such as "90s" or "1.5h"."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError("a duration, as in 90s, 5min or 2h")
    return float(match[1]) * UNITS[match[2]]


def _parse_above_zero(text: str, high: float, rule: str) -> float:
    value = parse_bounded_number(text, 0.0, high, rule)
    if value == 0:
        raise ValueError(rule)
    return value


def parse_milliseconds(text: str) -> float:
    return parse_bounded_number(text, 0.0, 1000 * SECONDS_MAX, f"a number from 0 to {1000 * SECONDS_MAX} (ten years)")


def parse_bounded_number(text: str, low: float, high: float, rule: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(rule) from None
    if not (low <= value <= high) or math.isinf(value):
        raise ValueError(rule)
    return value


def make_integer_parser(low: int, high: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        rule = f"a whole number from {low} to {high}"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(rule) from None
        if not low <= value <= high:
            raise ValueError(rule)
        return value

    return parse_integer


def make_choice_parser(*choices: str) -> Callable[[str], str]:
    def parse_choice(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(" or ".join(choices))
        return text.lower()

    return parse_choice


def make_weights_parser(group: str, family: str) -> Callable[[str], Weights]:
    """A parser of plug-ins with weights: those of a bundled family, and those that other packages bring."""

    def parse_weights(text: str) -> Weights:
        from chaoslab.base import registry  # with it comes importlib.metadata, which most commands do not use

        bundled = registry.list_family_plugins(group, family)
        rule = f"names with weights like {bundled[0]}:1,{bundled[1]}:2 out of {', '.join(bundled)}"
        parsed: list[tuple[str, float]] = []
        for piece in text.split(","):
            name, _, weight = piece.strip().partition(":")
            # Asked for only where the name is none of ours: it takes the metadata of all packages.
            if name not in bundled and name not in (installed := registry.list_installed_plugins(group)):
                raise ValueError(rule + hint_closest(name, [*bundled, *installed]))
            if name in dict(parsed):
                raise ValueError(f"{rule}, each once: {name} is named twice")
            parsed.append((name, parse_bounded_number(weight or "1", 0.0, 1e6, rule)))
        if not any(weight for _, weight in parsed):
            raise ValueError("at least one weight above 0")
        return tuple(parsed)

    return parse_weights


def make_chances_parser(group: str) -> Callable[[str], Weights]:
    """A parser of plug-ins with chances, as in "stale:0.2,server_error@model:0.1"."""

    def parse_chances(text: str) -> Weights:
        from chaoslab.base import registry

        rule = "names with chances from 0 to 1, as in stale:0.2,server_error@model:0.1"
        parsed: list[tuple[str, float]] = []
        for piece in text.split(","):
            name, _, chance_text = piece.strip().partition(":")
            plugin = name.partition("@")[0]
            if plugin not in (plugins := registry.list_plugins(group)):
                raise ValueError(f"{rule}{hint_closest(plugin, plugins)}")
            if name in dict(parsed):
                raise ValueError(f"{rule}, each once: {name} is named twice")
            parsed.append((name, parse_bounded_number(chance_text, 0.0, 1.0, rule)))
        return tuple(parsed)

    return parse_chances


def parse_chaos_level(text: str) -> float:
    return parse_bounded_number(text, 0.0, 10.0, "a number from 0 to 10")


def make_choices_parser(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """A parser of some of these words, with commas."""

    def parse_choices(text: str) -> tuple[str, ...]:
        chosen = tuple(name.strip() for name in text.split(","))
        for name in chosen:
            if name not in allowed or chosen.count(name) > 1:
                raise ValueError(f"some of {', '.join(allowed)}, each once{hint_closest(name, allowed)}")
        return chosen

    return parse_choices


def parse_service_names(text: str) -> tuple[str, ...]:
    """Services by name, or `all`. The plan checks that they exist."""
    names = tuple(piece.strip() for piece in text.split(",") if piece.strip())
    if not names:
        raise ValueError("all, or names with commas")
    return names


def parse_field_names(text: str) -> tuple[str, ...]:
    """Names of fields with commas, each maybe after a minus."""
    chosen = tuple(piece.strip() for piece in text.split(",") if piece.strip())
    if not all(re.fullmatch(r"-?[A-Za-z][\w.-]*", name) for name in chosen):
        raise ValueError("names of fields with commas, each after a minus if it is spared: x-shop-pass,-csrf_token")
    return chosen


def parse_api_key(text: str) -> str:
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("a key: letters, digits and signs without blanks")
    return text


def parse_url(text: str) -> str:
    rule = "an address like http://127.0.0.1:8474"
    try:
        parts = urlsplit(text)
        parse_host(parts.hostname or "")
        text.encode()  # half a surrogate pair cannot be sent
        fits = parts.port != 0 and not _BLANK.search(text)  # asking for a port that is no port raises
    except ValueError:
        raise ValueError(rule) from None
    if parts.scheme not in ("http", "https") or not fits:
        raise ValueError(rule)
    # Whoever uses it appends a path, which begins with a slash.
    return text.rstrip("/")


def parse_host(text: str) -> str:
    """A name or an address that can be looked up, even if there is no such host."""
    rule = "a host's name or an address like 127.0.0.1"
    try:
        text.encode("idna")  # its parts between dots are 1 to 63 letters long
    except UnicodeError:
        raise ValueError(rule) from None
    if not text or len(text) > HOST_MAX or _BLANK.search(text) or set(text) & set("/@?#\\"):
        raise ValueError(rule)
    return text


HOST_MAX = 253  # the longest name that DNS carries, written with dots
_BLANK = re.compile(r"[\x00-\x20\x7f]")


def parse_regex(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


def parse_moment(text: str) -> str:
    """A moment in UTC, not at the calendar's ends, where there would be no room before or after it."""
    from datetime import UTC, datetime

    if text == "now":
        return system.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("a moment like 2026-06-01T09:00:00Z, or now") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"a moment in the years {FIRST_YEAR} to {LAST_YEAR}")
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def hint_closest(wrong: str, candidates: Iterable[str]) -> str:
    nearest = find_closest(wrong, candidates)
    return f"; did you mean {nearest}?" if nearest else ""


def find_closest(wrong: str, candidates: Iterable[str]) -> str:
    """The known name that is most like the wrong one; empty if none is."""
    return next(iter(difflib.get_close_matches(wrong, list(candidates), n=1, cutoff=0.6)), "")
