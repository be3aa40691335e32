"""The trial without faults as the baseline of others: what they are compared with, and why some are none.

A run has one such trial, its twin, for all its trials if the twin draws no chance of its own. If it draws, each trial
has the twin of its own chance: another twin would show what chance did, and not what faults did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from chaoslab.analysis.answers.compare import Likeness, compare
from chaoslab.analysis.answers.hint import find_admission
from chaoslab.analysis.answers.values import shows
from chaoslab.analysis.verdict.ledger import done_in, effects_of, told_of
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.base.identity import REPEATABLE, canonical
from chaoslab.base.jsonable import brief, describe_error, line
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.execution.agents._calling import readable
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import name_calls, name_effects, reads_in
from chaoslab.execution.agents._orders import find_parallel_calls
from chaoslab.execution.agents.functions import Fresh
from chaoslab.execution.spec import TrialSpec
from chaoslab.record.history import History

C = TypeVar("C", bound=AgentCase)
SHOWN = 300
"""The longest one-line text of a reason, in characters."""
OTHERS = 4
"""The further trials without faults that are looked at if the first is no baseline by its own chance."""
NO_BASELINE = "the trial without faults is no baseline: {} (anyway=True, in files anyway: true, or --anyway, runs all)"
BY_CHANCE = "; it draws chance of its own, and {} others were none either"
_NO_TWIN = "nothing to compare with, since {}"
_NO_ANSWER = "nothing to compare the answer with: {}"
_LEAKS = "two runs without faults differ: {}; {}, which makes it anew for each trial, or isolate='fork'"
_TWICE = "without faults, by its own chance, it repeats an effect: {}"


class NoBaseline(ValueError):
    """The trial without faults is nothing to compare with. The message is one line."""


class Alone(Protocol):
    """Does one trial after the other."""

    def map(self, work: Any, specs: Iterable[TrialSpec], /) -> Iterator[AgentResult]: ...


@dataclass(frozen=True)
class CalmTrial:
    """A trial without faults."""

    result: AgentResult

    @property
    def history(self) -> History:
        return self.result.history

    @property
    def answer(self) -> Any:
        return self.result.answer

    @property
    def said(self) -> str | None:
        return said_in(self.history)

    @property
    def effects(self) -> list[dict[str, Any]]:
        return effects_in(self.history, self.result.book.key)

    @property
    def end_state(self) -> Any:
        return end_state_in(self.history)

    @property
    def failure(self) -> str:
        """The reason why it gave no answer, in words."""
        error = self.result.error
        return describe_error(error) if error is not None else "it would never have ended"


def said_in(history: History) -> str | None:
    """The answer as the text that is judged; None if the agent gave none."""
    finished = next((event for _, event in history.of(events.PromptFinished)), None)
    return finished.answer if finished is not None and finished.status == "ok" else None


def asked_in(history: History) -> list[str]:
    """The digests of what scripted models were asked, each once, in order."""
    return list(dict.fromkeys(event.asked for _, event in history.of(events.CallFinished) if event.asked))


def effects_in(history: History, trial: str) -> list[dict[str, Any]]:
    """The effects of the trial, as users give them as `effects=`."""
    return [{"effect": effect.effect, **effect.content} for effect in effects_of(history, trial)]


def end_state_in(history: History) -> Any:
    """The JSON value that `state` returned at the end; None without `state`, or if it failed."""
    return next((event.after for _, event in history.of(events.EndState)), None)


def compared(case: C, alone: Alone) -> tuple[AgentResult, C]:
    """The first trial without faults, and the case with its results in place of those not stated. Raises NoBaseline: it
    is nothing to compare with, and the trials are not to run anyway."""
    # Two runs without faults that differ are no baseline. In real time a second one would act once more.
    times = 2 if case.options.world == "virtual" else 1
    calm = plain(case)
    done = [CalmTrial(each) for each in alone.map(calm, [TrialSpec(0)] * times)]
    first, again = done[0], done[-1]
    case = replace(case, called=first.result.called)
    if not case.options.anyway and (why := no_baseline(first, case)):
        # One that draws no chance of its own would only do the same again.
        numbers = range(1, 1 + OTHERS) if first.result.drew else ()
        others = [CalmTrial(each) for each in alone.map(calm, map(TrialSpec, numbers))]
        if all(no_baseline(each, case) for each in others):
            raise NoBaseline(NO_BASELINE.format(why + (BY_CHANCE.format(len(others)) if others else "")))
    bare = replace(case, unlike=_differences(first, again), twice=case.options.anyway and _repeats(first, case))
    made = own(bare, first) if first.result.drew else _beside(bare, first, again)
    if made.incomparable and first.said is not None and readable(first.answer) and not case.options.anyway:
        raise NoBaseline(NO_BASELINE.format(made.notes[0]))
    return first.result, replace(made, own_twins=bare if first.result.drew else None)


def plain(case: C) -> C:
    """The same trials without faults, in the order of asking."""
    return replace(case, plan=Plan(case.plan.seed), options=replace(case.options, order="asked"), own_twins=None)


def own(bare: C, twin: CalmTrial) -> C:
    """The case of a trial beside its own twin. What the twin repeats by its chance is no reason to do it twice."""
    made = _beside(bare, twin, twin)
    if bare.effects is not None or bare.twice or not made.effects:
        return made
    if (repeated := _repeated(twin, bare.options.idempotent or ())) is None:
        return made
    effects = list({canonical(each): each for each in made.effects}.values())
    return replace(made, effects=effects, notes=(*made.notes, _TWICE.format(told_of(repeated["effect"], repeated))))


def _beside(case: C, twin: CalmTrial, again: CalmTrial) -> C:
    """The case with the results of its trial without faults, but for what is `unlike` in two runs of it."""
    if twin.said is None:
        why = f"it fails without faults too ({twin.failure})"
        return replace(case, incomparable=f"nothing to compare with, since {why}", notes=(_NO_TWIN.format(why),))
    effects = None if "effects" in case.unlike else twin.effects
    answer = None if "answer" in case.unlike else twin.said
    legible, same_state = readable(twin.answer), "state" not in case.unlike
    why = next(iter(case.unlike.values()), "")
    if not legible:
        answer, why = None, f"its answer, {_short(twin.said)}, cannot be read: return a text or a dict, or give says="
    differ = _LEAKS.format(why, _kept(case, twin, again)) if why else ""
    notes = (differ if legible else _NO_ANSWER.format(why),) if why else ()
    if not case.facts and find_admission(twin.said):
        notes = (*notes, f"the trial without faults seems to say that something failed: {_short(twin.said)}")
    facts_stated, effects_stated = bool(case.facts), case.effects is not None
    held = (
        same_state
        and "calls" not in case.unlike
        and (facts_stated or answer is not None)
        and (effects_stated or effects is not None)
    )
    return replace(
        case,
        effects=case.effects if effects_stated else effects,
        exact=bool(effects) and not effects_stated,
        pending=twin.result.pending,
        twin=Twin(
            answer if all(shows(fact, twin.said) for fact in case.facts) else None,
            twin.result.seconds,
            sum(1 for _ in twin.history.of(events.CallStarted)),
            failed=tuple(sorted({over.target for _, over in twin.history.of(events.CallFinished) if not over.ok})),
            asked=asked_in(twin.history),
            said=twin.said,
            effect_names=name_effects(effect for _, effect in twin.history.of(events.Effect)),
            call_names=name_calls(twin.history),
            reads=reads_in(twin.history),
            parallel=find_parallel_calls(twin.history),
            turns=tuple(event.answer for _, event in twin.history.of(events.TurnFinished)),
        ),
        incomparable="" if held else f"two runs without faults differ: {why}" if legible else why,
        stated=facts_stated or effects_stated or answer is not None or effects is not None,
        notes=notes,
        twin_says=next((event.says for _, event in twin.history.of(events.AnswerRead)), None),
        right_state=twin.end_state if same_state else None,
    )


def _differences(twin: CalmTrial, again: CalmTrial) -> dict[str, str]:
    """The parts in which two runs of the trial without faults differ, each with the difference in words."""
    if twin.said is None:
        return {}
    unlike = {}
    if again.said is None or compare(twin.said, again.said).likeness is not Likeness.SAME:
        other = _short(again.said) if again.said else again.failure
        unlike["answer"] = f"its answer is {_short(twin.said)} in one and {other} in the other"
    if twin.end_state != again.end_state:
        unlike["state"] = "their end states differ"
    if twin.effects != again.effects:
        one, other_ = len(twin.effects), len(again.effects)
        counts = f"it has {one} {'effect' if one == 1 else 'effects'} in one and {other_} in the other"
        unlike["effects"] = "its effects differ" if one == other_ else counts
    if call := _find_other_call(twin.history, again.history):
        unlike["calls"] = f"one of them calls {call} and the other does not"
    return unlike


def _find_other_call(one: History, other: History) -> str:
    """The first call that only one of two trials made, in words; empty if there is none."""
    counts = [Counter(_name_calls(history)) for history in (one, other)]
    return next(iter((counts[0] - counts[1]) + (counts[1] - counts[0])), "")


def _name_calls(history: History) -> Iterator[str]:
    for _, call in history.of(events.CallStarted):
        yield f"{call.tool or call.target} with {brief(call.arguments, SHOWN)}"


def no_baseline(twin: CalmTrial, case: AgentCase) -> str:
    """The reason why a trial without faults is nothing to compare with; empty if there is none."""
    if twin.said is None:
        return f"it fails ({line(twin.failure, SHOWN)})"
    if error := next((event.error for _, event in twin.history.of(events.AnswerRead)), ""):
        return f"says= cannot read its answer ({error})"
    if error := next((event.error for _, event in twin.history.of(events.EndState)), ""):
        return f"its end state cannot be read ({error})"
    failed = next((event for _, event in twin.history.of(events.CallFinished) if not event.ok), None)
    if failed is not None and not case.facts and find_admission(twin.said):  # it may be meant so, with anyway
        return f"its call of {failed.tool or failed.target} fails, and its own answer says so: {_short(twin.said)}"
    if case.effects is None and (twice := _repeated(twin, case.options.idempotent or ())):
        return f"it repeats an effect: {told_of(twice['effect'], twice)}"
    return ""


def _repeats(twin: CalmTrial, case: AgentCase) -> bool:
    return _repeated(twin, case.options.idempotent or ()) is not None


def _repeated(twin: CalmTrial, idempotent: Collection[str]) -> dict[str, Any] | None:
    """The first effect that is the same as an earlier one of its turn; None if there is none. What is done again in a
    later turn was asked for again, and a PUT or DELETE that is none of the earlier one's repeats takes another back."""
    own, seen = {id(effect) for _, effect in done_in(twin.history, twin.result.book.key)}, set[str]()
    for record in twin.history:
        effect = record.event
        if isinstance(effect, events.TurnStarted):
            seen.clear()
        elif isinstance(effect, events.Effect) and id(effect) in own and effect.effect not in idempotent:
            content = {"effect": effect.effect, **effect.content}
            if canonical(content) in seen and effect.tool.partition(" ")[0] not in REPEATABLE:
                return content
            seen.add(canonical(content))
    return None


def _kept(case: AgentCase, twin: CalmTrial, again: CalmTrial) -> str:
    """The advice on what to make anew: the service whose answer differs first, or the agent."""
    ends = [[event for _, event in each.history.of(events.CallFinished)] for each in (twin, again)]
    answers = zip(*([(end.target, end.status, end.reply) for end in found] for found in ends), strict=False)
    host = next((one[0] for one, other in answers if one != other and one[0] == other[0]), "")
    if isinstance(case.services.get(host, Fresh(str)), Fresh):
        return "something is kept from one trial to the next: give agent=lab.fresh(make)"
    return f"{host} keeps something from one trial to the next: give services={{'{host}': lab.fresh(make)}}"


def _short(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else f"{text[: width - 1]}…")
