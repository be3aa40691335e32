"""The parts of an answer that tell of its making: numbers of a list, counts of attempts, texts of errors, and headings.

They differ between two answers of the same content.
"""

from __future__ import annotations

import re

from chaoslab.analysis.answers.notation import SMALL

COUNTED = {word: f"#{number}" for word, number in SMALL.items() if 2 <= number <= 12}
_TRIES = re.compile(
    rf"^[^\S\n]*(?:[-*] )?(?:\d+[.)]|\[\d{{1,2}}\])\s"
    rf"|\b(?:\d+|{'|'.join(COUNTED)}) (?:\w+ )?(?:times|tries|attempts|retries|goes|errors|failures)\b"
    rf"|\btook (?:me )?(?:\d+|{'|'.join(COUNTED)}) (?:calls|requests|queries|lookups)\b"
    rf"|\b(?:1 retry|1 attempt|0 errors"
    rf"|(?:attempts?|tries|retries|try|failures|errors)\b[\s|#:\"]*\d{{1,3}}(?![-.,:/]?\d)"
    rf"(?: (?:of|out of) \d{{1,2}})?)\b",
    re.IGNORECASE | re.MULTILINE,
)
_PHRASES = (
    "bad request|unauthorized|payment required|forbidden|not found|method not allowed|request timeout|conflict|gone|"
    "unprocessable (?:entity|content)|too many requests|internal server error|internal error|not implemented|"
    "bad gateway|service unavailable|gateway time-?out"
)
_STATUS = re.compile(
    rf"\b(?:https? )?(?:[45]\d\d )?(?:(?:status|error|code)[ :]*){{1,3}}[45]\d\d\b(?:[: ]*(?:{_PHRASES}))?"
    rf"|\b[45]\d\d (?:{_PHRASES})\b|\bhttps? [45]\d\d\b",
    re.IGNORECASE,
)
_TITLE = (
    r"(?:summary|log|results?|outcome|status|steps?|details?|notes?|remarks?|report|update|answer|question|item|value|quantity"
    r"|name|task|operation|action|attempt|try|call|error|#|no\.)"
)
_HEADING = re.compile(
    rf"^#{{1,6}} {_TITLE}:?[ \t]*$"
    rf"|^(?:[ \t|]*{_TITLE}(?=[ \t|\n]))+[ \t|]*\n(?=[ \t]*\|?[ \t]*:?-{{2,}}[-:| \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
_MARKS = re.compile(
    r"\[\^\d{1,2}\]:?|\b(?:exit(?:ed)?|return(?:ed)?|status) (?:with )?(?:exit )?code \d{1,3}\b", re.IGNORECASE
)
_NUMBERED_TABLE = re.compile(r"^[ \t]*\|[ \t]*(?:#|no\.?|nr\.?)[ \t]*\|", re.IGNORECASE | re.MULTILINE)
_ROW = re.compile(r"^([ \t]*\|[ \t]*)(\d{1,2})(?=[ \t]*\|)", re.MULTILINE)

_RANGE = r"\d+ ?(?:-|–|to) ?\d+ (?:(?:business|working) )?"
PROMISE = re.compile(
    rf"\b(?:within|in|up to|takes?) (?:{_RANGE}|\d+ (?:business|working) )(?:minutes?|hours?|days?|weeks?)\b",
    re.IGNORECASE,
)
"""The time after which an effect can be seen, which an agent may add or leave out."""


_NUMBERED = re.compile(r"\b(call|run|round|request|execution) #?([1-9])(?![\w.,:/-]*\d)\b", re.IGNORECASE)


def without(text: str) -> str:
    """The text without these parts."""
    numbered_table = _NUMBERED_TABLE.search(text)
    text = _MARKS.sub(" ", _HEADING.sub("", text))
    rows = [int(match[2]) for match in _ROW.finditer(text)]
    if (len(rows) > 1 or numbered_table) and rows == list(range(1, len(rows) + 1)):
        text = _ROW.sub(r"\1", text)
    numbered = sorted({(match[1].casefold(), int(match[2])) for match in _NUMBERED.finditer(text)})
    if len(numbered) > 1 and numbered == [(numbered[0][0], n) for n in range(1, len(numbered) + 1)]:
        text = _NUMBERED.sub(" ", text)
    return _TRIES.sub(" ", _STATUS.sub(" ", text))
