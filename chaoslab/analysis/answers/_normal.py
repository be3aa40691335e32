"""Two texts in one notation, as tokens: markdown, numbers, units, dates, times and currencies in one spelling.

Nothing is dropped that may mean something: only punctuation and markdown go, and every other sign becomes a word.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from chaoslab.analysis.answers import _notation
from chaoslab.analysis.answers._notation import clock
from chaoslab.analysis.answers.values import in_iso, tokens

NUMBER_WORDS = {word: f"#{number}" for word, number in _notation.SMALL.items() if 2 <= number <= 12}
CURRENCIES = frozenset(["eur", "usd", "gbp", "jpy"])
_SPELLED = {
    "eur": r"€|\beuros?\b",
    "usd": r"(?<![a-z])(?:us ?)?\$|\b(?:us |u\.s\. )?dollars?\b",
    "gbp": r"£|\bpounds? sterling\b",
    "jpy": r"¥|\byen\b",
    "percent": r"%|\bper cent\b",
}
_SPELLING = re.compile("|".join(f"(?P<{name}>{ways})" for name, ways in _SPELLED.items()), re.IGNORECASE)
_SIGNS = {
    "−": "-", "½": ".5", "¼": ".25", "¾": ".75", "≥": " atleast ", "≤": " atmost ", "±": " plusminus ", "≠": " not ",
    "~": " about ", "≈": " about ", "✅": " ok ", "✔": " ok ", "✓": " ok ", "☑": " ok ", "👍": " ok ",
    "❌": " failed ", "✗": " failed ", "✘": " failed ", "👎": " failed ", "⚠": " warning ", "?": " questionmark ",
}  # fmt: skip
"""Signs and the words that stand for them."""
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_RELATIONS = {
    "to": r"(?<=\d)(?: ?– ?|-| - )(?=\d)", "slash": r"(?<=\d) ?/ ?(?=\d)",
    "not": r"n['’]t\b|!=", "can not": r"\bcannot\b",
    "atmost": r"<=", "atleast": r">=", "below": r"<(?=\s?\d)", "above": r">(?=\s?\d)",
    "arrow": r"(?<![-=])[-=]+>|→", "back": r"<-|←",
    "plus": r"(?<![\w.)+-])\+(?=\w)|(?<=\w)\+(?!\w)", "sharp": r"(?<=[^\W_])#(?!\w)",
    "minus": r"(?<![\w.)+-])-(?=[^\W\d])|(?<=[^\W\d_])-(?=[\s.,;:!?)]|$)",
    "owed": r"\((?=[$€£¥]?\d[\d.,]*\))", "degrees": "°",
}  # fmt: skip
_RELATION = re.compile("|".join(f"(?P<_{at}>{way})" for at, way in enumerate(_RELATIONS.values())), re.IGNORECASE)
"""Signs that say something where they stand: 3/4 is no 3-4, O+ no O-, < no >, and (500) is a negative amount."""
_AS = [*_RELATIONS]
SIGN = "signxx"
"""The beginning of a word that stands for a sign. The sign's code follows, in letters, since it is no value."""
_WRITTEN = {"questionmark": "?", "atleast": "≥", "atmost": "≤", "plusminus": "±"}
_AS_LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopabcdef")
_AS_DIGITS = str.maketrans("ghijklmnop", "0123456789")
_MUTE = frozenset("™®©¦🎉✨👋´¨`^") | {chr(code) for code in range(0x2500, 0x2580)}
"""Signs that say nothing, with the lines of boxes."""
_SYMBOL = re.compile(r"[^\w\s.,;:!?'\"()\[\]{}*_`#|/\\&-]")
_MARKDOWN = re.compile(
    r"^[ \t]*+(?:```\w*[ \t]*$|#+[ \t]+|>+[ \t]+(?!\d)|(?=[|: \t]*---)[|:\- \t]++$|[-*+•‣◦▪][ \t]+)"
    r"|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}"
    r"|</?(?:b|i|u|em|strong|code|p|br|li|ul|ol|span|div)(?:\s[^<>]*)?/?>",
    re.MULTILINE | re.IGNORECASE,
)
_AT = re.compile(r"(?<=\d{4}-\d\d-\d\d),?\s+at\s+(?=\d)", re.IGNORECASE)
_BULLET = re.compile(r"[ \t]*[-*+•‣◦▪][ \t]+\S")


def normal(expected: str, given: str) -> tuple[list[str], list[str]]:
    """The tokens of both texts. A time or amount of the second is spelled as in the first where it is the same one."""
    one, two = _plainly(expected), _plainly(given)
    one, two = _notation.aligned(clock(one, two), clock(two, one))
    return _tokens(one), _tokens(two)


@lru_cache(maxsize=64)
def _plainly(text: str) -> str:
    text = _SIGN.sub(_in_words, _MARKDOWN.sub(" ", text))
    return _AT.sub(" ", in_iso(_notation.plainly(text)))


def _in_words(match: re.Match[str]) -> str:
    word = _SIGNS[match[0]]
    if word.startswith("."):  # 12½ is 12.5
        return word if match.string[: match.start()][-1:].isdigit() else f"0{word}"
    return word


def _tokens(text: str) -> list[str]:
    text = _RELATION.sub(_related, re.sub(r"\bcan['’]t\b", "can not", _notation.spelled(text), flags=re.IGNORECASE))
    text = _SPELLING.sub(lambda match: f" {match.lastgroup} ", text)
    text = _SYMBOL.sub(_named, text)
    found = [NUMBER_WORDS.get(token, token) for token in tokens(text)]
    for at in range(len(found) - 1):  # USD 30 is 30 USD
        owned = at > 0 and found[at - 1].startswith("#")
        if found[at] in CURRENCIES and found[at + 1].startswith("#") and not owned:
            found[at], found[at + 1] = found[at + 1], found[at]
    return found


def _related(match: re.Match[str]) -> str:
    return f" {_AS[int((match.lastgroup or '_0')[1:])]} "


def _named(match: re.Match[str]) -> str:
    """A word for a mathematical sign, a currency or a picture, which may say anything; punctuation as it is."""
    if match[0] in _MUTE or not (match[0] in "‰‱′″" or unicodedata.category(match[0]).startswith("S")):
        return match[0]
    return f" {SIGN}{f'{ord(match[0]):x}'.translate(_AS_LETTERS)} "


def as_written(token: str) -> str:
    """The token as a reader would write it."""
    code = token.removeprefix(SIGN)
    if code != token:
        return chr(int(code.translate(_AS_DIGITS), 16))
    return _WRITTEN.get(token) or token.removeprefix("#")


def sorted_lists(text: str) -> str:
    """The text with the items of each list without numbers in one order. A list within a list stays as it is."""
    found: list[str] = []
    for listed, lines in groupby(text.splitlines(), lambda line: bool(_BULLET.match(line))):
        run = [*lines]
        flat = listed and len({line[: len(line) - len(line.lstrip())] for line in run}) == 1
        found += sorted(run, key=lambda line: _tokens(_plainly(line))) if flat else run
    return "\n".join(found)


def named_lists(text: str) -> bool:
    """True if each item of the text's lists is a name and its value, as in "- Oslo: 12": their order says nothing."""
    return all(":" in line for line in text.splitlines() if _BULLET.match(line))
