"""The offline model behind an HTTP endpoint: Groq's chat completions, model list and refusals, and all other formats.
It accepts any model name, so that an agent set up for a paid model needs only another address."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.base.json_text import make_json_writer
from chaoslab.base.phrases import get_status_phrase
from chaoslab.base.web_pages import find_refusal_reason
from chaoslab.core.service_spec import ErrorReply
from chaoslab.model._chat import load_reading_rules as load_reading_rules
from chaoslab.model._completion import Completion
from chaoslab.model._errors import ERRORS, INSUFFICIENT_QUOTA, make_error_reply
from chaoslab.model.app import BODY_BYTES_MAX, LiveModel
from chaoslab.model.offline import OfflineModel, complete_chat
from chaoslab.model.prices import PRICES

__all__ = ["ERRORS", "INSUFFICIENT_QUOTA", "create_app", "serve_endpoint"]

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Read = Callable[[], bytes]
"""A function that reads the request's body."""
Response = tuple[int, dict[str, str], Iterable[bytes]]
"""Status, headers and the body in parts."""
BASES = ("/openai/v1", "/v1")
CHAT_PATH = "/openai/v1/chat/completions"
_spelt = make_json_writer()
# Nothing counts down here: these are for SDKs and agents that read them.
_LIMITS = {
    "x-ratelimit-limit-requests": "14400",
    "x-ratelimit-limit-tokens": "1000000",
    "x-ratelimit-remaining-requests": "14399",
    "x-ratelimit-reset-requests": "6s",
    "x-ratelimit-reset-tokens": "1s",
}


class _Unauthorized(Exception):
    """The key is another."""


def create_app(
    *,
    api_key: str | None = None,
    clock: Clock = system,
    token_s: float = 0.0,
    model: LiveModel | None = None,
    digests: Mapping[str, str] | None = None,
) -> Wsgi:
    """The endpoint as a WSGI application; with `api_key` it refuses every other key. `token_s`: the time before each
    event of a streamed answer but the first. `model`: answers in the offline model's place. `digests`: the version of
    the process, for its /health.

    What is no chat completion goes to the application that speaks all formats.

    It uses no framework, which saves time in virtual trials: a trial asks a model about four times.
    """
    from werkzeug.exceptions import Forbidden, HTTPException, RequestEntityTooLarge
    from werkzeug.wrappers import Request

    # Now: a process that is copied for trials has the rules already, and no first request waits for them.
    load_reading_rules()
    general_app = OfflineModel(token_s=token_s) if model is None else model

    # The limit holds for bodies that come in chunks too, which state no length.
    class Bounded(Request):
        max_content_length = BODY_BYTES_MAX

    def answer_health(_: str, __: Read) -> Response:
        return _make_json_response(
            200, {"status": "ok", "service": "model"} | ({"digests": {**digests}} if digests else {})
        )

    def answer_chat(_: str, read: Read) -> Response:
        try:
            completion = complete_chat(read())
            return (
                _make_error_response(completion) if isinstance(completion, ErrorReply) else send_completion(completion)
            )
        except (ValueError, RecursionError):  # also text that UTF-8 cannot encode
            return _make_error_response(
                make_error_reply(400, "could not parse the request body as JSON", "invalid_request_error")
            )

    def send_completion(completion: Completion) -> Response:
        created = int(clock.utc().timestamp())
        tokens_left = str(max(0, 1_000_000 - completion.usage["total_tokens"]))
        headers = {**_LIMITS, "x-ratelimit-remaining-tokens": tokens_left, "x-request-id": completion.groq["id"]}
        if completion.streamed:
            headers |= {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
            # Made before the head is sent: a text that UTF-8 cannot carry is refused with 400, and does not break off a
            # stream.
            parts = list(completion.build_stream_events(created))
            return 200, headers, pace_parts(parts) if token_s else parts
        return _make_json_response(200, completion.build_json(created), headers)

    def pace_parts(parts: Sequence[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(parts):
            if number:
                clock.sleep(token_s)
            yield piece

    def list_models(_: str, __: Read) -> Response:
        return _make_json_response(200, {"object": "list", "data": [_make_model_entry(name) for name in PRICES]})

    def describe_model(path: str, _: Read) -> Response:
        return _make_json_response(200, _make_model_entry(path.partition("/models/")[2]))

    pages: dict[str, tuple[str, Callable[[str, Read], Response]]] = {"/health": ("GET", answer_health)}
    for base in BASES:
        pages |= {f"{base}/models": ("GET", list_models)}
    pages[CHAT_PATH] = ("POST", answer_chat)

    def route_request(method: str, path: str, read: Read) -> Response:
        page_method, page = pages.get(path) or ("GET", describe_model if _is_model_path(path) else None)
        if page is not None and page_method == ("GET" if method == "HEAD" else method):
            return page(path, read)
        message = f"Unknown request URL: {method} {path}. Please check the URL for typos, or see the docs."
        return _make_error_response(
            make_error_reply(405 if page else 404, message, "invalid_request_error", "unknown_url")
        )

    def handle_wsgi_request(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path, key = environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), environ.get("HTTP_AUTHORIZATION")
        try:
            # A web page in the user's browser reaches loopback too, so its requests are told by Host and Origin.
            if reason := find_refusal_reason(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")):
                raise Forbidden(reason)
            # The list of models is at the same path in OpenAI's and Anthropic's API: this header alone tells them
            # apart.
            is_page = path in pages and "HTTP_ANTHROPIC_VERSION" not in environ
            # A model of the user's own, such as a script, answers all but the question for the lab's health.
            others_know = not (is_page or _is_model_path(path)) or (model is not None and path != "/health")
            # The lab asks for /health without a key, to compare versions and to see that the process lives.
            if api_key is not None and path != "/health" and key != f"Bearer {api_key}":
                raise _Unauthorized
            if others_know:
                return general_app(environ, start_response)
            if method == "POST" and path in pages and _is_body_complete(environ):
                read = environ["wsgi.input"].read
            else:
                request = Bounded(environ)
                method, path, read = request.method, request.path, request.get_data
            response = route_request(method, path, read)
        except _Unauthorized:
            response = _make_error_response(ERRORS[401])
        except RequestEntityTooLarge:
            response = _make_error_response(ERRORS[413])
        except HTTPException as error:
            response = _make_error_response(
                make_error_reply(error.code or 500, error.description or "error", "invalid_request_error")
            )
        except Exception:
            logging.getLogger(__name__).exception("the offline model failed")
            response = _make_error_response(ERRORS[500])
        status, headers, parts = response
        start_response(f"{status} {get_status_phrase(status)}", list(headers.items()))
        return () if method == "HEAD" else parts

    return handle_wsgi_request


def _is_body_complete(environ: Mapping[str, Any]) -> bool:
    """True if the body is there as it was announced, and is not too large: then it can be read without werkzeug, which
    takes as long for that as the model for its answer."""
    length = environ.get("CONTENT_LENGTH", "")
    # With this flag alone does read() end by itself where the body ends.
    return (
        environ.get("wsgi.input_terminated") is True
        and "HTTP_TRANSFER_ENCODING" not in environ
        # isdigit() takes “²” and other signs which int() refuses.
        and length.isascii()
        and length.isdigit()
        and int(length) <= BODY_BYTES_MAX
    )


def _make_json_response(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    text = _spelt(body).encode()
    return status, {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(text))}, (text,)


def _make_error_response(error: ErrorReply) -> Response:
    return _make_json_response(error.status, error.body, error.headers)


def _is_model_path(path: str) -> bool:
    return any(path.startswith(f"{base}/models/") and path != f"{base}/models/" for base in BASES)


def _make_model_entry(name: str) -> dict[str, Any]:
    return {
        "id": name, "object": "model", "created": 0, "owned_by": "chaoslab", "active": True, "context_window": 131072,
    }  # fmt: skip


def serve_endpoint(
    *,
    host: str,
    port: int,
    ready: Callable[[int, Callable[[], None]], None] | None = None,
    token_s: float = 0.0,
    model: LiveModel | None = None,
    digests: Mapping[str, str] | None = None,
) -> None:
    """Serves until stopped. `ready` is called with the port in use (for `port=0`) and a function to stop, once
    connections are accepted."""
    from waitress.server import create_server

    channels: dict[int, Any] = {}
    app = create_app(token_s=token_s, model=model, digests=digests)
    # The server's limit is above the application's, so that the application refuses, in Groq's format.
    server: Any = create_server(
        app, map=channels, host=host, port=port, threads=8, ident=None, max_request_body_size=2 * BODY_BYTES_MAX
    )
    stopping = Event()

    def stop_server() -> None:
        """Stops the server, from any thread: the trigger wakes the loop, which then checks the flag."""
        stopping.set()
        server.pull_trigger()

    if ready is not None:
        ready(int(server.effective_port), stop_server)
    try:
        while not stopping.is_set():
            # One event at a time, so that the flag is looked at after each; the trigger of stop() is one.
            server.asyncore.loop(map=channels, count=1)
    finally:
        # Connections that clients keep open would stay open after the server.
        server.task_dispatcher.shutdown()
        for channel in list(channels.values()):
            channel.close()
