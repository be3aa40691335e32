"""Parts of the lab tell their version, and an agent refuses to run with parts of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest

from chaoslab.agent import assembly
from chaoslab.agent.config import Config
from chaoslab.agent.tools import check_part_versions
from chaoslab.base.clock import system
from chaoslab.config.part_version import compute_version_digests, describe_part_differences
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import MODEL, SERVICES, Ports
from chaoslab.flask_tools.app import make_app
from chaoslab.flask_tools.ledger import FolderRunStore
from chaoslab.flask_tools.service_module import ServiceModule
from chaoslab.flask_tools.serving import open_server
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.command import make_server
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record import provenance
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.cli_parts import free_base

OWN = compute_version_digests(Settings())


@pytest.mark.parametrize(
    ("name", "value", "differs"),
    [
        ("SECRET_NAMES", "x", True),
        ("NOW", "2026-07-02T10:00:00Z", False),
        ("SEED", "9", False),
    ],
)
def test_settings_that_a_service_reads_make_another_version_but_for_now_which_each_run_tells(
    name: str, value: str, differs: bool
) -> None:
    assert (
        bool(describe_part_differences(OWN, {"it": compute_version_digests(Settings().override({name: value}))}))
        is differs
    )


def test_the_parts_are_named_with_what_differs() -> None:
    assert describe_part_differences(OWN, {"same": OWN, "silent": {}}) == []
    changed = {**OWN, "chaoslab": "0", "settings": "0"}
    assert describe_part_differences(
        OWN, {"a": changed, "b": {**OWN, "flask_tools": "0"}, "c": {**OWN, "settings": "0"}}
    ) == [
        "a has other sources and settings",
        "b has other sources",
        "c has other settings",
    ]
    assert describe_part_differences(OWN, {"manager": {**OWN, "flask_tools": provenance.ABSENT}}) == []


@contextmanager
def parts(base: int, tmp_path: Path, versions: dict[str, dict[str, str]]) -> Iterator[None]:
    """The services of those names and a manager, of these versions."""
    ports = Ports(base)
    places = Places("127.0.0.1", "127.0.0.1", {}, ports.refused_port)
    client = ToxiproxyServer("127.0.0.1:1")
    manager = Manager(state=tmp_path / "state.db", logs=tmp_path, toxiproxy=client, places=places, clock=system)
    http = make_server(manager, host="127.0.0.1", port=ports.manager_port, version=versions.pop("manager"))
    up = [
        open_server(
            make_app(desk := ServiceModule.load(name), FolderRunStore(tmp_path, Settings().now), digests=version), desk,
            host="127.0.0.1", port=ports.get_service_port(name),
        )
        for name, version in versions.items()
    ]  # fmt: skip
    threads = [Thread(target=each.run, daemon=True) for each in up]
    threads.append(Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        http.shutdown()
        http.server_close()
        for each in up:
            each.task_dispatcher.shutdown(timeout=1)
            each.close()


def checked(base: int) -> None:
    ports, chosen = Ports(base), Settings()
    services = {name: ServiceModule.load(name).service for name in SERVICES}
    targets = assembly.make_targets(services, Config(), ports, chosen)
    assert MODEL in targets

    async def check() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            await check_part_versions(client, targets, f"http://127.0.0.1:{ports.manager_port}", OWN)

    asyncio.run(check())


def test_an_agent_refuses_parts_of_another_version_and_names_them(tmp_path: Path) -> None:
    base = free_base()
    with (
        parts(
            base, tmp_path, {"weather": OWN, "search": {**OWN, "flask_tools": "0"}, "manager": {**OWN, "chaoslab": "0"}}
        ),
        pytest.raises(SettingError) as refused,
    ):
        checked(base)
    said = str(refused.value)
    assert ": search has other sources, proxy manager has other sources than the agent; start them anew" in said
    base = free_base()
    with parts(base, tmp_path, {"weather": OWN, "manager": OWN}):
        checked(base)
