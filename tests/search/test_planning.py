"""The next experiments: chances, predictions, doses, risk, proposals, and what fills an experiment in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chaoslab.search.planning._risk import compute_risk
from chaoslab.search.planning.cells import ALWAYS, Cell
from chaoslab.search.planning.chances import FEWEST, Chances, brier_score
from chaoslab.search.planning.design import Design, fill_missing_fields, parse_field_value
from chaoslab.search.planning.dose import MOST_S, DoseRange, compute_dose_range
from chaoslab.search.planning.evidence import HARM, Evidence, Experiment, TargetKnowledge
from chaoslab.search.planning.proposals import propose_experiments
from chaoslab.search.planning.seen import classify_what_caller_sees
from tests.plugin_parts import installed

LIMIT, LOST, CRM = (Cell("search", "rate_limit"), Cell("pay", "lost_reply"), Cell("crm", "rate_limit"))
TARGETS = {"pay": TargetKnowledge(10, 10, 10, 0), "search": TargetKnowledge(10, 10), "crm": TargetKnowledge(10, 5)}


def tried(cell: Cell, count: int, bad: int = 0, harm: int = 0, **more: Any) -> Experiment:
    return Experiment("shop", cell, count, bad, harm, **more)


def of(*rows: Experiment, targets: Mapping[str, TargetKnowledge] = TARGETS, **more: Any) -> Evidence:
    return Evidence("shop", rows, targets, **more)


# Chances.


@pytest.mark.parametrize(
    ("cell", "what", "doubt"),
    [
        (Cell("pay", "lost_reply"), "an error", True), (Cell("pay", "timeout_before_effect"), "an error", False),
        (Cell("pay", "timeout", params=(("stream", "downstream"),)), "an error", True),
        (Cell("pay", "malformed_json"), "nothing usable", True), (Cell("pay", "redelivery"), "a duplicate", True),
        (Cell("pay", "latency", dose=0.5), "a late answer", False),
        (Cell("pay", "latency", dose=90.0), "an error", True),
        (Cell("pay", "wrong_value"), "a wrong value", False), (Cell("pay", "no_such_fault"), "an error", False),
        (Cell("pay", "user_stops", params=(("moment", "after"),)), "an altered answer", False),
    ],
)  # fmt: skip
def test_the_caller_s_sight_is_told_by_the_fault_s_story(cell: Cell, what: str, doubt: bool) -> None:
    found = classify_what_caller_sees(cell, changes=True)
    assert (found.what, found.doubt) == (what, doubt)
    assert not classify_what_caller_sees(cell, changes=False).doubt


def test_a_plug_in_s_fault_that_raises_is_an_error(tmp_path: Path) -> None:
    raising = "@dataclass(frozen=True)\nclass Sock(Fault):\n    '''It raises.'''\n    layer = 'tool'\n"
    with installed(
        tmp_path, f"{raising}    def flow(self, call, context):\n        yield call\n        raise KeyError"
    ):
        found = classify_what_caller_sees(Cell("pay", "gremlin"), changes=True)
    assert (found.what, found.doubt) == ("an error", True)


def test_a_chance_pools_by_target_then_by_what_the_caller_sees_then_by_fault() -> None:
    none = Chances(of()).compute_bad_end_chance(LIMIT)
    assert Chances(of(tried(CRM, 20, 16))).compute_bad_end_chance(LIMIT) > none  # the same fault elsewhere
    there = [tried(Cell("search", "auth_error"), 10, 10), tried(Cell("search", "wrong_value"), 10)]
    known = Chances(of(*there, tried(CRM, 20)))
    assert (
        known.compute_bad_end_chance(Cell("search", "not_found"))
        > known.compute_bad_end_chance(Cell("search", "stale")) + 0.2
    )
    assert (
        known.compute_bad_end_chance(Cell("search", "not_found"))
        > known.compute_bad_end_chance(Cell("crm", "not_found")) + 0.2
    )
    assert Chances(of(tried(LIMIT, 40, 40))).compute_bad_end_chance(LIMIT) > 0.95


def test_stated_parameters_fall_back_on_the_target_s_trials() -> None:
    known = Chances(of(tried(Cell("search", "delay", dose=0.5), 10, 10), tried(CRM, 10)))
    assert known.compute_bad_end_chance(Cell("search", "delay", dose=3.0)) > 0.7


def test_trials_of_the_last_revision_count_and_those_before_it_do_not() -> None:
    rows = [tried(LIMIT, 120, 108, revision="old"), tried(LIMIT, 40, revision="new")]
    found = Chances(of(*rows))
    assert found.compute_bad_end_chance(LIMIT) < 0.05
    assert found.predict([LIMIT]).trials == 40
    assert Chances(of(*rows, revision="old")).compute_bad_end_chance(LIMIT) > 0.85
    assert Chances(of(*rows, revision="newest")).predict([LIMIT]).why.startswith("too little data: 0 trials")


# Predictions.

ERRORS = ("auth_error", "not_found", "rate_limit", "server_error", "refused", "exception")


def test_a_prediction_stands_beside_its_base_rate() -> None:
    found = Chances(of(tried(LIMIT, 10, 5), tried(LOST, 10, 0))).predict([LIMIT])
    assert str(found).startswith("a bad end 4") or str(found).startswith("a bad end 5")
    assert str(found).endswith("(base rate 26% of 20 trials)")
    both = Chances(of(tried(LIMIT, 100, 50), tried(LOST, 100, 50))).predict([LIMIT, LOST])
    assert both.bad == pytest.approx(0.75, abs=0.01)
    assert brier_score(0.5, True) == brier_score(0.5, False) == 0.25


def test_of_too_few_trials_nothing_is_said() -> None:
    found = Chances(of(tried(LIMIT, FEWEST - 1, 3))).predict([LIMIT])
    assert str(found) == "too little data: 7 trials with one fault alone at this revision, and 8 are needed"
    calm = of(Experiment("shop", None, FEWEST, 4))
    assert str(Chances(calm).predict([])) == "a bad end 50% (base rate 50% of 8 trials)"


def test_an_untried_cell_is_foretold_only_where_the_known_ones_foretell_each_other() -> None:
    told = [tried(Cell(target, fault), 1, int(target == "search")) for target in ("search", "crm") for fault in ERRORS]
    told += [
        tried(Cell("search", fault), 1) for fault in ("wrong_value", "stale", "delay", "contradiction", "oversized")
    ]
    found = Chances(of(*told)).predict([Cell("search", "tls_failure")])
    assert not found.why
    assert found.bad > 0.7 > found.base
    by_turns = [tried(Cell(target, fault), 1, (n + m) % 2) for m, target in enumerate(("search", "crm"))
                for n, fault in enumerate(ERRORS)]  # fmt: skip
    silent = Chances(of(*by_turns)).predict([Cell("search", "tls_failure")])
    assert silent.why.startswith("nothing is foretold: 6 of 12 trials ended badly")
    assert (
        not Chances(of(*by_turns, tried(Cell("search", "tls_failure"), FEWEST)))
        .predict([Cell("search", "tls_failure")])
        .why
    )  # of trials of its own something is said


# Doses.


def test_a_safe_dose_is_found_by_bisection() -> None:
    seen: dict[float, list[float]] = {0.5: [1, 0]}
    while (dose := compute_dose_range(seen).next_dose) is not None:
        seen[dose] = [1, float(dose > 7.3)]
    assert len(seen) <= 12
    assert compute_dose_range(seen).estimated_edge == pytest.approx(7.3, rel=0.15)


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
    assert found.next_dose == then
    assert str(found)


def test_a_dose_is_safe_below_the_smallest_unsafe_one_alone() -> None:
    assert compute_dose_range({1.0: [4, 0], 2.0: [4, 1], 3.0: [1, 0]}) == DoseRange(1.0, 2.0, 4, 4, mixed=True)
    assert compute_dose_range({}) == DoseRange()


# Risk.


def test_the_risk_is_within_0_and_1_whatever_the_counts() -> None:
    for bad, harm in ((0, 0), (10**9, 10**9)):
        for share in (0.0, 0.1, 1.0):
            found = compute_risk(Chances(of(tried(LOST, 10**9, bad, harm, near=5))), LOST, share=share)
            assert 0 <= found.value <= 1


def test_the_risk_grows_with_each_factor() -> None:
    known = Chances(of(tried(LOST, 10, 5, 2)))
    risk = compute_risk(known, LOST).value
    assert compute_risk(known, LOST, stated={"pay": 0.0}).value < risk
    assert compute_risk(known, LIMIT).value < compute_risk(known, LIMIT, stated={"search": 1.0}).value
    assert compute_risk(known, LOST, share=0.1).value == pytest.approx(risk / 10)
    undone = {**TARGETS, "pay": TargetKnowledge(10, 10, 10, 10)}
    assert compute_risk(Chances(of(tried(LOST, 10, 5, 2), targets=undone)), LOST).value < risk
    assert compute_risk(Chances(of(tried(LOST, 10, 5, 2, near=5))), LOST).value > risk
    assert Chances(of(tried(LOST, 10, 5, 2))).compute_bad_end_chance(LOST, HARM) < Chances(
        of(tried(LOST, 10, 5, 4))
    ).compute_bad_end_chance(LOST, HARM)


def test_before_anything_was_tried_a_read_is_riskiest_where_it_is_wrong_and_an_effect_where_it_is_doubtful() -> None:
    def order(target: str, *faults: str) -> list[str]:
        cells = [Cell.build(target, fault, {"delay_s": 1.0} if fault == "latency" else {}, "once") for fault in faults]
        return [cell.fault for cell in sorted(cells, key=lambda cell: -compute_risk(Chances(of()), cell).value)]

    assert order("search", "latency", "server_error", "wrong_value") == ["wrong_value", "server_error", "latency"]
    assert order("pay", "latency", "wrong_value", "lost_reply") == ["lost_reply", "wrong_value", "latency"]


# Proposals.

SPACE = [
    Cell(target, fault, how)
    for target in ("search", "crm", "pay") for fault in (*ERRORS, "lost_reply", "redelivery", "wrong_value")
    for how in ("once", ALWAYS)
]  # fmt: skip


def test_what_cannot_be_undone_comes_first_and_each_fault_at_a_target_once() -> None:
    found = [each.cell for each in propose_experiments(of(), SPACE, n=len(SPACE)).proposals]
    assert {(each.target, each.fault) for each in found[:2]} & {("pay", "lost_reply"), ("pay", "redelivery")}
    first = found[: len(SPACE) // 2]
    assert len({(each.target, each.fault) for each in first}) == len(first)
    assert {each.how for each in first} == {"once"}


def test_a_plan_says_why_and_is_the_same_for_the_same_seed() -> None:
    evidence = of(tried(CRM, 20, 4), tried(LOST, 30, 30, 30))
    found = propose_experiments(evidence, [LIMIT, LOST, CRM], seed=4)
    assert found == propose_experiments(evidence, [LIMIT, LOST, CRM], seed=4)
    why = {each.cell: each.reason for each in found.proposals}
    assert why[LIMIT] == "never tried: rate_limit at search; at other targets it broke 4 of 20"
    assert why[CRM] == "tried 20 times: it broke 4"
    assert found.proposals[0].cell == LIMIT
    (one,) = propose_experiments(of(), [LOST]).proposals
    assert one.reason == "never tried: lost_reply at pay; it is done, and the caller sees an error"


def test_what_broke_before_the_last_change_comes_first() -> None:
    evidence = of(tried(LIMIT, 9, 9, revision="old"), tried(LOST, 1, revision="new"))
    first = propose_experiments(evidence, [*SPACE, LIMIT]).proposals[0]
    assert (first.cell, first.reason) == (LIMIT, "broke 9 of 9 at old, not tried since")


def test_what_taught_nothing_comes_last() -> None:
    found = propose_experiments(of(tried(LIMIT, 0, void=2)), [LIMIT, CRM])
    assert [each.cell for each in found.proposals] == [CRM, LIMIT]
    assert found.proposals[1].reason == "tried 2 times: the fault was not met, or nothing can be concluded"


def test_what_is_dangerous_is_left_out_by_the_risk_allowed_alone() -> None:
    evidence = of(tried(LOST, 30, 30, 30), tried(LIMIT, 30))
    found = propose_experiments(evidence, [LOST, LIMIT], risk=0.3)
    assert [each.cell for each in found.proposals] == [LIMIT]
    assert [cell for cell, _ in found.too_risky] == [LOST]
    assert len(propose_experiments(evidence, [LOST, LIMIT]).proposals) == 2


def test_a_dose_is_proposed_between_what_is_safe_and_what_is_not() -> None:
    late = [Cell("search", "delay", dose=dose) for dose in (0.5, 8.0)]
    (one,) = propose_experiments(of(tried(late[0], 1), tried(late[1], 1, 1)), late[:1]).proposals
    assert one.cell.dose == 2.0
    assert "the edge is at 0.50–8.00 s (n=1 and 1)" in one.reason
    known = of(tried(late[0], 1), tried(Cell("search", "delay", dose=0.6), 1, 1))
    assert propose_experiments(known, late[:1]).proposals == []


# What fills an experiment in.


def test_an_experiment_is_filled_in_and_never_changed() -> None:
    late = [Cell("search", "delay", dose=dose) for dose in (0.5, 8.0)]
    more: dict[str, Any] = {"timed": 4, "seconds": 8.0, "squares": 16.0, "affected": {"pay": (3, 0, 4)}}
    evidence = of(tried(late[0], 4, **more), tried(late[1], 4, 4))
    given = {"target": "search", "fault": "delay", "params": {}}
    found = fill_missing_fields(given, evidence)
    assert given == {"target": "search", "fault": "delay", "params": {}}
    assert found.design.params == {"mean_s": 2.0}
    assert found.design.how == "once"
    assert found.design.deadline_s == 4.0  # the dose is 2 s, and past trials took 2 s
    assert found.design.watch == ("calls of search", "calls of pay")
    assert found.design.stop == ("harm > 0",)
    assert all(each.evidence for each in found.changes)
    assert {each.what for each in found.changes} == {"params.mean_s", "how", "deadline_s", "watch", "stop"}
    survived = fill_missing_fields(CRM, of(tried(CRM, 3)))
    assert survived.design.how == "once"  # a cell states its kind
    assert fill_missing_fields({"target": "crm", "fault": "rate_limit"}, of(tried(CRM, 3))).design.how == "always"
    again = fill_missing_fields(found.design, evidence)
    assert (again.changes, again.design) == ([], found.design)
    stated = fill_missing_fields({**given, "params": {"mean_s": "200ms"}, "how": "once"}, evidence).design
    assert (stated.params, stated.how) == ({"mean_s": 0.2}, "once")
    assert fill_missing_fields({**given, "deadline_s": "5m"}, evidence).design.deadline_s == 300
    near = [Cell("search", "delay", dose=dose) for dose in (0.5, 0.56)]
    narrow = fill_missing_fields(given, of(tried(near[0], 4), tried(near[1], 4, 4)))
    assert narrow.design.params == {"mean_s": 0.529}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("for_s", "5m", 300), ("delay_s", "0.2s", 0.2), ("share", "10%", 0.1), ("x_s", "3", 3), ("stream", "up", "up")],
)
def test_units_are_read(name: str, text: str, value: Any) -> None:
    assert parse_field_value(name, text) == value


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "a", "fault": "delay", "params": {"mean_s": "5 parsecs"}},
         "params.mean_s is '5 parsecs': it should be a duration, as in 90s, 5min or 2h"),
        ({"target": "a", "fault": "delay", "limits": {"share": "110%"}},
         "share of limits is '110%': it should be a share above 0 up to 1, as in 0.1 or 10%"),
        ({"target": "a", "fault": "delay", "limits": {"at_most": 1}}, "limits has no key 'at_most'"),
        ({"target": "a", "fault": "delai"}, "did you mean 'delay'?"),
        ({"target": "a", "fault": "delay", "how": "twice"}, "is of the kind 'twice': known are always, once"),
        ({"target": "a", "fault": "delay", "dose": 1}, "an experiment has no 'dose'"),
        ({"fault": "delay"}, "an experiment needs its target, as a name"),
        ({"target": "a", "fault": "delay", "params": {"mean": 1}}, "delay has no parameter 'mean': did you mean"),
        ({"target": "a", "fault": "delay", "params": 5}, "params is 5: it should be names with values"),
    ],
)  # fmt: skip
def test_an_experiment_that_cannot_be_is_one_line(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises((ValueError, LookupError)) as error:
        Design.build_from_fields(given)
    assert said in error.value.args[0]
    assert "\n" not in error.value.args[0]
