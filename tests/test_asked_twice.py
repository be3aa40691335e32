"""An agent that is asked twice, at once, or told to stop, is judged by the wish: once."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import EventRepeated, RepeatAnswered, TurnStarted, UserStopped


def refund(order: int) -> str:
    return f"refunded {order}"


def mail(order: int) -> str:
    return f"mailed {order}"


def look(order: int) -> dict[str, int]:
    return {"order": order, "amount": 20}


def order_of(prompt: str) -> int:
    return int(prompt.split()[1])


class Forgetful:
    """It does what it is asked, as often as it is asked."""

    def __call__(self, prompt: str) -> str:
        order = order_of(prompt)
        look(order)
        refund(order)
        return f"Refunded {order}."


class Careful(Forgetful):
    """It knows what it has done, and does one thing at a time."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        order = order_of(prompt)
        with self.lock:
            look(order)
            if order not in self.done:
                self.done.add(order)
                refund(order)
        return f"Refunded {order}."


class Hasty(Careful):
    """It knows what it has done, and looks before another has noted it."""

    def __call__(self, prompt: str) -> str:
        order = order_of(prompt)
        is_done = order in self.done
        look(order)
        if not is_done:
            refund(order)
            self.done.add(order)
        return f"Refunded {order}."


class AsyncForgetful:
    async def __call__(self, prompt: str) -> str:
        await asyncio.sleep(0.1)
        return Forgetful()(prompt)


class AsyncCareful(Careful):
    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()

    async def __call__(self, prompt: str) -> str:  # type: ignore[override]
        async with self.turn:
            await asyncio.sleep(0.1)
            return super().__call__(prompt)


class Shared:
    """It keeps the order of the session that goes on in itself."""

    order = 0

    def __call__(self, prompt: str) -> str:
        self.order = order_of(prompt)
        look(self.order)
        refund(self.order)
        return f"Refunded {self.order}."


def run(make: Callable[[], Any], prompt: Any, *faults: Any, **more: Any) -> lab.Trial:
    return lab.run(lab.fresh(make), prompt, tools=[refund, mail], reads=[look], faults=faults, **more)


TWICE = lab.turns("Refund 17", lab.turn("Refund 17", after_s=60))


@pytest.mark.parametrize(
    ("make", "prompt", "options", "outcome"),
    [
        (Forgetful, TWICE, {}, "harm"),
        (Careful, TWICE, {}, "correct"),
        (Forgetful, TWICE, {"wishes": 2}, "correct"),
        (Forgetful, lab.turns("Refund 17", "Refund 18", "Refund 17"), {}, "harm"),
        (Careful, lab.turns("Refund 17", "Refund 18", "Refund 17"), {}, "correct"),
        (Forgetful, lab.turns("Refund 17", "Refund 18"), {}, "correct"),
        (Forgetful, lab.turns(*["Refund 17"] * 3), {"wishes": 2}, "harm"),
    ],
)
def test_equal_turns_are_one_event(make: Any, prompt: Any, options: dict[str, Any], outcome: str) -> None:
    trial = run(make, prompt, **options)
    assert str(trial.outcome) == outcome, trial.story()
    told = "the same event came twice" + (", its effect twice" if outcome == "harm" else "")
    assert trial.why.endswith(told) == (len([*trial.history.find_events(EventRepeated)]) == 1)


def test_the_end_state_is_that_of_one_event() -> None:
    paid: list[int] = []

    class Payer(Forgetful):
        def __init__(self) -> None:
            paid.clear()

        def __call__(self, prompt: str) -> str:
            paid.append(order_of(prompt))
            return super().__call__(prompt)

    assert str(run(Payer, TWICE, state=lambda: [*paid]).outcome) == "harm"
    assert "state" in run(Payer, TWICE, state=lambda: [*paid], idempotent=["refund"]).why
    assert str(run(Payer, TWICE, state=lambda: [*paid], wishes=2).outcome) == "correct"


def test_equal_words_that_do_something_else_are_two_wishes() -> None:
    class Asking:
        heard = 0

        def __call__(self, prompt: str) -> str:
            self.heard += prompt == "Yes."
            return refund(17) if self.heard == 2 else "Are you sure?"

    trial = run(Asking, lab.turns("Refund 17", "Yes.", "Yes."))
    assert (str(trial.outcome), [*trial.history.find_events(EventRepeated)]) == ("correct", [])


def test_a_twin_of_its_own_is_of_one_event_too() -> None:
    import random

    class Dicing(Forgetful):
        def __call__(self, prompt: str) -> str:
            refund(order_of(prompt) + random.randrange(1000))
            return "Refunded."

    class DicingOnce(Careful):
        def __call__(self, prompt: str) -> str:
            if not self.done:
                self.done.add(17)
                refund(order_of(prompt) + random.randrange(1000))
            return "Refunded."

    for make, outcome in (Dicing, "harm"), (DicingOnce, "correct"):
        agent = lab.fresh(make)
        trials = lab.run_many(agent, TWICE, trials=3, tools=[refund], anyway=True)
        assert {str(trial.outcome) for trial in trials} == {outcome}


@pytest.mark.parametrize(
    ("make", "moment", "outcome"),
    [
        *((Forgetful, moment, "harm") for moment in ("after", "at_once")),
        *((AsyncForgetful, moment, "harm") for moment in ("after", "at_once")),
        *((Careful, moment, "correct") for moment in ("after", "at_once")),
        *((AsyncCareful, moment, "correct") for moment in ("after", "at_once")),
        (Hasty, "after", "correct"),
        (Hasty, "at_once", "harm"),
    ],
)
def test_an_event_that_comes_twice_is_done_once(make: Any, moment: str, outcome: str) -> None:
    trial = run(make, "Refund 17", lab.inject("event_twice", "look", calls=[1], moment=moment))
    assert (str(trial.outcome), trial.met) == (outcome, ("event_twice on look",))
    assert trial.answer == "Refunded 17."
    assert [event.at_once for _, event in trial.history.find_events(EventRepeated)] == [moment == "at_once"]
    assert [event.answer for _, event in trial.history.find_events(RepeatAnswered)] == ["Refunded 17."]
    assert "user     the same event" in trial.story()
    assert trial.why.endswith("; the same event came twice" + (", its effect twice" if outcome == "harm" else ""))


EFFECT = [{"effect": "refund", "order": 17}]


@pytest.mark.parametrize("moment", ["after", "at_once"])
@pytest.mark.parametrize(
    ("make", "options", "outcome"),
    [
        (Forgetful, {}, "correct"),
        (AsyncForgetful, {}, "correct"),
        (Forgetful, {"wishes": 1}, "harm"),
        (Forgetful, {"effects": EFFECT}, "correct"),
        (Careful, {"effects": EFFECT}, "undone"),
        (Forgetful, {"effects": EFFECT, "world": "local", "facts": ["Refunded 17"]}, "correct"),
    ],
)
def test_an_event_that_is_wished_twice_is_done_twice(
    make: Any, moment: str, options: dict[str, Any], outcome: str
) -> None:
    fault = lab.inject("event_twice", "look", calls=[1], moment=moment, gap_s=0.01)
    trial = run(make, "Refund 17", fault, **{"wishes": 2, **options})
    assert (str(trial.outcome), trial.met) == (outcome, ("event_twice on look",)), trial.story()


def test_the_twin_of_an_event_that_is_wished_twice_is_of_its_turn_its_state_and_its_chance() -> None:
    import random

    paid: list[int] = []

    class Payer(Forgetful):
        def __init__(self) -> None:
            paid.clear()

        def __call__(self, prompt: str) -> str:
            paid.append(order_of(prompt))
            refund(order_of(prompt) + random.randrange(1000))
            return str(look(order_of(prompt)))

    faults = [lab.inject("event_twice", "look", on_turn=[2], moment="at_once"), lab.inject("latency", "look")]
    options: dict[str, Any] = {"tools": [refund], "reads": [look], "faults": faults, "state": lambda: [*paid]}
    for wishes, outcome in (1, "harm"), (2, "correct"):
        turns = lab.turns("Refund 17", "Refund 18")
        trials = lab.run_many(lab.fresh(Payer), turns, trials=3, wishes=wishes, **options)
        assert {(str(trial.outcome), len(trial.effects)) for trial in trials} == {(outcome, 3)}


def test_an_event_comes_twice_at_a_service_and_in_each_turn_once() -> None:
    def agent(prompt: str) -> str:
        return str(httpx.post("http://shop.test/refunds", json={"order": order_of(prompt)}).json()["ok"])

    faults = [lab.inject("event_twice", "shop.test")]
    trial = lab.run(
        agent, lab.turns("Refund 17", "Refund 18"), services={"shop.test": lambda _: {"ok": 1}}, faults=faults
    )
    assert str(trial.outcome) == "harm"
    assert [event.prompt for _, event in trial.history.find_events(EventRepeated)] == ["Refund 17", "Refund 18"]


def test_an_agent_that_refuses_the_second_time_has_failed() -> None:
    class Refusing(Careful):
        def __call__(self, prompt: str) -> str:
            if not self.lock.acquire(blocking=False):
                raise RuntimeError("busy")
            with_lock = Forgetful()(prompt)
            self.lock.release()
            return with_lock

    trial = run(Refusing, "Refund 17", lab.inject("event_twice", "look", calls=[1], moment="at_once"))
    assert str(trial.outcome) == "failed"
    assert "busy" in trial.why


@pytest.mark.parametrize(("make", "outcome"), [(Shared, "harm"), (Forgetful, "correct"), (AsyncForgetful, "correct")])
def test_two_sessions_at_once_do_not_leak(make: Any, outcome: str) -> None:
    fault = lab.inject("sessions_at_once", "look", calls=[1])
    trial = run(make, lab.turns("Refund 17", "Refund 18", "Refund 19"), fault)
    assert (str(trial.outcome), trial.met) == (outcome, ("sessions_at_once on look",)), trial.story()
    assert [event.turn for _, event in trial.history.find_events(TurnStarted)] == [1, 2, 3]
    assert trial.answer.splitlines()[1:] == ["Refunded 18.", "Refunded 19."]
    assert trial.why.endswith("turn 1 shows 18, which is of turn 2") == (outcome == "harm")


def test_a_turn_that_replies_does_not_begin_beside_what_it_replies_to() -> None:
    talk = lab.turns("Refund 17", lab.turn(reply={"Refunded": "Refund 18"}))
    trial = run(Forgetful, talk, lab.inject("sessions_at_once", "look", calls=[1]))
    assert (trial.met, trial.answer) == ((), "Refunded 17.\nRefunded 18."), trial.story()


@pytest.mark.parametrize("also", ["", " I heard of {} too."])
def test_an_answer_with_the_data_of_another_session_is_wrong(also: str) -> None:
    class Telling:
        heard: list[str] = []  # noqa: RUF012 - what it shares is the mistake

        def __call__(self, prompt: str) -> str:
            self.heard.append(prompt)
            look(order_of(prompt))
            other = self.heard[-1]
            return f"{prompt if also else other}: it is 20 dollars.{also.format(other) if other != prompt else ''}"

    trial = run(Telling, lab.turns("Price 17", "Price 18"), lab.inject("sessions_at_once", "look", calls=[1]))
    assert str(trial.outcome) == "wrong"
    assert trial.why.endswith("turn 1 shows 18, which is of turn 2")


class Resuming:
    """It keeps a note of what it was about to do, and does that first when it is asked again."""

    def __init__(self) -> None:
        self.todo: list[int] = []

    def __call__(self, prompt: str) -> str:
        self.todo.append(order_of(prompt))
        while self.todo:
            refund(self.todo[0])
            order = self.todo.pop(0)
        return f"Refunded {order}."


@pytest.mark.parametrize(
    ("make", "params", "outcome"),
    [
        (Forgetful, {}, "correct"),
        (AsyncForgetful, {}, "correct"),
        (Forgetful, {"moment": "after"}, "harm"),
        (Careful, {"moment": "after"}, "correct"),
        (Forgetful, {"say": "Refund 18"}, "correct"),
        (Resuming, {"say": "Refund 18"}, "harm"),
    ],
)
def test_an_agent_that_its_user_stops_does_what_is_wished_then(make: Any, params: dict[str, Any], outcome: str) -> None:
    trial = run(make, "Refund 17", lab.inject("user_stops", "refund", calls=[1], **params))
    assert (str(trial.outcome), trial.met) == (outcome, ("user_stops on refund",)), trial.story()
    assert [event.prompt for _, event in trial.history.find_events(UserStopped)] == [params.get("say", "Refund 17")]
    assert trial.why.endswith("the user stopped it at refund (1.1)")


def test_neither_an_except_nor_a_turn_hides_a_stop() -> None:
    class Swallowing(Forgetful):
        def __call__(self, prompt: str) -> str:
            try:
                return super().__call__(prompt)
            except BaseException:  # noqa: BLE001 - the mistake
                mail(17)
                return "Refunded 17."

    trial = run(Swallowing, "Refund 17", lab.inject("user_stops", "refund", calls=[1]))
    assert [each["effect"] for each in trial.effects] == ["mail", "refund"]
    talk = run(Forgetful, lab.turns("Refund 17", "Refund 18"), lab.inject("user_stops", "refund", calls=[1]))
    assert (str(talk.outcome), talk.answer) == ("correct", "Refunded 17.\nRefunded 18.")


@pytest.mark.parametrize("kind", ["sync", "async", "thread"])
@pytest.mark.parametrize(("moment", "outcome"), [("before", "correct"), ("after", "harm")])
def test_a_stop_at_a_service_reaches_the_agent_where_it_waits(kind: str, moment: str, outcome: str) -> None:
    told: list[str] = []

    def ask(prompt: str) -> str:
        try:
            return httpx.post("http://shop.test/refunds", json={"order": order_of(prompt)}).text
        except asyncio.CancelledError:
            told.append("stopped")
            raise

    async def ask_async(prompt: str) -> str:
        if kind == "thread":
            return await asyncio.to_thread(ask, prompt)
        try:
            async with httpx.AsyncClient() as client:
                return (await client.post("http://shop.test/refunds", json={"order": order_of(prompt)})).text
        except asyncio.CancelledError:
            told.append("stopped")
            raise

    agent: Any = ask if kind == "sync" else ask_async
    trial = lab.run(
        agent, "Refund 17", services={"shop.test": lambda _: {"ok": 1}},
        faults=[lab.inject("user_stops", "shop.test", calls=[1], moment=moment)],
    )  # fmt: skip
    assert str(trial.outcome) == outcome, trial.story()
    assert told == ([] if kind == "thread" else ["stopped"])


@pytest.mark.parametrize(
    ("fault", "options", "line"),
    [
        (lab.inject("sessions_at_once", "look"), {}, "is about the next turn, and there is none: give lab.turns"),
        (lab.inject("user_stops", "look", say="No.", chance=0.5), {}, "has say, and its twin is asked that"),
        (lab.inject("stale_approval", "refund", approval="look"), {}, "'look', which is none of its targets"),
        (
            lab.inject("user_stops", "shop"),
            {"upstreams": {"shop": "http://127.0.0.1:9"}, "world": "local"},
            "is at a service in real time: aim it at a function",
        ),
        (lab.inject("event_twice", "look"), {"wishes": 0}, "wishes is 0: it should be a whole number from 1"),
        (lab.inject("event_twice", "look", chance=0.5), {"wishes": 2}, "leave chance, after and other choices out"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(fault: Any, options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        run(Forgetful, "Refund 17", fault, **options)


def test_a_search_tries_it_where_it_is_asked_to() -> None:
    for make, tries, failures in (Hasty, "event_twice", 1), (Careful, "event_twice", 0), (Careful, "user_stops", 1):
        found = lab.explore(lab.fresh(make), "Refund 17", tools=[refund], reads=[look], tries=[tries])
        assert len(found.failures) == failures
    with pytest.raises(ValueError, match="whose trials share a twin that is asked once: leave wishes out"):
        lab.explore(lab.fresh(Hasty), "Refund 17", tools=[refund], reads=[look], tries=["event_twice"], wishes=2)
    found = lab.explore(lab.fresh(Forgetful), "Refund 17", tools=[refund], reads=[look], trials=200)
    faults = {choice.fault for tried in found.trials for hit in tried.variation.injections for choice in hit.choices}
    assert "lost_reply" in faults
    assert not faults & {"event_twice", "user_stops"}


SCENARIO = """
chaoslab: 1
name: the same event
agent: refunds:agent
tools: [refunds:refund]
trials: 1
"""
TURNS = "turns: [{say: Refund 17.}, {say: Refund 17.}]\n"
REPEATED = "prompt: Refund 17.\nfaults: [{fault: event_twice, target: refund, calls: [1], moment: at_once}]\n"
MODULE = """
def refund(order):
    return order

def agent(prompt):
    refund(17)
    return "Refunded."
"""


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        (TURNS, "harm"),
        (TURNS + "wishes: 2", "correct"),
        (REPEATED, "harm"),
        (REPEATED + "wishes: 2", "correct"),
        (TURNS + "faults: [{fault: user_stops, target: refund, on_turn: [2], calls: [2]}]\nwishes: 2", "correct"),
    ],
)
def test_a_scenario_has_it(more: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaoslab.scenarios import load, running

    (tmp_path / "refunds.py").write_text(MODULE)
    path = tmp_path / "twice.chaos.yaml"
    path.write_text(SCENARIO + more)
    monkeypatch.chdir(tmp_path)
    (scenario,) = load.load_file_scenarios(path)
    (ruling,) = running.run_scenario(scenario)
    assert str(ruling.trial.outcome) == outcome, ruling.trial.story()


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (lab.inject("event_twice", "refund", calls=[1]), "harm"),
        (lab.inject("event_twice", "refund", calls=[1], moment="at_once", gap_s=0.01), "harm"),
        (lab.inject("user_stops", "refund", calls=[1]), "correct"),
    ],
)
def test_in_real_time_it_is_the_same(fault: Any, outcome: str) -> None:
    wanted = [{"effect": "refund", "order": 17}]
    trial = run(Forgetful, "Refund 17", fault, world="local", effects=wanted, facts=["Refunded 17"])
    assert str(trial.outcome) == outcome, trial.story()
