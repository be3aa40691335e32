"""Requests that a web page has a browser send to a server of the lab's: it may read and change nothing there."""

import re
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

_AT_HOME = re.compile(r"\.(?:localhost|local|internal|lan|test|home\.arpa)\.?$", re.IGNORECASE)
"""The ends of names that no public domain has. One without a dot, as of a container, is none either."""


@lru_cache(256)
def find_refusal_reason(host: str | None, origin: str | None) -> str:
    """The reason to refuse a request with these headers, in two words; empty if it may pass. An origin is another
    server's page. A host that anybody could own may be a page that had its name lead here."""
    if origin is not None and origin.partition("://")[2].lower() != (host or "").lower():
        return "origin not allowed"
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = host or ""
    return "" if "." not in name or _AT_HOME.search(name) or _is_address(name) else "host not allowed"


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
