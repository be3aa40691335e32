"""A request to a service that no fault can hit: noted as any other attempt is, at a fraction of the cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import Any

from chaoslab.base.identity import canonical
from chaoslab.base.jsonable import line_of, to_jsonable
from chaoslab.core.events import REPLY_MAX
from chaoslab.core.exchange import Call, Observation
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.service import EFFECT, SAFE, Seen, ServiceAttempt, ServiceSeam
from chaoslab.seams.service_http import Fields, HttpRequest
from chaoslab.seams.service_mcp import asks_for_tools

Tell = Callable[[Sequence[str]], object]
"""Writes events down, each as the text of `encode_event`."""
_EFFECT = EFFECT.lower()
_NOTHING: dict[str, Any] = {}
_NOTHING_WANTED = canonical(["", _NOTHING])
"""The intent of a request without a query and a body."""
_spelt, _quoted = json.JSONEncoder(ensure_ascii=False).encode, json.encoder.encode_basestring


class PassedAttempt(ServiceAttempt):
    """One request to a service that no injection can hit (`ServiceSeam.never_hits`). It has the number, the id and the
    events that it would have as a `ServiceAttempt`. `tell` takes the two that each attempt has."""

    def __init__(self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, tell: Tell) -> None:
        self.seam, self.book, self.name, self.request, self.tell = seam, book, name, request, tell
        self.clock, self.deadline_s = seam.clock, seam.timeout_s
        self.began_s = self.clock.monotonic()
        self.tool = f"{request.method} {request.path}"
        plain = not request.body and "?" not in request.target
        self.value = _NOTHING if plain else request.meaning()
        self.of_model, self.chat, self.hit, self.over = False, None, False, False
        self.via, self.sent, self.reply, self.waited_s, self.rolled = "none", None, None, None, []
        self._stopped, self._broken_by, self._packed = False, None, True
        intent = _NOTHING_WANTED if plain else request.intent(self.value)
        self.asked = seam.request(name, self.tool, intent, safe=request.method in SAFE)
        self._attempt, self._turn = self.asked.next_attempt(), book.requests.turn
        book.calls += 1
        seam.asked_of.add(name)
        self._at = (
            f'"target": {_quoted(name)}, "turn": {self._turn}, "request": {self.asked.number}, '
            f'"attempt": {self._attempt}, "request_id": "{self.asked.id}", "tool": {_quoted(self.tool)}'
        )
        shown = "{}" if plain else _spelt(to_jsonable(self.value))
        tell((f'"kind": "call_started", {self._at}, "arguments": {shown}}}',))
        seam.open[id(self)] = self

    @cached_property
    def call(self) -> Call:  # type: ignore[override]  # most attempts end without it
        """The attempt as a call."""
        asked, key = self.asked, self.book.key
        return Call(self.name, self.tool, key, asked.number, self._attempt, asked.id, self.value, turn=self._turn)

    def answered(self, status: int, fields: Fields, said: Container[str]) -> None:
        """Notes that the service has answered, before its client is. `said`: the names of `fields` in lower case."""
        self.via, self._packed = "service", "content-encoding" in said
        if self.request.method not in SAFE or _EFFECT in said:
            self._note_effects(status, fields, self.request, self.value)

    def ended(self, seen: Seen) -> None:
        if self.over:
            return
        answer = seen.answer
        plain = answer is not None and answer[0] < 400 and seen.error is None and seen.streamed is None
        if answer is None or not plain or self._packed or asks_for_tools(self.value):
            super().ended(seen)
            return
        status, _, body = answer
        self.over = True
        del self.seam.open[id(self)]
        self.book.requests.answered(self.asked)
        took_s = round(self.clock.monotonic() - self.began_s, 6)
        self.tell((
            f'"kind": "call_finished", {self._at}, "ok": true, "duration_s": {took_s}, "status": {status}, '
            f'"error": null, "bytes": {seen.bytes}, "via": "{self.via}", "rolled": [], "replayed": false, '
            f'"reply": {_quoted(line_of(body, REPLY_MAX))}}}',
        ))  # fmt: skip

    def judged(self, seen: Observation) -> None:
        """Does nothing: there is no fault to witness, and none looks back."""
