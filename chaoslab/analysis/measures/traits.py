"""What a fault's class says of the fault, by its name in a log.

`conditional`: its story decides by itself whether there is anything to do. `corrupts`: "call" or "reply", the half of the exchange that it
changes without anybody being told; "" for a fault that can be noticed. `lasts`: it goes on until the trial ends, so nothing recovers from
it. A fault that is not installed here, or says nothing, has none of these.
"""

from __future__ import annotations

from typing import Any

from chaoslab.base import registry


def conditional(fault: str) -> bool:
    return bool(_said(fault, "conditional", False))


def corrupts(fault: str) -> str:
    return str(_said(fault, "corrupts", "") or "")


def lasts(fault: str) -> bool:
    return bool(_said(fault, "lasts", False))


def _said(fault: str, name: str, default: Any) -> Any:
    return getattr(registry.load("faults", fault), name, default) if fault in registry.names("faults") else default
