"""A run's report as JUnit XML for CI systems: a suite per run and a case per trial.

A trial that did not end well is a failure, one that its lab spoilt or cut off an error. One of which nothing was
stated,
or whose verdict rests on words, is skipped, so a run without statements passes nothing in silence. A scenario that
ran them is a case of its own. `time` is real seconds: a log in virtual time does not know them, and has virtual seconds
as a property.
"""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents.headline import Tone

FILE = "report.xml"
# Open trials are errors: CI must not pass what nobody could judge.
_KINDS = {Standing.BAD: "failure", Standing.OPEN: "error"}


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    shown_rows = {row.trial: row for row in contents.rows}
    rows = [shown_rows[trial] for trial in contents.report.trials if trial in shown_rows]
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", name=f"chaoslab {contents.name}")
    properties = SubElement(suite, "properties")
    for name, text in {
        **contents.facts,
        "verdict": contents.headline.said,
        "basis": contents.report.grounds.value.said,
    }.items():
        SubElement(properties, "property", name=name, value=text)
    kinds = [_add_case(suite, contents, row) for row in rows]
    # One case for all that are not shown, so that their number is not lost.
    if contents.more:
        case = SubElement(suite, "testcase", classname=contents.name, name="all other trials")
        SubElement(case, "skipped", message=contents.more)
        kinds.append("skipped")
    took_s = sum(contents.report.figures.value.took_s)
    if not contents.real_time:
        SubElement(properties, "property", name="virtual_seconds", value=f"{took_s:.6f}")
    if contents.report.rulings is not None:
        # adds the scenario as a case; returns the kind of its result, empty if it holds
        rulings = contents.report.rulings
        case = SubElement(suite, "testcase", classname=contents.name, name=f"scenario {rulings.scenario}")
        # A scenario that proves nothing is an error, and so red.
        kind = {Tone.GOOD: "", Tone.BAD: "failure", Tone.OPEN: "error"}[contents.headline.tone]
        if kind:
            result_element = SubElement(
                case, kind, type=str(rulings.state or "unfinished"), message=contents.headline.said
            )
            result_element.text = "\n".join(["", *rulings.why, *(f"asked for: {text}" for text in rulings.asked), ""])
        kinds.append(kind)
    return {FILE: render_junit(suites, suite, kinds, time_s=took_s if contents.real_time else None)}


def render_junit(suites: Element, suite: Element, kinds: Sequence[str], *, time_s: float | None) -> str:
    """The file's text, with the numbers of its cases. `kinds`: the result of each, empty if it passed. `time_s`: None
    if the real time is not known."""
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
    if time_s is not None:
        suite.set("time", f"{time_s:.6f}")
    indent(suites)
    # tostring with unicode writes no declaration.
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: Element, contents: Contents, row: TrialRow) -> str:
    """Adds the trial's case; returns the kind of its result, empty if it passed."""
    case = SubElement(suite, "testcase", classname=contents.name, name=f"{row.trial} {row.prompt}")
    if contents.real_time:
        case.set("time", f"{row.seconds or 0.0:.6f}")
    kind = _KINDS.get(row.standing, "")
    if kind:
        result_element = SubElement(case, kind, type=str(row.outcome), message=f"{row.word}: {row.in_words}")
        result_element.text = "\n".join(
            ["", *_describe_trial(row), f"answer: {row.answer or 'none'}", contents.replay(row.trial), ""]
        )
    elif row.outcome is Outcome.DEGRADED:
        SubElement(case, "system-out").text = f"{row.word}: {row.why}"
    return kind


def _describe_trial(row: TrialRow) -> list[str]:
    """The evidence, and the faults that the trial met."""
    evidence_lines = [
        f"{finding.kind}: {finding.text}" + "".join(f" [{line.file} line {line.line}]" for line in finding.lines)
        for finding in row.evidence
    ]
    return evidence_lines + [f"met {fault} on {target}" for fault, target in row.met]
