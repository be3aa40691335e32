"""Each service answers in the real one's shape, and says no in its own."""

import http.client
import json
import threading
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.flask_tools.app import create_app
from chaoslab.flask_tools.movies import load_films
from chaoslab.record.runs import Run
from tests.flask_tools.service_parts import EVENTS, NOW, service, trial
from tests.waiting import DEADLINE_S


def ask(name: str, logs: Path, method: str, path: str, **options: Any) -> Any:
    with service(name, logs) as client:
        reply = client.open(path, method=method, headers=trial(logs), **options)
        assert reply.status_code == 200, reply.text
        return reply.json


def test_search_ranks_the_document_that_is_meant_first(tmp_path: Path) -> None:
    body = ask("search", tmp_path, "GET", "/search.json?engine=google&q=who invented the world wide web&num=2")
    assert "Tim Berners-Lee" in body["organic_results"][0]["snippet"]
    assert [result["position"] for result in body["organic_results"]] == [1, 2]


def test_search_without_results_is_a_200_that_says_so(tmp_path: Path) -> None:
    body = ask("search", tmp_path, "GET", "/search.json?engine=google&q=xyzzyplugh")
    assert body["search_information"]["organic_results_state"] == "Fully empty"
    assert "error" in body
    assert "organic_results" not in body


@pytest.mark.parametrize("city", ["München", "munich", "Muenchen", "MUNICH,DE"])
def test_a_city_has_one_weather_by_all_its_names(tmp_path: Path, city: str) -> None:
    body = ask("weather", tmp_path, "GET", "/data/2.5/weather", query_string={"q": city, "units": "metric"})
    assert body == ask("weather", tmp_path, "GET", "/data/2.5/weather?lat=48.1&lon=11.6&units=metric")
    assert body["name"] == "Munich"


def test_what_falls_below_freezing_is_snow(tmp_path: Path) -> None:
    falls = set()
    for day, city in product(range(1, 15), ("Oslo", "Lisbon")):
        run = Run.create(tmp_path, now=f"2026-01-{day:02}T12:00:00Z").name
        with service("weather", tmp_path) as client:
            reply = client.get(f"/data/2.5/weather?q={city}&units=metric", headers={"X-Trial": f"{run}.p1.r1"})
        body = reply.get_json()
        if (sky := body["weather"][0]["main"]) in ("Rain", "Snow"):
            falls.add((sky, body["main"]["temp"] < 0.5))
    assert falls == {("Rain", False), ("Snow", True)}


@pytest.mark.parametrize("city", ["Oslo", "Tokyo", "Lima"])
def test_the_sun_is_highest_four_minutes_a_degree_from_greenwich(tmp_path: Path, city: str) -> None:
    body = ask("weather", tmp_path, "GET", f"/data/2.5/weather?q={city}")
    noon_s = (body["sys"]["sunrise"] + body["sys"]["sunset"]) / 2
    assert noon_s % 86400 == pytest.approx(43200 - body["coord"]["lon"] * 240, abs=1)


def test_units_are_the_same_warmth(tmp_path: Path) -> None:
    metric, standard = (
        ask("weather", tmp_path, "GET", f"/data/2.5/weather?q=Oslo{units}")["main"]["temp"]
        for units in ("&units=metric", "")
    )
    assert standard == pytest.approx(metric + 273.15)
    assert -5 < metric < 30


def test_films_are_found_by_either_name_and_by_year(tmp_path: Path) -> None:
    body = ask("movies", tmp_path, "GET", "/3/search/movie?query=lola rennt")
    assert body["results"][0]["title"] == "Run Lola Run"
    assert ask("movies", tmp_path, "GET", "/3/search/movie?query=dune&year=2024")["total_results"] == 1


@pytest.mark.parametrize(
    ("text", "warns", "films"),
    [
        (None, "cannot be read", 2),
        ("{", "not JSON", 2),
        ("{}", "not a JSON array", 2),
        ("[1]", "no entry", 2),
        ('[{"name": "A", "original_name": "A"}, {"name": 3}]', "1 entries left out", 1),
        ('[{"name": "A", "original_name": "A"}]', None, 1),
    ],
)
def test_a_broken_film_file_is_said_and_replaced(
    tmp_path: Path, text: str | None, warns: str | None, films: int
) -> None:
    bundled = tmp_path / "bundled.json"
    bundled.write_text(json.dumps([{"name": n, "original_name": n} for n in "BC"]))
    if text is not None:
        (tmp_path / "movies.json").write_text(text)
    result = load_films(tmp_path / "movies.json", otherwise=bundled)
    assert len(result.films) == films
    assert (warns or "") in "".join(result.warnings)
    assert bool(result.warnings) is (warns is not None)


def test_the_phrasebook_speaks_six_languages_and_hears_which(tmp_path: Path) -> None:
    for target, text in {"fr": "Bonjour", "de": "Guten Morgen", "es": "Buenos días", "nl": "Goedemorgen"}.items():
        body = ask("translator", tmp_path, "POST", "/translate", json={"q": "Good morning!", "target": target})
        assert body["translatedText"] == f"{text}!"
        assert body["detectedLanguage"]["language"] == "en"
    back = ask("translator", tmp_path, "POST", "/translate", json={"q": ["der Hund", "merci"], "target": "en"})
    assert back["translatedText"] == ["the dog", "thank you"]


def test_the_calculator_answers_with_number_and_text(tmp_path: Path) -> None:
    body = ask("calculator", tmp_path, "POST", "/calculate", json={"expression": "17 * 24"})
    assert body == {"expression": "17 * 24", "result": 408, "text": "408"}


def test_the_inbox_is_newest_first_and_by_sender(tmp_path: Path) -> None:
    body = ask("messaging", tmp_path, "GET", "/api/conversations.history?channel=inbox&user=ana&limit=1")
    assert [m["user"] for m in body["messages"]] == ["Ana"]
    assert body["has_more"] is True


BAD = [
    ("search", "GET", "/search.json?engine=google", None, 400),
    ("weather", "GET", "/data/2.5/weather?q=Atlantis", None, 404),
    ("weather", "GET", "/data/2.5/weather", None, 400),
    ("movies", "GET", "/3/search/movie", None, 400),
    ("movies", "GET", "/3/search/movie?query=a&page=501", None, 400),
    ("movies", "GET", "/3/search/movie?query=a&year=soon", None, 400),
    ("calendar", "POST", EVENTS, b"{}", 400),
    ("calendar", "POST", EVENTS, b'{"summary": 3, "start": [], "end": 1}', 400),
    (
        "calendar",
        "POST",
        EVENTS,
        b'{"start":{"dateTime":"2026-06-02T10:00"},"end":{"dateTime":"2026-06-02T09:00"}}',
        400,
    ),
    ("calendar", "POST", EVENTS, b'{"summary": "Tea", "start": "soon", "end": "later"}', 400),
    ("calendar", "DELETE", f"{EVENTS}/nothing", None, 404),
    ("calendar", "GET", f"{EVENTS}?timeMin=soon", None, 400),
    ("calculator", "POST", "/calculate", b'{"expression": "1/0"}', 400),
    ("calculator", "POST", "/calculate", b'{"expression": "10^10^10"}', 400),
    ("calculator", "POST", "/calculate", b'{"expression": 4}', 400),
    ("messaging", "POST", "/api/chat.postMessage", b'{"channel": "Ana"}', 200),
    ("messaging", "POST", "/api/chat.postMessage", b'{"channel": "<>", "text": "hi"}', 200),
    ("translator", "POST", "/translate", b'{"target": "fr"}', 400),
    ("translator", "POST", "/translate", b'{"q": "hi", "target": "xx"}', 400),
    *((name, "PATCH", path, None, 405) for name, path in [("search", "/search.json"), ("messaging", "/health")]),
    *((name, "GET", "/nowhere", None, 404) for name in SERVICES),
]
MIDNIGHT = {"date": "2026-06-02"}
POSTS = {
    "calendar": EVENTS,
    "calculator": "/calculate",
    "messaging": "/api/chat.postMessage",
    "translator": "/translate",
}
BAD += [(name, "POST", path, b'{"q": ', 400) for name, path in POSTS.items()]
BAD += [(name, "POST", path, b"[" * 200_000, 400) for name, path in POSTS.items()]
BAD += [(name, "POST", path, b'{"q": "' + b"x" * 1_000_000 + b'"}', 413) for name, path in POSTS.items()]


def in_its_own_shape(name: str, body: Any) -> bool:
    match name:
        case "weather":
            return bool({"cod", "message"} == body.keys())
        case "movies":
            return bool(body["success"] is False) and isinstance(body["status_code"], int)
        case "calendar":
            return bool(body["error"]["errors"][0]["reason"]) and isinstance(body["error"]["code"], int)
        case "calculator":
            return bool(body["error"].keys() >= {"type", "message"})
        case "messaging":
            return bool(body["ok"] is False) and isinstance(body["error"], str)
        case _:
            return isinstance(body["error"], str)


@pytest.mark.parametrize(("name", "method", "path", "data", "status"), BAD)
def test_a_bad_request_is_refused_in_the_services_own_shape(
    tmp_path: Path, name: str, method: str, path: str, data: bytes | None, status: int
) -> None:
    with service(name, tmp_path) as client:
        reply = client.open(path, method=method, data=data, headers=trial(tmp_path))
        assert (reply.status_code, reply.mimetype) == (status, "application/json")
        assert in_its_own_shape(name, reply.json)


@pytest.mark.parametrize(
    ("name", "path", "body", "says"),
    [
        ("search", "/search.json?q=a&engine=bing", None, "Unsupported `bing` search engine"),
        ("search", "/search.json?q=a&num=101", None, "a number from 1 to 100"),
        ("weather", "/data/2.5/weather?lat=north&lon=0", None, "wrong latitude"),
        ("weather", "/data/2.5/weather?q=Oslo&units=kelvin", None, "standard, metric or imperial"),
        ("messaging", "/api/conversations.history?channel=outbox", None, "channel_not_found"),
        ("messaging", "/api/conversations.history?channel=inbox&limit=0", None, "invalid_limit"),
        ("messaging", POSTS["messaging"], {"channel": "Ana", "text": "x" * 40_001}, "msg_too_long"),
        ("calendar", f"{EVENTS}?timeMin=2026-06-02&timeMax=2026-06-01", None, "timeRangeEmpty"),
        ("calendar", EVENTS, {"start": {}}, "Missing start time"),
        ("calendar", EVENTS, {"start": {"dateTime": "soon"}}, "Invalid format: 'soon'"),
        ("calendar", EVENTS, {"start": MIDNIGHT, "end": MIDNIGHT, "id": "!"}, "resource id"),
        ("translator", POSTS["translator"], {"q": "hi"}, "missing target"),
        ("translator", POSTS["translator"], {"q": "hi", "target": 1}, "target must be a string"),
        ("translator", POSTS["translator"], {"q": [1], "target": "fr"}, "q must be a string"),
        ("translator", POSTS["translator"], [], "the body must be a JSON object"),
        ("calculator", POSTS["calculator"], {"expression": float("nan")}, "the body is not valid JSON"),
    ],
)
def test_a_refusal_says_what_is_wrong(tmp_path: Path, name: str, path: str, body: Any, says: str) -> None:
    with service(name, tmp_path) as client:
        data = None if body is None else json.dumps(body)
        reply = client.open(path, method="GET" if data is None else "POST", data=data, headers=trial(tmp_path))
    assert (reply.status_code, says in reply.text) == (200 if name == "messaging" else 400, True), reply.text
    assert in_its_own_shape(name, reply.json)


def test_a_stranger_is_told_what_there_is(tmp_path: Path) -> None:
    with service("calendar", tmp_path) as client:
        lost = client.get("/calendar")
        assert lost.status_code == 404
        assert f"there are POST {EVENTS}, GET {EVENTS}," in lost.text
        assert "GET /tools" in lost.text
        wrong = client.put(f"{EVENTS}/seed0001")
        assert (wrong.status_code, wrong.headers["Allow"]) == (405, "DELETE, GET, HEAD")
        cut = client.post(EVENTS, data=b'{"summary": ')
        assert "not valid JSON: Expecting value: line 1 column 13" in cut.text
        assert "the body may have up to 262144 bytes" in client.post(EVENTS, data=b"x" * 300_000).text


@pytest.mark.parametrize("header", ["nonsense", "../../etc.p1.r1", "norun.p1.r1", "latest.p1.r1"])
def test_a_strange_trial_is_refused_and_makes_no_folder(tmp_path: Path, header: str) -> None:
    run = trial(tmp_path)["X-Trial"].partition(".")[0]
    (tmp_path / "latest").symlink_to(run)
    before = sorted(tmp_path.rglob("*"))
    with service("weather", tmp_path) as client:
        reply = client.get("/data/2.5/weather?q=Oslo", headers={"X-Trial": header})
        assert (reply.status_code, json.loads(reply.data)["cod"]) == (400, "400")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_tells_its_tools_and_touches_nothing_for_its_health(tmp_path: Path, name: str) -> None:
    with service(name, tmp_path) as client:
        told = ServiceSpec.from_json(json.loads(client.get("/tools").data))
        assert client.get("/health").json == {"status": "ok", "service": name}
    assert told.name == name
    assert set(told.errors) == {401, 404, 429, 500, 503}
    assert told.errors[429].headers["Retry-After"] == "1"
    assert not list(tmp_path.iterdir())


def test_a_service_answers_over_a_real_socket(tmp_path: Path) -> None:
    from waitress.server import create_server

    app = create_app("calculator", logs=tmp_path, now=NOW)
    server: Any = create_server(app, host="127.0.0.1", port=0, threads=2, ident=None)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.effective_port, timeout=10)
        connection.request("POST", "/calculate", json.dumps({"expression": "2^10"}), trial(tmp_path))
        assert json.loads(connection.getresponse().read())["result"] == 1024
        connection.close()
    finally:
        server.trigger.pull_trigger(server.close)
        thread.join(DEADLINE_S)
        server.task_dispatcher.shutdown()
        app.extensions["ledger"].close()
    assert not thread.is_alive()
