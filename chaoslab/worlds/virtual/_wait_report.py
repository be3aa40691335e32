"""Descriptions of waiting threads and tasks in terms of the user's program: the waiting call and its line."""

from __future__ import annotations

import threading
from types import FrameType

PLUMBING = (
    "chaoslab.", "_thread", "aiohappyeyeballs", "aiohttp", "anyio", "asyncio", "concurrent.", "contextlib", "groq.",
    "http.client", "httpcore", "httpx", "langchain_core.", "langgraph.", "multiprocessing", "openai.", "queue",
    "requests", "selectors", "sniffio", "socket", "ssl", "subprocess", "tenacity", "threading", "urllib",
)  # fmt: skip
"""Modules whose frames say nothing about the place in the user's program."""
_LIBRARY = ("threading", "queue", "concurrent.", "asyncio")


def stands(frame: FrameType | None, what: str) -> str:
    """The wait of a parked thread by its innermost frame, as in "waits in Queue.get, called in agent.look_up, line
    12"."""
    return wait_text(_outwards(frame), what)


def wait_text(frames: list[FrameType], what: str) -> str:
    """The wait by its frames, the innermost first. `what`: the description if no library's name is better."""
    call: str | None = None
    for frame in frames:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_LIBRARY) and not what.startswith(("recv", "send", "connect")):
            call = _call(frame) or call
        if not module.startswith(PLUMBING):
            where = f"{module}.{frame.f_code.co_name}, line {frame.f_lineno}"
            return f"waits {_in(call or what)}, called in {where}"
    return f"waits {_in(call or what)}"


def _in(what: str) -> str:
    return f"for {what}" if what.startswith(("a lock", "its ", "task", "something")) else f"in {what}"


def _call(frame: FrameType) -> str | None:
    """The call's name; None for the outermost frames of a thread, and for a `with`."""
    name = frame.f_code.co_qualname.removeprefix("_")
    if name.endswith(
        (
            "_bootstrap",
            "_bootstrap_inner",
            "Thread.run",
            "WorkItem.run",
            "__enter__",
            "__exit__",
            "__aenter__",
            "__aexit__",
            "worker",
        )
    ):
        return None
    myself = frame.f_locals.get("self")
    if name == "Thread.join" and isinstance(myself, threading.Thread):
        return f"{name} of {myself.name}"
    return name


def _outwards(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
