"""The levers of a gateway that stands: they need its token, and take effect with the next request."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.cli.gateway import parse_stop_if
from chaoslab.core.events import FaultHeldBack, FaultWitnessed, LabWarning
from tests import warm
from tests.gateway.parts import history, shop
from tests.waiting import HUNG_S


@contextmanager
def command(logs: Path, *options: str) -> Iterator[tuple[Any, httpx.Client, str]]:
    """The command, a client, and the address of its levers."""
    fault = '{"fault": "tool_error", "target": "crm", "status": 503}'
    with shop() as server:
        words = ["gateway", "--port", "0", "--route", f"crm={server.url}", "--fault", fault, "--logs", str(logs)]
        given = [warm.python(), "-m", "chaoslab", *words, *options]
        with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            levers = next(line for line in process.stdout if line.startswith("levers: "))
            address = levers.split()[1].removesuffix("/status")
            try:
                with httpx.Client(base_url=address.partition("/.chaoslab")[0]) as client:
                    yield process, client, address
            finally:
                process.terminate()
                process.wait(HUNG_S)


def statuses(client: httpx.Client, count: int) -> Sequence[int]:
    return [client.get(f"/crm/price/{n}").status_code for n in range(count)]


def test_faults_are_paused_and_one_is_switched_off(tmp_path: Path) -> None:
    with command(tmp_path) as (process, client, levers):
        assert statuses(client, 1) == [503]
        assert client.get(f"{levers}/status").json() == {"paused": False, "ended": "", "faults": 1, "under_way": 0}
        assert client.post(f"{levers}/pause").json()["paused"] is True
        assert statuses(client, 2) == [200, 200]
        client.post(f"{levers}/resume")
        assert statuses(client, 1) == [503]
        listed = client.get(f"{levers}/faults")
        assert listed.status_code == client.get(f"{levers}/status").status_code == 200
        (fault,) = listed.json()["faults"]
        assert (fault["on"], fault["hits"]) == (True, 2)
        assert client.post(f"{levers}/faults/{fault['name']}/off").json()["on"] is False
        assert statuses(client, 2) == [200, 200]
        client.post(f"{levers}/faults/{fault['name']}/on")
        assert statuses(client, 1) == [503]
        assert client.post("/.chaoslab/0/pause").status_code == 401
        assert "is no lever: status, faults" in client.post(f"{levers}/destroy").json()["error"]
        said = client.post(f"{levers}/faults/tool_eror on crm/off").json()["error"]
        assert said == "no fault is called 'tool_eror on crm': did you mean 'tool_error on crm'?"
        client.post(f"{levers}/stop")
        assert process.wait(HUNG_S) == 0
    told = history(tmp_path)
    assert [event.message for _, event in told.find_events(LabWarning)] == [
        "control: paused",
        "control: resumed",
        f"control: '{fault['name']}' is off",
        f"control: '{fault['name']}' is on",
        "control: stopped",
    ]  # fmt: skip
    assert len([*told.find_events(FaultWitnessed)]) == 3


def test_faults_end_where_too_many_requests_fail(tmp_path: Path) -> None:
    with command(tmp_path, "--stop-if", "error_rate > 20% over 5min") as (_, client, _address):
        assert statuses(client, 13) == [503] * 10 + [200] * 3
    why = "no more faults: 100% of the requests failed (--stop-if error_rate > 0.2 over 300 s)"
    assert [event.message for _, event in history(tmp_path).find_events(LabWarning)] == [why]


def test_limits_in_the_command_hold_faults_back(tmp_path: Path) -> None:
    with command(tmp_path, "--limits", '{"faults": 2}') as (_, client, _address):
        assert statuses(client, 4) == [503, 503, 200, 200]
    assert [event.limit for _, event in history(tmp_path).find_events(FaultHeldBack)] == ["faults 2"] * 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("error_rate > 0.2 over 60s", (0.2, 60.0)),
        (" error_rate>20% over 5min", (0.2, 300.0)),
        ("error_rate > 1 over 60s", "a condition that can hold: error_rate is a share from 0 to 1"),
        ("error_rate > 0.2 over 0s", "a condition over a time above 0"),
        ("error_rate > 0.2", "an error_rate above a share, over a time, as in 'error_rate > 0.2 over 60s'"),
        ("error_rate < 0.2 over 60s", "an error_rate above a share"),
        ("error_rate > 0.2 over long", "a duration"),
        ("harm > 0", "an error_rate above a share"),
        ("> 0.2", "a measure, a bound and maybe a time"),
    ],
)
def test_a_bound_is_a_share_and_a_time(text: str, found: tuple[float, float] | str) -> None:
    if isinstance(found, str):
        with pytest.raises(ValueError, match=f"^--stop-if {text!r} should be {found}"):
            parse_stop_if(text)
    else:
        assert parse_stop_if(text) == found
