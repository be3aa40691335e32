"""The results of scenarios as JUnit XML: a suite a scenario, a case a variant, with its trials as properties."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoslab.record.rulings import State
from chaoslab.reports.formats import put
from chaoslab.scenarios.running import Result
from chaoslab.scenarios.tell import told

KINDS = {State.FAILED: "failure", State.INVALID: "error"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML has no place for."""


def text_of(results: Sequence[Result], given: Sequence[str] = ()) -> str:
    """The results as the text of a file. A scenario that proves nothing is an error, one that does not hold a failure.
    `given`: as in `told`."""
    suites = Element("testsuites")
    for place in dict.fromkeys((result.scenario.file, result.scenario.spec.name) for result in results):
        own = [result for result in results if (result.scenario.file, result.scenario.spec.name) == place]
        suite = SubElement(suites, "testsuite", name=_clean(place[1]), tests=str(len(own)))
        for kind, state in (("failures", State.FAILED), ("errors", State.INVALID)):
            suite.set(kind, str(sum(result.state is state for result in own)))
        for result in own:
            _case(suite, result, given)
        suite.set("time", f"{sum(result.took_s for result in own):.6f}")
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def write(results: Sequence[Result], path: Path, given: Sequence[str] = ()) -> None:
    """Writes the file.

    Raises:
        OSError: it cannot be written.
    """
    put(text_of(results, given), path)


def _case(suite: Element, result: Result, given: Sequence[str]) -> None:
    scenario, state = result.scenario, result.state
    name = scenario.variant or scenario.spec.name
    case = SubElement(
        suite, "testcase", classname=_clean(scenario.file or scenario.spec.name), name=_clean(name),
        time=f"{result.took_s:.6f}",
    )  # fmt: skip
    properties = SubElement(case, "properties")
    counts = {"trials": len(result.rulings), "met_a_fault": result.met} | {
        str(each): result.count(each) for each in State
    }
    for key, count in counts.items():
        SubElement(properties, "property", name=key, value=str(count))
    SubElement(properties, "property", name="virtual_seconds", value=f"{_virtual_s(result):.6f}")
    if state in KINDS:
        head, _, rest = told(result, given=given).partition("\n")
        SubElement(case, KINDS[state], type=str(state), message=_clean(head)).text = _clean(f"\n{rest}\n")


def _virtual_s(result: Result) -> float:
    """The time of all trials, in seconds of their virtual world."""
    return sum(ruling.trial.seconds for ruling in result.rulings)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
