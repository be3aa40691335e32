"""`offline_model`: the offline model as an application, for the services of anybody's agent."""

from __future__ import annotations

from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.model._chat import REQUEST_MAX, ChatReply, asked_last, load, reply_to, text_of
from chaoslab.model._choosing import catalogue
from chaoslab.model.app import LiveModel
from chaoslab.model.formats.common import Chat, ModelRefused


class OfflineModel(LiveModel):
    """The offline model: rules that read the last request and choose among the offered tools."""

    def reply(self, chat: Chat, key: bytes) -> ChatReply:  # noqa: ARG002 - equal requests have equal answers
        last = asked_last(chat.messages)
        length = 0 if last is None else len(text_of(chat.messages[last]))
        if length > REQUEST_MAX:
            raise ModelRefused(
                400,
                f"Please reduce the length of the messages: message {last} has {length} characters, and {REQUEST_MAX} "
                "are read.",
                code="context_length_exceeded",
            )
        return reply_to(chat.messages, catalogue(list(chat.tools)).offers)


def offline_model(*, token_s: float = 0.0) -> OfflineModel:
    """A model for `services=` that needs no key and no network: `services={"api.openai.com": lab.offline_model()}`.

    It answers by rules, so equal requests get equal answers. It reads simple English requests, calls the offered tools
    that fit, and reports their results. It speaks OpenAI's chat completions (Groq's too) and responses, Anthropic's
    messages, and Gemini's generateContent, whole or streamed, and takes any model's name and any key. `token_s`: the
    seconds before each event of a streamed answer but the first.

    Raises:
        ValueError: token_s is no number of seconds.
    """
    made = OfflineModel(token_s=seconds(token_s))
    load()
    return made


def seconds(token_s: float) -> float:
    """The value, if it is a number of seconds. Raises ValueError: it is none."""
    fits = isinstance(token_s, int | float) and not isinstance(token_s, bool) and 0 <= token_s <= SECONDS_MAX
    if not fits:
        raise ValueError(f"token_s is {token_s!r:.60}: it should be a number of seconds from 0 to {SECONDS_MAX}")
    return token_s
