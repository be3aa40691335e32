"""A run's report as plain text in lines of at most 80 columns, but for commands: first the verdict, then what needs
attention, then the figures. `chaoslab summary` prints it, and a run ends with one screen of it."""

from collections.abc import Iterator, Sequence

from chaoslab.base.jsonable import cut_text
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._parts import EFFECTS, RECOVERY, TROUBLE
from chaoslab.reports.contents._table import ALL, Section, Table
from chaoslab.reports.contents.headline import describe_verdict
from chaoslab.reports.page import WHY, ListBounds, render_or_explain, wrap_text

FILE = "report.txt"
FEW, SOME, FAULTS = 2, 8, 4
"""The most items of a list on one screen, and else; the most faults on one screen."""
MOST, LONGEST = 3, 250
"""The most places that hurt and ways to fail, and the most characters of an item."""


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    return {FILE: render_summary(contents, full=True)}


def render_summary(contents: Contents, *, full: bool = False) -> str:
    """The whole report. `full`: all rows and items, in place of the first of each, and the tables with details."""
    bounds = ListBounds("" if full else f"{contents.program} summary {contents.shell_quoted_run} --full")
    sections_lines = [_render_section(report_section, bounds, SOME) for report_section in contents.report_sections]
    trial_lines = render_or_explain(
        "trials", lambda: [line for point in _headline_lines(contents) for line in wrap_text(point)]
    )
    return _join_sections(
        [
            *_render_attention_sections(contents, bounds, SOME),
            [*_render_run_facts(contents), *trial_lines],
            *sections_lines,
        ]
    )


def render_short_summary(contents: Contents) -> str:
    """At most 40 lines: what needs attention, and the faults that were met. All else is in the summary."""
    bounds = ListBounds(f"{contents.program} summary {contents.shell_quoted_run}")
    sections = {report_section.title: report_section for report_section in contents.report_sections}
    fault_lines = (
        [line for line in sections[RECOVERY].key_figure_sentences[:2] for line in wrap_text(line)]
        if EFFECTS in sections
        else []
    )
    for table in sections[EFFECTS].tables[:1] if EFFECTS in sections else ():
        groups = [group[:1] for group in _group_rows_by_name(table)]
        fault_lines = [
            *bounds.render_table(_table_header(table), groups[:FAULTS]),
            *bounds.render_more_line(len(groups) - FAULTS),
            *fault_lines,
        ]
    fault_lines += _render_section(sections[TROUBLE], bounds, FEW)[1:] if TROUBLE in sections else []
    trial_lines = render_or_explain(
        "trials", lambda: [f"trials: {contents.outcome_counts_text}", *wrap_text(" ".join(_headline_lines(contents)))]
    )
    return _join_sections(
        [
            *_render_attention_sections(contents, bounds, FEW),
            fault_lines,
            [*_render_run_facts(contents), *trial_lines, f"all figures: {bounds.whole}"],
        ]
    )


def _join_sections(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _render_attention_sections(contents: Contents, bounds: ListBounds, items_max: int) -> Iterator[list[str]]:
    yield render_or_explain("verdict", lambda: wrap_text(f"{describe_verdict(contents.report)[0]}."))
    yield render_or_explain("harm", lambda: _render_harm(contents, bounds, items_max))
    yield render_or_explain(
        "what hurt most",
        lambda: _render_list("what hurt most:", contents.most_harmful_faults, bounds, min(items_max, MOST)),
    )
    yield render_or_explain("trials to look at", lambda: _render_failures(contents, bounds, min(items_max, MOST)))
    yield render_or_explain(
        "change first",
        # Advice on a run that ended well is in the report: here it would read as if something were wrong.
        lambda: wrap_text("".join(f"change first: {item.do}" for item in contents.advice[:1] if contents.failure_ways)),
    )


def _render_harm(contents: Contents, bounds: ListBounds, items_max: int) -> list[str]:
    examples = sorted(
        (example for harm in contents.harms for example in harm.examples), key=lambda example: -example.times
    )
    lines = [
        f"{f'{example.times} times, first in ' if example.times > 1 else ''}{example.trial}: {example.text}"
        for example in examples
    ]
    return (
        _render_list(contents.harm_sentence, lines, bounds, items_max) if lines else wrap_text(contents.harm_sentence)
    )


def _render_list(head: str, items: Sequence[str], bounds: ListBounds, items_max: int) -> list[str]:
    """The first of these under their heading; nothing if there are none."""
    lines = [
        line for item in bounds.take_first(items, items_max) for line in wrap_text(item, indent="  ", longest=LONGEST)
    ]
    return [*wrap_text(head), *lines, *bounds.render_more_line(len(items) - items_max)] if items else []


def _render_failures(contents: Contents, bounds: ListBounds, items_max: int) -> list[str]:
    """Each way to fail, with the command that leads to its first trial, in one line that can be copied."""
    report = contents.report
    lines = ["trials to look at:"]
    for failure_way in bounds.take_first(contents.failure_ways, items_max):
        lines += wrap_text(
            f"{failure_way.heading}: {cut_text(failure_way.why, WHY)}{failure_way.examples_text}", indent="  "
        )
        if report.started is not None or report.rulings is not None:
            # In one line, however long: a command that is wrapped cannot be copied.
            lines.append(f"    {' '.join(contents.build_replay_command(failure_way.trials[0]).split())}")
    return [*lines, *bounds.render_more_line(len(contents.failure_ways) - items_max)] if contents.failure_ways else []


def _render_run_facts(contents: Contents) -> list[str]:
    def render_facts() -> list[str]:
        texts = [
            text if name == "end" else f"{name} {text}" for name, text in contents.run_facts.items() if name != "folder"
        ]
        return wrap_text(" · ".join(texts))

    return render_or_explain("run", render_facts)


def _headline_lines(contents: Contents) -> list[str]:
    return [f"{point.said}." for point in contents.headline_figures]


def _render_section(report_section: Section, bounds: ListBounds, items_max: int) -> list[str]:
    lines = [
        report_section.title.upper(),
        *(line for text in report_section.key_figure_sentences for line in wrap_text(text)),
    ]
    for table in report_section.tables:
        if table.words:
            row_texts = [f"{number} × {name}: {text}" for name, number, text in table.cell_texts]
            lines += _render_list(f"{table.caption}:", row_texts, bounds, items_max)
        # Details only where all are shown.
        elif not (table.detail and bounds.whole):
            is_only_table = not report_section.key_figure_sentences and not report_section.tables[1:]
            lines += [
                *([] if is_only_table else wrap_text(f"{table.caption}:")),
                *bounds.render_table(_table_header(table), _group_rows_by_name(table)),
            ]
    # A heading alone says nothing.
    return lines if lines[1:] else []


def _table_header(table: Table) -> list[str]:
    return [table.header[0], *table.header[table.names :]]


def _group_rows_by_name(table: Table) -> list[list[list[str]]]:
    """The rows with one name each: a row that stands for several is followed by these, as its parts."""
    if table.names == 1:
        return [[row] for row in table.cell_texts]
    groups: list[list[list[str]]] = []
    group_name = ""
    for first, second, *figures in table.cell_texts:
        if second == ALL:
            group_name = first
            groups.append([[first, *figures]])
        elif first == group_name:
            groups[-1].append([f"  {(table.joint + second).lstrip(': ')}", *figures])
        else:  # an injection's name may hold its fault's
            is_named_alike = second in first and table.joint != Table.joint
            groups.append([[first if is_named_alike else f"{first}{table.joint}{second}", *figures]])
    return groups
