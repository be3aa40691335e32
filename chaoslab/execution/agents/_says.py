"""The user's own reading of an answer: patterns by name, or a function from the answer to values."""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from chaoslab.analysis.answers.values import READ_MAX
from chaoslab.analysis.verdict.says import ANY, BOTH_PATTERNS, UNSURE
from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import describe_error, repr_one_line, to_jsonable, to_one_line
from chaoslab.base.registry import suggest_name

Says = Callable[[Any], Any] | Mapping[str, str | Mapping[str, str]]
WORDS = ("done", "undone", "unsure")
KEYS = "its keys are 'done', 'undone' and 'unsure', each with a pattern"
REASON_MAX = 200
"""The most characters of the reason why an answer could not be read."""
EXAMPLE = 'says={"refund": {"done": "refunded", "undone": "could not|failed"}, "total": r"total is (\\d+)"}'


def check_says_option(says: Any, tools: Iterable[str], *, of_services: bool) -> None:
    """Checks a given `says`. `tools`: the names of the tools with effects. `of_services`: effects may be requests.
    Raises TypeError, ValueError, LookupError: it is wrong; the message is one line."""
    if says is None or callable(says):
        return
    if not isinstance(says, Mapping):
        raise TypeError(
            f"says is {repr_one_line(says)}: it should be a function of the answer, or patterns, as in {EXAMPLE}"
        )
    effect_names = list(tools)
    for name, pattern_option in says.items():
        location = f"says[{name!r}]"
        if isinstance(pattern_option, Mapping):
            if name not in (ANY, *effect_names) and not (of_services and " /" in str(name)):
                raise LookupError(
                    f"{location}: no tool with effects is called so: {suggest_name(str(name), effect_names)}"
                )
            if not pattern_option or set(pattern_option) - set(WORDS):
                raise ValueError(f"{location} is {repr_one_line(pattern_option)}: {KEYS}")
            patterns: list[Any] = list(pattern_option.values())
        elif name == ANY:
            raise ValueError(f"{location} is {repr_one_line(pattern_option)}: {KEYS}")
        else:
            patterns = [pattern_option]
        for pattern in patterns:
            _check_pattern(location, pattern, group=not isinstance(pattern_option, Mapping))


def _check_pattern(location: str, pattern: Any, *, group: bool) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"{location} has {repr_one_line(pattern)}: it should be a regular expression")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{location} is {repr_one_line(pattern)}, which is no regular expression: {error}") from None
    if group and compiled.groups != 1:
        raise ValueError(
            f"{location} is {repr_one_line(pattern)}: a value needs one group in brackets, as in r'total is (\\d+)'"
        )


def read_answer_values(says: Says, answer: Any, text: str) -> tuple[dict[str, Any], str]:
    """The values by name, and the reason why there are none; empty if there are. `text`: the answer as it is judged."""
    if callable(says):
        try:
            values_found = says(answer)
        except BaseException as error:  # noqa: BLE001 - the user's own code
            reraise_unless_foreign(error)
            # the user's exception with the line of their code that raised it
            frames = traceback.extract_tb(error.__traceback__)
            # The first frame is this call itself.
            location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if len(frames) > 1 else ""
            return {}, to_one_line(f"{describe_error(error)}{location}", REASON_MAX)
        if not isinstance(values_found, Mapping):
            return {}, f"says= returned {repr_one_line(values_found)}: it should be a dict of values by name"
        values = to_jsonable(values_found)
        return dict(values), ""
    return {name: _read_value_by_pattern(pattern, text[:READ_MAX]) for name, pattern in says.items()}, ""


def _read_value_by_pattern(pattern: str | Mapping[str, str], text: str) -> Any:
    if isinstance(pattern, str):
        match = re.search(pattern, text, re.IGNORECASE)
        return match[1] if match else None
    is_done, is_undone, is_unsure = (
        bool(expression and re.search(expression, text, re.IGNORECASE)) for expression in map(pattern.get, WORDS)
    )
    if is_unsure:  # "it may have been refunded" has the words of both
        return UNSURE
    return BOTH_PATTERNS if is_done and is_undone else True if is_done else False if is_undone else None
