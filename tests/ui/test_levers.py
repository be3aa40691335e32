"""The levers of runs that go on: a fault is switched off and on, and a gateway is asked for the same at its address."""

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.core.events import FaultsOff, FaultWitnessed, LabWarning
from chaoslab.lab._lab_trials import run_lab_trials
from chaoslab.lab.recorded_run import Unrepeatable, read_recorded_run, select_trials_by_name
from chaoslab.record.history import History
from chaoslab.reports.contents import Contents
from chaoslab.surfaces import levers
from chaoslab.surfaces.ui.reader import RunsReader
from chaoslab.surfaces.ui.server import HEADER, Pages
from tests.cli_parts import Typed
from tests.gateway.parts import history, shop, standing
from tests.sure import sure
from tests.ui.parts import pay, price, read, seen

FAULT, OTHER = "server_error on price", "lost_reply on pay"


def asking(_prompt: str) -> str:
    try:
        return f"paid {price(item='pen')}"
    except Exception:  # noqa: BLE001 - any error of a tool
        return "I could not pay."


def going(logs: Path, **more: Any) -> Iterator[Any]:
    """A run of which each trial meets the fault."""
    faults = [lab.inject("server_error", "price"), lab.inject("lost_reply", "pay", chance=0.5)]
    return lab.run_many(
        asking, "Pay a pen", trials=12, reads=[price], tools=[pay], faults=faults, logs=logs, seed=1, **more
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fault_is_switched_off_and_on_while_trials_go_on(jobs: int, tmp_path: Path) -> None:
    run = going(tmp_path, jobs=jobs)
    trial = next(run)
    folder = trial.folder
    assert levers.steer_run(folder, [f"{FAULT}=off"]) == [f"'{FAULT}' is off from the next trial on"]
    rest = [next(run)] if jobs == 1 else []
    with closing(RunsReader(tmp_path)) as reader:
        read(reader)
        assert [*reader.get_or_watch_run(folder.name).get_state()["switches"]] == [
            {"name": FAULT, "on": False}, {"name": OTHER, "on": True},
        ]  # fmt: skip
    assert main(["steer", "latest", f"{FAULT}=on", "--logs", str(tmp_path)]) == 0
    rest += [*run]
    told = History.read(folder)
    off = {record.trial for record, _ in told.find_events(FaultsOff)}
    met = {record.trial for record, _ in told.find_events(FaultWitnessed)}
    assert off.isdisjoint(met)
    assert off | met == {each.key for each in [trial, *rest]}
    if jobs == 1:
        assert off == {"p1.r2"}
        assert FAULT not in str(rest[0].warnings), "a fault that is off need not hit"
        assert [injection.chance for injection in rest[0].plan.injections] == [0.0, 0.5]


def test_the_report_and_the_story_tell_what_was_switched_off(tmp_path: Path, typed: Typed) -> None:
    run = going(tmp_path)
    folder = next(run).folder
    levers.steer_run(folder, [f"{FAULT}=off"])
    for _ in range(3):
        next(run)
    levers.steer_run(folder, [f"{FAULT}=on"])
    list(run)
    contents = Contents.from_source(History.read(folder), where=str(folder))
    said = f"'{FAULT}' was switched off while the run went on, in 3 trials, from p1.r2 to p1.r4"
    assert ("info", said) in contents.report.warnings.value
    assert f"  off      switched off while the run went on: {FAULT}\n" in typed.out("show", folder, "--trial", "3")


def test_the_labs_own_agent_runs_without_it_and_a_replay_says_so(tmp_path: Path) -> None:
    faults = [lab.inject("server_error", "weather")]
    run = run_lab_trials("What is the weather in Berlin?", range(3), faults=faults, seed=1, logs=tmp_path)
    folder = sure(next(run).folder)
    levers.steer_run(folder, ["server_error on weather=off"])
    second = next(run)
    levers.steer_run(folder, ["server_error on weather=on"])
    (third,) = run
    assert [bool([*each.history.find_events(FaultWitnessed)]) for each in (second, third)] == [False, True]
    remembered = read_recorded_run(str(folder))
    with pytest.raises(Unrepeatable, match=r"p1\.r2 was made with faults switched off .*: server_error on weather, so"):
        select_trials_by_name(remembered, ["p1.r2"])
    assert select_trials_by_name(remembered, ["p1.r3"]) == ["p1.r3"]
    contents = Contents.from_source(History.read(folder), where=str(folder))
    assert [contents.build_replay_command(each).split()[1] for each in ("p1.r2", "p1.r3")] == ["show", "replay"]


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("nothing=off", "'nothing' is no fault of the run's plan: known are"),
        (f"{FAULT}=maybe", "should be pause, resume, stop"),
        ("=off", "should be pause"),
        ("manager=pause", "has no proxy manager: only a lab of real time has one"),
    ],
)
def test_what_no_run_can_do_is_refused(word: str, why: str, tmp_path: Path, typed: Typed) -> None:
    run = going(tmp_path)
    next(run)
    assert why in typed.refused("steer", "latest", word, "--logs", tmp_path)
    run.close()  # type: ignore[attr-defined]


# A gateway.

ONE = {"fault": "tool_error", "target": "crm", "status": 503, "name": "down/up 1"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with closing(RunsReader(tmp_path)) as reader:
        app = Pages(reader, lambda _: "").build_app("t")
        headers = {"authorization": "Bearer t", HEADER: "1"}
        with TestClient(app, base_url="http://127.0.0.1:8300", headers=headers) as found:
            yield found


def status(running: Any) -> int:
    return httpx.get(running.make_route_url("crm") + "/price/1").status_code


def test_a_gateway_is_steered_from_its_page_and_by_command(client: TestClient, tmp_path: Path) -> None:
    stopped: list[bool] = []
    with shop() as server, standing(tmp_path, [f"crm={server.url}"], ONE, stop=lambda: stopped.append(True)) as running:
        folder = running.book.run.folder
        place = folder / levers.FILE
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with seen(folder) as watched:
            assert (watched.get_state()["levers"], watched.get_state()["switches"]) == ("gateway", [])
        at = f"/run/{folder.name}"
        assert status(running) == 503
        found = client.get(f"{at}/levers").json()
        assert (found["paused"], found["ended"]) == (False, "")
        assert found["faults"] == [{"name": "down/up 1", "on": True, "chance": 1.0, "hits": 1}]

        def do(word: str) -> str:
            return str(client.post(f"{at}/steer", json={"do": word}).json()["said"])

        assert do("pause") == "it makes no fault"
        assert status(running) == 200
        assert client.get(f"{at}/levers").json()["paused"] is True
        assert main(["steer", folder.name, "resume", "down/up 1=off", "--logs", str(tmp_path)]) == 0
        assert status(running) == 200
        assert do("down/up 1=on") == "'down/up 1' is on from the next request on"
        assert status(running) == 503
        assert do("down/up 1=0") == "'down/up 1' is 0 from the next request on"
        assert status(running) == 200
        answer = client.post(f"{at}/steer", json={"do": "down/up 1=2"})
        assert (answer.status_code, answer.text) == (400, "'2' should be a chance from 0 to 1\n")
        answer = client.post(f"{at}/steer", json={"do": "jump"})
        assert "should be pause, resume, stop" in answer.text
        assert do("stop") == "it ends"
        assert stopped == [True]
        token = sure(running.shared.controls).token
    assert not place.exists()
    assert token not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    told = [event.message for _, event in history(tmp_path).find_events(LabWarning)]
    assert told[:3] == ["control: paused", "control: resumed", "control: 'down/up 1' is off"]


def test_a_gateway_that_is_gone_or_whose_token_is_wrong_is_one_line(client: TestClient, tmp_path: Path) -> None:
    with shop() as server, standing(tmp_path, [f"crm={server.url}"], ONE, stop=lambda: None) as running:
        folder = running.book.run.folder
        at, place = f"/run/{folder.name}", sure(levers.ControlEndpoint.read_from_folder(folder))
        assert place.token not in repr(place)
        for told, said in (
            (f'{{"port": {place.port}, "token": "x"}}', "the token is wrong"),
            ('{"port": 1, "token": "x"}', f"the gateway of {folder.name} does not answer at 127.0.0.1:1"),
        ):
            (folder / levers.FILE).write_text(told)
            for answer in (client.get(f"{at}/levers"), client.post(f"{at}/steer", json={"do": "pause"})):
                assert answer.status_code in (400, 404)
                assert said in answer.text
                assert answer.text.count("\n") == 1
        for told in ('{"port": 0, "token": "x"}', '["x"]', "{"):
            (folder / levers.FILE).write_text(told)
            assert "has no levers" in client.get(f"{at}/levers").text
    assert "has no levers" in client.get(f"{at}/levers").text
    assert "nothing runs in" in client.post(f"{at}/steer", json={"do": "pause"}).text


def test_a_gateway_without_levers_says_so(client: TestClient, tmp_path: Path) -> None:
    with shop() as server, standing(tmp_path, [f"crm={server.url}"], ONE) as running:
        folder = running.book.run.folder
        with seen(folder) as watched:
            assert watched.get_state()["levers"] == ""
        answer = client.post(f"/run/{folder.name}/steer", json={"do": "pause"})
        assert (answer.status_code, "and chaoslab exec with --levers" in answer.text) == (400, True)
        status_, origin = 403, {"origin": "http://evil.example"}
        for method, path in (("POST", "steer"), ("GET", "levers")):
            assert client.request(method, f"/run/{folder.name}/{path}", headers=origin).status_code == status_
            nobody = {"authorization": "Bearer x"}
            assert client.request(method, f"/run/{folder.name}/{path}", headers=nobody).status_code == 401
