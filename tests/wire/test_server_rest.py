"""The API, over real HTTP: every route, status and field as Toxiproxy 2.12 has them, on both servers alike."""

import http.client
import re
import socket
from collections.abc import Iterator

import httpx
import pytest

import chaoslab.wire.server
from tests.seams.lab_parts import eventually
from tests.wire.wire_parts import dial, embedded, real

UPSTREAM = "127.0.0.1:9"
PROXY = {"name": "p", "upstream": UPSTREAM, "listen": "127.0.0.1:0"}
TOXICS = "/proxies/p/toxics"


@pytest.fixture(scope="module", params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    with {"embedded": embedded, "real": real}[request.param]() as url, httpx.Client(base_url=url, timeout=5) as client:
        yield client


@pytest.fixture
def api(server: httpx.Client) -> httpx.Client:
    """A server with the one proxy `p`."""
    for name in server.get("/proxies").json():
        server.delete(f"/proxies/{name}").raise_for_status()
    server.post("/proxies", json=PROXY).raise_for_status()
    return server


@pytest.fixture
def own() -> Iterator[httpx.Client]:
    """The embedded server, with the one proxy `p`."""
    with embedded() as url, httpx.Client(base_url=url, timeout=5) as client:
        client.post("/proxies", json=PROXY).raise_for_status()
        yield client


def test_the_version(api: httpx.Client) -> None:
    reply = api.get("/version")
    assert (reply.status_code, reply.text) == (200, '{"version": "2.12.0"}\n')
    assert reply.headers["content-type"] == "application/json;charset=utf-8"
    assert reply.headers["x-toxiproxy-request-id"]


def test_a_proxys_life(api: httpx.Client) -> None:
    made = api.post("/proxies", json={"name": "a", "upstream": UPSTREAM, "listen": "localhost:0"})
    listen = made.json()["listen"]
    assert made.status_code == 201
    assert made.json() == {
        "name": "a", "listen": listen, "upstream": UPSTREAM, "enabled": True, "Logger": {}, "toxics": []
    }  # fmt: skip
    assert made.headers["content-type"] == "application/json"
    assert listen.startswith("127.0.0.1:")
    assert listen != "127.0.0.1:0"
    assert api.get("/proxies/a").json() == made.json()
    assert list(api.get("/proxies").json()) == ["a", "p"]
    changed = api.patch("/proxies/a", json={"enabled": False, "name": "other"})
    assert (changed.status_code, changed.json()) == (200, made.json() | {"enabled": False})
    moved = api.post("/proxies/a", json={"upstream": "127.0.0.1:10"})
    assert (moved.status_code, moved.json()["upstream"], moved.json()["enabled"]) == (200, "127.0.0.1:10", False)
    assert api.post("/proxies/a", json={"enabled": True}).json()["listen"] == listen
    gone = api.delete("/proxies/a")
    assert (gone.status_code, gone.content) == (204, b"")
    assert api.get("/proxies/a").status_code == 404


def test_a_toxics_life(api: httpx.Client) -> None:
    made = api.post(TOXICS, json={"type": "latency", "attributes": {"latency": 10, "unknown": 1}})
    assert made.status_code == 200
    assert made.json() == {
        "attributes": {"latency": 10, "jitter": 0}, "name": "latency_downstream", "type": "latency",
        "stream": "downstream", "toxicity": 1,
    }  # fmt: skip
    path = "/proxies/p/toxics/latency_downstream"
    assert api.get(path).json() == made.json()
    changed = api.patch(
        path, json={"attributes": {"jitter": 5}, "toxicity": 0.5, "name": "x", "type": "noop", "stream": "upstream"}
    )
    assert changed.status_code == 200
    assert changed.json() == made.json() | {"attributes": {"latency": 10, "jitter": 5}, "toxicity": 0.5}
    assert api.post(path, json={"attributes": {"latency": 7}}).json()["attributes"] == {"latency": 7, "jitter": 5}
    assert api.get("/proxies/p").json()["toxics"] == api.get(TOXICS).json() == [api.get(path).json()]
    gone = api.delete(path)
    assert (gone.status_code, gone.content) == (204, b"")
    assert api.get(TOXICS).json() == []


def test_toxics_are_listed_upstream_first_and_a_stream_keeps_its_spelling(api: httpx.Client) -> None:
    for name, stream in (("d1", "downstream"), ("u1", "UPSTREAM"), ("d2", "Downstream"), ("u2", "upstream")):
        assert api.post(TOXICS, json={"name": name, "type": "noop", "stream": stream}).status_code == 200
    listed = api.get(TOXICS).json()
    found = " ".join(f"{toxic['name']}:{toxic['stream']}" for toxic in listed)
    assert found == "u1:UPSTREAM u2:upstream d1:downstream d2:Downstream"


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/proxies", "", 400, None),
        ("/proxies", "[]", 400, None),
        ("/proxies", "null", 400, "missing required field: name"),
        ("/proxies", '{"name":"b"}', 400, "missing required field: upstream"),
        ("/proxies", '{"upstream":3}', 400, None),
        ("/proxies", '{"name":"p","upstream":"x:1"}', 409, "proxy already exists"),
        ("/proxies", '{"name":"b","upstream":"x:1","listen":"foo"}', 500, None),
        ("/proxies", '{"name":"b","upstream":"x:1","listen":":99999"}', 500, None),
        ("/proxies/q", "{}", 404, "proxy not found"),
        ("/proxies/p", '{"listen":"bad"}', 500, None),
        ("/proxies/q/toxics", '{"type":"noop"}', 404, "proxy not found"),
        ("/proxies/p/toxics/zz", "{}", 404, "toxic not found"),
        (TOXICS, '{"type":"lat"}', 400, "invalid toxic type"),
        (TOXICS, "{}", 400, "invalid toxic type"),
        (TOXICS, '{"type":"lat","stream":""}', 400, "stream was invalid, can be either upstream or downstream"),
        *(
            (TOXICS, f'{{"type":"latency","attributes":{{"latency":{wrong}}}}}', 400, None)
            for wrong in ("1.5", "9223372036854775808", "99999999999999999999", '"x"', "true")
        ),
    ],
)
def test_a_refusal_has_a_status_and_a_reason(
    api: httpx.Client, path: str, body: str, status: int, error: str | None
) -> None:
    """`error`: None where each server has words of its own."""
    reply = api.post(path, content=body)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    refusal = reply.json()
    assert refusal == {"error": error or refusal["error"], "status": status}
    assert api.get(TOXICS).json() == []


def test_a_toxics_name_is_unique_across_both_streams(api: httpx.Client) -> None:
    assert api.post(TOXICS, json={"name": "t", "type": "noop"}).status_code == 200
    again = api.post(TOXICS, json={"name": "t", "type": "latency", "stream": "upstream"})
    assert (again.status_code, again.json()["error"]) == (409, "toxic already exists")


def test_a_taken_port_is_told(api: httpx.Client) -> None:
    taken = api.get("/proxies/p").json()["listen"]
    reply = api.post("/proxies", json={"name": "b", "upstream": "x:1", "listen": taken})
    assert (reply.status_code, reply.json()["error"]) == (500, f"listen tcp {taken}: bind: address already in use")
    assert api.get("/proxies/b").status_code == 404


def test_populate_keeps_what_is_in_place_replaces_what_is_not_and_makes_the_rest(api: httpx.Client) -> None:
    kept = api.get("/proxies/p").json()
    api.post(TOXICS, json={"type": "noop"}).raise_for_status()
    port = kept["listen"].rpartition(":")[2]
    same = {"name": "p", "upstream": UPSTREAM, "listen": f"localhost:{port}", "enabled": False}
    new = {"name": "n", "upstream": UPSTREAM, "listen": "127.0.0.1:0", "enabled": False, "toxics": [{"type": "noop"}]}
    reply = api.post("/populate", json=[same, new])
    assert reply.status_code == 201
    first, second = reply.json()["proxies"]
    assert (first["enabled"], len(first["toxics"])) == (True, 1)
    assert (second["enabled"], second["toxics"]) == (False, [])
    replaced = api.post("/populate", json=[same | {"upstream": "127.0.0.1:10"}]).json()["proxies"][0]
    assert (replaced["upstream"], replaced["toxics"]) == ("127.0.0.1:10", [])


@pytest.mark.parametrize(
    ("body", "status", "made"),
    [
        ("[]", 201, None), ("", 400, None), ("[{}]", 400, None),
        ('[{"name":"x","upstream":"y:1","listen":"127.0.0.1:0"},{"name":"y"}]', 400, None),
        ('[{"name":"x","upstream":"y:1","enabled":false},{"name":"y","upstream":"y:1","listen":"foo"}]', 500, ["x"]),
    ],
)  # fmt: skip
def test_populate_answers_in_json_with_what_was_made(
    api: httpx.Client, body: str, status: int, made: list[str] | None
) -> None:
    reply = api.post("/populate", content=body)
    assert reply.status_code == reply.json().get("status", 201) == status
    assert reply.headers["content-type"] == "application/json"
    assert (reply.json()["proxies"] and [proxy["name"] for proxy in reply.json()["proxies"]]) == made


def test_reset_enables_every_proxy_and_removes_every_toxic(api: httpx.Client) -> None:
    api.post(TOXICS, json={"type": "noop"}).raise_for_status()
    api.patch("/proxies/p", json={"enabled": False}).raise_for_status()
    reply = api.post("/reset")
    assert (reply.status_code, reply.content) == (204, b"")
    held = api.get("/proxies/p").json()
    assert (held["enabled"], held["toxics"]) == (True, [])


@pytest.mark.parametrize(
    ("method", "path", "agent", "status", "text", "has_id"),
    [
        ("GET", "/nope", "curl", 404, "404 page not found\n", False),
        ("GET", "/proxies/p/", "curl", 404, "404 page not found\n", False),
        ("GET", "/metrics", "curl", 404, "404 page not found\n", False),
        ("PUT", "/proxies", "curl", 405, "", False),
        ("HEAD", "/version", "curl", 405, "", False),
        ("GET", "/version", "Mozilla/5.0", 403, "User agent not allowed\n", True),
        ("GET", "/nope", "Mozilla/5.0", 404, "404 page not found\n", False),
    ],
)
def test_requests_that_no_route_takes(
    api: httpx.Client, method: str, path: str, agent: str, status: int, text: str, *, has_id: bool
) -> None:
    reply = api.request(method, path, headers={"User-Agent": agent})
    assert (reply.status_code, reply.text) == (status, text)
    assert ("x-toxiproxy-request-id" in reply.headers) == has_id
    assert "allow" not in reply.headers


# From here on: where the embedded server is better than its model, or has no model.


def test_a_listen_that_is_left_out_is_loopback(own: httpx.Client) -> None:
    assert own.post("/proxies", json={"name": "b", "upstream": "x:1"}).json()["listen"].startswith("127.0.0.1:")


def test_a_listen_without_a_host_is_every_interface(own: httpx.Client) -> None:
    listen = own.post("/proxies", json={"name": "all", "upstream": "x:1", "listen": ":0"}).json()["listen"]
    assert listen.startswith("[::]:" if socket.has_dualstack_ipv6() else "0.0.0.0:")
    refusal = own.post("/proxies", json={"name": "none", "upstream": "x:1", "listen": "a..b:1"}).json()
    assert refusal["error"].endswith("lookup a..b: no such host")


def raw(client: httpx.Client, data: bytes) -> bytes:
    with dial(f"{client.base_url.host}:{client.base_url.port}") as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        reply = b""
        while piece := connection.recv(65536):
            reply += piece
        return reply


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"\x16\x03\x01 this is no HTTP\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET //[x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 404 "),
        (b"POST /proxies HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000, b"HTTP/1.1 400 "),
    ],
)
def test_hostile_requests_are_refused_and_the_server_lives(own: httpx.Client, data: bytes, start: bytes) -> None:
    assert raw(own, data).startswith(start)
    assert own.get("/version").status_code == 200


@pytest.mark.parametrize("size", [1_100_000, 12_000_000])
@pytest.mark.parametrize("framing", ["Content-Length: %d", "Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_is_refused_in_words_that_arrive(own: httpx.Client, framing: str, size: int) -> None:
    """Once for each of many: a reset, which takes the refusal along, is a matter of chance."""
    data = bytes(size)
    if framing.endswith("%d"):
        framing %= size
    else:
        data = b"%x\r\n%b\r\n0\r\n\r\n" % (size, data)
    for _ in range(5):
        reply = raw(own, b"POST /proxies HTTP/1.1\r\nHost: x\r\n" + framing.encode() + b"\r\n\r\n" + data)
        assert reply.startswith(b"HTTP/1.1 413 ")
        assert reply.endswith(b"\r\n\r\n413 Request Entity Too Large")


@pytest.mark.parametrize("agents", [("curl", "Mozilla/5.0"), ("Mozilla/5.0", "curl"), ("a", "b", "Mozilla/5.0 x")])
def test_a_browser_is_refused_however_many_user_agents_it_names(own: httpx.Client, agents: tuple[str, ...]) -> None:
    assert own.get("/version", headers=[("User-Agent", agent) for agent in agents]).status_code == 403
    assert own.get("/version", headers=[("User-Agent", "x" + agent) for agent in agents]).status_code == 200


@pytest.mark.parametrize("head", ["", "Connection: close\r\n", "Expect: 100-continue\r\n"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_request_in_pieces_is_the_same_request(own: httpx.Client, head: str, size: int) -> None:
    body = b'{"type":"noop"}'
    request = f"POST /proxies/nobody/toxics HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
    with dial(f"{own.base_url.host}:{own.base_url.port}") as connection:
        for _ in range(1 if "close" in head else 2):
            for begin in range(0, len(request + body), size):
                connection.sendall((request + body)[begin : begin + size])
            reply = http.client.HTTPResponse(connection, method="POST")
            reply.begin()
            assert (reply.status, reply.read()) == (404, b'{"error":"proxy not found","status":404}\n')


def test_pipelined_requests_are_answered_in_order(own: httpx.Client) -> None:
    one = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    replies = raw(own, one + b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n" + one)
    assert re.findall(rb"HTTP/1.1 (\d+) ", replies) == [b"200", b"404", b"200"]


def test_a_stopped_server_leaves_no_port_taken() -> None:
    with embedded() as url, httpx.Client(base_url=url) as client:
        listen: str = client.post("/proxies", json=PROXY).json()["listen"]
    for address in (listen, url.removeprefix("http://")):
        with pytest.raises(ConnectionRefusedError):
            dial(address)


def test_a_lane_whose_maker_is_gone_is_deleted_by_the_server_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaoslab.wire.server, "REAP_S", 0.001)
    names = ["lane.weather.run.1.1000000000", "lane.weather.run.2.99999999999", "weather"]
    with embedded() as url, httpx.Client(base_url=url) as api:
        for name in names:
            api.post("/proxies", json={"name": name, "listen": "127.0.0.1:0", "upstream": UPSTREAM})
        eventually(lambda: list(api.get("/proxies").json()) == names[1:])
