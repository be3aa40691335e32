"""An asyncio transport over one end of a virtual connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from chaoslab.worlds.virtual.network import _tls
from chaoslab.worlds.virtual.network.network import Address, Network, NetworkEnd

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.network._loop import VirtualLoop


class VirtualTransport(asyncio.Transport):
    """The transport of a connected virtual socket. Protocols get `face` as its `socket`."""

    def __init__(self, loop: VirtualLoop, end: NetworkEnd, protocol: asyncio.BaseProtocol, face: Any) -> None:
        super().__init__({"socket": face, "sockname": end.address, "peername": end.peer_address})
        self._loop, self._end, self._face = loop, end, face
        self._protocol = protocol
        self._paused = self._closing = self._lost = self._eof_told = self._full = self._due = self._ended = False
        end.receiver = self

    @property
    def peer(self) -> str:
        return self._loop.network.named(self._end.peer_address)

    def secure(self, context: Any, server_side: bool, server_hostname: Any) -> None:
        """Has TLS from now on. `context`: True for a default one."""
        self._extra.update(_tls.transport_info(context, server_side, server_hostname))  # type: ignore[attr-defined]
        self._end.tls = True

    def begin(self) -> None:
        """Tells the protocol that it is connected, then delivers the data that has arrived. Runs on the loop's own
        thread."""
        self._protocol.connection_made(self)
        self._deliver()

    # Events of the end; the protocol hears of them on its loop's thread.

    def arrived(self) -> None:
        # Once for all that arrives until the loop has its turn.
        if not self._due:
            self._due = True
            self._loop.tell(self._deliver)

    def broke(self, error: OSError) -> None:
        """Reports a reset at once to a blocked writer; else the end keeps it for the reader."""
        if self._full:
            self._loop.tell(self._cut_off, error)
        else:
            self.arrived()

    def drained(self) -> None:
        self._loop.tell(self._resume_writing)

    def _deliver(self) -> None:
        self._due = False
        # A protocol may pause or close in the middle of what it is given.
        while self._hears() and self._end.available():
            protocol = cast(asyncio.Protocol, self._protocol)
            try:
                data = self._end.take()
            except OSError as error:
                self._cut_off(error)
                return
            if data:
                protocol.data_received(data)
                continue
            self._eof_told = True
            if not protocol.eof_received() or self._end.tls:  # TLS of asyncio knows no half-closed connection
                self.close()

    def _hears(self) -> bool:
        return not (self._paused or self._closing or self._eof_told)

    def _resume_writing(self) -> None:
        if self._lost or self._end.full:
            return
        if self._full:
            self._full = False
            self._protocol.resume_writing()
        # Closed while the buffer was full: now that it is empty, the end may go.
        if self._closing:
            self._hang_up(None)

    def _cut_off(self, error: OSError) -> None:
        self._closing = True
        self._hang_up(error)

    def _hang_up(self, error: OSError | None) -> None:
        if self._face.rude:
            # A linger time of 0 was set on its socket.
            self._end.reset()
        else:
            self._end.close()
        if not self._loop.is_closed():  # False for the loop of an earlier trial
            # In a turn of its own, as asyncio calls `connection_lost`.
            self._loop.call_soon(self._lose, error)

    def _lose(self, error: OSError | None) -> None:
        if not self._lost:
            self._lost = True
            self._end.receiver = None
            self._protocol.connection_lost(error)
            self._face.close()

    # Calls by the protocol.

    def write(self, data: Any) -> None:
        if self._ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._closing or not data:
            return
        try:
            self._end.write(bytes(data))
        except OSError as error:
            self._cut_off(error)
            return
        if self._end.full and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        # In one delivery, so that a head and its body arrive together.
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        # TLS knows no half of a connection.
        return not self._end.tls

    def write_eof(self) -> None:
        if self._end.tls:
            raise NotImplementedError
        if not self._closing:
            self._ended = True
            self._end.end()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self.arrived()

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Closes after everything written has been sent, even to a slow reader."""
        if not self._closing:
            self._closing = True
            if not self._end.full:
                self._hang_up(None)

    def abort(self) -> None:
        self._closing = True
        if not self._lost:
            self._hang_up(None)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return self._end.waiting_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The limits of the data beyond the window: a writer pauses as soon as there is any, and resumes when there is
        none."""
        return 0, 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing: the limit is the window of the connection, beyond which a real socket would take nothing."""


class VirtualServer(asyncio.AbstractServer):
    """A server that listens from the start until it is closed; accepted connections go on."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: Network,
        host: str,
        port: int,
        factory: Callable[[], asyncio.BaseProtocol],
        context: Any,
    ) -> None:
        self._loop, self._network = loop, network
        # The network calls it in the machine; a connection belongs on the loop's thread.
        self.address = network.listen(host, port, lambda end: loop.tell(loop.accept, factory, end, context))
        self._closed = loop.create_future()

    @property
    def sockets(self) -> tuple[VirtualServer, ...]:
        return (self,) if self.is_serving() else ()

    def getsockname(self) -> Address:
        return self.address

    def is_serving(self) -> bool:
        return not self._closed.done()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def start_serving(self) -> None:
        pass

    async def serve_forever(self) -> None:
        try:
            # Shielded: a cancelled caller must not end the server for others that wait.
            await asyncio.shield(self._closed)
        finally:
            self.close()

    def close(self) -> None:
        if self.is_serving():
            self._network.silence(*self.address)
            self._closed.set_result(None)

    async def wait_closed(self) -> None:
        pass
