"""A run's report as Markdown, for a pull request or a step summary of GitHub. Its length is bounded."""

from collections.abc import Iterable, Sequence

from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._matrix import LEGEND
from chaoslab.reports.contents._rows import FailureWay, TrialRow
from chaoslab.reports.contents.headline import Tone
from chaoslab.reports.page import format_count, format_rate_in_percent
from chaoslab.reports.text import make_one_line

FILE = "report.md"
LENGTH_MAX = 60_000
"""The most characters: a comment on GitHub has room for 65,536."""
ROWS_MAX, WAYS_MAX = 40, 20
"""The most faults in the matrix, and the most ways to fail."""
TEXT = 300
FIGURES = ("Reliability", "Recovery", "Retries and calls", "Cost")
"""The sections of which the sentences are shown."""
# What Markdown or GitHub reads as more than text.
MARKUP = frozenset("`*_[]<>|#@&!\\~")
MARKS = {Tone.GOOD: "✅", Tone.BAD: "❌", Tone.OPEN: "❔"}


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    all_sections = [
        _render_verdict(contents),
        _render_harm(contents),
        _render_fault_matrix(contents),
        _render_key_figures(contents),
        _render_advice(contents),
        _render_failures(contents),
    ]
    text, sections = "", [section for section in all_sections if section]
    for number, section in enumerate(sections):
        # Whole sections alone: a table that is cut is none.
        if len(text) + len(section) > LENGTH_MAX:
            text += f"\n{format_count(len(sections) - number, 'section')} left out: this report is too long.\n"
            break
        text += f"\n{section}" if text else section
    return {FILE: text}


def format_code(text: str) -> str:
    """A foreign text as a code span, in which nothing is a link, a mention or a tag."""
    # Within a table a | ends the cell, even in a code span.
    flat = make_one_line(text, TEXT).replace("|", "¦").strip()
    fence = "`"
    # A fence must be longer than any run of backticks in it.
    while fence in flat:
        fence += "`"
    # A space between a backtick and the fence, which Markdown drops.
    edge = " " if "`" in flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}" if flat else ""


def _render_verdict(contents: Contents) -> str:
    lines = [f"## {MARKS[contents.headline.tone]} {contents.headline.said}", ""]
    lines += [f"- {point.said}" for point in contents.headline_figures]
    if worst := contents.worst_row:
        story = f"**{worst.trial} {worst.outcome_text}**: {format_code(worst.reason_text)}"
        lines.append(f"- worst: {story} {format_code(contents.build_replay_command(worst.trial))}")
    lines += [f"- hurt most: {format_code(harm_text)}" for harm_text in contents.most_harmful_faults[:1]]
    if contents.advice:
        lines.append(f"- change first: **{contents.advice[0].do}**")
    lines.append(f"- outcomes: {contents.outcome_counts_text}")
    lines.append("- " + " · ".join(f"{name} {format_code(text)}" for name, text in contents.run_facts.items()))
    lines += [f"- note: {format_code(note)}" for note in contents.report.notes]
    return "\n".join(lines) + "\n"


def _render_harm(contents: Contents) -> str:
    found_harms = [harm for harm in contents.harms if harm.findings]
    if not found_harms:
        return ""
    rows = [
        [
            harm.kind_text,
            str(harm.findings),
            str(len(harm.trials)),
            format_code(example.text),
            format_code(example.trial),
        ]
        for harm in found_harms
        for example in harm.examples[:1]
    ]
    return "### Harm\n\n" + _render_table(["something was", "times", "trials", "such as", "in"], rows)


def _render_fault_matrix(contents: Contents) -> str:
    fault_matrix = contents.matrix
    if not fault_matrix.rows:
        return ""
    rows = [
        [format_code(fault), *("<br>".join(cell.text_lines) for cell in cells)]
        for fault, cells in [*fault_matrix.scheduled_rows.items()][:ROWS_MAX]
    ]
    hidden_count, never = len(fault_matrix.scheduled_rows) - len(rows), ", ".join(fault_matrix.never_scheduled_faults)
    unscheduled = f"Planned and never scheduled: {format_code(never)}."
    if not rows:
        return f"### Faults and targets\n\n{unscheduled}\n"
    legend = f"{LEGEND}{f' {hidden_count} more faults.' if hidden_count else ''}"
    legend += f" {unscheduled}" if never else ""
    return (
        "### Faults and targets\n\n"
        + _render_table(["fault", *map(format_code, fault_matrix.targets)], rows)
        + f"\n{legend}\n"
    )


def _render_key_figures(contents: Contents) -> str:
    """The sentences on reliability, recovery, calls and costs."""
    lines = [
        line
        for report_section in contents.report_sections
        if report_section.title in FIGURES
        for line in report_section.key_figure_sentences
    ]
    # A sentence with markup in it holds a foreign name.
    bullets = [f"- {line if MARKUP.isdisjoint(line) and '//' not in line else format_code(line)}" for line in lines]
    return "\n".join(["### Figures", "", *bullets]) + "\n" if bullets else ""


def _render_advice(contents: Contents) -> str:
    lines = [
        f"- {format_code(item.seen)} ({format_rate_in_percent(item.size)}) **{item.do}** See "
        f"{format_code(contents.build_replay_command(item.trials[0]))}"
        for item in contents.advice
    ]
    return "\n".join(["### What to change", "", *lines]) + "\n" if lines else ""


def _render_failures(contents: Contents) -> str:
    failure_ways = contents.failure_ways
    if not failure_ways:
        return ""
    lines = ["### Trials that did not end well, could not do all or prove nothing", ""]
    first = contents.build_rows_for(failure_way.trials[0] for failure_way in failure_ways[:WAYS_MAX])
    # not strict: the ways beyond WAYS_MAX have no row.
    for failure_way, row in zip(failure_ways, first, strict=False):
        lines += _render_failure_way(contents, failure_way, row)
    if hidden_count := sum(len(failure_way.trials) for failure_way in failure_ways[WAYS_MAX:]):
        show_command = f"{contents.program} show {contents.shell_quoted_run} --failed"
        lines.append(f"… and {format_count(hidden_count, 'more trial')}: {format_code(show_command)}")
    return "\n".join(lines) + "\n"


def _render_failure_way(contents: Contents, failure_way: FailureWay, row: TrialRow) -> Iterable[str]:
    """The trials that ended alike; faults, evidence and the command are those of the first."""
    yield f"- **{failure_way.heading}**: {format_code(failure_way.why)}{failure_way.examples_text}"
    trial_prefix = f"{row.trial} " if failure_way.trials[1:] else ""
    if row.met:
        yield f"  - {trial_prefix}met {', '.join(format_code(f'{fault} on {target}') for fault, target in row.met)}"
    for finding in row.evidence:
        if finding.lines:
            lines = ", ".join(f"{line.file} line {line.line}" for line in finding.lines)
            yield f"  - {finding.kind}: {format_code(finding.text)} ({lines})"
    yield f"  - {format_code(contents.build_replay_command(row.trial))}"


def _render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
