"""An end state is judged beside the twin's and the one before."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.analysis.verdict import _end_state as end_state
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.base.jsonable import DEPTH_MAX
from chaoslab.execution.trial import NoBaseline

LINE = ("info", 7)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("before", "right", "after", "found"),
    [
        ({"n": 0}, {"n": 1}, {"n": 1}, []),
        ({"n": 0}, {"n": 1}, {"n": 2}, [(FindingKind.STATE, "the state's n is 2 instead of 1")]),
        ({"n": 0}, {"n": 1}, {"n": 0}, [(FindingKind.LOST, "missing: the state's n is 0 as before instead of 1")]),
        ({"n": 0}, {"n": 0}, {"n": 1}, [(FindingKind.STATE, "the state's n is 1 instead of 0")]),
        ({"n": 1}, {"n": 1}, {"n": True}, [(FindingKind.STATE, "the state's n is true instead of 1")]),
        ({"n": 1}, {"n": 1}, {"n": 1.0}, []),
        ([], ["a"], ["a", "a"], [(FindingKind.STATE, 'the state\'s [1] is "a" instead of nothing')]),
        ([], ["a"], [], [(FindingKind.LOST, 'missing: the state\'s [0] is nothing as before instead of "a"')]),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2}]}, {"a": [{"x": 3}]},
         [(FindingKind.STATE, "the state's a[0].x is 3 instead of 2")]),
        (1, 2, 3, [(FindingKind.STATE, "the state's it is 3 instead of 2")]),
        ([1], 2, [1, 3], [(FindingKind.STATE, "the state's it is [1, 3] instead of 2")]),
        ([1], [2], 3, [(FindingKind.STATE, "the state's it is 3 instead of [2]")]),
        ({"k": 1}, 2, {"k": 3}, [(FindingKind.STATE, 'the state\'s it is {"k": 3} instead of 2')]),
        ({"k": 1}, {"k": 2}, 3, [(FindingKind.STATE, 'the state\'s it is 3 instead of {"k": 2}')]),
        (7, {"k": 2}, {"k": 3}, [(FindingKind.STATE, "the state's k is 3 instead of 2")]),
        (7, [2], [3], [(FindingKind.STATE, "the state's [0] is 3 instead of 2")]),
        ({}, {"k": None}, {}, [(FindingKind.LOST, "missing: the state's k is nothing as before instead of null")]),
        ({"n": 0.0}, {"n": 0.1 + 0.2 + 0.3}, {"n": 0.3 + 0.2 + 0.1}, []),
        ([1, 2], [2, 1], [1, 1], [(FindingKind.LOST, "missing: the state's [0] is 1 as before instead of 2")]),
        # Rows: one that is missing moves the others
        ([], ["a", "b"], ["b"], [(FindingKind.LOST, 'missing: the state\'s [0] is nothing as before instead of "a"')]),
        ({}, {"k": ["a", "b"]}, {"k": ["b"]},
         [(FindingKind.LOST, 'missing: the state\'s k[0] is nothing as before instead of "a"')]),
        ([], ["a", "a"], ["a"], [(FindingKind.LOST, 'missing: the state\'s [1] is nothing as before instead of "a"')]),
        ([1, 2, 3, 4], [2, 4], [1, 2, 4],
         [(FindingKind.LOST, "missing: the state's [0] is 1 as before instead of nothing")]),
        (["a", "b"], ["b"], ["a"], [
            (FindingKind.STATE, 'the state\'s [0] is nothing instead of "b"'),
            (FindingKind.LOST, 'missing: the state\'s [0] is "a" as before instead of nothing'),
        ]),
        ([], ["a", "b"], ["b", "b"], [
            (FindingKind.STATE, 'the state\'s [1] is "b" instead of nothing'),
            (FindingKind.LOST, 'missing: the state\'s [0] is nothing as before instead of "a"'),
        ]),
        ([], ["a", "b"], ["b", "a"],
         [(FindingKind.ORDER,
           'the state\'s it has the right items in another order, ["b", "a"] instead of ["a", "b"]')]),
        (["a", "b"], ["b", "a"], ["c", "a"], [(FindingKind.STATE, 'the state\'s [0] is "c" instead of "b"')]),
    ],
)  # fmt: skip
def test_a_place_that_is_other_than_the_twins_is_altered_or_untouched(
    before: Any, right: Any, after: Any, found: list[tuple[FindingKind, str]]
) -> None:
    said = end_state.compare_states(before, right, after, line=LINE)
    assert [(finding.kind, finding.text) for finding in said] == found
    assert all(finding.lines == (LINE,) for finding in said)


@given(JSON, JSON, JSON)
def test_only_equal_states_have_no_finding(before: Any, right: Any, after: Any) -> None:
    assert end_state.compare_states(before, right, right, line=LINE) == []
    found = end_state.compare_states(before, right, after, line=LINE)
    assert bool(found) == (repr_of(right) != repr_of(after))
    if repr_of(before) == repr_of(after):
        assert {finding.kind for finding in found} <= {FindingKind.LOST}


def repr_of(value: Any) -> str:
    """A text that is equal for equal JSON values; the order of keys does not count."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {repr_of(value[key])}' for key in sorted(value))}}}"
    return f"[{', '.join(map(repr_of, value))}]" if isinstance(value, list) else repr(value)


def test_a_state_of_any_size_gives_few_findings() -> None:
    states = [{str(n): turn for n in range(1000)} for turn in range(3)]
    assert len(end_state.compare_states(*states, line=LINE)) == end_state.PLACES_MAX


def test_a_place_is_named_down_to_the_depth_that_a_value_may_have() -> None:
    def nest(value: Any) -> Any:
        for _ in range(DEPTH_MAX + 1):
            value = {"a": value}
        return value

    (finding,) = end_state.compare_states(nest(1), nest(2), nest(3), line=LINE)
    path = ".".join("a" * DEPTH_MAX)
    assert finding.text == f'the state\'s {path} is {{"a": 3}} instead of {{"a": 2}}'


def test_what_is_altered_is_found_behind_many_places_that_are_untouched() -> None:
    before, right = {str(n): 0 for n in range(30)}, {str(n): 1 for n in range(30)}
    found = end_state.compare_states(before, right, {**before, "29": 7}, line=LINE)
    assert (len(found), found[0].text) == (end_state.PLACES_MAX, "the state's 29 is 7 instead of 1")


class Account:
    """An object that cannot be read."""

    def __init__(self) -> None:
        self.paid, self.lock = 0, threading.Lock()


shop: dict[str, Any] = {}


def paying_twice(read: Callable[[], Any], **options: Any) -> lab.Trial:
    """A trial of an agent that pays twice, and whose tool is declared to only read."""

    def make() -> Callable[[str], str]:
        shop.update(rows=[], account=Account())
        return agent

    def pay() -> None:
        shop["rows"].append(30)
        shop["account"].paid += 30

    def agent(_: str) -> str:
        try:
            pay()
        except TimeoutError:
            pay()
        return "Paid."

    lost = lab.inject("lost_reply", "pay", calls=[1])
    return lab.run(lab.fresh(make), "Pay.", reads=[pay], state=read, faults=[lost], **options)


def test_a_cursor_is_read_and_an_object_that_cannot_be_is_no_proof() -> None:
    assert paying_twice(lambda: iter(shop["rows"])).outcome == "harm"
    with pytest.raises(NoBaseline, match="its end state cannot be read"):
        paying_twice(lambda: shop["account"])
    trial = paying_twice(lambda: shop["account"], anyway=True)
    assert (trial.outcome, trial.verdict.world) == ("unknown", "may have been done")
    assert trial.why == (
        "its end state cannot be judged: a tests.verdict.test_end_state.Account in it cannot be read: state should "
        "return what it holds"
    )


@pytest.mark.parametrize(("ordered", "outcome"), [(False, "unknown"), (True, "harm")])
def test_rows_in_another_order_are_harm_only_where_the_order_counts(ordered: bool, outcome: str) -> None:
    def make() -> Callable[[str], str]:
        shop["rows"] = []
        return agent

    def add(n: int) -> None:
        shop["rows"].append(n)

    def agent(_: str) -> str:
        for n in (1, 2):
            try:
                add(n)
            except ConnectionError:
                add(2)
                add(1)
                break
        return "Both are there."

    refused = lab.inject("refused", "add", calls=[1])
    trial = lab.run(
        lab.fresh(make), "Add both.", reads=[add], state=lambda: shop["rows"], faults=[refused], ordered=ordered
    )
    assert (trial.outcome, "in another order, [2, 1] instead of [1, 2]" in trial.why) == (outcome, True)


# In a trial.

BOOKS: dict[str, int] = {}


def book(who: str) -> str:
    BOOKS[who] = BOOKS.get(who, 0) + 1
    return "booked"


def eager(prompt: str) -> str:  # noqa: ARG001
    """An agent that tries again after each failure, and says that all went well."""
    for _ in range(2):
        try:
            book("ana")
            break
        except OSError:
            continue
    return "Booked for Ana."


def candid(prompt: str) -> str:  # noqa: ARG001
    try:
        book("ana")
    except OSError:
        return "I could not book for Ana."
    return "Booked for Ana."


def made(agent: Any) -> Any:
    def make() -> Any:
        BOOKS.clear()
        return agent

    return lab.fresh(make)


@pytest.mark.parametrize(
    ("agent", "fault", "outcome", "why"),
    [
        (eager, lab.inject("lost_reply", "book", calls=[1]), "harm", "the state's ana is 2 instead of 1"),
        (eager, lab.inject("timeout_before_effect", "book"), "false_success",
         "missing: the state's ana is nothing as before instead of 1; the answer does not say so"),
        (candid, lab.inject("timeout_before_effect", "book"), "undone", "nothing certain tells if the answer says so"),
        (eager, lab.inject("timeout_before_effect", "book", calls=[1]), "correct", "its twin's"),
    ],
)  # fmt: skip
def test_the_state_decides_where_a_tool_is_declared_to_only_read(
    agent: Any, fault: Any, outcome: str, why: str
) -> None:
    """`reads` have no effects on the ledger: only the state tells."""
    trial = lab.run(made(agent), "Book for Ana", reads=[book], faults=[fault], state=lambda: BOOKS)
    assert str(trial.outcome) == outcome, trial.story()
    assert why in trial.why
    assert trial.end_state == {"correct": {"ana": 1}, "harm": {"ana": 2}}.get(outcome, {})


def test_a_finding_names_the_line_of_the_log() -> None:
    trial = lab.run(made(eager), "Book", tools=[book], faults=[lab.inject("lost_reply", "book", calls=[1])])
    (twice,) = [finding for finding in trial.verdict.evidence if finding.kind is FindingKind.DUPLICATE]
    by_line = {record.seq: record.event.kind for record in trial.history.records}
    assert [by_line[seq] for _, seq in twice.lines] == ["effect", "effect"]


def test_a_state_that_cannot_be_read_makes_no_verdict() -> None:
    with pytest.raises(NoBaseline, match="its end state cannot be read"):
        lab.run(made(eager), "Book", tools=[book], state=lambda: BOOKS["bob"])
    broken = lab.run(made(eager), "Book", tools=[book], state=lambda: BOOKS["bob"], anyway=True)
    assert broken.outcome is lab.Outcome.UNKNOWN
    assert broken.why == "its end state cannot be judged: state raised KeyError: 'bob'"
    assert broken.end_state is None


def test_a_state_that_is_kept_from_trial_to_trial_is_no_baseline_and_what_comes_of_it_unknown() -> None:
    """As with effects and answers: whatever a fault does would be correct if the answer is."""
    BOOKS.clear()
    said = "two runs without faults differ: their end states differ; something is kept"
    with pytest.raises(NoBaseline, match=said):
        lab.run(eager, "Book", tools=[book], state=lambda: BOOKS)
    trial = lab.run(eager, "Book", tools=[book], state=lambda: BOOKS, anyway=True)
    assert (trial.outcome, said in trial.warnings[0]) == (lab.Outcome.UNKNOWN, True)


def test_a_service_is_asked_for_its_state_outside_of_faults() -> None:
    import httpx

    orders: list[str] = []

    def shop(request: Any) -> Any:
        if request.method == "POST":
            orders.append(request.json["item"])
        return {"orders": orders}

    def buyer() -> Any:
        orders.clear()

        def buy(prompt: str) -> str:  # noqa: ARG001
            for _ in range(2):
                try:
                    httpx.post("http://shop/orders", json={"item": "tea"}, timeout=1)
                    break
                except httpx.HTTPError:
                    continue
            return "Ordered tea."

        return buy

    trial = lab.run(
        lab.fresh(buyer),
        "Buy tea",
        services={"shop": shop},
        faults=[lab.inject("lost_reply", "shop", calls=[1])],
        state=lambda: httpx.get("http://shop/orders").json(),
    )
    assert trial.outcome is lab.Outcome.HARM
    assert 'the state\'s orders[1] is "tea" instead of nothing' in trial.why
    assert [event.tool for _, event in trial.history.find_events(lab_events().CallStarted)] == ["POST /orders"] * 2


def lab_events() -> Any:
    from chaoslab.core import events

    return events


async def later() -> dict[str, int]:
    return BOOKS


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (BOOKS, "state is {"),
        (later, "which is async: it should be a plain function"),
        (book, "which cannot be called without arguments (missing a required argument: 'who')"),
    ],
)
def test_what_is_no_function_of_nothing_is_refused(state: Any, why: str) -> None:
    with pytest.raises(TypeError) as refused:
        lab.run(eager, "Book", tools=[book], state=state)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_state_needs_a_twin() -> None:
    with pytest.raises(ValueError, match="it needs twin=True"):
        lab.run(eager, "Book", tools=[book], state=dict, twin=False)
