"""Agents on the real SDKs of OpenAI, Anthropic and Groq, each a loop of model and tool, for the tests of models."""

import json
from collections.abc import Callable
from typing import Any

OPENAI, ANTHROPIC, GROQ = "api.openai.com", "api.anthropic.com", "api.groq.com"
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
NAME, ABOUT = "refund", "Refund an order."
TURNS = 6


def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} is refunded"


def by_openai_chat(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """OpenAI's chat completions."""
    import openai

    client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none", **options)
    return _chat(client, "gpt-4o", prompt, tool)


def by_groq(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """Groq's chat completions."""
    import groq

    client = groq.Groq(base_url=f"http://{GROQ}", api_key="none", **options)
    return _chat(client, "openai/gpt-oss-20b", prompt, tool)


def _chat(client: Any, model: str, prompt: str, tool: Callable[..., str]) -> str:
    tools = [{"type": "function", "function": {"name": NAME, "description": ABOUT, "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    for _ in range(TURNS):
        message = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        for call in message.tool_calls:
            said = tool(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    return "too many turns"


def by_openai_stream(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """OpenAI's chat completions, streamed."""
    import openai

    client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none", **options)
    tools: Any = [{"type": "function", "function": {"name": NAME, "description": ABOUT, "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    for _ in range(TURNS):
        text, made = "", dict[int, list[str]]()
        usage: Any = {"include_usage": True}
        for chunk in client.chat.completions.create(
            model="gpt-4o", messages=messages, tools=tools, stream=True, stream_options=usage
        ):
            delta = chunk.choices[0].delta if chunk.choices else None
            text += (delta and delta.content) or ""
            for part in (delta and delta.tool_calls) or ():
                piece, function = made.setdefault(part.index, [part.id or "", "", ""]), part.function
                piece[1] += (function and function.name) or ""
                piece[2] += (function and function.arguments) or ""
        if not made:
            return text
        calls = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": said}}
            for call, name, said in made.values()
        ]
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for made_id, _, said in made.values():
            messages.append({"role": "tool", "tool_call_id": made_id, "content": tool(**json.loads(said))})
    return "too many turns"


def by_responses(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """OpenAI's responses, whole, with the conversation kept by the service."""
    import openai

    client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none", **options)
    tools: Any = [{"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA, "strict": False}]
    given: Any = prompt
    before: Any = None
    for _ in range(TURNS):
        reply = client.responses.create(model="gpt-4o", input=given, tools=tools, previous_response_id=before)
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return str(reply.output_text)
        before = reply.id
        given = [
            {"type": "function_call_output", "call_id": call.call_id, "output": tool(**json.loads(call.arguments))}
            for call in calls
        ]
    return "too many turns"


def by_responses_stream(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """OpenAI's responses, streamed, with the conversation sent again each time."""
    import openai

    client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none", **options)
    tools: Any = [{"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA, "strict": False}]
    items: list[Any] = [{"role": "user", "content": prompt}]
    for _ in range(TURNS):
        with client.responses.stream(model="gpt-4o", input=items, tools=tools) as stream:
            reply = stream.get_final_response()
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return str(reply.output_text)
        for call in calls:
            items.append(
                {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
            )
        for call in calls:
            said = tool(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": said})
    return "too many turns"


def by_anthropic(prompt: str, tool: Callable[..., str] = refund, *, stream: bool = False, **options: Any) -> str:
    """Anthropic's messages."""
    import anthropic

    client = anthropic.Anthropic(base_url=f"http://{ANTHROPIC}", api_key="none", **options)
    tools: Any = [{"name": NAME, "description": ABOUT, "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    asked: Any = {"model": "claude-haiku-4-5-20251001", "max_tokens": 500, "tools": tools, "messages": messages}
    for _ in range(TURNS):
        if stream:
            with client.messages.stream(**asked) as events:
                reply: Any = events.get_final_message()
        else:
            reply = client.messages.create(**asked)
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content)
        messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": tool(**call.input)} for call in calls]
        messages.append({"role": "user", "content": results})
    return "too many turns"


def by_anthropic_stream(prompt: str, tool: Callable[..., str] = refund, **options: Any) -> str:
    """Anthropic's messages, streamed."""
    return by_anthropic(prompt, tool, stream=True, **options)


AGENTS: dict[str, tuple[Callable[..., str], str]] = {
    "openai chat": (by_openai_chat, OPENAI),
    "openai chat stream": (by_openai_stream, OPENAI),
    "openai responses": (by_responses, OPENAI),
    "openai responses stream": (by_responses_stream, OPENAI),
    "anthropic": (by_anthropic, ANTHROPIC),
    "anthropic stream": (by_anthropic_stream, ANTHROPIC),
    "groq": (by_groq, GROQ),
}
"""The agents, each with the host of its model."""
