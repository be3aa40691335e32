"""Measures the cost of streamed replies: the lab's agent with and without STREAM=on, and events through one pipe each.

The agent's trials are run by turns in one process, so that what disturbs the one disturbs the other too. The pipes are
those of the faults of streams, and one without any effect: each event is fed and polled, as a seam does it.
"""

import argparse
import asyncio
import gc
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from virtual_time import PROMPTS

from chaoslab.base.clock import system
from chaoslab.config import settings
from chaoslab.core.exchange import Call, Reply, TrialContext
from chaoslab.core.pipe import Pipe, Pipeline, ServedLine, Signal, Timed
from chaoslab.core.stream import Events, WatchedPipe
from chaoslab.execution.spec import TrialSpec
from chaoslab.faults.stream.cut import Cut
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.faults.stream.stall import Stall
from chaoslab.lab import _virtual_lab as lab
from chaoslab.lab.launch import spec_of
from chaoslab.seams.http._streamed import Body

EVENT = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": null}]}\n\n'
STREAM = {"content-type": "text/event-stream"}
TURN = 8
"""Trials: each prompt twice."""


class Source:
    """So many events, all there at once."""

    def __init__(self, count: int) -> None:
        self._left = count

    async def take(self) -> bytes | None:
        self._left -= 1
        return EVENT if self._left >= 0 else None

    async def aclose(self) -> None: ...


def pipes() -> dict[str, Callable[[], Pipe]]:
    """One pipe of each kind, which lets a hundred thousand events through."""

    def of(fault: Any) -> Pipe:
        story = fault.flow(Call("model", "chat", "p1.r1", 1, 1), TrialContext())
        next(story)
        try:
            story.send(Reply(200, STREAM, stream=Source(0)))
        except StopIteration as end:
            (pipe,) = end.value.pipes
        return pipe

    return {
        "no effect": lambda: WatchedPipe(ServedLine(lambda timed, start: (Timed(start, timed.item),), room_bytes=0)),
        "cut": lambda: of(Cut(10**9)),
        "stall": lambda: of(Stall(1, 0.5)),
        "slow_chunks": lambda: of(SlowChunks(0.01)),
    }


def through(pipe: Pipe, count: int) -> float:
    """Events a CPU second through one pipe: cut, fed, and polled when they are due."""
    line, events, now, out = Pipeline(), Events(), 0.0, 0
    line.add("0", pipe, now)
    began = time.process_time()
    for _ in range(count):
        for event in events.feed(EVENT):
            line.feed(Timed(now, event))
        while not (due := line.poll(now, 1)):
            now = line.wake() or now
        out += len(due)
    took = time.process_time() - began
    line.feed(Timed(now, Signal.END))
    assert out == count
    return count / took


def handed_on(reply: Reply, count: int) -> float:
    """Events a CPU second through the seam's whole way, to a reader who does nothing with them."""

    async def main() -> float:
        body = Body(
            reply, clock=system, began_s=0.0, silence_s=30.0, over=lambda *_: None, native=lambda failure: failure
        )
        began = time.process_time()
        found = 0
        async for _ in body:
            found += 1
        assert found == count
        return count / (time.process_time() - began)

    return asyncio.run(main())


def turn(made: lab.Lab, numbers: range) -> tuple[float, int]:
    """CPU seconds of these trials, and how many of them were right."""
    with made.ready():
        began = time.process_time()
        done = [made.trial(TrialSpec(number)) for number in numbers]
        return time.process_time() - began, sum(each.ok for each in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=30, help=f"of {TURN} trials each")
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    for name, made in pipes().items():
        print(f"{name:12} {max(through(made(), options.events) for _ in range(3)):10,.0f} events a second")
    straight = max(handed_on(Reply(200, STREAM, stream=Source(options.events)), options.events) for _ in range(3))
    piped = max(
        handed_on(Reply(200, STREAM, stream=Source(options.events)).through(pipes()["no effect"]()), options.events)
        for _ in range(3)
    )
    print(f"{'to a reader':12} {straight:10,.0f} events a second, through a pipe {piped:,.0f}")

    prompts = importlib.import_module("chaoslab.agent.prompts")
    asked = [prompts.Prompt.model_validate(prompt) for prompt in PROMPTS]
    labs = {
        stream: lab.Lab(
            spec_of(settings.load([f"STREAM={stream}"], environment={}, env_file=Path("/nonexistent")), asked)
        )
        for stream in ("off", "on")
    }
    for made_lab in labs.values():
        turn(made_lab, range(TURN))
    took: dict[str, list[float]] = {"off": [], "on": []}
    for number in range(options.turns):
        numbers = range(TURN * number, TURN * (number + 1))
        for stream, made_lab in labs.items():
            gc.collect()
            took[stream].append(turn(made_lab, numbers)[0])
    for stream, seconds in took.items():
        print(f"STREAM={stream:3} {median(seconds) / TURN * 1000:6.2f} ms of CPU a trial")
    ratios = sorted(on / off for on, off in zip(took["on"], took["off"], strict=True))
    print(f"STREAM=on costs {median(ratios):.2f} × STREAM=off (median of {len(ratios)} turns)")


if __name__ == "__main__":
    main()
