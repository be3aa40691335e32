"""The formats of models' APIs, one file each: requests are read into a `Chat`, and answers take the format's shape."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaoslab.base.identity import parse_json
from chaoslab.core.answers import UNREAD
from chaoslab.core.service_spec import ErrorReply
from chaoslab.model.formats.anthropic_messages import AnthropicMessages
from chaoslab.model.formats.bedrock import Bedrock
from chaoslab.model.formats.common import Format, ModelRefused
from chaoslab.model.formats.gemini import Gemini
from chaoslab.model.formats.openai_chat import GroqChat, MistralChat, OpenaiChat
from chaoslab.model.formats.openai_responses import OpenaiResponses

_GEMINI, _ANTHROPIC, _OPENAI, _GROQ = Gemini(), AnthropicMessages(), OpenaiChat(), GroqChat()
_MISTRAL = MistralChat()
# Groq before OpenAI, whose form fits Groq's path too.
FORMATS: tuple[Format, ...] = (_GROQ, _OPENAI, OpenaiResponses(), _ANTHROPIC, _GEMINI, Bedrock())


def find_format(path: str) -> Format | None:
    """The format of a request to the path; None if none answers there."""
    return next((chat_format for chat_format in FORMATS if chat_format.matches_path(path)), None)


TELLING = ("anthropic-version", "x-goog-api-key")
"""The headers that tell a format."""


def choose_api_format(path: str, headers: Container[str]) -> Format:
    """The format for all else at a model's API, such as its list of models. `headers`: the names of those in `TELLING`
    that the request has, in small letters, and of any others."""
    if (chat_format := find_format(path)) is not None:
        return chat_format
    if TELLING[0] in headers:
        return _ANTHROPIC
    # No other API here has versions of these names. At /v1, which OpenAI has too, the header alone tells.
    if path.startswith(("/v1beta", "/v1alpha")) or TELLING[1] in headers:
        return _GEMINI
    return _GROQ if path.startswith("/openai/v1/") else _OPENAI


def get_error_replies(path: str, headers: Container[str]) -> Mapping[int, ErrorReply]:
    """The error replies of the model's API at this path."""
    return choose_api_format(path, headers).error_replies


@dataclass(frozen=True)
class Provider:
    """A provider of models. `name`: that of a route which is its; `hosts`: patterns of its addresses, the newest first;
    `variable`: the one in which its SDK looks for an address, with `path` in it; `added`: the path that the SDK adds by
    itself; `objects`: the arguments of calls are objects in each of its answers."""

    name: str
    hosts: tuple[str, ...]
    variable: str = ""
    path: str = ""
    added: str = ""
    objects: bool = False


PROVIDERS = (
    Provider("openai", ("api.openai.com", "*.openai.azure.com"), "OPENAI_BASE_URL", path="/v1"),
    Provider("anthropic", ("api.anthropic.com",), "ANTHROPIC_BASE_URL", added="/v1"),
    Provider("groq", ("api.groq.com",), "GROQ_BASE_URL", added="/openai/v1"),
    Provider(
        "gemini",
        ("generativelanguage.googleapis.com", "*aiplatform.googleapis.com"),
        "GOOGLE_GEMINI_BASE_URL",
        added="/v1beta",
        objects=True,
    ),
    Provider("bedrock", ("bedrock-runtime.*.amazonaws.com",), "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", objects=True),
    Provider("together", ("api.together.ai", "api.together.xyz"), "TOGETHER_BASE_URL", path="/v1"),
    Provider("mistral", ("api.mistral.ai",)),
    Provider("fireworks", ("api.fireworks.ai",)),
    Provider("openrouter", ("openrouter.ai",)),
    Provider("deepseek", ("api.deepseek.com",)),
    Provider("xai", ("api.x.ai",)),
)


def find_provider(host: str) -> Provider | None:
    """The provider that has this address, be it an old one."""
    bare = host.partition(":")[0]
    return next(
        (provider for provider in PROVIDERS if any(fnmatchcase(bare, pattern) for pattern in provider.hosts)), None
    )


def find_format_at_host(host: str, path: str) -> Format | None:
    """The format of a request to the path at a provider's address."""
    chat_format, provider = find_format(path), find_provider(host)
    # Mistral's path is OpenAI's, so its host alone tells them apart.
    return _MISTRAL if chat_format is _OPENAI and provider is not None and provider.name == "mistral" else chat_format


def has_object_arguments(host: str) -> bool:
    """Tells if the calls of the models at this address have objects as arguments in each of its answers."""
    provider = find_provider(host)
    return provider is not None and provider.objects


ASIDE = (
    "/embeddings",
    "/completions",
    "/embed",
    "/rerank",
    "/moderations",
    ":embedContent",
    ":batchEmbedContents",
    "/count_tokens",
    ":countTokens",
    "/invoke",
    "/invoke-with-response-stream",
)
"""The ends of the paths of requests to models that are no chats."""


def is_model_request(path: str, body: bytes) -> bool:
    """True if a POST asks a model by what it says: it is a chat in one of the formats, or something else that models
    are asked for and names one."""
    chat_format = find_format(path)
    if chat_format is None and not path.endswith(ASIDE):
        return False
    try:
        fields = parse_json(body)
        if chat_format is None:
            # Google and Bedrock name the model in the path, not in the body.
            return isinstance(fields.get("model"), str) or ":" in path or path.startswith("/model/")
        chat_format.parse_request(path, "", fields, body)
    except (ModelRefused, RecursionError, *UNREAD):
        return False
    return True
