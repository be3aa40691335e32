"""The words of people and models on the answers of a run, as lines of JSON beside its log: `labels.jsonl` by trial,
`opinions.jsonl` by the hash of the question. A line that cannot be read is a note, and so are labels of another run and
labels that disagree."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

from chaoslab.base import files
from chaoslab.base.identity import digest
from chaoslab.base.jsonable import line, listed
from chaoslab.base.shapes import Shape, Within
from chaoslab.record.lines import lines_of

LABELS, OPINIONS = "labels.jsonl", "opinions.jsonl"
UNCLEAR = "unclear"
SAID = ("right", "wrong", "admits it", "passes over it", UNCLEAR)
"""The sayings of a person or a model on an answer: names of `Said`."""
NAMED = 2
"""The most trials that a note names; it counts the others."""
TEXT = 80
"""The most characters of a name that is shown."""


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
class Label:
    """A person's word on the answer of a trial. `settles`: it stands in place of all labels before. `run`, `by`,
    `at`: the run's name, the person, and the moment; empty if they are not told."""

    trial: str
    said: Annotated[str, SAID.__contains__]
    run: str = ""
    by: str = ""
    at: str = ""
    settles: bool = False


@dataclass(frozen=True)
class Trust:
    """A model's agreement with the labels. `agreed` of `labels`: those with the same outcome. `low`: the lower bound
    of that share, which has to be above `certain_above`. `given`: the hash of the labels that were there."""

    model: str
    certain_above: Annotated[float, Within(0, 1)]
    low: Annotated[float, Within(0, 1)]
    agreed: Annotated[int, Within(0, 1e15)]
    labels: Annotated[int, Within(0, 1e15)]
    given: str


@dataclass(frozen=True)
class Spoken:
    """Labels by trial, and replies by the hash of their question. `trusted`: the model that agreed with the labels as
    often as the user asked for; empty if none did. `disputed`: the trials whose labels disagree; their label is
    "unclear"."""

    labels: Mapping[str, str] = field(default_factory=dict)
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    trusted: str = ""
    disputed: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.opinions)

    def opinion(self, trial: str, question: AnswerQuestion) -> Opinion | None:  # noqa: ARG002 - who collects questions wants it
        """The reply to the question about a trial's answer; None if there is none."""
        return self.opinions.get(question.key)


SILENT = Spoken()
"""Nobody said anything."""


@dataclass(frozen=True)
class KeptReplies:
    """The content of both files, in the order of their lines. `cut`: the numbers of the lines that could not be read,
    by file name. `notes`: a line on each file that could not be read at all."""

    labels: Sequence[Label] = ()
    replies: Mapping[str, JudgeReply] = field(default_factory=dict)
    trust: Trust | None = None
    cut: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> KeptReplies:
        """All that was kept in a run's folder. It reads what can be read, and raises nothing."""
        labels: list[Label] = []
        replies: dict[str, JudgeReply] = {}
        trusts: list[Trust] = []

        def take(data: dict[str, Any]) -> None:
            if "certain_above" in data:
                trusts.append(_TRUST.made(data))
            else:
                reply: JudgeReply = _REPLY.made(data)
                replies[reply.key] = reply

        cut: dict[str, Sequence[int]] = {}
        notes = []
        for name, each in ((LABELS, lambda data: labels.append(_LABEL.made(data))), (OPINIONS, take)):
            try:
                with files.readable():
                    numbers = _taken(folder / name, each)
                if numbers:
                    cut[name] = numbers
            except files.Unreadable as error:
                notes += [] if error.missing else [f"{name} {error}"]
        return cls(labels, replies, trusts[-1] if trusts else None, cut, tuple(notes))

    def by_trial(self, run: str) -> dict[str, list[Label]]:
        """The labels of this run that stand, by trial."""
        found: dict[str, list[Label]] = {}
        for label in self.labels:
            if label.run in ("", run):
                found[label.trial] = [label] if label.settles else [*found.get(label.trial, ()), label]
        return found

    def given(self, run: str) -> str:
        """The hash of the labels of this run."""
        return digest({trial: sorted({each.said for each in labels}) for trial, labels in self.by_trial(run).items()})

    def spoken(self, run: str) -> Spoken:
        """All that the verdicts on this run go by."""
        if not self.labels and not self.replies:
            return SILENT
        labels = {trial: {each.said for each in found} for trial, found in self.by_trial(run).items()}
        trust = self.trust
        holds = trust is not None and trust.low > trust.certain_above and trust.given == self.given(run)
        return Spoken(
            {trial: next(iter(said)) if len(said) == 1 else UNCLEAR for trial, said in labels.items()},
            self.replies,
            trust.model if trust is not None and holds else "",
            frozenset(trial for trial, said in labels.items() if len(said) > 1),
        )

    def notes_on(self, run: str, trials: Collection[str]) -> tuple[str, ...]:
        """The notes for the user, given the trials of the run."""
        strange = {label.trial for label in self.labels if label.run not in ("", run) or label.trial not in trials}
        notes = list(self.notes)
        if strange:
            what = "a label is of another run" if len(strange) == 1 else f"{len(strange)} labels are of another run"
            notes.append(f"{LABELS}: {what} ({_trials(strange)})")
        apart = {
            trial: " and ".join(
                sorted({f"{each.said} by {line(each.by, TEXT)}" if each.by else each.said for each in labels})
            )
            for trial, labels in self.by_trial(run).items()
            if trial in trials and len({each.said for each in labels}) > 1
        }
        if apart:
            told = [f"{line(trial, TEXT)}: {apart[trial]}" for trial in sorted(apart)]
            notes.append(f"{LABELS}: labels disagree ({listed(told, NAMED, '; ')}): 'chaoslab label' settles it")
        return tuple(notes)


def keep(folder: Path, name: str, **fields: Any) -> None:
    """Appends a line to a file of a run's folder, on a line of its own even if the last one was cut. Raises OSError: it
    cannot be written."""
    told = {key: value for key, value in fields.items() if value is not None and value is not False and value != ""}
    with (folder / name).open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        cut = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * cut + json.dumps(told).encode() + b"\n")


_LABEL, _REPLY, _TRUST = Shape.of(Label), Shape.of(JudgeReply), Shape.of(Trust)


def _taken(path: Path, take: Callable[[dict[str, Any]], None]) -> list[int]:
    """Gives each line of a file that is a JSON object to `take`, and returns the numbers of the rest. Raises OSError:
    the file cannot be read."""
    cut = []
    for number, data in enumerate(lines_of(path), 1):
        try:
            if data.strip():
                found = json.loads(data)
                take(found if isinstance(found, dict) else {})
        except (ValueError, RecursionError):
            cut.append(number)
    return cut


def _trials(trials: Collection[str]) -> str:
    return listed([line(trial, TEXT) for trial in sorted(trials)], NAMED)
