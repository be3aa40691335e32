"""Arithmetic in signs or words, or over the findings of earlier steps."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._expressions import ASKING, IT, extract_arithmetic
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story
from chaoslab.model.skills import weather

_OVER = {
    "difference": " - ", "sum": " + ", "add": " + ", "total": " + ", "average": "mean", "mean": "mean",
    "product": " * ", "subtract": " - ",
}  # fmt: skip
_OF_TEMPERATURES = re.compile(
    r"\b(difference|sum|add|total|average|mean|subtract)\b.*\b(?:temperatures?|degrees|warm|weather)\b", re.I
)
_A_TEMPERATURE = re.compile(rf"\b(?i:the )?(?i:current )?(?i:temperature) (?i:in|of) {weather.CITY}")
_OF_THEM = re.compile(
    (
        r"\b(difference|sum|add|total|average|mean|product|subtract)\b.*\b(?:them|those|these|both|"
        r"two|temperatures|numbers|results|values)\b|\b(add) (?:them|both)|\b(difference|sum|average|total)$"
    ),
    re.I,
)


def plan_clause(clause: str, draft: Draft) -> bool:
    # A date such as 2026-06-01 is no subtraction.
    if re.search(r"\d{4}-\d\d-\d\d|^(?:schedule|book)\b", clause, re.I):
        return False
    if colder := re.match(r"how (?:much|many degrees) (colder|cooler|warmer|hotter)\b", clause, re.I):
        named = weather.find_cities(clause)
        if len(named) == 2:
            weather.plan_clause(f"temperature in {' and '.join(named)}", draft)
            # “How much colder is A than B” asks for B − A.
            draft.last = draft.last[::-1] if colder[1].lower() in ("colder", "cooler") else draft.last
            return _plan_aggregate("difference", draft)
    if (match := _A_TEMPERATURE.search(clause)) and re.search(r"\d", clause):
        through = extract_arithmetic(draft.restore_quotes(clause.replace(match[0], "it")), it=True)
        if through and IT in through and weather.plan_clause(match[0], draft):
            return _plan_with_last_result(through, draft)
    if match := _OF_TEMPERATURES.search(clause):
        cities = weather.find_cities(clause)
        if len(cities) > 1 or (cities and match[1].lower() not in ("add",)):
            weather.plan_clause(f"temperature in {' and '.join(cities)}", draft)
            return _plan_aggregate(match[1].lower(), draft)
    if (match := _OF_THEM.search(clause)) and draft.last and not re.search(r"\d", clause):
        return _plan_aggregate(next(group for group in match.groups() if group).lower(), draft)
    written = extract_arithmetic(draft.restore_quotes(clause))
    bare = re.fullmatch(r"[\s\d.+*/()^%=?-]+", clause)
    if written is None or not (ASKING.search(clause) or bare or _is_mostly_expression(written, clause)):
        written = extract_arithmetic(clause, it=True) if draft.last or draft.earlier else None
        if written is None or IT not in written:
            return False
        return _plan_with_last_result(written, draft)
    if draft.last and (through := extract_arithmetic(clause, it=True)) and IT in through:
        return _plan_with_last_result(through, draft)

    def ask_calculator(_: Sequence[StepResult]) -> Story:
        return make_step_result((yield Ask("calculate", {"expression": written})), written)

    draft.last = (draft.add_step(Step(f"calculate {written}", ask_calculator, topic="calculate")),)
    return True


def _is_mostly_expression(written: str, clause: str) -> bool:
    """True if the clause has few words beside the expression, so that a date or a title does not count as one."""
    return len(re.findall(r"[^\W\d_]{2,}", clause)) <= 8 and not re.search(r"\d\s*-\s*\d", written)


def _plan_with_last_result(written: str, draft: Draft) -> bool:
    needs = draft.last[-1:]
    # A new request may go on from the number in the answer before it.
    carried = re.findall(r"-?\d+(?:\.\d+)?", draft.earlier)

    def calculate_with_last(results: Sequence[StepResult]) -> Story:
        numbers = (
            results[0].numbers
            if results
            else tuple(float(number) if "." in number else int(number) for number in carried[-1:])
        )
        if not numbers:
            raise CouldNot("there is no number to reckon with")
        filled = written.replace(IT, format_number(numbers[0]))
        return make_step_result((yield Ask("calculate", {"expression": filled})), filled)

    draft.last = (
        draft.add_step(
            Step(
                f"calculate {written.replace(IT, 'with the result')}",
                calculate_with_last,
                needs=needs,
                topic="calculate",
            )
        ),
    )
    return True


def _plan_aggregate(word: str, draft: Draft) -> bool:
    needs, sign = draft.last, _OVER[word]
    if len(needs) == 1 and draft.steps[needs[0]].topic == "calculate":
        needs = tuple(n for n, step in enumerate(draft.steps) if step.topic == "calculate")

    def calculate_aggregate(results: Sequence[StepResult]) -> Story:
        numbers = [format_number(result.numbers[0]) for result in results if result.numbers]
        if len(numbers) < len(needs) or not numbers:
            raise CouldNot("a number is missing")
        # A minus behind another sign needs brackets.
        bracketed = [numbers[0], *(f"({number})" if number.startswith("-") else number for number in numbers[1:])]
        filled = f"({' + '.join(bracketed)}) / {len(numbers)}" if sign == "mean" else sign.join(bracketed)
        return make_step_result((yield Ask("calculate", {"expression": filled})), filled)

    draft.last = (draft.add_step(Step(f"work out the {word}", calculate_aggregate, needs=needs, topic="calculate")),)
    return True


def format_number(number: float) -> str:
    """The number without the rounding noise of binary fractions: 29.990000000000002 is 29.99."""
    if isinstance(number, float) and len(str(short := round(number, 10)).partition(".")[2]) < 8:
        number = short
    # Above 1e15, the digits of a float are no longer all its own.
    return str(int(number)) if isinstance(number, float) and number.is_integer() and abs(number) < 1e15 else str(number)


def make_step_result(reply: Any, written: str) -> StepResult:
    result: Any = reply.get("result", reply.get("value")) if isinstance(reply, Mapping) else reply
    text = str(reply.get("text") or result) if isinstance(reply, Mapping) else str(reply)
    # The number is the computed value; the text is only its display.
    if isinstance(result, int | float):
        noisy = isinstance(result, float) and len(format_number(result)) < len(str(result)) - 4
        display = (
            text
            if isinstance(reply, Mapping) and _is_same_number(text, result) and not noisy
            else format_number(result)
        )
        return StepResult(f"{written} = {display}.", f"{written} = {display}", (result,))
    try:
        return StepResult(f"{written} = {text}.", f"{written} = {text}", (float(text),))
    except ValueError:
        return StepResult(f"{written} = {text}.", f"{written} = {text}")


def _is_same_number(text: str, number: float) -> bool:
    try:
        return float(text) == float(number)
    except ValueError:
        return False
