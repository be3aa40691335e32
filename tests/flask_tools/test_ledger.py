"""An effect asked for once is done once: within a process, between threads, and after a restart."""

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from chaoslab.core.events import Effect, LabWarning
from chaoslab.core.service_spec import ErrorReply, ServiceSpec
from chaoslab.flask_tools import ledger, movies
from chaoslab.flask_tools.app import make_app
from chaoslab.flask_tools.ledger import FolderRunStore
from chaoslab.flask_tools.service_module import DATA, Answer, Done, Route, ServiceModule, ServiceRequest
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from tests.flask_tools.service_parts import EVENTS, NOW, service, trial
from tests.waiting import DEADLINE_S, together

HELLO = {"channel": "Ana", "text": "Hello"}
SEND = "/api/chat.postMessage"


def effects(logs: Path) -> list[Effect]:
    return [e for folder in logs.glob("2*") for _, e in History.read(folder).find_events(Effect)]


def test_the_same_request_is_answered_again_and_done_once(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    with service("messaging", tmp_path) as client:
        first, second = (client.post(SEND, json=HELLO, headers=headers) for _ in range(2))
        assert first.data == second.data
        assert "Idempotency-Replayed" not in first.headers
        assert second.headers["Idempotency-Replayed"] == "true"
        other = client.post(SEND, json=HELLO | {"text": "Bye"}, headers=headers)
        assert (other.status_code, json.loads(other.data)["ok"]) == (422, False)
    assert [e.content["text"] for e in effects(tmp_path)] == ["Hello"]


def test_a_line_that_was_changed_stops_no_service_that_starts_again(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    with service("messaging", tmp_path) as client:
        first = client.post(SEND, json=HELLO, headers=headers)
    (log,) = tmp_path.glob("2*/messaging.log")
    line = json.loads(log.read_text())
    wrong: list[dict[str, Any]] = [
        {"reply": {}, "request_id": "k2"},
        {"reply": {"status": "many"}},
        {"reply": None},
        {"content": []},
        {"request_id": ["k1"]},
        {"t": "soon"},
    ]
    others = [json.dumps({**line, **change}) for change in wrong]
    log.write_text("\n".join((*others[1:], json.dumps(line), others[0], "")))
    with service("messaging", tmp_path) as client:
        again = client.post(SEND, json=HELLO, headers=headers)
    assert (again.data, again.headers["Idempotency-Replayed"]) == (first.data, "true")


def test_a_failure_without_effect_is_not_remembered(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    with service("translator", tmp_path) as client:
        body = {"q": "hello", "target": "xx"}
        for _ in range(2):
            reply = client.post("/translate", json=body, headers=headers)
            assert reply.status_code == 400
            assert "Idempotency-Replayed" not in reply.headers
        assert client.post("/translate", json=body | {"target": "fr"}, headers=headers).status_code == 200


def test_the_oldest_answers_without_effect_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ANSWERS_MAX", 2)
    with service("translator", tmp_path) as client:
        replayed = [
            "Idempotency-Replayed"
            in client.post(
                "/translate", json={"q": "hello", "target": "fr"}, headers=trial(tmp_path) | {"Idempotency-Key": key}
            ).headers
            for key in ("a", "b", "a", "c", "b", "a")
        ]
    assert replayed == [False, False, True, False, True, False]


def test_twins_at_the_same_moment_have_one_effect(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    replies: list[tuple[bytes, bool]] = []
    with service("messaging", tmp_path) as client:
        app, barrier = client.application, threading.Barrier(8)

        def send() -> None:
            barrier.wait(DEADLINE_S)
            reply = app.test_client().post(SEND, json=HELLO, headers=headers)
            replies.append((reply.data, "Idempotency-Replayed" in reply.headers))

        together(*[send] * 8)
    assert len({data for data, _ in replies}) == 1
    assert sorted(replayed for _, replayed in replies) == [False] + [True] * 7
    assert len(effects(tmp_path)) == 1


def test_a_restarted_service_knows_its_past_despite_a_cut_line(tmp_path: Path) -> None:
    headers = trial(tmp_path)
    event = {"summary": "X", "start": {"dateTime": "2026-06-02T15:00"}, "end": {"dateTime": "2026-06-02T16:00"}}
    with service("calendar", tmp_path) as client:
        made = client.post(EVENTS, json=event, headers=headers | {"Idempotency-Key": "a"})
        gone = client.delete(f"{EVENTS}/seed0001", headers=headers | {"Idempotency-Key": "b"})
        assert (made.status_code, gone.status_code, gone.data) == (200, 204, b"")
        listed = client.get(EVENTS, headers=headers)
    (log,) = tmp_path.glob("2*/calendar.log")
    with log.open("a") as file:
        file.write('{"ts": "2026-06-01T0')
    with service("calendar", tmp_path) as client:
        assert client.get(EVENTS, headers=headers).data == listed.data
        again = client.post(EVENTS, json=event, headers=headers | {"Idempotency-Key": "a"})
        assert (again.data, again.headers["Idempotency-Replayed"]) == (made.data, "true")
        assert client.delete(f"{EVENTS}/seed0001", headers=headers | {"Idempotency-Key": "b"}).status_code == 204
    assert [e.effect for e in effects(tmp_path)] == ["event_created", "event_deleted"]


def test_trials_that_were_dropped_are_known_again_from_the_log(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k1"}
    with service("messaging", tmp_path) as client:
        first = client.post(SEND, json=HELLO, headers=trial(tmp_path, 1) | key)
        for number in range(2, ledger.TRIALS_MAX + 10):
            client.post(SEND, json=HELLO, headers=trial(tmp_path, number) | key)
        books = client.application.extensions["ledger"]._books
        assert len(books) == ledger.TRIALS_MAX
        assert "p1.r1" not in {name for _, name in books}
        again = client.post(SEND, json=HELLO, headers=trial(tmp_path, 1) | key)
        assert (again.data, again.headers["Idempotency-Replayed"]) == (first.data, "true")
    assert len(effects(tmp_path)) == ledger.TRIALS_MAX + 9


def test_runs_that_were_dropped_are_opened_again_and_none_stays_open(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k1"}
    names = [Run.create(tmp_path, now=NOW).name for _ in range(ledger.RUNS_MAX + 4)]
    with service("messaging", tmp_path) as client:
        for name in names:
            client.post(SEND, json=HELLO, headers=key | {"X-Trial": f"{name}.p1.r1"})
        assert list(client.application.extensions["ledger"]._runs) == names[-ledger.RUNS_MAX :]
        again = client.post(SEND, json=HELLO, headers=key | {"X-Trial": f"{names[0]}.p1.r1"})
        assert again.headers["Idempotency-Replayed"] == "true"
    lines = [(tmp_path / name / "messaging.log").read_text().count("\n") for name in names]
    assert lines == [1] * len(names)


def bank(work: Callable[[ServiceRequest], Answer], logs: Path) -> Flask:
    """A service of one route, which answers as told."""
    offered = ServiceSpec("bank", (), {500: ErrorReply(500, {"error": "the bank is closed"})})
    module = ServiceModule(offered, (Route("POST", "/pay", "pay", work),), lambda _, message: {"error": message}, ())
    return make_app(module, FolderRunStore(logs, NOW))


def test_a_failure_after_the_effect_is_answered_again_and_done_once(tmp_path: Path) -> None:
    def pay(ask: ServiceRequest) -> Answer:
        return Answer({"error": f"no receipt {len(ask.past)}"}, 500, effect=Done("paid", {"euros": 5}))

    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    for _ in range(2):  # the second time by a service that was restarted
        app = bank(pay, tmp_path)
        replies = [app.test_client().post("/pay", json={}, headers=headers) for _ in range(2)]
        app.extensions["ledger"].close()
        assert [(reply.status_code, reply.json) for reply in replies] == [(500, {"error": "no receipt 0"})] * 2
        assert replies[1].headers["Idempotency-Replayed"] == "true"
    assert [e.effect for e in effects(tmp_path)] == ["paid"]


@pytest.mark.parametrize("known", [True, False])
def test_a_crash_is_told_in_the_trials_own_run(tmp_path: Path, known: bool) -> None:
    def pay(_: ServiceRequest) -> Answer:
        raise RuntimeError("no ink")

    app = bank(pay, tmp_path)
    headers = trial(tmp_path) if known else {}
    reply = app.test_client().post("/pay", json={}, headers=headers)
    app.extensions["ledger"].close()
    assert (reply.status_code, reply.json) == (500, {"error": "the bank is closed"})
    (folder,) = tmp_path.glob("2*" if known else "alone")
    ((line, notice),) = History.read(folder).find_events(LabWarning)
    assert notice.message == "bank failed at POST /pay: RuntimeError: no ink"
    assert line.trial == ("p1.r1" if known else "p0.r0")


@pytest.mark.parametrize(("text", "why"), [("[{", "is not JSON"), (None, "cannot be read")])
def test_a_broken_film_file_is_told_once_in_the_runs_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, why: str
) -> None:
    data, logs = tmp_path / "data", tmp_path / "logs"
    data.mkdir()
    (data / "bundled_movies.json").write_bytes((DATA / "bundled_movies.json").read_bytes())
    if text is not None:
        (data / "movies.json").write_text(text)
    monkeypatch.setattr(movies, "DATA", data)
    movies._load_default_films.cache_clear()
    try:
        with service("movies", logs) as client:
            for _ in range(2):
                found = client.get("/3/search/movie?query=lola rennt", headers=trial(logs)).json
                assert found is not None
                assert found["results"][0]["title"] == "Run Lola Run"
    finally:
        movies._load_default_films.cache_clear()
    (folder,) = logs.glob("2*")
    ((_, notice),) = History.read(folder).find_events(LabWarning)
    assert notice.message.startswith(f"movies.json: {why}")
    assert notice.message.endswith("the bundled films are used")


def test_trials_do_not_see_each_other(tmp_path: Path) -> None:
    with service("calendar", tmp_path) as client:
        client.delete(f"{EVENTS}/seed0001", headers=trial(tmp_path, 1))
        counts = [len(json.loads(client.get(EVENTS, headers=trial(tmp_path, n)).data)["items"]) for n in (1, 2)]
    assert counts == [7, 8]


def test_an_id_that_the_client_chose_is_taken_once(tmp_path: Path) -> None:
    event = {"id": "abcde", "start": {"dateTime": "2026-06-02T15:00"}, "end": {"dateTime": "2026-06-02T16:00"}}
    with service("calendar", tmp_path) as client:
        replies = [client.post(EVENTS, json=event, headers=trial(tmp_path)) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [200, 409]
    assert json.loads(replies[1].data)["error"]["errors"][0]["reason"] == "duplicate"


def test_two_processes_of_one_service_know_what_the_other_did(tmp_path: Path) -> None:
    """As after `docker compose up --scale calendar=2`: each request may reach another one."""
    headers = trial(tmp_path)
    event = {
        "summary": "Dentist",
        "start": {"dateTime": "2026-06-02T15:00:00Z"},
        "end": {"dateTime": "2026-06-02T15:45:00Z"},
    }
    with service("calendar", tmp_path) as one, service("calendar", tmp_path) as other:
        assert other.get(EVENTS, headers=headers).status_code == 200  # it has read the trial's book already
        made = one.post(EVENTS, json=event, headers=headers | {"Idempotency-Key": "k1"})
        again = other.post(EVENTS, json=event, headers=headers | {"Idempotency-Key": "k1"})
        assert again.data == made.data
        assert again.headers["Idempotency-Replayed"] == "true"
        listed = [item["summary"] for item in json.loads(other.get(EVENTS, headers=headers).data)["items"]]
        assert "Dentist" in listed
        path = f"{EVENTS}/{json.loads(made.data)['id']}"
        assert other.delete(path, headers=headers).status_code == 204
        assert one.delete(path, headers=headers).status_code in (404, 410)
    assert [e.effect for e in effects(tmp_path)] == ["event_created", "event_deleted"]


def test_twins_at_two_processes_have_one_effect(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    with service("messaging", tmp_path) as one, service("messaging", tmp_path) as other:
        barrier = threading.Barrier(8)

        def send(app: Flask) -> None:
            barrier.wait(DEADLINE_S)
            app.test_client().post(SEND, json=HELLO, headers=headers)

        together(*[partial(send, client.application) for client in (one, other)] * 4)
    assert [e.content["text"] for e in effects(tmp_path)] == ["Hello"]
