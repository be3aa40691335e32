"""The embedded server and the real one, asked the same: statuses and fields are equal. The words of refusals are each
server's own."""

import contextlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.base.dice import Dice
from chaoslab.cli import main
from chaoslab.wire import toxics
from tests.wire.wire_parts import DEADLINE_S, embedded, real, real_with

Ask = tuple[str, str, Any]
PORT = re.compile(r"(127\.0\.0\.1:|\[::1\]:)([0-9]{5})")
TOXICS = "/proxies/p/toxics"
PROXY = {"name": "p", "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0"}
PARKED = {"upstream": "a:1", "listen": "127.0.0.1:0", "enabled": False}
SEED = 4


class Side:
    """One server, asked by this client."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, ask: Ask) -> tuple[int, str, object]:
        """The status, the kind and the fields of the answer, with free ports named in the order of their appearance."""
        method, target, body = ask
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        reply = self._client.request(method, target, content=content)
        ports: dict[str, str] = {}
        text = PORT.sub(lambda port: port[1] + ports.setdefault(port[2], f"port{len(ports)}"), reply.text)
        try:
            fields = json.loads(text)
        except ValueError:
            fields = text
        if isinstance(fields, dict) and "error" in fields:
            fields["error"] = "in words of its own"
        return reply.status_code, reply.headers.get("content-type", ""), fields

    def begin(self) -> None:
        """Leaves nothing but the proxy `p`."""
        for name in self._client.get("/proxies").json():
            self._client.delete(f"/proxies/{name}").raise_for_status()
        self._client.post("/proxies", json=PROXY).raise_for_status()


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Side, Side]]:
    with contextlib.ExitStack() as stack:  # the real one first, since it skips where it is not installed
        urls = [stack.enter_context(server()) for server in (real, embedded)]
        model, own = (stack.enter_context(httpx.Client(base_url=url, timeout=DEADLINE_S)) for url in urls)
        yield Side(model), Side(own)


@pytest.fixture
def sides(servers: tuple[Side, Side]) -> tuple[Side, Side]:
    for side in servers:
        side.begin()
    return servers


def proxies() -> Iterator[Ask]:
    """Proxies made, changed, moved and deleted, rightly and wrongly."""
    yield "GET", "/version", None
    for name in ("a", "é", "a b", "a?b", "%41", "<b>&'", "toxics", "null", "x" * 300, "\U0001f600"):
        yield "POST", "/proxies", PARKED | {"name": name}
        yield "POST", "/proxies", PARKED | {"name": name}
    for path in ("a", "%C3%A9", "a%20b", "a%3Fb", "%2541", "none"):
        for method in ("GET", "DELETE", "GET"):
            yield method, f"/proxies/{path}", None
    for body in (
        b"", b"{", b"[]", b"5", b"null", {}, {"name": "f"}, {"upstream": "a:1"}, PARKED | {"name": ""},
        PARKED | {"name": 1}, PARKED | {"name": "f", "upstream": 1}, PARKED | {"name": "f", "enabled": "x"},
        PARKED | {"name": "f", "enabled": None, "more": [{}]}, PARKED | {"name": "g", "toxics": [{"type": "noop"}]},
        PARKED | {"name": "h", "listen": "foo", "enabled": True}, PARKED | {"name": "i", "listen": "127.0.0.1:70000"},
        PARKED | {"name": "j", "listen": "192.0.2.1:0", "enabled": True},
        {"name": "k", "upstream": "a:1", "listen": "localhost:0"},
        {"name": "l", "upstream": "a:1", "listen": "[::1]:0"},
    ):  # fmt: skip
        yield "POST", "/proxies", body
        yield "PATCH", "/proxies/p", body
    for change in (
        {}, {"enabled": False}, {"enabled": True}, {"upstream": "b:1"}, {"listen": "localhost:0"}, {"name": "other"},
        {"listen": "bad"}, {"listen": "127.0.0.1:0", "enabled": True}, {"upstream": "a b:1", "enabled": False},
    ):  # fmt: skip
        yield "PATCH", "/proxies/p", change
        yield "POST", "/proxies/p", change
        yield "GET", "/proxies/p", None
    yield "GET", "/proxies", None


def every_toxic() -> Iterator[Ask]:
    """Every toxic with every attribute, wrong ones too, on both streams, made and changed."""
    for type_ in toxics.list_toxic_types():
        names = [*vars(toxics.load_toxic(type_)()), "unknown"]
        yield "POST", TOXICS, {"type": type_}
        yield "POST", TOXICS, {"type": type_, "stream": "upstream"}
        value: Any
        for name in names:
            for value in (0, 7, -1, 2**63 - 1, 2**63, 1.5, True, "x", [1], {}, None):
                yield "POST", TOXICS, {"type": type_, "name": "x", "attributes": {name: value}}
                yield "DELETE", f"{TOXICS}/x", None
        yield "PATCH", f"{TOXICS}/{type_}_upstream", {"attributes": dict.fromkeys(names, 5), "toxicity": 0.5}
        yield "POST", f"{TOXICS}/{type_}_upstream", {"attributes": {names[0]: 6}, "name": "n", "stream": "upstream"}
        yield "GET", TOXICS, None
        yield "DELETE", f"{TOXICS}/{type_}_upstream", None
        yield "DELETE", f"{TOXICS}/{type_}_upstream", None
    latency = f"{TOXICS}/latency_downstream"
    body: Any
    for body in (
        b"", b"{", b"[]", b"null", {}, {"type": "Latency"}, {"type": "../latency"}, {"type": "gravity"}, {"type": 5},
        {"type": "noop", "stream": "up"}, {"type": "noop", "stream": ""}, {"type": "noop", "stream": "UPSTREAM"},
        {"type": "none", "stream": "both"}, {"type": "latency", "attributes": 5}, {"type": "latency", "attributes": []},
        *({"type": "noop", "name": str(one), "toxicity": one} for one in (0, 1, 0.5, 2, -3, 0.25)),
        {"type": "noop", "name": "w", "toxicity": "1"}, {"type": "noop", "name": "nul", "toxicity": None},
        {"type": "noop", "name": "é b"},
    ):  # fmt: skip
        yield "POST", TOXICS, body
        yield "PATCH", latency, body
    yield "GET", f"{TOXICS}/%C3%A9%20b", None
    yield "GET", TOXICS, None


def populating() -> Iterator[Ask]:
    """Lists of proxies: kept, replaced, made, and broken off; then a reset."""
    one, other, wrong = ({"name": "a"} | PARKED | more for more in ({}, {"upstream": "b:1"}, {"upstream": ""}))
    body: Any
    for body in (
        [one], [one, one], [one, other], [one, wrong], [one, 5], [], [{}], [one, {"name": "b"}], b"", b"null", b"{}", 5,
        [one, {"name": "c", "upstream": "a:1", "listen": "foo"}], [one | {"enabled": True}],
        [{"name": "d", "upstream": "a:1", "listen": "127.0.0.1:0", "toxics": None}],
    ):  # fmt: skip
        yield "POST", "/proxies/a/toxics", {"type": "noop"}
        yield "POST", "/populate", body
        yield "GET", "/proxies", None
    yield "POST", "/reset", None
    yield "GET", "/proxies", None


def asking() -> Iterator[Ask]:
    """Every method at every path."""
    yield "POST", TOXICS, {"type": "noop", "name": "t"}
    for target in (
        "/", "/nope", "/version", "/version/", "/version?x=%20", "/metrics", "/proxies", "/proxies/", "/populate",
        "/reset", "/proxies/p", "/proxies/p/", "/proxies/p/x", TOXICS, f"{TOXICS}/", f"{TOXICS}/t", f"{TOXICS}/t/y",
        "/proxies/q", "/proxies/q/toxics", "/proxies/q/toxics/t", f"{TOXICS}/q", "/proxies/%ff",
    ):  # fmt: skip
        for method in ("GET", "HEAD", "PUT", "OPTIONS", "FOO", "PATCH", "POST", "DELETE", "GET"):
            yield method, target, b"{" if method in ("PATCH", "POST") else None


def by_dice(dice: Dice) -> Iterator[Ask]:
    """A story of right requests, in any order."""
    for number in range(40):
        die = dice(number)
        proxy, toxic = die.pick(("p", "g0", "g1")), die.pick(("t0", "t1", "latency_downstream"))
        change = {"attributes": {"latency": die.pick((0, 5, 1000))}, "toxicity": die.pick((0, 0.5, 1))}
        yield die.pick((
            ("POST", "/proxies", PARKED | {"name": proxy}),
            ("DELETE", f"/proxies/{proxy}", None),
            ("PATCH", f"/proxies/{proxy}", {"enabled": die.draw_bool(0.5), "listen": "127.0.0.1:0"}),
            ("POST", "/populate", [PARKED | {"name": name, "upstream": die.pick(("a:1", "b:1"))} for name in "xy"]),
            ("POST", f"/proxies/{proxy}/toxics", change | {"type": "latency", "name": toxic}),
            ("PATCH", f"/proxies/{proxy}/toxics/{toxic}", change),
            ("DELETE", f"/proxies/{proxy}/toxics/{toxic}", None),
            ("POST", "/reset", None),
        ))  # fmt: skip
        yield "GET", "/proxies", None


STORIES = (proxies, every_toxic, populating, asking)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_requests_by_hand_are_answered_alike(sides: tuple[Side, Side], story: Callable[[], Iterator[Ask]]) -> None:
    assert_alike(sides, story())


@pytest.mark.parametrize("number", range(10))
def test_requests_by_dice_are_answered_alike(sides: tuple[Side, Side], number: int) -> None:
    assert_alike(sides, by_dice(Dice(SEED, number)))


def assert_alike(sides: tuple[Side, Side], asks: Iterator[Ask]) -> None:
    differing, count = [], 0
    for ask in asks:
        count += 1
        model, own = (side.ask(ask) for side in sides)
        if model != own:
            differing.append(f"{ask}\n  real     {model}\n  embedded {own}")
    assert count > 30
    if differing:
        pytest.fail(f"{len(differing)} of {count} answers differ:\n" + "\n".join(differing[:20]), pytrace=False)


def test_changes_from_several_threads_end_alike(sides: tuple[Side, Side]) -> None:
    """As many succeed whoever comes first, and the end is the same."""
    assert changed_at_once(sides[0]) == changed_at_once(sides[1])


def changed_at_once(side: Side) -> tuple[list[int], object]:
    """The statuses of all answers, sorted, and the proxies at the end without the order in which their toxics came."""
    together = threading.Barrier(8)

    def one(number: int) -> list[int]:
        together.wait()
        asks: list[Ask] = [
            ("POST", "/proxies", PARKED | {"name": "shared"}),
            ("POST", "/proxies/shared/toxics", {"type": "latency"}),
            ("POST", "/proxies", PARKED | {"name": f"t{number}"}),
            ("POST", "/populate", [{"name": f"t{number}", "upstream": "b:1", "listen": "127.0.0.1:0"}]),
            *(("POST", TOXICS, {"type": "noop", "name": f"{number}.{toxic}"}) for toxic in range(5)),
            ("PATCH", "/proxies/p", {"enabled": False}),
            *(("DELETE", f"{TOXICS}/{number}.{toxic}", None) for toxic in range(3)),
            ("PATCH", f"/proxies/t{number}", {"enabled": False}),
            *([("DELETE", f"/proxies/t{number}", None)] if number % 2 else []),
        ]
        return [side.ask(ask)[0] for ask in asks]

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for some in pool.map(one, range(8)) for status in some]
    _, _, left = side.ask(("GET", "/proxies", None))
    assert isinstance(left, dict)
    for proxy in left.values():
        proxy["listen"] = re.sub("port[0-9]+", "a port", proxy["listen"])
        proxy["toxics"].sort(key=lambda toxic: toxic["name"])
    return sorted(statuses), left


def test_a_config_file_that_cannot_be_used_stops_the_embedded_server_only(tmp_path: Path) -> None:
    config = tmp_path / "toxiproxy.json"
    config.write_text('[{"name":"x"}]')
    with real_with("-config", str(config)) as url:
        assert httpx.get(f"{url}/proxies").json() == {}
    with pytest.raises(ValueError, match="missing required field"), embedded(config=config):
        pass


@pytest.mark.parametrize("flags", [("-seed", "-5"), ("-port", "mysql")])
def test_flags_that_only_the_real_server_takes(flags: tuple[str, str]) -> None:
    if flags[0] == "-seed":
        with real_with(*flags) as url:
            assert httpx.get(f"{url}/version").status_code == 200
    elif shutil.which("toxiproxy-server") is None:
        pytest.skip("toxiproxy-server is not on PATH")
    else:  # whoever has that port, it is no name that stops the server
        with subprocess.Popen(("toxiproxy-server", "-host", "127.0.0.1", *flags), stdout=subprocess.PIPE) as model:
            assert model.stdout is not None
            said = [json.loads(model.stdout.readline())["message"] for _ in range(2)]
            model.terminate()
        assert "Starting Toxiproxy HTTP server" in said
    with pytest.raises(SystemExit, match="2"):
        main(["toxiproxy", *flags])
