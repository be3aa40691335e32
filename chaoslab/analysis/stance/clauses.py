"""The clauses of an answer, each with what it says: a trouble, a doubt, a success, or an earlier attempt."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from chaoslab.analysis.stance import doubt, earlier, success, trouble

READ_MAX = 20_000
"""The most characters of an answer that are read."""
KEPT = 64
"""The most answers whose clauses are kept: the trials of a prompt often have the same answer."""
_SENTENCE = re.compile(r"(?<=[.!?;…])\s+|\n+|\s*\|\s*|\s+[–—]\s+")
_PART = re.compile(r",? (but|yet|whereas|however|so|and)(?= )|(?<=\w), |(?=\()|(?<=\))")
_BULLET = re.compile(r"^(?:[>#]+|\d+\.|[-*+](?= ))\s*", re.MULTILINE)
_EMPHASIS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_DASH = re.compile(r"\s*[–—-]?\s*")
_CELLS_MAX = 3
"""A row of at most this many lines between its cells is a name and a value, so a dash is a value that lacks."""
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|«[^«»\n]*»|(?<!\w)'[^'\n]*'(?!\w)")


@dataclass(frozen=True)
class Clause:
    """A part of an answer. `trouble`: something was not done or is not known. `doubt`: it may have been done all the
    same. `success`: something was achieved. `past`: it tells of an earlier attempt. `row`: the row of the table that it
    is a cell of, which names its subject. `joined`: the word that joins it to the one before, such as "but"."""

    text: str
    trouble: bool
    doubt: bool
    success: bool
    past: bool
    row: str = ""
    joined: str = ""


def plain(text: str) -> str:
    """The text with folded case, no accents, single spaces, and one kind of minus and of apostrophe."""
    return " ".join(folded(text).split())


def clauses(answer: str) -> Sequence[Clause]:
    """The clauses of a text, quotations left out."""
    return _clauses(answer[:READ_MAX])


@lru_cache(maxsize=KEPT)
def _clauses(answer: str) -> Sequence[Clause]:
    found: list[Clause] = []
    told = [(line if line.count("|") > 1 else "", line) for line in _spoken(answer).splitlines()]
    for row, sentence in ((row, sentence) for row, line in told for sentence in sentences(line)):
        before = inside = False  # an aside shares the time of the clause that it stands in
        for word, part in _parts(sentence):
            inside = part.startswith("(") or inside
            text = trouble.IDLE.sub(" ", part)
            past = (bool(earlier.PAST.search(text)) and not earlier.AGAIN.search(text)) or (inside and before)
            if row.count("|") > _CELLS_MAX and _DASH.fullmatch(part):
                continue  # an empty cell
            found.append(replace(_read(part, earlier.OVER.sub(" ", text), past=past), row=row, joined=word))
            before = before if inside else past
            inside = inside and ")" not in part
    return _with_retries(found)


def _parts(sentence: str) -> Iterator[tuple[str, str]]:
    """The parts of a sentence, each with the word that joins it to the one before."""
    found = _PART.split(sentence)
    yield from zip(["", *(word or "" for word in found[1::2])], found[::2], strict=True)


def _with_retries(said: list[Clause]) -> list[Clause]:
    """The clauses, with those troubles as past that a later attempt overcame. A doubt is never overcome so."""
    if not any(clause.trouble for clause in said):
        return said
    rows = any(earlier.ROWS.fullmatch(clause.text) for clause in said)
    for at, clause in enumerate(said):
        if clause.trouble or earlier.AGAIN.search(clause.text):
            continue
        row = rows and earlier.RETRIED_ROW.fullmatch(clause.text)
        if not row and not earlier.RETRIED.search(clause.text):
            continue
        if at and earlier.RETRIED_ASIDE.fullmatch(clause.text) and said[at - 1].text.startswith("("):
            said[at - 1] = replace(said[at - 1], past=not said[at - 1].doubt)
        rest = "" if row else earlier.RETRIED.sub(" ", clause.text)
        ahead = said[at + 1] if at + 1 < len(said) else None
        well = bool(earlier.WENT_WELL.search(rest))
        if not well and ahead is not None and not ahead.trouble:
            well = bool(row or earlier.WENT_WELL.search(earlier.RETRIED.sub(" ", ahead.text)))
        if not well:
            continue
        for n in range(max(0, at - earlier.REACH), at):
            if said[n].trouble and not said[n].doubt:
                said[n] = replace(said[n], past=True)
        said[at] = replace(clause, success=True)
    return _with_the_end(said)


def _with_the_end(said: list[Clause]) -> list[Clause]:
    """The clauses, with the troubles as past before the one line that states a good end."""
    ends = [at for at, clause in enumerate(said) if earlier.STATED_GOOD.match(clause.text)]
    if len(ends) != 1 or any(trouble.STATED_BAD.match(clause.text) for clause in said):
        return said
    before = said[: ends[0]]
    return [replace(c, past=True) if c.trouble and not c.doubt else c for c in before] + said[ends[0] :]


def _read(part: str, text: str, *, past: bool) -> Clause:
    """`part` as a clause. `text`: the same without the words that tell of no trouble."""
    stated = not doubt.CONDITION.search(text)
    doubted = stated and bool(doubt.DOUBT.search(text))
    troubled = doubted or (stated and bool(trouble.TROUBLE.search(text)))
    done = not troubled and bool(success.SUCCESS.search(text)) and not doubt.REQUEST.search(text)
    return Clause(part, troubled, doubted, done or (past and bool(success.OVERCOME.search(text))), past)


def asks(text: str) -> bool:
    """True if a clause asks something of the user, or tells of what may come."""
    return bool(doubt.REQUEST.search(text.lstrip(" ,;")) or doubt.CONDITION.search(text.lstrip(" ,;")))


def sentences(text: str) -> list[str]:
    """The sentences, lines and cells of a text."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def folded(text: str) -> str:
    """The text with folded case, no accents, and one kind of minus and of apostrophe."""
    if text.isascii():  # nothing else is to be folded, and looking at each character takes long
        return text.casefold()
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return bare.casefold().replace("−", "-").replace("’", "'")


def _spoken(answer: str) -> str:
    """The agent's own words: a quotation, such as a message's text, does not describe the agent's acts."""
    lines = [" ".join(line.split()) for line in folded(answer).splitlines()]
    bare = _EMPHASIS.sub("", _BULLET.sub("", "\n".join(lines)))
    return _QUOTED.sub(
        _instead, trouble.ALL_BUT.sub(r"\1 except", trouble.DELAY.sub(" ", trouble.NONE_IN_ROW.sub(" ", bare)))
    )


def _instead(quote: re.Match[str]) -> str:
    """The words in the place of a quotation: an error that the agent was told is a trouble of its own."""
    text, start, end = quote.string, quote.start(), quote.end()
    before = text[max(0, start - 40) : start]
    told = trouble.TOLD.search(before) and not trouble.ASKED.search(before) and trouble.ERROR.search(quote[0])
    sent = told and (trouble.SENT.search(text, max(0, start - 80), start) or trouble.WENT_OUT.match(text, end))
    return " an error " if told and not sent else " it "
