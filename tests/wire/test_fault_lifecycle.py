"""The life of a wire fault is logged in one order, and Toxiproxy gets it in its own words and units."""

import pytest

from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call, Observation, Toxic
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.network.refused import Refused
from chaoslab.faults.network.reset_peer import ResetPeer
from chaoslab.faults.network.timeout import Timeout
from chaoslab.faults.tool.tool_error import ToolError
from chaoslab.wire import fault_lifecycle
from chaoslab.wire.proxies import ToxicInfo
from tests.event_parts import fault_at

CALL = Call("weather", "current_weather", "p1.r1", 3, 2, "id3")
PLACE = ("latency", "wire", "weather", 3, 2, "id3")
LATE = ActiveFault("wire", "latency", Latency(0.25, stream="upstream"))


@pytest.mark.parametrize(
    ("fault", "name", "kind", "stream", "attributes"),
    [
        (Latency(2.5, stream="upstream"), "latency_upstream", "latency", "upstream", {"latency": 2500}),
        (Latency(0.0006, stream="downstream"), "latency_downstream", "latency", "downstream", {"latency": 1}),
        (Timeout(1.5, "downstream"), "timeout_downstream", "timeout", "downstream", {"timeout": 1500}),
        (Timeout(0.0, "upstream"), "timeout_upstream", "timeout", "upstream", {"timeout": 0}),
        (ResetPeer(3.0, "upstream"), "reset_peer_upstream", "reset_peer", "upstream", {"timeout": 3000}),
    ],
)
def test_a_toxic_is_named_by_its_kind_and_its_way_and_its_seconds_are_milliseconds(
    fault: Fault, name: str, kind: str, stream: str, attributes: dict[str, int]
) -> None:
    (toxic,) = fault.toxics()
    assert fault_lifecycle.make_toxic_info(toxic) == ToxicInfo(name, kind, stream, 1.0, attributes)


def test_a_toxic_without_a_way_is_downstream_as_toxiproxys_own_default() -> None:
    assert fault_lifecycle.make_toxic_info(Toxic("noop", "")) == ToxicInfo("noop_", "noop", "downstream", 1.0, {})


def test_a_toxic_passes_on_the_attributes_that_it_does_not_translate() -> None:
    """A plug-in may name any toxic of Toxiproxy, also one that only another Toxiproxy knows."""
    told = fault_lifecycle.make_toxic_info
    assert told(Toxic("bandwidth", "upstream", {"rate": 8})).attributes == {"rate": 8}
    assert told(Toxic("glitch", "upstream", {"depth": 3})).attributes == {"depth": 3}


@pytest.mark.parametrize(
    ("kind", "params", "attributes"),
    [
        (
            "slicer", {"average_bytes": 64, "variation_bytes": 32, "pause_s": 0.5},
            {"average_size": 64, "size_variation": 32, "delay": 500_000},
        ),
        ("bandwidth", {"rate_kb_s": 8}, {"rate": 8}),
        ("slow_close", {"delay_s": 2.0}, {"delay": 2000}),
    ],
)  # fmt: skip
def test_each_toxic_has_units_of_its_own(kind: str, params: dict[str, float], attributes: dict[str, int]) -> None:
    assert fault_lifecycle.make_toxic_info(Toxic(kind, "upstream", params)).attributes == attributes


@pytest.mark.parametrize(
    ("fault", "refused"), [(Refused(), True), (Latency(stream="upstream"), False), (ToolError(), False)]
)
def test_only_a_refusal_needs_no_lane_of_its_own(fault: Fault, refused: bool) -> None:
    assert fault_lifecycle.has_refusing_fault([ActiveFault("wire", "any", fault)]) is refused


SLOW, NEVER = Observation(0.3, 1.0, status=200), Observation(0.0, 1.0, error="reset")


def test_a_fault_that_was_met_is_injected_witnessed_and_healed() -> None:
    (armed,) = fault_lifecycle.iterate_armed_events([LATE], CALL, lane="lane.7", took_s=0.01)
    assert armed == events.FaultArmed(**fault_at(*PLACE), lane="lane.7", took_s=0.01)
    injected, witnessed, healed = fault_lifecycle.iterate_healed_events([LATE], CALL, SLOW)
    assert injected == events.FaultInjected(**fault_at(*PLACE))
    evidence = "took 0.300 s, at least 0.250 s were armed"
    assert witnessed == events.FaultWitnessed(**fault_at(*PLACE), evidence=evidence)
    assert healed == events.FaultHealed(**fault_at(*PLACE), witnessed=True)


@pytest.mark.parametrize("seen", [None, NEVER], ids=["nothing is known", "it was not late"])
def test_a_fault_that_nobody_met_is_only_healed_and_says_so(seen: Observation | None) -> None:
    (healed,) = fault_lifecycle.iterate_healed_events([LATE], CALL, seen)
    assert healed == events.FaultHealed(**fault_at(*PLACE), witnessed=False)


def test_a_fault_whose_call_another_one_ended_is_masked_by_it() -> None:
    """The call was reset at once, so it could not be late. That says nothing against the lab."""
    reset = ActiveFault("reset", "reset_peer", ResetPeer(stream="downstream"))
    late, *others, by = fault_lifecycle.iterate_healed_events([LATE, reset], CALL, NEVER)
    assert late == events.FaultHealed(**fault_at(*PLACE), witnessed=False, masked_by="reset_peer")
    assert [event.kind for event in others] == ["fault_injected", "fault_witnessed"]
    assert isinstance(by, events.FaultHealed)
    assert (by.witnessed, by.masked_by) == (True, "")
    unhurt = list(fault_lifecycle.iterate_healed_events([LATE, reset], CALL, Observation(0.0, 1.0, status=200)))
    assert [event.masked_by for event in unhurt if isinstance(event, events.FaultHealed)] == ["", ""]


def test_toxics_of_one_lane_have_names_of_their_own() -> None:
    twice = [ActiveFault("a", "latency", Latency(0.1, stream="downstream")), LATE, LATE]
    assert [info.name for info in fault_lifecycle.build_lane_toxics(twice)] == [
        "latency_downstream", "latency_upstream", "latency_upstream_2"
    ]  # fmt: skip
