"""A request handed over whole comes to what it comes to byte by byte."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from chaoslab.core.exchange import Failure, Reply
from chaoslab.seams.services.app import Wsgi
from chaoslab.wire.sending import SocketFactory, TransportFactory, send
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Machine
from chaoslab.worlds.virtual.network import in_process_transport as virtual_ways
from chaoslab.worlds.virtual.network import serving
from chaoslab.worlds.virtual.network._app_answers import Broken
from chaoslab.worlds.virtual.network.network import TRIP_S, WINDOW_BYTES
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TLS = httpx.create_ssl_context()
NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
Answer = tuple[str, list[tuple[str, str]], list[bytes]]


def app(answer: Callable[[dict[str, Any], bytes], Answer]) -> Wsgi:
    def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, parts = answer(environ, environ["wsgi.input"].read())
        start_response(status, headers)
        return parts

    return wsgi


def sent(
    ways: TransportFactory,
    wsgi: Wsgi,
    request: httpx.Request,
    *,
    within_s: float = 5.0,
    waits: bool = True,
) -> tuple[Reply | str, float]:
    """The reply or the failure, and the virtual seconds that it took."""
    world = World(1, now=NOW)
    serving.serve(world.network, "weather", 80, wsgi, waits=waits)

    async def story() -> Reply | str:
        way = ways.kept(TLS)
        try:
            return await send(way, request, within_s=within_s)
        except Failure as failure:
            return failure.kind
        finally:
            await way.aclose()

    with Patches():
        reply = world.run_async(story)
    return reply, world.machine.now - STARTS_S


def echo(environ: dict[str, Any], body: bytes) -> Answer:
    """All that the application was told, but for where it was told it from."""
    seen = {
        name: value
        for name, value in environ.items()
        if isinstance(value, str) and name not in ("SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR")
    }
    said = json.dumps({**seen, "body": body.decode("latin-1")}).encode()
    return "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(said)))], [said]


def plain(status: str, headers: list[tuple[str, str]], *parts: bytes) -> Callable[[dict[str, Any], bytes], Answer]:
    return lambda _environ, _body: (status, headers, list(parts))


def bare(reply: Reply) -> Reply:
    """Without what is said of the connection, which a request that is handed over whole has none of."""
    return Reply(reply.status, {k: v for k, v in reply.headers.items() if k != "connection"}, reply.body)


LIMITS = [("X-Limit", "1"), ("X-Limit", "2"), ("Content-Length", "2"), ("Content-Type", "application/json")]
CASES = {
    "a GET with a query": (echo, httpx.Request("GET", "http://weather/a%20b/c?x=1&y=%C3%A9&x=2")),
    "a POST with a body": (echo, httpx.Request("POST", "http://weather/send", json={"to": "Ana", "text": "é"})),
    "headers said twice": (echo, httpx.Request("GET", "http://weather/", headers=[("X-A", "1"), ("X-A", "2")])),
    "an answer with headers twice": (plain("200 OK", LIMITS, b"{}"), httpx.Request("GET", "http://weather/")),
    "an answer in parts": (plain("200 OK", [], b"one", b"", b"two"), httpx.Request("GET", "http://weather/")),
    "no content": (plain("204 No Content", []), httpx.Request("DELETE", "http://weather/1")),
    "a status of its own": (plain("599 Odd", [("Content-Length", "0")]), httpx.Request("GET", "http://weather/")),
    "five megabytes": (plain("200 OK", [], b"x" * 5_000_000), httpx.Request("GET", "http://weather/")),
    "gzip that is none": (
        plain("200 OK", [("Content-Encoding", "gzip"), ("Content-Length", "2")], b"{}"),
        httpx.Request("GET", "http://weather/"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_or_in_bytes_it_comes_to_the_same(case: str) -> None:
    answer, request = CASES[case]
    whole, in_bytes = (
        sent(ways, app(answer), request)[0] for ways in (virtual_ways.InProcessTransports(), SocketFactory())
    )
    if isinstance(whole, Reply) and isinstance(in_bytes, Reply):
        whole, in_bytes = bare(whole), bare(in_bytes)
    assert whole == in_bytes


def failing(environ: dict[str, Any], body: bytes) -> Answer:  # noqa: ARG001
    raise LookupError("nothing there")


def broken_off(environ: dict[str, Any], body: bytes) -> Answer:  # noqa: ARG001
    raise Broken("reset")


@pytest.mark.parametrize("answer", [*(case[0] for case in CASES.values()), failing, broken_off])
def test_an_application_that_never_waits_answers_the_same_without_a_thread(
    answer: Callable[[dict[str, Any], bytes], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    serve = Machine.serve

    def noted(self: Machine, work: Any, *, name: str) -> None:
        names.append(name)
        serve(self, work, name=name)

    monkeypatch.setattr(Machine, "serve", noted)
    request = httpx.Request("POST", "http://weather/a?b=c", json={"to": "Ana"})
    with_thread, without = (
        sent(virtual_ways.InProcessTransports(), app(answer), request, waits=waits) for waits in (True, False)
    )
    assert with_thread == without
    assert names == ["weather:80 at work"]


def test_a_network_listens_as_another_does() -> None:
    served, world = World(1, now=NOW).network, World(1, now=NOW)
    serving.serve(served, "127.0.0.1", 80, app(echo), waits=False)
    serving.serve(served, "127.0.0.1", 81, app(echo))
    world.network.listens_like(served)
    world.network.silence("127.0.0.1", 81)
    assert (world.network.listens(("127.0.0.1", 80)), world.network.listens(("127.0.0.1", 81))) == (True, False)
    assert (set(world.network.apps), world.network.prompt) == ({("127.0.0.1", 80)}, {("127.0.0.1", 80)})
    assert served.listens(("127.0.0.1", 81))


def test_a_kept_connection_takes_as_long_as_a_request_handed_over_whole() -> None:
    answer, request = CASES["a POST with a body"]
    _, seconds = sent(virtual_ways.InProcessTransports(), app(answer), request)
    assert seconds == pytest.approx(2 * TRIP_S)
    _, with_its_opening = sent(SocketFactory(), app(answer), request)
    assert with_its_opening == pytest.approx(4 * TRIP_S, rel=0.5)


def test_a_slow_service_is_given_up_at_the_deadline() -> None:
    import time

    def slow(environ: dict[str, Any], body: bytes) -> Answer:
        time.sleep(60)
        return echo(environ, body)

    for ways in (virtual_ways.InProcessTransports(), SocketFactory()):
        outcome, seconds = sent(ways, app(slow), httpx.Request("GET", "http://weather/"), within_s=2.0)
        assert outcome == "timed_out"
        assert seconds == pytest.approx(2.0, abs=0.001)


def test_nobody_there_is_a_refusal() -> None:
    request = httpx.Request("GET", "http://127.0.0.1:9/")
    found = [sent(ways, app(echo), request)[0] for ways in (virtual_ways.InProcessTransports(), SocketFactory())]
    assert found == ["refused", "refused"]


def test_a_poisoned_lane_carries_bytes() -> None:
    asked = (TLS, httpx.Request("GET", "http://weather/"), ("127.0.0.1", 1))
    assert type(virtual_ways.InProcessTransports().fresh(*asked)) is type(SocketFactory().fresh(*asked))


def test_an_application_writes_a_whole_window_before_it_waits_for_a_reader() -> None:
    class Waited(Exception): ...

    def asked(_: str) -> None:
        raise Waited

    machine: Any = SimpleNamespace(now=0.0, after=lambda *_: None, steps=SimpleNamespace(requested=asked))
    loop: Any = SimpleNamespace(tell=None)
    stream = virtual_ways._Stream(loop, machine, "shop", cast(Any, None), whole=False)
    assert stream.part(bytes(WINDOW_BYTES))
    with pytest.raises(Waited):
        stream.part(b"x")
