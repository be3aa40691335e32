"""The span of the agent's own that sent a request, as the header `traceparent` tells it (W3C Trace Context)."""

import re

HEADER = "traceparent"
# W3C Trace Context: the version ff and ids of zeros alone name nothing.
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def validate_span_header(header: str) -> str | None:
    """The header's text; None if there is none, or it names no span."""
    return header if header and _FORM.fullmatch(header) else None
