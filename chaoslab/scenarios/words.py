"""Words for what pydantic finds wrong with a scenario."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.base import foreign, former
from chaoslab.base.registry import suggest_name
from chaoslab.scenarios.drawn_spec import SPACE_KEYS
from chaoslab.scenarios.located import Located

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED = {
    "string_type": "a text", "string_unicode": "a text of whole characters",
    "int_type": "a whole number", "float_type": "a number", "bool_type": "true or false",
    "list_type": "a list", "dict_type": "a mapping", "model_type": "a mapping", "model_attributes_type": "a mapping",
    "int_from_float": "a whole number", "finite_number": "a finite number",
    "greater_than_equal": "{ge:.15g} or more", "greater_than": "more than {gt:.15g}",
    "less_than": "less than {lt:.15g}", "less_than_equal": "{le:.15g} or less",
    "too_long": "{max_length} entries at most", "string_too_long": "{max_length} characters at most",
    "too_short": "not empty", "string_too_short": "not empty", "value_error": "{error}",
}  # fmt: skip
"""The right kind of value, by the type of pydantic's error."""


def describe_validation_error(located: Located, error: "ErrorDetails") -> str:
    """One line: the place, the wrong value, and what would be right."""
    path = find_data_path(located.data, error["loc"])
    if error["type"] == "missing":
        return str(located.make_error(path[:-1], f"{error['loc'][-1]} is missing"))
    return str(located.make_error(path, _describe_wrong_value(path, error)))


def _describe_wrong_value(path: Sequence[str | int], error: "ErrorDetails") -> str:
    from chaoslab.scenarios.spec import DRAWN, ITS_OWN

    value, last = error.get("input"), str(path[-1]) if path else "this"
    if error["type"] == "extra_forbidden":
        instead = (foreign.KEYS | former.KEYS).get(last)
        return f"'{last}' is not known here: {instead or suggest_name(last, list_sibling_keys(path))}"
    name = next((str(step) for step in reversed(path) if isinstance(step, str)), "this")
    if name == "args" and isinstance(value, list):
        expected = "a mapping of names, as in {order: 17}"
    elif path and last not in DRAWN and isinstance(value, Mapping) and value and value.keys() <= {*SPACE_KEYS}:
        several = f", or several as variants: {{{path[0]}: […]}}" if len(path) == 1 and path[0] not in ITS_OWN else ""
        return f"{name} is the same in all trials: give it one value{several}"
    else:
        expected = _describe_expected(error)
    return f"{name} is {shorten_repr(value)}: it should be {expected}"


def _describe_expected(error: "ErrorDetails") -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"]).replace(" or ", ", ").replace("'", "").replace(", ", " or ")
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        if ":" not in pattern:
            return "a short name, of letters, digits, spaces and . , ( ) ' + - alone"
        word = next((hint for start, hint in _WORDS.items() if pattern.startswith(start)), "")
        return f"module:name, as in shop.agent:answer{word}"
    return _EXPECTED.get(kind, f"something else ({error['msg']})").format(**context)


_WORDS = {"^lab": ", or lab for the lab's own", "^model": ", or model"}
"""The other words that a key takes, by the beginning of its pattern."""


def find_data_path(data: Any, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """The parts of a location that are keys and indices of the data; names of types are left out."""
    return tuple(_iterate_path(data, loc))


def _iterate_path(data: Any, loc: Sequence[str | int]) -> Iterator[str | int]:
    from chaoslab.scenarios.spec import TAGGED

    for n, step in enumerate(loc):
        if n and loc[n - 1] in TAGGED and step in TAGGED[str(loc[n - 1])]:
            continue
        if isinstance(data, dict) and (step in data or n == len(loc) - 1):
            yield step
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            yield step
            data = data[step]


def list_sibling_keys(path: Sequence[str | int]) -> list[str]:
    """The keys that are known beside this one."""
    from chaoslab.scenarios import spec

    if len(path) > 1 and path[-2] in spec.DRAWN:
        return list(SPACE_KEYS)
    inner = [step for step in path[:-1] if isinstance(step, str)]
    return list((spec.PARTS.get(inner[-1], spec.ScenarioSpec) if inner else spec.ScenarioSpec).model_fields)


def shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
