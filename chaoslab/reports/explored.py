"""An exploration as text, as a page and as data."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from chaoslab.reports.text import one_line
from chaoslab.search.map import GOES_ON, RANK, Map, MapRow

WIDTH = 100
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
MAP = "map.html"
"""The page in the folder of an exploration's run."""
ENDINGS = (".html", ".json")
"""The files that a map is written as: a page, and data."""
ROWS, FAILURES, UNTRIED = 10, 10, 5
"""The most calls, failures and untried cells that the terminal shows."""


def text(found: Any) -> str:
    """The findings of an exploration, for the terminal."""
    map_, failures = found.map, found.failures
    by = ", ".join(f"{number} by {name}" for name, number in map_.by_strategy.items())
    lines = [map_.in_words(), f"in order: {_orders(map_)}", f"trials: {by}", ""]
    for row in map_.rows[:ROWS]:
        wrapped = textwrap.wrap(_outcomes(map_, row), WIDTH, initial_indent="    ", subsequent_indent="    ")
        lines += [f"  {one_line(str(row), WIDTH)}", *wrapped[:2]]
    if (more := len(map_.rows) - ROWS) > 0:
        lines.append(f"  … and {more} calls more, in --json and in the page of --map")
    lines.append("")
    if not failures:
        lines.append("no failure was found")
    for n, failure in enumerate(failures[:FAILURES], 1):
        lines.append(f"{n}. {failure}")
        if failure.contrast is None:
            lines.append("   not tried again: the budget was over")
        if command := found.commands.get(failure.cause):
            lines.append(f"   again: {command}")
    if more := len(failures) - FAILURES:
        lines += [f"… and {more} more"] if more > 0 else []
    lines += [one_line(str(each), WIDTH) for each in found.by_itself]
    if found.unconfirmed:
        lines.append(f"seen once and not told from noise: {len(found.unconfirmed)}")
        lines += [f"  {one_line(str(each), WIDTH)}" for each in found.unconfirmed[:UNTRIED]]
    return "\n".join([*lines, *_untried(map_)])


def _orders(map_: Map) -> str:
    """The part of each order of faults that was tried, in words."""
    return f"{', '.join(map(str, map_.by_order))}; {map_.higher}"


def painted(text_: str) -> str:
    """The text with colours for a terminal: what failed is red, what ended well is green."""
    text_ = re.sub(r"\b\d+ [A-Z_]{4,}\b|(?m:^\d+\. \w+)", rf"{RED}\g<0>{PLAIN}", text_)
    return re.sub(r"\b\d+ (correct|degraded)\b", rf"{GREEN}\g<0>{PLAIN}", text_)


def _outcomes(map_: Map, row: MapRow) -> str:
    """The outcomes of a row, the good ones counted, the bad ones with their faults, worst first."""
    good, bad = dict[str, int](), dict[str, list[str]]()
    for _, _, tried in map_.of_row(row):
        if tried.failed:
            bad.setdefault(tried.outcome, []).append(tried.variation.injections[-1].choices[0].fault)
        else:
            name = tried.outcome
            good[name] = good.get(name, 0) + 1
    parts = [f"{number} {name}" for name, number in good.items()]
    for name in sorted(bad, key=lambda name: RANK.get(name, len(RANK))):
        said = name.upper() if name in RANK else f"{name}, and yet FAILED"
        parts.append(f"{len(bad[name])} {said}: {', '.join(dict.fromkeys(bad[name]))}")
    return " · ".join(parts)


def _untried(map_: Map) -> list[str]:
    """The reasons that cells were not tried, those with one reason counted."""
    found = map_.untried
    apply = [each for each in found if not each.why.startswith("not applicable")]
    lines = [f"not tried, or nothing can be said: {len(apply)} cells"] if apply else []
    lines += [f"  {one_line(str(each), WIDTH)}" for each in apply[:UNTRIED]]
    if len(apply) > UNTRIED:
        lines.append(f"  … and {len(apply) - UNTRIED} more, all of them in --json and in the page of --map")
    others = {each.fault for each in found if each.why.startswith("not applicable")}
    if others:
        lines.append(f"{len(others)} faults apply to some targets or none, each with its reason there too")
    return lines


def save(found: Any, path: Path) -> None:
    """Writes the map as a page (.html) or as data (.json). Raises ValueError: the name ends otherwise. OSError: it
    cannot be written."""
    from chaoslab.reports.formats import put

    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} should end in {' or '.join(ENDINGS)}")
    if path.suffix == ".json":
        put(json.dumps(found.map.data(), indent=2, ensure_ascii=False) + "\n", path)
    else:
        put(_page(found), path)


def _page(found: Any) -> str:
    from chaoslab.analysis.verdict.table import Outcome
    from chaoslab.reports.contents.outcomes import glyph
    from chaoslab.reports.formats.html import page

    map_: Map = found.map
    failure_of = {(each.tried.kind, each.variation.places): n for n, each in enumerate(found.failures, 1)}
    rows = []
    for label in map_.columns:
        tries = [(map_.outcome(row, label), map_.cell(row, label)) for row in map_.rows]
        cells = [
            {
                "outcome": outcome,
                "tried": tried is not None,
                "why": "" if tried is None else one_line(tried.why, 300),
                "failure": failure_of.get((tried.kind, tried.variation.places)) if tried and tried.failed else None,
            }
            for outcome, tried in tries
        ]
        rows.append({"fault": label, "cells": cells})
    outcomes = list(dict.fromkeys(tried.outcome for _, _, tried in map_.cells if tried is not None))
    failures = [
        {
            "n": n, "outcome": each.outcome, "cause": each.cause, "others": len(each.others),
            "again": found.commands.get(each.cause, ""), "story": each.story(),
            "contrast": "" if each.contrast is None else str(each.contrast),
        }
        for n, each in enumerate(found.failures, 1)
    ]  # fmt: skip
    return page(
        "explored.html", said=map_.in_words(), calls=[str(row) for row in map_.rows], rows=rows, legend=outcomes,
        glyphs={str(each): glyph(each) for each in Outcome}, failures=failures,
        orders=_orders(map_),
        more=[*map(str, found.by_itself), *(f"not told from noise: {each}" for each in found.unconfirmed)],
        goes_on=found.ended == GOES_ON,
        untried=[vars(each) for each in map_.untried],
    )  # fmt: skip
