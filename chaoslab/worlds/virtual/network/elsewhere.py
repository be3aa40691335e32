"""Hosts that are no service of the trial: refused, which ends it, or unreachable, as when a name is not found.

Some SDKs report to their makers by themselves, and go on if they cannot. Those hosts are unreachable in any case, with
a warning on the trial. The table says which SDK asks which host: another caller of the same host is refused. A report
to a host that is a model in the trial is no request to the model: no fault may hit it, and no number be its.
"""

import errno
import os
import socket
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from types import FrameType

from chaoslab.worlds.virtual.machine.context import Unsupported

WAYS = ("refuse", "unreachable")

TELEMETRY: dict[str, tuple[str, tuple[str, ...]]] = {
    # The OpenAI SDK's own requests go to this host too, so the module that asks decides.
    "api.openai.com": ("the tracing of openai-agents", ("agents.tracing.processors",)),
    "raw.githubusercontent.com": ("a list of models and prices", ("litellm", "dspy")),
    "os-api.agno.com": ("the telemetry of agno", ()),
    "telemetry.crewai.com": ("the telemetry of crewai", ()),
    "app.crewai.com": ("the tracing of crewai", ("crewai",)),
    "pypi.org": ("the search of crewai for a newer version", ("crewai", "crewai_cli")),
    "api.smith.langchain.com": ("the tracing of LangSmith", ("langsmith",)),
    "us.i.posthog.com": ("the telemetry of posthog", ()),
    "eu.i.posthog.com": ("the telemetry of posthog", ()),
    "us-api.i.posthog.com": ("the telemetry of posthog", ()),
    "app.posthog.com": ("the telemetry of posthog", ()),
    "telemetry.huggingface.co": ("the telemetry of huggingface_hub", ()),
    "cloud.langfuse.com": ("the tracing of Langfuse", ("langfuse", "opentelemetry")),
    "us.cloud.langfuse.com": ("the tracing of Langfuse", ("langfuse", "opentelemetry")),
    "openaipublic.blob.core.windows.net": ("the tables of tiktoken", ("tiktoken", "tiktoken_ext")),
    "huggingface.co": ("files of the Hugging Face Hub", ("huggingface_hub", "transformers", "tokenizers")),
}
"""Host → a description of what an SDK sends or asks there, and the packages that may; none: everybody."""
CACHES = {
    "openaipublic.blob.core.windows.net": (
        "set TIKTOKEN_CACHE_DIR to a folder and load the encoding once before, as in "
        "tiktoken.get_encoding('o200k_base')"
    ),
    "huggingface.co": "load them once before into the folder of HF_HOME, and set HF_HUB_OFFLINE=1",
}
"""Host → the way to do without it: the variable to set, and the cache to fill before the trial."""
EXPORT_PORTS = (4317, 4318)
# OTLP over gRPC and over HTTP.
"""The ports on this computer to which OpenTelemetry exports."""
SENTRY = ".ingest.sentry.io", ".ingest.us.sentry.io", ".ingest.de.sentry.io"
"""The ends of the hosts of Sentry, which has one for each customer."""


def _suggest_fake(address: str) -> str:
    return (
        f"pass a fake with services={{'{address}': …}}, in files services: {{{address}: module:name}}; a function that "
        "returns the answer is one"
    )


class OutsideHosts:
    """The answer of one trial to hosts outside of it. `way`: refuse or unreachable. `services`: the names that there
    are, for a hint; `models`: the hosts of those that speak a model's API."""

    def __init__(self, mode: str, services: Iterable[str], models: Iterable[str] = ()) -> None:
        self._unreachable, self._services, self._models = mode == "unreachable", list(services), set(models)
        # One line a host, however often it is asked.
        self._hosts: dict[str, str] = {}

    @property
    def warnings(self) -> list[str]:
        """A line for each host that could not be reached."""
        return list(self._hosts.values())

    def build_telemetry_error(self, host: str) -> OSError | None:
        """The error for a report of an SDK's to the host of a model; None for any other caller."""
        telemetry = TELEMETRY.get(host)
        if telemetry is None or host not in self._models or not _is_called_from(telemetry[1]):
            return None
        self._hosts.setdefault(host, f"{host} was not reached by {telemetry[0]}: that is no request to the model")
        return _make_unknown_host_error()

    def build_name_error(self, host: str) -> OSError:
        """The error for a name that no service has. Raises Unsupported: such hosts are refused."""
        if not self._is_unreachable(host):
            from chaoslab.model.formats import find_provider  # which most trials never need here

            # A host of the same provider as a service's is most likely meant for that service.
            near, provider = get_close_matches(host, self._services, n=1), find_provider(host)
            hint = f"did you mean the service '{near[0]}'? Else " if near else ""
            if provider is not None and (same := [name for name in self._services if find_provider(name) is provider]):
                hint = f"it is {provider.name}'s, as '{same[0]}' is: name that service '{host}'. Else "
            raise Unsupported(f"the host {host}", f"{hint}{_suggest_fake(host)}")
        return _make_unknown_host_error(CACHES.get(host, ""))

    def build_address_error(self, host: str, port: int) -> OSError:
        """The error for an address that leads out of the network. Raises Unsupported: such addresses are refused."""
        if not self._unreachable:
            raise Unsupported(f"a connection to {host}:{port}", _suggest_fake(f"{host}:{port}"))
        # For the warning that it leaves.
        self._is_unreachable(host)
        return OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    def build_no_listener_error(self, host: str, port: int) -> Unsupported | None:
        """The error for an address of this computer at which nobody will have listened; None if that may be so."""
        if self._unreachable:
            self._hosts.setdefault(f"{host}:{port}", f"{host}:{port} could not be reached: no service has this address")
            return None
        # An exporter that finds no collector goes on, as in production.
        if port in EXPORT_PORTS and _is_called_from(("opentelemetry",)):
            return None
        return Unsupported(f"a connection to {host}:{port}", _suggest_fake(f"{host}:{port}"))

    def _is_unreachable(self, host: str) -> bool:
        """True if the host is unreachable rather than refused. Keeps a warning of it."""
        telemetry = _REPORTS if host.endswith(SENTRY) else TELEMETRY.get(host)
        sender = f" ({telemetry[0]})" if telemetry is not None and _is_called_from(telemetry[1]) else ""
        if sender or self._unreachable:
            help_ = f"; {CACHES[host]}" if host in CACHES else ""
            self._hosts.setdefault(host, f"{host}{sender} could not be reached: no service has this name{help_}")
        return bool(sender) or self._unreachable


_REPORTS: tuple[str, tuple[str, ...]] = ("the reports to Sentry", ())


def _make_unknown_host_error(help_: str = "") -> OSError:
    message = "Name or service not known"
    # EAI_NONAME, as an unknown name is on Linux; SDKs go on after it.
    return socket.gaierror(socket.EAI_NONAME, f"{message}: in a trial, {help_}" if help_ else message)


def _is_called_from(packages: tuple[str, ...]) -> bool:
    """True if a module of one of the packages is among the callers, or if there are no packages."""
    # Of all callers, since an SDK asks through its HTTP library.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and packages:
        if _is_module_in_packages(frame.f_globals.get("__name__", ""), packages):
            return True
        frame = frame.f_back
    return not packages


# Asked for each frame of a stack, always of the same few modules.
@lru_cache(1024)
def _is_module_in_packages(module: object, packages: tuple[str, ...]) -> bool:
    """True if a module of this name is in one of the packages."""
    return f"{module}.".startswith(tuple(f"{package}." for package in packages))
