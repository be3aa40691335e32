"""A trial as a person sees it who labels its answer: what the world was, and the answer beside its twin's, word by
word."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from chaoslab.analysis.verdict.table import Verdict
from chaoslab.core.events import PromptFinished, PromptStarted
from chaoslab.record.history import History
from chaoslab.reports.text import one_line

SHOWN = 4000
"""The most characters of a text that are shown."""
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])")


def shown(history: History, trial: str, verdict: Verdict, *, colour: bool) -> Iterator[str]:
    """The trial in lines; no foreign word in them steers the terminal. Without `colour`, the words that differ stand in
    brackets."""
    started = next((event for _, event in history.of(PromptStarted, trial=trial)), None)
    ended = next((event for _, event in history.of(PromptFinished, trial=trial)), None)
    answer = one_line("" if ended is None else ended.answer, SHOWN)
    twin = None if started is None or started.twin is None else one_line(started.twin, SHOWN)
    yield f"world    {verdict.world}"
    yield f"verdict  {verdict.name}: {one_line(verdict.why, SHOWN)}"
    if started is not None:
        yield f"asked    {one_line(started.prompt, SHOWN)}"
    right, given = (twin, answer) if twin is None else parted(twin, answer, colour=colour)
    if right is not None:
        yield f"twin     {right}"
    yield f"answer   {given}"


def parted(twin: str, answer: str, *, colour: bool) -> tuple[str, str]:
    """Both texts with the words marked in which they differ: the twin's green, the answer's red."""
    one, two = _WORDS.findall(twin), _WORDS.findall(answer)
    same = SequenceMatcher(None, [*map(str.strip, one)], [*map(str.strip, two)], autojunk=False)
    marks = (GREEN, RED) if colour else ("", "")
    right = given = ""
    for step, a, b, c, d in same.get_opcodes():
        right += _marked("".join(one[a:b]), marks[0], equal=step == "equal")
        given += _marked("".join(two[c:d]), marks[1], equal=step == "equal")
    return right, given


def _marked(text: str, colour: str, *, equal: bool) -> str:
    if equal or not text:
        return text
    words = text.lstrip()
    return text[: len(text) - len(words)] + (f"{colour}{words}{PLAIN}" if colour else f"[{words}]")
