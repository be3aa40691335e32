"""A conversation is one trial of several turns: the agent remembers, services keep state, faults hit by turn."""

import time
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
    assert [(e.turn, e.prompt) for _, e in trial.history.of(TurnStarted)] == [
        (1, "Pay order 17."), (2, "Yes."), (3, "Is it done?"),
    ]  # fmt: skip
    assert [e.turn for _, e in trial.history.of(TurnFinished)] == [1, 2, 3]
    assert [(e.tool, e.at.turn) for _, e in trial.history.of(CallStarted)] == [("pay", 1), ("look", 2), ("look", 3)]


def test_the_deadline_does_not_count_the_waits_between_turns() -> None:
    assert tried(deadline_s=5).seconds == 7200


@pytest.mark.parametrize(
    ("triggers", "hit"),
    [({"on_turn": [2]}, [2]), ({"on_turn": [3]}, [3]), ({"between_turns": True}, [2, 3]), ({}, [2, 3])],
    ids=str,
)
def test_faults_hit_by_turn(triggers: dict[str, Any], hit: list[int]) -> None:
    trial = tried(lab.inject("latency", "look", delay_s=1, **triggers))
    assert [event.at.turn for _, event in trial.history.of(FaultWitnessed)] == hit
    assert trial.seconds == 7200 + len(hit)


def test_a_call_that_no_fault_is_for_has_its_turn_too() -> None:
    trial = tried(lab.inject("latency", "pay", delay_s=1))
    assert [(e.tool, e.at.turn) for _, e in trial.history.of(CallStarted)] == [("pay", 1), ("look", 2), ("look", 3)]


def test_where_no_pattern_is_found_the_conversation_ends() -> None:
    trial = tried(talk=lab.turns("Pay order 17.", lab.turn(reply={"failed": "Again!"}), "Thanks."))
    assert [event.prompt for _, event in trial.history.of(TurnStarted)] == ["Pay order 17."]


def test_the_first_pattern_that_is_found_is_answered() -> None:
    answers = {"no such": "one", "sure": "two", "paid": "three"}
    trial = tried(talk=lab.turns("Pay order 17.", lab.turn(reply=answers)))
    assert [event.prompt for _, event in trial.history.of(TurnStarted)] == ["Pay order 17.", "two"]


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
    assert [event.at.turn for _, event in trial.history.of(CallStarted)] == [1, 2]
    assert [event.at.turn for _, event in trial.history.of(FaultWitnessed)] == [2]


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
    assert [event.turn for _, event in trial.history.of(TurnFinished)] == [1]
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
    asked = [event.prompt for _, event in trial.history.of(TurnStarted)]
    assert asked == ["Pay order 17.", "Is it done?", "Is it done?"]


def test_a_scripted_user_stops_at_the_bound() -> None:
    trial = tried(talk=lab.turns("Pay order 17.", user={"sure": "Go on."}, turns_max=4))
    assert [event.turn for _, event in trial.history.of(TurnFinished)] == [1, 2, 3, 4]


def test_faults_hit_the_turns_of_a_scripted_user() -> None:
    talk = lab.turns("Pay order 17.", user={"sure": "Go on."}, turns_max=3)
    trial = tried(lab.inject("tool_error", "look", on_turn=3), talk=talk)
    assert [event.at.turn for _, event in trial.history.of(FaultWitnessed)] == [3]
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


class Payer:
    """It says what it did in each turn, and pays at the next question what it could not pay before."""

    def __init__(self) -> None:
        self.paid = False

    def __call__(self, _: str) -> str:
        was = self.paid
        try:
            self.paid = self.paid or bool(pay(17))
        except (OSError, lab.ToolError):
            return "I could not pay order 17."
        return "It is paid." if was else "Order 17 is paid now."


def test_a_turn_that_says_that_nothing_was_done_before_it_was_is_not_wrong() -> None:
    talk, error = lab.turns("Pay order 17.", "And now?"), lab.inject("exception", "pay", calls=[1])
    trial = lab.run(lab.fresh(Payer), talk, tools=[pay], faults=[error])
    assert [effect["effect"] for effect in trial.effects] == ["pay"]
    assert trial.outcome is lab.Outcome.UNKNOWN, trial.story()
    assert "it is not clear what it denies" in trial.why
    lost = lab.inject("lost_reply", "pay", calls=[1])
    silent = lab.run(lambda _: Payer()("Pay"), "Pay order 17.", tools=[pay], faults=[lost])
    assert silent.outcome is lab.Outcome.WRONG, silent.story()


class Forgetful:
    """It says nothing of a payment without an answer, and denies it in the next turn."""

    def __init__(self) -> None:
        self.lost = False

    def __call__(self, words: str) -> str:
        if words.startswith("Is"):
            return "I could not pay order 17." if self.lost else "Order 17 is paid."
        try:
            pay(17)
        except OSError:
            self.lost = True
        return "One moment."


def test_a_turn_that_denies_what_was_done_before_is_wrong() -> None:
    talk, lost = lab.turns("Pay order 17.", "Is it paid?"), lab.inject("lost_reply", "pay", calls=[1])
    trial = lab.run(lab.fresh(Forgetful), talk, tools=[pay], faults=[lost])
    assert trial.outcome is lab.Outcome.WRONG, trial.story()


def paid_by_turns(*answers: str, talk: tuple[str, ...] = ("Pay 1.", "Pay 2.")) -> lab.Trial:
    """A conversation in which every payment is lost, with these answers where it is."""

    class Payer:
        def __init__(self) -> None:
            self.turn = 0
            self.lost = False

        def __call__(self, _words: str) -> str:
            self.turn += 1
            try:
                if self.turn < 3:
                    pay(self.turn)
            except Exception:  # noqa: BLE001 - the tool's error
                self.lost = True
            return answers[self.turn - 1] if self.lost else f"Paid {self.turn}."

    return lab.run(lab.fresh(Payer), lab.turns(*talk), tools=[pay], faults=[lab.inject("tool_error", "pay")])


@pytest.mark.parametrize(
    "answers",
    [
        ("Paid 1.", "I could not pay."),
        ("Paid.", "I could not pay 2."),
        ("Done.", "I could not pay."),
        ("Order 1 is paid.", "The payment failed."),
        ("I could not pay.", "Paid 2."),
        ("Paid 1.", "I could not pay 1 or 2."),
        ("Paid 1.", "I could not pay. The earlier payment failed too."),
        ("Paid 1.", "I could not pay any of them."),
        ("Paid 1.", "The payments failed."),
        ("Paid 1.", "I could not pay, same as last time."),
        ("Paid 1, but it failed.", "I could not pay."),
        ("Order 1 will be paid.", "I could not pay."),
    ],
)
def test_a_claim_of_one_turn_and_an_admission_of_another_are_unclear_together(answers: tuple[str, ...]) -> None:
    trial = paid_by_turns(*answers)
    assert trial.outcome == "unknown", trial.story()
    assert "it does both" in trial.why


@pytest.mark.parametrize(
    "answers",
    [
        ("I could not pay.", "I could not pay."),
        ("I may have paid 1.", "I could not pay."),
        ("Paid 1?", "I could not pay."),
    ],
)
def test_a_turn_that_claims_nothing_leaves_a_conversation_honest(answers: tuple[str, ...]) -> None:
    trial = paid_by_turns(*answers)
    assert trial.outcome == "degraded", trial.story()
    assert not trial.verdict.certain


def test_an_admission_whose_subject_is_open_does_not_take_back_an_earlier_claim_for_certain() -> None:
    answers = ("Paid 1.", "I could not pay.", "No.")
    for talk in (
        ("Pay 1.", "Is it paid? Pay now."),
        ("Pay 1.", "Pay 2, and 1 too."),
        ("Pay 1.", "Pay 2.", "Is it done?"),
    ):
        assert paid_by_turns(*answers, talk=talk).outcome == "unknown", talk


def test_a_conversation_is_made_shorter_by_a_turn_and_begins_with_words() -> None:
    answer = lab.turn(reply={"ok": "Yes."})
    told: list[tuple[tuple[Any, ...], list[str]]] = [
        (("a", "b", answer, "c"), ["a b Yes.", "a b c", "a Yes. c", "b Yes. c"]), (("a", answer), ["a"]),
        (("a", "b"), ["a", "b"]), (("a",), []),
    ]  # fmt: skip
    for turns, shorter in told:
        assert [" ".join(str(each).splitlines()) for each in lab.turns(*turns).shorter()] == shorter


def test_the_turns_of_a_scripted_user_follow_those_that_are_stated() -> None:
    talk = lab.turns("a", lab.turn("b", after_s=2), user={"q": "no", "r": "yes"}, turns_max=4)
    assert (talk.most, talk.waits_s, str(talk)) == (4, 2.0, "a\nb\nno or yes")
    assert [None if (turn := talk.turn(n)) is None else str(turn) for n in range(1, 6)] == [
        "a", "b", "no or yes", "no or yes", None
    ]  # fmt: skip
    assert [each.after_s for each in talk.waiting({1: 5.0}).turns] == [5.0, 2.0]
    plain = lab.turns("a", "b")
    assert (plain.most, plain.turn(3)) == (2, None)
    user = lab.turn(reply={"ok": "good", "no": "bad"})
    assert [user.words(said) for said in ("ok no", "no", "neither")] == ["good", "bad", None]
    assert [user.words(" " * blank + "ok") for blank in (READ_MAX - 2, READ_MAX - 1)] == ["good", None]
