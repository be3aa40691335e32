"""Variants of a scenario: the same data with other values, named one by one or as the product of listed values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from chaoslab.base.registry import did_you_mean
from chaoslab.scenarios.located import Located, Path_, ScenarioError

VARIANTS_MAX = 1000
Change = tuple[str, Any, Path_]
"""A key, its new value, and the place of that value in the file."""


def expanded(located: Located, wrong: list[str]) -> Iterator[tuple[str, Located]]:
    """The data of each variant, with its name; the data alone, without a name, if it has none. What is wrong with the
    variants is added to `wrong`."""
    data = {key: value for key, value in located.data.items() if key != "variants"}
    given = located.data.get("variants")
    base = replace(located, data=data)
    if given is None or given in ([], {}):
        yield "", base
        return
    changes = _Changes(located, base, wrong)
    found = changes.product(given) if isinstance(given, Mapping) else changes.named(given)
    begun = len(wrong)
    names: set[str] = set()
    for name, where, each in found:
        if name in names:
            changes.say((*where, "name"), f"a second variant is called '{name}'")
            continue
        names.add(name)
        one = changes.applied(each)
        if one is not None:
            yield name, one
    if not names and len(wrong) == begun:
        yield "", base


def changed(located: Located, key: str, value: Any, source: str) -> Located:
    """The data with this value of a key, which may be a fault's, as in "lost_reply.chance". `source`: the place that
    errors name. Raises ScenarioError: the key fits nowhere."""
    wrong: list[str] = []
    there = replace(located, given={**located.given, key: source})
    found = _Changes(there, there, wrong).applied([(key, value, (key,))])
    if found is None:
        raise ScenarioError(wrong[0])
    return found


def without(variants: Any, key: str, source: str) -> Any:
    """The variants without values of their own for a key that the command line gives. Raises ScenarioError: they are a
    matrix in which the key varies."""
    if isinstance(variants, Mapping) and key in variants:
        raise ScenarioError(f"{source}: {key} varies in this file: choose a variant with -k")
    if not isinstance(variants, list):
        return variants
    return [
        {name: value for name, value in each.items() if name != key} if isinstance(each, Mapping) else each
        for each in variants
    ]


class _Changes:
    def __init__(self, located: Located, base: Located, wrong: list[str]) -> None:
        from chaoslab.scenarios.spec import INSTEAD, ITS_OWN, ScenarioSpec

        self.located, self.base, self.wrong = located, base, wrong
        self.keys = [key for key in ScenarioSpec.model_fields if key not in ITS_OWN]
        self.instead = {one: other for pair in INSTEAD for one, other in (pair, pair[::-1])}

    def say(self, path: Sequence[str | int], text: str, *, of_key: bool = False) -> None:
        self.wrong.append(str(self.located.error(path, text, of_key=of_key)))

    def named(self, given: Any) -> Iterator[tuple[str, Path_, list[Change]]]:
        """The variants of a list: mappings with a name and the values that differ."""
        if not isinstance(given, list):
            self.say(("variants",), "variants should be a list of mappings, or a mapping of lists of values")
            return
        for n, each in enumerate(given):
            where: Path_ = ("variants", n)
            if not isinstance(each, Mapping):
                self.say(where, f"variants is {each!r:.60}: it should be a mapping with a name")
                continue
            name = each.get("name")
            if not isinstance(name, str) or not name.strip() or len(name) > 100:
                at = (*where, "name") if "name" in each else where
                self.say(at, "name is missing" if name is None else f"name is {name!r:.60}: it should be a short name")
            changes = [(key, value, (*where, key)) for key, value in each.items() if key != "name"]
            yield str(name), where, changes

    def product(self, given: Mapping[str, Any]) -> Iterator[tuple[str, Path_, list[Change]]]:
        """The variants of a matrix: each combination of the listed values."""
        axes = []
        for key, values in given.items():
            where = ("variants", key)
            if not isinstance(values, list) or not values:
                self.say(where, f"{key} is {values!r:.60}: in variants it should be a list of values")
                continue
            if any(value in values[:n] for n, value in enumerate(values)):
                self.say(where, f"{key} has a value twice")
                continue
            axes.append([(key, n, value) for n, value in enumerate(values)])
        if (count := prod(map(len, axes))) > VARIANTS_MAX:
            self.say(("variants",), f"these are {count} variants: {VARIANTS_MAX} at most", of_key=True)
            return
        for cell in product(*axes) if axes else ():
            name = ", ".join(f"{key}={_shown(value, n)}" for key, n, value in cell)
            yield name, ("variants",), [(key, value, ("variants", key, n)) for key, n, value in cell]

    def applied(self, changes: Sequence[Change]) -> Located | None:
        """The data with these changes, whose errors name the place of the change; None if one fits nowhere."""
        made = replace(
            self.base, data=_copy(self.base.data), marks=dict(self.base.marks), keys=dict(self.base.keys),
            given={name: each for name, each in self.base.given.items() if name not in {key for key, *_ in changes}},
        )  # fmt: skip
        fits = True
        for key, value, where in changes:
            path = self._path(key, made.data, where)
            if path is None:
                fits = False
                continue
            if (other := self.instead.get(key)) is not None:
                made.data.pop(other, None)
            at: Any = made.data
            for part in path[:-1]:
                at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
            at[path[-1]] = value
            for held in (made.marks, made.keys):
                for old in [old for old in held if old[: len(path)] == path]:
                    del held[old]
            for held, source in ((made.marks, self.located.marks), (made.keys, self.located.keys)):
                held |= {
                    (*path, *old[len(where) :]): mark for old, mark in source.items() if old[: len(where)] == where
                }
        return made if fits else None

    def _path(self, key: str, data: Mapping[str, Any], where: Path_) -> Path_ | None:
        if key in self.keys:
            return (key,)
        at = where if where in self.located.keys else where[:-1]
        owner, dot, last = key.rpartition(".")
        if not dot:
            self.say(at, f"'{key:.60}' is not known here: {did_you_mean(key, ['name', *self.keys])}", of_key=True)
            return None
        if owner in self.keys and isinstance(data.get(owner, {}), Mapping):
            return (owner, last)
        faults = data.get("faults", [])
        faults = faults if isinstance(faults, list) else []
        names = [str(each.get("name", each.get("fault"))) for each in faults if isinstance(each, Mapping)]
        if owner in names:
            return ("faults", names.index(owner), last)
        hint = did_you_mean(owner, names) if names else "there are none"
        self.say(at, f"'{key:.60}' is of no fault of this scenario: {hint}", of_key=True)
        return None


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


def _shown(value: Any, number: int) -> str:
    """The value as part of a name; its number, from 1, if it is none of one line."""
    if isinstance(value, bool | int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value if isinstance(value, str) and len(value) <= 30 and value.isprintable() else f"#{number + 1}"
