"""The words in the answers of a model and of a service."""

from typing import Any

from chaoslab.core.exchange import Reply


def said_by_model(reply: Reply) -> str:
    """The text of a chat completion's message and the calls that it asks for; empty if it has neither."""
    try:
        return said_in(reply.value["choices"][0]["message"])
    except (TypeError, KeyError, IndexError, AttributeError):
        return ""


def said_in(message: Any) -> str:
    """The text of an assistant's message and the calls that it asks for; empty if it has neither."""
    try:
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        made = ", ".join(f"{call['name']}({call['arguments']})" for call in calls)
        said = message.get("content")
    except (TypeError, KeyError, IndexError, AttributeError):
        return ""
    return " ".join(filter(None, (said if isinstance(said, str) else "", f"calls {made}" if made else "")))


def error_in(reply: Reply) -> str:
    """The service's own error message, at most 200 characters."""
    value = reply.value
    if isinstance(value, dict):
        for key in ("message", "error", "status_message"):
            said = value.get(key)
            if isinstance(said, dict):
                said = said.get("message")
            if isinstance(said, str):
                return said[:200]
    return f"status {reply.status}{', and no JSON' if reply.unreadable else ''}"
