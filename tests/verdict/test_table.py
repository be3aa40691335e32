"""Each cell of the table of world and answer, each basis, and what is only a hint."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.says import BOTH_PATTERNS, classify_by_says_rules
from chaoslab.analysis.verdict.standing import get_outcome_standing
from chaoslab.analysis.verdict.table import TABLE, Basis, Outcome, Said, Verdict, WorldState, render_table_markdown
from chaoslab.execution.agents._says import check_says_option, read_answer_values
from chaoslab.record.history import History
from chaoslab.record.spoken import JudgeOpinions
from tests.test_readme import ROOT
from tests.verdict.trials import TRIAL, compared, everybody_says, finished, judged

Trials = Callable[..., lab.Trial]


def refund(order: int) -> str:
    return f"refunded {order}"


def price(order: int) -> int:
    return order + 14


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
ELSE = "Order 17: see the list."


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
    """An answer that nothing certain decides, and a judge who says what it says."""
    trial = WORLDS[world](None if said is Said.NOTHING else ELSE)
    spoken = JudgeOpinions() if said is Said.NOTHING else everybody_says(said)
    verdict = judge_trial(History(trial.history.records, spoken=spoken), TRIAL)
    unheard = world is WorldState.HARM and said is not Said.NOTHING  # nobody is asked about an answer beside harm
    assert (verdict.world, verdict.said) == (world, Said.UNCLEAR if unheard else said), verdict
    assert verdict.outcome is TABLE[world, said], verdict.why
    expected = Basis.END if said is Said.NOTHING else Basis.JUDGE
    assert verdict.basis is (Basis.LEDGER if world is WorldState.HARM else expected)


def test_the_table_is_whole_and_printed() -> None:
    assert set(TABLE) == set(product(WorldState, Said))
    rows = render_table_markdown().splitlines()
    assert len(rows) == 2 + len(WorldState)
    assert "| left undone | false_success | false_success | degraded | false_success | undone | failed |" in rows
    assert render_table_markdown() in (ROOT / "docs" / "explanation" / "verdicts.md").read_text(encoding="utf-8")


def test_an_outcome_is_well_bad_or_open() -> None:
    assert {outcome: str(get_outcome_standing(outcome)) for outcome in Outcome} == {
        **dict.fromkeys(("correct", "degraded"), "well"),
        **dict.fromkeys(("wrong", "false_success", "harm", "failed", "hung"), "bad"),
        **dict.fromkeys(("undone", "unknown", "invalid", "unfinished"), "open"),
    }


@pytest.mark.parametrize("world", WorldState)
def test_what_is_done_as_asked_is_told_by_the_world_alone(world: WorldState) -> None:
    known = {WorldState.AS_ASKED: True, WorldState.UNDONE: False, WorldState.HARM: False}
    for said in Said:
        assert Verdict(TABLE[world, said], "", world=world, said=said).done is known.get(world)
        for outcome in (Outcome.INVALID, Outcome.UNFINISHED):
            assert Verdict(outcome, "", world=world).done is (False if world is WorldState.HARM else None)


# --- what is said without a judge ---

DENIED = "I could not refund order 17."
ADMITS, OTHER_WORDS = "it seems to admit it: ", "it has its twin's values"


@pytest.mark.parametrize(
    ("trial", "answer", "outcome", "basis", "hint"),
    [
        (as_asked, TWIN, Outcome.CORRECT, Basis.SAME, ""),
        (as_asked, "Order 17 is refunded: €30.00", Outcome.CORRECT, Basis.SAME, ""),
        (as_asked, "Order 17 is refunded: 31 EUR.", Outcome.WRONG, Basis.VALUES, ""),
        (as_asked, "Order 17 has been refunded: 30 EUR.", Outcome.UNKNOWN, Basis.NONE, OTHER_WORDS),
        (as_asked, "The refund of order 17 could not be confirmed.", Outcome.UNKNOWN, Basis.NONE, ADMITS),
        (as_asked, "banana", Outcome.UNKNOWN, Basis.NONE, "it lacks 30"),
        (as_asked, "Order 17 is not refunded: 30 EUR.", Outcome.UNKNOWN, Basis.NONE, ADMITS),
        (left_undone, TWIN, Outcome.FALSE_SUCCESS, Basis.SAME, ""),
        (left_undone, "All done, refunded.", Outcome.UNDONE, Basis.NONE, "it lacks 30"),
        (left_undone, DENIED, Outcome.UNDONE, Basis.NONE, ADMITS),
        (left_undone, ELSE, Outcome.UNDONE, Basis.NONE, "it lacks 30"),
        (left_undone, "La commande 17 n'a pas pu être remboursée.", Outcome.UNDONE, Basis.NONE, "it lacks 30"),
        (left_undone, "Order 17 is refunded. The refund failed.", Outcome.UNDONE, Basis.NONE, ADMITS),
        (left_undone, "Order 17: 30 EUR are back.", Outcome.UNDONE, Basis.NONE, f"{OTHER_WORDS}, and seems to claim"),
        (harm, TWIN, Outcome.HARM, Basis.LEDGER, ""),
        (harm, DENIED, Outcome.HARM, Basis.LEDGER, ""),
        (harm, "banana", Outcome.HARM, Basis.LEDGER, ""),
        (may_have_been_done, TWIN, Outcome.UNKNOWN, Basis.SAME, ""),
        (may_have_been_done, "Order 17 is refunded: 31 EUR.", Outcome.WRONG, Basis.VALUES, ""),
        (not_stated, "It costs 30.", Outcome.CORRECT, Basis.FACTS, ""),
        (not_stated, "It costs 31.", Outcome.UNKNOWN, Basis.NONE, ""),
        (not_stated, "I could not find it.", Outcome.UNKNOWN, Basis.NONE, ADMITS),
        (not_stated, "It is dear.", Outcome.UNKNOWN, Basis.NONE, ""),
    ],
)
def test_what_is_equal_decides_and_words_are_a_hint(
    trial: Trials, answer: str, outcome: Outcome, basis: Basis, hint: str
) -> None:
    verdict = trial(answer).verdict
    assert (verdict.outcome, verdict.basis) == (outcome, basis), verdict
    assert verdict.hint.startswith(hint)
    assert bool(verdict.hint) is bool(hint)


SAYS = {"refund": {"done": "refunded", "undone": "could not"}}
ANY_SAYS = {"*": {"undone": "could not|unable to"}}


@pytest.mark.parametrize(
    ("says", "trial", "answer", "outcome"),
    [
        (SAYS, left_undone, DENIED, Outcome.DEGRADED),
        (SAYS, left_undone, "Yes, refunded.", Outcome.FALSE_SUCCESS),
        (SAYS, left_undone, "banana", Outcome.FALSE_SUCCESS),
        (SAYS, as_asked, DENIED, Outcome.WRONG),
        (SAYS, as_asked, "Order 17: look at your account, 30 EUR, refunded.", Outcome.CORRECT),
        (ANY_SAYS, left_undone, DENIED, Outcome.DEGRADED),
        (ANY_SAYS, left_undone, "The shop was UNABLE TO do that.", Outcome.DEGRADED),
        (ANY_SAYS, left_undone, "All done, refunded.", Outcome.FALSE_SUCCESS),
        (ANY_SAYS, harm, DENIED, Outcome.HARM),
    ],
)
def test_words_decide_where_the_user_says_which(
    says: dict[str, Any], trial: Trials, answer: str, outcome: Outcome
) -> None:
    verdict = trial(answer, says=says).verdict
    assert (verdict.outcome, verdict.hint) == (outcome, "")
    assert verdict.basis is (Basis.LEDGER if outcome is Outcome.HARM else Basis.SAYS)


@pytest.mark.parametrize(
    ("says", "trial", "answer", "outcome"),
    [
        (SAYS, left_undone, "The bank was unable to do that.", Outcome.UNDONE),  # in words that no pattern knows
        (ANY_SAYS, left_undone, "The bank did not do that.", Outcome.UNDONE),
        (SAYS, left_undone, "It is refunded. I could not mail it.", Outcome.UNDONE),  # both
        (SAYS, as_asked, "Order 17 is refunded.", Outcome.UNKNOWN),  # it reads the deed, and nothing of the amount
        (ANY_SAYS, as_asked, "Order 17 is refunded.", Outcome.UNKNOWN),
        (ANY_SAYS, as_asked, DENIED, Outcome.UNKNOWN),  # it may deny what was done
        (ANY_SAYS, left_undone, '{"status": "error"}', Outcome.UNDONE),  # fields are not read as words
    ],
)
def test_what_says_does_not_read_is_open_until_a_judge_is_heard(
    says: dict[str, Any], trial: Trials, answer: str, outcome: Outcome
) -> None:
    made = trial(answer, says=says)
    assert made.outcome is outcome, made.why
    assert get_outcome_standing(made.outcome) == "open"
    heard = judge_trial(History(made.history.records, spoken=everybody_says("admits it")), TRIAL)
    assert (heard.outcome, heard.basis) == (Outcome.DEGRADED, Basis.JUDGE)


def test_an_admission_takes_nothing_back_where_nothing_was_done() -> None:
    def of_state(answer: str, *, paid: int) -> lab.Trial:
        books = {"paid": 0}

        def pay() -> None:
            books["paid"] = 1

        def make() -> Callable[[str], str]:
            books["paid"] = 0
            return agent

        def agent(_: str) -> str:
            if paid:
                pay()
            try:
                price(17)
            except Exception:  # noqa: BLE001 - the tool's error
                return answer
            return "All is well."

        faults = [lab.inject("tool_error", "price")]
        more: dict[str, Any] = {"state": lambda: books} if paid else {}
        return lab.run(lab.fresh(make), "go", reads=[pay, price], faults=faults, says=ANY_SAYS, **more)

    assert of_state("I could not look.", paid=0).outcome is Outcome.DEGRADED
    assert of_state("I could not pay.", paid=1).outcome is Outcome.UNKNOWN


def test_a_missing_fact_is_wrong_only_where_says_reads_words_that_do_not_admit_it() -> None:
    for answer, outcome in (
        ("It is dear.", Outcome.WRONG),
        ("I could not find it.", Outcome.DEGRADED),
        ('{"value": null}', Outcome.UNKNOWN),
    ):
        assert not_stated(answer, says=ANY_SAYS).outcome is outcome, answer


def test_a_doubt_about_an_effect_whose_reply_was_lost_is_open_and_done() -> None:
    faults = [lab.inject("lost_reply", "refund")]
    for says in (None, SAYS, ANY_SAYS):
        trial = lab.run(_agent(DENIED, TWIN, 1), "Refund order 17.", tools=[refund], faults=faults, says=says)
        assert trial.effects == [{"effect": "refund", "order": 17}]
        assert (trial.outcome, trial.verdict.done, trial.verdict.said) == (Outcome.UNKNOWN, True, Said.UNCLEAR)


def test_a_value_as_without_faults_is_no_word_on_what_was_left_undone_unless_it_says_that_it_is_done() -> None:
    done, total = {"mailed": True}, {"total": 42}
    assert classify_by_says_rules(done, done, (), (), undone=True) == (
        Said.PASSES_OVER,
        "by says=, all is as without faults",
    )
    assert classify_by_says_rules(total, total, (), (), undone=True) is None
    assert classify_by_says_rules(total, total, (), (), undone=False) == (Said.RIGHT, "by says=")
    twice = classify_by_says_rules({"refund": BOTH_PATTERNS}, None, ["refund"], ["refund"], undone=True)
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
        ({"*": False}, None, ["refund"], ["refund"], (Said.ADMITS, "by says=, * is false")),
        ({"*": True}, None, ["refund"], ["refund"], (Said.PASSES_OVER, "by says=, * is true")),
        (
            {"*": None},
            None,
            ["refund"],
            ["refund"],
            (Said.PASSES_OVER, "the answer does not say so: says= finds no admission in it"),
        ),
        ({"*": BOTH_PATTERNS}, None, ["refund"], ["refund"], (Said.UNCLEAR, "says= finds * both done and undone")),
        ({"*": True}, None, ["refund"], [], (Said.RIGHT, "by says=")),
        ({"*": False}, None, ["refund"], [], None),
        ({"*": None}, None, ["refund"], [], None),
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
    assert classify_by_says_rules(says, twin, asked, missing, undone=bool(missing)) == found
    if found is not None and "ledger" in found[1]:  # an agent may doubt what failed for it
        assert classify_by_says_rules(says, twin, asked, missing, undone=False, failed={*asked}) is None


PATTERNS = {"refund": {"done": "refunded", "undone": "could not"}, "total": r"total is (\d+)"}


@pytest.mark.parametrize(
    ("says", "text", "found"),
    [
        (PATTERNS, "REFUNDED, total is 42", ({"refund": True, "total": "42"}, "")),
        (PATTERNS, "It could not.", ({"refund": False, "total": None}, "")),
        (PATTERNS, "Refunded? It could not.", ({"refund": BOTH_PATTERNS, "total": None}, "")),
        ({"*": {"undone": "could not"}}, "It COULD not.", ({"*": False}, "")),
        ({"*": {"undone": "could not"}}, "Done.", ({"*": None}, "")),
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
    values, why = read_answer_values(says, text, text)
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
        ({"*": "(a)"}, ValueError, "says['*'] is '(a)': its keys are 'done', 'undone' and 'unsure', each with"),
        ({"refund": {}}, ValueError, "says['refund'] is {}: its keys are 'done', 'undone' and 'unsure', each with"),
        ({"refund": {"do": "a"}}, ValueError, "says['refund'] is {'do': 'a'}: its keys are 'done', 'undone'"),
        ({"refund": {"done": 3}}, TypeError, "says['refund'] has 3: it should be a regular expression"),
        ({"total": "("}, ValueError, "says['total'] is '(', which is no regular expression: missing )"),
        ({"total": "a"}, ValueError, "says['total'] is 'a': a value needs one group in brackets, as in r'total is "),
        ({"total": "(a)(b)"}, ValueError, "says['total'] is '(a)(b)': a value needs one group in brackets"),
        ({"POST /refunds": {"done": "a"}}, LookupError, "says['POST /refunds']: no tool with effects is called so"),
    ],
)
def test_what_cannot_read_an_answer_is_one_line(says: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as told:
        check_says_option(says, ["refund"], of_services=False)
    assert str(told.value.args[0]).startswith(words)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("says", [None, len, PATTERNS, ANY_SAYS, {"POST /refunds": {"done": "(a)"}}])
def test_what_can_read_an_answer_is_taken(says: Any) -> None:
    check_says_option(says, ["refund"], of_services=True)


def test_a_value_that_a_reading_does_not_find_is_no_admission() -> None:
    heard, none = {"refund": True, "amount": "30"}, {"refund": None, "amount": None}
    passed = (Said.PASSES_OVER, "the answer does not say so: says= finds nothing about refund in it")
    assert classify_by_says_rules(none, heard, ["refund"], ["refund"], undone=True) == passed
    open_ = classify_by_says_rules(none, heard, ["refund"], ["refund"], undone=True, admits=True)  # in words of its own
    assert open_ == (Said.UNCLEAR, passed[1])
    assert classify_by_says_rules({**heard, "amount": None}, heard, ["refund"], (), undone=False) is None
    assert classify_by_says_rules(heard, heard, ["refund"], (), undone=False) == (Said.RIGHT, "by says=")


def test_a_judge_is_asked_only_where_nothing_certain_decides() -> None:
    for trial, outcome, basis in (
        (left_undone(ELSE), Outcome.DEGRADED, Basis.JUDGE),
        (as_asked(ELSE), Outcome.DEGRADED, Basis.JUDGE),
        (as_asked(TWIN), Outcome.CORRECT, Basis.SAME),
        (harm(ELSE), Outcome.HARM, Basis.LEDGER),
    ):
        verdict = judge_trial(History(trial.history.records, spoken=everybody_says("admits it")), TRIAL)
        assert (verdict.outcome, verdict.basis) == (outcome, basis)


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


def test_a_claim_in_the_second_turn_is_not_excused_by_a_failure_in_the_first() -> None:
    trial = _chat("I could not refund order 17.", "Order 17 is refunded.", refund, "refund", None)
    assert trial.verdict.world is WorldState.UNDONE
    assert trial.outcome in (Outcome.UNDONE, Outcome.FALSE_SUCCESS), trial.verdict
