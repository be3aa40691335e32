"""A request to a service that no fault can hit: noted as any other attempt is, at a fraction of the cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property

from chaoslab.base.jsonable import line_of
from chaoslab.base.secrets import SEARCHED_MAX, plain
from chaoslab.core.events import REPLY_MAX
from chaoslab.core.exchange import Call, Observation
from chaoslab.record.log import Telling
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import client_retry
from chaoslab.seams.services.effects import EFFECT, SAFE
from chaoslab.seams.services.line import Line, Seen, Started
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt, ServiceSeam, Take
from chaoslab.seams.services.wanted import Wanted
from chaoslab.wire.body import BODY_MAX

Tell = Callable[[Sequence[str]], object]
"""Writes events down, each as the text of `encode_event`."""
_EFFECT = EFFECT.lower()
_quoted = json.encoder.encode_basestring


class PassedAttempt(ServiceAttempt):
    """One request to a service that no injection can hit (`ServiceSeam.never_hits`). It has the number, the id and the
    events that it would have as a `ServiceAttempt`. `tell` takes the two that each attempt has."""

    of_model, chat, hit, over = False, None, False, False
    via, sent, reply, waited_s, acted = "service", None, None, None, False
    _stopped, _broken_by, _packed = False, None, True
    _reads_all = False
    reads = SEARCHED_MAX

    def __init__(
        self,
        seam: ServiceSeam,
        book: TrialLog,
        name: str,
        request: HttpRequest,
        tell: Tell,
        wanted: Wanted,
    ) -> None:
        self.seam, self.book, self.name, self.request, self.tell = seam, book, name, request, tell
        self.clock, self.deadline_s, self.rolled = seam.clock, seam.timeout_s, []
        self.began_s = self.clock.monotonic()
        self.wanted, self.tool, self.value, self.message = wanted, wanted.tool, wanted.value, wanted.message
        safe = request.method in SAFE
        self.asked = asked = seam.request(name, wanted.tool, wanted.intent, safe=safe, now_s=self.began_s)
        self._attempt, self._turn = asked.begin(self.began_s), book.requests.turn
        book.calls += 1
        seam.asked_of.add(name)
        self._at = (
            f'"target": {_quoted(name)}, "turn": {self._turn}, "request": {asked.number}, '
            f'"attempt": {self._attempt}, "request_id": "{asked.id}", '
        )
        again = client_retry.stated(request.header(client_retry.HEADER.encode())) if self._attempt > 1 else None
        shown = wanted.shown if again is None else f'{wanted.shown[:-1]}, "client_retry": {again}}}'
        text = f'"kind": "call_started", {self._at}{shown}'
        tell((text if wanted.unmasked else Telling(text),))
        seam.open[id(self)] = self

    @cached_property
    def call(self) -> Call:  # type: ignore[override]  # most attempts end without it
        """The attempt as a call."""
        asked, key = self.asked, self.book.key
        return Call(self.name, self.tool, key, asked.number, self._attempt, asked.id, self.value, turn=self._turn)

    def _began(self, started: Started, part: bytes) -> None:
        self._packed = not started or any(name.lower() == "content-encoding" for name, _ in started[0][1])
        if self._packed or self.message is not None or int(started[0][0][:3]) >= 400:
            self.reads = BODY_MAX
        super()._began(started, part)

    def ended(self, seen: Seen) -> None:
        if self.over:
            return
        answer = seen.answer
        well = answer is not None and answer[0] < 400 and seen.error is None and seen.streamed is None
        if answer is None or not well or self._packed or self.message is not None:
            super().ended(seen)
            return
        status, fields, body = answer
        self._hide(fields, body)
        self.over = True
        self.asked.end()
        del self.seam.open[id(self)]
        self.book.requests.answered(self.asked)
        took_s = round(self.clock.monotonic() - self.began_s, 6)
        reply = line_of(body, REPLY_MAX)
        text = (
            f'"kind": "call_finished", {self._at}"tool": {_quoted(self.tool)}, "ok": true, "duration_s": {took_s}, '
            f'"status": {status}, "error": null, "bytes": {seen.bytes}, "via": "{self.via}", '
            f'"rolled": [], "replayed": false, "reply": {_quoted(reply)}}}'
        )
        self.tell((text if plain((reply, self.tool)) else Telling(text),))

    def changed(self) -> bool:
        """False: no fault can hit it."""
        return False

    def judged(self, seen: Observation) -> None:
        """Does nothing: there is no fault to witness, and none looks back."""


class AsideAttempt(PassedAttempt):
    """A request that only keeps up a session of its protocol, or asks for a list of tools that no fault is aimed at. It
    is answered as without the seam, and neither numbered nor noted."""

    def __init__(self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, wanted: Wanted) -> None:
        self.seam, self.book, self.name, self.request, self.tool = seam, book, name, request, wanted.tool
        self.value, self.message, self.clock, self.deadline_s = wanted.value, wanted.message, seam.clock, seam.timeout_s
        self.began_s = self.clock.monotonic()
        seam.asked_of.add(name)
        seam.open[id(self)] = self

    @property
    def may_act(self) -> bool:
        return False

    def taking(self, started: Started) -> Take:
        keep = self._keeping(started)

        def take(part: bytes | None) -> None:
            keep(part)
            if part is not None:
                self.hold()

        return take

    def hold(self) -> None:
        if self.seam.outages.held(self.name) is not None:
            self.clock.sleep(max(0.0, self.seam.outages.until_s(self.name) - self.clock.monotonic()))

    def ended(self, seen: Seen) -> None:  # noqa: ARG002
        if not self.over:
            self.over = True
            del self.seam.open[id(self)]

    def cut(self) -> None:
        self.over = True
        del self.seam.open[id(self)]


def asked(
    seam: ServiceSeam, name: str, request: HttpRequest, line: Line, tell: Tell | None = None
) -> ServiceAttempt | None:
    """The attempt that a request to a service is; None outside of a trial. `tell`: as in `PassedAttempt`; without it,
    one that no fault can hit is as all others."""
    if seam.book is None:
        return None
    wanted = Wanted(request, seam.model(name, request))
    seam.book.hide(request.secrets(body=wanted.long))
    if tell is not None and wanted.host is None and seam.never_hits(name):
        return passed(seam, seam.book, name, request, tell, wanted)
    if seam.aside(name, wanted):
        return AsideAttempt(seam, seam.book, name, request, wanted)
    return ServiceAttempt(seam, seam.book, name, request, line, wanted)


def unread(seam: ServiceSeam, name: str, request: HttpRequest) -> ServiceAttempt | None:
    """The attempt that a request is to a host which is no service of the trial; None outside of one."""
    if seam.book is None:
        return None
    attempt = AsideAttempt(seam, seam.book, name, request, Wanted(request))
    attempt.message = None  # whatever protocol it is in, nothing of it is read
    return attempt


def passed(
    seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, tell: Tell, wanted: Wanted
) -> PassedAttempt:
    """The attempt that a request is which no fault can hit."""
    if seam.aside(name, wanted):
        return AsideAttempt(seam, book, name, request, wanted)
    return PassedAttempt(seam, book, name, request, tell, wanted)
