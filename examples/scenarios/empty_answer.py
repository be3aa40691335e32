"""Does an empty answer of the model pass for the agent's?"""

import json
from collections.abc import Callable
from typing import Any

from chat import ask
from shop import opened, refund


def run(prompt: str, tries: int) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for _ in range(4):
        message: dict[str, Any] = {}
        for _ in range(tries):
            message = ask(messages)["message"]
            if message.get("tool_calls") or (message.get("content") or "").strip():
                break
        if not message.get("tool_calls"):
            return (message.get("content") or "").strip()
        messages.append(message)
        for call in message["tool_calls"]:
            said = refund(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return ""


def naive() -> Callable[[str], str]:
    opened()
    return lambda prompt: run(prompt, tries=1)


def careful() -> Callable[[str], str]:
    opened()
    return lambda prompt: run(prompt, tries=5) or "I could not get an answer of the model; please check order 17."
