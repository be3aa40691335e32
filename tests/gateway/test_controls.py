"""The levers of a gateway that stands: they need its token, and take effect with the next request."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from chaoslab.cli.gateway import stop_if
from chaoslab.core.events import FaultWitnessed, LabWarning
from chaoslab.seams.gateway.controls import Bounds, FailureShare
from tests import warm
from tests.gateway.parts import history, shop, standing


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
                process.wait(20)


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
        assert process.wait(20) == 0
    told = history(tmp_path)
    assert [event.message for _, event in told.of(LabWarning)] == [
        "control: paused",
        "control: resumed",
        f"control: '{fault['name']}' is off",
        f"control: '{fault['name']}' is on",
        "control: stopped",
    ]  # fmt: skip
    assert len([*told.of(FaultWitnessed)]) == 3


THREE = [
    {"fault": "tool_error", "target": "crm", "status": 503, "name": "a"},
    {"fault": "latency", "target": "crm", "delay_s": 0.001, "name": "b"},
    {"fault": "latency", "target": "crm", "delay_s": 0.001, "name": "c", "chance": 0},
]


def test_a_chance_is_changed_and_one_of_two_is_off(tmp_path: Path) -> None:
    with (
        shop() as server,
        standing(tmp_path, [f"crm={server.url}"], *THREE, stop=lambda: None) as running,
        httpx.Client(base_url=running.address) as client,
    ):
        assert statuses(client, 1) == [503]
        client.post(f"{running.levers}/faults/b/off")
        assert statuses(client, 1) == [503]
        changed = client.post(f"{running.levers}/faults/a/chance/0").json()
        assert changed == {"name": "a", "on": True, "chance": 0.0, "hits": 2}
        assert statuses(client, 3) == [200] * 3
        client.post(f"{running.levers}/faults/a/chance/0.5")
        assert set(statuses(client, 20)) == {200, 503}
        wrong = client.post(f"{running.levers}/faults/a/chance/2")
        assert (wrong.status_code, wrong.json()["error"]) == (400, "'2' should be a chance from 0 to 1")
        never = client.post(f"{running.levers}/faults/c/chance/1")
        assert (never.status_code, never.json()["error"].partition(":")[0]) == (400, "'c' has the chance 0 in the plan")
        twice = client.post(f"{running.levers}/faults/a/twice").json()["error"]
        assert "POST faults/a/twice is no lever: status" in twice
        assert client.get(f"{running.levers}/faults").json()["faults"][1]["hits"] == 1
    told = [event.message for _, event in history(tmp_path).of(LabWarning)]
    assert told[1:] == ["control: 'a' has the chance 0, after 1", "control: 'a' has the chance 0.5, after 0"]


def test_a_lease_that_nobody_renews_ends_all_faults(tmp_path: Path) -> None:
    clock = SimpleNamespace(now=0.0)
    with (
        shop() as server,
        standing(tmp_path, [f"crm={server.url}"], THREE[0], stop=lambda: None, bounds=Bounds(lease_s=60)) as running,
        httpx.Client(base_url=running.address) as client,
    ):
        controls = running.shared.controls
        assert controls is not None
        controls.now = lambda: clock.now
        controls.renewed_s = 0.0
        for clock.now, found in [(59.0, 503), (61.0, 503), (118.0, 503), (120.0, 200)]:
            assert statuses(client, 1) == [found]
            renewed = client.post(f"{running.levers}/renew") if clock.now in (59.0, 120.0) else None
        assert renewed is not None
        assert renewed.json()["ended"] == "nobody renewed the lease of 60 s"  # which stays
        assert statuses(client, 1) == [200]
    assert next(event.message for _, event in history(tmp_path).of(LabWarning)).startswith("no more faults: nobody")


@pytest.mark.parametrize(
    ("options", "found", "why"),
    [
        (("--max-faults", "2"), [503, 503, 200, 200], "no more faults: --max-faults 2 is reached"),
        (("--until", "0.000001"), [200] * 4, "no more faults: the time of --until is over"),
        (
            ("--stop-if", "error_rate > 20% over 5min"),
            [503] * 10 + [200] * 3,
            "no more faults: 100% of the requests failed (--stop-if error_rate > 0.2 over 300 s)",
        ),
    ],
)
def test_faults_end_by_themselves(options: Sequence[str], found: list[int], why: str, tmp_path: Path) -> None:
    with command(tmp_path, *options) as (_, client, _address):
        assert statuses(client, len(found)) == found
    assert [event.message for _, event in history(tmp_path).of(LabWarning)] == [why]


def test_a_rate_is_of_the_time_that_is_asked_for() -> None:
    rate = FailureShare(60.0)
    assert [rate.add(float(now), failed=True) for now in range(10)] == [0.0] * 9 + [1.0]
    assert rate.add(10.0, failed=False) == pytest.approx(10 / 11)
    assert rate.add(65.0, failed=False) < 10 / 11
    assert rate.add(200.0, failed=False) == 0.0  # one alone is no rate


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
            stop_if(text)
    else:
        assert stop_if(text) == found
