"""The reads that a trial lost and that its answer rests on, found by intervening.

An answer that equals the twin's proves nothing if what it rests on was never read. So where a trial lost a read for
good, the trial without faults is run once more with the value of that read changed. If its answer or its effects
change, they rest on it. Once a read and run, in virtual time, where that costs nothing real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

from chaoslab.analysis.answers.compare import Likeness, compare
from chaoslab.analysis.verdict.seen import TwinRead
from chaoslab.base.identity import canonical
from chaoslab.core import events
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.faults.meaning.wrong_value import WrongValue, find_places
from chaoslab.record.history import History


@dataclass(frozen=True)
class ChangedRead(WrongValue):
    """Every value of a reply is another one, of the same type, so that no field of it is left as it was."""

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        reply: Reply = yield call
        if not isinstance(reply.value, dict | list | str | int | float):
            return reply
        box = [deepcopy(reply.value)]
        for holder, key in list(find_places(box, every=True)):
            holder[key] = self._wrong(holder[key])
        return reply.in_form(box[0])


def reads_in(history: History) -> list[TwinRead]:
    """The reads of a trial without faults: its right answers but those of models and of calls with an effect. Equal
    requests are one read, whose value is the last one."""
    acting = {(effect.target, effect.request_id) for _, effect in history.of(events.Effect)}
    numbers: dict[tuple[str, str, str], list[int]] = {}
    replies: dict[tuple[str, str, str], str] = {}
    for key, call in _ended_calls(history):
        if call.ok and call.finish_reason is None and (call.target, call.request_id) not in acting:
            numbers.setdefault(key, []).append(call.request)
            replies[key] = call.reply
    return [TwinRead(*key, tuple(numbers[key]), reply) for key, reply in replies.items()]


def _ended_calls(history: History) -> Iterator[tuple[tuple[str, str, str], events.CallFinished]]:
    """The end of each call with its target, its tool and its arguments as text."""
    arguments = {event.at: canonical(event.arguments) for _, event in history.of(events.CallStarted)}
    for _, call in history.of(events.CallFinished):
        yield (call.target, call.tool, arguments.get(call.at, "")), call


def find_lost_reads(reads: Sequence[TwinRead], history: History) -> list[TwinRead]:
    """The reads of the twin that a trial tried and never got, with nothing in their place: no right answer with the
    twin's value, and none of a call that the twin did not make."""
    if not any(True for _ in history.of(events.FaultWitnessed)):
        return []
    known = {(read.target, read.tool) for read in reads}
    tried, right, values = set(), set(), set()
    for key, call in _ended_calls(history):
        tried.add(key)
        if call.ok and call.finish_reason is None:
            right.add(key)
            values.add(call.reply)
            if key[:2] not in known and not _has_effect(history, call):
                return []  # a fallback, which may have given the same in another form
    return [read for read in reads if read.key in tried - right and read.reply not in values]


def _has_effect(history: History, call: events.CallFinished) -> bool:
    return any((effect.target, effect.request_id) == (call.target, call.request_id)
               for _, effect in history.of(events.Effect))  # fmt: skip


class Grounds:
    """The reads that answers and effects rest on, each found once. `intervene`: runs the trial of this number without
    faults but for these injections."""

    def __init__(self, intervene: Callable[[int, Sequence[Injection]], AgentResult]) -> None:
        self._intervene = intervene
        self._known: dict[tuple[int, TwinRead], events.GroundLost | None] = {}

    def note(self, case: AgentCase, number: int, result: AgentResult) -> AgentResult:
        """Adds to the trial's events which reads it lost that its answer or effects rest on. `number`: that of the
        trial whose chance decides; 0 where all trials have one twin."""
        twin = case.twin
        if twin is None or not twin.reads or not twin.said or not result.ok:
            return result
        for read in find_lost_reads(twin.reads, result.history):
            key = (number if case.own_twins is not None else 0, read)
            if key not in self._known:
                self._known[key] = self._find(case, key[0], read)
            if (lost := self._known[key]) is not None:
                result.book.add(lost)
        return result

    def _find(self, case: AgentCase, number: int, read: TwinRead) -> events.GroundLost | None:
        assert case.twin is not None
        changed = inject(ChangedRead(factor=3.0), read.target, name="changed read", calls=read.requests)
        history = self._intervene(number, [changed]).history
        if not any(True for _ in history.of(events.FaultWitnessed)):
            return None  # the value could not be changed, so nothing is known
        said = next((e.answer for _, e in history.of(events.PromptFinished) if e.status == "ok"), None)
        answer = said is None or compare(case.twin.said, said).likeness is not Likeness.SAME
        effects = _name_effects(history) != case.twin.effect_names
        name = read.tool or read.target
        return events.GroundLost(target=read.target, tool=name, answer=answer, effects=effects)


def _name_effects(history: History) -> list[str]:
    return name_effects(effect for _, effect in history.of(events.Effect))


def name_effects(effects: Iterable[events.Effect]) -> list[str]:
    """Each effect with its content as one text."""
    return [canonical([effect.effect, effect.content]) for effect in effects]
