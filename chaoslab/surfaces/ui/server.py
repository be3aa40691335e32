"""The server of the pages. It listens on loopback, and answers only who has its token and asks by a loopback name."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import uvicorn
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from chaoslab.base import files
from chaoslab.base.jsonable import to_one_line
from chaoslab.record.lines import list_log_files
from chaoslab.record.rulings import Rulings
from chaoslab.record.trial_stream import read_trial_history
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.outcomes import SEVERITY, outcome_glyph, outcome_word
from chaoslab.reports.explored import MAP
from chaoslab.reports.formats import html
from chaoslab.reports.formats.html.timelines import build_timelines, escape_json_for_html
from chaoslab.reports.text import escape_and_shorten
from chaoslab.surfaces.levers import read_gateway_state, steer_run
from chaoslab.surfaces.ui._campaign import describe_campaign, summarize_campaign
from chaoslab.surfaces.ui._remembered import build_memory_view
from chaoslab.surfaces.ui._watched import TrialLine
from chaoslab.surfaces.ui.reader import LIST_S, RunsReader, find_campaigns

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE, HEADER = "chaoslab-ui", "x-chaoslab-ui"
"""The cookie with the token, and a header that another site's page cannot send without being asked first."""
DOOR = "/in/"
"""The address that has the token behind it."""
NO_TOKEN = (
    f"this browser has no token, or that of an earlier start: open the address with {DOOR} that `chaoslab ui` printed; "
    f"it works in every browser until the server ends\n"
)
POLL_S, PAGE, TAIL, LINE = 0.25, 100, 200, 2000
"""Seconds between two looks for what is new, rows of a page of trials, lines of a log's tail and characters of each."""
LATEST, MEMORY = 20, "memory.db"
"""The latest runs of a campaign, and the file of a memory."""
BODY_MAX, FIRST, LOOK_S = 10_000, 10, 0.02
"""The most bytes of what a page sends, and the looks for runs or trials before a page is sent without them, and the
seconds between two."""
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
STILL = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""The policy of a page that only shows."""
SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
COLUMNS = TrialLine._fields


class PageGuard:
    """Lets through what a page of this server asks for: by a name of loopback, from no other site, with the token."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope)
        refusal = self._find_refusal(request)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in SAFE.items())]
            await send(message)

        if refusal is None and request.url.path.startswith(DOOR):
            refusal = RedirectResponse("/", 303)  # into a cookie, so that no link and no history shows it
            refusal.set_cookie(self._make_cookie_name(request), self._token, httponly=True, samesite="strict")
        return await (refusal or self._app)(scope, receive, send_with_headers)

    def _make_cookie_name(self, request: Request) -> str:
        """Its name: a cookie is for all ports of a host."""
        return f"{COOKIE}-{request.url.port or 80}"

    def _find_refusal(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        # A name that another site has pointed at this machine (DNS rebinding) is refused.
        if host.rpartition(":")[0] not in LOOPBACK and host not in LOOPBACK:
            return PlainTextResponse("this server is called 127.0.0.1, and nothing else\n", 421)
        site = request.headers.get("sec-fetch-site", "none")
        if (origin is not None and origin != f"http://{host}") or site not in ("none", "same-origin"):
            return PlainTextResponse("another site's page may ask for nothing here\n", 403)
        # A form of another site can send no header of its own.
        if request.method != "GET" and request.headers.get(HEADER) is None:
            return PlainTextResponse(f"a page of this server sends {HEADER} with what it asks for\n", 403)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        token_given = request.cookies.get(self._make_cookie_name(request)) or bearer
        if request.url.path.startswith(DOOR):
            token_given = request.url.path.removeprefix(DOOR)
        # In constant time, so that nobody learns the token byte by byte.
        if not compare_digest(token_given.encode(), self._token.encode()):
            return PlainTextResponse(NO_TOKEN, 401)
        return None


class Pages:
    """The answers behind each address."""

    def __init__(self, reader: RunsReader, metrics: Callable[[list[str]], str]) -> None:
        self._reader, self._metrics = reader, metrics

    def build_app(self, token: str) -> ASGIApp:
        routes = [
            Route("/", self.show_runs),
            Route("/events", self.stream_run_list),
            Route("/run/{run}", self.show_run),
            Route("/run/{run}/events", self.stream_run_states),
            Route("/run/{run}/trials", self.send_trials),
            Route("/run/{run}/trial/{trial}", self.show_trial),
            Route("/run/{run}/log", self.show_log),
            Route("/run/{run}/tail/{log}", self.send_log_tail),
            Route("/run/{run}/report.html", self.send_report),
            Route("/run/{run}/map", self.send_map),
            Route("/campaign/{name}", self.show_campaign),
            Route("/campaign/{name}/state", self.send_campaign_state),
            Route("/campaign/{name}/{do}", self.steer_campaign, methods=["POST"]),
            Route("/memory", self.show_memory),
            Route("/run/{run}/steer", self.steer_run, methods=["POST"]),
            Route("/run/{run}/levers", self.send_gateway_state),
            Route("/metrics", self.send_metrics),
            Route("/favicon.ico", lambda _: Response(status_code=204)),
            *(Route(f"/{name}", _serve_static) for name in ("ui.css", "ui.js", "script.js", "elements.js")),
        ]
        error_handlers = {
            LookupError: _answer_lookup_error,
            KeyError: _answer_lookup_error,
            OSError: _answer_unreadable,
            ValueError: _answer_value_error,
            ImportError: _answer_value_error,
        }
        handlers: Any = {404: _answer_no_such_page, 405: _answer_no_such_page, **error_handlers}
        return PageGuard(Starlette(routes=routes, exception_handlers=handlers), token=token)

    # The list.

    async def show_runs(self, _: Request) -> Response:
        logs = self._reader.logs
        await _wait_until_ready(lambda: self._reader.found)
        return _render_page(
            "ui_runs.html", data=self._build_run_list(0), logs=str(logs), memory=(logs / MEMORY).is_file()
        )

    def _build_run_list(self, since: int) -> dict[str, Any]:
        version = self._reader.version
        rows = self._reader.list_run_rows_since(since)
        return {
            "version": version, "left": self._reader.left, "rows": rows,
            "campaigns": [summarize_campaign(campaign) for campaign in self._reader.campaigns],
        }  # fmt: skip

    async def stream_run_list(self, request: Request) -> Response:
        ended = anyio.Event()

        async def iterate_row_events() -> AsyncIterator[dict[str, str]]:
            sent, before = _read_last_seen_version(request), ""
            while not ended.is_set():
                list_data = self._build_run_list(sent)
                # Without the rows: what they tell is told by the version.
                key = json.dumps({**list_data, "rows": [], "version": 0})
                if list_data["version"] > sent or key != before:
                    sent, before = list_data["version"], key
                    yield _make_sse_event(list_data, list_data["version"])
                await asyncio.sleep(LIST_S if list_data["left"] else POLL_S)

        return _make_event_stream(iterate_row_events(), ended)

    # One run.

    async def show_run(self, request: Request) -> Response:
        run = self._reader.get_or_watch_run(request.path_params["run"])
        await _wait_until_ready(lambda: run.whole or len(run.rows) >= PAGE)  # so that the first page is there at once
        data = {"state": run.get_state(), "page": self._select_trial_rows(run.name, {})}
        name = run.name
        return _render_page(
            "ui_run.html",
            data=data,
            run=name,
            here=_make_run_page_path(name),
            outcomes=_describe_outcomes(),
            map=data["state"]["map"],
        )

    async def stream_run_states(self, request: Request) -> Response:
        name = request.path_params["run"]
        self._reader.get_or_watch_run(name)

        ended = anyio.Event()

        async def iterate_state_events() -> AsyncIterator[dict[str, str]]:
            sent = _read_last_seen_version(request)
            while not ended.is_set():
                run = self._reader.get_or_watch_run(name)  # asked for: it is kept
                if run.version != sent:
                    sent = run.version
                    yield _make_sse_event(run.get_state(), sent)
                await asyncio.sleep(POLL_S)

        return _make_event_stream(iterate_state_events(), ended)

    async def send_trials(self, request: Request) -> Response:
        return JSONResponse(self._select_trial_rows(request.path_params["run"], request.query_params))

    def _select_trial_rows(self, name: str, options: Mapping[str, str]) -> dict[str, Any]:
        """A page of the trials that fit."""
        rows = [*self._reader.get_or_watch_run(name).rows.values()]
        outcome, text = options.get("outcome", ""), options.get("q", "").lower()
        fault, _, target = options.get("met", "").rpartition("@")
        if outcome:
            rows = [row for row in rows if (row.standing == "bad" if outcome == "!bad" else row.outcome == outcome)]
        if fault:
            rows = [row for row in rows if (fault, target) in row.met]
        if text:
            rows = [row for row in rows if text in " ".join((row.trial, row.prompt, row.why, row.harm)).lower()]
        if (by := options.get("sort", "")) in COLUMNS:
            rows.sort(key=lambda row: _make_row_sort_key(row, by), reverse=options.get("down") == "1")
        pages = max(1, -(-len(rows) // PAGE))
        page = min(max(1, _parse_number_or_one(options.get("page"))), pages)
        page_rows = [row._asdict() for row in rows[(page - 1) * PAGE : page * PAGE]]
        return {"rows": page_rows, "found": len(rows), "page": page, "pages": pages}

    async def show_trial(self, request: Request) -> Response:
        run, trial = self._reader.get_or_watch_run(request.path_params["run"]), request.path_params["trial"]
        contents = await run_in_threadpool(_load_trial, run.folder, trial)
        keys = [*run.rows]
        at = keys.index(trial) if trial in run.rows else -1
        row = contents.rows[0]
        return _render_page(
            "ui_trial.html",
            data=build_timelines(contents),
            run=run.name,
            trial=trial,
            row=row,
            before=keys[at - 1] if at > 0 else "",
            after=keys[at + 1] if 0 <= at < len(keys) - 1 else "",
            replay=contents.build_replay_command(trial),
            here=_make_run_page_path(run.name),
        )

    async def show_log(self, request: Request) -> Response:
        run = self._reader.get_or_watch_run(request.path_params["run"])
        names, name = [path.name for path in list_log_files(run.folder)], run.name
        return _render_page("ui_log.html", data={}, run=name, here=_make_run_page_path(name), logs=names)

    async def send_log_tail(self, request: Request) -> Response:
        folder = self._reader.get_run_folder(request.path_params["run"])
        # By its name among the logs, so that no path leads out of the folder.
        path = next((path for path in list_log_files(folder) if path.name == request.path_params["log"]), None)
        if path is None:
            raise LookupError(f"there is no log {to_one_line(request.path_params['log'], 100)}")
        return JSONResponse({"lines": await run_in_threadpool(_read_log_tail, path)})

    async def send_report(self, request: Request) -> Response:
        folder = self._reader.get_run_folder(request.path_params["run"])
        text = await run_in_threadpool(_render_report, folder)
        name = f"{folder.name}-report.html"
        # As RFC 6266 has it: a run's name may hold any letter.
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        return HTMLResponse(text, headers=headers)

    async def send_map(self, request: Request) -> Response:
        """The map of an exploration. It is a file among the logs, so whatever it holds may do nothing."""
        path = self._reader.get_run_folder(request.path_params["run"]) / MAP
        if not path.is_file():
            raise LookupError(f"{path.parent.name} is of no exploration that has left a map")
        # A file among the logs may hold any script: it may do nothing.
        return HTMLResponse(await run_in_threadpool(files.load_bytes, path), headers={"content-security-policy": STILL})

    # What lies beside the runs.

    async def show_campaign(self, request: Request) -> Response:
        return _render_page("ui_campaign.html", data={}, name=self._find_campaign_folder(request).name)

    async def send_campaign_state(self, request: Request) -> Response:
        folder = self._find_campaign_folder(request)
        prefix = f"{folder.name}:" if folder != self._reader.logs else ""
        rows = [row for row in self._reader.list_run_rows_since(0) if row["run"].startswith(prefix)]
        rows.sort(key=lambda row: (bool(row.get("going")), row["run"]), reverse=True)
        return JSONResponse({**await run_in_threadpool(describe_campaign, folder), "runs": rows[:LATEST]})

    async def steer_campaign(self, request: Request) -> Response:
        from chaoslab.campaigns.running import apply_campaign_action

        folder, do = self._find_campaign_folder(request), request.path_params["do"]
        return JSONResponse(
            {"said": f"{folder.name}: {apply_campaign_action(folder, do, f'somebody asked for {do} in the pages')}"}
        )

    def _find_campaign_folder(self, request: Request) -> Path:
        name = request.path_params["name"]
        folder_found = next((folder for folder in find_campaigns(self._reader.logs) if folder.name == name), None)
        if folder_found is None:
            raise LookupError(f"there is no campaign {to_one_line(name, 100)} in {self._reader.logs}")
        return folder_found

    async def show_memory(self, request: Request) -> Response:
        memory_data = await run_in_threadpool(
            build_memory_view, self._reader.logs, request.query_params.get("subject", "")
        )
        return _render_page("ui_memory.html", data={}, logs=str(self._reader.logs), **memory_data)

    # Acts.

    async def steer_run(self, request: Request) -> Response:
        folder, body = self._reader.get_run_folder(request.path_params["run"]), await _read_body(request)
        return JSONResponse({"said": "; ".join(await run_in_threadpool(steer_run, folder, [str(body.get("do", ""))]))})

    async def send_gateway_state(self, request: Request) -> Response:
        """The state of a gateway's levers, which its log does not tell."""
        folder = self._reader.get_run_folder(request.path_params["run"])
        if (gateway_state := await run_in_threadpool(read_gateway_state, folder)) is None:
            raise LookupError(f"{folder.name} has no levers: it is over, or was begun without --levers")
        return JSONResponse(gateway_state)

    async def send_metrics(self, _: Request) -> Response:
        from chaoslab.base.prometheus import CONTENT_TYPE

        text = await run_in_threadpool(self._metrics, self._reader.list_running_folders())
        return Response(text, media_type=CONTENT_TYPE)


def _load_trial(folder: Path, trial: str) -> Contents:
    """One trial of a run as a report has it, without reading the others. Raises LookupError: there is no such trial."""
    # None: lines that belong to no trial, such as the run's beginning.
    history = read_trial_history(folder, [trial, None])
    history.rulings = Rulings.read(folder)
    if trial not in history.trials:
        raise LookupError(f"there is no trial {to_one_line(trial, 100)} in {folder.name}")
    return Contents.from_source(history, where=str(folder))


def _render_report(folder: Path) -> str:
    contents = Contents.from_run_name(str(folder), where=str(folder))
    return formats.render_files("html", contents)[html.FILE]


def _read_log_tail(path: Path) -> list[str]:
    """The last lines of a log."""
    with files.open_regular(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL * LINE))
        chunks = file.read(TAIL * LINE).split(b"\n")
    # The first may have lost its beginning.
    whole_lines = chunks if size <= TAIL * LINE else chunks[1:]
    return [escape_and_shorten(text.decode("utf-8", "replace"), LINE) for text in whole_lines[-TAIL - 1 :] if text]


def _make_row_sort_key(row: TrialLine, by: str) -> tuple[Any, ...]:
    value = getattr(row, by)
    if by == "outcome":
        return (SEVERITY.index(value),)
    if by == "trial":
        return tuple((piece.isdigit(), int(piece) if piece.isdigit() else piece) for piece in _split_digits(value))
    # Missing values first: None cannot be compared.
    return (value is not None, value) if value is None or by in ("seconds", "calls", "failed") else (True, str(value))


def _split_digits(text: str) -> Iterator[str]:
    import re

    # Numbers within a name by their value: p2 before p10.
    return (piece for piece in re.split(r"(\d{1,18})", text) if piece)


def _describe_outcomes() -> list[dict[str, str]]:
    return [
        {"name": str(outcome), "word": outcome_word(outcome), "glyph": outcome_glyph(outcome)} for outcome in SEVERITY
    ]


def _make_run_page_path(name: str) -> str:
    """The address of a run's page."""
    return f"/run/{quote(name)}"


def _parse_number_or_one(text: str | None) -> int:
    # isdigit is true of digits in other alphabets, and Python refuses to read very long numbers.
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else 1


def _read_last_seen_version(request: Request) -> int:
    """The version that the page has."""
    text = request.headers.get("last-event-id") or request.query_params.get("since") or ""
    return _parse_number_or_one(text) if text else 0


async def _wait_until_ready(ready: Callable[[], bool]) -> None:
    """Waits a little for what the reader is about to have."""
    # So that a page does not come empty and fill itself.
    for _ in range(FIRST):
        if not ready():
            await asyncio.sleep(LOOK_S)


def _make_event_stream(events: AsyncIterator[dict[str, str]], ended: anyio.Event) -> Response:
    """A response that goes on until the server is to end, which sets the event."""
    # Shorter than uvicorn's own patience (2 s, in `serve`).
    return EventSourceResponse(events, shutdown_event=ended, shutdown_grace_period=LIST_S + POLL_S)


def _make_sse_event(data: dict[str, Any], version: int) -> dict[str, str]:
    return {"data": json.dumps(data, separators=(",", ":")), "id": str(version)}


def _render_page(template: str, *, data: dict[str, Any], **variables: Any) -> Response:
    text = html.render_page(
        template,
        data=escape_json_for_html(data),
        words=escape_json_for_html({"outcomes": _describe_outcomes()}),
        **variables,
    )
    return HTMLResponse(text, headers={"content-security-policy": POLICY})


async def _serve_static(request: Request) -> Response:
    name = request.url.path.removeprefix("/")
    if name == "ui.css":
        return Response(html.build_styles(name), media_type="text/css")
    return Response(html.read_asset(name), media_type="text/javascript")


async def _read_body(request: Request) -> dict[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_MAX:
            raise ValueError("that is more than any page of this server sends")
    content = json.loads(data or b"{}")
    if not isinstance(content, dict):
        raise ValueError("it should be a JSON object")
    return content


async def _answer_lookup_error(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error.args[0] if error.args else error}\n", 404)


async def _answer_no_such_page(_: Request, error: Exception) -> Response:
    return PlainTextResponse("there is nothing at this address\n", getattr(error, "status_code", 404))


async def _answer_unreadable(_: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    return PlainTextResponse(f"{error.filename or 'a log'} cannot be read: {error.strerror or error}\n", 503)


async def _answer_value_error(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 400)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket at this place. Raises OSError: it is in use."""
    listener = socket.socket()
    # A port of a server that has just ended is free again.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


async def serve(
    listener: socket.socket, reader: RunsReader, *, token: str, metrics: Callable[[list[str]], str]
) -> None:
    """Serves at this socket until SIGINT or SIGTERM."""
    pages = Pages(reader, metrics)
    # Pages hold their streams open: without a bound the server would wait for them.
    config = uvicorn.Config(pages.build_app(token), log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        await server.serve(sockets=[listener])
