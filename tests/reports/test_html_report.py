"""The HTML report: one safe file, its data, and its behaviour in a real browser at the widths of a phone and a desk."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import format_duration
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History
from chaoslab.record.log import Log
from chaoslab.reports import formats
from chaoslab.reports._svg import draw_recovery_curve
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.outcomes import SEVERITY, choose_text_color, measure_contrast, outcome_color
from chaoslab.reports.formats import html
from chaoslab.reports.formats.html import FILE, timelines
from tests.reports import hostile_run
from tests.reports.browser import browse
from tests.reports.fake_run import FAULTS, FakeRun, ScriptedClock, changed, stated
from tests.sure import sure

PHONE, DESK = 390, 1280
DRIVER = """<!doctype html><meta charset="utf-8"><body>
<iframe id="phone" src="report.html" width="390" height="900"></iframe>
<iframe id="desk" src="report.html" width="1280" height="900"></iframe>
<script>
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
async function tried(frame) {
  const win = frame.contentWindow, page = win.document, seen = {};
  const rows = () => [...page.querySelectorAll("#rows tbody tr")].filter((row) => !row.hidden)
    .map((row) => row.cells[0].textContent);
  const set = (id, value) => {
    const field = page.getElementById(id);
    field.value = value;
    field.dispatchEvent(new win.Event("input", { bubbles: true }));
  };
  seen.title = page.title;
  seen.overflow = page.documentElement.scrollWidth - win.innerWidth;
  seen.all = rows();
  seen.first = page.getElementById("trial-h").textContent;
  seen.marks = page.querySelectorAll("#story svg .mark").length;
  seen.lanes = page.querySelectorAll("#story svg .lane").length;
  seen.unnamed = [...page.querySelectorAll("button, select, input")].filter((field) => {
    const text = field.textContent.trim(), name = field.getAttribute("aria-label");
    const words = /[a-z]/i.test(text) && field.localName === "button" ? text.toLowerCase() : "";
    return name === null ? !text && !field.closest("label") : !name.toLowerCase().includes(words);
  }).map((field) => field.outerHTML);
  seen.wide = [...page.querySelectorAll("caption span")].map((said) => said.getBoundingClientRect())
    .filter((box) => box.width && box.right > win.innerWidth).length;
  seen.clipped = page.querySelector("#story .plot").scrollWidth - page.querySelector("#story .plot").clientWidth;
  seen.focusable = page.querySelector("#story .plot").tabIndex;
  const box = (element) => element.getBoundingClientRect();
  seen.pictures = [...page.querySelectorAll("figure.picture svg.chart")].map((svg) => {
    const texts = [...svg.querySelectorAll("text")].map(box);
    const meet = (one, two) => Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1 &&
      Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 4;
    const over = texts.filter((one, n) => texts.some((two, m) => m > n && meet(one, two))).length;
    const out = texts.filter((text) => text.left < 0 || text.right > win.innerWidth).length;
    return [box(svg).width > 200, out, over];
  });
  set("by-outcome", "!bad"); seen.bad = rows();
  set("by-outcome", "");
  set("by-text", "PROMPT 3"); seen.found = rows(); seen.said = page.getElementById("found").textContent;
  set("by-text", "");
  const head = page.querySelector("#rows thead th button");
  head.click(); seen.up = rows(); seen.sorted = page.querySelector("#rows thead th").getAttribute("aria-sort");
  head.click(); seen.down = rows();
  page.querySelector('#rows a[href="#trial=p2.r1"]').click(); await wait(200);
  seen.second = page.getElementById("trial-h").textContent; seen.focus = page.activeElement.id;
  page.querySelector('#story button[aria-label^="Failed call"]').click();
  seen.failed = [page.activeElement.localName, page.activeElement.textContent.includes("FAILED")];
  page.querySelector('#story button[aria-label="Zoom in"]').click();
  seen.zoomed = page.querySelectorAll("#story svg .mark").length;
  page.querySelector('#story button[aria-label="Show the whole trial"]').click();
  seen.story = page.getElementById("story").textContent;
  seen.scripts = page.querySelectorAll("script").length;
  seen.images = page.querySelectorAll("img").length;
  page.querySelector(".matrix .cell a").click(); await wait(200);
  seen.met = rows();
  return seen;
}
onload = async () => {
  const seen = {};
  for (const name of ["phone", "desk"]) {
    try { seen[name] = await tried(document.getElementById(name)); } catch (error) { seen[name] = String(error); }
  }
  const said = document.createElement("pre");
  said.id = "seen";
  said.textContent = JSON.stringify(seen);
  document.body.replaceChildren(said);
};
</script>"""


def contents(folder: Path) -> Contents:
    return Contents.from_source(History.read(folder), where="logs/run")


def page(folder: Path) -> str:
    return formats.render_files(formats.HTML, contents(folder))[FILE]


def data(text: str) -> Any:
    return json.loads(text.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])


class Tags(HTMLParser):
    """Every element of a page with its attributes, and all text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run.write(tmp_path_factory.mktemp("hostile"), trials=3)


def test_what_a_tool_replied_is_never_markup(hostile: Path) -> None:
    text = page(hostile)
    tags = Tags(text).found
    assert [tag for tag, _ in tags].count("script") == 2
    assert [tag for tag, _ in tags if tag in ("img", "iframe", "object", "link", "base", "form")] == ["form"]
    assert [name for _, attributes in tags for name in attributes if name.startswith("on") or name == "style"] == []
    addresses = {value for _, a in tags for name, value in a.items() if name in ("href", "src", "action", "data")}
    assert {address[:1] for address in addresses} == {"#"}
    for sign in ("\x1b", "\u2028", "\u202e", "\x00"):
        assert sign not in text
    text.encode()
    told = data(text)
    assert any("\\x1b[31mred" in word and "\\u2028" in word and "\\ud800" in word for word in told["words"])
    assert any("<script>document.title='owned'" in word for word in told["words"])


def test_only_this_style_and_this_script_are_allowed(hostile: Path) -> None:
    text = page(hostile)
    policy = next(a["content"] for tag, a in Tags(text).found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        assert len(inner) == 1
        assert f"{tag}-src 'sha256-{b64encode(sha256(inner[0].encode()).digest()).decode()}'" in policy


def test_every_verdict_names_the_lines_of_the_log_that_show_it(hostile: Path) -> None:
    told = data(page(hostile))
    words, trial = told["words"], told["trials"][0]
    assert words[trial["outcome"]] == Outcome.HARM
    lines = [(words[file], number) for _, _, lines in trial["evidence"] for file, number in lines]
    effects = (hostile / "service.log").read_bytes().split(b"\n")
    assert lines
    for file, number in lines:
        assert file == "service.log"
        assert json.loads(effects[number - 1])["trial"] == trial["key"]
    for event in trial["events"]:
        written = (hostile / words[event[6]]).read_bytes().split(b"\n")[event[7] - 1]
        assert json.loads(written)["trial"] == trial["key"]


def test_the_sections_stand_in_their_order_and_tables_have_headers(tmp_path: Path) -> None:
    text = page(FakeRun(tmp_path, prompts=12).write())
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert heads == [
        "Worst trial", "What to change first", "Harm", "Faults and targets", "One trial", "Outcomes",
        "What the faults led to", "Reliability", "Recovery", "Retries and calls", "Cost", "Delivery of the faults",
        "What nobody injected", "What to change", "All trials",
    ]  # fmt: skip
    assert text.count("<h1") == 1
    tags = Tags(text).found
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in tags if tag == "th")
    identities = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(identities) == len(set(identities))
    labels = [name for _, attributes in tags if (name := attributes.get("aria-labelledby"))]
    assert set(labels) <= set(identities)


def test_the_worst_trials_come_first_and_of_those_alike_the_ones_that_met_a_fault(tmp_path: Path) -> None:
    rows = contents(FakeRun(tmp_path, prompts=40).write()).rows
    order = [(SEVERITY.index(row.outcome), not row.met) for row in rows]
    assert order == sorted(order)
    assert {met for outcome, met in order if outcome == order[-1][0]} == {False, True}


def test_harm_is_a_table_where_there_is_some(tmp_path: Path) -> None:
    with_harm, without = (page(FakeRun(tmp_path / str(chance), prompts=40, chance=chance).write()) for chance in (1, 0))
    assert 'class="harm"' in with_harm
    assert 'class="harm"' not in without
    assert "No harm was found on the ledgers." in without


@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_of_the_faults_that_a_plan_names_those_have_a_row_that_were_scheduled_most_met_first(
    chance: float, tmp_path: Path
) -> None:
    history = History.read(FakeRun(tmp_path, prompts=40, chance=chance).write())
    choices = [{"fault": name} for name in ("bandwidth", "stale", "timeout")]
    level = {"name": "level", "targets": ["search"], "choices": choices}
    report = Contents.from_source(stated(history, plan={"seed": 1, "injections": [level]}), where="logs/run")
    met = {fault: sum(cell.attempts for cell in cells) for fault, cells in report.matrix.rows.items()}
    assert [*met.values()] == sorted(met.values(), reverse=True)
    assert (
        {fault for fault, n in met.items() if n} == {*report.matrix.scheduled_rows} == ({*FAULTS} if chance else set())
    )
    never = "bandwidth, stale" if chance else "bandwidth, stale, timeout"
    assert f"Planned and never scheduled: {never}." in formats.render_files(formats.HTML, report)[FILE]
    assert f"Planned and never scheduled: `{never}`." in formats.render_files("markdown", report)["report.md"]


def test_one_run_makes_the_same_bytes_twice(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path, prompts=6).write()
    assert page(folder) == page(folder)


def test_a_run_without_trials_has_a_page_too(tmp_path: Path) -> None:
    with Log(tmp_path, "info", run="none", origin=0.0, clock=ScriptedClock()) as log:
        log.write(RunStarted(seed=1, settings={}, plan={}, prompts=1, now="2026-06-01T09:00:00Z", model="m"))
    text = page(tmp_path)
    assert "No conclusion: no trial was started" in text
    assert data(text)["trials"] == []


def test_a_thousand_trials_stay_small(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path, prompts=1000).write()
    text = formats.render_files(formats.HTML, contents(folder))[FILE]
    assert len(text.encode()) <= 5_000_000
    told = data(text)
    assert len(told["trials"]) == 1000
    assert all(trial["events"] for trial in told["trials"])
    assert text.count("<tr data-o=") == 1000


def test_the_timelines_of_the_best_trials_are_left_out_of_a_large_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = contents(FakeRun(tmp_path, prompts=40).write())
    monkeypatch.setattr(timelines, "BYTES_MAX", 30_000)
    told = timelines.build_timelines(found)
    kept = [trial["key"] for trial in told["trials"] if "events" in trial]
    assert 0 < len(kept) < 40
    assert told["leftOut"] == 40 - len(kept)
    assert kept == [row.trial for row in found.rows[: len(kept)]]
    assert len(json.dumps(told)) < 60_000


def test_words_can_be_read_on_every_ground_in_light_and_dark() -> None:
    for outcome in Outcome:
        assert measure_contrast(outcome_color(outcome), choose_text_color(outcome_color(outcome))) >= 4.5, outcome
    style = Path(timelines.__file__).with_name("style.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in style.split(":root {")[1:3])
    paper = dict(re.findall(r"--(\w+): (#\w{6});", style.partition("@media print")[2]))
    assert light.keys() == dark.keys() == paper.keys()
    for name, theme in (("light", light), ("dark", dark), ("paper", paper)):
        for ground in ("page", "card", "soft"):
            for ink in ("ink", "dim", "link", "good", "bad", "open", "failed"):
                assert measure_contrast(theme[ink], theme[ground]) >= 4.5, (name, ink, ground)
        for mark in ("call", "failed", "fault", "effect", "agent", "focus"):
            assert measure_contrast(theme[mark], theme["card"]) >= 3, (name, mark)


@pytest.fixture(scope="module")
def browsed(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The findings of one browser on the hostile run's page, with the recovery curve of a longer run, in a phone's
    width and a desk's."""
    folder = tmp_path_factory.mktemp("browsed")
    longer = RunReport.from_folder(FakeRun(tmp_path_factory.mktemp("longer"), prompts=60).write())
    figure = f'<figure class="picture">{sure(draw_recovery_curve(longer)).svg}</figure>'
    formats.write_files({FILE: page(hostile).replace("</main>", f"{figure}</main>"), "driver.html": DRIVER}, folder)
    return browse(folder / "driver.html")


@pytest.mark.parametrize("width", ["phone", "desk"])
def test_a_browser_filters_sorts_searches_and_draws(width: str, browsed: dict[str, Any]) -> None:
    seen = browsed[width]
    assert isinstance(seen, dict), seen
    assert seen["title"].startswith("Harm was done in 1 of 3 trials")
    assert seen["overflow"] <= 0
    assert (seen["unnamed"], seen["wide"], seen["clipped"]) == ([], 0, 0)
    assert seen["all"] == ["p1.r1", "p2.r1", "p3.r1"]
    assert seen["first"] == "Trial p1.r1 ✖ harm"
    assert seen["bad"] == ["p1.r1"]
    assert (seen["found"], seen["said"]) == ([], "0 of 3 trials")
    assert (seen["up"], seen["sorted"]) == (["p1.r1", "p2.r1", "p3.r1"], "ascending")
    assert seen["down"] == ["p3.r1", "p2.r1", "p1.r1"]
    assert seen["second"].startswith("Trial p2.r1 ")
    assert seen["focus"] == "trial-h"
    assert seen["lanes"] == 4
    assert seen["marks"] == 5  # a call, a fault, two effects, an answer
    assert seen["zoomed"] < 5
    assert seen["focusable"] == 0
    assert seen["failed"] == ["tr", True]
    assert seen["pictures"] == [[True, 0, 0]]
    assert sorted(seen["met"]) == ["p1.r1", "p2.r1", "p3.r1"]


def test_a_short_trial_took_some_time(tmp_path: Path) -> None:
    found = contents(FakeRun(tmp_path, prompts=1).write())
    for seconds, told in ((0.00002, "0.000020"), (2.5, "2.500"), (0.0, "0.000"), (None, "–")):
        (text,) = formats.render_files("html", changed(found, rows=(replace(found.rows[0], seconds=seconds),))).values()
        assert f'<td class="n">{told}</td>' in text


def test_a_browser_tells_a_time_as_all_other_texts_do(tmp_path: Path) -> None:
    script = (Path(html.__file__).parent / "script.js").read_text()
    function = re.search(r"^  function seconds\(.*?^  }$", script, flags=re.DOTALL | re.MULTILINE)
    assert function is not None
    times = [0, 4e-9, 0.000012, 0.0004, 0.0099, 0.01, 2.5, -0.00002]
    told = f"<pre id=seen></pre><script>{function[0]} seen.textContent = JSON.stringify({{told: {times}.map(seconds)}})"
    (tmp_path / "times.html").write_text(f"<!doctype html><meta charset=utf-8>{told}</script>")
    assert browse(tmp_path / "times.html")["told"] == [format_duration(time_s) for time_s in times]


@pytest.mark.parametrize("width", ["phone", "desk"])
def test_a_browser_shows_hostile_replies_as_text(width: str, browsed: dict[str, Any]) -> None:
    seen = browsed[width]
    assert "document.title='owned'" in seen["story"]
    assert "\\x1b[31m" in seen["story"]
    assert (seen["scripts"], seen["images"]) == (2, 0)
    assert "owned" not in seen["title"]
