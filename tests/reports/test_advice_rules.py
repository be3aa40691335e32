"""Each rule speaks on an agent that shows it, and is silent on the same agent mended."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import (
    AnswerRead,
    AttemptRef,
    CallFinished,
    CallStarted,
    Fallback,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
    RunStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.advice import Advice, RuleEvidence, load_rules
from tests.verdict.trials import raised

Agent = Callable[[str], str]


def order(*, amount: int) -> str:
    return f"ordered {amount}"


def price(*, item: str) -> dict[str, int]:
    return {"price": 4 * len(item)}


def again(times: int, wait_s: float, *, passing: Callable[[Exception], bool] = lambda _: True) -> Agent:
    """An agent that tries so often, with such waits, while the failure is one that may pass."""

    def agent(_prompt: str) -> str:
        for _ in range(times):
            try:
                return f"It costs {price(item='pen')['price']}."
            except Exception as error:  # noqa: BLE001
                if not passing(error):
                    break
                time.sleep(wait_s)
        return "I could not find the price: the shop failed."

    return agent


def passes(error: Exception) -> bool:
    return getattr(error, "status", None) != 404


def raising(_prompt: str) -> str:
    return f"It costs {price(item='pen')['price']}."


def otherwise(answer: str) -> Agent:
    """An agent that answers this where it could not get a price, or none of the right form."""

    def agent(prompt: str) -> str:
        try:
            return raising(prompt)
        except Exception:  # noqa: BLE001
            return answer

    return agent


def believing(_prompt: str) -> str:
    return f"It costs {(price(item='pen') or {}).get('price', 0)}."


def compensating(_prompt: str) -> str:
    try:
        price(item="pen")
    except Exception:  # noqa: BLE001
        order(amount=1)
    return "Done."


def buying(_prompt: str) -> str:
    """Asks for a price, and orders again where it hears nothing."""
    price(item="pen")
    for _ in range(2):
        try:
            order(amount=3)
            break
        except TimeoutError:
            continue
    return "Ordered 3."


def ordering(answer: str = "Ordered 3.", *, times: int = 1) -> Agent:
    """An agent that tries so often to order, and answers this whatever came of it."""

    def agent(_prompt: str) -> str:
        for _ in range(times):
            try:
                order(amount=3)
                break
            except Exception:  # noqa: BLE001
                time.sleep(1)
        return answer

    return agent


honest, guessing = again(1, 0), otherwise("It costs 99.")
DOWN: Any = {"persistence": "for_good"}
SAYS = {"*": {"undone": "could not"}, "order": {"done": "Ordered", "undone": "could not order|was not placed"}}
"""By which words the agents here admit a loss."""
RULES: list[tuple[str, Agent, Agent, str, dict[str, Any], dict[str, Any]]] = [
    ("Back off exponentially", again(2, 0), again(2, 1), "server_error", {}, {}),
    ("Do not retry a 4xx", again(2, 1), again(2, 1, passing=passes), "not_found", {}, {}),
    ("Retry-After header", again(2, 2), again(2, 6), "rate_limit", {"retry_after_s": 5.0}, {}),
    ("Catch the failure", raising, honest, "server_error", DOWN, {}),
    ("final answer before sending it", otherwise(""), honest, "server_error", DOWN, {}),
    ("instead of filling the gap", guessing, honest, "server_error", DOWN, {}),
    ("an empty reply as a failed call", believing, otherwise("I could not find it."), "empty", {}, {}),
    ("a call budget", again(5, 1), again(2, 1), "server_error", DOWN, {}),
    ("that was not requested", compensating, honest, "server_error", DOWN, {}),
    ("to what a user will wait", again(1, 0), again(1, 0), "timeout", {}, {"waits": (45.0, 5.0)}),
]  # fmt: skip


def contents(agent: Agent, fault: str, params: dict[str, Any], *, target: str = "price", **options: Any) -> Contents:
    faults = [lab.inject(fault, target, **params)]
    options = {"says": SAYS, **options}
    return shown(lab.run(agent, "Do it.", tools=[order], reads=[price], faults=faults, **options).history)


def shown(history: History) -> Contents:
    return Contents.from_source(history, where="logs/run")


def of_rule(found: Contents, remedy: str) -> list[Advice]:
    return [one for one in found.advice if remedy in one.do]


@pytest.mark.parametrize(
    ("remedy", "bad", "mended", "fault", "params", "more"), RULES, ids=[f"{rule[0]}, {rule[3]}" for rule in RULES]
)
def test_a_rule_speaks_on_a_bad_agent_alone(
    remedy: str, bad: Agent, mended: Agent, fault: str, params: dict[str, Any], more: dict[str, Any]
) -> None:
    waits = more.get("waits", (30.0, 30.0))
    target = more.get("target", "price")
    (one,) = of_rule(contents(bad, fault, params, target=target, timeout_s=waits[0]), remedy)
    assert f"1 of 1 judged trial that met {fault}" in one.seen
    assert (one.size.count, one.size.total, one.trials) == (1, 1, ("p1.r1",))
    assert of_rule(contents(mended, fault, params, target=target, timeout_s=waits[1]), remedy) == []


def test_an_injection_without_a_call_is_named(tmp_path: Path) -> None:
    for n, (target, advised) in enumerate((("order", 1), ("price", 0))):
        options: Any = {"tools": [order], "reads": [price], "faults": [lab.inject("tool_error", target)]}
        lab.run(honest, "Do it.", logs=tmp_path / str(n), **options)
        written = shown(History.read(tmp_path / str(n) / "latest"))
        found = of_rule(written, "that fit the agent's calls")
        assert [(one.size.count, one.size.total) for one in found] == [(1, 1)] * advised


STARTED = RunStarted(seed=1, settings={}, plan={}, prompts=1, now="2026-06-01T09:00:00Z", model="m")


def lines(
    fault: str, *, answer: str, fact: str, trial: str = "p1.r1", twin: str | None = None,
    met: CallFinished | None = None, later: Any = (), lost: bool = False,
) -> list[Record]:  # fmt: skip
    """A trial that met the fault, in which this was answered and that is right. `met`: the end of the attempt that met
    it. `later`: what happened at the same moment, after that. `lost`: an order that was asked for was not placed, and
    the answer says so."""
    at = AttemptRef(trial=trial, target="model", request=1, attempt=1, request_id="a")
    wanted = [{"effect": "order"}] if lost else None
    call = met or CallFinished(at=at, tool="POST /chat", ok=True, duration_s=1.0, status=200)
    events = [
        (0, PromptStarted(prompt_index=1, prompt="x", facts=[[fact]], effects=wanted, stated=True, twin=twin)),
        (1, call),
        (1, FaultWitnessed(at=call.at, fault=fault, injection=fault, evidence="seen")),
        *((1, event) for event in later),
        *([(2, AnswerRead(says={"order": False}))] if lost else []),
        (2, PromptFinished(prompt_index=1, prompt="x", status="ok", answer=answer, attempts=1, duration_s=1.0)),
    ]
    first = Record(ts="2026-06-01T09:00:00Z", t=0.0, run="r", trial=None, writer="lab", seq=1, event=STARTED)
    return [replace(first, t=t, seq=n, trial=trial, event=event) for n, (t, event) in enumerate(events, 2)]


def log(fault: str, **more: Any) -> History:
    """The log of a run with one such trial."""
    return run_of(lines(fault, **more))


def run_of(*trials: list[Record]) -> History:
    first = replace(trials[0][0], trial=None, seq=1, event=STARTED)
    return History([first, *(line for trial in trials for line in trial)])


def at(attempt: int) -> AttemptRef:
    return AttemptRef(trial="p1.r1", target="model", request=1, attempt=attempt, request_id="a")


def ended(attempt: int, *, ok: bool = True, **more: Any) -> CallFinished:
    return CallFinished(at=at(attempt), tool="POST /chat", ok=ok, duration_s=1.0, **more)


@pytest.mark.parametrize(("fault", "remedy"), [("cut", "finish reason"), ("drop_context", "outside the conversation")])
def test_a_rule_speaks_of_a_log_with_a_bad_answer_alone(fault: str, remedy: str) -> None:
    bad = shown(log(fault, answer="The total is 41", fact="412", twin="The total is 412."))
    (one,) = of_rule(bad, remedy)
    assert (one.size.count, one.size.total, one.trials) == (1, 1, ("p1.r1",))
    assert of_rule(shown(log(fault, answer="The total is 412.", fact="412")), remedy) == []


@pytest.mark.parametrize("gave_up", [False, True])
def test_an_empty_reply_that_was_given_up_as_empty_was_noticed(gave_up: bool) -> None:
    tried = raised("", "empty")[1:2] if gave_up else []
    met = log("empty", answer="The total is 41", fact="412", twin="The total is 412.", later=tried)
    assert bool(of_rule(shown(met), "an empty reply as a failed call")) is not gave_up


@pytest.mark.filterwarnings("ignore:'wrong_value on stock' changed nothing")
@pytest.mark.parametrize(("left", "drawn_in_vain"), [(None, True), (4, False)])
def test_a_fault_that_was_drawn_and_never_met_is_named(left: int | None, *, drawn_in_vain: bool) -> None:
    def stock() -> int | None:
        return left

    def agent(_prompt: str) -> str:
        return f"In stock: {stock()}"

    trial = lab.run(agent, "Do it.", reads=[stock], faults=[lab.inject("wrong_value", "stock")])
    found = of_rule(shown(trial.history), "so that it can take effect")
    said = "wrong_value was drawn in 1 of 1 trials and met in none: there was nothing in it to change."
    assert [one.seen for one in found] == [said] * drawn_in_vain


@pytest.mark.filterwarnings("ignore:.* changed nothing")
def test_several_faults_that_were_never_met_are_one_piece_of_advice() -> None:
    def stock() -> int | None:
        return None

    def agent(_prompt: str) -> str:
        return f"In stock: {stock()}"

    faults = [lab.inject("wrong_value", "stock"), lab.inject("page_lost", "stock")]
    trial = lab.run(agent, "Do it.", reads=[stock], faults=faults)
    (one,) = of_rule(shown(trial.history), "so that they can take effect")
    assert one.seen == (
        "2 faults were drawn in 1 of 1 trials and met in none: page_lost (it needs a list of at least two entries); "
        "wrong_value (there was nothing in it to change)."
    )


def test_few_good_trials_are_told_to_be_few() -> None:
    patient = again(2, 1)
    options: Any = {"reads": [price], "faults": [lab.inject("server_error", "price", calls=[1])]}
    trials = list(lab.run_many(patient, "Do it.", trials=35, **options))

    def found(count: int) -> list[Advice]:
        whole = History(record for trial in trials[:count] for record in trial.history)
        return of_rule(shown(whole), "Run more trials")

    (one,) = found(8)
    assert one.seen.startswith("None of 8 judged trials that met server_error ended badly, and up to 32% of all could")
    assert (one.size.count, len(one.trials)) == (0, 8)
    assert [len(found(count)) for count in (34, 35)] == [1, 0], "35 of them exclude a share of 10 %"


def test_a_request_that_was_never_made_is_named() -> None:
    def found(number: int) -> list[Advice]:
        trial = lab.run(honest, "Do it.", reads=[price], faults=[lab.inject("server_error", "price", calls=[number])])
        return of_rule(shown(trial.history), "Plan it for a request that the agent makes")

    assert [(one.size.count, one.trials) for one in found(9)] == [(1, ("p1.r1",))]
    assert "is for request 9 of price, and 1 of 1 trials made 1 at most" in found(9)[0].seen
    assert found(1) == []


def test_of_two_faults_the_one_where_it_was_done_twice_is_named_and_advice_on_the_run_comes_last(
    tmp_path: Path,
) -> None:
    faults = [lab.inject("latency", "price", delay_s=1.0), lab.inject("lost_reply", "order", calls=[1])]
    faults.append(lab.inject("tool_error", "post"))
    lab.run(buying, "Do it.", tools=[order, post], reads=[price], faults=faults, logs=tmp_path)
    found = shown(History.read(tmp_path / "latest")).advice
    assert "Idempotency-Key" in found[0].do
    assert "that met lost_reply" in found[0].seen
    assert [one.of_run for one in found] == sorted(one.of_run for one in found)
    assert found[-1].of_run


def post(*, text: str) -> str:
    return text


def test_a_reply_that_was_asked_for_again_was_not_accepted() -> None:
    cut = ended(1, ok=False, error="closed")
    for fault, remedy, met in (("slow_close", "finish reason", cut), ("empty", "an empty reply as", ended(1))):
        bad = {"answer": "The total is 99.", "fact": "412", "twin": "The total is 412."}
        assert of_rule(shown(log(fault, **bad, met=met, later=[ended(2)])), remedy) == []
        assert of_rule(shown(log(fault, **bad, met=ended(1))), remedy) != []


def test_a_stream_that_broke_off_may_be_used_and_a_tool_that_failed_may_not() -> None:
    for fault, counts in (("disconnect", True), ("slow_close", False)):
        met = ended(1, ok=False, error="closed")
        found = shown(log(fault, answer="The total is 41", fact="412", twin="The total is 412.", met=met))
        assert bool(of_rule(found, "finish reason")) is counts


@pytest.mark.parametrize(
    ("fault", "answer", "counts"),
    [
        ("refusal", "I could not find the total.", False),
        ("wrong_value", "I could not find the total.", False),
        ("wrong_value", "Good morning.", False),
        ("wrong_value", "The total is 99.", True),
    ],
)
def test_a_value_that_is_only_missing_was_not_passed_on(fault: str, answer: str, *, counts: bool) -> None:
    found = shown(log(fault, answer=answer, fact="412", twin="The total is 412."))
    assert bool(of_rule(found, "plausible range")) is counts


def test_a_trial_that_ended_well_is_not_said_to_have_ended_badly() -> None:
    honest = {"answer": "I could not find the total.", "fact": "412"}
    found = shown(log("drop_context", **honest, lost=True))
    (one,) = of_rule(found, "outside the conversation")
    assert found.headline.ended.bad == 0
    assert one.seen.startswith("The agent could not do all, or did not end well, after its conversation")


def test_an_admitted_loss_beside_harm_is_said_to_be_admitted() -> None:
    def sorry(_prompt: str) -> str:
        try:
            order(amount=3)
        except Exception:  # noqa: BLE001
            note(text="no order")
            return "I could not order 3: the shop failed."
        return "Ordered 3."

    def note(*, text: str) -> str:
        return f"noted {text}"

    faults = [lab.inject("tool_error", "order")]
    wanted = [{"effect": "order", "amount": 3}]
    found = shown(lab.run(sorry, "Do it.", tools=[order, note], effects=wanted, faults=faults).history)
    assert {harm.kind: harm.findings for harm in found.harms if harm.findings} == {"phantom": 1}
    assert of_rule(found, "before it reports success") == []
    assert of_rule(found, "that was not requested") != []


def test_an_answer_that_denies_is_not_said_to_fill_a_gap() -> None:
    def denying(_prompt: str) -> str:
        try:
            order(amount=3)
        except TimeoutError:
            return "The order was not placed: error 504."
        return "Ordered 3."

    found = contents(denying, "lost_reply", {}, target="order")
    assert of_rule(found, "instead of filling the gap") == []


@pytest.mark.parametrize(("around", "counts"), [(False, True), (True, False)])
def test_a_fallback_is_no_second_try(*, around: bool, counts: bool) -> None:
    fallback = [Fallback(at=at(2), tool="POST /chat", address="http://127.0.0.1:1")] if around else []
    again = [*fallback, CallStarted(at=at(2), tool="POST /chat"), ended(2)]
    down = ended(1, ok=False, status=503)
    found = shown(log("server_error", answer="The total is 412.", fact="412", met=down, later=again))
    assert bool(of_rule(found, "Back off exponentially")) is counts


def test_an_attempt_beside_a_failing_one_is_no_second_try() -> None:
    history = log("server_error", answer="The total is 412.", fact="412", met=ended(1, ok=False, status=503))
    beside = replace(history.records[1], t=0.5, seq=9, event=CallStarted(at=at(2), tool="POST /chat"))
    assert of_rule(shown(History([*history.records[:2], beside, *history.records[2:]])), "Back off") == []


def test_a_fault_whose_calls_another_took_is_not_said_to_have_had_none(tmp_path: Path) -> None:
    faults = [lab.inject("server_error", "price"), lab.inject("rate_limit", "price", chance=0.5)]
    with pytest.warns(lab.NothingHit):
        lab.run(honest, "Do it.", reads=[price], faults=faults, logs=tmp_path)
    (one,) = of_rule(shown(History.read(tmp_path / "latest")), "that fit the agent's calls")
    assert "or another fault took each" in one.seen


def test_a_wrong_end_state_is_advised_on() -> None:
    orders: list[int] = []

    def place() -> str:
        orders.append(3)
        return "done"

    def hasty(_prompt: str) -> str:
        for _ in range(2):
            try:
                place()
            except TimeoutError:
                continue
            break
        return "Ordered 3."

    def made() -> Agent:
        orders.clear()
        return hasty

    options: Any = {"reads": [place], "state": lambda: len(orders)}
    trial = lab.run(lab.fresh(made), "Do it.", faults=[lab.inject("lost_reply", "place", calls=[1])], **options)
    (one,) = of_rule(shown(trial.history), "undo what was half done")
    assert (
        one.seen
        == "The end state was neither the expected one nor the initial one in 1 of 1 judged trial that met lost_reply."
    )
    (incident,) = trial.incidents
    assert (incident.ending, incident.recovered) == ("harm", False)


def test_advice_on_trials_that_ended_badly_comes_first() -> None:
    honestly = [
        lines("drop_context", answer="I could not find the total.", fact="412", trial=f"p1.r{n}", lost=True)
        for n in (1, 2)
    ]
    lied = lines("empty", answer="The total is 99.", fact="412", twin="The total is 412.", trial="p1.r3")
    first, *others = shown(run_of(*honestly, lied)).advice
    assert "An empty reply was accepted" in first.seen
    assert any("outside the conversation" in one.do for one in others)


def test_of_faults_that_are_shown_alike_the_one_at_the_repeated_effect_comes_first() -> None:
    def twice(_prompt: str) -> str:
        price(item="pen")
        order(amount=3)
        order(amount=4)
        return "Ordered 3 and 4."

    def trial(number: int, agent: Agent, amounts: Sequence[int], *faults: lab.Injection) -> list[Record]:
        wanted = [{"effect": "order", "amount": amount} for amount in amounts]
        options: Any = {"tools": [order], "reads": [price], "effects": wanted, "faults": faults}
        whole = lab.run(agent, "Do it.", **options).history
        return [replace(line, trial=f"p1.r{number}") if line.trial else line for line in whole]

    late, lost = lab.inject("latency", "*", delay_s=1.0), lab.inject("lost_reply", "order", calls=[1])
    bad = trial(1, buying, [3], lab.inject("latency", "price", delay_s=1.0), lost)
    good = [line for n in (2, 3) for line in trial(n, twice, [3, 4], late)]
    (one,) = of_rule(shown(History([*bad, *good])), "Idempotency-Key")
    assert one.seen == "Something was done more often than requested in 1 of 1 judged trial that met lost_reply."


def test_a_frequent_fault_does_not_stand_for_the_rare_one_that_goes_with_it() -> None:
    late, lost = lab.inject("latency", "price", delay_s=1.0), lab.inject("lost_reply", "order", calls=[1])
    slow = lab.inject("delay", "order", mean_s=60.0, calls=[1])
    records: list[Record] = []
    for number, more in enumerate([[lost], [lost], [slow], [], []], 1):
        options: Any = {"tools": [order], "reads": [price], "faults": [late, *more]}
        whole = lab.run(buying, "Do it.", **options).history
        records += [replace(line, trial=f"p1.r{number}") if line.trial else line for line in whole]
    (one,) = of_rule(shown(History(records)), "Idempotency-Key")
    assert one.seen == "Something was done more often than requested in 2 of 2 judged trials that met lost_reply."


@pytest.mark.parametrize(("times", "advised"), [(1, 1), (2, 0)])
def test_an_empty_reply_after_which_the_same_was_asked_anew_was_not_accepted(times: int, advised: int) -> None:
    def agent(_prompt: str) -> str:
        first, *_ = [price(item="pen") for _ in range(times)]
        return f"It costs {(first or {}).get('price', 99)}."

    faults = [lab.inject("empty_response", "price", calls=[1])]
    trial = lab.run(agent, "How much?", reads=[price], faults=faults)
    assert len(of_rule(shown(trial.history), "an empty reply as")) == advised


def reading(value: int | None = None) -> Agent:
    """An agent that asks again for a price that is not as it should be, `value`, and else says what it read."""

    def agent(_prompt: str) -> str:
        found = price(item="pen")["price"]
        return f"It costs {found if value in (None, found) else price(item='pen')['price']}."

    return agent


def broken(_prompt: str) -> str:
    return f"It costs {price(item='pen')['price'] + {12: 1}[price(item='pen')['price']]}."


def busy(_prompt: str) -> str:
    """Makes as many calls without a fault."""
    return f"It costs {max(price(item='pen')['price'] for _ in range(6))}."


def kept(*, default: int) -> Agent:
    """An agent that orders as many as the price, and keeps `default` where it got none; 0 stops it."""

    def agent(_prompt: str) -> str:
        cache: dict[str, int] = {}
        for _ in range(2):
            if "pen" not in cache:
                try:
                    cache["pen"] = price(item="pen")["price"]
                except Exception:  # noqa: BLE001
                    cache["pen"] = default
        if cache["pen"]:
            order(amount=cache["pen"])
        return f"Ordered {cache['pen']}." if cache["pen"] else "I could not find the price: the shop failed."

    return agent


def test_a_false_success_and_a_poisoned_cache_are_not_told_to_try_again() -> None:
    """A second try would hide what they do with a failure."""
    claims = contents(ordering(), "server_error", {"calls": [1]}, target="order", says=None)
    poisoned = contents(kept(default=99), "server_error", {"calls": [1]}, says=None)
    for found, remedy in ((claims, "before it reports success"), (poisoned, "the value of a failed call")):
        assert not of_rule(found, "Idempotency-Key")
        assert found.advice[0] in of_rule(found, remedy)
    stops = contents(kept(default=0), "server_error", {"calls": [1]}, says={"*": {"undone": "could not"}})
    assert of_rule(stops, "Idempotency-Key")
    assert not of_rule(stops, "no value of a failed call")


SLOW = [lab.inject("latency", "*", delay_s=1.0)]
FAILS = lab.inject("server_error", "price", persistence="for_good")
TWICE = ordering(times=2)
ELSEWHERE: dict[str, tuple[Agent, list[lab.Injection]]] = {
    "costly_fault": (busy, SLOW),
    "cut_stream": (reading(), [lab.inject("wrong_value", "price")]),
    "empty_answer": (raising, [FAILS]),
    "failed_value": (guessing, [FAILS]),
    "empty_reply": (reading(), [lab.inject("wrong_value", "price")]),
    "hung": (honest, [lab.inject("server_error", "price")]),
    "ignored_retry_after": (again(2, 0), [FAILS]),
    "lost_context": (honest, [FAILS]),
    "advise_on_many_attempts": (again(5, 1), [FAILS]),
    "advise_on_injections_without_calls": (again(2, 1), [FAILS]),
    "advise_on_never_met_faults": (again(2, 1), [lab.inject("server_error", "price", calls=[1])]),
    "no_backoff": (again(2, 0), [lab.inject("timeout", "price", persistence="for_good")]),
    "no_second_try": (again(2, 1), [FAILS]),
    "repeated_effect": (TWICE, [lab.inject("tool_error", "order", calls=[1])]),
    "retried_refusal": (again(2, 1), [FAILS]),
    "slow_timeout": (reading(), [lab.inject("latency", "price", delay_s=45.0)]),
    "advise_on_too_few_trials": (guessing, [FAILS]),
    "trusted_value": (reading(12), [lab.inject("wrong_value", "price", calls=[1]), *SLOW]),
    "unasked_effect": (TWICE, [lab.inject("lost_reply", "order", calls=[1])]),
    "uncaught": (broken, [lab.inject("wrong_value", "price", calls=[2])]),
    "uncaught_reply": (raising, [FAILS]),
    "advise_on_unreached_requests": (busy, [lab.inject("latency", "price", calls=[6], delay_s=1.0)]),
    "unsaid_gap": (reading(), [lab.inject("wrong_value", "price")]),
    "unsaid_loss": (TWICE, [lab.inject("tool_error", "order", calls=[1])]),
    "wrong_state": (TWICE, [lab.inject("lost_reply", "order", calls=[1])]),
}
"""By rule, an agent that is in trouble, or not, of another cause."""


@pytest.mark.parametrize("rule", ELSEWHERE)
def test_a_rule_is_silent_where_its_cause_is_not_in_the_evidence(rule: str, tmp_path: Path) -> None:
    agent, faults = ELSEWHERE[rule]
    lab.run(agent, "Do it.", tools=[order], reads=[price], timeout_s=60.0, faults=faults, logs=tmp_path)
    found = shown(History.read(tmp_path / "latest"))
    assert found.headline.met == 1
    assert load_rules()[rule](RuleEvidence(found.report, found.trials_worst_first)) == []


def test_each_rule_has_a_case_in_which_it_is_silent() -> None:
    assert sorted(ELSEWHERE) == sorted(load_rules())


def test_a_rule_names_the_fault_of_the_attempt_that_shows_it() -> None:
    """Another fault of the same trial, whose name comes first, has nothing to do with it."""

    def agent(prompt: str) -> str:
        order(amount=3)
        return again(2, 0)(prompt)

    faults = [lab.inject("latency", "order", delay_s=1.0), lab.inject("server_error", "price", calls=[1])]
    found = shown(lab.run(agent, "Do it.", tools=[order], reads=[price], faults=faults).history)
    (one,) = of_rule(found, "Back off exponentially")
    assert one.seen.endswith("that met server_error.")
    spoilt = [lab.inject("wrong_value", "price", calls=[2])]
    (one,) = of_rule(shown(lab.run(broken, "Do it.", reads=[price], faults=spoilt).history), "does not fit")
    assert one.seen.endswith("that met wrong_value.")


def test_a_trial_that_also_met_another_fault_is_not_laid_on_its_lost_context() -> None:
    other = FaultWitnessed(at=at(1), fault="latency", injection="latency", evidence="seen")
    for later, advised in (([], 1), ([other], 0)):
        bad = {"answer": "The total is 41", "fact": "412", "twin": "The total is 412."}
        found = shown(log("drop_context", **bad, later=later))
        assert len(of_rule(found, "outside the conversation")) == advised
