"""Does a tool that does not exist end the session?"""

import json
from collections.abc import Callable
from typing import Any

from chat import ask
from shop import opened, refund

TOOLS: dict[str, Callable[..., Any]] = {"refund": refund}


def run(prompt: str, unknown: Callable[[str], str]) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for _ in range(6):
        message = ask(messages)["message"]
        if not message.get("tool_calls"):
            return str(message["content"])
        messages.append(message)
        for call in message["tool_calls"]:
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
            said = TOOLS[name](**given) if name in TOOLS else unknown(name)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return "I could not finish."


def naive() -> Callable[[str], str]:
    opened()

    def crash(name: str) -> str:
        raise KeyError(name)

    return lambda prompt: run(prompt, crash)


def careful() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        for _ in range(6):
            message = ask(messages)["message"]
            calls = message.get("tool_calls") or []
            if any(call["function"]["name"] not in TOOLS for call in calls):
                continue  # ask once more: the model made a name up
            if not calls:
                return str(message["content"])
            messages.append(message)
            for call in calls:
                said = TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
        return "I could not finish: the model asks for tools that do not exist."

    return agent
