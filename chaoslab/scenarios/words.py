"""Words for what pydantic finds wrong with a scenario."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.base import foreign, former
from chaoslab.base.registry import did_you_mean
from chaoslab.scenarios.drawn_spec import SPACE_KEYS
from chaoslab.scenarios.located import Located

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOULD = {
    "string_type": "a text", "string_unicode": "a text of whole characters",
    "int_type": "a whole number", "float_type": "a number", "bool_type": "true or false",
    "list_type": "a list", "dict_type": "a mapping", "model_type": "a mapping", "model_attributes_type": "a mapping",
    "int_from_float": "a whole number", "finite_number": "a finite number",
}  # fmt: skip


def describe_mistake(located: Located, error: "ErrorDetails") -> str:
    """One line: the place, the wrong value, and what would be right."""
    from chaoslab.scenarios.spec import DRAWN, ITS_OWN

    path = find_path(located.data, error["loc"])
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    name = next((str(step) for step in reversed(path) if isinstance(step, str)), "this")
    if kind == "extra_forbidden":
        if instead := (foreign.KEYS | former.KEYS).get(str(path[-1])):
            return str(located.error(path, f"'{path[-1]}' is not known here: {instead}", of_key=True))
        keys_known = known_keys(path)
        return str(
            located.error(
                path, f"'{path[-1]}' is not known here: {did_you_mean(str(path[-1]), keys_known)}", of_key=True
            )
        )
    if name == "args" and isinstance(value, list):
        return str(
            located.error(path, f"args is {shorten(value)}: it should be a mapping of names, as in {{order: 17}}")
        )
    same = path and path[-1] not in DRAWN and kind != "missing"
    if same and isinstance(value, Mapping) and value and value.keys() <= {*SPACE_KEYS}:
        several = f", or several as variants: {{{path[0]}: […]}}" if len(path) == 1 and path[0] not in ITS_OWN else ""
        return str(located.error(path, f"{name} is the same in all trials: give it one value{several}"))
    if kind == "missing":
        return str(located.error(path[:-1], f"{error['loc'][-1]} is missing"))
    return str(
        located.error(path, f"{name} is {shorten(value)}: it should be {_describe_expected(kind, context, error)}")
    )


def _describe_expected(kind: str, context: Mapping[str, Any], error: "ErrorDetails") -> str:
    match kind:
        case "literal_error":
            return str(context.get("expected", "")).replace(" or ", ", ").replace("'", "").replace(", ", " or ")
        case "string_pattern_mismatch":
            pattern = str(context.get("pattern"))
            lab_hint = ", or lab for the lab's own" if pattern.startswith("^lab") else ""
            lab_hint = ", or model" if pattern.startswith("^model") else lab_hint
            if ":" in pattern:
                return f"module:name, as in shop.agent:answer{lab_hint}"
            return "a short name, of letters, digits, spaces and . , ( ) ' + - alone"
        case "greater_than_equal":
            return f"{context['ge']:.15g} or more"
        case "greater_than":
            return f"more than {context['gt']:.15g}"
        case "less_than":
            return f"less than {context['lt']:.15g}"
        case "less_than_equal":
            return f"{context['le']:.15g} or less"
        case "too_long":
            return f"{context['max_length']} entries at most"
        case "too_short" | "string_too_short":
            return "not empty"
        case "string_too_long":
            return f"{context['max_length']} characters at most"
        case "value_error":
            return str(context.get("error", error["msg"]))
        case _:
            return _SHOULD.get(kind, f"something else ({error['msg']})")


def find_path(data: Any, loc: Sequence[str | int]) -> tuple[str | int, ...]:
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


def known_keys(path: Sequence[str | int]) -> list[str]:
    """The keys that are known beside this one."""
    from chaoslab.scenarios import spec

    if len(path) > 1 and path[-2] in spec.DRAWN:
        return list(SPACE_KEYS)
    inner = [step for step in path[:-1] if isinstance(step, str)]
    return list((spec.PARTS.get(inner[-1], spec.ScenarioSpec) if inner else spec.ScenarioSpec).model_fields)


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
