"""OpenAI's responses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from chaoslab.core.answers import (
    CHAT_FAILED,
    AnswerContent,
    AnswerFormat,
    ReadAnswer,
    make_call_id,
    split_in_half,
    split_words,
)
from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH
from chaoslab.core.stream import encode_event
from chaoslab.model._chat import ToolCall, extract_message_text
from chaoslab.model.formats import common
from chaoslab.model.formats.constraints import RESPONSES, read_openai_constraints
from chaoslab.model.formats.histories import OPENAI_RESPONSES, check_openai_responses
from chaoslab.model.formats.openai_chat import INVALID, OpenaiChat, make_error_reply


def _get_item_role(item: Mapping[str, Any]) -> str:
    """A call stands beside other calls and a thought before it, so neither may come without the message before."""
    if item.get("type", "message") != "message":
        return TOOL
    # OpenAI's newer name for the system.
    role = str(item.get("role"))
    return "system" if role == "developer" else role


_SAID = "Your input exceeds the context window of this model. Please adjust your input and try again."
TOO_LONG = make_error_reply(400, _SAID, INVALID, "context_length_exceeded", "input")
BEGINNING = frozenset({"response.created", "response.queued", "response.in_progress"})
"""The types of the events with which a stream begins."""


class ResponsesAnswers(AnswerFormat):
    """Answers that are a list of items. The last event of a streamed one holds it whole."""

    ends = frozenset({"response.completed", "response.incomplete"})
    _reasons: ClassVar = {"length": "max_output_tokens", "content_filter": "content_filter"}

    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        heard.model = str(value.get("model") or heard.model)
        usage = value.get("usage") or {}
        heard.set_token_counts(usage.get("input_tokens"), usage.get("output_tokens"))
        heard.finished = value.get("status") == "completed"
        heard.reason = str((value.get("incomplete_details") or {}).get("reason") or value.get("status"))
        # The last event holds all of it: what was read in parts would count twice.
        heard.text, heard.calls, heard.natives = "", {}, {}
        for number, item in enumerate(value["output"]):
            if item["type"] == "message":
                heard.text += common.extract_content_text(item["content"])
            elif item["type"] == "function_call":
                heard.add_call(number, item["name"], item["arguments"], item)

    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        kind = value["type"]
        if kind == "response.output_text.delta":
            heard.text += value["delta"]
        elif kind == "response.output_item.added" and value["item"]["type"] == "function_call":
            heard.add_call(value["output_index"], value["item"]["name"], "")
        elif kind == "response.function_call_arguments.delta":
            heard.add_call(value["output_index"], "", value["delta"])
        elif kind == "response.created":
            heard.model = str(value["response"].get("model") or "")
        elif kind in self.ends:
            self.read_answer(heard, value["response"])

    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        if content.text or not content.calls:
            text_part = {"type": "output_text", "text": content.text, "annotations": []}
            old: Mapping[str, Any] = next((item for item in value["output"] if item.get("type") == "message"), {})
            new = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", **old}
            items.append({**new, "content": [text_part]})
        for number, call in enumerate(content.calls):
            call_item = {"type": "function_call", "status": "completed", **(call.native or {})}
            call_item |= {key: make_call_id(call, content.calls, number, key) for key in ("id", "call_id")}
            items.append({**call_item, "name": call.name, "arguments": call.arguments})
        reason = self._reasons.get(content.finish)
        ended = (
            {"status": "incomplete", "incomplete_details": {"reason": reason}} if reason else {"status": "completed"}
        )
        return {**value, "output": items, **ended}

    def extract_stream_content(self, events: Sequence[Any]) -> AnswerContent | None:
        # The last event alone has the whole answer, of which `rewrite_events` makes another.
        return super().extract_stream_content(events) if events and events[-1]["type"] in self.ends else None

    def rewrite_events(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        response = self.replace_content(events[-1]["response"], content)
        kind = "response.incomplete" if response["status"] == "incomplete" else "response.completed"
        first_events = [event for event in events if event["type"] in BEGINNING]
        items = (pair for index, item in enumerate(response["output"]) for pair in _iterate_item_events(index, item))
        all_events = [
            *first_events,
            *({"type": name, **fields} for name, fields in items),
            {"type": kind, "response": response},
        ]
        # Numbered anew, since there are more or fewer of them.
        for number, event in enumerate(all_events):
            yield {**event, "sequence_number": number}

    def build_last_event(self, events: Sequence[Any]) -> bytes:
        response = events[0]["response"]
        text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        last = {"type": "response.completed", "response": self.replace_content(response, AnswerContent(text))}
        return encode_event({**last, "sequence_number": len(events)})

    def build_error_event(self, events: Sequence[Any]) -> bytes:
        # The fields of an error stand in the event itself, not in an object as in a chat's stream.
        error = {"code": "server_error", "message": CHAT_FAILED["message"], "param": None}
        return encode_event({"type": "error", **error, "sequence_number": len(events)})


@dataclass(frozen=True)
class StoredResponse:
    """A response that the service keeps. `items`: the input that led to it."""

    items: Sequence[Mapping[str, Any]]
    value: Mapping[str, Any]

    @property
    def output(self) -> Sequence[Mapping[str, Any]]:
        stored_items: Sequence[Mapping[str, Any]] = self.value["output"]
        return stored_items


STORED = re.compile(r"/responses/(resp_[^/]+)(/input_items)?\Z")
"""The paths of stored responses. Groups: the id, and its input."""


def serve_stored_response(memory: dict[str, Any], method: str, response_id: str, subpath: str | None) -> Any:
    """The JSON of a stored response, or of its input; what is deleted is gone. Raises Refused: there is none."""
    stored = memory.get(response_id)
    if not isinstance(stored, StoredResponse):
        raise common.ModelRefused(404, f"Response with id '{response_id:.60}' not found.")
    if method == "DELETE" and subpath is None:
        del memory[response_id]
        return {"id": response_id, "object": "response", "deleted": True}
    if method != "GET":
        raise common.ModelRefused(405, f"Method {method} is not allowed here.")
    if subpath is None:
        return stored.value
    items = [{"id": f"msg_{number}", "type": "message", **item} for number, item in enumerate(stored.items)]
    return {"object": "list", "data": items, "first_id": items[0]["id"], "last_id": items[-1]["id"], "has_more": False}


def _resolve_item_reference(item: Mapping[str, Any], memory: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item that a reference names. Raises Refused: the service keeps none of this id."""
    if item.get("type") != "item_reference":
        return item
    stored_items = (
        stored_item
        for stored in memory.values()
        if isinstance(stored, StoredResponse)
        for stored_item in (*stored.items, *stored.output)
    )
    match = next((stored_item for stored_item in stored_items if stored_item.get("id") == item.get("id")), None)
    if match is None:
        raise OPENAI_RESPONSES["unknown item"].make_refusal(item.get("id"))
    return match


class OpenaiResponses(OpenaiChat):
    """`POST …/responses`."""

    name = "OpenAI responses"
    dialog = Dialog("input", _get_item_role, bare=True, answers=ResponsesAnswers())
    known = {**OpenaiChat.known, CONTEXT_LENGTH: TOO_LONG}  # noqa: RUF012 - which nobody changes
    form = re.compile(r"/responses\Z")

    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> common.Chat:  # noqa: ARG002
        if not isinstance(body.get("model"), str):
            raise common.ModelRefused(400, "Missing required parameter: 'model'.", code="missing_required_parameter")
        items = _list_input_items(body.get("input"))
        if not items:
            raise common.ModelRefused(400, "One of 'input' or 'previous_response_id' or 'prompt' must be provided.")
        instructions = body.get("instructions")
        messages = common.make_system_message(instructions if isinstance(instructions, str) else "")
        messages += common.merge_assistant_messages(
            [message for item in items if (message := _to_common_message(item))]
        )
        tools = [
            common.make_common_tool(str(tool.get("name")), tool.get("description"), tool.get("parameters"))
            for tool in common.parse_object_list("tools", body.get("tools"))
            if tool.get("type") == "function" and body.get("tool_choice") != "none"
        ]
        return common.Chat(body["model"], messages, tools, body, request_bytes, events=body.get("stream") is True)

    def check_history(self, chat: common.Chat, path: str) -> None:  # noqa: ARG002
        check_openai_responses(_list_input_items(chat.native.get("input")))

    def read_constraints(self, chat: common.Chat) -> common.Constraints:
        messages_text, text = (
            "".join(extract_message_text(message) for message in chat.messages),
            chat.native.get("text"),
        )
        return read_openai_constraints(
            chat.native, RESPONSES, text.get("format") if isinstance(text, Mapping) else None, messages_text
        )

    def prepend_remembered_messages(self, body: Mapping[str, Any], memory: Mapping[str, Any]) -> Mapping[str, Any]:
        before, items = body.get("previous_response_id"), _list_input_items(body.get("input"))
        if any(item.get("type") == "item_reference" for item in items):
            body = {**body, "input": [_resolve_item_reference(item, memory) for item in items]}
        if before is None:
            return body
        if before not in memory:
            raise common.ModelRefused(
                400, f"Previous response with id '{before!s:.60}' not found.", code="previous_response_not_found"
            )
        return {**body, "input": [*memory[before].items, *memory[before].output, *_list_input_items(body.get("input"))]}

    def remember_answer(self, answer: common.ModelAnswer, memory: dict[str, Any]) -> None:
        request = answer.chat.native
        # OpenAI stores a response unless its request says no.
        if request.get("store") is not False:
            memory[f"resp_{answer.chat.id}"] = StoredResponse(
                _list_input_items(request.get("input")), self.build_answer_json(answer)
            )

    def correct_stored_answer(self, memory: dict[str, Any], body: bytes, heard: ReadAnswer) -> None:
        # The id of an answer is a hash of its request.
        response_id = f"resp_{common.derive_id(body)}"
        if isinstance(stored := memory.get(response_id), StoredResponse):
            value = self.dialog.answers.replace_content(stored.value, self.dialog.answers.build_content(heard))
            memory[response_id] = replace(stored, value=value)

    def build_answer_json(self, answer: common.ModelAnswer) -> Any:
        return self._make_response_json(answer, _make_output_items(answer))

    def _make_response_json(self, answer: common.ModelAnswer, output: list[dict[str, Any]] | None) -> dict[str, Any]:
        """The response, complete with its output or, with None, before it."""
        request, is_done, cut = answer.chat.native, output is not None, answer.reply.finish == "length"
        used = {
            "input_tokens": answer.chat.estimated_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer.estimated_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.chat.estimated_tokens + answer.estimated_tokens,
        }
        return {
            "id": f"resp_{answer.chat.id}",
            "object": "response",
            "created_at": answer.created,
            "status": ("incomplete" if cut else "completed") if is_done else "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_done and cut else None,
            "instructions": request.get("instructions"),
            "max_output_tokens": request.get("max_output_tokens"),
            "model": answer.chat.model,
            "output": output or [],
            "parallel_tool_calls": request.get("parallel_tool_calls", True),
            "previous_response_id": request.get("previous_response_id"),
            "reasoning": {"effort": None, "summary": None},
            "store": request.get("store", True),
            "temperature": request.get("temperature", 1.0),
            "text": request.get("text") or {"format": {"type": "text"}},
            "tool_choice": request.get("tool_choice", "auto"),
            "tools": request.get("tools") or [],
            "top_p": request.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": used if is_done else None,
            "metadata": request.get("metadata") or {},
        }

    def stream_answer(self, answer: common.ModelAnswer) -> Iterator[bytes]:
        output = _make_output_items(answer)
        for number, (kind, fields) in enumerate(self._iterate_response_events(answer, output)):
            event = {"type": kind, "sequence_number": number, **fields}
            yield encode_event(event)

    def _iterate_response_events(
        self, answer: common.ModelAnswer, output: list[dict[str, Any]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        response = self._make_response_json(answer, None)
        yield "response.created", {"response": response}
        yield "response.in_progress", {"response": response}
        for index, item in enumerate(output):
            yield from _iterate_item_events(index, item)
        full_response = self._make_response_json(answer, output)
        yield f"response.{full_response['status']}", {"response": full_response}


def _list_input_items(value: Any) -> list[Mapping[str, Any]]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else common.parse_object_list("input", value)


def _to_common_message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """An item in the common form; None for one that says nothing, such as a thought."""
    kind = item.get("type", "message")
    if kind == "message":
        role = str(item.get("role"))
        if role not in ("user", "assistant", "system", "developer"):
            values_text = "Supported values are: 'assistant', 'system', 'developer', and 'user'."
            raise common.ModelRefused(400, f"Invalid value: '{role:.40}'. {values_text}", code="invalid_value")
        return {"role": role, "content": common.extract_content_text(item.get("content"))}
    call = str(item.get("call_id"))
    if kind == "function_call":
        function_call = common.make_common_call(str(item.get("name")), item.get("arguments") or "{}", call)
        return {"role": "assistant", "content": "", "tool_calls": [function_call]}
    if kind == "function_call_output":
        return common.make_tool_result(call, common.extract_content_text(item.get("output")))
    return None


def _make_output_items(answer: common.ModelAnswer) -> list[dict[str, Any]]:
    """The items of an answer: its text, then its calls."""
    items: list[dict[str, Any]] = []
    if answer.reply.content or not answer.reply.tool_calls:
        text_part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.reply.content}
        items.append(
            {
                "id": f"msg_{answer.chat.id}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [text_part],
            }
        )
    return [
        *items,
        *(_make_call_item(number, call, answer.chat.id) for number, call in enumerate(answer.reply.tool_calls)),
    ]


def _make_call_item(number: int, call: ToolCall, about: str) -> dict[str, Any]:
    return {
        # Numbered, since two items of one id are refused when they come back in a history.
        "id": f"fc_{about[:24]}{number}", "type": "function_call", "status": "completed",
        "arguments": common.spelt(dict(call.arguments)), "call_id": call.id, "name": call.name,
    }  # fmt: skip


def _iterate_item_events(index: int, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of one item, from the first to the last."""
    at: dict[str, Any] = {"item_id": item["id"], "output_index": index}
    item_start = {**item, "status": "in_progress"}
    if item["type"] == "function_call":
        yield "response.output_item.added", {"output_index": index, "item": {**item_start, "arguments": ""}}
        for piece in split_in_half(item["arguments"]):
            yield "response.function_call_arguments.delta", {**at, "delta": piece}
        yield "response.function_call_arguments.done", {**at, "name": item["name"], "arguments": item["arguments"]}
    else:
        (text_part,) = item["content"]
        at["content_index"] = 0
        yield "response.output_item.added", {"output_index": index, "item": {**item_start, "content": []}}
        yield "response.content_part.added", {**at, "part": {**text_part, "text": ""}}
        for piece in split_words(text_part["text"]):
            yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**at, "text": text_part["text"], "logprobs": []}
        yield "response.content_part.done", {**at, "part": text_part}
    yield "response.output_item.done", {"output_index": index, "item": item}
