"""The traits of a fault (`chaoslab.core.fault`), by its name in a log.

A fault that is not installed here, or cannot be loaded, has the defaults: a log can be read without the plug-ins of its
run.
"""

import os
import sys
from functools import lru_cache

from chaoslab.core import fault as core
from chaoslab.core.events import CANCELLED, OPEN
from chaoslab.core.fault import Fault, get_trait, load_fault


def is_conditional(fault: str) -> bool:
    """True if its story decides by itself to do something or nothing."""
    return bool(get_trait(find_fault_class(fault), "conditional"))


def get_corrupted_side(fault: str) -> str:
    """The half of the exchange that it changes without an error, "call" or "reply"; else an empty text."""
    return str(get_trait(find_fault_class(fault), "corrupts"))


def get_replacement_kind(fault: str) -> str:
    """The thing that its caller has in the place of the right reply: "value", "part", "nothing" or "garbage"; else an
    empty text."""
    return str(get_trait(find_fault_class(fault), "leaves"))


def describe_unusable_reply(fault: str) -> str:
    """The words for the reply that it leaves, if its caller cannot use it and can tell; else an empty text."""
    return core.describe_unusable_reply(find_fault_class(fault))


def describe_required_content(fault: str) -> str:
    """The thing that it must find to have something to change, in words; empty if it always has."""
    return str(get_trait(find_fault_class(fault), "needs"))


def find_fault_layer(fault: str) -> str:
    """The layer that it acts on, as in "stream"; empty if the fault is not installed here."""
    return str(getattr(find_fault_class(fault), "layer", ""))


def can_delay(fault: str) -> bool:
    """True if it can hold a call back."""
    return bool(get_trait(find_fault_class(fault), "delays"))


def begins_outage(fault: str) -> bool:
    """True if it begins an outage of a service, for all its clients."""
    return bool(get_trait(find_fault_class(fault), "of_process"))


def closes_connection(fault: str) -> bool:
    """True if it closes the connection, so that its caller sees "closed" or "reset"."""
    return bool(get_trait(find_fault_class(fault), "closes"))


def can_cause_error(fault: str, error: str | None) -> bool:
    """True if it can be the cause of a failure with this error: one that only makes a call slow ends none otherwise
    than by a timeout."""
    only_slow = get_trait(find_fault_class(fault), "delays") and not get_corrupted_side(fault)
    return not only_slow or error in ("timed_out", CANCELLED, OPEN)


def can_attempt_succeed(fault: str) -> bool:
    """True if an attempt that meets it may succeed."""
    return bool(get_corrupted_side(fault) or get_trait(find_fault_class(fault), "delays"))


def find_fault_class(fault: str) -> type[Fault]:
    """The fault's class; `Fault` itself if there is none here."""
    return _load_fault_class(fault, _python_path_key())


@lru_cache(maxsize=256)
def _load_fault_class(fault: str, installed: tuple[int, ...]) -> type[Fault]:  # noqa: ARG001 - part of the cache key
    try:
        return load_fault(fault)
    except LookupError:
        return Fault


def _python_path_key() -> tuple[int, ...]:
    """A key that changes if a package is installed or removed. Loading a fault takes 10 ms, and a log may name
    thousands."""
    return (hash(tuple(sys.path)), *(_get_change_time(path) for path in sys.path))


def _get_change_time(path: str) -> int:
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0
