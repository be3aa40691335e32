"""The model's answers end for one of these reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen

SAME = {
    "stop": "stop end_turn stop_sequence completed STOP",
    "length": "length max_tokens max_output_tokens model_context_window_exceeded MAX_TOKENS",
    "tool_calls": "tool_calls tool_use function_call",
    "content_filter": "content_filter refusal SAFETY RECITATION PROHIBITED_CONTENT",
}
"""OpenAI's word for a reason → the words of OpenAI, Anthropic and Gemini for it, from their API references."""
_COMMON = {word: reason for reason, words in SAME.items() for word in words.split()}


@dataclass(frozen=True)
class FinishedReason(Assertion):
    """Each answer of the model ends for one of these `reasons`, such as stop or tool_calls. OpenAI's words stand for
    those of Anthropic and Gemini too; a word of one provider stands for itself. An answer that broke off has none."""

    reasons: str | Sequence[str]
    example = "[stop, tool_calls]"

    def check(self, seen: Seen) -> Miss | None:
        right = {self.reasons} if isinstance(self.reasons, str) else set(self.reasons)
        ends = [(record, event) for record, event in seen.finished() if event.finish_reason is not None]
        if not ends:
            return Miss("no answer of a model has arrived, so none has a reason")
        for record, event in ends:
            reason = event.finish_reason or ""
            if reason not in right and _COMMON.get(reason) not in right:
                ended = f"ended with {reason}" if reason else "broke off without a reason"
                said = " or ".join(sorted(right))
                return Miss.at(f"the model's answer {event.request} {ended} instead of {said}", record)
        return None
