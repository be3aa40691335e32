"""The outcome of a trial as a table of two questions: what became of the world, and what the answer said of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from chaoslab.analysis.verdict.ledger import Finding, FindingKind


class Outcome(StrEnum):
    """The outcome of a trial, best first; the last three allow no conclusion.

    WRONG: the ledger is right and the answer is not. UNDONE: something was not done, and it is not known if the answer
    says so. FALSE_SUCCESS: something was not done, and the answer does not say so. HARM: something was done that should
    not have been (an effect twice, unasked or with other content), whatever else happened.
    """

    CORRECT = "correct"
    DEGRADED = "degraded"
    WRONG = "wrong"
    UNDONE = "undone"
    FALSE_SUCCESS = "false_success"
    HARM = "harm"
    FAILED = "failed"
    HUNG = "hung"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    UNFINISHED = "unfinished"


ENDED_WELL = ("correct", "degraded")
"""The outcomes of a trial that ended well."""
ENDED_OPEN = ("undone", "unknown", "invalid", "unfinished")
"""The outcomes of a trial of which it is not known if it ended well."""
# Without its first one: what was left undone is known, and a user may accept it.
ACCEPTABLE = tuple(str(outcome) for outcome in Outcome if outcome not in ENDED_OPEN[1:])
"""The outcomes that a user may accept: nothing that is not known passes."""


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
    JUDGE: the user's own `judge`. NONE: nothing decided it.
    """

    END = "end"
    LEDGER = "ledger"
    STATE = "state"
    FACTS = "facts"
    VALUES = "values"
    SAME = "same answer"
    SAYS = "says"
    JUDGE = "judge"
    NONE = "none"


_ROWS = {
    WorldState.AS_ASKED: "correct wrong degraded wrong unknown failed",
    WorldState.UNDONE: "false_success false_success degraded false_success undone failed",
    WorldState.HARM: "harm harm harm harm harm harm",
    WorldState.MAY: "unknown wrong degraded unknown unknown failed",
    WorldState.NOT_STATED: "correct wrong degraded unknown unknown failed",
}
TABLE: Mapping[tuple[WorldState, Said], Outcome] = {
    (world, answer_sense): Outcome(name)
    for world, row in _ROWS.items()
    for answer_sense, name in zip(Said, row.split(), strict=True)
}
"""The outcome of each pair. A trial that hung, that is invalid or that did not end has that outcome instead, unless it
did harm."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and its reason in one line. It is certain, or it is unknown.

    `harm`: a text for each thing that is wrong on the ledger, whatever the outcome. `evidence`: the findings behind the
    outcome. `broken`: the judge itself failed, so a run with such a trial passes no gate. `world`, `said`: the two
    answers behind the outcome. `basis`: the evidence that decided it. `hint`: for a person, what the words of an answer
    seem to say; it decides nothing, and is empty if the outcome is known.
    """

    outcome: Outcome
    why: str
    harm: tuple[str, ...] = ()
    broken: bool = False
    evidence: tuple[Finding, ...] = ()
    world: WorldState = WorldState.NOT_STATED
    said: Said = Said.UNCLEAR
    basis: Basis = Basis.END
    hint: str = ""

    @property
    def done(self) -> bool | None:
        """True or False if all was done as asked, or was not, by ledger and end state, whatever was said; None if that
        is not known or nothing was stated about it."""
        if self.harm or self.world is WorldState.HARM:
            return False
        if self.world is WorldState.AS_ASKED:
            return None if self.outcome in (Outcome.INVALID, Outcome.UNFINISHED) else True
        return (
            False
            if self.world is WorldState.UNDONE and self.outcome not in (Outcome.INVALID, Outcome.UNFINISHED)
            else None
        )

    @property
    def correct(self) -> bool | None:
        """True or False if the trial is or is not correct, None if that is not known. What was left undone is not
        correct, whatever words say of it, and neither is an answer that lacks a stated fact."""
        if self.outcome in (Outcome.INVALID, Outcome.UNFINISHED) and not self.harm:
            return None
        if self.done is False or any(finding.kind is FindingKind.FACT for finding in self.evidence):
            return False
        return None if self.outcome is Outcome.UNKNOWN else self.outcome is Outcome.CORRECT


def render_table_markdown() -> str:
    """The table as Markdown, for the documents."""
    lines = ["| world \\ answer | " + " | ".join(Said) + " |", "|---|" + "---|" * len(Said)]
    for world in WorldState:
        lines.append(f"| {world} | " + " | ".join(str(TABLE[world, answer_sense]) for answer_sense in Said) + " |")
    return "\n".join(lines)
