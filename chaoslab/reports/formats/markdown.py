"""A run's report as Markdown, for a pull request or a step summary of GitHub. Its length is bounded."""

from collections.abc import Iterable, Sequence

from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._matrix import CellState, MatrixCell
from chaoslab.reports.contents._rows import FailureWay, TrialRow
from chaoslab.reports.contents.headline import Tone
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.page import count, percents, share
from chaoslab.reports.text import one_line

FILE = "report.md"
LENGTH_MAX = 60_000
"""The most characters: a comment on GitHub has room for 65,536."""
ROWS_MAX, WAYS_MAX = 40, 20
"""The most faults in the matrix, and the most ways to fail."""
TEXT = 300
FIGURES = ("Reliability", "Recovery", "Retries and calls", "Cost")
"""The sections of which the sentences are shown."""
MARKUP = frozenset("`*_[]<>|#@&!\\~")
MARKS = {Tone.GOOD: "✅", Tone.BAD: "❌", Tone.OPEN: "❔"}


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    parts = [
        _verdict(contents), _harm(contents), _matrix(contents), _figures(contents), _advice(contents),
        _failures(contents),
    ]  # fmt: skip
    kept, left = "", [part for part in parts if part]
    for number, part in enumerate(left):
        if len(kept) + len(part) > LENGTH_MAX:
            kept += f"\n{count(len(left) - number, 'section')} left out: this report is too long.\n"
            break
        kept += f"\n{part}" if kept else part
    return {FILE: kept}


def code(text: str) -> str:
    """A foreign text as a code span, in which nothing is a link, a mention or a tag."""
    flat = one_line(text, TEXT).replace("|", "¦").strip()
    fence = "`"
    while fence in flat:
        fence += "`"
    edge = " " if "`" in flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}" if flat else ""


def _verdict(contents: Contents) -> str:
    lines = [f"## {MARKS[contents.headline.tone]} {contents.headline.said}", ""]
    lines += [f"- {point.said}" for point in contents.points]
    if worst := contents.worst:
        story = f"**{worst.trial} {worst.word}**: {code(worst.in_words)}"
        lines.append(f"- worst: {story} {code(contents.replay(worst.trial))}")
    lines += [f"- hurt most: {code(said)}" for said in contents.hurt_most[:1]]
    if contents.advice:
        lines.append(f"- change first: **{contents.advice[0].do}**")
    lines.append(f"- outcomes: {contents.outcomes_said}")
    lines.append("- " + " · ".join(f"{name} {code(text)}" for name, text in contents.facts.items()))
    lines += [f"- note: {code(note)}" for note in contents.report.notes]
    return "\n".join(lines) + "\n"


def _harm(contents: Contents) -> str:
    done = [harm for harm in contents.harms if harm.findings]
    if not done:
        return ""
    rows = [
        [harm.said, str(harm.findings), str(len(harm.trials)), code(shown.text), code(shown.trial)]
        for harm in done
        for shown in harm.examples[:1]
    ]
    return "### Harm\n\n" + _table(["something was", "times", "trials", "such as", "in"], rows)


def _matrix(contents: Contents) -> str:
    found = contents.matrix
    if not found.rows:
        return ""
    rows = [[code(fault), *map(_cell, cells)] for fault, cells in [*found.scheduled.items()][:ROWS_MAX]]
    more, never = len(found.scheduled) - len(rows), len(found.never)
    unscheduled = f"{count(never, 'fault')} {'was' if never == 1 else 'were'} planned and never scheduled."
    if not rows:
        return f"### Faults and targets\n\n{unscheduled}\n"
    legend = (
        "Trials that met the fault there and no other and did not end well, of those that could be judged, with 95 % "
        "interval; “with others”: trials that met other faults too. The word is the worst outcome. · not run; "
        f"– not planned{f'; {more} more faults' if more else ''}.{f' {unscheduled}' if never else ''}"
    )
    return "### Faults and targets\n\n" + _table(["fault", *map(code, found.targets)], rows) + f"\n{legend}\n"


def _cell(cell: MatrixCell) -> str:
    if cell.state is CellState.MET:
        figures = f"{cell.bad.count}/{cell.bad.total} ({percents(cell.bad.interval)})" if cell.bad else "none judged"
        others = f"<br>{cell.others} with others" if cell.others else ""
        if others and cell.at_worst and cell.at_worst is not cell.worst:
            others += f": {word(cell.at_worst)}"
        figures += " with others" if cell.mixed else ""
        return f"{figures}<br>{'failed it' if cell.refused else word(cell.worst) if cell.worst else ''}{others}"
    return {CellState.UNMET: "not witnessed", CellState.NOT_RUN: "·", CellState.NOT_PLANNED: "–"}[cell.state]


def _figures(contents: Contents) -> str:
    """The sentences on reliability, recovery, calls and costs."""
    lines = [line for part in contents.parts if part.title in FIGURES for line in part.lines]
    told = [f"- {line if MARKUP.isdisjoint(line) and '//' not in line else code(line)}" for line in lines]
    return "\n".join(["### Figures", "", *told]) + "\n" if told else ""


def _advice(contents: Contents) -> str:
    lines = [
        f"- {code(one.seen)} ({share(one.size)}) **{one.do}** See {code(contents.replay(one.trials[0]))}"
        for one in contents.advice
    ]
    return "\n".join(["### What to change", "", *lines]) + "\n" if lines else ""


def _failures(contents: Contents) -> str:
    told = contents.ways
    if not told:
        return ""
    lines = ["### Trials that did not end well, could not do all or prove nothing", ""]
    first = contents.rows_of(way.trials[0] for way in told[:WAYS_MAX])
    for way, row in zip(told, first, strict=False):
        lines += _way(contents, way, row)
    if left := sum(len(way.trials) for way in told[WAYS_MAX:]):
        more = f"{contents.program} show {contents.quoted} --failed"
        lines.append(f"… and {count(left, 'more trial')}: {code(more)}")
    return "\n".join(lines) + "\n"


def _way(contents: Contents, way: FailureWay, row: TrialRow) -> Iterable[str]:
    """The trials that ended alike; faults, evidence and the command are those of the first."""
    yield f"- **{way.head}**: {code(way.why)}{way.named}"
    whose = f"{row.trial} " if way.trials[1:] else ""
    if row.met:
        yield f"  - {whose}met {', '.join(code(f'{fault} on {target}') for fault, target in row.met)}"
    for one in row.evidence:
        if one.lines:
            lines = ", ".join(f"{line.file} line {line.line}" for line in one.lines)
            yield f"  - {one.kind}: {code(one.text)} ({lines})"
    yield f"  - {code(contents.replay(row.trial))}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
