"""`recorded`: a model that gives the answers which the log of an earlier run holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from chaoslab.base.differences import describe_differences
from chaoslab.base.identity import parse_json
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.core.dialog import build_request_sketch, measure_request_likeness
from chaoslab.core.events import Replied
from chaoslab.core.exchange import Failure
from chaoslab.core.stream import EVENT_STREAM, EventSplitter
from chaoslab.model.app import Answered, ModelApp
from chaoslab.model.formats import find_format
from chaoslab.model.formats.common import Format, ModelRefused
from chaoslab.reports import places

SHOWN, UNLIKE = 60, 400
"""The most characters of a request, and of its differences from the nearest one."""
Replies = Mapping[str, Mapping[str, Sequence[Replied]]]
"""A target's replies by trial, then by what was asked."""


def recorded(run: str | Path, *, target: str | None = None) -> RecordedModel:
    """A model for `services=` that answers from the log of an earlier run: `lab.recorded("logs/20261122-090000")`.

    A request that the run made gets the answer that it got then. One that was made several times gets the answers in
    their order, and then the last one again. Any other request gets status 400, and the trial's `warnings` say so in
    one line. A log holds the answers of a model of the lab's own agent that was not offline, and of the services that
    `run` was told of by `models=`. `target`: the service in that run; by default the one of this name, or the only one.

    Raises:
        LookupError: there is no such run, or its log holds no answers.
        TypeError: run is no path.
    """
    if not isinstance(run, str | Path):
        raise TypeError(f"recorded is given {run!r:.60}: it should be a run's folder, as in 'logs/20261122-090000'")
    path = Path(run)
    logs = path.parent if path.parent != Path() else places.LOGS
    replies: dict[str, dict[str, dict[str, list[Replied]]]] = {}
    for record, event in places.read_history(str(run), logs=logs).find_events(Replied):
        trials = replies.setdefault(event.target, {})
        trials.setdefault(record.trial or "", {}).setdefault(event.asked, []).append(event)
    if not replies:
        raise LookupError(
            f"the log of {run} holds no answers of a model: it keeps those of services named by models=, and of a "
            "model that was not offline"
        )
    if target is not None and target not in replies:
        raise LookupError(
            f"the log of {run} holds no answers of '{target!s:.60}': {suggest_name(str(target), replies)}"
        )
    return RecordedModel(str(run), replies, target)


class RecordedModel(ModelApp):
    """A model that answers from a log. `found`: the replies that it holds, by target."""

    def __init__(self, run: str, replies: Mapping[str, Replies], target: str | None) -> None:
        super().__init__()
        self._run, self._found, self._target = run, replies, target
        self._trial = ""
        self._given: dict[str, int] = {}

    def check_can_answer_for(self, host: str) -> None:
        self._find_replies(host)

    def _find_replies(self, host: str) -> Replies:
        """The replies for a service of this name."""
        target = self._target or (next(iter(self._found)) if len(self._found) == 1 else host)
        if target not in self._found:
            names = ", ".join(sorted(self._found))
            raise LookupError(
                f"the log of {self._run} holds no answers of '{host}', but of {names}: choose one, as in "
                f"lab.recorded({self._run!r}, target={min(self._found)!r})"
            )
        return self._found[target]

    def begin_trial(self, host: str, trial: str, warn: Callable[[str], object]) -> None:
        super().begin_trial(host, trial, warn)
        self._trial, self._given = trial, {}

    def _answer_request(
        self,
        shape: Format,  # noqa: ARG002
        method: str,
        environ: Mapping[str, Any],
        body: bytes,
    ) -> Answered:
        path = environ["PATH_INFO"]
        chat_format = find_format(path)
        if method != "POST" or chat_format is None:
            self._refuse_unrecorded_request(f"{method} {path}")
        try:
            question = chat_format.compute_question_digest(path, body)
        except (ValueError, RecursionError):
            self._refuse_unrecorded_request(f"{method} {path}, whose body is no JSON")
        trials = self._find_replies(self.host)
        # The answers of the same trial come first: in another one, faults may have led to others for an equal request.
        candidates = trials.get(self._trial, {}).get(question) or [
            r for by_question in trials.values() for r in by_question.get(question, ())
        ]
        if not candidates:
            begins = to_one_line(body.decode("utf-8", "replace"), SHOWN)
            self._refuse_unrecorded_request(
                begins + _describe_nearest_request(trials, build_request_sketch(chat_format.dialog, parse_json(body)))
            )
        number = self._given.get(question, 0)
        self._given[question] = number + 1
        reply = candidates[min(number, len(candidates) - 1)]
        # Status 0 stands for a connection that failed before an answer.
        if not reply.status:
            raise Failure(reply.failure or "closed")
        # A log's JSON may hold half a surrogate pair, which UTF-8 may not.
        text = reply.body.encode("utf-8", "replace")
        fields = [*reply.headers.items(), *([("Content-Type", reply.content_type)] if reply.content_type else [])]
        if reply.content_type.startswith(EVENT_STREAM):
            return reply.status, fields, _stream_body(text, reply.failure)
        return reply.status, [*fields, ("Content-Length", str(len(text)))], (text,)

    def _refuse_unrecorded_request(self, request_text: str) -> NoReturn:
        message = f"the log of {self._run} holds no answer of {self.host} to this request: {request_text}"
        self.warn(message)
        raise ModelRefused(400, message, code="not_recorded")


def _describe_nearest_request(trials: Replies, asked_sketch: Mapping[str, Any]) -> str:
    """The nearest request that the log holds, and its differences from this one, in words; empty if it tells none."""
    candidates = [
        (candidate, trial)
        for trial, by_question in trials.items()
        for replies in by_question.values()
        for candidate in replies
    ]
    candidates = [(candidate, trial) for candidate, trial in candidates if candidate.sketch]
    if not candidates:
        return ""
    reply, trial = max(candidates, key=lambda candidate: measure_request_likeness(candidate[0].sketch, asked_sketch))
    unlike = describe_differences(reply.sketch, {**asked_sketch}, most=UNLIKE) or "in what the log does not keep"
    return f"; the nearest is request {reply.request}{f' of {trial}' if trial else ''}, which differs: {unlike}"


def _stream_body(body: bytes, failure: str) -> Iterable[bytes]:
    def iterate_parts() -> Iterator[bytes]:
        events = EventSplitter()
        yield from events.feed(body)
        if events.rest:
            yield events.rest
        if failure:
            raise Failure("closed" if failure == "timed_out" else failure)

    return iterate_parts()
