"""Server-sent events, as far as answers in JSON-RPC come in them: the answer is the data of one of several events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from chaoslab.base.json_text import encoded
from chaoslab.core.stream import Events, json_of


def values(body: bytes) -> Iterator[Any]:
    """The JSON of each event of a body; that of the body itself if there are no events in it."""
    events = Events()
    found = [*events.feed(body), events.rest]
    if any(line.startswith(b"data:") for line in body.splitlines()):
        yield from (value for event in found if (value := json_of(event)) is not None)
    else:
        try:
            yield json.loads(body)
        except (ValueError, RecursionError):
            return


def replaced(body: bytes, is_it: Callable[[Any], bool], data: str) -> bytes:
    """The body with this data in the first event whose JSON fits. Its other fields, such as `id`, stay."""
    events = Events()
    found, done = [*events.feed(body), events.rest], False
    for number, event in enumerate(found):
        if not done and is_it(json_of(event)):
            kept = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
            found[number] = b"\n".join([*kept, b"data: " + encoded(data), b"", b""])
            done = True
    return b"".join(found)
