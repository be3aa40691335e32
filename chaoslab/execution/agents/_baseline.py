"""The trial without faults as the baseline of others: what they are compared with, and why some are none.

A run has one such trial, its twin, for all its trials if the twin draws no chance of its own. If it draws, each trial
has the twin of its own chance: another twin would show what chance did, and not what faults did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from chaoslab.analysis.answers.compare import Likeness, compare_answers
from chaoslab.analysis.answers.hint import find_failure_admission
from chaoslab.analysis.answers.values import contains_any_spelling
from chaoslab.analysis.verdict.ledger import describe_effect, find_recorded_effects, list_effects
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.base.identity import REPEATABLE, canonical
from chaoslab.base.jsonable import describe_error, render_brief, to_one_line
from chaoslab.core import events
from chaoslab.core.conversation import Conversation
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.execution.agents._calling import is_readable_answer
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import find_twin_reads, list_call_texts, list_effect_texts
from chaoslab.execution.agents._orders import find_parallel_calls
from chaoslab.execution.agents.functions import Fresh
from chaoslab.execution.spec import TrialSpec
from chaoslab.record.history import History

C = TypeVar("C", bound=AgentCase)
REASON_MAX = 300
"""The longest one-line text of a reason, in characters."""
FURTHER_MAX = 4
"""The further trials without faults that are looked at if the first is no baseline by its own chance."""
NO_BASELINE = (
    "the trial without faults is no baseline: {} (anyway=True, in files anyway: true, or --anyway, runs it regardless)"
)
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
    def answer_text(self) -> str | None:
        return find_answer_text(self.history)

    @property
    def effects(self) -> list[dict[str, Any]]:
        return list_effect_dicts(self.history, self.result.book.key)

    @property
    def end_state(self) -> Any:
        return find_end_state(self.history)

    @property
    def trial_with_right_effects(self) -> TwinTrial:
        """The trial whose effects and end state are the right ones: what is asked twice and is one event is done
        once."""
        return self if self.result.once is None else TwinTrial(self.result.once)

    @property
    def failure_reason(self) -> str:
        """The reason why it gave no answer, in words."""
        error = self.result.error
        return describe_error(error) if error is not None else "it would never have ended"


def find_answer_text(history: History) -> str | None:
    """The answer as the text that is judged; None if the agent gave none."""
    finished = next((event for _, event in history.find_events(events.PromptFinished)), None)
    return finished.answer if finished is not None and finished.status == "ok" else None


def list_model_request_digests(history: History) -> list[str]:
    """The digests of what scripted models were asked, each once, in order."""
    return list(dict.fromkeys(event.asked for _, event in history.find_events(events.CallFinished) if event.asked))


def list_effect_dicts(history: History, trial: str) -> list[dict[str, Any]]:
    """The effects of the trial, as users give them as `effects=`."""
    return [{"effect": effect.effect, **effect.content} for effect in list_effects(history, trial)]


def find_end_state(history: History) -> Any:
    """The JSON value that `state` returned at the end; None without `state`, or if it failed."""
    return next((event.after for _, event in history.find_events(events.EndState)), None)


def run_baseline(case: C, alone: SequentialExecutor) -> tuple[AgentResult, C]:
    """The first trial without faults, and the case with its results in place of those not stated. Raises NoBaseline: it
    is nothing to compare with, and the trials are not to run anyway."""
    # Two runs without faults that differ are no baseline. In real time a second one would act once more.
    times = 2 if case.options.world == "virtual" else 1
    twin_case = remove_faults(case)
    twins = [TwinTrial(trial) for trial in alone.map(twin_case, [TrialSpec(0)] * times)]
    first, second = twins[0], twins[-1]
    if (once_case := make_case_with_equal_turns_once(twin_case)) is not None:
        attach_equal_turns_once_result(first.result, *alone.map(once_case, [TrialSpec(0)]))
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
        case,
        unlike=_find_twin_differences(first, second),
        twice=case.options.anyway and _has_repeated_effect(first, case),
    )
    compared_case = (
        fill_case_from_own_twin(uncompared, first)
        if first.result.drew
        else _fill_case_from_twin(uncompared, first, second)
    )
    if (
        compared_case.incomparable
        and first.answer_text is not None
        and is_readable_answer(first.answer)
        and not case.options.anyway
    ):
        raise NoBaseline(NO_BASELINE.format(compared_case.notes[0]))
    return first.result, replace(compared_case, own_twins=uncompared if first.result.drew else None)


def remove_faults(case: C) -> C:
    """The same trials without faults, in the order of asking. A user who stops the agent to say something else wishes
    that alone. With `wishes`, an event that a fault repeats is wanted again, so it comes again here, too."""
    said = [choice.params.get("say") for i in case.plan.injections for choice in i.choices if i.may_hit]
    words = next((say for say in said if say), None) if not isinstance(case.prompt, Conversation) else None
    return replace(
        case,
        plan=Plan(case.plan.seed, _list_event_twice_injections(case.plan) if case.options.wishes > 1 else ()),
        options=replace(case.options, order="asked"),
        own_twins=None,
        prompt=words or case.prompt,
    )


def _list_event_twice_injections(plan: Plan) -> tuple[Injection, ...]:
    """The injections of the plan that repeat an event, each of which comes after the answer to the first."""
    again = (Choice("event_twice"),)
    return tuple(replace(i, choices=again) for i in plan.injections if i.choices[0].fault == "event_twice")


def make_case_with_equal_turns_once(case: C) -> C | None:
    """The same trials, with equal turns asked once; None if there are none."""
    if not isinstance(case.prompt, Conversation):
        return None
    prompt = case.prompt.limit_repeats(case.options.wishes)
    return None if prompt is case.prompt else replace(case, prompt=prompt)


def attach_equal_turns_once_result(result: AgentResult, once: AgentResult) -> None:
    """Keeps the trial that was asked once with the one that was asked all, if both do the same kinds of things. Equal
    words that do something else the second time, as a second "Yes." does, are no event that came twice."""
    kinds = [{effect["effect"] for effect in TwinTrial(trial).effects} for trial in (result, once)]
    result.once = once if once.ok and kinds[0] == kinds[1] else None


def fill_case_from_own_twin(bare: C, twin: TwinTrial) -> C:
    """The case of a trial beside its own twin. What the twin repeats by its chance is no reason to do it twice."""
    own_case = _fill_case_from_twin(bare, twin, twin)
    if bare.effects is not None or bare.twice or not own_case.effects:
        return own_case
    if (repeated := _find_repeated_effect(twin, bare.options.idempotent or ())) is None:
        return own_case
    effects = list({canonical(effect): effect for effect in own_case.effects}.values())
    return replace(
        own_case, effects=effects, notes=(*own_case.notes, _TWICE.format(describe_effect(repeated["effect"], repeated)))
    )


def _fill_case_from_twin(case: C, twin: TwinTrial, second: TwinTrial) -> C:
    """The case with the results of its trial without faults, but for what is `unlike` in two runs of it."""
    if twin.answer_text is None:
        reason = f"it fails without faults too ({twin.failure_reason})"
        return replace(case, incomparable=f"nothing to compare with, since {reason}", notes=(_NO_TWIN.format(reason),))
    effects = None if "effects" in case.unlike else twin.trial_with_right_effects.effects
    answer = None if "answer" in case.unlike else twin.answer_text
    legible, same_state = is_readable_answer(twin.answer), "state" not in case.unlike
    reason = next(iter(case.unlike.values()), "")
    if not legible:
        answer, reason = (
            None,
            f"its answer, {_quote_shortened(twin.answer_text)}, cannot be read: return a text or a dict, or give says=",
        )
    differ = _LEAKS.format(reason, _suggest_what_to_recreate(case, twin, second)) if reason else ""
    notes = (differ if legible else _NO_ANSWER.format(reason),) if reason else ()
    # Words decide nothing, so this is a warning; the twin stays the baseline.
    if not case.facts and find_failure_admission(twin.answer_text):
        notes = (
            *notes,
            f"the trial without faults seems to say that something failed: {_quote_shortened(twin.answer_text)}",
        )
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
            answer if all(contains_any_spelling(fact, twin.answer_text) for fact in case.facts) else None,
            twin.result.seconds,
            sum(1 for _ in twin.history.find_events(events.CallStarted)),
            failed=tuple(
                sorted({call.target for _, call in twin.history.find_events(events.CallFinished) if not call.ok})
            ),
            asked=list_model_request_digests(twin.history),
            said=twin.answer_text,
            effect_names=list_effect_texts(effect for _, effect in twin.history.find_events(events.Effect)),
            call_names=list_call_texts(twin.history),
            reads=find_twin_reads(twin.history),
            parallel=find_parallel_calls(twin.history),
            turns=tuple(event.answer for _, event in twin.history.find_events(events.TurnFinished)),
        ),
        incomparable="" if is_comparable else f"two runs without faults differ: {reason}" if legible else reason,
        stated=facts_stated or effects_stated or answer is not None or effects is not None,
        notes=notes,
        twin_says=next((event.says for _, event in twin.history.find_events(events.AnswerRead)), None),
        right_state=twin.trial_with_right_effects.end_state if same_state else None,
        of_one_event=twin.result.once is not None,
    )


def _find_twin_differences(twin: TwinTrial, second: TwinTrial) -> dict[str, str]:
    """The parts in which two runs of the trial without faults differ, each with the difference in words."""
    # A trial that fails is no baseline for that reason alone; no difference needs to be told.
    if twin.answer_text is None:
        return {}
    differences = {}
    if (
        second.answer_text is None
        or compare_answers(twin.answer_text, second.answer_text).likeness is not Likeness.SAME
    ):
        second_answer = _quote_shortened(second.answer_text) if second.answer_text else second.failure_reason
        differences["answer"] = (
            f"its answer is {_quote_shortened(twin.answer_text)} in one and {second_answer} in the other"
        )
    if twin.end_state != second.end_state:
        differences["state"] = "their end states differ"
    if twin.effects != second.effects:
        first_count, second_count = len(twin.effects), len(second.effects)
        counts = (
            f"it has {first_count} {'effect' if first_count == 1 else 'effects'} in one and {second_count} in the other"
        )
        differences["effects"] = "its effects differ" if first_count == second_count else counts
    if call := _find_unshared_call(twin.history, second.history):
        differences["calls"] = f"one of them calls {call} and the other does not"
    return differences


def _find_unshared_call(first: History, second: History) -> str:
    """The first call that only one of two trials made, in words; empty if there is none."""
    counts = [Counter(_describe_calls(history)) for history in (first, second)]
    return next(iter((counts[0] - counts[1]) + (counts[1] - counts[0])), "")


def _describe_calls(history: History) -> Iterator[str]:
    for _, call in history.find_events(events.CallStarted):
        yield f"{call.tool or call.target} with {render_brief(call.arguments, REASON_MAX)}"


def explain_no_baseline(twin: TwinTrial, case: AgentCase) -> str:
    """The reason why a trial without faults is nothing to compare with; empty if there is none."""
    if twin.answer_text is None:
        return f"it fails ({to_one_line(twin.failure_reason, REASON_MAX)})"
    if error := next((event.error for _, event in twin.history.find_events(events.AnswerRead)), ""):
        return f"says= cannot read its answer ({error})"
    if error := next((event.error for _, event in twin.history.find_events(events.EndState)), ""):
        return f"its end state cannot be read ({error})"
    failed = next((event for _, event in twin.history.find_events(events.CallFinished) if not event.ok), None)
    # it may be meant so, with anyway
    if failed is not None and not case.facts and find_failure_admission(twin.answer_text):
        return (
            f"its call of {failed.tool or failed.target} fails, and its own answer says so: "
            f"{_quote_shortened(twin.answer_text)}"
        )
    if case.effects is None and (twice := _find_repeated_effect(twin, case.options.idempotent or ())):
        return f"it repeats an effect: {describe_effect(twice['effect'], twice)}"
    return ""


def _has_repeated_effect(twin: TwinTrial, case: AgentCase) -> bool:
    return _find_repeated_effect(twin, case.options.idempotent or ()) is not None


def _find_repeated_effect(twin: TwinTrial, idempotent: Collection[str]) -> dict[str, Any] | None:
    """The first effect that is the same as an earlier one of its turn; None if there is none. What is done again in a
    later turn, or when a wished event came again, was asked for again, and a PUT or DELETE that is none of the earlier
    one's repeats takes another back."""
    own_effects, seen_effects = (
        {id(effect) for _, effect in find_recorded_effects(twin.history, twin.result.book.key)},
        set[str](),
    )
    for record in twin.history:
        effect = record.event
        if isinstance(effect, events.TurnStarted | events.EventRepeated):
            seen_effects.clear()
        elif isinstance(effect, events.Effect) and id(effect) in own_effects and effect.effect not in idempotent:
            content = {"effect": effect.effect, **effect.content}
            if canonical(content) in seen_effects and effect.tool.partition(" ")[0] not in REPEATABLE:
                return content
            seen_effects.add(canonical(content))
    return None


def _suggest_what_to_recreate(case: AgentCase, twin: TwinTrial, second: TwinTrial) -> str:
    """The advice on what to make anew: the service whose answer differs first, or the agent."""
    ends = [[event for _, event in trial.history.find_events(events.CallFinished)] for trial in (twin, second)]
    # Up to the shorter one: a call that only one of the two made is another kind of difference (`_find_unshared_call`).
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
        return "something is kept from one trial to the next: give agent=lab.fresh(make), in files fresh: module:make"
    return f"{host} keeps something from one trial to the next: give services={{'{host}': lab.fresh(make)}}"


def _quote_shortened(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else f"{text[: width - 1]}…")
