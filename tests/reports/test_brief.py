"""A run on one screen, as the command that made it ends."""

from pathlib import Path

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.contents import Contents
from chaoslab.reports.formats import terminal
from chaoslab.reports.page import WIDTH

LINES = 40


def pay(*, amount: int) -> str:
    return f"paid {amount}"


def look(*, at: str) -> int:
    return len(at)


def hasty(_prompt: str) -> str:
    found = ""
    for name in ("a", "bb", "ccc"):
        try:
            found += f" {look(at=name)}"
        except Exception:  # noqa: BLE001
            found += " 7"
    for _ in range(2):
        try:
            return f"{pay(amount=3)}, seen{found}"
        except Exception:  # noqa: BLE001
            continue
    return "I could not pay."


def test_a_run_with_harm_fits_on_one_screen_and_says_what_to_look_at(tmp_path: Path) -> None:
    kinds = (
        "lost_reply",
        "timeout",
        "tool_error",
        "refused",
        "latency",
        "wrong_value",
        "empty",
        "rate_limit",
        "not_found",
        "reset_peer",
    )
    faults = [lab.inject(kind, target, chance=0.1) for kind in kinds for target in ("pay", "look")]
    options = {"tools": [pay], "reads": [look], "faults": faults, "trials": 60, "logs": tmp_path}
    list(lab.run_many(hasty, "Pay 3.", **options))  # type: ignore[arg-type]
    report = RunReport.from_folder((tmp_path / "latest").resolve())
    lines = terminal.render_short_summary(Contents(tmp_path, report, "latest")).splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > WIDTH and "chaoslab" not in line] == []
    head = next(n for n, line in enumerate(lines) if line.startswith("fault met "))
    assert " in the mean" in " ".join(lines[head:])
    assert any(line.startswith("  … and ") and line.endswith("chaoslab summary latest") for line in lines[head:])
    assert any("left the ledgers other than they should be" in line for line in lines[:10])
    assert lines[-1] == "all figures: chaoslab summary latest"


def test_a_run_in_which_nothing_was_met_says_so(tmp_path: Path) -> None:
    lab.run(lambda _prompt: pay(amount=3), "Pay 3.", tools=[pay], logs=tmp_path)
    report = RunReport.from_folder((tmp_path / "latest").resolve())
    text = " ".join(terminal.render_short_summary(Contents(tmp_path, report, "latest")).split())
    assert "No fault was scheduled. 0 of 1 trial met a fault." in text
