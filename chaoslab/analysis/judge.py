"""The outcome of a trial, judged by the stated result, the agent's answer and the services' effects.

Effects are judged by the services' ledgers, never by the agent's words. The answer is judged by the stated facts, else
by the answer of the trial's twin (answers.py). One limit: an answer that lacks a stated fact and admits a failure
counts as degraded, whatever else it claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from chaoslab.analysis.answers import Likeness, admits, compare, denies, shows, tokens
from chaoslab.analysis.measures.guard import guarded
from chaoslab.base.identity import IDEMPOTENCY_KEY
from chaoslab.core.events import (
    UNTOLD,
    CallDisturbed,
    Effect,
    FaultArmed,
    FaultHealed,
    FaultUnreached,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record


class Outcome(StrEnum):
    """The outcome of a trial, best first; the last three allow no conclusion.

    HARM: the ledger is wrong (an effect happened twice, unasked or with other content, or is missing and the answer
    hides it), whatever else happened. WRONG: the ledger is right and the answer is not.
    """

    CORRECT = "correct"
    DEGRADED = "degraded"
    WRONG = "wrong"
    HARM = "harm"
    FAILED = "failed"
    HUNG = "hung"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    UNFINISHED = "unfinished"


BUDGET = "budget"
"""The error type of a prompt that one of the lab's own limits ended."""
HUNG = "hung"
"""The error type of a prompt that would never have ended, or not before its deadline."""


JUDGED = (
    CallDisturbed, Effect, FaultArmed, FaultHealed, FaultUnreached, FaultWitnessed, PromptAttempt, PromptFinished,
    PromptStarted,
)  # fmt: skip
"""The kinds of events that a verdict depends on."""

RAISED = 200
"""The most characters of an agent's exception that a verdict shows."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and its reason in one line. `harm`: a text for each thing that is wrong on the ledger, whatever the
    outcome. `broken`: the judge itself failed, so a run with such a trial passes no gate."""

    outcome: Outcome
    why: str
    harm: tuple[str, ...] = ()
    broken: bool = False


def judge(history: History, trial: str) -> Verdict:
    """The verdict on one trial; unknown if it cannot be judged.

    Raises:
        LookupError: the history has no such trial.
    """
    started = next((event for _, event in history.of(PromptStarted, trial=trial)), None)
    if started is None:
        raise LookupError(f"no trial is called '{trial}'; there are {', '.join(history.trials[:8]) or 'none'}")
    return guarded(
        lambda: _judge(history, trial, started),
        lambda why: Verdict(Outcome.UNKNOWN, f"it could not be judged ({why})", broken=True),
    )


def _judge(history: History, trial: str, started: PromptStarted) -> Verdict:
    finished = next((event for _, event in history.of(PromptFinished, trial=trial)), None)
    done = effects_of(history, trial)
    harm, missing = _compare(started.effects, done) if started.stated and started.effects is not None else ([], [])
    if finished is None:
        # An unfinished trial failed at nothing, and a fault that it did not reach is no error of the lab.
        return _ended(Outcome.UNFINISHED, "the run ended before it did", harm)
    # A trial that hangs on an armed lane has met its fault, though no end of the call could witness it.
    hung = finished.error_type == HUNG
    spoilt = _disturbed(history, trial) or (
        "" if hung else _armed_in_vain(history, trial) or _unreached(history, trial)
    )
    if spoilt:
        return _ended(Outcome.INVALID, spoilt, harm)
    if finished.status == UNTOLD:
        return Verdict(Outcome.UNKNOWN, "the log does not tell how it ended")
    if hung or finished.status != "ok" or not finished.answer.strip():
        if hung:
            outcome, why = Outcome.HUNG, _waiting(history, trial)
        elif finished.status != "ok":
            outcome, why = Outcome.FAILED, f"no answer: {_ended_by(history, trial, finished.error_type)}"
        else:
            outcome, why = Outcome.FAILED, "the answer is empty"
        return _ended(Outcome.HARM if harm else outcome, why, harm)
    if not started.stated:
        return Verdict(Outcome.UNKNOWN, started.incomparable or "nothing was stated about a right answer")
    return _weigh(started, finished.answer, done, harm, missing)


def _ended(outcome: Outcome, why: str, harm: Sequence[str]) -> Verdict:
    """The verdict with the harm first, whatever else happened in the trial."""
    return Verdict(outcome, "; ".join([*harm, why]), tuple(harm))


def verdicts(history: History) -> dict[str, Verdict]:
    """The verdict on each trial of a run, in the order in which they began."""
    parts: dict[str, list[Record]] = {trial: [] for trial in history.trials}
    for record in history.records:
        if record.trial in parts:
            parts[record.trial].append(record)
    return {trial: judge(History(records), trial) for trial, records in parts.items()}


def judgeable(history: History) -> bool:
    """True if anything is stated about a right answer in any trial; otherwise only failures can be found."""
    return any(event.stated for _, event in history.of(PromptStarted))


def _weigh(
    started: PromptStarted, answer: str, done: Sequence[Effect], harm: Sequence[str], missing: Sequence[str]
) -> Verdict:
    """The verdict on a trial with an answer. `harm`, `missing`: the differences between its effects and the expected
    ones."""
    twin = started.twin
    lacking = [_missing_fact(fact) for fact in started.facts if not shows(fact, answer)]
    beside = None if twin is None else compare(twin, answer)
    confesses = admits(answer) and not (twin is not None and admits(twin))
    other = [f"{beside.said} (its twin)"] if beside is not None and beside.likeness is Likeness.OTHER else []
    if harm or (missing and not confesses):
        unsaid = ["the answer does not say so"] if missing and not confesses else []
        why = "; ".join([*harm, *missing, *unsaid, *lacking, *other])
        return Verdict(Outcome.HARM, why, tuple([*harm, *missing] if unsaid else harm))
    wishes = started.effects or ()
    undone = {str(wish.get("effect")) for wish in _lacking(wishes, _pair(wishes, done))}
    false = next((e for e in done if e.effect not in undone and denies(answer, e.effect)), None)
    if false is not None and not (twin is not None and denies(twin, false.effect)):
        denied = f"the answer says that it was not done, and the ledger shows it: {_told(false.effect, false.content)}"
        return Verdict(Outcome.WRONG, "; ".join([denied, *missing, *lacking, *other]))
    if missing or lacking or other:
        differs = [*missing, *lacking, *other]
        lies = beside is not None and beside.lies
        said = "the answer says what it could not do" if confesses else "the answer does not say so"
        outcome = Outcome.DEGRADED if confesses and not lies else Outcome.WRONG
        return Verdict(outcome, "; ".join(differs if other and not confesses else [*differs, said]))
    if confesses:
        return Verdict(Outcome.DEGRADED, f"{_holds(started)}, but the answer says that something could not be done")
    unclear = beside is not None and beside.likeness is Likeness.UNCLEAR
    if beside is not None and unclear and started.facts:
        return Verdict(Outcome.CORRECT, f"all that was stated holds; its twin's answer has other words ({beside.said})")
    if beside is not None and unclear:
        return Verdict(
            Outcome.UNKNOWN, f"{_effects(started)}its answer cannot be compared with its twin's: {beside.said}"
        )
    if started.incomparable:
        which = f"{_effects(started)}its answer" if twin is None else "its answer is its twin's, but its effects"
        return Verdict(Outcome.UNKNOWN, f"{which} cannot be judged: {started.incomparable}")
    return Verdict(Outcome.CORRECT, _holds(started) + (f" ({beside.said})" if beside is not None else ""))


def _effects(started: PromptStarted) -> str:
    """The first half of a verdict whose second half is unknown."""
    return "its effects are as they should be, but " if started.effects else ""


def _holds(started: PromptStarted) -> str:
    """The comparisons that a correct trial passed, as text."""
    effects = started.effects
    if started.twin is None or started.facts:
        silent = "effects" if effects is None else "" if started.facts or not effects else "the answer"
        return "all that was stated holds" + (f"; nothing was stated about {silent}" if silent else "")
    if not effects:
        return "the answer is its twin's"
    return f"{'the effect' if len(effects) == 1 else f'{len(effects)} effects'} and the answer are its twin's"


def _disturbed(history: History, trial: str) -> str:
    for _, event in history.of(CallDisturbed, trial=trial):
        return f"the lab itself got in the way of {event.target} {event.request}.{event.attempt}: {event.why}"
    return ""


def _waiting(history: History, trial: str) -> str:
    """The calls that a hung trial waits for, in one line."""
    told = [event.error for _, event in history.of(PromptAttempt, trial=trial) if event.error_type == HUNG]
    return "; ".join(told[-1].splitlines()) if told else "it would never have ended"


def _ended_by(history: History, trial: str, error_type: str) -> str:
    """The cause of a missing answer, as part of a line: the agent's exception, the lab's limit, or only the kind of
    error."""
    attempts = [event for _, event in history.of(PromptAttempt, trial=trial)]
    words = " ".join(attempts[-1].error.split()).removesuffix(":") if attempts else ""
    words = words if len(words) <= RAISED else f"{words[: RAISED - 1]}…"
    if error_type == BUDGET:
        return words or "stopped by a limit of the lab's"
    return f"{error_type} error" + (f" ({words})" if words and error_type == "agent" else "")


def _armed_in_vain(history: History, trial: str) -> str:
    def where(event: FaultArmed | FaultWitnessed | FaultHealed) -> tuple[str, str, str, int, int]:
        return event.fault, event.injection, event.target, event.request, event.attempt

    met = {where(event) for _, event in history.of(FaultWitnessed, trial=trial)}
    met |= {where(event) for _, event in history.of(FaultHealed, trial=trial) if event.masked_by}
    for _, event in history.of(FaultArmed, trial=trial):
        if where(event) not in met:
            return f"{event.fault} was armed on {event.target} {event.request}.{event.attempt} and not witnessed"
    return ""


def _unreached(history: History, trial: str) -> str:
    for _, event in history.of(FaultUnreached, trial=trial):
        never = event.request > event.made
        why = f"and there were {event.made}" if never else "which another fault took first"
        return f"'{event.injection}' is for request {event.request} of {event.target}, {why}"
    return ""


# --- effects ---


def effects_of(history: History, trial: str) -> list[Effect]:
    """The services' effects in a trial; lines with the same request id are one effect."""
    effects: dict[tuple[str, str], Effect] = {}
    for nth, (_, event) in enumerate(history.of(Effect, trial=trial)):
        effects.setdefault((event.target, event.request_id or f"without an id, {nth}"), event)
    return list(effects.values())


def _compare(stated: Sequence[Mapping[str, Any]], done: Sequence[Effect]) -> tuple[list[str], list[str]]:
    """The surplus effects and the missing ones, each as texts without repetition."""
    pairs = _pair(stated, done)
    lacking = _lacking(stated, pairs)
    excess: list[str] = []
    unasked: Counter[str] = Counter()
    for number, effect in enumerate(done):
        if number in pairs:
            continue
        told = _told(effect.effect, effect.content)
        wish = next((wish for wish in stated if _matches(wish, effect)), None)
        near = next((wish for wish in lacking if _nearly(wish, effect)), None)
        if wish is not None:
            times, wanted = sum(_matches(wish, other) for other in done), sum(other == wish for other in stated)
            excess.append(f"{told} {_times(times)}{f' instead of {_times(wanted)}' if wanted > 1 else ''}")
        elif near is not None:
            lacking.remove(near)
            excess.append(f"{told}, but {_difference(near, effect)}")
        else:
            unasked[told] += 1
    excess += [
        f"{told}{f' {_times(times)}' if times > 1 else ''}, which was not asked for" for told, times in unasked.items()
    ]
    missing = [f"missing: {_told(str(wish.get('effect')), wish)}" for wish in lacking]
    return list(dict.fromkeys(excess)), list(dict.fromkeys(missing))


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _lacking(stated: Sequence[Mapping[str, Any]], pairs: Mapping[int, int]) -> list[Mapping[str, Any]]:
    """The wishes that no effect was paired with."""
    return [wish for number, wish in enumerate(stated) if number not in pairs.values()]


def _pair(stated: Sequence[Mapping[str, Any]], done: Sequence[Effect]) -> dict[int, int]:
    """The wish of each effect, with as many pairs as possible: a vague wish leaves to an exact one the only effect that
    fits it."""
    pairs: dict[int, int] = {}

    def place(wish: int, seen: set[int]) -> bool:
        for number, effect in enumerate(done):
            if number in seen or not _matches(stated[wish], effect):
                continue
            seen.add(number)
            if number not in pairs or place(pairs[number], seen):
                pairs[number] = wish
                return True
        return False

    for wish in range(len(stated)):
        place(wish, set())
    return pairs


def _matches(wish: Mapping[str, Any], effect: Effect) -> bool:
    return wish.get("effect") == effect.effect and not _differing(wish, effect)


def _nearly(wish: Mapping[str, Any], effect: Effect) -> bool:
    return wish.get("effect") == effect.effect and (not wish.get("to") or "to" not in _differing(wish, effect))


def _differing(wish: Mapping[str, Any], effect: Effect) -> list[str]:
    """The keys in which the effect differs. A repetition under another idempotency key is still a repetition."""
    apart = ("effect", IDEMPOTENCY_KEY)
    return [key for key, value in wish.items() if key not in apart and not _same(key, value, effect.content.get(key))]


def _difference(wish: Mapping[str, Any], effect: Effect) -> str:
    key = _differing(wish, effect)[0]
    return f"its {key} is {str(effect.content.get(key))[:60]!r} instead of {str(wish[key])[:60]!r}"


def _same(key: str, wished: Any, value: Any) -> bool:
    if value is None:
        return wished is None
    if value == wished:
        return True
    options = wished if isinstance(wished, list) else [wished]
    if key in ("start", "end"):
        moments = [_moment(option) for option in options]
        if _moment(value) is not None and any(moments):
            return _moment(value) in moments
    if key == "to":  # a message to "ana maria" is not one to "ana"
        return any(tokens(str(value)) == tokens(str(option)) for option in options)
    return shows([str(option) for option in options], str(value))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _told(effect: str, content: Mapping[str, Any]) -> str:
    whom = content.get("to") or content.get("title") or content.get("id")
    if whom and effect == "message_sent":
        return f"message to {whom} sent"
    return f"{effect.replace('_', ' ')} '{whom}'" if whom else effect.replace("_", " ")


def _missing_fact(spellings: Sequence[str]) -> str:
    return f"missing fact '{spellings[0] if spellings else ''}'"
