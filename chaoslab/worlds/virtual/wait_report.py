"""Where a thread or a task stands, in the words of whoever wrote the program: which call of theirs waits, and in what."""

from __future__ import annotations

import threading
from types import FrameType

PLUMBING = (
    "chaoslab.", "_thread", "aiohappyeyeballs", "aiohttp", "anyio", "asyncio", "concurrent.", "contextlib", "groq.",
    "http.client", "httpcore", "httpx", "langchain_core.", "langgraph.", "multiprocessing", "openai.", "queue", "requests",
    "selectors", "sniffio", "socket", "ssl", "subprocess", "tenacity", "threading", "urllib",
)  # fmt: skip
"""Modules whose frames tell nobody where in their own program they are."""
_LIBRARY = ("threading", "queue", "concurrent.", "asyncio")


def stands(frame: FrameType | None, what: str) -> str:
    """ "waits in Queue.get, called in agent.look_up, line 12" of a parked thread's innermost frame."""
    return told(_outwards(frame), what)


def told(frames: list[FrameType], what: str) -> str:
    """The same of its frames, the innermost first. `what`: said of a wait that no library's name describes better."""
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
    """None of what a thread or a `with` begins or ends with."""
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
