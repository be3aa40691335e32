"""The seam with its run in a virtual world: as `lab_parts.bench`, without sockets, manager and waiting."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import httpx

from chaoslab.base.clock import system
from chaoslab.base.identity import Request
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Plan
from chaoslab.model.prices import compute_cost_usd
from chaoslab.record.history import History
from chaoslab.record.provenance import digest_uncommitted_changes
from chaoslab.record.runs import Run
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.http.tags import Target
from chaoslab.wire.sending import SocketFactory
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network.lanes import VirtualLanes
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.seams.lab_parts import NOW, Heard, get

T = TypeVar("T")

# kept from here on: a run notes it, and a virtual world starts no process that could ask Git
digest_uncommitted_changes()


def virtually(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """In a world of its own."""
    with Patches():
        return World(1, now=datetime.fromisoformat(NOW)).run_program_async(work)


@dataclass
class Bench:
    """One run: its seam, and a client that goes through it."""

    run: Run
    seam: HttpSeam
    client: httpx.AsyncClient

    def history(self) -> History:
        return History.read(self.run.folder)

    async def get(self, request: Request, *, attempt: int = 1) -> httpx.Response:
        return await get(self.seam, self.client, request, attempt=attempt)


@contextlib.asynccontextmanager
async def bench(
    folder: Path,
    plan: Plan,
    targets: Sequence[str],
    *,
    deadline_s: float = 2.0,
    ways: SocketFactory | None = None,
    secrets: Sequence[str] = (),
    **of_target: Any,
) -> AsyncIterator[Bench]:
    """A run over those targets, each of which is a host of its own in the world that this runs in."""
    run = Run.create(folder / "logs", now=NOW)
    places = {name: (name, 80) for name in targets}
    described = {name: Target(name, f"http://{name}", place, deadline_s, **of_target) for name, place in places.items()}
    with run.open_log("info", secrets=secrets) as info, run.open_log("manager") as log:
        lanes = VirtualLanes(log=log, plan=plan, network=world().network, clock=system, targets=places)
        seam = HttpSeam(
            plan=plan, targets=described, lanes=lanes, log=info, clock=system, price=compute_cost_usd, ways=ways
        )
        async with httpx.AsyncClient(transport=seam, timeout=None) as client:
            yield Bench(run, seam, client)


def site(name: str, answer: Callable[[Heard], Reply]) -> list[Heard]:
    """A host of that name that answers so, and all that it hears."""
    heard: list[Heard] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
        headers = {
            key.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
            for key, value in environ.items()
            if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")
        }
        body = environ["wsgi.input"].read()
        heard.append(Heard(environ["REQUEST_METHOD"], f"{path}?{query}" if query else path, headers, body))
        reply = answer(heard[-1])
        fields = [*reply.headers.items(), ("Content-Length", str(len(reply.body)))]
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", fields)
        return [reply.body]

    serve_application(world().network, name, 80, app)
    return heard
