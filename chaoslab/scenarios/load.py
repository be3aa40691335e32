"""Reads and checks scenarios. Nothing of the user's code is imported. Pydantic tells all mistakes of types; those that
depend on several values are looked for once the types are right."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaoslab.scenarios._variants import drop_key_from_variants, expand_variants, set_scenario_key
from chaoslab.scenarios.checks import ScenarioChecks
from chaoslab.scenarios.located import Located, ScenarioError, parse_located_data, read_located_data
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.words import describe_validation_error

SHOWN_MAX = 20
"""The most errors of a file that are told."""
_PLACE = re.compile(r"[^\n]*?:(\d+):(\d+): ")


class ScenarioErrors(ScenarioError):
    """All that is wrong with a scenario: `lines`, one each, as they stand in the file."""

    def __init__(self, lines: Sequence[str]) -> None:
        remainder = [f"and {len(lines) - SHOWN_MAX} more mistakes"] if len(lines) > SHOWN_MAX else []
        self.lines = (*sorted(lines, key=_parse_line_position)[:SHOWN_MAX], *remainder)
        super().__init__("\n".join(self.lines))


def _parse_line_position(line: str) -> tuple[int, ...]:
    """The line and column of a mistake; those without one come first."""
    match = _PLACE.match(line)
    return tuple(map(int, match.groups())) if match else (0, 0)


def load_scenarios_of_files(paths: Iterable[Path], *, changed: Sequence[str] = ()) -> list[Scenario]:
    """The scenarios of all these files, as `load_file_scenarios` reads each. Raises ScenarioError: the mistakes of all
    files, each once, in the order of the files."""
    scenarios: list[Scenario] = []
    wrong: dict[str, None] = {}
    for path in paths:
        try:
            # All files are read before one error is told.
            scenarios += load_file_scenarios(path, changed=changed)
        except ScenarioErrors as error:
            # Once each: a mistake of --set is that of every file.
            wrong |= dict.fromkeys(error.lines)
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return scenarios


def load_file_scenarios(path: Path, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenarios of a file: one, or one for each variant. `changed`: values in place of the file's, as in
    "trials=50". Raises ScenarioErrors: it cannot be read, or something in it is wrong."""
    try:
        located = apply_changes(read_located_data(path), changed)
        folder = located.data.get("folder", "") if isinstance(located.data, dict) else ""
        return check_and_build_scenarios(
            located, folder=path.parent / folder if isinstance(folder, str) else path.parent
        )
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
        value, source = parse_located_data(text or "''", f"--set {name}").data, f"{located.file}, --set {change[:60]}"
        # A variant would put its own value in the place of the one that was set.
        if "variants" in data and name not in ("name", "variants"):
            data["variants"] = drop_key_from_variants(data["variants"], name, source)
        if "." in name:
            located = set_scenario_key(replace(located, data=data), name, value, source)
            data = dict(located.data)
            continue
        data.pop(alternatives.get(name, ""), None)
        data[name] = value
        sources[name] = source
    return replace(located, data=data, given=sources)


def check_and_build_scenarios(
    located: Located, *, folder: Path | None = None, objects: Mapping[str, Any] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of a file's data. `objects`: those that Python gave, by the name that stands for them. Raises
    ScenarioErrors: something is wrong."""
    from pydantic import ValidationError

    from chaoslab.scenarios.spec import ScenarioSpec

    if not isinstance(located.data, dict):
        noun = "a list" if isinstance(located.data, list) else "one value"
        raise ScenarioErrors(
            [str(located.make_error((), f"a scenario is a mapping with name, agent, … and this is {noun}"))]
        )
    if located.data.get("chaoslab", 1) != 1:
        message = f"chaoslab is {located.data['chaoslab']!r:.40}: this version reads scenarios of version 1"
        raise ScenarioErrors([str(located.make_error(("chaoslab",), message))])
    scenarios: list[Scenario] = []
    wrong: list[str] = []
    # All mistakes of all variants, each once.
    for variant, variant_data in expand_variants(located, wrong):
        try:
            spec = ScenarioSpec.model_validate(variant_data.data)
        except ValidationError as error:
            wrong += [describe_validation_error(variant_data, mistake) for mistake in error.errors(include_url=False)]
            continue
        checks = ScenarioChecks(variant_data, spec, folder, objects or {})
        scenarios.append(checks.check_and_build_scenario(variant))
        wrong += checks.wrong
    if wrong:
        # Variants share most of their keys, and so their mistakes.
        raise ScenarioErrors(list(dict.fromkeys(wrong)))
    return tuple(scenarios)
