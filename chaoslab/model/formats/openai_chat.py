"""OpenAI's chat completions, which Groq, Azure and many others speak too."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.model import _errors
from chaoslab.model._chat import text_of
from chaoslab.model._completion import Completion, find_error
from chaoslab.model.formats.common import QUOTA, Chat, Constraints, Format, ModelAnswer, ModelRefused, with_headers
from chaoslab.model.formats.constraints import CHAT, GROQ, Names, read_openai
from chaoslab.model.formats.histories import check_openai_chat


def error(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> ErrorReply:
    """An error reply of OpenAI's."""
    return ErrorReply(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


INVALID, _SPENT = "invalid_request_error", "insufficient_quota"
_KEY = "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
KNOWN = {
    401: error(401, _KEY, INVALID, "invalid_api_key"),
    QUOTA: with_headers(error(429, _QUOTA, _SPENT, _SPENT), x_should_retry="false"),
    404: error(404, "The model does not exist or you do not have access to it.", INVALID, "model_not_found"),
    429: with_headers(
        error(429, "Rate limit reached for requests. Please try again in 1s.", "requests", "rate_limit_exceeded"),
        Retry_After="1",
    ),
    500: error(500, "The server had an error while processing your request. Sorry about that!", "server_error"),
    503: error(503, "The engine is currently overloaded, please try again later", "server_error"),
    CONTEXT_LENGTH: error(
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. "
        "Please reduce the length of the messages.",
        INVALID,
        "context_length_exceeded",
        "messages",
    ),
}


# https://github.com/diffbot/code-gpt-docs/issues/172
NO_CHAT = (
    "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?"
)


class OpenaiChat(Format):
    """`POST …/chat/completions`."""

    name = "OpenAI chat completions"
    known: ClassVar[Mapping[int, ErrorReply]] = KNOWN
    listed, form = "data", re.compile(r"/chat/completions\Z")

    def chat(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> Chat:  # noqa: ARG002
        if message := find_error(body):
            raise ModelRefused(400, message)
        tools = [] if body.get("tool_choice") == "none" else body.get("tools") or []
        return Chat(body["model"], body["messages"], tools, body, request_bytes, events=body.get("stream") is True)

    def check(self, chat: Chat, path: str) -> None:  # noqa: ARG002
        check_openai_chat(chat.messages)

    def constraints(self, chat: Chat) -> Constraints:
        return self._constraints(chat, CHAT)

    def _constraints(self, chat: Chat, names: Names) -> Constraints:
        messages_text = "".join(text_of(message) for message in chat.messages)
        return read_openai(chat.native, names, chat.native.get("response_format"), messages_text)

    def whole(self, answer: ModelAnswer) -> Any:
        return self._completion(answer).whole(answer.created)

    def stream(self, answer: ModelAnswer) -> Iterator[bytes]:
        return self._completion(answer).stream(answer.created)

    def _completion(self, answer: ModelAnswer) -> Completion:
        return Completion(answer.chat.native, answer.chat.asked, reply=answer.reply, groq=False)

    def refusal(self, status: int, message: str, code: str | None = None, param: str | None = None) -> ErrorReply:
        return error(status, message, "server_error" if status >= 500 else INVALID, code, param)

    def headers(self, answer: ModelAnswer) -> Mapping[str, str]:
        return {"x-request-id": f"req_{answer.chat.id}", "openai-version": "2020-10-01"}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        return {"object": "list", **super().models(names)}

    def model(self, name: str) -> Any:
        return {"id": name, "object": "model", "created": 0, "owned_by": "chaoslab"}


class GroqChat(OpenaiChat):
    """`POST /openai/v1/chat/completions`, with what Groq adds."""

    name = "Groq chat completions"
    known = _errors.ERRORS | {QUOTA: _errors.INSUFFICIENT_QUOTA}
    form = re.compile(r"\A/openai/v1/chat/completions\Z")

    def check(self, chat: Chat, path: str) -> None:
        """Takes any history: no report shows that Groq refuses one."""

    def constraints(self, chat: Chat) -> Constraints:
        limits = self._constraints(chat, GROQ)
        if limits.answers > 1:
            raise ModelRefused(400, "'n' : number must be at most 1", param="n")
        return limits

    def _completion(self, answer: ModelAnswer) -> Completion:
        return Completion(answer.chat.native, answer.chat.asked, reply=answer.reply)

    def refusal(self, status: int, message: str, code: str | None = None, param: str | None = None) -> ErrorReply:
        kind = "internal_server_error" if status >= 500 else INVALID
        return _errors.refusal(status, message, kind, code, param=param)


class MistralChat(OpenaiChat):
    """Mistral's `POST /v1/chat/completions`, whose streams have whole calls."""

    name = "Mistral chat completions"

    def constraints(self, chat: Chat) -> Constraints:
        choice = {"tool_choice": "required"} if chat.native.get("tool_choice") == "any" else {}
        # Mistral calls “any” what OpenAI calls “required”.
        return self._constraints(replace(chat, native={**chat.native, **choice}), GROQ)

    def stream(self, answer: ModelAnswer) -> Iterator[bytes]:
        return self._completion(answer).stream(answer.created, whole=True)
