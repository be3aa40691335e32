"""Rules on effects and the end state: each public function is one."""

from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.reports.contents.advice import Advice, RuleEvidence


def repeated_effect(evidence: RuleEvidence) -> list[Advice]:
    """An effect happened more often than asked in a trial that met a fault."""
    return evidence.beside_faults(
        lambda case: case.harm and FindingKind.DUPLICATE in case.kinds,
        "Send the same Idempotency-Key with each attempt at a write, or look whether it was done before a retry.",
        "Something was done more often than asked in {size} that met {fault}.",
        at=lambda case, target: target in case.noticed.repeated,
        of_harm=True,
    )


def unasked_effect(evidence: RuleEvidence) -> list[Advice]:
    """Something was done that nobody had asked for."""
    return evidence.beside_faults(
        lambda case: case.harm and FindingKind.PHANTOM in case.kinds,
        "Confirm a write that the user did not ask for, also one that makes up for a failure.",
        "Something was done that nobody had asked for in {size} that met {fault}.",
        of_harm=True,
    )


def wrong_state(evidence: RuleEvidence) -> list[Advice]:
    """A trial that met a fault left its world in an end state that is neither the right one nor the one before."""
    return evidence.beside_faults(
        lambda case: case.harm and FindingKind.STATE in case.kinds,
        "Look at what was done before a write is tried again or made up for, and undo what was done by half.",
        "The end state was neither the right one nor the one before in {size} that met {fault}.",
    )
