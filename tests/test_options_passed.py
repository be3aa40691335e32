"""Each option of a command that runs trials reaches the function that it is for.

A function of a room has defaults of its own, so an option that the command does not pass on fails nowhere: the command
runs, with another number of trials. Each row types options whose values are no defaults, and compares what the room's
function is called with. An option without a row is one that a test elsewhere sees the effect of.
"""

import inspect
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from chaoslab.cli import main
from chaoslab.reports.gate import Gate

AGENT = """\
def careful(prompt):
    return "done"

def other(prompt):
    return "done"

def refund(order):
    return "done"
"""
SCENARIO = """\
name: one
agent: shop:careful
prompt: Refund order 17.
tools: [shop:refund]
faults: [{fault: latency, target: refund, delay_s: 2}]
"""
ONE = "one.chaos.yaml"
ROUTE = "--route crm=http://127.0.0.1:9"
KEPT = Path("kept")
EFFECTS = '[{"effect": "pay"}]'


class Reached(BaseException):
    """A room's function was called: nothing of what it does is part of the test."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments


def find_arguments(function: str, words: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of the function by the names of its parameters, when these words are typed."""
    module, _, name = function.rpartition(".")
    real = getattr(import_module(f"chaoslab.{module}"), name)
    signature = inspect.signature(real)

    def end(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        # Those of `**budget` too, beside the others.
        raise Reached({**bound.arguments, **bound.kwargs})

    with monkeypatch.context() as replaced:
        replaced.setattr(f"chaoslab.{function}", end)
        with pytest.raises(Reached) as reached:
            main(shlex.split(words))
    # A module that the command was the first to import has the replacement for good, and so would later tests.
    for taker in [loaded for path, loaded in sys.modules.items() if path.startswith("chaoslab.")]:
        if vars(taker).get(name) is end:
            setattr(taker, name, real)
    return reached.value.arguments


EXPLORED = {"seed": 5, "jobs": 2, "trials": 3, "seconds": 60, "tries": ["latency"], "by": ["pairs"], "logs": KEPT}
COMMAND = {
    "command": ["true", "x"], "routes": ["crm=http://127.0.0.1:9"], "prompt": "Refund", "wait_s": 7, "proxy": True,
    "reset": "true", "resume": ["false", "y"], "resumes": 3, "changed": ["trials=4", "anyway=true"],
}  # fmt: skip
GATED = "--alpha 0.02 --open-max 0.3"
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("scenarios.demo.render_demo", "demo -n 3 --seed 5 --chaos-level 2", {"trials": 3, "seed": 5, "chaos_level": 2.0}),
    ("scenarios.running.run_scenario", f"test {ONE} -n 3 --seed 5 --jobs 2 --trial 2 --logs kept --keep failed",
     {"trials": 3, "seed": 5, "jobs": 2, "only": 2, "logs": KEPT, "keep": "failed", "apart": True}),
    ("scenarios.running.run_scenario", f"test {ONE} --no-logs", {"logs": None}),
    *((f"scenarios.tell.{name}", f"test {ONE} --dry-run {form} -n 3 --seed 5 --trial 2",
       {"trials": 3, "seed": 5, "only": 2}) for name, form in (("render_forecast", ""), ("forecast_hits", "--json"))),
    ("scenarios.load.load_scenarios_of_files", f"test {ONE} --set trials=4 --chaos-level 2 --anyway",
     {"changed": ["trials=4", "chaos_level=2", "anyway=true"]}),
    ("scenarios.exploring.make_agent_scenario", "test shop:careful --prompt Refund --set trials=4",
     {"dotted": "shop:careful", "prompt": "Refund", "changed": ["trials=4"]}),
    ("scenarios.python_files.load_python_scenarios", "test shop.py --set trials=4", {"changed": ["trials=4"]}),
    *(("execution.cluster.cluster", f"{command} {ONE} --cluster local --jobs 3", {"on": "local", "workers": 3})
      for command in ("test", "explore", "stress")),
    ("scenarios.exploring.make_command_scenario",
     f"explore --exec 'true x' {ROUTE} --proxy --reset true --resume-with 'false y' --resumes 3 --wait-s 7"
     " --prompt Refund --set trials=4 --anyway", COMMAND),
    ("scenarios.exploring.make_agent_scenario", "explore shop:careful --prompt Refund --set trials=4",
     {"dotted": "shop:careful", "prompt": "Refund", "changed": ["trials=4"]}),
    ("scenarios.load.load_file_scenarios", f"explore {ONE} --set trials=4 --anyway",
        {"changed": ["trials=4", "anyway=true"]}),
    ("scenarios.exploring.explore_scenario",
     f"explore {ONE} -n 3 --seconds 60 --tries latency --by pairs --seed 5 --jobs 2 --set trials=4 --logs kept"
     " --resume kept/former", {**EXPLORED, "resume": Path("kept/former"), "changed": ["trials=4"]}),
    ("scenarios.exploring.explore_scenario", f"explore {ONE} --no-logs", {"logs": None}),
    ("scenarios.stress.run_stress_levels",
     f"stress {ONE} --iterations 3 --levels 1,2 --seed 5 --jobs 2 --logs kept --keep failed",
     {"levels": [1.0, 2.0], "trials": 3, "seed": 5, "jobs": 2, "logs": KEPT, "keep": "failed"}),
    ("scenarios.stress.run_stress_levels", f"stress {ONE} --no-logs", {"logs": None}),
    ("execution.delivery.plan_delivery_cells", "faults check latency --calls 30 --seed 5",
     {"faults": ["latency"], "calls": 30, "seed": 5}),
    ("execution.forked.make_executor", "faults check latency --jobs 2 -q", {"jobs": 2}),
    ("scenarios.comparing.compare_runs", f"compare one two {GATED}",
     {"base": "one", "new": "two", "alpha": 0.02, "open_max": 0.3}),
    ("scenarios.comparing.open_scenario_sides", f"compare {ONE} --agent shop:other --seed 5 --jobs 2",
     {"seed": 5, "jobs": 2, "but": ()}),
    ("scenarios.comparing.open_scenario_sides", f"compare {ONE} --prompt Cancel", {"but": ("prompt", "turns")}),
    ("scenarios.comparing.compare_sides", f"compare {ONE} --agent shop:other -n 3 {GATED} --shrink",
     {"trials": 3, "alpha": 0.02, "open_max": 0.3, "shrink": True, "name": "one"}),
    ("scenarios.comparing.compare_with_itself", f"compare {ONE} --a-a 2 --seed 5 -n 3 --jobs 2 {GATED}",
     {"times": 2, "seed": 5, "trials": 3, "jobs": 2, "alpha": 0.02, "open_max": 0.3}),
    ("scenarios.revisions.SideWork", f"compare {ONE} --model m -k on --seed 5 --jobs 2",
     {"file": Path(ONE), "only": "on", "seed": 5, "jobs": 2}),
    ("scenarios.revisions.open_model_sides", f"compare {ONE} --model m", {"name": "m"}),
    ("scenarios.revisions.open_revision_sides", f"compare {ONE} --revisions a b", {"names": ["a", "b"]}),
    ("scenarios.load.load_scenarios_of_files", f"gate {ONE} --baseline b.json --set trials=4",
        {"changed": ["trials=4"]}),
    ("scenarios.sides.ScenarioSide", f"gate {ONE} --baseline b.json --write --seed 5 --jobs 2",
     {"seed": 5, "jobs": 2}),
    ("scenarios.exploring.explore_scenario", f"prove {ONE} --agent shop:other -n 3 --seed 5 --jobs 2",
     {"trials": 3, "seed": 5, "jobs": 2}),
    ("scenarios.exploring.rerun_exploration_on_change", f"prove {ONE} --try no-retry -n 3 --seed 5 --jobs 2",
     {"mitigation": "no-retry", "seed": 5, "jobs": 2}),
    ("scenarios.load.load_file_scenarios", f"prove {ONE} --fresh shop:other --set trials=4",
     {"changed": ["trials=4", "fresh=shop:other"]}),
    ("memory.planning.plan",
     f"plan {ONE} --target crm --tries latency --budget 9 --run -n 3 --risk 0.5 --share 0.4 --critical crm=0.7 --seed 5"
     " --set trials=4 --logs kept",
     {"memory": KEPT, "targets": ["crm"], "tries": ["latency"], "budget": "9", "run": True, "n": 3, "risk": 0.5,
      "share": 0.4, "critical": {"crm": 0.7}, "seed": 5, "changed": ["trials=4"], "logs": KEPT}),
    ("scenarios.exploring.make_agent_scenario", "plan shop:careful --prompt Refund --set trials=4",
     {"prompt": "Refund", "changed": ["trials=4"]}),
    ("scenarios.exploring.shrink_failing_trial", f"shrink {ONE} --trial 2 --seed 5", {"number": 2, "seed": 5}),
    ("scenarios.load.load_file_scenarios", f"shrink {ONE} --set trials=4", {"changed": ["trials=4"]}),
    *(("surfaces.gateway.run_gateway",
       f"{words} {ROUTE} --port 9001 --port-of crm=9002 --timeout 70 --logs kept"
       f" --stop-if 'error_rate > 0.2 over 60s' {end}",
       {"port": 9001, "ports": {"crm": 9002}, "timeout_s": 70.0, "logs": KEPT,
        "stop_if": (0.2, 60.0)})
      for words, end in (("gateway", ""), ("exec", "-- true"))),
    *(("seams.gateway.routes.parse_routes", f"{words} --route api.openai.com {end}",
       {"texts": ["api.openai.com"], "hosts": True})
      for words, end in (("gateway --proxy-port 9003", ""), ("exec --proxy", "-- true"))),
    ("surfaces.gateway.run_gateway", f"gateway {ROUTE} --proxy-port 9003 --elsewhere refuse",
        {"proxy": (9003, "refuse")}),
    ("surfaces.gateway.run_gateway", f"exec {ROUTE} --proxy --elsewhere refuse -- true", {"proxy": (0, "refuse")}),
    *(("surfaces.gateway.parse_plan", f"{words} {ROUTE} --fault latency:crm --plan p.json --seed 5 {end}",
       {"faults": ["latency:crm"], "file": Path("p.json"), "seed": 5, "mortal": dies, "command": command})
      for words, end, dies, command in (
          ("gateway", "", False, False), ("exec", "-- true", False, True),
          ("exec --resume-with false", "-- true", True, True), ("exec --resumes 0", "-- true", True, True))),
    *(("record.audit.Audit", f"{words} {ROUTE} --audit a.log --why drill {end}",
       {"path": Path("a.log"), "why": "drill"})
      for words, end in (("gateway", ""), ("exec", "-- true"))),
    ("surfaces.gateway.make_prompt_start_event",
     f"exec {ROUTE} --fault event_twice:crm --fact paid --effects '{EFFECTS}' --wishes 2 -- true x",
     {"prompt": "true x", "facts": ["paid"], "effects": [{"effect": "pay"}], "wishes": 2}),
    ("surfaces.exec_agent.run_with_faults",
     f"exec {ROUTE} --no-logs --settle 7 --levers --deadline 80s --attempts-max 9 --resume-with 'false y' --resumes 3"
     " --min-correct 0.9 --fail-on hung -- true x",
     {"command": ["true", "x"], "kept": False, "gate": Gate(0.9, ("hung",)), "settle_s": 7.0,
      "levers": True, "deadline_s": 80.0, "attempts_max": 9,
      "resume": ["false", "y"], "resumes": 3}),
    ("surfaces.exec_agent.run_with_faults", f"exec {ROUTE} -- true", {"levers": False, "kept": True}),
    *(("config.limits.load_limits", f"{words} {ROUTE} --limits l.json {end}", {"source": "l.json"})
      for words, end in (("gateway", ""), ("exec", "-- true"))),
    ("surfaces.exec_agent.learn_expected_effects",
     f"exec {ROUTE} --files work --settle 7 --deadline 80s -- true x",
     {"command": ["true", "x"], "settle_s": 7.0, "deadline_s": 80.0, "wishes": 1}),
    ("surfaces.exec_agent.parse_variables", f"exec {ROUTE} --env CRM=crm -- true", {"texts": ["CRM=crm"]}),
    ("surfaces.gateway.parse_plan", "mcp --fault latency:pay --plan p.json --seed 5 -- true",
     {"faults": ["latency:pay"], "file": Path("p.json"), "seed": 5, "routes": None}),
    ("surfaces.mcp_proxy.ProxySession",
     f"mcp --fact paid --effects '{EFFECTS}' --session s --logs kept -- true",
     {"logs": KEPT, "facts": ["paid"], "effects": [{"effect": "pay"}], "name": "s", "kept": True}),
    ("surfaces.mcp_proxy.ProxySession", "mcp --no-logs -- true", {"kept": False}),
    ("surfaces.mcp_remote.run_http_proxy", "mcp --url http://127.0.0.1:9/mcp --header 'X-Team: blue'",
     {"url": "http://127.0.0.1:9/mcp", "fields": {"X-Team": "blue"}}),
]  # fmt: skip


@pytest.fixture
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an agent, a scenario and a folder of files."""
    monkeypatch.syspath_prepend(str(here))
    (here / "shop.py").write_text(AGENT)
    (here / "work").mkdir()
    (here / "p.json").write_text("[]")
    (here / ONE).write_text(SCENARIO)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("function", "words", "expected"), ROWS, ids=[f"{words}" for _, words, _ in ROWS])
def test_each_option_that_is_typed_reaches_its_function(
    function: str, words: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = find_arguments(function, words, monkeypatch)
    assert {name: arguments.get(name) for name in expected} == expected
