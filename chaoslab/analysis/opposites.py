"""Words that exclude each other beside one value: a profit of 500 is no loss of 500."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

_NUMBER = r"(?=\W{1,3}(?:\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\W{1,2}\d))"
_SPAN = r"(?:seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?)"
_RIDE = r"(?= (?:train|bus|flight|ferry|tram|connection|departure|entry|slot|appointment|session|lesson)s?\b)"
_SIDE = r"(?= (?:lane|side|hand|wing|door|seat|column|turn)\b)"

_EXCLUDING: tuple[tuple[str, ...], ...] = (
    (
        r"profits?|surplus|earnings|net income|gain(?= of\b|:)",
        r"loss(?:es)?|deficit|shortfall",
        r"revenues?|turnover",
        r"expenses?|expenditures?|spending|costs(?= (?:of|are|were)\b|:)",
    ),
    (
        r"refund\w*|reimburse\w*|(?:paid|pay|get|got|money|given|gave|sent|transferred) back|back to"
        r"|returned",
        r"fees?|surcharges?|penalt(?:y|ies)|fined|charged(?! back)",
        r"discounts?|rebates?",
    ),
    (
        r"(?:rose|rises?|risen|rising|increas\w+|grew|grows|grown|growth|climb(?:ed|s)|soared|surged|jumped|gained|(?:went|gone|go(?:es)?"
        rf"|going|moved|is|are|was|were) up|up(?: by)?{_NUMBER}|higher)",
        r"(?:fell|falls?|fallen|falling|decreas\w+|drop(?:s|ped|ping)|shrank|shrunk|slipped|slid|sank|plunged|tumbled"
        r"|declin(?:ed|es|ing) (?:by|to)"
        rf"|(?:went|gone|go(?:es)?|going|moved|is|are|was|were) down|down(?: by)?{_NUMBER}|lower(?:ed)?|reduc\w+)",
    ),
    (
        rf"(?:before|prior to|earlier than|no later than){_NUMBER}",
        rf"(?:after|later than|no earlier than){_NUMBER}(?!\W+\d+ (?:\w+ )?(?:{_SPAN}|attempts?|tries|retries|calls?))",
    ),
    (r"open(?:s|ed|ing)?", r"clos(?:ed|es|ing)|close(?= at\b)"),
    (
        r"cheaper|less expensive|(?:costs?|is|are) .{1,20}? less(?! than\b)",
        r"dearer|costlier|pricier|more expensive",
    ),
    (r"north(?:ern|wards?|erly)?", r"south(?:ern|wards?|erly)?"),
    (r"east(?:ern|wards?|erly)?", r"west(?:ern|wards?|erly)?"),
    (r"credit(?:ed|s)?(?! card)", r"debit(?:ed|s)?(?! card)|overdrawn|overdraft|debts?"),
    (r"arriv\w+|land(?:s|ed|ing)", r"depart(?:s|ed|ing|ures?)?|leav(?:es|ing)|tak(?:es|ing) off|take-?off"),
    (
        r"(?<!\d )min(?:imum|imal)?|lowest|smallest|at least|no (?:less|fewer) than"
        r"|(?:the|daily|tonight's|today's) low",
        rf"max(?:imum|imal)?|highest|largest|biggest|at most|no more than|up to{_NUMBER}"
        r"|(?:the|daily|tonight's|today's) high",
    ),
    (
        rf"(?<!no )(?:above|over|more than|greater than|exceed\w*){_NUMBER}",
        rf"(?<!no )(?:below|under|less than|fewer than){_NUMBER}",
    ),
    (
        r"available|in stock|vacant|unoccupied|remaining|free(?! of)|left(?=\W*(?:$|[.!,;]))",
        r"unavailable|out of stock|occupied|taken(?! care)|sold out|fully booked",
    ),
    (r"enabled|(?:switched|turned) on|activated", r"disabled|(?:switched|turned) off|deactivated"),
    (r"check(?:ing)?[- ]?in", r"check(?:ing)?[- ]?out"),
    (r"buy(?:s|er|ers|ing)?|bought|purchas\w+", r"sell(?:s|er|ers|ing)?|sold(?! out)"),
    (rf"(?:first|earliest){_RIDE}", rf"(?:last|latest){_RIDE}"),
    (
        r"cheapest|least expensive",
        r"dearest|costliest|priciest|most expensive",
        r"fastest|quickest|shortest",
        r"slowest|longest",
        r"nearest|closest",
        r"farthest|furthest",
        r"newest",
        r"oldest",
    ),
    (r"(?:ordered|placed)(?= on)", r"(?:shipped|dispatched)(?= on)", r"delivered(?= on)", r"cancell?ed(?= on)"),
    (
        r"start date|starts?(?= (?:on|at)\b)|begins?(?= (?:on|at)\b)",
        r"end date|ends?(?= (?:on|at)\b)|deadline|due date|due(?= (?:on|by)\b)",
    ),
    (r"warmer|hotter", r"colder|cooler"),
    (r"faster|quicker", r"slower"),
    (r"older", r"younger|newer"),
    (r"longer(?! than a)", r"shorter"),
    (r"heavier", r"lighter"),
    (r"bigger|larger|greater", r"smaller"),
    (rf"(?<=\d ){_SPAN} (?:early|earlier|ahead)", rf"(?<=\d ){_SPAN} (?:late|later|behind)"),
    (rf"in \d+ {_SPAN}", rf"(?<=\d ){_SPAN} ago"),
    (r"won|wins|victory", r"lost(?= \d| to | by )|loses|defeat(?:ed)?"),
    (r"yes", r"no(?=,)"),
    (rf"left{_SIDE}", rf"right{_SIDE}"),
    (r"inside|indoors?", r"outside|outdoors?"),
    (r"deposits?|deposited|paid in", r"withdr[ae]w(?:al|als|n|s)?"),
    (r"sender", r"recipient|receiver"),
    (r"income", r"outgoings"),
    (r"male|men", r"female|women"),
)
"""Groups of words of which two beside one value contradict each other. The words of one group say the same."""


def _alternatives(pattern: str) -> list[str]:
    """The parts of a pattern between its outermost bars."""
    found, depth, begun = [], 0, 0
    for at, sign in enumerate(pattern):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append(pattern[begun:at])
            begun = at + 1
    return [*found, pattern[begun:]]


def _first_letters(way: str) -> set[str]:
    """The letters with which a text that matches may begin."""
    while way.startswith("(?<"):  # what stands before it is no part of it
        way = way[way.index(")") + 1 :]
    if way.startswith("(?:"):
        depths = accumulate((sign == "(") - (sign == ")") for sign in way)
        end = next(at for at, depth in enumerate(depths) if not depth)
        return {letter for each in _alternatives(way[3:end]) for letter in _first_letters(each)}
    return {way[0]}


def _by_letter() -> dict[str, dict[str, list[str]]]:
    """The ways of each group by their first letter. All of them, tried at each word, take eight times as long."""
    found: dict[str, dict[str, list[str]]] = {}
    for n, excluding in enumerate(_EXCLUDING):
        for k, ways in enumerate(excluding):
            name = f"{chr(97 + n // 26)}{chr(97 + n % 26)}{chr(112 + k)}"
            for way in _alternatives(ways):
                for letter in _first_letters(way):
                    found.setdefault(letter, {}).setdefault(name, []).append(way)
    return found


_ANY = _by_letter()


@cache
def _pattern(letter: str) -> re.Pattern[str]:
    """The pattern of the words with this letter. Made when it is first needed: most reports compare few answers."""
    ways = "|".join(f"(?P<{name}>{'|'.join(ways)})" for name, ways in _ANY[letter].items())
    return re.compile(rf"(?:{ways})\b", re.IGNORECASE)


_BEGINS = re.compile(rf"\b[{''.join(sorted(_ANY))}]", re.IGNORECASE)
_DENIED = re.compile(
    r"(?:\b(?:no|not|never|without|neither|nor|non|nothing|instead of|rather than)|n't)(?:[ -][^\W_]+){0,2}[ -]$"
)
_AROUND = 40
"""The most characters before a word in which a negation is looked for."""


class Word(NamedTuple):
    """A word with an opposite, at its place. `kind`: the groups that it belongs to; `group`: the one of these."""

    start: int
    kind: str
    group: str
    text: str


def words_with_opposites(text: str) -> list[Word]:
    """These words of a folded text, in their order; what is negated says nothing certain."""
    return [
        Word(match.start(), (match.lastgroup or "")[:2], match.lastgroup or "", match[0])
        for match in _found(text)
        if not _DENIED.search(text[max(0, match.start() - _AROUND) : match.start()])
    ]


def _found(text: str) -> Iterator[re.Match[str]]:
    end = 0
    for begin in _BEGINS.finditer(text):
        letter = begin[0].lower()
        if begin.start() < end or letter not in _ANY:  # as a dotless i, which differs from an i in case alone
            continue
        if match := _pattern(letter).match(text, begin.start()):
            end = match.end()
            yield match


def one_word_each(text: str) -> str:
    """The text with one word for all words of a group, so that "rose" and "increased" are alike."""
    parts, end = [], 0
    for match in _found(text):
        parts += [text[end : match.start()], f" {match.lastgroup or ''}word "]
        end = match.end()
    return "".join([*parts, text[end:]])


def contradiction(one: Sequence[Word], other: Sequence[Word]) -> tuple[Word, Word] | None:
    """Two words that exclude each other, if these have groups of one kind and share none."""
    for kind in dict.fromkeys(word.kind for word in one):
        first, second = ([word for word in words if word.kind == kind] for words in (one, other))
        if first and second and not {word.group for word in first} & {word.group for word in second}:
            return first[0], second[0]
    return None
