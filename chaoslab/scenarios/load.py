"""Reads and checks scenarios. Nothing of the user's code is imported. Mistakes in the part whose types are right are
told with those of the types."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.parsers import closest
from chaoslab.scenarios._variants import changed as changed_in
from chaoslab.scenarios._variants import expanded, without
from chaoslab.scenarios.checks import Checks
from chaoslab.scenarios.located import Located, Path_, ScenarioError, parse, read
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.words import fields, path_of, worded

if TYPE_CHECKING:
    from pydantic import ValidationError

    from chaoslab.scenarios.spec import ScenarioSpec


LISTS = ("faults", "turns", "operations", "user", "slo", "expect", "tools", "reads", "models")
"""The keys of which single entries are left out."""
ANY = "*"


@dataclass(frozen=True)
class Sound:
    """The data without what is wrong, and its spec. `lost`: the keys of which something was left out, and those that an
    unknown key may have meant."""

    located: Located
    spec: "ScenarioSpec"
    lost: Set[str]


def sound(located: Located, error: "ValidationError") -> Sound | None:
    """The part of the data that the error is not about; None if there is none."""
    from pydantic import ValidationError

    from chaoslab.scenarios.spec import ScenarioSpec

    bad: set[Path_] = set()
    lost: set[str] = set()
    put: dict[Path_, Any] = {}
    for each in error.errors(include_url=False):
        path = path_of(located.data, each["loc"])
        lost.add(str(path[0]))
        if len(path) == 1 and each["type"] == "extra_forbidden":
            lost.add(closest(str(path[0]), fields(path)))
        if path == ("name",):
            put[path] = "unnamed"
        elif path[0] == "faults" and path[2:3] == ("target",) and isinstance(located.data["faults"][path[1]], dict):
            put[path[:3]] = ANY
            put.setdefault((*path[:2], "name"), f"faults {path[1]}")
        else:
            bad.add(path[:2] if path[0] in LISTS else path[:1])
    made = _without(located, bad, put)
    try:
        return Sound(made, ScenarioSpec.model_validate(made.data), lost)
    except ValidationError:
        return None


def _without(located: Located, bad: Set[Path_], put: dict[Path_, Any]) -> Located:
    """The data without the values at some paths, and with others put in. Errors about the rest name the old places."""
    marks: dict[Path_, tuple[int, int]] = {}
    keys: dict[Path_, tuple[int, int]] = {}

    def copied(value: Any, old: Path_, new: Path_) -> Any:
        for held, source in ((marks, located.marks), (keys, located.keys)):
            if old in source:
                held[new] = source[old]
        if isinstance(value, dict):
            found = {
                key: copied(each, (*old, key), (*new, key))
                for key, each in value.items()
                if (*old, key) not in bad and (*old, key) not in put
            }
            return found | {path[-1]: each for path, each in put.items() if path[:-1] == old}
        if isinstance(value, list):
            kept = [n for n in range(len(value)) if (*old, n) not in bad]
            return [copied(value[n], (*old, n), (*new, at)) for at, n in enumerate(kept)]
        return value

    return replace(located, data=copied(located.data, (), ()), marks=marks, keys=keys)


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
            if (rest := sound(one, error)) is not None:
                checks = Checks(rest.located, rest.spec, folder, objects or {}, rest.lost)
                checks.scenario(variant)
                wrong += checks.wrong
            continue
        checks = Checks(one, spec, folder, objects or {})
        made.append(checks.scenario(variant))
        wrong += checks.wrong
    if wrong:
        raise ScenarioErrors(list(dict.fromkeys(wrong)))
    return tuple(made)
