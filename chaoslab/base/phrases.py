"""The reason phrase of an HTTP status, the same under every version of Python, so that the same seed gives the same
bytes; and a noun's article."""

from http import HTTPStatus

OLDER = {
    413: "Request Entity Too Large",
    414: "Request URI Too Long",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}
"""Python renamed these in 3.13. Go, which the real Toxiproxy is written in, has the older words, as RFC 7231 and
RFC 4918 have them."""
_PHRASES = {status.value: status.phrase for status in HTTPStatus} | OLDER


def add_article(noun: str) -> str:
    """The noun with its article: "a str", "an int"."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def get_status_phrase(status: int, unknown: str = "Unknown") -> str:
    """The words for a status; `unknown` for one that is not registered."""
    return _PHRASES.get(status, unknown)
