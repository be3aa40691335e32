"""Rules on effects and the end state."""

from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.reports.contents.advice import FaultRule

repeated_effect = FaultRule(
    lambda case: case.harm and FindingKind.DUPLICATE in case.finding_kinds,
    "Send the same Idempotency-Key with every attempt at a write, or check whether it was done before retrying.",
    "Something was done more often than requested in {size} that met {fault}.",
    at=lambda case, target: target in case.noticed.repeated,
    of_harm=True,
)
unasked_effect = FaultRule(
    lambda case: case.harm and FindingKind.PHANTOM in case.finding_kinds,
    "Have the user confirm a write that was not requested, including one that compensates for a failure.",
    "Something was done that was not requested in {size} that met {fault}.",
    of_harm=True,
)
wrong_state = FaultRule(
    lambda case: case.harm and FindingKind.STATE in case.finding_kinds,
    "Before retrying or compensating a write, check what was done, and undo what was half done.",
    "The end state was neither the expected one nor the initial one in {size} that met {fault}.",
)
