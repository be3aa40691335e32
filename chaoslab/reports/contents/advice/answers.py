"""Rules on the agent's answer: each public function is one."""

from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.table import Outcome, Said
from chaoslab.analysis.verdict.traits import find_layer, leaves
from chaoslab.reports.contents.advice import Advice, Case, RuleEvidence


def cut_stream(evidence: RuleEvidence) -> list[Advice]:
    """An answer was made of a reply that had been cut off."""
    return evidence.beside_faults(
        # A silent answer took nothing from the reply.
        lambda case: case.misled and case.amiss and not case.noticed.silent,
        "Look at the finish reason and for the stream's last event; without them ask again instead of answering.",
        "A reply that had been cut off was accepted, and the answer was not right, in {size} that met {fault}.",
        of=lambda fault: leaves(fault) == "part",
        there=lambda case, fault: fault in case.noticed.taken,
    )


def empty_answer(evidence: RuleEvidence) -> list[Advice]:
    """The agent ended well and said nothing."""
    return evidence.beside_faults(
        lambda case: case.noticed.ended_ok and case.noticed.silent,
        "Check the agent's last answer before it is sent: if it is empty, say what failed.",
        "The agent ended without a word in {size} that met {fault}.",
    )


def empty_reply(evidence: RuleEvidence) -> list[Advice]:
    """An empty reply of a tool or a model was taken for a result. An agent that gave an attempt up as empty has noticed
    it."""
    return evidence.beside_faults(
        lambda case: case.misled and case.amiss,
        "Treat an empty reply as a failed call: ask once more, then tell the user that there is no result.",
        "An empty reply was accepted, and the answer or an effect was not right, in {size} that met {fault}.",
        of=lambda fault: leaves(fault) == "nothing",
        # Who gave the attempt up as empty has noticed it.
        there=lambda case, fault: fault in case.noticed.taken and not case.noticed.empty,
    )


def failed_value(evidence: RuleEvidence) -> list[Advice]:
    """A call failed, and a value of the agent's own, or one that it had kept, did harm in its place. What was done
    twice has an end state of another value too, for another reason."""
    return evidence.beside_faults(
        lambda case: case.harm and FindingKind.ALTERED in case.kinds and FindingKind.DUPLICATE not in case.kinds,
        "Act on no value of a failed call: put no default in its place and keep none in a cache, and say what is "
        "missing.",
        "A call failed, and an effect had another value, in {size} that met {fault}.",
        # A reply that was taken is another rule's: its value came from the service.
        there=lambda case, fault: fault in case.noticed.failed and fault not in case.noticed.taken,
        of_harm=True,
    )


def lost_context(evidence: RuleEvidence) -> list[Advice]:
    """A disturbed conversation made the agent forget its work. A trial that met a fault of another kind too has two
    causes, so it does not count."""
    return evidence.beside_faults(
        lambda case: case.short,
        "Keep the task and the results of its steps outside of the conversation, and check the answer against them.",
        "The agent could not do all, or did not end well, after its conversation was disturbed in {size} "
        "that met {fault}.",
        of=_is_of_context,
        there=lambda case, _: all(_is_of_context(fault) for fault, _ in case.met),
    )


def _is_of_context(fault: str) -> bool:
    return find_layer(fault) == "context"


def trusted_value(evidence: RuleEvidence) -> list[Advice]:
    """A trial that met a changed reply ended with a wrong value in its answer, in an effect or in the end state."""
    return evidence.beside_faults(
        lambda case: case.misled and _has_wrong_value(case),
        "Check a tool's reply against its schema and a plausible range, or ask a second source, before acting on it.",
        "The answer, an effect or the end state had a wrong value in {size} that met {fault}.",
        of=lambda fault: leaves(fault) == "value",
        there=lambda case, fault: fault in case.noticed.taken,
    )


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


def unsaid_gap(evidence: RuleEvidence) -> list[Advice]:
    """The answer was incomplete or wrong, and did not say so."""
    return evidence.beside_faults(
        lambda case: case.outcome is Outcome.WRONG and _is_silent(case.kinds),
        "Have the answer name the tool that failed and the part that is missing, instead of filling the gap.",
        "The answer lacked something or had another value, and did not say so, in {size} that met {fault}.",
        there=lambda case, fault: fault in case.noticed.failed,
    )


def _is_silent(kinds: set[str]) -> bool:
    """True if the answer lacks or alters something and admits nothing. An answer that also has another value has a
    finding on its admission."""
    if {FindingKind.VALUE, FindingKind.ADMISSION} <= kinds:
        return False
    return bool({FindingKind.FACT, FindingKind.VALUE} & kinds)


def unsaid_loss(evidence: RuleEvidence) -> list[Advice]:
    """Something was left undone, and the answer did not say so."""
    return evidence.beside_faults(
        lambda case: FindingKind.LOST in case.kinds and case.said in (Said.RIGHT, Said.WRONG, Said.PASSES_OVER),
        # An answer that is unclear may have said it.
        "Have the agent check a tool's reply before it reports success, and name in the answer what was not done.",
        "What was asked for was not done, and the answer did not say so, in {size} that met {fault}.",
    )
