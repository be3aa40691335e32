"""The answer of a trial beside the right one, by what is certain: equality, facts, values, `says` and `judge`.

Nothing else decides. What words seem to say is a hint for a person.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from chaoslab.analysis.answers.compare import AnswerLikeness, Likeness, compare_answers
from chaoslab.analysis.answers.hint import find_failure_admission, list_non_admitting_parts
from chaoslab.analysis.answers.structures import MISSING, find_differences, is_number, parse_json_structure
from chaoslab.analysis.answers.values import READ_MAX, contains_any_spelling, fold_text, tokenize
from chaoslab.analysis.verdict import ledger
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.says import ANY, classify_by_says_rules
from chaoslab.analysis.verdict.seen import TrialEvents, log_line_key
from chaoslab.analysis.verdict.table import Basis, Said, WorldState
from chaoslab.base.identity import hash_value
from chaoslab.base.jsonable import cut_text, render_brief
from chaoslab.core.events import (
    AnswerRead,
    CallFinished,
    EndState,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
    TurnFinished,
)
from chaoslab.record.lines import Record
from chaoslab.record.spoken import JudgeOpinions

UNDECIDED = "nothing certain tells"
"""The beginning of the reason of a verdict that only the user's facts, says or judge would decide."""
SENTENCE_WORDS_MIN = 4
"""The fewest words beside those of the prompt that make a text more than a code or a name."""
QUOTE_MAX = 120
"""The most characters of an answer that a finding quotes."""


class AnswerSense(NamedTuple):
    """The sense of an answer. `text`: the reason, as part of a line. `findings`: the observations behind it. `hint`:
    for a person, if nothing certain decides."""

    said: Said
    basis: Basis
    text: str
    findings: tuple[Finding, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class JudgeQuestion:
    """The question about an answer that nothing certain decides. `undone`: what was left undone: does the answer say
    so? `reference`: if nothing was, the right answer: has the given one the same facts? `done`: the effects that there
    were. Equal ones are asked once."""

    prompt: str
    answer: str
    undone: tuple[str, ...]
    reference: str | None
    done: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The hash under which the reply to it is kept."""
        return hash_value([self.prompt, self.answer, [*self.undone], self.reference, [*self.done]])


@dataclass
class AnsweredTrial:
    """A trial with an answer. `harm`, `lost`: the differences between its effects or end state and the right ones.
    `spoken`: the replies of a judge to questions about the run's answers. `rules`: those of its effects. `may`: the
    reason why it cannot be told what was done; empty if it can."""

    started: PromptStarted
    finished: tuple[Record, PromptFinished]
    done: Sequence[ledger.RecordedEffect]
    world: WorldState
    harm: Sequence[Finding]
    lost: Sequence[Finding]
    seen: TrialEvents
    spoken: JudgeOpinions
    rules: ledger.EffectRules
    may: str

    @property
    def answer(self) -> str:
        return self.finished[1].answer

    @property
    def trial_key(self) -> str:
        return self.finished[0].trial or ""

    @property
    def judge_question(self) -> JudgeQuestion:
        """The question that a judge would answer."""
        started = self.started
        if self.lost:
            missing = [render_brief(wish, QUOTE_MAX) for wish in self.missing_effects]
            of_state = [finding.text.removeprefix("missing: ") for finding in self.lost if finding.lines]
            return JudgeQuestion(started.prompt, self.answer, (*missing, *of_state), None)
        facts = "; ".join(fact[0] for fact in started.facts if fact)
        reference = facts or started.twin
        effects = tuple(render_brief({"effect": effect.effect, **effect.content}, QUOTE_MAX) for _, effect in self.done)
        return JudgeQuestion(started.prompt, self.answer, (), reference, effects)

    @cached_property
    def missing_effects(self) -> Sequence[Mapping[str, Any]]:
        """The effects that should have happened and did not."""
        return ledger.find_missing_effects(self.started.effects or (), [effect for _, effect in self.done], self.rules)

    @cached_property
    def twin_likeness(self) -> AnswerLikeness | None:
        """The answer beside its twin's; None if there is none."""
        twin = self.started.twin
        if twin is None:
            return None
        effect_values = "\n".join(str(value) for _, effect in self.done for value in effect.content.values())
        return compare_answers(twin, self.answer, asked=self.started.prompt, known=effect_values)

    @cached_property
    def failure_admission(self) -> str:
        """The sentence of the answer that seems to admit something; empty if there is none. For a hint, and against
        proofs that a failure's words would pass too: it never makes a trial better or worse, only open."""
        return find_failure_admission(self.answer, self.started.twin or "")

    @property
    def may_admit_failure(self) -> bool:
        """True unless the words of the answer were read, and none seems to admit anything. Fields are not read so."""
        return (
            bool(self.failure_admission) or len(self.answer) > READ_MAX or parse_json_structure(self.answer) is not None
        )

    @property
    def has_failed_call(self) -> bool:
        """True if one of its calls failed, which its answer may tell by a number."""
        return any(not call.ok for _, call in self.seen.find_events(CallFinished))

    @property
    def has_changed_state(self) -> bool:
        """True if its end state is not the one before."""
        state = self.seen.find_first(EndState)
        return state is not None and state[1].before != state[1].after

    @cached_property
    def twin_flags_kept_by_path(self) -> Mapping[str, bool]:
        """True for each flag of a structured answer that is as in the twin's, where it is true, and False for each that
        is false or nothing instead; by its path."""
        twin, actual = parse_json_structure(self.started.twin or ""), parse_json_structure(self.answer)
        if twin is None or actual is None:
            return {}
        denied = {
            path
            for path, expected_value, actual_value in find_differences(twin, actual)
            if expected_value is True and actual_value in (False, None)
        }
        missing_paths = {
            path
            for path, expected_value, actual_value in find_differences(twin, actual)
            if expected_value is True and actual_value is not True
        }
        true_paths = [
            path for path, expected_value, _ in find_differences(twin, _turn_off_flags(twin)) if expected_value is True
        ]
        return {path: path not in denied for path in true_paths if path in denied or path not in missing_paths}

    @cached_property
    def newly_true_flags(self) -> Sequence[str]:
        """The flags of a structured answer that are true, and are not so in the twin's."""
        twin, actual = parse_json_structure(self.started.twin or ""), parse_json_structure(self.answer)
        return [
            path
            for path, expected_value, actual_value in find_differences(twin, actual)
            if actual_value is True and expected_value is not True
        ]

    def make_answer_finding(self, kind: FindingKind, text: str) -> Finding:
        """A finding that the answer's line shows."""
        return Finding(kind, text, (log_line_key(self.finished[0]),))


def _turn_off_flags(value: Any) -> Any:
    """The structure with each true flag turned."""
    if isinstance(value, dict):
        return {key: _turn_off_flags(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_turn_off_flags(item) for item in value]
    return False if value is True else value


def classify_answer(trial: AnsweredTrial) -> AnswerSense:
    """The sense of the answer of a trial, and on what it rests."""
    reading = trial.seen.find_first(AnswerRead)
    own_reading = _classify_by_says_rules(trial, reading[1]) if reading else None
    if reading and own_reading and (own_reading.said is not Said.UNCLEAR or reading[1].error):
        return own_reading
    if sense := _classify_incomplete_trial(trial) if trial.lost else _classify_complete_trial(trial):
        return sense
    if trial.world is WorldState.HARM and not trial.lost:
        return AnswerSense(Said.UNCLEAR, Basis.LEDGER, "")
    facts = _find_missing_facts(trial)
    opinion = trial.spoken.find_opinion(trial.trial_key, trial.judge_question) if trial.spoken else None
    if opinion is None:
        unclear = _make_unclear_sense(trial)._replace(findings=facts)
        return unclear if own_reading is None else unclear._replace(basis=own_reading.basis, text=own_reading.text)
    # A judge that failed has said nothing: the answer stays open, with the reason.
    if opinion.error:
        sense = _make_unclear_sense(trial)
        return sense._replace(text=f"no opinion of its answer: {cut_text(opinion.error, QUOTE_MAX)}", findings=facts)
    text = f"the judge {cut_text(opinion.model, QUOTE_MAX)} says of the answer: {opinion.said}"
    return _make_answer_sense(trial, Said(opinion.said), Basis.JUDGE, text)


def _classify_by_says_rules(trial: AnsweredTrial, event: AnswerRead) -> AnswerSense | None:
    if event.error:
        return AnswerSense(Said.UNCLEAR, Basis.SAYS, f"its says= failed: {event.error}")
    wished = [str(wish.get("effect")) for wish in trial.started.effects or ()]
    missing = [str(wish.get("effect")) for wish in trial.missing_effects]
    failed = {call.tool or call.target for _, call in trial.seen.find_events(CallFinished) if call.error or not call.ok}
    failed |= {fault.target for _, fault in trial.seen.find_events(FaultWitnessed)}  # what it read may have been no use
    failed |= {effect.effect for _, effect in trial.done if {effect.tool, effect.target} & failed}
    sense = classify_by_says_rules(
        event.says,
        event.twin,
        wished,
        missing,
        undone=bool(trial.lost),
        failed=failed,
        nothing=not trial.done and not trial.has_changed_state,
        admits=trial.may_admit_failure,
    )
    if sense is None:
        facts = _find_missing_facts(trial)
        # it says nothing of what it lacks
        if facts and event.says.get(ANY, ANY) is None and not trial.may_admit_failure:
            return AnswerSense(Said.WRONG, Basis.SAYS, "", facts)
        return None
    word, text = sense
    if word is Said.RIGHT and (likeness := trial.twin_likeness) is not None:
        if likeness.likeness is Likeness.OTHER:
            return None  # equal but for a value that it does not read
        if set(event.says) <= {*wished, ANY} and likeness.likeness is not Likeness.SAME and not likeness.same_values:
            return None  # it reads no value, and the answer has others than its twin's
    return _make_answer_sense(trial, word, Basis.SAYS, text)


def _make_answer_sense(trial: AnsweredTrial, word: Said, basis: Basis, text: str) -> AnswerSense:
    """The word of the user's `says` or judge on the answer."""
    kinds = {Said.WRONG: FindingKind.VALUE, Said.PASSES_OVER: FindingKind.ADMISSION, Said.ADMITS: FindingKind.ADMISSION}
    findings = (trial.make_answer_finding(kinds[word], text),) if word in kinds else ()
    return AnswerSense(word, basis, text, findings)


def _classify_incomplete_trial(trial: AnsweredTrial) -> AnswerSense | None:
    """The sense of an answer to a trial that left something undone: it is the twin's, or a flag of it tells."""
    likeness = trial.twin_likeness
    if likeness is not None and likeness.likeness is Likeness.SAME:
        text = "the answer does not say so: it is its twin's"
        return _make_answer_sense(trial, Said.PASSES_OVER, Basis.SAME, text)
    if not trial.twin_flags_kept_by_path:
        return None
    names = [fold_text(str(wish.get("effect"))) for wish in trial.missing_effects]
    named_flags = {
        path: is_kept
        for path, is_kept in trial.twin_flags_kept_by_path.items()
        if any(_is_flag_for_effect(path, name) for name in names)
    }
    if named_flags and all(named_flags.values()) and not _may_differ_by_admission(trial, names):
        return _make_answer_sense(
            trial, Said.PASSES_OVER, Basis.VALUES, f"the answer does not say so: its {min(named_flags)} is true"
        )
    telling_flags = named_flags or {
        path: is_kept for path, is_kept in trial.twin_flags_kept_by_path.items() if _split_words(path)[-1] in _SUCCESS
    }
    if (
        telling_flags
        and not any(telling_flags.values())
        and not any(_is_flag_for_effect(path, name) for path in trial.newly_true_flags for name in names)
        and not _may_claim_success(trial, names)
    ):
        return _make_answer_sense(
            trial, Said.ADMITS, Basis.VALUES, f"the answer says so: its {min(telling_flags)} is not true"
        )
    return None


def _is_flag_for_effect(path: str, effect: str) -> bool:
    """True if the name of a flag says that an effect was done: `refunded`, and `order_refunded`, of `refund_order`. No
    other name does: something refundable, or a refund that was requested or is needed, may be refunded or not."""
    *subject, word = _split_words(path)
    verbs = _split_words(effect.replace("/", "_").replace(" ", "_"))
    forms = {verb + end for verb in verbs for end in ("ed", "d", verb[-1:] + "ed")}
    forms |= {_PAST[verb] for verb in verbs if verb in _PAST} | (_SUCCESS & set(verbs))
    return word in forms and set(subject) <= {*verbs, "is", "was", "has", "been"}


def _split_words(path: str) -> list[str]:
    return _CAPITAL.sub("_", path.rpartition(".")[2]).casefold().replace("-", "_").split("_")


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PAST = {"pay": "paid", "send": "sent", "book": "booked", "buy": "bought", "make": "made", "write": "written"}
_SUCCESS = {*["ok", "success", "successful", "succeeded", "done", "complete", "completed", "executed"], *_PAST.values()}
"""The names of flags that tell of a success, whatever the effect is called. Others may be of the agent's own way."""


def _may_differ_by_admission(trial: AnsweredTrial, names: Sequence[str]) -> bool:
    """True if a structured answer has another text, flag, list or nought than its twin's, which may admit something."""
    twin, actual = parse_json_structure(trial.started.twin or ""), parse_json_structure(trial.answer)
    claims = {path for path in trial.newly_true_flags if any(_is_flag_for_effect(path, name) for name in names)}
    return any(
        path not in claims
        and not (
            actual_value is None
            or actual_value is MISSING
            or (is_number(expected_value) and is_number(actual_value) and expected_value and actual_value)
        )
        for path, expected_value, actual_value in find_differences(twin, actual)
    )


def _may_claim_success(trial: AnsweredTrial, names: Sequence[str]) -> bool:
    """True if a text of a structured answer may claim what a flag of it denies: a part of it that admits nothing says
    that it was done, or it is a sentence of which no part seems to admit anything."""
    prompt_tokens = set(tokenize(trial.started.prompt))
    for text in _iterate_non_null_values(parse_json_structure(trial.answer)):
        if isinstance(text, str):
            parts = list_non_admitting_parts(text)
            claims = any(
                _is_flag_for_effect(word, name) for sentence in parts for word in tokenize(sentence) for name in names
            )
            if claims or (
                len(set(tokenize(text)) - prompt_tokens) >= SENTENCE_WORDS_MIN and not find_failure_admission(text)
            ):
                return True
    return False


def _classify_all_turns(trial: AnsweredTrial) -> AnswerSense | None:
    """The sense of a conversation in which nothing is missing, turn by turn: the first turn that is not right tells,
    and the text says if it was well again; None if nothing is known of its turns."""
    turns = [event for _, event in trial.seen.find_events(TurnFinished)]
    if len(turns) < 2 or not any(turn.twin is not None or turn.facts or turn.says for turn in turns):
        return None
    senses = {turn.turn: _classify_turn(trial, turn) for turn in turns}
    bad_turns = [number for number, sense in senses.items() if sense.said is not Said.RIGHT]
    if not bad_turns:
        return next(iter(senses.values()))._replace(text="each turn is right")
    worst = next(
        word
        for word in (Said.WRONG, Said.UNCLEAR, Said.ADMITS, Said.PASSES_OVER)
        if any(senses[number].said is word for number in bad_turns)
    )
    first = next(number for number in bad_turns if senses[number].said is worst)
    recovered_turn = next((number for number in senses if number > bad_turns[-1]), None)
    recovery_text = "never well again" if recovered_turn is None else f"well again in turn {recovered_turn}"
    sense = senses[first]
    text = f"turn {first}: {sense.text or 'it lacks a fact'}; {recovery_text}"
    findings = tuple(replace(finding, text=text) for finding in sense.findings[:1])
    return sense._replace(text=text, findings=findings)


def _classify_turn(trial: AnsweredTrial, turn: TurnFinished) -> AnswerSense:
    """The sense of the answer of one turn: by its `says`, its facts, and the twin's answer."""
    likeness = None if turn.twin is None else compare_answers(turn.twin, turn.answer, asked=trial.started.prompt)
    missing = [fact for fact in turn.facts or () if not contains_any_spelling(fact, turn.answer)]
    admission = find_failure_admission(turn.answer, turn.twin or "")
    if turn.says is not None:
        failed = {
            call.tool for _, call in trial.seen.find_events(CallFinished) if call.turn == turn.turn and not call.ok
        }
        if sense := classify_by_says_rules(
            turn.says,
            turn.twin_says,
            (),
            (),
            undone=False,
            failed=failed,
            nothing=not trial.done and not trial.has_changed_state,
            admits=bool(admission),
        ):
            return _make_answer_sense(trial, sense[0], Basis.SAYS, sense[1])
    if likeness is not None and likeness.likeness is Likeness.OTHER:
        return _make_answer_sense(trial, Said.WRONG, Basis.VALUES, f"{likeness.text} (its twin)")
    if missing:
        text = f"missing fact '{missing[0][0] if missing[0] else ''}'"
        same = likeness is not None and likeness.likeness is Likeness.SAME
        return AnswerSense(
            Said.WRONG if same else Said.UNCLEAR,
            Basis.FACTS if same else Basis.NONE,
            text,
            (trial.make_answer_finding(FindingKind.FACT, text),),
        )
    if turn.facts and not admission:
        return AnswerSense(Said.RIGHT, Basis.FACTS, "all stated facts are shown")
    if likeness is not None and likeness.likeness is Likeness.SAME:
        return AnswerSense(Said.RIGHT, Basis.SAME, likeness.text)
    if likeness is None and not turn.facts:
        return AnswerSense(Said.RIGHT, Basis.SAME, "nothing was stated about it")
    admits = f"it seems to admit it: {render_brief(admission, QUOTE_MAX)}"
    hint = admits if admission or likeness is None else likeness.text
    return AnswerSense(Said.UNCLEAR, Basis.NONE, f"{UNDECIDED} if it is right", hint=hint)


def _classify_complete_trial(trial: AnsweredTrial) -> AnswerSense | None:
    """The sense of an answer to a trial in which nothing is missing, by equality, stated facts and values."""
    if not trial.started.facts and (sense := _classify_all_turns(trial)):
        return sense
    facts, likeness = trial.started.facts, trial.twin_likeness
    missing = _find_missing_facts(trial)
    if (
        likeness is not None
        and likeness.likeness is Likeness.OTHER
        and not (likeness.may_count and trial.has_failed_call)
    ):
        text = f"{likeness.text} (its twin)"
        return AnswerSense(
            Said.WRONG, Basis.VALUES, text, (*missing, trial.make_answer_finding(FindingKind.VALUE, text))
        )
    if missing:
        if likeness is not None and likeness.likeness is Likeness.SAME:
            return AnswerSense(Said.WRONG, Basis.FACTS, "", missing)
        return None
    if facts and not trial.failure_admission and not (likeness is not None and likeness.likeness is Likeness.SAME):
        return AnswerSense(Said.RIGHT, Basis.FACTS, "all stated facts are shown")
    if likeness is None:
        rests_on_ledger = not facts and trial.started.effects is not None and not trial.failure_admission
        return AnswerSense(Said.RIGHT, Basis.LEDGER, "nothing was stated about the answer") if rests_on_ledger else None
    if likeness.likeness is Likeness.SAME:
        return AnswerSense(Said.RIGHT, Basis.SAME, likeness.text)
    return _classify_answer_left_null(trial)


def _classify_answer_left_null(trial: AnsweredTrial) -> AnswerSense | None:
    """A structured answer that has nothing in the place of all values of its twin's that the prompt does not give: one
    that is kept may be a guess."""
    twin, actual = parse_json_structure(trial.started.twin or ""), parse_json_structure(trial.answer)
    if twin is None or actual is None:
        return None
    differing = find_differences(twin, actual)
    emptied = [
        path for path, expected_value, actual_value in differing if actual_value is None and expected_value is not None
    ]
    if not emptied or len(emptied) < len(differing):
        return None
    prompt_tokens = set(tokenize(trial.started.prompt))
    if any(not set(tokenize(str(value))) <= prompt_tokens for value in _iterate_non_null_values(actual)):
        return None
    if trial.done:
        return None  # it may take back what was done
    return _make_answer_sense(
        trial, Said.ADMITS, Basis.VALUES, f"the answer has no value for its {emptied[0] or 'whole'}"
    )


def _iterate_non_null_values(structure: Any) -> Iterator[Any]:
    """The values of a structure that are something."""
    if isinstance(structure, dict | list):
        for item in structure.values() if isinstance(structure, dict) else structure:
            yield from _iterate_non_null_values(item)
    elif structure is not None:
        yield structure


def _find_missing_facts(trial: AnsweredTrial) -> tuple[Finding, ...]:
    """A finding for each stated fact that the answer does not show."""
    if trial.lost:
        return ()
    missing = [fact for fact in trial.started.facts if not contains_any_spelling(fact, trial.answer)]
    return tuple(
        trial.make_answer_finding(FindingKind.FACT, f"missing fact '{fact[0] if fact else ''}'") for fact in missing
    )


def _make_unclear_sense(trial: AnsweredTrial) -> AnswerSense:
    """An answer that nothing certain decides, with a hint for a person."""
    likeness = trial.twin_likeness
    if trial.failure_admission:
        hint = f"it seems to admit it: {render_brief(trial.failure_admission, QUOTE_MAX)}"
    elif likeness is None:
        hint = ""
    elif trial.lost and likeness.same_values:
        hint = "it has its twin's values, and seems to claim it"
    else:
        hint = likeness.text
    text = f"{UNDECIDED} if the answer says so" if trial.lost else f"{UNDECIDED} if the answer is right"
    return AnswerSense(Said.UNCLEAR, Basis.NONE, text, hint=hint)
