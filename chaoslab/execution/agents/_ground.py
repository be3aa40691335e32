"""The reads that a trial lost and that its answer rests on, found by intervening.

An answer that equals the twin's proves nothing if what it rests on was never read. So where a trial lost a read for
good, the trial without faults is run once more with the value of that read changed. If its answer or its effects
change, they rest on it. Once a read and run, in virtual time, where that costs nothing real.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from chaoslab.analysis.answers.compare import Likeness, compare_answers
from chaoslab.analysis.answers.structures import parse_json_structure
from chaoslab.analysis.answers.values import has_digit, tokenize
from chaoslab.analysis.verdict.seen import TwinRead
from chaoslab.analysis.verdict.standing import Standing, get_outcome_standing
from chaoslab.base.identity import canonical
from chaoslab.core import events
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.faults.meaning.wrong_value import WrongValue, find_value_places
from chaoslab.record.effects import make_attempt_finder
from chaoslab.record.history import History


@dataclass(frozen=True)
class ChangedRead(WrongValue):
    """Every value of a reply is another one, of the same type, so that no field of it is left as it was."""

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        reply: Reply = yield call
        if not isinstance(reply.value, dict | list | str | int | float):
            return reply
        # In a list, so that a bare text or number has a holder that can be written to, too.
        box = [deepcopy(reply.value)]
        for holder, key in list(find_value_places(box, every=True)):
            holder[key] = self._make_wrong_value(holder[key])
        return reply.with_fitted_value(box[0])


def find_twin_reads(history: History) -> list[TwinRead]:
    """The reads of a trial without faults: its right answers but those of models and of calls with an effect. Equal
    requests are one read, whose value is the last one."""
    attempt_of = make_attempt_finder(event for _, event in history.find_events(events.CallFinished))
    attempts = [attempt_of(effect) for _, effect in history.find_events(events.Effect)]
    acting = {attempt[:2] for attempt in attempts if attempt is not None}
    numbers: dict[tuple[str, str, str], list[int]] = {}
    replies: dict[tuple[str, str, str], list[str]] = {}
    for key, call in _iterate_ended_calls(history):
        # A model's reply has a finish_reason, and is no read: what it says follows from what it was sent.
        if call.ok and call.finish_reason is None and (call.target, call.request) not in acting:
            numbers.setdefault(key, []).append(call.request)
            replies.setdefault(key, []).append(call.reply)
    return [
        TwinRead(*key, tuple(numbers[key]), last, tuple(reply for reply in dict.fromkeys(earlier) if reply != last))
        for key, (*earlier, last) in replies.items()
    ]


def _iterate_ended_calls(history: History) -> Iterator[tuple[tuple[str, str, str], events.CallFinished]]:
    """The end of each call with its target, its tool and its arguments as text."""
    arguments = {event.at: canonical(event.arguments) for _, event in history.find_events(events.CallStarted)}
    for _, call in history.find_events(events.CallFinished):
        yield (call.target, call.tool, arguments.get(call.at, "")), call


def find_lost_reads(reads: Sequence[TwinRead], history: History) -> dict[TwinRead, bool]:
    """The reads of the twin that a trial tried and never got, or got no further than to what the twin read before, with
    nothing in their place: no right answer of a call that the twin did not make has each of their values. Flags and
    words alone are too common to be such values. True if the trial asked more often than its twin, as who waits for a
    value does. With a lost read goes what the twin read of the same tool with other arguments, as a poll does."""
    witnessed = [event for _, event in history.find_events(events.FaultWitnessed)]
    if not witnessed:
        return {}
    spoilt = {event.at for event in witnessed if event.changed}
    values = {read.key: read.reply for read in reads}
    tried_keys, right_replies, other_values = (
        Counter[tuple[str, str, str]](),
        dict[tuple[str, str, str], str](),
        list[set[str]](),
    )
    for key, call in _iterate_ended_calls(history):
        tried_keys[key] += 1
        lost_values = call.at in spoilt and _has_lost_right_values(values.get(key, ""), call.reply)
        if call.ok and call.finish_reason is None and not lost_values:
            right_replies[key] = call.reply
            if key not in values:
                other_values.append(set(tokenize(call.reply)))
    missing = [read for read in reads if right_replies.get(read.key) in (None, *read.earlier)]
    lost_reads = {read: tried_keys[read.key] > len(read.requests) for read in missing if tried_keys[read.key]}
    tools = {read.key[:2] for read in lost_reads}
    had = {(key[:2], reply) for key, reply in right_replies.items()}
    lost_reads |= {
        read: False for read in missing
        if not tried_keys[read.key] and read.key[:2] in tools and (read.key[:2], read.reply) not in had
    }  # fmt: skip
    return {
        read: again for read, again in lost_reads.items() if not _is_read_found_in_other_replies(read, other_values)
    }


def _has_lost_right_values(right: str, changed: str) -> bool:
    """True if a reply that a fault changed lacks a value of the right one; it may have it in another form."""
    value = parse_json_structure(right)
    texts = _iterate_reply_texts(right if value is None else value)
    return not {token for text in texts for token in tokenize(text)} <= set(tokenize(changed))


def _is_read_found_in_other_replies(read: TwinRead, other_values: Sequence[set[str]]) -> bool:
    """True if the reply of another call has all values of a read."""
    values = set(tokenize(read.reply))
    return any(has_digit(value) and value not in ("#0", "#1") for value in values) and any(
        values <= reply_values for reply_values in other_values
    )


def _has_other_value_source(read: TwinRead, history: History) -> bool:
    """True if an agent that lost a read may honestly have its value, in any form: from another right reply, or from
    the words of its user."""
    replied = any(call.ok and call.finish_reason is None for _, call in history.find_events(events.CallFinished))
    texts = [event.prompt for _, event in history.find_events(events.PromptStarted)]
    texts += [event.prompt for _, event in history.find_events(events.TurnStarted)]
    return replied or not set(tokenize(read.reply)).isdisjoint(token for text in texts for token in tokenize(text))


class LostReadFinder:
    """The reads that answers and effects rest on, each found once. `intervene`: runs the trial of this number without
    faults but for these injections."""

    def __init__(self, intervene: Callable[[int, Sequence[Injection]], AgentResult]) -> None:
        self._intervene = intervene
        self._known: dict[tuple[int, TwinRead], events.GroundLost | None] = {}

    def add_lost_read_events(self, case: AgentCase, number: int, result: AgentResult) -> AgentResult:
        """Adds to the trial's events which reads it lost that its answer or effects rest on. `number`: that of the
        trial whose chance decides; 0 where all trials have one twin."""
        twin = case.twin
        if twin is None or not twin.reads or not twin.said or not result.ok:
            return result
        lost_reads = find_lost_reads(twin.reads, result.history)
        if not lost_reads or get_outcome_standing(result.outcome) is Standing.BAD:  # it has no ground to lose
            return result
        for read, again in lost_reads.items():
            key = (number if case.own_twins is not None else 0, read)
            if key not in self._known:
                self._known[key] = self._probe_read_dependence(case, key[0], read)
            if (lost := self._known[key]) is not None:
                sole = lost.sole and not _has_other_value_source(read, result.history)
                result.add_event(replace(lost, sole=sole, calls=lost.calls or again))
        return result

    def _probe_read_dependence(self, case: AgentCase, number: int, read: TwinRead) -> events.GroundLost | None:
        assert case.twin is not None
        is_in_answer = _is_read_in_answer(read, case.twin.said, str(case.prompt))
        name = read.tool or read.target
        # What an answer rests on is found by intervening: no reading of its words would tell.
        changed = inject(ChangedRead(factor=3.0), read.target, name="changed read", calls=read.requests)
        history = self._intervene(number, [changed]).history
        if not any(True for _ in history.find_events(events.FaultWitnessed)):
            # The value could not be changed, so nothing else is known.
            ground = events.GroundLost(target=read.target, tool=name, answer=False, effects=False, shown=is_in_answer)
            return ground if is_in_answer else None
        changed_answer = next(
            (e.answer for _, e in history.find_events(events.PromptFinished) if e.status == "ok"), None
        )
        answer = changed_answer is None or compare_answers(case.twin.said, changed_answer).likeness is not Likeness.SAME
        effects = _list_effect_texts(history) != case.twin.effect_names
        calls = list_call_texts(history) != case.twin.call_names
        failed = any(not call.ok for _, call in history.find_events(events.CallFinished))
        sole = changed_answer is not None and not (effects or failed)  # else it may be what a changed value broke
        return events.GroundLost(
            target=read.target, tool=name, answer=answer, effects=effects, calls=calls, shown=is_in_answer, sole=sole
        )


def _list_effect_texts(history: History) -> list[str]:
    return list_effect_texts(effect for _, effect in history.find_events(events.Effect))


def _is_read_in_answer(read: TwinRead, answer_text: str, prompt: str) -> bool:
    """True if an answer has all words of a text or number of a reply, or of the name of a flag that is true, which
    neither the prompt nor the read's own arguments have: who reads nothing else can have it from there alone."""
    # Its arguments, which many replies repeat: whoever sent them knew them before.
    answer, known_tokens = set(tokenize(answer_text)), set(tokenize(prompt)) | set(tokenize(read.arguments))
    value = parse_json_structure(read.reply)
    token_sets = (set(tokenize(text)) for text in _iterate_reply_texts(read.reply if value is None else value))
    return any(word_tokens and word_tokens <= answer and not word_tokens <= known_tokens for word_tokens in token_sets)


def _iterate_reply_texts(value: Any, name: str = "") -> Iterator[str]:
    """The texts and numbers of a reply, and the names of its flags that are true."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_reply_texts(item, str(key))
    elif value is True:
        yield name
    elif isinstance(value, str | int | float) and value is not False:
        yield str(value)


def list_call_texts(history: History) -> list[str]:
    """Each call with its arguments as one text, in one order."""
    return sorted(
        canonical([event.target, event.tool, event.arguments]) for _, event in history.find_events(events.CallStarted)
    )


def list_effect_texts(effects: Iterable[events.Effect]) -> list[str]:
    """Each effect with its content as one text."""
    return [canonical([effect.effect, effect.content]) for effect in effects]
