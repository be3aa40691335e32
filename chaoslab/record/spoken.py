"""The replies of a judge on the answers of a run, as lines of JSON in `opinions.jsonl` beside its log, by the hash of
the question. A line that cannot be read is a note."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

from chaoslab.base import files
from chaoslab.base.shapes import Shape, Within
from chaoslab.record.lines import iterate_lines

OPINIONS = "opinions.jsonl"
UNCLEAR = "unclear"
SAID = ("right", "wrong", "admits it", "passes over it", UNCLEAR)
"""The sayings of a judge on an answer: names of `Said`."""


class AnswerQuestion(Protocol):
    """A question about an answer."""

    @property
    def key(self) -> str: ...


@dataclass(frozen=True)
class Opinion:
    """The reply to a question. `said`: the name of what the answer says, such as "admits it". `model`: who replied.
    `error`: the reason why there is no reply; then it says "unclear"."""

    said: Annotated[str, SAID.__contains__]
    model: str
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgeReply(Opinion):
    """An opinion as it is kept. `key`: the hash of the question. `messages`, `reply`: what the model was given, and its
    words. `tokens_in`, `tokens_out`, `cost_usd`: what it cost; None if that is unknown."""

    key: str
    messages: list[Any] = field(default_factory=list)
    reply: str = ""
    tokens_in: Annotated[int | None, Within(0, 1e15)] = None
    tokens_out: Annotated[int | None, Within(0, 1e15)] = None
    cost_usd: Annotated[float | None, Within(0, 1e15)] = None


@dataclass(frozen=True)
class JudgeOpinions:
    """The replies of a judge by the hash of their question."""

    opinions: Mapping[str, Opinion] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.opinions)

    def find_opinion(self, trial: str, question: AnswerQuestion) -> Opinion | None:  # noqa: ARG002 - who collects questions wants it
        """The reply to the question about a trial's answer; None if there is none."""
        return self.opinions.get(question.key)


SILENT = JudgeOpinions()
"""No reply is kept."""


@dataclass(frozen=True)
class KeptJudgeReplies:
    """The content of the file, in the order of its lines. `cut`: the numbers of the lines that could not be read, by
    file name. `notes`: a line on a file that could not be read at all."""

    replies: Mapping[str, JudgeReply] = field(default_factory=dict)
    cut: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> KeptJudgeReplies:
        """All that was kept in a run's folder. It reads what can be read, and raises nothing."""
        replies: dict[str, JudgeReply] = {}
        cut: dict[str, Sequence[int]] = {}
        notes: tuple[str, ...] = ()
        try:
            with files.translate_errors():
                if numbers := _read_judge_replies(folder / OPINIONS, replies):
                    cut[OPINIONS] = numbers
        except files.Unreadable as error:
            notes = () if error.missing else (f"{OPINIONS} {error}",)
        return cls(replies, cut, notes)

    @property
    def judge_opinions(self) -> JudgeOpinions:
        """The replies that the verdicts go by."""
        return JudgeOpinions(self.replies) if self.replies else SILENT


def append_json_line(folder: Path, name: str, **fields: Any) -> None:
    """Appends a line to a file of a run's folder, on a line of its own even if the last one was cut. Raises OSError: it
    cannot be written."""
    stated = {key: value for key, value in fields.items() if value is not None and value is not False and value != ""}
    with (folder / name).open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        cut = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * cut + json.dumps(stated).encode() + b"\n")


_REPLY = Shape.build(JudgeReply)


def _read_judge_replies(path: Path, replies: dict[str, JudgeReply]) -> list[int]:
    """Adds the replies of a file, and returns the numbers of the lines that hold none. Raises OSError: the file cannot
    be read."""
    cut = []
    for number, data in enumerate(iterate_lines(path), 1):
        try:
            if data.strip():
                fields = json.loads(data)
                reply: JudgeReply = _REPLY.make_instance(fields if isinstance(fields, dict) else {})
                replies[reply.key] = reply
        except (ValueError, RecursionError):
            cut.append(number)
    return cut
