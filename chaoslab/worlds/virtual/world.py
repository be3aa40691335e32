"""One trial's world: a machine, a network, and chance of its own, so that nothing of an earlier trial shows in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from chaoslab.dice import Dice
from chaoslab.worlds.virtual.here import Uncovered, here
from chaoslab.worlds.virtual.loop import VirtualLoop
from chaoslab.worlds.virtual.machine import STARTS_S, Hung, Machine
from chaoslab.worlds.virtual.network import Address, Network
from chaoslab.worlds.virtual.sockets import Sockets

T = TypeVar("T")
DEADLINE_S = 3600.0
HTTPS = 443


class World:
    """Made for one trial. `now` is what its wall clock says when it begins."""

    def __init__(self, *names: object, now: datetime, deadline_s: float = DEADLINE_S) -> None:
        """`names`: what its chance is drawn under, a seed first."""
        self.machine = Machine(deadline_s=deadline_s)
        self.network = Network(self.machine)
        self.sockets = Sockets()
        self.uncovered: Uncovered | None = None
        self.default_timeout_s: float | None = None
        self.dice = Dice(*names)
        self._epoch_s = now.timestamp() - STARTS_S

    def time(self) -> float:
        """The wall clock, in seconds since 1970."""
        return self._epoch_s + self.machine.now

    def loop(self) -> VirtualLoop:
        return VirtualLoop(self)

    def resolve(self, host: Any, port: Any) -> list[tuple[Any, ...]]:
        """As `socket.getaddrinfo`.

        Raises:
            Uncovered: nobody of that name is on this network.
        """
        try:
            return self.network.resolve(host, port)
        except LookupError as error:
            raise Uncovered(f"the host {error.args[0]}", "give its stand-in with services={…}") from None

    def known(self, address: Any) -> Address:
        """The address, if anybody there could answer.

        Raises:
            Uncovered: it leads out of this network.
        """
        host, port = str(address[0]), int(address[1])
        found = self.network.address_of(host)
        if found is None or not (found.startswith("127.") or found == "::1" or self.network.knows(host)):
            raise Uncovered(f"a connection to {host}:{port}", "give its stand-in with services={…}")
        if port == HTTPS and self.network.knows(host) and not self.network.listens((found, port)):
            raise Uncovered(f"TLS to {self.network.name_of(found)}", "speak http:// to its stand-in")
        return found, port

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread of the process is in this world: its clocks and its chance are the world's."""
        outer, here.world = here.world, self
        try:
            yield
        finally:
            here.world = outer

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, called as the first thread of this world.

        Raises:
            Hung: it would never return.
            Uncovered: something real was touched, whatever became of it afterwards.
        """
        outcome: list[T] = []
        failed: list[BaseException] = []

        def first() -> None:
            try:
                outcome.append(work())
            except BaseException as error:  # noqa: BLE001 - it goes on to whoever asked
                failed.append(error)

        with self.entered():
            try:
                self.machine.run(first, name="the agent")
            except Hung as hung:  # whoever touched something real may be whom all others wait for
                failed.append(hung)
            finally:
                self.machine.stop()
        if self.uncovered is not None:
            raise self.uncovered
        if failed:
            raise failed[0]
        return outcome[0]

    def run_async(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same for a coroutine, on an event loop of its own."""

        def main() -> T:
            loop = self.loop()
            try:
                asyncio.set_event_loop(loop)
                return loop.run_until_complete(work())
            finally:
                try:
                    loop.finish()
                finally:
                    asyncio.set_event_loop(None)
                    loop.close()

        return self.run(main)
