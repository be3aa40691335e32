"""Runs share a line in an overlay if they differ in TOXIC_PROB, the seed or the number of trials alone."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from chaoslab.config.settings import Settings
from chaoslab.record.history import History
from chaoslab.reports import charts
from chaoslab.reports.charts import main
from chaoslab.reports.charts.series import Series, table_to_rows
from chaoslab.reports.charts.series import describe_series as why
from chaoslab.reports.charts.series import group_into_series as series_of
from chaoslab.reports.frames import Frames, JoinedRunFrames
from tests.reports.fake_run import FakeRun, stated
from tests.reports.test_charts import check_legible, said


def lines(runs: Iterable[History]) -> list[Series]:
    return series_of(table_to_rows(JoinedRunFrames(map(Frames, runs)).runs))


def overlay(runs: Iterable[History]) -> dict[str, Figure]:
    return charts.draw_multi_run_charts(JoinedRunFrames(map(Frames, runs)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History.read(FakeRun(tmp_path_factory.mktemp("plain"), prompts=25).write())


@pytest.fixture(scope="module")
def shown() -> dict[str, object]:
    return Settings().to_masked_dict()


def test_runs_that_differ_in_the_axis_the_seed_and_the_number_of_trials_share_a_line(
    plain: History, shown: dict[str, object]
) -> None:
    runs = [
        stated(plain, **shown | {"TOXIC_PROB": 0.1, "SEED": 1}),
        stated(plain, **shown | {"TOXIC_PROB": 0.3, "SEED": 2}, seed=2),
        stated(plain, **shown | {"TOXIC_PROB": 0.3, "TRIALS": 500, "REPEATS": 3}, prompts=500),
        stated(plain, **shown | {"TOXIC_PROB": 0.3, "BASE_PORT": 6000}),
        stated(plain, **shown | {"TOXIC_PROB": 0.0}, plan={"seed": 1, "injections": []}),
    ]
    (line,) = lines(runs)
    assert (line.label, [run["TOXIC_PROB"] for run in line.runs]) == ("", [0.1, 0.3, 0.3, 0.3, 0.0])
    assert [run["run"] for run in line.runs] == ["fake", "fake (2)", "fake (3)", "fake (4)", "fake (5)"]
    assert why([line]) == ""


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"MODEL_TOXIC_PROB": 0.1}, "MODEL_TOXIC_PROB=0.1"),
        ({"TOOL_LIMIT": 3}, "TOOL_LIMIT=3"),
        ({"TOXICS": [["reset_peer", 1.0]]}, 'TOXICS=[["reset_peer", 1.0]]'),
        ({"WORLD": "virtual", "world": "virtual"}, "WORLD=virtual"),
        ({"MODEL": "llama", "model": "llama"}, "MODEL=llama"),
        ({"asked": [{"prompt": "Who?"}]}, "prompts="),
        ({"code": {"chaoslab": "beef"}}, "version of chaoslab=beef"),
        ({"plan": {"seed": 1, "injections": [{"name": "mine", "chance": 0.5}]}}, "injection mine="),
        ({"ERROR_PROB": 0.4, "plan": {"seed": 1, "injections": [{"name": "errors", "chance": 0.4}]}}, "ERROR_PROB=0.4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_that_differs_in_anything_else_has_a_line_of_its_own(
    plain: History, shown: dict[str, object], changes: dict[str, object], label: str
) -> None:
    base = {"asked": [{"prompt": "What?"}], **shown}
    one, other = lines([stated(plain, **base), stated(plain, **base | changes)])
    assert other.label.startswith(label)
    assert other.label.count("=") == 1, "what follows from it is not named too"
    assert one.label != other.label


def test_the_moment_of_a_run_under_the_clocks_own_time_is_no_difference(
    plain: History, shown: dict[str, object]
) -> None:
    runs = [stated(plain, **shown | {"NOW": "now"}, now=f"2026-06-0{day}T09:00:00Z") for day in (1, 2)]
    assert len(lines(runs)) == 1


def test_many_differences_are_counted_and_alike_labels_told_apart(plain: History, shown: dict[str, object]) -> None:
    many = {"TOOL_LIMIT": 3, "PROMPT_LIMIT": 4, "LATENCY_MS": 1, "JITTER_MS": 1, "TIMEOUT_MS": 1}
    found = lines(
        [stated(plain, **shown), stated(plain, **shown | many), stated(plain, **shown | many | {"TIMEOUT_MS": 2})]
    )
    labels = [line.label for line in found]
    assert labels[1].endswith(", 2 more")
    assert labels[2] == f"{labels[1]}, otherwise 2"


def test_lines_are_drawn_apart_and_the_picture_says_why(plain: History, shown: dict[str, object]) -> None:
    runs = [
        stated(plain, **shown | {"TOXIC_PROB": toxic,
                                 "MODEL_TOXIC_PROB": model}) for model in (0, 0.1) for toxic in (0.1, 0.3)
    ]  # fmt: skip
    figures = overlay(runs)
    assert list(figures)[3:] == ["heat_map"]
    check_legible(figures.pop("heat_map"))
    for figure in figures.values():
        check_legible(figure)
        assert "the runs differ in more than TOXIC_PROB: 2 lines, shifted a little" in said(figure)
        assert "MODEL_TOXIC_PROB=0, n = " in said(figure)
        assert "MODEL_TOXIC_PROB=0.1, n = " in said(figure)
    (axes,) = figures["success_vs_toxic_prob"].axes
    drawn = [line for line in axes.lines if line.get_marker() in ("o", "s") and len(np.asarray(line.get_xdata())) == 2]
    assert len({line.get_color() for line in drawn}) == len(drawn) == 2


def test_many_lines_are_legible(plain: History, shown: dict[str, object]) -> None:
    for figure in overlay(
        [stated(plain, **shown | {"TOOL_LIMIT": n, "TOXIC_PROB": 0.1 * n}) for n in range(9)]
    ).values():
        check_legible(figure)
        assert "TOOL_LIMIT=8" in said(figure) or "TOOL_LIMIT" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("changes", "axis", "ticks"),
    [
        ([{"ERROR_PROB": 0.0}, {"ERROR_PROB": 0.2}, {"ERROR_PROB": 0.4}], "ERROR_PROB", None),
        ([{"LATENCY_MS": 3000}, {"LATENCY_MS": 10}, {"LATENCY_MS": 300}], "LATENCY_MS", ["10", "300", "3000"]),
        ([{"FALLBACK": "none"}, {"FALLBACK": "direct"}], "FALLBACK", ["none", "direct"]),
        ([{"AGENT": "naive", "TOOL_LIMIT": 0}, {"AGENT": "careful", "TOOL_LIMIT": 3}], "AGENT", ["naive", "careful"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_axis_is_the_setting_that_differs(
    plain: History, shown: dict[str, object], changes: list[dict[str, object]], axis: str, ticks: list[str] | None
) -> None:
    figures = overlay([stated(plain, **shown | change) for change in changes])
    assert list(figures) == [f"{what}_vs_{axis.lower()}" for what in ("success", "mttr", "time")]
    for figure in figures.values():
        check_legible(figure)
        if figure.axes[0].axison:
            assert figure.axes[0].get_xlabel().startswith(f"{axis}: ")
    axes = figures[f"success_vs_{axis.lower()}"].axes[0]
    assert ticks is None or [label.get_text() for label in axes.get_xticklabels()] == ticks
    assert "lines" not in said(figures[f"time_vs_{axis.lower()}"])


def test_a_setting_as_a_second_knob_names_its_lines(plain: History, shown: dict[str, object]) -> None:
    naive = {"AGENT": "naive", "TOOL_LIMIT": 0, "FALLBACK": "none"}
    runs = [stated(plain, **shown | {"ERROR_PROB": p} | more) for p in (0.0, 0.3, 0.6) for more in ({}, naive)]
    figures = overlay(runs)
    assert list(figures)[3:] == ["heat_map"]
    assert "AGENT=naive, n = " in said(figures["success_vs_error_prob"])
    assert [label.get_text() for label in figures["heat_map"].axes[0].get_yticklabels()] == ["default", "naive"]


def test_the_door_says_in_a_line_that_runs_are_drawn_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        FakeRun(tmp_path / name, prompts=3, targets={"search": "search_web", name: "call"}).write()
    assert main(["one", "two"], out=tmp_path / "out", logs=tmp_path) == 0
    (words,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("no ")]
    assert words.startswith("the runs differ in more than TOXIC_PROB, so they are 2 lines: injection errors=")
    assert main(["one", "one"], out=tmp_path / "out", logs=tmp_path) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if not line.startswith("no ")] == []
