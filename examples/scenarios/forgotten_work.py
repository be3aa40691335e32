"""Is work done again that a compacted context has forgotten?"""

import json
from collections.abc import Callable
from typing import Any

from chat import ask
from shop import opened, refund


def run(prompt: str, messages: list[dict[str, Any]], pay: Callable[[dict[str, Any]], str]) -> str:
    messages.append({"role": "user", "content": prompt})
    for _ in range(5):
        message = ask(messages)["message"]
        if not message.get("tool_calls"):
            messages.append(message)
            return str(message["content"])
        messages.append(message)
        for call in message["tool_calls"]:
            said = pay(json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return "I could not finish."


def naive() -> Callable[[str], str]:
    opened()
    messages: list[dict[str, Any]] = []
    return lambda prompt: run(prompt, messages, lambda given: refund(**given))


def careful() -> Callable[[str], str]:
    opened()
    messages: list[dict[str, Any]] = []
    done: dict[str, str] = {}

    def pay(given: dict[str, Any]) -> str:
        key = json.dumps(given, sort_keys=True)  # what was done is kept outside of the context
        if key not in done:
            done[key] = refund(**given)
        return done[key]

    return lambda prompt: run(prompt, messages, pay)
