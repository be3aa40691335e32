"""A collector that takes OTLP over HTTP, and what the variables of OpenTelemetry say of it."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import msgspec

from chaoslab import __version__
from chaoslab.base.clock import Clock, system

ENDPOINT, HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"
SERVICE = "OTEL_SERVICE_NAME"
TRACES, METRICS = "/v1/traces", "/v1/metrics"
TIMEOUT_S = 10.0
WAITS_S = (0.2, 1.0)
"""Seconds before the second and the third try, once a collector has answered that it is busy."""
BUSY = frozenset({429, 502, 503, 504})
"""The statuses after which a request may be sent again, by OTLP's specification."""
SAID = 200


def parse_endpoint(text: str) -> str:
    """The base address of a collector, without the path of a signal. Raises ValueError: it is none."""
    try:
        parts = urlsplit(text.strip())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise ValueError(
            f"{text[:60]!r} should be a collector's address for OTLP over HTTP, as in http://localhost:4318"
        )
    return text.strip().rstrip("/").removesuffix(TRACES).removesuffix(METRICS)


def find_endpoint(environment: Mapping[str, str]) -> str:
    """The collector that the environment names; empty if it names none, or switches OpenTelemetry off. Raises
    ValueError: it is no address."""
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    text = "" if is_disabled else environment.get(ENDPOINT, "").strip()
    try:
        return parse_endpoint(text) if text else ""
    except ValueError as error:
        raise ValueError(f"{ENDPOINT}: {error}") from None


def parse_headers(text: str) -> dict[str, str]:
    """The headers of a list such as `api-key=k,tenant=a%20b`. Raises ValueError: it is no such list. Its text may hold
    keys, so the error does not show it."""
    header_fields: dict[str, str] = {}
    for number, entry in enumerate(text.split(","), 1):
        name, equal, value = (unquote(piece.strip()) for piece in entry.partition("="))
        name_and_value = f"{name}{value}"
        if entry.strip() and not (equal and name and name_and_value.isprintable() and name_and_value.isascii()):
            raise ValueError(f"{HEADERS}: entry {number} should be name=value, in ASCII")
        if entry.strip():
            header_fields[name] = value
    return header_fields


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass
class Collector:
    """Sends batches of spans and metrics. One that cannot be reached is told of once, by `tell`; then each batch is
    tried once. `lost`: the batches that it did not take."""

    base: str
    sent_with: Mapping[str, str] = field(default_factory=dict, repr=False)
    service: str = "chaoslab"
    clock: Clock = system
    tell: Callable[[str], object] = _print_line
    lost: int = 0

    def __post_init__(self) -> None:
        request_headers = {
            "Content-Type": "application/json",
            "User-Agent": f"chaoslab/{__version__}",
            **self.sent_with,
        }
        self._client = httpx.Client(headers=request_headers, timeout=TIMEOUT_S)

    @classmethod
    def build(cls, base: str, environment: Mapping[str, str]) -> "Collector":
        """The collector at an address, with the headers and the service's name of the environment. Raises ValueError:
        the headers cannot be read."""
        return cls(
            base, parse_headers(environment.get(HEADERS, "")), environment.get(SERVICE, "").strip() or "chaoslab"
        )

    def send(self, path: str, body: Any) -> bool:
        """Sends a batch. `path`: of its signal. Returns False if it was not taken."""
        data = msgspec.json.encode(body)
        reason = self._send_once(path, data)
        for wait_s in WAITS_S if reason == "busy" and not self.lost else ():
            self.clock.sleep(wait_s)
            reason = self._send_once(path, data)
            if reason != "busy":
                break
        if reason:
            if not self.lost:
                self.tell(f"note: the collector at {self.base} {_describe_refusal(reason)}; the run goes on without it")
            self.lost += 1
        return not reason

    def _send_once(self, path: str, data: bytes) -> str:
        """Sends once. Returns the reason why it was not taken; empty if it was."""
        try:
            answer = self._client.post(self.base + path, content=data)
        except httpx.HTTPError as error:
            return f"cannot be reached ({' '.join(str(error).split())[:SAID] or type(error).__name__})"
        if answer.is_success:
            self._report_partial(answer)
            return ""
        return "busy" if answer.status_code in BUSY else f"answers {answer.status_code} to POST {path}"

    def _report_partial(self, answer: httpx.Response) -> None:
        """Tells, once, of what a collector that took a batch has refused of it."""
        try:
            partial = (answer.json() or {}).get("partialSuccess") or {}
            refused = int(partial.get("rejectedSpans") or partial.get("rejectedDataPoints") or 0)
        except (ValueError, AttributeError, TypeError, UnicodeError):
            return
        if refused and not self.lost:
            self.tell(
                f"note: the collector refused {refused} of a batch: {str(partial.get('errorMessage', ''))[:SAID]}"
            )
            self.lost += 1

    def close(self) -> None:
        self._client.close()


def _describe_refusal(reason: str) -> str:
    return "is busy" if reason == "busy" else reason
