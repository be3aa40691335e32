"""Measures a trial in virtual time: the lab's own agent with all its HTTP and faults, against the same agent over mock
transports.

The mock is the least that any test of an agent costs: the same graph, Groq's SDK, the same tools and clients, every
request answered at once with what it was answered in the virtual world, retries included, without faults to tell, log,
network or clock. Both are CPU seconds of one process, measured by turns in one run.
"""

import argparse
import asyncio
import gc
import importlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from chaoslab.base.identity import hash_value, make_nth_trial_id
from chaoslab.config import settings
from chaoslab.config.topology import MODEL
from chaoslab.execution.forked import make_executor
from chaoslab.execution.spec import TrialSpec
from chaoslab.lab import _virtual_lab as lab
from chaoslab.lab.launch import make_lab_spec
from chaoslab.record.log import MemoryLog
from chaoslab.seams.http.seam import HttpSeam

FAULTS = ("TOXIC_PROB=0.25", "ERROR_PROB=0.2", "TOOL_TIMEOUT_S=60", "LATENCY_MS=5000", "JITTER_MS=4000")
"""Together a tool's attempt meets a fault with a chance of 0.4. Who hears nothing for a minute gives up, as the
SDKs of models do by default; what is late is so by 1 to 9 s."""
TURN = 5
"""Trials: so few that what disturbs the one disturbs the other too."""
PROMPTS = [
    {"prompt": "Read Ana's messages, then add 1250, 830 and 415 and reply to her with the sum.", "facts": ["2495"]},
    {
        "prompt": 'Put "Team lunch" in my calendar for the day after tomorrow, from noon to 1:30 pm, '
        "and let Bob know about it."
    },
    {"prompt": "Move the budget meeting to tomorrow at 10:00 and tell Carla about it."},
    {"prompt": "What is the average of the temperatures in Rome, Athens and Lisbon?"},
]


class Instant:
    """A clock for which nothing takes time."""

    def monotonic(self) -> float:
        return 0.0

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, 9, tzinfo=UTC)

    def sleep(self, delay_s: float) -> None: ...

    async def sleep_async(self, delay_s: float) -> None: ...


def _key(request: httpx.Request) -> str:
    return hash_value([request.method, str(request.url), request.content.decode()])


class Heard(httpx.AsyncBaseTransport):
    """Remembers what each request came to, by what was asked."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.answers: dict[str, list[Any]] = {}
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answers = self.answers.setdefault(_key(request), [])
        self.calls += 1
        place = len(answers)
        answers.append(None)
        try:
            response = await self.inner.handle_async_request(request)
        except httpx.HTTPError as error:
            answers[place] = (type(error), str(error))
            raise
        answers[place] = (response.status_code, dict(response.headers), await response.aread())
        return response


class Mock:
    """Answers at once with what was heard."""

    def __init__(self) -> None:
        self.answers: dict[str, Iterator[Any]] = {}
        self.calls = 0

    def begin(self, answers: dict[str, list[Any]]) -> None:
        self.answers = {key: iter(found) for key, found in answers.items()}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        answer = next(self.answers[_key(request)])
        if isinstance(answer[0], type):
            raise answer[0](answer[1], request=request)
        return httpx.Response(answer[0], headers=answer[1], content=answer[2])


class Mocked:
    """The same agent over mock transports."""

    def __init__(self, real: lab.Lab, spec: lab.LabSpec) -> None:
        session = real.session
        self.mock, self.run = Mock(), spec.name
        client = httpx.AsyncClient(transport=httpx.MockTransport(self.mock), timeout=None)
        clock, nowhere = Instant(), Nowhere("info", [])
        tools, assembly = (
            importlib.import_module("chaoslab.agent.tools"),
            importlib.import_module("chaoslab.agent.assembly"),
        )
        targets = real.seam.targets
        toolbox = tools.Toolbox(
            client, targets, session.toolbox.services, session.config, spec.settings, nowhere, clock
        )
        self.graph = assembly.build_agent(spec.settings, targets[MODEL].url, client, toolbox)
        self.seam = HttpSeam(
            plan=spec.plan, targets=targets, lanes=real.seam.lanes, log=nowhere, clock=clock, price=real.seam.price,
            tls=real.seam.tls,
        )  # fmt: skip
        self.session = session

    async def trial(self, number: int, answers: dict[str, list[Any]]) -> None:
        trial = make_nth_trial_id(self.run, number, len(PROMPTS))
        self.mock.begin(answers)
        state = self.session.make_graph_input(PROMPTS[trial.prompt - 1]["prompt"], datetime(2026, 6, 1, 9, tzinfo=UTC))
        with self.seam.open_trial(trial):
            await self.graph.ainvoke(state, {"recursion_limit": 30})


class Nowhere(MemoryLog):
    """A log that keeps nothing."""

    def write(self, event: Any, *, trial: str | None = None) -> None: ...


def heard(spec: lab.LabSpec, trials: int) -> list[tuple[dict[str, list[Any]], int]]:
    """The answers to the requests of each trial, and the number of its calls."""
    found = []
    made = lab.Lab(spec)
    with made.install_fakes():
        transport = Heard(made.seam)
        made.session.toolbox.client._transport = transport
        for number in range(trials):
            transport.answers, transport.calls = {}, 0
            made.run_trial(TrialSpec(number))
            found.append((transport.answers, transport.calls))
    return found


def virtual_turn(made: lab.Lab, numbers: range) -> tuple[float, list[lab.LabResult]]:
    """CPU seconds of these trials in virtual time, and what came of them."""
    with made.install_fakes():
        made.run_trial(TrialSpec(0))
        began = time.process_time()
        done = [made.run_trial(TrialSpec(number)) for number in numbers]
        return time.process_time() - began, done


def mock_turn(mocked: Mocked, numbers: range, answers: list[tuple[dict[str, list[Any]], int]]) -> float:
    """CPU seconds of the same trials over mock transports."""
    with asyncio.Runner() as runner:
        runner.run(mocked.trial(0, answers[0][0]))
        mocked.mock.calls = 0
        began = time.process_time()
        for number in numbers:
            runner.run(mocked.trial(number, answers[number][0]))
        took = time.process_time() - began
    calls = sum(answers[number][1] for number in numbers)
    assert mocked.mock.calls == calls, (mocked.mock.calls, calls)
    return took


def many(spec: lab.LabSpec, trials: int, jobs: int) -> tuple[float, float]:
    """Trials and virtual seconds a second of real time, all processes together, once each is warm."""
    warm, began, seconds = trials // 4, 0.0, 0.0
    for number, each in enumerate(make_executor(jobs).map(spec, [TrialSpec(n) for n in range(trials)])):
        if number == warm:
            began, seconds = time.perf_counter(), 0.0
        seconds += each.seconds
    took = time.perf_counter() - began
    return (trials - warm - 1) / took, seconds / took


def growth(spec: lab.LabSpec, trials: int) -> float:
    """The growth of a process's memory from the first tenth of the trials to the last trial, as a share."""
    early = 0
    for number, _ in enumerate(make_executor(1).map(spec, (TrialSpec(n) for n in range(trials))), 1):
        if number == trials // 10:
            early = resident_kb()
    return resident_kb() / early - 1


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60, help=f"of {TURN} trials each")
    parser.add_argument("--trials", type=int, default=1000, help="for what all cores do together")
    parser.add_argument(
        "--memory", type=int, metavar="TRIALS", help="look at nothing but the memory of so many in one process"
    )
    options = parser.parse_args()
    chosen = settings.load_settings(FAULTS, environment={}, env_file=Path("/nonexistent"))
    prompts = importlib.import_module("chaoslab.agent.prompts")
    spec = make_lab_spec(chosen, [prompts.Prompt.model_validate(prompt) for prompt in PROMPTS])
    if options.memory:
        print(
            f"memory after {options.memory} trials: {growth(spec, options.memory):+.1%} since the first tenth "
            "(goal ±5%)"
        )
        return
    jobs = os.cpu_count() or 1
    rate, speed = many(spec, options.trials, jobs)
    turns = [range(TURN * turn, TURN * (turn + 1)) for turn in range(options.turns)]
    answers = heard(spec, TURN * options.turns)
    made = lab.Lab(spec)
    mocked = Mocked(made, spec)
    took: list[tuple[float, float]] = []
    done: list[lab.LabResult] = []
    for numbers in turns:
        virtual, outcomes = virtual_turn(made, numbers)
        gc.collect()
        took.append((virtual, mock_turn(mocked, numbers, answers)))
        done += outcomes
    trials = len(done)
    calls, lines = sum(count for _, count in answers) / trials, sum(len(each.buffered_events) for each in done) / trials
    met = sum(each.witnessed for each in done) / trials
    length = sum(each.seconds for each in done) / trials
    ratios = sorted(virtual / mock for virtual, mock in took)
    print(f"a trial: {calls:.1f} HTTP calls, {lines:.0f} events, {met:.2f} faults met, {length:.1f} virtual seconds")
    print(f"mock     {median(mock for _, mock in took) / TURN * 1000:6.2f} ms of CPU a trial")
    print(f"virtual  {median(virtual for virtual, _ in took) / TURN * 1000:6.2f} ms")
    middle = f"{ratios[len(ratios) // 4]:.2f} to {ratios[-len(ratios) // 4]:.2f}"
    print(f"times the mock: {median(ratios):.2f} (median of {len(ratios)} turns, half of them {middle})")
    print(f"{jobs} processes: {rate:.0f} trials and {speed:.0f} virtual seconds a second")


if __name__ == "__main__":
    main()
