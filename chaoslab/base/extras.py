"""What must be installed beside the core, said before anything begins."""

from __future__ import annotations

from importlib.util import find_spec

MODULES = {
    "virtual": ("greenlet", "time_machine"),
    "tools": ("flask", "waitress"),
    "agent": ("langchain", "langchain_groq", "pydantic"),
    "charts": ("matplotlib",),
}
"""By extra, some of what it brings: what the lab itself imports."""


class Incomplete(ValueError):
    """Something that a command needs cannot be imported; says what, and what to do."""


def check(who: str, *extras: str, install: str = "") -> None:
    """Raises Incomplete: one of these extras is not installed. `install`: another extra that brings them all."""
    for extra in extras:
        for module in MODULES[extra]:
            check_module(who, module, install or extra)


def check_module(who: str, module: str, extra: str) -> None:
    """Raises Incomplete: this module, which that extra brings, is not installed."""
    if find_spec(module) is None:
        raise Incomplete(f"{who} needs {module}, which is not installed: pip install 'chaoslab[{extra}]'")
