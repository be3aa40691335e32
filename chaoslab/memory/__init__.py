"""The memory of past runs beside their logs, `memory.db`, as `chaoslab memory add logs/*` fills it.

`lab.memory("logs")` opens it. Its tables `experiments`, `components`, `ranges`, `relations`, `lessons` and `runs` are
pandas frames; `add(folders)` adds runs.
`lab.memory.note("logs", "agent", target=…, fault=…, tried=5, bad=4)` notes what was learnt elsewhere.

Raises:
    Unusable (a LookupError): there is none, or it is damaged or of another version; the message is one line.
"""

# Other rooms use `planning`, `plans`, `store`.

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from chaoslab.memory.store import Memory


class _CallableModule(ModuleType):
    """This package, which is called like the function that opens a memory, and so is that function."""

    def __call__(self, logs: str | Path = "logs") -> Memory:
        from chaoslab.memory.store import memory

        return memory(logs)

    @staticmethod
    def note(logs: str | Path, agent: str, text: str = "", **learnt: Any) -> None:
        """As `store.note`."""
        from chaoslab.memory.store import add_note

        add_note(logs, agent, text, **learnt)


# A module can be called only if its class has __call__.
sys.modules[__name__].__class__ = _CallableModule
memory = cast(_CallableModule, sys.modules[__name__])
