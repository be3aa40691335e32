"""Reads and checks scenarios. Nothing of the user's code is imported. Pydantic tells all mistakes of types; those that
depend on several values are looked for once the types are right."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaoslab.scenarios._variants import change_key as changed_in
from chaoslab.scenarios._variants import drop_key, expand_variants
from chaoslab.scenarios.checks import Checks
from chaoslab.scenarios.located import Located, ScenarioError, parse, read
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.words import describe_mistake

SHOWN_MAX = 20
"""The most errors of a file that are told."""
_PLACE = re.compile(r"[^\n]*?:(\d+):(\d+): ")


class ScenarioErrors(ScenarioError):
    """All that is wrong with a scenario: `lines`, one each, as they stand in the file."""

    def __init__(self, lines: Sequence[str]) -> None:
        remainder = [f"and {len(lines) - SHOWN_MAX} more mistakes"] if len(lines) > SHOWN_MAX else []
        self.lines = (*sorted(lines, key=_line_position)[:SHOWN_MAX], *remainder)
        super().__init__("\n".join(self.lines))


def _line_position(line: str) -> tuple[int, ...]:
    """The line and column of a mistake; those without one come first."""
    match = _PLACE.match(line)
    return tuple(map(int, match.groups())) if match else (0, 0)


def load_all(paths: Iterable[Path], *, changed: Sequence[str] = ()) -> list[Scenario]:
    """The scenarios of all these files, as `load` reads each. Raises ScenarioError: the mistakes of all files, each
    once, in the order of the files."""
    scenarios: list[Scenario] = []
    wrong: dict[str, None] = {}
    for path in paths:
        try:
            # All files are read before one error is told.
            scenarios += load(path, changed=changed)
        except ScenarioErrors as error:
            # Once each: a mistake of --set is that of every file.
            wrong |= dict.fromkeys(error.lines)
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return scenarios


def load(path: Path, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenarios of a file: one, or one for each variant. `changed`: values in place of the file's, as in
    "trials=50". Raises ScenarioErrors: it cannot be read, or something in it is wrong."""
    try:
        located = apply_changes(read(path), changed)
        folder = located.data.get("folder", "") if isinstance(located.data, dict) else ""
        return check_data(located, folder=path.parent / folder if isinstance(folder, str) else path.parent)
    except ScenarioErrors:
        raise
    except ScenarioError as error:
        raise ScenarioErrors([str(error)]) from None


def apply_changes(located: Located, changed: Sequence[str]) -> Located:
    """The data with these values in place of its own."""
    if not changed or not isinstance(located.data, dict):
        return located
    from chaoslab.scenarios.spec import INSTEAD

    data, sources = dict(located.data), {}
    # Of a pair such as prompt and turns the one that is set takes the other's place.
    alternatives = {key: alternative for pair in INSTEAD for key, alternative in (pair, pair[::-1])}
    for change in changed:
        name, equals, text = change.partition("=")
        if not equals or not name:
            raise ScenarioError(f"--set {change[:60]} should be a key and a value, as in trials=50")
        # Nothing behind = is an empty text; YAML would read it as null.
        value, source = parse(text or "''", f"--set {name}").data, f"{located.file}, --set {change[:60]}"
        # A variant would put its own value in the place of the one that was set.
        if "variants" in data and name not in ("name", "variants"):
            data["variants"] = drop_key(data["variants"], name, source)
        if "." in name:
            located = changed_in(replace(located, data=data), name, value, source)
            data = dict(located.data)
            continue
        data.pop(alternatives.get(name, ""), None)
        data[name] = value
        sources[name] = source
    return replace(located, data=data, given=sources)


def check_data(
    located: Located, *, folder: Path | None = None, objects: Mapping[str, Any] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of a file's data. `objects`: those that Python gave, by the name that stands for them. Raises
    ScenarioErrors: something is wrong."""
    from pydantic import ValidationError

    from chaoslab.scenarios.spec import ScenarioSpec

    if not isinstance(located.data, dict):
        noun = "a list" if isinstance(located.data, list) else "one value"
        raise ScenarioErrors(
            [str(located.error((), f"a scenario is a mapping with name, agent, … and this is {noun}"))]
        )
    if located.data.get("chaoslab", 1) != 1:
        message = f"chaoslab is {located.data['chaoslab']!r:.40}: this version reads scenarios of version 1"
        raise ScenarioErrors([str(located.error(("chaoslab",), message))])
    scenarios: list[Scenario] = []
    wrong: list[str] = []
    # All mistakes of all variants, each once.
    for variant, variant_data in expand_variants(located, wrong):
        try:
            spec = ScenarioSpec.model_validate(variant_data.data)
        except ValidationError as error:
            wrong += [describe_mistake(variant_data, mistake) for mistake in error.errors(include_url=False)]
            continue
        checks = Checks(variant_data, spec, folder, objects or {})
        scenarios.append(checks.scenario(variant))
        wrong += checks.wrong
    if wrong:
        # Variants share most of their keys, and so their mistakes.
        raise ScenarioErrors(list(dict.fromkeys(wrong)))
    return tuple(scenarios)
