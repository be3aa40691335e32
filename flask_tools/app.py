"""A service as a web application: the request's trial and id, repeated requests, and failures in the service's own
format. Flask's contexts, signals and routing cost more than most answers, so plain requests are answered without it:
those with the method and the whole path of a route, and a body of a stated length within the bound. Both come to the
same answer, byte by byte."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from chaoslab.base.identity import TrialId, canonical, request_id
from chaoslab.base.json_text import speller
from chaoslab.base.registry import did_you_mean
from chaoslab.base.web_pages import refused
from chaoslab.config.settings import Settings
from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import TROUBLE, ServiceSpec
from chaoslab.flask_tools.ledger import Folders, Ledger, Mismatch, Runs, Unwritten, Worked
from chaoslab.flask_tools.service_module import Answer, Done, Refusal, Route, ServiceRequest

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class PlainRequest:
    """A request to a route. `trial` and `key`: its headers X-Trial and Idempotency-Key. `body` reads its bytes.
    `parts`: the named parts of its path."""

    method: str
    path: str
    trial: str | None
    key: str | None
    query: Sequence[tuple[str, str]]
    body: Callable[[], bytes]
    parts: Mapping[str, str]


def plain_first(
    flask: Wsgi, routes: Mapping[tuple[str, str], Callable[[PlainRequest], Worked]], *, body_max: int,
    all_to_flask: Callable[[], bool], refuse: Callable[[str], Worked],
) -> Wsgi:  # fmt: skip
    """An application that answers plain requests by `routes` (method and path) itself, and has `flask` answer the
    others. `all_to_flask`: tells if Flask has more to do at each request. `refuse`: the answer to a web page."""
    from werkzeug.http import HTTP_STATUS_CODES

    def answered(worked: Worked, start_response: Callable[..., Any]) -> Iterable[bytes]:
        data = worked.text.encode()
        headers = [("Content-Type", "application/json")] if data else []
        if worked.status != 204:
            headers.append(("Content-Length", str(len(data))))
        headers += worked.headers.items()
        if worked.replayed:
            headers.append(("Idempotency-Replayed", "true"))
        start_response(f"{worked.status} {HTTP_STATUS_CODES.get(worked.status, 'unknown').upper()}", headers)
        return (data,)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if why := refused(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")):
            return answered(refuse(why), start_response)
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        work, length = routes.get((method, path)), environ.get("CONTENT_LENGTH", "")
        query = environ.get("QUERY_STRING", "")
        if (
            work is None
            or not (length.isascii() and length.isdigit() and int(length) <= body_max)
            or environ.get("SCRIPT_NAME")
            or "HTTP_TRANSFER_ENCODING" in environ
            or "HTTP_UPGRADE" in environ
            or not query.isascii()
            or all_to_flask()
        ):
            return flask(environ, start_response)
        body = environ["wsgi.input"].read(int(length)) if length != "0" else b""
        if len(body) != int(length):  # the client has gone
            return flask({**environ, "wsgi.input": io.BytesIO(body)}, start_response)
        fields = parse_qsl(query, keep_blank_values=True, errors="werkzeug.url_quote") if query else ()
        trial, key = environ.get("HTTP_X_TRIAL"), environ.get("HTTP_IDEMPOTENCY_KEY")
        return answered(work(PlainRequest(method, path, trial, key, fields, lambda: body, {})), start_response)

    return app


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
    from flask import Flask, request
    from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

    name = desk.service.name
    app = Flask(f"chaoslab.{name}", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_MAX
    ledger = Ledger(desk.service, runs)
    app.extensions["ledger"] = ledger
    app.extensions["refuse"] = lambda status, message: _text(desk.wording(status, message))

    def answer(route: Route, asked: PlainRequest) -> Worked:
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
            ledger.tell(desk.warnings, trial)
            return ledger.work(trial, key, fingerprint, route.tool, do)
        except LookupError as error:
            raise Refusal(400, desk.wording(400, f"X-Trial: {error.args[0]}")) from None
        except Mismatch:
            text = "this Idempotency-Key was used for another request"
            raise Refusal(422, desk.wording(422, text)) from None

    def view(route: Route) -> Callable[..., Response]:
        def viewed(**parts: str) -> Response:
            said, fields = request.headers, list(request.args.items(multi=True))
            trial, key = said.get("X-Trial"), said.get("Idempotency-Key")
            asked = PlainRequest(request.method, request.path, trial, key, fields, request.get_data, parts)
            return _response(answer(route, asked))

        return viewed

    def directly(route: Route, asked: PlainRequest) -> Worked:
        """The answer to a plain request, with the errors that Flask hands to the functions below."""
        try:
            worked = answer(route, asked)
            worked.text.encode()
            return worked
        except Refusal as refusal:
            return _worked(refusal.answer, desk.service)
        except Unwritten as error:
            return unwritten(error)
        except Exception as error:  # noqa: BLE001 - as of any server
            return crash(error, asked.method, asked.path, asked.trial)

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

    def failed(headers: dict[str, str]) -> Worked:
        known = desk.service.errors.get(500)
        body = known.body if known else desk.wording(500, "internal error")
        return _worked(Answer(body, 500, headers), desk.service)

    def unwritten(error: Unwritten) -> Worked:
        """Fails an effect that could not be logged, and so was not done. No plan has such a fault: the run must not go
        on."""
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return failed({TROUBLE: f"{name}: {error}".encode("ascii", "backslashreplace").decode().replace("\n", " ")})

    def crash(error: Exception, method: str, path: str, trial: str | None) -> Worked:
        message = f"{name} failed at {method} {path}: {type(error).__name__}: {error}"
        try:
            try:
                ledger.warn(message[:500], TrialId.parse(trial))
            except (ValueError, LookupError):
                ledger.warn(message[:500], TrialId.parse(None))
        except Unwritten as lost:
            return unwritten(lost)
        return failed({})

    for route in desk.routes:
        app.add_url_rule(
            route.path,
            endpoint=f"{route.method} {route.path}",
            view_func=view(route),
            methods=[route.method],
            provide_automatic_options=False,
        )
    for path, body in (("/health", {"status": "ok", "service": name}), ("/tools", desk.service.to_json())):
        reply = _worked(Answer(body), desk.service)
        app.add_url_rule(
            path,
            endpoint=path,
            view_func=lambda reply=reply: _response(reply),
            methods=["GET"],
            provide_automatic_options=False,
        )
    app.register_error_handler(Refusal, no)
    app.register_error_handler(HTTPException, http_error)
    app.register_error_handler(Unwritten, lambda error: _response(unwritten(error)))
    app.register_error_handler(
        Exception,
        lambda error: _response(crash(error, request.method, request.path, request.headers.get("X-Trial"))),
    )
    routes = {(route.method, route.path): partial(directly, route) for route in desk.routes if "<" not in route.path}
    app.wsgi_app = plain_first(  # type: ignore[method-assign,assignment]
        app.wsgi_app, routes, body_max=BODY_MAX, all_to_flask=lambda: bool(app.after_request_funcs),
        refuse=lambda why: _worked(Answer(desk.wording(403, why), 403), desk.service),
    )  # fmt: skip
    return app


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
