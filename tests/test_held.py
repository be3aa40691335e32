"""A run that goes on is told from one that was killed."""

from pathlib import Path

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import PromptStarted, RunStarted
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.reports import runs, show
from tests.cli_parts import Typed
from tests.gateway.parts import shop, standing
from tests.reports.fake_run import summary

NOW = "2026-01-01T00:00:00Z"
STARTED = RunStarted(seed=3, settings={}, plan={}, prompts=1, now=NOW, model="any", world="virtual")


def told(folder: Path) -> list[str]:
    """All that the readers of a run say of its end."""
    story = show.render_stories(History.read(folder)).splitlines()[-1].split(":", 1)[1].strip()
    report = RunReport.from_folder(folder)
    listed = " ".join(runs.read_run_list_entry(folder).render_run_text().split())
    return [
        story,
        *(verdict.why for verdict in report.verdicts.values()),
        next(line.split(" · ")[-1] for line in summary(report).splitlines() if line.startswith("run ")),
        listed.rsplit("; ", 1)[-1],
    ]


def test_a_run_is_still_running_while_its_writer_lives(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)
    with run.open_log("info") as log, run.open_log("info"):  # two writers of one log
        log.write(STARTED)
        log.write(PromptStarted(prompt_index=1, prompt="go"), trial="p1.r1")
        assert told(run.folder) == ["it is still running", "it is still running", "still running", "still running"]
    assert told(run.folder) == ["the run ended before it did", "the run ended before it did", *["not finished"] * 2]


def test_show_tells_that_a_gateway_is_still_running(here: Path, typed: Typed) -> None:
    with shop() as server, standing(here / "logs", [f"crm={server.url}"]):
        assert "unfinished: it is still running" in typed.out("show")
        assert "still running" in typed.out("runs")
    assert "still running" not in typed.out("show")
