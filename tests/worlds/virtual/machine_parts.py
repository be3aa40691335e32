"""A world with a service and a model, for the tests of threads, clients and agents; a story's time there."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from chaoslab.seams.services.app import Wsgi
from chaoslab.worlds.virtual.machine.machine import STARTS_S
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.told import Story, told_by

T = TypeVar("T")
NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


def a_world(services: dict[str, Wsgi] | None = None, *, deadline_s: float = 3600.0) -> World:
    world = World(7, now=NOW, deadline_s=deadline_s)
    for name, app in (services or {}).items():
        serve_application(world.network, name, 80, app)
    return world


def told(
    story: Callable[[], T], services: dict[str, Wsgi] | None = None, *, deadline_s: float = 3600.0
) -> tuple[T, float]:
    """The story's return value and its seconds of its world; told twice, and the same both times."""
    with Patches():
        first, second = (_once(story, a_world(services, deadline_s=deadline_s)) for _ in range(2))
    assert repr(first) == repr(second)
    return first


def tells(what: Any, seconds: float | None = None) -> Callable[[Story], Callable[..., None]]:
    """Makes a test of a story with this return value, and this long."""

    @told_by
    def test_of(story: Story) -> None:
        found = told(story)
        assert found == (what, found[1] if seconds is None else seconds)

    return test_of


def _once(story: Callable[[], T], world: World) -> tuple[T, float]:
    return world.run_program(story), since(world.machine.now)


def since(moment: float) -> float:
    """Seconds of a world's life, without what trips over the network add."""
    return round(moment - STARTS_S, 2)


def now() -> float:
    """As the story's own clock says it."""
    return since(time.monotonic())


def answers(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A service: /slow takes five seconds, /echo says what it heard, /events speaks once a second, /close hangs up."""
    path, body = environ["PATH_INFO"], environ["wsgi.input"].read()
    if path == "/events":
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return _events()
    if path == "/slow":
        time.sleep(5)
    reply = body if path == "/echo" else b"ok"
    kept = [("Connection", "close")] if path == "/close" else []
    start_response("200 OK", [("Content-Length", str(len(reply))), *kept])
    return [reply]


def _events() -> Iterable[bytes]:
    for n in range(3):
        time.sleep(1)
        yield f"data: {n}\n\n".encode()
