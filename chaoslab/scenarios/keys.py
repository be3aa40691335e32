"""The meaning of each key of a scenario's file, for the JSON Schema and the reference."""

from collections.abc import Mapping

from chaoslab.execution.options import key_of, keys

SCENARIO: Mapping[str, str] = {
    **{key_of(each): each.metadata["key"] for each in keys()},
    "chaoslab": "The version of the format.",
    "name": "The scenario's name, by which -k and the reports know it.",
    "description": "What the scenario is for, in a sentence.",
    "agent": "The agent: its callable as module:name, {command: [program, argument …]}, or lab for the lab's own.",
    "fresh": "In place of agent: a function, as module:name, that makes a new agent for each trial.",
    "prompt": "The user's words.",
    "turns": "In place of prompt: the user's words, turn by turn. The turns share the agent's memory.",
    "user": "A scripted user, who answers the agent by pattern until none is found.",
    "turns_max": "The most turns of a conversation with a scripted user.",
    "operations": "In place of an agent: calls of tools and reads, made one after the other.",
    "chaos_level": "One number for many faults: from 0 to 10. A call meets a fault with a chance of 10 % × the level.",
    "families": "The families of faults that chaos_level draws from; all that fit the targets by default.",
    "budget": "The limits of a trial.",
    "slo": "Objectives over the calls of all trials.",
    "variants": "The same scenario with other values: a list of named sets of keys, or lists of values by key.",
    "explore": "How chaoslab explore goes about it: its budget and what it tries.",
    "expect": "The assertions about each trial.",
    "accept": "The outcomes that pass.",
    "count_words": "true: a verdict that rests on words counts like a certain one; else it is open.",
    "pass_rate": "The least share of trials that must pass, from 0 to 1.",
    "invalid_rate": "The largest share of trials that may be invalid, from 0 to 1. Unknown trials do not count.",
    "trials": "The number of trials.",
    "found": "The failure that chaoslab explore saved this file for: said to be fixed when the scenario passes.",
    "folder": "Where its modules are sought first, from the file's own folder, which it is by default.",
}
PARTS: Mapping[str, Mapping[str, str]] = {
    "AnswerSpec": {
        "when": "A pattern (a regular expression) that is looked for in the agent's last answer.",
        "say": "The user's words if it is found.",
    },
    "BudgetSpec": {
        "tokens": "The most tokens of a trial.",
        "dollars": "The most dollars of the whole run.",
        "calls": "The most calls of a trial.",
        "seconds": "The longest time of a trial, in seconds or as a duration.",
        "mode": "hard refuses each call beyond a limit, soft only logs it.",
    },
    "ExploreSpec": {
        "trials": "The most trials.",
        "seconds": "The most seconds of real time.",
        "tries": "The only faults to try.",
        "by": "The strategies, of singles, lasting, born, pairs, orders and random_plans.",
    },
    "CommandSpec": {
        "command": "A program and its arguments. {prompt} stands for the prompt, which is at the standard input too.",
    },
    "FaultSpec": {
        "fault": "The fault's name; chaoslab faults NAME tells of its parameters, which stand beside it.",
        "target": "A tool, service or model, a pattern of names such as order_*, or a list of these.",
    },
    "OperationSpec": {
        "tool": "The name of one of the tools or reads.",
        "args": "Its arguments by name.",
        "after": "The time that passes before the call, in seconds or as a duration.",
        "expect": "The assertions about this call.",
    },
    "SloSpec": {
        "share": "The least share of good calls, from 0 to 1.",
        "within": "A good call succeeds in this time, in seconds or as a duration.",
        "tool": "The tool or service, or a pattern of names.",
    },
    "TurnSpec": {
        "say": "The user's words.",
        "reply": "In place of say: words by pattern. The first pattern found in the agent's last answer counts.",
        "after": "The time that passes before the turn, in seconds or as a duration.",
        "expect": "The assertions about this turn.",
    },
}
HOLDERS: Mapping[str, str] = {
    "FaultSpec": "faults", "TurnSpec": "turns", "AnswerSpec": "user", "OperationSpec": "operations",
    "BudgetSpec": "budget", "SloSpec": "slo", "CommandSpec": "agent",
}  # fmt: skip
"""The key of a scenario below which each part stands."""
