"""An exploration as text, as a page and as data."""

import json
import linecache
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

from chaoslab.reports.page import format_count
from chaoslab.reports.text import escape_and_shorten, make_one_line
from chaoslab.search import causes, roots
from chaoslab.search.map import GOES_ON, INTERRUPTED, Map, MapRow
from chaoslab.search.roots import RANK
from chaoslab.search.variation import TriedVariation

WIDTH = 100
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
MAP = "map.html"
"""The page in the folder of an exploration's run."""
ENDINGS = (".html", ".json")
"""The files that a map is written as: a page, and data."""
UNTRIED, PLACES, SOURCE = 5, 4, 80
"""The most kinds of untried cells, and the most further lines of one cause, that the terminal shows; the most
characters of a line."""
# Two reasons that differ only in a path, a number or a quoted name are of one kind. The path first: a folder that is
# made for one run has digits in its name.
_NUMBER = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![\w.])(?:/[\w.~+-]+){2,}/?|\d[\d.,:]*")


def render_exploration(exploration: Any, *, every: bool = False) -> str:
    """The findings of an exploration, for the terminal. `every`: each way to fail too, and the whole map."""
    map_, failures = exploration.map, exploration.failures
    ended = f"{exploration.ended}: " if exploration.ended and exploration.ended != GOES_ON else ""
    effort = f"in {format_count(len(exploration.trials), 'trial')}, {exploration.seconds:.1f} s"
    headline = f"no failure was {'confirmed' if exploration.unconfirmed else 'found'}"
    if failures:
        headline = format_count(len(failures), "root cause")
    lines = [f"{ended}{headline} {effort}", ""]
    for n, failure in enumerate(failures, 1):
        lines += [*_render_cause(n, failure, exploration.commands.get(failure.cause, ""), every=every), ""]
    lines += [make_one_line(str(item), WIDTH) for item in exploration.by_itself]
    if exploration.unconfirmed:
        lines.append(f"failed, perhaps by chance: {len(exploration.unconfirmed)}")
        lines += [f"  {make_one_line(str(item), WIDTH)}" for item in exploration.unconfirmed[:UNTRIED]]
    if exploration.unnoticeable:
        unnoticeable_text = f"{format_count(len(exploration.unnoticeable), 'fault')} that no agent can notice"
        lines.append(f"{unnoticeable_text} changed an effect or the answer")
        # Only counted: no agent can notice these, so they are no failures of it.
        lines += [f"  {_render_failure_way(item)}" for item in exploration.unnoticeable if every]
    lines += [
        f"map: {map_.render_map_text().removeprefix(ended)}",
        f"in order: {_describe_coverage_by_fault_count(map_)}",
    ]
    if every:
        lines += [
            f"trials: {', '.join(f'{number} by {name}' for name, number in map_.trial_counts_by_strategy.items())}",
            "",
        ]
        for row in map_.rows:
            wrapped = textwrap.wrap(
                _render_row_outcomes(map_, row), WIDTH, initial_indent="    ", subsequent_indent="    "
            )
            lines += [f"  {make_one_line(str(row), WIDTH)}", *wrapped]
    return "\n".join([*lines, *_render_untried_cells(map_, every=every)])


def _render_cause(n: int, failure: Any, command: str, *, every: bool) -> list[str]:
    """A root cause, for the terminal."""
    first, *other_places = failure.places or [""]
    lines = [f"{n}. {failure.outcome.upper()}: {make_one_line(failure.suffered, WIDTH + 60)}"]
    # Without a colon it is no line of a file.
    if ":" in first:
        also_text = f"; also {', '.join(other_places[:PLACES])}" if other_places else ""
        also_text += f" and {len(other_places) - PLACES} more" if len(other_places) > PLACES else ""
        lines.append(f"   at: {make_one_line(f'{first}{_read_source_line(first)}{also_text}', 2 * WIDTH)}")
    other_ways = f", and {format_count(len(failure.others), 'more way')}" if failure.others else ""
    contrast = failure.contrast
    contrast_text = f" ({contrast})" if contrast is not None and contrast.trials > 1 else ""
    lines.append(f"   cause: {causes.describe_variation(failure.variation)}{other_ways}{contrast_text}")
    if contrast is None:
        lines.append("   not tried again: the budget was over")
    if not failure.shown_fails:
        lines.append(f"   the trial shown did not fail: {failure.trial.outcome}")
    lines.append(f"   fix: {roots.SYMPTOMS[failure.root.symptom].fix} ({roots.build_fix_url(failure.root)})")
    if command:
        lines.append(f"   rerun: {command}")
    if every:
        lines += [f"   also: {_render_failure_way(way)}" for way in failure.others]
    return lines


def _render_failure_way(tried: TriedVariation) -> str:
    return make_one_line(f"{tried.outcome}: {causes.describe_cause(tried)}", WIDTH)


def _read_source_line(location: str) -> str:
    """The line of the source at a place such as "shop.py:31"; empty if it cannot be read."""
    file, _, number = location.rpartition(":")
    line = linecache.getline(file, int(number)).strip() if number.isdecimal() else ""
    return f": {escape_and_shorten(line, SOURCE)}" if line else ""


def _describe_coverage_by_fault_count(map_: Map) -> str:
    """The part of each order of faults that was tried, in words."""
    return f"{', '.join(map(str, map_.coverage_by_fault_count))}; {map_.many_faults_text}"


def colorize_text(text_: str) -> str:
    """The text with colours for a terminal: what failed is red, what ended well is green."""
    # The bad outcomes are in capitals; what begins a line with a number is a cause.
    text_ = re.sub(r"\b\d+ [A-Z_]{4,}\b|(?m:^\d+\. \w+)", rf"{RED}\g<0>{PLAIN}", text_)
    return re.sub(r"\b\d+ (correct|degraded)\b", rf"{GREEN}\g<0>{PLAIN}", text_)


def _render_row_outcomes(map_: Map, row: MapRow) -> str:
    """The outcomes of a row, the good ones counted, the bad ones with their faults, worst first."""
    good, bad = dict[str, int](), dict[str, list[str]]()
    for _, _, tried in map_.iterate_tried_cells(row):
        if tried.failed:
            bad.setdefault(tried.outcome, []).append(tried.variation.injections[-1].choices[0].fault)
        else:
            name = tried.outcome
            good[name] = good.get(name, 0) + 1
    clauses = [f"{number} {name}" for name, number in good.items()]
    for name in sorted(bad, key=lambda name: RANK.get(name, len(RANK))):
        bad_label = name.upper() if name in RANK else f"{name}, and yet FAILED"
        clauses.append(f"{len(bad[name])} {bad_label}: {', '.join(dict.fromkeys(bad[name]))}")
    return " · ".join(clauses)


def _render_untried_cells(map_: Map, *, every: bool) -> list[str]:
    """The cells that were not tried, or of which nothing can be said: each, or the number of each kind."""
    # A fault that does not fit a call is no gap.
    untried = [cell for cell in map_.untried if not cell.why.startswith("not applicable")]
    lines = [f"not tried, or without a result: {len(untried)}"] if untried else []
    if every:
        lines += [f"  {make_one_line(str(cell), WIDTH)}" for cell in untried]
    else:
        kinds = Counter(f"{_NUMBER.sub('…', cell.why)}{f'; {cell.then}' if cell.then else ''}" for cell in untried)
        lines += [f"  {number} × {make_one_line(reason, WIDTH)}" for reason, number in kinds.most_common(UNTRIED)]
        if len(kinds) > UNTRIED:
            lines.append(f"  … and {len(kinds) - UNTRIED} more kinds")
        lines.append("--all shows every way to fail and the whole map; --map map.html, a page")
    return lines


def save_exploration_map(exploration: Any, path: Path) -> None:
    """Writes the map as a page (.html) or as data (.json). Raises OSError: it cannot be written."""
    # Loaded here: the terminal's text needs neither Jinja nor the formats.
    from chaoslab.reports.formats import write_file

    if path.suffix == ".json":
        write_file(json.dumps(exploration.map.to_json_data(), indent=2, ensure_ascii=False) + "\n", path)
    else:
        write_file(_render_page(exploration), path)


def _render_page(exploration: Any) -> str:
    from chaoslab.analysis.verdict.table import Outcome
    from chaoslab.reports.contents.outcomes import outcome_glyph
    from chaoslab.reports.formats.html import render_page

    map_: Map = exploration.map
    failure_of = {roots.make_root_key(item.root): n for n, item in enumerate(exploration.failures, 1)}
    rows = []
    for label in map_.columns:
        tries = [(map_.outcome(row, label), map_.cell(row, label)) for row in map_.rows]
        cells = [
            {
                "outcome": outcome,
                "tried": tried is not None,
                "why": "" if tried is None else make_one_line(tried.why, 300),
                "failure": failure_of.get(roots.make_root_key(tried.root))
                if tried and tried.failed and tried.root
                else None,
            }
            for outcome, tried in tries
        ]
        rows.append({"fault": label, "cells": cells})
    outcomes = list(dict.fromkeys(tried.outcome for _, _, tried in map_.cells if tried is not None))
    failures = [
        {
            "n": n, "outcome": item.outcome, "cause": item.cause, "suffered": item.suffered,
            "places": [f"{place}{_read_source_line(place)}" for place in item.places],
            "fix": roots.SYMPTOMS[item.root.symptom].fix,
            "others": [*map(_render_failure_way, item.others)],
            "again": exploration.commands.get(item.cause, ""), "story": item.story(),
            "contrast": "" if item.contrast is None else str(item.contrast),
        }
        for n, item in enumerate(exploration.failures, 1)
    ]  # fmt: skip
    return render_page(
        "explored.html",
        said=map_.render_map_text(),
        calls=[str(row) for row in map_.rows],
        rows=rows,
        legend=outcomes,
        glyphs={str(item): outcome_glyph(item) for item in Outcome},
        failures=failures,
        orders=_describe_coverage_by_fault_count(map_),
        more=[*map(str, exploration.by_itself), *(f"perhaps by chance: {item}" for item in exploration.unconfirmed)],
        goes_on=exploration.ended == GOES_ON,
        is_interrupted=exploration.ended.startswith(INTERRUPTED),
        untried=[vars(item) for item in map_.untried],
    )
