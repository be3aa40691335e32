"""toxiproxy-python, asked to talk to one server of several, in time, and about what it cannot tell.

`ToxiproxyServer` is the package's `Toxiproxy` and gives out its `Proxy`: listing, creating, populating, toxics and
deleting are all the package's. What stands here is what it cannot do, each beside its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any
from urllib.parse import quote

import requests
from toxiproxy import Proxy, Toxiproxy, api
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from chaoslab.wire.proxies import ToxiproxyDown, ToxiproxyError, check_toxiproxy_name

READ_TIMEOUT_S = 26.0  # the real server gives up with a 503 after 25 s
# Toxiproxy is on this machine or on the next container: a port that takes longer has nobody behind it.
CONNECT_TIMEOUT_S = 2.0
STATUS = {InvalidToxic: 400, NotFound: 404, ProxyExists: 409}
"""The statuses that the package knows for refusals. It takes all others for success."""

# A context variable, since threads share a server, and the package's module is one for the process.
_asked: ContextVar[ToxiproxyServer | None] = ContextVar("asked", default=None)


class _Requests:
    """The package's module finds this in place of `requests`. It has one endpoint for the whole process, no
    timeout, and opens a connection for each request; so within `ToxiproxyServer.redirect_package_calls` they go here,
    and else, as those of a user's own tests, to `requests` as ever."""

    def __getattr__(self, method: str) -> Any:
        server = _asked.get()
        return getattr(requests, method) if server is None else getattr(server, f"_{method}")


# The package calls `requests.get` by this name of its module, and that is the only door into it.
api.requests = _Requests()


class ToxiproxyServer(Toxiproxy):  # type: ignore[misc] # the package has no types
    """One server, over connections that are kept. Threads may share it."""

    def __init__(self, url: str, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        """Names the server at `url`, as in TOXIPROXY_URL: `http://127.0.0.1:8474`, or without the scheme."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._timeout = (CONNECT_TIMEOUT_S, read_timeout_s)
        self._adapter = requests.adapters.HTTPAdapter()  # which asks no HTTP proxy of the environment
        self.waiting = False
        """True while a request waits for its answer. The real server answers none while a proxy that is being deleted
        still dials its upstream, which takes three seconds if a container is gone."""

    def __enter__(self) -> ToxiproxyServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._adapter.close()

    # The package's own, at this server. What they raise is put into words.

    def version(self) -> str:
        # the package gives the body's bytes, and opens a socket without a timeout first
        with self.redirect_package_calls():
            return str(api.APIConsumer.get("/version").json()["version"])

    def proxies(self) -> dict[str, ServedProxy]:
        with self.redirect_package_calls():
            return {name: ServedProxy(self, vars(proxy)) for name, proxy in super().proxies().items()}

    def create(self, upstream: str, name: str, listen: str | None = None, enabled: bool | None = None) -> ServedProxy:
        check_toxiproxy_name("proxy", name)
        with self.redirect_package_calls():
            return ServedProxy(self, vars(super().create(upstream, name, listen, enabled)))

    def populate(self, proxies: list[dict[str, Any]]) -> list[ServedProxy]:
        with self.redirect_package_calls():
            return list(super().populate(proxies))

    def reset(self) -> bool:
        with self.redirect_package_calls():
            return bool(super().reset())

    def running(self) -> bool:
        """True if a Toxiproxy answers: the package looks for an open port, without a timeout."""
        try:
            return bool(self.version())
        except ToxiproxyError:
            return False

    def destroy(self, proxy: str | Proxy) -> bool:
        """Deletes a proxy, or the one of that name: the package does nothing with a name, and says nothing."""
        return self.build_proxy_handle(proxy).destroy() if isinstance(proxy, str) else bool(proxy.destroy())

    def fetch_proxy(self, name: str) -> ServedProxy:
        """The proxy of that name as it is now. Raises ToxiproxyError with status 404: there is none, for which the
        package gives None."""
        proxy = self.get_proxy(name)
        if proxy is None:
            raise ToxiproxyError("proxy not found", status=404)
        return proxy  # type: ignore[no-any-return]

    def build_proxy_handle(self, name: str) -> ServedProxy:
        """The proxy of that name, of which nothing is known: the package would list all to find it."""
        return ServedProxy(self, {"name": name, "upstream": "", "listen": "", "enabled": True})

    @contextmanager
    def redirect_package_calls(self) -> Iterator[None]:
        """A context in which the package talks to this server, in this thread. Raises ToxiproxyError in it: the server
        refused, or is none. ToxiproxyDown: it does not answer."""
        before = _asked.set(self)
        try:
            yield
        except tuple(STATUS) as error:
            message = error.args[0] if error.args else ""
            raise ToxiproxyError(_extract_error_text(message), status=STATUS[type(error)]) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            # It takes any answer for one of Toxiproxy's.
            raise ToxiproxyError(f"{self.url} is no Toxiproxy: {error!r:.80}", status=200) from error
        finally:
            _asked.reset(before)

    def _get(self, url: str, **options: Any) -> requests.Response:
        return self._send_request("GET", url, **options)

    def _post(self, url: str, **options: Any) -> requests.Response:
        return self._send_request("POST", url, **options)

    def _delete(self, url: str, **options: Any) -> requests.Response:
        return self._send_request("DELETE", url, **options)

    def _send_request(self, method: str, url: str, **options: Any) -> requests.Response:
        """Sends one request of the package to this server. Raises ToxiproxyError for what it would take for success."""
        # Split behind the third slash: before it is the package's one endpoint.
        path = quote("/" + url.split("/", 3)[3])  # it puts names there as they are
        self.waiting = True
        try:
            request = requests.Request(method, self.url + path, **options).prepare()
            # Not by a session, whose hooks, cookies and redirects would take a third of the time.
            reply = self._adapter.send(request, timeout=self._timeout)
            reply.content  # noqa: B018 - read whole, so that the connection is kept
        except requests.ReadTimeout:
            raise ToxiproxyDown(f"Toxiproxy at {self.url} did not answer {method} {path} in time") from None
        except requests.RequestException as error:
            raise ToxiproxyDown(f"Toxiproxy at {self.url} cannot be reached: {error}") from error
        finally:
            self.waiting = False
        # Redirects too: the adapter follows none, and the package takes all but three statuses for success.
        if (not reply.ok and reply.status_code not in STATUS.values()) or 300 <= reply.status_code < 400:
            raise ToxiproxyError(
                _extract_error_text(reply.content) or reply.reason or "no reason given", status=reply.status_code
            )
        return reply


class ServedProxy(Proxy):  # type: ignore[misc] # as above
    """The package's proxy on one server. It keeps no link to the server that it came from."""

    def __init__(self, server: ToxiproxyServer, values: dict[str, Any]) -> None:
        super().__init__(**values)
        self._server = server

    def toxics(self) -> dict[str, Any]:
        with self._server.redirect_package_calls():
            return dict(super().toxics())

    def add_toxic(self, **options: Any) -> None:
        with self._server.redirect_package_calls():
            super().add_toxic(**options)

    def destroy_toxic(self, toxic_name: str) -> bool:
        with self._server.redirect_package_calls():
            return bool(super().destroy_toxic(toxic_name))

    def destroy(self) -> bool:
        with self._server.redirect_package_calls():
            return bool(super().destroy())

    def disable(self) -> None:
        with self._server.redirect_package_calls():
            super().disable()

    def enable(self) -> None:
        with self._server.redirect_package_calls():
            super().enable()


def _extract_error_text(content: Any) -> str:
    """The text of a refusal: the error field, or the text of the page that came instead."""
    # The content type tells nothing: refusals are JSON as text/plain, and after 25 s the real server sends a page of
    # HTML.
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, dict) and "error" in data:
        return str(data["error"])
    # A page says in its first words what is wrong, and the reason goes into one line.
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:200]
