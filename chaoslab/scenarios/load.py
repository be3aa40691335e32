"""Reads and checks scenarios. Nothing of the user's code is imported. Pydantic tells all mistakes of types; those that
depend on several values are looked for once the types are right."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaoslab.scenarios._variants import changed as changed_in
from chaoslab.scenarios._variants import expanded, without
from chaoslab.scenarios.checks import Checks
from chaoslab.scenarios.located import Located, ScenarioError, parse, read
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.words import worded

SHOWN_MAX = 20
"""The most errors of a file that are told."""
_PLACE = re.compile(r"[^\n]*?:(\d+):(\d+): ")


class ScenarioErrors(ScenarioError):
    """All that is wrong with a scenario: `lines`, one each, as they stand in the file."""

    def __init__(self, lines: Sequence[str]) -> None:
        more = [f"and {len(lines) - SHOWN_MAX} more mistakes"] if len(lines) > SHOWN_MAX else []
        self.lines = (*sorted(lines, key=_place)[:SHOWN_MAX], *more)
        super().__init__("\n".join(self.lines))


def _place(line: str) -> tuple[int, ...]:
    """The line and column of a mistake; those without one come first."""
    found = _PLACE.match(line)
    return tuple(map(int, found.groups())) if found else (0, 0)


def load_all(paths: Iterable[Path], *, changed: Sequence[str] = ()) -> list[Scenario]:
    """The scenarios of all these files, as `load` reads each. Raises ScenarioError: the mistakes of all files, each
    once, in the order of the files."""
    found: list[Scenario] = []
    wrong: dict[str, None] = {}
    for path in paths:
        try:
            found += load(path, changed=changed)
        except ScenarioErrors as error:
            wrong |= dict.fromkeys(error.lines)
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return found


def load(path: Path, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenarios of a file: one, or one for each variant. `changed`: values in place of the file's, as in
    "trials=50". Raises ScenarioErrors: it cannot be read, or something in it is wrong."""
    try:
        located = changed_by(read(path), changed)
        folder = located.data.get("folder", "") if isinstance(located.data, dict) else ""
        return checked(located, folder=path.parent / folder if isinstance(folder, str) else path.parent)
    except ScenarioErrors:
        raise
    except ScenarioError as error:
        raise ScenarioErrors([str(error)]) from None


def changed_by(located: Located, changed: Sequence[str]) -> Located:
    """The data with these values in place of its own."""
    if not changed or not isinstance(located.data, dict):
        return located
    from chaoslab.scenarios.spec import INSTEAD

    data, given = dict(located.data), {}
    instead = {one: other for pair in INSTEAD for one, other in (pair, pair[::-1])}
    for each in changed:
        name, equals, text = each.partition("=")
        if not equals or not name:
            raise ScenarioError(f"--set {each[:60]} should be a key and a value, as in trials=50")
        value, source = parse(text or "''", f"--set {name}").data, f"{located.file}, --set {each[:60]}"
        if "variants" in data and name not in ("name", "variants"):
            data["variants"] = without(data["variants"], name, source)
        if "." in name:
            located = changed_in(replace(located, data=data), name, value, source)
            data = dict(located.data)
            continue
        data.pop(instead.get(name, ""), None)
        data[name] = value
        given[name] = source
    return replace(located, data=data, given=given)


def checked(
    located: Located, *, folder: Path | None = None, objects: Mapping[str, Any] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of a file's data. `objects`: those that Python gave, by the name that stands for them. Raises
    ScenarioErrors: something is wrong."""
    from pydantic import ValidationError

    from chaoslab.scenarios.spec import ScenarioSpec

    if not isinstance(located.data, dict):
        what = "a list" if isinstance(located.data, list) else "one value"
        raise ScenarioErrors(
            [str(located.error((), f"a scenario is a mapping with name, agent, … and this is {what}"))]
        )
    if located.data.get("chaoslab", 1) != 1:
        said = f"chaoslab is {located.data['chaoslab']!r:.40}: this version reads scenarios of version 1"
        raise ScenarioErrors([str(located.error(("chaoslab",), said))])
    made: list[Scenario] = []
    wrong: list[str] = []
    for variant, one in expanded(located, wrong):
        try:
            spec = ScenarioSpec.model_validate(one.data)
        except ValidationError as error:
            wrong += [worded(one, each) for each in error.errors(include_url=False)]
            continue
        checks = Checks(one, spec, folder, objects or {})
        made.append(checks.scenario(variant))
        wrong += checks.wrong
    if wrong:
        raise ScenarioErrors(list(dict.fromkeys(wrong)))
    return tuple(made)
