"""Two sides on the same trials: the verdict, when it stops, and what counts as evidence."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import Pair, Side, first_difference

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
    told = "\n".join(found.in_words(most=2))
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


def test_harm_is_counted_apart_from_what_is_not_well() -> None:
    harmed = Side(False, "harm", "twice", 1, 1.0, harm=True)
    found = compared([(Side(False, "wrong", "17", 1, 1.0), harmed)] * 8)
    assert (found.verdict, found.count("worse"), found.harmed) == ("too few", 0, (0, 8))
    assert found.harm_evidence[0] > 20
    assert "harm: 0 on the base, 8 on the new side; evidence 36.5 for more" in "\n".join(found.in_words())
    assert found.outcomes == {"harm": (0, 8), "wrong": (8, 0)}


def test_costs_have_a_confidence_sequence_over_the_pairs_or_the_prompts() -> None:
    pairs = [(Side(True, "correct", "", 1, 1.0, tokens=100), Side(True, "correct", "", 1 + n % 2, 1.0, tokens=100))
             for n in range(100)]  # fmt: skip
    (calls, seconds, tokens) = compared(pairs).costs
    assert (calls.base, calls.new, seconds.new, tokens.interval) == (1.0, 1.5, 1.0, None)
    assert calls.interval is not None
    assert 0.2 < calls.interval.low < 0.5 < calls.interval.high < 0.8
    few_prompts = compared(pairs, [str(n % 10) for n in range(100)])
    assert [each.interval for each in few_prompts.costs] == [None] * 3


def test_each_prompt_is_a_row_and_two_prompts_can_show_nothing() -> None:
    found = compared([(WELL, BAD)] * 50, ["a", "b"] * 25)
    told = "\n".join(found.in_words(most=0))
    assert found.verdict == "too few"
    assert "a verdict needs 7 prompts and 40 judged pairs; 50 of 50 could be judged" in told
    assert "  'a': 25 of 25 → 0 of 25 well" in told
    assert "50 pairs became worse and 0 better, of which each prompt counts once (2 and 0)" in told


def test_open_verdicts_on_words_are_told_as_such() -> None:
    words = Side(None, "≈ wrong", "words", 1, 1.0, words=True)
    told = "\n".join(compared([(WELL, words), (WELL, OPEN)]).in_words())
    assert "2 pairs prove nothing, 1 of them since a verdict rests on words alone" in told


def test_pass_k_has_an_interval() -> None:
    found = compared([(WELL, WELL)] * 20 + [(WELL, BAD)] * 20)
    assert found.pass_all is not None
    assert (found.pass_all.k, found.pass_all.base) == (8, 1.0)
    assert found.pass_all.new < 0.01
    assert found.pass_all.interval.high < 0
    assert compared([(WELL, BAD)] * 3).pass_all is None


def test_a_changed_pair_has_the_first_difference_of_both_stories() -> None:
    base = replace(WELL, story=lambda: {"prompt": {"asked": "a"}, "pay 1.1": {"ok": True}, "end": {"status": "ok"}})
    new = replace(BAD, story=lambda: {"prompt": {"asked": "b"}, "pay 1.1": {"ok": False}})
    found = compared([(base, new), (base, replace(WELL, story=new.story))])
    assert [each.differs for each in found.pairs] == ["pay 1.1, ok: True → False", ""]
    assert first_difference({"pay 1.1": {}}, {}) == "pay 1.1: only on the base"
    assert first_difference({"pay 1.1": {}}, {"pay 1.1": {}}) == ""


def test_more_pairs_are_hopeless_if_all_of_them_could_not_decide() -> None:
    found = compared([(WELL, BAD)] * 2 + [(WELL, WELL)] * 40)
    assert [found.hopeless(left) for left in (3, 10)] == [True, False]


def test_a_side_is_the_same_after_json() -> None:
    side = Side(True, "correct", "", 2, 1.5, 10, dollars=None, quality=0.5, models=("m",))
    assert Side.of(json.loads(json.dumps(side.plain()))) == side
    with pytest.raises(TypeError):
        Side.of({**side.plain(), "calls": "2"})
