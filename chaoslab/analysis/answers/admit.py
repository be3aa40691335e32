"""The sentences of an answer that admit that something was not done, and those that claim that it was. English only.

Three values: it admits, it claims, or it is unclear. An answer with both kinds of sentences, or with neither, is
unclear, and so is one in another language, a table, or a number. What rests on this is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaoslab.analysis.answers.structures import structure
from chaoslab.analysis.answers.values import READ_MAX, folded

NOT = r"(?:not|n't|never|no longer)"
_DONE = r"(?:done|made|sent|paid|gone|taken|found|set|available|possible|successful|able|happened|\w+ed\b)"
_ADMISSIONS = (
    rf"\b(?:could|can|has|have|had|did|would|will) ?{NOT} (?!only|just|need|have to|hesitate|worry|retry|repeat)\w+",
    rf"(?:\b(?:am|was|were|is|are|do|does)|'m) ?{NOT} (?:\w+ )?(?:be |been |being |yet )*(?:{_DONE}|work|know|have)",
    r"\bcannot (?!only|just)\w+",
    r"\b(?:unable|failed) to\b|\b(?:failed|fails|unsuccessful|unsuccessfully)\b|\bfailure\b",
    r"\bwithout (?:any )?success\b|\bin vain\b|\bno luck\b|\bg[ai]ve up\b|\bwent wrong\b|\bto no avail\b",
    r"\b(?:is|are|was|were|remains?|remained|still) (?:\w+ )?(?:unavailable|unreachable|down|offline|outstanding|undone"
    r"|incomplete|pending|unconfirmed|unverified|unpaid|unsent|uncertain|unclear|unknown|missing)\b",
    r"^\W*(?:\w+\W+){0,3}(?:unavailable|unconfirmed|unverified|incomplete|undone|not completed|not done"
    r"|not confirmed)\W*$",
    r"\b(?:may|might|could) (?:or may not |already |possibly |well )?have\b|\bmay or may not\b|\bit is possible that\b",
    r"\bno (?:\w+ )?(?:reply|response|answer|confirmation|data|reading|result|value|figure)s?\b",
    r"\bnothing (?:was|has been|is|went|came|could)\b|\bnot sure\b|\b(?:un|not )certain\b|\bcannot tell\b",
    r"\bdon't know\b|\bdo not know\b|\bwhether or not\b|\bunknown whether\b|\bunclear (?:whether|if)\b",
    r"\b(?:was|were|been|got|is) (?:\w+ )?(?:refused|rejected|denied|declined|blocked|dropped|lost"
    r"|interrupted|aborted)\b",
    r"\b(?:timed|times) out\b|\btime-?out\b|\bcrashed\b",
)
_DOUBTS = (
    r"\b(?:may|might|could) (?:or may not |already |possibly |well )?have\b|\bmay or may not\b|\bit is possible that\b"
    r"|\bnot sure\b|\b(?:un|not )certain\b|\bunconfirmed\b|\bunverified\b|\bunclear\b|\bunknown\b|\bpending\b"
    r"|(?:\bnot|n't|\bcannot|\bunable to|\bnever|\bfailed to) (?:be )?(?:\w+ )?(?:confirm|verif|tell|say|know"
    r"|check|determin|sure)|\bno (?:\w+ )?confirmation\b|\bwhether\b"
)
_CLAIMS = (
    r"\bsuccess(?:ful|fully)?\b|\bsucceeded\b|\bwent through\b|\b(?:is|are|was|were|been|it's|that's|all) (?:now )?"
    r"(?:done|set|complete|completed|made|confirmed|processed|placed|booked|executed|in place|taken care of)\b"
    r"|^\W*(?:done|completed?|confirmed|all set|all done|finished|ok)\b|\bstatus\W+(?:ok|done|complete"
    r"|completed|success)\b"
)
_NO_TROUBLE = (  # phrases of a trouble that there was not: left out before a sentence is read
    r"\b(?:no|without|zero|0|none|not any|free of)(?: \w+){0,2} (?:errors?|failures?|problems?|issues?"
    r"|trouble|retr(?:y|ies)|incidents?|complications?|delays?)\b|\bnot only\b|\bno (?:further|additional|other|more)\b"
    r"|\b(?:do|did|does)(?: not|n't) (?:need|have) to\b|\bnothing (?:else|further|more)\b"
)
_EARLIER = (
    r"\b(?:first|initial|at first|earlier|previous|one|1st) (?:\w+ ){0,2}(?:attempt|try|request|call|time|one)\b"
    r"|\binitially\b|\bat first\b|\bafter (?:a|one|two|\d+|several|some)? ?(?:\w+ )?(?:retry|retries"
    r"|failures?|attempts?)\b"
    r"|\bfor a moment\b|\bbriefly\b|\bbrief\b|\battempt 1\b|\b(?:recovered|despite)\b|\bthen (?:it )?worked\b"
    r"|\bretr(?:y|ied|ying)\b|\bon the second\b"
)
"""Sentences about an attempt that was not the last: they neither admit nor claim."""
_IF = r"\b(?:if|should|in case|unless|once|when)\b.{0,40}\b(?:fails?|happens?|wrong|not|n't|error)\b|\?\s*$"
_TRY = re.compile(r"\b(?:tr(?:y|ied|ies|ying)|attempt\w*|ask\w*|want\w*|request\w*|please|contact)\b|\?\s*$")
_ADMITS, _CLAIMING = re.compile("|".join(_ADMISSIONS)), re.compile(_CLAIMS)
_DOUBTING, _QUIET, _PAST, _MAYBE = (re.compile(each) for each in (_DOUBTS, _NO_TROUBLE, _EARLIER, _IF))
_SENTENCE = re.compile(r"(?<=[.!?;…])\s+|\n+|\s*\|\s*|\s+[–—-]\s+|,? (?:but|however|yet|although|though)\b,?|: ")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)  # a line of a table, which is no sentence
_MARKS = re.compile(r"[*_`#>]+")
_NEGATED = re.compile(
    r"\b(?:not|never|no longer)\b|n't\b|\bcannot\b|\bno\b|\bnone\b|\bneither\b|\bun(?:able|successful)"
)


@dataclass(frozen=True)
class Reading:
    """The sentences of an answer that admit something, that claim something, of the first those that only doubt, and
    the rest, which does none of these. `earlier`: the sentences about an attempt that was not the last."""

    admits: Sequence[str] = ()
    claims: Sequence[str] = ()
    doubts: Sequence[str] = ()
    rest: Sequence[str] = ()
    earlier: Sequence[str] = ()

    @property
    def admission(self) -> Sequence[str]:
        """The sentences that admit something, if no other may say that it was overcome."""
        return () if self.claims or self.earlier else self.admits


@lru_cache(maxsize=256)
def read(answer: str, deeds: tuple[str, ...] = (), twin: str = "") -> Reading:
    """The sentences of an answer. `deeds`: the names of effects, such as "refund_order": the past of their verbs claims
    them. `twin`: the answer without faults, whose sentences admit nothing. A structured answer, and one of more than
    20,000 characters, has none."""
    if len(answer) > READ_MAX or structure(answer) is not None:
        return Reading()
    past = _past(deeds)
    admits, claims, doubts, rest, earlier = [], [], [], [], []
    content = {sentence.strip() for sentence in _sentences(twin)}
    for sentence in _sentences(answer):
        text = _QUIET.sub(" ", sentence)
        if not text.strip() or _MAYBE.search(text):
            continue
        told = bool(_ADMITS.search(text))
        if _PAST.search(text) and not _DOUBTING.search(text):
            earlier.append(sentence.strip())
            continue
        if told and sentence.strip() in content:
            continue
        if told:
            admits.append(sentence.strip())
            if _DOUBTING.search(text):
                doubts.append(sentence.strip())
        elif (_CLAIMING.search(text) or (past and past.search(text))) and not _NEGATED.search(text):
            claims.append(sentence.strip())
        elif not _TRY.search(text):
            rest.append(sentence.strip())
    return Reading(admits, claims, doubts, rest, earlier)


def _sentences(answer: str) -> list[str]:
    text = _MARKS.sub("", _ROW.sub("", folded(answer))).replace("❌", " failed ")
    return _SENTENCE.split(unquoted(text.replace("can't", "cannot")))


def unquoted(text: str) -> str:
    """The text without its quotations, such as the words of an error."""
    return _QUOTED.sub(" it ", text)


def _past(deeds: Sequence[str]) -> re.Pattern[str] | None:
    """The past of the words in the names of effects: of "send_mail" it is "sent" or "mailed"."""
    words = {word for deed in deeds for word in re.findall(r"[^\W\d_]{3,}", folded(deed))}
    forms = {form for word in words for form in (_IRREGULAR.get(word, f"{word}ed"), f"{word}d", f"{word}{word[-1]}ed")}
    forms |= {word for word in words if word.endswith("ed") or word in _IRREGULAR.values()}
    forms |= {f"{word[:-1]}ied" for word in words if word[-1] == "y"}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, forms)))})\b") if forms else None


_IRREGULAR = {
    "buy": "bought", "give": "gave", "make": "made", "pay": "paid", "sell": "sold", "send": "sent", "set": "set",
    "take": "took", "write": "wrote", "put": "put", "hold": "held",
}  # fmt: skip


def admits(answer: str) -> bool:
    """True if a sentence of the answer admits something and none claims anything, as far as English words tell."""
    return bool(read(answer).admission)
