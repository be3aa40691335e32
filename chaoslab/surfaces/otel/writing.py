"""Writes what was found in traces as a project: scenario files, a module of stand-ins, and the recorded replies."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from chaoslab.scenarios.agent_tools import READS
from chaoslab.scenarios.writing import render_text
from chaoslab.surfaces.otel._stand_ins import spelt
from chaoslab.surfaces.otel.calls import NONE, Episode, Episodes, TracedCall
from chaoslab.surfaces.projects import (
    MODULE,
    Personal,
    Project,
    function_names,
    is_name,
    render_function,
    render_module,
    render_signature,
)

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


def build_project(episodes: Episodes, *, most: int, personal: Personal) -> TraceProject:
    """The project of the episodes. `most`: scenario files at most."""
    project = TraceProject(lacking=[*episodes.lacking])
    medians = _compute_medians(episodes.episodes)
    functions = function_names(sorted({call.tool for item in episodes.episodes for call in item.calls}), _TAKEN)
    traces: dict[str, dict[str, Any]] = {}
    known_traces: set[str] = set()
    left_count = 0
    for episode in episodes.episodes:
        project.calls += len(episode.calls)
        calls, faults = _record_calls(episode, functions, medians, personal, project.lacking)
        prompt = personal.text(episode.prompt) or "Go."
        same = json.dumps([prompt, calls, faults], sort_keys=True, default=str)
        if not calls or same in known_traces:
            project.kept += len(episode.calls) if calls else 0
            continue
        if len(traces) == most:
            left_count += 1
            continue
        known_traces.add(same)
        project.kept += len(calls) + sum(call.reply is NONE and call.error is not None for call in episode.calls)
        name = f"trace_{len(traces) + 1}"
        traces[name] = {"prompt": prompt, "calls": calls, "answer": personal.text(episode.answer) or "Done."}
        project.files[f"{name}.chaos.yaml"] = _render_scenario(name, episode.trace, traces[name], faults)
    project.kept = min(project.kept, project.calls)
    if left_count:
        project.lacking.append(f"{left_count} more traces: --most {most} scenarios are written")
    tools_used = {call["tool"] for item in traces.values() for call in item["calls"]}
    for tool in sorted(tools_used - {name for name, schema in episodes.schemas.items() if schema.get("parameters")}):
        project.lacking.append(f"{tool}: no schema was recorded: its parameters are those of its calls")
    for tool in sorted(set(functions) - tools_used):
        project.lacking.append(f"{tool}: no reply was recorded, so it has no stand-in")
    project.files[f"{MODULE}.py"] = _render_module(traces, episodes.schemas, functions)
    project.files[RECORDED] = json.dumps({"traces": traces}, indent=1, ensure_ascii=False) + "\n"
    project.masked = personal.counts
    return project


def _record_calls(
    episode: Episode, functions: Mapping[str, str], medians: Mapping[str, float], personal: Personal, lacking: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The calls of an episode that have a reply, as they are recorded, and the faults that they met."""
    calls: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    numbers = Counter[str]()
    location = f"trace {episode.trace[:16]}"
    for call in episode.calls:
        if not isinstance(call.arguments, dict):
            lacking.append(f"{location}: a call of {call.tool}: its arguments are no JSON object")
            continue
        call_text = spelt(call.tool, call.arguments)
        if call.reply is NONE:
            failed.setdefault(call_text, call.error or "")
            continue
        function = functions[call.tool]
        numbers[function] += 1
        error = failed.pop(call_text, None) or call.error
        if fault := _guess_fault(call, error, medians.get(call.tool, 0.0)):
            faults.append({"fault": fault[0], "target": function, "calls": [numbers[function]], **fault[1]})
        if isinstance(call.reply, str) and call.reply.endswith("…"):
            lacking.append(f"{location}: the reply of {call.tool} was cut when it was recorded")
        arguments = {name: value for name, value in call.arguments.items() if value is not None}
        calls.append({"tool": call.tool, "function": function, "arguments": personal.value(arguments),
                      "reply": personal.value(call.reply)})  # fmt: skip
    for call_text, error in failed.items():
        reason = f"it failed ({error[:80]}) and was not tried again" if error else "no reply was recorded"
        lacking.append(f"{location}: {personal.text(call_text)[:120]}: {personal.text(reason)}")
    return [call for call in calls if isinstance(call["arguments"], dict)], faults


def _guess_fault(call: TracedCall, error: str | None, usual_s: float) -> tuple[str, dict[str, Any]] | None:
    """The fault that a call met, and its parameters; None if it met none."""
    if error:
        matching_faults = (name for name, pattern in FAULTS.items() if re.search(pattern, error, re.IGNORECASE))
        return next(matching_faults, "tool_error"), {}
    if call.seconds >= max(SLOW_S, SLOW * usual_s):
        return "delay", {"mean_s": round(call.seconds, 1)}
    return None


def _compute_medians(episodes: list[Episode]) -> dict[str, float]:
    times: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for call in episode.calls:
            times[call.tool].append(call.seconds)
    return {tool: median(durations) for tool, durations in times.items()}


_TAKEN = {"AGENT", "Path", "Replies", "replies", "globals", "locals"}


def _render_scenario(name: str, trace: str, recorded: Mapping[str, Any], faults: list[dict[str, Any]]) -> str:
    used = sorted({call["function"] for call in recorded["calls"]})
    data = {
        "name": name.replace("_", " "),
        "fresh": f"{MODULE}:{name}",
        "tools": [f"{MODULE}:{function_name}" for function_name in used if not READS.match(function_name)],
        "reads": [f"{MODULE}:{function_name}" for function_name in used if READS.match(function_name)],
        "prompt": recorded["prompt"],
        "faults": faults,
        "expect": ["no_duplicate_effects"],
        "trials": 1,
    }
    trace_shown = re.sub(r"[^\w-]", "", trace)[:32]
    return COMMENT.format(trace=trace_shown) + render_text(
        {k: v for k, v in data.items() if v or k == "faults"}, ".yaml"
    )


def _render_module(
    traces: Mapping[str, Mapping[str, Any]], schemas: Mapping[str, Mapping[str, Any]], functions: Mapping[str, str]
) -> str:
    parts: list[str] = []
    arguments_by_tool: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for trace in traces.values():
        for call in trace["calls"]:
            arguments_by_tool[call["tool"]].append(call["arguments"])
    for tool, calls in sorted(arguments_by_tool.items()):
        schema = schemas.get(tool, {})
        parts.append(
            render_function(
                functions[tool],
                _render_parameters(schema.get("parameters") or {}, calls),
                schema.get("description") or f"{tool}, as it was recorded.",
                f"replies.of({tool!a}, {'given' if _is_any(calls) else 'locals()'})",
            )
        )
    for name in traces:
        parts.append(f"def {name}():\n    return replies.begin({name!r}, AGENT, globals())\n")
    return render_module(HEAD, parts)


def _is_any(calls: list[dict[str, Any]]) -> bool:
    """True if some argument's name cannot be a parameter's."""
    return not all(is_name(name) for call in calls for name in call)


def _render_parameters(schema: Mapping[str, Any], calls: list[dict[str, Any]]) -> str:
    if _is_any(calls):
        return "**given"
    schema_properties = schema.get("properties")
    properties = {
        name: property_schema
        for name, property_schema in (schema_properties.items() if isinstance(schema_properties, dict) else ())
        if is_name(name)
    }
    properties |= {name: {} for call in calls for name in call if name not in properties}
    return render_signature(properties, [name for name in properties if all(name in call for call in calls)])
