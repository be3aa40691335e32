"""The user's own reading of an answer: patterns by name, or a function from the answer to values."""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from chaoslab.analysis.answers.values import READ_MAX
from chaoslab.analysis.verdict.says import ANY, BOTH, UNSURE
from chaoslab.base.boundary import let_through
from chaoslab.base.jsonable import describe_error, line, shown, to_jsonable
from chaoslab.base.registry import did_you_mean

Says = Callable[[Any], Any] | Mapping[str, str | Mapping[str, str]]
WORDS = ("done", "undone", "unsure")
KEYS = "its keys are 'done', 'undone' and 'unsure', each with a pattern"
WHY = 200
"""The most characters of the reason why an answer could not be read."""
LIKE = 'says={"refund": {"done": "refunded", "undone": "could not|failed"}, "total": r"total is (\\d+)"}'


def check(says: Any, tools: Iterable[str], *, of_services: bool) -> None:
    """Checks a given `says`. `tools`: the names of the tools with effects. `of_services`: effects may be requests.
    Raises TypeError, ValueError, LookupError: it is wrong; the message is one line."""
    if says is None or callable(says):
        return
    if not isinstance(says, Mapping):
        raise TypeError(f"says is {shown(says)}: it should be a function of the answer, or patterns, as in {LIKE}")
    known = list(tools)
    for name, given in says.items():
        where = f"says[{name!r}]"
        if isinstance(given, Mapping):
            if name not in (ANY, *known) and not (of_services and " /" in str(name)):
                raise LookupError(f"{where}: no tool with effects is called so: {did_you_mean(str(name), known)}")
            if not given or set(given) - set(WORDS):
                raise ValueError(f"{where} is {shown(given)}: {KEYS}")
            patterns: list[Any] = list(given.values())
        elif name == ANY:
            raise ValueError(f"{where} is {shown(given)}: {KEYS}")
        else:
            patterns = [given]
        for pattern in patterns:
            _check_pattern(where, pattern, group=not isinstance(given, Mapping))


def _check_pattern(where: str, pattern: Any, *, group: bool) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"{where} has {shown(pattern)}: it should be a regular expression")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{where} is {shown(pattern)}, which is no regular expression: {error}") from None
    if group and compiled.groups != 1:
        raise ValueError(f"{where} is {shown(pattern)}: a value needs one group in brackets, as in r'total is (\\d+)'")


def read(says: Says, answer: Any, text: str) -> tuple[dict[str, Any], str]:
    """The values by name, and the reason why there are none; empty if there are. `text`: the answer as it is judged."""
    if callable(says):
        try:
            found = says(answer)
        except BaseException as error:  # noqa: BLE001 - the user's own code
            let_through(error)
            # the user's exception with the line of their code that raised it
            frames = traceback.extract_tb(error.__traceback__)
            place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if len(frames) > 1 else ""
            return {}, line(f"{describe_error(error)}{place}", WHY)
        if not isinstance(found, Mapping):
            return {}, f"says= returned {shown(found)}: it should be a dict of values by name"
        values = to_jsonable(found)
        return dict(values), ""
    return {name: _found(given, text[:READ_MAX]) for name, given in says.items()}, ""


def _found(given: str | Mapping[str, str], text: str) -> Any:
    if isinstance(given, str):
        found = re.search(given, text, re.IGNORECASE)
        return found[1] if found else None
    done, undone, unsure = (bool(each and re.search(each, text, re.IGNORECASE)) for each in map(given.get, WORDS))
    if unsure:  # "it may have been refunded" has the words of both
        return UNSURE
    return BOTH if done and undone else True if done else False if undone else None
