"""A process that does nothing but serve: the quickest event loop there is, and as many open files as the system grants."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from importlib.util import find_spec


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop of that name; `auto` is uvloop where it is installed, which needs less time a chunk.

    Raises:
        ValueError: it is not installed.
    """
    if name == "asyncio" or (name == "auto" and find_spec("uvloop") is None):
        return asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        raise ValueError(
            "uvloop is not installed here; the extra `fast` brings it, `--loop asyncio` does without"
        ) from None
    return uvloop.new_event_loop


def allow_many_files() -> None:
    """Lift the soft limit to the hard one: each proxy takes a file, each connection two, and 1024 are soon gone."""
    try:
        import resource
    except ImportError:  # Windows, where there is no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS does not keep what it promises
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
