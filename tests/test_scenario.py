"""The settings say what shall go wrong; the plan is that and nothing else."""

import math

import pytest

from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.levels import NETWORKS
from chaoslab.core.plan import Choice, Injection, Plan

ALL = tuple(SERVICES)
QUIET = {"TOXIC_PROB": "0", "ERROR_PROB": "0"}


def plan(**given: str) -> Plan:
    return plan_from_settings(Settings().override({**QUIET, **given}))


def only(**given: str) -> Injection:
    (injection,) = plan(**given).injections
    return injection


def test_by_default_the_wire_and_the_tools_fail_now_and_then() -> None:
    wire, errors = plan_from_settings(Settings()).injections
    assert (wire.name, wire.targets, wire.chance, wire.layer) == ("wire", ALL, 0.1, "wire")
    assert wire.choices == (
        Choice("timeout", 1.0, {"after_s": 0.0}),
        Choice("latency", 1.0, {"delay_s": 0.5, "jitter_s": 0.2}),
    )
    assert (errors.name, errors.targets, errors.chance, errors.layer) == ("errors", ALL, 0.1, "tool")
    assert errors.choices == (Choice("tool_error", 4.0), Choice("lost_reply", 1.0))


def test_what_can_never_hit_is_left_out() -> None:
    assert plan(SEED="7") == Plan(7)


def test_milliseconds_become_seconds() -> None:
    toxics = "timeout:1,latency:2,reset_peer:0"
    wire = only(TOXIC_PROB="0.5", TOXICS=toxics, LATENCY_MS="1500", JITTER_MS="250", TIMEOUT_MS="800")
    assert wire.choices == (
        Choice("timeout", 1.0, {"after_s": 0.8}),
        Choice("latency", 2.0, {"delay_s": 1.5, "jitter_s": 0.25}),
    )


def test_the_models_connection_has_a_chance_of_its_own() -> None:
    assert (only(MODEL_TOXIC_PROB="0.3").targets, only(MODEL_TOXIC_PROB="0.3").name) == ((MODEL,), "model_wire")
    assert only(MODEL_TOXIC_PROB="0.3", TOXIC_TARGETS="search").targets == (MODEL,)


def test_targets_narrow_what_may_fail() -> None:
    assert only(TOXIC_PROB="1", TOXIC_TARGETS="search, weather").targets == ("search", "weather")
    assert only(ERROR_PROB="1", ERROR_TARGETS="calendar").targets == ("calendar",)
    assert only(HALLUCINATION_PROB="1", ERROR_TARGETS="calendar").targets == ("calendar",)


@pytest.mark.parametrize("setting", ["TOXIC_TARGETS", "ERROR_TARGETS"])
@pytest.mark.parametrize("names", ["serach", "all,serach", "search,serach"])
def test_a_target_that_is_no_service_is_refused_even_when_nothing_is_to_fail(setting: str, names: str) -> None:
    with pytest.raises(SettingError, match=f"{setting} names '(serach|all)', which is no service: "):
        plan(**{setting: names})


def test_a_mistyped_target_is_told_what_it_may_have_meant() -> None:
    with pytest.raises(SettingError, match="did you mean 'search'"):
        plan(TOXIC_TARGETS="serach")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "TOXIC_TRIGGERS is '{': it should be JSON with triggers by name"),
        ("[]", "TOXIC_TRIGGERS is '[]': it should be JSON with triggers by name"),
        ('{"chance": 1}', "TOXIC_TRIGGERS has a chance: state it in TOXIC_PROB"),
        ('{"max_time": 1}', "TOXIC_TRIGGERS: no trigger is called 'max_time': did you mean 'max_times'?"),
        ('{"max_times": -1}', "max_times in TOXIC_TRIGGERS is -1: it should be a whole number, 1 or more"),
        ('{"after": "x"}', "'wire' is after 'x', which is no injection: known are wire"),
        ('{"on_turn": 2}', "'wire' can never hit: on_turn is [2], and the conversation has 1 turn"),
    ],
)
def test_a_wrong_trigger_is_one_line(given: str, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        plan(TOXIC_PROB="1", TOXIC_TRIGGERS=given)
    assert str(refused.value) == said or (str(refused.value).startswith(said) and said.endswith("name"))


def test_lies_and_lost_context_are_faults_of_meaning() -> None:
    lie, context = plan(HALLUCINATION_PROB="0.2", CONTEXT_PROB="0.3").injections
    assert (lie.name, lie.layer, lie.chance, lie.targets) == ("hallucination", "meaning", 0.2, ALL)
    assert (context.name, context.layer, context.chance, context.targets) == ("context", "context", 0.3, (MODEL,))


def test_a_network_is_that_of_all_tools_or_of_those_that_are_named() -> None:
    found = plan(NETWORK="poor", TOXIC_TARGETS="search").injections
    assert [(i.choices[0].fault, i.targets, i.chance) for i in found] == [
        ("delay", ("search",), 1.0), ("reset_peer", ("search",), 0.03), ("timeout", ("search",), 0.02),
    ]  # fmt: skip
    assert {i.targets for i in plan(NETWORK="good").injections} == {ALL}
    assert {i.targets for i in plan(NETWORK="production").injections} == {(MODEL,)}


@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_can_be_set(name: str) -> None:
    assert plan(NETWORK=name).injections
    with pytest.raises(SettingError, match="NETWORK"):
        plan(NETWORK=f"{name}s")


def test_faults_of_streams_hit_the_model_and_need_a_stream() -> None:
    stream = only(STREAM="on", STREAM_PROB="0.4", STREAM_FAULTS="stall:2,cut")
    assert (stream.name, stream.layer, stream.chance, stream.targets) == ("stream", "stream", 0.4, (MODEL,))
    assert stream.choices == (Choice("stall", 2.0), Choice("cut", 1.0))
    with pytest.raises(SettingError, match="needs STREAM=on"):
        plan(STREAM_PROB="0.4", STREAM="off")


@pytest.mark.parametrize(("given", "streams"), [
    ({}, False), ({"FAULTS": "stale:0.2,cut:0.1"}, True), ({"FAULTS": "stale:0.2,cut:0"}, False),
    ({"FAULTS": "stall@model:0.1"}, True), ({"STREAM_PROB": "0.1"}, True), ({"CHAOS_FAMILIES": "tool,stream"}, False),
    ({"CHAOS_FAMILIES": "tool,stream", "CHAOS_LEVEL": "1"}, True), ({"STREAM": "on"}, True),
])  # fmt: skip
def test_the_answers_come_in_parts_if_faults_of_streams_are_asked_for(given: dict[str, str], streams: bool) -> None:
    found = Settings().override(given)
    assert found.is_streaming is streams
    assert any(i.layer == "stream" for i in plan_from_settings(found).injections) is (streams and "STREAM" not in given)


def test_a_budget_guards_every_call_and_names_only_the_limits_that_were_set() -> None:
    budget = only(TOKEN_LIMIT="5000", TIME_LIMIT_S="20", BUDGET="soft")
    assert (budget.name, budget.targets, budget.chance) == ("budget", (*ALL, MODEL), 1.0)
    assert budget.choices == (Choice("budget", 1.0, {"tokens": 5000.0, "seconds": 20.0, "mode": "soft"}),)


def test_with_a_key_a_cautious_limit_on_dollars_holds_unless_another_is_set() -> None:
    (choice,) = only(GROQ_API_KEY="gsk_secret").choices
    assert choice.params == {"cost_usd": 0.5, "mode": "hard"}
    (choice,) = only(GROQ_API_KEY="gsk_secret", COST_LIMIT_USD="3").choices
    assert choice.params == {"cost_usd": 3.0, "mode": "hard"}


def test_no_secret_gets_into_the_plan() -> None:
    assert "gsk_secret" not in str(plan(GROQ_API_KEY="gsk_secret").to_json())


def test_any_fault_may_be_named_with_its_chance_and_hits_what_has_its_layer() -> None:
    found = plan(
        FAULTS="stale:0.2,truncate_context:0.1,empty_answer:0.2,server_error@model:0.3,latency@weather:1",
        LATENCY_MS="70",
    ).injections
    assert [(i.name, i.targets, i.chance) for i in found] == [
        ("stale", ALL, 0.2), ("truncate_context", (MODEL,), 0.1), ("empty_answer", (MODEL,), 0.2),
        ("server_error@model", (MODEL,), 0.3),
        ("latency@weather", ("weather",), 1.0),
    ]  # fmt: skip
    assert found[4].choices == (Choice("latency", 1.0, {"delay_s": 0.07, "jitter_s": 0.2}),)


def test_a_chance_of_0_switches_a_named_fault_off_as_in_a_sweep() -> None:
    sweep = [plan(FAULTS=f"stale:{chance},refused:0.2").injections for chance in ("0", "0.1", "0.0")]
    assert [[i.name for i in found] for found in sweep] == [["refused"], ["stale", "refused"], ["refused"]]


@pytest.mark.parametrize(("given", "line"), [
    ({"FAULTS": "latncy:0"}, "names with chances from 0 to 1, .*did you mean latency"),
    ({"FAULTS": "latncy:0.2"}, r"names with chances from 0 to 1, .*did you mean latency"),
    ({"FAULTS": "stale:2"}, "FAULTS=stale:2 should be names with chances from 0 to 1"),
    ({"FAULTS": "stale"}, "FAULTS=stale should be names with chances from 0 to 1"),
    ({"FAULTS": "stale:0.1,stale:0.2"}, "each once: stale is named twice"),
    ({"FAULTS": "unknown_tool@weather:0.1"}, "FAULTS names 'unknown_tool@weather', and unknown_tool needs the model"),
    ({"FAULTS": "stale@wether:0.1"}, "FAULTS names 'stale@wether': did you mean 'weather'?"),
    ({"FAULTS": "stale@model:0.1"}, "FAULTS names 'stale@model': stale works on the answers of tools, and model is a"),
    ({"FAULTS": "truncate_context@weather:0.1"}, "truncate_context needs the model"),
    ({"FAULTS": "cut:0.1", "STREAM": "off"}, "FAULTS names cut, which needs STREAM=on"),
    ({"FAULTS": "clock_skew:0.1"}, "FAULTS names clock_skew, which moves the clock of a function or of services="),
    (
        {"FAULTS": "server_error@model:0.1,stdout_noise:0.1"},
        "FAULTS names stdout_noise, which stands between the lines of an MCP server's standard output: use `chaoslab ",
    ),
    ({"FAULTS": "budget:1"}, "FAULTS names budget, which has settings of its own: TOKEN_LIMIT"),
    ({"CHAOS_LEVEL": "11"}, "CHAOS_LEVEL=11 should be a number from 0 to 10"),
    ({"CHAOS_LEVEL": "-1"}, "CHAOS_LEVEL=-1 should be a number from 0 to 10"),
    ({"CHAOS_FAMILIES": "tool,tols"}, "CHAOS_FAMILIES=tool,tols should be some of network, tool, .*did you mean"),
    ({"CHAOS_FAMILIES": "tool,tool"}, "each once"),
    ({"CHAOS_LEVEL": "1", "CHAOS_FAMILIES": "stream", "STREAM": "off"}, "has stream, which needs STREAM=on"),
    ({"TOXICS": "latency:1,latency:2"}, "each once: latency is named twice"),
])  # fmt: skip
def test_a_fault_or_level_that_makes_no_sense_is_said_in_a_line(given: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError, match=line):
        plan(**given)


def test_a_level_hits_the_services_and_the_model_by_the_families_that_they_have() -> None:
    found = plan(CHAOS_LEVEL="1").injections
    assert [(i.name, i.targets) for i in found] == [
        ("level network on services", ALL), ("level network (refused) on services", ALL),
        ("level tool on services", ALL), ("level meaning on services", ALL),
        ("level network on the model", (MODEL,)), ("level network (refused) on the model", (MODEL,)),
        ("level tool on the model", (MODEL,)),
        ("level model on the model", (MODEL,)), ("level context on the model", (MODEL,)),
    ]  # fmt: skip
    for targets in (ALL, (MODEL,)):  # each of a target's families has the same part of the chance
        calm = math.prod(1 - injection.chance for injection in found if injection.targets == targets)
        assert round(1 - calm, 5) == 0.1
    whole = [i.chance for i in found if "network" not in i.name and i.targets == ALL]
    network = math.prod(1 - i.chance for i in found if "network" in i.name and i.targets == ALL)
    assert [round(1 - chance, 6) for chance in whole] == [round(network, 6)] * 2
    assert plan(CHAOS_LEVEL="0") == Plan(1)
    assert [i.name for i in plan(CHAOS_LEVEL="2", CHAOS_FAMILIES="meaning").injections] == ["level meaning on services"]
