"""`chaoslab faults`: the catalogue, a page on a fault, and the check that faults arrive."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from chaoslab.analysis.measures.delivery import DeliveryCell, DeliveryCounts
from chaoslab.base import registry
from chaoslab.base.registry import list_plugins
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.fault import GROUP, get_trait, load_fault
from chaoslab.core.inject import inject
from chaoslab.execution import delivery
from chaoslab.execution._delivery_calls import SEAMS, get_fault_seams
from chaoslab.reports import fault_check
from tests.cli_parts import Typed
from tests.plugin_parts import installed
from tests.test_import_cost import HEAVY, loaded_by

BLIND = """
@dataclass(frozen=True)
class Sock(Fault):
    '''Says that the order is another one, and is never witnessed.'''

    layer = "meaning"
    corrupts = "reply"

    def flow(self, call, context):
        reply = yield call
        return reply.with_value({"order": 18})

    def witnessed(self, seen):
        return None
"""
LAZY = """
@dataclass(frozen=True)
class Sock(Fault):
    '''Never finds anything to do.'''

    layer = "meaning"

    def flow(self, call, context):
        return (yield call)
"""


def said(typed: Typed, *arguments: str, code: int = 0) -> str:
    ended, out, err = typed("faults", *arguments)
    assert ended == code
    return err if code == 2 else out


def test_every_fault_is_listed_under_its_family(typed: Typed) -> None:
    text = said(typed)
    families = {part.splitlines()[0]: part for part in text.split("\n\n")}
    for name, module in registry.map_bundled_plugins("faults").items():
        assert re.search(rf"^  {name} +\S", families[module.split(".")[-2]], flags=re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80


def test_the_list_loads_nothing_heavy_and_no_fault() -> None:
    assert loaded_by("from chaoslab.cli import main\nmain(['faults'])") & HEAVY == set()


def test_a_plug_ins_fault_is_listed_apart(tmp_path: Path, typed: Typed) -> None:
    with installed(tmp_path, BLIND):
        assert "of other packages\n  gremlin" in said(typed)


def test_a_plug_in_s_fault_that_cannot_be_loaded_keeps_nobody_from_the_others(tmp_path: Path, typed: Typed) -> None:
    with installed(tmp_path, "import no_such_module"):
        assert "the fault 'gremlin' of the package gremlins 1.0 cann" in said(typed)
        faults = {entry["fault"]: entry for entry in json.loads(said(typed, "--json"))["faults"]}
        assert "no_such_module" in faults["gremlin"]["error"]
        assert "error" not in faults["latency"]
        assert "no_such_module" in typed.refused("faults", "gremlin", "--json")


def test_a_page_tells_the_story_the_parameters_and_what_a_caller_sees(typed: Typed) -> None:
    text = said(typed, "latency")
    assert text.startswith("latency\n\nThe reply arrives late.\n")
    assert "  delay_s: float, seconds (default: 0.5)\n" in text
    assert "  stream: '' or 'upstream' or 'downstream' (default: 'downstream')\n" in text
    for seam in SEAMS:
        assert re.search(rf"Met at a {seam}:\n.* call .*(\n.*)+ fault .*latency: took 0\.50", text)


@pytest.mark.parametrize("name", registry.map_bundled_plugins("faults"))
def test_each_fault_has_an_example_that_may_be_injected_and_was_seen_in_the_real_world(name: str) -> None:
    fault = load_fault(name)
    target = ast.literal_eval(f"({fault.example.partition(', ')[0]},)")
    injection = eval(f"inject({fault.example})", {"inject": inject})  # noqa: S307 - the lab's own
    assert (target, injection.choices[0].fault) == ((name,), name)
    assert re.fullmatch(r"https://[\w.-]+/\S+", fault.source)


@pytest.mark.parametrize("name", ["flapping", "concurrency_limit", "runaway_guard", "clock_skew"])
def test_a_page_has_a_picture_of_a_fault_that_comes_now_and_then(name: str, typed: Typed) -> None:
    assert re.findall("Met at a (.*):", said(typed, name)) == list(SEAMS)


def test_a_page_tells_who_meets_the_death_of_a_process(typed: Typed) -> None:
    text = " ".join(said(typed, "service_down").split())
    assert "All clients of the service meet it until it is over" in text
    assert "decides by itself" not in text


def test_a_page_says_nothing_of_a_seam_that_does_not_take_it(typed: Typed) -> None:
    assert re.findall("Met at a (.*):", said(typed, "truncate_context")) == ["model"]


def test_an_unknown_fault_is_said_in_a_line_and_nothing_else_is(typed: Typed) -> None:
    hint = "no fault is called 'latncy': did you mean 'latency'?\n"
    assert said(typed, "refused", "latncy", code=2) == hint
    assert said(typed, "check", "latncy", code=2) == hint


@pytest.mark.parametrize(("given", "line"), [
    (["check", "--calls", "0"], "argument --calls: 0 should be a whole number from 3 to 1000000000"),
    (["check", "--jobs", "0"], "argument --jobs: 0 should be a whole number from 1 to 1024"),
    (["latency", "--calls", "9"], "--calls has no effect without check"),
])  # fmt: skip
def test_a_number_that_makes_no_sense_is_refused(given: list[str], line: str, typed: Typed) -> None:
    assert line in typed.refused("faults", *given)


@pytest.mark.parametrize(("fault", "seam"), [
    ("concurrency_limit", "function"), ("concurrency_limit", "service"), ("tls_failure", "service"),
    ("tls_failure", "model"), ("stale_context", "model"),
])  # fmt: skip
def test_the_check_makes_the_calls_that_its_faults_need(fault: str, seam: str) -> None:
    result = delivery.count_deliveries(DeliveryCell(fault, seam, 1.0, 12))
    assert result.injected >= 5
    assert result.is_fully_delivered


@pytest.mark.parametrize("fault", [name for name in list_plugins(GROUP) if get_trait(load_fault(name), "of_machine")])
def test_a_fault_of_the_machine_arrives_at_each_of_its_files_and_commands(fault: str) -> None:
    call, targets = get_fault_seams(fault)["machine"]
    cell = DeliveryCell(fault, "machine", 1.0, 2 * len(targets))
    assert (result := delivery.count_deliveries(cell)).is_fully_delivered
    assert result.injected >= cell.calls
    trial = call(cell, inject(fault, targets))
    assert {event.target for _, event in trial.history.find_events(FaultWitnessed)} == set(targets)


def test_a_fault_of_tools_is_not_tried_at_the_machine() -> None:
    assert {cell.seam for cell in delivery.plan_delivery_cells(["latency"])} == set(SEAMS)


@pytest.mark.parametrize("fault", [name for name in list_plugins(GROUP) if get_trait(load_fault(name), "of_tools")])
def test_a_fault_of_tools_is_refused_at_a_model(fault: str) -> None:
    refusal = delivery.count_deliveries(DeliveryCell(fault, "model", 1.0, 3)).refusal
    subject, hint = {"call": ("arguments", "missing_arguments")}.get(
        get_trait(load_fault(fault), "corrupts"), ("answers", "confabulation or garbled_answer")
    )
    assert refusal == f"{fault} works on the {subject} of tools, and api.openai.com is a model: inject {hint}"


def test_a_seam_at_which_a_fault_only_hits_and_never_acts_is_wrong() -> None:
    idle = DeliveryCounts(DeliveryCell("latency", "service", 1.0, 9), eligible=9, scheduled=9)
    met = DeliveryCounts(DeliveryCell("latency", "function", 1.0, 9), eligible=9, scheduled=9, injected=9, witnessed=9)
    text, well = fault_check.render_check_summary([met, idle])
    assert "WRONG: latency was never injected at a service" in text
    assert not well


def test_every_fault_has_a_seam_but_those_that_exist_in_one_place_alone() -> None:
    cells = [cell for cell in delivery.plan_delivery_cells() if cell.chance == 1.0]
    refusals = {cell: delivery.find_refusal_reason(cell) for cell in cells}
    nowhere = {cell.fault for cell in cells} - {cell.fault for cell, refusal in refusals.items() if not refusal}
    assert nowhere == {"container_out_of_memory", "container_partitioned", "container_throttled", "stdout_noise"}
    refused = [DeliveryCounts(cell, refusal=refusals[cell]) for cell in cells if cell.fault in nowhere]
    assert "WRONG: container_throttled has no seam" in fault_check.render_check_summary(refused)[0]
    met = DeliveryCounts(DeliveryCell("latency", "function", 1.0, 9), eligible=9, scheduled=9, injected=9, witnessed=9)
    text, well = fault_check.render_check_summary([met, *refused])
    assert "not tried: container_out_of_memory, container_partitioned, container_throttled; each is done by" in (
        " ".join(text.split())
    )
    assert "not tried: stdout_noise; it stands between the lines of" in " ".join(text.split())
    assert well


def test_the_check_says_whose_rates_are_no_chances(typed: Typed) -> None:
    said_of = " ".join(said(typed, "check", "refused", "service_down", "--calls", "30", "--jobs", "1").split())
    assert said_of.endswith("no chances, since a fault decides when it acts: service_down")


def test_a_fault_that_is_named_twice_is_refused(typed: Typed) -> None:
    assert typed.refused("faults", "check", "stale", "cut", "stale") == "stale is named twice: name it once\n"


def test_the_check_fires_through_each_seam_and_all_arrive(typed: Typed) -> None:
    text = said(typed, "check", "refused", "cut", "--calls", "200", "--jobs", "1")
    rows = r"^(refused|cut) +(\w+) +[\d.]+ .* of .*|^(cut) +(function)  not there"
    assert re.findall(rows, text, flags=re.MULTILINE) == [
        ("refused", "function", "", ""), ("refused", "service", "", ""), ("refused", "model", "", ""),
        ("", "", "cut", "function"), ("cut", "service", "", ""), ("cut", "model", "", ""),
    ]  # fmt: skip
    plain = json.loads(said(typed, "check", "refused", "--calls", "30", "--jobs", "1", "--json"))
    assert (plain["delivered"], {cell["fault"] for cell in plain["cells"]}) == (True, {"refused"})
    met = r"^2 faults, 1,000 calls, (\d+) faults injected, \1 witnessed\nall rates are as"
    assert re.search(met, text, re.MULTILINE)


def test_a_fault_that_nobody_witnesses_fails_the_check(tmp_path: Path, typed: Typed) -> None:
    with installed(tmp_path, BLIND):
        text = said(typed, "check", "gremlin", "--calls", "30", "--jobs", "1", code=1)
    assert re.search(r"WRONG: gremlin at a function: (\d+) of \1 were not witnessed", text)


def test_a_fault_that_never_acts_fails_the_check(tmp_path: Path, typed: Typed) -> None:
    with installed(tmp_path, LAZY):
        text = said(typed, "check", "gremlin", "--calls", "30", "--jobs", "1", code=1)
    assert "WRONG: gremlin was never injected at a function" in text


def test_a_rate_outside_of_its_exact_interval_is_wrong_and_more_cells_widen_it() -> None:
    """198 of 20,000 at a rate of 1, as one published injector delivers; and 260 of 1,000 at 0.2, a deviation of 4.7
    standard errors, which among a million cells is nothing."""
    cell = DeliveryCell("latency", "function", 1.0, 20_000)
    found = DeliveryCounts(cell, eligible=20_000, scheduled=198, injected=198, witnessed=198)
    assert fault_check.describe_delivery_problem(found, 1_000_000).endswith("excludes 1")
    found = DeliveryCounts(replace(cell, chance=0.2), eligible=1000, scheduled=260, injected=260, witnessed=260)
    assert fault_check.describe_delivery_problem(found, 1) == "the rate 0.260 [0.216, 0.308] excludes 0.2"
    assert fault_check.describe_delivery_problem(found, 1_000_000) == ""


def test_a_cell_without_a_call_proves_nothing() -> None:
    assert (
        fault_check.describe_delivery_problem(DeliveryCounts(DeliveryCell("latency", "function", 0.2, 9)), 1)
        == "no call reached it"
    )
