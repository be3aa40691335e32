"""`recorded`: a model that gives the answers which the log of an earlier run holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from chaoslab.base.differences import differences
from chaoslab.base.identity import parsed
from chaoslab.base.jsonable import line
from chaoslab.base.registry import did_you_mean
from chaoslab.core.dialog import nearness, sketch
from chaoslab.core.events import Replied
from chaoslab.core.exchange import Failure
from chaoslab.core.stream import EVENT_STREAM, Events
from chaoslab.model.app import Answered, ModelApp
from chaoslab.model.formats import format_of
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
    place = Path(run)
    logs = place.parent if place.parent != Path() else places.LOGS
    found: dict[str, dict[str, dict[str, list[Replied]]]] = {}
    for record, event in places.read(str(run), logs=logs).of(Replied):
        trials = found.setdefault(event.target, {})
        trials.setdefault(record.trial or "", {}).setdefault(event.asked, []).append(event)
    if not found:
        raise LookupError(
            f"the log of {run} holds no answers of a model: it keeps those of services named by models=, and of a "
            "model that was not offline"
        )
    if target is not None and target not in found:
        raise LookupError(f"the log of {run} holds no answers of '{target!s:.60}': {did_you_mean(str(target), found)}")
    return RecordedModel(str(run), found, target)


class RecordedModel(ModelApp):
    """A model that answers from a log. `found`: the replies that it holds, by target."""

    def __init__(self, run: str, found: Mapping[str, Replies], target: str | None) -> None:
        super().__init__()
        self._run, self._found, self._target = run, found, target
        self._trial = ""
        self._given: dict[str, int] = {}

    def check(self, host: str) -> None:
        self._of(host)

    def _of(self, host: str) -> Replies:
        """The replies for a service of this name."""
        wanted = self._target or (next(iter(self._found)) if len(self._found) == 1 else host)
        if wanted not in self._found:
            known = ", ".join(sorted(self._found))
            raise LookupError(
                f"the log of {self._run} holds no answers of '{host}', but of {known}: choose one, as in "
                f"lab.recorded({self._run!r}, target={min(self._found)!r})"
            )
        return self._found[wanted]

    def begin(self, host: str, trial: str, warn: Callable[[str], object]) -> None:
        super().begin(host, trial, warn)
        self._trial, self._given = trial, {}

    def _answer(
        self,
        shape: Format,  # noqa: ARG002
        method: str,
        environ: Mapping[str, Any],
        body: bytes,
    ) -> Answered:
        path = environ["PATH_INFO"]
        format_ = format_of(path)
        if method != "POST" or format_ is None:
            self._missing(f"{method} {path}")
        try:
            asked = format_.question_digest(path, body)
        except (ValueError, RecursionError):
            self._missing(f"{method} {path}, whose body is no JSON")
        trials = self._of(self.host)
        known = trials.get(self._trial, {}).get(asked) or [r for each in trials.values() for r in each.get(asked, ())]
        if not known:
            begins = line(body.decode("utf-8", "replace"), SHOWN)
            self._missing(begins + _nearest(trials, sketch(format_.dialog, parsed(body))))
        number = self._given.get(asked, 0)
        self._given[asked] = number + 1
        reply = known[min(number, len(known) - 1)]
        if not reply.status:
            raise Failure(reply.failure or "closed")
        text = reply.body.encode("utf-8", "replace")
        fields = [*reply.headers.items(), *([("Content-Type", reply.content_type)] if reply.content_type else [])]
        if reply.content_type.startswith(EVENT_STREAM):
            return reply.status, fields, _streamed(text, reply.failure)
        return reply.status, [*fields, ("Content-Length", str(len(text)))], (text,)

    def _missing(self, what: str) -> NoReturn:
        said = f"the log of {self._run} holds no answer of {self.host} to this request: {what}"
        self.warn(said)
        raise ModelRefused(400, said, code="not_recorded")


def _nearest(trials: Replies, wanted: Mapping[str, Any]) -> str:
    """The nearest request that the log holds, and its differences from this one, in words; empty if it tells none."""
    told = [(each, trial) for trial, asked in trials.items() for replies in asked.values() for each in replies]
    told = [(each, trial) for each, trial in told if each.sketch]
    if not told:
        return ""
    reply, trial = max(told, key=lambda each: nearness(each[0].sketch, wanted))
    unlike = differences(reply.sketch, {**wanted}, most=UNLIKE) or "in what the log does not keep"
    return f"; the nearest is request {reply.request}{f' of {trial}' if trial else ''}, which differs: {unlike}"


def _streamed(body: bytes, failure: str) -> Iterable[bytes]:
    def parts() -> Iterator[bytes]:
        events = Events()
        yield from events.feed(body)
        if events.rest:
            yield events.rest
        if failure:
            raise Failure("closed" if failure == "timed_out" else failure)

    return parts()
