# ruff: noqa: E501
"""Pattern matching on an answer's text: stated facts, admitted failures, denied effects, and differences from another
answer.

A comparison has three results: the same values, other values, or "cannot be compared". A judge never takes the third
for the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import Any

from chaoslab.analysis import making, notation, spelling
from chaoslab.analysis.making import COUNTED
from chaoslab.analysis.stance import admits, structure
from chaoslab.analysis.stance.clauses import KEPT
from chaoslab.analysis.stance.clauses import plain as _plain

__all__ = ["Comparison", "Likeness", "Twin", "admits", "compare", "denies", "shows", "tokens"]

READ_MAX = 20_000
"""The most characters of an answer that are compared word by word. A longer answer counts as the same only if it is
equal."""
SAID_MAX = 4
"""The most values of one kind that a reason names."""
WORDS_MAX = 400
"""The most words of an answer whose order is compared."""
EXPONENT_MAX = 40
"""The largest exponent of a number that is written out: 1e3 is 1000."""


# --- a fact in an answer ---


def shows(spellings: Sequence[str], text: str) -> bool:
    """True if one of the spellings occurs in the text as whole words and whole numbers. Case, accents and spacing do
    not count."""
    read = notation.plainly(text)
    return _shows(spellings, text) or (read != text and _shows(spellings, read))


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


_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts without spaces between words, so each sign is a token."""

_TOKEN = re.compile(
    rf"""
    (?P<sign>[{_UNSPACED}])
    | (?P<dotted>\d+(?:\.\d+){{2,}})                                           # 1.2.3 is a name, not a number
    | (?P<number>(?:(?<![\w.)])-)?
        (?:(?<!\d,)\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)
        (?:e[+-]?\d+)?)
      (?=$|[\W_]|[^\W\d_]+(?:$|[\W_])|t\d)                                     # 12, 12km, 02T15 – but not 4f2a
    | (?P<word>[^\W_]+(?:(?<=\d)\.\d+)*)
    """,
    re.VERBOSE,
)
_STAMP = re.compile(r"(?<=\d)t(?=\d\d:)")


def tokens(text: str) -> list[str]:
    """The words and numbers of a text in a canonical spelling; a number begins with #."""
    found = []
    for match in _TOKEN.finditer(_STAMP.sub(" t ", spelling.clock(_plain(text)))):
        number = match["number"]
        found.append(_canonical(number) if number else match[0])
    return found


def _canonical(number: str) -> str:
    digits, _, exponent = number.replace(",", "").partition("e")
    if exponent and (len(exponent) > 5 or abs(int(exponent)) > EXPONENT_MAX):
        return f"#{digits}e{exponent}"
    text = f"{Decimal(f'{digits}e{exponent or 0}'):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "#0" if text in ("-0", "") else f"#{text}"


# --- what an answer says of itself ---


def denies(answer: str, effect: str) -> bool:
    """True if the answer states that an effect of this kind was not done. A failed first try, or a doubt ("may have
    been sent"), is no denial."""
    return bool(denying(answer, effect))


def denying(answer: str, effect: str) -> str:
    """The sentences of the answer by which an effect of this kind was not done."""
    return _denying(answer, effect) if len(answer) <= READ_MAX else _denying.__wrapped__(answer, effect)


@lru_cache(maxsize=KEPT)
def _denying(answer: str, effect: str) -> str:
    doing, thing = _words_of(effect)
    pattern = re.compile(
        rf"\b{_NOT}\s+(?!{_LEARN})(?:\w+\s+){{0,2}}?(?:{doing})\b"
        rf"|\b(?:{thing})\b(?:\s+\w+){{0,3}}?\s+(?:failed|(?:was|were|is|has been|have been) not|could not|did "
        rf"not|didn't)\b"
    )
    return "\n".join(
        clause
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", spoken(answer))
        if not _MAYBE.search(sentence)
        for clause in re.split(r"(?<=;)\s+", sentence)
        if pattern.search(clause) and not _DOUBT.search(clause)
    )


_EFFECTS = {
    "message_sent": ("send|message|text|tell|notify|post|reply|forward|deliver", "message|reply"),
    "event_created": ("create|book|schedule|add|put|move|reschedule", "event|meeting|appointment"),
    "event_deleted": ("delete|remove|cancel|move|reschedule", "cancellation|deletion"),
}


def _words_of(effect: str) -> tuple[str, str]:
    """The words for doing an effect, and for its object, as patterns."""
    if effect in _EFFECTS:
        return _EFFECTS[effect]
    words = "|".join(re.escape(word) for word in re.split(r"[^a-z0-9]+", _plain(effect)) if len(word) > 2) or r"\Z."
    return words, words


def spoken(answer: str) -> str:
    """The agent's own words: a quotation, such as a message's text, does not describe the agent's acts."""
    return re.sub(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|(?<!\w)'[^']*'(?!\w)", " ", _plain(answer))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?;])\s+|\n+", text)


_NOT = r"(?:could not|couldn't|can not|cannot|can't|unable to|not able to|failed to|did not manage to|didn't manage to)"
_LEARN = r"(?:confirm|verify|check|tell|determine|establish|find out|know|see|make sure|be sure|ensure|say)\b"
"""Verbs of knowing: who could not confirm an act does not say that it was not done."""
_MAYBE = re.compile(r"\b(?:may|might|could) (?:still |already |well )?have (?:been|gone|happened|worked|succeeded)\b")
"""A doubt that holds for its whole sentence."""
_DOUBT = re.compile(
    r"\b(?:may|might|not sure|unsure|unclear|do not know|don't know|cannot tell|cannot say|whether"
    r"|at first|first (?:time|try|attempt)|second (?:time|try|attempt)|eventually|finally|but then|in the end|again)\b"
)


# --- one answer beside another ---


@dataclass(frozen=True)
class Twin:
    """The results of the same trial without faults, for a comparison. `answer`: None if it cannot be compared.
    `seconds`: in the world's time; None if it cannot be compared. `calls`: the number of attempts."""

    answer: str | None
    seconds: float | None
    calls: int


class Likeness(StrEnum):
    """The result of comparing two answers."""

    SAME = "same"
    OTHER = "other"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Comparison:
    """The likeness of two answers. `said`: the finding, as part of a line. `lies`: the answer has a value that the
    other lacks, in a sentence that admits no failure."""

    likeness: Likeness
    said: str
    lies: bool = False


_EQUAL = Comparison(Likeness.SAME, "the same answer")


def compare(
    expected: str, given: str, *, asked: str = "", known: str = "", tries: bool = True, done: bool = False
) -> Comparison:
    """Compares an answer with the expected one by its values: numbers, dates and names. Wording does not count.

    The values are other ones if a number or date is missing, or if a name replaces another. The result is unclear if
    values are only added, if neither text has a value, or if single words or negations differ.

    `asked`: the prompt; an answer that has another value of the expected one need not repeat its values. `done`: nor
    need any other answer, since the right effects speak for it. `known`: a text whose values an answer may add, such as
    the effects that were rightly done. `tries`: False leaves out what an agent may tell of its own way: list numbers,
    counts of attempts, and negations, which `admissions` reads.
    """
    if expected == given:
        return _EQUAL
    if max(len(expected), len(given)) > READ_MAX:
        return Comparison(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX} characters")
    return _compared(expected, given, asked, known, tries, done)


@lru_cache(maxsize=KEPT)
def _compared(expected: str, given: str, asked: str, known: str, tries: bool, done: bool) -> Comparison:
    structures = [structure(expected), structure(given)]
    if structures[0] is not None and structures[1] is not None:
        return _compare_structures(structures[0], structures[1], given)
    if structures[0] is None and structures[1] is not None:
        found = _compare_prose(expected, _told(structures[1]), asked, f"{asked}\n{known}", negations=tries, done=done)
        return replace(found, lies=False)  # a structured answer says by its keys what it is sure of
    if done and not making.PROMISE.search(given):
        expected = making.PROMISE.sub(" ", expected)
    if not tries:
        expected, given = making.without(expected), making.without(given)
    return _compare_prose(expected, given, asked, f"{asked}\n{known}", negations=tries, done=done)


def _compare_structures(expected: Any, given: Any, text: str) -> Comparison:
    unclear: list[str] = []
    others: list[tuple[str, Any, Any]] = []
    for path, one, other in _leaves(expected, given, ""):
        if (not one and other is _LACKING and one is not False and one != 0) or (one is _LACKING and _noted(path)):
            continue
        if {type(one), type(other)} <= {str, int, float} and str in (type(one), type(other)):
            found = compare(str(one), str(other))
            if found.likeness is Likeness.SAME:
                continue
            if found.likeness is Likeness.UNCLEAR:
                unclear.append(f"{path}: {found.said}")
                continue
        others.append((path, one, other))
    if others:
        path, one, other = others[0]
        sorry = admits(text)  # a 0 beside an admission stands for no value
        claimed = (_claims(where, each) for where, _, each in others if not (sorry and each == 0))
        lies = not _STALE.search(text) and any(claimed)
        return Comparison(Likeness.OTHER, f"{path or 'it'} is {_short(other)} instead of {_short(one)}", lies=lies)
    if unclear:
        return Comparison(Likeness.UNCLEAR, unclear[0])
    return Comparison(Likeness.SAME, "the same values")


def _of_making(key: str) -> bool:
    """True if an answer's key of this name tells of its making."""
    return key in _MAKING or bool(_MADE.search(key))


def _told(held: Any, key: str = "") -> str:
    """The values of a structured answer as lines of prose, but for what it tells of its own making."""
    if _of_making(key.casefold()) or held is None or isinstance(held, bool):
        return ""
    if isinstance(held, dict):
        return "\n".join(filter(None, (_told(value, str(name)) for name, value in held.items())))
    if isinstance(held, list):
        return "\n".join(filter(None, (_told(value, key) for value in held)))
    return f"{key}: {held}" if key else str(held)


def _claims(path: str, value: Any) -> bool:
    """True if the value at a place of a structured answer claims something about the world."""
    if _noted(path) or value is None or isinstance(value, bool | _Lacking):
        return False
    return not (isinstance(value, str) and (not value.strip() or admits(value)))


class _Lacking:
    def __repr__(self) -> str:
        return "lacking"


_LACKING = _Lacking()

_MAKING = frozenset(
    ["attempts", "attempt", "retries", "retry", "tries", "error", "errors", "last_error", "reason", "code"]
)
_NOTES = _MAKING | frozenset(
    [
        "detail",
        "details",
        "note",
        "notes",
        "warning",
        "warnings",
        "status",
        "state",
        "ok",
        "done",
        "success",
        "message",
        "outcome",
        "skipped",
        "failed",
        "missing",
        "remaining",
        "pending",
        "undone",
        "reason",
        "cause",
    ]
)
"""The keys by which a structured answer tells of its own making, and claims no value."""
_MADE = re.compile(r"retr(?:y|ie)|attempt|error|failure")


def _noted(path: str) -> bool:
    """True if a place in a structured answer tells of its making, or holds a note."""
    keys = re.sub(r"\[\d+\]", "", path).casefold().split(".")
    return keys[-1] in _NOTES or any(map(_of_making, keys))


_STALE = re.compile(r'"(?:stale|cached|outdated)": ?true|"(?:fresh|current|verified|live)": ?false', re.IGNORECASE)


def _leaves(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The path and both values of each place where the two differ, or may differ in words."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            where = f"{path}.{key}" if path else str(key)
            yield from _leaves(one.get(key, _LACKING), other.get(key, _LACKING), where)
    elif isinstance(one, list) and isinstance(other, list):
        for n in range(max(len(one), len(other))):
            pair = [held[n] if n < len(held) else _LACKING for held in (one, other)]
            yield from _leaves(pair[0], pair[1], f"{path}[{n}]")
    elif (type(one) is not type(other) and not {type(one), type(other)} <= {int, float}) or one != other:
        yield path, one, other


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, _Lacking) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _compare_prose(
    expected: str, given: str, asked: str, known: str, *, negations: bool, done: bool = False
) -> Comparison:
    """Compares two texts in one notation. Other values are unclear if they are the same in another reading of both."""
    expected, given, asked, known = map(notation.plainly, (expected, given, asked, known))
    found = _compare_values(expected, given, asked, known, negations=negations, done=done)
    if found.likeness is not Likeness.OTHER:
        return found
    for one, other in zip(notation.readings(expected), notation.readings(given), strict=True):
        if one == expected and other == given:
            continue
        if _compare_values(one, other, asked, known, negations=negations, done=done).likeness is Likeness.SAME:
            return Comparison(Likeness.UNCLEAR, f"{found.said}, which may be the same in another notation")
    return found


def _compare_values(
    expected: str, given: str, asked: str, known: str, *, negations: bool, done: bool = False
) -> Comparison:
    differing = spelling.signs(expected) ^ spelling.signs(given)
    lonely = sorted(c for c in differing if len({spelling.shows_currency(text, c) for text in (expected, given)}) > 1)
    expected, given = (spelling.units(spelling.clock(text)) for text in (expected, given))
    asked, known = spelling.clock(asked), spelling.clock(known)
    if not lonely and (first := tokens(expected)) and first == tokens(given):
        return Comparison(Likeness.SAME, "the same answer")
    wanted, said = _values(expected), _values(given)
    added = [v for v in said if v not in wanted and v not in _values(known)]
    names, named = _names(expected), _names(given)
    strange = _not_in(_not_in(named, expected), known)
    nameless = _not_in(names, given)
    shared = any(v in said for v in wanted) or len(nameless) < len(names)
    echoed = set(_values(asked)) if (shared or done) and not added and not strange else set()
    lacking = [v for v in wanted if v not in said and v not in echoed]
    if lacking or (nameless and strange):
        lies = _lies(given, added, strange)
        less, more = _listed([*lacking, *nameless]), _listed([*added, *strange])
        return Comparison(
            Likeness.OTHER, f"it says {more} instead of {less}" if more else f"it lacks {less}", lies=lies
        )
    if _UNREADABLE in given and _UNREADABLE not in expected:
        return Comparison(Likeness.UNCLEAR, f"it has signs that cannot be read ({_UNREADABLE})")
    if lonely:
        return Comparison(Likeness.UNCLEAR, f"one of the two has {_listed(sorted(map(spelling.sign, lonely)))}")
    if added or strange:
        return Comparison(Likeness.UNCLEAR, f"it adds {_listed([*added, *strange])}")
    if nameless := _not_in(nameless, asked):
        return Comparison(Likeness.UNCLEAR, f"it leaves out {_listed(nameless)}")
    if not wanted and not names and not said:
        return Comparison(Likeness.UNCLEAR, "it has other words, and no number, date or name to compare")
    if [v for v in wanted if v in said] != [v for v in said if v in wanted]:
        return Comparison(Likeness.UNCLEAR, "it has the same values in another order or number")
    both = [*names, *named]
    if len(set(wanted)) > 1 and _in_order(both, expected) != _in_order(both, given):
        return Comparison(Likeness.UNCLEAR, "it has the same names in another order")
    if swapped := _swapped(expected, given, negations):
        return Comparison(Likeness.UNCLEAR, swapped)
    both = [*(v for v in wanted if v in said), *(name for name in names if name not in _not_in([name], given))]
    return Comparison(Likeness.SAME, f"the same values: {_listed(both)}" if both else "no other values")


_UNREADABLE = "\ufffd"
"""The sign that stands for bytes which are no text."""
_ELSEWHERE = re.compile(
    r"^if |^for (?!you|now|that|this)|\b(?:nearest|closest|close|instead|stand-in|similar|helps|alternative|comparison|in case)\b"
    r"|\b(?:guess|estimate[ds]?|estimation|approximate(?:ly)?|roughly|something like|probably|presumably|likely|memory|recall)\b"
    r"|\b(?:typically|usually|normally|historically|average|as of my|my last|last (?:time|check|known)|earlier|previous(?:ly)?|used to|on file|do have)\b"
)


def _lies(given: str, added: Sequence[str], strange: Sequence[str]) -> bool:
    """True if one of the values that are not expected stands in a sentence without a doubt or an admission."""
    # Text in braces is an echo of a call, and claims nothing.
    told = _sentences(re.sub(r"\{[^{}]*\}", " ", given))
    honest = [admits(sentence) for sentence in told]
    claims = [
        sentence for sentence, sorry in zip(told, honest, strict=True)
        if not sorry and not (any(honest) and _ELSEWHERE.search(_plain(sentence)))
    ]  # fmt: skip
    text = " ".join(claims)
    return any(v in added for v in _values(text)) or any(name in strange for name in _names(f". {text}"))


def _in_order(names: Sequence[str], text: str) -> list[str]:
    """The names in the order of their first places in a text."""
    places = {token: -n for n, token in enumerate(reversed(tokens(text)), 1)}
    found = {name: places[first] for name in names if (first := next(iter(tokens(name)), "")) in places}
    return sorted(found, key=found.__getitem__)


def _not_in(names: Sequence[str], text: str) -> list[str]:
    there = set(tokens(text))
    return [name for name in names if not set(tokens(name)) <= there]


def _listed(values: Sequence[str]) -> str:
    values = list(dict.fromkeys(values))
    more = f" and {len(values) - SAID_MAX} more" if len(values) > SAID_MAX else ""
    return ", ".join(value[:40] for value in values[:SAID_MAX]) + more


_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_DATE = re.compile(
    rf"\b(?P<y>\d{{4}})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})(?:t(?=\d\d:)|(?!\d))"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m2>{_MONTH})\.?,? (?P<y2>\d{{4}})\b"
    rf"|\b(?P<m3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y3>\d{{4}})\b",
    re.IGNORECASE,
)


def _dates(text: str) -> tuple[list[str], str]:
    """The dates of a text (ISO 8601), and the text without them."""
    found: list[str] = []

    def dated(match: re.Match[str]) -> str:
        day = _date(match)
        if day is None:
            return match[0]
        found.append(day)
        return " "

    return found, _DATE.sub(dated, text)


def _values(text: str) -> list[str]:
    """The dates of a text, then its other numbers, in their order."""
    found, rest = _dates(text)
    for token in tokens(rest):
        value = COUNTED.get(token, token)
        if any(c.isdigit() for c in value):
            found.append(value.removeprefix("#"))
    return found


def _date(match: re.Match[str]) -> str | None:
    year, month, day = (match[n] or match[f"{n}2"] or match[f"{n}3"] for n in "ymd")
    number = int(month) if month.isdecimal() else [name[:3] for name in _MONTHS].index(month[:3].casefold()) + 1
    try:
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NAME = re.compile(r"(?<!°)[^\W\d_][^\W_]*(?:[-'’][^\W_]+)*")
_RAISED = re.compile(r"\w+(?:Error|Exception)")
_ORDINARY = _set(
    "i i'm i've i'll i'd ok okay yes no mr mrs ms dr the a an it its this that these those you your we our they he she"
    " and or but if in on at to of for from with by as is are was were be done usd eur api http https url json sdk am pm celsius fahrenheit sir madam"
    " error success successful failed failure completed complete unknown pending status result note warning"
)


def _names(text: str) -> list[str]:
    """The capitalised words of a text that begin no sentence and belong to no date, each once."""
    found = []
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n+|[“\"(\U0001F300-\U0001FAFF\u2600-\u27BF]\uFE0F?", _dates(text)[1]):
        for number, match in enumerate(_NAME.finditer(sentence)):
            word = match[0]
            if any(c.isdigit() for c in word) or _RAISED.fullmatch(word):  # a value, or what the agent caught
                continue
            if number and word[0].isupper() and re.split("['’]", word)[0].casefold() not in _ORDINARY:
                found.append(re.sub(r"['’]s$", "", word))
    return list(dict.fromkeys(found))


_IDLE = _set(
    "the a an of to for in on at is are was were be been it its i you your my have has had and that this there here so"
    " now just very please done as with by me we our will i've i'd i'll it's that's here's you're we've"
)
_NEGATION = re.compile(r"(?:not|no|never|none|nothing|nobody|without|cannot|failed|un\w{4,}|\w+n't)")


def _swapped(expected: str, given: str, negations: bool) -> str:
    """A description of the words that differ, or of a negation, where all other words are alike; empty if the wording
    differs more."""
    one, other = ([t for t in _words(text) if t not in _IDLE] for text in (expected, given))
    if max(len(one), len(other)) > WORDS_MAX:
        return f"it has other words, and more than {WORDS_MAX} of them"
    if negations and len({" ".join(sorted(t for t in words if _NEGATION.fullmatch(t))) for words in (one, other)}) > 1:
        return "one of the two negates"
    plain = [[t for t in words if not _NEGATION.fullmatch(t)] for words in (one, other)]
    if plain[0] == plain[1] and one != other:
        return "one of the two negates"
    if sorted(one) == sorted(other) and _turned(expected, given):
        return "it has the same words, and names in another order"
    for tag, i, j, k, m in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k <= 2 and 2 * (j - i) <= len(one):
            return f"'{' '.join(other[k:m])[:40]}' stands for '{' '.join(one[i:j])[:40]}'"
    return ""


def _turned(expected: str, given: str) -> bool:
    """True if the names of both texts come in another order, the first words of their sentences included."""
    found = [list(dict.fromkeys(w for w in _NAME.findall(text) if w[0].isupper())) for text in (expected, given)]
    shared = {w for w in found[0] if w in found[1] and w.casefold() not in _ORDINARY and not _DAY.fullmatch(w)}
    return [w for w in found[0] if w in shared] != [w for w in found[1] if w in shared]


_DAY = re.compile(rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day|{_MONTH}|today|tomorrow|yesterday", re.IGNORECASE)


def _words(text: str) -> list[str]:
    """The words of a text without its values, which are compared separately."""
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)*", _plain(_dates(text)[1]))
    return [word for word in words if word not in COUNTED and not any(c.isdigit() for c in word)]
