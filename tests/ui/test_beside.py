"""Campaigns and the memory in the pages: journal, last look, tables, and the lever of a campaign."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from chaoslab.base import levers
from chaoslab.campaigns.journal import LEVER, Journal
from chaoslab.campaigns.running import SEEN
from chaoslab.memory.store import FILE, Memory
from chaoslab.surfaces.ui._campaign import describe_campaign
from chaoslab.surfaces.ui.reader import RunsReader
from chaoslab.surfaces.ui.server import HEADER, Pages
from tests.ui.parts import LOOK, SCRIPT, a_campaign, read, trials


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a campaign that goes on with a run of its own, and a memory of both."""
    folder = tmp_path_factory.mktemp("beside")
    list(trials(folder, trials=6))
    campaign = a_campaign(folder / "checkout", LOOK)
    list(trials(campaign, trials=3))
    Memory(folder / FILE, make=True).add([(folder / "latest").resolve(), (campaign / "latest").resolve()])
    return folder


@pytest.fixture
def client(logs: Path) -> Iterator[TestClient]:
    with closing(RunsReader(logs)) as reader:
        read(reader)
        app = Pages(reader, lambda _: "").build_app("t")
        headers = {"authorization": "Bearer t", HEADER: "1"}
        with TestClient(app, base_url="http://127.0.0.1:8300", headers=headers) as found:
            yield found


def test_a_campaign_shows_its_probes_its_budget_and_its_runs(client: TestClient) -> None:
    found = client.get("/campaign/checkout/state").json()
    assert (found["state"], found["goes_on"], found["open"]) == ("under way", True, ["refund"])
    assert found["probes"] == [{**LOOK["probes"][0], "why": "errors: 0.61, should be < 0.6"}]  # type: ignore[index]
    assert found["spent"] == [
        {"name": "trials", "value": 4, "most": 1000}, {"name": "seconds", "value": 10.4, "most": None},
        {"name": "dollars", "value": 0.0, "most": 5.0},
    ]  # fmt: skip
    assert [step["state"] for step in found["steps"]] == ["under way"]
    (run,) = found["runs"]
    assert run["run"].startswith("checkout:")
    assert client.get(f"/run/{run['run']}").status_code == 200
    assert client.get(f"/run/{run['run']}/trial/p1.r1").status_code == 200
    assert "no exploration that has left a map" in client.get(f"/run/{run['run']}/map").text
    assert "checkout" in client.get("/campaign/checkout").text
    assert client.get("/campaign/nothing/state").text.startswith("there is no campaign nothing in")


def test_the_list_has_campaigns_and_their_runs_and_takes_no_campaign_for_a_run(logs: Path) -> None:
    with closing(RunsReader(logs)) as reader:
        read(reader)
        names = [row["run"] for row in reader.list_run_rows_since(0)]
        assert [name.partition(":")[0] for name in names if ":" in name] == ["checkout"]
        assert "checkout" not in names
        assert len(names) == 2
        assert reader.campaigns == [logs / "checkout"]
    with closing(RunsReader(logs / "checkout")) as reader:  # the pages of one campaign
        read(reader)
        assert len(reader.list_run_rows_since(0)) == 1


def test_a_campaign_is_paused_and_resumed_as_by_its_command(client: TestClient, logs: Path) -> None:
    assert "no step begins" in client.post("/campaign/checkout/pause", json={}).json()["said"]
    assert [describe_campaign(logs / "checkout")[name] for name in ("state", "goes_on")] == ["paused", True]
    assert client.post("/campaign/checkout/resume", json={}).json()["said"] == "checkout: it goes on"
    assert describe_campaign(logs / "checkout")["state"] == "under way"
    assert client.post("/campaign/checkout/resume", json={}).json()["said"] == "checkout: it was not paused"
    said = client.post("/campaign/checkout/leave", json={}).text.strip()
    assert said == "a campaign knows no leave: stop, pause and resume"


def test_a_campaign_is_stopped_as_by_its_command(client: TestClient, logs: Path) -> None:
    said = client.post("/campaign/checkout/stop", json={}).json()["said"]
    assert said.startswith("checkout: its faults stop")
    assert levers.read_stop_reason(logs / "checkout" / LEVER) == "somebody asked for stop in the pages"
    Journal(logs / "checkout").append_entry("ended", state="stopped", why="lever")
    assert describe_campaign(logs / "checkout")["goes_on"] is False
    assert "it has ended already: stopped" in client.post("/campaign/checkout/stop", json={}).text


@pytest.mark.parametrize("text", ["", "[]", "{", '{"spent": [], "budget": 3, "lease_s": "x", "probes": [], "now": {}}'])
def test_a_broken_look_tells_nothing(text: str, tmp_path: Path) -> None:
    Journal(tmp_path).append_entry("begun", digest="", pid=1)
    (tmp_path / SEEN).write_text(text)
    assert (describe_campaign(tmp_path)["state"], describe_campaign(tmp_path)["spent"]) == ("interrupted", [])


def test_a_memory_shows_its_lessons_and_its_plan_as_text(client: TestClient, logs: Path) -> None:
    assert 'href="/memory"' in client.get("/").text
    store = Memory(logs / FILE)
    (subject,) = store.list_agents()
    with store._open_database() as db:
        db.execute("INSERT INTO lessons VALUES (?, 'pay', ?)", (subject, SCRIPT))
    page = client.get("/memory").text
    assert "2 runs" in page
    assert "Next experiments" in page
    assert "lab.inject(" in page
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(1)" in page
    assert client.get("/memory?subject=nobody").status_code == 404
    (logs / FILE).write_bytes(b"no database at all, and longer than a header of one hundred bytes" * 3)
    answer = client.get("/memory")
    assert (answer.status_code, answer.text.count("\n")) == (404, 1)
    assert "damaged" in answer.text
