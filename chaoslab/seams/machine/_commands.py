"""Fakes for `subprocess.Popen` and `os.system`: a command runs in real time, and the clock of the trial's world
stands still meanwhile."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import wraps
from typing import Any

from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.machine import COMMANDS
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction
from chaoslab.seams.machine._async_commands import AsyncProcess

LOOK_S = 0.5
"""The longest real time that a look at a command waits for its end: it takes no virtual time."""
WORK_S = 10.0
"""The real time in which a command that never ends does its work."""
STARTED = "started"
Popen = subprocess.Popen[Any]
Outside = Callable[[], AbstractContextManager[None]]


class CommandCalls:
    """The commands of the trial under way. `outside`: a context in which this thread is in no virtual world. `active`:
    a trial is under way."""

    def __init__(self, seam: FunctionSeam) -> None:
        self.outside: Outside = nullcontext
        self.active = False
        self._seam = seam
        self._running: list[Popen] = []
        self._wait: Callable[..., int] = subprocess.Popen.wait
        self._is_inside = False
        """A method of a process is under way, and calls others of its own."""
        self._run = seam.make_fake_function(
            WrappedFunction(COMMANDS, _run_command_action, effect=False, hidden=frozenset({"act"}))
        )

    def list_patches(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Each fake, with the holder and the name that it is for."""
        kind = subprocess.Popen
        self._wait = kind.wait
        yield kind, "__init__", self._wrap_popen_init(kind.__init__)
        for name in ("wait", "communicate", "poll", "send_signal"):
            yield kind, name, self._wrap_popen_method(name, getattr(kind, name))
        yield os, "system", self._wrap_os_system(os.system)
        for name in ("kill", "killpg"):
            yield os, name, self._wrap_os_kill(getattr(os, name))
        for module in (asyncio, asyncio.subprocess):
            yield (
                module,
                "create_subprocess_exec",
                self._wrap_async_start(module.create_subprocess_exec, is_shell=False),
            )
            yield (
                module,
                "create_subprocess_shell",
                self._wrap_async_start(module.create_subprocess_shell, is_shell=True),
            )

    def end_running_processes(self) -> None:
        """Ends what is still running."""
        for process in self._running:
            with suppress(OSError, AttributeError):
                process.kill()
                process.wait()
        self._running.clear()

    def _wrap_popen_init(self, real: Callable[..., None]) -> Callable[..., None]:
        @wraps(real)
        def start_process(process: Popen, args: Any, *rest: Any, **options: Any) -> None:
            if not self.active or self._seam.book is None:
                real(process, args, *rest, **options)
                return
            words = _split_words(args)
            command = words[0] if isinstance(args, str) else shlex.join(words)
            piped = [name for name in ("stdout", "stderr") if options.get(name) == subprocess.PIPE]
            was_run: list[bool] = []

            def mark_started() -> str | None:
                was_run.append(True)
                return STARTED if piped else None  # nobody else reads what it prints

            code, vars(process)["never_ends"] = 0, False
            try:
                is_silent = self._run(command, mark_started) != STARTED
            except subprocess.CalledProcessError as error:
                code, is_silent = error.returncode, False
            except subprocess.TimeoutExpired:
                vars(process)["never_ends"], is_silent = True, False
            if code or not was_run:
                shell = (options.pop("executable", None) or "/bin/sh") if options.pop("shell", False) else ""
                args = _build_ending_command(code, words if was_run else (), shell)
            silent = piped if is_silent else ()
            with self.outside():
                real(process, args, *rest, **{**options, **dict.fromkeys(silent, subprocess.DEVNULL)})
                self._running.append(process)
                for name in silent:
                    is_text = process.text_mode  # type: ignore[attr-defined]  # as its other streams are
                    setattr(process, name, os.fdopen(os.open(os.devnull, os.O_RDONLY), "r" if is_text else "rb"))

        return start_process

    def _wrap_popen_method(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def stand_in(process: Popen, *args: Any, **kwargs: Any) -> Any:
            if process not in self._running or self._is_inside:
                return real(process, *args, **kwargs)
            if vars(process)["never_ends"]:
                if name in ("wait", "communicate"):
                    return self._wait_until_timeout(process, *args, **kwargs)
                if name == "poll":
                    return None
                vars(process)["never_ends"] = False  # it is sent a signal
            self._is_inside = True
            try:
                with self.outside():
                    if name == "poll":
                        with suppress(subprocess.TimeoutExpired):
                            self._wait(process, LOOK_S)
                    return real(process, *args, **kwargs)
            finally:
                self._is_inside = False

        return stand_in

    def _give_process_work_time(self, process: Popen) -> None:
        """Lets a command that never ends do its work, for which it has some real time."""
        with self.outside(), suppress(subprocess.TimeoutExpired):
            self._wait(process, WORK_S)

    def _wait_until_timeout(self, process: Popen, *args: Any, timeout: float | None = None, **_: Any) -> Any:
        self._give_process_work_time(process)
        timeout = next((value for value in args if isinstance(value, int | float)), timeout)
        self._seam.clock.sleep(SECONDS_MAX if timeout is None else timeout)
        raise subprocess.TimeoutExpired(process.args, timeout or SECONDS_MAX)

    def _wrap_os_kill(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        @wraps(real)
        def kill(pid: int, number: int, /) -> None:
            process = next((process for process in self._running if process.pid == pid), None)
            if process is not None:
                vars(process)["never_ends"] = False
            with nullcontext() if process is None else self.outside():
                real(pid, number)

        return kill

    def _wrap_async_start(self, real: Callable[..., Any], *, is_shell: bool) -> Callable[..., Any]:
        @wraps(real)
        async def start_async_process(*args: Any, **options: Any) -> Any:
            if not self.active or self._seam.book is None:
                return await real(*args, **options)
            words = args[0] if is_shell else args
            options.pop("limit", None)
            process = subprocess.Popen(words, shell=is_shell, **options)
            return AsyncProcess(process, self._seam.clock, self._give_process_work_time)

        return start_async_process

    def _wrap_os_system(self, real: Callable[[Any], int]) -> Callable[[Any], int]:
        @wraps(real)
        def system(command: Any) -> int:
            if not self.active or self._seam.book is None:
                return real(command)
            code = subprocess.call(command, shell=True)
            return code << 8 if code >= 0 else -code

        return system


def _run_command_action(command: str, act: Callable[[], str | None]) -> str | None:  # noqa: ARG001 - the command is for the log
    return act()


def _split_words(args: Any) -> list[str]:
    """The words of a command, as `subprocess.Popen` is given them."""
    return [os.fsdecode(args)] if isinstance(args, str | bytes | os.PathLike) else [*map(os.fsdecode, args)]


def _build_ending_command(code: int, words: Sequence[str], shell: str) -> Sequence[str]:
    """The words of a command that does this one, if there is one, and ends with this code, or by this signal if it is
    below 0. `shell`: reads the command's first word; empty if none does."""
    ending = f"exit {code}" if code >= 0 else f"kill -{-code} $$"
    if not words:
        return ["/bin/sh", "-c", ending]
    return [shell, "-c", f"({words[0]}\n)\n{ending}"] if shell else ["/bin/sh", "-c", f'"$@"\n{ending}', "sh", *words]
