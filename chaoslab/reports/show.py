"""A trial's story in time order: calls and replies, faults and their changes, effects, the answer and the verdict."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

from chaoslab.analysis.measures.idle import not_met
from chaoslab.analysis.verdict.judge import judge
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.durations import difference, duration
from chaoslab.base.jsonable import line
from chaoslab.base.phrases import a
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.log import encode_event
from chaoslab.reports import trials as those
from chaoslab.reports._faults import MetFault

WIDTH, ANSWER_WIDTH = 200, 1000
"""The most characters shown of a text, and of an answer."""


def render(
    history: History, *, prompt: int | None = None, trials: Sequence[str] = (), outcomes: Set[Outcome] | None = None,
    stages: bool = False,
) -> str:  # fmt: skip
    """The stories of a run's trials; `t` counts from each one's start. `prompt`, `trials`, `outcomes` select the
    trials. `stages`: each stage of a fault has a line of its own. Raises LookupError: the run has no such prompt or
    trial."""
    wanted, records, judged = _selected(history, prompt, trials, outcomes)
    if not wanted:
        return (
            f"no trial here is {_either(outcomes or set(Outcome))}: "
            f"{those.counted(Counter(v.outcome for v in judged.values()))}\n"
        )
    of_run = not_met(history)
    run = history.first(events.RunStarted)
    planned = [str(each.get("name", "")) for each in run.injections] if run is not None else []
    planned = [name for name in planned if not any(name in said for said in of_run)]
    stories = (
        "\n".join(
            [
                _story(*pair, records[pair[0].trial], judged[pair[0].trial or ""], stages=stages),
                *map(_unmet, _spared(planned, records[pair[0].trial])),
            ]
        )
        for pair in wanted
    )
    return "\n\n".join([*stories, *(["\n".join(map(_unmet, of_run))] if of_run else ())]) + "\n"


def _unmet(said: str) -> str:
    return f"{'not met':>12}  {line(said, ANSWER_WIDTH)}"


def _spared(planned: Sequence[str], records: Sequence[Record]) -> list[str]:
    """The planned injections that no call of the trial was drawn for, in a line for each reason; of one that was drawn
    and not met the story itself tells."""
    if any(isinstance(record.event, events.StoryLeftOut) for record in records):
        return []
    drawn = {record.event.injection for record in records if isinstance(record.event, events.FaultScheduled)}
    rolled = {
        name for record in records if isinstance(record.event, events.CallFinished) for name in record.event.rolled
    }
    left = [name for name in planned if name not in drawn]
    reasons = {
        "spared by the dice": [name for name in left if name in rolled],
        "planned, and no call was for it": [name for name in left if name not in rolled],
    }
    return [f"{why}: {'; '.join(names)}" for why, names in reasons.items() if names]


def plain(
    history: History, *, prompt: int | None = None, trials: Sequence[str] = (), outcomes: Set[Outcome] | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The same trials as JSON values: verdict and events; `t` counts in seconds from the run's start. Raises
    LookupError: the run has no such prompt or trial."""
    wanted, records, judged = _selected(history, prompt, trials, outcomes)
    found = []
    for start, event in wanted:
        trial = start.trial or ""
        verdict = judged[trial]
        found.append(
            {
                "trial": trial, "prompt": event.prompt, "outcome": str(verdict.outcome), "world": str(verdict.world),
                "said": str(verdict.said), "basis": str(verdict.basis), "hint": verdict.hint, "why": verdict.why,
                "harm": list(verdict.harm),
                "events": [
                    {"t": each.t, "writer": each.writer, "seq": each.seq, **json.loads("{" + encode_event(each.event))}
                    for each in records[start.trial]
                ],
            }
        )  # fmt: skip
    return found


Chosen = list[tuple[Record, events.PromptStarted]]


def _selected(
    history: History, prompt: int | None, trials: Sequence[str], outcomes: Set[Outcome] | None
) -> tuple[Chosen, dict[str | None, list[Record]], dict[str, Verdict]]:
    """The beginnings of the trials that are wanted, the records by trial, and the verdicts of all that were judged."""
    starts = _chosen(history, prompt, trials)
    records: dict[str | None, list[Record]] = {}
    for record in history.records:
        records.setdefault(record.trial, []).append(record)
    judged = {
        trial: judge(History(records[trial], running=history.running, spoken=history.spoken), trial)
        for trial in (start.trial or "" for start, _ in starts)
    }
    wanted = [pair for pair in starts if outcomes is None or judged[pair[0].trial or ""].outcome in outcomes]
    return wanted, records, judged


class Story(History):
    """A history that prints as the stories of its trials."""

    @classmethod
    def of_history(cls, history: History) -> Story:
        """The same history, as a story."""
        story = cls.__new__(cls)
        vars(story).update(vars(history))
        return story

    def __str__(self) -> str:
        return render(self).removesuffix("\n") if self.trials else repr(self)


def _chosen(history: History, prompt: int | None, trials: Sequence[str]) -> list[tuple[Record, events.PromptStarted]]:
    begun = [(record, event) for record, event in history.of(events.PromptStarted) if record.trial is not None]
    starts = [pair for pair in begun if prompt in (None, pair[1].prompt_index)]
    if not starts:
        known = sorted({event.prompt_index for _, event in begun})
        there = f"its prompts are {known[0]} to {known[-1]}" if known else "no trial was started in it"
        raise LookupError(f"this run has no prompt {'' if prompt is None else prompt}: {there}".replace(" :", ":"))
    if not trials:
        return starts
    prompts = those.prompts_of(history)
    keys = {key for name in trials for key in those.named(name, history.trials, prompts=prompts)}
    chosen = [pair for pair in starts if pair[0].trial in keys]
    if not chosen:
        raise LookupError(f"trial {trials[0]} is none of prompt {prompt}: leave one of the two out")
    return chosen


def _either(outcomes: Set[Outcome]) -> str:
    *most, last = [outcome for outcome in Outcome if outcome in outcomes]
    return f"{', '.join(most)} or {last}" if most else last


def _story(start: Record, event: events.PromptStarted, records: list[Record], verdict: Verdict, *, stages: bool) -> str:
    lines = [f"{start.trial}  prompt {event.prompt_index}: {_flat(event.prompt)}"]
    met, answered = MetFault.by_place(records), False
    for number, record in enumerate(records):
        folded = not stages and isinstance(record.event, events.Stage)
        said = event_text(record.event) if not folded else f"fault    {met[number].in_words()}" if number in met else ""
        if said:
            if answered:
                lines.append(f"{'':>12}  after the answer:")
                answered = False
            lines.append(f"{difference(record.t - start.t, 3):>12}  {said}")
        answered = answered or type(record.event) is events.PromptFinished
    lines.append(f"{'verdict':>12}  {verdict.outcome}: {line(verdict.why, ANSWER_WIDTH)}")
    return "\n".join(lines)


def event_text(event: events.Event) -> str:
    """The event as text; empty if it adds nothing."""
    match event:
        case events.CallStarted():
            return f"call     {_place(event)} {event.tool}({_value(event.arguments)})"
        case events.CallFinished():
            how = "ok" if event.ok else "" if event.cancelled else "FAILED"
            status = "" if event.status is None else f" {event.status}"
            error = f" {_flat(event.error)}" if event.error else ""
            replayed = ", replayed" if event.replayed else ""
            reply = (
                f": {_flat(event.reply)}"
                if event.reply and (event.ok or not _told_in(event.error, event.reply))
                else ""
            )
            took = f"in {_time(event.duration_s)} via {event.via}{replayed}"
            return f"result   {_place(event)} {f'{how}{status}{error}'.lstrip()} {took}{reply}"
        case events.FaultScheduled():
            return (
                f"fault    {_place(event)} {event.fault} scheduled by {event.injection} {_value(event.params)}".rstrip()
            )
        case events.FaultArmed():
            return f"fault    {_place(event)} {event.fault} armed on lane {event.lane}"
        case events.FaultInjected():
            return f"fault    {_place(event)} {event.fault} injected"
        case events.FaultWitnessed():
            changed = f" ({_flat(event.changed)})" if event.changed else ""
            return f"fault    {_place(event)} {event.fault} witnessed: {_flat(event.evidence)}{changed}"
        case events.FaultHealed():
            unmet = f", since {event.masked_by} ended the call first" if event.masked_by else ""
            said = "" if event.witnessed else f", {event.idle}" if event.idle else f", NOT WITNESSED{unmet}"
            return f"fault    {_place(event)} {event.fault} healed{said}"
        case events.FaultUnreached():
            return f"fault    {event.target} {event.request} NOT REACHED by {event.injection}"
        case events.ServiceStopped():
            return f"process  {_place(event)} {event.how} for {event.fault}"
        case events.ServiceResumed():
            return f"process  {event.target} back after {_wait(event.lasted_s)}"
        case events.AgentDied():
            return f"process  {_place(event)} the agent was killed"
        case events.AgentResumed():
            return f"process  the agent resumes ({event.nth})"
        case events.CallDisturbed():
            return f"lab      {_place(event)} disturbed: {_flat(event.why)}"
        case events.Retry():
            return f"retry    {_place(event)} after {_wait(event.wait_s)}: {_flat(event.reason)}"
        case events.Fallback():
            return f"fallback {_place(event)} to {event.address}"
        case events.Effect():
            return f"effect   {event.target} {event.effect} {_value(event.content)}"
        case _:
            return _said_of_the_prompt(event)


def _said_of_the_prompt(event: events.Event) -> str:
    match event:
        case events.PromptStarted() if event.twin is not None:
            return f"twin     without faults: {line(event.twin, ANSWER_WIDTH)}"
        case events.ValuesDrawn():
            return f"drawn    {_flat(', '.join(f'{name} = {value}' for name, value in event.values.items()))}"
        case events.TurnStarted():
            return f"turn     {event.turn}: {line(event.prompt, ANSWER_WIDTH)}"
        case events.TurnFinished():
            return f"turn     {event.turn} answered: {line(event.answer, ANSWER_WIDTH)}"
        case events.Usage():
            return f"usage    model {event.request} {event.prompt_tokens} + {event.completion_tokens} tokens"
        case events.UsageUnstated():
            about = event.prompt_tokens + event.completion_tokens
            return f"usage    model {event.request} not stated, about {about} tokens"
        case events.Budget():
            return f"budget   {event.limit}: {event.spent:g} of {event.allowed:g} ({event.mode})"
        case events.CallsOrdered():
            return f"order    {_flat(', '.join(event.calls))}: drawn for calls made together"
        case events.FaultsOff():
            return f"off      {_flat(event.said)}"
        case events.ChanceSet():
            return f"set      {_flat(event.said)}"
        case events.LabWarning():
            return f"warning  {_flat(event.message)}"
        case events.StoryLeftOut():
            calls, met = sum(event.calls.values()), sum(sum(by.values()) for by in event.met.values())
            counts = f"{calls} call{'' if calls == 1 else 's'}, {met} fault{'' if met == 1 else 's'} met"
            return f"left out its story, as it ended well (keep='failed'): {counts}"
        case events.PromptAttempt() if event.status != "ok":
            return f"attempt  {event.prompt_attempt} ended with {a(event.error_type)} error: {_flat(event.error)}"
        case events.PromptFinished():
            lack = "empty" if event.error_type == "none" else f"none ({event.error_type} error)"
            answer = line(event.answer, ANSWER_WIDTH) if event.answer.strip() else lack
            answer = "untold in such a log" if event.status == events.UNTOLD else answer
            count = events.UNTOLD if event.attempts is None else event.attempts
            return f"answer   after {_time(event.duration_s)}, {count} attempt{'' if count == 1 else 's'}: {answer}"
        case _:
            return ""


def _place(event: Any) -> str:
    return f"{event.target} {event.request}.{event.attempt}"


def _time(duration_s: float) -> str:
    return "untold time" if math.isnan(duration_s) else duration(duration_s)


def _wait(wait_s: float) -> str:
    return "untold time" if math.isnan(wait_s) else f"{wait_s:g} s"


def _value(value: Any) -> str:
    if value in (None, {}):
        return ""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return f"{len(value['messages'])} messages"
    return _flat(json.dumps(value, ensure_ascii=False))


def _told_in(error: str | None, reply: str) -> bool:
    """True if the reply adds little to the text of the error."""
    return bool(error) and str(error) in reply and len(reply) < 2 * len(str(error)) + 40


def _flat(text: str) -> str:
    return line(text, WIDTH)
