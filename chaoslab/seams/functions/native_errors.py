"""The exceptions by which a tool's caller learns of a fault: Python's own, a library's, or classes of the user's. A
function that uses httpx would raise httpx's classes, and an agent may catch just these. A library is imported only when
its name is given."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, ECONNREFUSED, ECONNRESET, ENOSPC
from functools import partial
from socket import EAI_NONAME, gaierror
from ssl import SSLCertVerificationError
from subprocess import CalledProcessError, TimeoutExpired
from types import SimpleNamespace
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign

KINDS: dict[str, tuple[Callable[[str], OSError], str]] = {
    "timed_out": (TimeoutError, "no answer within its deadline"),
    "refused": (ConnectionRefusedError, "connection refused"),
    "reset": (ConnectionResetError, "connection reset"),
    "closed": (ConnectionAbortedError, "closed without an answer"),
    # With a number, as the real one has: programs look at it.
    "dns": (partial(gaierror, EAI_NONAME), "Name or service not known"),
    "untrusted": (partial(SSLCertVerificationError, 1), "certificate verify failed: certificate has expired"),
}
"""The kinds of failure, each with Python's exception and the words for it."""
STATUS = "status"
"""The key of an error reply in place of work, in `raises`."""

Failed = Callable[[str], Exception]
"""Makes the exception of a failure from its message."""
Refused = Callable[[str, int, str], Any]
"""Makes the exception of an error reply from the tool's name, the status and the message; or the value that is
returned for it."""


class ToolError(RuntimeError):
    """A tool's error reply in place of its work. `status` is HTTP's, `message` is in words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status, self.message = status, message

    # Two arguments; pickle would call it with the one that its base keeps.
    def __reduce__(self) -> tuple[Any, ...]:
        return ToolError, (self.status, self.message)


def mark_as_fault(error: Exception, calls: int) -> Exception:
    """The exception, with a mark that a fault is its cause. `calls`: the trial's calls so far."""
    with suppress(AttributeError):  # a class of the user's without a dict
        error.__dict__[_MARK] = calls
    return error


def is_caused_by_fault(error: BaseException | None, calls: int) -> bool:
    """True if an exception is that of a fault which was met after this number of calls, or came of it."""
    ids: set[int] = set()
    while error is not None and id(error) not in ids:
        # Later than this call began: an older fault may be chained to an error by accident.
        if getattr(error, "__dict__", {}).get(_MARK, -1) > calls:
            return True
        # A cycle of causes is possible in Python.
        ids.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_MARK = "_chaoslab_fault"


def _make_tool_error(_: str, status: int, message: str) -> Exception:
    return ToolError(status, message)


@dataclass(frozen=True)
class NativeErrors:
    """The exceptions of one tool. A kind that `failures` lacks is Python's own."""

    failures: Mapping[str, Failed]
    refused: Refused = _make_tool_error

    def make_failure(self, name: str, kind: str) -> Exception:
        """The exception for a call that got no reply."""
        python, description = KINDS.get(kind, (OSError, kind))
        return self.failures.get(kind, python)(f"{name}: {description}")

    def make_text_reply(self, said: str) -> Any:
        """The value for a reply that is not the tool's own but a text; None for an empty one."""
        return said or None


def make_system_error(name: str, kind: str, deadline_s: float) -> Exception | None:
    """The system's own exception for a failure of a file or a command; None for any other. `deadline_s`: the time that
    the call had."""
    word, _, code = kind.partition(" ")
    match word:
        case "disk_full":
            return OSError(ENOSPC, f"{name}: No space left on device")
        case "denied":
            return PermissionError(EACCES, f"{name}: Permission denied")
        case "exited":
            return CalledProcessError(int(code), name)
        case "expired":
            return TimeoutExpired(name, deadline_s)
    return None


PYTHON = NativeErrors({})
"""Python's own exceptions, and `ToolError`."""


def choose_tool_errors(raises: Any, name: str) -> NativeErrors:
    """The exceptions that a user asked for with `raises=`, for the tool of this name. `raises` is the name of a
    library, classes by kind of failure, or one of these two by tool; None is Python's own. Raises LookupError: no
    such library or kind. ImportError: it is not installed. TypeError: it is something else, or a class makes no
    exception."""
    option = "raises"
    if isinstance(raises, Mapping) and not any(kind in raises for kind in (*KINDS, STATUS)):
        option, raises = f"raises of {name}", raises.get(name)
    if raises is None:
        return PYTHON
    if isinstance(raises, str):
        if raises not in LIBRARIES:
            raise LookupError(f"{option} is '{raises}': it should be one of {', '.join(LIBRARIES)}, or classes by kind")
        try:
            return LIBRARIES[raises]()
        except ImportError:
            raise ImportError(f"{option} is '{raises}', which is not installed") from None
    if isinstance(raises, Mapping):
        return _build_class_errors(raises, option)
    raise TypeError(
        f"{option} is {raises!r}: it should be a library's name, as in 'httpx', or classes by kind of failure"
    )


def _build_class_errors(classes: Mapping[str, Any], option: str) -> NativeErrors:
    for kind, make in classes.items():
        if kind not in (*KINDS, STATUS):
            raise LookupError(f"{option} has '{kind}': it should be one of {', '.join((*KINDS, STATUS))}")
        _check_exception_class(make, f"{option} for {kind}")
    failures = {kind: make for kind, make in classes.items() if kind != STATUS}
    refused = classes.get(STATUS)
    return NativeErrors(failures) if refused is None else NativeErrors(failures, partial(_make_status_error, refused))


def _make_status_error(make: Failed, name: str, status: int, message: str) -> Exception:
    return make(f"{name}: {status} {message}")


def _check_exception_class(make: Any, option: str) -> None:
    try:
        # Called once now, since it would else fail in the middle of a trial.
        fits = isinstance(make("text"), Exception)
    except BaseException as error:  # noqa: BLE001 - a class's own code may raise anything
        reraise_unless_foreign(error)
        fits = False
    if not fits:
        raise TypeError(
            f"{option} is {make!r}: it should be an exception's class, or a function, that takes a message alone"
        )


# Libraries.


# With request and response, as handlers ask for them.
def _build_httpx_errors(name: str) -> NativeErrors:
    httpx = importlib.import_module(name)

    def make_status_error(tool: str, status: int, message: str) -> Exception:
        request = httpx.Request("POST", f"http://{_make_host_name(tool)}/")
        reply = httpx.Response(status, json={"error": message}, request=request)
        return httpx.HTTPStatusError(f"{tool}: {status} {message}", request=request, response=reply)  # type: ignore[no-any-return]

    return NativeErrors(
        {
            "timed_out": httpx.ReadTimeout,
            "refused": httpx.ConnectError,
            "reset": httpx.ReadError,
            "closed": httpx.RemoteProtocolError,
            "dns": httpx.ConnectError,
            "untrusted": httpx.ConnectError,
        },
        make_status_error,
    )


def _build_requests_errors() -> NativeErrors:
    import requests

    def make_status_error(tool: str, status: int, message: str) -> Exception:
        reply = requests.Response()
        reply.status_code, reply.reason, reply.url = status, message, f"http://{_make_host_name(tool)}/"
        # Private: there is no other way to give a Response its body.
        reply._content = message.encode()
        return requests.HTTPError(f"{tool}: {status} {message}", response=reply)

    broken = requests.ConnectionError
    return NativeErrors(
        {
            "timed_out": requests.ReadTimeout,
            "refused": broken,
            "reset": broken,
            "closed": broken,
            "dns": broken,
            "untrusted": requests.exceptions.SSLError,
        },
        make_status_error,
    )


def _build_aiohttp_errors() -> NativeErrors:
    import aiohttp

    def make_connection_key(message: str) -> Any:
        # The fields that aiohttp's errors print.
        return SimpleNamespace(host=message.partition(":")[0], port=80, ssl=True, is_ssl=False)

    def make_connect_error(message: str) -> Exception:
        return aiohttp.ClientConnectorError(make_connection_key(message), ConnectionRefusedError(ECONNREFUSED, message))

    def make_dns_error(message: str) -> Exception:
        return aiohttp.ClientConnectorDNSError(make_connection_key(message), gaierror(EAI_NONAME, message))

    def make_certificate_error(message: str) -> Exception:
        return aiohttp.ClientConnectorCertificateError(
            make_connection_key(message), SSLCertVerificationError(1, message)
        )

    def make_status_error(tool: str, status: int, message: str) -> Exception:
        request: Any = SimpleNamespace(real_url=f"http://{_make_host_name(tool)}/", method="POST", headers={})
        return aiohttp.ClientResponseError(request, (), status=status, message=message)

    return NativeErrors(
        {
            "timed_out": aiohttp.SocketTimeoutError,
            "refused": make_connect_error,
            "reset": partial(aiohttp.ClientOSError, ECONNRESET),
            "closed": aiohttp.ServerDisconnectedError,
            "dns": make_dns_error,
            "untrusted": make_certificate_error,
        },
        make_status_error,
    )


def _build_urllib_errors() -> NativeErrors:
    from email.message import Message
    from io import BytesIO
    from urllib.error import HTTPError, URLError

    def make_status_error(tool: str, status: int, message: str) -> Exception:
        return HTTPError(f"http://{_make_host_name(tool)}/", status, message, Message(), BytesIO(message.encode()))

    causes: dict[str, Callable[[str], OSError]] = {
        "refused": partial(ConnectionRefusedError, ECONNREFUSED),
        "dns": partial(gaierror, EAI_NONAME),
        "untrusted": partial(SSLCertVerificationError, 1),
    }
    # urllib raises the socket's own errors for the other kinds.
    return NativeErrors(
        {kind: partial(_wrap_url_error, URLError, cause) for kind, cause in causes.items()}, make_status_error
    )


def _wrap_url_error(make: Callable[[OSError], Exception], cause: Callable[[str], OSError], message: str) -> Exception:
    return make(cause(message))


def _make_host_name(tool: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in tool) or "tool"


LIBRARIES: dict[str, Callable[[], NativeErrors]] = {
    "httpx": partial(_build_httpx_errors, "httpx"),
    "httpx2": partial(_build_httpx_errors, "httpx2"),
    "requests": _build_requests_errors,
    "aiohttp": _build_aiohttp_errors,
    "urllib": _build_urllib_errors,
}
"""The libraries whose exceptions are known, by the name to import."""
