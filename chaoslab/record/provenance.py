"""What a run is made with: digests of our own code, and the versions of what it stands on. Two runs can only be equal if these are."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from chaoslab.core.events import VERSION

OWN = ("agent", "chaoslab", "flask_tools")
ABSENT = "not there"
OTHERS = ("groq", "httpx", "langchain", "langchain-core", "langchain-groq", "langgraph")


def code() -> dict[str, str]:
    """By name: the log's version, Python's, a digest of each of our packages that takes part, and the versions of those that it runs on."""
    found = {"log": str(VERSION), "python": ".".join(platform.python_version_tuple()[:2])}
    found |= {name: _digest(name) for name in OWN}
    return found | {name: _version(name) for name in OTHERS}


def changed(recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    """What differs, in words: "agent has changed", "langchain is 1.4.8, was 1.4.7"."""
    words = []
    for name in sorted(recorded.keys() | now.keys()):
        was, is_now = recorded.get(name, ABSENT), now.get(name, ABSENT)
        if was != is_now and not (name in OWN and was == ABSENT):  # each container holds only what it runs
            words.append(f"{name} has changed" if name in OWN else f"{name} is {is_now}, was {was}")
    return words


def _digest(package: str) -> str:
    """Of all that a package's folder holds in code and data."""
    spec = find_spec(package)
    if spec is None:
        return ABSENT
    found = hashlib.blake2b(digest_size=6)
    for root in spec.submodule_search_locations or ():
        for path in sorted(path for path in Path(root).rglob("*") if path.suffix in (".py", ".json")):
            found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
