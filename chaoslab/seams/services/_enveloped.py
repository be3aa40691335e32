"""A request in a protocol has a tool and its arguments. The value of its reply is the tool's own part of it."""

import json
from functools import cached_property
from typing import Any

from chaoslab.base.identity import canonical
from chaoslab.base.json_text import encode_text
from chaoslab.base.jsonable import TEXT_MAX, shorten_texts, to_jsonable
from chaoslab.core.exchange import Reply
from chaoslab.seams.protocols import json_rpc, mcp, parse_message
from chaoslab.seams.protocols.message import Message, ToolAnswer
from chaoslab.seams.services.messages import Fields, HttpRequest, ServedReply, is_event_stream, set_content_length
from chaoslab.seams.services.model import ModelHost

_NOTHING: dict[str, Any] = {}
# The intent of a request without a query and a body.
_NOTHING_WANTED = canonical(["", _NOTHING])
# The fields of the meaning of a body that is one text, whose digest stands in what is noted of it.
_TEXT = {"body"}


class WantedCall:
    """A request's tool and arguments, in the forms in which attempts at it are noted. `intent`: as text, to tell if
    another request wants the same. `message`: what the request is in its protocol; None for plain HTTP."""

    def __init__(self, request: HttpRequest, host: ModelHost | None = None, tasks: mcp.Tasks | None = None) -> None:
        """`host`: the model that it is for; such a request is in no protocol that the lab reads here. `tasks`: those
        that its service has accepted."""
        self.host = host
        self.tool = f"{request.method} {request.path}"
        # GET without a query is the most frequent request of all; its intent need not be spelled.
        empty = not request.body and "?" not in request.target
        self.value: Any = _NOTHING if empty else request.parse_arguments()
        text = not empty and self.value.keys() == _TEXT and isinstance(self.value["body"], str)
        message = None if host is not None else parse_message(self.value, request.headers, body=bool(request.body))
        if tasks is not None:
            message = tasks.find_call_of_task_result(message)
        self.message: Message | None = message
        if message is not None:
            self.tool, self.value = message.tool, message.arguments
        self.long = len(request.body) > TEXT_MAX
        """True if a log may show a part of the body alone."""
        try:
            self.intent = (
                canonical([request.target, self.value])
                if message is not None
                else _NOTHING_WANTED
                if empty
                # A long text is compared by its digest, which the log has made already.
                else canonical([request.query, self.arguments])
                if self.long and text
                else request.build_intent_key(self.value)
            )
        # Nested so deeply that it cannot be spelled: by the bytes alone then.
        except RecursionError:
            self.intent = request.build_intent_key({})

    def to_log_form(self, value: Any) -> Any:
        """Arguments, or the content of an effect, as a log keeps them."""
        return shorten_texts(to_jsonable(value)) if self.long else to_jsonable(value)

    @cached_property
    def arguments(self) -> Any:
        """The arguments as a log keeps them."""
        return self.to_log_form(self.value)


class EnvelopedReply(ServedReply):
    """A reply that answers a message. `ok`: the tool did not fail; `done`: it has ended its work. `said`: the whole
    message."""

    enveloped = True
    ok: bool
    done: bool
    said: Any

    def __init__(self, served: ServedReply, message: Message, schema: Any, payload: Any, answer: ToolAnswer) -> None:
        # As a plain copy of the fields: the reply is read once, and making it anew would unpack it anew.
        self.__dict__.update(served.__dict__)
        self.__dict__.update(
            value=answer.value, ok=answer.ok, done=answer.done, said=payload, _of=(message, schema, answer)
        )

    @property
    def error_words(self) -> str:
        message = self.__dict__["_of"][2].words
        return message or super().error_words

    @property
    def json_text(self) -> str:
        return json.dumps(self.said, ensure_ascii=False)

    def with_text(self, text: str) -> Reply:
        body = encode_text(text)
        if is_event_stream(self.fields):
            message, schema, _ = self.__dict__["_of"]
            # Only the event that answers is replaced; progress before it stays.
            body = json_rpc.replace_matching_event(
                self.body, lambda payload: message.extract_tool_answer(payload, schema) is not None, text
            )
        return ServedReply(self.status, set_content_length(self.fields, body), body)

    def with_value(self, value: Any) -> Reply:
        message, schema, answer = self.__dict__["_of"]
        changed = ServedReply.from_reply(self.with_text(json.dumps(answer.put(value), ensure_ascii=False)))
        return unwrap_tool_value(changed, message, schema)

    def with_fitted_value(self, value: Any) -> Reply:
        message, schema, _ = self.__dict__["_of"]
        fitted = message.fit_value(value, self.value, schema)
        return self if fitted == self.value else self.with_value(fitted)


def unwrap_tool_value(served: ServedReply, message: Message, schema: Any) -> ServedReply:
    """The reply with the tool's own value, if it answers the message; else as it is."""
    # A stream may have other messages before the one that answers.
    for payload in json_rpc.iterate_json_values(served.body) if is_event_stream(served.fields) else (served.value,):
        answer = message.extract_tool_answer(payload, schema)
        if answer is not None:
            return EnvelopedReply(served, message, schema, payload, answer)
    return served


def make_message_reply(message: Message, payload: Any, schema: Any = None) -> ServedReply:
    """A reply of the lab's own with this whole message."""
    # `str` for what JSON does not know: a fault's value may be of any class.
    body = encode_text(json.dumps(payload, ensure_ascii=False, default=str))
    fields: Fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return unwrap_tool_value(ServedReply(200, fields, body), message, schema)
