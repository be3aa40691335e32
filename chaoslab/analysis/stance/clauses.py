"""The clauses of an answer, each with what it says: a trouble, a doubt, a success, or an earlier attempt."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaoslab.analysis.stance import doubt, earlier, success, trouble

READ_MAX = 20_000
"""The most characters of an answer that are read."""
KEPT = 64
"""The most answers whose clauses are kept: the trials of a prompt often have the same answer."""
_SENTENCE = re.compile(r"(?<=[.!?;…])\s+|\n+|\s*\|\s*|\s+[–—]\s+")
_PART = re.compile(r",? (?:but|yet|whereas|however|so|and)(?= )|(?<=\w), |(?=\()|(?<=\))")
_BULLET = re.compile(r"^(?:[>#]+|\d+\.|[-*+](?= ))\s*", re.MULTILINE)
_EMPHASIS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|«[^«»\n]*»|(?<!\w)'[^'\n]*'(?!\w)")


@dataclass(frozen=True)
class Clause:
    """A part of an answer. `trouble`: something was not done or is not known. `doubt`: it may have been done all the
    same. `success`: something was achieved. `past`: it tells of an earlier attempt."""

    text: str
    trouble: bool
    doubt: bool
    success: bool
    past: bool


def plain(text: str) -> str:
    """The text with folded case, no accents, single spaces, and one kind of minus and of apostrophe."""
    return " ".join(_folded(text).split())


def clauses(answer: str) -> Sequence[Clause]:
    """The clauses of a text, quotations left out."""
    return _clauses(answer[:READ_MAX])


@lru_cache(maxsize=KEPT)
def _clauses(answer: str) -> Sequence[Clause]:
    found: list[Clause] = []
    for sentence in sentences(_spoken(answer)):
        before = inside = False  # an aside shares the time of the clause that it stands in
        for part in _PART.split(sentence):
            inside = part.startswith("(") or inside
            text = trouble.IDLE.sub(" ", part)
            past = (bool(earlier.PAST.search(text)) and not earlier.AGAIN.search(text)) or (inside and before)
            found.append(_read(part, earlier.OVER.sub(" ", text), past=past))
            before = before if inside else past
            inside = inside and ")" not in part
    return found


def _read(part: str, text: str, *, past: bool) -> Clause:
    """`part` as a clause. `text`: the same without the words that tell of no trouble."""
    stated = not doubt.CONDITION.search(text)
    doubted = stated and bool(doubt.DOUBT.search(text))
    troubled = doubted or (stated and bool(trouble.TROUBLE.search(text)))
    done = not troubled and bool(success.SUCCESS.search(text)) and not doubt.REQUEST.search(text)
    return Clause(part, troubled, doubted, done or (past and bool(success.OVERCOME.search(text))), past)


def sentences(text: str) -> list[str]:
    """The sentences, lines and cells of a text."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def _folded(text: str) -> str:
    if text.isascii():  # nothing else is to be folded, and looking at each character takes long
        return text.casefold()
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return bare.casefold().replace("−", "-").replace("’", "'")


def _spoken(answer: str) -> str:
    """The agent's own words: a quotation, such as a message's text, does not describe the agent's acts."""
    lines = [" ".join(line.split()) for line in _folded(answer).splitlines()]
    return _QUOTED.sub(" it ", _EMPHASIS.sub("", _BULLET.sub("", "\n".join(lines))))
