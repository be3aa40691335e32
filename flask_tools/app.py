"""A service's web application: the request's trial and id, repeated requests, and failures in the service's own
format."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from chaoslab.base.identity import TrialId, canonical, make_request_id
from chaoslab.base.json_text import make_json_writer
from chaoslab.base.web_pages import find_refusal_reason
from chaoslab.core.service_spec import TROUBLE, ServiceSpec
from chaoslab.flask_tools.ledger import FolderRunStore, Ledger, Mismatch, RunStore, Unwritten, Worked
from chaoslab.flask_tools.service_module import Answer, Done, Refusal, Route, ServiceModule, ServiceRequest

BODY_MAX = 256 * 1024
TOO_LARGE = f"the body may have up to {BODY_MAX} bytes"
KEY_MAX = 200


def create_app(name: str, *, logs: Path, now: str) -> Flask:
    """The application of the service of that name. `now` is for calls that name no run; a run has its own. Raises
    LookupError: there is no such service."""
    return make_app(ServiceModule.load(name), FolderRunStore(logs, now))


def make_app(desk: ServiceModule, runs: RunStore, *, digests: Mapping[str, str] | None = None) -> Flask:
    """A service module as a web application. Its `extensions` have its ledger. `digests`: the version of the process
    (`part_version.compute_version_digests`), for its /health."""
    return _Service(desk, runs, digests or {}).app


class _Service:
    """One service's application, its views and error handlers."""

    def __init__(self, desk: ServiceModule, runs: RunStore, digests: Mapping[str, str]) -> None:
        self._desk, self._name = desk, desk.service.name
        self._ledger = Ledger(desk.service, runs)
        self.app = app = Flask(f"chaoslab.{self._name}", static_folder=None)
        # Flask refuses by the stated length, before anything is read.
        app.config["MAX_CONTENT_LENGTH"] = BODY_MAX
        app.extensions["ledger"] = self._ledger
        self._offered: list[str] = []
        for route in desk.routes:
            self._add_route(route.method, route.path, self._make_view(route))
        for path, body in (
            ("/health", {"status": "ok", "service": self._name} | ({"digests": {**digests}} if digests else {})),
            ("/tools", desk.service.to_json()),
        ):
            self._add_route("GET", path, self._make_constant_view(_encode_tool_answer(Answer(body), desk.service)))
        app.before_request(self._refuse_foreign_page)
        app.register_error_handler(Refusal, self._answer_refusal)
        app.register_error_handler(HTTPException, self._answer_http_error)
        app.register_error_handler(Unwritten, self._answer_unlogged_effect)
        app.register_error_handler(Exception, self._answer_crash)

    def _add_route(self, method: str, path: str, view: Callable[..., Response]) -> None:
        self._offered.append(f"{method} {path}")
        # Flask's own OPTIONS would answer in its words and not in the service's.
        self.app.add_url_rule(
            path, endpoint=self._offered[-1], view_func=view, methods=[method], provide_automatic_options=False
        )

    def _make_view(self, route: Route) -> Callable[..., Response]:
        def view(**parts: str) -> Response:
            return _to_response(self._answer_request(route, parts))

        return view

    @staticmethod
    def _make_constant_view(reply: Worked) -> Callable[..., Response]:
        return lambda: _to_response(reply)

    def _refuse_foreign_page(self) -> Response | None:
        """The refusal of a web page's request."""
        why = find_refusal_reason(request.headers.get("Host"), request.headers.get("Origin"))
        return self._make_response(self._desk.make_error_body(403, why), 403) if why else None

    def _answer_request(self, route: Route, parts: dict[str, str]) -> Worked:
        # `multi`: a field that comes twice is another request than one that comes once.
        desk, key, query = self._desk, request.headers.get("Idempotency-Key"), list(request.args.items(multi=True))
        try:
            trial = TrialId.parse(request.headers.get("X-Trial"))
        except ValueError as error:
            raise Refusal(400, desk.make_error_body(400, str(error))) from None
        # Printable, as it goes into the log and back into a header.
        if key is not None and not (0 < len(key) <= KEY_MAX and key.isprintable()):
            raise Refusal(
                400, desk.make_error_body(400, f"Idempotency-Key must be 1 to {KEY_MAX} printable characters")
            )
        body = _parse_body(request.get_data(), desk.make_error_body)
        # Sorted, as the order of a query's fields means nothing.
        spelt = canonical([request.method, request.path, sorted(query), body])
        fingerprint = hashlib.blake2b(spelt.encode("utf-8", "replace"), digest_size=16).hexdigest()

        def run_route_function(run_now: datetime, past: tuple[Done, ...]) -> Worked:
            # Without a key a later request is told from an equal one by the effects before it.
            identity = key or make_request_id(trial.header, route.tool, fingerprint, len(past) + 1)
            # Reversed, so that the first of a repeated field counts, as in Flask.
            first_values = dict(reversed(query))
            try:
                reply = route.work(ServiceRequest(identity, run_now, first_values, body, parts, past))
            except Refusal as refusal:
                reply = refusal.answer
            return _encode_tool_answer(reply, desk.service)

        try:
            self._ledger.log_warnings_once(desk.warnings, trial)
            return self._ledger.answer_once(trial, key, fingerprint, route.tool, run_route_function)
        except LookupError as error:
            raise Refusal(400, desk.make_error_body(400, f"X-Trial: {error.args[0]}")) from None
        except Mismatch:
            text = "this Idempotency-Key was used for another request"
            raise Refusal(422, desk.make_error_body(422, text)) from None

    def _make_response(self, body: Any, status: int, headers: dict[str, str] | None = None) -> Response:
        return _to_response(_encode_tool_answer(Answer(body, status, headers or {}), self._desk.service))

    def _answer_internal_error(self, headers: dict[str, str]) -> Response:
        # The service's own words for 500, so that a crash looks like one of the real thing.
        known = self._desk.service.errors.get(500)
        return self._make_response(
            known.body if known else self._desk.make_error_body(500, "internal error"), 500, headers
        )

    def _answer_refusal(self, refusal: Refusal) -> Response:
        return _to_response(_encode_tool_answer(refusal.answer, self._desk.service))

    def _answer_http_error(self, error: HTTPException) -> Response:
        status, headers = error.code or 500, {}
        text = str(error.description)
        if isinstance(error, NotFound):
            text = f"nothing is at {request.path[:100]}; there are {', '.join(self._offered)}"
        elif isinstance(error, MethodNotAllowed):
            headers = {"Allow": ", ".join(sorted(error.valid_methods or ()))}
            text = f"{request.method[:20]} is not answered at {request.path[:100]}, only {headers['Allow']}"
        elif isinstance(error, RequestEntityTooLarge):
            text = TOO_LARGE
        return self._make_response(self._desk.make_error_body(status, text), status, headers)

    def _answer_unlogged_effect(self, error: Unwritten) -> Response:
        """Fails an effect that could not be logged, and so was not done. No plan has such a fault: the run must not go
        on."""
        print(f"{self._name}: {error}", file=sys.stderr, flush=True)
        # A header takes ASCII alone, and no line breaks.
        told = f"{self._name}: {error}".encode("ascii", "backslashreplace").decode().replace("\n", " ")
        return self._answer_internal_error({TROUBLE: told})

    def _answer_crash(self, error: Exception) -> Response:
        message = f"{self._name} failed at {request.method} {request.path}: {type(error).__name__}: {error}"
        try:
            self._ledger.log_warning(message[:500], TrialId.parse(request.headers.get("X-Trial")))
        except Unwritten as lost:
            return self._answer_unlogged_effect(lost)
        return self._answer_internal_error({})


def _parse_body(data: bytes, make_error_body: Callable[[int, str], Any]) -> dict[str, Any]:
    """The request's JSON object; an absent body is an empty one. Text that UTF-8 cannot encode is refused here."""
    if not data.strip():
        return {}
    try:
        # Python takes NaN and Infinity, which are no JSON.
        body = json.loads(data, parse_constant=_refuse_json_constant)
        # Spelled once here, so that half a surrogate pair is refused now and not when the answer is written.
        canonical(body).encode()
    except json.JSONDecodeError as error:
        raise Refusal(400, make_error_body(400, f"the body is not valid JSON: {error}")) from None
    except (ValueError, RecursionError):
        raise Refusal(400, make_error_body(400, "the body is not valid JSON")) from None
    if not isinstance(body, dict):
        raise Refusal(400, make_error_body(400, "the body must be a JSON object"))
    return body


def _refuse_json_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


spell_body = make_json_writer(separators=(",", ":"))


def _encode_tool_answer(answer: Answer, service: ServiceSpec) -> Worked:
    text = "" if answer.body is None else spell_body(answer.body)
    fields = answer.body if isinstance(answer.body, dict) else {}
    # Slack refuses with status 200: what fails is told by a field.
    refusal = any(name in fields and fields[name] == value for name, value in service.failed_if.items())
    failed = not 200 <= answer.status < 300 or refusal
    return Worked(answer.status, text, dict(answer.headers), answer.effect, failed=failed)


def _to_response(worked: Worked) -> Response:
    response = Response(worked.text, status=worked.status, mimetype="application/json")
    if not worked.text:
        # Flask gives every answer a type, and 204 has no body.
        del response.headers["Content-Type"]
    response.headers.extend(worked.headers)
    if worked.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response
