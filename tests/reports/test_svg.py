"""The pictures of the pages: what they draw, what they say in words, and that no foreign text is markup in them."""

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from chaoslab.analysis.measures.incidents import Ending
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import MeasureResult
from chaoslab.record.history import History
from chaoslab.reports import _svg
from chaoslab.reports._svg import Picture, choose_round_ticks, draw_recovery_curve
from tests.reports.fake_run import FakeRun
from tests.sure import sure


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return RunReport.from_history(History.read(FakeRun(tmp_path_factory.mktemp("run"), prompts=60).write()))


def drawn(picture: Picture | None) -> Element:
    """The picture's root; each has its words for who cannot see it."""
    root = fromstring(sure(picture).svg)
    title = sure(root.find("title"))
    assert (title.text, root.get("aria-labelledby")) == (sure(picture).caption, title.get("id"))
    assert sure(picture).caption.endswith(".")
    assert root.get("width") == "100%"
    assert "style" not in sure(picture).svg, "the page's policy would refuse it"
    return root


def of(root: Element, tag: str, style: str = "") -> list[Element]:
    return [one for one in root.iter(tag) if style in (one.get("class") or "").split() or not style]


def test_the_recovery_curve_comes_to_rest_at_those_that_never_recovered(report: RunReport, tmp_path: Path) -> None:
    section = report.recovery.value
    met = tuple(one._replace(ending=Ending.NEVER) if one.censored else one for one in section.incidents)
    root = drawn(draw_recovery_curve(replace(report, recovery=MeasureResult(replace(section, incidents=met)))))
    (line,) = of(root, "polyline")
    points = [tuple(map(float, point.split(","))) for point in (line.get("points") or "").split()]
    assert points[0] == (0, 0)
    assert points == sorted(points), "time goes on, and the share of the open incidents falls"
    assert points[-1][0] == 1000
    assert all(0 <= y <= _svg.RECOVERY_HEIGHT for _, y in points)
    never = [incident for incident in met if not incident.recovered]
    assert points[-1][1] == pytest.approx(_svg.RECOVERY_HEIGHT * (1 - len(never) / len(met)), abs=0.1)
    (plateau,) = of(root, "line", "least")
    assert float(plateau.get("y1") or 0) == points[-1][1] < _svg.RECOVERY_HEIGHT
    assert of(root, "line", "censored") == []
    cut = replace(
        section, incidents=tuple(one if one.recovered else one._replace(ending=Ending.CENSORED) for one in met)
    )
    open_ = drawn(draw_recovery_curve(replace(report, recovery=MeasureResult(cut))))
    assert len(of(open_, "line", "censored")) == len({incident.duration_s for incident in never}) > 0
    assert of(open_, "line", "least") == []
    assert draw_recovery_curve(RunReport.from_history(History.read(FakeRun(tmp_path, prompts=1).write()))) is None


@pytest.mark.parametrize("high", [1, 0.003, 6.0, 86_400, 1e-6])
def test_ticks_are_few_round_and_within(high: float) -> None:
    found = choose_round_ticks(high)
    assert 3 <= len(found) <= 7
    assert all(0 <= tick <= high + 1e-9 for tick in found)
