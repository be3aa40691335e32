"""The API's routes: they turn requests into calls of the catalog and results into answers."""

import asyncio
import re
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from chaoslab.base.web_pages import find_refusal_reason
from chaoslab.wire.server._catalog import ApiError, Catalog, PopulateError

VERSION = "2.12.0"
JSON = "application/json"
# The real server's own bound.
ANSWER_S = 25.0  # a change that takes longer is answered with 503
BROWSER = "Mozilla/"  # the start of every browser's user agent: a web page must not change anything here


@dataclass(frozen=True)
class RestRequest:
    """One request, as the routes see it."""

    method: str
    target: str
    body: bytes = b""
    user_agents: tuple[str, ...] = ()
    host: str | None = None
    origin: str | None = None


@dataclass(frozen=True)
class RestResponse:
    """One answer."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[..., Coroutine[Any, Any, RestResponse]]


async def answer_request(catalog: Catalog, request: RestRequest, *, within_s: float = ANSWER_S) -> RestResponse:
    """The server's answer to a request, also to a wrong one."""
    route = _match_route(request.target)
    if route is None:
        return _make_text_response(404, "404 page not found\n")
    handlers, names = route
    handler = handlers.get(request.method)
    # Of a path that is known: the real server answers 404 first.
    if handler is None:
        return RestResponse(405)
    # Any of several: a page may add a User-Agent of its own.
    if any(agent.startswith(BROWSER) for agent in request.user_agents):
        response = _make_text_response(403, "User agent not allowed\n")
    # A page could reach this port by a name that it has led to loopback.
    elif reason := find_refusal_reason(request.host, request.origin):
        response = _make_text_response(403, f"{reason.capitalize()}\n")
    else:
        try:
            async with asyncio.timeout(within_s):
                response = await handler(catalog, request, *names)
        except ApiError as error:
            response = _make_refusal(error.status, error.message)
        except TimeoutError:
            # The real server sends a page of HTML here.
            response = _make_refusal(503, f"the change took longer than {within_s:g} s")
    # Only on routes that matched, as there.
    response.headers["X-Toxiproxy-Request-Id"] = secrets.token_hex(10)
    return response


def _make_refusal(status: int, message: str) -> RestResponse:
    return _make_text_response(status, msgspec.json.encode({"error": message, "status": status}).decode() + "\n")


async def _show_version(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    # With its line end and without a space after the semicolon, as the real server spells it.
    return RestResponse(200, b'{"version": "%s"}\n' % VERSION.encode(), {"Content-Type": f"{JSON};charset=utf-8"})


async def _list_proxies(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    return _make_json_response(200, catalog.to_json())


async def _create_proxy(catalog: Catalog, request: RestRequest) -> RestResponse:
    # 201 here, and 200 for a toxic below: as the real server answers.
    return _make_json_response(201, (await catalog.create_proxy(request.body)).to_json())


async def _show_proxy(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    return _make_json_response(200, catalog.get_proxy(proxy).to_json())


async def _update_proxy(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:
    return _make_json_response(200, (await catalog.update_proxy(proxy, request.body)).to_json())


async def _delete_proxy(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    await catalog.delete_proxy(proxy)
    return RestResponse(204)


async def _list_toxics(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:  # noqa: ARG001
    return _make_json_response(200, catalog.get_proxy(proxy).toxics_to_json())


async def _add_toxic(catalog: Catalog, request: RestRequest, proxy: str) -> RestResponse:
    return _make_json_response(200, catalog.add_toxic(proxy, request.body).to_json())


async def _show_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:  # noqa: ARG001
    return _make_json_response(200, catalog.get_toxic(proxy, toxic).to_json())


async def _update_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:
    return _make_json_response(200, catalog.update_toxic(proxy, toxic, request.body).to_json())


async def _delete_toxic(catalog: Catalog, request: RestRequest, proxy: str, toxic: str) -> RestResponse:  # noqa: ARG001
    catalog.delete_toxic(proxy, toxic)
    return RestResponse(204)


async def _populate_proxies(catalog: Catalog, request: RestRequest) -> RestResponse:
    try:
        populated = await catalog.populate_proxies(request.body)
    except PopulateError as error:
        # null and not an empty list, as Go encodes a slice that was never made.
        proxies = [proxy.to_json() for proxy in error.made] or None
        return _make_json_response(error.status, {"error": error.message, "status": error.status, "proxies": proxies})
    return _make_json_response(201, {"proxies": [proxy.to_json() for proxy in populated] or None})


async def _reset_proxies(catalog: Catalog, request: RestRequest) -> RestResponse:  # noqa: ARG001
    await catalog.reset_proxies()
    return RestResponse(204)


NAME = "([^/]+)"
PATHS: dict[str, dict[str, Handler]] = {
    "/version": {"GET": _show_version},
    "/proxies": {"GET": _list_proxies, "POST": _create_proxy},
    "/populate": {"POST": _populate_proxies},
    "/reset": {"POST": _reset_proxies},
    # POST is the old spelling of PATCH, which older clients still send.
    f"/proxies/{NAME}": {"GET": _show_proxy, "POST": _update_proxy, "PATCH": _update_proxy, "DELETE": _delete_proxy},
    f"/proxies/{NAME}/toxics": {"GET": _list_toxics, "POST": _add_toxic},
    f"/proxies/{NAME}/toxics/{NAME}": {
        "GET": _show_toxic,
        "POST": _update_toxic,
        "PATCH": _update_toxic,
        "DELETE": _delete_toxic,
    },
}
ROUTES = tuple((re.compile(path), handlers) for path, handlers in PATHS.items())


def _match_route(target: str) -> tuple[dict[str, Handler], tuple[str, ...]] | None:
    """The handlers of a target by their methods, and the names in its path. None: there is no such path."""
    try:
        # Unquoted once: names may have spaces, and the package quotes them.
        path = unquote(urlsplit(target).path)
    except ValueError:
        return None
    for pattern, handlers in ROUTES:
        if match := pattern.fullmatch(path):
            return handlers, match.groups()
    return None


def _make_json_response(status: int, value: Any) -> RestResponse:
    return RestResponse(status, msgspec.json.encode(value), {"Content-Type": JSON})


def _make_text_response(status: int, text: str) -> RestResponse:
    # Refusals are text/plain on the real server though they are JSON.
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return RestResponse(status, text.encode(), headers)
