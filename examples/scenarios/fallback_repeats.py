"""Does a fallback repeat what the first model has done already?"""

import json
from collections.abc import Callable
from typing import Any

from chat import ask
from shop import opened, refund


def run(prompt: str, messages: list[dict[str, Any]]) -> str:
    messages.append({"role": "user", "content": prompt})
    return resumed(messages)


def resumed(messages: list[dict[str, Any]]) -> str:
    for _ in range(5):
        message = ask(messages)["message"]
        if not message.get("tool_calls"):
            return str(message["content"])
        messages.append(message)
        for call in message["tool_calls"]:
            said = refund(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return "I could not finish."


def naive() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        for _ in range(3):  # another model gets the same prompt
            try:
                return run(prompt, [])
            except Exception:
                continue
        return "I could not reach a model; please check order 17."

    return agent


def careful() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        for _ in range(4):  # another model goes on where the first one was
            try:
                return resumed(messages)
            except Exception:
                continue
        return "I could not reach a model; the refund of order 17 may have been done."

    return agent
