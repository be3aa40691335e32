"""The manager answers a person over HTTP: health, status, pause and resume."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaoslab.core.events import PromptStarted
from chaoslab.core.plan import Plan
from chaoslab.proxy_manager import clean_proxies
from chaoslab.proxy_manager.command import make_server
from chaoslab.proxy_manager.manager import Manager
from tests.event_parts import prompt_finished
from tests.proxy_manager.manager_parts import Ahead, another, end
from tests.seams.lab_parts import bench, embedded, eventually, said, site


@contextlib.contextmanager
def asked(manager: Manager) -> Iterator[httpx.Client]:
    http = make_server(manager, host="127.0.0.1", port=0)
    thread = threading.Thread(target=lambda: http.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{http.server_port}", trust_env=False) as client:
            yield client
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def test_health_status_pause_and_resume(tmp_path: Path) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, Plan(1), {"weather": address}) as lab:
            with asked(lab.manager) as client:
                assert client.get("/health").json() == {"status": "ok", "trouble": "", "epoch": 0, "recovering": False}
                shown = {"paused": False, "runs": [lab.run.name], "calls": 0, "wire_faults": {}, "lanes": []}
                assert client.get("/status").json() == shown
                figures = client.get("/metrics")
                assert figures.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert "\nchaoslab_runs 1\n" in figures.text
                assert client.post("/pause").json() == {"paused": True}
                assert lab.manager.paused.is_set()
                assert client.get("/status").json()["paused"] is True
                assert client.post("/resume").json() == {"paused": False}
                assert not lab.manager.paused.is_set()
                lab.manager.began.clear()
                assert client.get("/status").status_code == 503  # its container is not ready
                assert client.get("/pause").status_code == 405
                assert client.post("/status").status_code == 405
                lost = client.get("/paus")
                assert (lost.status_code, "POST /pause" in lost.json()["error"]) == (404, True)

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))


def test_a_run_that_was_over_before_anybody_asked_is_in_the_figures(tmp_path: Path) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, Plan(1), {"weather": address}) as lab:
            first = another(lab)
            with first.open_log("info") as log:
                log.write(PromptStarted(prompt_index=1, prompt="?"), trial="p1.r1")
                log.write(prompt_finished(), trial="p1.r1")
            end(lab, first)
            eventually(lambda: lab.manager.status()["runs"] == [lab.run.name])
            with asked(lab.manager) as client:
                figures = client.get("/metrics").text
        assert 'chaoslab_trials_total{outcome="unknown"} 1\n' in figures
        assert "chaoslab_runs 1\n" in figures

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))


@pytest.mark.parametrize("header", [{"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}], ids=str)
def test_another_sites_page_pauses_nothing(tmp_path: Path, header: dict[str, str]) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, Plan(1), {"weather": address}) as lab:
            with asked(lab.manager) as client:
                refused = [client.post("/pause", headers=header), client.get("/status", headers=header)]
                assert [reply.status_code for reply in refused] == [403, 403]
                assert refused[0].json()["error"].endswith("not allowed")
                assert not lab.manager.paused.is_set()

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))


def test_health_is_503_when_toxiproxy_is_dead(tmp_path: Path) -> None:
    clock = Ahead()

    async def run(address: str) -> None:
        with embedded() as url:
            at_work = bench(tmp_path, url, Plan(1), {"weather": address}, managers_clock=clock)
            lab = await at_work.__aenter__()
        try:
            with asked(lab.manager) as client:
                reply = client.get("/health")
                assert (reply.status_code, reply.json()["status"]) == (503, "recovering")
                clock.by_s = clean_proxies.RECOVER_S
                eventually(lambda: bool(client.get("/health").json()["trouble"]))
                reply = client.get("/health")
                assert (reply.status_code, reply.json()["status"]) == (503, "trouble")
                assert "is gone: it did not answer" in reply.json()["trouble"]
                assert client.get("/status").status_code == 200
        finally:
            await at_work.__aexit__(None, None, None)

    with site(lambda _: said({})) as weather:
        asyncio.run(run(weather.address))
