"""The model's half of the seam of services: hosts that speak a model's API, what they cost, and what they said. The
formats themselves are the model's room; here stands what a seam needs of them."""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from chaoslab.base.identity import parse_json
from chaoslab.core import events
from chaoslab.core.dialog import Dialog, build_request_sketch
from chaoslab.core.exchange import Call, Reply
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import EVENT_STREAM, FRAMES
from chaoslab.seams._replied import make_replied_event
from chaoslab.seams.services.messages import HttpRequest

# The most tokens of one answer that are believed; a higher figure counts as 0.
TOKENS_MAX = 2**53


class ReadAnswer(Protocol):
    """A model's answer as the lab reads it. `finished`: it ended as the model meant it to. `reason`: the provider's
    word for why it ended."""

    model: str
    tokens_in: int | None
    tokens_out: int | None
    finished: bool
    reason: str

    @property
    def rendered_content(self) -> str:
        """The text and the calls in words."""


class Format(Protocol):
    """A format of a model's API."""

    @property
    def dialog(self) -> Dialog:
        """The place of the messages in a request."""

    @property
    def error_replies(self) -> Mapping[int, ErrorReply]:
        """The service's own error replies."""

    def compute_question_digest(self, path: str, body: bytes) -> str:
        """A digest of what a request asks for."""

    def estimate_tokens(self, path: str, body: bytes, heard: Any) -> tuple[int, int]:
        """The estimated tokens of a request and of its answer."""

    def read_whole_reply(self, value: Any) -> ReadAnswer:
        """Reads a whole reply by its JSON."""

    def read_streamed_reply(self, body: bytes) -> ReadAnswer:
        """Reads a streamed reply."""


@dataclass(frozen=True)
class ModelHost:
    """A service that speaks a model's API.

    `format_of` gives the format of a chat request by its path, None for another request; `errors_of` the error replies
    for any path and headers. `ended` is told of each answer as its client got it, or None if it did not reach it whole.
    `recorded`: its answers go into the log, since they could not be made again. `said_by` names the script that an
    answer under way follows, None for one that was worked out.
    """

    format_of: Callable[[str], Format | None]
    errors_of: Callable[[str, Container[str]], Mapping[int, ErrorReply]]
    ended: Callable[[str, bytes, Any], object] = lambda path, body, heard: None  # noqa: ARG005
    recorded: bool = False
    said_by: Callable[[str, bytes], str | None] = lambda path, body: None  # noqa: ARG005


def get_no_price(model: str, tokens_in: int, tokens_out: int) -> float | None:  # noqa: ARG001
    """The price of a model if nobody knows prices."""
    return None


@dataclass
class ModelSpending:
    """The spending of a trial for its models: tokens of the trial, dollars of the run so far."""

    tokens: float = 0.0
    cost_usd: float = 0.0
    price: Callable[[str, int, int], float | None] = field(default=get_no_price)

    def record_usage(
        self, heard: ReadAnswer, request: int, estimated: Callable[[ReadAnswer], tuple[int, int]]
    ) -> events.Usage | events.UsageUnstated | None:
        """The event for an answer, whose tokens are added, `estimated` if it does not state them; None if it says
        nothing."""
        is_stated = heard.tokens_in is not None or heard.tokens_out is not None
        if not is_stated and not heard.rendered_content:
            return None
        tokens_in, tokens_out = (heard.tokens_in, heard.tokens_out) if is_stated else estimated(heard)
        tokens_in, tokens_out = validate_token_count(tokens_in), validate_token_count(tokens_out)
        cost = self.price(heard.model, tokens_in, tokens_out)
        self.tokens += tokens_in + tokens_out
        self.cost_usd += cost or 0.0
        used: dict[str, Any] = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "cost_usd": cost}
        if is_stated:
            return events.Usage(model=heard.model, request=request, **used)
        return events.UsageUnstated(model=heard.model, request=request, finished=heard.finished, **used)


def validate_token_count(tokens: Any) -> int:
    """The count of tokens that a model's server states; 0 if it is no integer from 1 to `TOKENS_MAX`."""
    # `type`, since True is an int to Python.
    return tokens if type(tokens) is int and 0 < tokens <= TOKENS_MAX else 0


class ModelRequest:
    """One chat request to a model at a service."""

    def __init__(self, host: ModelHost, chat_format: Format, request: HttpRequest) -> None:
        self.format, self._host = chat_format, host
        self.sent = request
        """The request as the model gets it."""

    @classmethod
    def build_if_chat(cls, host: ModelHost | None, request: HttpRequest) -> "ModelRequest | None":
        """The request; None if it is no chat."""
        chat_format = host.format_of(request.path) if host is not None and request.method == "POST" else None
        return None if host is None or chat_format is None else cls(host, chat_format, request)

    def to_log_form(self, value: Any) -> dict[str, Any]:
        """The request in the log, where a whole conversation would stand again and again."""
        return {"messages": len(self.list_messages(value)) or 1}

    def list_messages(self, value: Any) -> list[Any]:
        """The messages of the request."""
        return [*self.format.dialog.list_messages(value)]

    def read_answer(self, reply: Reply) -> ReadAnswer:
        kind = next((text for name, text in reply.headers.items() if name.lower() == "content-type"), "")
        # Of what came and not of what was asked: an error to a request for a stream is whole.
        streamed = kind.startswith((EVENT_STREAM, FRAMES))
        return self.format.read_streamed_reply(reply.body) if streamed else self.format.read_whole_reply(reply.value)

    def estimate_tokens(self, heard: ReadAnswer) -> tuple[int, int]:
        """The estimated tokens of the request and of its answer."""
        return self.format.estimate_tokens(self.sent.path, self.sent.body, heard)

    @property
    def is_to_be_recorded(self) -> bool:
        """True if the log is to keep the model's own replies."""
        return self._host.recorded

    @property
    def script_name(self) -> str | None:
        """The script that its answer follows; None if it was worked out."""
        return self._host.said_by(self.sent.path, self.sent.body)

    def make_recorded_events(self, call: Call, reply: Reply) -> Iterator[events.Replied]:
        """The event for the model's own reply, if the log is to keep it."""
        if self._host.recorded:
            with suppress(ValueError, RecursionError):  # a request that is no JSON cannot be found again
                question = self.format.compute_question_digest(self.sent.path, self.sent.body)
                # A question that a recording has no answer to is explained by the newest messages of those that it has.
                brief = build_request_sketch(self.format.dialog, parse_json(self.sent.body))
                yield replace(
                    make_replied_event(call.target, call.request, call.attempt, question, reply), sketch=brief
                )

    def report_client_answer(self, heard: ReadAnswer | None) -> None:
        """Tells the model what its client got as its answer; None if that did not reach it whole."""
        self._host.ended(self.sent.path, self.sent.body, heard)
