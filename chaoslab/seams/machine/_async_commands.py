"""A command of asyncio over `subprocess.Popen`, which runs in real time while the clock stands still: what it prints is
whole when it is read."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from subprocess import Popen as PopenOf
from typing import IO

from chaoslab.base.clock import Clock
from chaoslab.base.parsers import SECONDS_MAX

Popen = PopenOf[bytes]


class AsyncProcess:
    """As `asyncio.subprocess.Process`. `finish`: lets a command that never ends do its work."""

    def __init__(self, process: Popen, clock: Clock, finish: Callable[[Popen], object]) -> None:
        self._process, self._clock, self._finish = process, clock, finish
        self.pid = process.pid
        self.stdin = None if process.stdin is None else _Writer(process.stdin)
        self.kill, self.terminate, self.send_signal = process.kill, process.terminate, process.send_signal

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @cached_property
    def stdout(self) -> asyncio.StreamReader | None:
        return _make_reader(self._process.stdout)

    @cached_property
    def stderr(self) -> asyncio.StreamReader | None:
        return _make_reader(self._process.stderr)

    async def wait(self) -> int:
        await self._wait_forever_if_endless()
        return self._process.wait()

    async def communicate(self, input: bytes | None = None) -> tuple[bytes, bytes]:  # noqa: A002 - its name there
        await self._wait_forever_if_endless()
        return self._process.communicate(input)

    async def _wait_forever_if_endless(self) -> None:
        if vars(self._process)["never_ends"]:
            self._finish(self._process)
            await self._clock.sleep_async(SECONDS_MAX)


class _Writer:
    """As the `StreamWriter` of a command's input."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.write, self.writelines, self.close = pipe.write, pipe.writelines, pipe.close
        self.write_eof = pipe.close

    def is_closing(self) -> bool:
        return self._pipe.closed

    async def drain(self) -> None:
        if not self._pipe.closed:
            self._pipe.flush()

    async def wait_closed(self) -> None: ...


def _make_reader(pipe: IO[bytes] | None) -> asyncio.StreamReader | None:
    """A reader of all that comes from a pipe."""
    if pipe is None:
        return None
    reader = asyncio.StreamReader(loop=asyncio.get_running_loop())
    reader.feed_data(pipe.read())
    reader.feed_eof()
    return reader
