"""The offline model behind an HTTP endpoint: Groq's chat completions, model list and refusals, and all other formats.
It accepts any model name, so that an agent set up for a paid model needs only another address."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.base.json_text import speller
from chaoslab.base.phrases import phrase
from chaoslab.base.web_pages import find_refusal
from chaoslab.core.service_spec import ErrorReply
from chaoslab.model._chat import load as load
from chaoslab.model._completion import Completion
from chaoslab.model._errors import ERRORS, INSUFFICIENT_QUOTA, refusal
from chaoslab.model.app import BODY_BYTES_MAX, LiveModel
from chaoslab.model.offline import OfflineModel, complete_chat
from chaoslab.model.prices import PRICES

__all__ = ["ERRORS", "INSUFFICIENT_QUOTA", "create_app", "serve"]

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Read = Callable[[], bytes]
"""A function that reads the request's body."""
Response = tuple[int, dict[str, str], Iterable[bytes]]
"""Status, headers and the body in parts."""
BASES = ("/openai/v1", "/v1")
CHAT_PATH = "/openai/v1/chat/completions"
_spelt = speller()
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
    *, api_key: str | None = None, clock: Clock = system, token_s: float = 0.0, model: LiveModel | None = None,
    digests: Mapping[str, str] | None = None,
) -> Wsgi:  # fmt: skip
    """The endpoint as a WSGI application; with `api_key` it refuses every other key. `token_s`: the time before each
    event of a streamed answer but the first. `model`: answers in the offline model's place. `digests`: the version of
    the process, for its /health.

    What is no chat completion goes to the application that speaks all formats.

    It uses no framework, which saves time in virtual trials: a trial asks a model about four times.
    """
    from werkzeug.exceptions import Forbidden, HTTPException, RequestEntityTooLarge
    from werkzeug.wrappers import Request

    # Now: a process that is copied for trials has the rules already, and no first request waits for them.
    load()
    general_app = OfflineModel(token_s=token_s) if model is None else model

    # The limit holds for bodies that come in chunks too, which state no length.
    class Bounded(Request):
        max_content_length = BODY_BYTES_MAX

    def health(_: str, __: Read) -> Response:
        return _reply(200, {"status": "ok", "service": "model"} | ({"digests": {**digests}} if digests else {}))

    def chat(_: str, read: Read) -> Response:
        try:
            completion = complete_chat(read())
            return _refused(completion) if isinstance(completion, ErrorReply) else send_completion(completion)
        except (ValueError, RecursionError):  # also text that UTF-8 cannot encode
            return _refused(refusal(400, "could not parse the request body as JSON", "invalid_request_error"))

    def send_completion(completion: Completion) -> Response:
        created = int(clock.utc().timestamp())
        tokens_left = str(max(0, 1_000_000 - completion.usage["total_tokens"]))
        headers = {**_LIMITS, "x-ratelimit-remaining-tokens": tokens_left, "x-request-id": completion.groq["id"]}
        if completion.streamed:
            headers |= {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
            # Made before the head is sent: a text that UTF-8 cannot carry is refused with 400, and does not break off a
            # stream.
            parts = list(completion.stream(created))
            return 200, headers, pace_parts(parts) if token_s else parts
        return _reply(200, completion.whole(created), headers)

    def pace_parts(parts: Sequence[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(parts):
            if number:
                clock.sleep(token_s)
            yield piece

    def models(_: str, __: Read) -> Response:
        return _reply(200, {"object": "list", "data": [_model(name) for name in PRICES]})

    def one_model(path: str, _: Read) -> Response:
        return _reply(200, _model(path.partition("/models/")[2]))

    pages: dict[str, tuple[str, Callable[[str, Read], Response]]] = {"/health": ("GET", health)}
    for base in BASES:
        pages |= {f"{base}/models": ("GET", models)}
    pages[CHAT_PATH] = ("POST", chat)

    def answer(method: str, path: str, read: Read) -> Response:
        page_method, page = pages.get(path) or ("GET", one_model if _names_a_model(path) else None)
        if page is not None and page_method == ("GET" if method == "HEAD" else method):
            return page(path, read)
        message = f"Unknown request URL: {method} {path}. Please check the URL for typos, or see the docs."
        return _refused(refusal(405 if page else 404, message, "invalid_request_error", "unknown_url"))

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path, key = environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), environ.get("HTTP_AUTHORIZATION")
        try:
            # A web page in the user's browser reaches loopback too, so its requests are told by Host and Origin.
            if reason := find_refusal(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")):
                raise Forbidden(reason)
            # The list of models is at the same path in OpenAI's and Anthropic's API: this header alone tells them
            # apart.
            is_page = path in pages and "HTTP_ANTHROPIC_VERSION" not in environ
            # A model of the user's own, such as a script, answers all but the question for the lab's health.
            others_know = not (is_page or _names_a_model(path)) or (model is not None and path != "/health")
            # The lab asks for /health without a key, to compare versions and to see that the process lives.
            if api_key is not None and path != "/health" and key != f"Bearer {api_key}":
                raise _Unauthorized
            if others_know:
                return general_app(environ, start_response)
            if method == "POST" and path in pages and _is_whole(environ):
                read = environ["wsgi.input"].read
            else:
                request = Bounded(environ)
                method, path, read = request.method, request.path, request.get_data
            response = answer(method, path, read)
        except _Unauthorized:
            response = _refused(ERRORS[401])
        except RequestEntityTooLarge:
            response = _refused(ERRORS[413])
        except HTTPException as error:
            response = _refused(refusal(error.code or 500, error.description or "error", "invalid_request_error"))
        except Exception:
            logging.getLogger(__name__).exception("the offline model failed")
            response = _refused(ERRORS[500])
        status, headers, parts = response
        start_response(f"{status} {phrase(status)}", list(headers.items()))
        return () if method == "HEAD" else parts

    return app


def _is_whole(environ: Mapping[str, Any]) -> bool:
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


def _reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    text = _spelt(body).encode()
    return status, {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(text))}, (text,)


def _refused(error: ErrorReply) -> Response:
    return _reply(error.status, error.body, error.headers)


def _names_a_model(path: str) -> bool:
    return any(path.startswith(f"{base}/models/") and path != f"{base}/models/" for base in BASES)


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name, "object": "model", "created": 0, "owned_by": "chaoslab", "active": True, "context_window": 131072,
    }  # fmt: skip


def serve(
    *, host: str, port: int, ready: Callable[[int, Callable[[], None]], None] | None = None,
    api_key: str | None = None, token_s: float = 0.0, model: LiveModel | None = None,
    digests: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Serves until stopped. `ready` is called with the port in use (for `port=0`) and a function to stop, once
    connections are accepted."""
    from waitress.server import create_server

    channels: dict[int, Any] = {}
    app = create_app(api_key=api_key, token_s=token_s, model=model, digests=digests)
    # The server's limit is above the application's, so that the application refuses, in Groq's format.
    server: Any = create_server(
        app, map=channels, host=host, port=port, threads=8, ident=None, max_request_body_size=2 * BODY_BYTES_MAX
    )
    stopping = Event()

    def stop() -> None:
        """Stops the server, from any thread: the trigger wakes the loop, which then checks the flag."""
        stopping.set()
        server.pull_trigger()

    if ready is not None:
        ready(int(server.effective_port), stop)
    try:
        while not stopping.is_set():
            # One event at a time, so that the flag is looked at after each; the trigger of stop() is one.
            server.asyncore.loop(map=channels, count=1)
    finally:
        # Connections that clients keep open would stay open after the server.
        server.task_dispatcher.shutdown()
        for channel in list(channels.values()):
            channel.close()
