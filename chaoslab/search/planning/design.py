"""A planned experiment, as data, and `fill_missing_fields`, which fills in what it lacks from what is known."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import sqrt
from types import MappingProxyType
from typing import Any

from chaoslab.base import parsers
from chaoslab.base.durations import format_duration
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.core.inject import inject
from chaoslab.core.limits import Limits
from chaoslab.search.planning._risk import Risk, compute_risk
from chaoslab.search.planning.cells import ALWAYS, KINDS, ONCE, Cell, get_dose_parameter
from chaoslab.search.planning.chances import Chances
from chaoslab.search.planning.evidence import Evidence


def _freeze(value: Mapping[str, Any]) -> Mapping[str, Any]:
    # A copy, since the caller may go on changing its own.
    return MappingProxyType(dict(value))


@dataclass(frozen=True)
class Design:
    """A planned experiment. What is None or empty is missing, and may be filled in.

    `how`: the kind, once or always. `params`: the fault's own. `deadline_s`: the seconds that a trial may take.
    `limits`: those of its run, by the names of `core.limits`, as in {"share": 0.1, "at_once": 1}. `stop`: conditions
    that end it, as in "harm > 0". `watch`: what to look at meanwhile.
    """

    target: str
    fault: str
    how: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", _freeze(self.params))
        object.__setattr__(self, "limits", _freeze(self.limits))

    @classmethod
    def build_from_fields(cls, given: "Design | Cell | Mapping[str, Any]") -> "Design":
        """The design of a mapping with the fields' names; its texts may have units: "5m", "0.2s", "10%". Raises
        ValueError, LookupError: a field, a fault, a parameter or a value that there is none of; one line."""
        if isinstance(given, Cell):
            given = {
                "target": given.target,
                "fault": given.fault,
                "how": given.how,
                "params": given.parameters_for_inject,
            }
        if not isinstance(given, Design):
            data, names = dict(given), [member.name for member in fields(cls)]
            for name in data:
                if name not in names:
                    raise LookupError(f"an experiment has no {repr_one_line(name)}: {suggest_name(str(name), names)}")
            for name in ("target", "fault"):
                if not isinstance(data.get(name), str) or not data[name]:
                    raise ValueError(f"an experiment needs its {name}, as a name")
            params, limits = data.get("params") or {}, data.get("limits") or {}
            if not isinstance(params, Mapping):
                raise ValueError(f"params is {repr_one_line(params)}: it should be names with values")
            data["params"] = {str(key): parse_field_value(f"params.{key}", value) for key, value in params.items()}
            read = Limits.build(limits)
            data["limits"] = {key: getattr(read, key) for key in limits}
            if data.get("deadline_s") is not None:
                data["deadline_s"] = parse_field_value("deadline_s", data["deadline_s"])
            given = cls(**{**data, "stop": tuple(data.get("stop") or ()), "watch": tuple(data.get("watch") or ())})
        else:
            # For what it raises: limits of a design that was made directly were read by nobody yet.
            _ = given.run_limits
        if given.how is not None and given.how not in KINDS:
            raise LookupError(
                f"no experiment is of the kind {repr_one_line(given.how)}: {suggest_name(str(given.how), KINDS)}"
            )
        # Only checked: it raises where the fault takes no such parameter.
        inject(given.fault, given.target, **given.params)
        return given

    @property
    def run_limits(self) -> Limits:
        """The limits of its run."""
        return Limits.build(self.limits)

    @property
    def cell(self) -> Cell:
        return Cell.build(self.target, self.fault, self.params, self.how or ONCE)


def parse_field_value(name: str, value: Any) -> Any:
    """The value; that of a text with a unit as a number: seconds, or a share for %. Other texts stay as they are.
    Raises ValueError: a text that should be a number and is none; the line says what would be right."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        if text.endswith("%"):
            return parsers.parse_bounded_number(text[:-1], 0.0, 100.0, "a share from 0% to 100%") / 100
        if name.endswith("_s"):
            # The parser of durations takes no number without a unit; here it is seconds, as the name says.
            return float(text) if text.replace(".", "", 1).isdigit() else parsers.parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{name} is {repr_one_line(value)}: it should be {error}") from None
    return value


@dataclass(frozen=True)
class DesignChange:
    """One thing that was filled in: the field, its value before and after, and the evidence in one line."""

    what: str
    before: Any
    after: Any
    evidence: str

    def __str__(self) -> str:
        was = "" if self.before in (None, ()) else f" (was {self.before})"
        after = ", ".join(self.after) if isinstance(self.after, tuple) else self.after
        return f"{self.what}: {after}{was}: {self.evidence}"


@dataclass(frozen=True)
class Enhanced:
    """A design with everything filled in, and the changes."""

    design: Design
    changes: Sequence[DesignChange]
    risk: Risk

    def __str__(self) -> str:
        return "\n".join([f"{self.design.cell}, risk {self.risk}", *map(str, self.changes)])


def fill_missing_fields(
    given: Design | Cell | Mapping[str, Any], evidence: Evidence, *, chances: Chances | None = None
) -> Enhanced:
    """A new design with what was missing filled in, and each change with its evidence. What was given is left as it
    is, and nothing that is stated is changed. Raises ValueError, LookupError: as `Design.build_from_fields`."""
    design, changes = Design.build_from_fields(given), list[DesignChange]()
    chances = chances or Chances(evidence)
    # The dose first, since the deadline and the risk depend on it.
    for fill in (_fill_dose, _fill_deadline, _fill_watched_targets, _fill_how_often, _fill_safety_limits):
        risk = compute_risk(chances, design.cell, share=design.run_limits.share)
        for field_name, value, reason in fill(design, evidence, risk):
            before: Any = getattr(design, field_name)
            if isinstance(before, Mapping):
                new = {key: value[key] for key in value if key not in before}
                changes += [DesignChange(f"{field_name}.{key}", None, new[key], reason) for key in new]
                design = _replace_field(design, field_name, {**before, **new})
            elif before in (None, ()):
                changes.append(DesignChange(field_name, before, value, reason))
                design = _replace_field(design, field_name, value)
    return Enhanced(design, changes, compute_risk(chances, design.cell, share=design.run_limits.share))


def _replace_field(design: Design, field: str, value: Any) -> Design:
    changes: dict[str, Any] = {field: value}
    return replace(design, **changes)


# What is filled in: a field, its value and the evidence.

Filled = Iterator[tuple[str, Any, str]]
LEAST_S = 1.0
RISKY = 0.3
"""The risk from which on an experiment is held to a part of the traffic."""


def _fill_dose(design: Design, evidence: Evidence, risk: Risk) -> Filled:  # noqa: ARG001
    """The informative edge: between the largest known safe dose and the smallest known unsafe one."""
    name = get_dose_parameter(design.fault)
    if not name or name in design.params or design.params.get("preset"):
        return
    dose_range = evidence.get_dose_range(design.cell)
    if dose_range.next_dose is not None and dose_range.safe_and_unsafe_dose != (None, None):
        yield (
            "params",
            {name: dose_range.next_dose},
            f"{dose_range}; halfway is {format_duration(dose_range.next_dose)}",
        )
    elif dose_range.estimated_edge is not None:
        yield "params", {name: round(dose_range.estimated_edge, 3)}, f"{dose_range}, which is known within 15 %"


def _fill_deadline(design: Design, evidence: Evidence, risk: Risk) -> Filled:  # noqa: ARG001
    """The mean of the past trials at the target, and three standard deviations and the fault's own time more."""
    rows = [*evidence.list_rows_at(design.target)]
    count = sum(row.timed for row in rows)
    # One trial has no spread.
    if count < 2:
        return
    mean = sum(row.seconds for row in rows) / count
    # Rounding may leave a variance a little below 0.
    spread = sqrt(max(0.0, sum(row.squares for row in rows) / count - mean * mean))
    dose_s = design.cell.dose or 0.0
    value = round(max(LEAST_S, mean + 3 * spread) + dose_s, 1)
    extra = f", and the fault takes {format_duration(dose_s)}" if dose_s else ""
    yield "deadline_s", value, f"{count} past trials took {format_duration(mean)} ± {format_duration(spread)}{extra}"


def _fill_watched_targets(design: Design, evidence: Evidence, risk: Risk) -> Filled:  # noqa: ARG001
    """The calls of the target and its effects, and the targets whose calls failed with it before."""
    failed, calls = Counter[str](), Counter[str]()
    for row in evidence.list_rows_at(design.target):
        for target, (lost, _, all_) in row.affected.items():
            failed[target] += lost
            calls[target] += all_
    failed_targets = [(name, count) for name, count in failed.most_common() if count]
    effects = ["its effects"] if evidence.has_effects(design.target) else []
    watch = (f"calls of {design.target}", *effects, *(f"calls of {name}" for name, _ in failed_targets))
    explanation = ", ".join(
        f"those of {name} failed with it {count} of {calls[name]} times" for name, count in failed_targets
    )
    yield "watch", watch, explanation or "no other target is known to fail with it"


def _fill_how_often(design: Design, evidence: Evidence, risk: Risk) -> Filled:  # noqa: ARG001
    """A fault that was survived when it came once is tried again as one that stays; else once is enough."""
    once = evidence.cells.get(Cell.build(design.target, design.fault, design.params).dose_bucket_cell)
    if once is not None and not once.bad:
        yield "how", ALWAYS, f"once was survived {once.tried} times, so a retry may be what saves it"
    elif once is not None:
        yield "how", ONCE, f"a known pattern: once broke it {once.bad} of {once.tried} times"
    else:
        yield "how", ONCE, "nothing is known: the mildest kind comes first"


def _fill_safety_limits(design: Design, evidence: Evidence, risk: Risk) -> Filled:  # noqa: ARG001
    """At most a tenth of the traffic and one fault at a time where the risk is high; an end with the first harm."""
    if risk.value >= RISKY:
        yield "limits", {"share": 0.1, "at_once": 1}, f"the risk is {risk.value:.2f}, {RISKY} or more"
    yield "stop", ("harm > 0",), f"the chance of harm is {risk.harm:.0%}"
