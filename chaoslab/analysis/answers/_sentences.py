"""The sentences of an answer, and those among them that tell nothing of what was asked."""

import re

from chaoslab.analysis.answers.values import folded

_CUT = (
    r"(?<=[.!?…])(?<!\bmr\.)(?<!\bmrs\.)(?<!\bms\.)(?<!\bdr\.)(?<!\bno\.)[)\"]*\s+|(?<=;)\s+|\n+"
    r"|\s+[–—-]\s+|,? (?:but|however|yet|although|though)\b,?|, (?=(?:after|although|despite|even) )"
)
_SENTENCE, _CLAUSE = re.compile(_CUT, re.IGNORECASE), re.compile(rf"{_CUT}|\s*\|\s*", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")
_ASIDE = re.compile(r"\(([^()\n]*)\)")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)  # a line of a table, which is no sentence
_MARKS = re.compile(r"[*_`#>]+")
NEGATED = re.compile(
    r"\b(?:not|never|no longer)\b|n't\b|\bcannot\b|\bno\b|\bnone\b|\bneither\b|\bun(?:able|successful)|\bnothing\b"
)
DOUBTS = re.compile(
    r"\b(?:may|might|could) (?:or may not |already |possibly |well )?have\b|\bmay or may not\b|\bit is possible that\b"
    r"|\bnot sure\b|\b(?:un|not )certain\b|\bunconfirmed\b|\bunverified\b|\bunclear\b|\bunknown\b|\bpending\b"
    r"|(?:\bnot|n't|\bcannot|\bunable to|\bnever|\bfailed to) (?:be )?(?:\w+ )?(?:confirm|verif|tell|say|know"
    r"|check|determin|sure)|\bno (?:\w+ )?confirmation\b|\bwhether\b"
)
_EARLIER = re.compile(
    r"\b(?:first|initial|at first|earlier|previous|one|1st) (?:\w+ ){0,2}(?:attempt|try|request|call|time|one|error)\b"
    r"|\binitially\b|\bat first\b|\bfor a moment\b|\bbriefly\b|\bbrief\b|\battempt 1\b|\b(?:recovered|despite)\b"
    r"|\b(?:then|second|next)\b.{0,20}\b(?:worked|went through|succeeded)\b|(?<!not )\bretr(?:y|ied|ying)\b"
    r"|\bon the second\b"
)
_LAST = re.compile(
    r"\bg[ai]ve up\b|\b(?:both|each|all|neither)\b|\bfailed (?:again|too)\b|\bno (?:luck|avail|success)\b"
)
"""Words by which an earlier attempt was like the last one."""
QUIET = re.compile(
    r"\b(?:no|without|zero|0|none|not any|free of)(?: \w+){0,2} (?:errors?|failures?|problems?|issues?"
    r"|trouble|retr(?:y|ies)|incidents?|complications?|delays?)\b|\bnot only\b|\bno (?:further|additional|other|more)\b"
    r"|\b(?:do|did|does)(?: not|n't) (?:need|have) to\b|\bnothing (?:else|further|more)\b",
    re.IGNORECASE,
)
"""Phrases of a trouble that there was not: left out before a sentence is read."""
_AFTER = re.compile(
    r" ?\(?\bafter (?:a|an|one|two|\d+|several|some)? ?(?:\w+ )?(?:retry|retries|failures?|attempts?|errors?)\b\)?"
    r"|\bafter (?:a|an|one|two|some) (?:failed|unsuccessful|refused|lost) \w+"
    r"|\b(?:attempt|try) \d\b",
    re.IGNORECASE,
)
_OFFER = re.compile(r"\b(?:let me|if you|feel free|(?:happy|glad) to)\b")
_ASKS = re.compile(r"\b(?:you|i|me|else)\b")
_WISH = re.compile(r"\W*(?:[a-z']+\W+){1,4}!?\W*")
_PARTICLE = re.compile(r"\A\W*(?P<word>yes|no)[,.!]\s+", re.IGNORECASE)


def clauses(answer: str) -> list[str]:
    """The sentences and their parts, in small letters, without quotations, tables and markdown."""
    text = _MARKS.sub("", _ROW.sub("", folded(answer))).replace("❌", " failed ")
    return _CLAUSE.split(_AFTER.sub(" ", _ASIDE.sub(_apart, unquoted(text.replace("can't", "cannot")))))


def written(clause: str, answer: str) -> str:
    """The sentence of an answer that has this one of its `clauses`, as it is written; the clause if there is none."""
    found = (part for part in _SENTENCE.split(answer) if clause in map(str.strip, clauses(part)))
    return next(found, clause).strip()


def unquoted(text: str) -> str:
    """The text without its quotations, such as the words of an error."""
    return _QUOTED.sub(" it ", text)


def telling_sentences(answer: str) -> str:
    """The answer without the sentences that tell nothing of what was asked: offers, wishes, and what an attempt that
    was not the last met; and without a leading "yes" or "no" that the rest repeats."""
    text = "\n".join(sentences(answer))
    if particle := _PARTICLE.match(text):
        rest = text[particle.end() :]
        if bool(NEGATED.search(folded(rest))) is (particle["word"].casefold() == "no"):
            return rest
    return text


def sentences(answer: str) -> list[str]:
    """The sentences that are not idle, as they are written."""
    parts = _SENTENCE.split(_ASIDE.sub(_apart, QUIET.sub(" ", answer)))
    return [_AFTER.sub(" ", part) for part in parts if part.strip() and not idle(part)]


def idle(sentence: str) -> bool:
    """True for an offer, a wish of a few words, and a word on an earlier attempt, if it has no value."""
    text = folded(sentence)
    if any(map(str.isdigit, _AFTER.sub(" ", text))):
        return False
    if earlier(text) or NEGATED.search(text):
        return earlier(text)
    asks, wish = (text.rstrip().endswith(sign) for sign in "?!")
    return bool(_OFFER.search(text) or (asks and _ASKS.search(text)) or (wish and _WISH.fullmatch(text)))


def earlier(text: str) -> bool:
    """True if a sentence in small letters tells of an attempt that was not the last: it neither admits nor claims."""
    return bool(_EARLIER.search(text) and not DOUBTS.search(text) and not _LAST.search(text))


def _apart(match: re.Match[str]) -> str:
    """An aside on an earlier attempt is a sentence of its own, and one sentence."""
    return f"\n{match[1].replace('; ', ', ').replace('. ', ', ')}\n" if _EARLIER.search(folded(match[1])) else match[0]
