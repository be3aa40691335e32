"""Pattern matching on what an answer says of its own success: troubles, doubts, and the ones that were overcome.

An answer is read clause by clause. A trouble counts unless the clause tells of an earlier attempt and another clause
of a success. Structured answers are read by their keys. The words stand by subject: `trouble`, `doubt`, `success`,
`earlier`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaoslab.analysis.stance import trouble
from chaoslab.analysis.stance.clauses import Clause, asks, clauses
from chaoslab.analysis.stance.structured import of_structure, structure

__all__ = [
    "Clause",
    "admissions",
    "admits",
    "clauses",
    "denials",
    "ends_badly",
    "plainly",
    "structure",
    "succeeds",
    "wavers",
]

_CONTRAST = ("but ", "however", "yet ", "whereas ", "except ", "only that ")


def admits(answer: str, twin: str | None = None) -> bool:
    """True if the answer states, in its own words, that something could not be done or is not known. `twin`: an answer
    whose own sentences do not count."""
    return bool(admissions(answer, twin))


def admissions(answer: str, twin: str | None = None) -> list[Clause]:
    """The clauses with a trouble that was not overcome."""
    held = structure(answer)
    if held is not None:
        found = list(of_structure(held))
    else:
        said = clauses(answer)
        overcome = any(clause.success for clause in said)
        found = [clause for clause in said if clause.trouble and not (overcome and clause.past)]
    if twin is not None and found:
        known = {_bare(clause.text) for clause in admissions(twin)}
        found = [clause for clause in found if _bare(clause.text) not in known]
    return found


def plainly(admitted: Sequence[Clause]) -> bool:
    """True if one of the admissions is a doubt, tells that nobody answered, or says in plain words that something
    could not be done. A clause that only tells of what the agent left alone ("I did not send it, as it is warm") is
    neither."""
    return any(c.doubt or trouble.SILENCE.search(c.text) or trouble.PLAINLY.search(c.text) for c in admitted)


def denials(admitted: Sequence[Clause]) -> list[Clause]:
    """The admissions by which something was not done; none if any leaves it in doubt. That nobody answered is no
    denial."""
    if any(clause.doubt for clause in admitted):
        return []
    return [clause for clause in admitted if not trouble.SILENCE.search(clause.text)]


def ends_badly(clause: Clause) -> bool:
    """True if the clause is a line such as "Status: failed", which holds for all that was asked."""
    return bool(trouble.STATED_BAD.match(clause.text))


def wavers(answer: str, twin: str | None = None) -> str:
    """The clause behind a "but" that states neither a success nor a trouble, so that nobody can tell what it takes
    back; else empty. `twin`: an answer whose own clauses do not count."""
    if answer == twin:
        return ""
    known = {_bare(clause.text) for clause in clauses(twin)} if twin is not None else set()
    for clause in clauses(answer):
        text = " ".join(f"{clause.joined} {clause.text}".split()).strip(" ,;.")
        open_ended = not (clause.success or clause.trouble or asks(clause.text))
        if open_ended and text.startswith(_CONTRAST) and _bare(clause.text) not in known:
            return text
    return ""


def succeeds(answer: str) -> bool:
    """True if a clause of the answer states a success."""
    return any(clause.success for clause in clauses(answer))


def _bare(text: str) -> str:
    return re.sub(r"[\d\W_]+", " ", text)
