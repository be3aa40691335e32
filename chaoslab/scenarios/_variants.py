"""Variants of a scenario: the same data with other values, named one by one or as the product of listed values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from chaoslab.base.registry import suggest_name
from chaoslab.scenarios.located import Located, Path_, ScenarioError

VARIANTS_MAX = 1000
Change = tuple[str, Any, Path_]
"""A key, its new value, and the place of that value in the file."""


def expand_variants(located: Located, wrong: list[str]) -> Iterator[tuple[str, Located]]:
    """The data of each variant, with its name; the data alone, without a name, if it has none. What is wrong with the
    variants is added to `wrong`."""
    data = {key: value for key, value in located.data.items() if key != "variants"}
    variants = located.data.get("variants")
    base = replace(located, data=data)
    if variants is None or variants in ([], {}):
        yield "", base
        return
    changes = _VariantExpander(located, base, wrong)
    change_sets = (
        changes.iterate_matrix_variants(variants)
        if isinstance(variants, Mapping)
        else changes.iterate_named_variants(variants)
    )
    wrong_before = len(wrong)
    names: set[str] = set()
    for name, location, change_list in change_sets:
        if name in names:
            changes.add_error((*location, "name"), f"a second variant is called '{name}'")
            continue
        names.add(name)
        variant = changes.apply_changes(change_list)
        if variant is not None:
            yield name, variant
    if not names and len(wrong) == wrong_before:
        yield "", base


def set_scenario_key(located: Located, key: str, value: Any, source: str) -> Located:
    """The data with this value of a key, which may be a fault's, as in "lost_reply.chance". `source`: the place that
    errors name. Raises ScenarioError: the key fits nowhere."""
    wrong: list[str] = []
    with_source = replace(located, given={**located.given, key: source})
    changed_data = _VariantExpander(with_source, with_source, wrong).apply_changes([(key, value, (key,))])
    if changed_data is None:
        raise ScenarioError(wrong[0])
    return changed_data


def drop_key_from_variants(variants: Any, key: str, source: str) -> Any:
    """The variants without values of their own for a key that the command line gives. Raises ScenarioError: they are a
    matrix in which the key varies."""
    if isinstance(variants, Mapping) and key in variants:
        raise ScenarioError(f"{source}: {key} varies in this file: choose a variant with -k")
    if not isinstance(variants, list):
        return variants
    return [
        {name: value for name, value in variant.items() if name != key} if isinstance(variant, Mapping) else variant
        for variant in variants
    ]


class _VariantExpander:
    def __init__(self, located: Located, base: Located, wrong: list[str]) -> None:
        from chaoslab.scenarios.spec import INSTEAD, ITS_OWN, ScenarioSpec

        self.located, self.base, self.wrong = located, base, wrong
        self.keys = [key for key in ScenarioSpec.model_fields if key not in ITS_OWN]
        self.instead = {name: alternative for pair in INSTEAD for name, alternative in (pair, pair[::-1])}

    def add_error(self, path: Sequence[str | int], text: str) -> None:
        self.wrong.append(str(self.located.make_error(path, text)))

    def iterate_named_variants(self, variants: Any) -> Iterator[tuple[str, Path_, list[Change]]]:
        """The variants of a list: mappings with a name and the values that differ."""
        if not isinstance(variants, list):
            self.add_error(("variants",), "variants should be a list of mappings, or a mapping of lists of values")
            return
        for n, variant in enumerate(variants):
            location: Path_ = ("variants", n)
            if not isinstance(variant, Mapping):
                self.add_error(location, f"variants is {variant!r:.60}: it should be a mapping with a name")
                continue
            name = variant.get("name")
            if not isinstance(name, str) or not name.strip() or len(name) > 100:
                at = (*location, "name") if "name" in variant else location
                self.add_error(
                    at, "name is missing" if name is None else f"name is {name!r:.60}: it should be a short name"
                )
            changes = [(key, value, (*location, key)) for key, value in variant.items() if key != "name"]
            yield str(name), location, changes

    def iterate_matrix_variants(self, lists: Mapping[str, Any]) -> Iterator[tuple[str, Path_, list[Change]]]:
        """The variants of a matrix: each combination of the listed values."""
        axes = []
        for key, values in lists.items():
            location = ("variants", key)
            if not isinstance(values, list) or not values:
                self.add_error(location, f"{key} is {values!r:.60}: in variants it should be a list of values")
                continue
            if any(value in values[:n] for n, value in enumerate(values)):
                self.add_error(location, f"{key} has a value twice")
                continue
            axes.append([(key, n, value) for n, value in enumerate(values)])
        if (count := prod(map(len, axes))) > VARIANTS_MAX:
            self.add_error(("variants",), f"these are {count} variants: {VARIANTS_MAX} at most")
            return
        for cell in product(*axes) if axes else ():
            name = ", ".join(f"{key}={_format_value_name(value, n)}" for key, n, value in cell)
            yield name, ("variants",), [(key, value, ("variants", key, n)) for key, n, value in cell]

    def apply_changes(self, changes: Sequence[Change]) -> Located | None:
        """The data with these changes, whose errors name the place of the change; None if one fits nowhere."""
        data, marks, fits = _deep_copy(self.base.data), dict(self.base.marks), True
        for key, value, location in changes:
            path = self._find_key_path(key, data, location)
            if path is None:
                fits = False
                continue
            if (alternative := self.instead.get(key)) is not None:
                data.pop(alternative, None)
            holder: Any = data
            for step in path[:-1]:
                holder = holder.setdefault(step, {}) if isinstance(holder, dict) else holder[step]
            holder[path[-1]] = value
            marks = {place: mark for place, mark in marks.items() if place[: len(path)] != path}
            marks |= {
                (*path, *place[len(location) :]): mark
                for place, mark in self.located.marks.items()
                if place[: len(location)] == location
            }
        keys = {key for key, *_ in changes}
        given = {name: origin for name, origin in self.base.given.items() if name not in keys}
        return replace(self.base, data=data, marks=marks, given=given) if fits else None

    def _find_key_path(self, key: str, data: Mapping[str, Any], location: Path_) -> Path_ | None:
        if key in self.keys:
            return (key,)
        key_location = location if isinstance(location[-1], str) else location[:-1]  # an entry of a matrix
        owner, dot, last = key.rpartition(".")
        if not dot:
            self.add_error(key_location, f"'{key:.60}' is not known here: {suggest_name(key, ['name', *self.keys])}")
            return None
        if owner in self.keys and isinstance(data.get(owner, {}), Mapping):
            return (owner, last)
        faults = data.get("faults", [])
        faults = faults if isinstance(faults, list) else []
        names = [str(fault.get("name", fault.get("fault"))) for fault in faults if isinstance(fault, Mapping)]
        if owner in names:
            return ("faults", names.index(owner), last)
        hint = suggest_name(owner, names) if names else "there are none"
        self.add_error(key_location, f"'{key:.60}' is of no fault of this scenario: {hint}")
        return None


def _deep_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list) else value


def _format_value_name(value: Any, number: int) -> str:
    """The value as part of a name; its number, from 1, if it is none of one line."""
    if isinstance(value, bool | int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value if isinstance(value, str) and len(value) <= 30 and value.isprintable() else f"#{number + 1}"
