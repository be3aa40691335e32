"""A story is told the trial around its call: turn, time, use, a memory of its own, and the attempts that are over."""

import time
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.core.dialog import Dialog, collect_text, map_texts
from chaoslab.core.events import FaultInjected, FaultWitnessed
from chaoslab.record.history import History
from tests.cli_parts import prompts
from tests.plugin_parts import STALE, installed
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

FLAPPING = """
@dataclass(frozen=True)
class Sock(Fault):
    '''The target is down for every second call that it is reached with.'''

    layer = "tool"

    def flow(self, call, context):
        context.memory["calls"] = n = context.memory.get("calls", 0) + 1
        if n % 2 == 0:
            return call.build_refusal_reply(503)
        return (yield call)
"""

SPEAKING = """
@dataclass(frozen=True)
class Sock(Fault):
    '''Answers what it is told of the trial.'''

    layer = "meaning"
    corrupts = "reply"
    looks_back = True

    def flow(self, call, context):
        reply = yield call
        over = [(each.call.request, each.failed, each.began_s, each.ended_s) for each in context.earlier]
        return reply.with_value([context.trial, context.turn, context.elapsed_s, dict(context.spent), over])
"""


DOWN = "503 Service Unavailable"


def price(n: int) -> int:
    time.sleep(0.5)
    return n * 10


def asks(_: str) -> list[Any]:
    """The replies for four questions, in order."""
    said: list[Any] = []
    for n in range(1, 5):
        try:
            said.append(price(n))
        except (lab.ToolError, OSError) as error:
            said.append(str(error))
    return said


def test_a_story_reads_earlier_replies_of_its_trial_and_of_no_other(tmp_path: Path) -> None:
    with installed(tmp_path, STALE):
        faults = [lab.inject("gremlin", "price", calls=[3, 4], attempts=[1])]
        found = list(lab.run_many(asks, "go", trials=2, reads=[price], faults=faults, twin=False, facts=["10"]))
    assert [trial.answer for trial in found] == [[10, 20, 10, 10]] * 2
    assert [e.request for _, e in found[0].history.find_events(FaultWitnessed)] == [3, 4]


@pytest.mark.filterwarnings("ignore:'late' changed nothing")
def test_a_story_remembers_within_its_trial_and_two_injections_apart(tmp_path: Path) -> None:
    with installed(tmp_path, FLAPPING):
        every = lab.inject("gremlin", "price", name="every")
        late = lab.inject("gremlin", "price", name="late", after_calls=1)
        found = list(lab.run_many(asks, "go", trials=2, reads=[price], faults=[every], twin=False, facts=["10"]))
        both = lab.run(asks, "go", reads=[price], faults=[every, late], twin=False, facts=["10"])
    assert [trial.answer for trial in found] == [[10, DOWN, 30, DOWN]] * 2
    assert [(e.injection, e.request) for _, e in both.history.find_events(FaultInjected)] == [
        ("every", 2),
        ("every", 4),
    ]


def test_a_story_knows_where_in_the_trial_it_is(tmp_path: Path) -> None:
    with installed(tmp_path, SPEAKING):
        faults = [lab.inject("timeout", "price", calls=[1], after_s=2.0), lab.inject("gremlin", "price", calls=[2, 3])]
        trial = lab.run(asks, "go", reads=[price], faults=faults, twin=False, facts=["10"])
    second, third = trial.answer[1:3]
    elapsed_s = 2.0 if second[2] == 2.0 else 2.5  # the direction is drawn, and with it if the function was called
    assert second == ["p1.r1", 1, elapsed_s, {"calls": 1, "seconds": elapsed_s}, [(1, "closed", 0.0, elapsed_s)]]
    assert third[:2] == ["p1.r1", 1]
    assert third[4][1] == (2, None, elapsed_s, elapsed_s + 0.5)


@pytest.mark.usefixtures("no_charts")
def test_the_labs_own_run_and_its_replay_tell_a_story_the_same(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = prompts(here, ["What is the average of the temperatures in Rome, Athens and Lisbon?"])
    with installed(here, STALE.replace("each.call.tool == call.tool and ", "")):
        assert main(["run", "--world", "virtual", asked, "ERRORS=gremlin", "ERROR_PROB=1", "TOXIC_PROB=0"]) == 0
        injected = {(e.target, e.request) for _, e in History.read(here / "logs" / "latest").find_events(FaultInjected)}
        assert injected == {("weather", 1), ("weather", 2), ("weather", 3)}  # each was given the model's first answer
        assert main(["replay", "latest"]) == 0
    assert "equal" in capsys.readouterr().out


ASKED = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("dialog", "value", "found"),
    [
        (Dialog(), {"messages": [ASKED, "b", 3]}, [ASKED]), (Dialog(), {"messages": "a"}, []),
        (Dialog("input", bare=True), {"input": "a"}, [ASKED]),
        (Dialog("input", bare=True), {"input": [ASKED]}, [ASKED]),
        (Dialog("input", bare=True), {"messages": "a"}, []), (Dialog(), ["a"], []),
        (Dialog(), {"messages": None}, []),
    ],
)  # fmt: skip
def test_the_messages_of_a_request_are_a_list_or_one_text(dialog: Dialog, value: Any, found: list[Any]) -> None:
    assert dialog.list_messages(value) == found


def test_results_stand_behind_the_message_that_asked_for_them() -> None:
    value = {"model": "m", "messages": [{"role": role} for role in ("tool", "system", "user", "tool", "tool", "user")]}
    units = Dialog().group_messages(value)
    assert [(unit.role, len(unit.messages), unit.is_removable, unit.has_results) for unit in units] == [
        ("tool", 1, False, False), ("system", 1, False, False), ("user", 3, True, True), ("user", 1, True, False),
    ]  # fmt: skip
    assert Dialog().with_message_units(value, units) == value
    assert Dialog().with_message_units(value, units[:1]) == {"model": "m", "messages": [{"role": "tool"}]}


def test_texts_are_reworded_wherever_they_stand_but_for_a_models_thoughts() -> None:
    said = {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, "b", {"content": {"text": "c"}}],
        "id": "d",
        "n": 1,
    }
    assert map_texts(said, str.upper) == {
        "role": "user", "content": [{"type": "text", "text": "A"}, "b", {"content": {"text": "C"}}], "id": "d", "n": 1
    }  # fmt: skip
    assert collect_text(said) == "a\nc"
    for kind in ("reasoning", "thinking"):
        assert map_texts({"type": kind, "text": "a"}, str.upper) == {"type": kind, "text": "a"}
    assert map_texts("a", str.upper) == "A"
