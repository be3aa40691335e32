"""LiteLLM and a loop."""

import json

from litellm import completion


def price(order: int) -> int:
    """The price of an order in dollars."""
    return 30


def refund(order: int, amount: int) -> str:
    """Pay an order's price back."""
    return f"{amount} dollars paid back for order {order}"


NUMBER = {"type": "integer"}
SCHEMAS = {"price": {"order": NUMBER}, "refund": {"order": NUMBER, "amount": NUMBER}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields}}}
    for name, fields in SCHEMAS.items()
]


def agent(prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    while True:
        message = completion("gpt-4o-mini", messages, tools=TOOLS, num_retries=2).choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            result = {"price": price, "refund": refund}[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
