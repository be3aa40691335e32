"""Only who has the token and asks by a name of loopback is answered, and a wrong question gets one line."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from chaoslab.proxy_manager.figures import RunMetrics
from chaoslab.surfaces.ui.reader import RunsReader
from chaoslab.surfaces.ui.server import DOOR, HEADER, NO_TOKEN, Pages
from tests.ui.parts import read, trials

TOKEN, BASE = "a-token", "http://127.0.0.1:8300"
ACT = {HEADER: "1"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guard") / "logs"
    list(trials(folder, trials=12))
    return folder


@pytest.fixture
def client(logs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(logs.parent)
    figures = RunMetrics(logs)
    with closing(RunsReader(logs)) as reader:
        reader.get_or_watch_run((logs / "latest").resolve().name)
        read(reader)
        app = Pages(reader, lambda runs: figures.render_text(runs, lanes=0)).build_app(TOKEN)
        with TestClient(app, base_url=BASE, follow_redirects=False) as found:
            yield found


@pytest.fixture
def inside(client: TestClient) -> TestClient:
    answer = client.get(f"{DOOR}{TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    return client


@pytest.mark.parametrize("path", ["/", "/events", "/ui.js", "/metrics", f"{DOOR}wrong", "/run/x", "/in"])
def test_nobody_is_answered_without_the_token(path: str, client: TestClient) -> None:
    answer = client.get(path)
    assert answer.status_code == 401
    assert answer.text == NO_TOKEN


def test_the_address_with_the_token_works_in_a_second_browser(inside: TestClient) -> None:
    second = TestClient(inside.app, base_url=BASE, follow_redirects=False)
    assert second.get("/").status_code == 401
    assert second.get(f"{DOOR}{TOKEN}").status_code == 303
    assert [browser.get("/").status_code for browser in (inside, second)] == [200, 200]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:8300"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_another_sites_page_gets_nothing(headers: dict[str, str], status: int, inside: TestClient) -> None:
    for method, path in (("GET", "/"), ("POST", "/run/x/steer"), ("GET", f"{DOOR}{TOKEN}")):
        answer = inside.request(method, path, headers={**ACT, **headers})
        assert (answer.status_code, answer.text.count("\n")) == (status, 1)
        assert "set-cookie" not in answer.headers


def test_a_form_of_another_page_can_do_nothing(inside: TestClient, logs: Path) -> None:
    path = f"{_run(logs)}/steer"
    assert inside.post(path, json={"do": "pause"}).status_code == 403
    assert inside.post(path, json={}, headers={**ACT, "origin": BASE}).status_code == 400


def test_a_page_may_load_only_from_this_server(inside: TestClient) -> None:
    answer = inside.get("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert "style=" not in answer.text
    assert " onclick" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert inside.get("/ui.css").headers["content-type"].startswith("text/css")


def _run(logs: Path) -> str:
    return f"/run/{(logs / 'latest').resolve().name}"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nothing", 404, "there is nothing at this address\n"),
        ("/run/nothing", 404, "there is no run nothing in"),
        ("/run/..%2f..%2fetc", 404, ""),
        ("{run}/trial/p9.r9", 404, "there is no trial p9.r9 in"),
        ("{run}/tail/..%2frun.json", 404, ""),
        ("{run}/tail/run.json", 404, "there is no log run.json"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    path: str, status: int, said: str, inside: TestClient, logs: Path
) -> None:
    answer = inside.get(path.format(run=_run(logs)))
    assert answer.status_code == status
    assert said in answer.text
    assert answer.text.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "it should be a JSON object"),
        ({"do": "x" * 20_000}, "that is more than any page of this server sends"),
        ({"do": "pause"}, "nothing runs in"),
    ],
)
def test_a_wrong_wish_gets_one_line(body: Any, said: str, inside: TestClient, logs: Path) -> None:
    answer = inside.post(f"{_run(logs)}/steer", json=body, headers=ACT)
    assert answer.status_code == 400
    assert said in answer.text


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", "1 2 3 4 5 6 7 8 9 10 11 12"),
        ("sort=trial&down=1", "12 11 10 9 8 7 6 5 4 3 2 1"),
        ("sort=outcome", "11 3 1 10 2 4 5 6 7 8 9 12"),
        ("sort=seconds&down=1", "1 10 11 2 3 4 5 6 7 8 9 12"),
        ("sort=nothing&down=0", "1 2 3 4 5 6 7 8 9 10 11 12"),
        ("outcome=!bad", "11"),
        ("outcome=undone", "3"),
        ("met=server_error@price", "1 2 3 9 10 12"),
        ("q=PAY+a&outcome=unknown", "1 10"),
        ("q=nothing+like+it&page=99999999999", ""),
    ],
)
def test_a_page_of_trials_is_sorted_filtered_and_cut(query: str, numbers: str, inside: TestClient, logs: Path) -> None:
    page = inside.get(f"{_run(logs)}/trials?{query}").json()
    assert [row["trial"].removeprefix("p1.r") for row in page["rows"]] == numbers.split()
    assert (page["found"], page["page"], page["pages"]) == (len(numbers.split()), 1, 1)


def test_the_report_and_the_map_are_those_of_the_commands(inside: TestClient, logs: Path) -> None:
    run = (logs / "latest").resolve().name
    report = inside.get(f"/run/{run}/report.html")
    assert report.headers["content-disposition"].startswith("attachment")
    assert "report of a run" in report.text
    (logs / "latest" / "map.html").write_text("<script>alert(1)</script>")
    assert f'href="/run/{run}/map"' in inside.get(f"/run/{run}").text
    assert inside.get(f"/run/{run}/map").headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_prometheus_asks_with_the_token(client: TestClient) -> None:
    answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert "chaoslab_runs 0" in answer.text
