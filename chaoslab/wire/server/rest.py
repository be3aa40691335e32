"""The API's routes: which request asks what of the catalog, and how the answer is worded."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from chaoslab.wire.server.catalog import Catalog, PopulateError
from chaoslab.wire.server.errors import ApiError

VERSION = "2.12.0"
JSON = "application/json"


@dataclass(frozen=True)
class Request:
    """One request, as the routes see it."""

    method: str
    path: str
    body: bytes
    user_agent: str


@dataclass(frozen=True)
class Response:
    """One answer; a body comes with its content type."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[..., Awaitable[Response]]


async def answer(catalog: Catalog, request: Request) -> Response:
    """What the server says to a request; never raises for what a client did wrong."""
    found = _match(request.path)
    if found is None:
        return _plain(404, "404 page not found\n")
    handlers, names = found
    handler = handlers.get(request.method)
    if handler is None:
        return Response(405)
    if request.user_agent.startswith("Mozilla/"):
        response = _plain(403, "User agent not allowed\n")
    else:
        try:
            response = await handler(catalog, request, *names)
        except ApiError as error:
            response = _plain(error.status, _dump({"error": error.message, "status": error.status}) + "\n")
    response.headers["X-Toxiproxy-Request-Id"] = secrets.token_hex(10)
    return response


async def _version(catalog: Catalog, request: Request) -> Response:  # noqa: ARG001
    return Response(200, b'{"version": "%s"}\n' % VERSION.encode(), f"{JSON};charset=utf-8")


async def _list(catalog: Catalog, request: Request) -> Response:  # noqa: ARG001
    return _json(200, catalog.to_json())


async def _create(catalog: Catalog, request: Request) -> Response:
    return _json(201, (await catalog.create(request.body)).to_json())


async def _show(catalog: Catalog, request: Request, proxy: str) -> Response:  # noqa: ARG001
    return _json(200, catalog.get(proxy).to_json())


async def _update(catalog: Catalog, request: Request, proxy: str) -> Response:
    return _json(200, (await catalog.update(proxy, request.body)).to_json())


async def _delete(catalog: Catalog, request: Request, proxy: str) -> Response:  # noqa: ARG001
    await catalog.delete(proxy)
    return Response(204)


async def _toxics(catalog: Catalog, request: Request, proxy: str) -> Response:  # noqa: ARG001
    return _json(200, catalog.get(proxy).toxics_json())


async def _add_toxic(catalog: Catalog, request: Request, proxy: str) -> Response:
    return _json(200, catalog.add_toxic(proxy, request.body).to_json())


async def _show_toxic(catalog: Catalog, request: Request, proxy: str, toxic: str) -> Response:  # noqa: ARG001
    return _json(200, catalog.toxic(proxy, toxic).to_json())


async def _update_toxic(catalog: Catalog, request: Request, proxy: str, toxic: str) -> Response:
    return _json(200, catalog.update_toxic(proxy, toxic, request.body).to_json())


async def _delete_toxic(catalog: Catalog, request: Request, proxy: str, toxic: str) -> Response:  # noqa: ARG001
    catalog.delete_toxic(proxy, toxic)
    return Response(204)


async def _populate(catalog: Catalog, request: Request) -> Response:
    try:
        made = await catalog.populate(request.body)
    except PopulateError as error:
        proxies = [proxy.to_json() for proxy in error.made] or None
        return _json(error.status, {"error": error.message, "status": error.status, "proxies": proxies})
    return _json(201, {"proxies": [proxy.to_json() for proxy in made] or None})


async def _reset(catalog: Catalog, request: Request) -> Response:  # noqa: ARG001
    await catalog.reset()
    return Response(204)


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


def _match(target: str) -> tuple[dict[str, Handler], tuple[str, ...]] | None:
    path = target.partition("?")[0]
    for pattern, handlers in ROUTES:
        if match := pattern.fullmatch(path):
            return handlers, tuple(unquote(name) for name in match.groups())
    return None


def _json(status: int, value: Any) -> Response:
    return Response(status, _dump(value).encode(), JSON)


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8", {"X-Content-Type-Options": "nosniff"})


def _dump(value: Any) -> str:
    """As Go spells it: nothing between the tokens, and nothing that a browser could take for HTML."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
