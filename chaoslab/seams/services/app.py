"""The forms in which a user gives a service: a WSGI application, an ASGI 3 application, or a function of a request.

A function takes one `AppRequest` and returns its reply: a dict or a list (JSON), a str (text), bytes, None (204), or
one of them in a tuple after the status, with headers as a third item: `(404, "unknown order", {"X-Reason": "closed"})`.
A generator of texts is sent part by part. The function may be async.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, cast
from urllib.parse import parse_qsl

from chaoslab.base.json_text import encode_text
from chaoslab.base.phrases import get_status_phrase

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Kind = Literal["wsgi", "asgi", "function"]
# The key under which a WSGI environment has the request as it came: its target and its headers.
# WSGI joins repeated headers and unquotes the path, and a fault needs them as they came.
RAW = "chaoslab.raw"
# The key under which it has a list of functions that are called when the client hangs up.
LEFT = "chaoslab.left"
# The ports of a service that states none.
PORTS = (80, 443)
FORMS = "a WSGI or ASGI application, or a function of one argument, the request"
_REPLIES = "it should return a dict, list, str, bytes or None, or (status, body), or (status, body, headers)"


@dataclass(frozen=True)
class AppRequest:
    """A request to a service that is a function. `path` is unquoted; `query` has the last value of each field; the
    names of `headers` are in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None if it is empty. A body that is no JSON is answered with 400. Raises ValueError: it is
        no JSON."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError as error:
            raise NoJsonError(f"the body is no JSON: {error}") from None

    @property
    def text(self) -> str:
        # "replace": the function decides what is wrong with its request, not its decoding.
        return self.body.decode("utf-8", "replace")


class NoJsonError(ValueError):
    """A request whose body is no JSON."""


def parse_host_and_ports(name: str) -> tuple[str, tuple[int, ...]]:
    """The host and the ports of a service's name, such as "bank" or "localhost:11434"."""
    host, _, port = name.partition(":")
    return host, (int(port),) if port else PORTS


def detect_service_kind(app: Any) -> Kind:
    """The form of a service. Raises TypeError: it has none of them; the message is the end of a sentence."""
    if not callable(app):
        raise TypeError(f"it should be {FORMS}")
    if isinstance(app, type):
        if _accepts_arguments(app, 2) and not _accepts_arguments(app, 1):
            return "wsgi"
        raise TypeError(f"it is a class: give what it makes, as in {app.__name__}(…), which should be {FORMS}")
    of_coroutine = _is_coroutine(app)
    if of_coroutine and _accepts_arguments(app, 3):
        return "asgi"
    if _count_required_args(app) == 1 or (of_coroutine and _accepts_arguments(app, 1)):
        return "function"
    if _accepts_arguments(app, 2) and not of_coroutine:
        return "wsgi"
    hint = "; what makes one is given as lab.fresh(…)" if _accepts_arguments(app, 0) else ""
    raise TypeError(f"it takes {_count_required_args(app)} arguments: it should be {FORMS}{hint}")


def _is_coroutine(app: Any) -> bool:
    while isinstance(app, partial):
        app = app.func
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(getattr(app, "__call__", None))  # noqa: B004


def _get_signature(app: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(app)
    except (TypeError, ValueError):  # some functions written in C
        return None


def _accepts_arguments(app: Any, count: int) -> bool:
    signature = _get_signature(app)
    if signature is None:
        # Whatever it is, calling it tells.
        return True
    try:
        # Bound and not counted, so that defaults and `*args` are taken into account.
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _count_required_args(app: Any) -> int:
    """The number of positional arguments without a default; 2 for a callable that takes any number, as WSGI has."""
    signature = _get_signature(app)
    parameters = signature.parameters.values() if signature is not None else ()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    return sum(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )


def make_wsgi(function: Callable[[AppRequest], Any]) -> Wsgi:
    """The function as a WSGI application."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            reply = function(_build_request(environ))
            if inspect.isawaitable(reply):
                reply = asyncio.run(_await_reply(reply))
        except NoJsonError as error:
            reply = (400, str(error))
        status, headers, body = _parse_reply(reply, function)
        start_response(f"{status} {get_status_phrase(status)}", headers)
        return body

    return app


async def _await_reply(reply: Any) -> Any:
    return await reply


def _build_request(environ: Mapping[str, Any]) -> AppRequest:
    # CGI's names have an underscore for each dash and no case.
    headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
    if "CONTENT_TYPE" in environ:
        headers["content-type"] = environ["CONTENT_TYPE"]
    # PEP 3333: WSGI's texts are bytes in Latin-1.
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    return AppRequest(environ["REQUEST_METHOD"], path, query, headers, environ["wsgi.input"].read())


def _parse_reply(reply: Any, function: Any) -> tuple[int, list[tuple[str, str]], Iterable[bytes]]:
    """Status, headers and body of a function's reply. Raises TypeError: it is no reply."""
    # 204 for None: a service that has nothing to say, as frameworks answer.
    returned, status, extra, body = reply, 204 if reply is None else 200, cast(Any, {}), reply
    if isinstance(reply, tuple):
        # bool is an int too, and (True, ...) is answered by 100 to 999.
        if len(reply) not in (2, 3) or not isinstance(reply[0], int) or not 100 <= reply[0] <= 999:
            raise _make_reply_error(function, returned)
        status, body = int(reply[0]), reply[1]
        extra = (reply[2] or {}) if len(reply) == 3 else {}
    if not isinstance(extra, Mapping):
        raise _make_reply_error(function, returned)
    headers = [(str(name), str(value)) for name, value in extra.items()]
    if isinstance(body, Iterator):
        return status, _add_content_type(headers, "text/plain; charset=utf-8"), map(_encode_piece, body)
    if isinstance(body, dict | list):
        data, kind = encode_text(json.dumps(body, ensure_ascii=False)), "application/json"
    elif isinstance(body, str):
        data, kind = body.encode(), "text/plain; charset=utf-8"
    elif isinstance(body, bytes) or body is None:
        data, kind = body or b"", "application/octet-stream" if body else ""
    else:
        raise _make_reply_error(function, returned)
    headers = _add_content_type(headers, kind) if kind else headers
    # 204 and 304 have no body, and 204 no length either (RFC 9110, section 8.6).
    return status, headers if status in (204, 304) else [*headers, ("Content-Length", str(len(data)))], [data]


def _make_reply_error(function: Any, returned: Any) -> TypeError:
    name = getattr(function, "__name__", type(function).__name__)
    return TypeError(f"the service {name} returned {type(returned).__name__} {returned!r:.60}: {_REPLIES}")


def _add_content_type(headers: list[tuple[str, str]], kind: str) -> list[tuple[str, str]]:
    return headers if any(name.lower() == "content-type" for name, _ in headers) else [*headers, ("Content-Type", kind)]


def _encode_piece(piece: Any) -> bytes:
    return piece if isinstance(piece, bytes) else str(piece).encode()
