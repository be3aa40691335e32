"""Checks that the packages which a command needs beside the core are installed."""

import json
import sys
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

MODULES = {
    "tools": ("flask", "waitress"),
    "agent": ("langchain", "langchain_groq"),
    "charts": ("matplotlib", "pandas"),
    "mcp": ("mcp", "httpx2"),
    "compose": ("docker",),
    "ui": ("starlette", "uvicorn", "sse_starlette"),
    "cluster": ("distributed",),
    "otel": ("opentelemetry.exporter.otlp.proto.http", "opentelemetry.sdk"),
}
"""By extra, the modules of it that the lab itself imports."""

CORE = (
    "aiohappyeyeballs",
    "aiohttp",
    "certifi",
    "croniter",
    "greenlet",
    "h11",
    "httpcore",
    "httpx",
    "jinja2",
    "msgspec",
    "pydantic",
    "requests",
    "rich",
    "time_machine",
    "toxiproxy",
    "trustme",
    "urllib3",
    "yaml",
)
"""The modules that everything needs. A Python without them is another than the lab's."""


class Incomplete(ValueError):
    """A command needs a module that is not installed. Its text names the module and the remedy."""


def require_extras(user: str, *extras: str, install: str = "") -> None:
    """Checks that these extras are installed. `install`: another extra that brings them all. Raises Incomplete: one is
    not."""
    for extra in extras:
        for module in MODULES[extra]:
            require_module(user, module, install or extra)


def require_module(user: str, module: str, extra: str) -> None:
    """Checks that this module, which `extra` brings, is installed. Raises Incomplete: it is not."""
    # Looked for and not imported, which may take most of a second.
    try:
        known = find_spec(module)
    except ModuleNotFoundError:  # a package above it is missing
        known = None
    if known is None:
        raise Incomplete(f"{user} needs {module}, which is not installed: {build_install_command(extra)}")


def build_install_command(extra: str) -> str:
    """The command that installs an extra beside this chaoslab, from where it came: a clone, a repository or an
    index."""
    origin = read_install_origin()
    url = str((origin or {}).get("url", ""))
    if url.startswith("file:"):
        editable = "-e " if (origin or {}).get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    if origin and "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"pip install 'chaoslab[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    return f"pip install 'chaoslab[{extra}]'"


def read_install_origin() -> dict[str, Any] | None:
    """The origin of the installed chaoslab, as pip notes it (PEP 610); empty if an index has it, None if it is not
    installed."""
    from importlib.metadata import distributions

    # In the clone's own folder a build has left metadata, with a list of sources and no origin.
    installed = [package for package in distributions(name="chaoslab") if package.read_text("SOURCES.txt") is None]
    try:
        origin: dict[str, Any] = json.loads(installed[0].read_text("direct_url.json") or "{}")
    except (IndexError, ValueError):
        return None
    return origin


def make_missing_core_error(error: ModuleNotFoundError) -> Incomplete:
    """The error about a module of the core, for a person who started the lab with another Python. Any other error is
    raised again."""
    if error.name not in CORE:
        raise error
    return Incomplete(
        f"this Python ({sys.executable}) lacks {error.name}: use the one in .venv/bin, which `make lab` makes, or "
        "docker compose run --rm charts chaoslab …"
    )
