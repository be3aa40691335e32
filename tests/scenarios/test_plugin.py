"""The plug-in for pytest: the fixture and the mark, scenario files as tests, and what a failure prints."""

from pathlib import Path

import pytest
import yaml  # noqa: F401  # pytester forgets what a test imports first, and yaml's classes must stay the same

import chaoslab as lab
from chaoslab.analysis.assertions import GROUP as ASSERTIONS
from chaoslab.base.registry import load_plugin as plugin
from chaoslab.base.registry import map_bundled_plugins
from chaoslab.core.fault import GROUP as FAULTS
from chaoslab.core.triggers import GROUP as TRIGGERS
from chaoslab.scenarios import load, running, tell
from tests.scenarios.shop_parts import careful, refund

pytest_plugins = ["pytester"]
OTHERS = ("langsmith_plugin", "hypothesispytest", "anyio")
BARE = ("-p", "no:cacheprovider", *(part for other in OTHERS for part in ("-p", f"no:{other}")))
"""Without the plug-ins of others, which load most of their libraries."""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """All modules that the plug-in uses. A run within this process forgets those that it loads itself, and classes
    would be there twice."""
    assert all((load, running, tell))
    for group in (ASSERTIONS, FAULTS, TRIGGERS):
        assert all(plugin(group, name) for name in map_bundled_plugins(group))
    lost = lab.inject("lost_reply", "refund")
    assert lab.run(lab.fresh(careful), "x", tools=[refund], faults=[lost]).story()


SHOP = """
import chaoslab as lab
import pytest
from tests.scenarios.shop_parts import careful, hears, naive, refund

LOST = lab.inject("lost_reply", "refund", chance=0.4)
"""
NAIVE = """
@pytest.mark.chaos(faults=[LOST], trials=8)
def test_shop(chaos):
    chaos.run(lab.fresh(naive), "Refund order 17.", tools=[refund])
"""


def put(pytester: pytest.Pytester, tests: str) -> None:
    """A file of these tests, with the shop's names in it."""
    pytester.makepyfile(SHOP + tests)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*BARE, *arguments)


def test_a_failure_tells_the_story_and_how_to_see_it_again(pytester: pytest.Pytester) -> None:
    put(pytester, NAIVE)
    ended = run(pytester)
    ended.assert_outcomes(failed=1)
    told = [
        "trial * failed: harm: refund twice",
        "    refund twice (events 4, 9 of the trial)",
        "it met lost_reply on refund",
        "change first: Send the same Idempotency-Key*",
        "*lost_reply*witnessed",
        "*verdict  harm: refund twice",
        "rerun: pytest 'test_*.py::test_shop' --chaos-seed=1 --chaos-trial=*",
    ]
    ended.stdout.fnmatch_lines(told)
    assert "Traceback" not in ended.stdout.str()
    again = next(line for line in ended.outlines if line.startswith("rerun: ")).split()
    alone = run(pytester, *again[-2:])
    alone.assert_outcomes(failed=1)
    verdicts = [[line for line in each.outlines if "verdict" in line] for each in (alone, ended)]
    assert verdicts[0] == verdicts[1]


def test_trials_that_end_well_are_returned(pytester: pytest.Pytester) -> None:
    put(
        pytester,
        """
def test_shop(chaos):
    found = chaos.run(lab.fresh(careful), "Refund order 17.", tools=[refund], trials=8,
                      faults=[chaos.inject("lost_reply", "refund", chance=0.4)], expect=[{"max_calls": 1}],
                      judge=hears)
    assert len(found) == 8
    assert {str(trial.outcome) for trial in found} == {"correct", "degraded"}

@pytest.mark.chaos(faults=[LOST], trials=8, pass_rate=0.25)
def test_half(chaos):
    chaos.run(lab.fresh(naive), "Refund order 17.", tools=[refund])
    with pytest.raises(pytest.fail.Exception, match="2 of 8 trials passed, 90% should have"):
        chaos.run(lab.fresh(naive), "Refund order 17.", tools=[refund], pass_rate=0.9)

def test_nothing_met(chaos):
    never = lab.inject("lost_reply", "refund", chance=0.0001)
    with pytest.raises(pytest.fail.Exception, match="none of 10 trials met a fault"):
        chaos.run(lab.fresh(careful), "Refund order 17.", tools=[refund], faults=[never])

def test_an_assertion(chaos):
    with pytest.raises(pytest.fail.Exception, match="1 call, at most 0 were allowed"):
        chaos.run(lab.fresh(careful), "Refund order 17.", tools=[refund], expect=[lab.expect.max_calls(0)], trials=1)

@pytest.mark.parametrize("seed", [1, 2])
def test_parametrized(chaos, seed):
    assert chaos.run(lab.fresh(careful), "Refund order 17.", tools=[refund], seed=seed, trials=1)[0].seed == seed
""",
    )
    run(pytester).assert_outcomes(passed=6)
    run(pytester, "--chaos-seed=7", "-k", "parametrized").assert_outcomes(failed=2)


def test_the_command_line_counts_first(pytester: pytest.Pytester) -> None:
    put(
        pytester,
        """
@pytest.mark.chaos(trials=3)
def test_shop(chaos):
    assert len(chaos.run(lab.fresh(careful), "x", tools=[refund], trials=2)) == 5
""",
    )
    run(pytester, "--chaos-trials=5", "--chaos-logs=logs").assert_outcomes(passed=1)
    (log,) = pytester.path.glob("logs/*/latest/info.log")
    assert log.read_text().count('"kind": "prompt_finished"') + log.read_text().count('"kind":"prompt_finished"') == 5


def test_an_async_test_may_run_trials(pytester: pytest.Pytester) -> None:
    put(
        pytester,
        """
import asyncio

def test_shop(chaos):
    async def inside():
        return chaos.run(lab.fresh(careful), "x", tools=[refund], trials=2)
    assert len(asyncio.run(inside())) == 2
""",
    )
    run(pytester).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("trails=3", "the mark chaos has no 'trails': it takes faults, trials, seed, expect, accept, pass_rate"),
        ("[], trials=3", "the mark chaos takes its arguments by name"),
    ],
)
def test_a_mark_that_is_wrong_is_told(mark: str, said: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.chaos({mark})\ndef test_it(chaos): pass\n")
    assert said in run(pytester).stdout.str()


def test_a_test_that_runs_no_agent_fails_in_one_line(pytester: pytest.Pytester) -> None:
    put(
        pytester,
        """
def test_fixture(chaos):
    chaos.inject("lost_reply", "refund")

@pytest.mark.chaos(faults=[LOST])
def test_mark():
    pass

@pytest.mark.chaos(faults=[LOST])
class TestOfMany:
    def test_without_the_fixture(self):
        pass

    def test_skipped(self, chaos):
        pytest.skip("later")

    @pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
    def test_with_an_error_of_its_own(self, chaos):
        1 / 0
""",
    )
    ended = run(pytester)
    ended.assert_outcomes(failed=2, passed=1, skipped=1, xfailed=1)
    said = [line for line in ended.outlines if line.startswith("chaos: ")]
    assert said == [
        "chaos: the test never calls chaos.run, so it proves nothing",
        "chaos: the mark has no effect, since the test does not take the fixture: add the parameter `chaos`",
    ]
    assert "Traceback" not in ended.stdout.str()


@pytest.mark.parametrize("option", ["--chaos-trials=0", "--chaos-trial=-1", "--chaos-seed=-1"])
def test_an_option_that_is_wrong_is_told(option: str, pytester: pytest.Pytester) -> None:
    ended = run(pytester, option)
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    name, _, value = option.partition("=")
    assert f"{name} is {value}: it should be a whole number" in ended.stderr.str()


SCENARIO = """
name: refund
fresh: tests.scenarios.shop_parts:naive
tools: [tests.scenarios.shop_parts:refund]
prompt: Refund order 17.
trials: 8
faults: [{fault: lost_reply, target: refund, chance: 0.4}]
variants: [{name: lost}, {name: calm, faults: []}]
"""


def test_arguments_that_are_wrong_are_told_in_one_line(pytester: pytest.Pytester) -> None:
    cases = {
        "trials=0": "trials is 0: it should be a whole number from 1",
        "trials='x'": "trials is 'x': it should be a whole number from 1",
        "pass_rate=7": "pass_rate is 7: it should be a number from 0 to 1",
        "accept=['corect']": "accept has 'corect': did you mean 'correct'?",
        "expect=['max_cals']": "no assertion is called 'max_cals': did you mean 'max_calls'?",
        "faults=[chaos.inject('lost_repl', 'refund')]": "no fault is called 'lost_repl': did you mean 'lost_reply'?",
        "faults=[chaos.inject('lost_reply', 'refnd')]": "'lost_reply on refnd' has no function or service 'refnd'",
        "logs='/proc/none'": "/proc/none: No such file or directory",
    }
    tests = [f"def test_{n}(chaos): chaos.run(agent, 'x', tools=[refund], {case})" for n, case in enumerate(cases)]
    pytester.makepyfile("\n".join([SHOP, "agent = lab.fresh(careful)", *tests]))
    ended = run(pytester)
    ended.assert_outcomes(failed=len(cases))
    told = [line for line in ended.outlines if line.startswith("chaos: ")]
    assert all(line.startswith(f"chaos: {said}") for line, said in zip(told, cases.values(), strict=True)), told
    assert "another exception" not in ended.stdout.str()
    assert "Error" not in ended.stdout.str()


def test_scenario_files_are_tests(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("test_refund.chaos.yaml").write_text(SCENARIO)
    pytester.path.joinpath("refund.chaos.yaml").write_text("not collected")
    ended = run(pytester, "-v")
    ended.assert_outcomes(failed=1, passed=1)
    told = [
        "*test_refund.chaos.yaml::lost FAILED*",
        "*test_refund.chaos.yaml::calm PASSED*",
        "FAILED   refund, lost: 2 of 8 trials passed*",
        "*verdict  harm: refund twice",
        "rerun: pytest 'test_refund.chaos.yaml::lost' --chaos-seed=1 --chaos-trial=*",
    ]
    ended.stdout.fnmatch_lines(told)
    run(pytester, "-k", "calm").assert_outcomes(passed=1, deselected=1)


def test_scenario_files_get_the_modules_of_their_own_folders(pytester: pytest.Pytester) -> None:
    for name in ("a", "b"):
        folder = pytester.mkdir(name)
        (folder / "clerk.py").write_text(
            f"def refund(): ...\n\ndef agent(prompt):\n    refund()\n    return {name!r}\n"
        )
        (folder / "test_it.chaos.yaml").write_text(
            f"name: of {name}\nagent: clerk:agent\ntools: [clerk:refund]\nprompt: Who?\n"
            f"expect: [answer_contains: {name}]\n"
        )
    run(pytester).assert_outcomes(passed=2)


def test_a_scenario_file_that_is_wrong_is_told_in_one_line(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("test_refund.chaos.yaml").write_text(SCENARIO + "trails: 3\n")
    ended = run(pytester)
    ended.assert_outcomes(errors=1)
    ended.stdout.fnmatch_lines(["*test_refund.chaos.yaml:9:1: 'trails' is not known here: did you mean 'trials'?"])
    pytester.path.joinpath("test_refund.chaos.yaml").write_text(
        SCENARIO.replace("shop_parts:naive", "shop_parts:nobody")
    )
    ended = run(pytester)
    ended.stdout.fnmatch_lines(["*shop_parts:nobody cannot be imported: shop_parts.py has no 'nobody'*"])
    assert "Traceback" not in ended.stdout.str()


def test_nothing_of_the_lab_is_loaded_before_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys

def test_it():
    loaded = {name for name in sys.modules if name.startswith("chaoslab.")}
    assert loaded == {"chaoslab.surfaces", "chaoslab.surfaces.pytest_plugin"}
"""
    )
    pytester.runpytest_subprocess(*BARE).assert_outcomes(passed=1)


def test_a_worker_does_as_a_process_without(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
    put(pytester, NAIVE)
    ended = pytester.runpytest_subprocess(*BARE, "-n1")
    ended.assert_outcomes(failed=1)
    assert "verdict  harm: refund twice" in ended.stdout.str()
