"""Constraints that a request puts on the answer: its form, the tools that it must call, its length and its end.

The offline model obeys them; a format refuses one that it does not, in the provider's words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from chaoslab.model.formats.common import Constraints, ModelRefused, parse_object_list


@dataclass(frozen=True)
class Names:
    """OpenAI's names of the constraints in a format. `least`: the smallest length; `tools_needed`: a choice among no
    tools is refused."""

    form: str
    length: tuple[str, ...]
    least: int
    unsupported: tuple[str, ...]
    tools_needed: bool = False


CHAT = Names(
    "response_format",
    ("max_completion_tokens", "max_tokens"),
    1,
    ("functions", "function_call", "logprobs", "top_logprobs", "logit_bias", "audio", "web_search_options"),
    tools_needed=True,
)
GROQ = replace(CHAT, tools_needed=False)
RESPONSES = Names(
    "text.format",
    ("max_output_tokens",),
    16,  # https://github.com/vectorize-io/hindsight/issues/58
    ("background", "conversation", "prompt", "top_logprobs"),
)
STOPS_MAX, ANSWERS_MAX = 4, 128


def read_openai_constraints(body: Mapping[str, Any], names: Names, form: Any, text: str) -> Constraints:
    """The constraints of a request to OpenAI. `form`: what it states of the answer's form, a schema within; `text`: the
    text of its messages. Raises ModelRefused: one is not obeyed, or is none."""
    for key in names.unsupported:
        # A value such as false or 0 asks for nothing.
        if body.get(key):
            _raise_model_refused(
                f"Unsupported parameter: '{key}' is not supported with this model.", key, "unsupported_parameter"
            )
    length = next(
        (_check_integer_minimum(body[key], key, names.least) for key in names.length if body.get(key) is not None), None
    )
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(item, str) for item in stops):
        _raise_model_refused(
            "Invalid type for 'stop': expected a string or an array of strings.", "stop", "invalid_type"
        )
    if len(stops) > STOPS_MAX:
        _raise_model_refused(
            f"Invalid 'stop': array too long. Expected an array with maximum length {STOPS_MAX}, but got an array with "
            f"length {len(stops)} instead.",
            "stop",
            "array_above_max_length",
        )
    count = 1 if body.get("n") is None else _check_integer_minimum(body["n"], "n", 1)
    if count > ANSWERS_MAX:
        _raise_model_refused(
            f"Invalid 'n': integer above maximum value. Expected a value <= {ANSWERS_MAX}, but got {count} instead.",
            "n",
            "integer_above_max_value",
        )
    tools = body.get("tools") or []
    for key in ("tool_choice", "parallel_tool_calls") if names.tools_needed and not tools else ():
        if body.get(key) is not None:  # https://github.com/Upsonic/Upsonic/issues/323
            _raise_model_refused(f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified.", key)
    allowed, forced = _read_tool_choice(body.get("tool_choice"), tools)
    return Constraints(
        schema=_read_answer_schema(form, names.form, text),
        tools=allowed,
        forced=forced,
        parallel=body.get("parallel_tool_calls") is not False,
        answers=count,
        tokens_max=length,
        stop=tuple(stops),
    )


def _read_tool_choice(choice: Any, tools: Sequence[Any]) -> tuple[tuple[str, ...] | None, bool]:
    """The tools that alone may be called, and if one must be."""
    if choice in (None, "auto", "none", "required"):
        return None, choice == "required"
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if kind == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        named = [
            allowed_tool.get("function", allowed_tool).get("name")
            for allowed_tool in parse_object_list("tool_choice", allowed.get("tools"))
        ]
        forced = allowed.get("mode") == "required"
    elif kind == "function":
        named, forced = [choice.get("function", choice).get("name")], True
    else:
        choice_text = kind if isinstance(choice, Mapping) else choice
        _raise_model_refused(
            f"Invalid value: '{choice_text!s:.40}'. Supported values are: 'none', 'auto', and 'required'.",
            "tool_choice",
        )
    offered_names = [tool.get("function", tool).get("name") for tool in tools]
    for name in named:
        if name not in offered_names:
            _raise_model_refused(f"Tool choice '{name!s:.64}' not found in 'tools' parameter.", "tool_choice")
    return tuple(named), forced


def _read_answer_schema(form: Any, param: str, text: str) -> Mapping[str, Any] | None:
    """The schema of the answer; None if its form is free, {} for any JSON."""
    kind = form.get("type") if isinstance(form, Mapping) else form
    if kind in (None, "text"):
        return None
    if kind == "json_object":
        if "json" not in text.lower():
            _raise_model_refused(
                f"'messages' must contain the word 'json' in some form, to use '{param}' of type 'json_object'.", param
            )
        return {}
    about = form.get("json_schema", form) if isinstance(form, Mapping) else {}
    if kind != "json_schema" or not isinstance(about, Mapping) or not isinstance(about.get("schema"), Mapping):
        _raise_model_refused(f"Invalid value for '{param}': expected a JSON schema.", param)
    if about.get("strict") is True:
        _check_strict_schema(about["schema"], about["schema"], str(about.get("name")), param, ())
    return about["schema"]  # type: ignore[no-any-return]


def _check_strict_schema(schema: Any, root: Any, name: str, param: str, path: tuple[str, ...]) -> None:
    """A strict schema names all that an object may have, and demands it. Raises ModelRefused: this one does not."""
    if isinstance(schema, list):
        for part_schema in schema:
            _check_strict_schema(part_schema, root, name, param, path)
    if not isinstance(schema, Mapping) or len(path) > 40:
        return
    prefix = f"Invalid schema for {param} '{name}': In context={path},"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            _raise_model_refused(f"{prefix} 'additionalProperties' is required to be supplied and to be false.", param)
        missing = next((key for key in schema.get("properties") or () if key not in (schema.get("required") or ())), "")
        if missing:
            _raise_model_refused(
                f"{prefix} 'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{missing}'.",
                param,
            )
    for key in ("properties", "$defs", "definitions"):
        for part_name, part_schema in (schema.get(key) or {}).items():
            _check_strict_schema(part_schema, root, name, param, (*path, key, part_name))
    for key in ("items", "anyOf"):
        _check_strict_schema(schema.get(key), root, name, param, (*path, key))


def _check_integer_minimum(value: Any, key: str, minimum: int) -> int:
    # True is an int, too.
    if type(value) is not int:
        _raise_model_refused(f"Invalid type for '{key}': expected an integer.", key, "invalid_type")
    if value < minimum:
        _raise_model_refused(
            f"Invalid '{key}': integer below minimum value. Expected a value >= {minimum}, but got {value} instead.",
            key,
            "integer_below_min_value",
        )
    return value


def _raise_model_refused(message: str, param: str, code: str | None = None) -> NoReturn:
    raise ModelRefused(400, message, code=code, param=param)
