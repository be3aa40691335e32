"""A small agent loop over the chat completions API, and a small model: what the scenarios with a model share.

The model is a function of the request: it calls the tool if no result of it is among the messages, and answers from the
result if there is one. So it does what a model does with what it is sent, and costs nothing.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

URL = "http://api.openai.com/v1/chat/completions"
Tools = Mapping[str, Callable[..., Any]]


def completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-4o-mini",
        "choices": [choice],
        "usage": usage,
    }


def model(request: Any) -> dict[str, Any]:
    """Calls refund(17, 49) once, then tells what came of it."""
    messages = request.json["messages"]
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if results:
        return completion({"content": f"Order 17: {results[-1]}."}, "stop")
    function = {"name": "refund", "arguments": json.dumps({"order": 17, "amount": 49})}
    return completion({"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}, "tool_calls")


def tool(name: str, *parameters: str) -> dict[str, Any]:
    """A tool as the request lists it."""
    properties = {parameter: {"type": "number"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


REFUND = tool("refund", "order", "amount")


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's first choice."""
    answer = httpx.post(URL, json={"model": "gpt-4o-mini", "messages": messages, "tools": [REFUND]}, timeout=30)
    answer.raise_for_status()
    choice: dict[str, Any] = answer.json()["choices"][0]
    return choice
