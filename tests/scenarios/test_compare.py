"""`lab.compare` with agents, scenarios, runs and revisions, and `git bisect run` with the gate."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.revisions import SideWork, open_revision_side
from chaoslab.scenarios.rows import _serve_trial_requests
from chaoslab.search.compared import Comparison
from tests import warm
from tests.cli_parts import Typed
from tests.scenarios import shop_parts

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
FAULT = [lab.inject("timeout_before_effect", "charge", chance=0.5)]


def charge(order: int) -> str:
    return f"charged {order}"


def honest(prompt: str) -> str:
    try:
        return f"{prompt}: {charge(17)}."
    except OSError:
        raise RuntimeError("not charged") from None


def lying(prompt: str) -> str:
    try:
        return f"{prompt}: {charge(17)}."
    except OSError:
        return f"{prompt}: charged 17."


def compared(base: Any = honest, new: Any = lying, prompts: Any = "Order 17", **more: Any) -> Comparison:
    given = {"tools": [charge], "faults": FAULT, "accept": ("correct", "failed"), **more}
    return lab.compare(base, new, prompts, **given)


def test_two_agents_in_python() -> None:
    looks: list[int] = []
    found = compared(shrink=True, tell=lambda found: looks.append(len(found.pairs)))
    assert found.verdict == "worse"
    assert looks == [10, len(found.pairs)]
    first = next(each for each in found.pairs if each.change_kind)
    assert first.differs == "prompt, attempt 1, status: 'error' → 'ok'"
    assert first.cause.startswith("timeout_before_effect at charge 1: missing: charge")
    assert str(found) == "\n".join(found.render_comparison_lines())


def test_several_prompts_are_asked_in_turns_with_dice_of_their_own() -> None:
    found = compared(prompts=[f"Order {n}" for n in range(10)], trials=40)
    assert [each.cluster for each in found.pairs[:3]] == ["Order 0", "Order 1", "Order 2"]
    assert (found.prompt_count, found.round_size) == (10, 10)
    assert len({each.base.outcome for each in found.pairs}) > 1


def test_options_may_differ_and_what_makes_other_trials_may_not() -> None:
    assert compared(new=None, changed={"effects": [{"effect": "charge", "order": 18}]}).verdict == "worse"
    for changed in ({"seed": 3}, {"faults": ()}):
        with pytest.raises(ValueError, match=f"the sides differ in {next(iter(changed))}, so their trials cannot"):
            compared(new=None, changed=changed)


def test_an_agent_that_keeps_state_is_refused() -> None:
    kept: list[str] = []

    def keeps(prompt: str) -> str:
        kept.append(prompt)
        return f"{charge(len(kept))}: {len(kept)}"

    with pytest.raises(lab.NoBaseline, match=r"something is kept .*, in files fresh: module:make, which"):
        compared(new=keeps)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"new": None}, ValueError, "both sides are the same"),
        ({"prompts": None}, ValueError, "the agents have to be asked something: give prompts="),
        ({"new": "refund.chaos.yml"}, TypeError, "one side is an agent and the other a scenario"),
        ({"base": "logs/a", "new": None, "prompts": None}, ValueError, "tools goes with agents, and a run has its own"),
        ({"alpha": 2.0}, ValueError, "alpha is 2.0: it should be a number between 0 and 1"),
        ({"trials": 0}, ValueError, "trials is 0"),
        ({"logs": "logs"}, ValueError, "compare writes no logs"),
    ],
)
def test_sides_that_do_not_fit_are_one_line(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        compared(**given)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def run_of(agent: Callable[[str], str], logs: Path, *, prompt: str = "Order 17", **more: Any) -> str:
    """A run of 30 trials in `logs`, which are also those of latest."""
    given = {"tools": [charge], "faults": FAULT, "trials": 30, "logs": logs, **more}
    trials = list(lab.run_many(agent, prompt, **given))
    return str(trials[0].folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    logs = tmp_path_factory.mktemp("runs")
    return {
        "lying": run_of(lying, logs),
        "honest": run_of(honest, logs),
        "other seed": run_of(honest, logs, seed=2),
        "other prompt": run_of(honest, logs, prompt="Order 18"),
        "shorter": run_of(honest, logs, trials=10),
    }


def test_two_runs_are_paired_by_their_logs(runs: dict[str, str]) -> None:
    found = lab.compare(runs["lying"], runs["honest"])
    assert len(found.pairs) == 30
    assert found.side_counts_by_outcome["failed"][0] == 0 < found.side_counts_by_outcome["failed"][1]
    less = lab.compare(runs["honest"], runs["shorter"])
    assert (len(less.pairs), less.count_changed_pairs("worse"), less.verdict) == (10, 0, "too few")
    assert less.notes == ["20 trials of one run alone, which count for nothing"]


@pytest.mark.parametrize("other", ["seed", "prompt"])
def test_runs_of_other_trials_are_refused(other: str, runs: dict[str, str], typed: Typed) -> None:
    assert f" differ in {other}" in typed.refused("compare", runs["honest"], runs[f"other {other}"])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "--agent", "x:y"], "runs are compared with runs: give two of them"),
        (["a.yml", "b"], "runs are compared with runs"),
        (["a.yml", "--a-a", "2", "--model", "m"], "--model says what the new side is: leave out what else says so"),
        (["a.yml", "--revisions", "HEAD", "--set", "x=1"], "--revisions says what the new side is"),
        (["a.yml", "--revisions", "a", "b", "c"], "there are 3 revisions"),
        (["nowhere.yml", "--revisions", "HEAD"], "nowhere.yml cannot be read: there is no such file"),
        (["a", "b"], "no run is called 'a'"),
    ],
)
def test_words_that_do_not_fit_are_one_line(words: list[str], said: str, typed: Typed) -> None:
    assert said in typed.refused("compare", *words)


def test_prompts_may_differ_if_that_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["compare", "paid_twice.chaos.yaml", "--prompt", "Please.", "-n", "10", "-q", "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["pairs"] == 10


def test_a_side_in_a_child_prints_a_line_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])
    asked: dict[str, Any] = {
        "file": "paid_twice.chaos.yaml",
        "changed": [],
        "only": "",
        "seed": None,
        "jobs": 1,
        "root": "",
    }
    told = io.StringIO()
    assert _serve_trial_requests(io.StringIO(f"{json.dumps(asked)}\n[2, 3]\n2\n"), told) == 0
    period, *rows, cause = map(json.loads, told.getvalue().splitlines())
    assert period == 1
    assert [each["side"]["well"] for each in rows] == [True, True]
    assert "refund 1.1" in rows[0]["story"]
    assert cause.startswith("not found: paid twice: trial 2 is no failure to shrink")


def test_a_child_refuses_code_that_is_not_its_revisions(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for name in ("paid_twice", "shop"):  # else what is imported of that folder stays for the tests after this one
        monkeypatch.setitem(sys.modules, name, sys)
        del sys.modules[name]
    (here / "a.chaos.yml").write_text((FOLDER / "paid_twice.chaos.yaml").read_text())
    asked: dict[str, Any] = {
        "file": "a.chaos.yml",
        "changed": [],
        "only": "",
        "seed": None,
        "jobs": 1,
        "root": str(FOLDER.resolve()),
    }
    assert _serve_trial_requests(io.StringIO(f"{json.dumps(asked)}\n[1]\n"), io.StringIO()) == 2
    assert "paid_twice" in (err := capsys.readouterr().err)
    assert err.count("\n") == 1


AGENT = """
from shop import pay

def answer(prompt):
    print("on the standard output")
    pay(17)
    return "Paid 17."
"""
PAY = """
name: pay
agent: agent:answer
tools: [shop:pay]
prompt: Pay order 17.
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commits, v0 and v1, of a folder of a repository, with another agent each. The scenario's file is only in the
    work tree."""
    tmp_path /= "sub"
    tmp_path.mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("def pay(order: int) -> str:\n    return 'paid'\n")
    git("init", "--quiet", "--initial-branch", "main", "..")
    for name, agent in (("v0", AGENT), ("v1", AGENT.replace("Paid", "Have paid"))):
        (tmp_path / "agent.py").write_text(agent)
        commit(name, "agent.py", "shop.py")
    (tmp_path / "pay.chaos.yml").write_text(PAY)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def commit(name: str, *files: str) -> None:
    """Commits the files, with a tag and a message of this name."""
    git("add", *files)
    git("-c", "user.name=n", "-c", "user.email=n@x.test", "commit", "--quiet", "--message", name)
    git("tag", name)


@pytest.mark.usefixtures("repository")
def test_a_revision_is_tried_in_a_work_tree_that_is_taken_away() -> None:
    with open_revision_side(SideWork(Path("pay.chaos.yml")), "v0") as side:
        assert len(git("worktree", "list").splitlines()) == 2
        (row,) = side.produce_trials([1])
        assert row.story is not None
        assert row.story()["end"]["answer"] == "Paid 17."  # at v1 it is another
        with pytest.raises(ScenarioError, match=r"^revision v0: "):
            list(side.produce_trials(["x"]))  # type: ignore[list-item]  # what ends the child
    assert len(git("worktree", "list").splitlines()) == 1


@pytest.mark.usefixtures("repository")
def test_a_revision_that_is_none_is_one_line(typed: Typed) -> None:
    assert "Git knows no revision 'nope'" in typed.refused("compare", "pay.chaos.yml", "--revisions", "nope")


RETRYING = """
from shop import pay

def answer(prompt):
    for _ in range({tries}):
        try:
            pay(17)
            break
        except OSError:
            pass
    return "Paid 17."
"""
LOST = f"""
{PAY.strip()}
faults: [{{fault: timeout_before_effect, target: pay, chance: 0.5}}]
"""


def test_git_finds_the_commit_that_made_it_worse_by_the_lines_of_the_page(here: Path) -> None:
    """Six commits after the good one. The third has no agent, and from the fifth on the agent does not retry."""
    page = (FOLDER.parent.parent / "docs" / "how-to" / "compare-and-prove.md").read_text(encoding="utf-8")
    lines = page.partition("## Which commit made it worse?")[2].partition("```console\n")[2].partition("```")[0]
    (here / "bin").mkdir()
    (here / "bin" / "chaoslab").write_text(f'#!/bin/sh\nexec {warm.python()} -m chaoslab "$@"\n')
    (here / "bin" / "chaoslab").chmod(0o755)
    git("init", "--quiet", "--initial-branch", "main", "shop")
    os.chdir("shop")
    Path("shop.py").write_text("def pay(order: int) -> str:\n    return 'paid'\n")
    Path("refund.chaos.yml").write_text(LOST)
    for number, name in enumerate(("v1.2", "one", "two", "three", "four", "five", "six")):
        agent = "" if number == 3 else RETRYING.format(tries=20 if number < 5 else 1)
        Path("agent.py").write_text(f"# {name}\n{agent}")
        commit(name, "agent.py", "shop.py", "refund.chaos.yml")
    given = os.environ | {"PATH": f"{here / 'bin'}:{os.environ['PATH']}"}
    quick = lines.replace("--write", "--write --budget 60")
    ended = subprocess.run(["sh", "-ec", quick], env=given, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert git("log", "-1", "--format=%s", "refs/bisect/bad") == "five\n"
    assert "agent.py has no 'answer'" in ended.stderr  # and Git skipped it


def test_scenarios_in_python_are_compared_and_what_cannot_be_is_one_line() -> None:
    base, new = (
        lab.scenario("paid").fresh(agent).tools(shop_parts.refund).ask("Refund order 17.").fault("lost_reply", "refund")
        for agent in (shop_parts.careful, shop_parts.naive)
    )
    options: Any = {"trials": 3}
    found = lab.compare(base, new, **options)
    assert (found.verdict, len(found.pairs)) == ("too few", 3)
    assert len(lab.compare(base, changed={"prompt": "Refund order 18."}, **options).pairs) == 3
    for given, more, said in (
        (base, {}, "both sides are the same: give the new scenario, changed= or revisions="),
        (base, {"revisions": ["HEAD"]}, "revisions= takes one scenario's file"),
        (base, {"open_max": 2}, "open_max is 2: it should be a share from 0 to 1"),
        ("logs/mine", {}, "there is one run: give the new one too"),
    ):
        with pytest.raises(ValueError, match=said):
            lab.compare(given, **more)
