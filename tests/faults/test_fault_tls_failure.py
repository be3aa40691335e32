"""The certificate has expired: every client that checks it ends the handshake."""

from __future__ import annotations

import asyncio
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.faults.network.tls_failure import TlsFailure
from tests.faults.fault_parts import Target, meet, saw

URL = "https://shop/orders"


def test_the_call_never_leaves() -> None:
    met = meet(TlsFailure(), target := Target())
    assert (met.error, target.sent, met.injected) == ("untrusted", [], True)
    assert met.evidence == "the certificate was not trusted"


def test_only_a_certificate_that_was_not_trusted_is_its_witness() -> None:
    for other in (None, "timed_out", "refused", "garbled"):
        assert TlsFailure().witnessed(saw(error=other)) is None


def shop(request: Any) -> dict[str, Any]:
    return {"path": request.path}


def by_urllib() -> int:
    with urllib.request.urlopen(URL, timeout=5) as reply:
        return int(reply.status)


def by_httpx_async() -> int:
    async def ask() -> int:
        async with httpx.AsyncClient(timeout=5) as client:
            return (await client.get(URL)).status_code

    return asyncio.run(ask())


def by_aiohttp() -> int:
    async def ask() -> int:
        async with aiohttp.ClientSession() as session, session.get(URL) as reply:
            return reply.status

    return asyncio.run(ask())


CLIENTS: dict[str, tuple[Callable[[], int], type[Exception]]] = {
    "urllib": (by_urllib, urllib.error.URLError),
    "requests": (lambda: requests.get(URL, timeout=5).status_code, requests.exceptions.SSLError),
    "httpx": (lambda: httpx.get(URL, timeout=5).status_code, httpx.ConnectError),
    "httpx, async": (by_httpx_async, httpx.ConnectError),
    "aiohttp": (by_aiohttp, aiohttp.ClientConnectorCertificateError),
}


@pytest.mark.parametrize(("client", "error"), CLIENTS.values(), ids=CLIENTS)
def test_every_client_meets_its_own_error_once(client: Callable[[], int], error: type[Exception]) -> None:
    def agent(_: str) -> list[Any]:
        met: list[Any] = []
        for _again in range(2):
            try:
                met.append(client())
            except Exception as caught:  # noqa: BLE001 - it is what is looked at
                met.append((type(caught) is error, "certificate has expired" in repr(caught) + str(caught)))
        return met

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("tls_failure", "shop", calls=[1])])
    assert trial.answer == [(True, True), 200]
    assert [e.error for _, e in trial.history.of(CallFinished)][:2] == ["untrusted", None]
    assert [e.evidence for _, e in trial.history.of(FaultWitnessed)] == ["the certificate was not trusted"]


@pytest.mark.parametrize("url", ["http://shop/orders", URL])
def test_a_client_that_checks_no_certificate_does_not_meet_it(url: str) -> None:
    def agent(_: str) -> int:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return httpx.get(url, timeout=5, verify=context).status_code

    fault = lab.inject("tls_failure", "shop", chance=1.0)
    with pytest.warns(lab.NothingHit, match="'tls_failure on shop' hit nothing"):
        trial = lab.run(agent, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == 200
    assert not list(trial.history.of(FaultWitnessed))
