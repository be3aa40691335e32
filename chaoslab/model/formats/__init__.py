"""The formats of models' APIs, one file each: requests are read into a `Chat`, and answers take the format's shape."""

from __future__ import annotations

from collections.abc import Container, Mapping

from chaoslab.core.service_spec import ErrorReply
from chaoslab.model.formats.anthropic_messages import AnthropicMessages
from chaoslab.model.formats.common import Format
from chaoslab.model.formats.gemini import Gemini
from chaoslab.model.formats.openai_chat import GroqChat, OpenaiChat
from chaoslab.model.formats.openai_responses import OpenaiResponses

_GEMINI, _ANTHROPIC, _OPENAI, _GROQ = Gemini(), AnthropicMessages(), OpenaiChat(), GroqChat()
FORMATS: tuple[Format, ...] = (_GROQ, _OPENAI, OpenaiResponses(), _ANTHROPIC, _GEMINI)


def format_of(path: str) -> Format | None:
    """The format of a request to the path; None if none answers there."""
    return next((each for each in FORMATS if each.serves(path)), None)


TELLING = ("anthropic-version", "x-goog-api-key")
"""The headers that tell a format."""


def shape_of(path: str, headers: Container[str]) -> Format:
    """The format for all else at a model's API, such as its list of models. `headers`: the names of those in `TELLING`
    that the request has, in small letters, and of any others."""
    if (found := format_of(path)) is not None:
        return found
    if TELLING[0] in headers:
        return _ANTHROPIC
    if path.startswith(("/v1beta", "/v1alpha")) or TELLING[1] in headers:
        return _GEMINI
    return _GROQ if path.startswith("/openai/v1/") else _OPENAI


def errors_of(path: str, headers: Container[str]) -> Mapping[int, ErrorReply]:
    """The error replies of the model's API at this path."""
    return shape_of(path, headers).errors


HOSTS = (
    "api.openai.com", "api.anthropic.com", "api.groq.com", "generativelanguage.googleapis.com", "api.mistral.ai",
    "openrouter.ai", "api.together.xyz", "api.deepseek.com",
)  # fmt: skip
"""Addresses of providers of models."""


def with_objects(host: str) -> bool:
    """Tells if the calls of the models at this address have objects as arguments in each of its answers."""
    return host.partition(":")[0] == "generativelanguage.googleapis.com"


def known_host(host: str) -> bool:
    """Tells if a model's provider has this address."""
    return host in HOSTS
