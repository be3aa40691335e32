"""The base of the faults that change what a model says."""

from __future__ import annotations

from typing import Any

from chaoslab.core.answers import Answers, Said
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply
from chaoslab.core.fault import Fault


class ChangedAnswer(Fault):
    """A fault that changes a model's whole answer, in the format of its API. A streamed answer, an error and what is no
    answer of a model pass unchanged, and so does an answer in which there is nothing to change."""

    layer = "meaning"
    of_model = True
    corrupts = "reply"

    def changed(self, said: Said, answers: Answers, call: Call) -> Said:
        """The content that the model is made to have said; the same object if there is nothing to change."""
        raise NotImplementedError

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002 - it needs nothing of the trial
        reply: Reply = yield call
        if reply.stream is not None or reply.status >= 300:
            return reply
        value: Any = reply.value
        answers = call.dialog.answers
        said = answers.said(value)
        if said is None:
            return reply
        now = self.changed(said, answers, call)
        return reply if now is said else reply.with_value(answers.with_said(value, now))

    def witnessed(self, seen: Observation) -> str | None:
        if seen.reply is None or not seen.reply.same_as(seen.changed_reply):
            return None
        return "an answer that the model did not give reached the caller"
