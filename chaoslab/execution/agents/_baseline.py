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
from chaoslab.analysis.answers.values import contains_spelling
from chaoslab.analysis.verdict.ledger import describe_effect, find_recorded_effects, list_effects
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.base.identity import REPEATABLE, canonical
from chaoslab.base.jsonable import describe_error, line, render_brief
from chaoslab.core import events
from chaoslab.core.conversation import Conversation
from chaoslab.core.plan import Plan
from chaoslab.execution.agents._calling import is_readable
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import find_reads, name_calls, name_effects
from chaoslab.execution.agents._orders import find_parallel_calls
from chaoslab.execution.agents.functions import Fresh
from chaoslab.execution.spec import TrialSpec
from chaoslab.record.history import History

C = TypeVar("C", bound=AgentCase)
REASON_MAX = 300
"""The longest one-line text of a reason, in characters."""
FURTHER_MAX = 4
"""The further trials without faults that are looked at if the first is no baseline by its own chance."""
NO_BASELINE = "the trial without faults is no baseline: {} (anyway=True, in files anyway: true, or --anyway, runs all)"
BY_CHANCE = "; it draws chance of its own, and {} others were none either"
_NO_TWIN = "nothing to compare with, since {}"
_NO_ANSWER = "nothing to compare the answer with: {}"
_LEAKS = "two runs without faults differ: {}; {}, which makes it anew for each trial, or isolate='fork'"
_TWICE = "without faults, by its own chance, it repeats an effect: {}"


class NoBaseline(ValueError):
    """The trial without faults is nothing to compare with. The message is one line."""


class SequentialExecutor(Protocol):
    """Does one trial after the other."""

    def map(self, work: Any, specs: Iterable[TrialSpec], /) -> Iterator[AgentResult]: ...


@dataclass(frozen=True)
class TwinTrial:
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
        return find_answer_text(self.history)

    @property
    def effects(self) -> list[dict[str, Any]]:
        return list_effects_given(self.history, self.result.book.key)

    @property
    def end_state(self) -> Any:
        return find_end_state(self.history)

    @property
    def right(self) -> TwinTrial:
        """The trial whose effects and end state are the right ones: what is asked twice and is one event is done
        once."""
        return self if self.result.once is None else TwinTrial(self.result.once)

    @property
    def failure(self) -> str:
        """The reason why it gave no answer, in words."""
        error = self.result.error
        return describe_error(error) if error is not None else "it would never have ended"


def find_answer_text(history: History) -> str | None:
    """The answer as the text that is judged; None if the agent gave none."""
    finished = next((event for _, event in history.of(events.PromptFinished)), None)
    return finished.answer if finished is not None and finished.status == "ok" else None


def find_model_digests(history: History) -> list[str]:
    """The digests of what scripted models were asked, each once, in order."""
    return list(dict.fromkeys(event.asked for _, event in history.of(events.CallFinished) if event.asked))


def list_effects_given(history: History, trial: str) -> list[dict[str, Any]]:
    """The effects of the trial, as users give them as `effects=`."""
    return [{"effect": effect.effect, **effect.content} for effect in list_effects(history, trial)]


def find_end_state(history: History) -> Any:
    """The JSON value that `state` returned at the end; None without `state`, or if it failed."""
    return next((event.after for _, event in history.of(events.EndState)), None)


def run_baseline(case: C, alone: SequentialExecutor) -> tuple[AgentResult, C]:
    """The first trial without faults, and the case with its results in place of those not stated. Raises NoBaseline: it
    is nothing to compare with, and the trials are not to run anyway."""
    # Two runs without faults that differ are no baseline. In real time a second one would act once more.
    times = 2 if case.options.world == "virtual" else 1
    twin_case = without_faults(case)
    twins = [TwinTrial(trial) for trial in alone.map(twin_case, [TrialSpec(0)] * times)]
    first, second = twins[0], twins[-1]
    if (once_case := ask_once(twin_case)) is not None:
        note_once(first.result, *alone.map(once_case, [TrialSpec(0)]))
    case = replace(case, called=first.result.called)
    if not case.options.anyway and (reason := explain_no_baseline(first, case)):
        # One that draws no chance of its own would only do the same again.
        numbers = range(1, 1 + FURTHER_MAX) if first.result.drew else ()
        further_trials = [TwinTrial(trial) for trial in alone.map(twin_case, map(TrialSpec, numbers))]
        if all(explain_no_baseline(trial, case) for trial in further_trials):
            raise NoBaseline(
                NO_BASELINE.format(reason + (BY_CHANCE.format(len(further_trials)) if further_trials else ""))
            )
    uncompared = replace(
        case, unlike=_find_differences(first, second), twice=case.options.anyway and _has_repeat(first, case)
    )
    compared_case = with_own_twin(uncompared, first) if first.result.drew else _with_results(uncompared, first, second)
    if compared_case.incomparable and first.said is not None and is_readable(first.answer) and not case.options.anyway:
        raise NoBaseline(NO_BASELINE.format(compared_case.notes[0]))
    return first.result, replace(compared_case, own_twins=uncompared if first.result.drew else None)


def without_faults(case: C) -> C:
    """The same trials without faults, in the order of asking. A user who stops the agent to say something else wishes
    that alone."""
    said = [choice.params.get("say") for i in case.plan.injections for choice in i.choices if i.may_hit]
    words = next((say for say in said if say), None) if not isinstance(case.prompt, Conversation) else None
    return replace(
        case,
        plan=Plan(case.plan.seed),
        options=replace(case.options, order="asked"),
        own_twins=None,
        prompt=words or case.prompt,
    )


def ask_once(case: C) -> C | None:
    """The same trials, with equal turns asked once; None if there are none."""
    if not isinstance(case.prompt, Conversation):
        return None
    prompt = case.prompt.of_one_event(case.options.wishes)
    return None if prompt is case.prompt else replace(case, prompt=prompt)


def note_once(result: AgentResult, once: AgentResult) -> None:
    """Keeps the trial that was asked once with the one that was asked all, if both do the same kinds of things. Equal
    words that do something else the second time, as a second "Yes." does, are no event that came twice."""
    kinds = [{effect["effect"] for effect in TwinTrial(trial).effects} for trial in (result, once)]
    result.once = once if once.ok and kinds[0] == kinds[1] else None


def with_own_twin(bare: C, twin: TwinTrial) -> C:
    """The case of a trial beside its own twin. What the twin repeats by its chance is no reason to do it twice."""
    own_case = _with_results(bare, twin, twin)
    if bare.effects is not None or bare.twice or not own_case.effects:
        return own_case
    if (repeated := _find_repeated(twin, bare.options.idempotent or ())) is None:
        return own_case
    effects = list({canonical(effect): effect for effect in own_case.effects}.values())
    return replace(
        own_case, effects=effects, notes=(*own_case.notes, _TWICE.format(describe_effect(repeated["effect"], repeated)))
    )


def _with_results(case: C, twin: TwinTrial, second: TwinTrial) -> C:
    """The case with the results of its trial without faults, but for what is `unlike` in two runs of it."""
    if twin.said is None:
        reason = f"it fails without faults too ({twin.failure})"
        return replace(case, incomparable=f"nothing to compare with, since {reason}", notes=(_NO_TWIN.format(reason),))
    effects = None if "effects" in case.unlike else twin.right.effects
    answer = None if "answer" in case.unlike else twin.said
    legible, same_state = is_readable(twin.answer), "state" not in case.unlike
    reason = next(iter(case.unlike.values()), "")
    if not legible:
        answer, reason = (
            None,
            f"its answer, {_shorten(twin.said)}, cannot be read: return a text or a dict, or give says=",
        )
    differ = _LEAKS.format(reason, _advise_fresh(case, twin, second)) if reason else ""
    notes = (differ if legible else _NO_ANSWER.format(reason),) if reason else ()
    # Words decide nothing, so this is a warning; the twin stays the baseline.
    if not case.facts and find_admission(twin.said):
        notes = (*notes, f"the trial without faults seems to say that something failed: {_shorten(twin.said)}")
    facts_stated, effects_stated = bool(case.facts), case.effects is not None
    is_comparable = (
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
            # A twin whose answer lacks a stated fact is wrong itself, so no answer is compared with it.
            answer if all(contains_spelling(fact, twin.said) for fact in case.facts) else None,
            twin.result.seconds,
            sum(1 for _ in twin.history.of(events.CallStarted)),
            failed=tuple(sorted({call.target for _, call in twin.history.of(events.CallFinished) if not call.ok})),
            asked=find_model_digests(twin.history),
            said=twin.said,
            effect_names=name_effects(effect for _, effect in twin.history.of(events.Effect)),
            call_names=name_calls(twin.history),
            reads=find_reads(twin.history),
            parallel=find_parallel_calls(twin.history),
            turns=tuple(event.answer for _, event in twin.history.of(events.TurnFinished)),
        ),
        incomparable="" if is_comparable else f"two runs without faults differ: {reason}" if legible else reason,
        stated=facts_stated or effects_stated or answer is not None or effects is not None,
        notes=notes,
        twin_says=next((event.says for _, event in twin.history.of(events.AnswerRead)), None),
        right_state=twin.right.end_state if same_state else None,
        of_one_event=twin.result.once is not None,
    )


def _find_differences(twin: TwinTrial, second: TwinTrial) -> dict[str, str]:
    """The parts in which two runs of the trial without faults differ, each with the difference in words."""
    # A trial that fails is no baseline for that reason alone; no difference needs to be told.
    if twin.said is None:
        return {}
    differences = {}
    if second.said is None or compare(twin.said, second.said).likeness is not Likeness.SAME:
        second_answer = _shorten(second.said) if second.said else second.failure
        differences["answer"] = f"its answer is {_shorten(twin.said)} in one and {second_answer} in the other"
    if twin.end_state != second.end_state:
        differences["state"] = "their end states differ"
    if twin.effects != second.effects:
        first_count, second_count = len(twin.effects), len(second.effects)
        counts = (
            f"it has {first_count} {'effect' if first_count == 1 else 'effects'} in one and {second_count} in the other"
        )
        differences["effects"] = "its effects differ" if first_count == second_count else counts
    if call := _find_other_call(twin.history, second.history):
        differences["calls"] = f"one of them calls {call} and the other does not"
    return differences


def _find_other_call(first: History, second: History) -> str:
    """The first call that only one of two trials made, in words; empty if there is none."""
    counts = [Counter(_name_calls(history)) for history in (first, second)]
    return next(iter((counts[0] - counts[1]) + (counts[1] - counts[0])), "")


def _name_calls(history: History) -> Iterator[str]:
    for _, call in history.of(events.CallStarted):
        yield f"{call.tool or call.target} with {render_brief(call.arguments, REASON_MAX)}"


def explain_no_baseline(twin: TwinTrial, case: AgentCase) -> str:
    """The reason why a trial without faults is nothing to compare with; empty if there is none."""
    if twin.said is None:
        return f"it fails ({line(twin.failure, REASON_MAX)})"
    if error := next((event.error for _, event in twin.history.of(events.AnswerRead)), ""):
        return f"says= cannot read its answer ({error})"
    if error := next((event.error for _, event in twin.history.of(events.EndState)), ""):
        return f"its end state cannot be read ({error})"
    failed = next((event for _, event in twin.history.of(events.CallFinished) if not event.ok), None)
    if failed is not None and not case.facts and find_admission(twin.said):  # it may be meant so, with anyway
        return f"its call of {failed.tool or failed.target} fails, and its own answer says so: {_shorten(twin.said)}"
    if case.effects is None and (twice := _find_repeated(twin, case.options.idempotent or ())):
        return f"it repeats an effect: {describe_effect(twice['effect'], twice)}"
    return ""


def _has_repeat(twin: TwinTrial, case: AgentCase) -> bool:
    return _find_repeated(twin, case.options.idempotent or ()) is not None


def _find_repeated(twin: TwinTrial, idempotent: Collection[str]) -> dict[str, Any] | None:
    """The first effect that is the same as an earlier one of its turn; None if there is none. What is done again in a
    later turn was asked for again, and a PUT or DELETE that is none of the earlier one's repeats takes another back."""
    own_effects, seen_effects = (
        {id(effect) for _, effect in find_recorded_effects(twin.history, twin.result.book.key)},
        set[str](),
    )
    for record in twin.history:
        effect = record.event
        if isinstance(effect, events.TurnStarted):
            seen_effects.clear()
        elif isinstance(effect, events.Effect) and id(effect) in own_effects and effect.effect not in idempotent:
            content = {"effect": effect.effect, **effect.content}
            if canonical(content) in seen_effects and effect.tool.partition(" ")[0] not in REPEATABLE:
                return content
            seen_effects.add(canonical(content))
    return None


def _advise_fresh(case: AgentCase, twin: TwinTrial, second: TwinTrial) -> str:
    """The advice on what to make anew: the service whose answer differs first, or the agent."""
    ends = [[event for _, event in trial.history.of(events.CallFinished)] for trial in (twin, second)]
    # Up to the shorter one: a call that only one of the two made is another kind of difference (`_find_other_call`).
    answers = zip(*([(end.target, end.status, end.reply) for end in calls] for calls in ends), strict=False)
    host = next(
        (
            first_answer[0]
            for first_answer, second_answer in answers
            if first_answer != second_answer and first_answer[0] == second_answer[0]
        ),
        "",
    )
    # The default stands for "no service": then, as with a service that is made anew, it is the agent that keeps
    # something.
    if isinstance(case.services.get(host, Fresh(str)), Fresh):
        return "something is kept from one trial to the next: give agent=lab.fresh(make)"
    return f"{host} keeps something from one trial to the next: give services={{'{host}': lab.fresh(make)}}"


def _shorten(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else f"{text[: width - 1]}…")
