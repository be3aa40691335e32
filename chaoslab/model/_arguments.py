"""Arguments for an unknown tool, filled from the clause by the type and the name of each parameter."""

import re
from collections.abc import Mapping
from typing import Any

from chaoslab.model._choosing import OfferedTool, stem_words
from chaoslab.model._dates import parse_days_and_times
from chaoslab.model._expressions import replace_number_words
from chaoslab.model._reading import QUOTE
from chaoslab.model._story import Draft
from chaoslab.model.skills.translate import LANGUAGES

_BEFORE = {
    "from": "from|in", "source": "from|in", "to": "to|into|in", "target": "to|into|in", "destination": "to",
    "origin": "from",
}  # fmt: skip
_BEFORE |= {
    "city": "in|for|at", "location": "in|for|at", "place": "in|for|at", "country": "in|for|of", "recipient": "to",
    "subject": "about|on", "topic": "about|on",
}  # fmt: skip
_LEFT_OUT = frozenset([
    "a", "an", "the", "please", "of", "for", "to", "in", "on", "at", "with", "from", "by", "me", "my", "is", "are",
    "what", "how", "does", "do", "mean", "word", "it", "and", "up",
])  # fmt: skip


NUMBERS = ("integer", "number")


def fill_arguments(offer: OfferedTool, clause: str, draft: Draft) -> dict[str, Any] | None:
    """The arguments, valid by the tool's schema; None if a required one is missing in the clause."""
    # The comma of 1,000 does not part two numbers.
    numbers = [
        float(n)
        for n in re.findall(
            r"(?<![\w.])-?\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", replace_number_words(clause))
        )
    ]
    # Dice such as 2d6 have a number within a word, where the expression above finds none.
    numbers += [
        float(n)
        for n in re.findall(r"(?<!\w)\d*[dD](\d+)\b|(\d+)-(?:sided|day|hour)", clause)
        for n in n
        if n and float(n) not in numbers
    ]
    quotes = [draft.restore_quotes(mark) for mark in re.findall(QUOTE, clause)]
    chosen: dict[str, Any] = {}
    for name, schema in offer.properties.items():
        value = _pick_argument_value(
            name, schema if isinstance(schema, Mapping) else {}, clause, draft, numbers, quotes, offer
        )
        if value is None and name in offer.required_parameters:
            return None
        if value is not None:
            chosen[name] = value
    return chosen


def _pick_argument_value(
    name: str,
    schema: Mapping[str, Any],
    clause: str,
    draft: Draft,
    numbers: list[float],
    quotes: list[str],
    offer: OfferedTool,
) -> Any:
    # pydantic writes an optional parameter as anyOf with null.
    kind = schema.get("type") or next(
        (option.get("type") for option in schema.get("anyOf", ()) if option.get("type") != "null"), "string"
    )
    if choices := schema.get("enum"):
        return next((choice for choice in choices if re.search(rf"\b{re.escape(str(choice))}\b", clause, re.I)), None)
    if kind in NUMBERS:
        fitting = [
            n
            for n in numbers
            if (kind == "number" or n.is_integer()) and schema.get("minimum", n) <= n <= schema.get("maximum", n)
        ]
        # A number before the parameter's noun is its own, as in “3 nights”: 12 characters have room for the noun.
        near = [n for n in fitting if set(stem_words(name)) & set(stem_words(re.sub(rf".*\b{n:g}\b", "", clause)[:12]))]
        # An optional parameter takes a number only if it is named there, or if there are enough numbers for all.
        if not fitting or (
            name not in offer.required_parameters
            and not near
            and len(offer.required_parameters)
            and len(numbers) < len(offer.properties)
        ):
            return None
        number = (near or fitting)[0]
        numbers.remove(number)
        return int(number) if number.is_integer() else number
    # What is not said is left to the tool's default, and not set to false.
    if kind == "boolean":
        return True if set(stem_words(name)) <= set(stem_words(clause)) else None
    if kind == "array":
        return quotes[:] or None
    if kind != "string":
        return None
    return _pick_argument_text(name, schema, clause, draft, quotes, offer)


def _pick_argument_text(
    name: str, schema: Mapping[str, Any], clause: str, draft: Draft, quotes: list[str], offer: OfferedTool
) -> str | None:
    parts = stem_words(name)
    if {"currency", "currenc"} & set(parts) or re.search(r"currency", name, re.I):
        return _find_currency_code(name, clause)
    if "languag" in parts or "lang" in parts:
        return _find_language_code(clause)
    if schema.get("format") in ("date", "date-time") or {"dat", "day", "start"} & set(parts):
        moment = parse_days_and_times(clause, draft.now)
        if moment.day is None:
            return None
        return (
            moment.day.isoformat()
            if schema.get("format") != "date-time"
            else f"{moment.day.isoformat()}T{moment.start or '09:00:00'}"
        )
    # An optional text must be named: else it would take the words of a required one.
    if name not in offer.required_parameters and offer.required_parameters and not quotes:
        match = re.search(rf"\b{re.escape(name.replace('_', ' '))}\s+(?:is |of |:)?\s*([\w-]+)", clause, re.I)
        return match[1] if match else None
    if quotes:
        return quotes.pop(0)
    if (value := _pick_code_by_description(name, schema, clause)) is not None:
        return value
    for word in name.lower().split("_"):
        if word in _BEFORE and (
            match := re.search(
                rf"\b(?:{_BEFORE[word]})\s+(?!(?:{_BEFORE[word]})\b)([\w'’-]+(?:\s+[A-Z][\w'’-]+)*)", clause
            )
        ):
            return draft.restore_quotes(match[1])
    # Words that describe the tool are the request, not a value.
    tool_words = {*stem_words(offer.name), *stem_words(name), *stem_words(offer.description)}
    clause = re.sub(r"\b(what|who|how|where|it)['’]s\b", r"\1", clause, flags=re.I)
    counts = any(
        isinstance(parameter_schema, Mapping) and parameter_schema.get("type") in NUMBERS
        for parameter_schema in offer.properties.values()
    )
    content_words = [
        word
        for word in re.findall(r"[\w'’-]+", draft.restore_quotes(clause))
        if word.lower() not in _LEFT_OUT
        and not set(stem_words(word)) & tool_words
        # A number belongs to a parameter of numbers, if the tool has one.
        and not (counts and word.isdecimal())
    ]
    return " ".join(content_words) or None


def _pick_code_by_description(name: str, schema: Mapping[str, Any], clause: str) -> str | None:
    """The value of a parameter whose description says what its name does not: a currency, or a language."""
    about = {*stem_words(str(schema.get("description") or ""))}
    if about & {*stem_words("currency currencies")}:
        return _find_currency_code(name, clause)
    if about & {*stem_words("language languages")}:
        return _find_language_code(clause)
    return None


def _find_language_code(clause: str) -> str | None:
    return next((code for language, code in LANGUAGES.items() if re.search(rf"\b{language}\b", clause, re.I)), None)


_MONEY = {
    "dollar": "USD", "euro": "EUR", "pound": "GBP", "yen": "JPY", "franc": "CHF", "rupee": "INR", "yuan": "CNY",
    "krone": "NOK", "krona": "SEK",
}  # fmt: skip
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}


def _find_currency_code(name: str, clause: str) -> str | None:
    spelt = re.sub(r"[$€£¥]", lambda sign: f" {_SIGNS[sign[0]]} ", clause)
    mentions = re.findall(rf"\b(?:[A-Z]{{3}}\b|(?i:{'|'.join(_MONEY)})s?\b)", spelt)
    codes = [code if code.isupper() and len(code) == 3 else _MONEY[code.lower().rstrip("s")] for code in mentions]
    if not codes:
        return None
    # The last currency is the one to convert to, as in “100 dollars to euros”.
    return codes[-1] if re.search(r"to|target|dest", name, re.I) and len(codes) > 1 else codes[0]
