"""Long names in a run's page: none is cut off or broken within a word, and those of one family are told apart."""

from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.record.history import History
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.text import shorten_names_distinctly
from tests.reports.browser import browse
from tests.reports.fake_run import FakeRun

FAMILY = {f"service_number_{n:02}_with_a_rather_long_name": "ask" for n in range(9)}
TRIER = """<!doctype html>
<iframe id="phone" src="report.html" width="390" height="900"></iframe>
<iframe id="desk" src="report.html" width="1280" height="900"></iframe>
<iframe id="one" src="one.html" width="390" height="900"></iframe>
<iframe id="usual" src="usual.html" width="1280" height="900"></iframe>
<iframe id="paper" src="usual.html" width="720" height="900"></iframe>
<script>
onload = () => {
  const seen = {}, one = document.getElementById("one").contentWindow.document;
  seen.lanes = [...one.querySelectorAll("#story svg text")].filter((each) => each.querySelector("title"))
    .map((each) => each.firstChild.data);
  const sideways = (page) => [...page.querySelectorAll(".scroll, .plot")]
    .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent.slice(0, 60));
  seen.usual = sideways(document.getElementById("usual").contentWindow.document);
  const paper = document.getElementById("paper").contentWindow.document;
  for (const rule of paper.styleSheets[0].cssRules) if (rule.media?.mediaText === "print") rule.media.mediaText = "all";
  seen.paper = paper.documentElement.scrollWidth;
  paper.getElementById("story").style.width = "500px";  // nothing draws a timeline anew for paper
  seen.timeline = paper.querySelector("#story svg").getBoundingClientRect().width;
  for (const name of ["phone", "desk"]) {
    const win = document.getElementById(name).contentWindow, page = win.document;
    const all = (what) => [...page.querySelectorAll(what)], width = (one) => one.getBoundingClientRect().width;
    const words = (one) => {  // the parts of a text between its breaks that are on several lines
      const node = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), range = page.createRange(), broken = [];
      while (node.nextNode()) {
        range.selectNodeContents(node.currentNode);
        if (range.getClientRects().length > 1) broken.push(node.currentNode.data);
      }
      return broken;
    };
    seen[name] = {
      overflow: page.documentElement.scrollWidth - win.innerWidth,
      out: all("svg.chart text").filter((one) => one.getBoundingClientRect().right > win.innerWidth).length,
      columns: Math.max(...all(".matrix thead th").map(width)),
      broken: all(".matrix th, .facts dt").flatMap(words),
      numbers: all(".part td.n").filter((one) => one.cellIndex === 1)
        .filter((one) => one.getBoundingClientRect().right > win.innerWidth).length,
    };
  }
  const said = document.createElement("pre");
  said.id = "seen";
  said.textContent = JSON.stringify(seen);
  document.body.replaceChildren(said);
};
</script>"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = FakeRun(tmp_path_factory.mktemp("long"), prompts=60, chance=0.5, targets=FAMILY).write()
    hosts = [f"service-number-{n}-with-a-rather-long-name" for n in range(3)]

    def asks(_prompt: str) -> str:
        return " ".join(httpx.get(f"http://{host}/").text for host in hosts)

    lab.run(asks, "Which?", services=dict.fromkeys(hosts, lambda _request: "30"), logs=folder / "one")
    usual = FakeRun(folder / "usual", prompts=60).write()
    for run, name in ((folder, "report.html"), (folder / "one" / "latest", "one.html"), (usual, "usual.html")):
        (page,) = formats.render_files(formats.HTML, Contents.from_source(History.read(run), where="logs/run")).values()
        (folder / name).write_text(page)
    (folder / "trier.html").write_text(TRIER)
    return browse(folder / "trier.html")


@pytest.mark.parametrize("width", ["phone", "desk"])
def test_long_names_leave_the_page_legible(width: str, seen: dict[str, Any]) -> None:
    found = seen[width]
    assert found["overflow"] <= 0
    assert found["out"] == 0
    assert found["columns"] <= 130
    assert found["broken"] == []
    assert found["numbers"] == 0


def test_the_lanes_of_one_family_are_told_apart(seen: dict[str, Any]) -> None:
    assert seen["lanes"] == ["agent", *(f"serv…{n}-with-a…" for n in range(3)), "faults", "effects"]


def test_a_usual_run_fits_a_desk_and_paper(seen: dict[str, Any]) -> None:
    """A table that is too wide would be cut off on paper, or make all of it small."""
    assert seen["usual"] == []
    assert seen["paper"] <= 720
    assert seen["timeline"] <= 500


def test_names_are_cut_where_they_differ() -> None:
    names = [f"service_number_{n}_with_a_rather_long_name" for n in (1, 2, 10)]
    names += ["short", "one that is long and has no family at all"]
    assert list(shorten_names_distinctly(names, 22).values()) == [
        "service…1_with_a_rath…", "service…2_with_a_rath…", "service…10_with_a_rat…", "short", "one that is lo… at all",
    ]  # fmt: skip
    assert list(shorten_names_distinctly(["x" * 20 + sign + "y" * 20 for sign in "ab"], 12).values()) == [
        "xxxx…ayyyyy…",
        "xxxx…byyyyy…",
    ]
    assert shorten_names_distinctly([], 12) == {}
