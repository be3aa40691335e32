"""Foreign texts made safe to show: no character in them steers a terminal, a browser, or the direction of writing."""

from collections.abc import Sequence
from itertools import takewhile

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


def apart(names: Sequence[str], most: int) -> dict[str, str]:
    """Each name in at most `most` characters of one line. A long one is cut in its middle; names of one family, which
    would then look alike, are cut where they begin to differ."""
    lines = {name: one_line(name, len(name) + 1) for name in names}
    cut = {name: _cut(line, most, 0) for name, line in lines.items()}
    families: dict[str, list[str]] = {}
    for name in lines:
        families.setdefault(cut[name], []).append(name)
    for family in families.values():
        alike = zip(*(lines[name] for name in family), strict=False)
        differs = sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, alike))
        word = differs  # a number or word is shown whole
        while word and lines[family[0]][word - 1].isalnum():
            word -= 1
        cut |= {name: _cut(lines[name], most, word or differs) for name in family if len(family) > 1}
    return cut


def _cut(line: str, most: int, differs: int) -> str:
    """The line without its middle, or with what stands from `differs` on after its beginning."""
    tail = most // 3
    if len(line) <= most:
        return line
    if not differs:
        return f"{line[: most - tail - 1]}…{line[-tail:]}"
    rest = line[differs:]
    room = most - tail - 1
    return f"{line[:tail]}…{rest if len(rest) <= room else f'{rest[: room - 1]}…'}"
