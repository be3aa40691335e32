"""A trial's story in time order: calls and replies, faults and their changes, effects, the answer and the verdict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

from chaoslab.analysis.measures.idle import describe_run_idle_injections
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.durations import format_difference, format_duration
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.phrases import add_article
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.log import encode_event
from chaoslab.reports import trials as those
from chaoslab.reports._faults import AttemptFault
from chaoslab.reports.page import format_count

WIDTH, ANSWER_WIDTH, DIFF_LINES = 200, 1000, 8
"""The most characters shown of a text, and of an answer; the most lines of a file's diff."""


def render_stories(
    history: History,
    *,
    prompt: int | None = None,
    trials: Sequence[str] = (),
    outcomes: Set[Outcome] | None = None,
    stages: bool = False,
) -> str:
    """The stories of a run's trials; `t` counts from each one's start. `prompt`, `trials`, `outcomes` select the
    trials. `stages`: each stage of a fault has a line of its own. Raises LookupError: the run has no such prompt or
    trial."""
    chosen, records, judged = _select_trials(history, prompt, trials, outcomes)
    if not chosen:
        return (
            f"no trial here is {_join_outcomes(outcomes or set(Outcome))}: "
            f"{those.format_outcome_counts(Counter(v.outcome for v in judged.values()))}\n"
        )
    unmet_in_run = describe_run_idle_injections(history)
    run = history.find_first_event(events.RunStarted)
    planned_names = [str(injection.get("name", "")) for injection in run.injections] if run is not None else []
    # What no call of the run was for is told once at the end, and not in each trial.
    planned_names = [name for name in planned_names if not any(name in unmet_text for unmet_text in unmet_in_run)]
    stories = (
        "\n".join(
            [
                _render_story(*pair, records[pair[0].trial], judged[pair[0].trial or ""], stages=stages),
                *map(_render_unmet_line, _describe_undrawn_faults(planned_names, records[pair[0].trial])),
            ]
        )
        for pair in chosen
    )
    return "\n\n".join([*stories, *(["\n".join(map(_render_unmet_line, unmet_in_run))] if unmet_in_run else ())]) + "\n"


def _render_unmet_line(text: str) -> str:
    return f"{'not met':>12}  {to_one_line(text, ANSWER_WIDTH)}"


def _describe_undrawn_faults(planned: Sequence[str], records: Sequence[Record]) -> list[str]:
    """The planned injections that no call of the trial was drawn for, in a line for each reason; of one that was drawn
    and not met the story itself tells."""
    # The dice of its calls are not in such a log.
    if any(isinstance(record.event, events.StoryLeftOut) for record in records):
        return []
    drawn = {record.event.injection for record in records if isinstance(record.event, events.FaultScheduled)}
    rolled = {
        name for record in records if isinstance(record.event, events.CallFinished) for name in record.event.rolled
    }
    undrawn = [name for name in planned if name not in drawn]
    reasons = {
        "spared by the dice": [name for name in undrawn if name in rolled],
        "planned, and no call was for it": [name for name in undrawn if name not in rolled],
    }
    return [f"{reason}: {'; '.join(names)}" for reason, names in reasons.items() if names]


def stories_to_json(
    history: History,
    *,
    prompt: int | None = None,
    trials: Sequence[str] = (),
    outcomes: Set[Outcome] | None = None,
) -> list[dict[str, Any]]:
    """The same trials as JSON values: verdict and events; `t` counts in seconds from the run's start. Raises
    LookupError: the run has no such prompt or trial."""
    chosen, records, judged = _select_trials(history, prompt, trials, outcomes)
    rows = []
    for start, event in chosen:
        trial = start.trial or ""
        verdict = judged[trial]
        rows.append(
            {
                "trial": trial,
                "prompt": event.prompt,
                "outcome": str(verdict.outcome),
                "world": str(verdict.world),
                "said": str(verdict.said),
                "basis": str(verdict.basis),
                "hint": verdict.hint,
                "why": verdict.why,
                "harm": list(verdict.harm),
                "events": [
                    {
                        "t": record.t,
                        "writer": record.writer,
                        "seq": record.seq,
                        **json.loads("{" + encode_event(record.event)),
                    }
                    for record in records[start.trial]
                ],
            }
        )
    return rows


Chosen = list[tuple[Record, events.PromptStarted]]


def _select_trials(
    history: History, prompt: int | None, trials: Sequence[str], outcomes: Set[Outcome] | None
) -> tuple[Chosen, dict[str | None, list[Record]], dict[str, Verdict]]:
    """The beginnings of the trials that are wanted, the records by trial, and the verdicts of all that were judged."""
    starts = _find_trial_starts(history, prompt, trials)
    records: dict[str | None, list[Record]] = {}
    for record in history.records:
        records.setdefault(record.trial, []).append(record)
    verdicts_by_trial = {
        trial: judge_trial(History(records[trial], running=history.running, spoken=history.spoken), trial)
        for trial in (start.trial or "" for start, _ in starts)
    }
    chosen = [pair for pair in starts if outcomes is None or verdicts_by_trial[pair[0].trial or ""].outcome in outcomes]
    return chosen, records, verdicts_by_trial


class Story(History):
    """A history that prints as the stories of its trials."""

    @classmethod
    def from_history(cls, history: History) -> Story:
        """The same history, as a story."""
        story = cls.__new__(cls)
        # No copy of the records: a history of many trials is large.
        vars(story).update(vars(history))
        return story

    def __str__(self) -> str:
        return render_stories(self).removesuffix("\n") if self.trials else repr(self)


def _find_trial_starts(
    history: History, prompt: int | None, trials: Sequence[str]
) -> list[tuple[Record, events.PromptStarted]]:
    started = [
        (record, event) for record, event in history.find_events(events.PromptStarted) if record.trial is not None
    ]
    starts = [pair for pair in started if prompt in (None, pair[1].prompt_index)]
    if not starts:
        prompt_numbers = sorted({event.prompt_index for _, event in started})
        prompts_text = (
            f"its prompts are {prompt_numbers[0]} to {prompt_numbers[-1]}"
            if prompt_numbers
            else "no trial was started in it"
        )
        raise LookupError(
            # Without a number the sentence would have a blank before its colon.
            f"this run has no prompt {'' if prompt is None else prompt}: {prompts_text}".replace(" :", ":")
        )
    if not trials:
        return starts
    prompts = those.count_prompts(history)
    keys = {key for name in trials for key in those.expand_trial_name(name, history.trials, prompts=prompts)}
    chosen = [pair for pair in starts if pair[0].trial in keys]
    if not chosen:
        raise LookupError(f"trial {trials[0]} is none of prompt {prompt}: leave one of the two out")
    # A prompt and a trial that exclude each other.
    return chosen


def _join_outcomes(outcomes: Set[Outcome]) -> str:
    *other_names, last_name = [outcome for outcome in Outcome if outcome in outcomes]
    return f"{', '.join(other_names)} or {last_name}" if other_names else last_name


def _render_story(
    start: Record, event: events.PromptStarted, records: list[Record], verdict: Verdict, *, stages: bool
) -> str:
    lines = [f"{start.trial}  prompt {event.prompt_index}: {_to_one_line(event.prompt)}"]
    faults, is_answered = AttemptFault.index_by_record(records), False
    for number, record in enumerate(records):
        is_folded = not stages and isinstance(record.event, events.Stage)
        event_line = (
            render_event(record.event)
            if not is_folded
            else f"fault    {faults[number].describe_in_words()}"
            if number in faults
            else ""
        )
        if event_line:
            if is_answered:
                lines.append(f"{'':>12}  after the answer:")
                is_answered = False
            lines.append(f"{format_difference(record.t - start.t, 3):>12}  {event_line}")
        is_answered = is_answered or type(record.event) is events.PromptFinished
    lines.append(f"{'verdict':>12}  {verdict.outcome}: {to_one_line(verdict.why, ANSWER_WIDTH)}")
    return "\n".join(lines)


def render_event(event: events.Event) -> str:
    """The event as text; empty if it adds nothing."""
    match event:
        case events.CallStarted():
            return f"call     {_format_call_place(event)} {event.tool}({_format_value(event.arguments)})"
        case events.CallFinished():
            # A call that its agent gave up has not failed.
            result_word = "ok" if event.ok else "" if event.is_cancelled else "FAILED"
            status = "" if event.status is None else f" {event.status}"
            error = f" {_to_one_line(event.error)}" if event.error else ""
            replayed = ", replayed" if event.replayed else ""
            reply = (
                f": {_to_one_line(event.reply)}"
                # A service often repeats its reply as the error's text.
                if event.reply and (event.ok or not _is_error_in_reply(event.error, event.reply))
                else ""
            )
            timing = f"in {format_duration(event.duration_s)} via {event.via}{replayed}"
            return f"result   {_format_call_place(event)} {f'{result_word}{status}{error}'.lstrip()} {timing}{reply}"
        case events.FaultScheduled():
            return (
                f"fault    {_format_call_place(event)} {event.fault} scheduled by {event.injection} "
                f"{_format_value(event.params)}"
            ).rstrip()
        case events.FaultArmed():
            return f"fault    {_format_call_place(event)} {event.fault} armed on lane {event.lane}"
        case events.FaultInjected():
            return f"fault    {_format_call_place(event)} {event.fault} injected"
        case events.FaultWitnessed():
            changed = f" ({_to_one_line(event.changed)})" if event.changed else ""
            return (
                f"fault    {_format_call_place(event)} {event.fault} witnessed: {_to_one_line(event.evidence)}{changed}"
            )
        case events.FaultHealed():
            unmet = f", since {event.masked_by} ended the call first" if event.masked_by else ""
            # Another fault ended the call first: that is no failure of this one.
            healing_text = "" if event.witnessed else f", {event.idle}" if event.idle else f", NOT WITNESSED{unmet}"
            return f"fault    {_format_call_place(event)} {event.fault} healed{healing_text}"
        case events.FaultUnreached():
            return f"fault    {event.target} {event.request} NOT REACHED by {event.injection}"
        case events.ServiceStopped():
            return f"process  {_format_call_place(event)} {event.how} for {event.fault}"
        case events.ServiceResumed():
            return f"process  {event.target} back after {event.lasted_s:g} s"
        case events.AgentDied():
            return f"process  {_format_call_place(event)} the agent was killed"
        case events.AgentResumed():
            return f"process  the agent resumes ({event.nth})"
        case events.UserStopped():
            return (
                f"user     {_format_call_place(event)} stops the agent, and says: "
                f"{to_one_line(event.prompt, ANSWER_WIDTH)}"
            )
        case events.CallDisturbed():
            return f"lab      {_format_call_place(event)} disturbed: {_to_one_line(event.why)}"
        case events.Retry():
            return f"retry    {_format_call_place(event)} after {event.wait_s:g} s: {_to_one_line(event.reason)}"
        case events.Fallback():
            return f"fallback {_format_call_place(event)} to {event.address}"
        case events.Effect():
            diff = event.content.get("diff") if event.target == events.FILES else None
            if not isinstance(diff, str):
                return f"effect   {event.target} {event.effect} {_format_value(event.content)}".rstrip()
            lines = diff.splitlines()
            more = [f"… {len(lines) - DIFF_LINES} lines more"] if len(lines) > DIFF_LINES else []
            shown_lines = "".join(f"\n{'':>23}{_to_one_line(text)}" for text in [*lines[:DIFF_LINES], *more])
            return f"effect   {event.target} {event.effect}{shown_lines}"
        case _:
            return _render_prompt_event(event)


def _render_prompt_event(event: events.Event) -> str:
    match event:
        case events.PromptStarted() if event.twin is not None:
            return f"twin     without faults: {to_one_line(event.twin, ANSWER_WIDTH)}"
        case events.ValuesDrawn():
            return f"drawn    {_to_one_line(', '.join(f'{name} = {value}' for name, value in event.values.items()))}"
        case events.TurnStarted():
            return f"turn     {event.turn}: {to_one_line(event.prompt, ANSWER_WIDTH)}"
        case events.TurnFinished():
            return f"turn     {event.turn} answered: {to_one_line(event.answer, ANSWER_WIDTH)}"
        case events.EventRepeated():
            moment = "at once" if event.at_once else "once more"
            return f"user     the same event, {moment}: {to_one_line(event.prompt, ANSWER_WIDTH)}"
        case events.RepeatAnswered():
            return f"user     the repeat is answered: {to_one_line(event.answer, ANSWER_WIDTH)}"
        case events.Usage():
            return f"usage    model {event.request} {event.prompt_tokens} + {event.completion_tokens} tokens"
        case events.UsageUnstated():
            token_estimate = event.prompt_tokens + event.completion_tokens
            return f"usage    model {event.request} not stated, about {token_estimate} tokens"
        case events.Budget():
            return f"budget   {event.limit}: {event.spent:g} of {event.allowed:g} ({event.mode})"
        case events.CallsOrdered():
            return f"order    {_to_one_line(', '.join(event.calls))}: drawn for calls made together"
        case events.FaultsOff():
            return f"off      {_to_one_line(event.change_in_words)}"
        case events.ChanceSet():
            return f"set      {_to_one_line(event.change_in_words)}"
        case events.LabWarning():
            return f"warning  {_to_one_line(event.message)}"
        case events.StoryLeftOut():
            calls, faults = sum(event.calls.values()), sum(sum(by.values()) for by in event.met.values())
            counts = f"{format_count(calls, 'call')}, {format_count(faults, 'fault')} met"
            return f"left out its story, as it ended well (keep='failed'): {counts}"
        # An attempt that went well says nothing beside the answer.
        case events.PromptAttempt() if event.status != "ok":
            return (
                f"attempt  {event.prompt_attempt} ended with {add_article(event.error_type)} error: "
                f"{_to_one_line(event.error)}"
            )
        case events.PromptFinished():
            missing_answer = "empty" if event.error_type == "none" else f"none ({event.error_type} error)"
            answer = to_one_line(event.answer, ANSWER_WIDTH) if event.answer.strip() else missing_answer
            return (
                f"answer   after {format_duration(event.duration_s)}, {format_count(event.attempts, 'attempt')}: "
                f"{answer}"
            )
        case _:
            return ""


def _format_call_place(event: Any) -> str:
    return f"{event.target} {event.request}.{event.attempt}"


def _format_value(value: Any) -> str:
    if value in (None, {}):
        return ""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return f"{len(value['messages'])} messages"
    return _to_one_line(json.dumps(value, ensure_ascii=False))


def _is_error_in_reply(error: str | None, reply: str) -> bool:
    """True if the reply adds little to the text of the error."""
    # Up to forty characters more are braces and quotes.
    return bool(error) and str(error) in reply and len(reply) < 2 * len(str(error)) + 40


def _to_one_line(text: str) -> str:
    return to_one_line(text, WIDTH)
