"""Conversations in the form of each provider, and the rules that a provider has for them."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from chaoslab.core.dialog import CHAT, Dialog
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Fault
from chaoslab.model.formats.anthropic_messages import AnthropicMessages
from chaoslab.model.formats.bedrock import Bedrock
from chaoslab.model.formats.gemini import Gemini
from chaoslab.model.formats.openai_responses import OpenaiResponses
from tests.faults.fault_parts import Meeting, Target, meet

Message = dict[str, Any]
FORMATS: dict[str, Dialog] = {
    "chat": CHAT,
    "anthropic": AnthropicMessages.dialog,
    "bedrock": Bedrock.dialog,
    "gemini": Gemini.dialog,
    "responses": OpenaiResponses.dialog,
}


def system(form: str) -> list[Message]:
    """The system's message, where it stands among the messages."""
    return [{"role": "system", "content": "Be careful, é."}] if form in ("chat", "responses") else []


def said(form: str, role: str, text: str) -> Message:
    if form == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    if form == "bedrock":
        return {"role": role, "content": [{"text": text}]}
    return {"role": role, "content": [{"type": "text", "text": text}] if form == "anthropic" else text}


def asked(form: str, number: int, results: int) -> list[Message]:
    """The assistant calls some tools at once, and each answers."""
    ids = [f"call-{number}-{n}" for n in range(results)]
    if form == "chat":
        calls = [{"id": i, "type": "function", "function": {"name": "add", "arguments": "{}"}} for i in ids]
        return [
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": i, "content": f"résultat {i}"} for i in ids),
        ]
    if form == "anthropic":
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "add", "input": {}} for i in ids]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": i, "content": f"résultat {i}"} for i in ids],
            },
        ]
    if form == "bedrock":
        results_of = [{"toolUseId": i, "content": [{"text": f"résultat {i}"}]} for i in ids]
        return [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": i, "name": "add", "input": {}}} for i in ids]},
            {"role": "user", "content": [{"toolResult": each} for each in results_of]},
        ]
    if form == "gemini":
        return [
            {"role": "model", "parts": [{"functionCall": {"id": i, "name": "add", "args": {}}} for i in ids]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": i, "name": "add", "response": {"result": f"résultat {i}"}}} for i in ids
                ],
            },
        ]
    return [
        *({"type": "function_call", "call_id": i, "name": "add", "arguments": "{}"} for i in ids),
        *({"type": "function_call_output", "call_id": i, "output": f"résultat {i}"} for i in ids),
    ]


@st.composite
def dialogs(draw: st.DrawFn) -> Call:
    """A request that a provider takes: turns of the user, each with calls and an answer behind it."""
    form = draw(st.sampled_from(sorted(FORMATS)))
    messages = system(form) if draw(st.booleans()) else []
    turns = draw(st.integers(1, 6))
    for turn in range(turns):
        messages.append(said(form, "user", draw(st.sampled_from((f"Frage {turn} für dich", f"plain question {turn}")))))
        for step in range(draw(st.integers(0, 3))):
            messages += asked(form, 10 * turn + step, draw(st.integers(1, 3)))
        if turn < turns - 1:
            messages.append(said(form, "assistant", f"answer {turn}"))
    return request(form, messages)


def request(form: str, messages: list[Message]) -> Call:
    dialog = FORMATS[form]
    value = {"model": "m", dialog.key: messages, "temperature": 0}
    return Call("model", "chat", "p1.r1", 1, 1, value=value, dialog=dialog)


def form_of(call: Call) -> str:
    return next(name for name, dialog in FORMATS.items() if dialog is call.dialog)


def met_by(fault: Fault, call: Call) -> tuple[Meeting, list[Message]]:
    """The meeting, and the messages that left; the rest of the request is as it was."""
    target = Target()
    met = meet(fault, target, call=call)
    sent, key = target.sent[0], call.dialog.key
    assert {k: v for k, v in sent.value.items() if k != key} == {k: v for k, v in call.value.items() if k != key}
    assert met.injected == (sent.value != call.value)
    assert (sent is call) == (not met.injected)
    assert (met.evidence is not None) == met.injected
    assert fault.witnessed(replace(met.seen, sent=None)) is None
    assert fault.witnessed(replace(met.seen, sent=call)) is None
    return met, sent.value[key]


def accepted(call: Call, messages: list[Message]) -> bool:
    """True if the provider takes these messages: calls and results in pairs, ids once, and no model's turn after a
    model's turn. The system's messages are those of the call."""
    form = form_of(call)
    role = call.dialog.role
    given = [m for m in call.value[call.dialog.key] if role(m) == "system"]
    if [m for m in messages if role(m) == "system"] != given:
        return False
    others = [m for m in messages if role(m) != "system"]
    open_ids: list[str] = []
    seen: list[str] = []
    before = "model"
    for message in others:
        calls, results = _ids(message)
        if open_ids and not results and not (form == "responses" and calls):
            return False
        if any(i in seen for i in calls) or any(i not in open_ids for i in results):
            return False
        seen += calls
        open_ids = [i for i in open_ids + calls if i not in results]
        model = message.get("role") in ("assistant", "model")
        if model and before == "model":
            return False
        before = "model" if model else "other"
    return not open_ids


def _ids(message: Message) -> tuple[list[str], list[str]]:
    calls = [c["id"] for c in message.get("tool_calls", [])]
    results = [message["tool_call_id"]] if "tool_call_id" in message else []
    if "call_id" in message:
        (calls if message["type"] == "function_call" else results).append(message["call_id"])
    content = message.get("content")
    for block in content if isinstance(content, list) else message.get("parts", []):
        if block.get("type") == "tool_use":
            calls.append(block["id"])
        elif block.get("type") == "tool_result":
            results.append(block["tool_use_id"])
        elif "toolUse" in block:
            calls.append(block["toolUse"]["toolUseId"])
        elif "toolResult" in block:
            results.append(block["toolResult"]["toolUseId"])
        elif "functionCall" in block:
            calls.append(block["functionCall"]["id"])
        elif "functionResponse" in block:
            results.append(block["functionResponse"]["id"])
    return calls, results
