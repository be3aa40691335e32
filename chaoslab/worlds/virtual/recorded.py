"""Stands in for whom the lab cannot make speak again: a paid model or a real service says what the log says that it said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chaoslab.events import Replied
from chaoslab.identity import digest
from chaoslab.worlds.virtual.serving import Wsgi


class Recording:
    """The words of one trial; `begin` puts the next trial's in their place."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, str], list[Replied]] = {}
        self._last: dict[tuple[str, str], Replied] = {}

    def begin(self, replies: Sequence[Replied]) -> None:
        self._replies, self._last = {}, {}
        for reply in replies:
            self._replies.setdefault((reply.target, reply.asked), []).append(reply)

    def app(self, target: str) -> Wsgi:
        """A web application that answers as that target did.

        A reply that was lost on its way was never recorded, and what stands for it is lost again: so the next one recorded for the same
        question is given, and the last one once more.
        """

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            key = (target, digest(json.loads(body)) if body else "")
            waiting = self._replies.get(key)
            reply = waiting.pop(0) if waiting else self._last.get(key)
            if reply is None:
                start_response(
                    "500 Internal Server Error", [("Content-Type", "application/json"), ("X-Should-Retry", "false")]
                )
                return [b'{"error":{"message":"the log holds no reply to this question"}}']
            self._last[key] = reply
            text = reply.body.encode()
            headers = [("Content-Type", reply.content_type), ("Content-Length", str(len(text)))]
            start_response(f"{reply.status} as recorded", headers)
            return [text]

        return answer
