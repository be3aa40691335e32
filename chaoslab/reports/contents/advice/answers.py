"""Rules on the agent's answer."""

from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.table import Outcome, Said
from chaoslab.analysis.verdict.traits import find_fault_layer, get_replacement_kind
from chaoslab.reports.contents.advice import Case, FaultRule


def _is_context_fault(fault: str) -> bool:
    return find_fault_layer(fault) == "context"


def _has_wrong_value(case: Case) -> bool:
    """True if a value took the place of the right one. One that is only missing was not passed on; an answer that lacks
    a stated fact is wrong only if it has a value of its own."""
    return any(
        kind in (FindingKind.ALTERED, FindingKind.STATE)
        # A value that is only missing was not passed on.
        or (kind == FindingKind.VALUE and " instead of " in text)
        or (kind == FindingKind.FACT and case.said is Said.WRONG)
        for kind, text in case.evidence
    )


def _has_silent_omission(kinds: set[str]) -> bool:
    """True if the answer lacks or alters something and admits nothing. An answer that also has another value has a
    finding on its admission."""
    if {FindingKind.VALUE, FindingKind.ADMISSION} <= kinds:
        return False
    return bool({FindingKind.FACT, FindingKind.VALUE} & kinds)


cut_stream = FaultRule(
    # A silent answer took nothing from the reply.
    lambda case: case.did_mislead_or_harm and case.has_missing_or_wrong_value and not case.noticed.silent,
    "Check the finish reason and the stream's last event; without them, retry instead of answering.",
    "A truncated reply was accepted, and the answer was wrong, in {size} that met {fault}.",
    of=lambda fault: get_replacement_kind(fault) == "part",
    there=lambda case, fault: fault in case.noticed.taken,
)
empty_answer = FaultRule(
    lambda case: case.noticed.ended_ok and case.noticed.silent,
    "Check the final answer before sending it: if it is empty, say what failed.",
    "The agent ended without an answer in {size} that met {fault}.",
)
empty_reply = FaultRule(
    lambda case: case.did_mislead_or_harm and case.has_missing_or_wrong_value,
    "Treat an empty reply as a failed call: retry once, then tell the user that there is no result.",
    "An empty reply was accepted, and the answer or an effect was wrong, in {size} that met {fault}.",
    of=lambda fault: get_replacement_kind(fault) == "nothing",
    # Who gave the attempt up as empty has noticed it.
    there=lambda case, fault: fault in case.noticed.taken and not case.noticed.empty,
)
failed_value = FaultRule(
    lambda case: (
        case.harm and FindingKind.ALTERED in case.finding_kinds and FindingKind.DUPLICATE not in case.finding_kinds
    ),
    "Do not act on the value of a failed call: substitute no default, cache nothing, and say what is missing.",
    "A call failed, and an effect had another value, in {size} that met {fault}.",
    # A reply that was taken is another rule's: its value came from the service.
    there=lambda case, fault: fault in case.noticed.failed and fault not in case.noticed.taken,
    of_harm=True,
)
lost_context = FaultRule(
    lambda case: case.ended_short_of_well,
    "Keep the task and the results of its steps outside the conversation, and check the answer against them.",
    "The agent could not do all, or did not end well, after its conversation was disturbed in {size} that met {fault}.",
    of=_is_context_fault,
    # A trial that met a fault of another kind too has two causes.
    there=lambda case, _: all(_is_context_fault(fault) for fault, _ in case.met),
)
trusted_value = FaultRule(
    lambda case: case.did_mislead_or_harm and _has_wrong_value(case),
    "Check a tool's reply against its schema and a plausible range, or a second source, before acting on it.",
    "The answer, an effect or the end state had a wrong value in {size} that met {fault}.",
    of=lambda fault: get_replacement_kind(fault) == "value",
    there=lambda case, fault: fault in case.noticed.taken,
)
unsaid_gap = FaultRule(
    lambda case: case.outcome is Outcome.WRONG and _has_silent_omission(case.finding_kinds),
    "Have the answer name the tool that failed and what is missing, instead of filling the gap.",
    "The answer lacked something or had another value, and did not say so, in {size} that met {fault}.",
    there=lambda case, fault: fault in case.noticed.failed,
)
unsaid_loss = FaultRule(
    lambda case: FindingKind.LOST in case.finding_kinds and case.said in (Said.RIGHT, Said.WRONG, Said.PASSES_OVER),
    # An answer that is unclear may have said it.
    "Have the agent check a tool's reply before it reports success, and say in the answer what was not done.",
    "The request was not carried out, and the answer did not say so, in {size} that met {fault}.",
)
