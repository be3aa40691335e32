"""Results that an answer reports of a thing: "the test failed" tells of the test, and need not admit anything.

An answer that reports the opposite of what its twin reports of the same thing has another value. One that reports the
same failure in other words admits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from chaoslab.analysis.answers.values import tokens, words_of
from chaoslab.analysis.stance.clauses import Clause, clauses, plain
from chaoslab.analysis.stance.words import NOT

_GOOD = r"pass(?:ed)?|succeeded|succeed|(?:went|gone|go) through|successful|accepted|approved|granted"
_BAD = r"fail(?:ed)?|unsuccessful|rejected|refused|declined|denied"
_ANY = re.compile(rf"\b(?:{_GOOD}|{_BAD})\b", re.IGNORECASE)
_REPORT = re.compile(
    r"\W*(?:(?:unfortunately|sadly|however|but|and|also|so|yes|no)\b\W*)?"
    r"(?P<subject>(?:#?[^\W_][\w/'-]{0,30}[ :=(]{1,3}){1,5}?[)]?[ :=-]{0,3})"
    r"(?:(?:was|were|is|are|has|have|had|been|did|do|does|also|already|now)(?P<denied>n't| not)? )*"
    rf"(?P<no>not )?(?:(?P<good>{_GOOD})|(?P<bad>{_BAD}))\b(?! (?:once|twice|at first|to \w|\d+ times|initially))"
)
_PARTS = re.compile(r"[.!?;](?=\s|$)|[,\n|]|\bbut\b|\band\b|\bwhile\b|\bthen\b")
_ADDED = re.compile(r"\s*(?:with |at |by |scoring )?\d")
"""The beginning of a part that tells more of the result before it: "failed, with 80 points"."""
_FILLERS = words_of("the a an your my our this that its number no of id all")
_NO_THING = words_of(
    "i we you it he she they them this that everything nothing none which what who if when once after before until at"
    " first try attempt retry request call query lookup check search fetch retrieval read tool service server api"
    " system connection second third last earlier previous initial initially not never cannot could would may might"
)
"""Words of a subject that is no thing, or that may be the agent's own way to it."""


class Report(NamedTuple):
    """A result of a thing. `said`: its words; `values`: the numbers of its part of the sentence."""

    thing: frozenset[str]
    good: bool
    said: str
    values: frozenset[str]


class Contradiction(NamedTuple):
    """The opposite results of one thing in two texts. `shared`: the values beside both."""

    expected: Report
    given: Report
    shared: frozenset[str]


def contradicted(expected: str, given: str) -> Contradiction | None:
    """The first thing of which two texts report the opposite. A failure counts as the result only where the text tells
    of no success that may have followed it."""
    if not _ANY.search(expected) or not _ANY.search(given):
        return None
    wanted, said = _reports(expected)[:TOLD_MAX], _reports(given)[:TOLD_MAX]
    things = {report.thing for report in wanted}
    followed = any(report.good and report.thing not in things for report in said)
    for one in wanted:
        alike = [other for other in said if _same(one.thing, other.thing)]
        if not alike or any(other.good is one.good for other in alike) or (one.good and followed):
            continue
        if any(_same(one.thing, other.thing) and other.good is not one.good for other in wanted):
            continue
        return Contradiction(one, alike[0], one.values & alike[0].values)
    return None


def _reports(text: str) -> list[Report]:
    found = []
    parts = _PARTS.split(plain(text))
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        match = _REPORT.match(part)
        if match is None:
            if re.search(rf"\b(?:{_GOOD})\b", part):
                found.append(Report(frozenset(), True, part, frozenset()))
            continue
        words = {word.removesuffix("s") for word in tokens(match["subject"])} - _FILLERS
        thing = frozenset() if words & _NO_THING or any(word.endswith("ing") for word in words) else frozenset(words)
        good = bool(match["good"]) is not (match["denied"] is not None or match["no"] is not None)
        beside = f"{part} {following}" if _ADDED.match(following) else part
        numbers = frozenset(word.removeprefix("#") for word in tokens(beside) if word.startswith("#"))
        found.append(Report(thing, good, match["good"] or match["bad"], numbers))
    return found


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """True if both are one thing. Of counted things one text may leave the noun out: "3 failed"."""
    counted = {word for word in one if word.startswith("#")}
    return bool(one) and (one == other or (bool(counted) and counted in (one, other) and counted <= other))


# --- a failure that both report ---

TOLD_MAX = 64
"""The most results of a text that are compared."""
_RESULT = re.compile(rf"\b(?:{_BAD}|cancell?ed|aborted|bounced|offline|errors?)\b")
_NOT = re.compile(rf"\b\w*{NOT}\b")
_SMALL = words_of(
    "the a an your my our its this that of number no id with and has have had was were is are been did it there by at"
    " in for now currently still also unfortunately sadly however but so be aware please note its"
)


def without_known(admitted: Sequence[Clause], twin: str | None, *, numbered: bool = False) -> list[Clause]:
    """The admissions without those that only report a failure which the twin reports too, in other words. `numbered`:
    only those with a number, such as "2 of its tests failed", since a bare "failed" may tell of an effect."""
    found = [*admitted]
    if twin is None or not any(_RESULT.search(clause.text) for clause in found):
        return found
    results = [c for c in clauses(twin) if c.trouble and _RESULT.search(c.text)]
    told = [set(tokens(clause.text)) for clause in results[:TOLD_MAX]]
    all_words = set(tokens(twin)) if told else set()
    return [clause for clause in found if not _told(clause, told, all_words, numbered)]


def _told(clause: Clause, told: Sequence[set[str]], all_words: set[str], wanted: bool) -> bool:
    """True if a clause with this result and these numbers is among those of the twin, and no word is new. `wanted`: a
    clause without a number does not count."""
    if clause.doubt or _NOT.search(clause.text) or not _RESULT.search(clause.text):
        return False
    words = set(tokens(clause.text)) - _SMALL
    key = {word for word in words if word.startswith("#") or _RESULT.fullmatch(word)}
    numbered = any(word.startswith("#") for word in words)
    if wanted and not numbered:
        return False
    return any(key <= each and words <= (all_words if numbered else each) for each in told)
