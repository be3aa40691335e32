"""Histories that providers refuse, in their own words: one table a provider, each rule with a report that shows it.

Groq has no table, since no report of its was found; Ollama's own API is not served. A rule that only
some models have names them. One that is only in reports of years ago is left out: Anthropic's that the first message be
the user's (2024).
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.model.formats.common import ModelRefused, parse_object_list

REPORTS = "https://github.com"


@dataclass(frozen=True)
class Rule:
    """A reason for a refusal. `words`: the provider's, with {} for what they name. `param`: the provider's name of the
    place, with {} likewise. `source`: where the words were seen."""

    words: str
    source: str
    code: str | None = None
    param: str | None = None

    def make_refusal(self, *named: Any) -> ModelRefused:
        """`named`: what words and place name, by number."""
        param = self.param and self.param.format(*named)
        return ModelRefused(400, self.words.format(*named), code=self.code, param=param)


Table = Mapping[str, Rule]

OPENAI_CHAT: Table = {
    "orphan": Rule(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        f"{REPORTS}/microsoft/semantic-kernel/issues/12708",
        param="messages.[{0}].role",
    ),
    "foreign id": Rule(
        "Invalid parameter: 'tool_call_id' of '{1}' not found in 'tool_calls' of previous message.",
        f"{REPORTS}/dapr/dapr-agents/issues/145",
        param="messages.[{0}].tool_call_id",
    ),
    "second result": Rule(
        "Invalid parameter: Duplicate value for 'tool_call_id' of '{1}', in messages[{2}] and messages[{0}].",
        f"{REPORTS}/agno-agi/agno/issues/5116",
        param="messages.[{0}].tool_call_id",
    ),
    "no result": Rule(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: {1}",
        f"{REPORTS}/sdcb/chats/pull/132",
        param="messages.[{0}].role",
    ),
    "no calls": Rule(
        "Invalid 'messages[{0}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead.",
        f"{REPORTS}/home-assistant/core/pull/118577",
        "empty_array",
        "messages[{0}].tool_calls",
    ),
    "long id": Rule(  # 40 until the beginning of 2026
        "Invalid 'messages[{0}].tool_calls[{1}].id': string too long. Expected a string with maximum length 64, but "
        "got a string with length {2} instead.",
        f"{REPORTS}/openclaw/openclaw/pull/875",
        "string_above_max_length",
        "messages[{0}].tool_calls[{1}].id",
    ),
    "no name": Rule(
        "Invalid 'messages[{0}].tool_calls[{1}].function.name': empty string. Expected a string with minimum length "
        "1, but got an empty string instead.",
        f"{REPORTS}/continuedev/continue/issues/9784",
        "empty_string",
        "messages[{0}].tool_calls[{1}].function.name",
    ),
    "no content": Rule(
        "Invalid value for 'content': expected a string, got null.",
        f"{REPORTS}/vercel/ai/pull/13744",
        param="messages.[{0}].content",
    ),
}
_ID_MAX = 64


def check_openai_chat(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises ModelRefused: OpenAI's chat completions refuse these messages."""
    table, open_calls, call_index = OPENAI_CHAT, list[str](), 0
    answered: dict[str, int] = {}
    for index, message in enumerate(messages):
        calls = message.get("tool_calls")
        if calls == []:
            raise table["no calls"].make_refusal(index)
        for number, call in enumerate(calls or ()):
            if len(str(call.get("id"))) > _ID_MAX:
                raise table["long id"].make_refusal(index, number, len(str(call["id"])))
            if call["function"].get("name") == "":
                raise table["no name"].make_refusal(index, number)
        spoken = calls or any(message.get(key) for key in ("refusal", "audio", "function_call"))
        if message.get("content") is None and not (message["role"] == "assistant" and spoken):
            raise table["no content"].make_refusal(index)
        if message["role"] == "tool":
            answer = message["tool_call_id"]
            if not open_calls:
                raise table["orphan"].make_refusal(index)
            if answer not in open_calls:
                raise table["foreign id"].make_refusal(index, answer)
            if answer in answered:
                raise table["second result"].make_refusal(index, answer, answered[answer])
            answered[answer] = index
        # The provider names the first gap: what follows it is not looked at.
        elif set(open_calls) - set(answered):
            break
        else:
            open_calls, call_index, answered = [str(call.get("id")) for call in calls or ()], index, {}
    if missing := [call_id for call_id in open_calls if call_id not in answered]:
        raise table["no result"].make_refusal(call_index, ", ".join(missing))


OPENAI_RESPONSES: Table = {
    "orphan": Rule(
        "No tool call found for function call output with call_id {0}.",
        f"{REPORTS}/james-6-23/codex2api/issues/414",
        param="input",
    ),
    "no result": Rule(
        "No tool output found for function call {0}.", f"{REPORTS}/tjardoo/openai-client/pull/124", param="input"
    ),
    "second item": Rule(
        "Duplicate item found with id {0}. Remove duplicate items from your input and try again.",
        f"{REPORTS}/vercel/ai/issues/7883",
        param="input",
    ),
    "long id": Rule(
        "Invalid 'input[{0}].call_id': string too long. Expected a string with maximum length 64, but got a string "
        "with length {1} instead.",
        f"{REPORTS}/AnswerDotAI/fastllm/issues/45",
        "string_above_max_length",
        "input[{0}].call_id",
    ),
    "form of id": Rule(
        "Invalid 'input[{0}].id': '{1}'. Expected an ID that begins with '{2}'.",
        f"{REPORTS}/continuedev/continue/pull/11785",
        "invalid_value",
        "input[{0}].id",
    ),
    "lone thought": Rule(
        "Item '{0}' of type 'reasoning' was provided without its required following item.",
        f"{REPORTS}/continuedev/continue/issues/8933",
        param="input",
    ),
    "user's part": Rule(
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        f"{REPORTS}/jeremychone/rust-genai/pull/119",
        "invalid_value",
        "input[{0}].content[{1}]",
    ),
    "unknown item": Rule(
        "Item with id '{0}' not found.", f"{REPORTS}/The-PR-Agent/pr-agent/issues/2169", param="input"
    ),
}
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_PARTS = ("content", "input_text")


def check_openai_responses(items: Sequence[Mapping[str, Any]]) -> None:
    """Raises ModelRefused: OpenAI's responses refuse these items."""
    table, calls, ids = OPENAI_RESPONSES, dict[str, bool](), set[str]()
    for index, item in enumerate(items):
        kind, call, item_id = item.get("type", "message"), str(item.get("call_id")), item.get("id")
        if isinstance(item_id, str):
            prefix = _PREFIXES.get(kind, "")
            if not item_id.startswith(prefix):
                raise table["form of id"].make_refusal(index, item_id, prefix)
            if item_id in ids:
                raise table["second item"].make_refusal(item_id)
            ids.add(item_id)
        if len(call) > _ID_MAX:
            raise table["long id"].make_refusal(index, len(call))
        if kind == "message" and item.get("role") == "assistant" and isinstance(item.get("content"), list):
            for number, content_part in enumerate(parse_object_list("input.content", item["content"])):
                if content_part.get("type") == "input_text":
                    raise table["user's part"].make_refusal(index, number)
        elif kind == "reasoning" and not _has_model_item_next(items[index + 1 :]):
            raise table["lone thought"].make_refusal(item_id)
        elif kind == "function_call":
            calls[call] = False
        elif kind == "function_call_output":
            if call not in calls:
                raise table["orphan"].make_refusal(call)
            calls[call] = True
    if (missing := next((call for call, answered in calls.items() if not answered), None)) is not None:
        raise table["no result"].make_refusal(missing)


def _has_model_item_next(items: Sequence[Mapping[str, Any]]) -> bool:
    """True if the model's own item follows a thought, or another thought that one follows."""
    after = next((item for item in items if item.get("type") != "reasoning"), None)
    if after is None or after.get("type") == "function_call_output":
        return False
    return after.get("type", "message") != "message" or after.get("role") == "assistant"


ANTHROPIC: Table = {
    "orphan": Rule(
        "messages.{}.content.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message.",
        f"{REPORTS}/tghamm/Anthropic.SDK/issues/184",
    ),
    "no result": Rule(  # also if results stand behind other blocks, as the documentation of tool use says
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
        f"{REPORTS}/anthropics/claude-code/issues/12526",
    ),
    "second result": Rule(
        "messages.{}.content.{}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
        "id: {}",
        f"{REPORTS}/vectorize-io/hindsight/pull/4250",
    ),
    "second call": Rule(
        "messages.{}.content.{}: `tool_use` ids must be unique", f"{REPORTS}/anthropics/claude-code/issues/20901"
    ),
    "form of id": Rule(
        "messages.{}.content.{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        f"{REPORTS}/HKUDS/nanobot/pull/4356",
    ),
    "user's result": Rule(
        "messages.{}: `tool_result` blocks can only be in `user` messages",
        f"{REPORTS}/tghamm/Anthropic.SDK/issues/128",
    ),
    "empty text": Rule(
        "messages: text content blocks must be non-empty", f"{REPORTS}/anthropics/claude-code/issues/59812"
    ),
    "no content": Rule(
        "messages.{}: all messages must have non-empty content except for the optional final assistant message",
        f"{REPORTS}/anthropics/claude-code/issues/6774",
    ),
    "last turn": Rule(
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        f"{REPORTS}/ericc-ch/copilot-api/pull/261",
    ),
    "no signature": Rule(
        "messages.{}.content.{}.thinking.signature: Field required",
        f"{REPORTS}/JohnnyZ93/oai-compatible-copilot/issues/217",
    ),
    "wrong signature": Rule(
        "messages.{}.content.{}: Invalid `signature` in `thinking` block",
        f"{REPORTS}/anthropics/anthropic-sdk-python/issues/1598",
    ),
}
_WITHOUT_PREFILL = re.compile(r"claude-[a-z]+-(?:4-[6-9]|[5-9]|\d\d)(?:-|\Z)")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_anthropic(model: str, messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises ModelRefused: Anthropic's messages refuse these. A signature is only checked for its form: no model here
    thinks, so each comes from elsewhere."""
    table, open_calls, call_ids = ANTHROPIC, list[str](), set[str]()
    for index, message in enumerate(messages):
        content = message.get("content")
        final = index == len(messages) - 1 and message["role"] == "assistant"
        if not content and not final:
            raise table["no content"].make_refusal(index)
        blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
        answered: list[str] = []
        for number, block in enumerate(blocks):
            kind, call_id = block.get("type"), str(block.get("tool_use_id"))
            if kind == "tool_result":
                if message["role"] != "user":
                    raise table["user's result"].make_refusal(index)
                if call_id not in open_calls:
                    raise table["orphan"].make_refusal(index, number, call_id)
                if call_id in answered:
                    raise table["second result"].make_refusal(index, number, call_id)
                if number == len(answered):  # the results come first
                    answered.append(call_id)
            else:
                _check_anthropic_block(index, number, block, call_ids)
        if missing := [open_call for open_call in open_calls if open_call not in answered]:
            raise table["no result"].make_refusal(index - 1, ", ".join(missing))
        open_calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    if open_calls:
        raise table["no result"].make_refusal(len(messages) - 1, ", ".join(open_calls))
    if messages[-1]["role"] == "assistant" and _WITHOUT_PREFILL.match(model):
        raise table["last turn"].make_refusal()


def _check_anthropic_block(index: int, number: int, block: Mapping[str, Any], call_ids: set[str]) -> None:
    """`call_ids`: those of the calls so far; that of this one is added."""
    table, kind, block_id = ANTHROPIC, block.get("type"), str(block.get("id"))
    if kind == "text" and not block.get("text"):
        raise table["empty text"].make_refusal()
    if kind == "tool_use":
        if not _ANTHROPIC_ID.fullmatch(block_id):
            raise table["form of id"].make_refusal(index, number)
        if block_id in call_ids:
            raise table["second call"].make_refusal(index, number)
        call_ids.add(block_id)
    if kind == "thinking":
        if "signature" not in block:
            raise table["no signature"].make_refusal(index, number)
        try:
            # An empty text is valid base64, but no signature; “=” is refused.
            base64.b64decode(block["signature"] or "=", validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise table["wrong signature"].make_refusal(index, number) from None


_MORE = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
GEMINI: Table = {
    "role": Rule("Please use a valid role: user, model.", f"{REPORTS}/langgenius/dify-official-plugins/issues/566"),
    "orphan": Rule(
        "Please ensure that function response turn comes immediately after a function call turn.",
        f"{REPORTS}/GoogleCloudPlatform/generative-ai/pull/368",
    ),
    "early call": Rule(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        f"{REPORTS}/google-gemini/gemini-cli/issues/26486",
    ),
    "no result": Rule(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn.",
        f"{REPORTS}/diegosouzapw/OmniRoute/issues/1412",
    ),
    "no parts": Rule(
        "* GenerateContentRequest.contents[{}].parts: contents.parts must not be empty.",
        f"{REPORTS}/langchain-ai/langchain-google/issues/691",
    ),
    "no parts at Vertex": Rule(
        f"Unable to submit request because it must include at least one parts field, which describes the prompt input. "
        f"{_MORE}",
        f"{REPORTS}/pydantic/pydantic-ai/pull/2203",
    ),
    "empty text at Vertex": Rule(
        f"Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again. "
        f"{_MORE}",
        f"{REPORTS}/Portkey-AI/gateway/issues/462",
    ),
    "last turn": Rule(
        "Requests ending with a model turn are not supported.", f"{REPORTS}/pipecat-ai/pipecat/pull/5821"
    ),
    "no signature": Rule(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        "call `default_api:{}` , position {}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures "
        "for more details.",
        f"{REPORTS}/nanbingxyz/5ire/issues/405",
    ),
}
_ROLES = ("user", "model", "function", "tool")
_WITHOUT_MODEL_TURN = re.compile(r"gemini-(?:3\.5-flash-lite|3\.[6-9]|[4-9])")  # as that report and LibreChat's list
SIGNS_CALLS = re.compile(r"gemini-[3-9]")
"""The models that sign the first call of each of their turns, and want the signature back."""


def check_gemini(model: str, path: str, contents: Sequence[Mapping[str, Any]]) -> None:
    """Raises ModelRefused: Gemini refuses these contents. `path`: of the request; Vertex AI's is another."""
    table, results_expected, before, vertex = GEMINI, 0, "model", "/publishers/" in path
    current = max((at for at, turn in enumerate(contents) if _is_user_turn(turn)), default=0)
    for index, content in enumerate(contents):
        role = content.get("role", "user")
        if role not in _ROLES:
            raise table["role"].make_refusal()
        parts = parse_object_list("contents.parts", content.get("parts"))
        if not parts:
            raise table["no parts at Vertex" if vertex else "no parts"].make_refusal(index)
        if vertex and any(piece.get("text") == "" and len(piece) == 1 for piece in parts):
            raise table["empty text at Vertex"].make_refusal()
        answers = sum(isinstance(get_function_response(piece), Mapping) for piece in parts)
        if answers and not results_expected:
            raise table["orphan"].make_refusal()
        if answers != results_expected:
            raise table["no result"].make_refusal()
        calls = [piece for piece in parts if isinstance(get_function_call(piece), Mapping)]
        results_expected = len(calls)
        if calls and before == "model":
            raise table["early call"].make_refusal()
        if calls and index > current and SIGNS_CALLS.match(model) and not _get_thought_signature(calls[0]):
            raise table["no signature"].make_refusal(get_function_call(calls[0]).get("name"), index + 1)
        before = role
    if results_expected:
        raise table["no result"].make_refusal()
    if before == "model" and _WITHOUT_MODEL_TURN.match(model):
        raise table["last turn"].make_refusal()


def _is_user_turn(content: Mapping[str, Any]) -> bool:
    """True for a turn of the user's own, with which signatures of earlier calls are no longer wanted."""
    parts = parse_object_list("contents.parts", content.get("parts"))
    return content.get("role", "user") == "user" and not any(get_function_response(piece) for piece in parts)


def get_function_call(piece: Mapping[str, Any]) -> Any:
    return piece.get("functionCall") or piece.get("function_call")


def get_function_response(piece: Mapping[str, Any]) -> Any:
    return piece.get("functionResponse") or piece.get("function_response")


def _get_thought_signature(piece: Mapping[str, Any]) -> Any:
    return piece.get("thoughtSignature") or piece.get("thought_signature")


BEDROCK: Table = {
    "first turn": Rule(
        "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        f"{REPORTS}/langgenius/dify/issues/12340",
    ),
    "two turns": Rule(
        "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
        "user and assistant roles and try again.",
        f"{REPORTS}/langchain-ai/langchain-aws/issues/130",
    ),
    "orphan": Rule(
        "The number of toolResult blocks at messages.{}.content exceeds the number of toolUse blocks of previous turn.",
        f"{REPORTS}/Just-Curieous/Curie/issues/16",
    ),
    "no result": Rule(
        "Expected toolResult blocks at messages.{}.content for the following Ids: {}",
        f"{REPORTS}/NousResearch/hermes-agent/pull/108585",
    ),
}


def check_bedrock(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises ModelRefused: Bedrock's converse refuses these messages."""
    table, open_calls, before = BEDROCK, set[str](), "assistant"
    if messages[0].get("role") != "user":
        raise table["first turn"].make_refusal()
    # An empty turn behind the last shows which calls nobody answered.
    for index, message in enumerate([*messages, {"role": "", "content": []}]):
        if message.get("role") == before:
            raise table["two turns"].make_refusal()
        blocks = parse_object_list("messages.content", message.get("content"))
        results = {str(block["toolResult"].get("toolUseId")) for block in blocks if "toolResult" in block}
        if results - open_calls:
            raise table["orphan"].make_refusal(index)
        if open_calls - results:
            raise table["no result"].make_refusal(index, ", ".join(sorted(open_calls - results)))
        open_calls = {str(block["toolUse"].get("toolUseId")) for block in blocks if "toolUse" in block}
        before = str(message.get("role"))


TABLES: Mapping[str, Table] = {
    "OpenAI chat completions": OPENAI_CHAT, "OpenAI responses": OPENAI_RESPONSES, "Anthropic messages": ANTHROPIC,
    "Gemini generateContent": GEMINI, "Bedrock converse": BEDROCK,
}  # fmt: skip
"""The tables by the name of the format."""
