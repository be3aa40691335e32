"""`lab.run` from a user's side: any agent, two worlds, a verdict, and one clear line for what cannot be meant."""

import asyncio
import contextlib
import functools
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.core.events import CallStarted, FaultsOff, PromptAttempt
from chaoslab.execution.agents import _calling as calling
from chaoslab.execution.workers import WorkerLost
from chaoslab.reports import show
from chaoslab.reports.places import read_history
from chaoslab.worlds.virtual.machine.context import within
from tests.reports.fake_run import summary
from tests.waiting import DEADLINE_S
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TWICE = [lab.inject("lost_reply", "refund", calls=[1])]


def lookup(order: int) -> dict[str, int]:
    return {"order": order, "price": 30}


def refund(order: int, amount: int) -> str:  # noqa: ARG001
    return "refunded"


async def message(to: str, text: str) -> str:  # noqa: ARG001
    await asyncio.sleep(0.1)
    return "sent"


def agent(prompt: str) -> str:
    """Asks again when nobody answers, as most do."""
    price = lookup(17)["price"]
    for _ in range(3):
        try:
            refund(17, price)
            return f"{prompt}: refunded {price}"
        except OSError:
            time.sleep(1)
    return "I could not refund it."


def trial_of(**options: Any) -> lab.Trial:
    given: Any = {"tools": [refund], "reads": [lookup]} | options
    return lab.run(agent, "Refund order 17", **given)


def test_a_lost_reply_doubles_a_refund_and_the_twin_tells() -> None:
    trial = trial_of(faults=TWICE)
    assert (trial.outcome, trial.why) == (lab.Outcome.HARM, "refund twice")
    assert trial.effects == [{"effect": "refund", "order": 17, "amount": 30}] * 2
    assert trial.answer == "Refund order 17: refunded 30"
    assert trial.seconds == 31.0
    assert trial.twin is not None
    assert trial.twin.effects == trial.effects[:1]
    assert trial.twin.seconds == 0.0
    recovery = trial.recovery["refund"]
    assert (recovery.ending, recovery.duration_s, recovery.since_notice_s) == ("harm", 31.0, 1.0)
    assert (trial.seed, trial.error, trial.warnings) == (1, None, ())


def test_without_a_fault_it_is_as_its_twin() -> None:
    trial = trial_of()
    assert trial.outcome is lab.Outcome.CORRECT
    assert not list(trial.history.find_events(FaultsOff))


def test_who_gives_up_is_undone_and_degraded_where_the_user_says_which_words_admit_it() -> None:
    refused = [lab.inject("refused", "refund")]
    trial = trial_of(faults=refused)
    assert (trial.outcome, trial.effects, trial.verdict.done) == (lab.Outcome.UNDONE, [], False)
    assert trial.verdict.hint == 'it seems to admit it: "I could not refund it."'
    assert trial.recovery["refund"].ending == "never"
    assert trial_of(faults=refused, says={"*": {"undone": "could not"}}).outcome is lab.Outcome.DEGRADED


def test_an_agent_without_effects_is_compared_by_its_answer() -> None:
    def asks(_: str) -> str:
        return f"It costs {lookup(17)['price']}."

    assert lab.run(asks, "How much?", reads=[lookup]).outcome is lab.Outcome.CORRECT
    wrong = lab.run(asks, "How much?", reads=[lookup], faults=[lab.inject("wrong_value", "lookup", point=0.9)])
    assert wrong.outcome is lab.Outcome.WRONG


def test_stated_effects_and_facts_need_no_twin() -> None:
    right = [{"effect": "refund", "order": 17}]
    assert trial_of(effects=right).outcome is lab.Outcome.CORRECT
    assert trial_of(effects=right).twin is None
    assert trial_of(effects=[]).why == "refund, which was not asked for"
    assert trial_of(effects=right, facts=["30"]).outcome is lab.Outcome.CORRECT
    lacking = trial_of(effects=right, facts=[["31", "thirty-one"]])
    assert (lacking.outcome, lacking.verdict.correct) == (lab.Outcome.UNKNOWN, False)
    assert lacking.why == "missing fact '31'; nothing certain tells if the answer is right"
    told = {"says": {"*": {"undone": "could not"}}}
    assert trial_of(effects=right, facts=[["31", "thirty-one"]], **told).outcome is lab.Outcome.WRONG


def test_facts_alone_say_nothing_about_effects_which_are_compared_with_the_twin() -> None:
    alone = trial_of(facts=["30"])
    assert (alone.outcome, alone.why) == (lab.Outcome.CORRECT, "all that was stated holds")
    assert trial_of(facts=["30"], faults=TWICE).why == "refund twice"
    assert trial_of(facts=["30"], faults=TWICE, twin=False).why == "refund took effect twice: its first reply was lost"
    untwinned = trial_of(facts=["30"], twin=False)
    assert untwinned.why == "all that was stated holds; nothing was stated about effects"


def test_effects_alone_say_nothing_about_the_answer_unless_the_twin_is_wanted() -> None:
    wrong = [lab.inject("wrong_value", "lookup", point=0.9)]

    def tells(_: str) -> str:
        return f"It costs {lookup(17)['price']}."

    trial = lab.run(tells, "How much?", reads=[lookup], effects=[], faults=wrong)
    assert (trial.outcome, trial.why) == (lab.Outcome.CORRECT, "all that was stated holds")
    assert lab.run(tells, "How much?", reads=[lookup], effects=[], faults=wrong, twin=True).outcome is lab.Outcome.WRONG


def balance() -> dict[str, int]:
    return {"amount": 1200}


def audit(event: str) -> None:
    """An effect, so that the trial has one."""


def test_a_lie_that_is_passed_on_is_wrong_though_every_effect_is_right() -> None:
    def teller(_: str) -> str:
        audit("balance asked")
        return f"Your balance is {balance()['amount']}."

    def trial(*faults: Any) -> lab.Trial:
        return lab.run(teller, "What have I got?", tools=[audit], reads=[balance], faults=faults)

    lied = trial(lab.inject("wrong_value", "balance"))
    assert lied.outcome is lab.Outcome.WRONG
    assert re.fullmatch(r"it says \d+ instead of 1200 \(its twin\)", lied.why)
    assert (trial().outcome, trial().why) == (
        lab.Outcome.CORRECT, "the effect and the answer are its twin's (the same answer)",
    )  # fmt: skip


def test_prose_that_cannot_be_compared_is_said_to_be_so() -> None:
    def poet(_: str) -> str:
        try:
            return f"All is {lookup(17) and 'well'}."
        except OSError:
            return "It is a fine day."

    trial = lab.run(poet, "How is it?", reads=[lookup], faults=[lab.inject("refused", "lookup")])
    assert trial.outcome is lab.Outcome.UNKNOWN
    assert (trial.why, trial.verdict.hint) == (
        "nothing certain tells if the answer is right",
        "it has its twin's values in other words",
    )


def test_who_raises_after_charging_three_times_did_harm() -> None:
    def stubborn(_: str) -> None:
        for _attempt in range(2):
            with contextlib.suppress(TimeoutError):
                refund(17, 30)
                return
        refund(17, 30)

    trial = lab.run(stubborn, "go", tools=[refund], faults=[lab.inject("lost_reply", "refund")])
    assert trial.outcome is lab.Outcome.HARM
    assert trial.why.startswith("refund 3 times; no answer: agent error (TimeoutError")


def test_ok_is_correct_and_a_trial_has_no_truth_value() -> None:
    assert trial_of().ok
    harmed = trial_of(faults=TWICE)
    assert not harmed.ok
    assert "refund twice" in harmed.story()
    assert "lost_reply" in harmed.story()
    with pytest.raises(TypeError, match=r"ask trial\.ok, or trial\.outcome"):
        bool(harmed)


class Counting:
    """A shop that counts its orders, and so keeps something from one trial to the next."""

    def __init__(self) -> None:
        self.orders = 0

    def order(self, thing: str) -> int:  # noqa: ARG002
        self.orders += 1
        return self.orders

    def __call__(self, prompt: str) -> str:
        return f"order {self.order(prompt)}"


def test_what_the_twin_leaves_behind_is_said_and_nobody_is_blamed_for_it() -> None:
    shop = Counting()
    trial = lab.run(shop, "pen", tools=[shop.order], anyway=True)
    assert trial.outcome is lab.Outcome.UNKNOWN
    assert "two runs without faults differ: its answer is 'order 1' in one and 'order 2' in the other" in trial.why
    (warning,) = trial.warnings
    assert warning.startswith("two runs without faults differ")
    assert "lab.fresh" in warning
    assert warning in trial.story()


def test_effects_that_grow_from_run_to_run_are_not_compared() -> None:
    kept: list[int] = []

    def hoards(_: str) -> str:
        kept.append(1)
        for _each in kept:
            refund(17, 30)
        return "done 1"

    with pytest.raises(lab.NoBaseline, match=r"it has 1 effect in one and 2 in the other.*anyway=True"):
        lab.run(hoards, "go", tools=[refund])
    kept.clear()
    trial = lab.run(hoards, "go", tools=[refund], anyway=True)
    assert trial.outcome is lab.Outcome.UNKNOWN
    assert trial.why.startswith(
        "its answer is its twin's, but its effects cannot be judged: two runs without faults differ"
    )
    assert trial.warnings[0].startswith("two runs without faults differ: it has 1 effect in one and 2 in the other")


def test_a_service_that_keeps_something_is_named_with_how_to_make_it_anew() -> None:
    paid: list[int] = []

    def bank(_: Any) -> tuple[int, str]:
        paid.append(1)
        return 200, f"paid {len(paid)} times"

    with pytest.raises(
        lab.NoBaseline, match=r"bank.test keeps something .*: give services=.'bank.test': lab.fresh\(make\)"
    ):
        lab.run(lambda _: httpx.post("http://bank.test/pay").text, "Pay.", services={"bank.test": bank})


@pytest.mark.parametrize("world", ["virtual", "local"])
def test_a_fresh_agent_keeps_nothing(world: str) -> None:
    made: list[Counting] = []

    def make() -> Counting:
        made.append(Counting())
        return made[-1]

    once = [lab.inject("latency", "order", delay_s=0.01)]
    trial = lab.run(lab.fresh(make), "pen", tools=[Counting.order], faults=once, world=world, twin=True)
    assert (trial.outcome, trial.answer, trial.warnings) == (lab.Outcome.CORRECT, "order 1", ())
    assert trial.effects == [{"effect": "order", "thing": "pen"}]
    assert len(made) == {"virtual": 3, "local": 2}[world]


def test_a_fresh_agent_may_be_async_hold_its_function_itself_or_be_none() -> None:
    def make() -> Any:
        tool = refund

        async def asks(_: str) -> str:
            await asyncio.sleep(1)
            return tool(17, 30)

        return asks

    trial = lab.run(lab.fresh(make), "go", tools=[refund])
    assert (trial.outcome, trial.seconds, len(trial.effects)) == (lab.Outcome.CORRECT, 1.0, 1)
    nothing = lab.run(lab.fresh(lambda: 7), "go", anyway=True)
    assert "made an int: an agent is a callable" in str(nothing.error)
    with pytest.raises(TypeError, match="fresh was given an int: it should be a function that makes the agent"):
        lab.fresh(7)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"fresh was given len .*: it should be a function without arguments that makes"
    ):
        lab.fresh(len)  # type: ignore[arg-type]


def test_a_conversation_is_answered_by_its_last_message() -> None:
    def graph(_: str) -> Any:
        return {"messages": [HumanMessage("How much?", id="1"), AIMessage(f"{lookup(17)['price']} dollars", id="2")]}

    def plain(_: str) -> Any:
        return {"messages": [{"role": "assistant", "content": f"{lookup(17)['price']} dollars"}]}

    for conversation in (graph, plain):
        trial = lab.run(conversation, "go", reads=[lookup])
        assert (trial.said, trial.outcome) == ("30 dollars", lab.Outcome.CORRECT)
        assert trial.answer == conversation("") or trial.answer["messages"]


def test_none_is_as_if_it_were_not_given() -> None:
    nothing: Any = dict.fromkeys(("reads", "faults", "services", "effects", "facts", "twin", "logs"))
    assert trial_of(**nothing).outcome is lab.Outcome.CORRECT
    assert trial_of(tools=None, reads=None).effects == []


def test_an_agent_that_raises_fails_its_trial_and_not_its_caller() -> None:
    def breaks(_: str) -> None:
        refund(17, 30)

    trial = lab.run(breaks, "go", tools=[refund], faults=TWICE)
    why = "no answer: agent error (TimeoutError: refund: no answer within its deadline)"
    assert (trial.outcome, trial.why) == (lab.Outcome.FAILED, why)
    assert isinstance(trial.error, TimeoutError)
    assert [event.status for _, event in trial.history.find_events(PromptAttempt)] == ["error"]
    assert f"p1.r1 failed: {why}" in " ".join(summary(trial.history).split())
    assert f"verdict  failed: {why}" in show.render_stories(trial.history)
    assert isinstance(lab.run(lambda _: sys.exit("no"), "go", anyway=True).error, SystemExit)


def test_an_agent_that_fails_without_faults_too_has_nothing_to_be_compared_with() -> None:
    with pytest.raises(lab.NoBaseline, match=r"it fails .ZeroDivisionError: integer division or modulo by zero"):
        lab.run(lambda _: 1 // 0, "go")
    trial = lab.run(lambda _: 1 // 0, "go", anyway=True)
    assert trial.outcome is lab.Outcome.FAILED
    assert trial.warnings == (
        "nothing to compare with, since it fails without faults too (ZeroDivisionError: integer division or modulo by "
        "zero)",
    )


# Agents of any kind.


async def async_agent(_: str) -> str:
    return await message("ana", "hello")


class Shop:
    """An agent that is an object, with methods for tools."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, to: str) -> None:
        self.sent.append(to)

    def __call__(self, prompt: str) -> str:
        self.send("ana")
        return prompt

    async def later(self, prompt: str) -> str:
        self.send("ana")
        return prompt


@dataclass
class Result:
    to: str = field(default_factory=lambda: "ana")
    said: str = "paid"
    _raw: int = 2


class Public:
    def __init__(self) -> None:
        self.said, self._raw = "paid", 2


class Slotted:
    """As attrs makes them."""

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said = "paid"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.said == self.said

    __hash__ = None  # type: ignore[assignment]


class Worded:
    def __init__(self, says: str | None = "paid") -> None:
        self._says = says

    def __str__(self) -> str:
        return self._says  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "text", "readable"),
    [
        ("paid", "paid", True), ("", "", True), (None, "null", False), (3.5, "3.5", True), (["é"], '["é"]', True),
        (Result(), '{"to": "ana", "said": "paid"}', True), (Result, '{"said": "paid"}', True),
        (Public(), '{"said": "paid"}', True), (Slotted(), '{"said": "paid"}', True), (Worded(), "paid", True),
        (ValueError("bad"), "ValueError: bad", True), (object(), "a builtins.object", False),
        (Worded(None), f"a {__name__}.Worded", False), ([Public()], '[{"said": "paid", "_raw": 2}]', True),
    ],
)  # fmt: skip
def test_an_answer_is_text_by_its_public_content(answer: Any, text: str, readable: bool) -> None:
    assert (calling.render_answer(answer).strip('"'), calling.is_readable_answer(answer)) == (text, readable)


@pytest.mark.parametrize("world", ["virtual", "local"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: (agent, refund),
        lambda: (async_agent, message),
        lambda: (functools.partial(lambda greeting, prompt: refund(1, len(greeting + prompt)), "hello"), refund),
        lambda: ((shop := Shop()), shop.send),
        lambda: ((shop := Shop()).later, shop.send),
    ],
    ids=["function", "coroutine function", "partial", "object", "async method"],
)
def test_any_callable_is_an_agent(make: Callable[[], tuple[Any, Any]], world: str) -> None:
    chosen, tool = make()
    trial = lab.run(chosen, "go", tools=[tool], world=world, effects=[])
    assert [call.target for _, call in trial.history.find_events(CallStarted)] == [tool.__name__]
    assert trial.error is None


def test_real_time_is_real_and_faults_are_the_same() -> None:
    fault = lab.inject("latency", "refund", delay_s=0.05, stream="upstream")
    real, virtual = (trial_of(faults=[fault], world=world, effects=[]) for world in ("local", "virtual"))
    assert virtual.seconds == 0.05 <= real.seconds
    kinds = [[record.event.kind for record in trial.history.records] for trial in (real, virtual)]
    assert kinds[0] == kinds[1]
    assert trial_of(world="local").twin is None
    assert trial_of(world="local", twin=True).outcome is lab.Outcome.CORRECT


def test_who_would_wait_for_ever_is_hung_at_once_and_said() -> None:
    async def waits(_: str) -> None:
        refund(17, 30)
        await asyncio.Event().wait()

    trial = lab.run(waits, "go", tools=[refund], anyway=True)
    assert trial.outcome is lab.Outcome.HUNG
    assert "nothing is ready and nothing is due" in trial.why
    assert "tests.test_trial.waits" in trial.why
    assert (trial.error, trial.answer, len(trial.effects)) == (None, None, 1)
    assert "hung" in summary(trial.history)


def test_who_passes_the_deadline_is_hung() -> None:
    def polls(_: str) -> None:
        while True:
            time.sleep(100)

    trial = lab.run(polls, "go", deadline_s=1000, effects=[])
    assert (trial.outcome, trial.seconds) == (lab.Outcome.HUNG, 1000.0)
    assert trial.why.startswith("not over after 1000 s of virtual time; the agent waits in time.sleep(100)")


def test_within_a_running_loop_it_works_and_leaves_the_loop_as_it_was() -> None:
    async def notebook() -> list[lab.Outcome]:
        loop = asyncio.get_running_loop()
        found = [lab.run(async_agent, "go", tools=[message], world=world, effects=[]) for world in ("virtual", "local")]
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return [trial.outcome for trial in found]

    assert asyncio.run(notebook()) == [lab.Outcome.HARM] * 2


def test_another_thread_is_told_to_wait_its_turn() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def holds(_: str) -> None:
        inside.set()
        go_on.wait(DEADLINE_S)

    first = threading.Thread(target=lambda: lab.run(holds, "go", world="local"))
    first.start()
    try:
        assert inside.wait(DEADLINE_S)
        with pytest.raises(RuntimeError, match="another trial is under way in this process"):
            trial_of(world="local")
    finally:
        go_on.set()
        first.join()
    assert trial_of(world="local").error is None


def weather(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    time.sleep(0.25)
    return [environ["PATH_INFO"][-5:].encode()]


def test_a_service_stands_on_the_virtual_network_under_its_name() -> None:
    async def asks(_: str) -> str:
        async with httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.get(f"http://weather/{city}") for city in ("paris", "milan")))
            refund(17, 30)
        return " ".join(answer.text for answer in answers)

    trial = lab.run(asks, "go", tools=[refund], services={"weather": weather}, effects=[{"effect": "refund"}])
    assert (trial.answer, trial.outcome) == ("paris milan", lab.Outcome.CORRECT)
    assert 0.25 <= trial.seconds < 0.3


def test_what_leads_out_of_the_virtual_world_is_named_in_one_line_whatever_the_agent_makes_of_it() -> None:
    async def asks(_: str) -> str:
        try:
            async with httpx.AsyncClient() as client:
                await client.get("http://nobody.invalid/")
        except BaseException:  # noqa: BLE001
            return "never mind"
        return "answered"

    with pytest.raises(
        BaseException,
        match=r"the host nobody.invalid .*time: pass a fake .*files services: {nobody.invalid: module:name}",
    ) as told:
        lab.run(asks, "go", effects=[])
    assert "\n" not in str(told.value)
    assert trial_of().outcome is lab.Outcome.CORRECT


# What is put back, and what was not found.


def test_everything_is_as_before_whatever_becomes_of_the_trial() -> None:
    before = refund, lookup, time.sleep, time.monotonic
    shop = Shop()

    def leaves(_: str) -> None:
        with within(None):  # the user's Ctrl-C
            signal.raise_signal(signal.SIGINT)

    trial_of(faults=TWICE)
    lab.run(shop, "go", tools=[shop.send])
    with pytest.raises(KeyboardInterrupt):
        print(lab.run(leaves, "go", tools=[refund], reads=[lookup], effects=[]), signal.getsignal(signal.SIGINT))
    assert (refund, lookup, time.sleep, time.monotonic) == before
    assert "send" not in vars(shop)


@pytest.mark.parametrize("world", ["virtual", "local"])
def test_a_signal_has_its_handler_again_after_the_trial(world: str) -> None:
    def listens(_: str) -> str:
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        return "done"

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGUSR1)]
    assert lab.run(listens, "go", world=world, effects=[]).answer == "done"
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGUSR1)] == before


def test_an_agent_may_do_with_the_list_of_its_tools_what_it_likes() -> None:
    before, todo, done = refund, [refund], []

    def works_off(_: str) -> str:
        while todo:
            done.append(todo.pop())
            done[-1](17, 30)
        return str(refund(18, 30))

    trial = lab.run(works_off, "go", tools=[refund], effects=[])
    assert (trial.error, [effect["order"] for effect in trial.effects]) == (None, [17, 18])
    assert (refund, todo, done[0](17, 30)) == (before, [], "refunded")


def test_a_function_behind_a_cache_is_seen_when_it_is_called() -> None:
    cached = functools.lru_cache(refund)
    trial = lab.run(lambda _: cached(17, 30), "go", tools=[refund], effects=[])
    assert (len(trial.effects), trial.warnings) == (1, ())
    again = lab.run(lambda _: cached(17, 30), "go", tools=[refund], effects=[])
    assert (again.effects, len(again.warnings)) == ([], 1)
    assert again.warnings[0].startswith("refund was never called")


def test_an_object_without_code_that_the_agent_has_no_way_to_is_said() -> None:
    cached = functools.lru_cache(refund)
    trial = lab.run(lambda prompt: prompt, "go", tools=[cached], effects=[])
    assert trial.warnings[0].startswith("no reference to refund was found that the agent can reach")
    assert "warning  no reference to refund" in show.render_stories(trial.history)


AGENTS = "a callable, or a LangChain Runnable, or an OpenAI Agents Agent, or a Pydantic AI Agent"
CALLED = "was never called, neither in the trial nor in its twin: the agent had no use for it, or calls another object"


def could_tell(prompt: str) -> Any:
    return agent(prompt) or message("ana", "refunded")


def test_a_function_that_nobody_called_is_said_and_what_could_hit_nothing_for_that(tmp_path: Path) -> None:
    chance = lab.inject("latency", "message", chance=0.5)
    either = lab.inject("refused", ["refund", "message"], chance=0.5)
    given: dict[str, Any] = {"tools": [refund, message], "reads": [lookup]}
    trial = lab.run(could_tell, "go", faults=[chance, either, *TWICE], logs=tmp_path, **given)
    assert trial.warnings == (f"message {CALLED}; latency on message could hit nothing",)
    assert f"warning  message {CALLED}" in show.render_stories(read_history("latest", logs=tmp_path))
    several = lab.run_many(could_tell, "go", trials=2, jobs=2, **given)
    assert [each.warnings for each in several] == [(f"message {CALLED}",)] * 2


def reserve(day: str) -> str:
    return f"reserved for {day}"


def test_what_was_called_in_the_twin_or_in_the_trial_was_called() -> None:
    """An agent that gives up over one function calls another, and not the next."""

    def asks(_: str) -> str:
        try:
            refund(17, lookup(17)["price"])
        except OSError:
            reserve("2026-06-02")
        return "done"

    trial = lab.run(asks, "go", tools=[refund, reserve], reads=[lookup], faults=[lab.inject("refused", "lookup")])
    assert trial.warnings == ()


def test_several_that_nobody_called_are_one_line_and_without_a_twin_too() -> None:
    def idle(_: str, use: bool = False) -> str:
        return str([refund(1, 1), reserve(""), lookup(1)]) if use else "nothing to do"

    trial = lab.run(idle, "go", tools=[refund, reserve], reads=[lookup], effects=[])
    assert trial.warnings == (
        "refund, reserve and lookup were never called: the agent had no use for them, or calls other objects",
    )


def test_a_tool_of_langchain_that_nobody_called_is_said() -> None:
    tool = StructuredTool.from_function(func=reserve, description="Reserves a day.")
    assert trial_of(tools=[refund, tool]).warnings == (f"reserve {CALLED}",)


def test_a_fault_that_never_came_up_makes_its_trial_invalid_and_is_said(tmp_path: Path) -> None:
    trial = trial_of(faults=[lab.inject("latency", "refund", calls=[1, 4], delay_s=1)], logs=tmp_path)
    why = "'latency on refund' is for request 4 of refund, and there were 1"
    assert (trial.outcome, trial.why) == (lab.Outcome.INVALID, why)
    told = show.render_stories(read_history("latest", logs=tmp_path))
    assert "refund 4 NOT REACHED by latency on refund" in told
    assert f"invalid: {why}" in told

    twice = trial_of(
        faults=[lab.inject("tool_error", "refund", calls=[1], status=503), lab.inject("refused", "refund", calls=[1])]
    )
    assert twice.why == "'refused on refund' is for request 1 of refund, which another fault took first"

    for nothing_amiss in (
        lab.inject("latency", "refund", calls=[1], delay_s=1),
        lab.inject("budget", "refund", calls=[1], seconds=60),
    ):
        assert trial_of(faults=[nothing_amiss]).outcome is lab.Outcome.CORRECT


# Many trials.


def test_many_trials_have_dice_of_their_own_and_one_twin() -> None:
    faults = [lab.inject("refused", "refund", chance=0.5)]
    options: Any = {"tools": [refund], "reads": [lookup], "faults": faults, "seed": 7}
    found = list(lab.run_many(agent, "go", trials=40, **options))
    assert [trial.key for trial in found] == [f"p1.r{n}" for n in range(1, 41)]
    assert {str(trial.outcome) for trial in found} == {"correct", "undone"}
    assert {id(trial.twin) for trial in found} == {id(found[0].twin)}
    alone = lab.run(agent, "go", **options)
    assert (alone.seconds, alone.effects) == (found[0].seconds, found[0].effects)


def test_two_processes_bring_the_same_events_in_the_same_order() -> None:
    faults = [lab.inject("lost_reply", "refund", chance=0.4), lab.inject("latency", "lookup", chance=0.4)]
    options: Any = {"tools": [refund], "reads": [lookup], "faults": faults}
    alone = [trial.history.records for trial in lab.run_many(agent, "go", trials=30, **options)]
    taken = list(lab.run_many(agent, "go", trials=30, jobs=2, **options))
    there = [trial._result.verdict for trial in taken]  # judged where they ran, and the events were not read since
    apart = [trial.history.records for trial in taken]
    assert there == [judge_trial(trial.history, trial.key) for trial in taken]
    assert {name for trial in taken for name in trial.met} == {each.name for each in faults}
    assert apart == alone


@pytest.mark.parametrize("options", [{}, {"jobs": 2}])
def test_trials_that_nobody_ends_end_with_the_process_in_silence(options: dict[str, Any]) -> None:
    """Nor do they load the measures of whole runs, which would take a third of the time."""
    program = (
        f"import sys, chaoslab as lab\nleft = lab.run_many(lambda _: 'done', 'go', trials=4, **{options})\n"
        "print(next(left).answer, 'chaoslab.analysis.measures._findings' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done False\n", "")


class Strange(Exception):
    """Cannot be made from what it was made with, as many an SDK's errors."""

    def __init__(self, *, status: int) -> None:
        super().__init__(f"status {status}")


def test_two_processes_bring_what_an_agent_failed_by_even_if_it_cannot_be_made_again() -> None:
    def strange(_: str) -> None:
        raise Strange(status=7)

    faults = [lab.inject("tool_error", "refund", status=503)]
    met = [trial.error for trial in lab.run_many(agent, "go", trials=4, jobs=2, tools=[refund], faults=faults)]
    assert [type(error) for error in met] == [lab.ToolError] * 4
    assert {str(error) for error in met} == {"503 Service Unavailable"}
    told = [trial.error for trial in lab.run_many(strange, "go", trials=4, jobs=2, anyway=True)]
    assert [repr(error) for error in told] == ["RuntimeError('Strange: status 7')"] * 4


def test_an_answer_that_cannot_be_made_again_is_not_taken_for_a_worker_that_died() -> None:
    def strange(_: str) -> Exception:
        return Strange(status=7)

    with pytest.raises(TypeError, match="Strange"):
        list(lab.run_many(strange, "go", trials=4, jobs=2))


@pytest.mark.parametrize(
    "other", [{"timeout_s": 5}, {"deadline_s": 60}, {"calls_max": 5}, {"facts": ["30"]},
              {"effects": [{"effect": "refund"}]}, {"seed": 2}, {"ignore": ["order"]}, {"raises": "httpx"}],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_runs_that_may_differ_have_names_of_their_own(other: dict[str, Any]) -> None:
    def run_of(**given: Any) -> str | None:
        return trial_of(**given).history.records[0].run

    assert run_of() == run_of() != run_of(**other)


def test_effects_that_are_stated_are_right_whatever_the_twin_does() -> None:
    def agent(_: str) -> str:
        return refund(17, 30)

    trial = lab.run(agent, "go", tools=[refund], effects=[], twin=True)
    assert (trial.outcome, trial.why) == ("harm", "refund, which was not asked for")


def test_a_generator_is_an_agent_that_streams_its_answer() -> None:
    def parts(_: str) -> Iterator[str]:
        yield "It is "
        yield "done."

    trial = lab.run(parts, "go", facts=["done"])
    assert trial.answer == "It is done."
    assert [event.error for _, event in trial.history.find_events(PromptAttempt)] == [""]
    assert lab.run(lambda _: (part for part in ["It is ", 7]), "go").answer == ["It is ", 7]


def test_a_trial_that_kills_its_process_is_named_and_those_before_it_are_had() -> None:
    def deadly(_: str) -> None:
        try:
            refund(17, 30)
        except OSError:
            with within(None):  # as a crash in C: the world would refuse it
                signal.raise_signal(signal.SIGKILL)

    faults = [lab.inject("refused", "refund", chance=0.1)]
    had: list[str] = []
    named = r"^p1\.r\d+ kills the process that does it, 2 times in 2 \(SIGKILL\)$"
    with pytest.raises(WorkerLost, match=named) as lost:
        had.extend(
            trial.key for trial in lab.run_many(deadly, "go", trials=60, jobs=2, seed=2, tools=[refund], faults=faults)
        )
    assert had == [f"p1.r{n + 1}" for n in range(len(had))] != []
    assert str(lost.value).startswith(f"p1.r{len(had) + 1} ")


@pytest.fixture
def another_thread() -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join(5)


@pytest.mark.usefixtures("another_thread")
def test_beside_another_thread_processes_bring_the_same_of_what_no_module_holds() -> None:
    """As in a notebook."""

    def local(_: str) -> str:
        return f"{refund(17, 30)} {lookup(17)}"

    def run_with(jobs: int) -> list[Any]:
        trials = lab.run_many(local, "go", trials=4, jobs=jobs, tools=[refund], reads=[lookup])
        return [trial.history.records for trial in trials]

    assert run_with(2) == run_with(1)


def test_what_an_agent_leaves_to_chance_repeats_with_the_seed() -> None:
    def dices(_: str) -> str:
        return f"{random.random()} {time.time()}"

    first, again, other = (lab.run(dices, "go", seed=seed) for seed in (1, 1, 2))
    assert first.answer == again.answer != other.answer
    assert first.outcome is lab.Outcome.CORRECT


def test_a_run_folder_is_read_by_the_rest_of_the_lab_and_equal_runs_have_equal_bytes(tmp_path: Path) -> None:
    for place in ("a", "b"):
        list(lab.run_many(agent, "go", trials=3, tools=[refund], reads=[lookup], faults=TWICE, logs=tmp_path / place))
    bytes_of = {(tmp_path / place / "latest" / "info.log").read_bytes() for place in ("a", "b")}
    assert len(bytes_of) == 1
    history = read_history("latest", logs=tmp_path / "a")
    assert "harm" in summary(history)
    assert show.render_stories(history).count("verdict  harm: refund twice") == 3
    lines = [json.loads(line) for line in bytes_of.pop().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["kind"] == "run_finished"
    assert lines[-1]["t"] == 93.0


# What cannot be meant.


def wrong(value: Any) -> Any:
    """For what no type checker would let pass."""
    return value


def book(day: str) -> str:
    """Books a table."""
    return day


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lab.inject("latncy", "refund"), LookupError, "no fault is called 'latncy': did you mean 'latency'?"),
    (lambda: lab.inject("latency", "refund", delay=2), ValueError,
     "latency has no parameter 'delay': did you mean 'delay_s'?"),
    (lambda: lab.inject("refused", "refund", after_s=2), ValueError, "refused has no parameter 'after_s': it has none"),
    (lambda: lab.inject("latency", "refund", delay_s=-1), ValueError,
     "delay_s of latency is -1: it should be a number, 0 or more"),
    (lambda: lab.inject("latency", "refund", delay_s="2"), ValueError,
     "delay_s of latency is '2': it should be a number, 0 or more"),
    (lambda: lab.inject("latency", "refund", stream="up"), ValueError, "it should be '' or 'upstream' or 'downstream'"),
    (lambda: lab.inject("tool_error", "refund", status=4.5), ValueError, "4.5: it should be a whole number, 0 or more"),
    (lambda: lab.inject("budget", "refund", calls_max=3, mode="weak"), ValueError,
     "mode of budget is 'weak': it should be 'hard' or 'soft'"),
    (lambda: lab.inject("latency", "refund", chance=2), ValueError,
     "chance of latency on refund is 2: it should be a number from 0 to 1"),
    (lambda: lab.inject("latency", "refund", calls=[0]), ValueError,
     "is [0]: it should be requests' numbers, as in [1, 3]"),
    (lambda: lab.inject("latency", "refund", calls=1), ValueError,
     "is 1: it should be requests' numbers, as in [1, 3]"),
    (lambda: lab.inject("latency", ""), ValueError,
     "latency has the target '': it should be the name of a function or service"),
    (lambda: lab.inject("latency", wrong(None)), ValueError,
     "latency has the target None: it should be the name of a function or service"),
    (lambda: lab.inject("latency", wrong(refund)), ValueError, ">: it should be the name of a function or service"),
    (lambda: lab.inject(wrong(None), "refund"), TypeError,
     "fault is None: it should be the name of a fault, as in 'latency'"),
    (lambda: lab.inject(wrong(["latency"]), "refund"), TypeError,
     "fault is ['latency']: it should be the name of a fault"),
    (lambda: lab.inject("latency", "refund", name=wrong(3)), TypeError,
     "name of latency on refund is 3: it should be a text"),
    (lambda: lab.inject("refusal", "refund", text=3), ValueError, "text of refusal is 3: it should be a text"),
    (lambda: lab.inject("missing_arguments", "refund", all=1), ValueError,
     "all of missing_arguments is 1: it should be True or False"),
    (lambda: lab.inject("tool_error", "refund", status=200), ValueError,
     "status of tool_error is 200: it should be an error's, from 400"),
    (lambda: trial_of(faults=[lab.inject("truncate_context", "refund")]), ValueError, "refund is no model"),
    (lambda: trial_of(faults=[lab.inject("cut", "ref*")]), ValueError,
     "cut works on a stream of events, and refund is a function: aim it at a service"),
    (lambda: trial_of(faults=[lab.inject("latency", "refnud")]), LookupError,
     "no function or service 'refnud' to hit: did you mean 'refund'?"),
    (lambda: trial_of(faults=["latency"]), ValueError,
     "faults has 'latency' in it: it should be lab.inject(fault, target, …)"),
    (lambda: trial_of(faults=TWICE[0]), TypeError,
     "…: it should be a list, as in [lab.inject(\"latency\", \"refund\")]"),
    (lambda: trial_of(faults="latency"), TypeError, "faults is 'latency': it should be a list, as in [lab.inject("),
    (lambda: trial_of(faults=TWICE * 2), ValueError,
     "two injections are called 'lost_reply on refund': give one of them another name="),
    (lambda: trial_of(world="compose"), ValueError, "functions cannot be moved into containers"),
    (lambda: trial_of(limits={"fault": 1}), ValueError, "limits has no key 'fault': did you mean 'faults'?"),
    (lambda: lab.run_many(lambda _: "x", "go", trials=2, keep="som"), ValueError,
     "keep is 'som': it should be 'all' or 'failed'"),
    (lambda: trial_of(says=lambda _: 1 / 0), lab.NoBaseline,
     "says= cannot read its answer (ZeroDivisionError"),
    (lambda: trial_of(world="vrtual"), ValueError,
     "world is 'vrtual': it should be 'virtual' (a clock that jumps) or 'local' (real time)"),
    (lambda: trial_of(seed="x"), ValueError, "seed is 'x': it should be a whole number from 0 to 9223372036854775807"),
    (lambda: trial_of(seed=10**30), ValueError,
     "seed is 1000000000000000000000000000000: it should be a whole number from 0 to"),
    (lambda: trial_of(timeout_s=10**400), ValueError, "0…: it should be a number of seconds above 0"),
    (lambda: trial_of(timeout_s=0), ValueError, "timeout_s is 0: it should be a number of seconds above 0"),
    (lambda: trial_of(calls_max=0), ValueError,
     "calls_max is 0: it should be a whole number from 1 to 9223372036854775807"),
    (lambda: trial_of(calls_max=1e4), ValueError, "calls_max is 10000.0: it should be a whole number from 1 to"),
    (lambda: trial_of(tools=[refund, "refund"]), TypeError,
     "tools has 'refund' in it: it should be a function, or a framework's tool ("),
    (lambda: trial_of(tools=refund), TypeError, "tools is <function refund at "),
    (lambda: trial_of(tools=refund), TypeError, ">: it should be a list, as in [refund]"),
    (lambda: trial_of(reads={lookup}), TypeError, "}: it should be a list, as in [refund]"),
    (lambda: trial_of(tools=StructuredTool.from_function(func=book)), TypeError,
     "…: it should be a list, as in [book]"),
    (lambda: trial_of(tools=[refund, lookup]), ValueError, "two of tools, reads and services are called 'lookup'"),
    (lambda: trial_of(effects=[{"effect": "refunds"}]), LookupError,
     "effects names 'refunds', which is no tool: did you mean 'refund'?"),
    (lambda: trial_of(effects=[{"effect": "refund", "ordr": 1}]), LookupError,
     "'ordr', no parameter of refund: did you mean 'order'?"),
    (lambda: trial_of(effects=[{"effect": "lookup"}]), LookupError,
     "effects names 'lookup', which is no tool: known are refund"),
    (lambda: trial_of(effects="x"), TypeError,
     "effects is 'x': it should be a list, as in [{'effect': 'refund', 'order': 17}]"),
    (lambda: trial_of(effects={"effect": "r"}), TypeError,
     "effects is {'effect': 'r'}: it should be a list, as in [{'effect': 'r'}]"),
    (lambda: trial_of(effects=["r"]), TypeError,
     "effects has 'r' in it: it should be as in {'effect': 'refund', 'order': 17}"),
    (lambda: trial_of(effects=[{"a": 1}]), TypeError,
     "effects has {'a': 1} in it: it should be as in {'effect': 'refund', 'order': 17}"),
    (lambda: trial_of(facts="booked"), TypeError, "facts is 'booked': it should be a list, as in ['booked']"),
    (lambda: trial_of(facts=30), TypeError, "facts is 30: it should be a list, as in ['30']"),
    (lambda: trial_of(facts=[""]), TypeError,
     "facts has '' in it: it should be a text, as in '30', or a list of spellings"),
    (lambda: trial_of(facts=[[]]), TypeError,
     "facts has [] in it: it should be a text, as in '30', or a list of spellings"),
    (lambda: trial_of(facts=["30", ["31", " "]]), TypeError,
     "facts has ['31', ' '] in it: it should be a text, as in '30', or a list"),
    (lambda: trial_of(facts=[3]), TypeError,
     "facts has 3 in it: it should be a text, as in '30', or a list of spellings"),
    (lambda: trial_of(twin="yes"), TypeError, "twin is 'yes': it should be True, False or None"),
    (lambda: trial_of(resumes=3), ValueError, "resumes=3 is how often resume_with goes on: give resume_with="),
    (lambda: trial_of(logs=3), TypeError, "logs is 3: it should be a folder, as in 'logs'"),
    (lambda: trial_of(logs=""), ValueError, "logs is '': it should be a folder, as in 'logs'"),
    (lambda: trial_of(logs="a\0b"), ValueError, "logs is 'a\\x00b': it should be a folder, as in 'logs'"),
    (lambda: trial_of(faults=[lab.inject("truncate_context", "m", keep=7)]), ValueError,
     "keep of truncate_context is 7: it should be a number from 0 to 1"),
    (lambda: trial_of(faults=[lab.inject("wrong_value", "refund", point=5)]), ValueError,
     "point of wrong_value is 5: it should be a number from -1 to 1"),
    (lambda: lab.run(7, "go"), TypeError, f"agent is an int: it should be {AGENTS}"),
    (lambda: lab.run(lambda: "x", "go"), TypeError,
     "agent is <lambda>, which cannot be called with the prompt alone (too many positional arguments); what makes an "
     "agent is given as fresh"),
    (lambda: lab.run(lambda _prompt, _history: "x", "go"), TypeError,
     "agent is <lambda>, which cannot be called with the prompt alone (missing a required argument: '_history')"),
    (lambda: lab.run(Path, "go"), TypeError,
     "agent is the class Path: it should be an object of it, or lab.fresh(…) of a function that makes one"),
    (lambda: trial_of(services=["a"]), TypeError,
     "services is ['a']: it should be applications by host name, as in {'bank': app}"),
    (lambda: trial_of(services={"a": None}), TypeError, "services has None as 'a': it should be a WSGI or"),
    *(
        (functools.partial(trial_of, services={name: weather}), ValueError,
         f"services has the name {name!r}: it should be a host name alone")
        for name in (3, "", "http://a", "a b", "a:", "Bank", "b\u00e4nk", "a/")
    ),
    (lambda: trial_of(services={"https://api.openai.com/v1": weather}), ValueError, "as in 'api.openai.com'"),
    (lambda: trial_of(services={"a:0": weather}), ValueError,
     "services has the name 'a:0': its port should be from 1 to 65535"),
    (lambda: trial_of(services={"a": weather, "a:443": weather}), ValueError,
     "services has two at a:443: 'a' and 'a:443'; leave one of them out"),
    (lambda: trial_of(services={"a": dict}), TypeError, "as 'a': it is a class: give what it makes, as in dict(…)"),
    (lambda: trial_of(services={"a": lambda: 1}), TypeError, "as 'a': it takes 0 arguments: it should be a WSGI or"),
    (lambda: trial_of(elsewhere="ignore"), ValueError, "elsewhere is 'ignore': it should be 'refuse' ("),
    (lambda: trial_of(elsewhere="unreachable", world="local"), ValueError, "it needs world='virtual'"),
    (lambda: trial_of(effects=[], facts=["1"], twin=True), ValueError, "leave one of them out"),
    (lambda: trial_of(world="local", services={"weather": lambda *_: []}), ValueError, "they need world='virtual'"),
    (lambda: trial_of(services={"weather": weather}, faults=[lab.inject("latency", "wether")]), LookupError,
     "has no function or service 'wether' to hit: did you mean 'weather'?"),
    (lambda: trial_of(services={"w": weather}, faults=[lab.inject("refused", "w", when="amount > 1")]), ValueError,
     "'refused on w' refuses connections to the service w, which are made before a request tells its arguments: "
     "leave out when="),
    (lambda: trial_of(services={"w": weather}, faults=[lab.inject("refused", "*", tool="GET /*")]), ValueError,
     "'refused on *' refuses connections to the service w, which are made before a request tells its tool: "
     "leave out tool="),
    (lambda: trial_of(services={"w": weather}, faults=[lab.inject("truncate_context", "w")]), ValueError,
     "truncate_context works on the messages that a model is sent, and w is no model: aim it at a service that is one"),
    (lambda: trial_of(services={"w": weather, "m": lab.offline_model()}, faults=[lab.inject("refusal", "w")]),
     ValueError, "refusal works on the answers of a model, and w is no model: aim it at m"),
    (lambda: trial_of(services={"w": weather, "m": lab.offline_model()}, faults=[lab.inject("empty", ["w", "m"])]),
     ValueError, "empty works on the answers of tools, and m is a model: inject confabulation or garbled_answer"),
    (lambda: lab.run("agent", "go"), TypeError, f"agent is a str: it should be {AGENTS}"),
    (lambda: lab.run_many(agent, "go", trials=0), ValueError, "trials is 0: it should be a whole number from 1 to"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "line"), MISTAKES, ids=[line[:40] for _, _, line in MISTAKES])
def test_a_mistake_is_one_clear_line(mistake: Callable[[], Any], kind: type[Exception], line: str) -> None:
    with pytest.raises(kind) as told:
        mistake()
    assert line in str(told.value.args[0])
    assert "\n" not in str(told.value)


def test_the_front_door_is_light_and_leads_to_all_that_it_names() -> None:
    program = "import sys, chaoslab; print(*sorted(m for m in sys.modules if m.startswith('chaoslab')))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["chaoslab"]
    assert [name for name in lab.__all__ if not hasattr(lab, name)] == []
    assert set(lab.__all__) <= set(dir(lab))
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = lab.runn  # type: ignore[attr-defined]


def test_an_agent_that_fails_has_said_nothing() -> None:
    def agent(prompt: str) -> str:
        if prompt == "fail":
            raise ValueError(prompt)
        return prompt

    given: dict[str, Any] = {"effects": [], "facts": [], "anyway": True}
    assert [lab.run(agent, prompt, **given).said for prompt in ("go", "fail")] == ["go", None]
