"""Checks that the packages which a command needs beside the core are installed."""

from __future__ import annotations

from importlib.util import find_spec

MODULES = {
    "virtual": ("greenlet", "time_machine"),
    "tools": ("flask", "waitress"),
    "agent": ("langchain", "langchain_groq", "pydantic"),
    "charts": ("matplotlib",),
    "scenarios": ("pydantic", "yaml"),
    "frames": ("pandas",),
    "parquet": ("pandas", "pyarrow"),
    "gateway": ("aiohttp",),
    "compose": ("docker",),
}
"""By extra, the modules of it that the lab itself imports."""


class Incomplete(ValueError):
    """A command needs a module that is not installed. Its text names the module and the remedy."""


def check(who: str, *extras: str, install: str = "") -> None:
    """Checks that these extras are installed. `install`: another extra that brings them all.

    Raises:
        Incomplete: one is not.
    """
    for extra in extras:
        for module in MODULES[extra]:
            check_module(who, module, install or extra)


def check_module(who: str, module: str, extra: str) -> None:
    """Checks that this module, which `extra` brings, is installed.

    Raises:
        Incomplete: it is not.
    """
    if find_spec(module) is None:
        raise Incomplete(f"{who} needs {module}, which is not installed: pip install 'chaoslab[{extra}]'")
