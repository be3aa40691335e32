"""Anthropic's messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from chaoslab.core.answers import AnswerContent, AnswerFormat, ReadAnswer, make_call_id, split_in_half, split_words
from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.core.stream import encode_event
from chaoslab.model._chat import ChatReply
from chaoslab.model.formats import common
from chaoslab.model.formats.histories import check_anthropic

KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip
"""The types of errors by status, as Anthropic's documentation lists them."""


def _make_error_reply(status: int, message: str, code: str | None = None) -> ErrorReply:
    kind = KINDS.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    details = {} if code is None else {"details": {"error_code": code}}
    return ErrorReply(status, {"type": "error", "error": {"type": kind, "message": message, **details}})


KNOWN = {
    401: _make_error_reply(401, "invalid x-api-key"),
    common.QUOTA: _make_error_reply(
        400,
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
        "purchase credits.",
    ),
    429: common.add_headers(
        _make_error_reply(429, "This request would exceed your organization's rate limit. Please try again later."),
        retry_after="1",
    ),
    500: _make_error_reply(500, "Internal server error"),
    529: _make_error_reply(529, "Overloaded"),
    CONTEXT_LENGTH: _make_error_reply(400, "prompt is too long: 208310 tokens > 200000 maximum"),
}


def _get_message_role(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    # Results of tools stand in messages of the user here.
    if isinstance(content, list) and any(isinstance(b, Mapping) and b.get("type") == "tool_result" for b in content):
        return TOOL
    return str(message.get("role"))


LAST = {"type": "message_stop"}
"""The event with which every stream ends."""


class AnthropicAnswers(AnswerFormat):
    """Answers that are a list of blocks. The arguments of a streamed call are text, those of a whole one an object."""

    _stops: ClassVar = {"length": "max_tokens", "content_filter": "refusal"}
    objects, without = (True, False), "{}"
    last, ends = encode_event(LAST), frozenset({LAST["type"]})
    failed = encode_event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'

    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        self._read_message_start(heard, value)
        # By the place of the block, as the events of a stream number the calls.
        for number, block in enumerate(value["content"]):
            if block["type"] == "text":
                heard.text += block["text"]
            elif block["type"] == "tool_use":
                heard.add_call(number, block["name"], common.spelt(block["input"]), block)
        heard.set_finish_reason(value.get("stop_reason"))

    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        kind = value["type"]
        if kind == "message_start":
            self._read_message_start(heard, value["message"])
        elif kind == "content_block_start" and value["content_block"]["type"] == "tool_use":
            heard.add_call(value["index"], value["content_block"]["name"], "", value["content_block"])
        elif kind == "content_block_delta":
            delta = value["delta"]
            if delta["type"] == "text_delta":
                heard.text += delta["text"]
            elif delta["type"] == "input_json_delta" and value["index"] in heard.calls:
                heard.add_call(value["index"], "", delta["partial_json"])
        elif kind == "message_delta":
            # The first event has a first count of the output; this one has the whole.
            heard.set_token_counts(None, (value.get("usage") or {}).get("output_tokens"))
            heard.set_finish_reason(value["delta"].get("stop_reason"))

    @staticmethod
    def _read_message_start(heard: ReadAnswer, message: Mapping[str, Any]) -> None:
        usage = message.get("usage") or {}
        heard.model = str(message.get("model") or "")
        heard.set_token_counts(usage.get("input_tokens"), usage.get("output_tokens"))

    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": content.text}] if content.text else []
        for number, call in enumerate(content.calls):
            block = {"type": "tool_use", **(call.native or {}), "id": make_call_id(call, content.calls, number)}
            blocks.append({**block, "name": call.name, "input": call.parsed_arguments or {}})
        return {**value, "content": blocks, "stop_reason": self._choose_stop_reason(content)}

    def _choose_stop_reason(self, content: AnswerContent) -> str:
        return self._stops.get(content.finish) or ("tool_use" if content.calls else "end_turn")

    def rewrite_events(self, events: Sequence[Any], answer: AnswerContent) -> Iterator[dict[str, Any]]:
        yield from (event for event in events if event["type"] == "message_start")
        blocks: list[tuple[dict[str, Any], str]] = [({"type": "text", "text": ""}, answer.text)] if answer.text else []
        for number, call in enumerate(answer.calls):
            tool_block = {**(call.native or {}), "type": "tool_use", "id": make_call_id(call, answer.calls, number)}
            blocks.append(({**tool_block, "name": call.name, "input": {}}, call.arguments))
        for index, (block, content) in enumerate(blocks):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            for delta in _iterate_deltas(block["type"], content):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        for event in events:
            if event["type"] == "message_delta":
                yield {**event, "delta": {**event["delta"], "stop_reason": self._choose_stop_reason(answer)}}
        yield LAST


SYSTEM = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an '
    "input message role."
)


THINKING = "Thinking may not be enabled when tool_choice forces tool use."  # mastra-ai/mastra/issues/7507
# The code of a refusal after which the SDK sends a thread's whole history again.
LOST = "thread_not_found"


class AnthropicMessages(common.Format):
    """`POST …/messages`."""

    name = "Anthropic messages"
    dialog = Dialog("messages", _get_message_role, answers=AnthropicAnswers())
    known, listed, form = KNOWN, "data", re.compile(r"/messages\Z")

    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> common.Chat:  # noqa: ARG002
        for key, kind in (("model", str), ("max_tokens", int), ("messages", list)):
            if not isinstance(body.get(key), kind):
                raise common.ModelRefused(
                    400, f"{key}: {'Field required' if key not in body else 'Input is of the wrong type'}"
                )
        messages_given = common.parse_object_list("messages", body["messages"])
        if not messages_given:
            raise common.ModelRefused(400, "messages: at least one message is required")
        messages = common.make_system_message(common.extract_content_text(body.get("system")))
        for number, message in enumerate(messages_given):
            # The API has a field of its own for the system's text.
            if message.get("role") == "system":
                raise common.ModelRefused(400, SYSTEM)
            if message.get("role") not in ("user", "assistant"):
                raise common.ModelRefused(400, f"messages.{number}.role: Input should be 'user' or 'assistant'")
            messages += _to_common_messages(message)
        choice = body.get("tool_choice")
        idle = isinstance(choice, Mapping) and choice.get("type") == "none"
        tools = [
            common.make_common_tool(str(tool.get("name")), tool.get("description"), tool.get("input_schema"))
            for tool in common.parse_object_list("tools", body.get("tools"))
            # Tools of the service's own, such as its web search, have no schema, and nobody is here to run them.
            if "input_schema" in tool and not idle
        ]
        return common.Chat(body["model"], messages, tools, body, request_bytes, events=body.get("stream") is True)

    def check_history(self, chat: common.Chat, path: str) -> None:  # noqa: ARG002
        check_anthropic(chat.model, chat.native["messages"])

    def read_constraints(self, chat: common.Chat) -> common.Constraints:
        body = chat.native
        choice: Mapping[str, Any] = body.get("tool_choice") or {}
        kind, name = choice.get("type", "auto"), str(choice.get("name"))
        forced = kind in ("any", "tool")
        thinking = body.get("thinking")
        if forced and isinstance(thinking, Mapping) and thinking.get("type") != "disabled":
            raise common.ModelRefused(400, THINKING)
        if kind == "tool" and name not in [tool["function"]["name"] for tool in chat.tools]:
            raise common.ModelRefused(400, f"Tool '{name:.64}' not found in provided tools")
        form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        if body["max_tokens"] < 1:
            raise common.ModelRefused(400, "max_tokens: Input should be greater than or equal to 1")
        return common.Constraints(
            schema=form.get("schema"),
            tools=(name,) if kind == "tool" else None,
            forced=forced,
            parallel=choice.get("disable_parallel_tool_use") is not True,
            tokens_max=body["max_tokens"],
            stop=tuple(common.parse_text_list("stop_sequences", body.get("stop_sequences"))),
        )

    def prepend_remembered_messages(self, body: Mapping[str, Any], memory: Mapping[str, Any]) -> Mapping[str, Any]:
        thread = body.get("thread")
        if not isinstance(thread, Mapping) or thread.get("type") != "continue":
            return body
        before = thread.get("previous_message_id")
        if (
            not isinstance(before, str) or before not in memory
        ):  # the SDK then sends the whole history again, in a new thread
            raise common.ModelRefused(404, f"thread: no message is called {before!s:.60}", code=LOST)
        return {**memory[before], **body, "messages": [*memory[before]["messages"], *body.get("messages", [])]}

    def remember_answer(self, answer: common.ModelAnswer, memory: dict[str, Any]) -> None:
        native = answer.chat.native
        if native.get("thread"):
            message = {"role": "assistant", "content": _make_content_blocks(answer)}
            # A later request says for itself if it wants a stream.
            fields = {key: value for key, value in native.items() if key not in ("thread", "stream")}
            memory[_make_message_id(answer)] = {**fields, "messages": [*native["messages"], message]}

    def correct_stored_answer(self, memory: dict[str, Any], body: bytes, heard: ReadAnswer) -> None:
        # The id of an answer is a hash of its request.
        if (stored := memory.get(f"msg_{common.derive_id(body)[:24]}")) is not None:
            blocks = self.dialog.answers.replace_content({}, self.dialog.answers.build_content(heard))["content"]
            stored["messages"] = [*stored["messages"][:-1], {"role": "assistant", "content": blocks}]

    def build_answer_json(self, answer: common.ModelAnswer) -> Any:
        return {
            "id": _make_message_id(answer), "type": "message", "role": "assistant", "model": answer.chat.model,
            "content": _make_content_blocks(answer), "stop_reason": _choose_stop_reason(answer.reply),
            "stop_sequence": answer.reply.stopped_by or None,
            "usage": _make_usage(answer.chat.estimated_tokens, answer.estimated_tokens),
        }  # fmt: skip

    def stream_answer(self, answer: common.ModelAnswer) -> Iterator[bytes]:
        message = self.build_answer_json(answer)
        # The real stream states a first count here, and the whole in message_delta.
        message_start = {
            **message,
            "content": [],
            "stop_reason": None,
            "usage": _make_usage(answer.chat.estimated_tokens, 1),
        }
        yield _format_sse_event("message_start", message=message_start)
        for index, block in enumerate(message["content"]):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            yield _format_sse_event("content_block_start", index=index, content_block=empty)
            # The real stream pings once after its first block has begun.
            if not index:
                yield _format_sse_event("ping")
            content = block["text"] if block["type"] == "text" else common.spelt(block["input"])
            for delta in _iterate_deltas(block["type"], content):
                yield _format_sse_event("content_block_delta", index=index, delta=delta)
            yield _format_sse_event("content_block_stop", index=index)
        ending = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
        yield _format_sse_event("message_delta", delta=ending, usage={"output_tokens": answer.estimated_tokens})
        yield _format_sse_event("message_stop")

    def make_error_reply(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,  # noqa: ARG002
    ) -> ErrorReply:
        return _make_error_reply(status, message, LOST if code == LOST else None)

    def make_answer_headers(self, answer: common.ModelAnswer) -> Mapping[str, str]:
        return {"request-id": f"req_{answer.chat.id[:24]}"}

    def make_model_list(self, names: Sequence[str]) -> dict[str, Any]:
        return {**super().make_model_list(names), "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def describe_model(self, name: str) -> Any:
        return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def _choose_stop_reason(reply: ChatReply) -> str:
    if reply.finish == "length":
        return "max_tokens"
    if reply.stopped_by:
        return "stop_sequence"
    return "tool_use" if reply.tool_calls else "end_turn"


def _make_usage(tokens_in: int, tokens_out: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens_in,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens_out,
        "service_tier": "standard",
    }


def _make_message_id(answer: common.ModelAnswer) -> str:
    return f"msg_{answer.chat.id[:24]}"


def _make_content_blocks(answer: common.ModelAnswer) -> list[dict[str, Any]]:
    """The blocks of an answer: its text, then its calls."""
    texts = [{"type": "text", "text": answer.reply.content}] if answer.reply.content else []
    calls = [
        {"type": "tool_use", "id": f"toolu_{call.id.removeprefix('call_')}", "name": call.name,
         "input": dict(call.arguments)}
        for call in answer.reply.tool_calls
    ]  # fmt: skip
    return [*texts, *calls]


def _iterate_deltas(kind: str, content: str) -> Iterator[dict[str, Any]]:
    """The deltas of a block: of a text, or of a call's arguments."""
    if kind == "text":
        for piece in split_words(content):
            yield {"type": "text_delta", "text": piece}
    else:
        # The real stream's first delta of arguments is empty.
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in split_in_half(content):
            yield {"type": "input_json_delta", "partial_json": piece}


def _format_sse_event(kind: str, **fields: Any) -> bytes:
    return encode_event({"type": kind, **fields})


def _to_common_messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message in the common form."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": message["role"], "content": content}]
    text, calls, results = "", [], []
    for block in common.parse_object_list("messages.content", content):
        kind = block.get("type")
        if kind == "text":
            text += str(block.get("text", ""))
        elif kind == "tool_use":
            calls.append(
                common.make_common_call(str(block.get("name")), block.get("input") or {}, str(block.get("id")))
            )
        elif kind == "tool_result":
            result_text, failed = common.extract_content_text(block.get("content")), block.get("is_error") is True
            results.append(common.make_tool_result(str(block.get("tool_use_id")), result_text, failed=failed))
    return common.make_turn_messages(text, calls, results, assistant=message["role"] == "assistant")
