"""Two texts in one notation, as tokens: markdown, numbers, units, dates, times and currencies in one spelling.

Nothing is dropped that may mean something: only punctuation and markdown go, and every other sign becomes a word.
"""

import re
import unicodedata
from functools import lru_cache

from chaoslab.analysis.answers._notation import convert_to_24_hours, normalize_numbers
from chaoslab.analysis.answers.values import convert_dates_to_iso, tokenize

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
    "−": "-", "≥": " atleast ", "≤": " atmost ", "±": " plusminus ", "≠": " not ",
    "~": " about ", "≈": " about ", "✅": " ok ", "✔": " ok ", "✓": " ok ", "☑": " ok ", "👍": " ok ",
    "❌": " failed ", "✗": " failed ", "✘": " failed ", "👎": " failed ", "⚠": " warning ", "?": " questionmark ",
}  # fmt: skip
"""Signs and the words that stand for them."""
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_RELATIONS = {
    # Between digits it is a range: a minus before a number stands behind no digit.
    "to": r"(?<=\d)(?: ?– ?|-| - )(?=\d)", "slash": r"(?<=\d) ?/ ?(?=\d)",
    "not": r"n['’]t\b|!=", "can not": r"\bcannot\b",
    "atmost": r"<=", "atleast": r">=", "below": r"<(?=\s?\d)", "above": r">(?=\s?\d)",
    "arrow": r"(?<![-=])[-=]+>|→", "back": r"<-|←",
    "plus": r"(?<![\w.)+-])\+(?=\w)|(?<=\w)\+(?!\w)", "sharp": r"(?<=[^\W_])#(?!\w)",
    "minus": r"(?<![\w.)+-])-(?=[^\W\d])|(?<=[^\W\d_])-(?=[\s.,;:!?)]|$)",
    "owed": r"\((?=[$€£¥]?\d[\d.,]*\))", "degrees": "°",
}  # fmt: skip
_RELATION = re.compile(
    "|".join(f"(?P<_{at}>{pattern})" for at, pattern in enumerate(_RELATIONS.values())), re.IGNORECASE
)
"""Signs that say something where they stand: 3/4 is no 3-4, O+ no O-, < no >, and (500) is a negative amount."""
_RELATION_NAMES = [*_RELATIONS]
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


# A twin's answer comes again with each trial that is compared with it.
@lru_cache(maxsize=128)
def tokenize_normalized(text: str) -> tuple[str, ...]:
    """The tokens of a text in one notation."""
    # Markdown first, since its signs would become words.
    text = _SIGN.sub(lambda match: _SIGNS[match[0]], _MARKDOWN.sub(" ", text))
    return tuple(_split_tokens(_AT.sub(" ", convert_dates_to_iso(convert_to_24_hours(normalize_numbers(text))))))


def _split_tokens(text: str) -> list[str]:
    # can't before any other n't, which would leave "ca not".
    text = _RELATION.sub(_relation_to_word, re.sub(r"\bcan['’]t\b", "can not", text, flags=re.IGNORECASE))
    text = _SPELLING.sub(lambda match: f" {match.lastgroup} ", text)
    text = _SYMBOL.sub(_symbol_to_word, text)
    words = [*tokenize(text)]
    for at in range(len(words) - 1):  # USD 30 is 30 USD
        has_owner = at > 0 and words[at - 1].startswith("#")
        if words[at] in CURRENCIES and words[at + 1].startswith("#") and not has_owner:
            words[at], words[at + 1] = words[at + 1], words[at]
    return words


def _relation_to_word(match: re.Match[str]) -> str:
    return f" {_RELATION_NAMES[int((match.lastgroup or '_0')[1:])]} "


def _symbol_to_word(match: re.Match[str]) -> str:
    """A word for a mathematical sign, a currency or a picture, which may say anything; punctuation as it is. The word
    has the sign's name, since its code would be a value."""
    if match[0] in _MUTE or not (match[0] in "‰‱′″" or unicodedata.category(match[0]).startswith("S")):
        return match[0]
    return f" signxx{unicodedata.name(match[0], '').replace(' ', '').replace('-', '')} "
