"""A thin client for either Toxiproxy, the real one or the embedded, over toxiproxy-python without its traps.

That package keeps one endpoint for the whole process, has no timeout, opens a connection per request, knows no PATCH,
and takes most failures for success. This client uses its response check and its errors. Endpoint, timeouts, other
errors and reading back are here, on urllib3 itself: arming a lane is three requests, and a call waits for them.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

READ_TIMEOUT_S = 26.0  # the real server gives up with a 503 after 25 s
CONNECT_TIMEOUT_S = 2.0
CONNECTIONS_KEPT = 8
TOXICITY_ERROR_MAX = 1e-6  # the real server keeps a float32


class ToxiproxyError(Exception):
    """The server refused, or holds something else than asked. `status` is the HTTP status, None without an answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message if status is None else f"{message} (HTTP {status})")
        self.status = status


class ToxiproxyDown(ToxiproxyError):
    """The server does not answer, or not in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=None)


@dataclass(frozen=True)
class ToxicInfo:
    """A toxic, as asked for or as a server holds it. Attributes have Toxiproxy's names and units."""

    name: str
    type: str
    stream: str = "downstream"
    toxicity: float = 1.0
    attributes: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The JSON to send. Raises ValueError: an empty name, a toxicity outside of 0–1, an attribute that is no
        integer."""
        _check_name("toxic", self.name)
        if not 0 <= self.toxicity <= 1:
            raise ValueError(f"toxicity {self.toxicity} of '{self.name}' is not between 0 and 1")
        _check_attributes(self.attributes)
        return {
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
            "attributes": dict(self.attributes),
        }

    def differs_from(self, held: ToxicInfo) -> bool:
        """Tells if a server that holds `held` does not hold this toxic."""
        return (
            (self.type, self.stream) != (held.type, held.stream)
            or abs(self.toxicity - held.toxicity) > TOXICITY_ERROR_MAX
            or any(held.attributes.get(key) != value for key, value in self.attributes.items())
        )


@dataclass(frozen=True)
class ProxyInfo:
    """A proxy as a server holds it. `listen` is the address really bound."""

    name: str
    listen: str
    upstream: str
    enabled: bool = True
    toxics: tuple[ToxicInfo, ...] = ()


@dataclass(frozen=True)
class _Answer:
    """The server's answer, in the form that the package's check takes."""

    status_code: int
    content: bytes
    reason: str

    @classmethod
    def of(cls, response: BaseHTTPResponse) -> _Answer:
        return cls(response.status, response.data, response.reason or "")

    def words(self) -> str:
        """The text of a refusal: the error field, or the text of the page that came instead."""
        try:
            data = json.loads(self.content)
        except ValueError:
            data = None
        if isinstance(data, dict) and "error" in data:
            return str(data["error"])
        text = re.sub(r"<[^>]*>", " ", self.content.decode("utf-8", "replace"))
        return " ".join(text.split())[:200] or self.reason or "no reason given"


class ToxiproxyClient:
    """A client of one server, over connections that are kept. Threads may share it."""

    def __init__(self, url: str, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        """Makes a client of the server at `url`, as in TOXIPROXY_URL: `http://127.0.0.1:8474`, or without the
        scheme."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._read_timeout_s = read_timeout_s
        self.waiting = False
        """True while a request waits for its answer. The real server answers none while a proxy that is being deleted
        still dials its upstream, which takes three seconds if a container is gone."""

    @cached_property
    def _pool(self) -> PoolManager:
        """The connections. They ignore the environment's HTTP proxies, since the server is on loopback."""
        from urllib3 import PoolManager, Timeout

        timeout = Timeout(connect=CONNECT_TIMEOUT_S, read=self._read_timeout_s)
        return PoolManager(timeout=timeout, retries=False, maxsize=CONNECTIONS_KEPT)

    def __enter__(self) -> ToxiproxyClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if "_pool" in vars(self):
            self._pool.clear()

    def version(self) -> str:
        return str(self._field(self._ask("GET", "/version"), "version"))

    def proxies(self) -> dict[str, ProxyInfo]:
        return {name: _proxy(data) for name, data in self._object(self._ask("GET", "/proxies")).items()}

    def get(self, name: str) -> ProxyInfo:
        return _proxy(self._ask("GET", _path(name)))

    def create(self, name: str, *, upstream: str, listen: str = "127.0.0.1:0", enabled: bool = True) -> ProxyInfo:
        """Makes a proxy. Returns it as the server holds it."""
        _check_name("proxy", name)
        wish = {"name": name, "listen": listen, "upstream": upstream, "enabled": enabled}
        return _proxy(self._ask("POST", "/proxies", wish))

    def update(
        self, name: str, *, listen: str | None = None, upstream: str | None = None, enabled: bool | None = None
    ) -> ProxyInfo:
        """Changes the attributes that are given. Another address, or disabling, drops the proxy's connections."""
        wish = {"listen": listen, "upstream": upstream, "enabled": enabled}
        return _proxy(self._ask("PATCH", _path(name), {key: value for key, value in wish.items() if value is not None}))

    def destroy(self, name: str) -> None:
        self._ask("DELETE", _path(name))

    def populate(self, proxies: Sequence[ProxyInfo]) -> tuple[ProxyInfo, ...]:
        """Makes all of these in one request. Those that exist already stay as they are, toxics included. Raises
        ValueError: a proxy with toxics, which servers silently ignore here."""
        for proxy in proxies:
            _check_name("proxy", proxy.name)
            if proxy.toxics:
                raise ValueError(f"populate makes no toxics, and '{proxy.name}' has some; add them afterwards")
        wish = [{"name": p.name, "listen": p.listen, "upstream": p.upstream, "enabled": p.enabled} for p in proxies]
        return tuple(_proxy(data) for data in self._field(self._ask("POST", "/populate", wish), "proxies") or ())

    def add_toxic(self, proxy: str, toxic: ToxicInfo) -> ToxicInfo:
        """Adds a toxic. Returns it as the server holds it, defaults filled in."""
        return _toxic(self._ask("POST", f"{_path(proxy)}/toxics", toxic.to_json()))

    def arm(
        self, name: str, *, upstream: str, listen: str = "127.0.0.1:0", toxics: Sequence[ToxicInfo] = ()
    ) -> ProxyInfo:
        """Makes a proxy with its toxics, reads it back and compares it with the request: all of it or nothing. Raises
        ToxiproxyError: refused, or the server holds something else. No proxy is left behind."""
        for toxic in toxics:
            toxic.to_json()  # checks all before the first request
        self.create(name, listen=listen, upstream=upstream)
        try:
            for toxic in toxics:
                self.add_toxic(name, toxic)
            held = self.get(name)
            wish = ProxyInfo(name, listen, upstream, enabled=True, toxics=tuple(toxics))
            if reason := _difference(wish, held):
                raise ToxiproxyError(f"{self.url} does not hold '{name}' as asked: {reason}", status=200)
        except BaseException:
            self._destroy_quietly(name)
            raise
        return held

    def _destroy_quietly(self, name: str) -> None:
        try:
            self.destroy(name)
        except ToxiproxyError:
            return  # the first error matters, and is being raised

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Sends one request. Returns the JSON of the answer, or None without one."""
        from urllib3 import exceptions

        data, headers = None, {}
        if body is not None:
            data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        self.waiting = True
        try:
            answer = _Answer.of(self._pool.request(method, self.url + path, body=data, headers=headers, redirect=False))
        except (exceptions.ReadTimeoutError, exceptions.ConnectTimeoutError) as error:
            # Refused at once, which is no timeout although urllib3 derives it from one.
            if isinstance(error, exceptions.NewConnectionError):
                raise ToxiproxyDown(f"Toxiproxy at {self.url} cannot be reached: {error}") from error
            raise ToxiproxyDown(f"Toxiproxy at {self.url} did not answer {method} {path} in time") from None
        except exceptions.HTTPError as error:
            raise ToxiproxyDown(f"Toxiproxy at {self.url} cannot be reached: {error}") from error
        finally:
            self.waiting = False
        self._check(answer)
        if answer.status_code == 204:
            return None
        try:
            return json.loads(answer.content)
        except ValueError as error:
            raise ToxiproxyError(
                f"{self.url} answered {method} {path} without JSON: {answer.words()}", status=answer.status_code
            ) from error

    def _check(self, answer: _Answer) -> None:
        """Raises ToxiproxyError for a refusal. The package's own check knows only 400, 404 and 409."""
        exceptions, validate_response = _package()
        try:
            validate_response(answer)
        except (exceptions.ProxyExists, exceptions.NotFound, exceptions.InvalidToxic) as error:
            raise ToxiproxyError(answer.words(), status=answer.status_code) from error
        if not 200 <= answer.status_code < 300:
            raise ToxiproxyError(answer.words(), status=answer.status_code)

    def _object(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise ToxiproxyError(f"{self.url} is no Toxiproxy: it answered {str(data)[:80]!r}", status=200)
        return data

    def _field(self, data: Any, name: str) -> Any:
        if name not in self._object(data):
            raise ToxiproxyError(f"{self.url} is no Toxiproxy: '{name}' is missing in {str(data)[:80]!r}", status=200)
        return data[name]


@cache
def _package() -> tuple[Any, Any]:
    """toxiproxy-python's exceptions and response check. Warnings of its dependencies are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from toxiproxy import exceptions
        from toxiproxy.api import validate_response
    return exceptions, validate_response


def _proxy(data: Any) -> ProxyInfo:
    try:
        toxics = tuple(_toxic(toxic) for toxic in data["toxics"])
        return ProxyInfo(data["name"], data["listen"], data["upstream"], bool(data["enabled"]), toxics)
    except (KeyError, TypeError) as error:
        raise ToxiproxyError(f"no proxy in the answer {str(data)[:80]!r}", status=200) from error


def _toxic(data: Any) -> ToxicInfo:
    try:
        return ToxicInfo(data["name"], data["type"], data["stream"], float(data["toxicity"]), dict(data["attributes"]))
    except (KeyError, TypeError) as error:
        raise ToxiproxyError(f"no toxic in the answer {str(data)[:80]!r}", status=200) from error


def _path(proxy: str) -> str:
    return f"/proxies/{quote(proxy, safe='')}"


def _check_name(kind: str, name: str) -> None:
    """Raises ValueError for a name that cannot stand in a path of the API."""
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"'{name}' cannot be a {kind}'s name")


def _check_attributes(attributes: Mapping[str, int]) -> None:
    for key, value in attributes.items():
        if type(value) is not int:
            raise ValueError(f"attribute {key}={value!r} is not an integer")


def _difference(wish: ProxyInfo, held: ProxyInfo) -> str:
    """The difference between the server's proxy and the one asked for, in words; empty if there is none."""
    if not held.enabled:
        return "it is disabled"
    if held.upstream != wish.upstream:
        return f"its upstream is {held.upstream}"
    port = wish.listen.rpartition(":")[2]
    if port not in ("", "0", held.listen.rpartition(":")[2]):
        return f"it listens on {held.listen}"
    by_name = {toxic.name: toxic for toxic in held.toxics}
    if set(by_name) != {toxic.name for toxic in wish.toxics}:
        return f"its toxics are {sorted(by_name)}"
    wrong = [toxic.name for toxic in wish.toxics if toxic.differs_from(by_name[toxic.name])]
    return f"toxic {by_name[wrong[0]]}" if wrong else ""
