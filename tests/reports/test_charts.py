"""The pictures say what happened, say so when nothing did, and never write one word over another."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from fake_run import TARGETS, FakeRun
from matplotlib.figure import Figure
from matplotlib.text import Text

from chaoslab.history import History
from chaoslab.reports.charts import draw, main, overlay, save

NAMES = ["throughput", "success_rate", "network_latency", "tool_latency", "errors", "response_time", "mttr"]
LONG = {f"{'a_service_with_a_really_long_name_' * 4}of_its_own_{n}": "tool" for n in range(9)}


def history(folder: Path, *, chance: float = 0.3, prompts: int = 60, targets: dict[str, str] | None = None) -> History:
    return History.read(FakeRun(folder, prompts=prompts, chance=chance, targets=targets or dict(TARGETS)).write())


def words(figure: Figure) -> list[Text]:
    """Every text that is seen, laid out as in the file; tick labels outside of their axis are not drawn."""
    figure.draw_without_rendering()
    ticks, drawn = set(), set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                ticks |= {tick.label1, tick.label2}
                if axes.axison and tick.label1.get_visible() and low <= tick.get_loc() <= high:
                    drawn.add(tick.label1)
        if not axes.axison:
            ticks |= {axes.xaxis.label, axes.yaxis.label}
    found = [t for t in figure.findobj(Text) if isinstance(t, Text)]
    return [t for t in found if t.get_text().strip() and t.get_visible() and (t not in ticks or t in drawn)]


def said(figure: Figure) -> str:
    """All words of a picture, a text a line, however it was wrapped."""
    return "\n".join(" ".join(text.get_text().split()) for text in words(figure))


def check_legible(figure: Figure) -> None:
    texts = words(figure)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for (one, here), (other, there) in combinations(boxes, 2):
        overlap = min(here.x1, there.x1) - max(here.x0, there.x0), min(here.y1, there.y1) - max(here.y0, there.y0)
        assert min(overlap) < 1, f"{one!r} lies over {other!r}"
    width, height = figure.canvas.get_width_height()
    for text, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{text!r} is cut off"


@pytest.mark.parametrize(
    ("prompts", "chance", "targets"),
    [(60, 0.3, TARGETS), (25, 0.0, TARGETS), (1, 0.3, TARGETS), (300, 0.3, TARGETS), (40, 0.5, LONG)],
    ids=["rich", "calm", "one prompt", "300 prompts", "long names"],
)
def test_every_picture_is_legible(tmp_path: Path, prompts: int, chance: float, targets: dict[str, str]) -> None:
    figures = draw(history(tmp_path, prompts=prompts, chance=chance, targets=targets))
    assert list(figures) == NAMES
    for figure in figures.values():
        check_legible(figure)
        assert figure.get_suptitle()


def test_axes_have_names_and_units(tmp_path: Path) -> None:
    for name, figure in draw(history(tmp_path)).items():
        (axes,) = figure.axes
        assert "(" in axes.get_xlabel(), name
        rows = name in ("success_rate", "tool_latency", "errors", "mttr")
        assert rows or "(" in axes.get_ylabel(), name


def test_witnessed_faults_are_marked_and_counted(tmp_path: Path) -> None:
    figures = draw(history(tmp_path))
    for fault in ("latency", "timeout", "tool_error", "lost_reply", "wrong_value"):
        assert f"{fault} (" in said(figures["network_latency"])
        assert (f"{fault} (" in said(figures["mttr"])) == (fault != "wrong_value"), "nobody recovers from that one"
    assert "never recovered (at least so long)" in said(figures["mttr"])
    assert "Kaplan–Meier median" in said(figures["mttr"])
    assert "too few" in said(figures["mttr"])
    assert "failed, nobody injected (" in said(figures["network_latency"])
    assert "nobody injected (" in said(figures["errors"])


def test_a_censored_incident_is_an_open_arrow(tmp_path: Path) -> None:
    (axes,) = draw(history(tmp_path))["mttr"].axes
    (arrows,) = [c for c in axes.collections if str(c.get_label()).startswith("never recovered")]
    assert len(arrows.get_facecolor()) == 0


def test_a_run_without_faults_says_so(tmp_path: Path) -> None:
    figures = draw(history(tmp_path, chance=0.0))
    assert "no faults were witnessed in this run" in said(figures["network_latency"])
    assert "no data: no faults were witnessed in this run" in said(figures["mttr"])
    assert "no attempt failed in this run" in said(figures["errors"])


def test_a_run_without_anything_says_so_on_every_picture() -> None:
    for figure in draw(History([])).values():
        check_legible(figure)
        assert "no " in said(figure) or "nothing" in said(figure)


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = history(tmp_path / "run", prompts=5)
    first, again = (save(draw(run), tmp_path / name) for name in ("first", "again"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_runs_are_laid_over_each_other_against_toxic_prob(tmp_path: Path) -> None:
    runs = [history(tmp_path / str(chance), chance=chance, prompts=25) for chance in (0.0, 0.1, 0.4)]
    figures = overlay(runs)
    assert list(figures) == ["success_vs_toxic_prob", "mttr_vs_toxic_prob"]
    for figure in figures.values():
        check_legible(figure)
        assert "TOXIC_PROB" in figure.axes[0].get_xlabel()
    assert "no data" in said(figures["mttr_vs_toxic_prob"])
    line = next(line for line in figures["success_vs_toxic_prob"].axes[0].lines if line.get_marker() == "o")
    assert np.asarray(line.get_xdata()).tolist() == [0.0, 0.1, 0.4]


def test_runs_without_faults_have_no_recovery_to_draw(tmp_path: Path) -> None:
    runs = [history(tmp_path / name, chance=0.0, prompts=2) for name in "ab"]
    assert "no data" in said(overlay(runs)["mttr_vs_toxic_prob"])


def test_the_door_draws_the_latest_run_and_names_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    history(logs / "20260601-090000", prompts=3)
    (logs / "latest").symlink_to("20260601-090000")
    assert main(["--out", str(out)], logs=logs) == 0
    assert capsys.readouterr().out.splitlines() == [str(out / f"{name}.png") for name in NAMES]
    assert main(["20260601-090000", str(logs / "latest"), "--out", str(out)], logs=logs) == 0
    assert capsys.readouterr().out.splitlines() == [str(out / f"{n}_vs_toxic_prob.png") for n in ("success", "mttr")]


def test_a_wrong_name_gets_one_line_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(tmp_path / "20260601-090000", prompts=1)
    assert main(["logs/20260601-09000"], logs=tmp_path) == 2
    error = capsys.readouterr().err
    assert error == "no run with logs is called 'logs/20260601-09000': did you mean '20260601-090000'?\n"


def test_runs_that_do_not_state_their_toxic_prob_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(tmp_path / "one", prompts=1)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "info.log").write_text("not of the lab\n")
    assert main(["one", "foreign"], logs=tmp_path) == 2
    assert (
        capsys.readouterr().err
        == "the logs of 'foreign' tell of no run: neither this lab nor the first one wrote them\n"
    )


def test_without_logs_the_script_says_what_to_do(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "charts.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "no logs yet in logs/: run make lab first\n")
