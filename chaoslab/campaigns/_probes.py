"""Probes of the steady state: a look at a service, a database, a command or a measure, against a bound."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chaoslab.base.clock import Clock, system
from chaoslab.base.jsonable import to_one_line
from chaoslab.campaigns.bounds import Bound

if TYPE_CHECKING:
    from chaoslab.campaigns._spec import ProbeSpec

WHY = 200
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


class Unreached(Exception):
    """A probe has no value. The message is the reason, in one line."""


def run_probe(
    probe: ProbeSpec,
    bound: Bound,
    *,
    folder: Path,
    measured: Callable[[str], float | None],
    clock: Clock = system,
    gateway_urls: Mapping[str, str] | None = None,
) -> tuple[float | None, str]:
    """The value of a probe if it has one, and the reason for which it does not hold, in one line; empty if it does.
    `measured`: the campaign's measures; one that has no value yet holds. Paths and commands are of `folder`.
    `gateway_urls`: the addresses at a gateway by those of the services, which are asked through it."""
    if probe.http is not None:
        probe = probe.model_copy(update={"http": find_gateway_url(probe.http, gateway_urls or {})})
    try:
        value = _read_probe_value(probe, folder, measured, clock)
    except Unreached as error:
        return None, f"{probe.name}: {error}"
    if value is None or bound.is_met_by(value):
        return value, ""
    return value, f"{probe.name}: {value:g}, should be {bound}"


def _read_probe_value(
    probe: ProbeSpec, folder: Path, measured: Callable[[str], float | None], clock: Clock
) -> float | None:
    if probe.measure is not None:
        return measured(probe.measure)
    if probe.http is not None:
        return _probe_http(probe, probe.http, clock)
    if probe.sql is not None:
        return _probe_sql(probe, folder / probe.sql)
    return _probe_command(probe, folder)


def find_gateway_url(address: str, gateway_urls: Mapping[str, str]) -> str:
    """The address by which a gateway is asked for what is at this one; itself if none of its services is there."""
    from chaoslab.seams.gateway.routes import parse_route

    routes = [(parse_route(f"service={service_url}"), url) for service_url, url in gateway_urls.items()]
    # The longest path first, since a service may be below another one.
    for route, url in sorted(routes, key=lambda entry: len(entry[0].base), reverse=True):
        if (path := route.find_path(address)) is not None:
            user, at, _ = urlsplit(address).netloc.rpartition("@")
            return url.replace("://", f"://{user}{at}", 1) + path
    return address


def _probe_http(probe: ProbeSpec, address: str, clock: Clock) -> float:
    import httpx

    began_s = clock.monotonic()
    try:
        reply = httpx.get(address, timeout=probe.within)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreached(
            f"{address} cannot be reached: {to_one_line(str(error) or type(error).__name__, WHY)}"
        ) from None
    return clock.monotonic() - began_s if probe.of == "seconds" else float(reply.status_code)


def _probe_sql(probe: ProbeSpec, file: Path) -> float:
    try:
        # Read only: a probe changes nothing, and makes no file that is not there.
        database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=probe.within)
        try:
            row = database.execute(str(probe.query)).fetchone()
        finally:
            database.close()
    # Warning: Python 3.11 raises it where the query is several statements.
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise Unreached(f"{file} cannot be asked: {to_one_line(str(error), WHY)}") from None
    try:
        return float(row[0])
    except (TypeError, ValueError, IndexError):
        raise Unreached(f"the query gives {to_one_line(str(row), WHY)}, and no number") from None


def _probe_command(probe: ProbeSpec, folder: Path) -> float:
    command = probe.command or []
    try:
        process = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=probe.within, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unreached(f"{command[0]} did not end within {probe.within:g} s") from None
    except OSError as error:
        raise Unreached(f"{command[0]} cannot be run: {error.strerror}") from None
    if probe.of != "output":
        return float(process.returncode)
    match = _NUMBER.search(process.stdout)
    if process.returncode or match is None:
        raise Unreached(f"{command[0]} gives no number (exit code {process.returncode})")
    return float(match[0])
