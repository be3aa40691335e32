"""Programs reach their services through the gateway: unchanged where no fault hits, else broken, and witnessed."""

import hashlib
import os
import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import trustme

import chaoslab as lab
from chaoslab.base.clock import system
from chaoslab.base.jsonable import TEXT_MAX
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    FaultWitnessed,
    LabWarning,
    PromptAttempt,
    PromptFinished,
    Replied,
    Usage,
)
from chaoslab.seams.gateway.routes import is_host_name, parse_routes
from chaoslab.surfaces.gateway import log_trial_answer, parse_plan
from chaoslab.wire.http1 import BODY_MAX
from tests.gateway.parts import Shop, history, on_loopback, shop, standing
from tests.measure_parts import calls, uninjected
from tests.seams.lab_parts import eventually
from tests.waiting import HUNG_S, IMPATIENT_S


def met(logs: Path) -> list[str]:
    return [event.fault for _, event in history(logs).find_events(FaultWitnessed)]


def test_requests_pass_and_are_written_down_without_their_secrets(crm: str, tmp_path: Path) -> None:
    secrets = {"Authorization": "Bearer sk-of-a-user", "X-Api-Key": "key-of-a-user", "Cookie": "session=of-a-user"}
    with standing(tmp_path, [crm]) as running, httpx.Client(base_url=running.make_route_url("crm")) as client:
        reply = client.get("/price/17?api_key=query-of-a-user&page=2", headers={**secrets, "X-Trace": "t1"})
        assert client.post("/refunds", json={"order": 17}).json() == {"size": 12, "amount": 30}
    told = reply.json()
    assert told["path"] == "/price/17?api_key=query-of-a-user&page=2"
    assert {name: told["headers"].get(name) for name in (*secrets, "X-Trace")} == {**secrets, "X-Trace": "t1"}
    assert told["headers"]["Host"] == crm.partition("//")[2]
    assert "of-a-user" not in (tmp_path / "latest" / "info.log").read_text()
    calls = [(event.tool, event.arguments) for _, event in history(tmp_path).find_events(CallStarted)]
    assert calls == [("GET /price/17", {"query": {"api_key": "***", "page": "2"}}), ("POST /refunds", {"order": 17})]
    assert [event.content for _, event in history(tmp_path).find_events(Effect)] == [{"order": 17}]


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("latency", {"delay_s": 0.2}, "30"),
    ("tool_error", {"status": 503}, "503"),
    ("html_instead_of_json", {}, "<!DOCTYPE"),
    ("empty_response", {}, ""),
    ("reset_peer", {}, "ReadError"),
    ("lost_reply", {}, "ReadTimeout"),
    ("timeout", {}, "ReadTimeout"),
]


@pytest.mark.parametrize(("fault", "params", "seen"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_fault_is_met_by_the_client_and_witnessed(
    fault: str, params: dict[str, Any], seen: str, crm: str, tmp_path: Path
) -> None:
    given = {"fault": fault, "target": "crm", "calls": [2], **params}
    patience_s = IMPATIENT_S if seen == "ReadTimeout" else HUNG_S
    with (
        standing(tmp_path, [crm], given) as running,
        httpx.Client(base_url=running.make_route_url("crm"), timeout=HUNG_S) as client,
    ):
        assert client.get("/first").status_code == 200
        try:
            reply = client.get("/second", timeout=patience_s)
            found = f"{reply.status_code} {reply.text}"
        except httpx.HTTPError as error:
            found = type(error).__name__
        assert client.get("/third").status_code == 200
    assert seen in found
    assert met(tmp_path) == [fault]
    ends = sorted((event.request, event.target, event.ok) for _, event in history(tmp_path).find_events(CallFinished))
    assert len(ends) == 3  # the second may end last, since the gateway is told late that its client has gone
    assert ends == [(1, "crm", True), (2, "crm", fault == "latency"), (3, "crm", True)]


def test_a_wrong_value_is_in_the_answer_and_nothing_else(crm: str, tmp_path: Path) -> None:
    fault = {"fault": "wrong_value", "target": "crm"}
    with standing(tmp_path, [crm], fault) as running:
        value = httpx.post(running.make_route_url("crm") + "/refunds", json={"order": 17}).json()
    assert value.keys() == {"size", "amount"}
    assert value != {"size": 12, "amount": 30}
    assert met(tmp_path) == ["wrong_value"]


def test_the_answer_that_a_fault_shall_change_is_asked_for_unpacked(crm: str, tmp_path: Path) -> None:
    with standing(tmp_path, [crm], {"fault": "latency", "target": "crm", "calls": [1], "delay_s": 0.001}) as running:
        sent = [
            httpx.get(running.make_route_url("crm") + "/").json()["headers"].get("Accept-Encoding") for _ in range(2)
        ]
    assert sent == [None, httpx.Client().headers["Accept-Encoding"]]


@pytest.mark.parametrize("location", ["http://{host}/orders/", "/orders/"])
def test_a_redirect_and_a_cookie_lead_back_to_the_gateway(location: str, tmp_path: Path) -> None:
    class Redirects(Shop):
        def do_POST(self) -> None:
            if self.path == "/orders/":
                super().do_POST()
                return
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307, "Over There")
            self.send_header("Location", location.format(host=self.headers["Host"]))
            self.send_header("Set-Cookie", "basket=17; Path=/orders; HttpOnly")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with shop() as server:
        server.RequestHandlerClass = Redirects
        with standing(tmp_path, [f"crm={server.url}"]) as running, httpx.Client(follow_redirects=True) as client:
            reply = client.post(running.make_route_url("crm") + "/orders", json={"order": 17})
            assert [(each.status_code, each.reason_phrase) for each in reply.history] == [(307, "Over There")]
            assert reply.request.headers["Cookie"] == "basket=17"
    assert [(event.effect, event.content) for _, event in history(tmp_path).find_events(Effect)] == [
        ("POST /orders/", {"order": 17})
    ]


HALF = b'{"a": "cut \\ud83d", "price": 30}'
LINES = b'{"price": 30}\n{"price": 31}\n'


@pytest.mark.parametrize(("body", "kind"), [(HALF, "application/json"), (LINES, "application/x-ndjson")])
@pytest.mark.parametrize("fault", ["wrong_value", "schema_drift", "unit_error"])
def test_json_that_few_write_is_changed_too(fault: str, body: bytes, kind: str, tmp_path: Path) -> None:
    """One half of a surrogate pair, as JavaScript writes it for a text that it cut; and an object a line."""

    class Rare(Shop):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with shop() as server:
        server.RequestHandlerClass = Rare
        with standing(tmp_path, [f"crm={server.url}"], {"fault": fault, "target": "crm"}) as running:
            found = httpx.get(running.make_route_url("crm") + "/price").content
    assert met(tmp_path) == [fault]
    assert found != body
    assert found.count(b"\n") == body.count(b"\n")
    assert [end.error for _, end in history(tmp_path).find_events(CallFinished)] == [None]


def test_an_event_reaches_the_client_before_the_next_is_sent(server: Any, crm: str, tmp_path: Path) -> None:
    server.go_on.clear()
    with standing(tmp_path, [crm]) as running, httpx.stream("GET", running.make_route_url("crm") + "/stream") as reply:
        lines = (line for line in reply.iter_lines() if line)
        assert next(lines) == 'data: {"n": 0}'
        server.go_on.set()
        assert list(lines)[-1] == "data: [DONE]"
    (_, end), *_ = history(tmp_path).find_events(CallFinished)
    assert end.ok
    assert end.first_byte_s is not None
    assert end.last_byte_s is not None
    assert end.first_byte_s <= end.last_byte_s


@pytest.mark.parametrize("won", [True, False])
def test_a_reader_that_leaves_has_given_up_if_an_equal_request_was_answered(tmp_path: Path, *, won: bool) -> None:
    left = threading.Event()

    class FirstWaits(Shop):
        def _stream(self) -> None:
            self.server.RequestHandlerClass, self.server = Shop, SimpleNamespace(go_on=left)
            with suppress(OSError):
                super()._stream()

    with shop() as server:
        server.RequestHandlerClass = FirstWaits
        with (
            standing(tmp_path, [f"crm={server.url}"]) as running,
            httpx.Client(base_url=running.make_route_url("crm")) as client,
        ):
            with httpx.stream("GET", running.make_route_url("crm") + "/stream") as reply:
                assert next(reply.iter_lines()) == 'data: {"n": 0}'
                if won:
                    assert "[DONE]" in client.get("/stream").text
            left.set()
            eventually(lambda: len(list(history(tmp_path).find_events(CallFinished))) == 1 + won)
    found, lone = calls(history(tmp_path)), uninjected(history(tmp_path))
    assert (found.failed, found.given_up) == ((0, 1) if won else (1, 0))
    assert [one.error for one in lone] == ([] if won else ["timed_out"])


def test_it_serves_while_there_are_more_than_a_thousand_files(crm: str, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048) if hard == resource.RLIM_INFINITY else hard, hard))
    fault = {"fault": "latency", "target": "crm", "calls": [2], "delay_s": 0.01}
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1030)]
    try:
        with (
            standing(tmp_path, [crm], fault) as running,
            httpx.Client(base_url=running.make_route_url("crm")) as client,
        ):
            assert [client.get(f"/{n}").status_code for n in range(3)] == [200] * 3
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert met(tmp_path) == ["latency"]


@pytest.mark.parametrize("fault", [None, ("latency", {"delay_s": 20.0}), ("lost_reply", {})])
def test_of_two_hedged_requests_only_one_that_a_fault_held_back_failed(
    fault: tuple[str, dict[str, Any]] | None, crm: str, tmp_path: Path
) -> None:
    given = [{"fault": fault[0], "target": "crm", "calls": [1], "attempts": [1], **fault[1]}] if fault else []
    with standing(tmp_path, [crm], *given) as running:
        url = httpx.URL(running.make_route_url("crm"))
        path = url.path.rstrip("/")
        with socket.create_connection((url.host, url.port or 80), 20) as line:
            line.sendall(f"GET {path}/price/17 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            eventually(lambda: len(list(history(tmp_path).find_events(CallStarted))) == 1)
            assert httpx.get(running.make_route_url("crm") + "/price/17").status_code == 200
        eventually(lambda: len(list(history(tmp_path).find_events(CallFinished))) == 2)
    assert met(tmp_path) == ([fault[0]] if fault else [])
    assert calls(history(tmp_path)).failed == len(given)
    assert uninjected(history(tmp_path)) == []


@pytest.mark.parametrize(("fault", "events"), [("cut", 2), ("slow_chunks", 5)])
def test_a_stream_is_cut_or_slowed(fault: str, events: int, crm: str, tmp_path: Path) -> None:
    params: dict[str, Any] = {"after_events": 2} if fault == "cut" else {"delay_s": 0.2}
    given = {"fault": fault, "target": "crm", **params}
    with (
        standing(tmp_path, [crm], given) as running,
        httpx.stream("GET", running.make_route_url("crm") + "/stream") as reply,
    ):
        assert len([line for line in reply.iter_lines() if line]) == events
    assert met(tmp_path) == [fault]


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of a model on loopback, which says each word for itself."""
    with on_loopback(lab.scripted(["It is done, all of it."] * 9)) as url:
        yield f"openai={url}"


@pytest.mark.parametrize(
    ("fault", "said"), [("refusal", "I'm sorry, but I can't help with that."), ("early_stop", "It is done,")]
)
def test_a_model_behind_the_gateway_is_made_to_stream_another_answer(
    fault: str, said: str, model: str, tmp_path: Path
) -> None:
    import openai

    with standing(tmp_path, [model], {"fault": fault, "target": "openai"}) as running:
        client = openai.OpenAI(base_url=f"{running.make_route_url('openai')}/v1", api_key="none")
        with (
            client,
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            ) as stream,
        ):
            assert "".join(event.choices[0].delta.content or "" for event in stream) == said
    assert met(tmp_path) == [fault]


def test_a_route_is_a_model_by_what_is_asked(model: str, crm: str, tmp_path: Path) -> None:
    """The same request twice is no harm at a model, and is at any other service, whatever the routes are called."""
    asked = {"model": "m", "messages": [{"role": "user", "content": text} for text in ("one", "two", "three", "four")]}
    known = [model.replace("openai=", "llm="), crm]
    fault = {"fault": "truncate_context", "target": "llm", "calls": [1]}
    with standing(tmp_path, known, fault) as running:
        for _ in range(2):
            httpx.post(running.make_route_url("llm") + "/v1/chat/completions", json=asked)
            httpx.post(running.make_route_url("crm") + "/channels/7/messages", json={"text": "hello"})
        httpx.post(running.make_route_url("llm") + "/v1/embeddings", json={"model": "m", "input": "x"})
    assert met(tmp_path) == ["truncate_context"]
    assert {event.effect for _, event in history(tmp_path).find_events(Effect)} == {"POST /channels/7/messages"}
    assert len(list(history(tmp_path).find_events(Usage))) == 2


def test_a_fault_that_a_models_format_cannot_say_is_refused() -> None:
    known = parse_routes(["gemini=https://generativelanguage.googleapis.com"])
    with pytest.raises(ValueError, match="and those of gemini are objects: inject malformed_arguments"):
        parse_plan(['{"fault": "cut_arguments", "target": "gemini"}'], None, 1, known)


def test_bodies_over_the_bound_pass_whole(crm: str, tmp_path: Path) -> None:
    size = BODY_MAX + 70_000
    fault = {"fault": "tool_error", "target": "crm", "status": 500, "calls": [9]}
    with standing(tmp_path, [crm], fault) as running, httpx.Client(base_url=running.make_route_url("crm")) as client:
        assert client.post("/big", content=b"x" * size).json()["size"] == size
        assert client.post("/parts", content=iter([b"y" * 1_000_000] * 6)).json()["size"] == 6_000_000
        assert client.get("/after").status_code == 200


def test_the_log_has_the_seconds_of_an_answer_to_the_microsecond(crm: str, tmp_path: Path) -> None:
    with standing(tmp_path, [crm]) as running:
        log_trial_answer(running.book, prompt="x", answer="y", seconds=1 / 7)
    _, attempt = next(history(tmp_path).find_events(PromptAttempt))
    _, end = next(history(tmp_path).find_events(PromptFinished))
    assert (attempt.duration_s, end.duration_s) == (0.142857, 0.142857)


def test_the_log_keeps_the_beginning_of_a_long_text_and_no_half_of_a_secret(crm: str, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    words = "word " * (TEXT_MAX // 5 - 3)
    text = words + token + "!" * 50_000
    with standing(tmp_path, [crm]) as running, httpx.Client(base_url=running.make_route_url("crm")) as client:
        assert client.post("/notes", content=text).json()["size"] == len(text)
        client.post("/orders", json={"order": 17, "scan": text})
    log = (tmp_path / "latest" / "info.log").read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    shown = f"{words}… ({len(text)} characters, SHA-256 {digest})"
    contents = [event.content for _, event in history(tmp_path).find_events(Effect)]
    assert contents == [{"body": shown}, {"order": 17, "scan": shown}]
    assert log.count(digest) == 4  # the call and the effect of each
    assert token[:8] not in log
    assert len(log) < 100_000


def test_a_key_in_the_query_reaches_the_service_though_a_fault_changes_the_request(
    server: Any, crm: str, tmp_path: Path
) -> None:
    turns = [{"role": "user", "parts": [{"text": text}]} for text in ("one", "two", "three", "four")]
    fault = {"fault": "truncate_context", "target": "gemini"}
    route = crm.replace("crm=", "gemini=")
    with standing(tmp_path, [route], fault) as running:
        url = running.make_route_url("gemini") + "/v1beta/models/gemini-2.5-flash:generateContent?key=key-of-a-user"
        size = httpx.post(url, json={"contents": turns}).json()["size"]
    assert met(tmp_path) == ["truncate_context"]
    assert size < len(str(turns))
    assert server.posted_to == "/v1beta/models/gemini-2.5-flash:generateContent?key=key-of-a-user"
    assert "key-of-a-user" not in (tmp_path / "latest" / "info.log").read_text()


@pytest.mark.parametrize(
    ("headers", "path", "status", "words"),
    [
        ({"Origin": "null"}, "/crm/x", 403, "answers programs, not pages of a browser"),
        ({"Origin": "http://evil.example"}, "/crm/x", 403, "answers programs, not pages of a browser"),
        ({"Host": "evil.example"}, "/crm/x", 403, "answers to 127.0.0.1 and localhost, not to 'evil.example'"),
        ({}, "/cmr/x", 404, "no route is called 'cmr': did you mean 'crm'?"),
        ({}, "/", 404, "the path names no route: it should begin with /crm/ or /down/"),
        ({}, "/down/x", 502, "the upstream down (http://127.0.0.1:1) gave no answer: Connection refused"),
        ({}, "/crm/dies", 502, "gave no answer: it closed the connection"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    headers: dict[str, str], path: str, status: int, words: str, crm: str, tmp_path: Path
) -> None:
    with standing(tmp_path, [crm, "down=http://127.0.0.1:1"]) as running:
        reply = httpx.get(running.address + path, headers=headers)
    assert (reply.status_code, words in reply.json()["error"]) == (status, True)
    assert met(tmp_path) == []


def test_tls_that_fails_is_said_and_tls_that_holds_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    def answer(listener: socket.socket) -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(line, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        route = [f"safe=https://localhost:{listener.getsockname()[1]}"]
        with standing(tmp_path / "a", route) as running:
            reply = httpx.get(running.make_route_url("safe") + "/x")
        found = (reply.status_code, "refuses TLS: self" in reply.text or "refuses TLS: unable" in reply.text)
        assert found == (502, True)
        from chaoslab.seams.gateway import _upstream as upstream

        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        monkeypatch.setattr(upstream, "_make_tls_context", lambda: trusting)
        with standing(tmp_path / "b", route) as running:
            assert httpx.get(running.make_route_url("safe") + "/x").text == "ok"
        listener.shutdown(socket.SHUT_RDWR)


def test_a_models_route_has_no_effects_and_its_usage_is_counted(model: str, tmp_path: Path) -> None:
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "What is 17 times 3?"}]}
    fault = {"fault": "tool_error", "target": "model", "status": 429, "calls": [2]}
    with standing(tmp_path, [model.replace("openai=", "model=")], fault) as running:
        first, second = (
            httpx.post(running.make_route_url("model") + "/v1/chat/completions", json={**asked, "seed": n})
            for n in (1, 2)
        )
    assert (first.status_code, second.status_code, second.json()["error"]["code"]) == (200, 429, "rate_limit_exceeded")
    assert second.reason_phrase == "Too Many Requests"
    assert list(history(tmp_path).find_events(Effect)) == []
    assert [event.prompt_tokens for _, event in history(tmp_path).find_events(Usage)] == [
        first.json()["usage"]["prompt_tokens"]
    ]
    _, kept = next(history(tmp_path).find_events(Replied))
    assert (kept.target, kept.body) == ("model", first.text), "for lab.recorded"


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ([], "no route is given: --route NAME=URL, as in --route crm=http://127.0.0.1:9000"),
        (["crm"], "the route 'crm' has no URL: as in crm=http://127.0.0.1:9000"),
        (["http://127.0.0.1:9000"], "the route 'http://127.0.0.1:9000' has no name: as in crm=http://127.0.0.1:9000"),
        (["crm=127.0.0.1:9000"], "the route crm goes to '127.0.0.1:9000': it should begin with http:// or https://"),
        (["Crm=http://a"], "the route 'Crm=http://a' has a wrong name: small letters, digits, - and _"),
        (["crm=http://a:99999"], "the route crm goes to 'http://a:99999': its port should be from 0 to 65535"),
        (["crm=http://u:p@a"], "the route crm goes to 'http://***@a': it should be a scheme, a host and a path"),
        (["crm=http://"], "the route crm goes to 'http://': it should be a scheme, a host and a path"),
        (["crm=http://a?b=1"], "the route crm goes to 'http://a?b=1': it should be a scheme"),
        (["crm=http://a#b"], "the route crm goes to 'http://a#b': it should be a scheme"),
        (
            ["crm.test"],
            "the route 'crm.test' has no URL: as in crm=http://127.0.0.1:9000; a host alone needs the proxy",
        ),
        (["crm=http://a", "crm=http://b"], "two routes are called crm: each needs a name of its own"),
    ],
)
def test_a_wrong_route_is_one_line(texts: list[str], line: str) -> None:
    with pytest.raises(ValueError, match="rout") as told:
        parse_routes(texts)
    assert str(told.value).startswith(line)


def test_a_host_has_a_port_that_there_is() -> None:
    named = ["crm.test:1", "crm.test:65535", "crm.test", "b.test:8080=http://crm.test", "c.test=https://[::1]:8/v1/"]
    assert [(each.url, each.is_local) for each in parse_routes(named, hosts=True).values()] == [
        ("http://crm.test:1", False), ("http://crm.test:65535", False), ("https://crm.test", False),
        ("http://crm.test", False), ("https://[::1]:8/v1", True),
    ]  # fmt: skip
    assert parse_routes([], hosts=True) == {}
    for port in (0, 65536):
        with pytest.raises(ValueError, match=rf"^the host crm\.test:{port} should have a port from 1 to 65535$"):
            parse_routes([f"crm.test:{port}"], hosts=True)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("api.openai.com", True), ("crm:8080", True), ("localhost", True), ("crm", False), ("a/x.y", False), ("", False)],
)
def test_a_host_is_told_from_a_route_by_its_dots_or_its_port(name: str, *, is_one: bool) -> None:
    assert is_host_name(name) is is_one


@pytest.mark.parametrize("headers", [{"Origin": "own"}, {"Origin": "http://localhost:3000"}, {"Host": "localhost."}])
def test_a_program_that_names_its_own_origin_is_no_page(headers: dict[str, str], crm: str, tmp_path: Path) -> None:
    with standing(tmp_path, [crm]) as running:
        given = {name: running.address if value == "own" else value for name, value in headers.items()}
        assert httpx.get(f"{running.make_route_url('crm')}/x", headers=given).status_code != 403


def test_a_stream_of_events_may_be_silent_for_longer_than_a_service(tmp_path: Path) -> None:
    with shop() as server, standing(tmp_path, [f"crm={server.url}"], timeout_s=IMPATIENT_S) as running:
        server.go_on.clear()
        with httpx.stream("GET", f"{running.make_route_url('crm')}/stream") as reply:
            lines = reply.iter_lines()
            next(lines)
            until_s = system.monotonic() + IMPATIENT_S + 0.5
            eventually(lambda: system.monotonic() > until_s)
            server.go_on.set()
            assert len([*lines]) > 8
    assert [event.ok for _, event in history(tmp_path).find_events(CallFinished)] == [True]


def test_a_body_that_is_too_large_for_a_fault_is_told(crm: str, tmp_path: Path) -> None:
    with standing(tmp_path, [crm], {"fault": "lost_reply", "target": "crm"}) as running:
        httpx.post(f"{running.make_route_url('crm')}/refunds", content=b"x" * (5 * 1024 * 1024))
    told = [event.message for _, event in history(tmp_path).find_events(LabWarning)]
    assert "crm POST /refunds (1.1): its body is over 4 MiB, so no fault hits it" in told
