"""A world says the same of its computer wherever it runs, and by whatever name it is asked."""

import os
import platform
import socket
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from chaoslab.worlds.virtual.patches import Patches, computer, sockets
from tests.worlds.virtual.patch_parts import named, run, take_out

CASES: list[tuple[str, Callable[[], Any], Any, tuple[Any, str]]] = [
    ("cpu_count", lambda: os.cpu_count(), 4, (os, "cpu_count")),
    ("uname", lambda: os.uname().nodename, "localhost", (os, "uname")),
    ("uname of platform", lambda: platform.uname().node, "localhost", (platform, "uname")),
    ("node", lambda: platform.node(), "localhost", (platform, "uname")),
]
if hasattr(os, "sched_getaffinity"):
    CASES.append(("affinity", lambda: sorted(os.sched_getaffinity(0)), [0, 1, 2, 3], (os, "sched_getaffinity")))


@pytest.fixture(autouse=True)
def another_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A computer that differs from the one that a world shows."""
    found = platform.uname()._replace(node="elsewhere")
    assert found.processor is not None  # asked for and remembered
    of_system = os.uname_result(("Linux", "elsewhere", *os.uname()[2:]))
    for holder, name, own, value in (
        (os, "cpu_count", "real_cpu_count", 60),
        (os, "sched_getaffinity", "real_affinity", {7}),
        (os, "uname", "real_uname", of_system),
        (platform, "uname", "real_platform_uname", found),
    ):
        real = lambda *_, value=value: value  # noqa: E731
        monkeypatch.setattr(holder, name, real, raising=False)
        monkeypatch.setattr(computer, own, real)


@pytest.mark.parametrize(("asked", "said", "remedy"), named(CASES))
def test_a_world_has_a_computer_of_its_own(
    asked: Callable[[], Any], said: Any, remedy: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asked()
    assert run(asked) == said != before
    with Patches():
        assert asked() == before
    take_out(monkeypatch, remedy)
    assert run(asked) == before


def test_its_processor_is_known_without_a_process() -> None:
    assert run(lambda: (platform.processor(), platform.uname().processor)) == (platform.processor(),) * 2


def test_it_has_one_name() -> None:
    assert run(lambda: {platform.node(), socket.gethostname(), os.uname().nodename}) == {"localhost"}


def test_its_addresses_have_no_other_names_and_no_proxy_leads_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://elsewhere:3128")
    for name in ("gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo", "gethostname"):
        monkeypatch.setattr(sockets, f"real_{name}", lambda *_: "elsewhere")
    asked: tuple[tuple[Callable[[], Any], Any], ...] = (
        (lambda: socket.gethostbyname("localhost"), "127.0.0.1"),
        (lambda: socket.gethostbyname_ex("localhost"), ("localhost", [], ["127.0.0.1"])),
        (lambda: socket.gethostbyaddr("127.0.0.1"), ("127.0.0.1", [], ["127.0.0.1"])),
        (lambda: socket.getnameinfo(("127.0.0.1", 80), 0), ("127.0.0.1", "80")),
        (lambda: urllib.request.getproxies(), {}),
        (computer.getproxies_environment, {}),
        (computer.process_cpu_count, computer.CPUS),  # which os has from Python 3.13 on
    )
    assert [run(ask) for ask, _ in asked] == [said for _, said in asked]
