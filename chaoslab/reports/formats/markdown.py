"""A run's report as Markdown, for a pull request or a step summary of GitHub. Its length is bounded."""

from collections.abc import Iterable, Sequence

from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import duration
from chaoslab.config import settings
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._failures import FailureWay, ways
from chaoslab.reports.contents._matrix import CellState, MatrixCell
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents.headline import Tone
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.contents.parts import rate_text
from chaoslab.reports.page import NAMED, count, percent, percents, share, usd
from chaoslab.reports.text import one_line

FILE = "report.md"
LENGTH_MAX = 60_000
"""The most characters: a comment on GitHub has room for 65,536."""
ROWS_MAX, WAYS_MAX = 40, 20
"""The most faults in the matrix, and the most ways to fail."""
TEXT = 300
ONLY_FAILED = ", as failed or not: nothing was stated about right answers"
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
    head = contents.headline
    lines = [f"## {MARKS[head.tone]} {head.said}", ""]
    how = "" if contents.report.judgeable else ONLY_FAILED
    lines.append(f"- **{head.judged}** of {count(head.trials, 'trial')} could be judged{how}")
    if head.correct:
        lines.append(f"- correct: **{rate_text(head.correct)}**")
    found = head.delivery
    if found is not None and not found.scheduled:
        lines.append("- no fault was scheduled")
    elif found is not None:
        armed = f"{found.armed} armed on the wire, " if found.armed else ""
        lines.append(
            f"- faults witnessed: **{found.witnessed}** of {found.scheduled} scheduled ({armed}{found.injected} "
            f"injected); {head.met} of {count(head.trials, 'trial')} met one"
        )
    if worst := contents.worst:
        story = f"**{worst.trial} {worst.word}**: {code(worst.in_words)}"
        lines.append(f"- worst: {story} {code(contents.replay(worst.trial))}")
    if contents.advice:
        lines.append(f"- change first: **{contents.advice[0].do}**")
    outcomes = contents.report.success.value.by_outcome
    told_of = [f"{rate.count} {word(name)}" for name in Outcome if (rate := outcomes.get(name))]
    lines.append(f"- outcomes: {', '.join(told_of) or 'none'}")
    lines += [
        f"- {said}" for said in (contents.report.grounds.value.said, contents.report.grounds.value.undecided) if said
    ]
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
    """Reliability, recovery, amplification and costs in one table."""
    report, rows = contents.report, []
    if (found := report.reliability.value) is not None:
        rows.append(
            ["ended well", f"{rate_text(found.available)}; at least {percent(found.proven)} with 95 % confidence"]
        )
        budgets = (f"{one.objective:.1%}: {percent(one.left)} left, burn rate {one.burn:.1f}" for one in found.budgets)
        rows.append(["error budgets", "; ".join(budgets)])
    if report.recovery.unknown:
        rows.append(["recovery", f"unknown: {report.recovery.unknown}"])
    elif (of := report.recovery.value.overall).n:
        mean, detect, repair = (
            "–" if s is None else duration(s, 2) for s in (of.mean_s, of.detected_s, of.since_notice_s)
        )
        rows.append(["recovered", f"{of.recovered} of {count(of.n, 'incident')}"])
        rows.append(["MTTR", f"{mean} (by retry or fallback: {detect} to detect and {repair} to repair)"])
    amplified = () if report.amplification.unknown else report.amplification.value
    if more := [one for one in amplified if one.attempts > one.requests]:
        most = max(more, key=lambda one: one.factor)
        rows.append(["attempts for each request", f"{most.factor:.2f} at {code(most.target)}, {most.most} at most"])
    if report.knows_usage and (spent := report.usage.value):
        cost = "price not known" if spent.cost_usd is None else usd(spent.cost_usd)
        rows.append(["use of the model", f"{spent.prompt_tokens + spent.completion_tokens:,} tokens, {cost}"])
    return "### Figures\n\n" + _table(["figure", "value"], rows) if rows else ""


def _advice(contents: Contents) -> str:
    lines = [
        f"- {code(one.seen)} ({share(one.size)}) **{one.do}** See {code(contents.replay(one.trials[0]))}"
        for one in contents.advice
    ]
    return "\n".join(["### What to change", "", *lines]) + "\n" if lines else ""


def _failures(contents: Contents) -> str:
    rows = {
        row.trial: row
        for row in contents.all_rows
        if row.standing is not Standing.WELL or (row.harm and row.ruling is None)
    }
    if not rows:
        return ""
    told = ways((*_ended(row), row.trial) for row in rows.values())
    lines = ["### Trials that did not end well or could not be judged", ""]
    for way in told[:WAYS_MAX]:
        lines += _way(contents, way, rows[way.trials[0]])
    if left := sum(len(way.trials) for way in told[WAYS_MAX:]):
        more = f"{settings.program()} show {contents.quoted} --failed"
        lines.append(f"… and {count(left, 'more trial')}: {code(more)}")
    return "\n".join(lines) + "\n"


def _ended(row: TrialRow) -> tuple[str, str]:
    """The outcome and its reason, or those of the scenario that ruled on it."""
    if row.ruling is not None and row.ruling.reasons:
        return row.ruling.state, "; ".join(row.ruling.reasons)
    return row.word, row.why


def _way(contents: Contents, way: FailureWay, row: TrialRow) -> Iterable[str]:
    """The trials that ended alike; faults, evidence and the command are those of the first."""
    named = f" ({', '.join(way.trials[:NAMED])}{' …' if way.trials[NAMED:] else ''})" if way.trials[1:] else ""
    yield f"- **{way.head}**: {code(way.why)}{named}"
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
