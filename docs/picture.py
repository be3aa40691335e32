"""Draws docs/refund.svg, a terminal with what README's Python program finds: `python docs/picture.py`.

A test holds the two equal.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
PICTURE = FOLDER / "refund.svg"
PROGRAM = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
CHARACTER, LINE, EDGE = 7.85, 20, 18
"""Width of a character and height of a line (pixels of a 13-pixel font), and the space around them."""
COLUMNS, HANGING = 64, 23
"""The most columns, which a telephone still shows legibly, and the indent of a line that goes on."""
GROUND, WORDS, DIM = "#0d1117", "#e6edf3", "#7d8590"
INKS = {"fault": "#ffa657", "effect": "#79c0ff", "verdict": "#ff7b72", "answer": "#7ee787"}
"""Of a line of a story, by its second word."""


def story() -> str:
    """The finding of README's first Python program, told by `Trial.story`."""
    found = PROGRAM.search((FOLDER.parent / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    program = re.sub(r"^print\(.*\)$", "print(trial.story())", found[1], flags=re.MULTILINE)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.rstrip()


def drawn(text: str) -> str:
    """The text as an SVG of a terminal."""
    lines = [
        (part, ink)
        for line in text.splitlines()
        for ink in [_find_ink(line)]
        for part in textwrap.wrap(line, COLUMNS, subsequent_indent=" " * HANGING, break_on_hyphens=False)
    ]
    width = 2 * EDGE + CHARACTER * max(len(line) for line, _ in lines)
    height = 2 * EDGE + LINE * len(lines)
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
            f'viewBox="0 0 {width:.0f} {height}">\n',
            "<title>One refund was asked for, its reply was lost, and the agent refunds again</title>\n",
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>\n',
            '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">\n',
            *(_line(line, ink, EDGE + LINE * n + 14) for n, (line, ink) in enumerate(lines)),
            "</g>\n</svg>\n",
        ]
    )


def _line(line: str, ink: str, y: int) -> str:
    return "".join(
        f'<text x="{EDGE + CHARACTER * start:.1f}" y="{y}" fill="{color}" '
        # Browsers take several spaces for one, and no longer heed xml:space.
        f'textLength="{CHARACTER * len(part):.1f}">{escape(part).replace(" ", "&#160;")}</text>\n'
        for start, part, color in _parts(line, ink)
    )


STORY_LINE = re.compile(r"\s*(?P<time>\+\S+ s)?\s*(?P<rest>(?P<kind>\w+)?.*)")


def _find_ink(line: str) -> str:
    found = STORY_LINE.fullmatch(line)
    return WORDS if found is None else INKS.get(found["kind"], WORDS)


def _parts(line: str, ink: str) -> Iterator[tuple[int, str, str]]:
    """(column, text, colour): the time is dim, and the rest has the colour of its kind."""
    found = STORY_LINE.fullmatch(line)
    if found is None:
        return
    if found["time"]:
        yield found.start("time"), found["time"], DIM
    yield found.start("rest"), found["rest"], ink


if __name__ == "__main__":
    PICTURE.write_text(drawn(story()), encoding="utf-8")
    print(PICTURE)
