"""Failures in words: where their faults hit, and what came of it."""

import re
from collections.abc import Iterable

from chaoslab.analysis.verdict.ledger import FindingKind, anywhere
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.plan import Injection
from chaoslab.search.variation import Order, Tried, Variation, lasting, site_of

_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d.,:]*")
_SEVERAL = re.compile(r"…(,? …)+")
_AGAIN = re.compile(r"\b(twice|… times)")
_ERROR = re.compile(r"\((\w+): [^)]*\)")
"""An exception with its message, in the reason for a failure."""
OF_WORLD = [*FindingKind][:6]
"""The kinds of findings that are about the world."""


def kind_of(verdict: Verdict, why: str = "") -> str:
    """The way in which a trial ended, without values, numbers and places: equal for trials that failed alike. `why`:
    the reason why it counts as a failure, if it is another than the verdict's."""
    findings = {f"{each.kind}: {_blurred(each.text)}" for each in verdict.evidence if each.kind in OF_WORLD}
    if verdict.outcome is Outcome.HARM:
        findings |= {_blurred(text) for text in verdict.harm}
    if verdict.outcome is Outcome.FAILED or not findings:
        findings.add(_blurred(verdict.why))
    if why and why != verdict.why:
        findings.add(_blurred(why))
    return f"{verdict.outcome} – {'; '.join(sorted(findings))}"


def _blurred(text: str) -> str:
    return _AGAIN.sub("again", _SEVERAL.sub("…", _VALUES.sub("…", _ERROR.sub(r"(\1)", anywhere(text)))))


def cause_text(tried: Tried) -> str:
    """The cause of a failure in one line, as in "exception at a 1 and at b 1: pay twice"."""
    return f"{where(tried.variation)}: {anywhere(tried.harm[0]) if tried.harm else anywhere(tried.why)}"


def where(variation: Variation) -> str:
    """The faults and the orders of a variation, as in "exception at a 1 and at b 1"."""
    by_fault: dict[str, list[str]] = {}
    for injection in variation.injections:
        by_fault.setdefault(_fault(injection), []).append(_place(injection))
    found = [f"{fault} {' and '.join(places)}" for fault, places in by_fault.items()]
    found += orders(variation.order or ())
    return " and ".join(found) or "no fault at all"


def orders(order: Order) -> Iterable[str]:
    """Each order in words."""
    return [f"the order {', '.join(names)}" for _, names in order]


def _fault(injection: Injection) -> str:
    (choice, *others) = injection.choices
    own = injection.triggers.items()
    lasts = {key: value for key, value in own if key == "persistence" and not lasting(injection)}
    params = ", ".join(f"{key}={value}" for key, value in {**choice.params, **lasts}.items())
    return f"{choice.fault}{f' ({params})' if params else ''}{' or another' if others else ''}"


def _place(injection: Injection) -> str:
    where = str(site_of(injection)) if len(injection.calls) == 1 else f"{', '.join(injection.targets)}"
    return f"from {where} on" if lasting(injection) else f"at {where}"
