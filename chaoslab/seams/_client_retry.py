"""The tries of a request that its client counts itself. The SDKs of OpenAI, Anthropic and Groq send their count with
every request: 0 with the first, 1 with their first retry. So a further attempt that says 0 was made by the code around
the SDK."""

HEADER = "x-stainless-retry-count"
# int() refuses texts of more than 4300 digits by an error, and no client counts so far.
_DIGITS_MAX = 9


def parse_retry_count(header: str) -> int | None:
    """The count in the header's text; None if it has none."""
    # `isdigit` alone is true for signs such as a raised two, which int() refuses.
    return int(header) if header.isascii() and header.isdigit() and len(header) <= _DIGITS_MAX else None
