"""The faults of meaning at the lab's own agent: its seven tools answer by HTTP, its model is at least not harmed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from chaoslab.base.registry import list_family_plugins
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.lab._virtual_lab import LabResult
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TOOLS = ("search", "weather", "movies", "calendar", "calculator", "messaging", "translator")
SETTINGS = {"TOXIC_PROB": "0", "MODEL_TOXIC_PROB": "0", "ERROR_PROB": "0", "HALLUCINATION_PROB": "0", "TRIALS": "7"}
NEW = sorted({*list_family_plugins("faults", "meaning")} - {"wrong_value", "tool_list"})
"""Without the fault of lists of tools, which none of the services has."""


def done(faults: Iterable[str], *targets: str) -> list[LabResult]:
    injections = tuple(Injection(fault, (Choice(fault),), targets, chance=1.0) for fault in faults)
    return lab_runs.done(replace(lab_runs.spec(SETTINGS), plan=Plan(7, injections), twins=False))


def counted(found: list[LabResult]) -> Counter[str]:
    events = [kept.fields for one in found for kept in one.buffered_events]
    return Counter(event["kind"] for event in events if event["kind"] in ("fault_injected", "fault_witnessed"))


@pytest.mark.parametrize("fault", NEW)
def test_each_is_met_at_its_tools(fault: str) -> None:
    found = counted(done([fault], *TOOLS))
    if fault != "stale":  # only one that asks twice can be told the same again
        assert found["fault_injected"] > 0
    assert found["fault_witnessed"] == found["fault_injected"]


def test_its_model_answers_as_ever() -> None:
    found = done(NEW, "model")
    scheduled = {
        kept.fields["fault"]
        for one in found
        for kept in one.buffered_events
        if kept.fields["kind"] == "fault_scheduled"
    }
    assert scheduled == {*NEW}
    assert counted(found) == Counter()


def test_a_request_that_a_fault_has_cut_is_sent_cut_where_the_wire_is_clean() -> None:
    def replies(*injections: Injection) -> list[str]:
        found = lab_runs.done(replace(lab_runs.spec(SETTINGS), plan=Plan(7, injections), twins=False))
        calls = [kept.fields for one in found for kept in one.buffered_events if kept.fields["kind"] == "call_finished"]
        assert {call["via"] for call in calls} == {"proxy"}
        return [call["reply"] for call in calls if call["target"] == "model"]

    cut = Injection("cut", (Choice("garble_input", 1.0, {"kind": "cut"}),), ("model",), chance=1.0)
    assert replies(cut) != replies()
