"""A session over a model that says what it is told to: its retries, its bounds, and what reaches the endpoint."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chaoslab.agent.prompts import Prompt
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.analysis.verdict.table import Outcome, WorldState
from chaoslab.base.clock import SystemClock, format_iso
from chaoslab.core import events
from chaoslab.core.conversation import turn, turns
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.model.endpoint import INSUFFICIENT_QUOTA
from chaoslab.record.history import History
from chaoslab.record.steering import FILE as STEERING
from chaoslab.surfaces.otel.export import Collector, send_run
from tests.agent import session_parts
from tests.agent.session_parts import ASKED, SUM, SUMS, Told, calls, no, says, session, session_over_loopback
from tests.otel_parts import has, receiving
from tests.seams.lab_parts import NOW
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)
BROKEN = no(400)
MAIL = calls("send_message", to="Ana", text="Hi")


@pytest.mark.parametrize("work", [session, session_over_loopback])
def test_a_prompt_is_worked_through(tmp_path: Path, work: Callable[..., Told]) -> None:
    told = work(tmp_path, [SUM, says("It is 42.")])
    (finished,) = told.of(events.PromptFinished)
    assert (finished.status, finished.answer, finished.attempts, finished.error_type) == ("ok", "It is 42.", 1, "none")
    first, second = (heard.json["messages"] for heard in told.model)
    assert [m["role"] for m in first] == ["system", "user"]
    assert "Today is Monday 2026-06-01, 09:00 UTC." in first[0]["content"]
    assert [m["role"] for m in second] == ["system", "user", "assistant", "tool"]
    assert json.loads(second[-1]["content"])["result"] == 42
    assert (told.progress.processed, told.progress.succeeded) == (1, 1)
    (over,) = told.of(events.RunFinished)
    assert (over.received, over.processed, over.succeeded, over.reason) == (1, 1, 1, "done")
    usage = told.of(events.Usage)
    assert [(u.prompt_tokens, u.completion_tokens) for u in usage] == [(900_000, 100_000)] * 2
    assert usage[0].cost_usd == pytest.approx(0.9 * 0.59 + 0.1 * 0.79)


def test_a_looping_model_is_stopped_by_the_stated_bound(tmp_path: Path) -> None:
    told = session(tmp_path, [SUM], steps_max=4, prompt_limit=1)
    assert told.errors == ["loop", "loop"]
    assert [e.error for e in told.of(events.PromptAttempt)] == ["stopped after 4 model calls"] * 2
    assert len(told.model) == 8
    (finished,) = told.of(events.PromptFinished)
    assert (finished.status, finished.attempts, finished.error_type) == ("failed", 2, "loop")


def test_the_bound_is_not_one_too_small(tmp_path: Path) -> None:
    assert session(tmp_path, [SUM, SUM, SUM, says("42")], steps_max=4, prompt_limit=0).errors == ["none"]


@pytest.mark.parametrize(("bad", "named"), [(says(""), "empty"), (says("  \n"), "empty"), (BROKEN, "model")])
def test_an_empty_answer_and_a_model_error_are_tried_again(tmp_path: Path, bad: Reply, named: str) -> None:
    told = session(tmp_path, [bad, bad, says("It is 42.")], prompt_limit=2)
    assert told.errors == [named, named, "none"]
    assert [event.prompt_attempt for event in told.of(events.PromptAttempt)] == [1, 2, 3]
    (finished,) = told.of(events.PromptFinished)
    assert (finished.status, finished.attempts) == ("ok", 3)


@pytest.mark.parametrize("limit", [0, 1])
def test_after_prompt_limit_retries_the_prompt_has_failed_and_the_run_goes_on(tmp_path: Path, limit: int) -> None:
    script = [BROKEN] * (limit + 1) + [says("It is 42.")]
    told = session(tmp_path, script, prompts=[ASKED, ASKED], prompt_limit=limit)
    assert told.errors == ["model"] * (limit + 1) + ["none"]
    assert "the model is unwell" in told.of(events.PromptAttempt)[0].error
    assert [event.status for event in told.of(events.PromptFinished)] == ["failed", "ok"]


class Deaf:
    """An agent that answers whether or not it was told to stop."""

    def __init__(self) -> None:
        self.asked = 0

    async def ainvoke(self, _state: Any, _config: Any = None) -> Any:
        from langchain_core.messages import AIMessage

        self.asked += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return {"messages": [AIMessage("It is 42.")]}


def test_an_agent_that_swallows_an_interrupt_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = Deaf()
    monkeypatch.setattr(session_parts, "assembled", lambda *_: deaf)
    with pytest.raises(asyncio.CancelledError):
        session(tmp_path, [], prompts=[ASKED] * 3)
    assert deaf.asked == 1


def test_the_sdks_own_retries_are_attempts_of_one_request(tmp_path: Path) -> None:
    soon = {"retry-after-ms": "1"}
    told = session(tmp_path, [no(503, **soon), no(429, **soon), says("It is 42.")])
    made = told.of(events.CallFinished)
    assert [(c.request, c.attempt, c.status) for c in made] == [(1, 1, 503), (1, 2, 429), (1, 3, 200)]
    assert len({c.request_id for c in made}) == 1
    assert told.errors == ["none"]


def test_planning_again_keeps_the_id_of_an_effect(tmp_path: Path) -> None:
    told = session(tmp_path, [MAIL, BROKEN, MAIL, says("Told her.")])
    first, second = (heard.headers["idempotency-key"] for heard in told.tools["messaging"])
    assert first == second
    assert told.errors == ["model", "none"]


def test_the_same_effect_wanted_twice_is_two_effects(tmp_path: Path) -> None:
    told = session(tmp_path, [MAIL, MAIL, says("Told her twice.")])
    first, second = (heard.headers["idempotency-key"] for heard in told.tools["messaging"])
    assert first != second


LEARNT = Prompt.model_validate(
    {
        "prompt": "What is 6 times 7?",
        "facts": ["{today}", {"tool": "calculate", "arguments": {"expression": "6*7"}, "path": "text"}],
    }
)
ALL_REFUSED = Plan(1, (Injection("wire", (Choice("refused"),), ("calculator",)),))


def test_facts_are_learnt_from_the_service_around_every_proxy(tmp_path: Path) -> None:
    told = session(tmp_path, [says("42")], prompts=[LEARNT], plan=ALL_REFUSED)
    (started,) = told.of(events.PromptStarted)
    assert (started.facts, started.stated) == ([[NOW[:10]], ["42"]], True)
    (asked,) = told.tools["calculator"]
    assert asked.headers["x-trial"].endswith(".p1.r1.truth")


def test_a_fact_that_nobody_tells_leaves_the_answer_unknown_and_the_effects_judged(tmp_path: Path) -> None:
    told = session(tmp_path, [says(f"42 on {NOW[:10]}")], prompts=[LEARNT], sums=lambda _: no(503))
    (started,) = told.of(events.PromptStarted)
    assert (started.facts, started.effects, started.stated) == ([[NOW[:10]]], [], True)
    (verdict,) = judge_all_trials(told.history).values()
    assert (verdict.outcome, verdict.world) == (Outcome.UNKNOWN, WorldState.AS_ASKED)
    assert verdict.why.endswith("cannot be judged: a stated fact could not be looked up by calculate")


def test_a_fact_is_looked_up_before_the_first_trial_and_known_when_its_service_is_gone(tmp_path: Path) -> None:
    replies = iter([SUMS])
    prompts = [Prompt(prompt="Hello?"), LEARNT]
    told = session(tmp_path, [says("42")], prompts=prompts, sums=lambda _: next(replies, no(503)))
    assert [started.facts for started in told.of(events.PromptStarted)] == [[], [[NOW[:10]], ["42"]]]
    assert len(told.tools["calculator"]) == 1


def test_what_a_twin_did_is_what_a_prompt_asks_for_that_states_nothing(tmp_path: Path) -> None:
    effect = {"effect": "message_sent", "to": "Ana"}
    twin = Twin("Told her.", None, 1, [effect])
    told = session(tmp_path, [says("Told her.")], prompts=[ASKED, LEARNT], twin_of=lambda _: twin)
    first, second = told.of(events.PromptStarted)
    assert (first.effects, first.stated, first.twin) == ([effect], True, "Told her.")
    assert (first.twin_s, first.twin_calls) == (None, 1)
    assert (second.effects, second.twin) == ([], "Told her."), "it states facts, and so that there are no effects"


BUDGETS = [
    ({"token_limit": 1_500_000.0}, "tokens", "calculator"),
    ({"cost_limit_usd": 1.0}, "cost_usd", "calculator"),
    ({"call_limit": 2.0}, "calls", "model"),
    ({"call_limit": 1.0}, "calls", "calculator"),
    ({"time_limit_s": 0.0003}, "seconds", "model"),
]


@pytest.mark.parametrize(("limit", "name", "target"), BUDGETS)
def test_a_hard_budget_refuses_what_goes_beyond(tmp_path: Path, limit: dict[str, Any], name: str, target: str) -> None:
    script = [SUM, SUM, says("42")] if "call_limit" not in limit else [SUM, says("42")]
    told = session(tmp_path, script, budget="hard", prompt_limit=0, **limit)
    passed = told.of(events.Budget)
    assert {(b.limit, b.mode) for b in passed} == {(name, "hard")}
    assert passed[0].target == target
    refused = [c for c in told.of(events.CallFinished) if c.via == "none"]
    assert refused
    assert refused[0].target == target
    assert refused[0].error == INSUFFICIENT_QUOTA.body["error"]["message"]
    assert not any(c.attempt > 1 for c in refused)
    assert {f.fault for f in told.of(events.FaultWitnessed)} == {"budget"}
    (stopped,) = told.of(events.PromptAttempt)
    setting = "TIME_LIMIT_S" if name == "seconds" else next(iter(limit)).upper()
    found = (stopped.error_type, stopped.error)
    assert found == ("budget", f"stopped by the lab's {setting} of {limit[setting.lower()]:g}")
    assert told.errors == ["budget"]


def test_a_refusal_of_the_models_own_is_no_limit_of_the_labs(tmp_path: Path) -> None:
    told = session(tmp_path, [no(429)] * 4, budget="hard", prompt_limit=0, call_limit=20.0)
    assert told.errors == ["model"]


@pytest.mark.parametrize(("limit", "name"), [budget[:2] for budget in BUDGETS])
def test_a_soft_budget_is_only_written_down(tmp_path: Path, limit: dict[str, Any], name: str) -> None:
    told = session(tmp_path, [SUM, SUM, says("42")], budget="soft", prompt_limit=0, **limit)
    passed = told.of(events.Budget)
    assert {(b.limit, b.mode) for b in passed} == {(name, "soft")}
    assert told.of(events.FaultWitnessed) == []
    assert told.errors == ["none"]


def test_dollars_are_spent_by_the_run_and_tokens_by_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "tokens").mkdir()
    (tmp_path / "dollars").mkdir()
    twice = [ASKED, ASKED]
    tokens = session(tmp_path / "tokens", [says("42")], prompts=twice, token_limit=1_000_000.0, prompt_limit=0)
    assert tokens.errors == ["none", "none"]
    dollars = session(tmp_path / "dollars", [says("42")], prompts=twice, cost_limit_usd=0.5, prompt_limit=0)
    assert dollars.errors == ["none", "budget"]


def test_a_shortened_context_reaches_the_endpoint(tmp_path: Path) -> None:
    told = session(tmp_path, [SUM, says("42")], context_prob=1.0)
    first, second = (heard.json["messages"] for heard in told.model)
    assert [m["role"] for m in first] == ["system", "user"]
    assert [m["role"] for m in second] == ["system", "assistant", "tool"]
    (witnessed,) = told.of(events.FaultWitnessed)
    assert (witnessed.fault, witnessed.target, witnessed.request) == ("truncate_context", "model", 2)


@pytest.mark.parametrize("work", [session, session_over_loopback])
def test_the_models_connection_is_poisoned_too(tmp_path: Path, work: Callable[..., Told]) -> None:
    told = work(
        tmp_path, [SUM, says("42")], model_toxic_prob=1.0, toxics=(("latency", 1.0),), latency_ms=30.0, jitter_ms=0.0
    )
    made = [c for c in told.of(events.CallFinished) if c.target == "model"]
    assert [c.via for c in made] == ["lane", "lane"]
    assert all(c.duration_s >= 0.03 for c in made)
    assert [(w.injection, w.target) for w in told.of(events.FaultWitnessed)] == [("model_wire", "model")] * 2
    assert [c.via for c in told.of(events.CallFinished) if c.target == "calculator"] == ["proxy"]


class SetBack(SystemClock):
    """A wall clock that somebody sets back by an hour whenever it is looked at."""

    hours = 0

    def utc(self) -> datetime:
        self.hours += 1
        return super().utc() - timedelta(hours=self.hours)


def test_no_attempt_ends_before_it_began_whatever_the_wall_clock_says(tmp_path: Path) -> None:
    told = session(tmp_path, [BROKEN, says("42")], prompt_limit=1, clock=SetBack())
    first, second = told.of(events.PromptAttempt)
    for attempt in (first, second):
        began = datetime.fromisoformat(attempt.start_time)
        assert format_iso(began + timedelta(seconds=attempt.duration_s)) == attempt.end_time
        assert attempt.duration_s >= 0
    assert second.start_time < first.start_time
    assert [event.duration_s >= 0 for event in told.of(events.PromptFinished)] == [True]
    assert all(event.duration_s >= 0 for event in told.of(events.CallFinished))


def test_the_turns_of_a_conversation_share_all_that_was_said(tmp_path: Path) -> None:
    asked = Prompt.build(turns("What is 6 times 7?", turn(reply={"42": "And twice that?"}, after_s=60.0)))
    told = session(tmp_path, [SUM, says("It is 42."), BROKEN, says("84.")], prompts=[asked], prompt_limit=1)
    (finished,) = told.of(events.PromptFinished)
    assert (finished.status, finished.answer, finished.attempts) == ("ok", "It is 42.\n84.", 2)
    found = [m["role"] for m in told.model[-1].json["messages"]]
    assert found == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert told.model[-1].json["messages"][-1]["content"] == "And twice that?"
    seen = [(e.turn, e.prompt) for e in told.of(events.TurnStarted)]
    assert seen == [(1, "What is 6 times 7?"), (2, "And twice that?")]
    assert [(e.turn, e.answer) for e in told.of(events.TurnFinished)] == [(1, "It is 42."), (2, "84.")]
    assert [(e.prompt, e.error_type, e.prompt_attempt) for e in told.of(events.PromptAttempt)] == [
        ("What is 6 times 7?", "none", 1), ("And twice that?", "model", 1), ("And twice that?", "none", 2),
    ]  # fmt: skip
    assert [e.at.turn for e in told.of(events.CallStarted)] == [1, 1, 1, 2, 2]
    assert finished.duration_s >= 60


def test_a_conversation_ends_at_a_turn_without_an_answer(tmp_path: Path) -> None:
    told = session(
        tmp_path,
        [says("Hi."), BROKEN],
        prompts=[Prompt.build(turns("Hello?", "Are you there?", "Bye."))],
        prompt_limit=0,
    )
    (finished,) = told.of(events.PromptFinished)
    assert (finished.status, finished.answer, finished.error_type) == ("failed", "", "model")
    assert [e.turn for e in told.of(events.TurnStarted)] == [1, 2]
    assert [e.turn for e in told.of(events.TurnFinished)] == [1]


def test_what_somebody_asks_of_a_run_holds_from_its_next_trial_on(tmp_path: Path) -> None:
    def sums(_: Any) -> Reply:
        (folder,) = (path.parent for path in tmp_path.rglob("run.json"))
        if not (folder / STEERING).exists():
            (folder / STEERING).write_text('{"chances": {"ERROR_PROB": 1.0}}')
        return SUMS

    script = [SUM, says("It is 42."), SUM, says("I could not compute it.")]
    told = session(tmp_path, script, prompts=[ASKED, ASKED], sums=sums, tool_limit=0, error_targets=["calculator"])
    assert [(e.setting, e.was, e.chance) for e in told.of(events.ChanceSet)] == [("ERROR_PROB", 0.0, 1.0)]
    assert {record.trial for record, _ in told.history.find_events(events.ChanceSet)} == {"p2.r1"}
    assert {record.trial for record, _ in told.history.find_events(events.FaultWitnessed)} == {"p2.r1"}
    (warned,) = RunReport.from_history(told.history).warnings.value
    assert "ERROR_PROB was 0 and was set to 1 while the run went on, from p2.r1 on" in str(warned)


def test_its_trace_has_the_chats_with_their_tokens(tmp_path: Path) -> None:
    told = session(tmp_path, [no(500), SUM, says("It is 42.")], prompts=[Prompt.build(turns("What is 6 times 7?"))])
    with receiving() as receiver:
        send_run(told.history, Collector(receiver.url))
    chats = [span for span in receiver.spans if has(span).get("gen_ai.operation.name") == "chat"]
    tokens = [has(span)["gen_ai.usage.input_tokens"] for span in chats if "gen_ai.usage.input_tokens" in has(span)]
    assert tokens
    assert {*tokens} == {900_000}
    assert "It is 42." in has(chats[-1])["gen_ai.output.messages"]
    names = {event.name for span in receiver.spans for event in span.events}
    assert names >= {"chaoslab.turn_started", "chaoslab.turn_finished"}


def test_a_run_waits_while_it_is_paused_and_ends_when_it_is_stopped(tmp_path: Path) -> None:
    def steer(text: str) -> None:
        (next(tmp_path.rglob("run.json")).parent / STEERING).write_text(text)

    class Clock(SystemClock):
        async def sleep_async(self, delay_s: float) -> None:  # noqa: ARG002
            steer('{"stop": true}')

    def sums(_: Any) -> Reply:
        steer('{"hold": true}')
        return SUMS

    with pytest.raises(asyncio.CancelledError):
        session(tmp_path, [SUM, says("It is 42.")], prompts=[ASKED, ASKED], sums=sums, clock=Clock())
    history = History.read(next(tmp_path.rglob("run.json")).parent)
    assert [record.trial for record, _ in history.find_events(events.PromptStarted)] == ["p1.r1"]


def test_a_fault_is_switched_off_for_a_trial_and_on_again(tmp_path: Path) -> None:
    def next_one(number: int) -> None:
        (folder,) = (path.parent for path in tmp_path.rglob("run.json"))
        (folder / STEERING).write_text(json.dumps({"off": ["errors"] if number == 0 else []}))

    script = [SUM, says("I could not compute it."), SUM, says("It is 42."), SUM, says("I could not compute it.")]
    told = session(
        tmp_path, script, prompts=[ASKED] * 3, tool_limit=0, error_prob=1.0, error_targets=["calculator"],
        twin_of=next_one,
    )  # fmt: skip
    assert [(record.trial, off.injections) for record, off in told.history.find_events(events.FaultsOff)] == [
        ("p2.r1", ["errors"])
    ]
    assert {record.trial for record, _ in told.history.find_events(events.FaultWitnessed)} == {"p1.r1", "p3.r1"}
    (warned,) = RunReport.from_history(told.history).warnings.value
    assert "'errors' was switched off while the run went on, in p2.r1" in str(warned)
