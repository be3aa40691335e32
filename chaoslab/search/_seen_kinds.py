"""The kind of what a caller sees of a fault: faults of one kind at one call are alike to most agents."""

from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.plan import Injection
from chaoslab.search.variation import TriedVariation, get_injection_site

LATE, DUPLICATE, WRONG, ERROR = "late", "duplicate", "wrong value", "error status"
BY_ERROR = {
    "timed_out": "timed out", "cancelled": "timed out",
    "refused": "refused", "dns": "refused", "untrusted": "refused",
    "reset": "cut", "closed": "cut", "garbled": WRONG, "too_large": WRONG,
}  # fmt: skip
UNUSABLE = "status 200, and no"
"""The beginning of the error of a reply of success that its caller cannot use."""


def classify_what_caller_saw(tried: TriedVariation, injection: Injection) -> str:
    """The kind of what the caller saw of a fault that hit one attempt: timed out, refused, error status, wrong value,
    duplicate, cut or late."""
    site = get_injection_site(injection)
    error = next((attempt.error for attempt in tried.made if attempt.site == site), "")
    if error:
        return BY_ERROR.get(error, WRONG if error.startswith(UNUSABLE) else ERROR)
    fault = load_fault(injection.choices[0].fault)
    if get_trait(fault, "delays") or get_trait(fault, "dose"):
        return LATE
    return DUPLICATE if get_trait(fault, "redelivers") else WRONG
