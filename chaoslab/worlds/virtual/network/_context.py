"""The world of the present thread, as its network knows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from chaoslab.worlds.virtual.machine import context
from chaoslab.worlds.virtual.machine.context import Computer, here

if TYPE_CHECKING:
    import asyncio

    from chaoslab.worlds.virtual.network._loop import VirtualLoop
    from chaoslab.worlds.virtual.network._sockets import Sockets
    from chaoslab.worlds.virtual.network.network import Address, Network


class World(Computer, Protocol):
    """A computer with a network. `loops`: the event loops that are open, by id; `left_tasks`: those that were
    pending when theirs was closed; `closings`: they shut services down."""

    network: Network
    sockets: Sockets
    loops: dict[int, VirtualLoop]
    left_tasks: list[asyncio.Task[Any]]
    closings: list[Callable[[], object]]
    default_timeout_s: float | None

    def create_loop(self) -> VirtualLoop: ...
    def resolve_host(self, host: Any, port: Any) -> list[tuple[Any, ...]]: ...
    def normalize_address(self, address: Any) -> Address: ...


world = cast("Callable[[], World]", context.get_world)


def find_world() -> World | None:
    """The world of this thread, if it has one."""
    return cast("World | None", here.world)
