"""`chaoslab report`: where each format goes, and a line for each mistake; the report that a run leaves."""

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaoslab import cli
from chaoslab.lab.launch import print_end_report
from tests.cli_parts import Typed
from tests.reports.fake_run import FakeRun

FILES = {
    "html": ["report.html"],
    "json": ["report.json"],
    "markdown": ["report.md"],
}
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def here(here: Path) -> Path:
    """A folder with the runs one and two; two is the latest."""
    for name in ("one", "two"):
        FakeRun(here / "logs" / name, prompts=4).write()
    (here / "logs" / "latest").symlink_to("two")
    return here


@pytest.mark.parametrize("kind", FILES)
def test_a_format_goes_into_the_runs_folder(kind: str, here: Path, capsys: Printed) -> None:
    assert cli.main(["report", "--format", kind]) == 0
    paths = [f"logs/two/{name}" for name in FILES[kind]]
    assert capsys.readouterr() == ("".join(f"{path}\n" for path in paths), "")
    assert all((here / path).stat().st_size for path in paths)


def test_out_names_a_file_or_a_folder(here: Path, typed: Typed) -> None:
    written = typed.out("report", "one", "--format", "json", "--out", "mine.json").split()
    assert json.loads((here / "mine.json").read_text(encoding="utf-8"))["run"]["folder"] == "logs/one"
    written += typed.out("report", "one", "--format", "markdown", "--out", "new/one/").split()
    written += typed.out("report", "one", "two", "--format", "markdown", "--out", "both").split()
    assert written == [
        "mine.json", "new/one/report.md",
        "both/one/report.md", "both/two/report.md",
    ]  # fmt: skip
    assert all((here / path).is_file() for path in written)


def test_out_dash_prints_it(here: Path, typed: Typed) -> None:
    before = sorted(here.rglob("*"))
    assert typed.out("report", "two", "--format", "markdown", "--out", "-").startswith("## ")
    assert sorted(here.rglob("*")) == before


@pytest.mark.usefixtures("two_charts")
def test_without_a_format_all_is_left_as_a_run_leaves_it(here: Path, typed: Typed) -> None:
    code, out, err = typed("report", "one")
    assert code == 0
    assert "\nreport  logs/one/report.html\ncharts  logs/one/charts/\n" in out
    assert err == ""
    assert (here / "logs/one/report.html").is_file()


def test_open_shows_the_page(here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    opened: list[str] = []

    def browse(address: str) -> bool:
        """A browser that starts once."""
        opened.append(address)
        return len(opened) == 1

    monkeypatch.setattr(webbrowser, "open", browse)
    assert typed("report", "one", "--format", "html", "--open").code == 0
    assert opened == [(here / "logs/one/report.html").as_uri()]
    code, _, error = typed("report", "one", "--format", "html", "--open")
    assert (code, error) == (2, "no browser could be started: open logs/one/report.html in one\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["onee", "--format", "json"], "no run with logs is called 'onee': did you mean 'one'?"),
        (["--format", "json", "--open"], "--open shows HTML in the browser, and --format json is none: leave one out"),
        (["--open", "--format", "html", "--out", "-"], "--open needs a file, and --out - writes none: leave one out"),
        (["--out", "x"],
         "--out needs --format, which says what to write: html, json or markdown"),
        (["one", "two", "--format", "json", "--out", "-"],
         "--out - prints one file, and there are 2 runs: name a folder"),
        (["--format", "json", "--out", "logs/one/info.log/x"],
         "--out logs/one/info.log/x: there is no folder logs/one/info.log"),
        (["--format", "html", "--out", "chrats/new/mine.html"],
         "--out chrats/new/mine.html: there is no folder chrats/new"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words: Sequence[str], line: str, here: Path, typed: Typed) -> None:
    before = sorted(here.rglob("*"))
    assert typed("report", *words) == (2, "", f"{line}\n")
    assert sorted(here.rglob("*")) == before


def test_a_format_of_before_is_told_what_to_use(typed: Typed) -> None:
    assert "lab.load('latest').trials.to_parquet('trials.parquet')" in typed.refused("report", "--format", "parquet")
    assert "chaoslab charts draws them" in typed.refused("report", "--format", "charts")


def test_of_two_runs_none_is_written_if_one_is_not_there(here: Path, typed: Typed) -> None:
    for form in ([], ["--format", "json", "--out", "new"]):
        before = sorted(here.rglob("*"))
        assert typed.refused("report", "one", "nosuch", *form).startswith("no run with logs is called 'nosuch'")
        assert sorted(here.rglob("*")) == before


@pytest.mark.usefixtures("two_charts")
def test_a_report_that_cannot_be_written_is_one_line(here: Path, capsys: Printed) -> None:
    (here / "logs/one/report.html").mkdir()
    assert print_end_report(Path("logs/one"), 0) == 2
    assert capsys.readouterr().err == "cannot write logs/one/report.html: Is a directory\n"
    assert list((here / "logs/one").glob(".*")) == []
