"""A planned experiment, as data, and `enhance`, which fills in what it lacks from what is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from chaoslab.base import parsers
from chaoslab.base.jsonable import shown
from chaoslab.base.registry import did_you_mean
from chaoslab.core.inject import inject
from chaoslab.core.limits import Limits
from chaoslab.search.planning import hooks
from chaoslab.search.planning._risk import Risk, risk_of
from chaoslab.search.planning.cells import ONCE, Cell
from chaoslab.search.planning.evidence import Evidence, Experiment
from chaoslab.search.planning.posterior import Posteriors


def _frozen(value: Mapping[str, Any]) -> Mapping[str, Any]:
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
        object.__setattr__(self, "params", _frozen(self.params))
        object.__setattr__(self, "limits", _frozen(self.limits))

    @classmethod
    def of(cls, given: "Design | Cell | Mapping[str, Any]") -> "Design":
        """The design of a mapping with the fields' names; its texts may have units: "5m", "0.2s", "10%". Raises
        ValueError, LookupError: a field, a fault, a parameter or a value that there is none of; one line."""
        if isinstance(given, Cell):
            given = {"target": given.target, "fault": given.fault, "how": given.how, "params": given.parameters}
        if not isinstance(given, Design):
            data, names = dict(given), [each.name for each in fields(cls)]
            for name in data:
                if name not in names:
                    raise LookupError(f"an experiment has no {shown(name)}: {did_you_mean(str(name), names)}")
            for name in ("target", "fault"):
                if not isinstance(data.get(name), str) or not data[name]:
                    raise ValueError(f"an experiment needs its {name}, as a name")
            params, limits = data.get("params") or {}, data.get("limits") or {}
            if not isinstance(params, Mapping):
                raise ValueError(f"params is {shown(params)}: it should be names with values")
            data["params"] = {str(key): number(f"params.{key}", value) for key, value in params.items()}
            read = Limits.of(limits)
            data["limits"] = {key: getattr(read, key) for key in limits}
            if data.get("deadline_s") is not None:
                data["deadline_s"] = number("deadline_s", data["deadline_s"])
            given = cls(**{**data, "stop": tuple(data.get("stop") or ()), "watch": tuple(data.get("watch") or ())})
        else:
            _ = given.within
        if given.how is not None:
            hooks.load_of("experiments", given.how)
        inject(given.fault, given.target, **given.params)
        return given

    @property
    def within(self) -> Limits:
        """The limits of its run."""
        return Limits.of(self.limits)

    @property
    def cell(self) -> Cell:
        return Cell.of(self.target, self.fault, self.params, self.how or ONCE)


def number(name: str, value: Any) -> Any:
    """The value; that of a text with a unit as a number: seconds, or a share for %. Other texts stay as they are.
    Raises ValueError: a text that should be a number and is none; the line says what would be right."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        if text.endswith("%"):
            return parsers.bounded(text[:-1], 0.0, 100.0, "a share from 0% to 100%") / 100
        if name.endswith("_s"):
            return float(text) if text.replace(".", "", 1).isdigit() else parsers.duration(text)
    except ValueError as error:
        raise ValueError(f"{name} is {shown(value)}: it should be {error}") from None
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
class DesignQuestion:
    """The question to an enhancement: the subject, all evidence, and the risk of the design as it is."""

    subject: str
    evidence: Evidence
    posteriors: Posteriors
    risk: Risk


@dataclass(frozen=True)
class Enhanced:
    """A design with everything filled in, and the changes."""

    design: Design
    changes: Sequence[DesignChange]
    risk: Risk

    def __str__(self) -> str:
        return "\n".join([f"{self.design.cell}, risk {self.risk}", *map(str, self.changes)])


def enhance(
    given: Design | Cell | Mapping[str, Any], evidence: Evidence, subject: str, *, posteriors: Posteriors | None = None
) -> Enhanced:
    """A new design with what was missing filled in by the enhancements, and each change with its evidence. What was
    given is left as it is, and nothing that is stated is changed. Raises ValueError, LookupError: as `Design.of`.
    BrokenPlugin: an enhancement raised."""
    design, changes = Design.of(given), list[DesignChange]()
    posteriors = posteriors or Posteriors(evidence, subject)
    for name, each in hooks.all_of("enhancements"):
        known = DesignQuestion(
            subject, evidence, posteriors, risk_of(posteriors, design.cell, share=design.within.share)
        )
        for what, value, why in hooks.ask_plugin("enhancements", name, partial(_filled, each, design, known)):
            before: Any = getattr(design, what)
            if isinstance(before, Mapping):
                new = {key: value[key] for key in value if key not in before}
                changes += [DesignChange(f"{what}.{key}", None, new[key], why) for key in new]
                design = _with(design, what, {**before, **new})
            elif before in (None, ()):
                changes.append(DesignChange(what, before, value, why))
                design = _with(design, what, value)
    return Enhanced(design, changes, risk_of(posteriors, design.cell, share=design.within.share))


def _filled(enhancement: Any, design: Design, known: DesignQuestion) -> list[tuple[str, Any, str]]:
    return [*enhancement.of(design, known)]


def _with(design: Design, field: str, value: Any) -> Design:
    given: dict[str, Any] = {field: value}
    return replace(design, **given)


def at_target(evidence: Evidence, subject: str, target: str) -> Iterator[Experiment]:
    """The rows of a subject at a target."""
    there = evidence.by_subject.get(subject, ())
    return (each for each in there if each.cell is not None and each.cell.target == target)
