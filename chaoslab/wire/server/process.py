"""Prepares a process that only serves: the fastest event loop, and as many open files as the system allows."""

import asyncio
import contextlib
from collections.abc import Callable
from importlib.util import find_spec


def choose_loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """The factory of the event loop of that name. `auto` is uvloop if it is installed, which needs less time a chunk.
    Raises ValueError: it is not installed."""
    # `auto` looks for it without an import, which would load it for nothing.
    if name == "asyncio" or (name == "auto" and find_spec("uvloop") is None):
        return asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        raise ValueError(
            "uvloop is not installed here; the extra `fast` brings it, `--loop asyncio` does without"
        ) from None
    return uvloop.new_event_loop


def raise_open_file_limit() -> None:
    """Raises the soft limit of open files to the hard one: a proxy takes one, a connection two, and 1024 are few."""
    try:
        import resource
    except ImportError:  # Windows, where there is no such limit
        return
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses its own hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
