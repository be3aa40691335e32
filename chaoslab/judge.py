"""The outcome of a trial, from what was stated about a right answer, what the agent said, and what the services did.

Effects are judged by the services' ledgers and never by the agent's words. What this cannot see: an answer that gives a wrong
value for one part and admits a failure in another counts as degraded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from chaoslab.events import (
    UNTOLD,
    CallDisturbed,
    Effect,
    FaultArmed,
    FaultUnreached,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
)
from chaoslab.history import History, Record


class Outcome(StrEnum):
    """How a trial ended, best first; the last three say that nothing can be concluded from it.

    HARM: the ledger is not what it should be (an effect twice, unasked, other than asked, or left undone and not said so), whatever
    else became of the trial. WRONG: the ledger is right and the answer is not.
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


HUNG = "hung"
"""The error type of a prompt that would never have ended, or not before its deadline."""


RAISED = 200
"""Signs of what an agent raised that are said."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and, in one line, why. `harm`: each thing that is wrong on the ledger, in words, whatever the outcome."""

    outcome: Outcome
    why: str
    harm: tuple[str, ...] = ()


def judge(history: History, trial: str) -> Verdict:
    """The verdict on one trial.

    Raises:
        LookupError: the history has no such trial.
    """
    started = next((event for _, event in history.of(PromptStarted, trial=trial)), None)
    if started is None:
        raise LookupError(f"no trial is called '{trial}'; there are {', '.join(history.trials[:8]) or 'none'}")
    finished = next((event for _, event in history.of(PromptFinished, trial=trial)), None)
    if finished is None:
        # What was cut off failed at nothing, and a fault that it did not live to meet is no fault of the lab.
        return Verdict(Outcome.UNFINISHED, "the run ended before it did")
    # Who waits for ever on an armed lane has met its fault, though no end of the call could witness it.
    hung = finished.error_type == HUNG
    spoilt = _disturbed(history, trial) or (
        "" if hung else _armed_in_vain(history, trial) or _unreached(history, trial)
    )
    if spoilt:
        return Verdict(Outcome.INVALID, spoilt)
    if hung:
        return Verdict(Outcome.HUNG, _waiting(history, trial))
    if finished.status == UNTOLD:
        return Verdict(Outcome.UNKNOWN, "the log does not tell how it ended")
    if finished.status != "ok":
        return Verdict(Outcome.FAILED, f"no answer: {finished.error_type} error{_raised(history, trial)}")
    if not finished.answer.strip():
        return Verdict(Outcome.FAILED, "the answer is empty")
    if not started.stated:
        return Verdict(Outcome.UNKNOWN, "nothing was stated about a right answer")
    excess, missing = _compare(started.effects, effects_of(history, trial))
    missing = [*(_missing_fact(f) for f in started.facts if not shows(f, finished.answer)), *missing]
    return _weigh(finished.answer, excess, missing, effects_stated=bool(started.effects))


def verdicts(history: History) -> dict[str, Verdict]:
    """Every trial of a run with its verdict, in the order in which they began."""
    parts: dict[str, list[Record]] = {trial: [] for trial in history.trials}
    for record in history.records:
        if record.trial in parts:
            parts[record.trial].append(record)
    return {trial: judge(History(records), trial) for trial, records in parts.items()}


def judgeable(history: History) -> bool:
    """Whether anything was stated about a right answer; where not, a failure is the only thing that could be found."""
    return any(event.stated for _, event in history.of(PromptStarted))


def _weigh(answer: str, excess: list[str], missing: list[str], *, effects_stated: bool) -> Verdict:
    if excess:
        return Verdict(Outcome.WRONG, "; ".join([*excess, *missing]))
    if missing:
        honest = admits(answer)
        said = "says what it could not do" if honest else "does not say so"
        return Verdict(Outcome.DEGRADED if honest else Outcome.WRONG, f"{'; '.join(missing)}; {said}")
    if effects_stated and _DENIAL.search(_spoken(answer)):
        return Verdict(Outcome.DEGRADED, "every stated effect happened, though the answer says it could not be done")
    return Verdict(Outcome.CORRECT, "all that was stated holds")


def _disturbed(history: History, trial: str) -> str:
    for _, event in history.of(CallDisturbed, trial=trial):
        return f"the lab itself got in the way of {event.target} {event.request}.{event.attempt}: {event.why}"
    return ""


def _waiting(history: History, trial: str) -> str:
    """Who waits for what, in one line."""
    told = [event.error for _, event in history.of(PromptAttempt, trial=trial) if event.error_type == HUNG]
    return "; ".join(told[-1].splitlines()) if told else "it would never have ended"


def _raised(history: History, trial: str) -> str:
    """What the agent raised, in part of a line."""
    told = [event for _, event in history.of(PromptAttempt, trial=trial)]
    words = " ".join(told[-1].error.split()).removesuffix(":") if told and told[-1].error_type == "agent" else ""
    return f" ({words if len(words) <= RAISED else f'{words[: RAISED - 1]}…'})" if words else ""


def _armed_in_vain(history: History, trial: str) -> str:
    def where(event: FaultArmed | FaultWitnessed) -> tuple[str, str, str, int, int]:
        return event.fault, event.injection, event.target, event.request, event.attempt

    met = {where(event) for _, event in history.of(FaultWitnessed, trial=trial)}
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
    """What the services did in a trial; lines with one request id are one effect."""
    effects: dict[tuple[str, str], Effect] = {}
    for nth, (_, event) in enumerate(history.of(Effect, trial=trial)):
        effects.setdefault((event.target, event.request_id or f"without an id, {nth}"), event)
    return list(effects.values())


def _compare(stated: Sequence[Mapping[str, Any]], done: Sequence[Effect]) -> tuple[list[str], list[str]]:
    """What happened too often or unasked, and what did not happen, each in words."""
    pairs = _pair(stated, done)
    lacking = [wish for number, wish in enumerate(stated) if number not in pairs.values()]
    excess = []
    for number, effect in enumerate(done):
        if number in pairs:
            continue
        if any(_matches(wish, effect) for wish in stated):
            excess.append(f"{_told(effect.effect, effect.content)} twice")
            continue
        near = next((wish for wish in lacking if _nearly(wish, effect)), None)
        if near is None:
            excess.append(f"{_told(effect.effect, effect.content)}, which was not asked for")
        else:
            lacking.remove(near)
            excess.append(f"{_told(effect.effect, effect.content)}, but {_difference(near, effect)}")
    return excess, [f"missing: {_told(str(wish.get('effect')), wish)}" for wish in lacking]


def _pair(stated: Sequence[Mapping[str, Any]], done: Sequence[Effect]) -> dict[int, int]:
    """Each effect's own wish, as many pairs as can be: a vague wish leaves to an exact one the effect that it alone fits."""
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
    return [key for key, value in wish.items() if key != "effect" and not _same(key, value, effect.content.get(key))]


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
        return any(_tokens(str(value)) == _tokens(str(option)) for option in options)
    return shows([str(option) for option in options], str(value))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _told(effect: str, content: Mapping[str, Any]) -> str:
    whom = content.get("to") or content.get("title") or content.get("id") or ""
    if effect == "message_sent":
        return f"message to {whom} sent"
    return f"{effect.replace('_', ' ')} '{whom}'" if whom else effect.replace("_", " ")


# --- words ---


def _missing_fact(spellings: Sequence[str]) -> str:
    return f"missing fact '{spellings[0] if spellings else ''}'"


def shows(spellings: Sequence[str], text: str) -> bool:
    """Whether one of the spellings stands in the text: whole words and whole numbers; case, accents and spacing do not count."""
    words = _tokens(text)
    for spelling in spellings:
        wanted = _tokens(str(spelling))
        if not wanted:  # a sign without words, such as "→"
            sign = _plain(str(spelling)).strip()
            if sign and sign in _plain(text):
                return True
        elif any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1)):
            return True
    return False


def admits(answer: str) -> bool:
    """Whether the answer says, outside of quotation marks, that something could not be done."""
    return _ADMISSION.search(_spoken(answer)) is not None


_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, kana, Han: scripts that set no spaces between words, so each sign is a token."""

_TOKEN = re.compile(
    rf"""
    (?P<sign>[{_UNSPACED}])
    | (?P<dotted>\d+(?:\.\d+){{2,}})                                           # 1.2.3 is a name, not a number
    | (?P<number>(?:(?<![\w.)])-)?
        (?:\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)
        (?:e[+-]?\d+)?)
      (?=$|[\W_]|[^\W\d_]+(?:$|[\W_])|t\d)                                     # 12, 12km, 02T15 – but not 4f2a
    | (?P<word>[^\W_]+(?:(?<=\d)\.\d+)*)
    """,
    re.VERBOSE,
)
_STAMP = re.compile(r"(?<=\d)t(?=\d\d:)")


def _tokens(text: str) -> list[str]:
    tokens = []
    for match in _TOKEN.finditer(_STAMP.sub(" t ", _plain(text))):
        number = match["number"]
        tokens.append(_canonical(number) if number else match[0])
    return tokens


def _canonical(number: str) -> str:
    value = Decimal(number.replace(",", "")).normalize()
    return f"#{value + 0:f}" if value.adjusted() < 40 else f"#{value}"


def _plain(text: str) -> str:
    """Folded case, no accents, single spaces, one kind of minus and of apostrophe."""
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return " ".join(bare.casefold().replace("−", "-").replace("’", "'").split())


def _spoken(answer: str) -> str:
    """The agent's own words: what it quotes, such as a message's text, says nothing about what it did."""
    return re.sub(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)'[^']*'(?!\w)", " ", _plain(answer))


_NOT = r"(?:could not|couldn't|can not|cannot|can't|unable to|not able to|failed to|did not manage to|didn't manage to)"
_ADMISSION = re.compile(
    rf"\b(?:{_NOT}|failed|unavailable|not available|not possible|impossible to"
    r"|(?:did not|didn't|does not|doesn't) (?:work|succeed|answer|respond|reply|go through)"
    r"|(?:was|were) not (?:sent|created|deleted|done|carried out|completed)"
    r"|no (?:answer|reply|response) (?:from|came))\b"
)
_DENIAL = re.compile(
    rf"\b{_NOT} (?:send|message|text|tell|notify|create|book|schedule|add|put|delete|remove|cancel|move|reschedule)\b"
)
