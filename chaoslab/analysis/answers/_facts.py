"""The facts that an answer shows."""

from collections.abc import Sequence

from chaoslab.analysis.answers import _amounts, _notation
from chaoslab.analysis.answers._daytime import clock
from chaoslab.analysis.answers.values import plain, tokens


def shows(spellings: Sequence[str], text: str) -> bool:
    """True if one of the spellings occurs in the text as whole words and whole numbers. Case, accents and spacing do
    not count, nor does the unit of an amount."""
    read = _notation.plainly(text)
    if _shows(spellings, text) or (read != text and _shows(spellings, read)):
        return True
    return any(_shows([way], said) for way in spellings if (said := _as_in(str(way), read)) != read)


def _as_in(way: str, text: str) -> str:
    """The text with its times and amounts as this spelling of a fact has them."""
    return _amounts.aligned(way, clock(text, way))[1]


def _shows(spellings: Sequence[str], text: str) -> bool:
    words = tokens(text)
    for way in spellings:
        wanted = tokens(str(way))
        if not wanted:  # a sign without words, such as "→"
            sign = plain(str(way)).strip()
            if sign and sign in plain(text):
                return True
        elif any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1)):
            return True
    return False
