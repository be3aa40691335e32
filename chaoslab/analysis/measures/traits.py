"""The traits of a fault (`chaoslab.core.fault`), by its name in a log.

A fault that is not installed here, or cannot be used, has the defaults: a log can be read without the plug-ins that its run used.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache

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
    return _found(fault, _installed())


@lru_cache(maxsize=256)
def _found(fault: str, installed: tuple[int, ...]) -> type[Fault]:  # noqa: ARG001 - what is missing may be installed later
    try:
        return load(fault)
    except LookupError:
        return Fault


def _installed() -> tuple[int, ...]:
    """Changes when a package is installed or removed. To look for one takes 10 ms, and a log may tell of thousands of faults."""
    return (hash(tuple(sys.path)), *(_changed(path) for path in sys.path))


def _changed(path: str) -> int:
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0
