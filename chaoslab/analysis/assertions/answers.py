"""Assertions on the agent's answer, and the answers of its model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.answers.compare import Likeness, compare_answers
from chaoslab.analysis.answers.values import READ_MAX, contains_any_spelling
from chaoslab.analysis.assertions import Assertion, FinishedTrial, Miss
from chaoslab.analysis.opinion import ask_judge
from chaoslab.base.identity import canonical
from chaoslab.base.jsonable import to_one_line
from chaoslab.core.events import PromptStarted, TurnStarted


@dataclass(frozen=True)
class AnswerContains(Assertion):
    """The answer shows `text`, or one of several spellings, as whole words and numbers."""

    text: str | Sequence[str]
    example = "{text: [21.4, 21,4]}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        spellings = [self.text] if isinstance(self.text, str) else [str(spelling) for spelling in self.text]
        if trial.answer is None:
            return Miss("there is no answer")
        if contains_any_spelling(spellings, trial.answer):
            return None
        choices = " or ".join(map(repr, spellings))
        return trial.make_answer_miss(f"the answer does not show {choices}: {to_one_line(trial.answer, 160)!r}")


@dataclass(frozen=True)
class AnswerMatches(Assertion):
    """`pattern` (a regular expression) is found in the first 20,000 characters of the answer."""

    pattern: str
    example = "{pattern: '(?i)refunded \\\\d+'}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        if trial.answer is None:
            return Miss("there is no answer")
        if re.search(self.pattern, trial.answer[:READ_MAX]):
            return None
        return trial.make_answer_miss(
            f"{self.pattern!r} is not found in the answer: {to_one_line(trial.answer, 160)!r}"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern of answer_matches cannot be read: {error}") from None


REASON_WORDS = {
    "stop": "stop end_turn stop_sequence completed STOP",
    "length": "length max_tokens max_output_tokens model_context_window_exceeded MAX_TOKENS",
    "tool_calls": "tool_calls tool_use function_call",
    "content_filter": "content_filter refusal SAFETY RECITATION PROHIBITED_CONTENT",
}
"""OpenAI's word for a reason → the words of OpenAI, Anthropic and Gemini for it, from their API references."""
_COMMON = {word: reason for reason, word_list in REASON_WORDS.items() for word in word_list.split()}


@dataclass(frozen=True)
class FinishedReason(Assertion):
    """Each answer of the model ends for one of these `reasons`, such as stop or tool_calls. OpenAI's words stand for
    those of Anthropic and Gemini too; a word of one provider stands for itself. An answer that broke off has none."""

    reasons: str | Sequence[str]
    example = "[stop, tool_calls]"

    def check(self, trial: FinishedTrial) -> Miss | None:
        allowed_reasons = {self.reasons} if isinstance(self.reasons, str) else set(self.reasons)
        ends = [(record, event) for record, event in trial.finished() if event.finish_reason is not None]
        if not ends:
            return Miss("no answer of a model has arrived, so none has a reason")
        for record, event in ends:
            reason = event.finish_reason or ""
            if reason not in allowed_reasons and _COMMON.get(reason) not in allowed_reasons:
                ending = f"ended with {reason}" if reason else "broke off without a reason"
                allowed = " or ".join(sorted(allowed_reasons))
                return Miss.from_records(f"the model's answer {event.request} {ending} instead of {allowed}", record)
        return None


@dataclass(frozen=True)
class JudgedBy(Assertion):
    """The model at JUDGE_URL, called JUDGE_MODEL, finds that `statement` is true of the answer. If it cannot be asked
    or gives no verdict, the trial is invalid. It costs a request for each trial, and may err."""

    statement: str
    asks = True
    example = "{statement: It tells the customer when the parcel comes.}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        if trial.answer is None:
            return Miss("there is no answer")
        verdict = ask_judge(trial.ask, self.statement, _find_prompt(trial), trial.answer)
        trial.opinions.append(verdict)
        return None if verdict.holds else trial.make_answer_miss(f"the judge {verdict.model} says no: {verdict.why}")


def _find_prompt(trial: FinishedTrial) -> str:
    """The user's words, of the turn if one is looked at."""
    if trial.turn is not None:
        return next(
            (event.prompt for _, event in trial.iterate_events_of_kind(TurnStarted) if event.turn == trial.turn), ""
        )
    return next((event.prompt for _, event in trial.iterate_events_of_kind(PromptStarted)), "")


@dataclass(frozen=True)
class SameAsTwin(Assertion):
    """The answer has the same values as the twin's, the trial without faults, and the effects are the same."""

    example = "same_as_twin"

    def check(self, trial: FinishedTrial) -> Miss | None:
        if trial.twin is None:
            return Miss("there is no twin to compare with")
        twin = FinishedTrial(trial.twin, trial.twin.trials[0], trial.verdict)
        if trial.answer is None or twin.answer is None:
            return Miss("there is no answer" if trial.answer is None else "its twin has no answer")
        likeness = compare_answers(twin.answer, trial.answer)
        if likeness.likeness is not Likeness.SAME:
            return trial.make_answer_miss(f"the answer is not its twin's: {likeness.text}")
        counts = [Counter(canonical([e.effect, e.content]) for _, e in side.effects()) for side in (twin, trial)]
        if counts[0] != counts[1]:
            message = f"it has {counts[1].total()} effects, its twin {counts[0].total()}, and they differ"
            return Miss.from_located_events(message, trial.effects())
        return None
