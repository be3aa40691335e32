"""Shared by the tests of faults of a model's answers: an answer in words and one with two calls, in each format."""

from __future__ import annotations

from typing import Any

from chaoslab.core.answers import Said
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.dialog import CHAT, Dialog
from chaoslab.model.formats.anthropic_messages import AnthropicMessages
from chaoslab.model.formats.gemini import Gemini
from chaoslab.model.formats.openai_responses import OpenaiResponses
from tests.faults.fault_parts import CALL, Meeting, Target, answer, meet

TEXT = "It is 21.5 degrees in Oslo and 30 in Paris."
OSLO, PARIS = '{"city": "Oslo", "unit": "C"}', '{"city": "Paris", "unit": "C"}'
NAME = "current_weather"


def _chat(text: str, *arguments: str) -> dict[str, Any]:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": NAME, "arguments": each}}
        for n, each in enumerate(arguments)
    ]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": {"total_tokens": 9}}


def _anthropic(text: str, *inputs: dict[str, Any]) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": f"t_{n}", "name": NAME, "input": each} for n, each in enumerate(inputs)]
    words = [{"type": "text", "text": text}] if text else []
    stop = "tool_use" if inputs else "end_turn"
    return {"id": "m", "type": "message", "role": "assistant", "content": [*words, *blocks], "stop_reason": stop}


def _responses(text: str, *arguments: str) -> dict[str, Any]:
    calls = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": NAME, "arguments": each,
         "status": "completed"}
        for n, each in enumerate(arguments)
    ]  # fmt: skip
    part = {"type": "output_text", "text": text, "annotations": []}
    words = [{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}]
    return {"id": "r", "object": "response", "status": "completed", "output": [*(words if text else ()), *calls]}


def _gemini(text: str, *args: dict[str, Any]) -> dict[str, Any]:
    parts = [*([{"text": text}] if text else ()), *({"functionCall": {"name": NAME, "args": each}} for each in args)]
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


_OBJECTS = {"city": "Oslo", "unit": "C"}, {"city": "Paris", "unit": "C"}
FORMATS: dict[str, tuple[Dialog, dict[str, Any], dict[str, Any]]] = {
    "chat": (CHAT, _chat(TEXT), _chat("", OSLO, PARIS)),
    "responses": (OpenaiResponses.dialog, _responses(TEXT), _responses("", OSLO, PARIS)),
    "anthropic": (AnthropicMessages.dialog, _anthropic(TEXT), _anthropic("", *_OBJECTS)),
    "gemini": (Gemini.dialog, _gemini(TEXT), _gemini("", *_OBJECTS)),
}
"""The dialog, an answer in words, and one with two calls."""


def met(fault: ChangedAnswer, name: str, *, calls: bool) -> tuple[Meeting, Said]:
    """A call to a model of this format with the fault in its way, and what its caller was told."""
    from dataclasses import replace

    dialog, words, asks = FORMATS[name]
    meeting = meet(fault, Target(reply=answer(asks if calls else words)), call=replace(CALL, dialog=dialog))
    assert meeting.reply is not None
    said = dialog.answers.said(meeting.reply.value)
    assert said is not None
    return meeting, said


def ended(name: str, meeting: Meeting) -> str:
    """The format's own word for the reason why the answer ended."""
    assert meeting.reply is not None
    value = meeting.reply.value
    if name == "responses":
        return str((value.get("incomplete_details") or {}).get("reason") or value["status"])
    if name == "anthropic":
        return str(value["stop_reason"])
    return str(value["choices"][0]["finish_reason"] if name == "chat" else value["candidates"][0]["finishReason"])
