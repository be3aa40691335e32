"""OpenAI's chat completions, which Groq, Azure and many others speak too."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.model import _errors
from chaoslab.model._chat import extract_message_text
from chaoslab.model._completion import Completion, find_request_error
from chaoslab.model.formats.common import QUOTA, Chat, Constraints, Format, ModelAnswer, ModelRefused, add_headers
from chaoslab.model.formats.constraints import CHAT, GROQ, Names, read_openai_constraints
from chaoslab.model.formats.histories import check_openai_chat


def make_error_reply(
    status: int, message: str, kind: str, code: str | None = None, param: str | None = None
) -> ErrorReply:
    """An error reply of OpenAI's."""
    return ErrorReply(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


INVALID, _SPENT = "invalid_request_error", "insufficient_quota"
_KEY = "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
KNOWN = {
    401: make_error_reply(401, _KEY, INVALID, "invalid_api_key"),
    QUOTA: add_headers(make_error_reply(429, _QUOTA, _SPENT, _SPENT), x_should_retry="false"),
    404: make_error_reply(404, "The model does not exist or you do not have access to it.", INVALID, "model_not_found"),
    429: add_headers(
        make_error_reply(
            429, "Rate limit reached for requests. Please try again in 1s.", "requests", "rate_limit_exceeded"
        ),
        Retry_After="1",
    ),
    500: make_error_reply(
        500, "The server had an error while processing your request. Sorry about that!", "server_error"
    ),
    503: make_error_reply(503, "The engine is currently overloaded, please try again later", "server_error"),
    CONTEXT_LENGTH: make_error_reply(
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

    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> Chat:  # noqa: ARG002
        if message := find_request_error(body):
            raise ModelRefused(400, message)
        tools = [] if body.get("tool_choice") == "none" else body.get("tools") or []
        return Chat(body["model"], body["messages"], tools, body, request_bytes, events=body.get("stream") is True)

    def check_history(self, chat: Chat, path: str) -> None:  # noqa: ARG002
        check_openai_chat(chat.messages)

    def read_constraints(self, chat: Chat) -> Constraints:
        return self._read_constraints_with_names(chat, CHAT)

    def _read_constraints_with_names(self, chat: Chat, names: Names) -> Constraints:
        messages_text = "".join(extract_message_text(message) for message in chat.messages)
        return read_openai_constraints(chat.native, names, chat.native.get("response_format"), messages_text)

    def build_answer_json(self, answer: ModelAnswer) -> Any:
        return self._make_completion(answer).build_json(answer.created)

    def stream_answer(self, answer: ModelAnswer) -> Iterator[bytes]:
        return self._make_completion(answer).build_stream_events(answer.created)

    def _make_completion(self, answer: ModelAnswer) -> Completion:
        return Completion(answer.chat.native, answer.chat.asked, reply=answer.reply, groq=False)

    def make_error_reply(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> ErrorReply:
        return make_error_reply(status, message, "server_error" if status >= 500 else INVALID, code, param)

    def make_answer_headers(self, answer: ModelAnswer) -> Mapping[str, str]:
        return {"x-request-id": f"req_{answer.chat.id}", "openai-version": "2020-10-01"}

    def make_model_list(self, names: Sequence[str]) -> dict[str, Any]:
        return {"object": "list", **super().make_model_list(names)}


class GroqChat(OpenaiChat):
    """`POST /openai/v1/chat/completions`, with what Groq adds."""

    name = "Groq chat completions"
    known = _errors.ERRORS | {QUOTA: _errors.INSUFFICIENT_QUOTA}
    form = re.compile(r"\A/openai/v1/chat/completions\Z")

    def check_history(self, chat: Chat, path: str) -> None:
        """Takes any history: no report shows that Groq refuses one."""

    def read_constraints(self, chat: Chat) -> Constraints:
        limits = self._read_constraints_with_names(chat, GROQ)
        if limits.answers > 1:
            raise ModelRefused(400, "'n' : number must be at most 1", param="n")
        return limits

    def _make_completion(self, answer: ModelAnswer) -> Completion:
        return Completion(answer.chat.native, answer.chat.asked, reply=answer.reply)

    def make_error_reply(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> ErrorReply:
        kind = "internal_server_error" if status >= 500 else INVALID
        return _errors.make_error_reply(status, message, kind, code, param=param)


class MistralChat(OpenaiChat):
    """Mistral's `POST /v1/chat/completions`, whose streams have whole calls."""

    name = "Mistral chat completions"

    def read_constraints(self, chat: Chat) -> Constraints:
        choice = {"tool_choice": "required"} if chat.native.get("tool_choice") == "any" else {}
        # Mistral calls “any” what OpenAI calls “required”.
        return self._read_constraints_with_names(replace(chat, native={**chat.native, **choice}), GROQ)

    def stream_answer(self, answer: ModelAnswer) -> Iterator[bytes]:
        return self._make_completion(answer).build_stream_events(answer.created, whole=True)
