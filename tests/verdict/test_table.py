"""Each cell of the table of world and answer, each basis, and certainty."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge
from chaoslab.analysis.verdict.says import BOTH, by_says
from chaoslab.analysis.verdict.table import TABLE, UNJUDGED, Basis, Outcome, Said, Verdict, WorldState, markdown
from chaoslab.execution.agents._says import check, read
from chaoslab.record.history import History
from chaoslab.record.spoken import Opinion, Spoken
from tests.event_parts import story as history
from tests.verdict.trials import TRIAL, compared, finished, judged

Trials = Callable[..., lab.Trial]


def refund(order: int) -> str:
    return f"refunded {order}"


def price(order: int) -> int:
    return order + 13


def _agent(answer: str | None, twin: str, tries: int) -> Callable[[str], str]:
    """Refunds order 17, and gives this answer if a call failed; None: it raises."""

    def agent(_prompt: str) -> str:
        for _ in range(tries):
            try:
                refund(17)
                price(17)
                return twin
            except Exception:  # noqa: BLE001 - the tool's error
                continue
        if answer is None:
            raise RuntimeError("gave up")
        return answer

    return agent


TWIN = "Order 17 is refunded: 30 EUR."


def _run(answer: str | None, fault: str, target: str, tries: int = 1, **more: Any) -> lab.Trial:
    given: dict[str, Any] = {"tools": [refund], "reads": [price], **more}
    return lab.run(_agent(answer, TWIN, tries), "Refund order 17.", faults=[lab.inject(fault, target)], **given)


def as_asked(answer: str | None, **more: Any) -> lab.Trial:
    return _run(answer, "tool_error", "price", **more)


def left_undone(answer: str | None, **more: Any) -> lab.Trial:
    return _run(answer, "tool_error", "refund", **more)


def harm(answer: str | None, **more: Any) -> lab.Trial:
    return _run(answer, "lost_reply", "refund", tries=2, **more)


def may_have_been_done(answer: str | None, **more: Any) -> lab.Trial:
    read: list[int] = []

    def state() -> int:
        read.append(1)
        if len(read) > 4:  # twice before, and twice after the two runs without faults
            raise OSError("the database is closed")
        return 1

    return as_asked(answer, state=state, **more)


def not_stated(answer: str | None, **more: Any) -> lab.Trial:
    return as_asked(answer, tools=[], reads=[price, refund], facts=["30"], twin=False, **more)


WORLDS: dict[WorldState, Trials] = {
    WorldState.AS_ASKED: as_asked,
    WorldState.UNDONE: left_undone,
    WorldState.HARM: harm,
    WorldState.MAY: may_have_been_done,
    WorldState.NOT_STATED: not_stated,
}


@pytest.mark.parametrize(("world", "said"), [*product(WorldState, Said)], ids=str)
def test_each_cell_is_the_outcome_of_a_trial(world: WorldState, said: Said) -> None:
    """An answer that a person has labelled, so that words decide nothing."""
    trial = WORLDS[world](None if said is Said.NOTHING else "Order 17: see the list.")
    spoken = Spoken() if said is Said.NOTHING else Spoken(labels={TRIAL: str(said)})
    verdict = judge(History(trial.history.records, spoken=spoken), TRIAL)
    assert (verdict.world, verdict.said) == (world, said), verdict
    assert verdict.outcome is TABLE[world, said], verdict.why
    expected = Basis.END if said is Said.NOTHING else Basis.LABEL
    assert verdict.basis is (Basis.LEDGER if world is WorldState.HARM else expected)
    assert verdict.certain


def test_the_table_is_whole_and_printed() -> None:
    assert set(TABLE) == set(product(WorldState, Said))
    rows = markdown().splitlines()
    assert len(rows) == 2 + len(WorldState)
    assert "| left undone | false_success | false_success | degraded | false_success | unknown | failed |" in rows


# --- what is said without a label ---

DENIED = "I could not refund order 17."


@pytest.mark.parametrize(
    ("trial", "answer", "outcome", "basis"),
    [
        (as_asked, TWIN, Outcome.CORRECT, Basis.SAME),
        (as_asked, "Order 17 is refunded: €30.00", Outcome.CORRECT, Basis.SAME),
        (as_asked, "Order 17 is refunded: 31 EUR.", Outcome.WRONG, Basis.VALUES),
        (as_asked, "Order 17 has been refunded: 30 EUR.", Outcome.CORRECT, Basis.WORDS),
        (as_asked, "The refund of order 17 could not be confirmed.", Outcome.DEGRADED, Basis.WORDS),
        (as_asked, "banana", Outcome.UNKNOWN, Basis.WORDS),
        (as_asked, "Order 17", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, TWIN, Outcome.FALSE_SUCCESS, Basis.SAME),
        (left_undone, "All done, refunded.", Outcome.FALSE_SUCCESS, Basis.WORDS),
        (left_undone, DENIED, Outcome.DEGRADED, Basis.WORDS),
        (left_undone, "Order 17: see the list.", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, "17 | 30", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, "La commande 17 n'a pas pu être remboursée.", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, "Order 17 is refunded. The refund failed.", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, "I could not do it for order 17. The refund 17: see the list.", Outcome.UNKNOWN, Basis.WORDS),
        (left_undone, "There is no refund for order 17. My mail is out.", Outcome.DEGRADED, Basis.WORDS),
        (left_undone, "The refund for order 17 amounts to 30 EUR.", Outcome.FALSE_SUCCESS, Basis.WORDS),
        (as_asked, "I refunded order 17, so 30 EUR are underway.", Outcome.UNKNOWN, Basis.WORDS),
        (as_asked, "Order 17 is not refunded: 30 EUR.", Outcome.WRONG, Basis.WORDS),
        (harm, TWIN, Outcome.HARM, Basis.LEDGER),
        (harm, DENIED, Outcome.HARM, Basis.LEDGER),
        (harm, "banana", Outcome.HARM, Basis.LEDGER),
        (may_have_been_done, TWIN, Outcome.UNKNOWN, Basis.SAME),
        (may_have_been_done, "Order 17 is refunded: 31 EUR.", Outcome.WRONG, Basis.VALUES),
        (not_stated, "It costs 30.", Outcome.CORRECT, Basis.FACTS),
        (not_stated, "It costs 31.", Outcome.WRONG, Basis.WORDS),
        (not_stated, "I could not find it.", Outcome.DEGRADED, Basis.WORDS),
        (not_stated, "It is dear.", Outcome.UNKNOWN, Basis.WORDS),
    ],
)
def test_what_is_equal_is_certain_and_words_are_a_guess(
    trial: Trials, answer: str, outcome: Outcome, basis: Basis
) -> None:
    verdict = trial(answer).verdict
    assert (verdict.outcome, verdict.basis) == (outcome, basis), verdict
    assert verdict.certain is (basis is not Basis.WORDS or outcome in UNJUDGED)
    assert verdict.name == (str(outcome) if verdict.certain else f"≈ {outcome}")


def test_an_effect_that_was_done_and_is_denied_is_wrong_by_words() -> None:
    faults = [lab.inject("lost_reply", "refund")]
    trial = lab.run(_agent(DENIED, TWIN, 1), "Refund order 17.", tools=[refund], faults=faults)
    assert trial.effects == [{"effect": "refund", "order": 17}]
    assert (trial.outcome, trial.verdict.said, trial.verdict.certain) == (Outcome.WRONG, Said.WRONG, False)
    assert "the ledger shows it" in trial.why


def test_an_unclear_answer_to_what_was_left_undone_shows_the_world() -> None:
    verdict = left_undone("Order 17: see the list.").verdict
    assert (verdict.world, verdict.said, verdict.correct) == (WorldState.UNDONE, Said.UNCLEAR, False)
    assert verdict.why.startswith("missing: refund; if the answer says so cannot be told")


def test_words_on_another_thing_or_another_attempt_are_unclear() -> None:
    other = left_undone("The mail could not be sent. Have a nice day.").verdict
    assert (other.outcome, other.said) == (Outcome.UNKNOWN, Said.UNCLEAR)

    def reader(_: str) -> str:
        try:
            return f"The price is {price(17)} EUR."
        except Exception:  # noqa: BLE001 - the tool's error
            return "I could not get the price. A retry was made."

    found = lab.run(reader, "Price?", reads=[price], faults=[lab.inject("tool_error", "price")]).verdict
    assert (found.outcome, found.said) == (Outcome.UNKNOWN, Said.UNCLEAR)
    assert "it tells of several attempts" in found.why


def test_says_decides_where_words_would() -> None:
    says = {"refund": {"done": "refunded", "undone": "could not"}}
    for trial, answer, outcome in [
        (left_undone, DENIED, Outcome.DEGRADED),
        (left_undone, TWIN, Outcome.FALSE_SUCCESS),
        (as_asked, DENIED, Outcome.WRONG),
    ]:
        verdict = trial(answer, says=says).verdict
        assert (verdict.outcome, verdict.basis, verdict.certain) == (outcome, Basis.SAYS, True), (answer, verdict)
    longer = as_asked("Order 17: look at your account, 30 EUR, refunded.", says=says).verdict  # its twin's values
    assert longer.basis is Basis.SAYS
    neither = left_undone("banana", says=says).verdict
    admitted = left_undone("The bank was unable to do that.", says=says).verdict  # a pattern did not know the words
    assert (admitted.outcome, admitted.certain) == (Outcome.DEGRADED, False)
    short = as_asked("Order 17 is refunded.", says=says).verdict  # it reads the deed, and nothing of the amount
    assert (short.outcome, short.said) == (Outcome.UNKNOWN, Said.UNCLEAR)
    assert (neither.outcome, neither.said, neither.certain) == (Outcome.FALSE_SUCCESS, Said.PASSES_OVER, True)
    both = left_undone("It is refunded. I could not mail it.", says=says).verdict
    assert (both.outcome, both.said) == (Outcome.UNKNOWN, Said.UNCLEAR)


def test_a_value_as_without_faults_is_no_word_on_what_was_left_undone_unless_it_says_that_it_is_done() -> None:
    done, total = {"mailed": True}, {"total": 42}
    assert by_says(done, done, (), (), undone=True) == (Said.PASSES_OVER, "by says=, all is as without faults")
    assert by_says(total, total, (), (), undone=True) is None
    assert by_says(total, total, (), (), undone=False) == (Said.RIGHT, "by says=")
    twice = by_says({"refund": BOTH}, None, ["refund"], ["refund"], undone=True)
    assert twice == (Said.UNCLEAR, "says= finds refund both done and undone")


TWICE = ["refund", "refund"]


@pytest.mark.parametrize(
    ("says", "twin", "asked", "missing", "found"),
    [
        ({"refund": 2}, None, TWICE, [], (Said.RIGHT, "by says=")),
        ({"refund": True}, None, TWICE, [], (Said.RIGHT, "by says=")),
        ({"refund": 1}, None, TWICE, [], (Said.WRONG, "by says=, refund is 1, and the ledger shows it twice")),
        (
            {"refund": False},
            None,
            ["refund"],
            [],
            (Said.WRONG, "by says=, refund is false, and the ledger shows it once"),
        ),
        (
            {"refund": 1, "mail": 2},
            None,
            [*TWICE, "mail"],
            [],
            (Said.WRONG, "by says=, refund is 1, and the ledger shows it twice"),
        ),
        ({"refund": 1}, None, TWICE, ["refund"], (Said.ADMITS, "by says=, refund is 1")),
        ({"refund": 0}, None, TWICE, ["refund"], (Said.ADMITS, "by says=, refund is 0")),
        ({"refund": 2}, None, TWICE, ["refund"], (Said.PASSES_OVER, "by says=, refund is 2")),
        ({"refund": None}, None, ["refund"], [], None),
        ({"refund": "soon"}, None, ["refund"], [], None),
        ({"total": 7}, None, [], [], None),
        ({"total": 7}, {"total": 7.0}, [], [], (Said.RIGHT, "by says=")),
        ({"total": 7}, {"total": 8}, [], [], (Said.WRONG, "by says=, total is 7 instead of 8")),
        ({"total": 7, "n": 1}, {"total": 8, "n": 2}, [], [], (Said.WRONG, "by says=, total is 7 instead of 8")),
        ({"mailed": 1}, {"mailed": True}, [], [], (Said.WRONG, "by says=, mailed is 1 instead of true")),
        ({"to": "Ana."}, {"to": "ana"}, [], [], (Said.RIGHT, "by says=")),
        ({"refund": 2, "n": 1}, {"n": 2}, TWICE, [], (Said.WRONG, "by says=, n is 1 instead of 2")),
        ({"total": 7}, {"total": 8}, ["mail"], ["mail"], None),
        ({"total": 0}, {"total": 8}, ["mail"], ["mail"], (Said.ADMITS, "by says=, total is 0 instead of 8")),
        ({"a": 0, "b": 0}, {"a": 1, "b": 2}, ["mail"], ["mail"], (Said.ADMITS, "by says=, a is 0 instead of 1")),
    ],
)
def test_deeds_and_values_that_were_read_are_held_against_ledger_and_twin(
    says: dict[str, Any],
    twin: dict[str, Any] | None,
    asked: list[str],
    missing: list[str],
    found: tuple[Said, str] | None,
) -> None:
    assert by_says(says, twin, asked, missing, undone=bool(missing)) == found
    if found is not None and "ledger" in found[1]:  # an agent may doubt what failed for it
        assert by_says(says, twin, asked, missing, undone=False, unheard=asked) is None


PATTERNS = {"refund": {"done": "refunded", "undone": "could not"}, "total": r"total is (\d+)"}


@pytest.mark.parametrize(
    ("says", "text", "found"),
    [
        (PATTERNS, "REFUNDED, total is 42", ({"refund": True, "total": "42"}, "")),
        (PATTERNS, "It could not.", ({"refund": False, "total": None}, "")),
        (PATTERNS, "Refunded? It could not.", ({"refund": BOTH, "total": None}, "")),
        (PATTERNS, "", ({"refund": None, "total": None}, "")),
        ({"refund": {"done": "refunded"}}, "It could not.", ({"refund": None}, "")),
        (lambda answer: {"n": len(answer)}, "abc", ({"n": 3}, "")),
        (lambda _: 3, "abc", ({}, "says= returned 3: it should be a dict of values by name")),
        (lambda answer: answer.nothing, "abc", ({}, "AttributeError: 'str' object has no attribute 'nothing' at ")),
        (int, "abc", ({}, "ValueError: invalid literal for int() with base 10: 'abc'")),
    ],
)
def test_an_answer_is_read_by_patterns_or_by_a_function(
    says: Any, text: str, found: tuple[dict[str, Any], str]
) -> None:
    values, why = read(says, text, text)
    assert values == found[0]
    assert why == found[1] or (found[1].endswith(" at ") and why.startswith(f"{found[1]}test_table.py:"))


@pytest.mark.parametrize(
    ("says", "kind", "words"),
    [
        (3, TypeError, "says is 3: it should be a function of the answer, or patterns, as in says={"),
        (
            {"refnd": {"done": "a"}},
            LookupError,
            "says['refnd']: no tool with effects is called so: did you mean 'refund'",
        ),
        ({"refund": {}}, ValueError, "says['refund'] is {}: its keys are 'done' and 'undone', each with a pattern"),
        ({"refund": {"do": "a"}}, ValueError, "says['refund'] is {'do': 'a'}: its keys are 'done' and 'undone'"),
        ({"refund": {"done": 3}}, TypeError, "says['refund'] has 3: it should be a regular expression"),
        ({"total": "("}, ValueError, "says['total'] is '(', which is no regular expression: missing )"),
        ({"total": "a"}, ValueError, "says['total'] is 'a': a value needs one group in brackets, as in r'total is "),
        ({"total": "(a)(b)"}, ValueError, "says['total'] is '(a)(b)': a value needs one group in brackets"),
        ({"POST /refunds": {"done": "a"}}, LookupError, "says['POST /refunds']: no tool with effects is called so"),
    ],
)
def test_what_cannot_read_an_answer_is_one_line(says: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as told:
        check(says, ["refund"], of_services=False)
    assert str(told.value.args[0]).startswith(words)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("says", [None, len, PATTERNS, {"POST /refunds": {"done": "(a)"}}])
def test_what_can_read_an_answer_is_taken(says: Any) -> None:
    check(says, ["refund"], of_services=True)


def test_a_value_that_a_reading_does_not_find_is_no_admission() -> None:
    heard, none = {"refund": True, "amount": "30"}, {"refund": None, "amount": None}
    passed = (Said.PASSES_OVER, "by says=, refund is null: it does not say so")
    assert by_says(none, heard, ["refund"], ["refund"], undone=True) == passed
    assert by_says(none, heard, ["refund"], ["refund"], undone=True, admits=True) is None  # in words of its own
    assert by_says({**heard, "amount": None}, heard, ["refund"], (), undone=False) is None
    assert by_says(heard, heard, ["refund"], (), undone=False) == (Said.RIGHT, "by says=")


def test_a_model_is_believed_only_as_far_as_people_agree_with_it() -> None:
    trial = left_undone("Order 17: see the list.")
    asked: list[Any] = []

    class Opinions(dict[str, Opinion]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.append(key)
            return Opinion("admits it", "a-model") or default

    for trusted in ("", "a-model"):
        spoken = Spoken(opinions=Opinions(any=Opinion("unclear", "a-model")), trusted=trusted)
        verdict = judge(History(trial.history.records, spoken=spoken), TRIAL)
        assert (verdict.outcome, verdict.basis, verdict.certain) == (Outcome.DEGRADED, Basis.JUDGE, bool(trusted))
    labelled = replace(spoken, labels={TRIAL: "passes over it"})
    verdict = judge(History(trial.history.records, spoken=labelled), TRIAL)
    assert (verdict.outcome, verdict.basis) == (Outcome.FALSE_SUCCESS, Basis.LABEL)
    assert asked
    same = judge(History(as_asked(TWIN).history.records, spoken=spoken), TRIAL)
    assert (same.outcome, same.basis) == (Outcome.CORRECT, Basis.SAME)


def test_a_state_is_a_basis() -> None:
    shelf: dict[str, int] = {}

    def agent(_prompt: str) -> str:
        shelf.clear()
        try:
            shelf["n"] = price(17)
        except Exception:  # noqa: BLE001 - the tool's error
            shelf["n"] = 99
        return "Done."

    trial = lab.run(agent, "go", reads=[price], faults=[lab.inject("tool_error", "price")], state=lambda: dict(shelf))
    assert (trial.outcome, trial.verdict.basis, trial.verdict.world) == (Outcome.HARM, Basis.STATE, WorldState.HARM)


# --- how a trial ends ---


def test_harm_comes_first_where_a_fault_was_not_met_too() -> None:
    def agent(_prompt: str) -> str:
        refund(17)
        refund(17)
        return "Done."

    wish = [{"effect": "refund", "order": 17}]
    faults = [lab.inject("tool_error", "refund", calls=[9])]
    trial = lab.run(agent, "go", tools=[refund], effects=wish, faults=faults)
    assert "is for request 9 of refund" in trial.why
    assert (trial.outcome, trial.verdict.harm) == (Outcome.HARM, ("refund twice",))


def test_an_answer_of_none_is_none_unless_the_twins_is_none_too() -> None:
    def forgets(_prompt: str) -> str | None:
        try:
            return f"{price(17)} EUR"
        except Exception:  # noqa: BLE001 - the tool's error
            return None

    lost = lab.run(forgets, "go", reads=[price], faults=[lab.inject("tool_error", "price")])
    assert (lost.outcome, lost.why) == (Outcome.FAILED, "the answer is empty")
    assert judged(compared("null"), finished("null")).outcome is Outcome.CORRECT
    assert judged(compared("x"), finished("null")).outcome is Outcome.FAILED


def _chat(failed: str, then: str, tool: Callable[[int], Any], name: str, calls: list[int] | None) -> lab.Trial:
    """Two turns, in each of which the agent calls the tool. `failed`: its words where that fails in the first turn."""

    def make() -> Callable[[str], str]:
        asked: list[str] = []

        def agent(prompt: str) -> str:
            asked.append(prompt)
            try:
                tool(17)
            except Exception:  # noqa: BLE001 - the tool's error
                return failed if len(asked) == 1 else then
            return then

        return agent

    chosen: dict[str, Any] = {"calls": calls} if calls else {}
    tools = {"tools": [tool]} if tool is refund else {"reads": [tool]}
    talk, wish = lab.turns("Do order 17.", "And now?"), [{"effect": "refund", "order": 17}] if tool is refund else None
    return lab.run(lab.fresh(make), talk, faults=[lab.inject("tool_error", name, **chosen)], effects=wish, **tools)


def test_a_second_turn_that_mends_the_first_is_no_failure() -> None:
    trial = _chat("I could not find the price.", "Order 17 costs 30 EUR.", price, "price", [1])
    assert trial.outcome in (Outcome.DEGRADED, Outcome.UNKNOWN, Outcome.CORRECT), trial.verdict
    assert not trial.verdict.certain or trial.outcome is Outcome.UNKNOWN


def test_a_claim_in_the_second_turn_is_not_excused_by_a_failure_in_the_first() -> None:
    trial = _chat("I could not refund order 17.", "Order 17 is refunded.", refund, "refund", None)
    assert trial.verdict.world is WorldState.UNDONE
    assert trial.outcome in (Outcome.UNKNOWN, Outcome.FALSE_SUCCESS), trial.verdict


def test_a_verdict_that_reaches_no_conclusion_claims_nothing() -> None:
    for outcome in Outcome:
        assert Verdict(outcome, "", basis=Basis.WORDS).certain is (outcome in UNJUDGED)
    assert judge(history(compared("x"), finished("x")), TRIAL).certain
