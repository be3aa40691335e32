"""The notebook of the documents runs from its first cell to its last, and so does the way from a log to a picture."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.reports.fake_run import FakeRun

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
NOTEBOOK = PAGES / "notebook.ipynb"


def test_the_cells_of_the_notebook_run_in_order_on_a_run(here: Path) -> None:
    pytest.importorskip("pandas")
    FakeRun(here / "logs" / "one", prompts=30).write()
    (here / "logs" / "latest").symlink_to("one")
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102 - our own document
    assert len(names["run"].trials) == 30
    assert names["matrix"].to_numpy().sum() == names["run"].faults["witnessed"].sum() > 0
    assert len(names["latency"].axes[0].get_lines()) == 2
    assert len(names["mttr"].axes[0].patches) == 2 * names["run"].incidents.query("recovered")["fault"].nunique() > 0
    assert len(names["outcomes"].axes[0].patches) == names["run"].trials["outcome"].nunique()


def test_the_way_from_a_log_to_a_picture_leads_there(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "page"}
    text = (PAGES / "read-a-run.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```\n\n```\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```py\n") == 2
    for program, printed in blocks:
        exec(compile(program, "read-a-run.md", "exec"), names)  # noqa: S102 - our own document
        assert capsys.readouterr().out == printed
    assert {path.name for path in here.glob("*.png")} == {"mttr.png", "mttr-of-the-lab.png", "levels.png"}
    assert list(names["axes"].get_lines()[0].get_ydata()) == list(names["by"].share)
    assert not names["axes"].patches, "drawn over the bars of the first picture"
