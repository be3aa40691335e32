"""A conversation is one trial of several turns: the agent remembers, services keep state, faults hit by turn."""

import time
from contextlib import suppress
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.conversation import READ_MAX
from chaoslab.core.events import CallStarted, FaultWitnessed, TurnFinished, TurnStarted

WRONG: Any = 3


def pay(order: int) -> str:
    return f"paid {order}"


def look(order: int) -> str:
    return f"{order} at {time.strftime('%H:%M')}"


class Clerk:
    """An agent that remembers what it was asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, words: str) -> str:
        self.heard.append(words)
        try:
            done = pay(17) if words.startswith("Pay") else look(17)
        except OSError:
            done = "it may have been done"
        return f"{len(self.heard)}: {done}. Are you sure?"


TALK = lab.turns("Pay order 17.", lab.turn(reply={"(?i)SURE": "Yes."}), lab.turn("Is it done?", after_s=7200))


def tried(*faults: Any, talk: Any = TALK, **more: Any) -> lab.Trial:
    return lab.run(lab.fresh(Clerk), talk, tools=[pay], reads=[look], faults=faults, **more)


def test_the_agent_remembers_and_time_passes_between_turns() -> None:
    trial = tried()
    assert trial.answer.splitlines() == [
        "1: paid 17. Are you sure?", "2: 17 at 09:00. Are you sure?", "3: 17 at 11:00. Are you sure?",
    ]  # fmt: skip
    assert trial.seconds == 7200
    assert trial.ok, trial.story()
    assert [(e.turn, e.prompt) for _, e in trial.history.find_events(TurnStarted)] == [
        (1, "Pay order 17."), (2, "Yes."), (3, "Is it done?"),
    ]  # fmt: skip
    assert [e.turn for _, e in trial.history.find_events(TurnFinished)] == [1, 2, 3]
    assert [(e.tool, e.at.turn) for _, e in trial.history.find_events(CallStarted)] == [
        ("pay", 1),
        ("look", 2),
        ("look", 3),
    ]


def test_the_deadline_does_not_count_the_waits_between_turns() -> None:
    assert tried(deadline_s=5).seconds == 7200


@pytest.mark.parametrize(
    ("triggers", "hit"),
    [({"on_turn": [2]}, [2]), ({"on_turn": [3]}, [3]), ({"between_turns": True}, [2, 3]), ({}, [2, 3])],
    ids=str,
)
def test_faults_hit_by_turn(triggers: dict[str, Any], hit: list[int]) -> None:
    trial = tried(lab.inject("latency", "look", delay_s=1, **triggers))
    assert [event.at.turn for _, event in trial.history.find_events(FaultWitnessed)] == hit
    assert trial.seconds == 7200 + len(hit)


def test_a_call_that_no_fault_is_for_has_its_turn_too() -> None:
    trial = tried(lab.inject("latency", "pay", delay_s=1))
    assert [(e.tool, e.at.turn) for _, e in trial.history.find_events(CallStarted)] == [
        ("pay", 1),
        ("look", 2),
        ("look", 3),
    ]


def test_where_no_pattern_is_found_the_conversation_ends() -> None:
    trial = tried(talk=lab.turns("Pay order 17.", lab.turn(reply={"failed": "Again!"}), "Thanks."))
    assert [event.prompt for _, event in trial.history.find_events(TurnStarted)] == ["Pay order 17."]


def test_the_first_pattern_that_is_found_is_answered() -> None:
    answers = {"no such": "one", "sure": "two", "paid": "three"}
    trial = tried(talk=lab.turns("Pay order 17.", lab.turn(reply=answers)))
    assert [event.prompt for _, event in trial.history.find_events(TurnStarted)] == ["Pay order 17.", "two"]


def test_a_service_knows_the_turn_and_keeps_its_state() -> None:
    import httpx

    count: list[int] = []

    def agent(words: str) -> str:
        if words == "again":
            return f"{httpx.post('http://shop/orders', json={'n': 2}).json()['orders']} orders"
        count.clear()
        return f"{httpx.post('http://shop/orders', json={'n': 1}).json()['orders']} order"

    def shop(request: Any) -> Any:
        count.append(request.json["n"])
        return {"orders": len(count)}

    slow = lab.inject("latency", "shop", delay_s=1, on_turn=[2])
    trial = lab.run(agent, lab.turns("first", "again"), services={"shop": shop}, faults=[slow])
    assert trial.answer == "1 order\n2 orders"
    assert [event.at.turn for _, event in trial.history.find_events(CallStarted)] == [1, 2]
    assert [event.at.turn for _, event in trial.history.find_events(FaultWitnessed)] == [2]


def test_an_async_agent_takes_its_turns_on_one_loop() -> None:
    import asyncio

    loops = set()

    async def agent(words: str) -> str:
        loops.add(id(asyncio.get_running_loop()))
        return words

    trial = lab.run(agent, lab.turns("one", lab.turn("two", after_s=60)), twin=False, facts=["two"])
    assert (trial.answer, trial.seconds, len(loops)) == ("one\ntwo", 60, 1)


def test_a_fresh_async_agent_keeps_its_client_between_turns() -> None:
    import asyncio

    class Agent:
        """It keeps what belongs to a loop: a task in the background, as a client's pool of connections does."""

        task: asyncio.Task[str] | None = None

        async def __call__(self, words: str) -> str:
            if self.task is None:
                self.task = asyncio.create_task(self.later())
                return words
            return await self.task

        async def later(self) -> str:
            await asyncio.sleep(90)
            return "the task has ended"

    for second in (lab.turn("two", after_s=60), lab.turn("two", after_s=120)):
        trial = lab.run(lab.fresh(Agent), lab.turns("one", second), twin=False, facts=["ended"])
        assert trial.error is None
        assert trial.answer == "one\nthe task has ended"
        assert trial.seconds == max(90, second.after_s)


def test_a_trial_that_ends_in_a_turn_says_so() -> None:
    def agent(words: str) -> str:
        if words == "two":
            raise RuntimeError("no more")
        return words

    trial = lab.run(agent, lab.turns("one", "two", "three"), twin=False, facts=["one"])
    assert str(trial.outcome) == "failed"
    assert [event.turn for _, event in trial.history.find_events(TurnFinished)] == [1]
    assert "turn     2: two" in trial.story()
    assert "turn     1 answered: one" in trial.story()


def test_one_conversation_is_the_same_bytes_again_and_another_is_another_run(tmp_path: Any) -> None:
    def run_into(folder: str, talk: Any) -> Any:
        tried(lab.inject("latency", "look", chance=0.5), talk=talk, logs=tmp_path / folder)
        return (tmp_path / folder / "latest" / "info.log").read_bytes()

    assert run_into("a", TALK) == run_into("b", TALK)
    other = lab.turns(*TALK.turns[:2], lab.turn("Is it done?", after_s=60))
    assert run_into("c", other) != run_into("a", TALK)


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda: lab.turns(), ValueError, "1 to 1000 turns"),
        (lambda: lab.turns(lab.turn(reply={"x": "y"})), ValueError, "the first turn has no answer to reply to"),
        (lambda: lab.turns(*["x", WRONG]), TypeError, r"a turn is a text or lab\.turn"),
        (lambda: lab.turn(), ValueError, "either the user's words or reply="),
        (lambda: lab.turn("x", reply={"a": "b"}), ValueError, "either the user's words or reply="),
        (lambda: lab.turn(reply={"(": "b"}), ValueError, r"the pattern '\(' cannot be read: missing \)"),
        (lambda: lab.turn(reply={"a": WRONG}), TypeError, "should be texts"),
        (lambda: lab.turn("x", facts="42"), TypeError, "it should be a list of texts"),
        (lambda: lab.turn("x", after_s=-1), ValueError, "after_s is -1: it should be a number from 0"),
        (lambda: lab.turn("x", after_s=float("nan")), ValueError, "after_s is nan"),
        (lambda: tried(lab.inject("latency", "look", on_turn=[4])), ValueError, "4"),
    ],
)  # fmt: skip
def test_what_is_no_conversation_is_refused(make: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_scripted_user_answers_until_no_pattern_is_found() -> None:
    trial = tried(talk=lab.turns("Pay order 17.", user={r"^[12]:": "Is it done?", "never": "No."}))
    asked = [event.prompt for _, event in trial.history.find_events(TurnStarted)]
    assert asked == ["Pay order 17.", "Is it done?", "Is it done?"]


def test_a_scripted_user_stops_at_the_bound() -> None:
    trial = tried(talk=lab.turns("Pay order 17.", user={"sure": "Go on."}, turns_max=4))
    assert [event.turn for _, event in trial.history.find_events(TurnFinished)] == [1, 2, 3, 4]


def test_faults_hit_the_turns_of_a_scripted_user() -> None:
    talk = lab.turns("Pay order 17.", user={"sure": "Go on."}, turns_max=3)
    trial = tried(lab.inject("tool_error", "look", on_turn=3), talk=talk)
    assert [event.at.turn for _, event in trial.history.find_events(FaultWitnessed)] == [3]
    with pytest.raises(ValueError, match="turn"):
        tried(lab.inject("tool_error", "look", on_turn=4), talk=talk)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": {"(": "a"}}, "cannot be read"),
        ({"user": {"a": "b"}, "turns_max": 1}, "leaves the user no turn"),
        ({"user": {"a": "b"}, "turns_max": 0}, "from 1 to 1000"),
        ({"turns_max": True}, "from 1 to 1000"),
    ],
)
def test_a_scripted_user_that_can_say_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        lab.turns("Pay order 17.", **given)


def forecast(city: str) -> int:  # noqa: ARG001
    return 10


def asked_by_turns(said: str, lost: list[int], *talk: Any, **options: Any) -> lab.Trial:
    """A conversation in which these requests are lost, with these words where one is."""

    def forecaster(words: str) -> str:
        try:
            return f"It is {forecast(words)} degrees."
        except OSError:
            return said

    faults = [lab.inject("refused", "forecast", calls=lost)]
    return lab.run(
        forecaster, lab.turns(*(talk or ("Oslo?", "Bergen?", "Rome?"))), reads=[forecast], faults=faults, **options
    )


@pytest.mark.parametrize(
    ("said", "lost", "outcome", "why"),
    [
        ("It is 15 degrees.", [1], "wrong", "turn 1: it says 15 instead of 10 (its twin); well again in turn 2"),
        ("It is 15 degrees.", [2, 3], "wrong", "turn 2: it says 15 instead of 10 (its twin); never well again"),
        ("I could not look.", [1], "unknown", "turn 1: nothing certain tells if it is right; well again in turn 2"),
        ("I could not look.", [3], "unknown", "turn 3: nothing certain tells if it is right; never well again"),
    ],
)
def test_a_conversation_is_judged_turn_by_turn(said: str, lost: list[int], outcome: str, why: str) -> None:
    trial = asked_by_turns(said, lost)
    assert (trial.outcome, trial.why) == (outcome, why)


def test_one_wrong_turn_counts_more_than_an_open_one() -> None:
    trial = asked_by_turns("It is 15 degrees.", [2], lab.turn("Oslo?", says={"t": r"is (\d+)"}), "Bergen?")
    assert trial.why.startswith("turn 2: it says 15 instead of 10")


def test_a_turn_states_its_facts_and_how_its_answer_is_read() -> None:
    undone = {"*": {"undone": "could not"}}
    talk = lab.turn("Oslo?", facts=[["10", "ten"]]), lab.turn("Bergen?", says=undone)
    assert asked_by_turns("It is cold.", [1], *talk).why == "turn 1: missing fact '10'; well again in turn 2"
    admitted = asked_by_turns("I could not look.", [2], *talk)
    assert (admitted.outcome, admitted.verdict.basis) == ("degraded", "says")


def test_a_turn_of_which_nothing_is_stated_is_right() -> None:
    trial = asked_by_turns("It is cold.", [2], lab.turn("Oslo?", facts=["10"]), "Bergen?", twin=False, effects=[])
    assert (trial.outcome, trial.verdict.basis) == ("correct", "facts")


def test_an_answer_that_stands_twice_is_wrong() -> None:
    trial = asked_by_turns("It is 10 degrees. It is 10 degrees.", [1])
    assert (trial.outcome, trial.why.split(";")[0]) == ("wrong", "turn 1: the answer stands twice (its twin)")


def test_what_was_left_undone_in_a_turn_is_told_by_the_whole_conversation() -> None:
    class Payer:
        def __init__(self) -> None:
            self.turn = 0

        def __call__(self, _words: str) -> str:
            self.turn += 1
            with suppress(RuntimeError, OSError):
                pay(self.turn)
                return f"Paid {self.turn}."
            return "I could not pay." if self.turn == 2 else f"Paid {self.turn}."

    faults = [lab.inject("tool_error", "pay")]
    trial = lab.run(lab.fresh(Payer), lab.turns("Pay 1.", "Pay 2."), tools=[pay], faults=faults)
    assert (trial.outcome, trial.verdict.world) == ("undone", "left undone")


def test_a_conversation_is_made_shorter_by_a_turn_and_begins_with_words() -> None:
    answer = lab.turn(reply={"ok": "Yes."})
    told: list[tuple[tuple[Any, ...], list[str]]] = [
        (("a", "b", answer, "c"), ["a b Yes.", "a b c", "a Yes. c", "b Yes. c"]), (("a", answer), ["a"]),
        (("a", "b"), ["a", "b"]), (("a",), []),
    ]  # fmt: skip
    for turns, shorter in told:
        assert [" ".join(str(each).splitlines()) for each in lab.turns(*turns).iterate_without_turn()] == shorter


def test_the_turns_of_a_scripted_user_follow_those_that_are_stated() -> None:
    talk = lab.turns("a", lab.turn("b", after_s=2), user={"q": "no", "r": "yes"}, turns_max=4)
    assert (talk.turn_count_max, talk.total_wait_s, str(talk)) == (4, 2.0, "a\nb\nno or yes")
    assert [None if (turn := talk.get_turn(n)) is None else str(turn) for n in range(1, 6)] == [
        "a", "b", "no or yes", "no or yes", None
    ]  # fmt: skip
    assert [each.after_s for each in talk.with_waits({1: 5.0}).turns] == [5.0, 2.0]
    plain = lab.turns("a", "b")
    assert (plain.turn_count_max, plain.get_turn(3)) == (2, None)
    user = lab.turn(reply={"ok": "good", "no": "bad"})
    assert [user.choose_words(said) for said in ("ok no", "no", "neither")] == ["good", "bad", None]
    assert [user.choose_words(" " * blank + "ok") for blank in (READ_MAX - 2, READ_MAX - 1)] == ["good", None]
