"""Amazon Bedrock's converse, and the binary frames of its streams."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from chaoslab.core.answers import AnswerContent, Answers, ReadAnswer, halves, new_id, pieces
from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.core.stream import FRAMES, FrameCutter, frame, payload_of
from chaoslab.model.formats import common
from chaoslab.model.formats.histories import check_bedrock

KINDS = {
    400: "ValidationException", 402: "ServiceQuotaExceededException", 403: "AccessDeniedException",
    404: "ResourceNotFoundException", 408: "ModelTimeoutException", 424: "ModelErrorException",
    429: "ThrottlingException", 503: "ServiceUnavailableException",
}  # fmt: skip
"""The types of errors by status, as the reference of converse lists them."""


def _error(status: int, message: str, kind: str = "") -> ErrorReply:
    kind = kind or KINDS.get(status) or ("InternalServerException" if status >= 500 else "ValidationException")
    # Amazon's SDK reads the type of an error from this header first.
    return common.with_headers(ErrorReply(status, {"message": message}), x_amzn_ErrorType=kind)


KNOWN = {
    401: _error(401, "The security token included in the request is invalid.", "UnrecognizedClientException"),
    common.QUOTA: _error(400, "You have exceeded a service quota.", "ServiceQuotaExceededException"),
    429: _error(429, "Too many requests, please wait before trying again."),
    500: _error(500, "The system encountered an unexpected error during processing. Try your request again."),
    503: _error(503, "Bedrock is unable to process your request."),
    CONTEXT_LENGTH: _error(400, "Input is too long for requested model."),
}


def _role(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    results = isinstance(blocks, list) and any(isinstance(block, Mapping) and "toolResult" in block for block in blocks)
    return TOOL if results else str(message.get("role"))


def _from_user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


class BedrockAnswers(Answers):
    """Answers that are a list of blocks, with objects as arguments. A streamed one passes as it is: its events are
    binary."""

    objects = (True, False)
    last = frame("messageStop", {"stopReason": "end_turn"})
    failed = frame(
        "modelStreamErrorException", {"message": "The model has encountered an error while streaming."}, exception=True
    )
    ping = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": ""}})

    def hear(self, heard: ReadAnswer, value: Any) -> None:
        usage = value.get("usage") or {}
        heard.counted(usage.get("inputTokens"), usage.get("outputTokens"))
        for number, block in enumerate(value["output"]["message"]["content"]):
            heard.text += block.get("text") or ""
            if use := block.get("toolUse"):
                heard.called(number, use["name"], common.spelt(use["input"]), use)
        heard.ended(value.get("stopReason"))

    def hear_event(self, heard: ReadAnswer, value: Any) -> None:
        index, start, delta = value.get("contentBlockIndex"), value.get("start") or {}, value.get("delta") or {}
        if use := start.get("toolUse"):
            heard.called(index, use["name"], "")
        heard.text += delta.get("text") or ""
        if use := delta.get("toolUse"):
            heard.called(index, "", use["input"])
        usage = value.get("usage") or {}
        heard.counted(usage.get("inputTokens"), usage.get("outputTokens"))
        heard.ended(value.get("stopReason"))

    def with_said(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"text": content.text}] if content.text else []
        for number, call in enumerate(content.calls):
            use = {**(call.native or {}), "toolUseId": new_id(call, content.calls, number, "toolUseId")}
            blocks.append({"toolUse": {**use, "name": call.name, "input": call.values or {}}})
        stops = {"length": "max_tokens", "content_filter": "content_filtered"}
        stop = stops.get(content.finish) or ("tool_use" if content.calls else "end_turn")
        message = {**value["output"]["message"], "content": blocks}
        return {**value, "output": {**value["output"], "message": message}, "stopReason": stop}

    def content_of(self, events: Sequence[Any]) -> AnswerContent | None:  # noqa: ARG002
        return None

    def retold(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        raise NotImplementedError  # none is heard

    def closes(self, event: bytes) -> bool:
        # The headers of a binary frame hold their names and values as plain text.
        return b":event-type" in event and b"messageStop" in event


class Bedrock(common.Format):
    """`POST /model/<model>/converse` and `/converse-stream`."""

    name = "Bedrock converse"
    dialog = Dialog("messages", _role, _from_user, answers=BedrockAnswers())
    stream_type, cutter = FRAMES, FrameCutter
    known, listed, form = KNOWN, "modelSummaries", re.compile(r"/model/([^/]+)/(converse|converse-stream)$")

    def payload(self, event: bytes) -> bytes:
        return payload_of(event)

    def chat(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> common.Chat:  # noqa: ARG002
        match = self.form.search(path)
        assert match is not None
        messages_given = common.check_objects("messages", body.get("messages"))
        if not messages_given:
            raise common.ModelRefused(
                400, "The messages field is empty: a conversation must start with a user message."
            )
        messages = common.make_system_message(common.text_in(body.get("system")))
        for message in messages_given:
            messages += _messages(message)
        config = body.get("toolConfig") or {}
        specs = [tool.get("toolSpec") or {} for tool in common.check_objects("toolConfig.tools", config.get("tools"))]
        tools = [
            common.make_tool(
                str(spec.get("name")), spec.get("description"), (spec.get("inputSchema") or {}).get("json")
            )
            for spec in specs
            if spec
        ]
        streams = match[2] == "converse-stream"
        # The model is in the path alone, so the path is part of what the ids are a hash of.
        return common.Chat(unquote(match[1]), messages, tools, body, path.encode() + request_bytes, events=streams)

    def check(self, chat: common.Chat, path: str) -> None:  # noqa: ARG002
        check_bedrock(chat.native["messages"])

    def constraints(self, chat: common.Chat) -> common.Constraints:
        config = chat.native.get("inferenceConfig") or {}
        choice = (chat.native.get("toolConfig") or {}).get("toolChoice") or {}
        named = choice.get("tool")
        return common.Constraints(
            tools=None if named is None else (str(named.get("name")),),
            forced="any" in choice or named is not None,
            tokens_max=config.get("maxTokens"),
            stop=tuple(common.check_texts("stopSequences", config.get("stopSequences"))),
        )

    def whole(self, answer: common.ModelAnswer) -> Any:
        return {
            "metrics": {"latencyMs": 1},
            "output": {"message": {"content": _content(answer), "role": "assistant"}},
            "stopReason": _stop(answer),
            "usage": _usage(answer),
        }

    def stream(self, answer: common.ModelAnswer) -> Iterator[bytes]:
        yield frame("messageStart", {"role": "assistant"})
        for index, block in enumerate(_content(answer)):
            at = {"contentBlockIndex": index}
            use = block.get("toolUse")
            if use is not None:
                started = {"toolUseId": use["toolUseId"], "name": use["name"]}
                yield frame("contentBlockStart", {**at, "start": {"toolUse": started}})
                for piece in halves(common.spelt(use["input"])):
                    yield frame("contentBlockDelta", {**at, "delta": {"toolUse": {"input": piece}}})
            else:
                for piece in pieces(block["text"]):
                    yield frame("contentBlockDelta", {**at, "delta": {"text": piece}})
            yield frame("contentBlockStop", at)
        yield frame("messageStop", {"stopReason": _stop(answer)})
        yield frame("metadata", {"metrics": {"latencyMs": 1}, "usage": _usage(answer)})

    def headers(self, answer: common.ModelAnswer) -> Mapping[str, str]:
        return {"x-amzn-RequestId": answer.chat.id}

    def refusal(self, status: int, message: str, code: str | None = None, param: str | None = None) -> ErrorReply:  # noqa: ARG002
        return _error(status, message)

    def model(self, name: str) -> Any:
        return {"modelId": name, "modelName": name, "providerName": "chaoslab"}


def _content(answer: common.ModelAnswer) -> list[dict[str, Any]]:
    texts = [{"text": answer.reply.content}] if answer.reply.content or not answer.reply.tool_calls else []
    calls = [
        {"toolUse": {"input": dict(call.arguments), "name": call.name, "toolUseId": f"tooluse_{call.id}"}}
        for call in answer.reply.tool_calls
    ]
    return [*texts, *calls]


def _stop(answer: common.ModelAnswer) -> str:
    if answer.reply.finish == "length":
        return "max_tokens"
    if answer.reply.stopped_by:
        return "stop_sequence"
    return "tool_use" if answer.reply.tool_calls else "end_turn"


def _usage(answer: common.ModelAnswer) -> dict[str, int]:
    total = answer.chat.tokens + answer.tokens
    return {"inputTokens": answer.chat.tokens, "outputTokens": answer.tokens, "totalTokens": total}


def _messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message in the common form."""
    text, calls, results = "", [], []
    for block in common.check_objects("messages.content", message.get("content")):
        use, result = block.get("toolUse"), block.get("toolResult")
        if isinstance(use, Mapping):
            calls.append(common.make_call(str(use.get("name")), use.get("input") or {}, str(use.get("toolUseId"))))
        elif isinstance(result, Mapping):
            parts = common.check_objects("toolResult.content", result.get("content"))
            result_text = "".join(
                json.dumps(piece["json"]) if "json" in piece else str(piece.get("text", "")) for piece in parts
            )
            failed = result.get("status") == "error"
            results.append(common.make_tool_result(str(result.get("toolUseId")), result_text, failed=failed))
        else:
            text += str(block.get("text") or "")
    return common.turn(text, calls, results, assistant=message.get("role") == "assistant")
