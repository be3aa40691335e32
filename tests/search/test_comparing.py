"""Two sides on the same trials: the verdict, when it stops, and what counts as evidence."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.search.comparing import Comparison, Pair, Side

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
WELL, BAD, OPEN = (
    Side(well, name, name, 1, 1.0) for well, name in ((True, "correct"), (False, "harm"), (None, "invalid"))
)


def compared(pairs: Sequence[tuple[Side, Side]], clusters: Sequence[str] = ()) -> Comparison:
    found = Comparison()
    for number, (base, new) in enumerate(pairs, 1):
        found.add(Pair(number, base, new, clusters[number - 1] if clusters else ""))
    return found


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(WELL, BAD)] * 7, "worse"),
        ([(BAD, WELL)] * 7, "better"),
        ([(WELL, BAD)] * 5, "too few"),
        ([(WELL, WELL)] * 40, "no difference shown"),
        ([(WELL, OPEN)] * 100, "too few"),
        ([(WELL, BAD), (BAD, WELL)] * 30, "no difference shown"),
        ([], "too few"),
    ],
)
def test_verdicts(pairs: Sequence[tuple[Side, Side]], verdict: str) -> None:
    assert compared(pairs).verdict == verdict


def test_of_several_prompts_each_is_evidence_once() -> None:
    one_prompt_is_bad = compared([(WELL, BAD)] * 20, ["a"] * 10 + ["b"] * 10)
    assert (one_prompt_is_bad.count("worse"), one_prompt_is_bad.count("worse", counted=True)) == (20, 2)
    assert one_prompt_is_bad.verdict == "too few"
    assert compared([(WELL, BAD)] * 8, list("abcdefgh")).verdict == "worse"


def test_what_is_told_names_the_pairs_and_the_pairs_that_are_needed() -> None:
    found = compared([(WELL, WELL)] * 30 + [(WELL, BAD)] * 3 + [(WELL, OPEN)])
    told = "\n".join(found.told(most=2))
    assert "33 of 33 pairs well on the base, 30 on the new side" in told
    assert "a change as large as this is shown within 33 pairs with a chance of 0.03; about 114 are needed" in told
    assert "33 pairs would show 29.7% of them worse, none better, with a chance of 0.9" in told
    assert "1 pairs prove nothing" in told
    assert "  worse: trial 31: correct → harm (harm)\n" in told
    assert "… and 1 more worse" in told
    assert json.loads(json.dumps(found.data()))["worse"] == 3


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.usefixtures("there")
def test_a_careless_agent_is_called_worse_as_soon_as_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["compare", "paid_twice.chaos.yaml", "--fresh", "paid_twice:naive", "--json", "-q"])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["verdict"], found["better"]) == (1, "worse", 0)
    assert found["pairs"] < 40


@pytest.mark.usefixtures("there")
def test_a_side_is_not_worse_than_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "paid_twice.chaos.yaml", "--a-a", "1", "-n", "10"]) == 0
    assert "worse than itself 0 of 1 times" in (out := capsys.readouterr().out)
    assert "with the same seed no trial differs" in out


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["paid_twice.chaos.yaml"], "both sides are the same: give NEW, --agent, --fresh, --prompt"),
        (["paid_twice.chaos.yaml", "slow_tool.chaos.yaml"], "paid twice: the sides differ in faults"),
        (["paid_twice.chaos.yaml", "--set", "prompt=Pay."], "paid twice: the sides differ in prompt"),
    ],
)
def test_sides_that_cannot_be_compared_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
