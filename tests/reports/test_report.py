"""A report from Python: the figures of trials as values, and its files."""

import json
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.reports.report import KINDS


def price(*, item: str) -> int:
    return len(item)


def patient(_prompt: str) -> str:
    for _ in range(2):
        try:
            return f"It costs {price(item='pen')}."
        except Exception:  # noqa: BLE001
            continue
    return "I could not find the price."


def trials() -> lab.Trials[lab.Trial]:
    fault = lab.inject("timeout", "price", calls=[1])
    return lab.run_many(patient, "How much?", trials=3, reads=[price], faults=[fault])


@pytest.fixture(scope="module")
def report() -> lab.Report:
    return trials().report()


def test_the_figures_of_a_run_are_values(report: lab.Report) -> None:
    of = report.recovery
    assert (of.n, of.retry, of.mean_s) == (3, 3, 30.0)
    assert of.detected_s is not None
    assert of.since_notice_s is not None
    assert of.detected_s + of.since_notice_s == of.mean_s
    assert report.reliability is not None
    assert (report.reliability.available.count, report.reliability.nines) == (3, 0)
    figures = {(each["section"], each["name"]): each for each in report.figures}
    took = figures["Recovery", "time to recovery"]
    assert (took["value"], took["unit"], took["n"]) == (30.0, "s", 3)
    later = "the 3 by retry or fallback were noticed after 30.00 s and repaired 0 s later."
    assert took["said"].endswith(f" it took 30.00 s in the mean; {later}")
    assert figures["Retries and calls", "amplification"]["value"] == 2.0


def test_a_figure_has_its_unit_where_there_is_nothing_to_count_too(report: lab.Report) -> None:
    calm = lab.run_many(patient, "How much?", trials=2, reads=[price], faults=[]).report()
    units, calm_units = ({(f["section"], f["name"]): f["unit"] for f in each.figures} for each in (report, calm))
    assert {("Recovery", "recovered"), ("Reliability", "ended well after a fault")} <= units.keys() & calm_units.keys()
    assert {name: unit for name, unit in calm_units.items() if unit != units.get(name, unit)} == {}


def test_the_report_of_trials_in_memory_is_a_file_of_the_kind_that_its_name_says(
    report: lab.Report, tmp_path: Path
) -> None:
    for suffix in KINDS:
        assert report.save(tmp_path / f"report{suffix}").stat().st_size > 500
    held = json.loads((tmp_path / "report.json").read_text())
    assert held["figures"] == report.figures
    (fault,) = held["tables"]["mttr"]
    assert (fault["fault"], fault["target"], fault["mttr_s"]) == ("timeout", "price", 30.0)
    assert [each["burn_rate"] for each in held["tables"]["reliability"]] == [0.0] * 4
    assert next(row for row in held["tables"]["costs"] if row["fault"] == "timeout")["seconds"] == 90.0
    assert " it took 30.00 s" in (tmp_path / "report.md").read_text()
    with pytest.raises(ValueError, match=r"report\.pdf should end in \.html, \.json"):
        report.save(tmp_path / "report.pdf")


def test_a_report_prints_as_the_screen_at_a_commands_end(report: lab.Report) -> None:
    assert report.headline == "All of 3 judged trials ended well"
    assert str(report).startswith("All of 3 judged trials ended well.\n")


def test_trials_that_were_taken_are_reported_from_a_list(report: lab.Report) -> None:
    run = trials()
    taken = list(run)
    with pytest.raises(ValueError, match=r"keep them in a list, and give that to lab\.report"):
        run.report()
    assert lab.report(taken).figures == report.figures
    opened = [incident.opened_t for incident in report.incidents]
    assert opened == [0.0, 30.0, 60.0], "one trial begins when the one before it is over"
