"""All that the author of a plug-in imports: `from chaoslab.plugins import Fault, Call, Flow`. Faults are registered
under the entry-point group `chaoslab.faults`, assertions under `chaoslab.analysis.assertions`, adapters of tools under
`chaoslab.seams.adapters`."""

from chaoslab.analysis.assertions import Assertion, FinishedTrial, Miss
from chaoslab.core.exchange import Ahead, Call, Failure, Flow, Note, Observation, Reply, Toxic, TrialContext, Wait
from chaoslab.core.fault import Fault, Outage
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.triggers import OfNumber, OfNumbers, Trigger
from chaoslab.seams.adapters import Adapter, is_a, of_schema

__all__ = [
    "Adapter",
    "Ahead",
    "Assertion",
    "Call",
    "Failure",
    "Fault",
    "FinishedTrial",
    "Flow",
    "HitsSoFar",
    "Miss",
    "Note",
    "Observation",
    "Occasion",
    "OfNumber",
    "OfNumbers",
    "Outage",
    "Reply",
    "Toxic",
    "TrialContext",
    "Trigger",
    "Wait",
    "is_a",
    "of_schema",
]  # fmt: skip
