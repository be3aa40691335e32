"""Results as JUnit XML: a suite a scenario, a case a variant, with its trials as properties."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoslab.record.rulings import RulingState
from chaoslab.reports.formats import put
from chaoslab.scenarios.running import Result
from chaoslab.scenarios.tell import result_text

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


def document(cases: Sequence[Case]) -> str:
    """The cases as the text of a file. What proves nothing is an error, what does not hold a failure."""
    suites = Element("testsuites")
    for place in dict.fromkeys(case.place for case in cases):
        own = [case for case in cases if case.place == place]
        suite = SubElement(suites, "testsuite", name=_clean(own[0].suite), tests=str(len(own)))
        for kind, state in (("failures", RulingState.FAILED), ("errors", RulingState.INVALID)):
            suite.set(kind, str(sum(case.state is state for case in own)))
        for case in own:
            _add(suite, case)
        suite.set("time", f"{sum(case.took_s for case in own):.6f}")
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def text_of(results: Sequence[Result], given: Sequence[str] = ()) -> str:
    """The results of scenarios as the text of a file. `given`: as in `told`."""
    return document([_case(result, given) for result in results])


def write(results: Sequence[Result], path: Path, given: Sequence[str] = ()) -> None:
    """Writes the file. Raises OSError: it cannot be written."""
    put(text_of(results, given), path)


def _case(result: Result, given: Sequence[str]) -> Case:
    scenario = result.scenario
    counts = {str(each): result.count(each) for each in RulingState}
    return Case(
        (scenario.file, scenario.spec.name), scenario.spec.name, scenario.file or scenario.spec.name,
        scenario.variant or scenario.spec.name, result.took_s, result.state,
        result_text(result, given=given) if result.state in KINDS else "",
        {
            "trials": len(result.rulings), "met_a_fault": result.met, **counts,
            "virtual_seconds": f"{sum(ruling.trial.seconds for ruling in result.rulings):.6f}",
        },
    )  # fmt: skip


def _add(suite: Element, case: Case) -> None:
    made = SubElement(
        suite, "testcase", classname=_clean(case.classname), name=_clean(case.name), time=f"{case.took_s:.6f}"
    )
    properties = SubElement(made, "properties")
    for key, value in case.properties.items():
        SubElement(properties, "property", name=key, value=str(value))
    if case.state in KINDS:
        head, _, rest = case.told.partition("\n")
        about = SubElement(made, KINDS[case.state], type=str(case.state), message=_clean(head))
        about.text = _clean(f"\n{rest}\n")


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
