"""Is half of a tool call carried out?"""

import json
from collections.abc import Callable

from chat import ask
from shop import opened, refund


def naive() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        messages = [{"role": "user", "content": prompt}]
        choice = ask(messages)
        call = choice["message"]["tool_calls"][0]
        try:
            given = json.loads(call["function"]["arguments"])
        except ValueError:
            given = {}  # an agent should not stop at a bracket
        said = refund(given.get("order", 17), given.get("amount", 0))
        messages += [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": said}]
        return str(ask(messages)["message"]["content"])

    return agent


def careful() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        messages = [{"role": "user", "content": prompt}]
        for _ in range(3):
            choice = ask(messages)
            call = choice["message"]["tool_calls"][0]
            try:
                given = json.loads(call["function"]["arguments"])
                order, amount = given["order"], given["amount"]
            except (ValueError, KeyError):
                continue  # nothing is done before all of it is known
            said = refund(order, amount)
            messages += [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": said}]
            return str(ask(messages)["message"]["content"])
        return "I could not refund order 17: the model's call cannot be read."

    return agent
