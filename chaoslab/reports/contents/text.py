"""Foreign texts made safe to show: no character in them steers a terminal, a browser, or the direction of writing."""

from __future__ import annotations

_KEPT = "\n\u200c\u200d"
"""Not printable and harmless: line ends, and joiners that are part of Persian words and some emoji."""


def visible(text: str, most: int) -> str:
    """The first `most` characters of the text, with each unprintable one spelt out, as in `\\x1b` or `\\u2028`. Half
    surrogate pairs are spelt out too, so the result can be written in UTF-8."""
    head = text[:most]
    if not head.isprintable():
        head = "".join(sign if sign.isprintable() or sign in _KEPT else _spelt(sign) for sign in head)
    return head + "…" if len(text) > most else head


def one_line(text: str, most: int) -> str:
    """The same in one line."""
    return visible(" ".join(text[: 4 * most].split()), most)


def _spelt(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
