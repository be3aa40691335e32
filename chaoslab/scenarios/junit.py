"""Results as JUnit XML: a suite a scenario, a case a variant, with its trials as properties."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoslab.record.rulings import RulingState
from chaoslab.reports.formats import write_file
from chaoslab.scenarios.running import Result
from chaoslab.scenarios.tell import render_result

KINDS = {RulingState.FAILED: "failure", RulingState.INVALID: "error"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML has no place for."""


@dataclass(frozen=True)
class Case:
    """One case. `place`: what groups it with others in one suite; `suite`: the suite's name. `told`: its message and
    what follows, if it has not passed."""

    place: tuple[str, str]
    suite: str
    classname: str
    name: str
    took_s: float
    state: RulingState
    told: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)


def render_document(cases: Sequence[Case]) -> str:
    """The cases as the text of a file. What proves nothing is an error, what does not hold a failure."""
    suites = Element("testsuites")
    for group in dict.fromkeys(case.place for case in cases):
        group_cases = [case for case in cases if case.place == group]
        suite = SubElement(
            suites, "testsuite", name=_replace_invalid_chars(group_cases[0].suite), tests=str(len(group_cases))
        )
        for kind, state in (("failures", RulingState.FAILED), ("errors", RulingState.INVALID)):
            suite.set(kind, str(sum(case.state is state for case in group_cases)))
        for case in group_cases:
            _add_case(suite, case)
        suite.set("time", f"{sum(case.took_s for case in group_cases):.6f}")
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def render_junit(results: Sequence[Result], options: Sequence[str] = ()) -> str:
    """The results of scenarios as the text of a file. `options`: as in `told`."""
    return render_document([_build_case(result, options) for result in results])


def write_junit(results: Sequence[Result], path: Path, options: Sequence[str] = ()) -> None:
    """Writes the file. Raises OSError: it cannot be written."""
    write_file(render_junit(results, options), path)


def _build_case(result: Result, options: Sequence[str]) -> Case:
    scenario = result.scenario
    counts = {str(state): result.count_trials_in_state(state) for state in RulingState}
    return Case(
        (scenario.file, scenario.spec.name),
        scenario.spec.name,
        scenario.file or scenario.spec.name,
        scenario.variant or scenario.spec.name,
        result.took_s,
        result.state,
        render_result(result, given=options) if result.state in KINDS else "",
        {
            "trials": len(result.rulings),
            "met_a_fault": result.met,
            **counts,
            "virtual_seconds": f"{sum(ruling.trial.seconds for ruling in result.rulings):.6f}",
        },
    )


def _add_case(suite: Element, case: Case) -> None:
    element = SubElement(
        suite,
        "testcase",
        classname=_replace_invalid_chars(case.classname),
        name=_replace_invalid_chars(case.name),
        time=f"{case.took_s:.6f}",
    )
    properties = SubElement(element, "properties")
    for key, value in case.properties.items():
        SubElement(properties, "property", name=key, value=str(value))
    if case.state in KINDS:
        head, _, rest = case.told.partition("\n")
        problem = SubElement(element, KINDS[case.state], type=str(case.state), message=_replace_invalid_chars(head))
        problem.text = _replace_invalid_chars(f"\n{rest}\n")


def _replace_invalid_chars(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
