"""Names and addresses in a world: what is found, what a fault hides, and what is elsewhere."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from chaoslab.worlds.virtual.context import Unsupported, world
from chaoslab.worlds.virtual.elsewhere import Elsewhere
from chaoslab.worlds.virtual.machine import Machine
from chaoslab.worlds.virtual.network import TRIP_S, Network
from tests.worlds.virtual.machine_parts import a_world
from tests.worlds.virtual.patch_parts import in_place
from tests.worlds.virtual.test_virtual_network import nobody

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def network(*places: tuple[str, int]) -> Network:
    made = Network(Machine(deadline_s=60.0, calls_max=100))
    for host, port in places:
        made.listen(host, port, nobody)
    return made


def test_the_gate_of_a_host_is_that_of_https_or_of_another_port_but_not_that_of_http() -> None:
    there = network(("a", 80), ("a", 8080), ("a", 443), ("a", 7), ("b", 80), ("c", 9), ("c", 8))
    gates: dict[Any, Any] = {}
    for host, port in (("a", 80), ("a", 8080), ("a", 443), ("a", 7), ("b", 80), ("c", 9), ("c", 8)):
        gates[host, port] = there.gates[there.address_of(host), port] = lambda _, at=(host, port): at  # type: ignore[index, assignment]
    assert there.gate_of("a") is gates["a", 443]
    assert there.gate_of("b") is None
    assert there.gate_of("c") is gates["c", 9]
    assert there.gate_of("nobody") is None


def test_a_network_may_listen_as_another_does_and_knows_names_and_addresses() -> None:
    first, second = network(("a", 80)), network(("b", 81))
    address = first.listen("10.1.2.3", 5, nobody)
    second.listens_like(first)
    assert (second.listens(address), second.knows("10.1.2.3"), second.knows("10.1.2.4")) == (True, True, False)
    assert first.heard == {("10.77.0.2", 80), ("10.1.2.3", 5)}
    assert second.heard == {("10.77.0.2", 81), ("10.77.0.2", 80), ("10.1.2.3", 5)}
    assert (first.knows("a"), first.knows("b"), first.knows("localhost"), first.knows("127.0.0.1")) == (
        True,
        False,
        True,
        True,
    )
    assert (first.named(("10.77.0.2", 80)), first.named(("10.9.9.9", 1))) == ("a:80", "10.9.9.9:1")
    assert [first.address_of(name) for name in ("a", "::1", "1.2.3", "b")] == ["10.77.0.2", "::1", None, None]
    for host, port, found in (
        (b"a", b"80", ("10.77.0.2", 80)),
        (None, None, ("127.0.0.1", 0)),
        ("a", "", ("10.77.0.2", 0)),
    ):
        ((family, kind, proto, name, place),) = first.resolve(host, port)
        assert (family, kind, proto, name) == (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        assert place == found
    with pytest.raises(LookupError, match="b"):
        first.resolve("b", 1)
    names = network(*((f"n{number}", 1) for number in range(251)))
    assert [names.address_of(f"n{number}") for number in (0, 248, 249, 250)] == [
        "10.77.0.2", "10.77.0.250", "10.77.1.1", "10.77.1.2",
    ]  # fmt: skip


def test_a_free_port_is_one_that_nobody_has_and_a_taken_one_is_named() -> None:
    there = network(("a", 32768))
    assert there.listen("a", 0, nobody) == ("10.77.0.2", 32769)
    assert there.listen("b", 0, nobody) == ("10.77.0.3", 32770)
    with pytest.raises(OSError, match="Address already in use: a:32768") as error:
        there.listen("a", 32768, nobody)
    assert error.value.errno == errno.EADDRINUSE
    there.silence("a", 32768)
    assert there.listen("a", 32768, nobody) == ("10.77.0.2", 32768)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_lookup_that_a_fault_fails_takes_a_trip_and_is_told_and_an_address_needs_none(hidden: bool) -> None:
    told, asked = list[str](), list[str]()

    def gate(step: str) -> Any:
        asked.append(step)
        return (lambda: told.append(step)) if hidden else None

    def first() -> list[Any]:
        address = world().network.listen("shop", 80, nobody)
        world().network.gates[address] = gate  # type: ignore[assignment]
        began = time.monotonic()
        assert socket.getaddrinfo(address[0], 80)[0][4] == address
        assert asked == []
        try:
            found: Any = socket.getaddrinfo("shop", 80)[0][4] == address
        except socket.gaierror as error:
            found = error.errno, error.strerror
        return [found, asked, told, round((time.monotonic() - began) / TRIP_S)]

    failed = [(socket.EAI_NONAME, "Name or service not known"), ["lookup"], ["lookup"], 1]
    assert a_world().run(first) == (failed if hidden else [True, ["lookup"], [], 0])


@pytest.mark.parametrize("way", ["refuse", "unreachable"])
@pytest.mark.parametrize(
    ("host", "hint", "warned"),
    [
        ("far.test", "give its stand-in with services={…}", "far.test could not be reached: no service has this name"),
        ("shopp", "did you mean the service 'shop'? Else give its stand-in",
         "shopp could not be reached: no service has this name"),
        ("huggingface.co", "give its stand-in",
         "huggingface.co could not be reached: no service has this name; load them once"),
    ],
)  # fmt: skip
def test_a_host_elsewhere_is_refused_with_a_hint_or_unreachable_with_a_warning(
    host: str, hint: str, warned: str, way: str
) -> None:
    there = Elsewhere(way, ["shop"])
    if way == "refuse":
        with pytest.raises(Unsupported) as refused:
            there.name(host)
        assert hint in str(refused.value)
        with pytest.raises(Unsupported, match=r"a connection to 9\.9\.9\.9:7"):
            there.address("9.9.9.9", 7)
        assert there.warnings == []
        assert isinstance(there.nobody("127.0.0.1", 4317), Unsupported)
        return
    for _ in range(2):
        error = there.name(host)
        assert isinstance(error, socket.gaierror)
        assert error.errno == socket.EAI_NONAME
        assert ("in a trial, load them" in str(error)) == (host == "huggingface.co")
    assert there.address("9.9.9.9", 7).errno == errno.ENETUNREACH
    assert there.nobody("127.0.0.1", 7) is None
    first, second, third = there.warnings
    assert first.startswith(warned)
    assert second.startswith("9.9.9.9 could not be reached")
    assert third == "127.0.0.1:7 could not be reached: no service has this address"


def of_package(name: str, ask: Callable[[], Any]) -> Any:
    """What a call from a module of that package gives."""
    return FunctionType(calling.__code__, {"__name__": name})(ask)


def calling(ask: Callable[[], Any]) -> Any:
    return ask()


def test_the_reports_of_sdks_are_spared_where_they_come_from_their_package() -> None:
    there = Elsewhere("refuse", [], ["api.openai.com"])
    error = of_package("posthog.client", lambda: there.name("us.i.posthog.com"))
    assert isinstance(error, OSError)
    assert isinstance(of_package("x", lambda: there.name("o1.ingest.us.sentry.io")), OSError)
    with pytest.raises(Unsupported):
        of_package("litellmx", lambda: there.name("raw.githubusercontent.com"))
    assert isinstance(of_package("litellm.cost", lambda: there.name("raw.githubusercontent.com")), OSError)

    def report() -> Any:
        return there.report("api.openai.com")

    assert of_package("openai.resources", report) is None
    assert isinstance(of_package("agents.tracing.processors", report), OSError)
    assert of_package("agents.tracing.processors", lambda: there.report("telemetry.crewai.com")) is None
    assert of_package("opentelemetry.exporter", lambda: there.nobody("127.0.0.1", 4318)) is None
    assert isinstance(of_package("opentelemetry.exporter", lambda: there.nobody("127.0.0.1", 4319)), Unsupported)
    assert [line.partition(" could")[0].partition(" was")[0] for line in there.warnings] == [
        "us.i.posthog.com (the telemetry of posthog)", "o1.ingest.us.sentry.io (the reports to Sentry)",
        "raw.githubusercontent.com (a list of models and prices)", "api.openai.com",
    ]  # fmt: skip
