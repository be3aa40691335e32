"""A target behind TLS keeps it: the connection goes to the proxy, name and certificate stay the target's own."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import trustme

from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.seams.http.seam import HttpSeam
from tests.seams.lab_parts import SERVERS, Bench, Heard, Site, bench, said, site
from tests.waiting import HUNG_S

NAME = "api.groq.test"
KEY = "gsk_top-secret-0123456789"

Story = Callable[[Bench], Awaitable[None]]


def served(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    authority.configure_trust(context)
    return context


def test_the_trusted_certificates_are_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def seam() -> HttpSeam:
        unused = cast(Any, None)
        return HttpSeam(plan=Plan(1), targets={}, lanes=unused, log=unused, clock=system, price=unused)

    first = seam()
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: pytest.fail("they are read again"))
    assert seam().tls is first.tls
    assert first.tls.verify_mode is ssl.CERT_REQUIRED


def completion(_: Heard) -> Reply:
    message = {"role": "assistant", "content": "Hello from afar."}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return said(
        {"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    )


def poisoned(fault: str, **params: object) -> Plan:
    return Plan(1, (Injection("model_wire", (Choice(fault, 1.0, params),), ("model",)),))


def told(
    folder: Path, story: Story, *, plan: Plan, server_of: str = NAME, signed_by: trustme.CA | None = None,
    url: str = f"https://{NAME}", server: str = "embedded", deadline_s: float = HUNG_S,
) -> Site:  # fmt: skip
    """Has the story happen between a caller that trusts one authority and a server that may have another."""
    ours = trustme.CA()

    async def run(toxiproxy: str, model: Site) -> None:
        async with bench(
            folder, toxiproxy, plan, {"model": model.address}, deadline_s=deadline_s, urls={"model": url},
            tls=trusting(ours),
        ) as lab:  # fmt: skip
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await story(lab)
            lab.history()
            assert lab.lanes_left() == []
            assert KEY not in lab.text()

    with SERVERS[server]() as toxiproxy, site(completion, tls=served(signed_by or ours, server_of)) as model:
        asyncio.run(run(toxiproxy, model))
        return model


async def ask(lab: Bench) -> httpx.Response:
    headers = {"Authorization": f"Bearer {KEY}"}
    return await lab.client.post(f"https://{NAME}/v1/chat/completions", json={"messages": []}, headers=headers)


def finished(lab: Bench) -> list[events.CallFinished]:
    return [event for _, event in lab.history().find_events(events.CallFinished)]


def test_groqs_own_sdk_reaches_its_model_through_the_proxy(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        from langchain_groq import ChatGroq
        from pydantic import SecretStr

        model = ChatGroq(model="m", api_key=SecretStr(KEY), base_url=f"https://{NAME}", http_async_client=lab.client)
        answer = await model.ainvoke("Hello?")
        assert answer.text == "Hello from afar."
        (call,) = finished(lab)
        assert (call.target, call.tool, call.via, call.ok) == ("model", "chat", "proxy", True)

    heard = told(tmp_path, story, plan=Plan(1))
    assert heard.names == [NAME]
    assert heard.heard[0].headers["host"] == NAME
    assert heard.heard[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("server", SERVERS)
def test_a_lane_keeps_the_name_too(tmp_path: Path, server: str) -> None:
    async def story(lab: Bench) -> None:
        assert (await ask(lab)).status_code == 200
        (call,) = finished(lab)
        assert call.via == "lane"
        assert call.duration_s >= 0.1
        (witnessed,) = [event.fault for _, event in lab.history().find_events(events.FaultWitnessed)]
        assert witnessed == "latency"

    heard = told(tmp_path, story, plan=poisoned("latency", delay_s=0.1), server=server)
    assert heard.names == [NAME]
    assert heard.heard[0].headers["host"] == NAME


@pytest.mark.parametrize(
    ("signed_for", "other_authority", "complaint"),
    [("api.other.test", False, "Hostname mismatch"), (NAME, True, "unable to get local issuer")],
)
@pytest.mark.parametrize("plan", [Plan(1), poisoned("latency", delay_s=0.01)])
def test_a_wrong_certificate_is_refused(
    tmp_path: Path, signed_for: str, other_authority: bool, complaint: str, plan: Plan
) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(httpx.ConnectError, match=complaint):
            await ask(lab)
        (call,) = finished(lab)
        assert call.error == "untrusted"

    stranger = trustme.CA() if other_authority else None
    assert told(tmp_path, story, plan=plan, server_of=signed_for, signed_by=stranger).heard == []


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("fault", "params", "errors"),
    [
        ("timeout", {"stream": "downstream"}, {"timed_out"}),
        ("timeout", {"stream": "upstream"}, {"timed_out"}),
        ("timeout", {"stream": "downstream", "after_s": 0.05}, {"closed", "reset"}),
        ("timeout", {"stream": "upstream", "after_s": 0.05}, {"closed", "reset"}),
        ("reset_peer", {"stream": "downstream"}, {"reset"}),
        ("reset_peer", {"stream": "upstream"}, {"reset"}),
        ("refused", {}, {"refused"}),
    ],
)
def test_a_toxic_bites_through_tls(
    tmp_path: Path, server: str, fault: str, params: dict[str, object], errors: set[str]
) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(httpx.TransportError):
            await ask(lab)
        (call,) = finished(lab)
        assert call.error in errors
        assert [event.fault for _, event in lab.history().find_events(events.FaultWitnessed)] == [fault]

    deadline_s = 0.6 if errors == {"timed_out"} else HUNG_S
    heard = told(tmp_path, story, plan=poisoned(fault, **params), server=server, deadline_s=deadline_s)
    assert heard.heard == []
