"""`chaoslab gate`: did scenarios become worse than a baseline? Those on one run are in `_requirements.py`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from chaoslab.base.commandline import PROVES_NOTHING, as_json, path, print_json, refuse, seed, whole
from chaoslab.cli._ended import check_place, given_in, matching, telling, with_code
from chaoslab.cli.compare import add_open_max, alpha

if TYPE_CHECKING:
    from chaoslab.scenarios.baseline import Suite
    from chaoslab.scenarios.gating import Gated, ScenarioGate
    from chaoslab.scenarios.scenario import Scenario

HELP = "compare scenarios with a baseline: exit code 1 if one became worse, 4 if too little is known"
EXAMPLE = "chaoslab gate tests/chaos --baseline chaos-baseline.json --budget 3m"
IS_APART = True
TRIALS = 200
TRIALS_MAX = 20_000


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", type=path, nargs="+", metavar="SCENARIO", help="scenario files, or folders of them")
    add("--baseline", type=path, required=True, metavar="FILE", help="the trials as they were, as JSON")
    add("--write", action="store_true", help="write the baseline from the code as it is now")
    add("--alpha", type=alpha, default=0.05, help="the chance of a false alarm (%(default)s)")
    add_open_max(parser)
    add("--harm-budget", type=whole(0, 10**6), default=0, metavar="N", help="new trials with harm to let pass (0)")
    add("--budget", type=_budget, metavar="AMOUNT", help="most trials of all scenarios, or a time as 3m (200 each)")
    add("--seed", type=seed, help="seed of the faults' dice, in place of the scenarios' own")
    add("--jobs", type=whole(1, 1024), default=1, help="processes (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value of all scenarios")
    add("-k", dest="only", default="", metavar="TEXT", help="the scenarios with this text in the name")
    add("--markdown", type=path, metavar="FILE", help="write the result for a pull request")
    add("--junit", type=path, metavar="FILE", help="write the result as JUnit XML")
    add("-q", "--quiet", action="store_true", help="print no progress")
    as_json(parser)


def _budget(text: str) -> int | float:
    from chaoslab.base.parsers import duration

    if text.isdecimal():
        return whole(1, TRIALS_MAX)(text)
    try:
        return duration(text)
    except ValueError:
        said = f"{text[:60]} should be a number of trials, as in 200, or a time, as in 3m or 90s"
        raise argparse.ArgumentTypeError(said) from None


@with_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.baseline import Baseline
    from chaoslab.scenarios.gating import ScenarioGate, ask_again, gate, under

    for name in ("baseline", "markdown", "junit"):
        check_place(f"--{name}", getattr(options, name))
    try:
        wanted = _wanted(options)
    except LookupError as error:
        return refuse(error)
    if options.write:
        return _write(wanted, options)
    baseline = Baseline.read(options.baseline)
    suites = [(each, baseline.suite(options.baseline, each, _seed(each, options))) for each in wanted]

    def tell(each: Gated) -> None:
        if not options.quiet:
            said = f"{each.scenario.name}: {len(each.found.pairs)} pairs: {each.found.verdict}"
            print(said, file=sys.stderr, flush=True)

    budget = TRIALS * len(wanted) if options.budget is None else options.budget
    of_time = isinstance(budget, float)
    scenarios = under(suites, options.alpha, jobs=options.jobs, given=given_in(options), open_max=options.open_max)
    made = ScenarioGate(options.harm_budget, scenarios, [*baseline.notes, *_short(suites, baseline.in_words)])
    trials = TRIALS_MAX * len(wanted) if of_time else int(budget)
    with telling(lambda: made.line):
        gate(made, trials=trials, seconds=budget if of_time else None, tell=tell)
        ask_again(made, baseline.revision, options.set, jobs=options.jobs)
    return _said(made, options)


def _wanted(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios. Raises LookupError: there is none, or two are called alike."""
    from chaoslab.scenarios.files import found
    from chaoslab.scenarios.load import load_all

    wanted = matching(load_all(found(options.files), changed=options.set), options.only)
    names = [each.name for each in wanted]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise LookupError(f"two scenarios are called {twice!r}, and a baseline has one of a name: rename one")
    return wanted


def _seed(scenario: Scenario, options: argparse.Namespace) -> int:
    seed: int = scenario.spec.seed if options.seed is None else options.seed
    return seed


def _short(suites: list[tuple[Scenario, Suite]], told: str) -> list[str]:
    """A line on each scenario whose baseline has too few trials for a verdict."""
    from chaoslab.search.pairs import LEAST

    return [
        f"the baseline ({told}) has {len(suite.rows)} trials of {scenario.name}, and a verdict needs {LEAST}: "
        f"--write --budget {TRIALS} makes more"
        for scenario, suite in suites if len(suite.rows) < LEAST
    ]  # fmt: skip


def _write(wanted: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.record.provenance import revision
    from chaoslab.scenarios.baseline import Baseline, Suite
    from chaoslab.scenarios.sides import OfScenario

    if isinstance(options.budget, float):
        return refuse(ValueError("a baseline has a number of trials: give --write a --budget such as 200"))
    each_has = TRIALS if options.budget is None else options.budget // len(wanted)
    if not each_has:
        return refuse(ValueError(f"{options.budget} trials are too few for {len(wanted)} scenarios"))
    suites, unfit = list[Suite](), list[str]()
    for scenario in wanted:
        own = _seed(scenario, options)
        with telling(lambda: f"{len(suites)} of {len(wanted)} scenarios are done, and no baseline was written"):
            rows = OfScenario(scenario, own, options.jobs).take(range(1, each_has + 1))
            suites.append(Suite.of(scenario, own, rows))
        if why := suites[-1].unfit(options.open_max):
            unfit.append(f"{scenario.name}: no baseline: {why}")
        if not options.json:
            ended, done = suites[-1].count("well"), suites[-1].count("done")
            told = [(ended, "ended well"), *([(done, "done as asked")] if done.judged else [])]
            parts = [f"{each.well} of {each.judged} {words}, {each.open} open" for each, words in told]
            print(f"{scenario.name}: {'; '.join(parts)}; {suites[-1].harm} with harm")
    if unfit:
        print("\n".join([*unfit, f"nothing is written to {options.baseline}"]), file=sys.stderr)
        return PROVES_NOTHING
    made = Baseline.now(suites, options.baseline)
    made.save(options.baseline)
    if options.json:
        print_json(baseline=str(options.baseline), trials={each.name: len(each.rows) for each in suites})
    else:
        print(f"written: {options.baseline}, {made.in_words}")
        if revision() and not made.revision:
            print("it names no revision, since changes are not committed: a gate that fails will not be asked again")
    return 0


def _said(made: ScenarioGate, options: argparse.Namespace) -> int:
    """Prints and writes the result, and returns the exit code."""
    from chaoslab.config.settings import read_variable
    from chaoslab.reports.formats import put
    from chaoslab.scenarios.gating import cases, markdown, workflow_commands
    from chaoslab.scenarios.junit import document

    if options.markdown:
        put(markdown(made), options.markdown)
    if options.junit:
        put(document(cases(made)), options.junit)
    if options.json:
        print_json(
            passed=not made.code, said=made.line, notes=made.notes,
            scenarios=[{"name": each.scenario.name, "new_harm": each.harmed, **each.found.data(),
                        "asked_again": None if each.repeated is None else each.repeated.data(),
                        "not_asked_again": each.alone}
                       for each in made.scenarios],
        )  # fmt: skip
        return made.code
    print("\n".join(made.in_words()))
    if read_variable("GITHUB_ACTIONS") == "true":
        print("\n".join(workflow_commands(made)))
    return made.code
