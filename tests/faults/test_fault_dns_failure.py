"""The name is not found: the call never leaves."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.config.scenario import from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.faults.network.dns_failure import DnsFailure
from tests.faults.fault_parts import Target, meet, saw


def test_the_call_never_leaves() -> None:
    met = meet(DnsFailure(), target := Target())
    assert (met.error, target.sent, target.now_s, met.injected) == ("unresolved", [], 0.0, True)
    assert met.evidence == "the name was not found"


def test_only_a_name_that_was_not_found_is_its_witness() -> None:
    for other in (None, "timed_out", "refused", "untrusted"):
        assert DnsFailure().witnessed(saw(error=other)) is None


def shop(request: Any) -> dict[str, Any]:
    return {"path": request.path}


def by_name(_: str) -> list[str]:
    met = []
    for _again in range(3):
        try:
            met.append(str(requests.get("http://shop/orders", timeout=5).status_code))
        except requests.ConnectionError as error:
            met.append("Name or service not known" if "Name or service not known" in str(error) else str(error))
    return met


def by_address(_: str) -> int:
    host = socket.gethostbyname("shop")
    return httpx.get(f"http://{host}/orders", timeout=5).status_code


def test_a_name_is_not_found_and_the_next_lookup_finds_it() -> None:
    trial = lab.run(by_name, "go", services={"shop": shop}, faults=[lab.inject("dns_failure", "shop", calls=[1])])
    assert trial.answer == ["Name or service not known", "200", "200"]
    ends = [(e.request, e.attempt, e.error) for _, e in trial.history.of(CallFinished)]
    assert ends[:2] == [(1, 1, "unresolved"), (1, 2, None)]
    assert [e.evidence for _, e in trial.history.of(FaultWitnessed)] == ["the name was not found"]


def test_a_client_that_asks_by_address_looks_up_nothing() -> None:
    fault = lab.inject("dns_failure", "shop", chance=1.0)
    with pytest.warns(lab.NothingHit, match="'dns_failure on shop' hit nothing"):
        trial = lab.run(by_address, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == 200
    assert not list(trial.history.of(FaultWitnessed))


def test_an_address_behind_a_kept_connection_is_closed_so_that_its_client_looks_up_again() -> None:
    def agent(_: str) -> list[str]:
        met = []
        with httpx.Client(timeout=5) as client:
            for _again in range(3):
                try:
                    met.append(str(client.get("http://shop/orders").status_code))
                except httpx.ConnectError as error:
                    met.append(str(error))
        return met

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("dns_failure", "shop", calls=[2])])
    assert trial.answer == ["200", "[Errno -2] Name or service not known", "200"]


@pytest.mark.parametrize(("setting", "line"), [
    ({"TOXICS": "dns_failure:1"}, "TOXICS names 'dns_failure', a fault of the layer tool: name it in FAULTS"),
    ({"FAULTS": "tls_failure:0.1"}, "FAULTS names 'tls_failure', and the tools speak no TLS: name tls_failure@model"),
])  # fmt: skip
def test_a_setting_that_cannot_carry_it_says_which_can(setting: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError) as refused:
        from_settings(Settings().override(setting))
    assert refused.value.args[0] == line


def test_the_lab_takes_it_among_the_faults() -> None:
    plan = from_settings(Settings().override({"FAULTS": "dns_failure@search:0.1,tls_failure@model:0.1"}))
    assert {"dns_failure@search", "tls_failure@model"} <= {each.name for each in plan.injections}
