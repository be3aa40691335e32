"""Failures in words: where their faults hit, and what came of it."""

import re
from collections.abc import Iterable

from chaoslab.analysis.verdict.ledger import FindingKind, strip_varying_details
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.plan import Injection
from chaoslab.search.variation import Order, TriedVariation, Variation, get_injection_site, is_lasting_injection

_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d.,:]*")
_SEVERAL = re.compile(r"…(,? …)+")
_AGAIN = re.compile(r"\b(twice|… times)")
_ERROR = re.compile(r"\((\w+): [^)]*\)")
"""An exception with its message, in the reason for a failure."""
OF_WORLD = [*FindingKind][:6]
"""The kinds of findings that are about the world."""


def describe_failure_kind(verdict: Verdict, reason: str = "") -> str:
    """The way in which a trial ended, without values, numbers and places: equal for trials that failed alike. `reason`:
    the reason why it counts as a failure, if it is another than the verdict's."""
    findings = {
        f"{finding.kind}: {_drop_varying_parts(finding.text)}"
        for finding in verdict.evidence
        if finding.kind in OF_WORLD
    }
    if verdict.outcome is Outcome.HARM:
        findings |= {_drop_varying_parts(text) for text in verdict.harm}
    if verdict.outcome is Outcome.FAILED or not findings:
        findings.add(_drop_varying_parts(verdict.why))
    if reason and reason != verdict.why:
        findings.add(_drop_varying_parts(reason))
    return f"{verdict.outcome} – {'; '.join(sorted(findings))}"


def _drop_varying_parts(text: str) -> str:
    return _AGAIN.sub("again", _SEVERAL.sub("…", _VALUES.sub("…", _ERROR.sub(r"(\1)", strip_varying_details(text)))))


def describe_cause(tried: TriedVariation) -> str:
    """The cause of a failure in one line, as in "exception at a 1 and at b 1: pay twice"."""
    return (
        f"{describe_variation(tried.variation)}: "
        f"{strip_varying_details(tried.harm[0]) if tried.harm else strip_varying_details(tried.why)}"
    )


def describe_variation(variation: Variation) -> str:
    """The faults and the orders of a variation, as in "exception at a 1 and at b 1"."""
    by_fault: dict[str, list[str]] = {}
    for injection in variation.injections:
        by_fault.setdefault(_describe_fault(injection), []).append(_describe_place(injection))
    texts = [f"{fault} {' and '.join(places)}" for fault, places in by_fault.items()]
    texts += describe_call_orders(variation.order or ())
    return " and ".join(texts) or "no fault at all"


def describe_call_orders(order: Order) -> Iterable[str]:
    """Each order in words."""
    return [f"the order {', '.join(names)}" for _, names in order]


def _describe_fault(injection: Injection) -> str:
    (choice, *alternatives) = injection.choices
    triggers = injection.triggers.items()
    lasts = {key: value for key, value in triggers if key == "persistence" and not is_lasting_injection(injection)}
    params = ", ".join(f"{key}={value}" for key, value in {**choice.params, **lasts}.items())
    return f"{choice.fault}{f' ({params})' if params else ''}{' or another' if alternatives else ''}"


def _describe_place(injection: Injection) -> str:
    site = str(get_injection_site(injection)) if len(injection.calls) == 1 else f"{', '.join(injection.targets)}"
    return f"from {site} on" if is_lasting_injection(injection) else f"at {site}"
