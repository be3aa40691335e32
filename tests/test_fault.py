"""A fault has defaults and says by its traits what it is; one of a plug-in is checked when it is loaded."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.mttr import Ending, find_incidents
from chaoslab.analysis.verdict import traits
from chaoslab.base.dice import Dice
from chaoslab.base.registry import BrokenPlugin
from chaoslab.cli import main
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import BrokenFault, Fault, load_fault
from chaoslab.core.plan import Choice
from chaoslab.record.history import History
from chaoslab.wire import fault_lifecycle
from tests.event_parts import call_at, fault_at, prompt_finished, story
from tests.measure_parts import errors
from tests.plugin_parts import installed

CALL = Call("search", "search_web", "p1.r1", 1, 1, value={"query": "cats"})
GIVEN, CHANGED = Reply(200, {}, b'{"n": 1}'), Reply(200, {}, b'{"n": 2}')

LIAR = """
@dataclass(frozen=True)
class Sock(Fault):
    '''Every answer is a sock.'''

    size: int = 42
    layer = "meaning"
    corrupts = "reply"

    def flow(self, call, context):
        reply = yield call
        return reply.with_value({"sock": self.size})
"""


@dataclass(frozen=True)
class Plain(Fault):
    """A fault that overrides nothing but its layer."""

    layer = "tool"


def test_the_defaults_draw_nothing_pass_the_call_on_and_name_no_toxics() -> None:
    fault = Plain()
    assert fault.draw(Dice(1)) is fault
    story: Flow = fault.flow(CALL, TrialContext())
    assert next(story) is CALL
    with pytest.raises(StopIteration) as over:
        story.send(GIVEN)
    assert over.value.value is GIVEN
    assert fault.toxics() == ()


def test_by_default_a_fault_is_witnessed_where_what_it_changed_came_through() -> None:
    fault, seen, other = Plain(), Observation(0.1, 2.0), CALL.with_value({"query": "dogs"})
    assert (
        fault.witnessed(replace(seen, reply=CHANGED, changed_reply=CHANGED)) == "the changed reply reached the caller"
    )
    assert fault.witnessed(replace(seen, reply=GIVEN, changed_reply=CHANGED)) is None
    assert fault.witnessed(replace(seen, sent=other, changed_call=other)) == "the changed call was sent"
    assert fault.witnessed(replace(seen, sent=CALL, changed_call=other)) is None
    assert fault.witnessed(replace(seen, sent=None, changed_call=other)) is None
    assert fault.witnessed(replace(seen, sent=other)) is None
    assert fault.witnessed(replace(seen, reply=GIVEN)) is None


def story_of(fault: str) -> History:
    """An attempt met the fault and one of the wire, and was answered; a later one was right."""
    met = (
        FaultWitnessed(**fault_at(name, "any", "search", 1, 1, "id"), evidence="seen") for name in (fault, "latency")
    )
    calls = (CallFinished(**call_at("search", "search_web", 1, n, "id"), ok=True, duration_s=1.0) for n in (1, 2))
    return story(*met, *calls, prompt_finished(duration_s=3.0))


def test_a_plug_ins_fault_that_corrupts_an_answer_counts_in_mttr_as_the_labs_own_does(tmp_path: Path) -> None:
    """Nobody can notice it, so no incident opens at an attempt that it answered."""
    assert find_incidents(story_of("wrong_value")) == []
    assert [i.ending for i in find_incidents(story_of("sock"))] == [
        Ending.LATE
    ]  # it is not installed, and has no traits
    with installed(tmp_path, LIAR, fault="sock"):
        assert find_incidents(story_of("sock")) == []
        assert (traits.get_corrupted_side("sock"), traits.can_attempt_succeed("sock")) == ("reply", True)


def test_a_plug_ins_fault_that_cannot_be_used_has_the_default_traits(tmp_path: Path) -> None:
    with installed(tmp_path, "raise RuntimeError('no')", fault="sock"):
        assert (traits.get_corrupted_side("sock"), traits.is_conditional("sock")) == ("", False)
        assert [i.ending for i in find_incidents(story_of("sock"))] == [Ending.LATE]


def test_a_fault_that_is_not_installed_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes 10 ms, and a log may tell of thousands of faults of one name."""
    looked = []

    def look(fault: str) -> type[Fault]:
        looked.append(fault)
        return load_fault(fault)

    monkeypatch.setattr(traits, "load_fault", look)
    assert {traits.get_corrupted_side("nowhere_installed") for _ in range(50)} == {""}
    assert looked == ["nowhere_installed"]


def test_a_failed_attempt_counts_for_the_fault_that_failed_it_whoever_brings_the_other(tmp_path: Path) -> None:
    events = [
        FaultWitnessed(**fault_at(name, "any", "search", 1, 1, "id"), evidence="seen") for name in ("sock", "timeout")
    ]
    failed = CallFinished(**call_at("search", "search_web", 1, 1, "id"), ok=False, duration_s=2.0, error="timed_out")
    history = story(*events, failed)
    with installed(tmp_path, LIAR, fault="sock"):
        assert errors(history)["search timed out"]["timeout"] == 1


def test_a_plug_ins_fault_works_in_a_trial_and_is_witnessed_by_default(tmp_path: Path) -> None:
    def socks() -> int:
        return 1

    with installed(tmp_path, LIAR, fault="sock"):
        trial = lab.run(
            lambda _: str(socks()), "How many?", reads=[socks], faults=[lab.inject("sock", "socks", size=7)]
        )
        assert trial.answer == "{'sock': 7}"
        assert [e.evidence for _, e in trial.history.find_events(FaultWitnessed)] == [
            "the changed reply reached the caller"
        ]


BUGS = {
    "draw": (LIAR + "\n    def draw(self, dice):\n        return {}['size']\n", "its draw() raised KeyError: 'size'"),
    "flow, before the call": (LIAR.replace("reply = yield call", "self.sise"), "its flow() raised AttributeError: "),
    "flow, after it": (
        LIAR.replace("return reply", "return reply or self.sise if 0 else self.sise"),
        "its flow() raised AttributeError: ",
    ),
    "flow returns no reply": (
        LIAR.replace('return reply.with_value({"sock": self.size})', "pass"),
        "it returned NoneType",
    ),
    "flow yields something else": (LIAR.replace("yield call", "yield 1"), "it yielded int: a story yields a Call"),
    "flow is no story": (LIAR.replace("reply = yield call\n        return reply", "return call"), "its flow() raised "),
    "witnessed": (
        LIAR + "\n    def witnessed(self, seen):\n        return seen.answer\n",
        "its witnessed() raised AttributeError: ",
    ),
}


@pytest.mark.parametrize(("source", "why"), BUGS.values(), ids=BUGS)
def test_a_plug_in_with_a_bug_fails_nobody_but_itself(source: str, why: str, tmp_path: Path) -> None:
    """Not even an agent that takes everything for an error of its tool."""

    def socks() -> int:
        return 1

    def agent(_: str) -> str:
        try:
            return str(socks())
        except Exception as error:  # noqa: BLE001
            return f"sorry, {error}"

    said = rf"^the fault 'sock' of the package gremlins 1\.0 cannot be used: .*{re.escape(why)}"
    with installed(tmp_path, source, fault="sock"), pytest.raises(BrokenFault, match=said) as raised:
        lab.run(agent, "How many?", reads=[socks], faults=[lab.inject("sock", "socks")])
    assert "\n" not in str(raised.value)


def test_the_labs_own_run_ends_with_a_line_about_such_a_plug_in(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, why = BUGS["flow, after it"]
    with installed(here, source, fault="sock"):
        assert main(["run", "--world", "virtual", "ERROR_PROB=1", "ERRORS=sock:1", "TRIALS=2"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "sock" in line]
    assert f"the fault 'sock' of the package gremlins 1.0 cannot be used: {why}" in line


def test_a_setting_takes_a_plug_ins_fault_of_its_layer_and_no_other(tmp_path: Path) -> None:
    with installed(tmp_path, LIAR, fault="sock"):
        chosen = Settings().override({"TOXIC_PROB": "0", "ERRORS": "sock:1"})
        assert [i.choices for i in plan_from_settings(chosen).injections] == [(Choice("sock", 1.0, {}),)]
        with pytest.raises(SettingError, match="TOXICS names 'sock', a fault of the layer meaning: name it in ERRORS"):
            plan_from_settings(Settings().override({"TOXICS": "sock:1"}))
    with pytest.raises(SettingError, match=r"ERRORS=socks should be names with weights like \w+:1"):
        Settings().override({"ERRORS": "socks"})


def test_whether_a_lane_is_needed_is_a_trait() -> None:
    @dataclass(frozen=True)
    class Closed(Fault):
        layer = "wire"
        refuses = True

    assert fault_lifecycle.has_refusing_fault(
        [ActiveFault("any", "plain", Plain()), ActiveFault("any", "closed", Closed())]
    )
    assert not fault_lifecycle.has_refusing_fault([ActiveFault("any", "plain", Plain())])


# What is wrong with a plug-in is said when it is loaded.

BROKEN: dict[str, tuple[str, str]] = {
    "an unknown layer": (LIAR.replace('"meaning"', '"cloud"'), "its layer is 'cloud': it should be one of budget, "),
    "no layer": (LIAR.replace('    layer = "meaning"\n', ""), "it has no layer: it should be one of budget, "),
    "no witnessed": (
        LIAR.replace("(Fault)", "").replace("def flow", "toxics = draw = lambda self, *_: ()\n\n    def flow"),
        "it has no method witnessed()",
    ),
    "no draw": (LIAR.replace("(Fault)", ""), "it has no method draw()"),
    "no dataclass": (LIAR.replace("@dataclass(frozen=True)\n", ""), "it is no dataclass"),
    "a function": ("def Sock(): ...", "it is no dataclass"),
    "no such class": (LIAR.replace("Sock", "Sandal"), "AttributeError: module 'gremlins' has no attribute 'Sock'"),
    "an import that fails": ("import no_such_module_here",
                             "ModuleNotFoundError: No module named 'no_such_module_here'"),
    "an import in many lines": ("raise ValueError('one\\n\\n  two ' + 'x' * 999)", "ValueError: one two xxx"),
    "does nothing": (LIAR.replace("flow", "flown"), "it has neither a flow() nor toxics() of its own"),
    "another half": (LIAR.replace('"reply"', '"headers"'),
                     "its corrupts is 'headers': it should be 'call', 'reply' or ''"),
    "another rest": (LIAR.replace('corrupts = "reply"', 'leaves = "crumbs"'),
                     "its leaves is 'crumbs': it should be 'value', 'part', 'nothing', 'garbage' or ''"),
    "needs a number": (LIAR.replace('corrupts = "reply"', "needs = 3"), "its needs is 3: it should be a text"),
    "of the wire, without a witness": (LIAR.replace('"meaning"', '"wire"'), "it is of the wire and has no witnessed()"),
    "of the wire, without toxics": (
        LIAR.replace('"meaning"', '"wire"') + "\n    def witnessed(self, seen): ...",
        "it is of the wire and has no toxics() of its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "why"), BROKEN.values(), ids=BROKEN)
def test_a_plug_in_that_cannot_be_used_is_said_in_one_line_with_its_package(
    tmp_path: Path, source: str, why: str
) -> None:
    with installed(tmp_path, source):
        with pytest.raises(BrokenPlugin) as error:
            lab.run(lambda _: "x", "x", reads=[len], faults=[lab.inject("gremlin", "len")])
        (line,) = error.value.args
        assert line.startswith("the fault 'gremlin' of the package gremlins 1.0 cannot be used: ")
        assert why in line
        assert "\n" not in line
        assert len(line) <= 400


def test_the_methods_may_be_a_plug_ins_own_without_the_base_class(tmp_path: Path) -> None:
    own = "draw = lambda self, dice: self\n    toxics = lambda self: ()\n    witnessed = lambda self, seen: None\n"
    with installed(tmp_path, LIAR.replace("(Fault)", "").replace("    layer", f"    {own}    layer")):
        assert load_fault("gremlin").__name__ == "Sock"
        assert traits.get_corrupted_side("gremlin") == "reply"


@pytest.mark.parametrize(
    "says", ["refuses = True", "toxics = lambda self: ()\n    witnessed = lambda self, seen: None"]
)
def test_a_fault_of_the_wire_has_toxics_or_refuses(says: str, tmp_path: Path) -> None:
    witness = "\n    def witnessed(self, seen): ...\n"
    with installed(tmp_path, LIAR.replace('layer = "meaning"', f'layer = "wire"\n    {says}') + witness):
        assert load_fault("gremlin").layer == "wire"


@pytest.mark.parametrize(
    "command",
    [["lab"], ["lab", "WORLD=virtual"], ["run", "--world", "virtual"], ["agent", "--run", "x"]],
    ids=lambda command: " ".join(command),
)
def test_a_command_says_the_line_and_ends_with_2(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(tmp_path, LIAR.replace('"meaning"', '"cloud"')):
        monkeypatch.chdir(tmp_path)
        assert main([*command, "FAULTS=gremlin:1"]) == 2
    said = capsys.readouterr()
    line = r"the fault 'gremlin' of the package gremlins 1\.0 cannot be used: its layer is 'cloud': .*\n"
    assert re.fullmatch(line, said.err)
    assert said.out == ""
    assert not (tmp_path / "logs").exists()


@pytest.mark.usefixtures("no_charts")
def test_a_replay_says_the_line_and_ends_with_2(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plug").mkdir()
    with installed(here / "plug", LIAR):
        assert main(["lab", "WORLD=virtual", "TRIALS=1", "FAULTS=gremlin:1"]) == 0
    (run,) = (here / "logs").glob("2*")
    (here / "worse").mkdir()
    with installed(here / "worse", LIAR.replace('"meaning"', '"cloud"')):
        capsys.readouterr()
        assert main(["replay", str(run)]) == 2
        said = capsys.readouterr().err
    assert "the fault 'gremlin' of the package gremlins 1.0 cannot be used: its layer is 'cloud'" in said
    assert said.count("\n") == 1
