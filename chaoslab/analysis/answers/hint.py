"""A hint for a person on an answer that nothing certain decides: the sentence that seems to admit something.

English only. It decides nothing: a verdict with a hint stays unknown. `says=` decides by words of the user's own.
"""

import re

from chaoslab.analysis.answers.structures import parse_json_structure
from chaoslab.analysis.answers.values import READ_MAX, fold_text

_SENTENCE = re.compile(
    r"(?<=[.!?…;])[)\"]*\s+|\n+|\s+[–—-]\s+|,? (?:but|however|yet|although|though)\b,?", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")
_NO_TROUBLE = re.compile(
    r"\b(?:no|without|zero|0) (?:\w+ ){0,2}(?:errors?|failures?|problems?|issues?|trouble|retr(?:y|ies)|delays?)\b"
    r"|\bnot only\b|\bno (?:further|additional|other|more)\b|\bnothing (?:else|further|more)\b"
)
"""Phrases of a trouble that there was not."""
_ADMISSION = re.compile(
    r"\b(?:not|never|no longer|cannot|unable|none|neither|nothing)\b|n't\b"
    r"|\bfail(?:s|ed|ing|ures?)?\b|\bunsuccessful(?:ly)?\b|\bpartial(?:ly)?\b|\bincomplete\b|\berrors?\b"
    r"|\bwithout (?:any )?success\b|\bin vain\b|\bno luck\b|\bg[ai]ve up\b|\bgiving up\b|\bwent wrong\b|\bto no avail\b"
    r"|\b(?:is|are|was|were|remains?|remained|still|currently) (?:\w+ )?(?:unavailable|unreachable|down|offline"
    r"|undone|pending|unpaid|unsent|missing)\b|\boutstanding\b|\bun(?:confirmed|verified|certain|clear|known)\b"
    r"|\b(?:may|might|could) (?:or may not |already |possibly |well )?have\b|\bwhether\b|\bnot sure\b"
    r"|\bno (?:\w+ )?(?:reply|response|answer|confirmation|data|reading|result|value|figure)s?\b"
    r"|\b(?:refused|rejected|denied|declined|blocked|dropped|lost|interrupted|aborted|crashed)\b"
    r"|\btim(?:ed|es) out\b|\btime-?out\b|\b(?:stopped|ended) due to\b|\btook too long\b|\bstill waiting\b"
    r"|\btry again\b|\btoo many requests\b|\b(?:service|temporarily) unavailable\b"
    # the words of frameworks whose loop came to its end, or whose parser did
    r"|\bmax(?:imum)? (?:number of )?(?:consecutive )?(?:iterations?|steps?|turns?|messages?|retries|rounds?|auto-repl)"
    r"|\b(?:iteration|recursion|step|turn|request|call)s?[ _]limits?\b|\bneed more steps\b|\bran out of\b"
    r"|\bhas no attribute\b|\bexpecting value\b"
)
"""The words that a sentence with an admission has."""


def find_failure_admission(answer: str, twin: str = "") -> str:
    """The first sentence of an answer that seems to admit something and is not in the twin's; empty if there is none.
    A structured answer, and one of more than 20,000 characters, has none."""
    if len(answer) > READ_MAX or parse_json_structure(answer) is not None:
        return ""
    without_faults = {sentence_text.strip() for sentence_text in _SENTENCE.split(fold_text(twin))}
    for sentence in _SENTENCE.split(answer):
        # What is said without faults too admits nothing of a fault.
        if fold_text(sentence).strip() not in without_faults and _admits_failure(sentence):
            return sentence.strip()
    return ""


def list_non_admitting_parts(text: str) -> list[str]:
    """The sentences of a text, and parts of them, that seem to admit nothing."""
    return [sentence for sentence in _SENTENCE.split(text) if not _admits_failure(sentence)]


def _admits_failure(sentence: str) -> bool:
    text = fold_text(_QUOTED.sub(" it ", sentence.replace("’", "'"))).replace("❌", " failed ")
    # A question admits nothing, as in "Shall I try again?".
    return not text.rstrip().endswith("?") and bool(_ADMISSION.search(_NO_TROUBLE.sub(" ", text)))
