"""The verdict on a trial: its world by ledger and end state, what its answer said, and the table of both.

Effects are judged by the services' ledgers, never by the agent's words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from chaoslab.analysis.verdict import _end_state, _spoilt, ledger
from chaoslab.analysis.verdict._deaths import tell_deaths
from chaoslab.analysis.verdict._repeated_request import find_repeated_requests
from chaoslab.analysis.verdict.answer import AnsweredTrial, AnswerSense, sense_of
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.seen import JUDGED, TrialEvents, line
from chaoslab.analysis.verdict.standing import Standing, stand_by_outcome
from chaoslab.analysis.verdict.table import TABLE, Basis, Outcome, Said, Verdict, WorldState
from chaoslab.base.alike import Span, moments
from chaoslab.core import events
from chaoslab.record.effects import find_distinct_effects
from chaoslab.record.history import History
from chaoslab.record.lines import Record

BUDGET = "budget"
"""The error type of a prompt that one of the lab's own limits ended."""
WORDED = ("empty", "loop")
"""The error types that the lab's own agent puts into words."""
HUNG = "hung"
"""The error type of a prompt that would never have ended, or not before its deadline."""
SLACK_S = 0.001
"""The clock of a world may move by less between a stamp and the line that tells of it."""
RAISED = 200
"""The most characters of an agent's exception that a verdict shows."""


def judge(history: History, trial: str) -> Verdict:
    """The verdict on one trial; unknown if it cannot be judged. Raises LookupError: the history has no such trial."""
    seen = TrialEvents(trial)
    kinds = history.kinds
    for kind in JUDGED:
        if kind in kinds and (found := list(history.of(kind, trial=trial))):
            seen.by_kind[kind] = found
    if not seen.of(events.PromptStarted) and trial not in history.torn:
        raise LookupError(f"no trial is called '{trial}'; there are {', '.join(history.trials[:8]) or 'none'}")
    return _judged(seen, history)


def verdicts(history: History) -> dict[str, Verdict]:
    """The verdict on each trial of a run, in the order in which they began."""
    scripted = any(event.said_by for _, event in history.of(events.CallFinished))
    trials = {trial: TrialEvents(trial, None if scripted else history) for trial in history.trials}
    for kind in JUDGED:
        found: Iterable[tuple[Record, events.Event]] = history.of(kind)
        if kind is events.CallFinished and not scripted:  # most calls end well, and say nothing to most verdicts
            found = [(record, event) for record, event, _ in history.failed]
        for pair in found:
            seen = trials.get(pair[0].trial)  # type: ignore[arg-type]  # None is no trial's key
            if seen is None:
                continue
            if kind in seen.by_kind:
                seen.by_kind[kind].append(pair)
            else:
                seen.by_kind[kind] = [pair]
    return {trial: _judged(seen, history) for trial, seen in trials.items()}


def _judged(seen: TrialEvents, history: History) -> Verdict:
    return guarded(
        lambda: tell_deaths(_judge_by_orders(seen, history), seen, history),
        lambda why: Verdict(Outcome.UNKNOWN, f"it could not be judged ({why})", broken=True),
    )


def _judge_by_orders(seen: TrialEvents, history: History) -> Verdict:
    """The verdict beside the twin, and, where that depends on the order of parallel calls, beside its result in each
    order: one that it is right beside counts, and if they disagree, nothing is known."""
    verdict, others = _judge(seen, history), seen.of(events.TwinReordered)
    if not others or stand_by_outcome(verdict.outcome) is Standing.WELL:
        return verdict
    depends = f"without faults its result depends on when {others[0][1].call} begins, beside other calls"
    record, started = seen.of(events.PromptStarted)[0]
    for _, other in others:
        exact = started.exact or not started.effects
        effects = other.effects if exact and started.effects is not None else started.effects
        twin = replace(
            started, twin=other.answer, effects=effects, state=other.state, exact=bool(other.effects) or None
        )
        beside = TrialEvents(seen.trial, seen.whole)
        beside.by_kind = {**seen.by_kind, events.PromptStarted: [(record, twin)]}
        found = _judge(beside, history)
        if stand_by_outcome(found.outcome) is Standing.WELL:
            return replace(found, why=f"{found.why}, in another order of its calls: {depends}")
        if found.outcome is not verdict.outcome or other.together:
            verdict = Verdict(Outcome.UNKNOWN, depends, world=WorldState.MAY)
    return verdict


def _judge(seen: TrialEvents, history: History) -> Verdict:
    if torn := history.torn.get(seen.trial):  # what is missing may be anything, so nothing here is a proof
        why = f"its log is not whole: {torn}"
        return _ended(Outcome.UNFINISHED, WorldState.MAY, (), (), Finding(FindingKind.NO_ANSWER, why))
    _, started = seen.of(events.PromptStarted)[0]
    finished = seen.first(events.PromptFinished)
    done = find_distinct_effects(seen.of(events.Effect))
    rules, found = ledger.Rules.of(started), list[Finding]()
    if started.stated and started.effects is not None:
        found = ledger.compare(started.effects, done, rules)
        if found and rules.exact:
            rules = replace(rules, spans=_spans(seen, started))
            found = ledger.compare(started.effects, done, rules)
    of_state = _of_state(seen, started)
    shuffled = [] if rules.ordered else [f for f in of_state if f.kind is FindingKind.ORDER]
    found += [f for f in of_state if f not in shuffled]
    if not _is_compared(seen, started):
        found += find_repeated_requests(seen, history, rules)
    harm, lost = [f for f in found if f.kind is not FindingKind.LOST], [f for f in found if f.kind is FindingKind.LOST]
    may = _unknown_end(started, seen, lost, shuffled)
    world = _world(started, harm, lost, may)
    if finished is None:
        # An unfinished trial failed at nothing, and a fault that it did not reach is no error of the lab.
        why = "it is still running" if history.running else "the run ended before it did"
        return _ended(Outcome.UNFINISHED, world, harm, lost, Finding(FindingKind.NO_ANSWER, why))
    if vain := _spoilt.disturbed(seen):
        return _ended(Outcome.INVALID, world, harm, lost, vain)
    ended = finished[1]
    # A trial that hangs on an armed lane has met its fault, though no end of the call could witness it.
    hung = ended.error_type == HUNG
    if vain := None if hung else _spoilt.armed_in_vain(seen) or _spoilt.unreached(seen):
        return _ended(Outcome.INVALID, world, harm, lost, vain)
    if ended.status == events.UNTOLD and not harm:
        return Verdict(Outcome.UNKNOWN, "the log does not tell how it ended", world=world)
    silent = not ended.answer.strip() or (ended.answer == "null" and (started.twin or "null") != "null")
    if hung or ended.status != "ok" or silent:
        outcome, why = Outcome.FAILED, "the answer is empty"
        if hung:
            outcome, why = Outcome.HUNG, _waiting(seen)
        elif ended.status != "ok":
            why = f"no answer: {_ended_by(seen, ended.error_type)}"
        return _ended(outcome, world, harm, lost, Finding(FindingKind.NO_ANSWER, why, (line(finished[0]),)))
    if unseen := _spoilt.unseen(seen):
        return _ended(Outcome.INVALID, world, harm, lost, unseen)
    if not started.stated and not harm:
        return Verdict(Outcome.UNKNOWN, started.incomparable or "nothing was stated about a right answer", world=world)
    # A script says the same whatever it is sent, so its answer shows nothing of the agent.
    if (unread := _unread_fault(seen, started)) and not harm:
        return Verdict(Outcome.UNKNOWN, unread, world=world)
    by_turn = any(turn.facts or turn.says for _, turn in seen.of(events.TurnFinished))
    if ended.answer == started.twin and not (harm or lost or started.facts or by_turn):
        return _check_ground(_as_its_twin(started.incomparable, world, len(started.effects or ()), may), seen)
    done = list(ledger.net(started.effects or (), done, rules))
    answered = AnsweredTrial(started, finished, done, world, harm, lost, seen, history.spoken, rules, may)
    return _check_reaction(_check_ground(_weighed(answered), seen), seen, started)


def _check_ground(verdict: Verdict, seen: TrialEvents) -> Verdict:
    """The verdict on an answer with its ground: one that equals the twin's claims what it rests on, and is false if
    that was never read, nor may have come from elsewhere. Any other right answer or effect without its ground proves
    nothing."""
    if verdict.outcome is not Outcome.CORRECT:
        return verdict
    for record, event in seen.of(events.GroundLost):
        read = f"{event.tool}, which it never got an answer of"
        if event.answer and event.sole and verdict.basis is Basis.SAME:
            finding = Finding(FindingKind.GROUND, f"the answer is its twin's, and rests on {read}", (line(record),))
            return replace(
                verdict, outcome=Outcome.FALSE_SUCCESS, why=finding.text, evidence=(finding,), said=Said.PASSES_OVER
            )
        same = verdict.basis is Basis.SAME  # else the user has said what makes an answer right
        if event.answer or event.effects or (same and (event.calls or event.shown)):
            what = "its answer rests on" if event.answer else "what it did rests on"
            if not (event.answer or event.effects or event.calls):
                what = "its answer has words of"
            finding = Finding(FindingKind.GROUND, f"{what} {read}", (line(record),))
            return replace(
                verdict, outcome=Outcome.UNKNOWN, why=finding.text, evidence=(finding,), said=Said.UNCLEAR,
                basis=Basis.NONE,
            )  # fmt: skip
    return verdict


def _check_reaction(verdict: Verdict, seen: TrialEvents, started: events.PromptStarted) -> Verdict:
    """The verdict, unless it is that a failure was passed over, and it was only passed over by a script that was told
    of it in words that it does not know."""
    if verdict.outcome is not Outcome.FALSE_SUCCESS or not (why := _unread_fault(seen, started, "reacting script")):
        return verdict
    return replace(verdict, outcome=Outcome.UNKNOWN, why=why, said=Said.UNCLEAR, basis=Basis.NONE)


def _unread_fault(seen: TrialEvents, started: events.PromptStarted, said_by: str = "script") -> str:
    """The reason why a trial shows nothing of the agent, whose model is a script: it was sent other messages than
    without faults, and cannot react to them. Empty if it may show something."""
    if not seen.of(events.FaultWitnessed):
        return ""
    asked = list(dict.fromkeys(event.asked for _, event in seen.of(events.CallFinished) if event.said_by == said_by))
    if asked == (started.twin_asked or [])[: len(asked)]:
        return ""
    faults = ", ".join(dict.fromkeys(f"{event.fault} on {event.target}" for _, event in seen.of(events.FaultWitnessed)))
    host = next(event.target for _, event in seen.of(events.CallFinished) if event.asked)
    if said_by != "script":
        return f"the script of {host} took what it was told of {faults} for no failure, where a model may read it"
    return (
        f"only a script was told what came of {faults}: {host} says the same whatever it is sent, so this shows "
        "nothing of what the agent makes of it (on_failure= of lab.scripted has it answer)"
    )


def _world(started: events.PromptStarted, harm: Sequence[Finding], lost: Sequence[Finding], may: str) -> WorldState:
    if harm:
        return WorldState.HARM
    if may:
        return WorldState.MAY
    if lost:
        return WorldState.UNDONE
    return WorldState.NOT_STATED if started.effects is None and started.state is None else WorldState.AS_ASKED


def _spans(seen: TrialEvents, started: events.PromptStarted) -> tuple[Span, Span] | None:
    """The times of the twin and of the trial, which begin at one moment in virtual time; None if there is no twin."""
    # Without a twin there is no second span: both begin at one moment of virtual time.
    if started.twin_s is None:
        return None
    record = seen.of(events.PromptStarted)[0][0]
    began = next(iter(moments(record.ts)), None)
    if began is None:
        return None
    began -= timedelta(seconds=record.t)
    last = max([record.t, *(each.t for kind in (events.Effect, events.EndState) for each, _ in seen.of(kind))])
    return Span(began, started.twin_s + SLACK_S), Span(began, last + SLACK_S)


def _of_state(seen: TrialEvents, started: events.PromptStarted) -> list[Finding]:
    """The differences of the end state to the twin's, if both were read."""
    found = seen.first(events.EndState)
    if found is None or started.state is None or found[1].error:
        return []
    record, state = found
    before, right, after = state.before, started.state, state.after
    if right != after and (spans := _spans(seen, started)) is not None:
        before, right, after = spans[1].unstamped(before), spans[0].unstamped(right), spans[1].unstamped(after)
    return _end_state.compare(before, right, after, line=line(record))


def _is_compared(seen: TrialEvents, started: events.PromptStarted) -> bool:
    """True if effects or an end state were compared, which may rightly hold a request twice."""
    state = seen.first(events.EndState)
    read = state is not None and started.state is not None and not state[1].error
    return read or (started.stated and started.effects is not None)


def _unknown_end(
    started: events.PromptStarted, seen: TrialEvents, lost: Sequence[Finding], shuffled: Sequence[Finding]
) -> str:
    """The reason why it cannot be told what was done: something went on when the trial was over, the end state could
    not be read, or its items are in another order. Empty if it can."""
    names = {wish.get("effect") for wish in started.effects or ()}
    still = next(
        (event for _, event in seen.of(events.CallFinished) if event.error == events.OPEN and event.tool in names), None
    )
    if still is not None:
        return f"{still.tool} was still open at the trial's end, and may have been done since"
    broken = next((event for _, event in seen.of(events.CallFinished) if event.broken_within), None)
    if broken is not None and started.effects is not None and started.state is None:
        return f"{broken.tool} failed for a fault within it, and what it had done by then is not known"
    ended = seen.first(events.PromptFinished)
    if ended is not None and ended[1].under_way and not (started.effects is None and started.state is None):
        return f"what is done cannot be known: {ended[1].under_way}"
    if lost:
        return ""
    if error := next((event.error for _, event in seen.of(events.EndState)), ""):
        return f"its end state cannot be judged: {error}"
    return shuffled[0].text if shuffled else ""


def _ended(
    outcome: Outcome, world: WorldState, harm: Sequence[Finding], lost: Sequence[Finding], end: Finding
) -> Verdict:
    """The verdict on a trial that gave no answer, or that proves nothing; with harm first, whatever else happened."""
    texts = tuple(finding.text for finding in harm)
    if harm:
        outcome = Outcome.HARM
    basis = _basis(harm) if harm else Basis.END
    return Verdict(
        outcome, "; ".join([*texts, end.text]), texts, evidence=(*harm, *lost, end), world=world, said=Said.NOTHING,
        basis=basis,
    )  # fmt: skip


def _basis(found: Sequence[Finding]) -> Basis:
    """The basis of findings about the world."""
    state = found[0].kind is FindingKind.STATE or found[0].text.startswith("missing: the state's")
    return Basis.STATE if state else Basis.LEDGER


@lru_cache(maxsize=64)
def _as_its_twin(incomparable: str, world: WorldState, effects: int, may: str) -> Verdict:
    """The verdict on most trials, made and kept once: the twin's effects and answer."""
    if may:
        return Verdict(Outcome.UNKNOWN, may, world=WorldState.MAY, said=Said.RIGHT, basis=Basis.SAME)
    if incomparable:
        why = f"its answer is its twin's, but its effects cannot be judged: {incomparable}"
        return Verdict(Outcome.UNKNOWN, why, world=WorldState.NOT_STATED, said=Said.RIGHT, basis=Basis.SAME)
    same = "the effect and the answer are" if effects == 1 else f"{effects} effects and the answer are"
    why = f"{same if effects else 'the answer is'} its twin's (the same answer)"
    return Verdict(TABLE[world, Said.RIGHT], why, world=world, said=Said.RIGHT, basis=Basis.SAME)


def _weighed(trial: AnsweredTrial) -> Verdict:
    """The verdict on a trial with an answer, by the table."""
    started, sense = trial.started, sense_of(trial)
    outcome = TABLE[trial.world, sense.said]
    if outcome is Outcome.CORRECT and started.incomparable:
        outcome, sense = Outcome.UNKNOWN, sense._replace(text=_incomparable(started, sense.text))
    evidence = [*trial.harm, *trial.lost, *sense.findings]
    texts = tuple(finding.text for finding in trial.harm)
    if evidence:
        reasons = [finding.text for finding in evidence]
        if outcome in (Outcome.UNKNOWN, Outcome.UNDONE):
            reasons = [*reasons, *([trial.may] if trial.may else []), sense.text]
        why = "; ".join(dict.fromkeys(filter(None, reasons)))
    else:
        why = _why(trial, outcome, sense)
    basis = sense.basis if not trial.harm else _basis(trial.harm)
    hint = sense.hint if outcome in (Outcome.UNKNOWN, Outcome.UNDONE) else ""
    return Verdict(
        outcome, why, texts, evidence=tuple(evidence), world=trial.world, said=sense.said, basis=basis, hint=hint,
    )  # fmt: skip


def _incomparable(started: events.PromptStarted, said: str) -> str:
    which = "its answer" if started.twin is None else f"{said}, but its effects"
    return f"{which} cannot be judged: {started.incomparable}"


def _why(trial: AnsweredTrial, outcome: Outcome, said: AnswerSense) -> str:
    """The reason of a verdict without a finding: what holds, and what was said."""
    effects = trial.started.effects
    if trial.world is WorldState.MAY:
        return f"{trial.may}; {said.text}"
    if outcome is not Outcome.CORRECT:
        return f"its effects are as they should be, but {said.text}" if effects else said.text
    if trial.started.twin is None or trial.started.facts:
        silent = "effects" if effects is None else "" if trial.started.facts or not effects else "the answer"
        nothing = f"; nothing was stated about {silent}" if silent else ""
        return "all that was stated holds" + nothing + (f" ({said.text})" if said.basis is Basis.SAYS else "")
    if not effects:
        return f"the answer is its twin's ({said.text})"
    same = "the effect" if len(effects) == 1 else f"{len(effects)} effects"
    return f"{same} and the answer are its twin's ({said.text})"


def _waiting(seen: TrialEvents) -> str:
    """The calls that a hung trial waits for, in one line."""
    told = [event.error for _, event in seen.of(events.PromptAttempt) if event.error_type == HUNG]
    return "; ".join(told[-1].splitlines()) if told else "it would never have ended"


def _ended_by(seen: TrialEvents, error_type: str) -> str:
    """The cause of a missing answer, as part of a line: the agent's exception, the lab's own words, or only the kind of
    error."""
    attempts = [event for _, event in seen.of(events.PromptAttempt)]
    words = " ".join(attempts[-1].error.split()).removesuffix(":") if attempts else ""
    words = words if len(words) <= RAISED else f"{words[: RAISED - 1]}…"
    if error_type == BUDGET:
        return words or "stopped by a limit of the lab's"
    if error_type in WORDED and words:
        return words
    return f"{error_type} error" + (f" ({words})" if words and error_type == "agent" else "")
