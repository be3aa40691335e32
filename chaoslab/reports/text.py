"""Foreign texts made safe to show: no character in them steers a terminal, a browser, or the direction of writing."""

from collections.abc import Sequence
from itertools import takewhile

_KEPT = "\n\u200c\u200d"
"""Not printable and harmless: line ends, and joiners that are part of Persian words and some emoji."""


def escape_and_shorten(text: str, length_max: int) -> str:
    """The first `length_max` characters of the text, with each unprintable one spelt out, as in `\\x1b` or
    `\\u2028`. Half surrogate pairs are spelt out too, so the result can be written in UTF-8."""
    # isprintable is one call, and most texts are harmless.
    head = text[:length_max]
    if not head.isprintable():
        head = "".join(
            character if character.isprintable() or character in _KEPT else _escape_character(character)
            for character in head
        )
    return head + "…" if len(text) > length_max else head


def make_one_line(text: str, length_max: int) -> str:
    """The same in one line."""
    # Four times as much: blanks that go make room for the rest.
    return escape_and_shorten(" ".join(text[: 4 * length_max].split()), length_max)


def _escape_character(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shorten_names_distinctly(names: Sequence[str], length_max: int) -> dict[str, str]:
    """Each name in at most `length_max` characters of one line. A long one is cut in its middle; names of one
    family, which would then look alike, are cut where they begin to differ."""
    # One more than its length: nothing is cut yet.
    lines = {name: make_one_line(name, len(name) + 1) for name in names}
    cut = {name: _cut_middle(line, length_max, 0) for name, line in lines.items()}
    families: dict[str, list[str]] = {}
    for name in lines:
        families.setdefault(cut[name], []).append(name)
    for similar_names in families.values():
        characters = zip(*(lines[name] for name in similar_names), strict=False)
        differs = sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, characters))
        word = differs  # a number or word is shown whole
        while word and lines[similar_names[0]][word - 1].isalnum():
            word -= 1
        cut |= {
            name: _cut_middle(lines[name], length_max, word or differs)
            for name in similar_names
            if len(similar_names) > 1
        }
    return cut


def _cut_middle(line: str, length_max: int, first_difference: int) -> str:
    """The line without its middle, or with what stands from `first_difference` on after its beginning."""
    tail = length_max // 3
    if len(line) <= length_max:
        return line
    if not first_difference:
        return f"{line[: length_max - tail - 1]}…{line[-tail:]}"
    rest = line[first_difference:]
    room = length_max - tail - 1
    return f"{line[:tail]}…{rest if len(rest) <= room else f'{rest[: room - 1]}…'}"
