"""Writes a scenario's data as YAML or JSON."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaoslab.analysis.assertions import Assertion, load_assertion, serialize_assertion
from chaoslab.base.phrases import add_article
from chaoslab.scenarios.located import EXPONENT, ScenarioError

UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
WIDTH = 120
"""The longest line of YAML that is not one word, in characters."""


def render_scenario_text(data: Mapping[str, Any], suffix: str) -> str:
    """The data as the text of a file with this suffix. `to_plain_value` has made it plain. Raises ScenarioError: it is
    none that is written."""
    if suffix == ".json":
        return _escape_unprintable(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"
    if suffix in (".yaml", ".yml"):
        return _render_yaml(data)
    raise ScenarioError(f"a scenario is written to a file that ends in .yaml, .yml or .json, not in '{suffix}'")


def write_scenario_file(data: Mapping[str, Any], path: Path) -> None:
    """Writes the data to a file, whose suffix says how. Raises ScenarioError: as `render_scenario_text`. OSError: the
    file cannot be written."""
    from chaoslab.reports.formats import write_file

    write_file(render_scenario_text(data, path.suffix), path)


def to_plain_value(value: Any, location: str) -> Any:
    """The value as a file holds it. `location`: its key, for the error. Raises ScenarioError: no file can hold it."""
    if isinstance(value, Assertion):
        try:
            # The very class: a user's own of the same name is another one.
            is_known = load_assertion(value.name) is type(value)
        except LookupError:
            is_known = False
        if not is_known:
            raise ScenarioError(
                f"{location} holds {type(value).__name__}, which is no installed assertion: it has no name"
            )
        return to_plain_value(serialize_assertion(value), location)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ScenarioError(f"{location} has the key {key!r:.40}: a file's keys are texts")
        return {key: to_plain_value(item, f"{location}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_value(item, location) for item in value]
    # JSON has neither, and YAML and TOML spell them in ways of their own.
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{location} is {value}, which is no number to reckon with")
    if isinstance(value, str) and any("\ud800" <= item <= "\udfff" for item in value):
        raise ScenarioError(f"{location} is {_shorten_repr(value)}, which has half a character, so no file can hold it")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ScenarioError(
        f"{location} is {add_article(type(value).__name__)}, which no file can hold: {_shorten_repr(value)}"
    )


def _render_yaml(data: Mapping[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes texts that are read as numbers, or have characters that YAML takes for the end of a line."""

    def represent_text(dumper: Any, value: str) -> Any:
        # YAML 1.1 reads 1e3 as a text and 1.0e+3 as a number: in quotes it is one thing to all.
        style = '"' if UNPRINTABLE.search(value) or EXPONENT.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, represent_text)
    # An alias in a file would be hard to edit, and a list that stands twice is none.
    Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    return str(yaml.dump(data, None, Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=None))


def _shorten_repr(value: object) -> str:
    return " ".join(repr(value).split())[:60]


def _escape_unprintable(text: str) -> str:
    """JSON without characters that YAML takes only as an escape."""
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
