"""The tracing of openai-agents, which keeps nothing of a world. Its queue outlives the trial, so what is left in it
would be sent to its maker when the process ends. A program's own exporters get all.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch

MODULE = "agents.tracing.processors"
LATER = (MODULE,)


def patches() -> Iterable[Patch]:
    module = sys.modules.get(MODULE)
    processor, exporter = (getattr(module, name, None) for name in ("BatchTraceProcessor", "BackendSpanExporter"))
    for name in ("on_trace_start", "on_span_end") if processor and exporter else ():
        yield Patch(processor, name, _wrap_to_drop_traces(getattr(processor, name), exporter))


def _wrap_to_drop_traces(real: Callable[..., Any], exporter: Any) -> Callable[..., Any]:
    @functools.wraps(real)
    def drop_or_call(self: Any, *args: Any) -> Any:
        if here.world is not None and isinstance(getattr(self, "_exporter", None), exporter):
            return None
        return real(self, *args)

    return drop_or_call
