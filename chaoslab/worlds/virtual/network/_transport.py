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
    def peer_name(self) -> str:
        return self._loop.network.format_address(self._end.peer_address)

    def enable_tls(self, context: Any, server_side: bool, server_hostname: Any) -> None:
        """Has TLS from now on. `context`: True for a default one."""
        self._extra.update(_tls.build_transport_info(context, server_side, server_hostname))  # type: ignore[attr-defined]
        self._end.tls = True

    def start_protocol(self) -> None:
        """Tells the protocol that it is connected, then delivers the data that has arrived. Runs on the loop's own
        thread."""
        self._protocol.connection_made(self)
        self._deliver_data()

    # Events of the end; the protocol hears of them on its loop's thread.

    def handle_arrival(self) -> None:
        # Once for all that arrives until the loop has its turn.
        if not self._due:
            self._due = True
            self._loop.call_if_open(self._deliver_data)

    def handle_reset(self, error: OSError) -> None:
        """Reports a reset at once to a blocked writer; else the end keeps it for the reader."""
        if self._full:
            self._loop.call_if_open(self._close_with_error, error)
        else:
            self.handle_arrival()

    def handle_write_room(self) -> None:
        self._loop.call_if_open(self._resume_writing)

    def _deliver_data(self) -> None:
        self._due = False
        # A protocol may pause or close in the middle of what it is given.
        while self._can_deliver() and self._end.has_readable_data():
            protocol = cast(asyncio.Protocol, self._protocol)
            try:
                data = self._end.receive_bytes()
            except OSError as error:
                self._close_with_error(error)
                return
            if data:
                protocol.data_received(data)
                continue
            self._eof_told = True
            if not protocol.eof_received() or self._end.tls:  # TLS of asyncio knows no half-closed connection
                self.close()

    def _can_deliver(self) -> bool:
        return not (self._paused or self._closing or self._eof_told)

    def _resume_writing(self) -> None:
        if self._lost or self._end.is_full:
            return
        if self._full:
            self._full = False
            self._protocol.resume_writing()
        # Closed while the buffer was full: now that it is empty, the end may go.
        if self._closing:
            self._close_end(None)

    def _close_with_error(self, error: OSError) -> None:
        self._closing = True
        self._close_end(error)

    def _close_end(self, error: OSError | None) -> None:
        if self._face.rude:
            # A linger time of 0 was set on its socket.
            self._end.reset()
        else:
            self._end.close()
        if not self._loop.is_closed():  # False for the loop of an earlier trial
            # In a turn of its own, as asyncio calls `connection_lost`.
            self._loop.call_soon(self._report_connection_lost, error)

    def _report_connection_lost(self, error: OSError | None) -> None:
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
            self._close_with_error(error)
            return
        if self._end.is_full and not self._full:
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
            self._end.end_stream()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self.handle_arrival()

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Closes after everything written has been sent, even to a slow reader."""
        if not self._closing:
            self._closing = True
            if not self._end.is_full:
                self._close_end(None)

    def abort(self) -> None:
        self._closing = True
        if not self._lost:
            self._close_end(None)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return self._end.bytes_beyond_window

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
        self.address = network.listen(
            host, port, lambda end: loop.call_if_open(loop.accept_connection, factory, end, context)
        )
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
            self._network.stop_listening(*self.address)
            self._closed.set_result(None)

    async def wait_closed(self) -> None:
        pass
