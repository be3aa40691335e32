"""Amazon Bedrock's converse, and the binary frames of its streams."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from chaoslab.core.answers import AnswerContent, AnswerFormat, ReadAnswer, make_call_id, split_in_half, split_words
from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.core.stream import FRAMES, FrameSplitter, build_frame, get_frame_payload
from chaoslab.model.formats import common
from chaoslab.model.formats.histories import check_bedrock

KINDS = {
    400: "ValidationException", 402: "ServiceQuotaExceededException", 403: "AccessDeniedException",
    404: "ResourceNotFoundException", 408: "ModelTimeoutException", 424: "ModelErrorException",
    429: "ThrottlingException", 503: "ServiceUnavailableException",
}  # fmt: skip
"""The types of errors by status, as the reference of converse lists them."""


def _make_error_reply(status: int, message: str, kind: str = "") -> ErrorReply:
    kind = kind or KINDS.get(status) or ("InternalServerException" if status >= 500 else "ValidationException")
    # Amazon's SDK reads the type of an error from this header first.
    return common.add_headers(ErrorReply(status, {"message": message}), x_amzn_ErrorType=kind)


KNOWN = {
    401: _make_error_reply(
        401, "The security token included in the request is invalid.", "UnrecognizedClientException"
    ),
    common.QUOTA: _make_error_reply(400, "You have exceeded a service quota.", "ServiceQuotaExceededException"),
    429: _make_error_reply(429, "Too many requests, please wait before trying again."),
    500: _make_error_reply(
        500, "The system encountered an unexpected error during processing. Try your request again."
    ),
    503: _make_error_reply(503, "Bedrock is unable to process your request."),
    CONTEXT_LENGTH: _make_error_reply(400, "Input is too long for requested model."),
}


def _get_message_role(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    results = isinstance(blocks, list) and any(isinstance(block, Mapping) and "toolResult" in block for block in blocks)
    return TOOL if results else str(message.get("role"))


def _make_user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


class BedrockAnswers(AnswerFormat):
    """Answers that are a list of blocks, with objects as arguments. A streamed one passes as it is: its events are
    binary."""

    objects = (True, False)
    last = build_frame("messageStop", {"stopReason": "end_turn"})
    failed = build_frame(
        "modelStreamErrorException", {"message": "The model has encountered an error while streaming."}, exception=True
    )
    ping = build_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": ""}})

    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        usage = value.get("usage") or {}
        heard.set_token_counts(usage.get("inputTokens"), usage.get("outputTokens"))
        for number, block in enumerate(value["output"]["message"]["content"]):
            heard.text += block.get("text") or ""
            if use := block.get("toolUse"):
                heard.add_call(number, use["name"], common.spelt(use["input"]), use)
        heard.set_finish_reason(value.get("stopReason"))

    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        index, start, delta = value.get("contentBlockIndex"), value.get("start") or {}, value.get("delta") or {}
        if use := start.get("toolUse"):
            heard.add_call(index, use["name"], "")
        heard.text += delta.get("text") or ""
        if use := delta.get("toolUse"):
            heard.add_call(index, "", use["input"])
        usage = value.get("usage") or {}
        heard.set_token_counts(usage.get("inputTokens"), usage.get("outputTokens"))
        heard.set_finish_reason(value.get("stopReason"))

    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"text": content.text}] if content.text else []
        for number, call in enumerate(content.calls):
            use = {**(call.native or {}), "toolUseId": make_call_id(call, content.calls, number, "toolUseId")}
            blocks.append({"toolUse": {**use, "name": call.name, "input": call.parsed_arguments or {}}})
        stops = {"length": "max_tokens", "content_filter": "content_filtered"}
        stop = stops.get(content.finish) or ("tool_use" if content.calls else "end_turn")
        message = {**value["output"]["message"], "content": blocks}
        return {**value, "output": {**value["output"], "message": message}, "stopReason": stop}

    def extract_stream_content(self, events: Sequence[Any]) -> AnswerContent | None:  # noqa: ARG002
        return None

    def rewrite_events(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        raise NotImplementedError  # none is heard

    def is_last_event(self, event: bytes) -> bool:
        # The headers of a binary frame hold their names and values as plain text.
        return b":event-type" in event and b"messageStop" in event


class Bedrock(common.Format):
    """`POST /model/<model>/converse` and `/converse-stream`."""

    name = "Bedrock converse"
    dialog = Dialog("messages", _get_message_role, _make_user_message, answers=BedrockAnswers())
    stream_type, cutter = FRAMES, FrameSplitter
    known, form = KNOWN, re.compile(r"/model/([^/]+)/(converse|converse-stream)$")

    def extract_event_json(self, event: bytes) -> bytes:
        return get_frame_payload(event)

    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> common.Chat:  # noqa: ARG002
        match = self.form.search(path)
        assert match is not None
        messages_given = common.parse_object_list("messages", body.get("messages"))
        if not messages_given:
            raise common.ModelRefused(
                400, "The messages field is empty: a conversation must start with a user message."
            )
        messages = common.make_system_message(common.extract_content_text(body.get("system")))
        for message in messages_given:
            messages += _to_common_messages(message)
        config = body.get("toolConfig") or {}
        specs = [
            tool.get("toolSpec") or {} for tool in common.parse_object_list("toolConfig.tools", config.get("tools"))
        ]
        tools = [
            common.make_common_tool(
                str(spec.get("name")), spec.get("description"), (spec.get("inputSchema") or {}).get("json")
            )
            for spec in specs
            if spec
        ]
        streams = match[2] == "converse-stream"
        # The model is in the path alone, so the path is part of what the ids are a hash of.
        return common.Chat(unquote(match[1]), messages, tools, body, path.encode() + request_bytes, events=streams)

    def check_history(self, chat: common.Chat, path: str) -> None:  # noqa: ARG002
        check_bedrock(chat.native["messages"])

    def read_constraints(self, chat: common.Chat) -> common.Constraints:
        config = chat.native.get("inferenceConfig") or {}
        choice = (chat.native.get("toolConfig") or {}).get("toolChoice") or {}
        named = choice.get("tool")
        return common.Constraints(
            tools=None if named is None else (str(named.get("name")),),
            forced="any" in choice or named is not None,
            tokens_max=config.get("maxTokens"),
            stop=tuple(common.parse_text_list("stopSequences", config.get("stopSequences"))),
        )

    def build_answer_json(self, answer: common.ModelAnswer) -> Any:
        return {
            "metrics": {"latencyMs": 1},
            "output": {"message": {"content": _make_content_blocks(answer), "role": "assistant"}},
            "stopReason": _choose_stop_reason(answer),
            "usage": _make_usage(answer),
        }

    def stream_answer(self, answer: common.ModelAnswer) -> Iterator[bytes]:
        yield build_frame("messageStart", {"role": "assistant"})
        for index, block in enumerate(_make_content_blocks(answer)):
            at = {"contentBlockIndex": index}
            use = block.get("toolUse")
            if use is not None:
                started = {"toolUseId": use["toolUseId"], "name": use["name"]}
                yield build_frame("contentBlockStart", {**at, "start": {"toolUse": started}})
                for piece in split_in_half(common.spelt(use["input"])):
                    yield build_frame("contentBlockDelta", {**at, "delta": {"toolUse": {"input": piece}}})
            else:
                for piece in split_words(block["text"]):
                    yield build_frame("contentBlockDelta", {**at, "delta": {"text": piece}})
            yield build_frame("contentBlockStop", at)
        yield build_frame("messageStop", {"stopReason": _choose_stop_reason(answer)})
        yield build_frame("metadata", {"metrics": {"latencyMs": 1}, "usage": _make_usage(answer)})

    def make_answer_headers(self, answer: common.ModelAnswer) -> Mapping[str, str]:
        return {"x-amzn-RequestId": answer.chat.id}

    def make_error_reply(
        self,
        status: int,
        message: str,
        code: str | None = None,  # noqa: ARG002
        param: str | None = None,  # noqa: ARG002
    ) -> ErrorReply:
        return _make_error_reply(status, message)


def _make_content_blocks(answer: common.ModelAnswer) -> list[dict[str, Any]]:
    texts = [{"text": answer.reply.content}] if answer.reply.content or not answer.reply.tool_calls else []
    calls = [
        {"toolUse": {"input": dict(call.arguments), "name": call.name, "toolUseId": f"tooluse_{call.id}"}}
        for call in answer.reply.tool_calls
    ]
    return [*texts, *calls]


def _choose_stop_reason(answer: common.ModelAnswer) -> str:
    if answer.reply.finish == "length":
        return "max_tokens"
    if answer.reply.stopped_by:
        return "stop_sequence"
    return "tool_use" if answer.reply.tool_calls else "end_turn"


def _make_usage(answer: common.ModelAnswer) -> dict[str, int]:
    total = answer.chat.estimated_tokens + answer.estimated_tokens
    return {"inputTokens": answer.chat.estimated_tokens, "outputTokens": answer.estimated_tokens, "totalTokens": total}


def _to_common_messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message in the common form."""
    text, calls, results = "", [], []
    for block in common.parse_object_list("messages.content", message.get("content")):
        use, result = block.get("toolUse"), block.get("toolResult")
        if isinstance(use, Mapping):
            calls.append(
                common.make_common_call(str(use.get("name")), use.get("input") or {}, str(use.get("toolUseId")))
            )
        elif isinstance(result, Mapping):
            parts = common.parse_object_list("toolResult.content", result.get("content"))
            result_text = "".join(
                json.dumps(piece["json"]) if "json" in piece else str(piece.get("text", "")) for piece in parts
            )
            failed = result.get("status") == "error"
            results.append(common.make_tool_result(str(result.get("toolUseId")), result_text, failed=failed))
        else:
            text += str(block.get("text") or "")
    return common.make_turn_messages(text, calls, results, assistant=message.get("role") == "assistant")
