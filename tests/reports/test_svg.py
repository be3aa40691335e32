"""The pictures of a run's page: what they draw, what they say in words, and that no foreign text is markup in them."""

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from chaoslab.analysis.measures.incidents import Ending
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import Section
from chaoslab.record.history import History
from chaoslab.reports.svg import PICTURES, draw_pictures, recovery, timeline
from chaoslab.reports.svg.parts import Picture, make_linear_axis, round_ticks
from tests.reports import hostile_run
from tests.reports.fake_run import FakeRun
from tests.sure import sure

HREF = "href"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return RunReport.build(History.read(FakeRun(tmp_path_factory.mktemp("run"), prompts=60).write()))


def drawn(picture: Picture | None) -> Element:
    return fromstring(sure(picture).svg)


def of(root: Element, tag: str, style: str = "") -> list[Element]:
    return [one for one in root.iter(tag) if style in (one.get("class") or "").split() or not style]


def texts(root: Element) -> list[str]:
    return [one.text or "" for one in root.iter("text")]


def at(percent: str | None) -> float:
    return float(sure(percent).rstrip("%")) / 100


def test_every_picture_has_a_title_and_words_for_who_cannot_see_it(report: RunReport) -> None:
    found = draw_pictures(report)
    assert list(found) == list(PICTURES)
    for picture in found.values():
        root = fromstring(picture.svg)
        title, said = sure(root.find("title")), sure(root.find("desc"))
        assert (root.get("aria-labelledby"), root.get("aria-describedby")) == (title.get("id"), said.get("id"))
        assert title.text == picture.title
        assert len(said.text or "") > 20
        assert picture.caption.endswith(".")
        assert root.get("width") == "100%"
        assert "style" not in picture.svg, "the page's policy would refuse it"


def test_the_recovery_curve_comes_to_rest_at_those_that_never_recovered(report: RunReport, tmp_path: Path) -> None:
    section = report.recovery.value
    met = tuple(one._replace(ending=Ending.NEVER) if one.censored else one for one in section.incidents)
    root = drawn(recovery.draw(replace(report, recovery=Section(replace(section, incidents=met)))))
    (line,) = of(root, "polyline")
    points = [tuple(map(float, point.split(","))) for point in (line.get("points") or "").split()]
    assert points[0] == (0, 0)
    assert points == sorted(points), "time goes on, and the share of the open incidents falls"
    assert points[-1][0] == 1000
    assert all(0 <= y <= recovery.HEIGHT for _, y in points)
    never = [incident for incident in met if not incident.recovered]
    assert points[-1][1] == pytest.approx(recovery.HEIGHT * (1 - len(never) / len(met)), abs=0.1)
    (plateau,) = of(root, "line", "least")
    assert float(plateau.get("y1") or 0) == points[-1][1] < recovery.HEIGHT
    assert of(root, "line", "censored") == []
    cut = replace(
        section, incidents=tuple(one if one.recovered else one._replace(ending=Ending.CENSORED) for one in met)
    )
    open_ = drawn(recovery.draw(replace(report, recovery=Section(cut))))
    assert len(of(open_, "line", "censored")) == len({incident.duration_s for incident in never}) > 0
    assert of(open_, "line", "least") == []
    assert recovery.draw(RunReport.build(History.read(FakeRun(tmp_path, prompts=1).write()))) is None


def test_the_timeline_has_a_lane_per_target_a_stroke_per_fault_and_a_bar_per_incident(report: RunReport) -> None:
    root = drawn(timeline.draw(report))
    met = [attempt for attempt in report.attempts.value.drawn if attempt.faults]
    incidents = report.recovery.value.incidents
    assert len(of(root, "line", "lane")) == len({attempt.target for attempt in met})
    assert sum((one.get("d") or "").count("M") for one in of(root, "path", "stroke")) == len(met)
    bars = of(root, "line", "bar")
    assert len(bars) == len(incidents)
    assert all(at(bar.get("x1")) <= at(bar.get("x2")) <= 1 for bar in bars)
    lost = [one for one in incidents if not one.recovered and not one.censored]
    assert texts(root).count("✖") + texts(root).count("■") == len(lost) == len(of(root, "line", "bad"))
    links = [one.get(HREF) for one in root.iter("a")]
    assert sorted(filter(None, links)) == sorted(f"#trial={one.trial}" for one in incidents)
    assert root.get("role") == "group", "an image would hide its links from a keyboard"


def test_a_long_run_has_an_image_without_links_and_says_what_it_leaves_out(
    report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "LINKS", 3)
    monkeypatch.setattr(timeline, "BARS", 10)
    monkeypatch.setattr(timeline, "LANES", 2)
    picture = timeline.draw(report)
    root = drawn(picture)
    assert picture is not None
    assert (root.get("role"), of(root, "a")) == ("img", [])
    assert 0 < len(of(root, "line", "bar")) <= 10
    assert "one in 4 incidents is drawn; 5 more targets met fewer faults." in picture.caption


def test_without_faults_nothing_is_drawn(tmp_path: Path) -> None:
    assert draw_pictures(RunReport.build(History.read(FakeRun(tmp_path, prompts=9, chance=0.0).write()))) == {}
    assert draw_pictures(RunReport.build(History([]))) == {}


def test_a_measure_that_failed_takes_its_picture_alone(report: RunReport) -> None:
    assert list(draw_pictures(replace(report, attempts=Section(None, "it broke")))) == ["Recovery"]


def test_foreign_names_are_text(tmp_path: Path) -> None:
    found = draw_pictures(RunReport.build(History.read(hostile_run.write(tmp_path, trials=3))))
    assert "Faults and targets" in found
    for picture in found.values():
        names = {one.tag for one in fromstring(picture.svg).iter()}
        assert names <= {
            "svg",
            "title",
            "desc",
            "line",
            "text",
            "path",
            "g",
            "a",
            "circle",
            "rect",
            "polygon",
            "polyline",
        }
        assert all("\x1b" not in text and "\u202e" not in text for text in texts(fromstring(picture.svg)))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.003), (-2.0, 6.0), (0, 86_400), (0, 0)])
def test_ticks_are_few_round_and_within(low: float, high: float) -> None:
    found = round_ticks(low, high)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found) or low == high
    assert all(0 <= share <= 1.0001 for share, _ in make_linear_axis(low, high).ticks)
