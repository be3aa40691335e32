"""Faults that a container's engine does: what witnesses them, and where they are refused."""

import pytest

import chaoslab as lab
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.exchange import Observation
from chaoslab.core.fault import Fault, get_trait, load_fault
from chaoslab.core.inject import check_injections
from chaoslab.faults.process.container_out_of_memory import ContainerOutOfMemory
from chaoslab.faults.process.container_partitioned import ContainerPartitioned
from chaoslab.faults.process.container_restarted import ContainerRestarted
from chaoslab.faults.process.container_throttled import ContainerThrottled
from tests.faults.fault_parts import Target, meet, saw

ENGINES = ("container_partitioned", "container_throttled", "container_out_of_memory")


@pytest.mark.parametrize("name", ENGINES)
def test_a_world_without_an_engine_refuses_it_in_a_line(name: str) -> None:
    for world in ("local", "virtual"):
        with pytest.raises(SettingError, match=f"FAULTS names {name}, which is done by a container's engine: use "):
            plan_from_settings(Settings(faults=((f"{name}@weather", 0.1),), world=world))
    assert plan_from_settings(Settings(faults=((f"{name}@weather", 0.1),), world="compose")).outage_targets == (
        "weather",
    )
    with pytest.raises(ValueError, match=f"^{name} is done by a container's engine"):
        check_injections([lab.inject(name, "weather")], ["weather"])


def test_a_restart_has_a_counterpart_in_every_world() -> None:
    assert not get_trait(load_fault("container_restarted"), "of_container")
    for world in ("local", "compose"):
        plan = plan_from_settings(Settings(faults=(("container_restarted@weather", 1.0),), world=world))
        assert [each.name for each in plan.injections if each.of_process] == ["container_restarted@weather"]
    assert ContainerRestarted().outage().how == "killed"


@pytest.mark.parametrize(
    ("fault", "how", "share", "error", "took_s"),
    [
        (ContainerOutOfMemory(3.0), "out of memory", 1.0, "reset", 0.0),
        (ContainerPartitioned(3.0), "partitioned", 1.0, "closed", 0.0),
        (ContainerThrottled(0.05, 3.0), "throttled", 0.05, None, 0.1),
    ],
    ids=str,
)
def test_the_engine_does_it_for_so_long(fault: Fault, how: str, share: float, error: str | None, took_s: float) -> None:
    outage = fault.outage()
    assert outage is not None
    assert (outage.how, outage.for_s, outage.share) == (how, 3.0, share)
    assert outage.held is None or (rest := outage.held(1.5).outage()) is None or rest.for_s == 1.5
    met = meet(fault, target := Target())
    assert (met.error, target.now_s) == (error, took_s)


@pytest.mark.parametrize(
    ("fault", "seen", "evidence"),
    [
        (ContainerPartitioned(), saw(error="closed", after_s=0.2), "no answer (closed) after 0.200 s"),
        (ContainerPartitioned(), saw(error="refused", after_s=0.2), "no answer (refused) after 0.200 s"),
        (ContainerPartitioned(), saw(after_s=0.2), None),
        (ContainerThrottled(share=0.05), saw(after_s=0.3), "took 0.300 s at 5 % of a CPU"),
        (ContainerThrottled(), saw(error="timed_out", after_s=2.0), "no answer within 2.000 s"),
        (ContainerThrottled(), saw(after_s=0.05), None),
        (ContainerOutOfMemory(), saw(error="closed", after_s=0.1),
         "connection closed without an answer, nothing was done"),
        (ContainerOutOfMemory(), saw(after_s=0.1), None),
    ],
    ids=str,
)  # fmt: skip
def test_the_caller_is_the_witness(
    fault: ContainerPartitioned | ContainerThrottled | ContainerOutOfMemory, seen: Observation, evidence: str | None
) -> None:
    assert fault.witnessed(seen) == evidence
