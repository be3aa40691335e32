"""A chaos lab for LLM agents: break the network, the tools, the model and the budget, and see what the agent does.

From Python, `import chaoslab as lab` and `lab.run(agent, prompt, tools=…, faults=[lab.inject(…)])`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own would have to be imported, which costs more than all the rest

if TYPE_CHECKING:
    from chaoslab.analysis.assertions import expect
    from chaoslab.analysis.measures.incidents import Incident
    from chaoslab.analysis.verdict.table import Outcome, Verdict
    from chaoslab.core.conversation import turn, turns
    from chaoslab.core.inject import inject
    from chaoslab.core.levels import level, network
    from chaoslab.core.plan import Injection
    from chaoslab.execution.agents.functions import fresh
    from chaoslab.execution.cluster import cluster
    from chaoslab.execution.explore import explore, shrink
    from chaoslab.execution.prove import prove
    from chaoslab.execution.trial import NoBaseline, NothingHit, Trial, run, run_many
    from chaoslab.execution.trials import Trials
    from chaoslab.memory import memory
    from chaoslab.memory.planning import plan
    from chaoslab.model.offline import offline_model
    from chaoslab.model.recorded import recorded
    from chaoslab.model.script import call, scripted
    from chaoslab.reports.frames import frame
    from chaoslab.reports.loaded import load
    from chaoslab.reports.report import Report, report
    from chaoslab.scenarios.builder import load_scenario, scenario
    from chaoslab.scenarios.check import check
    from chaoslab.scenarios.comparing import compare
    from chaoslab.seams.adapters.mcp import mcp_tool
    from chaoslab.seams.functions.native_errors import ToolError

__version__ = "0.1.0"
__all__ = [
    "Incident", "Injection", "NoBaseline", "NothingHit", "Outcome", "Report", "ToolError", "Trial", "Trials", "Verdict",
    "call", "check", "cluster", "compare", "expect", "explore", "frame", "fresh", "inject", "level", "load",
    "load_scenario", "mcp_tool", "memory", "network", "offline_model", "plan", "prove", "recorded", "report", "run",
    "run_many", "scenario", "scripted", "shrink", "turn", "turns",
]  # fmt: skip

_PLACES = {
    "Incident": "analysis.measures.incidents", "Injection": "core.plan", "NoBaseline": "execution.trial",
    "NothingHit": "execution.trial", "Outcome": "analysis.verdict.table", "Report": "reports.report",
    "ToolError": "seams.functions.native_errors", "Trial": "execution.trial", "Trials": "execution.trials",
    "Verdict": "analysis.verdict.table", "call": "model.script", "check": "scenarios.check",
    "cluster": "execution.cluster", "compare": "scenarios.comparing", "expect": "analysis.assertions",
    "explore": "execution.explore", "frame": "reports.frames", "fresh": "execution.agents.functions",
    "inject": "core.inject", "level": "core.levels", "load": "reports.loaded", "load_scenario": "scenarios.builder",
    "mcp_tool": "seams.adapters.mcp", "memory": "memory", "network": "core.levels",
    "offline_model": "model.offline", "plan": "memory.planning", "prove": "execution.prove",
    "recorded": "model.recorded", "report": "reports.report", "run": "execution.trial", "run_many": "execution.trial",
    "scenario": "scenarios.builder", "scripted": "model.script", "shrink": "execution.explore",
    "turn": "core.conversation", "turns": "core.conversation",
}  # fmt: skip


if not TYPE_CHECKING:  # else a wrong name would be Any

    def __getattr__(name):
        """Loads each name when it is first used. The command line and the parts of the lab need none of them."""
        import importlib

        if name not in _PLACES:
            foreign = importlib.import_module("chaoslab.base.foreign")
            if name in foreign.NAMES:  # an AttributeError would lose its text in `from chaoslab import …`
                raise ImportError(f"chaoslab has no {name}: here it is {foreign.NAMES[name]}; see {foreign.PAGE}")
            raise AttributeError(f"module 'chaoslab' has no attribute '{name}'")
        return getattr(importlib.import_module(f"chaoslab.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
