"""The plug-in for pytest: the fixture `chaos`, the mark `chaos`, and scenario files as tests. The lab is imported when
a test uses it, since pytest loads this module in every project."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from chaoslab.analysis.assertions import Assertion
    from chaoslab.core.plan import Injection
    from chaoslab.execution.trial import Trial
    from chaoslab.scenarios.running import Ruling, TrialRules
    from chaoslab.scenarios.scenario import Scenario

TRIALS = 10
"""The trials of `chaos.run` if neither it nor the mark says how many."""
OF_MARK = ("faults", "trials", "seed", "expect", "accept", "pass_rate", "invalid_rate")
SUFFIXES = (".chaos.yaml", ".chaos.yml", ".chaos.json", ".chaos.toml")
MARK = (
    "chaos(faults=[…], trials=10, seed=1, expect=[…], accept=[…], pass_rate=1.0, invalid_rate=0.05): what `chaos.run` "
    "of this test does unless it says otherwise (chaoslab)"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaoslab", "chaos (chaoslab)")
    group.addoption("--chaos-seed", type=int, metavar="N", help="the seed of the faults' dice, for all tests")
    group.addoption("--chaos-trials", type=int, metavar="N", help="the trials of each test with chaos")
    group.addoption("--chaos-trial", type=int, metavar="N", help="only this trial of each test, from 1")
    group.addoption("--chaos-logs", metavar="DIR", help="write the logs of each test's trials below this folder")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    for name, minimum in (("chaos_seed", 0), ("chaos_trials", 1), ("chaos_trial", 1)):
        value = config.getoption(name)
        if value is not None and value < minimum:
            option = f"--{name.replace('_', '-')}"
            raise pytest.UsageError(f"{option} is {value}: it should be a whole number, {minimum} or more")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Fails a test that asked for chaos, ended well and ran no agent: it proves nothing."""
    result = yield
    fixture = pyfuncitem.funcargs.get("chaos")
    # By its type: a project may have a fixture of this name itself.
    if isinstance(fixture, Chaos):
        if not fixture.used:
            _fail_with_text("chaos: the test never calls chaos.run, so it proves nothing")
    # Those of the function alone: a mark on a class or a module may be for some of its tests.
    elif any(mark.name == "chaos" for mark in pyfuncitem.own_markers):
        _fail_with_text(
            "chaos: the mark has no effect, since the test does not take the fixture: add the parameter `chaos`"
        )
    return result


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Chaos:
    """Runs an agent under faults, and fails the test if a trial does not end well: `chaos.run(agent, prompt, …)`."""
    return Chaos(request.node, request.config)


class Chaos:
    """The fixture `chaos`."""

    def __init__(self, node: pytest.Item, config: pytest.Config) -> None:
        self._node, self._config = node, config
        self.used = False
        """`run` has been called."""
        mark = node.get_closest_marker("chaos")
        self._stated: dict[str, Any] = dict(mark.kwargs) if mark is not None else {}
        if mark is not None and mark.args:
            _fail_with_text("the mark chaos takes its arguments by name, as in chaos(faults=[…], trials=50)")
        for name in self._stated:
            if name not in OF_MARK:
                _fail_with_text(f"the mark chaos has no '{name}': it takes {', '.join(OF_MARK)}")

    def inject(self, fault: str, target: str | Sequence[str], **arguments: Any) -> Injection:
        """A fault, as `chaoslab.inject`."""
        from chaoslab.core.inject import inject

        with _fail_in_one_line():
            return inject(fault, target, **arguments)

    def run(
        self,
        agent: Any,
        prompt: Any,
        *,
        faults: Sequence[Injection] | None = None,
        trials: int | None = None,
        seed: int | None = None,
        expect: Iterable[Assertion | str | dict[str, Any] | Callable[[Trial], Any]] | None = None,
        accept: Sequence[str] | None = None,
        pass_rate: float | None = None,
        invalid_rate: float | None = None,
        **options: Any,
    ) -> list[Trial]:
        """Runs the trials and returns them, or fails the test with the story of the first that does not end well.

        `faults`, `trials`, `seed`: as in `chaoslab.run_many`; the command line's `--chaos-seed` and `--chaos-trials`
        count first, then these, then the mark's. `expect`: assertions (`chaoslab.expect`), their names, or functions of
        a trial. `accept`: the outcomes that are well, correct and degraded by default. `pass_rate`: the least share of
        trials that must end well, `invalid_rate` the largest of those that may be invalid; unknown ones are only warned
        of. `options`: all others of
        `chaoslab.run`.
        """
        # Before anything that may fail: a wrong argument is then told, and not that nothing was run.
        self.used = True
        from contextlib import closing
        from dataclasses import replace

        from chaoslab.analysis.verdict.standing import Standing, classify_share
        from chaoslab.core.conversation import Conversation
        from chaoslab.execution.options import RunArguments, accept_fields_as_arguments, check_number
        from chaoslab.execution.spec import INVALID_RATE
        from chaoslab.execution.trial import run_numbered_trials
        from chaoslab.record.rulings import RulingState
        from chaoslab.scenarios.running import RulingsBook, count_rulings, explain_unproven_rulings, rule_trial

        @accept_fields_as_arguments(RunArguments)
        def run(arguments: RunArguments) -> RunArguments:
            return arguments

        config = self._config.getoption
        count = _get_first_not_none(config("chaos_trials"), trials, self._stated.get("trials"), TRIALS)
        seed = _get_first_not_none(config("chaos_seed"), seed, self._stated.get("seed"), 1)
        only = config("chaos_trial")
        min_share = _get_first_not_none(pass_rate, self._stated.get("pass_rate"), 1.0)
        max_open = _get_first_not_none(invalid_rate, self._stated.get("invalid_rate"), INVALID_RATE)
        if config("chaos_logs") and "logs" not in options:
            options["logs"] = Path(config("chaos_logs")) / _make_folder_name(self._node.nodeid)
        with _fail_in_one_line():
            check_number("trials", count, whole=True)
            for name, value in (("pass_rate", min_share), ("invalid_rate", max_open)):
                if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                    raise ValueError(f"{name} is {value!r:.60}: it should be a number from 0 to 1")
            rules = _make_trial_rules(
                _get_first_not_none(expect, self._stated.get("expect"), ()),
                _get_first_not_none(accept, self._stated.get("accept"), None),
            )
            if isinstance(prompt, Conversation):
                rules = replace(rules, by_turn={
                    number: asserted for number, turn in enumerate(prompt.turns, 1)
                    if (asserted := _make_trial_rules(turn.expect, None).expect)
                })  # fmt: skip
            injections = list(_get_first_not_none(faults, self._stated.get("faults"), ()))
            numbers = range(count) if only is None else [only - 1]
            trials_of = run_numbered_trials(run(agent, prompt, seed=seed, faults=injections, **options), numbers)
        rulings: list[Ruling] = []
        book = RulingsBook(self._node.name, rules, len(numbers))
        with _fail_in_one_line(run=True), closing(trials_of) as trial_results:
            for number, trial in zip(numbers, trial_results, strict=True):
                rulings.append(rule_trial(rules, number + 1, trial))
                if trial.folder is not None:
                    book.add_ruling(rulings[-1], _render_rerun_line(self._node, seed, rulings[-1]))
                count = count_rulings(rulings)
                # The rest could change nothing.
                if (count.bad and min_share == 1.0) or count.open > max_open * len(numbers):
                    break
        state, reason = RulingState.PASSED, ""
        count = count_rulings(rulings)
        if classify_share(count, min_share, open_max=max_open) is Standing.BAD:
            state = RulingState.FAILED
            reason = "" if min_share == 1.0 else f"{count} trials passed, {min_share:.0%} should have"
        elif reason := explain_unproven_rulings(rulings, min_share, max_open):
            state = RulingState.INVALID
        # One trial alone may have been spared by its dice.
        elif injections and only is None and not any(_has_met_fault(ruling) for ruling in rulings):
            names = ", ".join(injection.name for injection in injections)
            state, reason = (
                RulingState.INVALID,
                f"none of {len(rulings)} trials met a fault ({names}), so this proves nothing",
            )
        book.add_final_ruling(state, [reason] if reason else [])
        poor = [ruling for ruling in rulings if ruling.state is state and state is not RulingState.PASSED]
        if poor:
            self._fail_test(poor[0], seed, reason)
        if state is RulingState.INVALID:
            pytest.fail(f"invalid: {reason}", pytrace=False)
        if still_open := [ruling for ruling in rulings if ruling.state is RulingState.INVALID]:
            text = f"chaos: {len(still_open)} of {len(rulings)} trials are open: {still_open[0].why}"
            self._node.warn(pytest.PytestWarning(text))
        return [ruling.trial for ruling in rulings]

    def _fail_test(self, worst: Ruling, seed: int, head: str = "") -> NoReturn:
        from chaoslab.analysis.verdict.ledger import describe_event_positions
        from chaoslab.reports.contents import Contents
        from chaoslab.scenarios.tell import describe_shared_faults, shorten_story

        lines = [head] if head else []
        lines += [f"trial {worst.number} {worst.state}: {reason}" for reason in worst.reasons]
        evidence, history = worst.trial.verdict.evidence, worst.trial.history
        lines += [
            f"    {finding.text} ({describe_event_positions(history, finding.lines)})"
            for finding in evidence
            if finding.lines
        ]
        lines += describe_shared_faults([history])
        lines += [
            f"change first: {advice.do}"
            for advice in Contents.from_source(history, where="").advice
            if not advice.of_run
        ][:1]
        lines += ["", *shorten_story(worst), ""]
        lines.append(_render_rerun_line(self._node, seed, worst))
        _fail_with_text("\n".join(lines))


def _fail_with_text(text: str) -> NoReturn:
    """Fails the test with this text alone."""
    # A traceback would show the plug-in's own lines, which say nothing of the agent.
    raise pytest.fail.Exception(text, pytrace=False) from None


@contextmanager
def _fail_in_one_line(*, run: bool = False) -> Iterator[None]:
    """Fails the test with the message alone if an argument is wrong, or if the trials cannot be run or written down.
    `run`: the trials run in it."""
    from chaoslab.base.registry import BrokenPlugin
    from chaoslab.core.fault import BrokenFault
    from chaoslab.worlds.virtual.machine.context import Unsupported

    # While trials run, an agent's own ValueError must not read as a wrong argument.
    of_run, of_arguments = (
        (BrokenFault, BrokenPlugin, Unsupported, OSError),
        (LookupError, ValueError, TypeError, OSError),
    )
    wrong: tuple[type[BaseException], ...] = of_run if run else of_arguments
    try:
        yield
    except wrong as error:
        location = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else ""
        _fail_with_text(f"chaos: {location or (error.args[0] if error.args else error)}")


def _make_trial_rules(expect: Iterable[Any], accept: Sequence[str] | None) -> TrialRules:
    """The requirements on each trial. Raises LookupError, ValueError, TypeError: an assertion or an outcome is none."""
    from chaoslab.analysis.verdict.table import ACCEPTABLE
    from chaoslab.base.registry import suggest_name
    from chaoslab.scenarios.checks import parse_assertion
    from chaoslab.scenarios.running import TrialRules

    asserted = [parse_assertion(assertion) for assertion in expect]
    if accept is None:
        return TrialRules(expect=asserted)
    for name in accept:
        if name not in ACCEPTABLE:
            raise ValueError(f"accept has {name!r:.60}: {suggest_name(str(name), ACCEPTABLE)}")
    return TrialRules(accept, asserted)


def _render_rerun_line(node: pytest.Item, seed: int, ruling: Ruling) -> str:
    """The line that runs this trial of the test again."""
    # The id of a parameter may hold a quote.
    quoted = node.nodeid.replace("'", "'\"'\"'")
    return f"rerun: pytest '{quoted}' --chaos-seed={seed} --chaos-trial={ruling.number}"


def _get_first_not_none(*values: Any) -> Any:
    """The first value that is not None; None if there is none."""
    # None alone: 0 and an empty list were given.
    return next((value for value in values if value is not None), None)


def _has_met_fault(ruling: Ruling) -> bool:
    from chaoslab.core.events import FaultWitnessed

    return any(True for _ in ruling.trial.history.find_events(FaultWitnessed))


def _make_folder_name(nodeid: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in nodeid)[:120]


# Scenario files.


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects test_*.chaos.yaml and the like."""
    if file_path.name.startswith("test_") and file_path.name.endswith(SUFFIXES):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    """A scenario's file: a test for each of its variants."""

    def collect(self) -> Generator[ScenarioItem, None, None]:
        from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios

        try:
            scenarios = load_file_scenarios(self.path)
        except ScenarioErrors as error:
            raise self.CollectError(str(error)) from None
        for scenario in scenarios:
            item = ScenarioItem.from_parent(self, name=scenario.variant or scenario.spec.name)
            item.scenario = scenario
            yield item


class ScenarioItem(pytest.Item):
    """A scenario as a test."""

    scenario: Scenario

    def runtest(self) -> None:
        from chaoslab.record.rulings import RulingState
        from chaoslab.scenarios.running import Result, run_scenario

        config = self.config.getoption
        logs = Path(config("chaos_logs")) / _make_folder_name(self.nodeid) if config("chaos_logs") else None
        result = Result(self.scenario)
        options = {"trials": config("chaos_trials"), "seed": config("chaos_seed"), "only": config("chaos_trial")}
        seed = _get_first_not_none(options["seed"], self.scenario.spec.seed)
        with _fail_in_one_line(run=True):
            for ruling in run_scenario(
                self.scenario, logs=logs, again=partial(_render_rerun_line, self, seed), **options
            ):
                result.add_ruling(ruling)
        if result.state is not RulingState.PASSED:
            raise NotHeld(self._describe_failure(result))

    def _describe_failure(self, result: Any) -> str:
        from chaoslab.record.rulings import RulingState
        from chaoslab.scenarios.tell import render_result, shorten_story

        worst = next((ruling for ruling in result.rulings if ruling.state is not RulingState.PASSED), None)
        seed_option = self.config.getoption("chaos_seed")
        lines = [render_result(result, given=[] if seed_option is None else ["--seed", str(seed_option)])]
        if worst is not None:
            seed = _get_first_not_none(seed_option, self.scenario.spec.seed)
            lines += ["", *shorten_story(worst), ""]
            lines.append(_render_rerun_line(self, seed, worst))
        return "\n".join(lines)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone where the scenario does not hold, or is wrong."""
        from chaoslab.scenarios.located import ScenarioError

        if isinstance(excinfo.value, NotHeld | ScenarioError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"scenario: {self.name}"


class NotHeld(Exception):
    """A scenario does not hold; the message has its story."""
