"""The part of a scenario's data whose types are right, so that the mistakes in it are told with those of the types."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chaoslab.base.parsers import closest
from chaoslab.scenarios.located import Located, Path_
from chaoslab.scenarios.words import fields, path_of

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
    spec: ScenarioSpec
    lost: Set[str]


def sound(located: Located, error: ValidationError) -> Sound | None:
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
