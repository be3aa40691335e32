"""The next experiments: posteriors, safe doses, likeness, risk, proposals, and what fills an experiment in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chaoslab.base.registry import BrokenPlugin
from chaoslab.search.planning._risk import risk_of
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.design import Design, enhance, number
from chaoslab.search.planning.dose import MOST_S, DoseRange, range_of
from chaoslab.search.planning.evidence import HARM, Evidence, Experiment, TargetKnowledge
from chaoslab.search.planning.posterior import Posteriors, brier, predicted
from chaoslab.search.planning.proposals import propose
from chaoslab.search.planning.similar import likeness, similar
from tests.plugin_parts import installed

LIMIT, LOST, CRM = (Cell("search", "rate_limit"), Cell("pay", "lost_reply"), Cell("crm", "rate_limit"))
TARGETS = {
    ("shop", "pay"): TargetKnowledge(10, 10, 10, 0),
    ("shop", "search"): TargetKnowledge(10, 10),
    ("shop", "crm"): TargetKnowledge(10, 5),
}


def tried(cell: Cell, count: int, bad: int = 0, harm: int = 0, *, subject: str = "shop", **more: Any) -> Experiment:
    outcomes = {"correct": count - bad, "harm": harm, "failed": bad - harm}
    return Experiment(subject, cell, count, bad, bad, bad, harm, harm, outcomes=outcomes, **more)


def of(*rows: Experiment, targets: Mapping[tuple[str, str], TargetKnowledge] = TARGETS) -> Evidence:
    return Evidence(rows, targets)


# Posteriors.


def test_what_was_never_tried_has_the_widest_posterior_and_learns_from_its_siblings() -> None:
    none = Posteriors(of(), "shop").of(LIMIT)
    sibling = Posteriors(of(tried(CRM, 20, 16)), "shop").of(LIMIT)
    own = Posteriors(of(tried(LIMIT, 20, 16)), "shop").of(LIMIT)
    assert sibling.mean > none.mean + 0.2
    assert own.deviation < sibling.deviation
    assert own.mean == pytest.approx(0.8, abs=0.03)
    assert own.gain < none.gain / 50


def test_other_subjects_tell_of_a_fault_at_targets_of_the_same_sort() -> None:
    targets = {**TARGETS, ("bank", "send"): TargetKnowledge(9, 9, 9), ("bank", "rate"): TargetKnowledge(9, 9)}
    rows = [tried(Cell("send", "lost_reply"), 10, 10, 10, subject="bank"),
            tried(Cell("rate", "lost_reply"), 10, subject="bank")]  # fmt: skip
    found = Posteriors(of(*rows, targets=targets), "shop")
    assert found.of(LOST, HARM).mean > 0.8
    assert found.of(Cell("search", "lost_reply"), HARM).mean < 0.1


def test_a_prediction_is_the_dirichlet_mean_and_says_when_the_data_are_too_few() -> None:
    few = predicted(of(tried(LIMIT, 3, 3)), "shop", [LIMIT])
    assert not few.enough
    assert str(few) == "too little data: 3 judged trials, and 8 are needed"
    found = predicted(of(tried(LIMIT, 10, 5)), "shop", [LIMIT])
    assert found.chances == {"correct": 0.5, "failed": 0.5}
    both = predicted(of(tried(LIMIT, 10, 5), tried(LOST, 10, 2, 2)), "shop", [LIMIT, LOST])
    assert both.chances["correct"] == pytest.approx(0.4)
    assert sum(both.chances.values()) == pytest.approx(1)
    assert brier(found, ["correct", "failed"]) == pytest.approx(0.5)
    assert brier(found, []) is None


# Doses.


def test_a_safe_dose_is_found_by_bisection() -> None:
    seen: dict[float, list[float]] = {0.5: [1, 0]}
    while (dose := range_of(seen).next) is not None:
        seen[dose] = [1, float(dose > 7.3)]
    assert len(seen) <= 12
    assert range_of(seen).edge == pytest.approx(7.3, rel=0.15)


@pytest.mark.parametrize(
    ("found", "then"),
    [
        (DoseRange(0.0, 1.0), 0.1), (DoseRange(2.0, 2.0), None), (DoseRange(None, 0.0), None),
        (DoseRange(0.0, 0.0), None),
        (DoseRange(0.0, None), 3.0), (DoseRange(MOST_S, None), None), (DoseRange(None, 1e-9), None),
        (DoseRange(1e9, None), None),
        (DoseRange(899.0, None), MOST_S), (DoseRange(None, 0.011), 0.01),
    ],
)  # fmt: skip
def test_a_range_of_no_width_or_without_a_safe_minimum_is_one_like_others(found: DoseRange, then: float | None) -> None:
    assert found.next == then
    assert str(found)


def test_a_dose_is_safe_below_the_smallest_unsafe_one_alone() -> None:
    assert range_of({1.0: [4, 0], 2.0: [4, 1], 3.0: [1, 0]}) == DoseRange(1.0, 2.0, 4, 4, mixed=True)
    assert range_of({}) == DoseRange()


# Likeness.


def test_likeness_is_gower_s() -> None:
    late = Cell("search", "delay", dose=1.0)
    one, same = (tried(late, 1, affected={"pay": (1, 1)}) for _ in range(2))
    assert likeness(one, same) == 1
    later = tried(Cell("search", "delay", dose=4.0), 1, affected={"pay": (0, 1)})
    assert likeness(one, later) == pytest.approx((1 + 2 + 1 + 0.8 + 0) / 6)
    found = similar(one, [one, tried(LOST, 1), later, same], 2)
    assert [each for _, each in found] == [same, later]
    assert similar(one, [same], 0) == []


# Risk.


def test_the_risk_is_within_0_and_1_whatever_the_counts() -> None:
    for bad, harm in ((0, 0), (10**9, 10**9)):
        for share in (0.0, 0.1, 1.0, 7.0):
            found = risk_of(Posteriors(of(tried(LOST, 10**9, bad, harm, near=5)), "shop"), LOST, share=share)
            assert 0 <= found.value <= 1


def test_the_risk_grows_with_each_factor() -> None:
    known = Posteriors(of(tried(LOST, 10, 5, 2)), "shop")
    risk = risk_of(known, LOST).value
    assert (
        risk_of(known, LOST, stated={"pay": 0.0}).value < risk < risk_of(known, LOST, stated={"pay": 1.0}).value + 0.01
    )
    assert risk_of(known, LOST, share=0.1).value == pytest.approx(risk / 10)
    undone = {**TARGETS, ("shop", "pay"): TargetKnowledge(10, 10, 10, 10)}
    assert risk_of(Posteriors(of(tried(LOST, 10, 5, 2), targets=undone), "shop"), LOST).value < risk
    assert risk_of(Posteriors(of(tried(LOST, 10, 5, 2, near=5)), "shop"), LOST).value > risk


# Proposals.


def test_a_plan_says_why_and_is_the_same_for_the_same_seed() -> None:
    evidence = of(tried(CRM, 20, 4), tried(LOST, 30, 30, 30))
    found = propose(evidence, "shop", [LIMIT, LOST, CRM], seed=4)
    assert found == propose(evidence, "shop", [LIMIT, LOST, CRM], seed=4)
    why = {each.cell: each.reason for each in found.proposals}
    assert why[LIMIT] == "never tried: rate_limit at search; its sibling crm broke 4 of 20"
    assert why[CRM].startswith("tried 20 times: it broke 4, which leaves 2")
    assert found.proposals[0].cell == LIMIT


def test_what_is_dangerous_is_left_out_by_the_risk_allowed_alone() -> None:
    evidence = of(tried(LOST, 30, 30, 30), tried(LIMIT, 30))
    found = propose(evidence, "shop", [LOST, LIMIT], risk=0.3)
    assert [each.cell for each in found.proposals] == [LIMIT]
    assert [cell for cell, _ in found.too_risky] == [LOST]
    assert len(propose(evidence, "shop", [LOST, LIMIT]).proposals) == 2


def test_a_dose_is_proposed_between_what_is_safe_and_what_is_not() -> None:
    late = [Cell("search", "delay", dose=dose) for dose in (0.5, 8.0)]
    (one,) = propose(of(tried(late[0], 1), tried(late[1], 1, 1)), "shop", late[:1]).proposals
    assert one.cell.dose == 2.0
    assert "the edge is at 0.50–8.00 s" in one.reason
    known = of(tried(late[0], 1), tried(Cell("search", "delay", dose=0.6), 1, 1))
    assert propose(known, "shop", late[:1]).proposals == []


# What fills an experiment in.


def test_an_experiment_is_filled_in_and_never_changed() -> None:
    late = [Cell("search", "delay", dose=dose) for dose in (0.5, 8.0)]
    more: dict[str, Any] = {"timed": 4, "seconds": 8.0, "squares": 16.0, "affected": {"pay": (3, 4)}}
    evidence = of(tried(late[0], 4, **more), tried(late[1], 4, 4))
    given = {"target": "search", "fault": "delay", "params": {}}
    found = enhance(given, evidence, "shop")
    assert given == {"target": "search", "fault": "delay", "params": {}}
    assert found.design.params == {"mean_s": 2.0}
    assert found.design.how == "once"
    assert found.design.deadline_s == 4.0  # the dose is 2 s, and past trials took 2 s
    assert found.design.watch == ("calls of search", "calls of pay")
    assert found.design.stop == ("harm > 0",)
    assert all(each.evidence for each in found.changes)
    assert {each.what for each in found.changes} == {"params.mean_s", "how", "deadline_s", "watch", "stop"}
    survived = enhance(CRM, of(tried(CRM, 3)), "shop")
    assert survived.design.how == "once"  # a cell states its kind
    assert enhance({"target": "crm", "fault": "rate_limit"}, of(tried(CRM, 3)), "shop").design.how == "always"
    again = enhance(found.design, evidence, "shop")
    assert (again.changes, again.design) == ([], found.design)
    stated = enhance({**given, "params": {"mean_s": "200ms"}, "how": "once"}, evidence, "shop").design
    assert (stated.params, stated.how) == ({"mean_s": 0.2}, "once")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("for_s", "5m", 300), ("delay_s", "0.2s", 0.2), ("share", "10%", 0.1), ("x_s", "3", 3), ("stream", "up", "up")],
)
def test_units_are_read(name: str, text: str, value: Any) -> None:
    assert number(name, text) == value


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "a", "fault": "delay", "params": {"mean_s": "5 parsecs"}},
         "params.mean_s is '5 parsecs': it should be a duration, as in 90s, 5min or 2h"),
        ({"target": "a", "fault": "delay", "limits": {"share": "110%"}},
         "share of limits is '110%': it should be a share above 0 up to 1, as in 0.1 or 10%"),
        ({"target": "a", "fault": "delay", "limits": {"at_most": 1}}, "limits has no key 'at_most'"),
        ({"target": "a", "fault": "delai"}, "did you mean 'delay'?"),
        ({"target": "a", "fault": "delay", "how": "twice"}, "no experiment is called 'twice': known are always, once"),
        ({"target": "a", "fault": "delay", "dose": 1}, "an experiment has no 'dose'"),
        ({"fault": "delay"}, "an experiment needs its target, as a name"),
        ({"target": "a", "fault": "delay", "params": {"mean": 1}}, "delay has no parameter 'mean': did you mean"),
        ({"target": "a", "fault": "delay", "params": 5}, "params is 5: it should be names with values"),
    ],
)  # fmt: skip
def test_an_experiment_that_cannot_be_is_one_line(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises((ValueError, LookupError)) as error:
        Design.of(given)
    assert said in error.value.args[0]
    assert "\n" not in error.value.args[0]


# Plug-ins.

OWN = {
    "knowledge": "def prior(self, fault, **about): return (0.9, 100.0) if fault == 'rate_limit' else None",
    "risk_factors": "weight, base = 3.0, 0.0\n    def value(self, asked): return 5.0",
    "enhancements": "def of(self, design, known): yield 'stop', ('ours > 1',), 'we say so'",
}


@pytest.mark.parametrize("group", OWN)
def test_an_installed_package_has_its_say(group: str, tmp_path: Path) -> None:
    before = Posteriors(of(), "shop")
    with installed(tmp_path, f"class Sock:\n    {OWN[group]}", group=f"search.planning.{group}"):
        known = Posteriors(of(), "shop")
        if group == "knowledge":
            assert known.of(LIMIT).mean == pytest.approx(0.9, abs=0.01)
        elif group == "risk_factors":
            assert risk_of(known, LIMIT).factors["gremlin"] == 1.0
            assert risk_of(known, LIMIT).value > risk_of(before, LIMIT).value
        else:
            assert enhance(LIMIT, of(), "shop").design.stop == ("ours > 1",)


def test_what_a_plug_in_raises_is_one_line_that_names_its_package(tmp_path: Path) -> None:
    source = "class Sock:\n    weight, base = 1, 0\n    def value(self, asked): 1 / 0"
    with (
        installed(tmp_path, source, group="search.planning.risk_factors"),
        pytest.raises(
            BrokenPlugin, match=r"^the risk_factor 'gremlin' of the package gremlins 1.0 cannot be used: Zero"
        ),
    ):
        risk_of(Posteriors(of(), "shop"), LIMIT)
