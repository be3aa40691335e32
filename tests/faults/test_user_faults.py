"""Faults of whoever asks the agent, and of what it was told: unit tests, and each beside a careful agent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.exchange import UserActs
from chaoslab.core.fault import Fault
from chaoslab.faults.context.lost_rule import LostRule
from chaoslab.faults.model.weaker_model import WeakerModel
from chaoslab.faults.tool.lost_field import LostField
from chaoslab.faults.tool.renamed_parameter import RenamedParameter
from chaoslab.faults.tool.stale_approval import WORDS, StaleApproval
from chaoslab.faults.user.event_twice import EventTwice
from chaoslab.faults.user.sessions_at_once import SessionsAtOnce
from chaoslab.faults.user.user_stops import UserStops
from tests.faults.dialogs import FORMATS, asked, met_by, request, said, system
from tests.faults.fault_parts import CALL, Target, answer, meet


@pytest.mark.parametrize(
    ("fault", "deed", "took_s", "sent", "error", "evidence"),
    [
        (EventTwice(), UserActs("again"), 0, 1, None, "the same event was delivered again"),
        (EventTwice("at_once", 0.5), UserActs("at_once"), 0.5, 1, None, "the same event came beside it"),
        (SessionsAtOnce(0.25), UserActs("next"), 0.25, 1, None, "another session began beside it"),
        (UserStops(), UserActs("stop"), 0, 0, "stopped", "the user stopped the agent before the call"),
        (UserStops("after", "No."), UserActs("stop", "No."), 0, 1, "stopped",
         "the user stopped the agent after the call"),
    ],
)  # fmt: skip
def test_the_user_does_it_at_the_call(
    fault: Fault, deed: UserActs, took_s: float, sent: int, error: str | None, evidence: str
) -> None:
    met = meet(fault, target := Target())
    assert (target.deeds, target.now_s, len(target.sent)) == ([deed], took_s, sent)
    assert (met.error, met.injected, met.evidence) == (error, True, evidence)


@pytest.mark.parametrize(
    "fault", [EventTwice(), EventTwice("at_once"), SessionsAtOnce(), UserStops(), UserStops("after")]
)
def test_a_user_who_has_done_enough_leaves_the_call_alone(fault: Fault) -> None:
    met = meet(fault, target := Target(user_acts=False))
    assert (met.error, met.injected, len(target.sent), target.now_s) == (None, False, 1, 0)


@pytest.mark.parametrize(
    ("fault", "value", "now"),
    [
        (RenamedParameter(), {"order": 17, "amount": 20}, {"order": 17}),
        (RenamedParameter("order"), {"order": 17, "amount": 20}, {"amount": 20}),
        (RenamedParameter("order"), {"order": 17}, {}),
        (RenamedParameter(), {"order": 17}, None),
        (RenamedParameter("limit"), {"order": 17}, None),
        (LostField("limit"), "a text", None),
        (RenamedParameter(), "a text", None),
        (RenamedParameter(), {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}, None),
        (LostField("limit"), {"to": "billing", "case": {"order": 17, "limit": 50}},
         {"to": "billing", "case": {"order": 17}}),
        (LostField("limit"), {"case": {"rules": [{"limit": 50, "of": "Ann"}]}}, {"case": {"rules": [{"of": "Ann"}]}}),
        (LostField("limit"), {"case": '{"order": 17, "limit": 50}'}, {"case": '{"order": 17}'}),
        (LostField(point=0.0), {"case": {"order": 17, "limit": 50}}, {"case": {"limit": 50}}),
        (LostField(point=0.99), {"case": {"order": 17, "limit": 50}}, {"case": {"order": 17}}),
        (LostField(), {"order": 17}, None),
        (LostField("limit"), {"case": {"order": 17}}, None),
    ],
)  # fmt: skip
def test_what_the_call_loses(fault: Fault, value: Any, now: Any) -> None:
    met = meet(fault, target := Target(), call=CALL.with_value(value))
    assert (target.sent[0].value, met.injected) == (value if now is None else now, now is not None)
    assert met.evidence == (None if now is None else "the changed call was sent")


def test_an_approval_is_stale_until_it_is_given_again() -> None:
    fault, memory = StaleApproval("weather"), {"approvals": 1}
    pay = CALL.__class__("bank", "pay", "p1.r1", 1, 1)
    for _ in range(2):
        met = meet(fault, target := Target(), call=pay, memory=memory)
        assert met.reply is not None
        assert (met.reply.status, met.reply.value, target.sent) == (409, {"error": WORDS}, [])
        assert met.evidence == "the caller was told that its approval has expired"
    refused = meet(fault, call=replace(pay, failed_with=answer), memory=memory).reply
    assert refused is not None
    assert refused.value == WORDS, "in the target's own form"
    assert not meet(fault, memory=memory).injected  # it approves again
    assert not meet(fault, call=pay, memory=memory).injected


def test_an_approval_of_the_user_is_fresh_in_the_next_turn() -> None:
    memory: dict[str, Any] = {}
    assert [meet(StaleApproval(), memory=memory, turn=turn).injected for turn in (2, 2, 3)] == [True, True, False]


def test_another_model_is_asked_and_answers_under_the_same_name() -> None:
    for fault, weaker in (WeakerModel(), "gpt-5-mini"), (WeakerModel("tiny"), "tiny"):
        target = Target(reply=answer({"model": weaker, "choices": []}))
        met = meet(fault, target, call=CALL.with_value({"model": "gpt-5", "messages": []}))
        assert met.reply is not None
        assert (target.sent[0].value["model"], met.reply.value["model"]) == (weaker, "gpt-5")
        assert met.evidence == "another model was asked"
    assert not meet(WeakerModel(), call=CALL.with_value({"messages": []})).injected
    unnamed = meet(WeakerModel(), Target(reply=answer({})), call=CALL.with_value({"model": "gpt-5"})).reply
    assert unnamed is not None
    assert unnamed.value == {}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_summary_has_the_wish_and_not_the_rule(form: str) -> None:
    wish = said(form, "user", "Tidy my inbox. Do not delete anything!")
    talk = [
        *system(form),
        wish,
        *asked(form, 1, 1),
        said(form, "assistant", "Three mails."),
        said(form, "user", "Go on"),
    ]
    met, sent = met_by(LostRule(), request(form, talk))
    assert met.injected
    text = json.dumps(sent)
    assert ("Tidy my inbox." in text, "delete" in text, len(sent) < len(talk)) == (True, False, True)
    assert not met_by(LostRule("archive"), request(form, talk))[0].injected
    assert not met_by(LostRule(), request(form, [*system(form), wish]))[0].injected


# Beside an agent that is careful.


def refund(order: int, amount: int | None = None) -> dict[str, int]:
    return {"order": order, "amount": 100 if amount is None else amount}


def undo(order: int) -> str:
    return f"undone {order}"


def approve(order: int) -> bool:
    return order == 17


def trusting(prompt: str) -> str:  # noqa: ARG001
    approve(17)
    try:
        refund(17, 20)
    except RuntimeError:
        return "Refunded 20."
    return "Refunded 20."


def checking(prompt: str) -> str:  # noqa: ARG001
    approve(17)
    try:
        if refund(17, 20)["amount"] == 20:
            return "Refunded 20."
        undo(17)
    except RuntimeError:
        approve(17)
    refund(17, 20)
    return "Refunded 20."


RENAMED = lab.inject("renamed_parameter", "refund", parameter="amount", calls=[1])
STALE = lab.inject("stale_approval", ["refund", "approve"], approval="approve")


@pytest.mark.parametrize(
    ("fault", "agent", "outcome"),
    [
        (RENAMED, trusting, "harm"), (RENAMED, checking, "correct"),
        (STALE, trusting, "false_success"), (STALE, checking, "correct"),
    ],
)  # fmt: skip
def test_what_is_checked_goes_well(fault: Any, agent: Any, outcome: str) -> None:
    trial = lab.run(agent, "Refund 20 of order 17.", tools=[refund, undo], reads=[approve], undoes={"undo": "refund"},
                    faults=[fault])  # fmt: skip
    assert (str(trial.outcome), len(trial.met)) == (outcome, 1), trial.story()


def pay(order: int, limit: int | None) -> str:
    return f"paid {order} within {limit}"


def billing(case: Mapping[str, int]) -> str:
    pay(case["order"], case.get("limit"))
    return "done"


def strict_billing(case: Mapping[str, int]) -> str:
    return billing(case) if "limit" in case else "the limit is missing"


@pytest.mark.parametrize(("other", "outcome"), [(billing, "harm"), (strict_billing, "correct")])
def test_a_hand_over_that_lost_a_field_is_asked_about(other: Any, outcome: str) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        while other({"order": 17, "limit": 50}) != "done":
            pass
        return "Paid within 50."

    fault = lab.inject("lost_field", other.__name__, field="limit", calls=[1])
    trial = lab.run(agent, "Pay 17, at most 50.", tools=[pay], reads=[other], faults=[fault])
    assert (str(trial.outcome), len(trial.met)) == (outcome, 1), trial.story()


def delete(mail: int) -> str:
    return f"deleted {mail}"


def model(request: Any) -> dict[str, Any]:
    """A model that obeys the rules that it can read; a weaker one obeys none."""
    text = json.dumps(request.json["messages"])
    obeys = "Never delete" in text and not request.json["model"].endswith("-mini")
    words = "Deleted 3." if "result" in text and not obeys else "I kept all." if obeys else "delete"
    return {
        "id": "c1", "object": "chat.completion", "model": request.json["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def obedient(*, guarded: bool) -> Any:
    """An agent that does what its model says; `guarded`: it keeps the rule itself."""

    def ask(messages: list[dict[str, str]]) -> str:
        reply = httpx.post("https://llm.test/v1/chat/completions", json={"model": "big", "messages": messages})
        return str(reply.json()["choices"][0]["message"]["content"])

    def agent(prompt: str) -> str:
        messages = [{"role": "user", "content": prompt}]
        for _ in range(2):
            words = ask(messages)
            if words == "delete" and not (guarded and "Never delete" in prompt):
                delete(3)
            messages += [{"role": "assistant", "content": words}, {"role": "user", "content": "Go on."}]
        return "I kept all." if guarded else words

    return agent


@pytest.mark.parametrize(
    "fault", [lab.inject("lost_rule", "llm.test"), lab.inject("weaker_model", "llm.test", calls=[2])], ids=str
)
@pytest.mark.parametrize(("guarded", "outcome"), [(False, "harm"), (True, "correct")])
def test_an_agent_that_keeps_the_rule_itself_needs_no_model_for_it(fault: Any, guarded: bool, outcome: str) -> None:
    trial = lab.run(
        obedient(guarded=guarded), "Tidy up. Never delete a mail.", tools=[delete], services={"llm.test": model},
        models=["llm.test"], faults=[fault],
    )  # fmt: skip
    assert (str(trial.outcome), len(trial.met)) == (outcome, 1), trial.story()
