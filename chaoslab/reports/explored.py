"""An exploration as text, as a page and as data."""

import json
import linecache
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

from chaoslab.reports.page import count
from chaoslab.reports.text import one_line, visible
from chaoslab.search import causes, roots
from chaoslab.search.map import GOES_ON, Map, MapRow
from chaoslab.search.roots import RANK
from chaoslab.search.variation import Tried

WIDTH = 100
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
MAP = "map.html"
"""The page in the folder of an exploration's run."""
ENDINGS = (".html", ".json")
"""The files that a map is written as: a page, and data."""
UNTRIED, PLACES, SOURCE = 5, 4, 80
"""The most kinds of untried cells, and the most further lines of one cause, that the terminal shows; the most
characters of a line."""
_NUMBER = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d.,:]*")


def text(found: Any, *, every: bool = False) -> str:
    """The findings of an exploration, for the terminal. `every`: each way to fail too, and the whole map."""
    map_, failures = found.map, found.failures
    ended = f"{found.ended}: " if found.ended and found.ended != GOES_ON else ""
    of = f"in {count(len(found.trials), 'trial')}, {found.seconds:.1f} s"
    lines = [f"{ended}{count(len(failures), 'root cause') if failures else 'no failure was found'} {of}", ""]
    for n, failure in enumerate(failures, 1):
        lines += [*_cause(n, failure, found.commands.get(failure.cause, ""), every=every), ""]
    lines += [one_line(str(each), WIDTH) for each in found.by_itself]
    if found.unconfirmed:
        lines.append(f"seen once and not told from noise: {len(found.unconfirmed)}")
        lines += [f"  {one_line(str(each), WIDTH)}" for each in found.unconfirmed[:UNTRIED]]
    if found.unnoticeable:
        more = f"{count(len(found.unnoticeable), 'fault')} that no agent can notice"
        lines.append(f"{more} changed what was done or said")
        lines += [f"  {_way(each)}" for each in found.unnoticeable if every]
    lines += [f"map: {map_.in_words().removeprefix(ended)}", f"in order: {_orders(map_)}"]
    if every:
        lines += [f"trials: {', '.join(f'{number} by {name}' for name, number in map_.by_strategy.items())}", ""]
        for row in map_.rows:
            wrapped = textwrap.wrap(_outcomes(map_, row), WIDTH, initial_indent="    ", subsequent_indent="    ")
            lines += [f"  {one_line(str(row), WIDTH)}", *wrapped]
    return "\n".join([*lines, *_untried(map_, every=every)])


def _cause(n: int, failure: Any, command: str, *, every: bool) -> list[str]:
    """A root cause, for the terminal."""
    first, *more = failure.places or [""]
    lines = [f"{n}. {failure.outcome.upper()}: {one_line(failure.suffered, WIDTH + 60)}"]
    if ":" in first:
        also = f"; also {', '.join(more[:PLACES])}" if more else ""
        also += f" and {len(more) - PLACES} more" if len(more) > PLACES else ""
        lines.append(f"   at: {one_line(f'{first}{_source_of(first)}{also}', 2 * WIDTH)}")
    ways = f", and {count(len(failure.others), 'more way')}" if failure.others else ""
    contrast = failure.contrast
    seen = f" ({contrast})" if contrast is not None and contrast.trials > 1 else ""
    lines.append(f"   cause: {causes.where(failure.variation)}{ways}{seen}")
    if contrast is None:
        lines.append("   not tried again: the budget was over")
    if not failure.shown_fails:
        lines.append(f"   the trial shown did not fail: {failure.trial.outcome}")
    lines.append(f"   fix: {roots.SYMPTOMS[failure.root.symptom].fix} ({roots.link_of(failure.root)})")
    if command:
        lines.append(f"   again: {command}")
    if every:
        lines += [f"   also: {_way(each)}" for each in failure.others]
    return lines


def _way(tried: Tried) -> str:
    return one_line(f"{tried.outcome}: {causes.cause_text(tried)}", WIDTH)


def _source_of(place: str) -> str:
    """The line of the source at a place such as "shop.py:31"; empty if it cannot be read."""
    file, _, number = place.rpartition(":")
    line = linecache.getline(file, int(number)).strip() if number.isdecimal() else ""
    return f": {visible(line, SOURCE)}" if line else ""


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


def _untried(map_: Map, *, every: bool) -> list[str]:
    """The cells that were not tried, or of which nothing can be said: each, or the number of each kind."""
    found = [each for each in map_.untried if not each.why.startswith("not applicable")]
    lines = [f"not tried, or nothing can be said: {len(found)}"] if found else []
    if every:
        lines += [f"  {one_line(str(each), WIDTH)}" for each in found]
    else:
        kinds = Counter(f"{_NUMBER.sub('…', each.why)}{f'; {each.then}' if each.then else ''}" for each in found)
        lines += [f"  {number} × {one_line(why, WIDTH)}" for why, number in kinds.most_common(UNTRIED)]
        if len(kinds) > UNTRIED:
            lines.append(f"  … and {len(kinds) - UNTRIED} more kinds")
        lines.append("--all shows every way to fail and the whole map; --map map.html, a page")
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
    failure_of = {roots.key_of(each.root): n for n, each in enumerate(found.failures, 1)}
    rows = []
    for label in map_.columns:
        tries = [(map_.outcome(row, label), map_.cell(row, label)) for row in map_.rows]
        cells = [
            {
                "outcome": outcome,
                "tried": tried is not None,
                "why": "" if tried is None else one_line(tried.why, 300),
                "failure": failure_of.get(roots.key_of(tried.root)) if tried and tried.failed and tried.root else None,
            }
            for outcome, tried in tries
        ]
        rows.append({"fault": label, "cells": cells})
    outcomes = list(dict.fromkeys(tried.outcome for _, _, tried in map_.cells if tried is not None))
    failures = [
        {
            "n": n, "outcome": each.outcome, "cause": each.cause, "suffered": each.suffered,
            "places": [f"{place}{_source_of(place)}" for place in each.places],
            "fix": roots.SYMPTOMS[each.root.symptom].fix,
            "others": [*map(_way, each.others)],
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
