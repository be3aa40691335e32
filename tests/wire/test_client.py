"""The client against both servers, and against things that are no Toxiproxy at all."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chaoslab.base.clock import system
from chaoslab.core.exchange import Reply
from chaoslab.wire.client import ProxyInfo, ToxicInfo, ToxiproxyClient, ToxiproxyDown, ToxiproxyError, _difference
from tests.seams.lab_parts import site
from tests.waiting import together
from tests.wire.wire_parts import dial, echo, embedded, read_exactly, real, upstream

NOBODY = "127.0.0.1:9"
SLOW = ToxicInfo("slow", "latency", "upstream", 0.3, {"latency": 60, "jitter": 0})


@pytest.fixture(scope="module", params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    with {"embedded": embedded, "real": real}[request.param]() as url:
        yield url


@pytest.fixture
def client(server: str) -> Iterator[ToxiproxyClient]:
    with ToxiproxyClient(server) as client:
        for name in client.proxies():
            client.destroy(name)
        yield client


def test_a_proxys_life(client: ToxiproxyClient) -> None:
    made = client.create("a", upstream=NOBODY)
    assert (made.name, made.upstream, made.enabled, made.toxics) == ("a", NOBODY, True, ())
    assert not made.listen.endswith(":0")
    assert client.get("a") == made
    assert client.proxies() == {"a": made}
    assert client.update("a", enabled=False).enabled is False
    assert client.update("a", upstream="127.0.0.1:10").upstream == "127.0.0.1:10"
    client.destroy("a")
    assert client.proxies() == {}


def test_a_toxic_is_held_as_it_was_added(client: ToxiproxyClient) -> None:
    client.create("a", upstream=NOBODY)
    held = client.add_toxic("a", SLOW)
    assert not SLOW.differs_from(held)
    assert client.get("a").toxics == (held,)


def test_populate_is_one_request_and_says_what_is_there(client: ToxiproxyClient) -> None:
    wish = [ProxyInfo("a", "127.0.0.1:0", NOBODY), ProxyInfo("b", "127.0.0.1:0", NOBODY, enabled=False)]
    made = client.populate(wish)
    assert [(proxy.name, proxy.enabled) for proxy in made] == [("a", True), ("b", False)]
    assert client.populate([]) == ()
    with pytest.raises(ValueError, match="populate makes no toxics"):
        client.populate([ProxyInfo("c", "127.0.0.1:0", NOBODY, toxics=(SLOW,))])


def test_an_armed_lane_holds_what_was_asked_and_bites(client: ToxiproxyClient) -> None:
    slow = ToxicInfo("slow", "latency", attributes={"latency": 60})
    with upstream(echo) as address:
        lane = client.arm("search.17", upstream=address, toxics=[slow])
        assert [toxic.attributes["latency"] for toxic in lane.toxics] == [60]
        with dial(lane.listen) as connection:
            start = system.monotonic()
            connection.sendall(b"x")
            assert read_exactly(connection, 1) == b"x"
            assert system.monotonic() - start >= 0.059
        client.destroy("search.17")


@pytest.mark.parametrize(
    ("call", "status"),
    [("get", 404), ("destroy", 404), ("create twice", 409), ("unknown toxic", 400), ("bad listen", 500)],
)
def test_every_refusal_is_an_error_with_its_status(client: ToxiproxyClient, call: str, status: int) -> None:
    client.create("a", upstream=NOBODY)
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: client.get("zz"),
        "destroy": lambda: client.destroy("zz"),
        "create twice": lambda: client.create("a", upstream=NOBODY),
        "unknown toxic": lambda: client.add_toxic("a", ToxicInfo("t", "latencey")),
        "bad listen": lambda: client.create("b", upstream=NOBODY, listen=client.get("a").listen),
    }
    with pytest.raises(ToxiproxyError) as caught:
        calls[call]()
    assert caught.value.status == status


def test_a_lane_that_cannot_be_armed_leaves_nothing_behind(client: ToxiproxyClient) -> None:
    with pytest.raises(ToxiproxyError, match="invalid toxic type"):
        client.arm("lane", upstream=NOBODY, toxics=[ToxicInfo("t", "latencey")])
    assert client.proxies() == {}


def test_a_lane_that_is_there_already_is_refused_and_left_alone(client: ToxiproxyClient) -> None:
    held = client.arm("lane", upstream=NOBODY, toxics=[SLOW])
    with pytest.raises(ToxiproxyError, match="already exists"):
        client.arm("lane", upstream=NOBODY)
    assert client.get("lane") == held


@pytest.mark.parametrize(
    "toxic",
    [
        ToxicInfo("", "latency"),
        ToxicInfo("a/b", "latency"),
        ToxicInfo("t", "latency", toxicity=1.5),
        ToxicInfo("t", "latency", toxicity=float("nan")),
        ToxicInfo("t", "latency", attributes={"latency": 1.5}),  # type: ignore[dict-item]
        ToxicInfo("t", "latency", attributes={"latency": True}),
    ],
)
def test_what_cannot_be_right_is_not_even_sent(client: ToxiproxyClient, toxic: ToxicInfo) -> None:
    with pytest.raises(ValueError, match=r"name|toxicity|attribute"):
        client.arm("lane", upstream=NOBODY, toxics=[toxic])
    assert client.proxies() == {}


def test_each_client_keeps_its_own_endpoint_and_the_packages_globals_stay_as_they_are() -> None:
    from toxiproxy.api import APIConsumer

    before = (APIConsumer.host, APIConsumer.port)
    with (
        embedded() as one,
        embedded() as two,
        ToxiproxyClient(one) as first,
        ToxiproxyClient(two.removeprefix("http://")) as second,
    ):
        first.create("a", upstream=NOBODY)
        assert list(first.proxies()) == ["a"]
        assert list(second.proxies()) == []
    assert (APIConsumer.host, APIConsumer.port) == before


def test_a_proxy_in_the_environment_does_not_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{NOBODY}")
    monkeypatch.setenv("no_proxy", "")
    with embedded() as url, ToxiproxyClient(url) as client:
        assert client.version() == "2.12.0"


def test_threads_share_a_client() -> None:
    with embedded() as url, ToxiproxyClient(url) as client:

        def arm(thread: int) -> None:
            for n in range(10):
                client.arm(f"{thread}.{n}", upstream=NOBODY, toxics=[SLOW])

        together(*(partial(arm, n) for n in range(4)))
        assert len(client.proxies()) == 40


def test_a_client_that_asked_nothing_has_nothing_to_close() -> None:
    with ToxiproxyClient("http://127.0.0.1:9") as client:
        pass
    assert "_pool" not in vars(client)  # which loads urllib3


def test_nobody_at_the_address_is_down() -> None:
    with ToxiproxyClient(NOBODY) as client, pytest.raises(ToxiproxyDown, match="cannot be reached"):
        client.version()


def test_somebody_who_never_answers_is_down() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ToxiproxyClient(f"127.0.0.1:{silent.getsockname()[1]}", read_timeout_s=0.05) as client,
        pytest.raises(ToxiproxyDown, match="in time"),
    ):
        client.version()


LANE = b'"name":"lane","listen":"127.0.0.1:1","upstream":"127.0.0.1:9","Logger":{}'
NOOP = b'{"name":"t","type":"noop","stream":"downstream","toxicity":1,"attributes":{}}'


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (503, b"<html><head><title>Timeout</title></head><h1>Timeout</h1></html>", r"^Timeout Timeout \(HTTP 503\)"),
        (200, b"<html>hello</html>", "without JSON: hello"),
        (200, b'{"name": "impostor"}', "no proxy in the answer"),
        (200, b"[1]", "no proxy in the answer"),
        (302, b"", r"Found \(HTTP 302\)"),
        (500, b'{"error":"listen tcp: no","status":500}', r"^listen tcp: no \(HTTP 500\)"),
        (
            200,
            b'{%b,"enabled":true,"toxics":[%b]}' % (LANE, NOOP),
            r"does not hold 'lane' as asked: its toxics are \['t'\]",
        ),
        (200, b'{%b,"enabled":false,"toxics":[]}' % LANE, "does not hold 'lane' as asked: it is disabled"),
    ],
    ids=["503 page", "page", "impostor", "array", "redirect", "500", "other toxics", "disabled"],
)
def test_strange_answers_are_errors_that_say_what_came(status: int, body: bytes, message: str) -> None:
    with (
        site(lambda _: Reply(status, {}, body)) as stranger,
        ToxiproxyClient(stranger.address) as client,
        pytest.raises(ToxiproxyError, match=message),
    ):
        client.arm("lane", upstream=NOBODY)


def test_importing_the_client_loads_neither_requests_nor_the_package() -> None:
    code = "import sys, chaoslab.wire.client; sys.exit(bool({'requests', 'toxiproxy', 'future'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


HELD = ProxyInfo("a", "127.0.0.1:5", NOBODY, enabled=True, toxics=(SLOW,))


@pytest.mark.parametrize(
    ("held", "listen", "words"),
    [
        ({}, "127.0.0.1:0", ""), ({}, "127.0.0.1:5", ""), ({}, "", ""),
        ({}, "127.0.0.1:6", "it listens on 127.0.0.1:5"), ({"enabled": False}, "", "it is disabled"),
        ({"upstream": "b:1"}, "", "its upstream is b:1"), ({"toxics": ()}, "", "its toxics are []"),
        ({"toxics": (replace(SLOW, toxicity=0.4),)}, "", "toxic "),
    ],
)  # fmt: skip
def test_what_a_server_holds_is_held_against_what_was_asked(held: dict[str, Any], listen: str, words: str) -> None:
    told = _difference(replace(HELD, listen=listen), replace(HELD, **held))
    assert told.startswith(words) if words else told == ""
