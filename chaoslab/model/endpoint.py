"""The offline model behind a Groq-compatible HTTP endpoint: chat completions, streams, the model list and real refusals.

It accepts any model name, so that an agent set up for a paid model needs nothing but another address.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any

from chaoslab.api import ErrorReply
from chaoslab.clock import Clock, system
from chaoslab.model.completion import completed
from chaoslab.model.errors import ERRORS, INSUFFICIENT_QUOTA, refusal
from chaoslab.model.prices import OFFLINE, PRICES

if TYPE_CHECKING:
    from flask import Flask, Response

__all__ = ["ERRORS", "INSUFFICIENT_QUOTA", "create_app", "serve"]

BODY_BYTES_MAX = 4 * 1024 * 1024
_spelt = json.JSONEncoder(ensure_ascii=False).encode
_LIMITS = {
    "x-ratelimit-limit-requests": "14400",
    "x-ratelimit-limit-tokens": "1000000",
    "x-ratelimit-remaining-requests": "14399",
    "x-ratelimit-reset-requests": "6s",
    "x-ratelimit-reset-tokens": "1s",
}


def create_app(*, api_key: str | None = None, clock: Clock = system) -> Flask:
    """The endpoint as a WSGI application; with `api_key` it refuses every other key."""
    from flask import Flask, Response, request
    from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = BODY_BYTES_MAX

    def reply(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
        return Response(_spelt(body), status, {"Content-Type": "application/json", **(headers or {})})

    def refused(error: ErrorReply) -> Response:
        return reply(error.status, error.body, dict(error.headers))

    def model(name: str) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "chaoslab",
            "active": True,
            "context_window": 131072,
        }

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        status = error.code or 500
        if isinstance(error, RequestEntityTooLarge):
            return refused(ERRORS[413])
        if status in (404, 405):
            message = f"Unknown request URL: {request.method} {request.path}. Please check the URL for typos, or see the docs."
            return refused(refusal(status, message, "invalid_request_error", "unknown_url"))
        return refused(refusal(status, error.description or "error", "invalid_request_error"))

    @app.errorhandler(Exception)
    def crash(error: Exception) -> Response:
        app.logger.error("the offline model failed", exc_info=error)
        return refused(ERRORS[500])

    @app.before_request
    def keyed() -> Response | None:
        if api_key is None or request.path == "/health":
            return None
        return None if request.headers.get("Authorization") == f"Bearer {api_key}" else refused(ERRORS[401])

    @app.get("/health")
    def health() -> Response:
        return reply(200, {"status": "ok", "service": "model"})

    def chat() -> Response:
        try:
            done = completed(request.get_data())
        except ValueError:
            return refused(refusal(400, "could not parse the request body as JSON", "invalid_request_error"))
        if isinstance(done, ErrorReply):
            return refused(done)
        created = int(clock.utc().timestamp())
        left = str(max(0, 1_000_000 - done.usage["total_tokens"]))
        headers = {**_LIMITS, "x-ratelimit-remaining-tokens": left, "x-request-id": done.groq["id"]}
        if done.streamed:
            headers |= {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
            return Response(done.stream(created), 200, headers)
        return reply(200, done.whole(created), headers)

    def models() -> Response:
        return reply(200, {"object": "list", "data": [model(name) for name in PRICES]})

    def one_model(name: str) -> Response:
        return reply(200, model(name or OFFLINE))

    for base in ("/openai/v1", "/v1"):
        app.add_url_rule(f"{base}/chat/completions", f"chat {base}", chat, methods=["POST"])
        app.add_url_rule(f"{base}/models", f"models {base}", models, methods=["GET"])
        app.add_url_rule(f"{base}/models/<path:name>", f"model {base}", one_model, methods=["GET"])
    return app


def serve(
    *, host: str, port: int, ready: Callable[[int, Callable[[], None]], None] | None = None, api_key: str | None = None
) -> None:
    """Serves until stopped. `ready` is told the port in use (for `port=0`) and how to stop, once connections are accepted."""
    from waitress.server import create_server

    channels: dict[int, Any] = {}
    app = create_app(api_key=api_key)
    # Above the app's own bound, so that it is the app that refuses, in Groq's shape.
    server: Any = create_server(
        app, map=channels, host=host, port=port, threads=8, ident=None, max_request_body_size=2 * BODY_BYTES_MAX
    )
    stopping = Event()

    def stop() -> None:
        """For any thread: the trigger wakes the loop, which then sees the flag."""
        stopping.set()
        server.pull_trigger()

    if ready is not None:
        ready(int(server.effective_port), stop)
    try:
        while not stopping.is_set():
            server.asyncore.loop(timeout=30.0, map=channels, count=1)
    finally:
        server.task_dispatcher.shutdown()
        for channel in list(channels.values()):
            channel.close()
