"""Google's Gemini: generateContent and streamGenerateContent, of the Gemini API and of Vertex AI."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote

from chaoslab.core.answers import AnswerContent, AnswerFormat, ReadAnswer, split_words
from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.core.stream import encode_event, parse_event_json
from chaoslab.model.formats import common
from chaoslab.model.formats.histories import SIGNS_CALLS, check_gemini, get_function_call, get_function_response

STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
    429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}  # fmt: skip
"""Google's canonical error codes, by the HTTP status that they are mapped to."""


def _make_error_reply(status: int, message: str, details: Sequence[Mapping[str, Any]] = ()) -> ErrorReply:
    body: dict[str, Any] = {"code": status, "message": message, "status": STATUSES.get(status, "UNKNOWN")}
    return ErrorReply(status, {"error": {**body, **({"details": list(details)} if details else {})}})


_RPC = "type.googleapis.com/google.rpc"
_EXHAUSTED = "You exceeded your current quota, please check your plan and billing details."
KNOWN = {
    401: _make_error_reply(401, "Request had invalid authentication credentials."),
    common.QUOTA: _make_error_reply(
        429, _EXHAUSTED, [{"@type": f"{_RPC}.QuotaFailure", "violations": [{"quotaId": "Spending"}]}]
    ),
    429: common.add_headers(
        _make_error_reply(
            429,
            f"{_EXHAUSTED} Please retry in 1s.",
            [{"@type": f"{_RPC}.RetryInfo", "retryDelay": "1s"}],
        ),
        Retry_After="1",
    ),
    500: _make_error_reply(500, "An internal error has occurred. Please retry or report the error."),
    503: _make_error_reply(503, "The model is overloaded. Please try again later."),
    504: _make_error_reply(504, "The request timed out. Please try again."),
    CONTEXT_LENGTH: _make_error_reply(
        400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    ),
}


def _get_message_role(message: Mapping[str, Any]) -> str:
    parts = message.get("parts")
    if isinstance(parts, list) and any(isinstance(piece, Mapping) and get_function_response(piece) for piece in parts):
        return TOOL
    return "assistant" if message.get("role") == "model" else "user"


def _make_user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


class GeminiAnswers(AnswerFormat):
    """Answers that are the parts of the first candidate. Each event of a streamed one has some of them."""

    _finishes: ClassVar = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
    objects = (True, True)
    failed = encode_event(
        {"error": {"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}}
    )

    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        # Without alt=sse, a stream is one array of its events.
        for event in value if isinstance(value, list) else [value]:
            self.read_event(heard, event)
        # A blocked prompt has a reply without content, in whose place no other can be put.
        if isinstance(value, Mapping) and not isinstance(_get_first_candidate(value).get("content"), Mapping):
            raise LookupError("content")

    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        heard.model = str(value.get("modelVersion") or heard.model)
        usage = value.get("usageMetadata") or {}
        heard.set_token_counts(usage.get("promptTokenCount"), usage.get("candidatesTokenCount"))
        candidate = _get_first_candidate(value)
        for piece in (candidate.get("content") or {}).get("parts") or ():
            if "text" in piece:
                heard.text += piece["text"]
            elif call := piece.get("functionCall"):
                # Gemini gives calls no number: they count in the order in which they come.
                heard.add_call(len(heard.calls), call["name"], common.spelt(call.get("args") or {}), piece)
        heard.set_finish_reason(candidate.get("finishReason"))

    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        first = value["candidates"][0]
        parts: list[dict[str, Any]] = [{"text": content.text}] if content.text else []
        for call in content.calls:
            old = (call.native or {}).get("functionCall") or {}
            function_call = {**old, "name": call.name, "args": call.parsed_arguments or {}}
            # The other fields of the part stay: a thoughtSignature must come back with its call.
            parts.append({**(call.native or {}), "functionCall": function_call})
        finish = self._finishes.get(content.finish, "STOP")
        return {
            **value,
            "candidates": [{**first, "content": {**first["content"], "parts": parts}, "finishReason": finish}],
        }

    def rewrite_events(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        full_answer = self.replace_content(self._join_events(events), content)
        first = full_answer["candidates"][0]
        parts = [{"text": piece} for piece in split_words(content.text)]
        # Calls are not divided among events.
        parts += [item for item in first["content"]["parts"] if "functionCall" in item]
        candidate = {key: value for key, value in first.items() if key != "finishReason"}
        for item in parts:
            yield {**events[0], "candidates": [{**candidate, "content": {**first["content"], "parts": [item]}}]}
        yield {**full_answer, "candidates": [{**first, "content": {**first["content"], "parts": [{"text": ""}]}}]}

    @staticmethod
    def _join_events(events: Sequence[Any]) -> dict[str, Any]:
        """The whole answer that the events make."""
        contents = [_get_first_candidate(event).get("content") or {} for event in events]
        parts = [piece for content in contents for piece in content.get("parts") or ()]
        content = {"role": "model", **contents[0], "parts": parts}
        return {**events[-1], "candidates": [{**_get_first_candidate(events[-1]), "content": content}]}

    def build_last_event(self, events: Sequence[Any]) -> bytes:
        return encode_event(self.replace_content(self._join_events(events), AnswerContent("")))

    def is_last_event(self, event: bytes) -> bool:
        value = parse_event_json(event)
        try:
            return bool(_get_first_candidate(value).get("finishReason"))
        except (LookupError, TypeError, AttributeError):
            return False


def _get_first_candidate(event: Any) -> Mapping[str, Any]:
    """The first candidate of an event; an empty one if it has none."""
    candidate: Mapping[str, Any] = (event.get("candidates") or [{}])[0]
    return candidate


class Gemini(common.Format):
    """`POST …/models/<model>:generateContent` and `:streamGenerateContent`."""

    name = "Gemini generateContent"
    dialog = Dialog("contents", _get_message_role, _make_user_message, answers=GeminiAnswers())
    known, form = KNOWN, re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)")

    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> common.Chat:
        match = self.form.search(path)
        assert match is not None
        contents = common.parse_object_list("contents", body.get("contents"))
        if not contents:
            raise common.ModelRefused(400, "* GenerateContentRequest.contents: contents is not specified")
        # Google's API takes both spellings of a field.
        instruction = body.get("systemInstruction") or body.get("system_instruction")
        instruction = common.extract_content_text(instruction.get("parts")) if isinstance(instruction, Mapping) else ""
        messages = common.make_system_message(instruction)
        calls: list[tuple[str, str]] = []
        for number, content in enumerate(contents):
            messages += _to_common_messages(number, content, calls)
        config = body.get("toolConfig") or {}
        mode = (config.get("functionCallingConfig") or {}).get("mode") if isinstance(config, Mapping) else None
        tools = [
            common.make_common_tool(
                str(declaration.get("name")),
                declaration.get("description"),
                _lowercase_schema_types(_get_first_present(declaration, PARAMETERS)),
            )
            for tool in common.parse_object_list("tools", body.get("tools"))
            for declaration in common.parse_object_list("functionDeclarations", _get_first_present(tool, DECLARATIONS))
            if mode != "NONE"
        ]
        streams = match[2].startswith("stream")
        # Without alt=sse, Google streams one JSON array.
        sse = "sse" in parse_qs(query).get("alt", [])
        return common.Chat(
            unquote(match[1]), messages, tools, body, path.encode() + request_bytes, events=streams, sse=sse
        )

    def check_history(self, chat: common.Chat, path: str) -> None:
        check_gemini(chat.model, path, chat.native["contents"])

    def read_constraints(self, chat: common.Chat) -> common.Constraints:
        config = chat.native.get("generationConfig") or chat.native.get("generation_config") or {}
        calling = (chat.native.get("toolConfig") or {}).get("functionCallingConfig") or {}
        if (config.get("candidateCount") or 1) != 1:
            raise common.ModelRefused(400, "Multiple candidates is not enabled for this model")
        kind = config.get("responseMimeType") or "text/plain"
        form = _get_first_present(config, ("responseSchema", "responseJsonSchema", "response_json_schema"))
        if kind not in ("text/plain", "application/json") or (form and kind == "text/plain"):
            raise common.ModelRefused(400, f"Response mime type {kind} is not supported with this response schema.")
        names = tuple(common.parse_text_list("allowedFunctionNames", calling.get("allowedFunctionNames"))) or None
        length = config.get("maxOutputTokens")
        if length is not None and (type(length) is not int or length < 1):
            raise common.ModelRefused(400, f"max_output_tokens must be positive, but is {length!s:.40}.")
        return common.Constraints(
            schema=(_lowercase_schema_types(form) if form else {}) if kind == "application/json" else None,
            tools=names,
            forced=calling.get("mode") == "ANY",
            tokens_max=length,
            stop=tuple(common.parse_text_list("stopSequences", config.get("stopSequences"))),
        )

    def build_answer_json(self, answer: common.ModelAnswer) -> Any:
        text = [{"text": answer.reply.content}] if answer.reply.content or not answer.reply.tool_calls else []
        return self._make_chunk(answer, [*text, *_make_call_parts(answer)], _choose_finish_reason(answer))

    def _make_chunk(self, answer: common.ModelAnswer, parts: Sequence[Any], finish: str | None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}}
        used: dict[str, Any] = {"promptTokenCount": answer.chat.estimated_tokens}
        # The length of the answer is known only when it ends.
        if finish:
            candidate["finishReason"] = finish
            used["candidatesTokenCount"] = answer.estimated_tokens
        used["totalTokenCount"] = sum(used.values())
        used["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": answer.chat.estimated_tokens}]
        return {
            "candidates": [{**candidate, "index": 0}],
            "usageMetadata": used,
            "modelVersion": answer.chat.model,
            "responseId": answer.chat.id[:22],
        }

    def stream_answer(self, answer: common.ModelAnswer) -> Iterator[bytes]:
        parts: list[Any] = [{"text": piece} for piece in split_words(answer.reply.content)] + _make_call_parts(answer)
        # An empty answer has one event too, which tells its end.
        parts = parts or [{"text": ""}]
        last = len(parts) - 1
        chunks = (
            self._make_chunk(answer, [item], _choose_finish_reason(answer) if n == last else None)
            for n, item in enumerate(parts)
        )
        for number, chunk in enumerate(chunks):
            if answer.chat.sse:
                yield f"data: {common.spelt(chunk)}\r\n\r\n".encode()
            else:  # one array, piece by piece
                yield f"{',' if number else '['}{common.spelt(chunk)}{']' if number == last else ''}\n".encode()

    def make_error_reply(
        self,
        status: int,
        message: str,
        code: str | None = None,  # noqa: ARG002
        param: str | None = None,  # noqa: ARG002
    ) -> ErrorReply:
        return _make_error_reply(status, message)

    def describe_model(self, name: str) -> Any:
        return {
            "name": f"models/{name}", "version": "001", "displayName": name, "inputTokenLimit": 131072,
            "outputTokenLimit": 8192, "supportedGenerationMethods": ["generateContent", "countTokens"],
        }  # fmt: skip


PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema")
DECLARATIONS = ("functionDeclarations", "function_declarations")


def _get_first_present(value: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _lowercase_schema_types(value: Any) -> Any:
    """A schema with the names of its types in small letters, as JSON Schema spells them."""
    if isinstance(value, list):
        return [_lowercase_schema_types(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: entry.lower() if key == "type" and isinstance(entry, str) else _lowercase_schema_types(entry)
        for key, entry in value.items()
    }


def _choose_finish_reason(answer: common.ModelAnswer) -> str:
    return "MAX_TOKENS" if answer.reply.finish == "length" else "STOP"


def _make_call_parts(answer: common.ModelAnswer) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [
        {"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in answer.reply.tool_calls
    ]
    # These models sign the first call of a turn, and refuse a history in which its signature is missing.
    if calls and SIGNS_CALLS.match(answer.chat.model):
        calls[0]["thoughtSignature"] = b64encode(answer.chat.id.encode()).decode()
    return calls


def _to_common_messages(number: int, content: Mapping[str, Any], calls: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """A content in the common form. `calls`: the name and the id of each call that is not answered yet. A call without
    an id is answered by the first response with its name."""
    text, function_calls, results = "", [], []
    for nth, piece in enumerate(common.parse_object_list("contents.parts", content.get("parts"))):
        call, answer = get_function_call(piece), get_function_response(piece)
        if isinstance(call, Mapping):
            calls.append((str(call.get("name")), str(call.get("id") or f"call_{number}_{nth}")))
            function_calls.append(common.make_common_call(calls[-1][0], call.get("args") or {}, calls[-1][1]))
        elif isinstance(answer, Mapping):
            name = str(answer.get("name"))
            open_calls = [
                open_call for open_call in calls if answer.get("id") in (None, open_call[1]) and open_call[0] == name
            ]
            if open_calls:
                calls.remove(open_calls[0])
            call_id = open_calls[0][1] if open_calls else str(answer.get("id"))
            results.append(_make_tool_result(call_id, answer.get("response")))
        else:
            text += str(piece.get("text") or "")
    return common.make_turn_messages(text, function_calls, results, assistant=content.get("role") == "model")


def _make_tool_result(call_id: str, response: Any) -> dict[str, Any]:
    """A tool's answer as text. The SDK wraps it into `result`, or `error` if the tool failed."""
    key = next(iter(response)) if isinstance(response, Mapping) and len(response) == 1 else ""
    if key in ("result", "output", "error"):
        response = response[key]
    return common.make_tool_result(
        call_id, response if isinstance(response, str) else common.spelt(response), failed=key == "error"
    )
