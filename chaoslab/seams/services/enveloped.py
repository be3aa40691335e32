"""A reply in a protocol: its value is the tool's own part of it."""

from __future__ import annotations

import json
from typing import Any

from chaoslab.base.json_text import encoded
from chaoslab.core.exchange import Reply
from chaoslab.seams.protocols import sse
from chaoslab.seams.protocols.message import Answer, Message
from chaoslab.seams.services.messages import Fields, Served, is_stream, measured


class Enveloped(Served):
    """A reply that answers a message. `ok`: the tool did not fail. `said`: the whole message."""

    enveloped = True
    ok: bool
    said: Any

    def __init__(self, served: Served, message: Message, schema: Any, said: Any, answer: Answer) -> None:
        self.__dict__.update(served.__dict__)
        self.__dict__.update(value=answer.value, ok=answer.ok, said=said, _of=(message, schema, answer))

    @property
    def error_words(self) -> str:
        words = self.__dict__["_of"][2].words
        return words or super().error_words

    @property
    def json_text(self) -> str:
        return json.dumps(self.said, ensure_ascii=False)

    def with_text(self, text: str) -> Reply:
        body = encoded(text)
        if is_stream(self.fields):
            message, schema, _ = self.__dict__["_of"]
            body = sse.replaced(self.body, lambda said: message.answer(said, schema) is not None, text)
        return Served(self.status, measured(self.fields, body), body)

    def with_value(self, value: Any) -> Reply:
        message, schema, answer = self.__dict__["_of"]
        told = Served.of(self.with_text(json.dumps(answer.put(value), ensure_ascii=False)))
        return enveloped(told, message, schema)

    def in_form(self, value: Any) -> Reply:
        message, schema, _ = self.__dict__["_of"]
        told = message.fitted(value, self.value, schema)
        return self if told == self.value else self.with_value(told)


def enveloped(served: Served, message: Message, schema: Any = None) -> Served:
    """The reply with the tool's own value, if it answers the message; else as it is."""
    for said in sse.values(served.body) if is_stream(served.fields) else (served.value,):
        answer = message.answer(said, schema)
        if answer is not None:
            return Enveloped(served, message, schema, said, answer)
    return served


def made(message: Message, said: Any, schema: Any = None) -> Served:
    """A reply of the lab's own with this whole message."""
    body = encoded(json.dumps(said, ensure_ascii=False, default=str))
    fields: Fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return enveloped(Served(200, fields, body), message, schema)
