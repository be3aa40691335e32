"""A model's API as a WSGI application: all formats at one address, with one model behind them. `offline_model`,
`scripted` and `recorded` are such applications. It needs no framework. Texts that share words have embeddings that are
near."""

import base64
import hashlib
import json
import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar

from chaoslab.base.clock import system
from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.answers import ReadAnswer
from chaoslab.model._chat import ChatReply
from chaoslab.model._completion import count_tokens
from chaoslab.model.formats import TELLING, choose_api_format, find_format, find_format_at_host
from chaoslab.model.formats.common import Chat, Format, ModelAnswer, ModelRefused, spelt
from chaoslab.model.formats.openai_chat import NO_CHAT
from chaoslab.model.formats.openai_responses import STORED, serve_stored_response
from chaoslab.model.prices import OTHERS, PRICES

_SIZES = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}
SIZE = 1024
"""The numbers of a vector, unless the model or the request states another count."""
SIZE_MAX = 4096


def make_embedding_reply(body: Mapping[str, Any]) -> Any:
    """The JSON of the answer. Raises Refused: there are no texts."""
    raw_texts = body.get("input")
    texts = [raw_texts] if isinstance(raw_texts, str) else raw_texts
    model, size = body.get("model"), body.get("dimensions")
    if not isinstance(texts, list) or not texts or not isinstance(model, str):
        raise ModelRefused(400, "an embedding needs a model and at least one text")
    strings = [text if isinstance(text, str) else str(text) for text in texts]
    count = size if isinstance(size, int) and 0 < size <= SIZE_MAX else _SIZES.get(model, SIZE)
    vectors = [_embed_text(text, count) for text in strings]
    used = count_tokens(" ".join(strings))
    # OpenAI's SDK asks for base64, unless its user asks for something else.
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": number, "embedding": _pack_vector(vector) if packed else vector}
        for number, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": used, "total_tokens": used}}


def _embed_text(text: str, size: int) -> list[float]:
    """A vector of length 1 with a part for each word."""
    vector = [0.0] * size
    # A text without a word has a vector too: its length below would be 0.
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.blake2s(word.encode("utf-8", "surrogatepass")).digest()
        # By a digest, not by hash(), which differs between processes: equal texts get equal vectors in every run.
        vector[int.from_bytes(digest[:4], "big") % size] += 1.0
    length = math.sqrt(sum(component * component for component in vector))
    return [round(component / length, 8) for component in vector]


def _pack_vector(vector: list[float]) -> str:
    # As OpenAI's SDK unpacks them: four bytes a number, the lowest byte first.
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


BODY_BYTES_MAX = 4 * 1024 * 1024
# The most answers that the memory of a service keeps: a process that serves for days has no trial that empties it.
KEPT_MAX = 1_000
COUNTING = ("/count_tokens", ":countTokens")
"""The ends of the paths that count a request's tokens, as Anthropic and Google have them."""
Answered = tuple[int, list[tuple[str, str]], Iterable[bytes]]
"""Status, headers and the parts of the body."""
_TELLING = [(name, f"HTTP_{name.upper().replace('-', '_')}") for name in TELLING]
"""The headers that tell a format, with their names in WSGI."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


def _ignore_warning(warning: str) -> None:
    """Takes a warning outside of a trial, where nobody reads it."""


class ModelApp(ABC):
    """A model's API."""

    def __init__(self) -> None:
        self.host = "the model"
        self.warn: Callable[[str], object] = _ignore_warning

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, without what belongs to the trial under way."""
        return {**self.__dict__, "warn": _ignore_warning}

    @abstractmethod
    def _answer_request(self, shape: Format, method: str, environ: Mapping[str, Any], body: bytes) -> Answered:
        """Status, headers and parts of the answer to a request. `shape`: the format of its errors. Raises Refused: the
        answer is an error."""

    def check_can_answer_for(self, host: str) -> None:  # noqa: B027 - most models fit anywhere
        """Checks that it can stand in for the service of this name. Raises LookupError: it cannot."""

    def begin_trial(self, host: str, trial: str, warn: Callable[[str], object]) -> None:  # noqa: ARG002
        """Begins a trial. `host`: the name that it is served under. `warn` takes a warning
        for the trial, in one line."""
        self.host, self.warn = host, warn

    def handle_answer_as_received(self, path: str, body: bytes, heard: ReadAnswer | None) -> None:  # noqa: B027 - most models need not know
        """Takes what its client got as the answer to this request; None if that did not reach it whole."""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        shape = choose_api_format(path, [name for name, field in _TELLING if field in environ])
        try:
            # PEP 3333 lets a server leave the length out, or leave it empty.
            length = int(environ.get("CONTENT_LENGTH") or 0)
            # Before the body is read, which may be of any length.
            if length > BODY_BYTES_MAX:
                raise ModelRefused(413)
            status, fields, parts = self._answer_request(shape, method, environ, environ["wsgi.input"].read(length))
        except ModelRefused as refused:
            default_error = shape.error_replies[refused.status]
            error = (
                shape.make_error_reply(refused.status, refused.message, refused.code, refused.param)
                if refused.message
                else default_error
            )
            status, fields, parts = _make_json_response(error.status, error.body, error.headers)
        start_response(f"{status} {get_status_phrase(status, f'status {status}')}", fields)
        # The length of the body stays in the headers: HTTP has HEAD answer as GET does, but for the body.
        return () if method == "HEAD" else parts


class LiveModel(ModelApp):
    """A model that works out its answers, in any format. `token_s`: the seconds before each event of a streamed answer
    but the first. `obeys`: it keeps to a request's constraints, where a script says what it says."""

    obeys: ClassVar[bool] = False

    def __init__(self, *, token_s: float = 0.0) -> None:
        super().__init__()
        self.token_s = token_s
        self._memory: dict[str, Any] = {}

    def handle_answer_as_received(self, path: str, body: bytes, heard: ReadAnswer | None) -> None:
        chat_format = find_format_at_host(self.host, path)
        if heard is not None and chat_format is not None and self._memory:
            chat_format.correct_stored_answer(self._memory, body, heard)

    @abstractmethod
    def make_reply(self, chat: Chat, key: bytes) -> ChatReply:
        """The model's reply. `key`: path and body of the request; a retry has an equal one. Raises Refused: it has
        none."""

    def begin_trial(self, host: str, trial: str, warn: Callable[[str], object]) -> None:
        super().begin_trial(host, trial, warn)
        self._memory = {}

    def _answer_request(self, shape: Format, method: str, environ: Mapping[str, Any], body: bytes) -> Answered:
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        # Before the lists of models, since a stored response is got with GET too.
        if stored := STORED.search(path):
            return _make_json_response(200, serve_stored_response(self._memory, method, *stored.groups()))
        if method in ("GET", "HEAD"):
            return _make_json_response(200, self._make_models_json(shape, path))
        # Anthropic counts beneath the path of its messages, Google at the path of a model: without the ending it is a
        # chat's path again.
        counted = next((path.removesuffix(end) for end in COUNTING if path.endswith(end)), None)
        chat_path = counted if counted is None or "/models/" not in counted else f"{counted}:generateContent"
        chat_format = find_format_at_host(self.host, chat_path or path)
        if method == "POST" and path.endswith("/embeddings"):
            return _make_json_response(200, make_embedding_reply(_parse_json_object(body)))
        if method != "POST" or chat_format is None:
            raise _make_unknown_url_refusal(method, path)
        asked_fields = _parse_json_object(body)
        if counted is not None:
            # A count needs no max_tokens, which Anthropic demands of a chat.
            total = chat_format.parse_request(
                chat_path or "", query, {"max_tokens": 1, **asked_fields}, body
            ).estimated_tokens
            return _make_json_response(
                200, {"totalTokens": total} if path.endswith(COUNTING[1]) else {"input_tokens": total}
            )
        try:
            full_request = chat_format.prepend_remembered_messages(asked_fields, self._memory)
            chat = chat_format.parse_request(path, query, full_request, body)
            chat_format.check_history(chat, path)
            if self.obeys:
                chat = replace(chat, limits=chat_format.read_constraints(chat))
        # The formats read what is nested as they expect it: a body of another form ends in any of these.
        except (ValueError, RecursionError, AttributeError, TypeError):
            raise ModelRefused(400, "The request body cannot be read.") from None
        answer = ModelAnswer(chat, self.make_reply(chat, path.encode() + body), int(system.utc().timestamp()))
        chat_format.remember_answer(answer, self._memory)
        # The oldest first: a dictionary keeps the order in which its keys came.
        while len(self._memory) > KEPT_MAX:
            del self._memory[next(iter(self._memory))]
        try:
            if not chat.events:
                return _make_json_response(
                    200, chat_format.build_answer_json(answer), chat_format.make_answer_headers(answer)
                )
            # All at once: a text that UTF-8 cannot carry is refused, and does not break off an answer that has begun.
            parts = list(chat_format.stream_answer(answer))
        except UnicodeEncodeError:
            raise ModelRefused(400, "The request body has text that UTF-8 cannot encode.") from None
        # Without alt=sse, Gemini streams a JSON array.
        kind = chat_format.stream_type if chat.sse else "application/json"
        fields = {**chat_format.make_answer_headers(answer), "Content-Type": kind, "Cache-Control": "no-cache"}
        return 200, list(fields.items()), self._pace_parts(parts)

    def _make_models_json(self, shape: Format, path: str) -> Any:
        """The list of models, or one of them."""
        if path.endswith("/models"):
            return shape.make_model_list([*PRICES, *OTHERS])
        _, separator, name = path.partition("/models/")
        if not separator or not name or ":" in name:
            raise _make_unknown_url_refusal("GET", path)
        return shape.describe_model(name)

    def _pace_parts(self, parts: list[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(parts):
            if number and self.token_s:
                system.sleep(self.token_s)
            yield piece


def _parse_json_object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ModelRefused(400, "We could not parse the JSON body of your request.") from None
    if not isinstance(value, dict):
        raise ModelRefused(400, "The body of a request must be a JSON object.")
    return value


def _make_unknown_url_refusal(method: str, path: str) -> ModelRefused:
    """The refusal of an address at which no format answers."""
    # OpenAI's own words tell a client of old completions which path a chat model has.
    if method == "POST" and path.endswith("/v1/completions"):
        return ModelRefused(404, NO_CHAT, param="model")
    status = HTTPStatus.METHOD_NOT_ALLOWED if find_format(path) else HTTPStatus.NOT_FOUND
    return ModelRefused(status, f"Invalid URL ({method} {path})", code="unknown_url")


def _make_json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Answered:
    text = spelt(value).encode()
    # The length last, so that no header of a reply can contradict its body.
    fields = {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(text))}
    return status, list(fields.items()), (text,)
