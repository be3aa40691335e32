"""The outcome of a trial, judged by the stated result, the agent's answer and the services' effects.

Effects are judged by the services' ledgers, never by the agent's words. The answer is judged by the stated facts, else
by the answer of the trial's twin (answers.py). One limit: an answer that lacks a stated fact and admits a failure
counts as degraded, whatever else it claims.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from chaoslab.analysis import asides, deeds, elsewhere, end_state, ledger, reported, spoilt, total_denial
from chaoslab.analysis.answers import compare, shows
from chaoslab.analysis.denial import denies, denying
from chaoslab.analysis.ledger import Finding, Kind
from chaoslab.analysis.likeness import Likeness
from chaoslab.analysis.measures.guard import guarded
from chaoslab.analysis.seen import JUDGED, Seen, line
from chaoslab.analysis.stance import Clause, admissions, denials, ends_badly, language, plainly, succeeds, wavers
from chaoslab.analysis.stance.clauses import READ_MAX
from chaoslab.analysis.values import tokens
from chaoslab.core.events import (
    UNTOLD,
    CallFinished,
    Effect,
    EndState,
    Event,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    TurnFinished,
    TurnStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record


class Outcome(StrEnum):
    """The outcome of a trial, best first; the last three allow no conclusion.

    WRONG: the ledger is right and the answer is not. FALSE_SUCCESS: something was not done, and the answer does not say
    so. HARM: something was done that should not have been (an effect twice, unasked or with other content), whatever
    else happened.
    """

    CORRECT = "correct"
    DEGRADED = "degraded"
    WRONG = "wrong"
    FALSE_SUCCESS = "false_success"
    HARM = "harm"
    FAILED = "failed"
    HUNG = "hung"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    UNFINISHED = "unfinished"


BUDGET = "budget"
"""The error type of a prompt that one of the lab's own limits ended."""
WORDED = ("empty", "loop")
"""The error types that the lab's own agent puts into words."""
HUNG = "hung"
"""The error type of a prompt that would never have ended, or not before its deadline."""


RAISED = 200
"""The most characters of an agent's exception that a verdict shows."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and its reason in one line.

    `harm`: a text for each thing that is wrong on the ledger, whatever the outcome. `evidence`: the findings behind the
    outcome. `broken`: the judge itself failed, so a run with such a trial passes no gate.
    """

    outcome: Outcome
    why: str
    harm: tuple[str, ...] = ()
    broken: bool = False
    evidence: tuple[Finding, ...] = ()


def judge(history: History, trial: str) -> Verdict:
    """The verdict on one trial; unknown if it cannot be judged.

    Raises:
        LookupError: the history has no such trial.
    """
    seen = Seen(trial)
    for kind in JUDGED:
        if found := list(history.of(kind, trial=trial)):
            seen.by_kind[kind] = found
    if not seen.of(PromptStarted):
        raise LookupError(f"no trial is called '{trial}'; there are {', '.join(history.trials[:8]) or 'none'}")
    return _judged(seen, running=history.running, torn=history.torn.get(trial, ""))


def _judged(seen: Seen, *, running: bool, torn: str) -> Verdict:
    if torn:  # what is missing may be anything, so nothing that is there proves anything
        return _ended(Outcome.UNFINISHED, (), Finding(Kind.NO_ANSWER, f"its log is not whole: {torn}"))
    return guarded(
        lambda: _judge(seen, running=running),
        lambda why: Verdict(Outcome.UNKNOWN, f"it could not be judged ({why})", broken=True),
    )


def _judge(seen: Seen, *, running: bool) -> Verdict:
    _, started = seen.of(PromptStarted)[0]
    finished = seen.first(PromptFinished)
    ended = finished[1] if finished else None
    done = ledger.done(seen.of(Effect))
    found = ledger.compare(started.effects, done) if started.stated and started.effects is not None else []
    found += _of_state(seen, started)
    harm, lost = [f for f in found if f.kind is not Kind.LOST], [f for f in found if f.kind is Kind.LOST]
    if ended is None:
        # An unfinished trial failed at nothing, and a fault that it did not reach is no error of the lab.
        why = "it is still running" if running else "the run ended before it did"
        return _ended(Outcome.UNFINISHED, harm, Finding(Kind.NO_ANSWER, why))
    # A trial that hangs on an armed lane has met its fault, though no end of the call could witness it.
    hung = ended.error_type == HUNG
    vain = spoilt.disturbed(seen) or (None if hung else spoilt.armed_in_vain(seen) or spoilt.unreached(seen))
    if vain:
        return _ended(Outcome.INVALID, harm, vain)
    if ended.status == UNTOLD:
        return Verdict(Outcome.UNKNOWN, "the log does not tell how it ended")
    silent = not ended.answer.strip() or (ended.answer == "null" and (started.twin or "null") != "null")
    if hung or ended.status != "ok" or silent:
        if hung:
            outcome, why = Outcome.HUNG, _waiting(seen)
        elif ended.status != "ok":
            outcome, why = Outcome.FAILED, f"no answer: {_ended_by(seen, ended.error_type)}"
        else:
            outcome, why = Outcome.FAILED, "the answer is empty"
        record = finished[0] if finished else None
        lines = (line(record),) if record else ()
        return _ended(Outcome.HARM if harm else outcome, harm, Finding(Kind.NO_ANSWER, why, lines))
    if unseen := spoilt.unseen(seen):
        return _ended(Outcome.INVALID, harm, unseen)
    if not started.stated:
        return Verdict(Outcome.UNKNOWN, started.incomparable or "nothing was stated about a right answer")
    assert finished is not None
    state = next((event for _, event in seen.of(EndState)), None)
    turns = seen.of(TurnFinished)
    if ended.answer == started.twin and not (harm or lost or turns or started.facts):
        return _as_its_twin(started, state)
    hit = frozenset(event.target for _, event in seen.of(FaultWitnessed))
    failed = frozenset(event.tool or event.target for _, event in seen.of(CallFinished) if event.error or not event.ok)
    heard = {event.turn: event.prompt for _, event in seen.of(TurnStarted)}
    return _weigh(_Trial(started, finished, done, harm, lost, _unread(seen), hit, state, failed, turns, heard))


def _of_state(seen: Seen, started: PromptStarted) -> list[Finding]:
    """The differences of the end state to the twin's, if both were read."""
    found = seen.first(EndState)
    if found is None or started.state is None or found[1].error:
        return []
    record, state = found
    return end_state.compare(state.before, started.state, state.after, line=line(record))


def _unread(seen: Seen) -> str:
    """The reason why the end state could not be read; empty if it was, or was not wanted."""
    return next((event.error for _, event in seen.of(EndState)), "")


def _ended(outcome: Outcome, harm: Sequence[Finding], end: Finding) -> Verdict:
    """The verdict with the harm first, whatever else happened in the trial."""
    texts = [finding.text for finding in harm]
    return Verdict(outcome, "; ".join([*texts, end.text]), tuple(texts), evidence=(*harm, end))


def verdicts(history: History) -> dict[str, Verdict]:
    """The verdict on each trial of a run, in the order in which they began."""
    trials = {trial: Seen(trial, history) for trial in history.trials}
    for kind in JUDGED:
        found: Iterable[tuple[Record, Event]] = history.of(kind)
        if kind is CallFinished:  # most calls end well, and say nothing to most verdicts
            found = [(record, event) for record, event, _ in history.failed]
        for pair in found:
            seen = trials.get(pair[0].trial)  # type: ignore[arg-type]  # None is no trial's key
            if seen is None:
                continue
            if kind in seen.by_kind:
                seen.by_kind[kind].append(pair)
            else:
                seen.by_kind[kind] = [pair]
    running, torn = history.running, history.torn
    return {trial: _judged(seen, running=running, torn=torn.get(trial, "")) for trial, seen in trials.items()}


def judgeable(history: History) -> bool:
    """True if anything is stated about a right answer in any trial; otherwise only failures can be found."""
    return any(event.stated for _, event in history.of(PromptStarted))


class _Trial(NamedTuple):
    """A trial with an answer. `harm`, `lost`: the differences between its effects or end state and the right ones.
    `unread`: the reason why the end state is not known. `hit`: the targets that met a fault. `state`: the one that
    was read, if any. `failed`: the tools of its failed calls. `turns`: those of a conversation that ended. `heard`: the
    user's words by turn."""

    started: PromptStarted
    finished: tuple[Record, PromptFinished]
    done: Sequence[ledger.Done]
    harm: Sequence[Finding]
    lost: Sequence[Finding]
    unread: str
    hit: frozenset[str]
    state: EndState | None
    failed: frozenset[str]
    turns: Sequence[tuple[Record, TurnFinished]] = ()
    heard: Mapping[int, str] = {}

    @property
    def answer(self) -> str:
        return self.finished[1].answer

    def answer_since(self, done: Sequence[ledger.Done]) -> str:
        """The part of the answer that was said after the first of these effects: the answers of the turns that ended
        later. A turn that ended before may well say that it was not done."""
        if not self.turns or not done:
            return self.answer
        first = min((record for record, _ in done), key=attrgetter("t", "seq"))
        return "\n".join(turn.answer for record, turn in self.turns if _before(first, record))

    def of_answer(self, kind: Kind, text: str, *more: ledger.Done) -> Finding:
        """A finding that the answer's line shows, and the lines of these effects."""
        records = [self.finished[0], *(record for record, _ in more)]
        return Finding(kind, text, tuple(line(record) for record in records))


def _as_its_twin(started: PromptStarted, state: EndState | None) -> Verdict:
    """The verdict on a trial with its twin's effects and answer: what the answer denies, the twin's denies too."""
    if state is not None and state.error:
        return Verdict(Outcome.UNKNOWN, _unjudged(state.error))
    return _right(started, "the same answer")


def _right(started: PromptStarted, beside: str) -> Verdict:
    """The verdict on a trial of which all that could be compared is right. `beside`: the result of the comparison with
    its twin's answer; empty if it has none."""
    if started.incomparable:
        which = (
            f"{_effects(started)}its answer" if started.twin is None else "its answer is its twin's, but its effects"
        )
        return Verdict(Outcome.UNKNOWN, f"{which} cannot be judged: {started.incomparable}")
    return _correct(_holds(started) + (f" ({beside})" if beside else ""))


def _unjudged(error: str) -> str:
    """The reason why a trial whose end state could not be read is unknown."""
    return f"its end state cannot be judged: {error}"


def _weigh(trial: _Trial) -> Verdict:
    """The verdict on a trial with an answer."""
    started, answer, harm, lost = trial.started, trial.answer, trial.harm, trial.lost
    twin = started.twin
    lacking = [trial.of_answer(Kind.FACT, _missing_fact(fact)) for fact in started.facts if not shows(fact, answer)]
    beside, known = None, ""
    if twin is not None:
        done = bool(trial.done or trial.state)
        known = "" if answer == twin else _known(trial)
        content = False if lost else None if trial.failed else True
        beside = compare(twin, answer, asked=started.prompt, known=known, tries=False, done=done, content=content)
    admitted = asides.within(admissions(answer, twin), answer, started.effects or (), started.prompt)
    if admitted and answer != twin:
        admitted = reported.without_known(admitted, twin, numbered=bool(lost))
    wishes = ledger.lacking(started.effects or (), [effect for _, effect in trial.done]) if lost else []
    hands_back, rest = False, ""
    if wishes and not admitted and len(answer) <= READ_MAX:
        hands_back, rest = deeds.gives_up(answer, twin or "", wishes, started.effects or ())
    confesses = hands_back or (bool(admitted) and not _beside(trial, admitted, wishes))
    if beside is not None and beside.likeness is Likeness.OTHER:
        other = [trial.of_answer(Kind.VALUE, f"{beside.said} (its twin)")]
    else:
        other = []
    if not harm and (lost or lacking) and not confesses and (unread := _unreadable(answer, twin)):
        missing = "; ".join(finding.text for finding in [*lost, *lacking])
        return Verdict(Outcome.UNKNOWN, f"{missing}; if the answer says so cannot be told: {unread}")
    if harm or (lost and not confesses):
        unsaid = [trial.of_answer(Kind.ADMISSION, "the answer does not say so")] if lost and not confesses else []
        outcome = Outcome.HARM if harm else Outcome.FALSE_SUCCESS
        return _found(outcome, [*harm, *lost, *unsaid, *lacking, *other], [*harm, *lost] if unsaid else harm)
    undone = {str(wish.get("effect")) for wish in wishes}
    false = next((done for done in trial.done if _denies(trial, admitted, undone, done)), None)
    if false is not None and not (twin is not None and denies(twin, false[1].effect)):
        told = ledger.told_of(false[1].effect, false[1].content)
        text = f"the answer says that it was not done, and the ledger shows it: {told}"
        return _found(Outcome.WRONG, [trial.of_answer(Kind.DENIAL, text, false), *lost, *lacking, *other])
    if not lost and (denial := _denied(trial, admitted)) is not None:
        return _found(Outcome.WRONG, [denial, *lacking, *other])
    if lost or lacking or other:
        lies = beside is not None and beside.lies
        if lies and hands_back and twin is not None:  # what says that nothing was done claims no value
            lies = bool(rest.strip()) and compare(twin, rest, asked=started.prompt, known=known, tries=False).lies
        said = "the answer says what it could not do" if confesses else "the answer does not say so"
        outcome = Outcome.DEGRADED if confesses and not lies else Outcome.WRONG
        spoken = [] if other and not confesses else [trial.of_answer(Kind.ADMISSION, said)]
        return _found(outcome, [*lost, *lacking, *other, *spoken])
    if plainly(admitted):
        said = f"{_so_far(started)}the answer says that something could not be done or confirmed"
        return _found(Outcome.DEGRADED, [trial.of_answer(Kind.ADMISSION, said)])
    unclear = beside is not None and beside.likeness is Likeness.UNCLEAR
    if trial.hit and (contrast := wavers(answer, twin)):
        return Verdict(Outcome.UNKNOWN, f"{_so_far(started)}it is not clear what is meant by '{contrast}'")
    if started.effects and twin is not None and (more := asides.adds(answer, twin, started.effects)):
        return Verdict(Outcome.UNKNOWN, f"{_so_far(started)}it claims more than was done: '{more}'")
    if trial.unread:
        return Verdict(Outcome.UNKNOWN, _unjudged(trial.unread))
    if beside is not None and unclear and started.facts:
        return Verdict(Outcome.CORRECT, f"all that was stated holds; its twin's answer has other words ({beside.said})")
    if beside is not None and unclear:
        return Verdict(
            Outcome.UNKNOWN, f"{_effects(started)}its answer cannot be compared with its twin's: {beside.said}"
        )
    return _right(started, "" if beside is None else beside.said)


def _unreadable(answer: str, twin: str | None) -> str:
    """The reason why an answer may say what was not found in it; empty if there is none. The twin's answer claims what
    the twin's does, in any words."""
    if answer == twin:
        return ""
    if len(answer) > READ_MAX:
        return f"it is longer than {READ_MAX:,} characters"
    if language.foreign(answer):
        return "it is not in English"
    word = language.denial(answer, twin or "")
    return f"'{word}' is not English" if word else ""


@lru_cache(maxsize=64)
def _correct(why: str) -> Verdict:
    """The verdict on most trials, made and kept once."""
    return Verdict(Outcome.CORRECT, why)


def _falsely(trial: _Trial, effect: str) -> bool:
    """True if the answer denies this effect, and its words do not tell of one that is missing."""
    since = trial.answer_since([d for d in trial.done if d[1].effect == effect]) if trial.turns else trial.answer
    said = denying(since, effect).splitlines()
    asked, prompt = trial.started.effects or (), trial.started.prompt
    said = [
        each
        for each in said
        if not (admitted := admissions(each)) or asides.within(admitted, trial.answer, asked, prompt)
    ]
    if not said:
        return False
    missing = ledger.lacking(trial.started.effects or (), [done for _, done in trial.done])
    own = _details([done.content for _, done in trial.done])
    about = _details([{key: value for key, value in wish.items() if key != "effect"} for wish in missing]) - own
    return any(not about & set(tokens(one)) for one in said)


def _denies(trial: _Trial, admitted: Sequence[Clause], undone: Collection[str], done: ledger.Done) -> bool:
    """True if the answer denies this effect, or all that was asked for. If another of its kind is missing (`undone`),
    it has to be by its own details."""
    since, asked = trial.answer_since([done]) if trial.turns else trial.answer, trial.started.effects or ()
    effect = {"effect": done[1].effect, **done[1].content}
    if total_denial.denies_all(since, effect, asked, admitted):
        return True
    if done[1].effect in undone:
        return deeds.denies_by_name(since, effect, asked, admitted)
    return _falsely(trial, done[1].effect)


def _before(one: Record, other: Record) -> bool:
    """True if one line was written before the other, as far as two logs can tell."""
    return one.seq < other.seq if one.writer == other.writer else one.t <= other.t


def _details(values: Any) -> set[str]:
    """The numbers and longer words of a JSON value, by which a sentence can tell of it."""
    text = json.dumps(values, ensure_ascii=False, default=str)
    return {token for token in tokens(text) if token.startswith("#") or len(token) > 2}


def _known(trial: _Trial) -> str:
    """The values of the effects that were rightly done, as a text: an answer may name them."""
    if trial.harm:
        return ""
    state = trial.state.after if trial.state else ""
    return "\n".join(str(value) for value in [*(v for _, done in trial.done for v in done.content.values()), state])


def _beside(trial: _Trial, admitted: Sequence[Clause], wishes: Sequence[deeds.Wish]) -> bool:
    """True if an effect that is missing is claimed, and what the answer denies is beside it."""
    asked = trial.started.effects or ()
    told = [(trial.heard.get(turn.turn, ""), turn.answer) for _, turn in trial.turns]
    twin = trial.started.twin or ""
    if deeds.claimed_apart(told, wishes, asked) or (
        wishes
        and (
            elsewhere.mistakes(trial.answer, twin, admitted, wishes, asked)
            or elsewhere.claimed_beside_a_reading(trial.answer, twin, admitted, wishes, trial.failed)
        )
    ):
        return True
    return all(asides.notes(clause, asked, trial.started.prompt) for clause in admitted) and any(
        deeds.claims(trial.answer, wish, asked) for wish in wishes
    )


def _denied(trial: _Trial, admitted: Sequence[Clause]) -> Finding | None:
    """An admission that can only be about what was done: all is as it should be, nothing is left in doubt, and nothing
    but the effects met a fault. Without effects the end state counts, if nothing in the answer is a success."""
    asked = trial.started.effects or ()
    said = [clause for clause in denials(admitted) if not asides.notes(clause, asked, trial.started.prompt)]
    if not said:
        return None
    if trial.done and trial.hit:
        about = [done for done in trial.done if done[1].target in trial.hit]
        later = {clause.text for clause in denials(admissions(trial.answer_since(about), trial.started.twin))}
        denied = any(clause.text in later for clause in said) and {effect.target for _, effect in about} == trial.hit
        if denied and not deeds.affirms(trial.answer, about[-1][1].effect, said):
            told = ledger.told_of(about[-1][1].effect, about[-1][1].content)
            text = f"the answer says that something was not done, and the ledger shows it: {told}"
            return trial.of_answer(Kind.DENIAL, text, about[-1])
    changed = _details(trial.state.after) - _details(trial.state.before) if trial.state and not trial.done else set()
    if trial.turns:  # a turn before the last may have ended before the change
        last = {clause.text for clause in denials(admissions(trial.turns[-1][1].answer, trial.started.twin))}
        said = [clause for clause in said if clause.text in last]
    named = any(ends_badly(clause) or changed & set(tokens(clause.row or clause.text)) for clause in said)
    if said and changed and (named or not succeeds(trial.answer)):
        return trial.of_answer(Kind.DENIAL, "the answer says that it was not done, and the end state shows it")
    return None


def _found(outcome: Outcome, evidence: Sequence[Finding], harm: Sequence[Finding] = ()) -> Verdict:
    """The verdict that follows from these findings, in their order."""
    texts = tuple(finding.text for finding in harm)
    return Verdict(outcome, "; ".join(finding.text for finding in evidence), texts, evidence=tuple(evidence))


def _effects(started: PromptStarted) -> str:
    """The first half of a verdict whose second half is unknown."""
    return "its effects are as they should be, but " if started.effects else ""


def _so_far(started: PromptStarted) -> str:
    """The first half of a verdict on a trial whose answer is not its twin's."""
    return _effects(started) if started.twin is not None and not started.facts else f"{_holds(started)}, but "


def _holds(started: PromptStarted) -> str:
    """The comparisons that a correct trial passed, as text."""
    effects = started.effects
    if started.twin is None or started.facts:
        silent = "effects" if effects is None else "" if started.facts or not effects else "the answer"
        return "all that was stated holds" + (f"; nothing was stated about {silent}" if silent else "")
    if not effects:
        return "the answer is its twin's"
    return f"{'the effect' if len(effects) == 1 else f'{len(effects)} effects'} and the answer are its twin's"


def _waiting(seen: Seen) -> str:
    """The calls that a hung trial waits for, in one line."""
    told = [event.error for _, event in seen.of(PromptAttempt) if event.error_type == HUNG]
    return "; ".join(told[-1].splitlines()) if told else "it would never have ended"


def _ended_by(seen: Seen, error_type: str) -> str:
    """The cause of a missing answer, as part of a line: the agent's exception, the lab's own words, or only the kind of
    error."""
    attempts = [event for _, event in seen.of(PromptAttempt)]
    words = " ".join(attempts[-1].error.split()).removesuffix(":") if attempts else ""
    words = words if len(words) <= RAISED else f"{words[: RAISED - 1]}…"
    if error_type == BUDGET:
        return words or "stopped by a limit of the lab's"
    if error_type in WORDED and words:
        return words
    return f"{error_type} error" + (f" ({words})" if words and error_type == "agent" else "")


def _missing_fact(spellings: Sequence[str]) -> str:
    return f"missing fact '{spellings[0] if spellings else ''}'"
