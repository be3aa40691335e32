"""CPU that an armed HTTP seam at chance 0 adds to an exchange, beside the bare client, by turns in one run.

Both send the same request over the same virtual network to the same little application, over a kept connection; between
them stand the seam with an injection of each layer at chance 0, its lanes, and its log, which is measured apart.
"""

import argparse
import time
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any

import httpx

from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.core.events import Event
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.log import MemoryLog
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.http.tags import EXTENSION, RequestTag, Target
from chaoslab.worlds.virtual import serving
from chaoslab.worlds.virtual.lanes import VirtualLanes
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
HOST, PORT = "127.0.0.1", 5001
URL = f"http://{HOST}:{PORT}"
PLAN = Plan(
    1,
    tuple(
        Injection(name, (Choice(name),), ("weather",), 0.0)
        for name in ("latency", "tool_error", "wrong_value", "lost_reply")
    ),
)


class Unwritten(MemoryLog):
    """A log that is told everything and writes nothing."""

    def write(self, event: Event, *, trial: str | None = None) -> None: ...


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "12")])
    return [b'{"sky": "x"}']


def world() -> World:
    made = World(1, now=NOW)
    serving.serve(made.network, HOST, PORT, app)
    return made


def bare(tls: Any, calls: int) -> None:
    async def story() -> None:
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(verify=tls), timeout=30) as client:
            await repeated(calls, lambda: client.get(URL + "/look"))

    world().run_async(story)


def seamed(tls: Any, calls: int, log: MemoryLog) -> None:
    made = world()
    lanes = VirtualLanes(plan=PLAN, network=made.network, log=log, clock=system, targets={"weather": (HOST, PORT)})
    target = Target("weather", URL, (HOST, PORT), 30.0)
    seam = HttpSeam(
        plan=PLAN, targets={"weather": target}, lanes=lanes, log=log, clock=system, price=lambda *_: None, tls=tls
    )

    async def story() -> None:
        async with httpx.AsyncClient(transport=seam, timeout=None) as client:
            with seam.trial(TrialId("bench", 1)) as episode:
                wish = episode.requests.ask("weather", "look", {})
                asked = {EXTENSION: RequestTag(wish, 1, {})}
                await repeated(calls, lambda: client.get(URL + "/look", extensions=asked))

    made.run_async(story)


async def repeated(calls: int, call: Callable[[], Coroutine[Any, Any, httpx.Response]]) -> None:
    for _ in range(calls):
        assert (await call()).status_code == 200


def cost(calls: int, story: Callable[[int], None]) -> float:
    """CPU seconds a call: of many, less those of one, so that making a world and a client does not count."""
    found = []
    for number in (1, calls + 1):
        began = time.process_time()
        story(number)
        found.append(time.process_time() - began)
    return (found[1] - found[0]) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500, help="in each turn")
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    tls = httpx.create_ssl_context()
    took: dict[str, list[float]] = {"bare": [], "seam": [], "seam and log": []}
    with Patches():
        for _ in range(options.turns):
            took["bare"].append(cost(options.calls, lambda n: bare(tls, n)))
            took["seam"].append(cost(options.calls, lambda n: seamed(tls, n, Unwritten("info", []))))
            took["seam and log"].append(cost(options.calls, lambda n: seamed(tls, n, MemoryLog("info", []))))
    best = {name: min(found) * 1e6 for name, found in took.items()}
    print(f"bare client        {best['bare']:6.1f} µs of CPU an exchange")
    print(f"armed at chance 0  {best['seam']:6.1f} µs: {best['seam'] - best['bare']:+.1f} µs, log writes apart")
    print(f"with its log       {best['seam and log']:6.1f} µs: {best['seam and log'] - best['bare']:+.1f} µs")


if __name__ == "__main__":
    main()
