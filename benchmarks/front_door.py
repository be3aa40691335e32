"""Measures what `chaoslab explore` finds in ten agents with planted bugs (`planted.py`, `desk.py`, `desk.js`):
`python benchmarks/front_door.py [AGENT …]`. Bug, the root cause's number, trials until it was first seen, seconds.
Then the planted harms on a small budget: of one fault in forty trials, of two in five seconds.
Exits 1 if a bug is not found, or an agent has more root causes than bugs and two. `-v` prints the findings too.
"""

import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple

import planted
from shop_server import Shop

import chaoslab as lab
from chaoslab.execution.explore import Exploration, FoundFailure
from chaoslab.scenarios.exploring import explore_scenario, make_command_scenario

HERE = Path(__file__).parent
SECONDS = 60
"""The budget for each agent."""
MORE = 2
"""The root causes that an agent may have beside its bugs."""


class Planted(NamedTuple):
    """An agent with the arguments of `lab.explore`."""

    agent: Callable[[str], Any]
    given: dict[str, Any]


def modelled(*steps: Any, host: str = "api.openai.com") -> dict[str, Any]:
    return {"services": {host: lab.scripted([*steps], on_failure="I could not {tool}.")}}


AGENTS = {
    "refund_desk": Planted(
        planted.refund_desk, {"tools": [planted.refund, planted.send_mail], "reads": [planted.get_order]}
    ),
    "inbox": Planted(planted.inbox, {"tools": [planted.delete_mail], "reads": [planted.get_rules, planted.list_mail]}),
    "reporter": Planted(planted.reporter, {"tools": [planted.start_report], "reads": [planted.poll_report]}),
    "clerk": Planted(planted.clerk, {"tools": [planted.reserve], "reads": [planted.stock_here, planted.stock_there]}),
    "openai_agents": Planted(
        planted.openai_agents,
        {"tools": [planted.refund], **modelled(lab.call("pay_back", order=17), "Order 17 is refunded.")},
    ),
    "langchain": Planted(
        planted.langchain,
        {
            "tools": [planted.set_status],
            "reads": [planted.get_order],
            **modelled(
                lab.call("get_order", order=17),
                lab.call("set_status", order=17, status="done"),
                "Order 17 is done.",
                host="api.groq.com",
            ),
        },
    ),
    "pydantic_ai": Planted(
        planted.pydantic_ai,
        {"tools": [planted.send_mail], **modelled(lab.call("tell", to="ana@example.org"), "Ana knows.")},
    ),
    "langgraph": Planted(planted.langgraph, {"tools": [planted.charge, planted.send_mail]}),
}


SMALL: dict[str, dict[str, Any]] = {
    "refund_desk": {"trials": 40}, "inbox": {"trials": 40}, "openai_agents": {"trials": 40},
    "langgraph": {"trials": 40}, "clerk": {"seconds": 5},
}  # fmt: skip
"""The agents with a planted harm, each with a budget in which it is to be found."""
COMMANDS = {"python": f"{sys.executable} {HERE / 'desk.py'}", "node": f"node {HERE / 'desk.js'}"}
"""Commands as agents, with a shop on loopback."""
MARK = re.compile(r"(?:#|//) bug: (.+)$")


def bugs_of(source: str) -> list[str]:
    """The bugs that are planted in an agent, by its marks: the symptom, and for a command its call."""
    return [found[1] for line in source.splitlines() if (found := MARK.search(line))]


def found_as(bug: str, failures: Sequence[FoundFailure]) -> int:
    """The number of the root cause that is this bug, from 1; 0 if there is none."""
    for n, each in enumerate(failures, 1):
        symptom, _, operation = bug.partition(" ")
        at = each.root.operation == operation if operation else any(marked(place, bug) for place in each.places)
        if each.root.symptom == symptom and at:
            return n
    return 0


def marked(place: str, bug: str) -> bool:
    file, _, number = place.rpartition(":")
    return number.isdecimal() and bugs_of(linecache.getline(file, int(number))) == [bug]


def first_seen(found: Exploration, failure: FoundFailure) -> int:
    """The number of the first trial that showed a root cause."""
    keys = {each.variation.key for each in (failure.tried, *failure.others)}
    return next((n for n, each in enumerate(found.trials) if each.variation.key in keys), len(found.trials))


def explored(name: str, budget: dict[str, Any]) -> tuple[Exploration, list[str]]:
    """The findings for an agent, and its planted bugs."""
    if name not in COMMANDS:
        own = AGENTS[name]
        found = lab.explore(own.agent, "Do it for order 17.", seed=1, **{**own.given, **budget})
        return found, bugs_of(inspect.getsource(own.agent))
    source = Path(COMMANDS[name].split()[1]).read_text()
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    Thread(target=shop.serve_forever, daemon=True).start()
    route = f"shop=http://127.0.0.1:{shop.server_port}"
    (scenario,) = make_command_scenario(COMMANDS[name].split(), [route], None, wait_s=2)
    found = explore_scenario(scenario, seed=1, **budget)
    shop.shutdown()
    return found, bugs_of(source)


def harm_rows(name: str, budget: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The planted harms that were found in a budget; other bugs may take longer."""
    found, bugs = explored(name, budget)
    for bug in bugs:
        n = found_as(bug, found.failures)
        if n and found.failures[n - 1].outcome != "harm":
            continue
        if n or bug.split()[0] in ("repeats", "takes"):
            cells = (name, bug, " ".join(f"{given} {unit}" for unit, given in budget.items()), str(n or "not found"))
            yield "| " + " | ".join(cells) + " |" + ("" if n else " MISSED"), bool(n)


def rows(name: str, **budget: Any) -> Iterator[tuple[str, bool]]:
    began_s = perf_counter()
    found, bugs = explored(name, budget)
    took_s = perf_counter() - began_s
    few = len(found.failures) <= len(bugs) + MORE
    for bug in bugs:
        n = found_as(bug, found.failures)
        seen = first_seen(found, found.failures[n - 1]) if n else 0
        cells = (name, bug, f"{n} of {len(found.failures)}" if n else "not found", str(seen or "–"),
                 str(len(found.trials)), f"{took_s:.1f}")  # fmt: skip
        yield "| " + " | ".join(cells) + " |" + ("" if n and few else " MISSED"), bool(n and few)
    if "-v" in sys.argv:
        yield str(found), True


def main(names: list[str]) -> int:
    well = True
    print("| agent | bug | root cause | first seen in trial | trials | seconds |\n|---|---|---|---|---|---|")
    for name in names or [*AGENTS, *COMMANDS]:
        for row, good in rows(name, seconds=SECONDS):
            well &= good
            print(row, flush=True)
    print("\n| agent | harm | budget | root cause |\n|---|---|---|---|")
    for name, budget in SMALL.items():
        for row, good in harm_rows(name, budget) if not names or name in names else ():
            well &= good
            print(row, flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main([each for each in sys.argv[1:] if each != "-v"]))
