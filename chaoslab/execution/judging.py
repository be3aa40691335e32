"""Has a model, or a user's function, answer the questions about answers that nothing certain decides. Each question is
asked once. The replies are kept beside the run's log, so that reports go without the model."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from chaoslab.analysis.opinion import SHOWN_MAX as SHOWN
from chaoslab.analysis.opinion import Unjudged
from chaoslab.analysis.verdict.answer import JudgeQuestion
from chaoslab.analysis.verdict.opinions import build_judge_messages, classify_reply, collect_questions
from chaoslab.base.jsonable import describe_error, repr_one_line, to_one_line
from chaoslab.execution.asking import Model, ModelReply
from chaoslab.record.history import History
from chaoslab.record.spoken import OPINIONS, SAID, UNCLEAR, JudgeOpinions, JudgeReply, append_json_line

MODEL = "model"
"""The value of `judge=` that stands for the model of the environment."""
SILENT_MAX = 3
"""The questions in a row without a reply after which a model is not asked any more."""


class Judge:
    """The one asked. `name`: for the reports."""

    name: str

    def reply(self, question: JudgeQuestion) -> JudgeReply:
        """The reply, or the reason why there is none, as its `error`. It raises nothing."""
        raise NotImplementedError

    @staticmethod
    def from_option(judge_option: Any) -> "Judge | None":
        """The judge that `judge=` stands for; None for None. Raises ValueError, TypeError: it is none, or the
        environment does not name the model."""
        if judge_option is None or isinstance(judge_option, Judge):
            return judge_option
        if judge_option == MODEL:
            try:
                return ModelJudge(Model.from_environment("judge='model'"))
            except Unjudged as error:
                raise ValueError(str(error)) from None
        if not callable(judge_option):
            raise TypeError(
                f"judge is {repr_one_line(judge_option)}: it should be 'model', or a function from a question to one "
                "of "
                f"{', '.join(map(repr, SAID))}"
            )
        return FunctionJudge(judge_option)


class ModelJudge(Judge):
    """A model behind HTTP."""

    def __init__(self, model: Model) -> None:
        self.name, self._model = model.name, model
        self._silent = 0

    def reply(self, question: JudgeQuestion) -> JudgeReply:
        question_messages = build_judge_messages(question)
        # A judge that is down would make each question wait for its timeout.
        if self._silent >= SILENT_MAX:
            text = f"it was not asked, since the judge at {self._model.url} gave no reply {SILENT_MAX} times"
            return self._build_reply(question, error=text)
        try:
            model_reply = self._model.ask(question_messages)
        except Unjudged as error:
            self._silent += 1
            return self._build_reply(question, error=str(error))
        self._silent = 0
        sense = classify_reply(question, model_reply.text)
        if sense is not None:
            return self._build_reply(question, model_reply, str(sense))
        return self._build_reply(
            question, model_reply, error=f"the judge answered off the form: {to_one_line(model_reply.text, SHOWN)}"
        )

    def _build_reply(
        self, question: JudgeQuestion, model_reply: ModelReply | None = None, sense: str = UNCLEAR, error: str = ""
    ) -> JudgeReply:
        if model_reply is None:
            return JudgeReply(sense, self.name, error, key=question.key)
        return JudgeReply(
            sense,
            self.name,
            error,
            key=question.key,
            messages=build_judge_messages(question),
            reply=model_reply.text,
            tokens_in=model_reply.tokens_in,
            tokens_out=model_reply.tokens_out,
            cost_usd=model_reply.cost_usd,
        )


@dataclass
class FunctionJudge(Judge):
    """A user's function from a `JudgeQuestion` to what the answer says, such as "right" or "admits it"."""

    function: Callable[[JudgeQuestion], Any]

    def __post_init__(self) -> None:
        self.name = to_one_line(getattr(self.function, "__name__", type(self.function).__name__), SHOWN)

    def reply(self, question: JudgeQuestion) -> JudgeReply:
        try:
            sense = self.function(question)
        except Exception as error:  # noqa: BLE001 - it is the user's code
            return JudgeReply(
                UNCLEAR, self.name, to_one_line(f"judge= raised {describe_error(error)}", SHOWN), key=question.key
            )
        if not isinstance(sense, str) or sense not in SAID:
            text = f"judge= gave {repr_one_line(sense)}: it should be one of {', '.join(SAID)}"
            return JudgeReply(UNCLEAR, self.name, text, key=question.key)
        return JudgeReply(str(sense), self.name, key=question.key)


class TrialToJudge(Protocol):
    """A trial, as far as its answer is asked about. `opinion`: what the judge says of it."""

    opinion: JudgeReply | None

    @property
    def history(self) -> History: ...
    @property
    def folder(self) -> Path | None: ...


T = TypeVar("T", bound=TrialToJudge)


def add_judge_opinions(trials: Generator[T, None, None], judge: Judge | None) -> Generator[T, None, None]:
    """The trials, each with the judge's opinion of its answer if nothing certain decides it."""
    if judge is None:
        yield from trials
        return
    replies: dict[str, JudgeReply] = {}
    with closing(trials):
        for trial in trials:
            for question in collect_questions(trial.history).values():
                reply = replies.get(question.key)
                # Without a reply it is asked again, since the judge may be up by now.
                if reply is None or (reply.error and not reply.reply):
                    reply = replies[question.key] = judge.reply(question)
                    if trial.folder is not None:
                        append_json_line(trial.folder, OPINIONS, **vars(reply))
                trial.history.spoken = JudgeOpinions(opinions={question.key: reply})
                trial.opinion = reply
            yield trial
