"""The page of a run under axe, in a real browser: at the widths of a phone and a desk, in light and in dark."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from chaoslab.record.history import History
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.formats.html import FILE
from tests.reports import hostile_run
from tests.reports.browser import browse

SIZES = {"phone": (390, 900), "desk": (1280, 900)}
SCHEMES = {"light": (), "dark": ("--force-dark-mode",)}
DRIVER = """<!doctype html><meta charset="utf-8"><body>
{frames}
<script>
onload = async () => {{
  const seen = {{ dark: matchMedia("(prefers-color-scheme: dark)").matches }};
  for (const frame of document.querySelectorAll("iframe")) {{
    const win = frame.contentWindow;
    const found = await win.axe.run(win.document);
    seen[frame.id] = {{
      passed: found.passes.map((rule) => rule.id),
      violated: found.violations.map((rule) => `${{rule.id}} (${{rule.impact}}): ${{rule.nodes[0].html}}`),
    }};
  }}
  const said = document.createElement("pre");
  said.id = "seen";
  said.textContent = JSON.stringify(seen);
  document.body.replaceChildren(said);
}};
</script>"""


def audited(text: str, axe: str) -> str:
    """The page with axe in it. Its own policy would forbid this script."""
    open_to_axe, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert count == 1
    head, body, rest = open_to_axe.rpartition("</body>")
    return f"{head}<script>{axe}</script>{body}{rest}" if body else f"{open_to_axe}<script>{axe}</script>"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page that holds the report in each size, and one with mistakes, and audits all of them."""
    folder = tmp_path_factory.mktemp("accessible")
    hostile = Contents.from_source(History.read(hostile_run.write(folder / "hostile", trials=3)), where="logs/run")
    page = formats.render_files(formats.HTML, hostile)[FILE]
    bad = page.replace("<h1", '<img src="data:,"><p style="color: #ccc">pale</p><h1', 1)
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    axe = axe.replace("</script>", "<\\/script>")
    frames = "\n".join(
        f'<iframe id="{size} {name}" title="{size} {name}" src="{name}" width="{width}" height="{height}"></iframe>'
        for name in (FILE, "bad.html")
        for size, (width, height) in SIZES.items()
    )
    pages = {FILE: audited(page, axe), "bad.html": audited(bad, axe)}
    formats.write_files({**pages, "driver.html": DRIVER.format(frames=frames)}, folder / "pages")
    return folder / "pages" / "driver.html"


@pytest.fixture(scope="module", params=SCHEMES)
def audit(request: pytest.FixtureRequest, driver: Path) -> dict[str, Any]:
    seen = browse(driver, *SCHEMES[request.param])
    assert seen["dark"] is (request.param == "dark")
    return seen


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing(size: str, audit: dict[str, Any]) -> None:
    found = audit[f"{size} {FILE}"]
    assert {"color-contrast", "document-title", "html-has-lang", "region"} <= set(found["passed"])
    assert found["violated"] == []


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_a_picture_without_words(size: str, audit: dict[str, Any]) -> None:
    assert any(said.startswith("image-alt (critical)") for said in audit[f"{size} bad.html"]["violated"])
