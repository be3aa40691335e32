"""Breaks one agent in many frameworks with the same hazards, in virtual time, and writes down what happened.

    python examples/frameworks/matrix.py run openai_sdk [--into results/openai_sdk.json]
    python examples/frameworks/matrix.py story openai_sdk "lost reply"
    python examples/frameworks/matrix.py page        docs/frameworks.md from all results

Each agent has two tools: it reads an order's price and pays it back. Its model is a script in the provider's own format
at the provider's own address, so it asks for the same calls whatever becomes of them: what differs is what the
framework and its SDK make of a hazard. A cell counts only if the hazard was witnessed.
"""

import argparse
import contextlib
import importlib
import io
import json
import logging
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed, PromptAttempt

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parents[1] / "docs" / "frameworks.md"
FRAMEWORKS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "frameworks.toml").read_text(encoding="utf-8"))
PROMPT, ANSWER, SEED = "Refund order 17.", "Refunded 30 dollars.", 1
MODEL = "the model"


@dataclass(frozen=True)
class Hazard:
    """One thing that goes wrong. `fault` of None: the model itself does it, by its `script`: it asks for the refund
    "twice" in one answer, or for the price "for ever"."""

    name: str
    fault: str | None
    target: str = MODEL
    call: int = 2
    params: tuple[tuple[str, Any], ...] = ()
    script: str = ""


HAZARDS = (
    Hazard("lost reply", "lost_reply", "refund", 1),
    Hazard("tool exception", "tool_error", "refund", 1, params=(("status", 503),)),
    Hazard("wrong value", "wrong_value", "price", 1),
    Hazard("duplicate call", None, script="twice"),
    Hazard("429", "tool_error", params=(("status", 429),)),
    Hazard("500", "tool_error", params=(("status", 500),)),
    Hazard("HTML for JSON", "html_instead_of_json"),
    Hazard("empty answer", "empty_response"),
    Hazard("cut stream", "cut", params=(("after_events", 2),)),
    Hazard("stall", "stall", params=(("after_events", 2),)),
    Hazard("hang", "timeout"),
    Hazard("context loss", "truncate_context"),
    Hazard("400", "context_length"),
    Hazard("error with status 200", "error_in_answer"),
    Hazard("call cut for its length", "finish_length", params=(("tool_calls", "cut"),)),
    Hazard("same call three times", "duplicate_calls", params=(("times", 3),)),
    Hazard("calls for ever", None, script="for ever"),
)
FOR_EVER = 300
"""The calls of a model that never ends: more than each framework's own limit."""


def script(form: str, kind: str) -> list[Any]:
    """The model's answers: the price, the refund ("twice" in one answer), the last word; or the price "for ever"."""
    price, refund, twice = lab.call("price", order=17), lab.call("refund", order=17, amount=30), kind == "twice"
    if kind == "for ever":
        return [_of_dspy("price", {"order": 17}) if form == "dspy" else price] * FOR_EVER
    if form == "dspy":
        steps = [("price", {"order": 17}), *[("refund", {"order": 17, "amount": 30})] * (1 + twice), ("finish", {})]
        last = f"[[ ## reasoning ## ]]\nDone.\n\n[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"
        return [*(_of_dspy(*step) for step in steps), last]
    end: Any = lab.call("final_answer", answer=ANSWER) if form == "final_answer" else ANSWER
    return [price, [refund, refund] if twice else refund, end]


def _of_dspy(tool: str, arguments: dict[str, Any]) -> str:
    fields = {"next_thought": tool, "next_tool_name": tool, "next_tool_args": json.dumps(arguments)}
    return "".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in fields.items()) + "[[ ## completed ## ]]"


def trial_of(name: str, hazard: Hazard | None, isolate: str | None = "fork") -> lab.Trial:
    """The trial of a framework's agent under a hazard; None is none."""
    known = FRAMEWORKS[name]
    module, host = importlib.import_module(name), known.get("host", "api.openai.com")
    own: Callable[[str], Any] = lab.mcp_tool if name == "mcp_client" else lambda tool: getattr(module, tool)
    faults = []
    if hazard is not None and hazard.fault is not None:
        target = host if hazard.target == MODEL else hazard.target
        faults = [lab.inject(hazard.fault, target, calls=[hazard.call], **dict(hazard.params))]
    model = lab.scripted(script(known.get("script", ""), hazard.script if hazard is not None else ""))
    wanted = [{"effect": "refund", "order": 17, "amount": 30}]
    return lab.run(
        module.agent, PROMPT, tools=[own("refund")], reads=[own("price")], services={host: model}, faults=faults,
        effects=wanted, elsewhere="unreachable", isolate=isolate, seed=SEED,
    )  # fmt: skip


def facts_of(name: str, hazard: Hazard | None) -> dict[str, Any]:
    """The facts of a trial, as plain data."""
    host = FRAMEWORKS[name].get("host", "api.openai.com")
    trial = trial_of(name, hazard)
    attempt = next(event for _, event in trial.history.find_events(PromptAttempt))
    asked = [event for _, event in trial.history.find_events(CallFinished) if event.target == host]
    return {
        "witnessed": sum(1 for _ in trial.history.find_events(FaultWitnessed)),
        "hung": attempt.error_type == "hung",
        "error": "" if attempt.error_type == "none" else innermost(trial.error) or attempt.error.split("\n")[0],
        "answer": (trial.said or "").strip(),
        "refunds": len(trial.effects),
        "requests": len(asked),
        "seconds": round(trial.seconds, 1),
    }


def innermost(error: BaseException | None) -> str:
    """The name of the exception that an agent ended by: of a group, the first in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if type(error) is RuntimeError and ": " in str(error):  # one that could not be sent from the trial's process
        return str(error).partition(":")[0]
    return "" if error is None else type(error).__name__


def cell(facts: dict[str, Any], hazard: Hazard, calm: dict[str, Any]) -> str:
    """The facts of a trial in a few words, beside those of the trial without a hazard."""
    if hazard.fault is not None and not facts["witnessed"]:
        return "–"
    if facts["hung"]:
        ended = "never ends"
    elif facts["error"]:
        ended = f"raises {facts['error']}"
    elif facts["answer"] == calm["answer"]:
        ended = "answers as without"
    else:
        ended = f"answers “{shortened(facts['answer'])}”" if facts["answer"] else "answers nothing"
    refunds = "" if facts["refunds"] == 1 else f"; {facts['refunds'] or 'no'} refund{'s' * (facts['refunds'] != 1)}"
    more = facts["requests"] - calm["requests"]
    requests = f"; {more:+d} request{'s' * (abs(more) != 1)}" if more else ""
    waited = f"; {facts['seconds']:g} s" if facts["seconds"] >= 0.1 and not facts["hung"] else ""
    return ended + refunds + requests + waited


def shortened(text: str, width: int = 48) -> str:
    text = " ".join(text.split()).replace("|", "/")
    return text if len(text) <= width else f"{text[: width - 1]}…"


def run(name: str) -> dict[str, Any]:
    """All trials of a framework's agent, with the versions they were made with."""
    packages = [package.partition("==")[0].partition("[")[0] for package in FRAMEWORKS[name]["packages"]]
    if FRAMEWORKS[name].get("builds"):
        trial_of(name, None, isolate=None)
    calm = facts_of(name, None)
    return {
        "versions": {package: version(package) for package in packages},
        "calm": calm,
        "hazards": {hazard.name: facts_of(name, hazard) for hazard in HAZARDS},
    }


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page of the documents: a table for each hazard's place, a row for each framework."""
    lines = [HEAD]
    for title, places in TABLES:
        lines += ["", f"## {title}", "", f"| | {' | '.join(hazard.name for hazard in places)} |"]
        lines.append("|---" * (len(places) + 1) + "|")
        for name, each in found.items():
            tried = each["hazards"]
            cells = [cell(tried[one.name], one, each["calm"]) if one.name in tried else "not tried" for one in places]
            lines.append(f"| **{FRAMEWORKS[name]['title']}** | {' | '.join(cells)} |")
    for head, file, column, key in (
        (DEATHS, "deaths.json", "keeps", "deaths"),
        (CODING, "coding.json", "tools", "faults"),
    ):
        rows = list(json.loads((HERE / file).read_text(encoding="utf-8")).values())
        columns = list(rows[0][key])
        lines += ["", head, "", f"| | {column} | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
        for row in rows:
            versions = ", ".join(f"{package} {number}" for package, number in row["versions"].items())
            title = f"**{row['title']}**" + (f" ({versions})" if versions else "")
            lines.append(f"| {title} | {row[column]} | {' | '.join(row[key].values())} |")
    lines += ["", "## Versions", "", "| | tried | model's requests without a hazard | file |", "|---|---|---|---|"]
    for name, each in found.items():
        versions = ", ".join(f"{package} {number}" for package, number in each["versions"].items())
        about = FRAMEWORKS[name]["title"], versions, str(each["calm"]["requests"]), f"`agents/{name}.py`"
        lines.append(f"| {' | '.join(about)} |")
    return "\n".join(lines) + "\n"


TABLES = (
    ("What the tools do", HAZARDS[:4]),
    ("What the model's API does", HAZARDS[4:14]),
    ("What the model says", HAZARDS[14:]),
)
HEAD = f"""<!-- Made by `make frameworks` from trials: do not edit. -->

# What frameworks make of faults

One small agent, written in {len(FRAMEWORKS)} frameworks and SDKs, meets the same hazards in virtual time, at the
provider's own address. It reads an order's price, refunds it and says so. Its model is a script that asks for the same
calls whatever happens, so a row shows what the framework and its SDK do by themselves, not what a model would make of
it.

Each cell is one trial with seed {SEED}, compared with the trial without the hazard: how it ended, the refunds if there
is not exactly one, more or fewer requests to the model, and the time that it took longer. A dash: the hazard cannot
occur there (an answer that is not streamed cannot be cut or stall, and a conversation that the provider keeps is not
sent again). "Not tried": the hazard is newer than the framework's last trials.

A tool's hazard hits its first call, the model's its second request, once. A model that calls for ever shows the
framework's own limit, and its last words; "never ends" means more than a hundred requests. `python
examples/frameworks/matrix.py story openai_sdk "lost reply"` prints the story of a cell's trial, in an environment with
the versions below; `make frameworks` makes the whole page anew."""


DEATHS = """## When the agent dies

An agent that charges an order and mails about it is killed (`agent_dies`), and the same program continues from what its
framework has kept on disk. No tool has an idempotency key; with keys, plain code, LangGraph, OpenAI Agents and
Pydantic AI did nothing twice. Each cell is one trial of `examples/frameworks/deaths.py`; "goes on": all is done once.
[Try your own](how-to/the-agent-dies.md)."""

CODING = """## When an agent codes

An agent with its framework's own shell and file tools lists a folder and writes a file, in a copy of a folder
(`files=`), and the command or the file is broken. A cell is what its model reads: "as without" means that it is not
told of the fault. Each is one trial of `examples/frameworks/coding.py`; a dash: it has no such tool.
[Try your own](how-to/an-agent-that-codes.md)."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="matrix.py", description="what frameworks make of faults")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("run", "story", "packages"):
        added = commands.add_parser(command)
        added.add_argument("name", choices=FRAMEWORKS)
        if command == "story":
            added.add_argument("hazard", choices=[hazard.name for hazard in HAZARDS])
        elif command == "run":
            added.add_argument("--into", type=Path)
    commands.add_parser("page").add_argument("--print", action="store_true")
    commands.add_parser("names")
    given = parser.parse_args()
    if given.command == "page":
        paths = {name: RESULTS / f"{name}.json" for name in FRAMEWORKS}
        found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
        text = page(found)
        print(text, end="") if given.print else PAGE.write_text(text, encoding="utf-8")
        return 0
    if given.command == "names":
        print(*sorted(FRAMEWORKS), sep="\n")
        return 0
    if given.command == "packages":
        print(*FRAMEWORKS[given.name]["packages"])
        return 0
    prepare()
    if given.command == "story":
        print(trial_of(given.name, next(hazard for hazard in HAZARDS if hazard.name == given.hazard)).story(), end="")
        return 0
    with contextlib.redirect_stdout(io.StringIO()):  # what agents print is not the result
        found = run(given.name)
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if given.into is None:
        print(text, end="")
    else:
        given.into.parent.mkdir(parents=True, exist_ok=True)
        given.into.write_text(text, encoding="utf-8")
    return 0


def prepare() -> None:
    """Lets the agents be imported, and gives their SDKs a key that no provider knows."""
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, str(HERE / "agents"))
    for name in ("OPENAI", "ANTHROPIC", "GROQ", "GOOGLE"):
        os.environ.setdefault(f"{name}_API_KEY", "sk-of-nobody")
    for name in ("CREWAI_TRACING_ENABLED", "OTEL_SDK_DISABLED"):
        os.environ.setdefault(name, "false" if name.startswith("CREWAI") else "true")


if __name__ == "__main__":
    sys.exit(main())
