"""Amazon's binary event streams: each event is a frame with headers, a payload and two checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from zlib import crc32

FRAMES = "application/vnd.amazon.eventstream"
"""The type of such a body."""
FRAME_MAX = 16 * 1024 * 1024
"""The most bytes of a frame, as Amazon states it. A larger length is no frame's."""
_PRELUDE = 12
"""The lengths of the frame and of its headers, and their checksum, in bytes."""


class FrameCutter:
    """Cuts a body into frames, whatever parts it comes in."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def rest(self) -> bytes:
        """The beginning of a frame that is not complete."""
        return self._rest

    def feed(self, part: bytes) -> list[bytes]:
        """The frames that are complete with this part, in order."""
        data, found = self._rest + part, list[bytes]()
        while len(data) >= 4 and len(data) >= (size := max(4, int.from_bytes(data[:4], "big"))):
            found.append(data[:size])
            data = data[size:]
        if len(data) >= 4 and int.from_bytes(data[:4], "big") > FRAME_MAX:  # it is no frame
            found.append(data)
            data = b""
        self._rest = data
        return found


def frame(kind: str, value: Mapping[str, Any], *, exception: bool = False) -> bytes:
    """An event of this kind with JSON; `exception`: it is an error."""
    what, type_ = (":exception-type", "exception") if exception else (":event-type", "event")
    told = ((what, kind), (":content-type", "application/json"), (":message-type", type_))
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(said).to_bytes(2, "big") + said.encode()
        for name, said in told
    )
    payload = json.dumps(value, ensure_ascii=False).encode()
    prelude = (_PRELUDE + len(headers) + len(payload) + 4).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + crc32(body).to_bytes(4, "big")


def payload_of(event: bytes) -> bytes:
    """The payload of a frame."""
    return event[_PRELUDE + int.from_bytes(event[4:8], "big") : -4]
