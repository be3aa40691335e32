"""The figures at /metrics are those of the summary, also if they are read while the run goes on."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import AttemptRef, FaultArmed, FaultHealed, FaultWitnessed, PromptFinished, PromptStarted
from chaoslab.proxy_manager.figures import RunMetrics
from chaoslab.record.runs import Run
from tests.reports.fake_run import FakeRun

AT = AttemptRef(trial="p1.r1", target="search", request=1, attempt=1, request_id="id")


def values(text: str) -> dict[str, float]:
    """The value of each sample by its name and labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_the_figures_are_those_of_the_report(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path / "logs" / "run", prompts=30, chance=0.4).write()
    assert folder.name == "run"
    report = RunReport.from_folder(folder)
    outcomes = Counter(report.outcomes_by_trial.values())
    overall = report.recovery.value.overall
    figures = RunMetrics(tmp_path / "logs")
    for _ in range(2):  # the second scrape finds nothing new
        found = values(figures.render_text(["run"], lanes=2))
    assert {n: v for n, v in found.items() if "trials_total" in n} == {
        f'chaoslab_trials_total{{outcome="{outcome}"}}': count for outcome, count in outcomes.items()
    }
    assert sum(v for n, v in found.items() if "incidents_total" in n) == overall.n
    assert found.get("chaoslab_mttr_seconds") == pytest.approx(overall.mean_s)
    figures.close()
    assert (found["chaoslab_lanes"], found["chaoslab_runs"], found["chaoslab_agent_up"]) == (2, 1, 0)


def test_a_run_that_ended_before_the_first_scrape_counts_and_only_once(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path / "logs" / "run", prompts=5, chance=0.4).write()
    trials = len(RunReport.from_folder(folder).outcomes_by_trial)
    figures = RunMetrics(tmp_path / "logs")
    for _ in range(2):
        found = values(figures.render_text([], lanes=0, served=["run"]))
        assert sum(v for n, v in found.items() if "trials_total" in n) == trials
        assert (found["chaoslab_runs"], found["chaoslab_agent_up"]) == (0, 0)
    figures.close()


def test_a_trial_counts_when_its_lanes_are_down_and_the_agent_is_up_while_it_writes(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now="2026-06-01T09:00:00Z")
    figures = RunMetrics(tmp_path)

    def told(name: str) -> float:
        return values(figures.render_text([run.name], lanes=0)).get(f"chaoslab_{name}", 0.0)

    with run.open_log("info") as info, run.open_log("manager") as manager:
        info.write(PromptStarted(prompt_index=1, prompt="?"), trial="p1.r1")
        manager.write(FaultArmed(fault="latency", injection="wire", at=AT, lane="lane.1"), trial="p1.r1")
        ended = PromptFinished(
            prompt_index=1, prompt="?", status="ok", answer="", attempts=1, duration_s=0.1, error_type="none"
        )
        info.write(ended, trial="p1.r1")
        assert told('trials_total{outcome="unknown"}') == 0
        assert told("agent_up") == 1
        manager.write(FaultWitnessed(fault="latency", injection="wire", at=AT, evidence="late"), trial="p1.r1")
        manager.write(FaultHealed(fault="latency", injection="wire", at=AT), trial="p1.r1")
        assert told('faults_total{fault="latency",target="search",stage="witnessed"}') == 1
        assert sum(v for n, v in values(figures.render_text([run.name], lanes=0)).items() if "trials_total" in n) == 1
    shutil.rmtree(run.folder)
    assert told("agent_up") == 0, "a folder that is gone ends no scrape"
    figures.close()
