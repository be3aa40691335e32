"""Times a trial of a user's agent that is made of little but a model's SDK: what `lab.run` costs by itself, and a loop
of three calls of the model over https, beside the same loop over a transport that answers at once.

All are CPU milliseconds of one process, but for the trial in a child, which is real time. They are measured by turns,
so that a slow moment of the machine meets all of them. The figure is the least of the rounds, since other programs
only ever add to it. Exits 1 if one is over its bound.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import groq
import httpx

import chaoslab as lab
from chaoslab.base.clock import system

CALLS = 3
BOUNDS_MS = {
    "lab.run, an agent that does nothing": 100.0,
    "a trial, a client of its own": 15.0,
    "a trial, one client for all": 15.0,
    'a trial, isolate="fork"': 30.0,
}
ASKED: Any = [{"role": "user", "content": "Hello"}]
REPLY = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}  # fmt: skip
LOADED = ("langchain.agents", "langchain_groq", "numpy", "flask")
"""Modules of an agent in production: the more there are, the more is looked through for clocks and chance."""


def loop(client: groq.Groq) -> str:
    said = [client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content for _ in range(CALLS)]
    return " ".join(map(str, said))


def mocked() -> groq.Groq:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=REPLY))
    return groq.Groq(api_key="k", http_client=httpx.Client(transport=transport))


KEPT, MOCKED = groq.Groq(api_key="k"), mocked()


def own(_: str) -> str:
    with groq.Groq(api_key="k") as client:
        return loop(client)


def kept(_: str) -> str:
    return loop(KEPT)


def nothing(_: str) -> str:
    return ""


def took_ms(work: Callable[[], Any], now: Callable[[], float] = process_time) -> float:
    began_s = now()
    work()
    return (now() - began_s) * 1000


def trials(agent: Callable[[str], str], count: int, *, fork: bool = False) -> list[float]:
    """The cost of each trial after the first, without what `lab.run_many` costs once."""
    services, isolate = {"api.groq.com": lambda _: REPLY}, "fork" if fork else None
    done = lab.run_many(agent, "", trials=count + 1, services=services, twin=False, isolate=isolate)
    try:
        next(done)
        return [took_ms(lambda: next(done), system.monotonic if fork else process_time) for _ in range(count)]
    finally:
        done.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of a trial that asks a model over https")
    parser.add_argument("--rounds", type=int, default=10, help="how often each is measured (default: %(default)s)")
    rounds: int = parser.parse_args().rounds
    for name in LOADED:
        importlib.import_module(name)
    lab.run(nothing, "", twin=False)
    costs: dict[str, list[float]] = {name: [] for name in (*BOUNDS_MS, "the same loop, mocked")}
    for _ in range(rounds):
        fixed, fresh, single, forked, plain = costs.values()
        fixed.append(took_ms(lambda: lab.run(nothing, "", twin=False)))
        fresh += trials(own, 5)
        single += trials(kept, 5)
        forked += trials(own, 5, fork=True)
        plain += [took_ms(lambda: loop(MOCKED)) for _ in range(5)]
    print(f"{len(sys.modules):,} modules are loaded; a loop has {CALLS} calls")
    code = 0
    for name, found in costs.items():
        over = min(found) > BOUNDS_MS.get(name, float("inf"))
        bound = f", at most {BOUNDS_MS[name]:.0f} ms" if name in BOUNDS_MS else ""
        print(f"{name:36} {min(found):6.1f} ms, median {median(found):6.1f}{bound}{': TOO MUCH' if over else ''}")
        code |= over
    return code


if __name__ == "__main__":
    sys.exit(main())
