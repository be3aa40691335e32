"""The map of calls and faults, what was not tried, and failures that are alike."""

from dataclasses import replace

import pytest

from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.reports.explored import _NUMBER
from chaoslab.search import causes
from chaoslab.search.map import GOES_ON, Map, group_alike_failures
from chaoslab.search.roots import UNNOTICED
from chaoslab.search.variation import Root, SearchKnowledge, Site, TriedVariation, Variation
from tests.search.search_parts import ERROR, PROBES, RESET, A, B, C, at, tried

LATER = Site("a", 1, 2)


def known(*found: TriedVariation) -> SearchKnowledge:
    made = SearchKnowledge(tried(Variation(), sites=(A, B)), PROBES, seed=1)
    for each in found:
        made.add_trial(each)
    return made


def test_a_row_is_an_attempt_and_a_retry_names_the_faults_before_it() -> None:
    made = Map(known(tried(at(A), sites=(A, LATER, B)), tried(at(A, LATER), "harm", by="born")), {})
    assert [str(row) for row in made.rows] == ["a 1", "b 1", "a 1, attempt 2 (after exception at a 1)"]
    assert made.columns == ["exception", "rate_limit"]
    assert [made.outcome(row, "exception") for row in made.rows] == ["correct", "–", "harm"]
    assert not made.single_points_of_failure  # two faults are needed
    assert (made.outcome(made.rows[0], "cut_stream"), str(made)) == ("", made.render_map_text())


@pytest.mark.parametrize("kind", FindingKind)
def test_findings_about_the_world_tell_failures_apart(kind: FindingKind) -> None:
    told = causes.describe_failure_kind(Verdict(Outcome.WRONG, "it says 17", evidence=(Finding(kind, "order 17"),)))
    of_world = kind in ("duplicate", "phantom", "altered", "order", "state", "lost")
    assert told == (f"wrong – {kind}: order …" if of_world else "wrong – it says …")


def test_every_cell_that_was_not_tried_has_its_reason() -> None:
    open_ = replace(tried(at(B), "unknown"), why="nothing certain tells if the answer is right")
    found = known(tried(at(A), "failed"), open_)
    untried = Map(found, {"c": {"cut_stream": "c has no stream"}}, ended="the budget of 2 trials was spent").untried
    assert [str(each) for each in untried] == [
        "rate_limit at a 1: the budget of 2 trials was spent; a larger budget tries it",
        f"exception at b 1: unknown: {open_.why}; facts=, says= or judge= would decide it",
        "rate_limit at b 1: the budget of 2 trials was spent; a larger budget tries it",
        "every fault at c 1 (after exception at a 1): it is made behind failed; mend that, and explore again",
        "cut_stream at c: not applicable: c has no stream",
    ]
    brought_up = known(tried(Variation((ERROR.make_injection(A, lasts=True),)), sites=(A, B, Site("c", 1))))
    assert "every other fault at c 1 (after exception from a 1 on): only a fault that lasts brings it up" in [
        str(each) for each in Map(brought_up, {}).untried
    ]
    twinless = known(replace(tried(at(B), "unknown"), why="no twin"))
    assert "exception at b 1: unknown: no twin" in [str(each) for each in Map(twinless, {}).untried]


def test_a_call_is_no_single_point_of_failure_before_faults_that_last_were_tried_at_it_too() -> None:
    once = [tried(at(site, probe=probe)) for site in (A, B) for probe in (ERROR, RESET)]
    said = Map(known(*once), {}).render_map_text()
    assert said.endswith("Single points of failure, by faults that hit once: 0 of 2 calls.")
    first, second = (Variation((probe.make_injection(A, lasts=True),)) for probe in (ERROR, RESET))
    said = Map(known(*once, tried(first, by="lasting")), {}).render_map_text()
    assert said.endswith("Single points of failure: 0 of 2 calls, 2 undecided.")
    said = Map(known(*once, tried(first, by="lasting"), tried(second, "failed", by="lasting")), {}).render_map_text()
    assert said.endswith("Single points of failure: 1 of 2 calls (a 1), 1 undecided.")
    open_ = [*once[:-1], replace(once[-1], outcome="unknown")]
    said = Map(known(*open_), {}).render_map_text()
    assert said.endswith("Single points of failure, by faults that hit once: 0 of 2 calls, 1 undecided.")


def test_what_no_agent_could_notice_makes_no_single_point_of_failure_unless_it_was_asked_for() -> None:
    made = known(replace(tried(at(A), "wrong"), root=Root(UNNOTICED)))
    assert (Map(made, {}).single_points_of_failure, Map(made, {}, folds=False).single_points_of_failure) == ([], [A])


def test_the_map_is_told_in_words_and_as_data() -> None:
    made = Map(known(tried(at(A), "failed", number=4), tried(at(B))), {})
    assert made.render_map_text() == (
        "2 of 8 cells tried: 1 failed, 1 correct. "
        "Single points of failure, by faults that hit once: 1 of 2 calls (a 1), 1 undecided."
    )
    assert made.render_map_text() == Map(made.known, {}, ended=GOES_ON).render_map_text()
    assert (
        Map(made.known, {}, ended="the budget of 2 trials was spent")
        .render_map_text()
        .startswith("the budget of 2 trials was spent: 2 of 8 cells tried")
    )
    assert [str(each) for each in made.coverage_by_fault_count] == [
        "single faults 2 of 4",
        "lasting 0 of 4",
        "pairs by kind 0 of 0",
    ]
    assert made.many_faults_text == "higher orders not tried"
    cells = made.to_json_data()["cells"]
    assert [(cell["call"], cell["fault"], cell["outcome"], cell["trial"]) for cell in cells] == [
        ("a 1", "exception", "failed", 4), ("a 1", "rate_limit", "not tried", None),
        ("b 1", "exception", "correct", 0), ("b 1", "rate_limit", "not tried", None),
    ]  # fmt: skip


def test_failures_that_are_alike_at_the_same_calls_are_one_and_worse_ones_come_first() -> None:
    found = group_alike_failures(
        [
            tried(at(A), "failed", number=1), tried(at(A, probe=RESET), "failed", number=2), tried(at(B), number=3),
            tried(at(B, C), "harm", number=4), tried(at(C), "failed", number=5),
        ]
    )  # fmt: skip
    assert [[each.number for each in group] for group in found] == [[4], [1, 2], [5]]


def test_a_plan_that_holds_a_smaller_one_that_failed_alike_shows_nothing_new() -> None:
    both, again = Site("a", 1), Site("a", 2)
    found = group_alike_failures([tried(at(both, again, B), "failed", number=1), tried(at(again), "failed", number=2)])
    assert [[each.number for each in group] for group in found] == [[2]]


def test_a_fault_that_lasts_shows_nothing_new_where_one_attempt_fails_alike() -> None:
    for_good = Variation((ERROR.make_injection(A, lasts=True),))
    found = group_alike_failures([tried(at(Site("a", 2)), "failed", number=1), tried(for_good, "failed", number=3)])
    assert [[each.number for each in group] for group in found] == [[1]]
    found = group_alike_failures(
        [tried(at(A), "failed", number=1), tried(at(B), "hung", number=2), tried(for_good, "hung", number=3)]
    )
    assert [[each.number for each in group] for group in found] == [[2], [3], [1]]


def test_causes_are_told_by_fault_and_place() -> None:
    assert causes.describe_variation(at(A, B)) == "exception at a 1 and at b 1"
    assert (
        causes.describe_variation(Variation((ERROR.make_injection(A), RESET.make_injection(LATER))))
        == "exception at a 1 and rate_limit at a 1, attempt 2"
    )
    assert causes.describe_variation(Variation((), ((1, ("b", "a")),))) == "the order b, a"
    assert causes.describe_variation(Variation((ERROR.make_injection(A, lasts=True),))) == "exception from a 1 on"
    assert causes.describe_variation(Variation()) == "no fault at all"
    assert causes.describe_cause(replace(tried(at(A), "harm"), harm=("pay twice",))) == "exception at a 1: pay twice"


def test_a_path_is_no_part_of_the_kind_of_an_open_cell() -> None:
    kinds = {
        _NUMBER.sub("…", f"no answer: cannot open {path}: 3 times") for path in ("/tmp/tmp.aX4eY/x.db", "/srv/b.db")
    }
    assert kinds == {"no answer: cannot open …: … times"}
