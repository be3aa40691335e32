"""An asyncio transport over one end of a virtual connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from chaoslab.worlds.virtual.network import End

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.loop import VirtualLoop


class VirtualTransport(asyncio.Transport):
    """What asyncio's protocols expect of a connected socket. `face` is what they may ask for as `socket`."""

    def __init__(self, loop: VirtualLoop, end: End, protocol: asyncio.BaseProtocol, face: Any) -> None:
        super().__init__({"socket": face, "sockname": end.address, "peername": end.peer_address})
        self._loop, self._end, self._face = loop, end, face
        self._protocol = protocol
        self._paused = self._closing = self._lost = self._eof_told = self._full = self._due = False
        end.receiver = self

    @property
    def peer(self) -> str:
        return self._loop.network.named(self._end.peer_address)

    def begin(self) -> None:
        """Tells the protocol that it is connected, then what has arrived. On the loop's own thread."""
        self._protocol.connection_made(self)
        if self._end.error is not None:
            self._lose(self._end.error)
        else:
            self._deliver()

    # What the end tells; the protocol hears of it on its loop's thread.

    def arrived(self) -> None:
        if not self._due and not self._paused:
            self._due = True
            self._loop.call_soon_threadsafe(self._deliver)

    def broke(self, error: OSError) -> None:
        self._loop.call_soon_threadsafe(self._lose, error)

    def drained(self) -> None:
        self._loop.call_soon_threadsafe(self._resume_writing)

    def _deliver(self) -> None:
        self._due = False
        end = self._end
        protocol = cast(asyncio.Protocol, self._protocol)
        while not self._paused and not self._closing and end.error is None and (data := end.take()):
            protocol.data_received(data)
            protocol = cast(asyncio.Protocol, self._protocol)
        if end.ended and not end.available_bytes and not self._paused and not self._closing and not self._eof_told:
            self._eof_told = True
            if not protocol.eof_received():
                self.close()

    def _resume_writing(self) -> None:
        if self._full and not self._end.full:
            self._full = False
            self._protocol.resume_writing()

    def _lose(self, error: OSError | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._end.receiver = None
            self._protocol.connection_lost(error)
            self._face.close()

    # What the protocol asks for.

    def write(self, data: Any) -> None:
        if self._closing or self._end.error is not None:
            return
        self._end.write(bytes(data))
        if self._end.full and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._closing:
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
        if not self._closing:
            self._closing = True
            self._end.close()
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self._lost:
            self._closing = True
            if self._face.rude:
                self._end.reset()
            else:
                self._end.close()
            self._loop.call_soon(self._lose, None)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return self._end.waiting_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The window of the connection is the limit: what is beyond it is what a real socket would not have taken."""
