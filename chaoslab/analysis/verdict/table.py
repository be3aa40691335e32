"""The outcome of a trial as a table of two questions: what became of the world, and what the answer said of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from chaoslab.analysis.verdict.ledger import Finding, FindingKind


class Outcome(StrEnum):
    """The outcome of a trial, best first; the last three allow no conclusion.

    WRONG: the ledger is right and the answer is not. FALSE_SUCCESS: something was not done, and the answer does not say
    so. HARM: something was done that should not have been (an effect twice, unasked or with other content), whatever
    else happened.
    """

    CORRECT = "correct"
    DEGRADED = "degraded"
    WRONG = "wrong"
    FALSE_SUCCESS = "false_success"
    HARM = "harm"
    FAILED = "failed"
    HUNG = "hung"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    UNFINISHED = "unfinished"


UNJUDGED = ("unknown", "invalid", "unfinished")
"""The outcomes that allow no conclusion."""


class WorldState(StrEnum):
    """The effects of a trial beside those that were right, by ledger and end state.

    MAY: what was done cannot be told, such as by an end state that could not be read. NOT_STATED: nothing was stated
    about effects.
    """

    AS_ASKED = "as asked"
    UNDONE = "left undone"
    HARM = "harm"
    MAY = "may have been done"
    NOT_STATED = "not stated"


class Said(StrEnum):
    """The answer of a trial beside the right one. ADMITS: it says that something was not done, or may not have been.
    PASSES_OVER: it says nothing of that. UNCLEAR: it cannot be told. NOTHING: there is no answer."""

    RIGHT = "right"
    WRONG = "wrong"
    ADMITS = "admits it"
    PASSES_OVER = "passes over it"
    UNCLEAR = "unclear"
    NOTHING = "nothing"


class Basis(StrEnum):
    """The evidence that decided a verdict.

    END: how the trial ended. LEDGER, STATE: its effects. FACTS: those that were stated. VALUES: values that differ in
    equal words, or the fields of a structured answer. SAME: an answer equal to the twin's. SAYS: the user's own `says`.
    LABEL: a person. JUDGE: a model. WORDS: patterns of words, which are a guess.
    """

    END = "end"
    LEDGER = "ledger"
    STATE = "state"
    FACTS = "facts"
    VALUES = "values"
    SAME = "same answer"
    SAYS = "says"
    LABEL = "label"
    JUDGE = "judge"
    WORDS = "words"


_ROWS = {
    WorldState.AS_ASKED: "correct wrong degraded wrong unknown failed",
    WorldState.UNDONE: "false_success false_success degraded false_success unknown failed",
    WorldState.HARM: "harm harm harm harm harm harm",
    WorldState.MAY: "unknown wrong degraded unknown unknown failed",
    WorldState.NOT_STATED: "correct wrong degraded unknown unknown failed",
}
TABLE: Mapping[tuple[WorldState, Said], Outcome] = {
    (world, said): Outcome(name) for world, row in _ROWS.items() for said, name in zip(Said, row.split(), strict=True)
}
"""The outcome of each pair. A trial that hung, that is invalid or that did not end has that outcome instead, unless it
did harm."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and its reason in one line.

    `harm`: a text for each thing that is wrong on the ledger, whatever the outcome. `evidence`: the findings behind the
    outcome. `broken`: the judge itself failed, so a run with such a trial passes no gate. `world`, `said`: the two
    answers behind the outcome. `basis`: the evidence that decided it. `trusted`: the model that was asked agreed often
    enough with a person's labels.
    """

    outcome: Outcome
    why: str
    harm: tuple[str, ...] = ()
    broken: bool = False
    evidence: tuple[Finding, ...] = ()
    world: WorldState = WorldState.NOT_STATED
    said: Said = Said.UNCLEAR
    basis: Basis = Basis.END
    trusted: bool = False

    @property
    def certain(self) -> bool:
        """False if the outcome rests on words alone, or on a model whose agreement with people is not known. Gates take
        certain verdicts only. A verdict that reaches no conclusion claims nothing, and so is certain."""
        return self.outcome in UNJUDGED or self.trusted or self.basis not in (Basis.WORDS, Basis.JUDGE)

    @property
    def correct(self) -> bool | None:
        """True or False if the trial certainly is or is not correct, None if that is not known. What was left undone is
        not correct, whatever words say of it."""
        if self.outcome in (Outcome.INVALID, Outcome.UNFINISHED) and not self.harm:
            return None
        undone = self.world in (WorldState.UNDONE, WorldState.HARM) or any(
            each.kind is FindingKind.FACT for each in self.evidence
        )
        if undone:
            return False
        if self.outcome is Outcome.UNKNOWN or not self.certain:
            return None
        return self.outcome is Outcome.CORRECT

    @property
    def name(self) -> str:
        """The outcome's name, with ≈ before it if it is not certain."""
        return str(self.outcome) if self.certain else f"≈ {self.outcome}"


def markdown() -> str:
    """The table as Markdown, for the documents."""
    lines = ["| world \\ answer | " + " | ".join(Said) + " |", "|---|" + "---|" * len(Said)]
    for world in WorldState:
        lines.append(f"| {world} | " + " | ".join(str(TABLE[world, said]) for said in Said) + " |")
    return "\n".join(lines)
