"""Plain requests, which a service answers without Flask: its contexts, signals and routing cost more than most answers.
A plain request has the method and the whole path of a route, and a body of a stated length within the bound. All others
go to Flask. Both come to the same answer, byte by byte."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from chaoslab.base.web_pages import refused
from chaoslab.flask_tools.ledger import Worked

PHRASES = {200: "OK", 201: "CREATED", 204: "NO CONTENT", 400: "BAD REQUEST", 403: "FORBIDDEN", 404: "NOT FOUND"}
"""Those of most answers, for which werkzeug need not be loaded."""
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class PlainRequest:
    """A request to a route. `trial` and `key`: its headers X-Trial and Idempotency-Key. `body` reads its bytes.
    `parts`: the named parts of its path."""

    method: str
    path: str
    trial: str | None
    key: str | None
    query: Sequence[tuple[str, str]]
    body: Callable[[], bytes]
    parts: Mapping[str, str]


def plain_first(
    flask: Wsgi, routes: Mapping[tuple[str, str], Callable[[PlainRequest], Worked]], *, body_max: int,
    all_to_flask: Callable[[], bool], refuse: Callable[[str], Worked],
    tell: Callable[[PlainRequest, Worked], None] = lambda _asked, _worked: None,
) -> Wsgi:  # fmt: skip
    """An application that answers plain requests by `routes` (method and path) itself, and has `flask` answer the
    others. `all_to_flask`: tells if Flask has more to do at each request. `refuse`: the answer to a web page. `tell` is
    told of each plain request and its answer."""

    def answered(worked: Worked, start_response: Callable[..., Any]) -> Iterable[bytes]:
        data = worked.text.encode()
        headers = [("Content-Type", "application/json")] if data else []
        if worked.status != 204:
            headers.append(("Content-Length", str(len(data))))
        headers += worked.headers.items()
        if worked.replayed:
            headers.append(("Idempotency-Replayed", "true"))
        start_response(f"{worked.status} {PHRASES.get(worked.status) or _phrase(worked.status)}", headers)
        return (data,)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if why := refused(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")):
            return answered(refuse(why), start_response)
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        # Of a GET without a length, which has no body, waitress says nothing.
        work, length = routes.get((method, path)), environ.get("CONTENT_LENGTH", "0" if method == "GET" else "")
        query = environ.get("QUERY_STRING", "")
        if (
            work is None
            or not (length.isascii() and length.isdigit() and int(length) <= body_max)
            or environ.get("SCRIPT_NAME")
            or "HTTP_TRANSFER_ENCODING" in environ
            or "HTTP_UPGRADE" in environ
            or not query.isascii()
            or all_to_flask()
        ):
            return flask(environ, start_response)
        body = environ["wsgi.input"].read(int(length)) if length != "0" else b""
        if len(body) != int(length):  # the client has gone
            return flask({**environ, "wsgi.input": io.BytesIO(body)}, start_response)
        fields = parse_qsl(query, keep_blank_values=True, errors="werkzeug.url_quote") if query else ()
        trial, key = environ.get("HTTP_X_TRIAL"), environ.get("HTTP_IDEMPOTENCY_KEY")
        asked = PlainRequest(method, path, trial, key, fields, lambda: body, {})
        tell(asked, worked := work(asked))
        return answered(worked, start_response)

    return app


def _phrase(status: int) -> str:
    from werkzeug.http import HTTP_STATUS_CODES

    return HTTP_STATUS_CODES.get(status, "unknown").upper()
