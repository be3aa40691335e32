"""Refusals of everything that no virtual world can carry: processes, clocks of the real machine, foreign loops, C
libraries.

It is a table, so that one more refusal is one more line. Only threads that run a world are refused.
"""

import contextlib
import functools
import importlib
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from chaoslab.worlds.virtual.machine.context import ProcessEnded, Unsupported, here
from chaoslab.worlds.virtual.patches import Patch


@dataclass(frozen=True)
class RefusedNames:
    """A refusal. `names`: attributes of `module`, or `Class.method` in it. Names that this Python or platform lacks are
    skipped."""

    module: str
    names: str
    what: str
    remedy: str

    @property
    def fallback_remedies(self) -> tuple[str, ...]:
        """The last resort, where it is not the local world, which knows no applications as services."""
        return (_BY_EXEC,) if self.remedy in (_AS_FUNCTION, _IN_THREADS) else ()


_AS_FUNCTION = "give files=, a folder of which each trial gets a copy"
_BY_EXEC = "run the agent as a command of `chaoslab exec`, in real time"
_IN_THREADS = "do it in this process, in threads"
_ASK = "ask time.monotonic()"
_AWAIT = "wait with time.sleep or asyncio"
_NO_EPOLL = "use asyncio, or selectors.PollSelector"
_LEFT = "leave the loop to asyncio.run"
_CPU = "process_time process_time_ns thread_time thread_time_ns"

LOADED = (
    RefusedNames("subprocess", "Popen.__init__", "a subprocess", _AS_FUNCTION),
    RefusedNames("_posixsubprocess", "fork_exec", "a subprocess", _AS_FUNCTION),
    RefusedNames("os", "system posix_spawn posix_spawnp startfile", "a program run by os.{}", _AS_FUNCTION),
    RefusedNames("os", "fork forkpty", "a process of its own (os.{})", _IN_THREADS),
    RefusedNames("os", "times", "the clock os.{} of the processor", _ASK),
    RefusedNames("time", _CPU, "the clock time.{} of the processor", _ASK),
    RefusedNames("resource", "getrusage", "the clock resource.{} of the processor", _ASK),
    RefusedNames("signal", "alarm setitimer sigwait sigwaitinfo sigtimedwait pause", "a wait with signal.{}", _AWAIT),
    RefusedNames("select", "epoll kqueue devpoll", "waiting for files with select.{}", _NO_EPOLL),
    RefusedNames("asyncio.events", "set_event_loop_policy", "a policy of event loops", _LEFT),
    RefusedNames("_socket", "socket getaddrinfo socketpair", "a real socket by _socket.{}", "use the module socket"),
    RefusedNames("socket", "fromfd", "a real socket made with socket.{}", "connect to a service"),
    RefusedNames("socket", "create_server", "a socket that listens", "serve it with services={…}"),
)
"""Patched at the start; a module that is not loaded is imported, since it is small."""

ENDS: tuple[tuple[str, str, Callable[..., str]], ...] = (
    ("os", "_exit abort execv execve", lambda *_, **__: "{}"),
    ("os", "kill", lambda target, number, /: _describe_end_by_signal(number, target)),
    ("os", "killpg", lambda group, number, /: _describe_end_by_signal(number, -group)),
    ("signal", "raise_signal", lambda number, /: _describe_end_by_signal(number)),
    ("signal", "pthread_kill", lambda _, number, /: _describe_end_by_signal(number)),
)
"""Functions that end the process: they end the trial as failed. Each has a function that tells from the arguments what
ends it; empty if nothing does."""

WHEN_LOADED = (
    RefusedNames("multiprocessing.process", "BaseProcess.start", "a process of multiprocessing", _IN_THREADS),
    RefusedNames("concurrent.futures.process", "ProcessPoolExecutor.__init__", "a pool of processes", _IN_THREADS),
    RefusedNames("uvloop", "Loop new_event_loop run install EventLoopPolicy", "uvloop.{}", _LEFT),
    RefusedNames("grpc._cython.cygrpc", "Channel AioChannel", "a gRPC channel", "reach the service over HTTP"),
)
"""Patched once a program has imported the module."""

LATER = tuple(refusal.module for refusal in WHEN_LOADED)


def patches() -> Iterable[Patch]:
    platform.processor()  # a subprocess is asked once per process, by any SDK that reports its platform
    for refusal in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(refusal.module)
    for module_name, names, ends in ENDS:
        holder = sys.modules[module_name]
        # Windows lacks some of them.
        for name in filter(partial(hasattr, holder), names.split()):
            yield Patch(
                holder, name, _wrap_to_end_trial(getattr(holder, name), module_name, name, ends), everywhere=True
            )
    for refusal in (*LOADED, *WHEN_LOADED):
        if module := sys.modules.get(refusal.module):
            yield from _iterate_refusal_patches(module, refusal)


def _iterate_refusal_patches(module: Any, refusal: RefusedNames) -> Iterator[Patch]:
    for dotted in refusal.names.split():
        inner, _, name = dotted.rpartition(".")
        holder = getattr(module, inner, None) if inner else module
        real = getattr(holder, name, None)
        if real is not None:
            refuse = functools.partial(
                _raise_if_in_world, refusal.what.format(name), refusal.remedy, *refusal.fallback_remedies
            )
            stand_in = (
                _make_guarded_class(real, refuse) if isinstance(real, type) else _make_guarded_function(real, refuse)
            )
            yield Patch(holder, name, stand_in, everywhere=not inner)


def _wrap_to_end_trial(
    real: Callable[..., Any], module_name: str, name: str, ends: Callable[..., str]
) -> Callable[..., Any]:
    @functools.wraps(real)
    def end_trial_or_call(*args: Any, **kwargs: Any) -> Any:
        if here.world is not None and (ending := ends(*args, **kwargs)):
            error = ProcessEnded(ending.format(f"{module_name}.{name}"))
            # A fault that ends the process is broken, and none of the program's doing.
            if error.of_a_fault:
                raise error
            # Not raised: a program could swallow it.
            here.world.machine.end_run_with_error(error)
            here.world.machine.park_until_run_ends()
        return real(*args, **kwargs)

    return end_trial_or_call


_SPARED = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
"""The signals that no process ends by, unless it wants to."""


def _describe_end_by_signal(number: int, target: int | None = None) -> str:
    """The end of this process by that signal, in words; empty if it goes on: the signal has a handler of the program's.
    `target`: as `os.kill` takes it; None is this process. A signal to a group ends others too, whatever this one does.
    Raises Unsupported: it goes to another process."""
    if number == 0 or number not in set(signal.Signals):  # a look for a process, or an error
        return ""
    alone = target in (None, os.getpid())
    # 0, -1 and the group's own number: all of them mean others too.
    if not alone and target not in (0, -1, -os.getpgrp()):
        raise Unsupported("a signal to another process", "let it be")
    handler = signal.getsignal(number)
    # SIGINT's own handler raises KeyboardInterrupt, and the lab's handlers end the run.
    is_handled = callable(handler) and number != signal.SIGINT and not _is_lab_handler(handler)
    if alone and (number in _SPARED or handler is signal.SIG_IGN or is_handled):
        return ""
    return f"{{}} with {signal.Signals(number).name}"


def _is_lab_handler(handler: Any) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("chaoslab.")


def _raise_if_in_world(*texts: str) -> None:
    if here.world is not None:
        raise Unsupported(*texts)


def _make_guarded_function(real: Callable[..., Any], refuse: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(real)
    def refuse_or_call(*args: Any, **kwargs: Any) -> Any:
        refuse()
        return real(*args, **kwargs)

    return refuse_or_call


def _make_guarded_class(real: type, refuse: Callable[[], None]) -> type:
    """A fake for the class that refuses to make instances, and otherwise acts like the real one."""

    class Kind(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            refuse()
            return real(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __getattr__(cls, name: str) -> Any:
            return getattr(real, name)

    # Classes that derive from the real one, such as socket.socket, call its __init__ by the name that is replaced.
    namespace = {"__module__": real.__module__, "__doc__": real.__doc__, "__init__": real.__init__}  # type: ignore[misc]
    return Kind(real.__name__, (), namespace)
