"""A thin client for either Toxiproxy, the real one or the embedded, over toxiproxy-python without its traps.

That package keeps one endpoint for the whole process, waits for ever, opens a connection per request, knows no PATCH, and takes
most failures for success. Its response check and its classes are used; the endpoint, timeouts, errors and reading back are here.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from requests import Response, Session

READ_TIMEOUT_S = 26.0  # the real server gives up with a 503 after 25 s
CONNECT_TIMEOUT_S = 2.0
TOXICITY_ERROR_MAX = 1e-6  # the real server keeps a float32


class ToxiproxyError(Exception):
    """The server refused, or does not hold what it was asked to hold. `status` is the HTTP status, None without an answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message if status is None else f"{message} (HTTP {status})")
        self.status = status


class ToxiproxyDown(ToxiproxyError):
    """Nothing answers at the address, or not in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=None)


@dataclass(frozen=True)
class ToxicInfo:
    """A toxic, as wished for or as a server holds it. Attributes have Toxiproxy's names and units."""

    name: str
    type: str
    stream: str = "downstream"
    toxicity: float = 1.0
    attributes: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What is sent.

        Raises:
            ValueError: an empty name, a toxicity outside of 0–1, an attribute that is no integer.
        """
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
        """Whether a server that holds `held` does not hold this."""
        return (
            (self.type, self.stream) != (held.type, held.stream)
            or abs(self.toxicity - held.toxicity) > TOXICITY_ERROR_MAX
            or any(held.attributes.get(key) != value for key, value in self.attributes.items())
        )


@dataclass(frozen=True)
class ProxyInfo:
    """A proxy as a server holds it; `listen` is the address really bound."""

    name: str
    listen: str
    upstream: str
    enabled: bool = True
    toxics: tuple[ToxicInfo, ...] = ()


class ToxiproxyClient:
    """Speaks to one server. May be shared by threads: each has a connection of its own, kept alive."""

    def __init__(
        self, url: str, *, read_timeout_s: float = READ_TIMEOUT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        """`url` as in TOXIPROXY_URL: `http://127.0.0.1:8474`, or without the scheme."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._timeout_s = (connect_timeout_s, read_timeout_s)
        self._local = threading.local()
        self._sessions: list[Session] = []
        self._lock = threading.Lock()

    def __enter__(self) -> ToxiproxyClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for session in self._sessions:
                session.close()
            self._sessions.clear()
            self._local = threading.local()

    def version(self) -> str:
        return str(self._field(self._ask("GET", "/version"), "version"))

    def proxies(self) -> dict[str, ProxyInfo]:
        return {name: _proxy(data) for name, data in self._object(self._ask("GET", "/proxies")).items()}

    def get(self, name: str) -> ProxyInfo:
        return _proxy(self._ask("GET", _path(name)))

    def create(self, name: str, *, upstream: str, listen: str = "127.0.0.1:0", enabled: bool = True) -> ProxyInfo:
        """A new proxy, as the server now holds it."""
        _check_name("proxy", name)
        wish = {"name": name, "listen": listen, "upstream": upstream, "enabled": enabled}
        return _proxy(self._ask("POST", "/proxies", wish))

    def update(
        self, name: str, *, listen: str | None = None, upstream: str | None = None, enabled: bool | None = None
    ) -> ProxyInfo:
        """Change what is given; another address, or disabling, drops the proxy's connections."""
        wish = {"listen": listen, "upstream": upstream, "enabled": enabled}
        return _proxy(self._ask("PATCH", _path(name), {key: value for key, value in wish.items() if value is not None}))

    def destroy(self, name: str) -> None:
        self._ask("DELETE", _path(name))

    def populate(self, proxies: Sequence[ProxyInfo]) -> tuple[ProxyInfo, ...]:
        """Make all of these in one request; those that are there already stay as they are, toxics included.

        Raises:
            ValueError: a proxy with toxics, which servers silently ignore here.
        """
        for proxy in proxies:
            _check_name("proxy", proxy.name)
            if proxy.toxics:
                raise ValueError(f"populate makes no toxics, and '{proxy.name}' has some; add them afterwards")
        wish = [{"name": p.name, "listen": p.listen, "upstream": p.upstream, "enabled": p.enabled} for p in proxies]
        return tuple(_proxy(data) for data in self._field(self._ask("POST", "/populate", wish), "proxies") or ())

    def reset(self) -> None:
        """Every proxy enabled, every toxic gone."""
        self._ask("POST", "/reset")

    def toxics(self, proxy: str) -> tuple[ToxicInfo, ...]:
        return tuple(_toxic(data) for data in self._ask("GET", _path(proxy, "")))

    def add_toxic(self, proxy: str, toxic: ToxicInfo) -> ToxicInfo:
        """The toxic as the server now holds it, defaults filled in."""
        return _toxic(self._ask("POST", _path(proxy, ""), toxic.to_json()))

    def update_toxic(
        self, proxy: str, name: str, *, attributes: Mapping[str, int] | None = None, toxicity: float | None = None
    ) -> ToxicInfo:
        """Change the attributes given and keep the others; connections that are open feel it."""
        _check_attributes(attributes or {})
        wish = {"attributes": None if attributes is None else dict(attributes), "toxicity": toxicity}
        changed = {key: value for key, value in wish.items() if value is not None}
        return _toxic(self._ask("PATCH", _path(proxy, name), changed))

    def remove_toxic(self, proxy: str, name: str) -> None:
        self._ask("DELETE", _path(proxy, name))

    def arm(
        self, name: str, *, upstream: str, listen: str = "127.0.0.1:0", toxics: Sequence[ToxicInfo] = ()
    ) -> ProxyInfo:
        """A new proxy with its toxics, read back from the server and compared with what was asked; all of it or nothing.

        Raises:
            ToxiproxyError: refused, or the server holds something else; no proxy is left behind.
        """
        for toxic in toxics:
            toxic.to_json()  # nothing is begun that cannot be finished
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
            return  # what led here is the news, and is being raised

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """One request: the JSON of the answer, None without one."""
        import requests

        try:
            response = self._session().request(
                method, self.url + path, json=body, timeout=self._timeout_s, allow_redirects=False
            )
        except requests.Timeout:
            raise ToxiproxyDown(f"Toxiproxy at {self.url} did not answer {method} {path} in time") from None
        except requests.RequestException as error:
            raise ToxiproxyDown(f"Toxiproxy at {self.url} cannot be reached: {error}") from error
        self._check(response)
        if response.status_code == 204:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise ToxiproxyError(
                f"{self.url} answered {method} {path} without JSON: {_words(response)}", status=response.status_code
            ) from error

    def _check(self, response: Response) -> None:
        """The package's own check knows 400, 404 and 409; every other refusal is caught here."""
        exceptions, validate_response = _package()
        try:
            validate_response(response)
        except (exceptions.ProxyExists, exceptions.NotFound, exceptions.InvalidToxic) as error:
            raise ToxiproxyError(_words(response), status=response.status_code) from error
        if not 200 <= response.status_code < 300:
            raise ToxiproxyError(_words(response), status=response.status_code)

    def _session(self) -> Session:
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            import requests

            session = self._local.session = requests.Session()
            session.trust_env = False  # no netrc, and no proxy from the environment in front of a proxy on loopback
            with self._lock:
                self._sessions.append(session)
        return session

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
    """toxiproxy-python's exceptions and response check; what its dependencies warn of is not ours to mend."""
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


def _path(proxy: str, toxic: str | None = None) -> str:
    path = f"/proxies/{quote(proxy, safe='')}"
    if toxic is None:
        return path
    return f"{path}/toxics/{quote(toxic, safe='')}" if toxic else f"{path}/toxics"


def _check_name(kind: str, name: str) -> None:
    """The API puts names into paths, where these cannot be reached again."""
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"'{name}' cannot be a {kind}'s name")


def _check_attributes(attributes: Mapping[str, int]) -> None:
    for key, value in attributes.items():
        if type(value) is not int:
            raise ValueError(f"attribute {key}={value!r} is not an integer")


def _difference(wish: ProxyInfo, held: ProxyInfo) -> str:
    """In what the server's proxy is not the one that was asked for; empty when it is."""
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


def _words(response: Response) -> str:
    """What a refusal says: the error field, or the text of whatever page came instead."""
    try:
        data = response.json()
    except ValueError:
        data = None
    if isinstance(data, dict) and "error" in data:
        return str(data["error"])
    return " ".join(re.sub(r"<[^>]*>", " ", response.text).split())[:200] or response.reason or "no reason given"
