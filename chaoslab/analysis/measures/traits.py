"""The traits of a fault (`chaoslab.core.fault`), by its name in a log.

A fault that is not installed here, or cannot be used, has the defaults: a log can be read without the plug-ins that its run used.
"""

from __future__ import annotations

from chaoslab.core.fault import Fault, load, trait


def conditional(fault: str) -> bool:
    """Its story decides by itself whether there is anything to do."""
    return bool(trait(_class(fault), "conditional"))


def corrupts(fault: str) -> str:
    """The half of the exchange that it changes without an error, "call" or "reply"; else an empty text."""
    return str(trait(_class(fault), "corrupts"))


def lasts(fault: str) -> bool:
    """It goes on until the trial ends."""
    return bool(trait(_class(fault), "lasts"))


def may_succeed(fault: str) -> bool:
    """An attempt that meets it may succeed."""
    return bool(corrupts(fault) or trait(_class(fault), "delays"))


def _class(fault: str) -> type[Fault]:
    try:
        return load(fault)
    except LookupError:
        return Fault
