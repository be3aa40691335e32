"""One answer beside the expected one: the same, other values, alike in other words, or not to be told.

The first two are certain: they rest on equal texts in one notation, and on texts that are equal but for their values.
The third is a guess from words, and everything else is the last: no word outweighs another.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache, lru_cache

from chaoslab.analysis.answers import _structures, _words
from chaoslab.analysis.answers._normal import as_written, named_lists, normal, sorted_lists
from chaoslab.analysis.answers._sentences import sentences, telling_sentences
from chaoslab.analysis.answers.values import READ_MAX, is_value, plain, tokens
from chaoslab.base.jsonable import listed

SHOWN = 4
"""The most words that a reason names."""
LONGEST = 2_000
"""The most tokens of a text whose differences are searched: the search is quadratic."""
PARTS_MAX = 60
"""The most sentences that are laid beside another text."""


class Likeness(StrEnum):
    """The result of comparing two answers.

    OTHER: equal words, and other numbers. OPPOSED, by words: equal words but for a few that turn the meaning.
    ALIKE, by words: the same values, and most words are the same ones.
    """

    SAME = "same"
    OTHER = "other"
    OPPOSED = "opposed"
    ALIKE = "alike"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class AnswerLikeness:
    """The likeness of two answers. `said`: the finding, as part of a line. `kept`: every value and name of the expected
    one that proves something is there, in order, and none is added."""

    likeness: Likeness
    said: str
    kept: bool = False


_EQUAL = AnswerLikeness(Likeness.SAME, "the same answer")


def compare(expected: str, given: str, *, asked: str = "", known: str = "") -> AnswerLikeness:
    """Compares an answer with the expected one.

    `asked`: the prompt, whose values prove nothing. `known`: a text whose values an answer may have in place of the
    expected ones, such as the effects that were rightly done.
    """
    if expected == given:
        return _EQUAL
    if max(len(expected), len(given)) > READ_MAX:
        return AnswerLikeness(Likeness.UNCLEAR, f"the answers differ and are longer than {READ_MAX:,} characters")
    return _compared(expected, given, asked, known)


@lru_cache(maxsize=256)
def _compared(expected: str, given: str, asked: str, known: str) -> AnswerLikeness:
    held = [_structures.structure(text) for text in (expected, given)]
    if held[0] is not None and held[1] is not None:
        found = [each for each in _structures.differences(held[0], held[1]) if not _same_text(each)]
        if not found:
            return AnswerLikeness(Likeness.SAME, "the same values")
        differing = [each for each in found if not _structures.of_making(each)]
        other = bool(differing) and all(_contradicts(each, known) for each in differing)
        return AnswerLikeness(
            Likeness.OTHER if other else Likeness.UNCLEAR, _structures.differences_text(differing or found)
        )
    if held[0] is not None or held[1] is not None:
        return AnswerLikeness(Likeness.UNCLEAR, "only one of the two answers is structured")
    one, two = normal(expected, given)
    if one == two and one:
        return _same_but(expected, given, "in another notation")
    idle = normal(_words.IDLE.sub("", expected), _words.IDLE.sub("", given))
    if idle[0] == idle[1] and idle[0]:
        return _same_but(expected, given, "but for idle words")
    lists = sorted_lists(expected), sorted_lists(given)
    if lists != (expected, given):
        listed = normal(*lists)
        if listed[0] == listed[1]:
            if named_lists(expected):
                return _same_but(expected, given, "but for the order of a list")
            return AnswerLikeness(Likeness.ALIKE, "the same list in another order", kept=True)  # it may be a ranking
    if len(two) < len(one) and one[: len(two)] == two:
        return AnswerLikeness(
            Likeness.UNCLEAR, f"it is only the beginning of its twin's, without {_listed(one[len(two) :])}"
        )
    if max(len(one), len(two)) > LONGEST:
        return AnswerLikeness(Likeness.UNCLEAR, f"the answers differ and have more than {LONGEST:,} words")
    return _of_values(one, two, known) or _of_words(expected, given, asked, known)


def _same_but(expected: str, given: str, but: str) -> AnswerLikeness:
    """The likeness of two texts that are the same but for this, unless they differ in signs that were not looked at:
    accents, which make other words in many languages, capitals within a name with digits, such as a key, and three
    digits behind a point, which may be thousands."""
    for signs in (_accented, _keys, _THOUSANDS.findall):
        one, two = (Counter(signs(text)) for text in (expected, given))
        if one != two:
            return _unclear("they are written in two ways", _listed([*(two - one), *(one - two)]), kept=True)
    return AnswerLikeness(Likeness.SAME, f"the same answer {but}")


def _accented(text: str) -> list[str]:
    """The letters of a text that have accents, or other marks of their script."""
    return [] if text.isascii() else _marked().findall(unicodedata.normalize("NFD", text).casefold())


@cache
def _marked() -> re.Pattern[str]:
    """The pattern of a letter with its marks. It takes 3 ms to make, and most answers have none."""
    marks = "".join(chr(code) for code in range(0x300, 0x3100) if unicodedata.category(chr(code)) == "Mn")
    return re.compile(f"[^{marks}][{marks}]+")


def _keys(text: str) -> list[str]:
    """The names of a text with digits, capitals and small letters."""
    return [each for each in _KEY.findall(text) if not (each.isupper() or each.islower() or each.istitle())]


_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,]*\d)")
_KEY = re.compile(r"\b(?=\w*[^\W\d]\d)\w{4,}")  # digits before letters alone are a quantity, as in 5kWh


def _same_text(place: _structures.Difference) -> bool:
    _, one, other = place
    return isinstance(one, str) and isinstance(other, str) and compare(one, other).likeness is Likeness.SAME


def _contradicts(place: _structures.Difference, known: str) -> bool:
    """True if a place of a structured answer has another number. A flag or text may differ by an admission."""
    _, one, other = place
    if isinstance(one, str) and isinstance(other, str):
        return compare(one, other, known=known).likeness is Likeness.OTHER
    return _structures.number(one) and _structures.number(other) and not set(tokens(str(other))) & set(tokens(known))


def _of_values(one: Sequence[str], two: Sequence[str], known: str) -> AnswerLikeness | None:
    """The finding that two texts have the same words but for numbers; None if that is not so."""
    if len(one) != len(two):
        return None
    places = [at for at, (wanted, said) in enumerate(zip(one, two, strict=True)) if wanted != said]
    if any(_of_making(two, at) for at in places) or {two[at] for at in places} & set(tokens(known)):
        return None
    less, more = ([text[at] for at in places] for text in (one, two))
    said = f"it says {_listed(more)} instead of {_listed(less)}"
    numbers = all(one[at].startswith("#") and two[at].startswith("#") for at in places)
    known_as = all(_words.thousandfold(one[at], two[at]) for at in places) if numbers else True
    return None if known_as else AnswerLikeness(Likeness.OTHER, said)


def _of_making(text: Sequence[str], at: int) -> bool:
    """True if a number counts what the agent did, such as its attempts or seconds."""
    return bool(_words.MAKING & {token.rstrip("s") for token in (*text[max(0, at - 2) : at], *text[at + 1 : at + 3])})


def _of_words(expected: str, given: str, asked: str, known: str) -> AnswerLikeness:
    """The comparison of two texts with other words, without the sentences that tell nothing of what was asked."""
    texts = [
        telling_sentences(_SHORTENED.sub("", _words.IDLE.sub("", _TIMED.sub(_minutes, text))))
        for text in (expected, given)
    ]
    one, two = normal(*texts)
    shown = _differing(one, two)
    if not one or not two:
        return _unclear("it says nothing of what was asked", shown)
    differing = (Counter(one) - Counter(two)) + (Counter(two) - Counter(one))
    asked_for = normal(asked, asked)[0]
    wanted, said = ([token for token in each if is_value(token)] for each in (one, two))
    proving = [value for value in wanted if value not in asked_for]
    lacking = [value for value in proving if value not in said]
    added = [value for value in said if value not in wanted and value not in asked_for]
    names = [name for text in texts for name in _names(text) if name in differing and name not in asked_for]
    against = [word for word in differing if _words.opposes(word, differing, asked_for)]
    content = [{*_words.content([token for token in each if token not in against])} for each in (one, two)]
    shared, new = content[0] & content[1], content[1] - content[0] - {*_words.content(asked_for)}
    own = {*_words.content([token for token in one if token not in asked_for])}
    if proving:  # a short answer leaves out what was asked
        most = 2 * len(shared) > max(map(len, content)) or 2 * len(shared & own) >= len(own)
    else:
        own -= {_words.stem(word) for word in against}
        most = bool(own) and own <= content[1] and 2 * len(shared) > len(content[0])
    most = most and not (new or names) and (content[0] == content[1] or _words.english(expected))
    place = _words.moved(one, two)
    turned = not place and _words.turned(one, two, against)
    if lacking or added:  # one number in place of another
        turned = not against and [each[0][0] for each in (lacking, added) if len(each) == 1] == ["#", "#"]
        turned = turned and not _words.thousandfold(lacking[0], added[0]) and added[0] not in tokens(known)
    if most and turned:
        return AnswerLikeness(Likeness.OPPOSED, f"it says the opposite or another value: {shown}")
    if lacking or added:
        return _unclear(f"it lacks {_listed(lacking)}" if lacking else f"it adds {_listed(added)}", shown)
    if not proving and not most:
        return _unclear("no value proves it, and its words differ", shown, kept=True)
    if names:
        return _unclear(f"its names differ: {_listed(names)}", shown)
    if place:
        return _unclear(f"it has the same words in another order, such as {as_written(place)}", shown)
    if against:
        return _unclear(f"'{as_written(against[0])}' stands in one of the two alone", shown, kept=True)
    if not most:
        return _unclear("most of its words are other ones", shown, kept=True)
    by = f"the same values: {_listed(proving)}; its words differ" if proving else "the same words but for plain ones"
    return AnswerLikeness(Likeness.ALIKE, f"{by}: {shown}", kept=True)


def _unclear(why: str, shown: str, *, kept: bool = False) -> AnswerLikeness:
    return AnswerLikeness(Likeness.UNCLEAR, f"{why}: {shown}", kept)


def echoes(expected: str, given: str, asked: str) -> bool:
    """True if an English text says what the expected one does: each of its sentences has mostly words of that and of
    the prompt, or one has nearly all of a sentence of that, and none turns a meaning round or tells of trouble."""
    own, parts = normal(expected, expected)[0], sentences(given)
    if not _words.english(expected) or _structures.structure(given) is not None or len(parts) > PARTS_MAX:
        return False
    known = {_words.stem(token) for token in (*own, *normal(asked, asked)[0])}
    twins = [{*_words.content(normal(part, part)[0])} for part in sentences(expected)]
    claimed, only = False, bool(parts)
    for part in parts:
        said = [token for token in normal(expected, _SHORTENED.sub("", part))[1] if token not in _words.PLAIN]
        new = Counter(token for token in said if _words.stem(token) not in known)
        if any(token in _words.TROUBLE or (_words.opposes(token, new) and token != "one") for token in new):
            return False
        content = {*_words.content(said)}
        claimed = claimed or any(len(twin) > 1 and 4 * len(twin & content) > 3 * len(twin) for twin in twins)
        only = only and bool(content) and 3 * new.total() < len(said)
    return claimed or only


def _minutes(match: re.Match[str]) -> str:
    return f"{60 * int(match[1]) + int(match[2])} minutes"


_TIMED = re.compile(r"\b(\d{1,4}) ?h(?:ours?)?,?(?: and)? ?(\d{1,4}) ?min(?:ute)?s?\b", re.IGNORECASE)
_SHORTENED = re.compile(r"(?<=[^\W\d_])['’](?:s|ve|re|ll|d|m)\b", re.IGNORECASE)


def _names(text: str) -> list[str]:
    """The capitalised words of a text that begin no sentence, in small letters."""
    found = _NAME.findall(text)
    return [plain(name) for name in found if name != "I"]


_NAME = re.compile(r"(?:(?<=[^\W_] )|(?<=, ))[^\W\d_a-z][^\W_]*")


def _differing(one: Sequence[str], two: Sequence[str]) -> str:
    """The words that differ, as part of a line."""
    steps = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    parts = [(one[a:b], two[c:d]) for step, a, b, c, d in steps if step != "equal"]
    told = []
    for old, new in parts:
        instead = f" instead of '{_short(old)}'" if old else " added"
        told.append(f"'{_short(new)}'{instead}" if new else f"without '{_short(old)}'")
    return listed(told, SHOWN)


def _short(part: Sequence[str]) -> str:
    text = " ".join(map(as_written, part))
    return text if len(text) <= 40 else f"{text[:39]}…"


def _listed(values: Sequence[str]) -> str:
    return listed([value[:40] for value in dict.fromkeys(map(as_written, values))], SHOWN)
