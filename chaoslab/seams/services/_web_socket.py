"""WebSockets as a service's seam sees them: the messages in the bytes that follow the answer 101 (RFC 6455)."""

from __future__ import annotations

UPGRADED = 101
"""The status of an answer after which the connection speaks another protocol."""
FRAME_MAX = 4 * 1024 * 1024
"""The largest frame that is held back until it is complete, in bytes; a larger one passes in pieces."""
_CONTROL, _LAST = 0x08, 0x80


class Messages:
    """Cuts the bytes of one direction into messages, each with all its frames. A frame that controls the connection,
    such as a ping, is a message too, unless it comes in the middle of another one."""

    def __init__(self) -> None:
        self._held = b""
        self._end = 0
        """The end of the whole frames in what is held, which are the beginning of a message."""
        self._large = 0
        """The bytes that are missing of a frame that passes in pieces."""

    @property
    def rest(self) -> bytes:
        return self._held

    def feed(self, part: bytes) -> list[bytes]:
        large, found = part[: self._large], list[bytes]()
        self._large -= len(large)
        if large:
            found.append(large)
        self._held += part[len(large) :]
        while (size := _size(self._held, self._end)) is not None:
            first, end = self._held[self._end], self._end + size
            whole = len(self._held) >= end
            if not whole and size <= FRAME_MAX:
                break
            alone = self._end == 0 and first & _CONTROL
            if (first & _LAST and not first & _CONTROL) or alone or not whole:
                found.append(self._held[:end])
                self._large = max(0, end - len(self._held))
                self._held, self._end = self._held[end:], 0
            else:
                self._end = end
        return found


def _size(data: bytes, begin: int) -> int | None:
    """The size of the frame that begins there, with its head; None as long as the head does not tell it."""
    if len(data) < begin + 2:
        return None
    length, head = data[begin + 1] & 0x7F, 2
    if length >= 126:
        head += 2 if length == 126 else 8
        if len(data) < begin + head:
            return None
        length = int.from_bytes(data[begin + 2 : begin + head], "big")
    return head + (4 if data[begin + 1] & 0x80 else 0) + length
