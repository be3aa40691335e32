"""toxiproxy-python against both servers, and against things that are no Toxiproxy at all."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from toxiproxy import Proxy, Toxiproxy
from toxiproxy.api import APIConsumer

from chaoslab.base.clock import system
from chaoslab.core.exchange import Reply
from chaoslab.proxy_manager.arming import create_proxy_with_toxics
from chaoslab.wire.proxies import ToxicInfo, ToxiproxyDown, ToxiproxyError
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.seams.lab_parts import Heard, site
from tests.waiting import together
from tests.wire.wire_parts import dial, echo, embedded, read_exactly, real, upstream

NOBODY = "127.0.0.1:9"
SLOW = ToxicInfo("slow", "latency", "upstream", 0.3, {"latency": 60, "jitter": 0})


@pytest.fixture(scope="module", params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    with {"embedded": embedded, "real": real}[request.param]() as url:
        yield url


@pytest.fixture
def client(server: str) -> Iterator[ToxiproxyServer]:
    with ToxiproxyServer(server) as client:
        for name in client.proxies():
            client.destroy(name)
        yield client


def test_a_proxys_life(client: ToxiproxyServer) -> None:
    made = client.create(name="a", upstream=NOBODY)
    assert isinstance(made, Proxy)
    assert (made.name, made.upstream, made.enabled, made.toxics()) == ("a", NOBODY, True, {})
    assert not made.listen.endswith(":0")
    assert values(client.fetch_proxy("a")) == values(made)
    assert list(client.proxies()) == ["a"]
    made.disable()
    assert client.fetch_proxy("a").enabled is False
    made.enable()
    with made.down():
        assert client.fetch_proxy("a").enabled is False
    assert client.fetch_proxy("a").enabled is True
    assert client.destroy("a")
    assert client.proxies() == {}


def values(proxy: Proxy) -> tuple[object, ...]:
    return proxy.name, proxy.listen, proxy.upstream, proxy.enabled


def test_a_toxic_is_held_as_it_was_added_until_it_is_taken_away(client: ToxiproxyServer) -> None:
    proxy = client.create(name="a", upstream=NOBODY)
    proxy.add_toxic(**SLOW.make_api_arguments())
    assert not SLOW.differs_from(client.fetch_proxy("a").get_toxic("slow"))
    assert replace(SLOW, toxicity=0.4).differs_from(proxy.toxics()["slow"])
    proxy.destroy_toxic("slow")
    assert proxy.toxics() == {}
    proxy.add_toxic(type="latency")
    assert client.running()
    with ToxiproxyServer(f"http://{NOBODY}") as gone:
        assert not gone.running()
    assert client.reset()
    assert proxy.toxics() == {}


def test_populate_makes_what_is_not_there(client: ToxiproxyServer) -> None:
    wish = [{"name": name, "listen": "127.0.0.1:0", "upstream": NOBODY, "enabled": name == "a"} for name in "ab"]
    assert [(proxy.name, proxy.enabled) for proxy in client.populate(wish)] == [("a", True), ("b", False)]
    assert client.populate([]) == []
    client.destroy_all()
    assert client.proxies() == {}


def test_an_armed_lane_holds_what_was_asked_and_bites(client: ToxiproxyServer) -> None:
    slow = ToxicInfo("slow", "latency", attributes={"latency": 60})
    with upstream(echo) as address:
        lane = create_proxy_with_toxics(client, "search.17", upstream=address, toxics=[slow])
        assert [toxic.attributes["latency"] for toxic in lane.toxics().values()] == [60]
        with dial(lane.listen) as connection:
            start = system.monotonic()
            connection.sendall(b"x")
            assert read_exactly(connection, 1) == b"x"
            assert system.monotonic() - start >= 0.059
        lane.destroy()


@pytest.mark.parametrize(
    ("call", "status"),
    [("get", 404), ("destroy", 404), ("create twice", 409), ("unknown toxic", 400), ("bad listen", 500)],
)
def test_every_refusal_is_an_error_with_its_status(client: ToxiproxyServer, call: str, status: int) -> None:
    proxy = client.create(name="a", upstream=NOBODY)
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: client.fetch_proxy("zz"),
        "destroy": lambda: client.destroy("zz"),
        "create twice": lambda: client.create(name="a", upstream=NOBODY),
        "unknown toxic": lambda: proxy.add_toxic(name="t", type="latencey"),
        "bad listen": lambda: client.create(name="b", upstream=NOBODY, listen=proxy.listen),
    }
    with pytest.raises(ToxiproxyError) as caught:
        calls[call]()
    assert caught.value.status == status


def test_a_lane_that_cannot_be_armed_leaves_nothing_behind(client: ToxiproxyServer) -> None:
    with pytest.raises(ToxiproxyError, match="invalid toxic type"):
        create_proxy_with_toxics(client, "lane", upstream=NOBODY, toxics=[ToxicInfo("t", "latencey")])
    assert client.proxies() == {}


def test_a_lane_that_is_there_already_is_refused_and_left_alone(client: ToxiproxyServer) -> None:
    held = create_proxy_with_toxics(client, "lane", upstream=NOBODY, toxics=[SLOW])
    with pytest.raises(ToxiproxyError, match="already exists"):
        create_proxy_with_toxics(client, "lane", upstream=NOBODY)
    assert values(client.fetch_proxy("lane")) == values(held)
    assert list(held.toxics()) == ["slow"]


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
def test_what_cannot_be_right_is_not_even_sent(client: ToxiproxyServer, toxic: ToxicInfo) -> None:
    with pytest.raises(ValueError, match=r"name|toxicity|attribute"):
        create_proxy_with_toxics(client, "lane", upstream=NOBODY, toxics=[toxic])
    assert client.proxies() == {}


def test_each_client_keeps_its_own_endpoint_and_the_packages_globals_stay_as_they_are() -> None:
    before = (APIConsumer.host, APIConsumer.port)
    with (
        embedded() as one,
        embedded() as two,
        ToxiproxyServer(one) as first,
        ToxiproxyServer(two.removeprefix("http://")) as second,
    ):
        first.create(name="a", upstream=NOBODY)
        assert list(first.proxies()) == ["a"]
        assert list(second.proxies()) == []
    assert (APIConsumer.host, APIConsumer.port) == before


def test_a_proxy_in_the_environment_does_not_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{NOBODY}")
    monkeypatch.setenv("no_proxy", "")
    with embedded() as url, ToxiproxyServer(url) as client:
        assert client.version() == "2.12.0"


def test_threads_share_a_client() -> None:
    with embedded() as url, ToxiproxyServer(url) as client:

        def arm(thread: int) -> None:
            for n in range(10):
                create_proxy_with_toxics(client, f"{thread}.{n}", upstream=NOBODY, toxics=[SLOW])

        together(*(partial(arm, n) for n in range(4)))
        assert len(client.proxies()) == 40


def test_a_users_own_use_of_the_package_in_the_same_process_stays_theirs() -> None:
    with embedded() as ours, embedded() as theirs, ToxiproxyServer(ours) as client:
        client.create(name="ours", upstream=NOBODY)
        host, _, port = theirs.removeprefix("http://").partition(":")
        package = Toxiproxy()
        before = (APIConsumer.host, APIConsumer.port)
        package.update_api_consumer(host, int(port))
        try:
            package.create(name="theirs", upstream=NOBODY)
            assert (list(package.proxies()), list(client.proxies())) == (["theirs"], ["ours"])
        finally:
            package.update_api_consumer(*before)


@pytest.mark.parametrize("name", ["a?b", "a#b", "a b", "%2e", "²"])
def test_a_name_is_one_in_any_path(client: ToxiproxyServer, name: str) -> None:
    client.create(name=name, upstream=NOBODY).add_toxic(name=name, type="noop")
    assert list(client.fetch_proxy(name).toxics()) == [name]
    client.destroy(name)
    assert client.proxies() == {}


def test_nobody_at_the_address_is_down() -> None:
    with ToxiproxyServer(NOBODY) as client, pytest.raises(ToxiproxyDown, match="cannot be reached"):
        client.version()


def test_somebody_who_never_answers_is_down() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ToxiproxyServer(f"127.0.0.1:{silent.getsockname()[1]}", read_timeout_s=0.05) as client,
        pytest.raises(ToxiproxyDown, match="in time"),
    ):
        client.version()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (503, b"<html><head><title>Timeout</title></head><h1>Timeout</h1></html>", r"^Timeout Timeout \(HTTP 503\)"),
        (200, b"<html>hello</html>", "is no Toxiproxy: "),
        (200, b'{"name": "impostor"}', "is no Toxiproxy: "),
        (200, b"[1]", "is no Toxiproxy: "),
        (302, b"", r"Found \(HTTP 302\)"),
        (500, b'{"error":"listen tcp: no","status":500}', r"^listen tcp: no \(HTTP 500\)"),
    ],
    ids=["503 page", "page", "impostor", "array", "redirect", "500"],
)
def test_strange_answers_are_errors_that_say_what_came(status: int, body: bytes, message: str) -> None:
    with (
        site(lambda _: Reply(status, {}, body)) as stranger,
        ToxiproxyServer(stranger.address) as client,
        pytest.raises(ToxiproxyError, match=message),
    ):
        create_proxy_with_toxics(client, "lane", upstream=NOBODY)


HELD = {"name": "lane", "listen": "127.0.0.1:1", "upstream": NOBODY, "enabled": True}
NOOP = {"name": "t", "type": "noop", "stream": "downstream", "toxicity": 1, "attributes": {}}


@pytest.mark.parametrize(
    ("held", "toxics", "words"),
    [
        ({}, [NOOP], r"its toxics are \['t'\]"),
        ({"enabled": False}, [], "it is disabled"),
        ({"upstream": "b:1"}, [], "its upstream is b:1"),
    ],
)
def test_a_server_that_holds_something_else_than_was_asked_is_found_out(
    held: dict[str, Any], toxics: list[dict[str, Any]], words: str
) -> None:
    def answer(heard: Heard) -> Reply:
        body = toxics if heard.path.endswith("/toxics") else {**HELD, **held} if heard.method == "POST" else {}
        return Reply(200, {}, json.dumps(body).encode())

    with (
        site(answer) as liar,
        ToxiproxyServer(liar.address) as client,
        pytest.raises(ToxiproxyError, match=f"does not hold 'lane' as asked: {words}"),
    ):
        create_proxy_with_toxics(client, "lane", upstream=NOBODY)


def test_the_lab_without_a_toxiproxy_to_ask_loads_neither_requests_nor_the_package() -> None:
    modules = "chaoslab.wire.fault_lifecycle, chaoslab.wire.lane_names, chaoslab.worlds.virtual.network.lanes"
    code = f"import sys, {modules}; sys.exit(bool({{'requests', 'toxiproxy', 'future'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
