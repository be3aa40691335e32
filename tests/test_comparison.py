"""Two runs compared trial by trial, and the test behind it, against values worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.analysis.comparison import Comparison, Run, compare, mcnemar
from chaoslab.cli import main
from chaoslab.record.history import History
from chaoslab.reports import comparison

Agent = Callable[[str], str]
CITY = "<b>Ulm</b>"


def price(city: str) -> int:
    return len(city)


def careless(prompt: str) -> str:
    try:
        return f"It is {price(prompt)}."
    except Exception:  # noqa: BLE001 - a bad agent
        return "It is 7."


def careful(prompt: str) -> str:
    for _ in range(5):
        try:
            return f"It is {price(prompt)}."
        except Exception:  # noqa: BLE001 - it asks again
            continue
    return "I could not find the price."


def run(agent: Agent, where: str, *, prompt: str = CITY, trials: int = 8) -> Run:
    often = lab.inject("server_error", "price", chance=0.5)
    found = lab.run_many(agent, prompt, trials=trials, reads=[price], faults=[often], seed=3)
    return Run.of(History([record for trial in found for record in trial.history.records]), where)


@pytest.fixture(scope="module")
def mended() -> Comparison:
    return compare(run(careless, "old"), run(careful, "new"))


def test_each_pair_is_the_same_trial_and_knows_which_way_it_went(mended: Comparison) -> None:
    assert (len(mended.pairs), mended.judged, mended.alone) == (8, 8, (0, 0))
    assert {(str(p.before.outcome), str(p.after.outcome)) for p in mended.better} <= {
        ("wrong", "correct"), ("wrong", "degraded"),
    }  # fmt: skip
    assert mended.better
    assert mended.worse == []
    assert mended.gained >= 1
    assert mended.lost == 0
    back = compare(mended.after, mended.before)
    assert [p.trial for p in back.worse] == [p.trial for p in mended.better]
    assert (back.gained, back.lost, back.p) == (0, mended.gained, mended.p)


def test_a_run_beside_itself_has_nothing_to_tell(mended: Comparison) -> None:
    same = compare(mended.before, mended.before)
    assert (same.moves, same.p, comparison.headline(same)) == ({}, None, "All 8 judged pairs ended alike")


def test_trials_of_other_prompts_are_no_pairs(mended: Comparison) -> None:
    some = compare(run(careful, "old", trials=5), mended.after)
    assert (len(some.pairs), some.alone) == (5, (0, 3))
    none = compare(run(careful, "old", prompt="Bonn"), mended.after)
    assert none.pairs == []
    assert comparison.headline(none).startswith("No trial of one run is a trial of the other")


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, None), (1, 0, 1.0), (5, 0, 2 / 32), (6, 1, 2 * 8 / 128), (4, 4, 1.0), (0, 10, 2 / 1024)],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float | None) -> None:
    assert mcnemar(gained, lost) == (None if p is None else pytest.approx(p))


def test_every_format_tells_the_same(mended: Comparison) -> None:
    back = compare(mended.after, mended.before)
    said = comparison.headline(back)
    value = json.loads(comparison.as_json(back))
    assert value["said"] == said
    assert (value["worse"], value["correct_only_before"], value["p"]) == (len(back.worse), back.lost, back.p)
    assert [each["trial"] for each in value["trials"]] == [pair.trial for pair in back.pairs]
    for text in (comparison.text(back), comparison.markdown(back), comparison.html(back)):
        assert said in text
        for pair in back.worse:
            assert f"chaoslab show old --trial {pair.trial}" in text
    assert all(len(line) <= 80 for line in comparison.text(back).splitlines())


def test_a_foreign_text_is_shown_as_text(mended: Comparison) -> None:
    hostile = run(lambda prompt: f"<script>alert({price(prompt)})</script>", "<script>alert(1)</script>")
    page = comparison.html(compare(mended.after, hostile))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path / "none"), str(tmp_path / "nor")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
