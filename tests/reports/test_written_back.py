"""The lab can read what it wrote, and no report takes the place of what is none."""

import subprocess
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.core.events import PromptFinished, PromptStarted, RunFinished, RunStarted
from chaoslab.record.log import Log
from tests import warm
from tests.cli_parts import Typed
from tests.disk_parts import small_disk
from tests.reports.fake_run import FakeRun

HALF = "half \ud83d of a sign"


@pytest.fixture
def run(here: Path) -> Path:
    return FakeRun(here / "run", prompts=4).write()


@pytest.fixture
def half(here: Path) -> Path:
    """A run whose answer ends in one half of a surrogate pair."""
    with Log(here / "logs" / "half", "info", run="half", origin=0.0) as log:
        log.write(RunStarted(seed=1, settings={}, plan={}, prompts=1, now="2026-06-01T09:00:00Z", model="any"))
        log.write(PromptStarted(prompt_index=1, prompt=HALF), trial="p1.r1")
        log.write(
            PromptFinished(prompt_index=1, prompt=HALF, status="ok", answer=HALF, attempts=1, duration_s=1.0),
            trial="p1.r1",
        )
        log.write(RunFinished(received=1, processed=1, succeeded=1, duration_s=1.0))
    return here / "logs" / "half"


def test_half_a_sign_is_loaded_and_written_as_a_table(half: Path) -> None:
    assert list(lab.load(str(half)).trials["answer"]) == ["half \\ud83d of a sign"]


@pytest.mark.parametrize(
    "words",
    [
        ["summary"], ["summary", "--json"], ["show"], ["show", "--json"], ["runs"], ["charts"],
        *(["report", "--format", kind] for kind in ("html", "json", "markdown")),
    ],
)  # fmt: skip
def test_every_reader_reads_half_a_sign(half: Path, words: list[str]) -> None:
    where = [] if words == ["runs"] else [str(half)]
    done = subprocess.run(
        [warm.python(), "-m", "chaoslab", *words, *where],
        capture_output=True,
        cwd=half.parent.parent,
        timeout=120,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("name", ["info.log", "messaging.log", "mine.json"])
@pytest.mark.parametrize("kind", ["json", "html", "markdown"])
def test_a_report_takes_no_place_of_what_is_none(
    run: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "mine.json").write_text('{\n "name": "a package of mine"\n}\n')
    before = (run / name).read_bytes()
    assert main(["report", str(run), "--format", kind, "--out", str(run / name)]) == 2
    said = f"cannot write {run / name}: what is there is no report of this format: name another file\n"
    assert capsys.readouterr().err == said
    assert (run / name).read_bytes() == before


@pytest.mark.parametrize("kind", ["json", "html", "markdown"])
def test_an_earlier_report_gives_way(run: Path, half: Path, kind: str) -> None:
    for each in (run, half, run):
        assert main(["report", str(each), "--format", kind, "--out", "report"]) == 0


def test_a_scenario_s_results_take_no_place_of_a_log(run: Path, typed: Typed) -> None:
    (run.parent / "a.chaos.yaml").write_text("scenario: a\nagent: lab\nprompt: hello\n")
    error = typed.refused("test", "a.chaos.yaml", "--junit", run / "info.log")
    assert error.endswith("this name is one of a run's own files: name another\n")


@pytest.mark.parametrize("kind", ["json", "html", "markdown"])
def test_a_full_disk_is_told_with_its_file_and_is_the_lab_s_failure(
    run: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(run, kib=1024):
        ballast = run / "ballast"
        with ballast.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"x" * 512)
                except OSError:
                    break
        assert main(["report", str(run), "--format", kind]) == 3
        said = capsys.readouterr().err
        ballast.unlink()
    assert said.startswith(f"cannot write {run}/")
    assert said.endswith(": No space left on device\n")
