"""A run's report as JUnit XML for CI systems: a suite per run and a case per trial.

A trial that did not end well is a failure, one that its lab spoilt or cut off an error. One of which nothing was stated
is skipped, so a run without statements passes nothing in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.outcomes import UNSTATED, is_bad, is_judged, word
from chaoslab.reports.contents.rows import Row

FILE = "report.xml"


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    begun = {trial: number for number, trial in enumerate(contents.report.trials)}
    rows = sorted(contents.rows, key=lambda row: begun[row.trial])
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", name=f"chaoslab {contents.name}")
    properties = SubElement(suite, "properties")
    for name, text in {**contents.facts, "verdict": contents.headline.said}.items():
        SubElement(properties, "property", name=name, value=text)
    kinds = [_case(suite, contents, row) for row in rows]
    return {FILE: finished(suites, suite, kinds, time_s=sum(row.seconds or 0.0 for row in rows))}


def finished(suites: Element, suite: Element, kinds: Sequence[str], *, time_s: float) -> str:
    """The file's text, with the numbers of its cases. `kinds`: the result of each, empty if it passed."""
    numbers = {
        "tests": len(kinds),
        "failures": kinds.count("failure"),
        "errors": kinds.count("error"),
        "skipped": kinds.count("skipped"),
    }
    for name, number in numbers.items():
        suite.set(name, str(number))
        if name != "skipped":
            suites.set(name, str(number))
    suite.set("time", f"{time_s:.6f}")
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, contents: Contents, row: Row) -> str:
    """Adds the trial's case; returns the kind of its result, empty if it passed."""
    case = SubElement(
        suite, "testcase", classname=contents.name, name=f"{row.trial} {row.prompt}", time=f"{row.seconds or 0.0:.6f}"
    )
    judged = is_judged(row.outcome, judgeable=contents.report.judgeable)
    if row.outcome is UNSTATED:
        SubElement(case, "skipped", message=row.why)
        return "skipped"
    kind = "error" if not judged else "failure" if is_bad(row.outcome, judgeable=contents.report.judgeable) else ""
    if kind:
        found = SubElement(case, kind, type=str(row.outcome), message=f"{word(row.outcome)}: {row.why}")
        found.text = "\n".join(["", *_said(row), f"answer: {row.answer or 'none'}", contents.replay(row.trial), ""])
    return kind


def _said(row: Row) -> list[str]:
    """The evidence, and the faults that the trial met."""
    shown = [
        f"{one.kind}: {one.text}" + "".join(f" [{line.file} line {line.line}]" for line in one.lines)
        for one in row.evidence
    ]
    return shown + [f"met {fault} on {target}" for fault, target in row.met]
