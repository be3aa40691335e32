"""Two sides on the same trials: the verdict, when it stops, and what counts as evidence."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.reports.changes import describe_start_changes
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import Pair, Side, describe_first_difference
from tests.event_parts import run_started

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
WELL, BAD, HONEST, OPEN = (
    Side(True, "correct", "correct", 1, 1.0, done=True),
    Side(False, "harm", "harm", 1, 1.0, done=False),
    Side(True, "degraded", "degraded", 1, 1.0, done=False),
    Side(None, "unknown", "words", 1, 1.0, done=True),
)
UNDONE = Side(None, "undone", "unclear", 1, 1.0, done=False)
"""Not done whatever the words say, which nobody can read."""


def compared(pairs: Sequence[tuple[Side, Side]], clusters: Sequence[str] = (), *, period: int = 1) -> Comparison:
    found = Comparison(round_size=period)
    for number, (base, new) in enumerate(pairs, 1):
        found.add(Pair(number, base, new, clusters[number - 1] if clusters else ""))
    return found


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(WELL, BAD)] * 9, "worse"),
        ([(WELL, BAD)] * 8, "too few"),
        ([(BAD, WELL)] * 9, "better"),
        ([(WELL, WELL)] * 40, "no difference shown"),
        ([(WELL, BAD), (BAD, WELL)] * 30, "no difference shown"),
        ([], "too few"),
        # One figure alone is worse, whatever the other shows.
        ([(WELL, HONEST)] * 9, "worse"),
        ([(WELL, UNDONE)] * 9, "worse"),
        ([(HONEST, BAD)] * 9, "worse"),
        # What is not known is never better, and never left out.
        ([(WELL, OPEN)] * 100, "open"),
        ([(BAD, OPEN)] * 9 + [(WELL, WELL)] * 40, "open"),
        ([(OPEN, BAD)] * 9 + [(WELL, WELL)] * 40, "worse"),
        ([(WELL, WELL)] * 95 + [(WELL, OPEN)] * 5, "no difference shown"),
        ([(WELL, WELL)] * 94 + [(WELL, OPEN)] * 6, "open"),
        ([(replace(BAD, done=None), replace(WELL, done=None))] * 9, "better"),
        ([(replace(BAD, done=True), WELL)] * 9 + [(WELL, replace(WELL, done=None))] * 31, "open"),
    ],
)
def test_verdicts(pairs: Sequence[tuple[Side, Side]], verdict: str) -> None:
    assert compared(pairs).verdict == verdict


def test_open_pairs_are_counted_for_either_side() -> None:
    found = compared([(WELL, WELL)] * 20 + [(WELL, OPEN)] * 10 + [(OPEN, BAD)] * 4 + [(WELL, BAD)] * 6)
    ended = found.figures["well"]
    assert (ended.shares.judged, ended.shares.open, ended.shares.base, ended.shares.new) == (26, 14, 26, 20)
    assert -20 / 40 in ended.interval  # as if each open trial had been well on the base alone
    assert -6 / 40 in ended.interval  # as if it had been well on the new side alone
    assert not ended.is_change_shown("worse")
    told = found.render_comparison_lines()
    assert "ended well 26 → 20 of 26 pairs, 14 open; change -23.1%, with the open ones within " in "\n".join(told)
    assert "  open: trial 21: correct → unknown (words)" in told
    named = compared([(WELL, WELL)] * 40 + [(WELL, OPEN)] * 10)
    assert named.render_comparison_lines()[0] == "open: 10 of 50 pairs are open (ended well), and 5% may be"
    assert [each["change"] for each in named.to_json_values()["changed"]] == ["open"] * 10


def test_better_goes_on_until_all_is_better_since_the_other_figure_may_still_be_worse() -> None:
    degraded = replace(BAD, outcome="wrong", done=True)
    found = compared([(degraded, WELL)] * 9)
    assert (found.verdict, found.is_decided) == ("better", False)
    for number in range(10, 19):
        found.add(Pair(number, WELL, HONEST))
    assert (found.verdict, found.is_decided) == ("worse", True)


@pytest.mark.parametrize(
    ("met", "held", "said"),
    [
        (False, "", "no trial met a fault"),
        (False, "lever x: late", "faults were held back in 80 of 80 trials: lever x: late"),
        (True, "", ""),
        (None, "", ""),
    ],
)
def test_sides_that_met_no_fault_prove_nothing(met: bool | None, held: str, said: str) -> None:
    side = replace(WELL, met=met, held=held)
    found = compared([(side, replace(side, well=False, done=False))] * 40)
    assert (found.proves_nothing_reason, found.verdict) == (said, "open" if said else "worse")
    assert found.render_comparison_lines()[0].startswith(f"open: {said}" if said else "worse: ")


def test_over_several_prompts_the_change_is_the_mean_of_their_changes() -> None:
    prompts = list("abcd") * 20
    uneven = compared([(WELL, BAD) if prompt == "a" else (WELL, WELL) for prompt in prompts], prompts, period=4)
    assert uneven.figures["well"].mean_change == -0.25
    assert uneven.verdict == "no difference shown"  # one prompt of four says little of the others
    alike = compared([(WELL, BAD if n % 3 else WELL) for n in range(80)], prompts, period=4)
    assert alike.verdict == "worse"
    assert alike.figures["well"].interval.high < 0


def test_variants_of_a_prompt_count_with_it() -> None:
    # Two variants of the prompt a, one of the prompt b: a is worse by all, b better by all, so nothing changed.
    pairs = [(WELL, BAD), (WELL, BAD), (BAD, WELL)] * 30
    found = compared(pairs, list("aab") * 30, period=3)
    assert (found.figures["well"].mean_change, found.prompt_count, found.compute_evidence("worse") < 1) == (0, 2, True)


def test_only_whole_rounds_count() -> None:
    found = compared([(WELL, BAD)] * 39, list("abcd") * 10, period=4)
    assert (found.figures["well"].shares.judged, found.is_decided) == (36, False)


def test_two_prompts_can_show_nothing() -> None:
    found = compared([(WELL, BAD)] * 20 + [(WELL, WELL)] * 30, ["a", "b"] * 25, period=2)
    told = "\n".join(found.render_comparison_lines(most=0))
    assert found.verdict == "too few"
    assert "a verdict needs one prompt or 4, and 40 pairs; these are 50" in told
    assert "  'a': ended well 25 → 15 of 25" in told
    one_open = compared([(WELL, WELL)] * 95 + [(WELL, OPEN)] * 5, ["a"] * 95 + ["b"] * 5).figures["well"]
    assert (one_open.interval.low, one_open.interval.high) == (-1, 1)


def test_of_many_prompts_the_worst_are_named_and_of_no_pair_nothing() -> None:
    names = [f"p{n}" for n in range(14)]
    told = compared([(WELL, WELL)] * 14, names, period=14).render_comparison_lines()
    assert [line for line in told if "more prompts" in line] == ["  … and 2 more prompts"] * 2
    assert compared([]).render_comparison_lines()[0] == "too few: no pair was tried"


def test_what_is_told_names_the_pairs_and_the_pairs_that_are_needed() -> None:
    found = compared([(WELL, WELL)] * 30 + [(WELL, BAD)] * 3 + [(WELL, OPEN)])
    told = "\n".join(found.render_comparison_lines(most=2))
    assert "ended well 33 → 30 of 33 pairs, 1 open" in told
    assert "ended well: a fall as large as this is shown within 141 pairs with a chance of 0.9" in told
    assert "ended well: 33 pairs would show 36.4% worse and none better, with a chance of 0.9" in told
    assert "  worse: trial 31: correct → harm (harm)\n" in told
    assert "… and 1 more worse" in told
    assert "  open: trial 34: correct → unknown (words)" in told
    assert json.loads(json.dumps(found.to_json_values()))["worse"] == 3


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
    assert (found.verdict, found.count_changed_pairs("worse"), found.harm_counts) == ("too few", 0, (0, 8))
    assert "harm: 0 on the base, 8 on the new side" in found.render_comparison_lines()
    assert found.side_counts_by_outcome == {"harm": (0, 8), "wrong": (8, 0)}


def test_costs_are_medians_over_all_pairs() -> None:
    pairs = [(replace(WELL, tokens=100), replace(OPEN, calls=900 if n == 5 else 3, tokens=100)) for n in range(20)]
    (calls, seconds, tokens) = compared(pairs).costs
    assert (calls.base, calls.new, seconds.new, tokens.new) == (1, 3, 1.0, 100)
    assert "calls a trial, median: 1 → 3" in compared(pairs).render_comparison_lines()


def test_a_changed_pair_has_the_first_difference_of_both_stories() -> None:
    base = replace(WELL, story=lambda: {"prompt": {"asked": "a"}, "pay 1.1": {"ok": True}, "end": {"status": "ok"}})
    new = replace(BAD, story=lambda: {"prompt": {"asked": "b"}, "pay 1.1": {"ok": False}})
    found = compared([(base, new), (base, replace(WELL, story=new.story))])
    assert [each.differs for each in found.pairs] == ["pay 1.1, ok: True → False", ""]
    assert describe_first_difference({"pay 1.1": {}}, {}) == "pay 1.1: only on the base"
    assert describe_first_difference({"pay 1.1": {}}, {"pay 1.1": {}}) == ""


def test_more_pairs_are_hopeless_if_all_of_them_could_not_decide() -> None:
    found = compared([(WELL, BAD)] * 2 + [(WELL, WELL)] * 40)
    assert [found.is_worse_unreachable(left) for left in (3, 10)] == [True, False]


def test_a_side_is_the_same_after_json() -> None:
    side = Side(True, "correct", "", 2, 1.5, 10, dollars=None, done=False, met=True, held="lever x", models=("m",))
    assert Side.from_json_values(json.loads(json.dumps(side.to_json_values()))) == side
    for wrong in ({"calls": "2"}, {"why": 7}, {"well": "yes"}):
        with pytest.raises(TypeError):
            Side.from_json_values({**side.to_json_values(), **wrong})


def test_runs_that_were_started_otherwise_say_so() -> None:
    then = run_started(seed=1, settings={"MODEL": "a"}, plan={"injections": []}, world="virtual")
    now = run_started(seed=2, settings={"MODEL": "b"}, plan={"injections": [{}]}, world="local")
    assert [*describe_start_changes(then, now)] == [
        "The seed is another: 1 then, 2 now.",
        "The world is another: virtual then, local now.",
        "The planned faults are others.",
        "The setting MODEL is another: 'a' then, 'b' now.",
    ]
    assert [*describe_start_changes(then, then)] == []
    assert [*describe_start_changes(None, now)] == ["The log of one run does not say how it was started."]
