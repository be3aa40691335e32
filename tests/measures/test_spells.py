"""The times over which a fault lasted, and their bands in the chart of latency."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from chaoslab.analysis.measures._spells import FaultSpell
from chaoslab.core.events import CallFinished, FaultWitnessed, RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.charts.network_latency import network_latency
from chaoslab.reports.frames import Frames
from tests.event_parts import call_at, fault_at


def run(*met: str, **triggers: Any) -> Frames:
    """One trial with a call a second, of half a second each, that met these faults; an injection per fault."""
    injections = [
        {"name": fault, "choices": [{"fault": fault}], "targets": ["shop"], "chance": 0.5, "triggers": triggers}
        for fault in sorted({fault for fault in met if fault})
    ]
    plan = {"seed": 1, "injections": injections}
    started = RunStarted(seed=1, settings={}, plan=plan, prompts=1, now="", model="")
    records = [Record("", 0.0, "r", None, "info", 1, started)]
    for number, fault in enumerate(met, 1):
        end = CallFinished(**call_at("shop", "buy", number, 1, ""), ok=not fault, duration_s=0.5)
        records.append(Record("", float(number), "r", "p1.r1", "info", len(records) + 1, end))
        if fault:
            seen = FaultWitnessed(**fault_at(fault, fault, "shop", number, 1, ""))
            records.append(Record("", float(number), "r", "p1.r1", "info", len(records) + 1, seen))
    return Frames(History(records))


def test_a_spell_is_as_long_as_the_attempts_on_end_that_met_the_fault() -> None:
    found = run(
        "", "tool_error", "tool_error", "tool_error", "", "tool_error", "", persistence="for_s 2"
    ).measures.spells.value
    assert found == [FaultSpell("p1.r1", "shop", "tool_error", 1.5, 4.0)]


@pytest.mark.parametrize(
    ("fault", "triggers", "lasts"),
    [
        ("tool_error", {}, False),
        ("tool_error", {"persistence": "once"}, False),
        ("tool_error", {"persistence": "burst 2"}, True),
        ("tool_error", {"persistence": "for_good"}, True),
        ("tool_error", {"window_s": [0, 9]}, True),
        ("service_down", {}, True),
    ],
)
def test_only_a_fault_that_is_meant_to_last_has_a_spell(fault: str, triggers: dict[str, Any], lasts: bool) -> None:
    assert bool(run(fault, fault, **triggers).measures.spells.value) is lasts


def test_a_spell_is_a_band_in_the_chart_and_its_legend() -> None:
    (axes,) = network_latency(run("", "tool_error", "tool_error", persistence="for_good")).axes
    (bands,) = [one for one in axes.collections if isinstance(one, PolyCollection)]
    assert bands.get_label() == "tool_error lasted (1)"
    (corners,) = [np.asarray(path.vertices) for path in bands.get_paths()]
    assert (corners[:, 0].min(), corners[:, 0].max()) == pytest.approx((1.5, 3.0))
    (axes,) = network_latency(run("", "tool_error", "tool_error")).axes
    assert not any(isinstance(one, PolyCollection) for one in axes.collections)
