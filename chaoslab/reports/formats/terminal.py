"""A run's report as plain text in lines of at most 80 columns, but for commands: first the verdict, then what needs
attention, then the figures. `chaoslab summary` prints it, and a run ends with one screen of it."""

from collections.abc import Iterator, Sequence

from chaoslab.base.jsonable import cut as shortened
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._parts import EFFECTS, RECOVERY, TROUBLE
from chaoslab.reports.contents._table import ALL, Section, Table
from chaoslab.reports.contents.headline import verdict
from chaoslab.reports.page import WHY, ListBounds, section, wrapped

FILE = "report.txt"
FEW, SOME, FAULTS = 2, 8, 4
"""The most items of a list on one screen, and else; the most faults on one screen."""
MOST, LONGEST = 3, 250
"""The most places that hurt and ways to fail, and the most characters of an item."""


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    return {FILE: summary(contents, full=True)}


def summary(contents: Contents, *, full: bool = False) -> str:
    """The whole report. `full`: all rows and items, in place of the first of each, and the tables with details."""
    cut = ListBounds("" if full else f"{contents.program} summary {contents.quoted} --full")
    parts = [_section(part, cut, SOME) for part in contents.parts]
    facts = section("trials", lambda: [line for point in _points(contents) for line in wrapped(point)])
    return _text([*_attention(contents, cut, SOME), [*_run(contents), *facts], *parts])


def screen(contents: Contents) -> str:
    """At most 40 lines: what needs attention, and the faults that were met. All else is in the summary."""
    cut = ListBounds(f"{contents.program} summary {contents.quoted}")
    parts = {part.title: part for part in contents.parts}
    met = [line for line in parts[RECOVERY].lines[:2] for line in wrapped(line)] if EFFECTS in parts else []
    for table in parts[EFFECTS].tables[:1] if EFFECTS in parts else ():
        groups = [group[:1] for group in _groups(table)]
        met = [*cut.table(_header(table), groups[:FAULTS]), *cut.more(len(groups) - FAULTS), *met]
    met += _section(parts[TROUBLE], cut, FEW)[1:] if TROUBLE in parts else []
    facts = section("trials", lambda: [f"trials: {contents.outcomes_said}", *wrapped(" ".join(_points(contents)))])
    return _text([*_attention(contents, cut, FEW), met, [*_run(contents), *facts, f"all figures: {cut.whole}"]])


def _text(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _attention(contents: Contents, cut: ListBounds, most: int) -> Iterator[list[str]]:
    yield section("verdict", lambda: wrapped(f"{verdict(contents.report)[0]}."))
    yield section("harm", lambda: _harm(contents, cut, most))
    yield section("what hurt most", lambda: _listed("what hurt most:", contents.hurt_most, cut, min(most, MOST)))
    yield section("trials to look at", lambda: _ways(contents, cut, min(most, MOST)))
    yield section("change first", lambda: wrapped("".join(f"change first: {one.do}" for one in contents.advice[:1])))


def _harm(contents: Contents, cut: ListBounds, most: int) -> list[str]:
    done = sorted((one for harm in contents.harms for one in harm.examples), key=lambda one: -one.times)
    told = [f"{f'{one.times} times, first in ' if one.times > 1 else ''}{one.trial}: {one.text}" for one in done]
    return _listed(contents.harm_said, told, cut, most) if told else wrapped(contents.harm_said)


def _listed(head: str, found: Sequence[str], cut: ListBounds, most: int) -> list[str]:
    """The first of these under their heading; nothing if there are none."""
    lines = [line for each in cut.shown(found, most) for line in wrapped(each, indent="  ", longest=LONGEST)]
    return [*wrapped(head), *lines, *cut.more(len(found) - most)] if found else []


def _ways(contents: Contents, cut: ListBounds, most: int) -> list[str]:
    """Each way to fail, with the command that leads to its first trial, in one line that can be copied."""
    report = contents.report
    lines = ["trials to look at:"]
    for way in cut.shown(contents.ways, most):
        lines += wrapped(f"{way.head}: {shortened(way.why, WHY)}{way.named}", indent="  ")
        if report.started is not None or report.rulings is not None:
            lines.append(f"    {' '.join(contents.replay(way.trials[0]).split())}")
    return [*lines, *cut.more(len(contents.ways) - most)] if contents.ways else []


def _run(contents: Contents) -> list[str]:
    def facts() -> list[str]:
        told = [
            text if name == "end" else f"{name} {text}" for name, text in contents.facts.items() if name != "folder"
        ]
        return wrapped(" · ".join(told))

    return section("run", facts)


def _points(contents: Contents) -> list[str]:
    return [f"{point.said}." for point in contents.points]


def _section(part: Section, cut: ListBounds, most: int) -> list[str]:
    lines = [part.title.upper(), *(line for text in part.lines for line in wrapped(text))]
    for table in part.tables:
        if table.words:
            told = [f"{number} × {name}: {text}" for name, number, text in table.texts]
            lines += _listed(f"{table.caption}:", told, cut, most)
        elif not (table.detail and cut.whole):
            alone = not part.lines and not part.tables[1:]
            lines += [*([] if alone else wrapped(f"{table.caption}:")), *cut.table(_header(table), _groups(table))]
    return lines if lines[1:] else []


def _header(table: Table) -> list[str]:
    return [table.header[0], *table.header[table.names :]]


def _groups(table: Table) -> list[list[list[str]]]:
    """The rows with one name each: a row that stands for several is followed by these, as its parts."""
    if table.names == 1:
        return [[row] for row in table.texts]
    groups: list[list[list[str]]] = []
    whole = ""
    for first, second, *figures in table.texts:
        if second == ALL:
            whole = first
            groups.append([[first, *figures]])
        elif first == whole:
            groups[-1].append([f"  {(table.joint + second).lstrip(': ')}", *figures])
        else:  # an injection's name may hold its fault's
            known = second in first and table.joint != Table.joint
            groups.append([[first if known else f"{first}{table.joint}{second}", *figures]])
    return groups
