"""The embedded Toxiproxy: API and toxics of Toxiproxy 2.12 in one asyncio process, without its flaws
(docs/toxiproxy.md)."""

import asyncio
import functools
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.base.files import Unreadable, load_bytes

if TYPE_CHECKING:
    from chaoslab.wire.server._catalog import Catalog
    from chaoslab.wire.server._listener import Listener

REAP_S = 1.0
"""The time between two looks for lanes whose makers are gone, in seconds."""


async def serve(
    *,
    host: str,
    port: int,
    config: Path | None,
    seed: int | None,
    ready: Callable[[str, int], object],
) -> None:
    """Serves until cancelled, then closes every connection.

    `config` is a JSON file like the body of /populate. Equal seeds give equal draws. `ready` is called
    once with the address that was bound. Raises OSError: the address is taken, or the file cannot be read. ValueError:
    the file does not hold what /populate takes.
    """
    # Here, so that naming this package does not load h11.
    from chaoslab.wire.server._catalog import Catalog
    from chaoslab.wire.server._http import Connection
    from chaoslab.wire.server.rest import answer_request

    # Chance is drawn by the seed, where Toxiproxy's own `-seed` has no effect.
    dice = Dice(secrets.randbits(64) if seed is None else seed, "toxiproxy")
    catalog = Catalog(dice)
    connections: set[Connection] = set()
    try:
        if config is not None:
            await _load_config(catalog, config)
        # Before the port is open, so that nobody finds a server that has only some of its proxies.
        respond = functools.partial(answer_request, catalog)
        listeners = await _open_listeners(lambda: Connection(respond, connections), host, port)
        try:
            ready(*listeners[0].getsockname())
            while True:  # until cancelled
                await asyncio.sleep(REAP_S)
                # By the wall clock: the ends of leases are written by other processes.
                await catalog.delete_expired_lanes(system.utc().timestamp())
        finally:
            for listener in listeners:
                listener.close()
    finally:
        for connection in tuple(connections):
            connection.abort()
        catalog.stop_proxies()
        # Aborted transports close their sockets in the loop's next rounds, as do those just accepted.
        for _ in range(5):
            await asyncio.sleep(0)


async def _open_listeners(connection: Callable[[], asyncio.Protocol], host: str, port: int) -> "list[Listener]":
    """A listener for each address of the host. These may use the files kept in reserve."""
    from chaoslab.wire.server._listener import Listener, open_sockets

    try:
        return [Listener(listener, connection, reserve=0) for listener in await open_sockets(host, port)]
    except OSError as error:
        reason = error.strerror or str(error)
        address = f"nobody can listen on {host}:{port}"
        raise OSError(error.errno, f"{address}: {reason.lower()}; give another host or port") from None


async def _load_config(catalog: "Catalog", config: Path) -> None:
    from chaoslab.wire.server._catalog import PopulateError

    try:
        body = load_bytes(config)
    except Unreadable as error:
        raise ValueError(f"{config} {error}; it should be a JSON file of proxies") from None
    try:
        await catalog.populate_proxies(body)
    except PopulateError as error:
        reason = error.message.removeprefix("bad request body: ")
        # Only where the content was refused; a port that is taken is no matter of the file's form.
        hint = "; it should be an array of proxies, as POST /populate takes it" if error.status == 400 else ""
        raise ValueError(f"{config}: {reason}{hint}") from None
