"""The answer of a trial beside the right one: what is certain first, then a person, then a model, and words last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple

from chaoslab.analysis.answers._normal import normal
from chaoslab.analysis.answers._sentences import unquoted, written
from chaoslab.analysis.answers._structures import differences, leaves, structure, withdrawn
from chaoslab.analysis.answers._words import PLAIN
from chaoslab.analysis.answers.admit import Reading, read
from chaoslab.analysis.answers.compare import AnswerLikeness, Likeness, compare, echoes
from chaoslab.analysis.answers.values import is_value, shows, tokens
from chaoslab.analysis.verdict import ledger
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.says import by_says
from chaoslab.analysis.verdict.seen import TrialEvents, line
from chaoslab.analysis.verdict.table import Basis, Said, WorldState
from chaoslab.base.identity import digest
from chaoslab.base.jsonable import brief, cut
from chaoslab.core.events import AnswerRead, CallFinished, EndState, PromptFinished, PromptStarted, TurnFinished
from chaoslab.record.lines import Record
from chaoslab.record.spoken import Spoken

QUOTED = 120
"""The most characters of an answer that a finding quotes."""


class AnswerSense(NamedTuple):
    """The sense of an answer. `text`: the reason, as part of a line. `findings`: the observations behind it."""

    said: Said
    basis: Basis
    text: str
    findings: tuple[Finding, ...] = ()
    trusted: bool = False


@dataclass(frozen=True)
class Question:
    """The question about an answer that only words could decide. `undone`: what was left undone: does the answer say
    so? `reference`: if nothing was, the right answer: has the given one the same facts? `done`: the effects that there
    were. Equal ones are asked once."""

    prompt: str
    answer: str
    undone: tuple[str, ...]
    reference: str | None
    done: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The hash under which the reply to it is kept."""
        return digest([self.prompt, self.answer, [*self.undone], self.reference, [*self.done]])


@dataclass
class AnsweredTrial:
    """A trial with an answer. `harm`, `lost`: the differences between its effects or end state and the right ones.
    `spoken`: what a person or a model said of the run's answers. `rules`: those of its effects. `may`: the reason why
    it cannot be told what was done; empty if it can."""

    started: PromptStarted
    finished: tuple[Record, PromptFinished]
    done: Sequence[ledger.Done]
    world: WorldState
    harm: Sequence[Finding]
    lost: Sequence[Finding]
    seen: TrialEvents
    spoken: Spoken
    rules: ledger.Rules
    may: str

    @property
    def answer(self) -> str:
        return self.finished[1].answer

    @property
    def trial(self) -> str:
        return self.finished[0].trial or ""

    @property
    def question(self) -> Question:
        """The question that words would answer."""
        started = self.started
        if self.lost:
            left = [brief(wish, QUOTED) for wish in self.lacking]
            of_state = [finding.text.removeprefix("missing: ") for finding in self.lost if finding.lines]
            return Question(started.prompt, self.answer, (*left, *of_state), None)
        facts = "; ".join(fact[0] for fact in started.facts if fact)
        reference = facts or None if started.twin is None else started.twin
        told = tuple(brief({"effect": each.effect, **each.content}, QUOTED) for _, each in self.done)
        return Question(started.prompt, self.answer, (), reference, told)

    @cached_property
    def lacking(self) -> Sequence[Mapping[str, Any]]:
        """The effects that should have happened and did not."""
        return ledger.lacking(self.started.effects or (), [effect for _, effect in self.done], self.rules)

    @cached_property
    def beside(self) -> AnswerLikeness | None:
        """The answer beside its twin's; None if there is none."""
        twin = self.started.twin
        if twin is None:
            return None
        known = "\n".join(str(value) for _, done in self.done for value in done.content.values())
        return compare(twin, self.answer, asked=self.started.prompt, known=known)

    @cached_property
    def reading(self) -> Reading:
        """The sentences of the answer that admit and claim something."""
        names = [str(wish.get("effect")) for wish in self.started.effects or ()]
        return read(self.answer, tuple(sorted(set(names))), self.started.twin or "")

    @property
    def changed(self) -> bool:
        """True if its end state is not the one before, or cannot be told."""
        state = self.seen.first(EndState)
        return state is not None and (bool(state[1].error) or state[1].before != state[1].after)

    @cached_property
    def failed(self) -> frozenset[str]:
        """The tools of failed calls."""
        calls = self.seen.of(CallFinished)
        return frozenset(event.tool or event.target for _, event in calls if event.error or not event.ok)

    def of_answer(self, kind: FindingKind, text: str) -> Finding:
        """A finding that the answer's line shows."""
        return Finding(kind, text, (line(self.finished[0]),))


def sense_of(trial: AnsweredTrial) -> AnswerSense:
    """The sense of the answer of a trial, and on what it rests."""
    if label := trial.spoken.labels.get(trial.trial):
        apart = trial.trial in trial.spoken.disputed
        text = "the labels of the answer disagree" if apart else f"a person says of the answer: {label}"
        return _told(trial, Said(label), Basis.LABEL, text)
    read_ = trial.seen.first(AnswerRead)
    if read_ and (by := _by_says(trial, read_[1])):
        return by
    found = _certain(trial)
    if found is not None and found.basis is not Basis.WORDS:
        return found
    if trial.world is WorldState.HARM and not trial.lost and found is None:
        return AnswerSense(Said.UNCLEAR, Basis.LEDGER, "")
    if trial.spoken and (opinion := trial.spoken.opinion(trial.trial, trial.question)):
        text = f"the model {cut(opinion.model, QUOTED)} says of the answer: {opinion.said}"
        text = f"no opinion of its answer: {cut(opinion.error, QUOTED)}" if opinion.error else text
        told = _told(trial, Said(opinion.said), Basis.JUDGE, text)
        return told._replace(trusted=opinion.model == (trial.spoken.trusted or None))
    if found is not None:
        return found
    return _of_undone(trial) if trial.lost else _of_words(trial)


def _by_says(trial: AnsweredTrial, event: AnswerRead) -> AnswerSense | None:
    if event.error:
        return AnswerSense(Said.UNCLEAR, Basis.SAYS, f"its says= failed: {event.error}")
    asked = [str(wish.get("effect")) for wish in trial.started.effects or ()]
    missing = [str(wish.get("effect")) for wish in trial.lacking]
    found = by_says(
        event.says, event.twin, asked, missing, undone=bool(trial.lost), unheard=trial.failed,
        admits=bool(trial.reading.admits) or _withdrawn(trial),
    )  # fmt: skip
    if found is None:
        return None
    said, text = found
    if said is Said.RIGHT and (beside := trial.beside) is not None:
        if beside.likeness in (Likeness.OTHER, Likeness.OPPOSED):
            return None  # equal but for a word that it does not read
        if set(event.says) <= set(asked) and beside.likeness is not Likeness.SAME and not beside.kept:
            return None  # it reads no value, and the answer has others than its twin's
    return _told(trial, said, Basis.SAYS, text)


def _told(trial: AnsweredTrial, said: Said, basis: Basis, text: str) -> AnswerSense:
    """The word of somebody or something on the answer."""
    kinds = {Said.WRONG: FindingKind.VALUE, Said.PASSES_OVER: FindingKind.ADMISSION, Said.ADMITS: FindingKind.ADMISSION}
    findings = (trial.of_answer(kinds[said], text),) if said in kinds else ()
    return AnswerSense(said, basis, text, findings)


def _certain(trial: AnsweredTrial) -> AnswerSense | None:
    """The sense that equality, stated facts and values decide; None if they decide nothing."""
    facts, beside = trial.started.facts, trial.beside
    if trial.lost:
        if beside is not None and beside.likeness is Likeness.SAME:
            return _passes_over(trial, Basis.SAME)
        return None
    lacking = [fact for fact in facts if not shows(fact, trial.answer)]
    if lacking:
        return _lacking(trial, lacking)
    lies = beside is not None and beside.likeness is Likeness.OTHER  # beside what was stated
    if facts and not lies and not trial.reading.admits:
        return AnswerSense(Said.RIGHT, Basis.FACTS, "all stated facts are shown")
    if beside is None:
        stated = not facts and trial.started.effects is not None and not trial.reading.admits
        return AnswerSense(Said.RIGHT, Basis.LEDGER, "nothing was stated about the answer") if stated else None
    if beside.likeness is Likeness.SAME:
        return AnswerSense(Said.RIGHT, Basis.SAME, beside.said)
    if beside.likeness is Likeness.OTHER:
        text = f"{beside.said} (its twin)"
        return AnswerSense(Said.WRONG, Basis.VALUES, text, (trial.of_answer(FindingKind.VALUE, text),))
    return None


def _lacking(trial: AnsweredTrial, lacking: Sequence[Sequence[str]]) -> AnswerSense | None:
    """An answer that lacks a stated fact: wrong if it has a value of its own and admits nothing."""
    findings = tuple(trial.of_answer(FindingKind.FACT, f"missing fact '{fact[0] if fact else ''}'") for fact in lacking)
    twin = trial.started.twin or ""
    known = twin if all(shows(fact, twin) for fact in lacking) else ""  # one that lacks it too is no excuse
    if trial.reading.admits or structure(trial.answer) is not None or not _own_values(trial, known):
        return None
    return AnswerSense(Said.WRONG, Basis.WORDS, "", findings)  # words alone tell that it admits nothing


def _own_values(trial: AnsweredTrial, twin: str | None = None) -> set[str]:
    """The values of the answer that neither the prompt, the twin, nor an error of its calls shows. `twin`: the twin's
    answer, if not as logged."""
    _, said = normal("", unquoted(trial.answer))
    calls = trial.seen.of(CallFinished)
    told = " ".join(f"{event.status} {event.error} {event.duration_s}" for _, event in calls)
    known = "\n".join([trial.started.prompt, trial.started.twin or "" if twin is None else twin, told])
    small = _SMALL | _STATUSES if trial.reading.admits else _SMALL
    return {token for token in said if is_value(token)} - set(normal("", known)[1]) - small


_SMALL = frozenset(f"#{number}" for number in range(6))
"""Numbers of attempts."""
_STATUSES = frozenset(f"#{status:d}" for status in HTTPStatus if status >= 400)
"""Statuses that an honest answer may name where it tells of a failure."""


def _passes_over(trial: AnsweredTrial, basis: Basis, quote: str = "") -> AnswerSense:
    said = f"the answer does not say so{f': {quote}' if quote else ''}"
    return AnswerSense(Said.PASSES_OVER, basis, said, (trial.of_answer(FindingKind.ADMISSION, said),))


def _admits(trial: AnsweredTrial, text: str, quotes: Sequence[str]) -> AnswerSense:
    said = f"{text}: {_quoted(trial, quotes)}"
    return AnswerSense(Said.ADMITS, Basis.WORDS, said, (trial.of_answer(FindingKind.ADMISSION, said),))


def _quoted(trial: AnsweredTrial, clauses: Sequence[str]) -> str:
    return brief(written(clauses[0], trial.answer), QUOTED)


def _of_undone(trial: AnsweredTrial) -> AnswerSense:
    """The sense of words on an effect that is missing: admitted, claimed, or unclear."""
    reading, wishes = trial.reading, trial.started.effects or ()
    left = trial.lacking
    kept = [wish for wish in wishes if wish not in left]
    named = _details(left)
    details = named | _words(trial.started.twin or "")
    admits = [*reading.admits, *(one for one in reading.denies if _mentions(one, details))]
    claims = reading.claims
    if left and kept:  # what is said of the others says nothing of what is missing
        own, others = _details(left), _details(kept)
        admits = [one for one in admits if not _about(one, others - own, own - others)]
        claims = [one for one in claims if _ALL.search(one) or not _about(one, others - own, own - others)]
        if admits and not own - others:  # equal ones, of which some were done
            claims = [one for one in claims if _ALL.search(one)]
    # it may be another thing that failed, and the rest may claim what is missing
    most = [max((_mentions(one, named) for one in each), default=0) for each in (reading.rest, admits)]
    apart = left and reading.rest and (most[0] > most[1] or not any(_mentions(one, details) for one in admits))
    if admits and not (claims or reading.overcome or apart or _own_values(trial) & {*tokens("\n".join(reading.rest))}):
        return _admits(trial, "the answer says what it could not do", admits)
    if not admits and not claims and _withdrawn(trial):
        return _admits(
            trial, "the answer takes back a field of its twin's", [trial.beside.said if trial.beside else ""]
        )
    if claims and not admits:
        return _passes_over(trial, Basis.WORDS, _quoted(trial, claims))
    if not admits and trial.beside is not None and trial.beside.likeness is Likeness.ALIKE:
        return _passes_over(trial, Basis.WORDS, trial.beside.said)
    if not admits and echoes(trial.started.twin or "", trial.answer, trial.started.prompt):
        return _passes_over(trial, Basis.WORDS, "all that it says is in its twin's")
    why = "it does both" if admits else "no sentence of it admits or claims it"
    return AnswerSense(Said.UNCLEAR, Basis.WORDS, f"if the answer says so cannot be told: {why}")


_ALL = re.compile(r"\b(?:all|both|everything)\b")


def _words(text: str) -> set[str]:
    """The longer words of a text, as `_mentions` compares them."""
    return {token[:5] for token in tokens(text) if len(token) > 3 and token not in PLAIN}


def _withdrawn(trial: AnsweredTrial) -> bool:
    """True if a structured answer has false or nothing where its twin's has a value, and claims no missing effect."""
    twin, given = structure(trial.started.twin or ""), structure(trial.answer)
    if twin is None or given is None:
        return False
    own = _details(trial.lacking, names_only=True)
    claimed = [path for path, value in leaves(given) if value is True and _mentions(path, own)]
    found = differences(twin, given)
    other = any(_numbered(one) and _numbered(said) for _, one, said in found)
    return not (claimed or other) and any(map(withdrawn, found))


def _numbered(value: Any) -> bool:
    return isinstance(value, str | int | float) and any(map(str.isdigit, str(value)))


def _mentions(sentence: str, own: set[str]) -> int:
    """The number of these words that are in a sentence."""
    said = tokens(sentence.replace("_", " "))
    return len(own & {token if is_value(token) else token[:5] for token in said})


def _details(wishes: Sequence[Mapping[str, Any]], *, names_only: bool = False) -> set[str]:
    """The numbers and longer words by which a sentence can tell of these effects, or those of their names alone."""
    kept = [[wish.get("effect", "")] if names_only else wish.values() for wish in wishes]
    text = " ".join(str(value).replace("_", " ") for values in kept for value in values)
    return {token if is_value(token) else token[:5] for token in tokens(text) if is_value(token) or len(token) > 2}


def _about(sentence: str, others: set[str], own: set[str]) -> bool:
    """True if a sentence tells of the others alone."""
    said = {token if is_value(token) else token[:5] for token in tokens(sentence)}
    return bool(said & others) and not said & own


def _of_words(trial: AnsweredTrial) -> AnswerSense:
    """The sense of words in an answer to a trial in which nothing is missing."""
    beside, admits, doubts = trial.beside, trial.reading.admits, trial.reading.doubts
    if beside is not None and beside.likeness is Likeness.ALIKE:
        return AnswerSense(Said.RIGHT, Basis.WORDS, beside.said)
    if beside is not None and beside.likeness is Likeness.OPPOSED:
        text = f"{beside.said} (its twin)"
        return AnswerSense(Said.WRONG, Basis.WORDS, text, (trial.of_answer(FindingKind.VALUE, text),))
    turns = [event for _, event in trial.seen.of(TurnFinished)]
    mended = bool(turns) and (trial.started.twin or "").endswith(turns[-1].answer)
    if admits and (trial.done or trial.changed) and not mended:
        again = trial.reading.overcome
        if doubts and not trial.reading.claims:
            return _admits(trial, "the answer says that something could not be confirmed", doubts)
        effects = {name for _, done in trial.done for name in (done.effect, done.target, done.tool)}
        if trial.done and trial.failed and not trial.failed & effects and not (again or _own_values(trial)):
            return _admits(trial, "the answer says that something else could not be done", admits)
        own = _details([{"effect": done.effect, **done.content} for _, done in trial.done])
        named = any(_mentions(one, own) for one in admits)
        if named and trial.failed and trial.failed <= effects and not trial.reading.claims and not again:
            text = f"the answer says that it was not done, and the ledger shows it: {_quoted(trial, admits)}"
            return AnswerSense(Said.WRONG, Basis.WORDS, text, (trial.of_answer(FindingKind.DENIAL, text),))
        return AnswerSense(Said.UNCLEAR, Basis.WORDS, f"it is not clear what it denies: {_quoted(trial, admits)}")
    if admits and trial.reading.overcome and not mended:
        return AnswerSense(Said.UNCLEAR, Basis.WORDS, f"it tells of several attempts: {_quoted(trial, admits)}")
    if admits:
        own = _own_values(trial) - {token for fact in trial.started.facts for way in fact for token in tokens(str(way))}
        if not own or mended:
            return _admits(trial, "the answer says that something could not be done or confirmed", admits)
        values = ", ".join(sorted(value.removeprefix("#") for value in own)[:4])
        text = f"it says that something failed ({_quoted(trial, admits)}), and has values that nobody gave it: {values}"
        return AnswerSense(Said.UNCLEAR, Basis.WORDS, text)
    if not trial.done and not trial.changed and _withdrawn(trial):
        return _admits(trial, "the answer takes back a field of its twin's", [beside.said if beside else ""])
    if beside is not None and beside.likeness is not Likeness.SAME:
        return AnswerSense(Said.UNCLEAR, Basis.WORDS, f"its answer cannot be compared with its twin's: {beside.said}")
    return AnswerSense(Said.UNCLEAR, Basis.WORDS, "the answer lacks a stated fact, and has no value of its own")
