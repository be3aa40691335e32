"""Writes what was found in traces as a project: scenario files, a module of stand-ins, and the recorded replies."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from chaoslab.scenarios.agent_tools import READS
from chaoslab.scenarios.writing import text_of
from chaoslab.surfaces.otel._stand_ins import spelt
from chaoslab.surfaces.otel.calls import NONE, Episode, Episodes, TracedCall
from chaoslab.surfaces.projects import MODULE, Personal, Project, function, function_names, is_name, module, signature

RECORDED = "recorded.json"
SLOW, SLOW_S = 3.0, 1.0
"""A call was slow if it took so many times the median of its tool, and at least so many seconds."""
FAULTS = {
    "rate_limit": r"\b429\b|rate.?limit|too many requests|quota",
    "auth_error": r"\b40[13]\b|unauthori[sz]ed|forbidden|permission",
    "not_found": r"\b404\b|not.?found",
    "timeout_before_effect": r"time.?d?.?out|deadline|\b50?4\b.*gateway",
    "server_error": r"\b5\d\d\b|unavailable|internal (server )?error",
}
"""The fault that an error's words tell; any other error is a `tool_error`."""
HEAD = '''\
"""Stand-ins for the tools of recorded traces: each gives the reply that was recorded of the call."""

from pathlib import Path

from chaoslab.surfaces.otel._stand_ins import Replies

AGENT = None
"""Your own agent, called with the prompt. While it is None, the recorded calls are made again."""
replies = Replies.read(Path(__file__).with_name("recorded.json"))
'''
COMMENT = """\
# From trace {trace}.
# `chaoslab test` runs it with the recorded calls; name your own agent in stand_ins.py.
# Which functions change something was guessed from their names. A trace does not tell if a call that timed out was
# done: try lost_reply in the place of timeout_before_effect too.
"""


@dataclass
class TraceProject(Project):
    """The project of traces. `calls`, `kept`: the tool calls that there were, and those that are in a scenario."""

    calls: int = 0
    kept: int = 0


def project_of(found: Episodes, *, most: int, personal: Personal) -> TraceProject:
    """The project of the episodes. `most`: scenario files at most."""
    made = TraceProject(lacking=[*found.lacking])
    medians = _medians(found.episodes)
    functions = function_names(sorted({call.tool for each in found.episodes for call in each.calls}), _TAKEN)
    traces: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    left = 0
    for episode in found.episodes:
        made.calls += len(episode.calls)
        calls, faults = _told(episode, functions, medians, personal, made.lacking)
        prompt = personal.text(episode.prompt) or "Go."
        same = json.dumps([prompt, calls, faults], sort_keys=True, default=str)
        if not calls or same in seen:
            made.kept += len(episode.calls) if calls else 0
            continue
        if len(traces) == most:
            left += 1
            continue
        seen.add(same)
        made.kept += len(calls) + sum(call.reply is NONE and call.error is not None for call in episode.calls)
        name = f"trace_{len(traces) + 1}"
        traces[name] = {"prompt": prompt, "calls": calls, "answer": personal.text(episode.answer) or "Done."}
        made.files[f"{name}.chaos.yaml"] = _scenario(name, episode.trace, traces[name], faults)
    made.kept = min(made.kept, made.calls)
    if left:
        made.lacking.append(f"{left} more traces: --most {most} scenarios are written")
    used = {call["tool"] for each in traces.values() for call in each["calls"]}
    for tool in sorted(used - {name for name, of in found.schemas.items() if of.get("parameters")}):
        made.lacking.append(f"{tool}: no schema was recorded: its parameters are those of its calls")
    for tool in sorted(set(functions) - used):
        made.lacking.append(f"{tool}: no reply was recorded, so it has no stand-in")
    made.files[f"{MODULE}.py"] = _module(traces, found.schemas, functions)
    made.files[RECORDED] = json.dumps({"traces": traces}, indent=1, ensure_ascii=False) + "\n"
    made.masked = personal.counts
    return made


def _told(
    episode: Episode, functions: Mapping[str, str], medians: Mapping[str, float], personal: Personal, lacking: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The calls of an episode that have a reply, as they are recorded, and the faults that they met."""
    calls: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    numbers = Counter[str]()
    where = f"trace {episode.trace[:16]}"
    for call in episode.calls:
        if not isinstance(call.arguments, dict):
            lacking.append(f"{where}: a call of {call.tool}: its arguments are no JSON object")
            continue
        asked = spelt(call.tool, call.arguments)
        if call.reply is NONE:
            failed.setdefault(asked, call.error or "")
            continue
        function = functions[call.tool]
        numbers[function] += 1
        error = failed.pop(asked, None) or call.error
        if fault := _fault(call, error, medians.get(call.tool, 0.0)):
            faults.append({"fault": fault[0], "target": function, "calls": [numbers[function]], **fault[1]})
        if isinstance(call.reply, str) and call.reply.endswith("…"):
            lacking.append(f"{where}: the reply of {call.tool} was cut when it was recorded")
        given = {name: value for name, value in call.arguments.items() if value is not None}
        calls.append({"tool": call.tool, "function": function, "arguments": personal.value(given),
                      "reply": personal.value(call.reply)})  # fmt: skip
    for asked, error in failed.items():
        why = f"it failed ({error[:80]}) and was not tried again" if error else "no reply was recorded"
        lacking.append(f"{where}: {personal.text(asked)[:120]}: {personal.text(why)}")
    return [call for call in calls if isinstance(call["arguments"], dict)], faults


def _fault(call: TracedCall, error: str | None, usual_s: float) -> tuple[str, dict[str, Any]] | None:
    """The fault that a call met, and its parameters; None if it met none."""
    if error:
        known = (name for name, words in FAULTS.items() if re.search(words, error, re.IGNORECASE))
        return next(known, "tool_error"), {}
    if call.seconds >= max(SLOW_S, SLOW * usual_s):
        return "delay", {"mean_s": round(call.seconds, 1)}
    return None


def _medians(episodes: list[Episode]) -> dict[str, float]:
    times: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for call in episode.calls:
            times[call.tool].append(call.seconds)
    return {tool: median(each) for tool, each in times.items()}


_TAKEN = {"AGENT", "Path", "Replies", "replies", "globals", "locals"}


def _scenario(name: str, trace: str, recorded: Mapping[str, Any], faults: list[dict[str, Any]]) -> str:
    used = sorted({call["function"] for call in recorded["calls"]})
    data = {
        "name": name.replace("_", " "),
        "fresh": f"{MODULE}:{name}",
        "tools": [f"{MODULE}:{each}" for each in used if not READS.match(each)],
        "reads": [f"{MODULE}:{each}" for each in used if READS.match(each)],
        "prompt": recorded["prompt"],
        "faults": faults,
        "expect": ["no_duplicate_effects"],
        "trials": 1,
    }
    shown = re.sub(r"[^\w-]", "", trace)[:32]
    return COMMENT.format(trace=shown) + text_of({k: v for k, v in data.items() if v or k == "faults"}, ".yaml")


def _module(
    traces: Mapping[str, Mapping[str, Any]], schemas: Mapping[str, Mapping[str, Any]], functions: Mapping[str, str]
) -> str:
    parts: list[str] = []
    given: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for trace in traces.values():
        for call in trace["calls"]:
            given[call["tool"]].append(call["arguments"])
    for tool, calls in sorted(given.items()):
        schema = schemas.get(tool, {})
        parts.append(
            function(
                functions[tool],
                _parameters(schema.get("parameters") or {}, calls),
                schema.get("description") or f"{tool}, as it was recorded.",
                f"replies.of({tool!a}, {'given' if _is_any(calls) else 'locals()'})",
            )
        )
    for name in traces:
        parts.append(f"def {name}():\n    return replies.begin({name!r}, AGENT, globals())\n")
    return module(HEAD, parts)


def _is_any(calls: list[dict[str, Any]]) -> bool:
    """True if some argument's name cannot be a parameter's."""
    return not all(is_name(name) for call in calls for name in call)


def _parameters(schema: Mapping[str, Any], calls: list[dict[str, Any]]) -> str:
    if _is_any(calls):
        return "**given"
    known = schema.get("properties")
    properties = {name: of for name, of in (known.items() if isinstance(known, dict) else ()) if is_name(name)}
    properties |= {name: {} for call in calls for name in call if name not in properties}
    return signature(properties, [name for name in properties if all(name in call for call in calls)])
