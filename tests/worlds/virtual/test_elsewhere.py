"""A host that is no service is unreachable to telemetry, and refused to all others."""

import errno
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network.elsewhere import OutsideHosts


def called_by(module: str, call: Callable[..., Any], *given: Any) -> Any:
    """The result of the call for a caller in a module of this name."""
    return FunctionType(_asks.__code__, {"__name__": module})(call, *given)


def _asks(call: Callable[..., Any], *given: Any) -> Any:
    return call(*given)


@pytest.mark.parametrize(("port", "module", "spared"), [
    (4317, "opentelemetry.exporter", True), (4318, "opentelemetry", True), (4319, "opentelemetry", False),
    (4318, "opentelemetry_of_mine", False), (4318, "mine", False),
])  # fmt: skip
def test_a_missing_collector_is_one_that_may_be_missing(port: int, module: str, spared: bool) -> None:
    found = called_by(module, OutsideHosts("refuse", ()).build_no_listener_error, "127.0.0.1", port)
    assert (found is None) is spared
    assert spared or str(found).startswith(f"a connection to 127.0.0.1:{port} ")


def test_where_hosts_may_be_unreachable_nobody_is_refused_and_each_is_told_once() -> None:
    there = OutsideHosts("unreachable", ())
    assert [there.build_no_listener_error("127.0.0.1", 9), there.build_no_listener_error("127.0.0.1", 9)] == [
        None,
        None,
    ]
    assert there.build_address_error("10.0.0.1", 80).errno == errno.ENETUNREACH
    assert there.build_name_error("shop.test").errno is not None
    assert [line.partition(" ")[0] for line in there.warnings] == ["127.0.0.1:9", "10.0.0.1", "shop.test"]
    with pytest.raises(Unsupported, match=r"a connection to 10\.0\.0\.1:80"):
        OutsideHosts("refuse", ()).build_address_error("10.0.0.1", 80)


@pytest.mark.parametrize(
    ("host", "models", "module", "told"),
    [
        ("api.openai.com", ["api.openai.com"], "agents.tracing.processors", True),
        ("api.openai.com", ["api.openai.com"], "openai.resources", False),
        ("api.openai.com", [], "agents.tracing.processors", False),
        ("api.other.com", ["api.other.com"], "agents.tracing.processors", False),
    ],
)
def test_a_report_to_a_model_s_host_is_no_request_to_the_model(
    host: str, models: list[str], module: str, told: bool
) -> None:
    there = OutsideHosts("refuse", (), models)
    assert (called_by(module, there.build_telemetry_error, host) is not None) is told
    assert len(there.warnings) == told


@pytest.mark.parametrize(
    ("host", "module", "what"),
    [
        ("cloud.langfuse.com", "langfuse.client", " (the tracing of Langfuse)"),
        ("cloud.langfuse.com", "mine", None),
        ("o1.ingest.sentry.io", "mine", " (the reports to Sentry)"),
        ("app.posthog.com", "mine", " (the telemetry of posthog)"),
        ("shop.test", "langfuse.client", None),
    ],
)
@pytest.mark.parametrize("way", ["refuse", "unreachable"])
def test_the_telemetry_of_a_package_is_named(way: str, host: str, module: str, what: str | None) -> None:
    there = OutsideHosts(way, ())
    if what is None and way == "refuse":
        with pytest.raises(Unsupported, match=f"the host {host}"):
            called_by(module, there.build_name_error, host)
        return
    called_by(module, there.build_name_error, host)
    assert there.warnings == [f"{host}{what or ''} could not be reached: no service has this name"]
