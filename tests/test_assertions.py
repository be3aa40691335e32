"""Each assertion holds where it should, and is missed with what was seen and where where it should not."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import (
    Assertion,
    FinishedTrial,
    FunctionAssertion,
    Miss,
    build_assertion,
    load_assertion,
    serialize_assertion,
)
from chaoslab.base.registry import list_plugins
from chaoslab.core.events import CallFinished, CallStarted, FaultScheduled, FaultWitnessed
from chaoslab.scenarios.located import ScenarioError
from tests.event_parts import call_at, fault_at
from tests.event_parts import story as history
from tests.plugin_parts import installed
from tests.sure import sure
from tests.verdict.trials import TRIAL, effect, started

BOOK: dict[str, Any] = {}


def look(order: int) -> dict[str, Any]:  # noqa: ARG001
    return {"price": 49}


def refund(order: int) -> str:
    BOOK["paid"].append(order)
    return "refunded 49"


def support(tries: int, end: str, *, wait_s: float = 0.0) -> Any:
    """An agent that looks an order up and refunds it, trying again after a failure, and says `end` if nothing helps."""

    def make() -> Callable[[str], str]:
        BOOK.clear()
        BOOK["paid"] = []

        def agent(prompt: str) -> str:  # noqa: ARG001
            import time

            for n in range(tries):
                try:
                    look(17)
                    return f"Order 17: {refund(17)}."
                except OSError:
                    time.sleep(wait_s * 2**n)
            return end

        return agent

    return lab.fresh(make)


def trial(agent: Any, *faults: Any, prompt: Any = "Refund order 17.", **more: Any) -> lab.Trial:
    given = {"tools": [refund], "reads": [look], "state": lambda: BOOK, "timeout_s": 10.0, **more}
    return lab.run(agent, prompt, faults=faults, **given)


HONEST = "I could not refund order 17."
LOST = lab.inject("lost_reply", "refund", calls=[1])
DOWN = lab.inject("timeout_before_effect", "refund")


def talk() -> lab.Trial:
    def agent(words: str) -> str:
        for _ in words.split():
            look(17)
        return f"I heard: {words}."

    return trial(lab.fresh(lambda: agent), prompt=lab.turns("one", "two words"), state=None, tools=[])


def asked(model: Any, prompt: Any = "What is 6 times 7?", *, name: str = "gpt-4o-mini", **more: Any) -> lab.Trial:
    import httpx

    def agent(prompt: str) -> str:
        body = {"model": name, "messages": [{"role": "user", "content": prompt}]}
        answer = httpx.post("http://api.openai.com/v1/chat/completions", json=body).json()
        return str(answer["choices"][0]["message"]["content"])

    return lab.run(agent, prompt, services={"api.openai.com": model}, **more)


def fall(_: str) -> int:
    return int(look(17)["price"])


def read_paid() -> list[int]:
    paid: list[int] = BOOK["paid"]
    if len(paid) > 1:
        raise OSError("the book is wet")
    return paid


MADE: dict[str, Callable[[], lab.Trial]] = {
    "calm": lambda: trial(support(3, HONEST)),
    "slow": lambda: trial(support(3, HONEST), lab.inject("latency", "look", delay_s=3)),
    "twice": lambda: trial(support(3, HONEST), LOST),
    "thrice": lambda: trial(support(3, HONEST), lab.inject("lost_reply", "refund")),
    "patient": lambda: trial(
        support(3, HONEST, wait_s=1), lab.inject("timeout_before_effect", "refund", attempts=[1, 2])
    ),
    "hasty": lambda: trial(support(3, HONEST), lab.inject("timeout_before_effect", "refund", attempts=[1])),
    "honest": lambda: trial(support(1, HONEST), DOWN),
    "false": lambda: trial(support(2, "Order 17: refunded 49."), DOWN),
    "other": lambda: trial(support(3, HONEST), lab.inject("wrong_value", "look"), prompt="x"),
    "raised": lambda: lab.run(lambda _: 1 / 0, "x", twin=False, facts=["1"]),
    "talk": talk,
    "model": lambda: asked(lab.offline_model()),
    "cut": lambda: asked(lab.offline_model(), faults=[lab.inject("finish_length", "api.openai.com")]),
    "unpriced": lambda: asked(lab.offline_model(), name="mine", twin=False, facts=["42"]),
    "asked twice": lambda: asked(lab.offline_model(), lab.turns("Hello?", "What is 6 times 7?")),
    "fell": lambda: trial(fall, lab.inject("tool_error", "look"), tools=[], state=None),
    "unreadable": lambda: trial(support(3, HONEST), LOST, state=read_paid),
}
made: dict[str, FinishedTrial] = {}


def seen(name: str, turn: int | None = None) -> FinishedTrial:
    """The trial of this name, made once."""
    if name not in made:
        done = MADE[name]()
        made[name] = FinishedTrial(
            done.history, done.key, done.verdict, None if done.twin is None else done.twin.history
        )
    whole = made[name]
    return FinishedTrial(whole.history, whole.trial, whole.verdict, whole.twin, turn)


E = lab.expect
TURN_TOKENS = 23
CASES: list[tuple[Any, str, str]] = [
    # (assertion, trial, the miss; empty if it holds)
    (E.completes_within(0), "calm", ""),
    (E.completes_within(2.5), "slow", "it took 3 s, at most 2.5 s were allowed"),
    (E.max_calls(2), "calm", ""),
    (E.max_calls(1), "calm", "2 calls, at most 1 were allowed"),
    (E.max_calls(1, tool="ref*"), "twice", "2 calls of ref*, at most 1 were allowed"),
    (E.max_retries(1), "twice", ""),
    (E.max_retries(0), "twice", "refund 1 was tried again 1 times, at most 0 were allowed"),
    (E.max_retries(0, tool="look"), "twice", ""),
    (E.recovered_within(3), "slow", ""),
    (E.recovered_within(1), "slow", "request 1 to look took 3 s to recover from latency, at most 1 s were allowed"),
    (E.recovered_within(60), "honest", "refund never recovered from timeout_before_effect"),
    (E.recovered_within(60), "twice", "request 1 to refund recovered from lost_reply with harm: an effect was repeated, or the end state is wrong"),
    (E.recovered_within(60), "calm", "no fault was met that anything could recover from"),
    (E.called("refund"), "calm", ""),
    (E.called("refund", times=1), "twice", ""),
    (E.called("look", times=1), "twice", "look was called 2 times, it should be 1 times"),
    (E.called("cancel"), "calm", "cancel was called 0 times, it should be at least once"),
    (E.not_called("cancel"), "calm", ""),
    (E.not_called("ref*"), "calm", "refund was called 1 times"),
    (E.called_in_order(["look", "refund"]), "calm", ""),
    (E.called_in_order(["refund", "look"]), "calm", "look was called before refund"),
    (E.called_in_order(["look", "cancel"]), "calm", "cancel was not called"),
    (E.called_with("refund", {"order": 17}), "calm", ""),
    (E.called_with("refund", {"order": 18}), "calm", 'no call of refund has {"order": 18}; the first has {"order": 17}'),
    (E.called_with("cancel", {}), "calm", "cancel was not called"),
    (E.retried("refund"), "twice", ""),
    (E.retried("refund"), "honest", "refund 1 failed and was not tried again"),
    (E.retried(), "calm", "no call failed, so there was nothing to try again"),
    (E.backed_off(1, factor=2), "patient", ""),
    (E.backed_off(1.5), "patient", "refund 1.2 came 1.000 s after the failure before it, at least 1.500 s were asked for"),
    (E.backed_off(0, factor=3), "patient", "refund 1.3 came 2.000 s after the failure before it, at least 3.000 s were asked for"),
    (E.backed_off(), "hasty", "refund 1.2 came 0 s after the failure before it, at least 0.100 s were asked for"),
    (E.backed_off(), "calm", "no call was tried again, so nothing could wait"),
    (E.no_duplicate_effects(), "calm", ""),
    (E.no_duplicate_effects(), "twice", "refund twice"),
    (E.no_duplicate_effects(), "thrice", "refund 3 times"),
    (E.no_duplicate_effects("cancel"), "twice", ""),
    (E.effects_equal([{"effect": "refund", "order": 17}]), "calm", ""),
    (E.effects_equal([]), "calm", "refund, which was not asked for"),
    (E.effects_equal([{"effect": "refund", "order": 17}]), "honest", "missing: refund"),
    (E.no_effect_without_request(), "calm", ""),
    (E.state_equals("paid", [17]), "calm", ""),
    (E.state_equals("paid.0", 17), "calm", ""),
    (E.state_equals("", {"paid": [17]}), "calm", ""),
    (E.state_equals("paid", [17]), "twice", "paid is [17, 17] instead of [17]"),
    (E.state_equals("paid.3", 17), "calm", "the end state has no paid.3"),
    (E.state_equals("paid.0.x", 17), "calm", "the end state has no paid.0.x"),
    (E.state_equals("paid", []), "talk", "no state was read: give state="),
    (E.state_equals("", [17]), "unreadable", "OSError: the book is wet"),
    (E.answer_contains("refunded 49"), "calm", ""),
    (E.answer_contains(["fifty", "49"]), "calm", ""),
    (E.answer_contains("4"), "calm", "the answer does not show '4': 'Order 17: refunded 49.'"),
    (E.answer_contains("x"), "raised", "there is no answer"),
    (E.answer_matches(r"order \d+"), "honest", ""),
    (E.answer_matches(r"^\d+"), "calm", "'^\\\\d+' is not found in the answer: 'Order 17: refunded 49.'"),
    (E.answer_matches("x"), "raised", "there is no answer"),
    (E.no_false_success(), "honest", ""),
    (E.no_false_success(), "twice", ""),
    (E.no_false_success(), "false", "missing: refund; missing: the state's paid[0] is nothing as before instead of 17, and the "
     "answer does not say so"),
    (E.outcome("correct"), "calm", ""),
    (E.outcome(["correct", "degraded"]), "honest", "the outcome is undone instead of correct or degraded: missing: refund; "),
    (E.outcome(["correct", "degraded"]), "raised", "the outcome is failed instead of correct or degraded: no answer: agent error"),
    (E.error_type("none"), "calm", ""),
    (E.error_type("agent"), "raised", ""),
    (E.error_type("none"), "raised", "it ended with agent instead of none"),
    (E.at_least_one_fault(), "twice", ""),
    (E.at_least_one_fault("lost_*", target="refund"), "twice", ""),
    (E.at_least_one_fault(), "calm", "no fault was witnessed"),
    (E.at_least_one_fault("latency", target="refund"), "slow", "no latency was witnessed at refund"),
    (E.every_fault_witnessed(), "twice", ""),
    (E.every_fault_witnessed(), "calm", ""),
    (E.same_as_twin(), "slow", ""),
    (E.same_as_twin(), "twice", "it has 2 effects, its twin 1, and they differ"),
    (E.same_as_twin(), "honest", "the answer is not its twin's: "),
    (E.same_as_twin(), "raised", "there is no twin to compare with"),
    (E.same_as_twin(), "fell", "there is no answer"),
    (E.slo(1), "calm", ""),
    (E.slo(0.5, within_s=1, tool="look"), "slow", "0% of 1 calls were good, at least 50% were asked for"),
    (E.slo(0.8), "twice", "75% of 4 calls were good, at least 80% were asked for"),
    (E.slo(0.75), "twice", ""),
    (E.slo(1, tool="cancel"), "calm", "there was no call of cancel"),
    (E.max_tokens(100_000), "model", ""),
    (E.max_tokens(1), "model", "tokens by the model's answer 1, at most 1 were allowed"),
    (E.max_tokens(0), "calm", ""),
    (E.max_cost(1), "model", ""),
    (E.max_cost(0), "model", "USD by the model's answer 1, at most 0 were allowed"),
    (E.max_cost(1), "unpriced", "the price of mine is not known"),
    (E.tokens_per_turn(100_000), "model", ""),
    (E.tokens_per_turn(TURN_TOKENS), "asked twice", ""),
    (E.tokens_per_turn(TURN_TOKENS - 1), "asked twice", f"{TURN_TOKENS} tokens in turn 2, at most"),
    (E.finished_reason("stop"), "model", ""),
    (E.finished_reason(["STOP", "stop"]), "model", ""),
    (E.finished_reason("tool_calls"), "model", "the model's answer 1 ended with stop instead of tool_calls"),
    (E.finished_reason("stop"), "cut", "the model's answer 1 ended with length instead of stop"),
    (E.finished_reason("length"), "cut", ""),
    (E.finished_reason("stop"), "calm", "no answer of a model has arrived"),
    (E.tokens_per_turn(1), "model", "tokens in turn 1, at most 1 were allowed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("assertion", "name", "miss"), CASES, ids=[f"{a} of {n} {i}" for i, (a, n, _) in enumerate(CASES)]
)
def test_it_holds_or_says_what_was_seen(assertion: Any, name: str, miss: str) -> None:
    found = assertion.check(seen(name))
    assert (found is None) == (miss == ""), found
    if found is not None:
        assert miss in found.text
        assert not found.text.endswith("*")
        assert "\n" not in found.text
        there = {(record.writer, record.seq) for record in seen(name).history.records}
        assert set(found.lines) <= there


def test_each_assertion_is_tried_both_ways() -> None:
    tried = {(assertion.name, miss == "") for assertion, _, miss in CASES}
    apart = {("no_effect_without_request", False), ("every_fault_witnessed", False)}  # below
    apart |= {("judged_by", True), ("judged_by", False)}  # test_judged_by.py
    assert tried | apart == {(name, held) for name in list_plugins("analysis.assertions") for held in (True, False)}


def test_a_miss_names_the_lines_that_show_it() -> None:
    found = sure(E.no_duplicate_effects().check(seen("thrice")))
    kinds = {record.seq: record.event.kind for record in seen("thrice").history.records}
    assert [kinds[number] for _, number in found.lines] == ["effect"] * 3
    (call,) = sure(E.max_calls(0, tool="look").check(seen("calm"))).lines
    assert [(r.writer, r.event.kind) for r in seen("calm").history.records if (r.writer, r.seq) == call] == [
        ("info", "call_started")
    ]
    assert Miss("x", (("info", 1), ("messaging", 2), ("info", 3))).where == "info.log 1, 3; messaging.log 2"


def test_an_assertion_is_found_by_name_and_spelt_as_it_was_stated() -> None:
    assert str(E.max_calls(5)) == "max_calls(calls=5)"
    assert str(E.max_calls(5, tool="get_*")) == "max_calls(calls=5, tool='get_*')"
    assert "max_calls" in dir(E)
    with pytest.raises(AttributeError, match="did you mean 'max_calls'"):
        _ = E.max_cals


def test_a_function_that_raises_is_named_with_the_line_that_did() -> None:
    def inner() -> None:
        raise AssertionError

    def holds(_: object) -> bool:
        inner()
        return True

    missed = sure(FunctionAssertion(holds).check(seen("calm")))
    assert missed.text == f"AssertionError at test_assertions.py:{inner.__code__.co_firstlineno + 1}"


@pytest.mark.parametrize("name", list_plugins("analysis.assertions"))
def test_every_assertion_tells_of_itself(name: str) -> None:
    found = load_assertion(name)
    assert issubclass(found, Assertion)
    assert (found.__doc__ or "").strip()
    assert found.check is not Assertion.check


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"order": 17}, {"order": 17}, True),
        ({"order": 17}, {"order": 18}, False),
        ({"order": 17, "id": 1, "idempotency_key": "a"}, {"order": 17, "id": 2, "idempotency_key": "b"}, True),
        ({"id": 1}, {"id": 1, "order": 17}, False),
    ],
)
def test_effects_are_alike_but_for_their_id_and_their_key(
    one: dict[str, Any], other: dict[str, Any], alike: bool
) -> None:
    both = FinishedTrial(history(effect("refund", **one), effect("refund", **other)), TRIAL, seen("calm").verdict, None)
    assert (E.no_duplicate_effects().check(both) is not None) is alike


def test_a_turn_is_looked_at_alone() -> None:
    assert E.max_calls(2).check(seen("talk", 2)) is None
    assert E.max_calls(1).check(seen("talk", 1)) is None
    assert E.max_calls(1).check(seen("talk", 2)) is not None
    assert E.max_calls(2).check(seen("talk")) is not None
    assert E.answer_contains("words").check(seen("talk", 2)) is None
    assert E.answer_contains("words").check(seen("talk", 1)) is not None
    assert E.answer_contains("one").check(seen("talk", 3)) is not None


def test_what_nobody_asked_for_and_what_nobody_met() -> None:
    paid = replace(effect("payment", "r"), target="shop", tool="pay")
    late = FaultScheduled(**fault_at("latency", "i", "shop", 1, 1, "r"))
    alone = FinishedTrial(history(started(), paid, late), TRIAL, seen("calm").verdict)
    for assertion, said, line in (
        (E.no_effect_without_request(), "payment, and shop was not called", 1),
        (E.every_fault_witnessed(), "latency was scheduled at shop 1.1 and not witnessed", 2),
        (E.completes_within(1), "the trial did not end", None),
        (E.error_type("none"), "the trial did not end", None),
    ):
        miss = sure(assertion.check(alone))
        assert miss.text == said
        assert miss.lines == ((("info", line),) if line else ())
    hedged = [CallStarted(**call_at("shop", "pay", 1, n, "r")) for n in (1, 2)]
    assert E.backed_off().check(FinishedTrial(history(started(), *hedged), TRIAL, seen("calm").verdict)) is None


def test_a_time_may_be_less_than_a_second() -> None:
    assert build_assertion("slo", {"share": 0.9, "within_s": 0.5}) == E.slo(0.9, within_s=0.5)


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("max_calls", "five", "calls of max_calls is 'five': it should be a whole number, 0 or more"),
        ("max_calls", -1, "calls of max_calls is -1: it should be a whole number, 0 or more"),
        ("max_calls", True, "calls of max_calls is True: it should be a whole number"),
        ("max_calls", {"calls": 1.5}, "it should be a whole number"),
        ("max_calls", {"calls": 1, "tol": "x"}, "max_calls has no parameter 'tol': did you mean 'tool'?"),
        ("max_calls", {}, "calls of max_calls is missing, as in max_calls: {calls: 10, tool: refund}"),
        ("slo", {"share": 2}, "share of slo is 2: it should be a number, 0 or more and at most 1"),
        ("slo", {"share": float("nan")}, "share of slo is nan"),
        ("called", 3, "tool of called is 3: it should be a text"),
        ("called_in_order", "look", "tools of called_in_order is 'look': it should be a list of texts"),
        ("called_in_order", {"tools": []}, "it should be a list of texts"),
        ("called_with", {"tool": "x", "arguments": [1]}, "it should be a mapping"),
        ("effects_equal", {"effects": ["x"]}, "it should be a list of mappings"),
        ("answer_contains", {"text": {}}, "it should be a text, or a list of them"),
        ("answer_contains", {"text": ["x", {}]}, "it should be a text, or a list of them"),
        ("answer_matches", "(", "pattern of answer_matches cannot be read: missing )"),
        ("outcome", "good", "no outcome is called 'good'"),
        ("no_false_success", 3, "no_false_success has no parameters"),
    ],
)
def test_a_parameter_that_is_wrong_is_one_line(name: str, params: Any, said: str) -> None:
    with pytest.raises(ValueError, match=name) as refused:
        build_assertion(name, params)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_plain_data_state_an_assertion() -> None:
    assert build_assertion("max_calls", 5) == E.max_calls(5)
    assert build_assertion("called_in_order", ["a", "b"]) == E.called_in_order(["a", "b"])
    assert build_assertion("answer_contains", ["a", "b"]) == E.answer_contains(["a", "b"])
    assert build_assertion("no_duplicate_effects", {}) == E.no_duplicate_effects()
    assert build_assertion("state_equals", {"path": "a", "value": {"b": 1}}) == E.state_equals("a", {"b": 1})


HEAD = "from dataclasses import dataclass\nfrom typing import Any\nfrom chaoslab.analysis.assertions import Assertion"


def test_an_assertion_of_a_plug_in_takes_a_mapping_and_is_a_dataclass(tmp_path: Path) -> None:
    at: dict[str, Any] = {"fault": "holds", "head": HEAD, "group": "analysis.assertions"}
    (tmp_path / "broken").mkdir()
    with installed(tmp_path, "@dataclass(frozen=True)\nclass Sock(Assertion):\n    parts: Any", **at):
        stated = build_assertion("holds", {"a": 1})
        plain = serialize_assertion(stated)
        assert (plain, build_assertion("holds", plain["gremlins"])) == ({"gremlins": {"a": 1}}, stated)
    with installed(tmp_path / "broken", "class Sock: ...", **at), pytest.raises(LookupError, match="is no dataclass"):
        load_assertion("holds")


def test_a_fault_on_a_lane_to_a_process_that_is_down_was_ended_by_its_outage() -> None:
    late = FaultScheduled(**fault_at("latency", "i", "shop", 1, 1, "r"))
    met = FaultWitnessed(**fault_at("service_down", "stop", "shop", 1, 1, "r"))
    end = CallFinished(**call_at("shop", "pay", 1, 1, "r"), ok=False, duration_s=0.1, error="refused", via="lane")
    verdict, witnessed = seen("calm").verdict, E.every_fault_witnessed()
    assert witnessed.check(FinishedTrial(history(started(), late, met, end), TRIAL, verdict)) is None
    assert witnessed.check(FinishedTrial(history(started(), late, met), TRIAL, verdict)) is not None


def test_a_first_fault_that_did_no_harm_hides_no_later_one() -> None:
    """Two requests to one target: the first is only late, the second never succeeds."""

    def stock(*, item: str) -> int:
        return len(item)

    def agent(_prompt: str) -> str:
        stock(item="pen")
        with suppress(Exception):
            stock(item="ink")
        return "There are 3."

    faults = [lab.inject("latency", "stock", calls=[1], delay_s=0.1), lab.inject("timeout", "stock", calls=[2])]
    trial = lab.run(agent, "How many?", reads=[stock], faults=faults)
    assert [(one.request, one.fault, one.recovered) for one in trial.incidents] == [
        (1, "latency", True), (2, "timeout", False)
    ]  # fmt: skip
    assert trial.recovery["stock"].fault == "timeout"
    missed = sure(E.recovered_within(60).check(FinishedTrial(trial.history, trial.key, trial.verdict)))
    assert missed.text == "request 2 to stock never recovered from timeout"


def leaves(_: lab.Trial) -> bool:
    raise SystemExit(3)


def test_a_function_that_ends_the_process_is_named_with_its_own_module() -> None:
    asked = lab.scenario("s").agent(lambda _: "done").ask("x").expect(leaves).set(trials=1)
    with pytest.raises(ScenarioError, match=f"the assertion leaves of {__name__} raised SystemExit: 3"):
        asked.run()


def test_an_assertion_that_went_names_what_to_use() -> None:
    with pytest.raises(LookupError, match="there is no admits_failure any more: say answer_matches"):
        load_assertion("admits_failure")
