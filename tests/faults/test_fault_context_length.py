"""The provider refuses the request, since the conversation is longer than the model can read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.faults.model.context_length import ContextLength
from chaoslab.model.formats import format_of
from tests.faults.fault_parts import CALL, Target, meet, saw

EVIDENCE = "the provider's refusal of a long conversation, 400, reached the caller"


@pytest.mark.parametrize(
    ("path", "words", "code"),
    [
        ("/v1/chat/completions", "maximum context length is", "context_length_exceeded"),
        ("/openai/v1/chat/completions", "Please reduce the length of the messages", "context_length_exceeded"),
        ("/v1/responses", "exceeds the context window", "context_length_exceeded"),
        ("/v1/messages", "prompt is too long", None),
        ("/v1beta/models/g:generateContent", "exceeds the maximum number of tokens", 400),
    ],
)
def test_each_provider_refuses_in_its_own_words(path: str, words: str, code: str | int | None) -> None:
    format_ = format_of(path)
    assert format_ is not None
    met = meet(ContextLength(), target := Target(), call=replace(CALL, errors=format_.errors))
    assert met.reply is not None
    error = json.loads(met.reply.body)["error"]
    assert (met.reply.status, words in error["message"], error.get("code")) == (400, True, code)
    assert (target.sent, met.injected, met.evidence) == ([], True, EVIDENCE)


def test_a_target_without_such_words_answers_400() -> None:
    met = meet(ContextLength(), call=replace(CALL, errors={400: ErrorReply(400, {"wrong": True})}))
    assert (met.reply and json.loads(met.reply.body), met.evidence) == ({"wrong": True}, EVIDENCE)
    assert CONTEXT_LENGTH not in range(400, 600)


def test_another_reply_is_no_witness() -> None:
    assert ContextLength().witnessed(saw()) is None
    met = meet(ContextLength())
    assert ContextLength().witnessed(replace(met.seen, reply=Target().reply)) is None
