"""What must be installed beside the core, and that the lab's own agent and services are found, said before anything begins."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

MODULES = {
    "virtual": ("greenlet", "time_machine"),
    "tools": ("flask", "waitress"),
    "agent": ("langchain", "langchain_groq", "pydantic"),
    "charts": ("matplotlib",),
}
"""By extra, some of what it brings: what the lab itself imports."""
PARTS = {"agent": "assembly.py", "flask_tools": "app.py", "proxy_manager": "manager.py"}
"""The lab's parts, each with a file that no package but it has; a copy of one is one too."""


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


def check_parts() -> None:
    """Raises Incomplete: what Python finds under the name of a part of the lab is somebody else's, such as an `agent.py` in this folder."""
    for name, file in PARTS.items():
        spec = find_spec(name)
        found = Path(spec.origin or "") if spec else None
        if found is None:
            raise Incomplete(f"the lab's own {name} is not installed: install chaoslab again")
        if found.name != "__init__.py" or not found.with_name(file).is_file():
            raise Incomplete(
                f"{_shown(found)} hides the lab's own {name} from it: rename it, or start the lab in another folder"
            )


def _shown(path: Path) -> str:
    """From here, where it is here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else os.fspath(path)
