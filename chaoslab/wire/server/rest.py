"""The API's routes: they turn requests into calls of the catalog and results into answers."""

import asyncio
import posixpath
import re
import secrets
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from chaoslab.base.web_pages import refused
from chaoslab.wire.server import metrics
from chaoslab.wire.server._catalog import Catalog, PopulateError
from chaoslab.wire.server._spelling import ApiError, BadTarget, dump

VERSION = "2.12.0"
JSON = "application/json"
ANSWER_S = 25.0  # a change that takes longer is answered with 503
BROWSER = "Mozilla/"  # the start of every browser's user agent: a web page must not change anything here
TARGET = re.compile(r"([a-z][a-z0-9+.-]*:(?://[^/?]*)?(?=/|\?|$)|(?=/))(/[^?]*|)(\?.*)?|\*", re.IGNORECASE)
TIMEOUT_PAGE = b"<html><head><title>Timeout</title></head><body><h1>Timeout</h1></body></html>"


@dataclass(frozen=True)
class RestRequest:
    """One request, as the routes see it."""

    method: str
    target: str
    body: bytes = b""
    user_agent: str = ""
    host: str | None = None
    origin: str | None = None

    @property
    def path(self) -> str:
        """The target's path, decoded. Bytes that are no UTF-8 become lone surrogates. Raises BadTarget: the target is
        malformed."""
        found = TARGET.fullmatch(self.target)
        if found is None or re.search("%(?![0-9a-f]{2})", found[2] or "", re.IGNORECASE):
            raise BadTarget(self.target)
        return unquote(self.target if found[2] is None else found[2], errors="surrogateescape")

    def moved(self, path: str) -> str:
        """The target with another path."""
        found = TARGET.fullmatch(self.target)
        assert found is not None
        return (found[1] or "") + quote(path, safe="/$&+,:;=@", errors="surrogateescape") + (found[3] or "")


@dataclass(frozen=True)
class RestResponse:
    """One answer. A body has a content type."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[..., Coroutine[Any, Any, RestResponse]]


async def answer(catalog: Catalog, request: RestRequest, *, within_s: float = ANSWER_S) -> RestResponse:
    """The server's answer to a request, also to a wrong one. Raises BadTarget: the request's target is malformed."""
    begun = begin(catalog, request, within_s=within_s)
    return begun if isinstance(begun, RestResponse) else await begun


def begin(
    catalog: Catalog, request: RestRequest, *, within_s: float = ANSWER_S
) -> RestResponse | Coroutine[Any, Any, RestResponse]:
    """The answer if it need not wait; else a coroutine of it, to be awaited in a task."""
    path = request.path
    if path == "*" and request.method == "OPTIONS":
        return RestResponse(200, headers={"Content-Length": "0"})
    if path != (clean := _clean(path)):
        return RestResponse(301, headers={"Location": request.moved(clean)})
    found = ({request.method: _metrics}, ()) if path == "/metrics" and catalog.shows_metrics else _match(path)
    if found is None:
        return _plain(404, "404 page not found\n")
    handlers, names = found
    handler = handlers.get(request.method)
    if handler is None:
        return RestResponse(405)
    if request.user_agent.startswith(BROWSER):
        return _numbered(_plain(403, "User agent not allowed\n"))
    if why := refused(request.host, request.origin):
        return _numbered(_plain(403, f"{why.capitalize()}\n"))
    handling = handler(catalog, request, *names)
    try:
        waits_for = handling.send(None)
    except StopIteration as done:
        return _numbered(done.value)
    except ApiError as error:
        return _numbered(_refusal(error))
    return _finished(_Begun(handling, waits_for), within_s)


async def _finished(handling: "_Begun", within_s: float) -> RestResponse:
    try:
        async with asyncio.timeout(within_s):
            response = await handling
    except ApiError as error:
        response = _refusal(error)
    except TimeoutError:
        response = RestResponse(503, TIMEOUT_PAGE, "text/html; charset=utf-8")
    return _numbered(response)


class _Begun:
    """A coroutine that has come to its first wait, as an awaitable of the rest."""

    def __init__(self, coroutine: Coroutine[Any, Any, RestResponse], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for

    def __await__(self) -> Generator[Any, Any, RestResponse]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    told = yield waits_for
                except BaseException as error:  # noqa: BLE001 - it is the coroutine's to catch
                    waits_for = self._coroutine.throw(error)
                else:
                    waits_for = self._coroutine.send(told)
        except StopIteration as done:
            response: RestResponse = done.value
            return response


def _refusal(error: ApiError) -> RestResponse:
    return _plain(error.status, dump({"error": error.message, "status": error.status}) + "\n")


def _numbered(response: RestResponse) -> RestResponse:
    response.headers["X-Toxiproxy-Request-Id"] = secrets.token_hex(10)
    return response


async def _version(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    return RestResponse(200, b'{"version": "%s"}\n' % VERSION.encode(), f"{JSON};charset=utf-8")


async def _list(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    return _json(200, catalog.to_json())


async def _create(catalog: Catalog, request: RestRequest) -> RestResponse:
    return _json(201, (await catalog.create(request.body)).to_json())


async def _show(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    return _json(200, catalog.get(proxy).to_json())


async def _update(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:
    return _json(200, (await catalog.update(proxy, request.body)).to_json())


async def _delete(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    await catalog.delete(proxy)
    return RestResponse(204)


async def _toxics(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    return _json(200, catalog.get(proxy).toxics_json())


async def _add_toxic(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:
    return _json(200, catalog.add_toxic(proxy, request.body).to_json())


async def _show_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:  # noqa: ARG001
    return _json(200, catalog.toxic(proxy, toxic).to_json())


async def _update_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:
    return _json(200, catalog.update_toxic(proxy, toxic, request.body).to_json())


async def _delete_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:  # noqa: ARG001
    catalog.delete_toxic(proxy, toxic)
    return RestResponse(204)


async def _populate(catalog: Catalog, request: RestRequest) -> RestResponse:
    try:
        made = await catalog.populate(request.body)
    except PopulateError as error:
        proxies = [proxy.to_json() for proxy in error.made] or None
        return _json(error.status, {"error": error.message, "status": error.status, "proxies": proxies})
    return _json(201, {"proxies": [proxy.to_json() for proxy in made] or None})


async def _reset(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    await catalog.reset()
    return RestResponse(204)


async def _metrics(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    return RestResponse(200, catalog.metrics().encode(), metrics.CONTENT_TYPE)


NAME = "([^/]+)"
PATHS: dict[str, dict[str, Handler]] = {
    "/version": {"GET": _version},
    "/proxies": {"GET": _list, "POST": _create},
    "/populate": {"POST": _populate},
    "/reset": {"POST": _reset},
    f"/proxies/{NAME}": {"GET": _show, "POST": _update, "PATCH": _update, "DELETE": _delete},
    f"/proxies/{NAME}/toxics": {"GET": _toxics, "POST": _add_toxic},
    f"/proxies/{NAME}/toxics/{NAME}": {
        "GET": _show_toxic,
        "POST": _update_toxic,
        "PATCH": _update_toxic,
        "DELETE": _delete_toxic,
    },
}
ROUTES = tuple((re.compile(path), handlers) for path, handlers in PATHS.items())


def _match(path: str) -> tuple[dict[str, Handler], tuple[str, ...]] | None:
    for pattern, handlers in ROUTES:
        if match := pattern.fullmatch(path):
            return handlers, match.groups()
    return None


def _clean(path: str) -> str:
    """The path without empty parts, `.` and `..`. A slash at the end stays."""
    clean = posixpath.normpath("/" + path.lstrip("/"))
    return clean + "/" if path.endswith("/") and clean != "/" else clean


def _json(status: int, value: Any) -> RestResponse:
    return RestResponse(status, dump(value).encode(), JSON)


def _plain(status: int, text: str) -> RestResponse:
    return RestResponse(status, text.encode(), "text/plain; charset=utf-8", {"X-Content-Type-Options": "nosniff"})
