"""The words in the answers of a model and of a service."""

from contextlib import suppress

from chaoslab.core.answers import CHAT_ANSWERS, UNREAD, ReadAnswer
from chaoslab.core.exchange import Reply


def extract_model_text(reply: Reply) -> str:
    """The text of a chat completion's message and the calls that it asks for; empty if it has neither."""
    heard = ReadAnswer()
    # An answer that cannot be read has no words; the caller gets it as it is.
    with suppress(*UNREAD):
        CHAT_ANSWERS.read_answer(heard, reply.value)
    return heard.rendered_content


def extract_error(reply: Reply) -> str:
    """The service's own error message, at most 200 characters."""
    value = reply.value
    if isinstance(value, dict):
        # OpenWeather has `message`, TMDB `status_message`, the others `error`, as a text or with a message in it.
        for key in ("message", "error", "status_message"):
            message = value.get(key)
            if isinstance(message, dict):
                message = message.get("message")
            if isinstance(message, str):
                # 200 characters: the reason stands in one line of the log and of the report.
                return message[:200]
    return f"status {reply.status}{', and no JSON' if reply.unreadable else ''}"
