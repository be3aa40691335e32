"""Parts of the manager's tests, some from the whole path's, and a run whose weather meets one fault."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from chaoslab.base.clock import Clock, SystemClock, system
from chaoslab.base.identity import TrialId
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.seams.lab_parts import SERVERS, Bench, bench, embedded, free_port, open_run, said, site
from tests.told import Story, told_by

SLOW = {"delay_s": 0.05, "stream": "downstream"}
CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id1")


def always(fault: str, **params: object) -> Plan:
    return Plan(1, (Injection("wire", (Choice(fault, 1.0, params),), ("weather",)),))


def with_lab(
    folder: Path, plan: Plan, story: Story, *, server: str = "embedded", clock: Clock = system,
) -> None:  # fmt: skip
    async def run(url: str, address: str) -> None:
        async with bench(folder, url, plan, {"weather": address}, managers_clock=clock) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await story(lab)

    with SERVERS[server]() as url, site(lambda _: said({"temp": 21})) as weather:
        asyncio.run(run(url, weather.address))


def on_lab(
    plan: Plan, *, servers: Collection[str] = ("embedded",), clock: Clock = system
) -> Callable[[Story], Callable[..., None]]:
    """Makes a test of a story of such a lab, with each of these Toxiproxies."""

    @told_by
    def test_of(story: Story, *, tmp_path: Path, server: str) -> None:
        with_lab(tmp_path, plan, story, server=server, clock=clock)

    return lambda story: pytest.mark.parametrize("server", servers)(test_of(story))


def another(lab: Bench, upstream: str = "") -> Run:
    """A second run of the same lab, which is open."""
    run = Run.create(lab.run.folder.parent, now=lab.run.now)
    open_run(lab.state, run.name, Plan(1), {"weather": upstream or lab.toxiproxy.fetch_proxy("weather").upstream})
    return run


def turn_away(lab: Bench, proxy: str) -> None:
    """Gives a proxy another upstream, as somebody else would: toxiproxy-python cannot change one."""
    url = f"{lab.toxiproxy.url}/proxies/{proxy}"
    httpx.patch(url, json={"upstream": "127.0.0.1:9"}, trust_env=False).raise_for_status()


def end(lab: Bench, run: Run) -> None:
    control = ControlDatabase(lab.state)
    control.end_run(run.name)
    control.close()


@contextlib.contextmanager
def a_manager(folder: Path, *, clock: Clock = system, kind: type[Manager] = Manager) -> Iterator[Manager]:
    """A manager that does not serve yet."""
    places = Places("127.0.0.1", "127.0.0.1", {}, free_port())
    with embedded() as url, ToxiproxyServer(url) as toxiproxy:
        yield kind(state=folder / "state.db", logs=folder / "logs", toxiproxy=toxiproxy, places=places, clock=clock)


def seen(duration_s: float, *, error: str | None = None) -> Observation:
    return Observation(duration_s, 2.0, error, None if error else 200)


class Ahead(SystemClock):
    """Time of which more passes than really does."""

    by_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.by_s

    def utc(self) -> datetime:
        return super().utc() + timedelta(seconds=self.by_s)
