"""The verdict on a trial: its world by ledger and end state, what its answer said, and the table of both.

Effects are judged by the services' ledgers, never by the agent's words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from chaoslab.analysis.verdict import _end_state, _spoilt, ledger
from chaoslab.analysis.verdict._deaths import add_agent_death_reasons
from chaoslab.analysis.verdict._repeated_request import find_repeated_requests
from chaoslab.analysis.verdict._repeats import add_reasons_from_user_actions
from chaoslab.analysis.verdict.answer import AnsweredTrial, AnswerSense, classify_answer
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.seen import JUDGED, TrialEvents, log_line_key
from chaoslab.analysis.verdict.standing import Standing, get_outcome_standing
from chaoslab.analysis.verdict.table import TABLE, Basis, Outcome, Said, Verdict, WorldState
from chaoslab.base.alike import TrialTimeSpan, parse_moments
from chaoslab.core import events
from chaoslab.record.effects import find_distinct_effects
from chaoslab.record.history import History
from chaoslab.record.lines import Record

BUDGET = "budget"
"""The error type of a prompt that one of the lab's own limits ended."""
WORDED_ERRORS = ("empty", "loop")
"""The error types that the lab's own agent puts into words."""
HUNG = "hung"
"""The error type of a prompt that would never have ended, or not before its deadline."""
SLACK_S = 0.001
"""The clock of a world may move by less between a stamp and the line that tells of it."""
EXCEPTION_MAX = 200
"""The most characters of an agent's exception that a verdict shows."""


def judge_trial(history: History, trial: str) -> Verdict:
    """The verdict on one trial; unknown if it cannot be judged. Raises LookupError: the history has no such trial."""
    trial_events = TrialEvents(trial)
    kinds = history.event_kinds
    for kind in JUDGED:
        if kind in kinds and (matching := list(history.find_events(kind, trial=trial))):
            trial_events.by_kind[kind] = matching
    if not trial_events.find_events(events.PromptStarted) and trial not in history.gaps_by_trial:
        raise LookupError(f"no trial is called '{trial}'; there are {', '.join(history.trials[:8]) or 'none'}")
    return _judge_guarded(trial_events, history)


def judge_all_trials(history: History) -> dict[str, Verdict]:
    """The verdict on each trial of a run, in the order in which they began."""
    is_scripted = any(event.said_by for _, event in history.find_events(events.CallFinished))
    trials = {trial: TrialEvents(trial, None if is_scripted else history) for trial in history.trials}
    for kind in JUDGED:
        records: Iterable[tuple[Record, events.Event]] = history.find_events(kind)
        if kind is events.CallFinished and not is_scripted:  # most calls end well, and say nothing to most verdicts
            records = [(record, event) for record, event, _ in history.failed_attempts]
        for pair in records:
            trial_events = trials.get(pair[0].trial)  # type: ignore[arg-type]  # None is no trial's key
            if trial_events is None:
                continue
            if kind in trial_events.by_kind:
                trial_events.by_kind[kind].append(pair)
            else:
                trial_events.by_kind[kind] = [pair]
    return {trial: _judge_guarded(trial_events, history) for trial, trial_events in trials.items()}


def _judge_guarded(trial_events: TrialEvents, history: History) -> Verdict:
    return run_guarded(
        lambda: add_reasons_from_user_actions(
            add_agent_death_reasons(_judge_by_call_orders(trial_events, history), trial_events, history), trial_events
        ),
        lambda reason: Verdict(Outcome.UNKNOWN, f"it could not be judged ({reason})", broken=True),
    )


def _judge_by_call_orders(trial_events: TrialEvents, history: History) -> Verdict:
    """The verdict beside the twin, and, where that depends on the order of parallel calls, beside its result in each
    order: one that it is right beside counts, and if they disagree, nothing is known."""
    verdict, reordered = _judge_by_evidence(trial_events, history), trial_events.find_events(events.TwinReordered)
    if not reordered or get_outcome_standing(verdict.outcome) is Standing.WELL:
        return verdict
    depends = f"without faults its result depends on when {reordered[0][1].call} begins, beside other calls"
    record, started = trial_events.find_events(events.PromptStarted)[0]
    for _, reordered_twin in reordered:
        exact = started.exact or not started.effects
        effects = reordered_twin.effects if exact and started.effects is not None else started.effects
        twin = replace(
            started,
            twin=reordered_twin.answer,
            effects=effects,
            state=reordered_twin.state,
            exact=bool(reordered_twin.effects) or None,
        )
        reordered_events = TrialEvents(trial_events.trial, trial_events.whole)
        reordered_events.by_kind = {**trial_events.by_kind, events.PromptStarted: [(record, twin)]}
        reordered_verdict = _judge_by_evidence(reordered_events, history)
        if get_outcome_standing(reordered_verdict.outcome) is Standing.WELL:
            return replace(reordered_verdict, why=f"{reordered_verdict.why}, in another order of its calls: {depends}")
        if reordered_verdict.outcome is not verdict.outcome or reordered_twin.together:
            verdict = Verdict(Outcome.UNKNOWN, depends, world=WorldState.MAY)
    return verdict


def _judge_by_evidence(trial_events: TrialEvents, history: History) -> Verdict:
    # what is missing may be anything, so nothing here is a proof
    if torn := history.gaps_by_trial.get(trial_events.trial):
        reason = f"its log is not whole: {torn}"
        return _make_no_answer_verdict(
            Outcome.UNFINISHED, WorldState.MAY, (), (), Finding(FindingKind.NO_ANSWER, reason)
        )
    _, started = trial_events.find_events(events.PromptStarted)[0]
    finished = trial_events.find_first(events.PromptFinished)
    effects = find_distinct_effects(trial_events.find_events(events.Effect))
    rules, findings = ledger.EffectRules.from_prompt_event(started), list[Finding]()
    if started.stated and started.effects is not None:
        findings = ledger.compare_effects(started.effects, effects, rules)
        # Only where they differ: most effects are equal as they are, and to look for moments in them takes time.
        if findings and rules.exact:
            rules = replace(rules, spans=_get_twin_and_trial_spans(trial_events, started))
            findings = ledger.compare_effects(started.effects, effects, rules)
    state_findings = _compare_end_state(trial_events, started)
    shuffled = [] if rules.ordered else [f for f in state_findings if f.kind is FindingKind.ORDER]
    findings += [f for f in state_findings if f not in shuffled]
    if not _has_compared_world(trial_events, started):
        findings += find_repeated_requests(trial_events, history, rules)
    harm, lost = (
        [f for f in findings if f.kind is not FindingKind.LOST],
        [f for f in findings if f.kind is FindingKind.LOST],
    )
    unknown_reason = _explain_unknown_effects(started, trial_events, lost, shuffled)
    world = _classify_world_state(started, harm, lost, unknown_reason)
    if finished is None:
        # An unfinished trial failed at nothing, and a fault that it did not reach is no error of the lab.
        reason = "it is still running" if history.running else "the run ended before it did"
        return _make_no_answer_verdict(Outcome.UNFINISHED, world, harm, lost, Finding(FindingKind.NO_ANSWER, reason))
    if invalid_finding := _spoilt.find_disturbed_call(trial_events):
        return _make_no_answer_verdict(Outcome.INVALID, world, harm, lost, invalid_finding)
    end = finished[1]
    # A trial that hangs on an armed lane has met its fault, though no end of the call could witness it.
    is_hung = end.error_type == HUNG
    if (
        invalid_finding := None
        if is_hung
        else _spoilt.find_unmet_armed_fault(trial_events) or _spoilt.find_fault_of_unreached_request(trial_events)
    ):
        return _make_no_answer_verdict(Outcome.INVALID, world, harm, lost, invalid_finding)
    # "null" is the None of an agent that returned nothing, unless its twin did so too.
    is_silent = not end.answer.strip() or (end.answer == "null" and (started.twin or "null") != "null")
    if is_hung or end.status != "ok" or is_silent:
        outcome, reason = Outcome.FAILED, "the answer is empty"
        if is_hung:
            outcome, reason = Outcome.HUNG, _describe_hung_calls(trial_events)
        elif end.status != "ok":
            reason = f"no answer: {_describe_end_cause(trial_events, end.error_type)}"
        return _make_no_answer_verdict(
            outcome, world, harm, lost, Finding(FindingKind.NO_ANSWER, reason, (log_line_key(finished[0]),))
        )
    if unseen_finding := _spoilt.find_unseen_fault(trial_events):
        return _make_no_answer_verdict(Outcome.INVALID, world, harm, lost, unseen_finding)
    if not started.stated and not harm:
        return Verdict(Outcome.UNKNOWN, started.incomparable or "nothing was stated about a right answer", world=world)
    # A script says the same whatever it is sent, so its answer shows nothing of the agent.
    if (unread_reason := _explain_scripted_model(trial_events, started)) and not harm:
        return Verdict(Outcome.UNKNOWN, unread_reason, world=world)
    has_turn_rules = any(turn.facts or turn.says for _, turn in trial_events.find_events(events.TurnFinished))
    if end.answer == started.twin and not (harm or lost or started.facts or has_turn_rules):
        return _downgrade_ungrounded(
            _make_same_as_twin_verdict(started.incomparable, world, len(started.effects or ()), unknown_reason),
            trial_events,
        )
    effects = list(ledger.compute_net_effects(started.effects or (), effects, rules))
    answered = AnsweredTrial(
        started, finished, effects, world, harm, lost, trial_events, history.spoken, rules, unknown_reason
    )
    return _excuse_scripted_model(
        _downgrade_ungrounded(_judge_by_answer(answered), trial_events), trial_events, started
    )


def _downgrade_ungrounded(verdict: Verdict, trial_events: TrialEvents) -> Verdict:
    """The verdict on an answer with its ground: one that equals the twin's claims what it rests on, and is false if
    that was never read, nor may have come from elsewhere. Any other right answer or effect without its ground proves
    nothing."""
    if verdict.outcome is not Outcome.CORRECT:
        return verdict
    for record, event in trial_events.find_events(events.GroundLost):
        source = f"{event.tool}, which never answered"
        if event.answer and event.sole and verdict.basis is Basis.SAME:
            finding = Finding(
                FindingKind.GROUND, f"the answer is its twin's, and rests on {source}", (log_line_key(record),)
            )
            return replace(
                verdict, outcome=Outcome.FALSE_SUCCESS, why=finding.text, evidence=(finding,), said=Said.PASSES_OVER
            )
        is_twins = verdict.basis is Basis.SAME  # else the user has said what makes an answer right
        if event.answer or event.effects or (is_twins and (event.calls or event.shown)):
            subject = "its answer rests on" if event.answer else "what it did rests on"
            if not (event.answer or event.effects or event.calls):
                subject = "its answer has words of"
            finding = Finding(FindingKind.GROUND, f"{subject} {source}", (log_line_key(record),))
            return replace(
                verdict,
                outcome=Outcome.UNKNOWN,
                why=finding.text,
                evidence=(finding,),
                said=Said.UNCLEAR,
                basis=Basis.NONE,
            )
    return verdict


def _excuse_scripted_model(verdict: Verdict, seen: TrialEvents, started: events.PromptStarted) -> Verdict:
    """The verdict, unless it is that a failure was passed over, and it was only passed over by a script that was told
    of it in words that it does not know."""
    if verdict.outcome is not Outcome.FALSE_SUCCESS or not (
        why := _explain_scripted_model(seen, started, "reacting script")
    ):
        return verdict
    return replace(verdict, outcome=Outcome.UNKNOWN, why=why, said=Said.UNCLEAR, basis=Basis.NONE)


def _explain_scripted_model(trial_events: TrialEvents, started: events.PromptStarted, said_by: str = "script") -> str:
    """The reason why a trial shows nothing of the agent, whose model is a script: it was sent other messages than
    without faults, and cannot react to them. Empty if it may show something."""
    if not trial_events.find_events(events.FaultWitnessed):
        return ""
    prompts = list(
        dict.fromkeys(
            event.asked for _, event in trial_events.find_events(events.CallFinished) if event.said_by == said_by
        )
    )
    if prompts == (started.twin_asked or [])[: len(prompts)]:
        return ""
    faults = ", ".join(
        dict.fromkeys(
            f"{event.fault} on {event.target}" for _, event in trial_events.find_events(events.FaultWitnessed)
        )
    )
    host = next(event.target for _, event in trial_events.find_events(events.CallFinished) if event.asked)
    if said_by != "script":
        return f"the script of {host} took what it was told of {faults} for no failure, where a model may read it"
    return (
        f"only a script was told what came of {faults}: {host} says the same whatever it is sent, so this shows "
        "nothing of what the agent makes of it (on_failure= of lab.scripted has it answer)"
    )


def _classify_world_state(
    started: events.PromptStarted, harm: Sequence[Finding], lost: Sequence[Finding], unknown_reason: str
) -> WorldState:
    if harm:
        return WorldState.HARM
    if unknown_reason:
        return WorldState.MAY
    if lost:
        return WorldState.UNDONE
    return WorldState.NOT_STATED if started.effects is None and started.state is None else WorldState.AS_ASKED


def _get_twin_and_trial_spans(
    trial_events: TrialEvents, started: events.PromptStarted
) -> tuple[TrialTimeSpan, TrialTimeSpan] | None:
    """The times of the twin and of the trial, which begin at one moment in virtual time; None if there is no twin."""
    # Without a twin there is no second span: both begin at one moment of virtual time.
    if started.twin_s is None:
        return None
    record = trial_events.find_events(events.PromptStarted)[0][0]
    start = next(iter(parse_moments(record.ts)), None)
    if start is None:
        return None
    start -= timedelta(seconds=record.t)
    last_t = max(
        [
            record.t,
            *(
                state_record.t
                for kind in (events.Effect, events.EndState)
                for state_record, _ in trial_events.find_events(kind)
            ),
        ]
    )
    return TrialTimeSpan(start, started.twin_s + SLACK_S), TrialTimeSpan(start, last_t + SLACK_S)


def _compare_end_state(trial_events: TrialEvents, started: events.PromptStarted) -> list[Finding]:
    """The differences of the end state to the twin's, if both were read."""
    state_entry = trial_events.find_first(events.EndState)
    if state_entry is None or started.state is None or state_entry[1].error:
        return []
    record, state = state_entry
    before, right, after = state.before, started.state, state.after
    if right != after and (spans := _get_twin_and_trial_spans(trial_events, started)) is not None:
        before, right, after = (
            spans[1].replace_moments(before),
            spans[0].replace_moments(right),
            spans[1].replace_moments(after),
        )
    return _end_state.compare_states(before, right, after, line=log_line_key(record))


def _has_compared_world(trial_events: TrialEvents, started: events.PromptStarted) -> bool:
    """True if effects or an end state were compared, which may rightly hold a request twice."""
    state = trial_events.find_first(events.EndState)
    is_state_read = state is not None and started.state is not None and not state[1].error
    return is_state_read or (started.stated and started.effects is not None)


def _explain_unknown_effects(
    started: events.PromptStarted, trial_events: TrialEvents, lost: Sequence[Finding], shuffled: Sequence[Finding]
) -> str:
    """The reason why it cannot be told what was done: something went on when the trial was over, the end state could
    not be read, or its items are in another order. Empty if it can."""
    names = {wish.get("effect") for wish in started.effects or ()}
    open_call = next(
        (
            event
            for _, event in trial_events.find_events(events.CallFinished)
            if event.error == events.OPEN and event.tool in names
        ),
        None,
    )
    if open_call is not None:
        return f"{open_call.tool} was still open at the trial's end, and may have been done since"
    broken_call = next(
        (event for _, event in trial_events.find_events(events.CallFinished) if event.broken_within), None
    )
    if broken_call is not None and started.effects is not None and started.state is None:
        return f"{broken_call.tool} failed for a fault within it, and what it had done by then is not known"
    end_entry = trial_events.find_first(events.PromptFinished)
    if end_entry is not None and end_entry[1].under_way and not (started.effects is None and started.state is None):
        return f"what is done cannot be known: {end_entry[1].under_way}"
    if lost:
        return ""
    if error := next((event.error for _, event in trial_events.find_events(events.EndState)), ""):
        return f"its end state cannot be judged: {error}"
    return shuffled[0].text if shuffled else ""


def _make_no_answer_verdict(
    outcome: Outcome, world: WorldState, harm: Sequence[Finding], lost: Sequence[Finding], end: Finding
) -> Verdict:
    """The verdict on a trial that gave no answer, or that proves nothing; with harm first, whatever else happened."""
    texts = tuple(finding.text for finding in harm)
    if harm:
        outcome = Outcome.HARM
    basis = _choose_world_basis(harm) if harm else Basis.END
    return Verdict(
        outcome,
        "; ".join([*texts, end.text]),
        texts,
        evidence=(*harm, *lost, end),
        world=world,
        said=Said.NOTHING,
        basis=basis,
    )


def _choose_world_basis(findings: Sequence[Finding]) -> Basis:
    """The basis of findings about the world."""
    state = findings[0].kind is FindingKind.STATE or findings[0].text.startswith("missing: the state's")
    return Basis.STATE if state else Basis.LEDGER


@lru_cache(maxsize=64)
def _make_same_as_twin_verdict(incomparable: str, world: WorldState, effects: int, unknown_reason: str) -> Verdict:
    """The verdict on most trials, made and kept once: the twin's effects and answer."""
    if unknown_reason:
        return Verdict(Outcome.UNKNOWN, unknown_reason, world=WorldState.MAY, said=Said.RIGHT, basis=Basis.SAME)
    if incomparable:
        reason = f"its answer is its twin's, but its effects cannot be judged: {incomparable}"
        return Verdict(Outcome.UNKNOWN, reason, world=WorldState.NOT_STATED, said=Said.RIGHT, basis=Basis.SAME)
    subject = "the effect and the answer are" if effects == 1 else f"{effects} effects and the answer are"
    reason = f"{subject if effects else 'the answer is'} its twin's (the same answer)"
    return Verdict(TABLE[world, Said.RIGHT], reason, world=world, said=Said.RIGHT, basis=Basis.SAME)


def _judge_by_answer(trial: AnsweredTrial) -> Verdict:
    """The verdict on a trial with an answer, by the table."""
    started, sense = trial.started, classify_answer(trial)
    outcome = TABLE[trial.world, sense.said]
    if outcome is Outcome.CORRECT and started.incomparable:
        outcome, sense = Outcome.UNKNOWN, sense._replace(text=_describe_incomparable(started, sense.text))
    evidence = [*trial.harm, *trial.lost, *sense.findings]
    texts = tuple(finding.text for finding in trial.harm)
    if evidence:
        reasons = [finding.text for finding in evidence]
        if outcome in (Outcome.UNKNOWN, Outcome.UNDONE):
            reasons = [*reasons, *([trial.may] if trial.may else []), sense.text]
        reason = "; ".join(dict.fromkeys(filter(None, reasons)))
    else:
        reason = _explain_outcome(trial, outcome, sense)
    basis = sense.basis if not trial.harm else _choose_world_basis(trial.harm)
    hint = sense.hint if outcome in (Outcome.UNKNOWN, Outcome.UNDONE) else ""
    return Verdict(
        outcome,
        reason,
        texts,
        evidence=tuple(evidence),
        world=trial.world,
        said=sense.said,
        basis=basis,
        hint=hint,
    )


def _describe_incomparable(started: events.PromptStarted, sense_text: str) -> str:
    subject = "its answer" if started.twin is None else f"{sense_text}, but its effects"
    return f"{subject} cannot be judged: {started.incomparable}"


def _explain_outcome(trial: AnsweredTrial, outcome: Outcome, sense: AnswerSense) -> str:
    """The reason of a verdict without a finding: what holds, and what was said."""
    effects = trial.started.effects
    if trial.world is WorldState.MAY:
        return f"{trial.may}; {sense.text}"
    if outcome is not Outcome.CORRECT:
        return f"its effects are as they should be, but {sense.text}" if effects else sense.text
    if trial.started.twin is None or trial.started.facts:
        unstated_subject = "effects" if effects is None else "" if trial.started.facts or not effects else "the answer"
        unstated = f"; nothing was stated about {unstated_subject}" if unstated_subject else ""
        return "all that was stated holds" + unstated + (f" ({sense.text})" if sense.basis is Basis.SAYS else "")
    if not effects:
        return f"the answer is its twin's ({sense.text})"
    subject = "the effect" if len(effects) == 1 else f"{len(effects)} effects"
    return f"{subject} and the answer are its twin's ({sense.text})"


def _describe_hung_calls(trial_events: TrialEvents) -> str:
    """The calls that a hung trial waits for, in one line."""
    errors = [event.error for _, event in trial_events.find_events(events.PromptAttempt) if event.error_type == HUNG]
    return "; ".join(errors[-1].splitlines()) if errors else "it would never have ended"


def _describe_end_cause(trial_events: TrialEvents, error_type: str) -> str:
    """The cause of a missing answer, as part of a line: the agent's exception, the lab's own words, or only the kind of
    error."""
    attempts = [event for _, event in trial_events.find_events(events.PromptAttempt)]
    error_text = " ".join(attempts[-1].error.split()).removesuffix(":") if attempts else ""
    error_text = error_text if len(error_text) <= EXCEPTION_MAX else f"{error_text[: EXCEPTION_MAX - 1]}…"
    if error_type == BUDGET:
        return error_text or "stopped by a limit of the lab's"
    if error_type in WORDED_ERRORS and error_text:
        return error_text
    return f"{error_type} error" + (f" ({error_text})" if error_text and error_type == "agent" else "")
