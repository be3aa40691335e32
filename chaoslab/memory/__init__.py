"""What past runs taught, and what to try next.

The memory is a file beside the logs, which can be deleted and made again.
The room itself can be called: `lab.memory("logs").experiments`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """This package, whose name the function of it shares."""

    def __call__(self, *given: Any, **options: Any) -> Any:
        from chaoslab.memory.store import memory

        return memory(*given, **options)


memory = sys.modules[__name__]
memory.__class__ = _Room
