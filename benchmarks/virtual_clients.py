"""Times a trial of a user's agent that is made of little but a model's SDK: what `lab.run` costs by itself, a loop of
three calls of the model over https with the SDKs of Groq and OpenAI, beside the same loop over a transport that answers
at once, and a trial in a process of its own.

All are CPU milliseconds, those of children included, but for the line that says otherwise. They are measured by turns,
so that a slow moment of the machine meets all of them. The figure is the least of the rounds, since other programs only
ever add to it. Exits 1 if one is over its bound.
"""

import argparse
import importlib
import resource
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import groq
import httpx
import openai

import chaoslab as lab

CALLS = 3
BOUNDS_MS = {
    "lab.run, an agent that does nothing": 100.0,
    "a trial, a client of its own": 15.0,
    "a trial, one client for all": 15.0,
    "a trial, OpenAI's SDK": 15.0,
    "a trial with isolate='fork'": 30.0,
}
UNBOUND = ("the same by the clock", "the same loop, mocked")
ASKED: Any = [{"role": "user", "content": "Hello"}]
REPLY = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}  # fmt: skip
LOADED = ("langchain.agents", "langchain_groq", "numpy", "flask")
"""Modules of an agent in production: the more there are, the more is looked through for clocks and chance."""


def loop(client: groq.Groq | openai.OpenAI) -> str:
    said = [client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content for _ in range(CALLS)]
    return " ".join(map(str, said))


def mocked() -> groq.Groq:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=REPLY))
    return groq.Groq(api_key="k", http_client=httpx.Client(transport=transport))


KEPT, MOCKED = groq.Groq(api_key="k"), mocked()
OF_OPENAI = openai.OpenAI(api_key="k", base_url="https://api.openai.com/v1")
SERVICES = {"api.groq.com": lambda _: REPLY, "api.openai.com": lambda _: REPLY}


def own(_: str) -> str:
    with groq.Groq(api_key="k") as client:
        return loop(client)


def kept(_: str) -> str:
    return loop(KEPT)


def of_openai(_: str) -> str:
    return loop(OF_OPENAI)


def nothing(_: str) -> str:
    return ""


def cpu_s() -> float:
    """The processor time of this process and of its children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def took_ms(work: Callable[[], Any], now: Callable[[], float] = cpu_s) -> float:
    began_s = now()
    work()
    return (now() - began_s) * 1000


def trials(
    agent: Callable[[str], str], count: int, *, isolate: str | None = None, now: Callable[[], float] = cpu_s
) -> list[float]:
    """The cost of each trial after the first, without what `lab.run_many` costs once."""
    done = lab.run_many(agent, "", trials=count + 1, services=SERVICES, twin=False, isolate=isolate)
    try:
        next(done)
        return [took_ms(lambda: next(done), now) for _ in range(count)]
    finally:
        done.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of a trial that asks a model over https")
    parser.add_argument("--rounds", type=int, default=10, help="how often each is measured (default: %(default)s)")
    rounds: int = parser.parse_args().rounds
    for name in LOADED:
        importlib.import_module(name)
    lab.run(nothing, "", twin=False)
    costs: dict[str, list[float]] = {name: [] for name in (*BOUNDS_MS, *UNBOUND)}
    for _ in range(rounds):
        fixed, fresh, single, with_openai, forked, by_clock, plain = costs.values()
        fixed.append(took_ms(lambda: lab.run(nothing, "", twin=False)))
        fresh += trials(own, 5)
        single += trials(kept, 5)
        with_openai += trials(of_openai, 5)
        forked += trials(kept, 5, isolate="fork")
        by_clock += trials(kept, 5, isolate="fork", now=perf_counter)
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
