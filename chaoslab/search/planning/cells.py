"""A cell of the space of experiments: a fault at a target, of one kind, with the bucket of its parameters. Doses in
seconds of one power of two share a bucket: 0.5 s and 0.6 s do, 0.4 s and 0.6 s do not. Other parameters are of one
bucket if they are equal. A parameter that has its default is left out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

from chaoslab.base.durations import format_duration
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection

ONCE, ALWAYS = KINDS = ("once", "always")
"""The kinds of experiment: the first call of the target meets the fault, or each, retries included."""


def classify_once_or_always(injection: Mapping[str, Any]) -> str:
    """The kind of experiment that an injection makes, by its fields."""
    always = injection.get("chance") == 1 and not injection.get("calls") and not injection.get("triggers")
    return ALWAYS if always else ONCE


@dataclass(frozen=True, order=True)
class Cell:
    """One cell. `how`: the kind of experiment. `params`: those that differ from their defaults, by name, sorted;
    `dose`: the seconds of the parameter that decides if the caller gives up, if the fault has one."""

    target: str
    fault: str
    how: str = ONCE
    params: tuple[tuple[str, Any], ...] = ()
    dose: float | None = None

    @classmethod
    def build(cls, target: str, fault: str, params: Mapping[str, Any], how: str = ONCE) -> "Cell":
        """The cell of a fault that was drawn with these parameters, defaults included."""
        dosed, defaults = _load_dose_and_defaults(fault)
        value = params.get(dosed, defaults.get(dosed))
        dose = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        other_params = {key: value for key, value in params.items() if key != dosed and defaults.get(key, ...) != value}
        return cls(
            target, fault, how, tuple((key, _to_json_value(other_params[key])) for key in sorted(other_params)), dose
        )

    @property
    def parameters_for_inject(self) -> dict[str, Any]:
        """The parameters for `inject`."""
        dosed, defaults = _load_dose_and_defaults(self.fault)
        params = dict(self.params)
        return params if self.dose is None or self.dose == defaults.get(dosed) else {**params, dosed: self.dose}

    @property
    def dose_parameter(self) -> str:
        """The name of the parameter that is its dose; empty if it has none."""
        return get_dose_parameter(self.fault)

    @property
    def injection(self) -> Injection:
        """The injection that makes it."""
        extra: dict[str, Any] = {"calls": [1]} if self.how == ONCE else {}
        return inject(self.fault, self.target, **extra, **self.parameters_for_inject)

    @cached_property
    def dose_bucket_cell(self) -> "Cell":
        """The cell with the least dose of its bucket: equal for cells of one."""
        # Zero has no logarithm.
        if not self.dose or self.dose < 0:
            return self
        return replace(self, dose=2.0 ** math.floor(math.log2(self.dose)))

    def __str__(self) -> str:
        texts = [f"{self.dose_parameter}={format_duration(self.dose)}"] if self.dose is not None else []
        texts += [f"{key}={value}" for key, value in self.params]
        details = f" ({', '.join(texts)})" if texts else ""
        return f"{self.fault}{details} at {self.target}, {self.how}"


def _to_json_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@cache
def _load_dose_and_defaults(fault: str) -> tuple[str, Mapping[str, Any]]:
    """The name of a fault's dose, and the defaults of its parameters; none of a fault that is not installed here."""
    try:
        kind: Any = load_fault(fault)
        instance = kind()
    except (LookupError, TypeError, ValueError):
        return "", {}
    return get_trait(kind, "dose"), {member.name: getattr(instance, member.name) for member in fields(kind)}


def get_dose_parameter(fault: str) -> str:
    """The name of the parameter that is a fault's dose; empty if it has none."""
    return _load_dose_and_defaults(fault)[0]


def load_fault_class(fault: str) -> Any:
    """The class of a fault; None if it is not installed here."""
    try:
        return load_fault(fault)
    except LookupError:
        return None
