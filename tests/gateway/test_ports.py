"""A route may have a port of its own, at which a program finds the service's own paths."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.core.events import CallStarted, FaultWitnessed
from chaoslab.seams.gateway.routes import parse_routes
from chaoslab.surfaces.gateway import parse_ports
from tests import warm
from tests.gateway.parts import history, standing
from tests.gateway.test_exec import exec_
from tests.waiting import HUNG_S


def test_both_ports_lead_to_one_service_whose_requests_are_numbered_together(crm: str, tmp_path: Path) -> None:
    fault = {"fault": "tool_error", "target": "crm", "status": 503, "calls": [2]}
    with standing(tmp_path, [crm, "other=http://127.0.0.1:1"], fault, ports={"crm": 0}) as running:
        own = running.make_route_url("crm")
        assert own != running.address
        assert running.make_route_url("other") == f"{running.address}/other"
        assert httpx.get(f"{own}/crm/price?page=2").json()["path"] == "/crm/price?page=2"
        assert httpx.get(f"{running.address}/crm/price").status_code == 503
        assert httpx.get(f"{own}/other/x").json()["path"] == "/other/x"
        assert httpx.get(f"{own}/x", headers={"Host": "evil.example"}).status_code == 403
    assert [event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)] == ["tool_error"]
    numbered = [(event.at.request, event.tool) for _, event in history(tmp_path).find_events(CallStarted)]
    assert numbered == [(1, "GET /crm/price"), (2, "GET /price"), (3, "GET /other/x")]


def test_a_route_that_no_fault_hits_has_one_too(crm: str, tmp_path: Path) -> None:
    with (
        standing(tmp_path, [crm], ports={"crm": 0}) as running,
        httpx.Client(base_url=running.make_route_url("crm")) as client,
    ):
        assert [client.get("/crm/x").json()["path"] for _ in range(3)] == ["/crm/x"] * 3


def test_the_commands_take_it(crm: str, tmp_path: Path, capfd: Any) -> None:
    script = 'import os, urllib.request as u; print(u.urlopen(os.environ["CRM_URL"] + "/price").read().decode()[:17])'
    command = [sys.executable, "-c", script]
    assert exec_(tmp_path, crm, command, "--port-of", "crm=0") == 4  # nothing was stated
    assert capfd.readouterr().out.startswith('{"path": "/price"')


def test_the_gateway_says_where_it_listens_and_ends_with_its_signal(crm: str, tmp_path: Path) -> None:
    command = [warm.python(), "-m", "chaoslab", "gateway", "--port", "0", "--port-of", "crm=0"]
    options = ["--route", crm, "--logs", str(tmp_path)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("crm: http://127.0.0.1:")
    assert said.endswith(f" leads to {crm.removeprefix('crm=')}\n")
    assert process.stdout.readline().startswith("ready: gateway on http://127.0.0.1:")
    assert httpx.get(said.split()[1] + "/price").json()["path"] == "/price"
    process.send_signal(signal.SIGTERM)
    assert process.wait(HUNG_S) == 0
    process.stdout.close()


def test_a_gateway_whose_fault_meets_nobody_proves_nothing(crm: str, tmp_path: Path) -> None:
    command = [warm.python(), "-m", "chaoslab", "gateway", "--port", "0", "--fault", "lost_reply:crm"]
    options = ["--route", crm, "--logs", str(tmp_path)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    while not process.stdout.readline().startswith("ready: "):
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(HUNG_S) == 4
    assert process.stderr.read() == "chaoslab: 'lost_reply on crm' hit nothing: nothing called crm\n"
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (["crm"], "--port-of crm should be a route and a port from 0 to 65535, as in crm=9100"),
        (["crm=x"], "--port-of crm=x should be a route and a port"),
        (["crm=65536"], "--port-of crm=65536 should be a route and a port"),
        (["=9100"], "--port-of =9100 should be a route and a port"),
        (["cmr=9100"], "--port-of cmr=9100 names no route: did you mean 'crm'?"),
        (["crm=9100", "crm=9101"], "--port-of crm=9101 gives the route crm a second port: it has 9100"),
    ],
)
def test_a_mistake_is_one_line(texts: list[str], line: str) -> None:
    with pytest.raises((ValueError, LookupError)) as told:
        parse_ports(texts, parse_routes(["crm=http://a"]))
    assert str(told.value.args[0]).startswith(line)


def test_a_port_in_use_is_said_with_its_option(crm: str, tmp_path: Path, capfd: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert exec_(tmp_path, crm, [sys.executable, "-c", "print(1)"], "--port-of", f"crm={port}") == 2
    said = f"port {port}: Address already in use: choose another port in --port-of crm=\n"
    assert capfd.readouterr() == ("", said)
