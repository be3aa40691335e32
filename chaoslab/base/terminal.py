"""Text as a terminal may get it: without secrets, and without signs that steer it or turn the direction of a line."""

import re

from chaoslab.base.secrets import has_no_secret, printed

_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
"""Control characters but for the tab and the line feed, marks of direction, further ends of a line, and tags."""


def clean_text(text: str) -> str:
    """The text with `?` for each sign that a terminal would obey instead of showing it."""
    if not has_no_secret((text,)) or printed.known:
        text = printed.mask(text)
    return text if text.isascii() and text.isprintable() else _STEERS.sub("?", text)
