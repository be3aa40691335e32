"""The tool and the arguments of a request, by the protocol that it speaks."""

from __future__ import annotations

from typing import Any

from chaoslab.base.identity import canonical
from chaoslab.base.jsonable import TEXT_MAX, kept, to_jsonable
from chaoslab.base.values import once
from chaoslab.seams.protocols import message_of
from chaoslab.seams.protocols.message import Message
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.model import ModelHost

_NOTHING: dict[str, Any] = {}
_NOTHING_WANTED = canonical(["", _NOTHING])
"""The intent of a request without a query and a body."""
_TEXT = {"body"}
"""The fields of the meaning of a body that is one text, whose digest stands in what is noted of it."""


class Wanted:
    """A request's tool and arguments, in the forms in which attempts at it are noted. `intent`: as text, to tell if
    another request wants the same. `message`: what the request is in its protocol; None for plain HTTP."""

    def __init__(self, request: HttpRequest, host: ModelHost | None = None) -> None:
        """`host`: the model that it is for; such a request is in no protocol that the lab reads here."""
        self.host = host
        self.tool = f"{request.method} {request.path}"
        empty = not request.body and "?" not in request.target
        self.value: Any = _NOTHING if empty else request.meaning()
        text = not empty and self.value.keys() == _TEXT and isinstance(self.value["body"], str)
        found = None if host is not None else message_of(self.value, request.headers, body=bool(request.body))
        self.message: Message | None = found
        if found is not None:
            self.tool, self.value = found.tool, found.arguments
        self.long = len(request.body) > TEXT_MAX
        """True if a log may show a part of the body alone."""
        try:
            self.intent = (
                canonical([request.target, self.value]) if found is not None
                else _NOTHING_WANTED if empty
                else canonical([request.query, self.arguments]) if self.long and text
                else request.intent(self.value)
            )  # fmt: skip
        except RecursionError:
            self.intent = request.intent({})

    def noted(self, value: Any) -> Any:
        """Arguments, or the content of an effect, as a log keeps them."""
        return kept(to_jsonable(value)) if self.long else to_jsonable(value)

    @once
    def arguments(self) -> Any:
        """The arguments as a log keeps them."""
        return self.noted(self.value)
