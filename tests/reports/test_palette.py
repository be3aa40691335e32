"""One colour, one meaning: also for those who see fewer colours, and for a plug-in's fault."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.lines import Line2D

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base import registry
from chaoslab.reports.charts import _palette as palette
from chaoslab.reports.charts._marks import UNFILLED
from chaoslab.reports.charts._palette import (
    FAULTS,
    LONE,
    OUTCOMES,
    SERIES,
    STRANGERS,
    Look,
    choose_fault_looks,
    get_series_style,
)

FAMILIES = {
    "outcomes": [look.color for look in OUTCOMES.values()],
    "faults": [*(look.color for look in FAULTS.values()), LONE.color, *sorted({look.color for look in STRANGERS})],
    "series": list(SERIES),
    "neutral": [palette.INK, palette.SLATE, palette.CLEAN, palette.CALLS, palette.PROMPTS, palette.LAB],
}
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopes": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopes": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
}  # fmt: skip
"""Machado, Oliveira and Fernandes 2009, for linear RGB."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(color: str, seen_by: str) -> np.ndarray:
    """CIE L*a*b* of a colour as these people see it."""
    rgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(SEEN_BY[seen_by] @ linear, 0, 1) / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one: str, other: str, seen_by: str = "everybody") -> float:
    return float(np.linalg.norm(lab(one, seen_by) - lab(other, seen_by)))


def test_every_outcome_has_a_look_and_each_look_of_a_fault_is_one_of_a_fault_that_exists() -> None:
    assert list(OUTCOMES) == [str(outcome) for outcome in Outcome]
    assert set(FAULTS) <= set(registry.list_plugins("faults"))


def test_shapes_that_are_lines_are_drawn_as_such() -> None:
    lines = [look.marker for look in (*FAULTS.values(), LONE) if look.marker not in Line2D.filled_markers]
    assert sorted(lines) == sorted(UNFILLED)


@pytest.mark.parametrize("seen_by", SEEN_BY)
@pytest.mark.parametrize("family", ["outcomes", "faults", "series"])
def test_within_a_family_colours_and_shapes_differ_for_everybody(family: str, seen_by: str) -> None:
    for one, other in combinations(FAMILIES[family], 2):
        assert apart(one, other, seen_by) > 12, (one, other)
    looks = {"outcomes": OUTCOMES.values(), "faults": [*FAULTS.values(), LONE]}.get(family, [])
    assert len({look.marker for look in looks}) == len(looks)


def test_no_two_families_share_a_colour() -> None:
    for family, other in combinations(FAMILIES, 2):
        for one in FAMILIES[family]:
            for two in FAMILIES[other]:
                assert apart(one, two) > (20 if "neutral" not in (family, other) else 9), (family, one, other, two)


def test_a_fault_looks_alike_in_every_run() -> None:
    alone = choose_fault_looks(["slow_disk"])["slow_disk"]
    assert alone in STRANGERS
    assert choose_fault_looks(["timeout", "slow_disk", "latency"]) == {
        "latency": FAULTS["latency"], "timeout": FAULTS["timeout"], "slow_disk": alone,
    }  # fmt: skip


def test_the_faults_of_plug_ins_differ_within_a_run() -> None:
    names = [f"fault_{n}" for n in range(len(STRANGERS))]
    assert len(set(choose_fault_looks(names).values())) == len(STRANGERS)
    assert len({look.color for look in choose_fault_looks(names[:4]).values()}) == 4
    assert set(choose_fault_looks([*names, "one_too_many"]).values()) == set(STRANGERS)


def test_series_beyond_the_colours_have_lines_of_their_own() -> None:
    drawn = [get_series_style(number) for number in range(3 * len(SERIES))]
    assert len({(look.color, line) for look, line in drawn}) == len(drawn)
    assert drawn[0] == (Look(SERIES[0], "o"), "-")
