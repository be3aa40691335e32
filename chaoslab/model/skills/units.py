"""Conversion of lengths, weights, volumes, speeds and temperatures, by the calculator."""

import re
from collections.abc import Sequence

from chaoslab.model._expressions import replace_number_words
from chaoslab.model._story import Ask, Draft, Step, StepResult, Story
from chaoslab.model.skills import calculate, weather

# (quantity, value in its base unit: metre, gram, litre, metre per second, second), by the exact definitions.
_UNITS: dict[str, tuple[str, str]] = {
    "km|kilomet(?:re|er)s?": ("length", "1000"),
    "m|met(?:re|er)s?": ("length", "1"),
    "cm|centimet(?:re|er)s?": ("length", "0.01"),
    "mm|millimet(?:re|er)s?": ("length", "0.001"),
    "mi|miles?": ("length", "1609.344"),
    "yd|yards?": ("length", "0.9144"),
    "ft|foot|feet": ("length", "0.3048"),
    "inch(?:es)?": ("length", "0.0254"),
    "kg|kilos?|kilograms?": ("weight", "1000"),
    "g|grams?": ("weight", "1"),
    "lbs?|pounds?": ("weight", "453.59237"),
    "oz|ounces?": ("weight", "28.349523125"),
    "l|lit(?:re|er)s?": ("volume", "1"),
    "ml|millilit(?:re|er)s?": ("volume", "0.001"),
    "gallons?": ("volume", "3.785411784"),
    "km/h|kmh|kph|kilomet(?:re|er)s? per hour": ("speed", "(1000 / 3600)"),
    "mph|miles? per hour": ("speed", "0.44704"),
    "m/s|met(?:re|er)s? per second": ("speed", "1"),
    "hours?|h": ("time", "3600"),
    "minutes?|min": ("time", "60"),
    "seconds?|s": ("time", "1"),
    "days?": ("time", "86400"),
    "(?:degrees? |°\\s?)?(?:fahrenheit|f)": ("temperature", "f"),
    "(?:degrees? |°\\s?)?(?:celsius|centigrade|c)": ("temperature", "c"),
}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_PATTERNS = (
    rf"(?P<amount>-?\d+(?:\.\d+)?)\s*(?P<old>{_UNIT})\s+(?:in|into|to|as|is how many)\s+(?P<new>{_UNIT})",
    (
        rf"how many\s+(?P<new>{_UNIT})\s+(?:is|are|are in|is in|make|makes|in|are there "
        rf"in)\s+(?P<amount>-?\d+(?:\.\d+)?|an?)\s*(?P<old>{_UNIT})"
    ),
)


def plan_clause(clause: str, draft: Draft) -> bool:
    text = re.sub(r"(?<=\d),(?=\d{3})", "", replace_number_words(clause))
    opening = r"(?:(?:convert|change|turn|calculate|what(?:'s| is| are)|how much is)\s+)?"
    match = next((m for p in _PATTERNS if (m := re.fullmatch(rf"{opening}{p}", text.strip(" ?."), re.I))), None)
    if match is None:
        return False
    (kind, old), (new_kind, new) = _find_unit(match["old"]), _find_unit(match["new"])
    if kind != new_kind:
        return False
    amount = "1" if match["amount"].lower().startswith("a") else match["amount"]
    written = weather.to_fahrenheit_expression(amount) if (old, new) == ("c", "f") else f"{amount} * {old} / {new}"
    written = f"({amount} - 32) * 5 / 9" if (old, new) == ("f", "c") else written

    def convert_amount(_: Sequence[StepResult]) -> Story:
        result = calculate.make_step_result((yield Ask("calculate", {"expression": written})), written)
        if not result.numbers:
            return result
        sentence = f"{amount} {match['old']} is {calculate.format_number(round(result.numbers[0], 4))} {match['new']}."
        return StepResult(sentence, sentence, result.numbers)

    draft.last = (
        draft.add_step(Step(f"convert {amount} {match['old']} to {match['new']}", convert_amount, topic="calculate")),
    )
    return True


def _find_unit(word: str) -> tuple[str, str]:
    return next(unit for pattern, unit in _UNITS.items() if re.fullmatch(pattern, word, re.I))
