"""The forms of a service: WSGI, ASGI, Flask and plain functions, over http and https, with faults at each."""

import asyncio
import contextlib
import errno
import json
import logging
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any

import flask
import groq
import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.core.events import CallStarted
from chaoslab.seams.services.app import AppRequest, detect_service_kind
from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network import asgi
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

Message = dict[str, Any]


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log of services' errors, which other tests silence."""
    caplog.set_level(logging.ERROR, "chaoslab.worlds.virtual.network.serving")
    return caplog


class Asgi:
    """An ASGI application by hand: a lifespan, POST /orders, and a stream of five events at /stream."""

    def __init__(self) -> None:
        self.life: list[str] = []
        self.left: list[str] = []

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        assert scope["type"] == "http"
        heard = await receive()
        if scope["path"] == "/fails":
            raise ValueError("the service's own error")
        if scope["path"] == "/stream":
            await self._stream(receive, send)
            return
        await asyncio.sleep(1)
        told = {
            "item": json.loads(heard["body"] or b"null"), "query": scope["query_string"].decode(),
            "scheme": scope["scheme"],
            "server": scope["server"], "state": scope["state"], "host": dict(scope["headers"])[b"host"].decode(),
        }  # fmt: skip
        await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    async def _live(self, scope: Any, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:
        for stage in ("startup", "shutdown"):
            self.life.append((await receive())["type"])
            scope["state"]["open"] = True
            await asyncio.sleep(1)
            await send({"type": f"lifespan.{stage}.complete"})
        self.life.append("over")

    async def _stream(self, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        for number in range(5):
            await asyncio.sleep(1)
            await send({"type": "http.response.body", "body": f"data: {number}\n\n".encode(), "more_body": True})
        await send({"type": "http.response.body"})
        self.left.append((await receive())["type"])


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("201 Created", [("Content-Type", "application/json")])
    return [json.dumps({"scheme": environ["wsgi.url_scheme"]}).encode()]


flasked = flask.Flask(__name__)


@flasked.post("/orders")
def orders() -> Any:
    return {"scheme": flask.request.scheme}, 201


def function(_: AppRequest) -> Any:
    return 201, {"scheme": "?"}


async def coroutine(_: AppRequest) -> Any:
    await asyncio.sleep(1)
    return 201, {"scheme": "?"}


FORMS: list[tuple[Any, str]] = [
    (wsgi, "wsgi"), (flasked, "wsgi"), (Asgi(), "asgi"), (function, "function"), (coroutine, "function"),
]  # fmt: skip
named = pytest.mark.parametrize(("app", "kind"), FORMS, ids=["wsgi", "flask", "asgi", "function", "coroutine"])


def place(url: str) -> Callable[[str], str]:
    def agent(_: str) -> str:
        for _attempt in range(2):
            with contextlib.suppress(httpx.HTTPError):
                return str(httpx.post(url, json="tea", timeout=5).json()["scheme"])
        return "no order"

    return agent


@named
def test_each_form_answers_at_both_ports(app: Any, kind: str) -> None:
    assert detect_service_kind(app) == kind
    for scheme in ("http", "https"):
        trial = lab.run(place(f"{scheme}://shop/orders"), "go", services={"shop": app}, twin=False)
        assert trial.error is None
        assert trial.answer in (scheme, "?")
        assert [effect["effect"] for effect in trial.effects] == ["POST /orders"]


class Started:
    """As a response of werkzeug, a class whose making is the answer."""

    def __init__(self, environ: Any, start_response: Any) -> None: ...


class Made:
    def __init__(self, name: str, port: int = 80) -> None: ...


async def with_default(request: Any, more: int = 1) -> None: ...
async def without_names(*args: Any) -> None: ...
async def of_two(one: Any, other: Any) -> None: ...
async def of_nothing(one: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("app", "kind"),
    [
        (Started, "wsgi"),
        (lambda _environ, _start_response, _more=1: (), "wsgi"),
        (lambda *_: (), "wsgi"),
        (max, "wsgi"),  # written in C, which does not tell
        (without_names, "asgi"),
        (partial(partial(without_names, 1), 2), "asgi"),
        (with_default, "function"),
        (of_nothing, "function"),
        (partial(of_two, 1), "function"),
        (lambda _request, *, _more=1: None, "function"),
        (3, "it should be a WSGI or ASGI application"),
        (Made, "it is a class: give what it makes, as in Made(…), which should be a WSGI or ASGI"),
        (lambda: None, "it takes 0 arguments: it should be a WSGI"),
        (lambda _1, _2, _3: None, "it takes 3 arguments: it should be a WSGI"),
        (of_two, "it takes 2 arguments: it should be a WSGI"),
    ],
)  # fmt: skip
def test_a_form_is_told_by_what_a_callable_takes(app: Any, kind: str) -> None:
    if kind.startswith("it "):
        with pytest.raises(TypeError) as told:
            detect_service_kind(app)
        assert str(told.value).startswith(kind)
    else:
        assert detect_service_kind(app) == kind


@named
def test_a_reply_that_is_lost_doubles_the_order_of_each_form(app: Any, kind: str) -> None:  # noqa: ARG001
    lost = lab.inject("lost_reply", "shop", calls=[1])
    trial = lab.run(place("https://shop/orders"), "go", services={"shop": app}, faults=[lost])
    assert str(trial.why) == "POST /orders twice"


@named
def test_a_refused_connection_and_an_error_reach_no_form(app: Any, kind: str) -> None:  # noqa: ARG001
    for fault in ("refused", "tool_error"):
        struck = lab.inject(fault, "shop", calls=[1], attempts=[1, 2])
        trial = lab.run(place("https://shop/orders"), "go", services={"shop": app}, faults=[struck], twin=False)
        assert trial.effects == []


def test_what_an_asgi_application_is_told_and_when_it_lives() -> None:
    app = Asgi()

    def agent(_: str) -> Any:
        return httpx.post("https://shop:8443/or%20ders?a=b", json={"n": 1}, timeout=5).json()

    def other(_: str) -> str:
        return "it asks nobody"

    trial = lab.run(agent, "go", services={"shop:8443": app}, twin=False)
    assert trial.answer == {
        "item": {"n": 1}, "scheme": "https", "query": "a=b", "server": ["shop", 8443], "state": {"open": True},
        "host": "shop:8443",
    }  # fmt: skip
    assert round(trial.seconds, 2) == 2.0, "a second to start and one to answer; its end is none of the trial's time"
    assert app.life == ["lifespan.startup", "lifespan.shutdown", "over"]
    assert "+2.000 s  answer   after 2.000 s" in trial.story()
    lab.run(other, "go", services={"shop": app}, twin=False)
    assert len(app.life) == 3


def test_a_stream_of_an_asgi_application_comes_event_by_event_and_is_cut() -> None:
    app = Asgi()

    def agent(_: str) -> Any:
        begun, seen = time.monotonic(), []
        with httpx.stream("GET", "https://shop/stream") as reply:
            for line in reply.iter_lines():
                if line:
                    seen.append((line, round(time.monotonic() - begun)))
        return seen

    whole = [(f"data: {number}", number + 2) for number in range(5)]
    assert lab.run(agent, "go", services={"shop": app}, twin=False).answer == whole
    assert app.left == ["http.disconnect"]
    cut = lab.inject("cut", "shop", after_events=2)
    trial = lab.run(agent, "go", services={"shop": app}, faults=[cut], twin=False)
    assert trial.answer == whole[:2]
    assert "2 events, without [DONE] – witnessed" in trial.story()


def test_an_asgi_application_that_fails_is_a_500_and_the_world_goes_on(errors: pytest.LogCaptureFixture) -> None:
    def agent(_: str) -> list[int]:
        return [httpx.get(f"http://shop/{path}", timeout=9).status_code for path in ("fails", "orders")]

    assert lab.run(agent, "go", services={"shop": Asgi()}, twin=False).answer == [500, 201]
    assert "the service's own error" in errors.text


class Broken:
    """A WSGI application's answer that fails: before its first part, in its rest, or where it is closed."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __iter__(self) -> Iterator[bytes]:
        if self.where == "first":
            raise ValueError("the first failed")
        yield b"20"
        if self.where == "rest":
            raise ValueError("the rest failed")

    def close(self) -> None:
        if self.where == "close":
            raise ValueError("the close failed")


def breaking(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    where = environ["PATH_INFO"][1:]
    start_response("200 OK", [("Content-Length", "4" if where == "rest" else "2")])
    return Broken(where)


def breaking_in_chunks(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    return Broken(environ["PATH_INFO"][1:])


async def breaking_asgi(scope: Any, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:  # noqa: ARG001
    if scope["path"] == "/first":
        raise ValueError("the first failed")
    more = scope["path"] == "/rest"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/head":
        raise ValueError("the head failed")
    await send({"type": "http.response.body", "body": b"20", "more_body": more})
    if not more:
        raise ValueError("the close failed")


def read_to_its_end(where: str) -> tuple[int, bytes, str]:
    """The status, the body as far as it comes, and the client's own word for its end."""
    with httpx.stream("POST", f"http://shop/{where}") as reply:
        body = b""
        try:
            for part in reply.iter_raw():
                body += part
        except httpx.RemoteProtocolError as error:
            return reply.status_code, body, str(error)
        return reply.status_code, body, "whole"


FAILED = (500, b"Internal Server Error", "whole")
IN_CHUNKS = (200, b"20", "peer closed connection without sending complete message body (incomplete chunked read)")
BY_LENGTH = (
    200,
    b"20",
    "peer closed connection without sending complete message body (received 2 bytes, expected 4)",
)


@pytest.mark.parametrize("fault", [None, "latency", "slicer"])
@pytest.mark.parametrize(
    ("app", "where", "heard"),
    [
        (breaking, "first", FAILED), (breaking_in_chunks, "first", FAILED), (breaking_asgi, "first", FAILED),
        (breaking_asgi, "head", (200, b"", IN_CHUNKS[2])),
        (breaking, "rest", BY_LENGTH), (breaking_in_chunks, "rest", IN_CHUNKS), (breaking_asgi, "rest", IN_CHUNKS),
        (breaking, "close", (200, b"20", "whole")), (breaking_in_chunks, "close", IN_CHUNKS),
        (breaking_asgi, "close", (200, b"20", "whole")),
    ],
)  # fmt: skip
def test_what_fails_in_an_answer_is_the_same_with_a_fault_on_it(
    app: Any, where: str, heard: Any, fault: str | None, errors: pytest.LogCaptureFixture
) -> None:
    faults = [lab.inject(fault, "shop")] if fault else []
    trial = lab.run(lambda _: read_to_its_end(where), "go", services={"shop": app}, faults=faults, twin=False)
    assert trial.answer == heard
    assert [effect["effect"] for effect in trial.effects] == ([] if where == "first" else [f"POST /{where}"])
    assert re.search(f"the {where} failed|the application did not end its answer", errors.text)


def broken_stream(_: AppRequest) -> Any:
    def events() -> Iterator[str]:
        yield "data: 1\n\ndata: 2\n\n"
        raise ValueError("the rest failed")

    return 200, events(), {"Content-Type": "text/event-stream"}


@pytest.mark.usefixtures("errors")
def test_the_events_before_a_break_come_though_a_fault_delays_them() -> None:
    faults = [lab.inject("slow_chunks", "shop", delay_s=2.0)]
    trial = lab.run(lambda _: read_to_its_end("x"), "go", services={"shop": broken_stream}, faults=faults, twin=False)
    assert trial.answer == (200, b"data: 1\n\ndata: 2\n\n", IN_CHUNKS[2])


async def fails_to_start(scope: Any, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})


def test_an_application_that_cannot_start_answers_500(errors: pytest.LogCaptureFixture) -> None:
    def agent(_: str) -> int:
        return httpx.get("http://shop/").status_code

    assert lab.run(agent, "go", services={"shop": fails_to_start}, twin=False).answer == 500
    assert "the service shop failed to start: no database" in errors.text


async def without_lifespan(scope: Any, receive: Callable[[], Any], send: Callable[[Message], Any]) -> None:
    assert scope["type"] == "http"
    task = asyncio.ensure_future(receive())
    await task
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a", "more_body": True})
    await receive()
    LEFT.append("left")


LEFT: list[str] = []


def test_who_hangs_up_is_noticed_by_the_application() -> None:
    def agent(_: str) -> bytes:
        with httpx.stream("GET", "http://shop/") as reply:
            first = next(reply.iter_raw())
        time.sleep(1)
        return first

    LEFT.clear()
    trial = lab.run(agent, "go", services={"shop": without_lifespan}, twin=False, deadline_s=60)
    assert (trial.answer, trial.error) == (b"a", None)
    assert LEFT == ["left"]


def replies(request: AppRequest) -> Any:
    kinds: dict[str, Any] = {
        "/dict": {"a": 1}, "/list": [1], "/text": "hällo", "/bytes": b"\x00", "/none": None, "/status": (404, "no"),
        "/headers": (200, {"b": 2}, {"X-A": "1", "Content-Type": "application/x"}), "/wrong": 3, "/short": (200,),
    }  # fmt: skip
    if request.path == "/echo":
        headers = [request.headers.get(name) for name in ("x-b", "content-type")]
        return [request.method, dict(request.query), headers, request.json, request.text]
    if request.path == "/parts":
        return 200, _parts(), {"Content-Type": "text/event-stream"}
    return kinds[request.path]


def _parts() -> Iterator[str]:
    for number in range(2):
        time.sleep(1)
        yield f"data: {number}\n\n"


def test_the_replies_of_a_function(errors: pytest.LogCaptureFixture) -> None:
    def agent(_: str) -> list[Any]:
        seen: list[Any] = []
        for path in ("dict", "list", "text", "bytes", "none", "status", "headers", "parts", "wrong", "short"):
            reply = httpx.get(f"http://shop/{path}")
            seen.append((reply.status_code, reply.headers.get("content-type"), reply.content))
        seen.append(httpx.post("http://shop/echo?q=1&e=", json={"n": 1}, headers={"X-B": "c"}).json())
        seen.append(httpx.post("http://shop/echo", content="{", headers={"X-B": "c"}).status_code)
        return seen

    text = "text/plain; charset=utf-8"
    assert lab.run(agent, "go", services={"shop": replies}, twin=False).answer == [
        (200, "application/json", b'{"a": 1}'),
        (200, "application/json", b"[1]"),
        (200, text, "hällo".encode()),
        (200, "application/octet-stream", b"\x00"),
        (204, None, b""),
        (404, text, b"no"),
        (200, "application/x", b'{"b": 2}'),
        (200, "text/event-stream", b"data: 0\n\ndata: 1\n\n"),
        (500, "text/plain", b"Internal Server Error"),
        (500, "text/plain", b"Internal Server Error"),
        ["POST", {"q": "1", "e": ""}, ["c", "application/json"], {"n": 1}, '{"n":1}'],
        400,
    ]
    assert "the service replies returned int 3: it should return a dict, list, str, bytes or None, or" in errors.text


def test_services_of_one_host_stand_at_several_ports_and_faults_tell_them_apart() -> None:
    def agent(_: str) -> list[int]:
        return [requests.get(f"http://localhost:{port}/", timeout=5).status_code for port in (11434, 8000)]

    def ok(request: AppRequest) -> str:  # noqa: ARG001
        return "ok"

    struck = lab.inject("tool_error", "localhost:8000", status=429)
    services = {"localhost:11434": ok, "localhost:8000": ok}
    assert lab.run(agent, "go", services=services, faults=[struck], twin=False).answer == [200, 429]


def test_the_sdk_of_a_model_speaks_to_its_own_address() -> None:
    def model(request: AppRequest) -> Any:
        assert request.path == "/openai/v1/chat/completions"
        said = {"role": "assistant", "content": f"Hello, {request.json['model']}."}
        return {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        }  # fmt: skip

    def agent(_: str) -> Any:
        with groq.Groq(api_key="k") as client:
            return client.chat.completions.create(model="m", messages=[]).choices[0].message.content

    async def agent_async(_: str) -> Any:
        async with groq.AsyncGroq(api_key="k") as client:
            return (await client.chat.completions.create(model="m", messages=[])).choices[0].message.content

    late = lab.inject("tool_error", "api.groq.com", calls=[1], attempts=[1], status=429)
    for each in (agent, agent_async):
        trial = lab.run(each, "go", services={"api.groq.com": model}, faults=[late])
        assert trial.answer == "Hello, m."
        assert trial.seconds >= 1, "it waited as the reply told it"


# Hosts that are no service.


def test_a_host_elsewhere_may_be_unreachable_and_the_trial_says_so_once() -> None:
    def agent(_: str) -> list[str]:
        seen = []
        for url in ("https://nowhere.example/", "http://192.0.2.1/", "https://nowhere.example/"):
            try:
                httpx.get(url)
            except httpx.ConnectError as error:
                seen.append(str(error))
        return seen

    async def agent_async(_: str) -> list[str]:
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("https://nowhere.example/")
        return agent("")

    for each in (agent, agent_async):
        trial = lab.run(each, "go", elsewhere="unreachable", twin=False)
        unknown = f"[Errno {socket.EAI_NONAME}] Name or service not known"
        assert trial.answer == [unknown, f"[Errno {errno.ENETUNREACH}] Network is unreachable", unknown]
        assert trial.warnings == (
            "nowhere.example could not be reached: no service has this name",
            "192.0.2.1 could not be reached: no service has this name",
        )
        assert trial.story().count("nowhere.example could not be reached") == 2, "in the log and at the end"


def test_an_unknown_host_ends_the_trial_and_the_nearest_service_is_named() -> None:
    def agent(_: str) -> str:
        return httpx.get("https://api.openai.co/v1").text

    def telemetry(_: str) -> str:
        return httpx.get("https://raw.githubusercontent.com/x").text

    with pytest.raises(
        BaseException, match=r"^the host api.openai.co \(in .*did you mean the service 'api.openai.com'"
    ):
        lab.run(agent, "go", services={"api.openai.com": function})
    with pytest.raises(BaseException, match=r"^the host raw\.githubusercontent\.com"):
        lab.run(telemetry, "go")

    def moved(_: str) -> str:
        return httpx.get("https://api.together.ai/v1").text

    hint = r"it is together's, as 'api.together.xyz' is: name that service 'api.together.ai'. Else pass a fake"
    with pytest.raises(BaseException, match=hint):
        lab.run(moved, "go", services={"api.together.xyz": function})


def test_the_telemetry_of_an_sdk_ends_no_trial() -> None:
    """The SDK is told by its module's name."""
    names: dict[str, Any] = {"__name__": "litellm.prices", "httpx": httpx}
    exec("def prices():\n    return httpx.get('https://raw.githubusercontent.com/x').text", names)  # noqa: S102

    def agent(_: str) -> str:
        try:
            return str(names["prices"]())
        except httpx.ConnectError:
            return "the list of the package itself"

    trial = lab.run(agent, "go", twin=False)
    assert trial.answer == "the list of the package itself"
    (warning,) = trial.warnings
    assert warning.startswith("raw.githubusercontent.com (a list of models and prices) could not be reached")


@pytest.mark.parametrize(
    ("host", "module", "variable"),
    [
        ("openaipublic.blob.core.windows.net", "tiktoken.load", "TIKTOKEN_CACHE_DIR"),
        ("huggingface.co", "huggingface_hub.file_download", "HF_HOME"),
    ],
)
def test_a_tokenizers_download_is_unreachable_and_its_error_names_the_cache(
    host: str, module: str, variable: str
) -> None:
    names: dict[str, Any] = {"__name__": module, "httpx": httpx}
    exec(f"def load():\n    return httpx.get('https://{host}/x').text", names)  # noqa: S102
    trial = lab.run(lambda _: names["load"](), "go", twin=False)
    assert variable in str(trial.error)
    (warning,) = trial.warnings
    assert warning.startswith(f"{host} (")
    assert variable in warning


def test_a_cache_of_answers_is_suspected_if_the_model_is_not_asked() -> None:
    kept: dict[str, str] = {}

    def agent(prompt: str) -> str:
        if prompt not in kept:
            asked = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
            said = httpx.post("https://api.openai.com/v1/chat/completions", json=asked).json()
            kept[prompt] = said["choices"][0]["message"]["content"]
        return kept[prompt]

    services = {"api.openai.com": lab.scripted(["One."])}
    fault = lab.inject("latency", "api.openai.com", delay_s=3.0)
    with pytest.raises(
        lab.NoBaseline, match=r'calls POST /v1/chat/completions with \{"messages": 1\} and the other does not'
    ):
        lab.run(agent, "go", services=services, faults=[fault])
    kept.clear()
    trial = lab.run(agent, "go", services=services, faults=[fault], anyway=True)
    assert [w for w in trial.warnings if "isolate='fork'" in w and "though the run without faults asked" in w]
    again = lab.run(agent, "go", services=services, twin=False)
    assert [w for w in again.warnings if "api.openai.com was not asked in this trial: a cache of answers" in w]
    kept.clear()
    forked = lab.run(agent, "go", services=services, faults=[fault], isolate="fork")
    assert (forked.warnings, round(forked.seconds)) == ((), 3)


def test_the_reports_of_an_sdk_are_no_requests_to_the_model_whose_host_they_go_to() -> None:
    names: dict[str, Any] = {"__name__": "agents.tracing.processors", "httpx": httpx}
    exec("def export():\n    return httpx.post('https://api.openai.com/v1/traces/ingest')", names)  # noqa: S102

    def ask() -> str:
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        said = httpx.post("https://api.openai.com/v1/chat/completions", json=asked).json()
        return str(said["choices"][0]["message"]["content"])

    def agent(_: str) -> str:
        with contextlib.suppress(httpx.ConnectError):
            names["export"]()
        return ask() + ask()

    trial = lab.run(
        agent, "go", services={"api.openai.com": lab.scripted(["One. ", "Two."])},
        faults=[lab.inject("latency", "api.openai.com", delay_s=3.0, calls=[2])],
    )  # fmt: skip
    assert (trial.answer, str(trial.outcome), round(trial.seconds)) == ("One. Two.", "correct", 3)
    assert [event.tool for _, event in trial.history.find_events(CallStarted)] == ["POST /v1/chat/completions"] * 2
    assert trial.warnings == (
        "api.openai.com was not reached by the tracing of openai-agents: that is no request to the model",
    )


def test_who_asks_for_an_unknown_host_for_ever_is_hung() -> None:
    def agent(_: str) -> None:
        while True:
            with contextlib.suppress(httpx.ConnectError):
                httpx.get("https://nowhere.example/")

    trial = lab.run(agent, "go", elsewhere="unreachable", twin=False, calls_max=100)
    assert str(trial.outcome) == "hung"
    assert trial.why.startswith("nowhere.example is asked again and again without a wait")


# Loops.


def test_a_loop_that_the_agent_keeps_is_as_new_in_the_next_trial() -> None:
    kept: list[asyncio.AbstractEventLoop] = []
    closed: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            closed.append("closed")

    def agent(_: str) -> float:
        if not kept:
            kept.append(asyncio.new_event_loop())
        kept[0].create_task(waits())
        begun = time.monotonic()
        kept[0].run_until_complete(asyncio.sleep(2))
        return time.monotonic() - begun

    trial = lab.run(agent, "go")
    assert (trial.answer, trial.error) == (2.0, None)
    assert closed == ["closed"] * 3, "the twin runs twice"
    assert kept[0].is_closed()


def test_a_thread_that_outlives_its_trial_leaves_no_loop_open(recwarn: pytest.WarningsRecorder) -> None:
    async def ticks() -> AsyncIterator[int]:
        while True:
            await asyncio.sleep(1)
            yield 1

    async def tick() -> None:
        async for _ in ticks():
            pass

    def agent(_: str) -> str:
        asyncio.new_event_loop()
        threading.Thread(target=lambda: asyncio.run(tick()), daemon=True).start()
        time.sleep(3)
        return "done"

    assert lab.run(agent, "go").ok
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_own_backend_on_this_computer_is_not_covered(host: str) -> None:
    def agent(_: str) -> str:
        with contextlib.suppress(httpx.ConnectError):
            httpx.post(f"http://{host}:8123/refunds", json={"order": 17})
        return "done"

    said = (
        r"a connection to 127.0.0.1:8123 \(in test_service_apps.py, line \d+, agent\) is not covered by virtual time: "
    )
    fake = r"pass a fake with services=\{'127.0.0.1:8123': …\}, in files services: \{127.0.0.1:8123: module:name\}; "
    with pytest.raises(Unsupported, match=said + fake):
        lab.run(agent, "go")
    trial = lab.run(agent, "go", elsewhere="unreachable", twin=False)
    assert (trial.answer, trial.warnings) == (
        "done", ("127.0.0.1:8123 could not be reached: no service has this address",),
    )  # fmt: skip
    trial = lab.run(agent, "go", services={f"{host}:8123": lambda _: (201, {})}, twin=False)
    assert (trial.answer, [effect["effect"] for effect in trial.effects]) == ("done", ["POST /refunds"])


def test_a_server_of_the_agents_own_may_be_asked_before_it_listens() -> None:
    async def agent(_: str) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
            writer.close()

        with contextlib.suppress(OSError):
            await asyncio.open_connection("127.0.0.1", 8123)
        async with await asyncio.start_server(serve, "127.0.0.1", 8123), httpx.AsyncClient() as client:
            return (await client.get("http://127.0.0.1:8123/")).text

    assert lab.run(agent, "go", twin=False).answer == "ok"


def test_an_application_that_has_room_may_be_told_so_again() -> None:
    async def story() -> None:
        exchange = object.__new__(asgi._Exchange)
        loop = asyncio.get_running_loop()
        exchange._room, exchange._end = loop.create_future(), loop.create_future()
        for _ in range(2):
            exchange._handle_client_gone()
        assert (exchange._room.done(), exchange._end.done()) == (True, True)

    asyncio.run(story())
