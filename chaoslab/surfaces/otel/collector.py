"""The collector that the variables of OpenTelemetry name. It imports nothing of OpenTelemetry's."""

from collections.abc import Mapping
from urllib.parse import urlsplit

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES, METRICS = "/v1/traces", "/v1/metrics"


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
