"""What was asked once is done once: within a process, between threads, and after a restart."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from service_parts import EVENTS, service, trial

from chaoslab.events import Effect, History

HELLO = {"channel": "Ana", "text": "Hello"}
SEND = "/api/chat.postMessage"


def effects(logs: Path) -> list[Effect]:
    return [e for folder in logs.glob("2*") for _, e in History.read(folder).of(Effect)]


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


def test_a_failure_without_effect_is_not_remembered(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    with service("translator", tmp_path) as client:
        body = {"q": "hello", "target": "xx"}
        for _ in range(2):
            reply = client.post("/translate", json=body, headers=headers)
            assert reply.status_code == 400
            assert "Idempotency-Replayed" not in reply.headers
        assert client.post("/translate", json=body | {"target": "fr"}, headers=headers).status_code == 200


def test_twins_at_the_same_moment_have_one_effect(tmp_path: Path) -> None:
    headers = trial(tmp_path) | {"Idempotency-Key": "k1"}
    replies: list[tuple[bytes, bool]] = []
    with service("messaging", tmp_path) as client:
        app, barrier = client.application, threading.Barrier(8)

        def send() -> None:
            barrier.wait(10)
            reply = app.test_client().post(SEND, json=HELLO, headers=headers)
            replies.append((reply.data, "Idempotency-Replayed" in reply.headers))

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
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
