"""Answers of applications, of WSGI or made to look like it: whole, in parts as they come, or broken off."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Protocol

from chaoslab.base.boundary import let_through
from chaoslab.core.exchange import Failure
from chaoslab.seams.services.app import LEFT, Wsgi
from chaoslab.seams.services.line import Iterated
from chaoslab.worlds.virtual._wsgi import Answering, environ_of


class Broken(Exception):
    """An application's request to break the connection off instead of answering. `kind`: see `Failure`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


FAILED = b"Internal Server Error"


def own(words: bytes) -> list[tuple[str, str]]:
    """The headers of an answer of the server's own."""
    return [("content-length", str(len(words))), ("content-type", "text/plain"), ("connection", "close")]


def blame(target: bytes, name: str) -> None:
    """Logs the application's error, where a real server shows it."""
    logging.getLogger(__name__).exception("while serving %s at %s", target.decode("latin-1"), name)


Answered = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and the whole body."""


class AnswerListener(Protocol):
    """The caller's side of an answer that comes in parts, called in the application's thread."""

    def streams(self, status: int, fields: list[tuple[str, str]]) -> bool:
        """Tells, before the first part, if the body is to be passed on in parts."""

    def part(self, data: bytes) -> bool:
        """Takes a part; False if nobody reads any more."""


def answered_to(
    listener: AnswerListener,
    app: Wsgi,
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
    name: str,
) -> Answered | None:
    """The application's answer to a request; 500 if it fails. None if it went to the listener in parts. Raises Broken:
    it breaks off without an answer, or in the middle of one that comes in parts."""
    reply: Answered | None = None
    streamed = False
    try:
        with Answering(app, environ_of(method, target, headers, body, name)) as (started, parts):
            rest = iter(parts)
            first = next(rest, b"")
            status, fields = started[0]
            streamed = listener.streams(int(status[:3]), fields)
            if streamed:
                for part in itertools.chain((first,), rest):
                    if part and not listener.part(part):
                        return None
            else:
                reply = int(status[:3]), fields, first + b"".join(rest)
    except Broken:
        raise
    except BaseException as error:  # noqa: BLE001 - also errors after the whole answer, which do not change it
        let_through(error)
        blame(target, name)
        if streamed:
            raise Broken("closed") from None
    return None if streamed else reply or (500, own(FAILED), FAILED)


class OpenedAnswer:
    """An application's answer that has begun: status and headers are there; 500 if it failed before."""

    def __init__(
        self, app: Wsgi, name: str, method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes,
        *, https: bool = False, left: list[Callable[[], None]] | None = None,
    ) -> None:  # fmt: skip
        """`left`: the functions to call when the client hangs up."""
        self._target, self._name, self._stack = target, name, ExitStack()
        environ = environ_of(method, target, headers, body, name)
        environ["wsgi.url_scheme"] = "https" if https else "http"
        if left is not None:
            environ[LEFT] = left
        try:
            started, parts = self._stack.enter_context(Answering(app, environ))
            self._rest = iter(parts)
            self._first = next(self._rest, b"")
            status, self.fields = started[0]
            self.status = int(status[:3])
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            self._fail()

    async def whole(self) -> Answered:
        """The whole answer; 500 if the rest of it fails."""
        try:
            body = self._first + b"".join(self._rest)
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            self._fail()
            body = self._first
        self.close()
        return self.status, self.fields, body

    def parts(self) -> Iterated:
        """The body as it comes. `take` raises a `Failure`, closed, if the application fails."""
        return Iterated(self._parts())

    def _parts(self) -> Iterator[bytes]:
        try:
            yield from filter(None, itertools.chain((self._first,), self._rest))
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            blame(self._target, self._name)
            raise Failure("closed") from None
        finally:
            self.close()

    def close(self) -> None:
        """Tells the application that its answer is over. An error of that changes nothing any more."""
        try:
            self._stack.close()
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            blame(self._target, self._name)

    def _fail(self) -> None:
        blame(self._target, self._name)
        self.status, self.fields, self._first, self._rest = 500, own(FAILED), FAILED, iter(())
