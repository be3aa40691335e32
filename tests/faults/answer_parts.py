"""Shared by the tests of faults of a model's answers: an answer in words and one with two calls, in each format."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.dialog import CHAT, Dialog
from chaoslab.core.exchange import Reply
from chaoslab.core.fault import Fault
from chaoslab.core.stream import WatchedPipe, get_event_data, parse_event_json
from chaoslab.model._chat import ChatReply as ModelReply
from chaoslab.model._chat import ToolCall
from chaoslab.model.formats.anthropic_messages import AnthropicMessages
from chaoslab.model.formats.bedrock import Bedrock
from chaoslab.model.formats.common import Chat, Format, ModelAnswer
from chaoslab.model.formats.gemini import Gemini
from chaoslab.model.formats.openai_chat import OpenaiChat
from chaoslab.model.formats.openai_responses import OpenaiResponses
from tests.faults.fault_parts import CALL, Meeting, Target, answer, meet
from tests.seams.stream_parts import STREAM, Read, Timetable, read

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


def _bedrock(text: str, *inputs: dict[str, Any]) -> dict[str, Any]:
    uses = [{"toolUse": {"toolUseId": f"t_{n}", "name": NAME, "input": each}} for n, each in enumerate(inputs)]
    message = {"role": "assistant", "content": [*([{"text": text}] if text else ()), *uses]}
    return {"output": {"message": message}, "stopReason": "tool_use" if inputs else "end_turn"}


CITIES = {"city": "Oslo", "unit": "C"}, {"city": "Paris", "unit": "C"}
"""The arguments of the two calls."""
FORMATS: dict[str, tuple[Dialog, dict[str, Any], dict[str, Any]]] = {
    "chat": (CHAT, _chat(TEXT), _chat("", OSLO, PARIS)),
    "responses": (OpenaiResponses.dialog, _responses(TEXT), _responses("", OSLO, PARIS)),
    "anthropic": (AnthropicMessages.dialog, _anthropic(TEXT), _anthropic("", *CITIES)),
    "gemini": (Gemini.dialog, _gemini(TEXT), _gemini("", *CITIES)),
}
"""The dialog, an answer in words, and one with two calls."""
WHOLE = FORMATS | {
    "bedrock": (Bedrock.dialog, _bedrock(TEXT), _bedrock("", *CITIES)),
}
"""With those whose streams are not told anew here."""
API: dict[str, Format] = {
    "chat": OpenaiChat(), "responses": OpenaiResponses(), "anthropic": AnthropicMessages(), "gemini": Gemini()
}  # fmt: skip


def met(fault: ChangedAnswer, name: str, *, calls: bool) -> tuple[Meeting, AnswerContent]:
    """A call to a model of this format with the fault in its way, and what its caller was told."""
    dialog, words, asks = WHOLE[name]
    meeting = meet(fault, Target(reply=answer(asks if calls else words)), call=replace(CALL, dialog=dialog))
    assert meeting.reply is not None
    said = dialog.answers.extract_content(meeting.reply.value)
    assert said is not None
    return meeting, said


ENDS = {"anthropic": "stop_reason", "bedrock": "stopReason"}


def ended(name: str, meeting: Meeting) -> str:
    """The format's own word for the reason why the answer ended."""
    assert meeting.reply is not None
    value = meeting.reply.value
    if name == "responses":
        return str((value.get("incomplete_details") or {}).get("reason") or value["status"])
    if name in ENDS:
        return str(value[ENDS[name]])
    return str(value["choices"][0]["finish_reason"] if name == "chat" else value["candidates"][0]["finishReason"])


def streamed(name: str, text: str, *calls: dict[str, Any], usage: bool = False) -> list[bytes]:
    """The events of a streamed answer, as the lab's model sends them in this format."""
    native = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": usage}}
    chat = Chat("m", [], [], native, b"asked", events=True)
    made = tuple(ToolCall(f"call_{number}", NAME, arguments) for number, arguments in enumerate(calls))
    return list(API[name].stream_answer(ModelAnswer(chat, ModelReply(text, made), 1)))


def spoken(name: str, events: Sequence[bytes]) -> AnswerContent:
    """The content of a streamed answer."""
    said = FORMATS[name][0].answers.extract_stream_content(
        [parse_event_json(event) for event in events if get_event_data(event)]
    )
    assert said is not None
    return said


@dataclass
class Retold:
    """A streamed answer as its reader got it. `changed`: the lab saw that a fault had changed it."""

    read: Read
    said: AnswerContent
    changed: bool
    evidence: str | None


def pipes_over(fault: Fault, name: str) -> tuple[WatchedPipe, ...]:
    """The pipes that the fault's story puts over a streamed answer of this format."""
    reply = Reply(200, STREAM, stream=Timetable([]))
    meeting = meet(fault, Target(reply=reply), call=replace(CALL, dialog=FORMATS[name][0]))
    assert meeting.reply is not None
    return meeting.reply.pipes


def retold(
    fault: Fault, name: str, events: Sequence[bytes], *, stops_after: int | None = None, **of_source: Any
) -> Retold:
    """A reader of these events with the fault in their way."""
    pipes = pipes_over(fault, name)
    changes: list[bool] = []
    for pipe in pipes:
        pipe.on_change = partial(changes.append, True)
    notes = read(source := Timetable(events, **of_source), *pipes, stops_after=stops_after)
    reply = Reply(200, STREAM, stream=source, pipes=pipes)
    body = [event for event in notes.body.replace(b"\r\n", b"\n").split(b"\n\n") if event]
    said = AnswerContent("") if notes.error or stops_after else spoken(name, body)
    return Retold(notes, said, bool(changes), fault.witnessed(replace(notes.observed, changed_reply=reply)))
