"""A service as a web application: the request's trial and id, repeated requests, and failures in the service's own
format."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from chaoslab.base.identity import TrialId, canonical, request_id
from chaoslab.base.json_text import speller
from chaoslab.base.registry import did_you_mean
from chaoslab.config.settings import Settings
from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import TROUBLE, ServiceSpec
from chaoslab.flask_tools.ledger import Folders, Ledger, Mismatch, Runs, Unwritten, Worked
from chaoslab.flask_tools.plain_requests import PlainRequest, plain_first
from chaoslab.flask_tools.service_module import Answer, Done, Refusal, Route, ServiceRequest

if TYPE_CHECKING:
    from flask import Flask, Response

BODY_MAX = 256 * 1024
TOO_LARGE = f"the body may have up to {BODY_MAX} bytes"
KEY_MAX = 200
PLAIN = ("GET /health", "GET /tools")
DEFAULTS = Settings()


def check(settings: Settings) -> None:
    """Raises SettingError if a service cannot fulfil the settings."""
    for name in SERVICES:
        ServiceModule.load(name, settings)


def _plain(status: int, message: str) -> Any:  # noqa: ARG001 - the signature of all wordings
    return {"error": message}


@dataclass(frozen=True)
class ServiceModule:
    """A service's module, loaded by its name in the table of services."""

    service: ServiceSpec
    routes: tuple[Route, ...]
    wording: Callable[[int, str], Any]
    warnings: tuple[str, ...]

    @classmethod
    def load(cls, name: str, settings: Settings = DEFAULTS) -> ServiceModule:
        """Loads a module. Raises LookupError with a hint for an unknown name, SettingError if it cannot fulfil the
        settings."""
        if name not in SERVICES:
            raise LookupError(f"no service is called '{name}': {did_you_mean(name, SERVICES)}")
        module = importlib.import_module(f"chaoslab.flask_tools.{name}")
        warnings = tuple(module.warnings()) if hasattr(module, "warnings") else ()
        routes = module.chosen(settings) if hasattr(module, "chosen") else module.routes()
        return cls(module.SERVICE, tuple(routes), getattr(module, "wording", _plain), warnings)


def create_app(name: str, *, logs: Path, now: str, settings: Settings = DEFAULTS) -> Flask:
    """The application of the service of that name. `now` is for calls that name no run; a run has its own. Raises
    LookupError: there is no such service; SettingError: it cannot fulfil the settings."""
    return app_of(ServiceModule.load(name, settings), Folders(logs, now))


def app_of(desk: ServiceModule, runs: Runs) -> Flask:
    """A service module as a web application."""
    service = ServiceApp(desk, runs)
    app = service.flask
    app.extensions["ledger"] = service.ledger
    app.wsgi_app = plain_first(  # type: ignore[method-assign,assignment]
        app.wsgi_app, service.plain, body_max=BODY_MAX, all_to_flask=lambda: bool(app.after_request_funcs),
        refuse=service.no_page,
    )  # fmt: skip
    return app


class ServiceApp:
    """A service module as a WSGI application that answers plain requests itself, and loads Flask, which takes most of a
    service's start, at the first request that is none."""

    tell: Callable[[str, str, int, bool, str | None], None] | None = None
    """Is told of each answer: method, path, status, whether it was given before, and the header X-Trial."""

    def __init__(self, desk: ServiceModule, runs: Runs, *, digests: Mapping[str, str] | None = None) -> None:
        """Makes the application. `digests`: the version of the process (`part_version.digests`), for its /health."""
        self._desk, self._name, self._lock = desk, desk.service.name, Lock()
        self.ledger = Ledger(desk.service, runs)
        named = [route for route in desk.routes if "<" not in route.path]
        self.plain: dict[tuple[str, str], Callable[[PlainRequest], Worked]] = {
            (route.method, route.path): partial(self._directly, route) for route in named
        }
        self._fixed = {
            path: _worked(Answer(body), desk.service)
            for path, body in (
                ("/health", {"status": "ok", "service": self._name} | ({"digests": {**digests}} if digests else {})),
                ("/tools", desk.service.to_json()),
            )
        }
        self.plain |= {("GET", path): partial(_same, reply) for path, reply in self._fixed.items()}
        self._wsgi = plain_first(
            self._by_flask, self.plain, body_max=BODY_MAX, all_to_flask=lambda: False, refuse=self.no_page,
            tell=self._told,
        )  # fmt: skip

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self._wsgi(environ, start_response)

    def ready(self) -> None:
        """Loads Flask if a route needs it: no call should have to wait for that."""
        if any("<" in route.path for route in self._desk.routes):
            self._loaded()

    def no_page(self, why: str) -> Worked:
        """The answer to a request of a web page."""
        return _worked(Answer(self._desk.wording(403, why), 403), self._desk.service)

    def refuse(self, status: int, message: str) -> str:
        """The body of a refusal."""
        return _text(self._desk.wording(status, message))

    def _told(self, asked: PlainRequest, worked: Worked) -> None:
        if self.tell is not None:
            self.tell(asked.method, asked.path, worked.status, worked.replayed, asked.trial)

    def _by_flask(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self._loaded().wsgi_app(environ, start_response)

    def _loaded(self) -> Flask:
        """The Flask of this application, which tells of its answers too."""
        with self._lock:
            if not self.flask.after_request_funcs:
                self.flask.after_request(self._seen)
            return self.flask

    def _seen(self, response: Response) -> Response:
        from flask import request

        if self.tell is not None:
            again = "Idempotency-Replayed" in response.headers
            self.tell(request.method, request.path, response.status_code, again, request.headers.get("X-Trial"))
        return response

    def _answer(self, route: Route, asked: PlainRequest) -> Worked:
        desk = self._desk
        try:
            trial = TrialId.parse(asked.trial)
        except ValueError as error:
            raise Refusal(400, desk.wording(400, str(error))) from None
        key = asked.key
        if key is not None and not (0 < len(key) <= KEY_MAX and key.isprintable()):
            raise Refusal(400, desk.wording(400, f"Idempotency-Key must be 1 to {KEY_MAX} printable characters"))
        body = _body(asked.body(), desk.wording)
        spelt = canonical([asked.method, asked.path, sorted(asked.query), body])
        fingerprint = hashlib.blake2b(spelt.encode("utf-8", "replace"), digest_size=16).hexdigest()

        def do(run_now: datetime, past: tuple[Done, ...]) -> Worked:
            identity = key or request_id(trial.header, route.tool, fingerprint, len(past) + 1)
            query = dict(reversed(asked.query))  # the first value of each field
            try:
                reply = route.work(ServiceRequest(identity, run_now, query, body, asked.parts, past))
            except Refusal as refusal:
                reply = refusal.answer
            return _worked(reply, desk.service)

        try:
            self.ledger.tell(desk.warnings, trial)
            return self.ledger.work(trial, key, fingerprint, route.tool, do)
        except LookupError as error:
            raise Refusal(400, desk.wording(400, f"X-Trial: {error.args[0]}")) from None
        except Mismatch:
            text = "this Idempotency-Key was used for another request"
            raise Refusal(422, desk.wording(422, text)) from None

    def _directly(self, route: Route, asked: PlainRequest) -> Worked:
        """The answer to a plain request, with the errors that Flask hands to the functions below."""
        try:
            worked = self._answer(route, asked)
            worked.text.encode()
            return worked
        except Refusal as refusal:
            return _worked(refusal.answer, self._desk.service)
        except Unwritten as error:
            return self._unwritten(error)
        except Exception as error:  # noqa: BLE001 - as of any server
            return self._crash(error, asked.method, asked.path, asked.trial)

    def _failed(self, headers: dict[str, str]) -> Worked:
        known = self._desk.service.errors.get(500)
        body = known.body if known else self._desk.wording(500, "internal error")
        return _worked(Answer(body, 500, headers), self._desk.service)

    def _unwritten(self, error: Unwritten) -> Worked:
        """Fails an effect that could not be logged, and so was not done. No plan has such a fault: the run must not go
        on."""
        print(f"{self._name}: {error}", file=sys.stderr, flush=True)
        told = f"{self._name}: {error}".encode("ascii", "backslashreplace").decode().replace("\n", " ")
        return self._failed({TROUBLE: told})

    def _crash(self, error: Exception, method: str, path: str, trial: str | None) -> Worked:
        message = f"{self._name} failed at {method} {path}: {type(error).__name__}: {error}"
        try:
            try:
                self.ledger.warn(message[:500], TrialId.parse(trial))
            except (ValueError, LookupError):
                self.ledger.warn(message[:500], TrialId.parse(None))
        except Unwritten as lost:
            return self._unwritten(lost)
        return self._failed({})

    @cached_property
    def flask(self) -> Flask:
        """The application that answers each request by Flask."""
        from flask import Flask, request
        from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

        desk = self._desk
        app = Flask(f"chaoslab.{self._name}", static_folder=None)
        app.config["MAX_CONTENT_LENGTH"] = BODY_MAX

        def view(route: Route) -> Callable[..., Response]:
            def viewed(**parts: str) -> Response:
                said, fields = request.headers, list(request.args.items(multi=True))
                trial, key = said.get("X-Trial"), said.get("Idempotency-Key")
                asked = PlainRequest(request.method, request.path, trial, key, fields, request.get_data, parts)
                return _response(self._answer(route, asked))

            return viewed

        def no(refusal: Refusal) -> Response:
            return _response(_worked(refusal.answer, desk.service))

        offered = ", ".join([*dict.fromkeys(f"{route.method} {route.path}" for route in desk.routes), *PLAIN])

        def http_error(error: HTTPException) -> Response:
            status, headers = error.code or 500, {}
            text = str(error.description)
            if isinstance(error, NotFound):
                text = f"nothing is at {request.path[:100]}; there are {offered}"
            elif isinstance(error, MethodNotAllowed):
                headers = {"Allow": ", ".join(sorted(error.valid_methods or ()))}
                text = f"{request.method[:20]} is not answered at {request.path[:100]}, only {headers['Allow']}"
            elif isinstance(error, RequestEntityTooLarge):
                text = TOO_LARGE
            return _response(_worked(Answer(desk.wording(status, text), status, headers), desk.service))

        def add(method: str, path: str, endpoint: str, respond: Callable[..., Response]) -> None:
            app.add_url_rule(
                path, endpoint=endpoint, view_func=respond, methods=[method], provide_automatic_options=False
            )

        for route in desk.routes:
            add(route.method, route.path, f"{route.method} {route.path}", view(route))
        for path, reply in self._fixed.items():
            add("GET", path, path, lambda reply=reply: _response(reply))
        app.register_error_handler(Refusal, no)
        app.register_error_handler(HTTPException, http_error)
        app.register_error_handler(Unwritten, lambda error: _response(self._unwritten(error)))
        app.register_error_handler(
            Exception,
            lambda error: _response(self._crash(error, request.method, request.path, request.headers.get("X-Trial"))),
        )
        return app


def _same(reply: Worked, _: PlainRequest) -> Worked:
    return reply


def _body(data: bytes, wording: Callable[[int, str], Any]) -> dict[str, Any]:
    """The request's JSON object; an absent body is an empty one. Text that UTF-8 cannot encode is refused here."""
    if not data.strip():
        return {}
    try:
        body = json.loads(data, parse_constant=_not_json)
        canonical(body).encode()
    except json.JSONDecodeError as error:
        raise Refusal(400, wording(400, f"the body is not valid JSON: {error}")) from None
    except (ValueError, RecursionError):
        raise Refusal(400, wording(400, "the body is not valid JSON")) from None
    if not isinstance(body, dict):
        raise Refusal(400, wording(400, "the body must be a JSON object"))
    return body


def _not_json(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _text(body: Any) -> str:
    return _spelt(body)


_spelt = speller(separators=(",", ":"))


def _worked(answer: Answer, service: ServiceSpec) -> Worked:
    text = "" if answer.body is None else _text(answer.body)
    fields = answer.body if isinstance(answer.body, dict) else {}
    said_no = any(name in fields and fields[name] == value for name, value in service.failed_if.items())
    failed = not 200 <= answer.status < 300 or said_no
    return Worked(answer.status, text, dict(answer.headers), answer.effect, failed=failed)


def _response(worked: Worked) -> Response:
    from flask import Response

    response = Response(worked.text, status=worked.status, mimetype="application/json")
    if not worked.text:
        del response.headers["Content-Type"]
    response.headers.extend(worked.headers)
    if worked.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response
