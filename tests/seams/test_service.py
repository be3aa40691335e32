"""Faults at the services of a user's agent: every fault with every client, and what the trial makes of them."""

import asyncio
import gzip
import http.client
import json
import logging
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.base.identity import canonical
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    LabWarning,
)
from chaoslab.core.fault import BrokenFault
from chaoslab.core.stream import Streamed
from chaoslab.seams.services._enveloped import WantedCall
from chaoslab.seams.services.line import StreamView
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.model import ModelHost
from tests.measure_parts import attempts
from tests.plugin_parts import STALE, installed
from tests.waiting import together
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TIMEOUT_S = 5.0
ORDER = {"item": "tea", "amount": 3}
PLACED = {"item": "tea", "total": 30}


def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A shop: POST /orders, GET /orders, and paths that answer in their own ways."""
    path, body = environ["PATH_INFO"], environ["wsgi.input"].read()
    if path == "/fails":
        raise ValueError("the shop's own error")
    if path == "/slow":
        time.sleep(2)
    status, headers = "200 OK", [("Content-Type", "application/json"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    if path == "/broken":
        status = "500 Internal Server Error"
    if path == "/mumbles":
        headers.append(("X-Lab-Effect", "7"))
    given = json.loads(body) if body else {}
    reply = json.dumps({"item": given.get("item", "tea"), "total": 10 * given.get("amount", 3)}).encode()
    if path == "/packed":
        reply = gzip.compress(reply, mtime=0)
        headers.append(("Content-Encoding", "gzip"))
    if path == "/stream":
        start_response(status, headers)
        return iter([reply[:5], reply[5:]])
    if path == "/stumbles":
        start_response(status, headers)
        return stumbles()
    if path == "/large":
        reply = json.dumps("x" * 300_000).encode()
    start_response(status, [*headers, ("Content-Length", str(len(reply)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply]


def stumbles() -> Iterable[bytes]:
    yield b"it begins well"
    raise ValueError("the shop's own error")


# Clients: each sends a request to the shop and gives status and value.

Got = tuple[int, Any]


def by_urllib(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://shop{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def by_requests(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    reply = requests.request(method, f"http://shop{path}", json=body, headers=headers, timeout=TIMEOUT_S)
    return reply.status_code, reply.json()


def by_httpx(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    with httpx.Client(timeout=TIMEOUT_S) as client:
        reply = client.request(method, f"http://shop{path}", json=body, headers=headers)
        return reply.status_code, reply.json()


def by_httpx_async(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    async def ask() -> Got:
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            reply = await client.request(method, f"http://shop{path}", json=body, headers=headers)
            return reply.status_code, reply.json()

    return asyncio.run(ask())


def by_aiohttp(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    async def ask() -> Got:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, f"http://shop{path}", json=body, headers=headers) as reply,
        ):
            return reply.status, await reply.json()

    return asyncio.run(ask())


def by_http_client(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    connection = http.client.HTTPConnection("shop", timeout=TIMEOUT_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, json.load(reply)
    finally:
        connection.close()


def by_socket(method: str, path: str, body: Any, headers: dict[str, str]) -> Got:
    data = b"" if body is None else json.dumps(body).encode()
    said = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {path} HTTP/1.1\r\nHost: shop\r\nContent-Length: {len(data)}\r\n{said}Connection: close\r\n\r\n"
    with socket.create_connection(("shop", 80), timeout=TIMEOUT_S) as sock:
        sock.sendall(head.encode() + data)
        heard = b""
        while part := sock.recv(65536):
            heard += part
    if not heard:
        raise http.client.RemoteDisconnected("nothing came")
    top, _, content = heard.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(content)


Client = Callable[[str, str, Any, dict[str, str]], Got]
CLIENTS: dict[str, Client] = {
    "urllib": by_urllib,
    "requests": by_requests,
    "httpx": by_httpx,
    "httpx, async": by_httpx_async,
    "aiohttp": by_aiohttp,
    "http.client": by_http_client,
    "a socket": by_socket,
}
MEANS = {
    "timed_out": (TimeoutError, httpx.ReadTimeout, requests.ReadTimeout),
    "refused": (ConnectionRefusedError, httpx.ConnectError, aiohttp.ClientConnectorError),
    "closed": (http.client.RemoteDisconnected, httpx.RemoteProtocolError, aiohttp.ServerDisconnectedError),
    "reset": (ConnectionResetError, httpx.ReadError, aiohttp.ClientOSError),
}


def kind_of(error: BaseException) -> str:
    """The kind of failure that a client's error tells of, itself or by its causes."""
    seen: list[BaseException] = []
    todo: list[Any] = [error]
    while todo:
        one = todo.pop(0)
        if isinstance(one, BaseException) and one not in seen:
            seen.append(one)
            todo += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return next((kind for kind, types in MEANS.items() if any(isinstance(one, types) for one in seen)), repr(error))


def met_by(
    client: Client, *asks: tuple[Any, ...], faults: Iterable[Any] = (), **options: Any
) -> tuple[list[tuple[Any, float]], lab.Trial]:
    """Each outcome that the client met with its seconds, in order, and the trial."""
    met: list[tuple[Any, float]] = []

    def agent(_: str) -> str:
        for ask in asks:
            method, path, *more = ask
            body, headers = more[0] if more else None, more[1] if more[1:] else {}
            began = time.monotonic()
            try:
                got: Any = client(method, path, body, headers)
            except Exception as error:  # noqa: BLE001 - it is what is looked at
                got = kind_of(error)
            met.append((got, round(time.monotonic() - began, 2)))
        return "done"

    trial = ran(agent, *faults, **options)
    assert trial.error is None
    return met, trial


def outcomes(*steps: Callable[[], Any], faults: Iterable[Any] = (), **options: Any) -> tuple[list[Any], lab.Trial]:
    """The result of each step of an agent, or the kind of its failure, in order, and the trial."""
    met: list[Any] = []

    def agent(_: str) -> None:
        for step in steps:
            try:
                met.append(step())
            except Exception as error:  # noqa: BLE001 - it is what is looked at
                met.append(kind_of(error))

    trial = ran(agent, *faults, **options)
    assert trial.error is None
    return met, trial


def ran(agent: Callable[[str], Any], *faults: Any, **options: Any) -> lab.Trial:
    """A trial at the shop, if no other services are given, with no effects stated."""
    return lab.run(agent, "go", faults=list(faults), **{"services": {"shop": shop}, "effects": [], **options})


POST = ("POST", "/orders", ORDER)
OK = (200, PLACED)

TABLE: list[tuple[str, dict[str, Any], Any, float, int]] = [
    ("lost_reply", {}, "timed_out", 5.0, 1),
    ("latency", {"delay_s": 2.0, "stream": "upstream"}, OK, 2.0, 1),
    ("latency", {"delay_s": 2.0, "stream": "downstream"}, OK, 2.0, 1),
    ("latency", {"delay_s": 8.0, "stream": "upstream"}, "timed_out", 5.0, 0),
    ("latency", {"delay_s": 8.0, "stream": "downstream"}, "timed_out", 5.0, 1),
    ("timeout", {"stream": "upstream"}, "timed_out", 5.0, 0),
    ("timeout", {"stream": "downstream"}, "timed_out", 5.0, 1),
    ("timeout", {"stream": "upstream", "after_s": 1.0}, "closed", 1.0, 0),
    ("timeout", {"stream": "downstream", "after_s": 1.0}, "closed", 1.0, 1),
    ("reset_peer", {"stream": "upstream"}, "reset", 0.0, 0),
    ("reset_peer", {"stream": "downstream", "after_s": 1.0}, "reset", 1.0, 1),
    ("refused", {}, "refused", 0.0, 0),
    ("tool_error", {"status": 503}, (503, {"error": "status 503"}), 0.0, 0),
    ("wrong_value", {"point": 0.9, "factor": 2.0}, (200, {"item": "tea", "total": 60}), 0.0, 1),
]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize(("fault", "params", "met", "seconds", "done"), TABLE)
def test_every_client_meets_every_fault(
    fault: str, params: dict[str, Any], met: Any, seconds: float, done: int, client: Client
) -> None:
    (found,), trial = met_by(client, POST, faults=[lab.inject(fault, "shop", calls=[1], **params)])
    assert found == (met, seconds)
    assert len(trial.effects) == done
    for kind in (FaultScheduled, FaultInjected, FaultWitnessed):
        ((_, event),) = trial.history.find_events(kind)
        assert (event.target, event.request, event.attempt) == ("shop", 1, 1)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert call.error == (met if isinstance(met, str) else None if met[0] == 200 else "Service Unavailable")
    assert call.duration_s == pytest.approx(seconds, abs=0.001)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_request_that_meets_no_fault_is_numbered_and_its_reply_noted(client: Client) -> None:
    (found,), trial = met_by(client, ("POST", "/orders?dry=no", ORDER))
    assert found == (OK, 0.0)
    ((_, began),) = trial.history.find_events(CallStarted)
    ((_, ended),) = trial.history.find_events(CallFinished)
    assert (began.target, began.tool, began.arguments) == ("shop", "POST /orders", {"query": {"dry": "no"}, **ORDER})
    assert (ended.ok, ended.status, ended.via, json.loads(ended.reply)) == (True, 200, "service", PLACED)
    assert began.at == ended.at


def test_an_error_of_too_many_requests_says_when_to_ask_again() -> None:
    limited = lab.inject("tool_error", "shop", status=429)
    (reply,), _ = outcomes(lambda: requests.get("http://shop/orders", timeout=5), faults=[limited])
    wanted = (429, "1", {"error": "Too Many Requests"})
    assert (reply.status_code, reply.headers["Retry-After"], reply.json()) == wanted


@pytest.mark.parametrize("body", [b"[" * 900 + b"]" * 900, b'{"a":' * 5000, b"\xff" * 100_000, b'"\\ud800"', b"NaN"])
def test_a_body_of_any_shape_is_numbered_and_answered_as_without_the_lab(body: bytes) -> None:
    def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        said = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Length", str(len(said)))])
        return [said]

    def agent(_: str) -> str:
        for data in (body, body, body + b" "):
            assert requests.post("http://shop/", data, timeout=5).content == data
        return "done"

    trial = ran(agent, lab.inject("latency", "shop", calls=[2]), services={"shop": echo})
    assert (trial.error, places(trial)) == (None, [(2, 1)])
    assert [event.request for _, event in trial.history.find_events(CallStarted)] == [1, 2, 3]


# The same bytes with and without the seam.

HEAD = b" HTTP/1.1\r\nHost: shop\r\n\r\n"


def heard(words: bytes, faults: Iterable[Any]) -> bytes:
    """All bytes that come back on one connection."""
    said: list[bytes] = []

    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(words)
            try:
                while part := sock.recv(65536):
                    said.append(part)
            except TimeoutError:
                said.append(b"(kept)")
        return "done"

    ran(agent, *faults)
    return b"".join(said)


@pytest.mark.parametrize(
    "words",
    [
        b"GET /orders" + HEAD,
        b"HEAD /orders" + HEAD,
        b"GET /stream" + HEAD,
        b"GET /packed" + HEAD,
        b"GET /broken" + HEAD,
        b"GET /fails" + HEAD,
        b"GET /orders" + HEAD + b"GET /stream" + HEAD,
        b"GET /orders HTTP/1.0\r\n\r\n",
    ],
)
def test_the_bytes_are_the_same_whether_faults_are_near_or_not(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    logging.getLogger("chaoslab.worlds.virtual.network.serving").setLevel(logging.CRITICAL)
    watched = heard(words, [])
    near = heard(words, [lab.inject("latency", "shop", calls=[9]), lab.inject("wrong_value", "shop", chance=1e-9)])
    monkeypatch.setattr("chaoslab.worlds.virtual.network._client_side.make_service_attempt", lambda *_: None)
    assert watched == near == heard(words, []) != b""


def test_a_fault_that_only_delays_leaves_repeated_headers_and_packed_bodies_as_they_are() -> None:
    late = [lab.inject("latency", "shop", delay_s=0.5)]
    for path in (b"/orders", b"/packed"):
        assert heard(b"GET " + path + HEAD, late) == heard(b"GET " + path + HEAD, [])


@pytest.mark.parametrize("path", ["/packed", "/stream"])
def test_a_wrong_value_in_a_packed_or_streamed_reply_arrives_with_the_right_length(path: str) -> None:
    wrong = lab.inject("wrong_value", "shop", point=0.9, factor=2.0)
    (found,), trial = met_by(by_httpx, ("GET", path), faults=[wrong])
    assert found[0] == (200, {"item": "tea", "total": 60})
    ((_, event),) = trial.history.find_events(FaultWitnessed)
    assert event.changed == "total 30 → 60"


def test_an_error_in_place_of_the_head_of_a_reply_is_witnessed_too() -> None:
    failing = lab.inject("tool_error", "shop", status=503)
    (reply,), trial = outcomes(lambda: requests.head("http://shop/orders", timeout=5), faults=[failing])
    assert (reply.status_code, len(list(trial.history.find_events(FaultWitnessed)))) == (503, 1)


# Effects.


def buyer(headers: dict[str, str] | None = None, *, method: str = "POST") -> Callable[[str], str]:
    """An agent that orders tea, and again if it hears nothing."""

    def agent(_: str) -> str:
        for _again in range(3):
            try:
                reply = requests.request(method, "http://shop/orders", json=ORDER, headers=headers, timeout=5)
                return f"ordered for {reply.json()['total']}"
            except requests.RequestException:
                continue
        return "could not order"

    return agent


def test_a_lost_reply_doubles_an_order_without_a_key_and_the_twin_tells() -> None:
    lost = [lab.inject("lost_reply", "shop", calls=[1])]
    trial = lab.run(buyer(), "go", services={"shop": shop}, faults=lost)
    assert (trial.outcome, trial.why) == (lab.Outcome.HARM, "POST /orders twice")
    assert trial.effects == [{"effect": "POST /orders", **ORDER}] * 2
    assert trial.twin is not None
    assert len(trial.twin.effects) == 1
    assert trial.recovery["shop"].ending == "harm"


@pytest.mark.parametrize(("method", "headers"), [("POST", {"Idempotency-Key": "k1"}), ("PUT", None), ("DELETE", None)])
def test_an_order_with_a_key_or_a_method_that_may_be_repeated_is_one(
    method: str, headers: dict[str, str] | None
) -> None:
    lost = [lab.inject("lost_reply", "shop", calls=[1])]
    trial = lab.run(buyer(headers, method=method), "go", services={"shop": shop}, faults=lost)
    assert trial.outcome is lab.Outcome.CORRECT
    assert (len(trial.effects), len(list(trial.history.find_events(Effect)))) == (1, 2)
    assert trial.recovery["shop"].ending == "retry"


def test_an_error_of_a_request_for_the_head_alone_is_met_though_its_body_is_not_sent() -> None:
    def agent(_: str) -> str:
        return str(requests.head("http://shop/orders", timeout=5).status_code)

    faults = [lab.inject("server_error", "shop", status=503)]
    trial = lab.run(agent, "go", services={"shop": shop}, faults=faults, twin=False, anyway=True)
    assert (trial.answer, len(list(trial.history.find_events(FaultWitnessed)))) == ("503", 1)


def test_a_repeat_that_takes_back_what_came_between_is_an_effect_of_its_own() -> None:
    put, other = ("PUT", "/orders", ORDER), ("PUT", "/orders", {**ORDER, "item": "coffee"})
    _, trial = met_by(by_requests, put, put, other, other, put, ("PUT", "/items", ORDER), put)
    assert [effect["effect"] for effect in trial.effects] == ["PUT /orders"] * 3 + ["PUT /items"]
    assert [effect.get("item") for effect in trial.effects[:3]] == [ORDER["item"], "coffee", ORDER["item"]]


def test_a_switch_that_is_put_on_and_off_and_on_again_is_no_repeat() -> None:
    def agent(_: str) -> str:
        for on in (True, False, True):
            by_urllib("PUT", "/orders", {"on": on}, {})
        return "It is on."

    calm = lab.run(agent, "Switch it on, off, on.", services={"shop": shop})
    assert (calm.outcome, len(calm.effects)) == ("correct", 3)


@pytest.mark.parametrize("more", [0, 1])
def test_a_request_that_says_when_it_is_made_is_repeated_at_another_moment(more: int) -> None:
    def agent(_: str) -> str:
        for n in (0, more):
            try:
                by_urllib("PUT", "/orders", {"amount": 5 + n, "at": time.time()}, {})
                break
            except OSError:
                time.sleep(2)
        return "It is put."

    trial = lab.run(agent, "Put it.", services={"shop": shop}, faults=[lab.inject("lost_reply", "shop", calls=[1])])
    assert trial.outcome == ("harm" if more else "correct"), trial.why


def test_a_request_that_is_to_be_made_twice_is_no_repeat() -> None:
    def agent(_: str) -> str:
        for _try in range(2):
            by_urllib("PUT", "/orders", {"amount": 5, "at": time.time()}, {})
            time.sleep(2)
        return "It is put."

    late = lab.inject("latency", "shop", delay_s=1, calls=[1])
    trial = lab.run(agent, "Put it twice.", services={"shop": shop}, faults=[late])
    assert (trial.outcome, len(trial.effects)) == ("correct", 2), trial.why


def test_an_order_under_two_keys_is_two() -> None:
    keys = iter("abcdef")

    def agent(_: str) -> str:
        for _again in range(2):
            try:
                requests.post("http://shop/orders", json=ORDER, headers={"Idempotency-Key": next(keys)}, timeout=5)
                return "ordered"
            except requests.RequestException:
                continue
        return "could not"

    lost = [lab.inject("lost_reply", "shop", calls=[1])]
    trial = lab.run(agent, "go", services={"shop": shop}, faults=lost)
    assert (trial.outcome, len(trial.effects)) == (lab.Outcome.HARM, 2)


def test_one_key_at_two_addresses_is_two_effects() -> None:
    key = {"Idempotency-Key": "k1"}
    _, trial = met_by(by_requests, (*POST, key), ("POST", "/refunds", ORDER, key))
    assert [effect["effect"] for effect in trial.effects] == ["POST /orders", "POST /refunds"]


def test_a_service_that_says_nonsense_of_its_effects_is_told_and_judged_by_its_method() -> None:
    _, trial = met_by(by_requests, ("POST", "/mumbles", ORDER))
    assert [effect["effect"] for effect in trial.effects] == ["POST /mumbles"]
    ((_, warning),) = trial.history.find_events(LabWarning)
    assert warning.message.startswith("shop says X-Lab-Effect: '7' to POST /mumbles: it should be none, or JSON as in")


def test_effects_of_a_service_can_be_stated() -> None:
    def stated(amount: int) -> lab.Trial:
        wish = {"effect": "POST /orders", "item": "tea", "amount": amount}
        return lab.run(buyer(), "go", services={"shop": shop}, effects=[wish])

    assert stated(3).outcome is lab.Outcome.CORRECT
    assert stated(4).outcome is lab.Outcome.HARM


# Numbers and triggers.


def places(trial: lab.Trial) -> list[tuple[int, int]]:
    return [(event.request, event.attempt) for _, event in trial.history.find_events(FaultWitnessed)]


def test_the_same_again_before_it_was_answered_is_a_further_attempt() -> None:
    failing = [lab.inject("tool_error", "shop", status=503, calls=[1], attempts=[1, 2])]
    _, trial = met_by(by_requests, POST, POST, POST, POST, ("GET", "/orders"), faults=failing)
    begun = [(event.request, event.attempt) for _, event in trial.history.find_events(CallStarted)]
    assert begun == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
    assert places(trial) == [(1, 1), (1, 2)]


def test_equal_requests_to_two_services_are_two_requests() -> None:
    def agent(_: str) -> str:
        for name in ("shop", "bank"):
            requests.get(f"http://{name}/", timeout=5)
        return "done"

    trial = ran(agent, services={"shop": shop, "bank": shop})
    begun = [(event.target, event.request, event.attempt) for _, event in trial.history.find_events(CallStarted)]
    assert begun == [("shop", 1, 1), ("bank", 1, 1)]
    assert len({event.request_id for _, event in trial.history.find_events(CallStarted)}) == 2


@pytest.mark.parametrize(
    ("triggers", "hit"),
    [
        ({"calls": [2]}, [2]),
        ({"tool": "POST /orders*"}, [1, 3]),
        ({"tool": "GET *", "max_times": 1}, [2]),
        ({"when": "amount > 3"}, [3]),
        ({"when": 'query.page == "2"'}, [4]),
        ({"every": 2}, [2, 4]),
        ({"after_calls": 2, "max_times": 1}, [3]),
        ({"window_s": [1.5, 3.5]}, [3, 4]),
        ({"persistence": "burst 2", "after_calls": 1, "max_times": 2}, [2, 3]),
    ],
)
def test_triggers_choose_among_the_requests(triggers: dict[str, Any], hit: list[int]) -> None:
    def agent(_: str) -> str:
        with requests.Session() as session:
            for method, path, body in (
                ("POST", "/orders", ORDER),
                ("GET", "/orders", None),
                ("POST", "/orders/new", {**ORDER, "amount": 4}),
                ("GET", "/orders?page=2", None),
            ):
                session.request(method, f"http://shop{path}", json=body, timeout=5)
                time.sleep(1)
        return "done"

    fault = lab.inject("wrong_value", "shop", **triggers)
    trial = ran(agent, fault)
    assert places(trial) == [(number, 1) for number in hit]


def pay(amount: int) -> str:
    return str(requests.post("http://bank/payments", json={"amount": amount}, timeout=5).json()["item"])


def test_functions_and_services_share_the_memory_of_the_trial() -> None:
    def agent(_: str) -> str:
        for _again in range(2):
            requests.get("http://shop/orders", timeout=5)
            try:
                pay(7)
            except lab.ToolError:
                return "could not pay"
        return "paid"

    trial = ran(
        agent,
        lab.inject("tool_error", "pay", status=500, after="first"),
        lab.inject("wrong_value", "shop", name="first", calls=[2]),
        services={"shop": shop, "bank": shop},
        tools=[pay],
    )
    assert trial.answer == "could not pay"
    witnessed = [(event.target, event.request) for _, event in trial.history.find_events(FaultWitnessed)]
    assert witnessed == [("shop", 2), ("pay", 2)]


def test_a_function_and_the_request_within_it_are_two_effects_in_the_trial_and_in_its_twin() -> None:
    trial = lab.run(lambda _: pay(7), "go", tools=[pay], services={"bank": shop})
    assert trial.outcome is lab.Outcome.CORRECT
    assert [effect["effect"] for effect in trial.effects] == ["POST /payments", "pay"]


def test_a_request_that_is_never_made_makes_the_trial_invalid() -> None:
    _, trial = met_by(by_requests, POST, faults=[lab.inject("latency", "shop", calls=[3])], effects=None)
    assert trial.outcome is lab.Outcome.INVALID
    assert trial.why.endswith("'latency on shop' is for request 3 of shop, and there were 1")


def test_a_service_that_a_fault_is_aimed_at_and_nobody_asks_is_warned_of() -> None:
    _, refused = met_by(by_requests, ("GET", "/1"), faults=[lab.inject("refused", "shop")])
    assert refused.warnings == ()
    _, trial = met_by(by_requests, faults=[lab.inject("latency", "shop")])
    assert trial.warnings == (
        "shop was never called: the agent had no use for it, or calls another object; latency on shop could hit "
        "nothing",
    )


def test_a_budget_of_calls_counts_the_requests_to_services() -> None:
    met, trial = met_by(
        by_requests, ("GET", "/1"), ("GET", "/2"), ("GET", "/3"), faults=[lab.inject("budget", "shop", calls_max=2)]
    )
    assert [got[0] for got, _ in met] == [200, 200, 429]
    assert places(trial) == [(3, 1)]


def test_an_error_in_the_services_own_words_is_told_in_them() -> None:
    def closed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
        start_response("409 Conflict", [("Content-Type", "application/json")])
        return [b'{"error": "the shop is closed"}']

    (met,), trial = outcomes(lambda: by_requests(*POST, {}), services={"shop": closed})
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (met[0], call.status, call.error, trial.effects) == (409, 409, "the shop is closed", [])


def test_an_answer_without_a_body_is_an_effect_too() -> None:
    def empties(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
        start_response("204 No Content", [])
        return []

    (reply,), trial = outcomes(lambda: requests.delete("http://shop/orders/7", timeout=5), services={"shop": empties})
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (reply.status_code, call.ok, call.status) == (204, True, 204)
    assert trial.effects == [{"effect": "DELETE /orders/7"}]


CHANGED = """
@dataclass(frozen=True)
class Sock(Fault):
    '''Another amount is sent.'''

    layer = "meaning"
    corrupts = "call"

    def flow(self, call, context):
        return (yield call.with_value({**call.value, "amount": 9}))
"""


def totals(_: str) -> str:
    found = []
    for amount in (1, 2, 3):
        reply = requests.post("http://shop/orders", json={"item": "tea", "amount": amount}, timeout=5)
        found.append(str(reply.json()["total"]))
    return " ".join(found)


def test_a_story_may_bring_an_earlier_reply_again(tmp_path: Path) -> None:
    with installed(tmp_path, STALE):
        trial = ran(totals, lab.inject("gremlin", "shop", calls=[3]))
    assert (trial.answer, places(trial)) == ("10 20 10", [(3, 1)])


def test_a_story_may_change_what_the_service_is_asked(tmp_path: Path) -> None:
    with installed(tmp_path, CHANGED):
        trial = ran(totals, lab.inject("gremlin", "shop", calls=[2]))
    assert (trial.answer, places(trial)) == ("10 90 30", [(2, 1)])
    assert [effect["amount"] for effect in trial.effects] == [1, 9, 3]


# Refused connections.


def test_a_refused_connection_is_the_first_attempt_of_the_request_that_comes_after_it() -> None:
    (first, again), trial = met_by(by_requests, POST, POST, faults=[lab.inject("refused", "shop", calls=[1])])
    assert (first[0], again[0]) == ("refused", OK)
    begun = [(event.tool, event.request, event.attempt) for _, event in trial.history.find_events(CallStarted)]
    assert begun == [("connect", 1, 1), ("POST /orders", 1, 2)]
    assert len({event.request_id for _, event in trial.history.find_events(CallStarted)}) == 1
    assert trial.recovery["shop"].ending == "retry"


def test_a_connection_may_be_refused_several_times_and_then_no_more() -> None:
    refused = [lab.inject("refused", "shop", calls=[1], attempts=[1, 2])]
    met, trial = met_by(by_requests, POST, POST, POST, faults=refused)
    assert [got for got, _ in met] == ["refused", "refused", OK]
    assert places(trial) == [(1, 1), (1, 2)]


def in_a_session(count: int) -> list[Callable[[], int]]:
    """So many requests of a client that keeps its connection; each gives its status."""
    session = requests.Session()
    return [lambda n=n: session.get(f"http://shop/{n}", timeout=5).status_code for n in range(count)]  # type: ignore[misc]


def test_a_service_that_is_down_for_a_while_refuses_all_until_then() -> None:
    faults = [
        lab.inject("refused", "shop", name="down", after_calls=1, max_times=3, persistence="for_s 2.5"),
        lab.inject("refused", "shop", name="never", calls=[99]),
    ]
    asks = in_a_session(6)
    met, _ = outcomes(*(step for ask in asks for step in (ask, lambda: time.sleep(1))), faults=faults)
    assert met[::2] == [200, "refused", "refused", "refused", 200, 200]


def test_a_client_that_keeps_its_connection_is_refused_by_the_number_of_its_request_too() -> None:
    met, trial = outcomes(*in_a_session(4), faults=[lab.inject("refused", "shop", calls=[3])])
    assert met == [200, 200, "refused", 200]
    assert places(trial) == [(3, 1)]
    assert trial.outcome is not lab.Outcome.INVALID


# Streams of events.


def teller(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A service that tells of five events, one a second, and [DONE]."""
    kind = [("Content-Type", "text/event-stream"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    start_response("200 OK", kind)
    return events(fails=environ["PATH_INFO"] == "/fails")


def events(*, fails: bool) -> Iterable[bytes]:
    for number in range(5):
        yield b"data: %d\n\n" % number
        if fails:
            raise ValueError("the service's own error")
        time.sleep(1)
    yield b"data: [DONE]\n\n"


def read_by_httpx() -> Iterable[str]:
    with httpx.Client(timeout=4) as client, client.stream("GET", "http://teller/") as reply:
        yield from reply.iter_lines()


def read_by_requests() -> Iterable[str]:
    with requests.get("http://teller/", stream=True, timeout=4) as reply:
        for line in reply.iter_lines(chunk_size=None):
            yield line.decode()


def read_by_urllib() -> Iterable[str]:
    with urllib.request.urlopen("http://teller/", timeout=4) as reply:
        for line in reply:
            yield line.decode()


READERS = {"httpx": read_by_httpx, "requests": read_by_requests, "urllib": read_by_urllib}
WHOLE = ["0", "1", "2", "3", "4", "[DONE]"]
STREAMS: list[tuple[str, dict[str, Any], list[str], str, float]] = [
    ("cut", {"after_events": 2}, ["0", "1"], "", 2.0),
    ("cut", {"after_events": 2, "ending": "done"}, ["0", "1", "[DONE]"], "", 2.0),
    ("stall", {"after_events": 2, "stall_s": 2.0}, WHOLE, "", 7.0),
    ("stall", {"after_events": 2}, ["0", "1"], "timed out", 5.0),
    ("slow_chunks", {"delay_s": 2.0}, WHOLE, "", 10.0),
    ("slow_chunks", {"delay_s": 9.0}, ["0"], "timed out", 4.0),
]


def read(reader: Callable[[], Iterable[str]], faults: Iterable[Any]) -> tuple[list[str], str, lab.Trial]:
    """The events that the reader got, the error in the end if any, and the trial."""
    got: list[str] = []
    failed: list[str] = []

    def agent(_: str) -> str:
        try:
            for line in reader():
                got.extend(filter(None, [line.strip()[6:]]))
        except Exception as error:  # noqa: BLE001
            failed.append(f"{type(error).__name__} {error}")
        return "done"

    trial = ran(agent, *faults, services={"teller": teller})
    return got, "".join(failed), trial


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("fault", "params", "met", "failed", "seconds"), STREAMS)
def test_every_reader_meets_every_fault_of_a_stream(
    fault: str, params: dict[str, Any], met: list[str], failed: str, seconds: float, reader: Callable[[], Iterable[str]]
) -> None:
    got, why, trial = read(reader, [lab.inject(fault, "teller", calls=[1], **params)])
    assert (got, round(trial.seconds, 2)) == (met, seconds)
    assert failed in why.lower()
    assert bool(failed) == bool(why)
    for kind in (FaultScheduled, FaultInjected, FaultWitnessed):
        assert len(list(trial.history.find_events(kind))) == 1
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (call.ok, call.error) == (not failed, "timed_out" if failed else None)


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
@pytest.mark.parametrize("faults", [[], [lab.inject("cut", "teller", after_events=8)]])
def test_a_stream_that_no_fault_changes_comes_when_it_is_sent(faults: list[Any]) -> None:
    got, why, trial = read(read_by_httpx, faults)
    ((_, call),) = trial.history.find_events(CallFinished)
    first_s, last_s = round(call.first_byte_s or 9, 2), round(call.last_byte_s or 9, 2)
    assert (got, why, first_s, last_s) == (WHOLE, "", 0.0, 5.0)
    assert not list(trial.history.find_events(FaultInjected))


def test_a_stream_whose_reader_hangs_for_ever_has_met_its_fault() -> None:
    def agent(_: str) -> str:
        return str(urllib.request.urlopen("http://teller/").read())

    trial = ran(agent, lab.inject("stall", "teller", after_events=2), services={"teller": teller}, timeout_s=20)
    assert trial.outcome is lab.Outcome.HUNG
    ((_, fault),) = trial.history.find_events(FaultWitnessed)
    assert fault.evidence.startswith("nothing came for 19.")


def test_a_service_that_fails_within_a_stream_closes_it_with_a_fault_near_or_not() -> None:
    logging.getLogger("chaoslab.worlds.virtual.network.serving").setLevel(logging.CRITICAL)

    def agent(_: str) -> str:
        try:
            return str(httpx.get("http://teller/fails", timeout=4).status_code)
        except httpx.RemoteProtocolError:
            return "closed"

    for faults in ([], [lab.inject("slow_chunks", "teller")]):
        trial = ran(agent, *faults, services={"teller": teller})
        ((_, call),) = trial.history.find_events(CallFinished)
        assert (trial.answer, call.error) == ("closed", "closed")


def test_a_fault_that_only_delays_a_stream_leaves_its_headers() -> None:
    late = [lab.inject(fault, "teller") for fault in ("slow_chunks", "latency")]
    (reply,), _ = outcomes(lambda: httpx.get("http://teller/", timeout=9), faults=late, services={"teller": teller})
    assert (reply.headers.get_list("set-cookie"), len(reply.text)) == (["a=1", "b=2"], 59)


# Connections.


def test_several_requests_on_one_connection_meet_faults_of_their_own() -> None:
    met: list[Any] = []

    def agent(_: str) -> str:
        connection = http.client.HTTPConnection("shop", timeout=5)
        for number in range(1, 5):
            connection.request("GET", f"/{number}")
            reply = connection.getresponse()
            met.append((reply.status, json.load(reply).get("total"), connection.sock is not None))
        connection.close()
        return "done"

    trial = ran(
        agent,
        lab.inject("tool_error", "shop", status=503, calls=[2]),
        lab.inject("wrong_value", "shop", point=0.9, factor=2.0, calls=[3]),
    )
    assert met == [(200, 30, True), (503, None, True), (200, 60, True), (200, 30, True)]
    assert places(trial) == [(2, 1), (3, 1)]


def test_requests_that_are_sent_together_are_answered_and_noted_one_after_the_other() -> None:
    late = [lab.inject("latency", "shop", delay_s=0.5, stream="downstream", calls=[1])]
    assert heard(b"".join(b"GET /%d" % number + HEAD for number in range(3)), late).count(b"200 OK") == 3


def test_the_bytes_of_requests_that_are_sent_together_are_told_apart() -> None:
    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(b"HEAD /orders" + HEAD + b"GET /orders" + HEAD + b"GET /orders?page=2" + HEAD)
            time.sleep(0.5)
            return str(len(sock.recv(65536)))

    trial = ran(agent)
    calls = [call for _, call in trial.history.find_events(CallFinished)]
    assert sum(call.bytes for call in calls) == int(trial.answer)
    assert [call.reply != "" for call in calls] == [False, True, True]


@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "shop", delay_s=1.0)]])
def test_a_large_reply_is_over_when_its_last_byte_was_taken(faults: list[Any]) -> None:
    def agent(_: str) -> str:
        return str(len(requests.get("http://shop/large", timeout=5).json()))

    trial = ran(agent, *faults)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (trial.answer, call.ok, call.bytes > 300_000) == ("300000", True, True)


def test_a_client_that_stops_reading_is_no_failure() -> None:
    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(b"GET /large" + HEAD)
            return sock.recv(15).decode()

    trial = ran(agent)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (trial.answer, call.error, call.bytes) == ("HTTP/1.1 200 OK", "cancelled", 15)  # not even a whole head

    def agent_of_more(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(b"GET /large" + HEAD)
            return str(len(sock.recv(1000)))

    trial = ran(agent_of_more)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (trial.answer, call.error, call.status, call.bytes) == ("1000", None, 200, 1000)


def test_a_changed_reply_of_which_only_a_part_was_taken_is_not_witnessed() -> None:
    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(b"GET /large" + HEAD)
            return str(len(sock.recv(1000)))

    trial = ran(agent, lab.inject("wrong_value", "shop"))
    assert (trial.answer, len(list(trial.history.find_events(FaultInjected)))) == ("1000", 1)
    assert not list(trial.history.find_events(FaultWitnessed))


def test_a_client_that_sends_and_forgets_has_its_work_done_and_meets_nothing() -> None:
    def agent(_: str) -> str:
        body = json.dumps(ORDER).encode()
        with socket.create_connection(("shop", 80), timeout=1) as sock:
            sock.sendall(b"POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(1)
        return "sent"

    trial = ran(agent, lab.inject("wrong_value", "shop"))
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (call.ok, call.error, len(trial.effects)) == (False, "cancelled", 1)
    assert not list(trial.history.find_events(FaultWitnessed))


def test_a_reply_that_ends_too_soon_is_closed() -> None:
    logging.getLogger("chaoslab.worlds.virtual.network.serving").setLevel(logging.CRITICAL)
    _, trial = met_by(by_requests, ("GET", "/stumbles"))
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (call.ok, call.error, call.status) == (False, "closed", 200)


def test_two_connections_at_once_have_waits_of_their_own() -> None:
    async def agent(_: str) -> str:
        async with httpx.AsyncClient(timeout=5) as client:
            asks = (client.get(f"http://shop/{number}") for number in range(2))
            return " ".join(str(reply.status_code) for reply in await asyncio.gather(*asks))

    trial = ran(agent, lab.inject("latency", "shop", delay_s=2.0))
    assert (trial.answer, round(trial.seconds, 2)) == ("200 200", 2.0)
    assert places(trial) == [(1, 1), (2, 1)]


def test_threads_with_clients_of_their_own_meet_faults_of_their_own() -> None:
    met: list[str] = []

    def ask(number: int) -> None:
        try:
            met.append(str(requests.get(f"http://shop/{number}", timeout=5).status_code))
        except requests.ConnectionError as error:
            met.append(kind_of(error))

    def agent(_: str) -> str:
        together(*(partial(ask, number) for number in range(3)))
        return " ".join(sorted(met))

    trial = ran(agent, lab.inject("reset_peer", "shop", stream="upstream", calls=[2]))
    assert trial.answer == "200 200 reset"
    assert places(trial) == [(2, 1)]


def test_a_client_that_hangs_up_ends_the_attempt_and_the_fault() -> None:
    def agent(_: str) -> str:
        sock = socket.create_connection(("shop", 80))
        sock.sendall(b"GET /orders" + HEAD)
        time.sleep(0.7)
        sock.close()
        return "gone"

    trial = ran(agent, lab.inject("latency", "shop", delay_s=60.0, stream="upstream"))
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (call.error, round(call.duration_s, 3), call.via) == ("timed_out", 0.7, "none")
    assert round(trial.seconds, 2) == 0.7


def reads(_: str) -> str:
    """An agent without a timeout."""
    return str(urllib.request.urlopen("http://shop/orders").read().decode())


def test_a_client_that_waits_for_ever_hangs_and_has_met_its_fault() -> None:
    trial = ran(reads, lab.inject("lost_reply", "shop", calls=[1]), timeout_s=20)
    assert trial.outcome is lab.Outcome.HUNG
    assert "recv from shop:80" in trial.why
    ((_, fault),) = trial.history.find_events(FaultWitnessed)
    assert fault.evidence == "the work was done, no answer within 20 s"


def test_a_client_without_a_timeout_gets_what_only_comes_late() -> None:
    trial = ran(reads, lab.inject("latency", "shop", delay_s=100.0), timeout_s=20)
    assert (json.loads(trial.answer), round(trial.seconds)) == (PLACED, 100)


def test_a_service_that_is_slow_by_itself_meets_the_clients_timeout_and_no_fault() -> None:
    def agent(_: str) -> str:
        try:
            requests.post("http://shop/slow", json=ORDER, timeout=1)
        except requests.Timeout:
            time.sleep(5)
            return "too slow"
        return "in time"

    trial = ran(agent)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (trial.answer, call.error, round(call.duration_s, 3)) == ("too slow", "timed_out", 1.0)
    assert attempts(trial.history).ways == {"service"}  # it is a time of the service's
    assert len(trial.effects) == 1  # it was done all the same
    assert not list(trial.history.find_events(FaultScheduled))


@pytest.mark.parametrize(("path", "faults"), [
    ("/fails", []), ("/broken", []), ("/fails", [lab.inject("latency", "shop")]),
    ("/broken", [lab.inject("latency", "shop")]),
])  # fmt: skip
def test_an_error_of_the_services_own_stays_its_own(path: str, faults: list[Any]) -> None:
    logging.getLogger("chaoslab.worlds.virtual.network.serving").setLevel(logging.CRITICAL)
    (reply,), trial = outcomes(lambda: requests.post(f"http://shop{path}", json=ORDER, timeout=5), faults=faults)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (reply.status_code, call.ok, call.status) == (500, False, 500)
    assert len(list(trial.history.find_events(FaultWitnessed))) == len(faults)
    assert trial.effects == []


def test_a_client_that_keeps_its_connection_after_its_timeout_has_met_the_fault() -> None:
    """As http.client does, when nobody closes it and the error keeps it alive."""

    def agent(_: str) -> str:
        connection = http.client.HTTPConnection("shop", timeout=4)
        connection.request("GET", "/orders")
        return str(connection.getresponse().status)

    trial = ran(agent, lab.inject("lost_reply", "shop"))
    assert isinstance(trial.error, TimeoutError)
    ((_, call),) = trial.history.find_events(CallFinished)
    ((_, fault),) = trial.history.find_events(FaultWitnessed)
    assert (call.error, call.duration_s) == ("timed_out", 4.0)
    assert fault.evidence == "the work was done, no answer within 4 s"


def test_a_trial_that_ends_before_its_fault_leaves_it_unwitnessed() -> None:
    trial = ran(reads, lab.inject("latency", "shop", delay_s=100.0), deadline_s=50)
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (trial.outcome, call.error) == (lab.Outcome.HUNG, "open at the trial's end")
    assert not list(trial.history.find_events(FaultWitnessed))


@pytest.mark.parametrize("client", [by_requests, by_httpx_async])
@pytest.mark.parametrize("method", ["flow", "witnessed"])
def test_a_fault_that_fails_by_itself_ends_the_run(
    method: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("its own error")

    monkeypatch.setattr(f"chaoslab.faults.tool.lost_reply.LostReply.{method}", fails)
    with pytest.raises(BrokenFault, match=rf"lost_reply.* its {method}\(\) raised"):
        met_by(client, POST, faults=[lab.inject("lost_reply", "shop")])


# The whole of a run.


def test_the_same_seed_gives_the_same_log_and_another_one_another(tmp_path: Path) -> None:
    def logged(folder: str, seed: int) -> bytes:
        faults = [lab.inject("reset_peer", "shop", chance=0.3), lab.inject("wrong_value", "shop", chance=0.3)]

        def agent(_: str) -> str:
            return " ".join(str(met_of(number)) for number in range(6))

        def met_of(number: int) -> Any:
            try:
                return requests.post(f"http://shop/{number}", json=ORDER, timeout=5).json()["total"]
            except requests.ConnectionError:
                return "-"

        lab.run(agent, "go", services={"shop": shop}, faults=faults, seed=seed, logs=tmp_path / folder)
        return (tmp_path / folder / "latest" / "info.log").read_bytes()

    first, again, other = logged("a", 3), logged("b", 3), logged("c", 4)
    assert first == again != other
    assert b'"fault_witnessed"' in first


def test_trials_in_other_processes_tell_the_same() -> None:
    def told(jobs: int) -> list[str]:
        faults = [lab.inject("lost_reply", "shop", chance=0.5)]
        trials = lab.run_many(buyer(), "go", trials=4, jobs=jobs, services={"shop": shop}, faults=faults)
        return [trial.story() for trial in trials]

    assert told(1) == told(2)


# A request's meaning, and back.


def http_request(target: str, body: bytes, kind: str = "application/json") -> HttpRequest:
    return HttpRequest("POST", target, [(b"content-type", kind.encode()), (b"content-length", b"1")], body)


@pytest.mark.parametrize(("asked", "meaning"), [
    (http_request("/a", b'{"x": 1}'), {"x": 1}),
    (http_request("/a?y=2&z=3&z=4", b'{"x": 1}'), {"query": {"y": "2", "z": ["3", "4"]}, "x": 1}),
    (http_request("/a?y=2", b'{"query": "tea"}'), {"query": "tea"}),
    (http_request("/a", b"x=1&y=a+b", "application/x-www-form-urlencoded"), {"x": "1", "y": "a b"}),
    (http_request("/a?y=", b"[1, 2]"), {"query": {"y": ""}, "body": [1, 2]}),
    (http_request("/a", b'{"x": 1}', "application/x-www-form-urlencoded"), {"x": 1}),
    (http_request("/a", b"hello", "text/plain"), {"body": "hello"}),
    (http_request("/a", b""), {}),
])  # fmt: skip
def test_a_request_means_the_fields_of_its_body_and_its_query(asked: HttpRequest, meaning: dict[str, Any]) -> None:
    assert asked.parse_arguments() == meaning


@pytest.mark.parametrize(("asked", "key", "value"), [
    (http_request("/a?y=2", b'{"x": 1}'), "x", 5),
    (http_request("/a?y=2", b'{"x": 1}'), "query", {"y": "3"}),
    (http_request("/a?y=2", b'{"query": "tea"}'), "query", "milk"),
    (http_request("/a", b"x=1&y=a+b", "application/x-www-form-urlencoded"), "x", "2"),
    (http_request("/a", b"[1, 2]"), "body", [1]),
    (http_request("/a", b'{"body": 1}'), "body", 2),
    (http_request("/a?y=2", b""), "query", {"y": "3"}),
])  # fmt: skip
def test_a_changed_meaning_is_another_request(asked: HttpRequest, key: str, value: Any) -> None:
    wanted = {**asked.parse_arguments(), key: value}
    changed = asked.with_arguments(wanted)
    assert changed.parse_arguments() == wanted
    assert changed.get_header(b"content-length") == str(len(changed.body))
    assert changed.body[:1] == asked.body[:1]  # an object stays one, and nothing nothing


def test_the_intent_of_a_request_is_that_of_its_meaning_though_another_of_the_same_bytes_came_before() -> None:
    both = [http_request("/a", b"x=1", kind) for kind in ("application/x-www-form-urlencoded", "text/plain")]
    for each in both * 2:
        assert each.build_intent_key(each.parse_arguments()) == canonical(["", each.parse_arguments()])


def thrice(_: str) -> None:
    """An agent that asks the same three times, over one client."""
    with httpx.Client() as client:
        for _again in range(3):
            client.get("http://shop/tea")


def test_an_application_that_changes_its_environment_changes_that_of_no_other_request() -> None:
    seen: list[set[str]] = []

    def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        seen.append(set(environ))
        environ["shop.user"] = "ann"
        del environ["HTTP_HOST"]
        start_response("200 OK", [("Content-Length", "0")])
        return []

    assert lab.run(thrice, "go", services={"shop": shop}, twin=False).error is None
    assert len(seen) == 3
    assert seen[0] == seen[1] == seen[2]
    assert "HTTP_HOST" in seen[0]


def test_the_threads_of_two_requests_share_nothing_though_one_comes_after_the_other() -> None:
    local, variable, seen = threading.local(), ContextVar("variable", default="new"), list[tuple[str, str]]()
    threads: list[int] = []

    def shop(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        seen.append((getattr(local, "value", "new"), variable.get()))
        local.value = "old"
        variable.set("old")
        threads.append(threading.get_ident())
        start_response("200 OK", [("Content-Length", "0")])
        return []

    assert lab.run(thrice, "go", services={"shop": shop}, twin=False).error is None
    assert seen == [("new", "new")] * 3
    assert len(set(threads)) == 3


@pytest.mark.parametrize("body", [b"x" * 20_000 + b"%d", b"[" * 20 + b'"' + b"x" * 20_000 + b'", %d' + b"]" * 20])
def test_large_bodies_that_differ_at_their_end_want_different_things(body: bytes) -> None:
    asked = [WantedCall(HttpRequest("POST", "/logs", (), body % n)).intent for n in (1, 2, 1)]
    assert asked[0] == asked[2] != asked[1]


def test_a_request_to_a_model_is_in_no_protocol_of_tools() -> None:
    """Its text may look like a query of GraphQL, and its field is called so, as in a request for a ranking."""
    request = HttpRequest("POST", "/v2/rerank", (), b'{"query": "{ price }", "documents": ["a"]}')
    host = ModelHost(lambda _: None, lambda *_: {})
    assert [WantedCall(request, to).message is None for to in (host, None)] == [True, False]


def test_times_of_a_stream_are_told_to_the_microsecond() -> None:
    view = StreamView(1 / 3)
    for at_s in (2 / 3, 4 / 3):
        view.note_part(b"data: a\n\n", at_s)
    assert view.build_stream_summary(None, 2.0, waited=False) == Streamed(0.333333, 1.0, 0.666667, 2, 18, False, "end")


@pytest.mark.parametrize("length", [True, False])
def test_an_answer_to_an_old_client_ends_with_its_connection(length: bool) -> None:
    def shop(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), *([("Content-Length", "6")] if length else [])])
        yield from (b"one", b"two")

    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80)) as line:
            line.sendall(b"GET /price HTTP/1.0\r\nHost: shop\r\n\r\n")
            found = b""
            while part := line.recv(100):
                found += part
        head, told = found.split(b"\r\n\r\n")
        return f"{head.split()[1].decode()} {told.decode()}"

    trial = lab.run(agent, "go", services={"shop": shop}, twin=False)
    assert trial.answer == "200 onetwo"
    ((_, call),) = trial.history.find_events(CallFinished)
    assert (call.ok, call.status, call.error, call.reply) == (True, 200, None, "onetwo")


@pytest.mark.parametrize(("waits_s", "ok", "error"), [(0.0, True, None), (0.5, False, "timed_out")])
def test_a_reader_that_stops_at_once_has_what_it_wanted_and_one_that_waits_gave_up(
    waits_s: float, ok: bool, error: str | None
) -> None:
    def shop(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        for number in range(3):
            yield b"data: %d\n\n" % number
            time.sleep(1)

    def agent(_: str) -> None:
        with socket.create_connection(("shop", 80)) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
            while b"data: 1" not in line.recv(1000):
                pass
            time.sleep(waits_s)

    ((_, call),) = lab.run(agent, "go", services={"shop": shop}, twin=False).history.find_events(CallFinished)
    assert (call.ok, call.error, round(call.duration_s, 2)) == (ok, error, 1.0 + waits_s)
