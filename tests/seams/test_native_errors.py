"""A tool's caller learns of a fault by the exceptions of the library that the tool uses, if they are asked for."""

import errno
import pickle
import socket
import urllib.error
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests

import chaoslab as lab


def refund(order: int) -> str:
    return f"refunded {order}"


def caught(fault: str, raises: Any, **params: Any) -> Exception:
    found: list[Exception] = []

    def agent(_: str) -> str:
        try:
            return refund(17)
        except Exception as error:  # noqa: BLE001 - the test's subject
            found.append(error)
            return "failed"

    faults = [lab.inject(fault, "refund", **params)]
    trial = lab.run(agent, "go", tools=[refund], faults=faults, raises=raises, effects=[])
    assert trial.answer == "failed"
    return found[0]


FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "timed_out": ("lost_reply", {}),
    "refused": ("refused", {}),
    "reset": ("reset_peer", {"stream": "downstream"}),
    "closed": ("timeout", {"after_s": 1.0, "stream": "downstream"}),
    "dns": ("dns_failure", {}),
    "untrusted": ("tls_failure", {}),
    "status": ("tool_error", {"status": 503}),
}
LIBRARIES: dict[str, tuple[type[Exception], ...]] = {
    "httpx": (
        httpx.ReadTimeout, httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError, httpx.ConnectError,
        httpx.ConnectError, httpx.HTTPStatusError,
    ),
    "httpx2": (
        httpx2.ReadTimeout, httpx2.ConnectError, httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.ConnectError,
        httpx2.ConnectError, httpx2.HTTPStatusError,
    ),
    "requests": (
        requests.ReadTimeout, requests.ConnectionError, requests.ConnectionError, requests.ConnectionError,
        requests.ConnectionError, requests.exceptions.SSLError, requests.HTTPError,
    ),
    "aiohttp": (
        aiohttp.SocketTimeoutError, aiohttp.ClientConnectorError, aiohttp.ClientOSError,
        aiohttp.ServerDisconnectedError, aiohttp.ClientConnectorDNSError, aiohttp.ClientConnectorCertificateError,
        aiohttp.ClientResponseError,
    ),
    "urllib": (
        TimeoutError, urllib.error.URLError, ConnectionResetError, ConnectionAbortedError, urllib.error.URLError,
        urllib.error.URLError, urllib.error.HTTPError,
    ),
}  # fmt: skip
ERRNO = {"refused": errno.ECONNREFUSED, "reset": errno.ECONNRESET, "dns": socket.EAI_NONAME, "untrusted": 1}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_each_kind_is_the_librarys_own_exception(library: str, kind: str) -> None:
    fault, params = FAULTS[kind]
    error = caught(fault, library, **params)
    assert type(error) is LIBRARIES[library][list(FAULTS).index(kind)]
    assert "refund" in f"{error} {getattr(error, 'url', '')}"
    for name in ("os_error", "certificate_error", "reason"):
        error = there if isinstance(there := getattr(error, name, None), OSError) else error
    if isinstance(error, OSError) and error.errno is not None:
        assert error.errno == ERRNO[kind]


def test_a_status_is_read_as_each_librarys_users_read_it() -> None:
    errors: dict[str, Any] = {name: caught("tool_error", name, status=503) for name in LIBRARIES}
    assert errors["httpx"].response.status_code == errors["httpx2"].response.status_code == 503
    assert errors["requests"].response.status_code == errors["aiohttp"].status == errors["urllib"].code == 503


def test_an_error_of_a_tool_goes_to_another_process_as_it_is() -> None:
    error = caught("tool_error", None, status=503)
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.status, str(copied)) == (type(error), 503, "503 Service Unavailable")


class Gone(Exception): ...


def test_classes_of_the_users_own_by_kind_and_by_tool() -> None:
    assert type(caught("lost_reply", {"timed_out": Gone})) is Gone
    assert type(caught("refused", {"timed_out": Gone})) is ConnectionRefusedError
    assert str(caught("tool_error", {"status": Gone}, status=404)) == "refund: 404 Not Found"
    assert str(caught("tool_error", {"status": Gone}, status=400)) == "refund: 400 Bad Request"
    assert type(caught("lost_reply", {"refund": {"timed_out": socket.herror}})) is socket.herror
    assert type(caught("lost_reply", {"refund": "httpx"})) is httpx.ReadTimeout


@pytest.mark.parametrize(
    ("raises", "kind", "line"),
    [
        ("htpx", LookupError, "raises is 'htpx': it should be one of httpx, httpx2, requests, aiohttp, urllib"),
        ({"time_out": Gone}, LookupError, "raises names 'time_out': did you mean 'timed_out'?"),
        ({"timed_out": Gone, "gone": Gone}, LookupError, "raises has 'gone': it should be one of timed_out, refused"),
        ({"timed_out": 3}, TypeError, "raises for timed_out is 3: it should be an exception's class"),
        ({"timed_out": httpx.HTTPStatusError}, TypeError, "raises for timed_out is <class 'httpx.HTTPStatusError'>: "),
        ({"refnd": "httpx"}, LookupError, "raises names 'refnd': did you mean 'refund'?"),
        ({"refund": 3}, TypeError, "raises of refund is 3: it should be a library's name, as in 'httpx'"),
        (3, TypeError, "raises is 3: it should be a library's name"),
    ],
)
def test_a_mistake_is_one_line(raises: Any, kind: type[Exception], line: str) -> None:
    with pytest.raises(kind) as told:
        lab.run(lambda _: refund(17), "go", tools=[refund], raises=raises)
    assert str(told.value.args[0]).startswith(line)
    assert "\n" not in str(told.value)


def test_a_library_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    with pytest.raises(ImportError, match=r"^raises is 'httpx2', which is not installed$"):
        lab.run(lambda _: refund(17), "go", tools=[refund], raises="httpx2")


def with_context(order: int, trace: object = None) -> str:
    return f"{order} {trace is not None}"


def calls(tool: Callable[..., Any], **given: Any) -> Any:
    return lab.run(lambda _: tool(17, trace=object()), "go", tools=[tool], **given)


def test_an_ignored_parameter_is_no_argument_and_reaches_the_function() -> None:
    assert list(calls(with_context, effects=[]).effects[0]) == ["effect", "order", "trace"]
    trial = calls(with_context, ignore=["trace"], faults=[lab.inject("latency", "with_context")])
    assert (trial.effects, trial.answer) == ([{"effect": "with_context", "order": 17}], "17 True")
    assert trial.outcome is lab.Outcome.CORRECT


@pytest.mark.parametrize(
    ("ignore", "line"),
    [
        (["trac"], "ignore has 'trac' in it, which is no parameter of a tool: did you mean 'trace'?"),
        ("trace", "ignore is 'trace': it should be a list, as in ['trace']"),
    ],
)
def test_what_no_tool_has_is_not_ignored(ignore: Any, line: str) -> None:
    with pytest.raises((LookupError, TypeError)) as told:
        calls(with_context, ignore=ignore)
    assert told.value.args[0] == line
