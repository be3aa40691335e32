"""One answer beside another: the same values, other values, or "cannot be compared", which a judge never takes for the
first. And the facts that an answer shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from chaoslab.analysis import labels, making, reported, spelling
from chaoslab.analysis.answers import amounts, notation
from chaoslab.analysis.answers.daytime import clock
from chaoslab.analysis.answers.likeness import Comparison, Likeness
from chaoslab.analysis.answers.structures import compare_structures, told
from chaoslab.analysis.answers.values import names_in, not_in, tokens, values_in
from chaoslab.analysis.stance import language, structure
from chaoslab.analysis.stance.clauses import KEPT, READ_MAX
from chaoslab.analysis.stance.clauses import plain as _plain
from chaoslab.analysis.wording import in_order, lies, swapped

SAID_MAX = 4
"""The most values of one kind that a reason names."""


# --- a fact in an answer ---


def shows(spellings: Sequence[str], text: str) -> bool:
    """True if one of the spellings occurs in the text as whole words and whole numbers. Case, accents and spacing do
    not count, nor does the unit of an amount."""
    read = notation.plainly(text)
    if _shows(spellings, text) or (read != text and _shows(spellings, read)):
        return True
    return any(_shows([way], said) for way in spellings if (said := _as_in(str(way), read)) != read)


def _as_in(way: str, text: str) -> str:
    """The text with its times and amounts as this spelling of a fact has them."""
    return amounts.aligned(way, clock(text, way))[1]


def _shows(spellings: Sequence[str], text: str) -> bool:
    words = tokens(text)
    for way in spellings:
        wanted = tokens(str(way))
        if not wanted:  # a sign without words, such as "→"
            sign = _plain(str(way)).strip()
            if sign and sign in _plain(text):
                return True
        elif any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1)):
            return True
    return False


# --- one answer beside another ---


@dataclass(frozen=True)
class Twin:
    """The results of the same trial without faults, for a comparison. `answer`: None if it cannot be compared.
    `seconds`: in the world's time; None if it cannot be compared. `calls`: the number of attempts."""

    answer: str | None
    seconds: float | None
    calls: int


_EQUAL = Comparison(Likeness.SAME, "the same answer")


def compare(
    expected: str,
    given: str,
    *,
    asked: str = "",
    known: str = "",
    tries: bool = True,
    done: bool = False,
    content: bool | None = None,
) -> Comparison:
    """Compares an answer with the expected one by its values: numbers, dates and names. Wording does not count.

    The values are other ones if a number or date is missing, or if a name replaces another. The result is unclear if
    values are only added, if neither text has a value, or if single words or negations differ.

    `asked`: the prompt; an answer that has another value of the expected one need not repeat its values. `done`: nor
    need any other answer, since the right effects speak for it. `known`: a text whose values an answer may add, such as
    the effects that were rightly done. `tries`: False leaves out what an agent may tell of its own way: list numbers,
    counts of attempts, and negations, which `admissions` reads. `content`: True if a failure that the answer reports of
    a thing ("the test failed") is no failure of the agent's, False if it may be one; None: it is none beside a value
    that the prompt does not have.
    """
    if expected == given:
        return _EQUAL
    if max(len(expected), len(given)) > READ_MAX:
        return Comparison(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX} characters")
    return _compared(expected, given, asked, known, tries, done, content)


@lru_cache(maxsize=KEPT)
def _compared(
    expected: str, given: str, asked: str, known: str, tries: bool, done: bool, content: bool | None
) -> Comparison:
    structures = [structure(expected), structure(given)]
    if structures[0] is not None and structures[1] is not None:
        return compare_structures(structures[0], structures[1], given, compare)
    if structures[0] is None and structures[1] is not None:
        given, known = told(structures[1]), f"{asked}\n{known}"
        found = _compare_prose(expected, given, asked, known, negations=tries, done=done, content=content)
        return replace(found, lies=False)  # a structured answer says by its keys what it is sure of
    if done and bool(making.PROMISE.search(given)) is not bool(making.PROMISE.search(expected)):
        expected, given = making.PROMISE.sub(" ", expected), making.PROMISE.sub(" ", given)
    if not tries:
        expected, given = making.without(expected), making.without(given)
    return _compare_prose(expected, given, asked, f"{asked}\n{known}", negations=tries, done=done, content=content)


def _compare_prose(
    expected: str, given: str, asked: str, known: str, *, negations: bool, done: bool, content: bool | None
) -> Comparison:
    """Compares two texts in one notation. Other values are unclear if they are the same in another reading of both."""
    expected, given, asked, known = map(notation.plainly, (expected, given, asked, known))
    expected, given = amounts.aligned(clock(expected, given), clock(given, expected))
    found = _compare_values(expected, given, asked, known, negations=negations, done=done, content=content)
    if found.likeness is not Likeness.OTHER:
        if units := amounts.other_unit(expected, given):
            wanted, said = units
            claimed = lies(given, values_in(str(said.number)), [])
            return Comparison(Likeness.OTHER, f"it says {said.text} instead of {wanted.text}", lies=claimed)
        return found
    abroad = language.foreign(given) and not language.foreign(expected)  # its capitals need not be names
    for one, other in zip(notation.readings(expected), notation.readings(given), strict=True):
        if one == expected and other == given:
            continue
        again = _compare_values(one, other, asked, known, negations=negations, done=done, content=content)
        if again.likeness is Likeness.SAME or (abroad and again.likeness is Likeness.UNCLEAR):
            return Comparison(Likeness.UNCLEAR, f"{found.said}, which may be the same in another notation")
    return found


def _compare_values(
    expected: str, given: str, asked: str, known: str, *, negations: bool, done: bool, content: bool | None
) -> Comparison:
    differing = spelling.signs(expected) ^ spelling.signs(given)
    lonely = sorted(c for c in differing if len({spelling.shows_currency(text, c) for text in (expected, given)}) > 1)
    expected, given = (spelling.units(text) for text in (expected, given))
    asked, known = clock(asked), clock(known)
    if not lonely and (first := tokens(expected)) and first == tokens(given):
        return Comparison(Likeness.SAME, "the same answer")
    wanted, said = values_in(expected), values_in(given)
    familiar = {*wanted, *values_in(known)}
    added = [v for v in said if v not in familiar]
    names, named = names_in(expected), names_in(given)
    strange = not_in(not_in(named, expected), known)
    nameless = not_in(names, given)
    both = {*wanted} & {*said}
    shared = bool(both) or len(nameless) < len(names)
    echoed = set(values_in(asked)) if (shared or done) and not added and not strange else set()
    if (items := len(_ITEM.findall(given))) > 1:
        echoed.add(str(items))  # a list of three need not say that they are three
    lacking = [v for v in wanted if v not in both and v not in echoed]
    if lacking or (nameless and strange):
        claimed = lies(given, added, strange)
        less, more = _listed([*lacking, *nameless]), _listed([*added, *strange])
        return Comparison(
            Likeness.OTHER, f"it says {more} instead of {less}" if more else f"it lacks {less}", lies=claimed
        )
    told, telling = labels.read(expected), labels.read(given)
    against = labels.contradicted(told, telling)
    if against and against.value:
        said_so = f"it says '{against.given}' instead of '{against.expected}' beside {against.value}"
        rest = re.sub(re.escape(against.given), " ", given, flags=re.IGNORECASE)
        return Comparison(Likeness.OTHER, said_so, lies=lies(rest, values_in(against.value), []))
    result = reported.contradicted(expected, given)
    if result and _is_content(result, asked, content):
        said_so = f"it says '{result.given.said}' instead of '{result.expected.said}'"
        return Comparison(Likeness.OTHER, said_so, lies=True)
    kept = labels.owners(told, telling)
    if kept is False or labels.inverted(expected, given):
        return Comparison(Likeness.OTHER, "its values changed places", lies=lies(given, said, []))
    if _UNREADABLE in given and _UNREADABLE not in expected:
        return Comparison(Likeness.UNCLEAR, f"it has signs that cannot be read ({_UNREADABLE})")
    if lonely:
        return Comparison(Likeness.UNCLEAR, f"one of the two has {_listed(sorted(map(spelling.sign, lonely)))}")
    if added or strange:
        return Comparison(Likeness.UNCLEAR, f"it adds {_listed([*added, *strange])}")
    if nameless := not_in(nameless, asked):
        return Comparison(Likeness.UNCLEAR, f"it leaves out {_listed(nameless)}")
    if against:
        return Comparison(Likeness.UNCLEAR, f"it says '{against.given}', and its twin '{against.expected}'")
    if not wanted and not names and not said:
        return Comparison(Likeness.UNCLEAR, "it has other words, and no number, date or name to compare")
    if not kept and [v for v in wanted if v in both] != [v for v in said if v in both]:
        return Comparison(Likeness.UNCLEAR, "it has the same values in another order or number")
    all_names = [*names, *named]
    if not kept and len(set(wanted)) > 1 and in_order(all_names, expected) != in_order(all_names, given):
        return Comparison(Likeness.UNCLEAR, "it has the same names in another order")
    if not kept and (turned := swapped(expected, given, negations)):
        return Comparison(Likeness.UNCLEAR, turned)
    if result:
        return Comparison(Likeness.UNCLEAR, f"it says '{result.given.said}', and its twin '{result.expected.said}'")
    if label := labels.differing(told, telling, asked):
        return Comparison(Likeness.UNCLEAR, label)
    if word := language.denial(given, expected):
        return Comparison(Likeness.UNCLEAR, f"it is not in English, and '{word}' may deny something")
    left_out = {*not_in(names, given)}
    same = [*(v for v in wanted if v in both), *(name for name in names if name not in left_out)]
    return Comparison(Likeness.SAME, f"the same values: {_listed(same)}" if same else "no other values")


def _is_content(result: reported.Contradiction, asked: str, content: bool | None) -> bool:
    """True if an opposite result is what the answer read, rather than that it failed itself."""
    if result.given.good or content:
        return True
    return content is None and bool(asked.strip()) and bool(result.shared.difference(values_in(asked)))


_ITEM = re.compile(r"^[^\S\n]*[-*•] (?=.*\w)", re.MULTILINE)
_UNREADABLE = "\ufffd"
"""The sign that stands for bytes which are no text."""


def _listed(values: Sequence[str]) -> str:
    values = list(dict.fromkeys(values))
    more = f" and {len(values) - SAID_MAX} more" if len(values) > SAID_MAX else ""
    return ", ".join(value[:40] for value in values[:SAID_MAX]) + more
