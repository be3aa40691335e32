"""The embedded server and the real one, asked the same: statuses, headers and bodies are equal, byte for byte."""

import contextlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from chaoslab.base.dice import Dice
from chaoslab.cli import main
from tests.seams.lab_parts import eventually
from tests.wire import parity_generated
from tests.wire.parity_differences import DIFFERENCES, Difference
from tests.wire.parity_parts import Ask, Side, delete, fresh, get, patch, post
from tests.wire.parity_stories import STORIES
from tests.wire.wire_parts import dial, echo, embedded, read_exactly, real_with, upstream

DOCS = Path(__file__).parents[2] / "docs" / "toxiproxy.md"
SEED = 4
STORIES_OF_DICE = 24
Sides = tuple[Side, Side]


@contextlib.contextmanager
def both(*metrics: str) -> Iterator[Sides]:
    """The real server first, since it skips where it is not installed."""
    with real_with(*(f"-{one}-metrics" for one in metrics)) as model, embedded(metrics=metrics) as own:
        sides = Side(model), Side(own)
        try:
            yield sides
        finally:
            for side in sides:
                side.close()


@pytest.fixture(scope="module")
def servers() -> Iterator[Sides]:
    with both() as sides:
        yield sides


@pytest.fixture
def sides(servers: Sides) -> Sides:
    for side in servers:
        fresh(side)
    return servers


def asked_alike(sides: Sides, asks: Iterable[Ask]) -> int:
    """The number of requests that both answered alike; fails with those that they did not."""
    differing, count = [], 0
    for ask in asks:
        count += 1
        model, own = (side.ask(ask).told for side in sides)
        if model != own:
            differing.append(f"{bytes(ask)!r}\n  real     {model}\n  embedded {own}")
    if differing:
        pytest.fail(f"{len(differing)} of {count} answers differ:\n" + "\n".join(differing[:20]), pytrace=False)
    return count


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_requests_by_hand_are_answered_alike(sides: Sides, story: Callable[[], Iterator[Ask]]) -> None:
    assert asked_alike(sides, story()) > 50


@pytest.mark.parametrize("number", range(STORIES_OF_DICE))
def test_requests_by_dice_are_answered_alike(sides: Sides, number: int) -> None:
    assert asked_alike(sides, parity_generated.story(Dice(SEED, number), length=30)) == 32


def test_changes_from_several_threads_end_alike(sides: Sides) -> None:
    """As many succeed whoever comes first, and the end is the same."""
    assert changed_at_once(sides[0]) == changed_at_once(sides[1])


def changed_at_once(side: Side) -> tuple[list[str], object]:
    """The statuses of all answers, sorted, and the proxies at the end without the order in which their toxics came."""
    together = threading.Barrier(8)

    def one(number: int) -> list[str]:
        own = Side(side.url)
        together.wait()
        asks = [
            post("/proxies", '{"name":"shared","upstream":"a:1","listen":"127.0.0.1:0"}'),
            post("/proxies/shared/toxics", '{"type":"latency"}'),
            post("/proxies", f'{{"name":"t{number}","upstream":"a:1","listen":"127.0.0.1:0","enabled":false}}'),
            post("/populate", f'[{{"name":"t{number}","upstream":"b:1","listen":"127.0.0.1:0"}}]'),
            *(post("/proxies/p/toxics", f'{{"type":"noop","name":"{number}.{one}"}}') for one in range(5)),
            patch("/proxies/p", '{"enabled":false}'),
            *(delete(f"/proxies/p/toxics/{number}.{one}") for one in range(3)),
            patch(f"/proxies/t{number}", '{"enabled":false}'),
            delete("/proxies/p/toxics/nobody's"),
            *([delete(f"/proxies/t{number}")] if number % 2 else []),
        ]
        try:
            return [own.ask(ask).status for ask in asks]
        finally:
            own.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for some in pool.map(one, range(8)) for status in some]
    left = json.loads(side.ask(get("/proxies")).body)
    for proxy in left.values():
        proxy["listen"] = re.sub("port[0-9]+", "a port", proxy["listen"])
        proxy["toxics"].sort(key=lambda toxic: toxic["name"])
    return sorted(statuses), left


def test_bytes_are_counted_alike_when_a_connection_closes() -> None:
    """Of a limited stream too, where less is sent on than was received; nothing of one whose upstream was not there."""
    proxy = {"name": 'q"\\\n<', "listen": "127.0.0.1:0"}
    shown = []
    with upstream(echo) as address, both("proxy") as counting:
        assert asked_alike(counting, [get("/metrics"), Ask("PUT", "/metrics"), Ask("HEAD", "/metrics")]) == 3
        for side in counting:
            with httpx.Client(base_url=side.url) as client:
                lost = {"name": "lost", "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0"}
                with dial(client.post("/proxies", json=lost).raise_for_status().json()["listen"]) as connection:
                    assert connection.recv(1) == b""
                made = client.post("/proxies", json=proxy | {"upstream": address}).raise_for_status()
                exchange(made.json()["listen"], b"x" * 1_234_567)
                limit = {"type": "limit_data", "attributes": {"bytes": 5}}
                client.post("/proxies/q%22%5C%0A%3C/toxics", json=limit).raise_for_status()
                exchange(made.json()["listen"], b"y" * 10, back=5)
                eventually(lambda client=client: counted(client.get("/metrics").text))  # type: ignore[misc]
            shown.append(side.ask(get("/metrics")))
    assert shown[0] == shown[1]


def test_the_counters_of_a_proxy_go_with_it() -> None:
    """Else each poisoned call of a long run would leave four lines behind."""
    lines = []
    with upstream(echo) as address, both("proxy") as counting:
        for side in counting:
            with httpx.Client(base_url=side.url) as client:
                for name in ("kept", "gone"):
                    wish = {"name": name, "upstream": address, "listen": "127.0.0.1:0"}
                    made = client.post("/proxies", json=wish).raise_for_status().json()
                    exchange(made["listen"], b"xy")
                    eventually(lambda client=client, name=name: lines_of(client, name) == 4)  # type: ignore[misc]
                with dial(made["listen"]):  # it is closed when the proxy is gone
                    client.delete("/proxies/gone").raise_for_status()
                lines.append((lines_of(client, "kept"), lines_of(client, "gone")))
    assert lines == [(4, 4), (4, 0)]


def lines_of(client: httpx.Client, proxy: str) -> int:
    return client.get("/metrics").text.count(f'proxy="{proxy}"')


def counted(text: str) -> bool:
    """True if both connections are in it, both ways: all that was echoed, and what passed the limit."""
    return text.count(" 1.234577e+06\n") == 3 and text.count(" 1.234572e+06\n") == 1


def exchange(listen: str, data: bytes, *, back: int | None = None) -> None:
    """Send, read what comes back, and hang up."""
    size = len(data) if back is None else back
    with dial(listen) as connection:
        connection.sendall(data)
        assert read_exactly(connection, size) == data[:size]


# Where they differ on purpose.


@pytest.mark.parametrize("difference", [one for one in DIFFERENCES if one.asks], ids=lambda difference: difference.real)
def test_a_difference_on_the_list_is_one(difference: Difference, request: pytest.FixtureRequest) -> None:
    """So that the list names no difference that has vanished; all requests but the last are answered alike."""
    with contextlib.ExitStack() as stack:
        shows = difference.metrics
        sides: Sides = stack.enter_context(both(shows)) if shows else request.getfixturevalue("sides")
        asked_alike(sides, difference.asks[:-1])
        model, own = (side.ask(difference.asks[-1]) for side in sides)
    assert model != own


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


def test_the_docs_list_the_same_differences() -> None:
    section = DOCS.read_text().partition("## In the API\n")[2].partition("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[0] == ["the real server", "here", "because"]
    assert [real_ for real_, _, _ in rows[1:]] == [difference.real for difference in DIFFERENCES]


def test_each_difference_is_shown() -> None:
    """By its requests, or by what it names."""
    shown_by = [difference.shown_by for difference in DIFFERENCES if not difference.asks]
    assert all(name in globals() or name.startswith("nothing: ") for name in shown_by)
