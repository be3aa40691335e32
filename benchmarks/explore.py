"""Measures what exploring, shrinking and running again cost and find, each figure beside its goal:
`python benchmarks/explore.py [PART …]`. Parts: map, trial, pairs, races, scenarios.

Seconds are of the CPU, children included, unless they are said to be by the clock. Exits 1 if a goal is missed.
"""

import asyncio
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import planted

import chaoslab as lab
from chaoslab.base.identity import hash_value
from chaoslab.execution.agents.functions import get_function_name
from chaoslab.execution.explore import shrink_trial_in_session
from chaoslab.record.rulings import RulingState
from chaoslab.scenarios.exploring import explore_scenario, open_scenario_search
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.running import run_scenario
from chaoslab.search.shrinking import iterate_without_each_part
from chaoslab.search.variation import GOOD

ROOT = Path(__file__).parent.parent / "examples" / "scenarios"
RERUNS = 2000
ALONE = 50
"""The times that an agent runs without the lab, for comparison."""
MOST = 300
"""The trials of the exploration of a shipped scenario."""
OF_RUN = 200
"""The trials of each run beside an exploration."""
PLANS, TURNS = 8, 5
"""The plans of an exploration that a run repeats, and the turns of both."""
CALLS = 20
"""The calls of an agent with a planted pair, one injection each."""
Row = tuple[str, str, str, bool]


def cpu_s() -> float:
    times = os.times()
    return process_time() + times.children_user + times.children_system


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    for name in parts or ["map", "trial", "pairs", "races", "scenarios"]:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


# The map of single faults.


def of_map() -> Iterator[Row]:
    for what, agent, tools, most_s in (
        ("plain agent", *plain_agent(), 2.0), ("LangChain agent", *langchain_agent(), 10.0),
    ):  # fmt: skip
        lab.run(agent, "go", tools=tools)  # what is imported once
        began_s = cpu_s()
        for _ in range(ALONE):
            agent("go")
        alone_s = (cpu_s() - began_s) / ALONE
        began_s = cpu_s()
        found = lab.explore(agent, "go", tools=tools, seed=1, by=["singles", "born"], trials=20_000)
        took_s = cpu_s() - began_s
        cells = [tried for _, _, tried in found.map.cells]
        done = sum(each is not None for each in cells)
        calls, faults = len(found.map.known.calm.attempt_sites), len(found.map.columns)
        text = f"{took_s:.1f} s; {done} of {len(cells)} cells, {len(found.trials)} trials"
        text += f"; the agent alone {alone_s * len(found.trials):.1f} s"
        tries = sorted({each.choices[0].fault for tried in found.trials for each in tried.variation.injections})[:30]
        began_s = perf_counter()
        lab.explore(agent, "go", tools=tools, seed=1, by=["singles", "born"], trials=20_000, tries=tries, jobs=2)
        both_s = perf_counter() - began_s
        text += f"; with 30 faults in two processes {both_s:.1f} s by the clock"
        yield (f"map of a {what}, {calls} calls × {faults} faults", f"≤ {most_s:g} s, 100 %", text,
               min(took_s, both_s) <= most_s and done == len(cells))  # fmt: skip


def functions(number: int) -> list[Callable[[str], str]]:
    """Functions of their own names, each an effect or a reading."""

    def made(name: str) -> Callable[[str], str]:
        def function(text: str) -> str:
            return f"{name} {text}"

        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"Does {name}."
        return function

    return [made(f"tool_{n}") for n in range(1, number + 1)]


def plain_agent() -> tuple[Any, list[Any]]:
    tools = functions(5)

    def agent(prompt: str) -> str:  # noqa: ARG001
        said = []
        for n in range(10):
            try:
                said.append(tools[n % 5](f"step {n}"))
            except Exception as error:  # noqa: BLE001 - whatever a fault raises
                said.append(str(error))
        return ", ".join(said)

    return agent, tools


def langchain_agent() -> tuple[Any, list[Any]]:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002
            return self

        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            n = sum(isinstance(each, ToolMessage) for each in messages)
            said = AIMessage("Ten steps are done.")
            if n < 10:
                call = {"name": f"tool_{n % 5 + 1}", "args": {"text": f"step {n}"}, "id": f"call_{n}"}
                said = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=said)])

    tools = functions(5)
    graph: Any = create_agent(Scripted(), [tool(each) for each in tools])

    def agent(prompt: str) -> str:
        return str(graph.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 60})["messages"][-1].content)

    return agent, tools


# A trial of an exploration beside one of a run with the same faults.


def of_trial() -> Iterator[Row]:
    for what, agent, tools, reads in (
        ("ten calls", *plain_agent(), []),
        ("the refund desk", planted.refund_desk, [planted.refund, planted.send_mail], [planted.get_order]),
    ):
        turns = measure_turns(agent, {"tools": tools, "reads": reads, "seed": 1})
        ratios = [own_s / run_s for own_s, run_s in turns]
        own_s, run_s = map(median, zip(*turns, strict=True))
        text = f"{1000 * own_s:.2f} ms, and {1000 * run_s:.2f}: {median(ratios):.2f} ×"
        text += f" ({min(ratios):.2f} to {max(ratios):.2f})"
        yield (f"a trial of `explore`, {what}, beside one of `run_many` with its faults", "≤ 1.5 ×", text,
               median(ratios) <= 1.5)  # fmt: skip


def measure_turns(agent: Any, asked: dict[str, Any]) -> list[tuple[float, float]]:
    """The seconds of a trial of an exploration, and of one of a run with some of its plans; by turns, since the
    processor's speed changes with what runs beside."""
    tried = lab.explore(agent, "go", **asked).trials
    plans = [each.variation.injections for each in tried if each.variation.injections and not each.variation.order]
    plans = plans[:: -(-len(plans) // PLANS)]
    turns = []
    for _ in range(TURNS):
        began_s = cpu_s()
        for plan in plans:
            for trial in lab.run_many(agent, "go", trials=OF_RUN, faults=list(plan), **asked):
                assert trial.verdict  # judged when it is asked for
        run_s = (cpu_s() - began_s) / (OF_RUN * len(plans))
        began_s = cpu_s()
        number = len(lab.explore(agent, "go", **asked).trials)
        turns.append(((cpu_s() - began_s) / number, run_s))
    return turns


# Planted pairs.


def planted_pair(number: int) -> tuple[Callable[[str], str], list[Any], list[Any], set[str]]:
    """An agent that pays twice if two of twenty injections hit, and never else. Five to nine of its calls it can do
    without; it gives up if one of the others fails. Also its tools, its readings and the two that are planted."""
    kind = ("both lost", "fallback lost too", "doubts, then repeats")[number % 3]
    dice = random.Random(number)
    calls = functions(CALLS)
    spare = sorted(dice.sample(range(CALLS - 1), dice.randint(5, 9)))
    first, second = sorted(dice.sample(spare, 2))

    def pay() -> str:
        return "paid"

    def survives(n: int) -> bool:
        try:
            calls[n]("x")
        except Exception:
            if n not in spare:
                raise
            return False
        return True

    def agent(prompt: str) -> str:  # noqa: ARG001
        lost = set[int]()
        for n in range(CALLS):
            if kind == "fallback lost too" and n == second and first not in lost:
                continue  # it is asked only if the first is lost
            if not survives(n):
                lost.add(n)
                if kind == "doubts, then repeats" and n == second and first in lost:
                    pay()
        pay()
        if kind != "doubts, then repeats" and {first, second} <= lost:
            pay()
        return "It is paid."

    return agent, [pay], calls, {get_function_name(calls[first]), get_function_name(calls[second])}


def of_pairs() -> Iterator[Row]:
    took = []
    exhaustive = CALLS * (CALLS - 1) // 2
    for number in range(10):
        agent, tools, reads, planted = planted_pair(number)
        found = lab.explore(agent, "go", tools=tools, reads=reads, seed=1, tries=["exception"],
                            by=["singles", "born", "pairs"])  # fmt: skip
        hit = [n for n, each in enumerate(found.trials, 1) if each.outcome == "harm"]
        if hit:  # as if it had ended there, with what shrinking takes
            found = lab.explore(agent, "go", tools=tools, reads=reads, seed=1, tries=["exception"], trials=hit[0],
                                by=["singles", "born", "pairs"])  # fmt: skip
        (*_, harm) = [None, *(each for each in found.failures if each.outcome == "harm")]
        if harm is not None and {name for name, _ in harm.variation.targeted_requests_and_moments} == planted:
            took.append(hit[0] + harm.reruns)
    draws = sorted(
        next(n for n in range(1, 10_000) if {*dice.sample(range(CALLS), 2)} == {0, 1})
        for dice in (random.Random(f"{agent} {seed}") for agent in range(10) for seed in range(20))
    )
    at_90 = sorted(took)[max(0, -(-9 * len(took) // 10) - 1)] if took else 0
    random_90 = draws[len(draws) * 9 // 10 - 1]
    yield ("planted pairs found", "≥ 90 %", f"{len(took)} of 10", len(took) >= 9)
    share = at_90 / exhaustive
    yield ("trials until 90 % are found and shrunk, single faults included, of the 190 pairs", "≤ 24 %",
           f"{at_90}, {share:.0%} (median {median(took):g})", share <= 0.24)  # fmt: skip
    yield ("the same, of pairs by dice, 20 seeds", "≤ 10 %", f"{at_90} of {random_90}, {at_90 / random_90:.0%}",
           at_90 <= 0.1 * random_90)  # fmt: skip


# Planted races.


def planted_race(number: int) -> tuple[Any, list[Any], list[Any]]:
    """An agent that pays twice only if parallel calls come in another order: one overtakes another, comes first, or
    comes last."""
    dice = random.Random(number)
    size, moments = dice.randint(3, 8), 1 + number % 2
    early, late = sorted(dice.sample(range(size), 2))
    came: list[int] = []

    def read(n: int) -> int:
        came.append(n)
        return n

    def pay() -> str:
        return "paid"

    async def agent(prompt: str) -> str:  # noqa: ARG001
        raced = False
        for _ in range(moments):
            came.clear()
            await asyncio.gather(*(asyncio.to_thread(read, n) for n in range(size)))
            overtaken = came.index(late) < came.index(early)
            raced = (overtaken, came[0] == late, came[-1] == early)[number % 3]
        if raced:
            pay()
        pay()
        return "It is paid."

    return agent, [pay], [read]


def of_races() -> Iterator[Row]:
    found_in, swaps = [], 0
    for number in range(12):
        agent, tools, reads = planted_race(number)
        found = lab.explore(agent, "go", tools=tools, reads=reads, seed=1, by=["orders"])
        orders = [each for each in found.trials if each.variation.order is not None]
        hit = [n for n, each in enumerate(orders, 1) if each.failed]
        if hit and hit[0] <= 200:
            found_in.append(hit[0])
            asked = next(each.moments for each in orders if each.variation.order == ())
            order = found.failures[0].variation.order or ()
            moved = [sum(a != b for a, b in zip(names, asked[moment - 1], strict=True)) for moment, names in order]
            swaps += moved == [2]
    yield ("planted races found within 200 orders", "≥ 95 %",
           f"{len(found_in)} of 12, median after {median(found_in or [0]):g}", len(found_in) == 12)  # fmt: skip
    yield "shrunk to one swap", "all", f"{swaps} of {len(found_in)}", swaps == len(found_in)


# The shipped scenarios, with their naive agents.


def of_scenarios() -> Iterator[Row]:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    reruns, seconds, minimal, same, different, missed = [], [], 0, 0, 0, []
    tests: list[str] = []
    files = sorted(ROOT.glob("*.chaos.yaml"))
    for file in files:
        name = file.name.removesuffix(".chaos.yaml")
        (scenario,) = load_file_scenarios(file, changed=[f"fresh={name}:naive"])
        failed = [each for each in run_scenario(scenario, apart=True) if each.state is RulingState.FAILED]
        kinds = set()
        with open_scenario_search(scenario) as made:
            shrunk = []
            for ruling in failed:
                own = hash_value([[str(each) for each in ruling.trial.verdict.harm], str(ruling.trial.verdict.outcome)])
                if own in kinds:
                    continue
                kinds.add(own)
                began_s = cpu_s()
                failure = shrink_trial_in_session(made.session, ruling.trial)
                seconds.append(cpu_s() - began_s)
                reruns.append(failure.reruns)
                left = made.session.assess_variations([*iterate_without_each_part(failure.variation)], "check")
                minimal += not any(tried.failed and tried.kind == failure.tried.kind for tried, _ in left)
                shrunk.append(failure)
            for failure in shrunk[:1]:
                number = RERUNS // len(files) + 1
                lines = {
                    hash_value([str(each) for each in trial._result.buffered_events])
                    for _, trial in made.session.run_variations([failure.variation] * number)
                }
                same, different = same + number, different + len(lines) - 1
                if str(failure.tried.outcome) not in GOOD:  # else its own requirements alone say that it failed
                    tests.append(failure.test())
        known = {failure.tried.kind for failure in shrunk}
        found = explore_scenario(scenario, by=("singles", "lasting", "born", "pairs"), trials=MOST)
        if not known & {each.tried.kind for each in found.failures}:
            missed.append(name)
    yield ("shrinks of the failures of the shipped scenarios: reruns", "median ≤ 57",
           f"{len(reruns)} failures, median {median(reruns):g}, most {max(reruns)}", median(reruns) <= 57)  # fmt: skip
    yield ("the same: seconds", "median ≤ 2, none > 60", f"median {median(seconds):.2f}, most {max(seconds):.2f}",
           median(seconds) <= 2 and max(seconds) <= 60)  # fmt: skip
    yield "the same: no part can go", "all", f"{minimal} of {len(reruns)}", minimal == len(reruns)
    yield f"{same} reruns of found failures", "all identical", f"{different} differ", not different
    each = 100 // len(tests) + 1
    red = failed_of(tests, each)
    yield ("runs of their tests for pytest that are red", "100 of 100", f"{red} of {each * len(tests)}",
           red == each * len(tests))  # fmt: skip
    red = failed_of([text.replace("naive", "careful") for text in tests], 1)
    yield "the same, red with the careful agent", "none", f"{red} of {len(tests)}", not red
    yield ("naive agents whose known defect is found without being told the fault", "all",
           f"{len(files) - len(missed)} of {len(files)}{' but ' + ', '.join(missed) if missed else ''}",
           not missed)  # fmt: skip


def failed_of(tests: list[str], times: int) -> int:
    """The runs that fail of these tests for pytest, each run so many times."""
    with TemporaryDirectory() as folder:
        for n, text in enumerate(tests):
            (Path(folder) / f"test_{n}.py").write_text(text, encoding="utf-8")
        again = f"metafunc.fixturenames.append('nth'); metafunc.parametrize('nth', range({times}))"
        (Path(folder) / "conftest.py").write_text(f"def pytest_generate_tests(metafunc): {again}", encoding="utf-8")
        said = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", folder], cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
    counts = dict(map(reversed, re.findall(r"(\d+) (failed|passed)", said)))
    assert sum(map(int, counts.values())) == times * len(tests), said[-2000:]
    return int(counts.get("failed", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
