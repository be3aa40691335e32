"""A scenario in Python says what a file says, and is written to one and read again without a loss."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.analysis.assertions import Assertion
from chaoslab.core.plan import Choice, Injection
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.located import ScenarioError, read_located_data
from chaoslab.scenarios.spec import ScenarioSpec
from tests.scenarios import shop_parts
from tests.scenarios.shop_parts import careful, hears, naive, refund, state

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
dotted = st.sampled_from(["shop:refund", "shop.api:Shop.order", "here.too:_x9"])
seconds = st.floats(0, 1e6) | st.integers(0, 1000) | st.sampled_from(["90s", "1.5h", "2 d"])
FAULTS: list[dict[str, Any]] = [
    {"fault": "lost_reply", "target": "refund", "calls": [1, 3]},
    {"fault": "latency", "target": ["a", "b*"], "delay_s": 2.5, "chance": 0.25, "name": "late: no"},
    {"fault": "latency", "target": "c", "delay_s": {"from": 0.5, "to": 2}, "chance": {"choices": [0.1, 0.2]}},
    {"fault": "timeout_before_effect", "target": "order", "persistence": "burst 3", "when": "amount > 1"},
]
faults = st.lists(
    st.sampled_from(FAULTS),
    max_size=2, unique_by=lambda each: str(each["fault"]),
)  # fmt: skip
asserted = st.lists(
    st.sampled_from(["no_duplicate_effects", {"max_calls": 3}, {"called_with": {"tool": "a", "arguments": {"b": [1]}}}])
)
turns = st.builds(
    lambda first, others: [first, *others], texts,
    st.lists(
        texts | st.fixed_dictionaries({"say": texts, "after": seconds}, optional={"expect": asserted.filter(len)})
        | st.fixed_dictionaries({"reply": st.just({"(?i)sure|no": "yes"})}, optional={"after": seconds}),
        min_size=1, max_size=3,
    ),
)  # fmt: skip
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "chaoslab": st.just(1), "description": texts, "tools": st.lists(dotted, max_size=2), "state": dotted,
    "reads": st.lists(dotted, max_size=2), "services": st.just({"shop.test": "a:b", "api.openai.com": "c:d"}),
    "models": st.just([]), "upstreams": st.just({}), "faults": faults, "chaos_level": st.just(0) | st.just(0.0),
    "families": st.lists(st.sampled_from(["network", "tool"]), max_size=2), "expect": asserted,
    "facts": st.lists(texts | st.lists(texts, min_size=1, max_size=2), max_size=2),
    "accept": st.just(["correct", "harm"]), "pass_rate": st.floats(0, 1), "invalid_rate": st.floats(0, 1),
    "seed": st.integers(0, 2**63 - 1), "trials": st.integers(1, 1000), "world": st.just("local"), "timeout": seconds,
    "deadline": st.sampled_from(["2h", 3600]), "isolate": st.just("fork"), "proxy": st.just(True),
    "elsewhere": st.just("unreachable"),
    "calls_max": st.integers(1, 100), "judge": st.just("model") | dotted,
    "says": st.just({"refund": {"done": "refunded", "undone": "could not"}}) | dotted, "anyway": st.booleans(),
    "undoes": st.just({"refund": "charge"}), "resume_with": dotted, "wishes": st.integers(1, 9),
    "files": st.just("work"),
    "idempotent": st.just(["refund"]), "ordered": st.booleans(),
    "secret_names": st.just(["x-shop-pass", "-csrf"]),
    "limits": st.just([{"share": "10%", "faults": 5}]),
    "now": st.just("2026-06-01T09:00:00Z"), "order": st.just("seeded"),
    "real_limit": seconds, "settle": seconds, "memory_mb": st.integers(64, 4096),
    "model_calls_max": st.integers(1, 100), "found": texts, "folder": st.just("."),
    "explore": st.just({"trials": 50, "seconds": 3.5, "tries": ["lost_reply"], "by": ["singles", "pairs"]}),
    "budget": st.just({"calls": 7, "seconds": "2min", "mode": "soft"}),
    "slo": st.lists(st.sampled_from([{"share": 0.99}, {"share": 0.5, "within": "2s", "tool": "ref*"}]), max_size=2),
    "variants": st.just([{"name": "calm", "faults": []}, {"name": "other", "seed": 2, "timeout": 3}])
    | st.just({"seed": [1, 2], "trials": [4, 5]}),
}  # fmt: skip
CHOICES = {
    "operations": st.fixed_dictionaries({"tools": st.just(["shop:refund", "x:y"]), "operations": st.lists(
        st.fixed_dictionaries({"tool": st.sampled_from(["refund", "y"])}, optional={
            "args": st.dictionaries(texts, st.integers() | texts | st.booleans(), max_size=2), "after": seconds,
            "expect": asserted.filter(len),
        }), min_size=1, max_size=3,
    )}),
    "agent": st.fixed_dictionaries({"agent": dotted}),
    "fresh": st.fixed_dictionaries({"fresh": dotted}),
    "user": st.fixed_dictionaries(
        {"prompt": texts, "user": st.just([{"when": "(?i)sure", "say": "Yes."}, {"when": "b$", "say": "No."}])},
        optional={"turns_max": st.integers(2, 9)},
    ),
    "prompt": st.fixed_dictionaries({"prompt": texts}), "turns": st.fixed_dictionaries({"turns": turns}),
}  # fmt: skip
ASKED = st.builds(
    lambda who, words: {**who, **words},
    CHOICES["agent"] | CHOICES["fresh"],
    CHOICES["prompt"] | CHOICES["turns"] | CHOICES["user"],
)
scenarios = st.builds(
    lambda asked, more, effects: {
        "name": "a, (b)", **more, **({"tools": ["a:b"]} if {"budget", "faults"} & {*more} else {}), **asked,
        **({"effects": effects} if effects and "state" not in more else {}),
    },
    ASKED | CHOICES["operations"],
    st.fixed_dictionaries({}, optional=OPTIONAL),
    st.lists(st.fixed_dictionaries({"effect": texts, "amount": st.none() | st.integers() | texts}), max_size=2),
)  # fmt: skip


def said(data: dict[str, Any]) -> Any:
    """The same scenario by the methods."""
    made = lab.scenario(data["name"], description=data.get("description", ""))
    who = data.get("agent")
    who = who if isinstance(who, dict) else {"agent": who}
    for name, url in data.get("upstreams", {}).items():
        made = made.upstream(name, url)
    if "operations" not in data:
        made = made.agent(**who) if "agent" in data else made.fresh(data["fresh"])
    for operation in data.get("operations", []):
        made = made.call(**operation)
    for host, app in data.get("services", {}).items():
        made = made.service(host, app, model=host in data.get("models", []))
    if "state" in data:
        made = made.state(data["state"])
    if "judge" in data:
        made = made.judge(data["judge"])
    if "resume_with" in data:
        made = made.resume_with(data["resume_with"])
    for turn in data.get("turns", [data["prompt"]] if "prompt" in data else []):
        one: dict[str, Any] = {"say": turn} if isinstance(turn, str) else dict(turn)
        made = made.reply(one.pop("reply"), **one) if "reply" in one else made.ask(one.pop("say"), **one)
    if "user" in data:
        made = made.user({each["when"]: each["say"] for each in data["user"]}, turns_max=data.get("turns_max"))
    for fault in data.get("faults", []):
        made = made.fault(**fault)
    made = made.tools(*data.get("tools", [])).reads(*data.get("reads", [])).expect(*data.get("expect", []))
    if "budget" in data:
        made = made.budget(**data["budget"])
    for slo in data.get("slo", []):
        made = made.slo(**slo)
    if isinstance(data.get("variants"), dict):
        made = made.matrix(**data["variants"])
    for variant in data["variants"] if isinstance(data.get("variants"), list) else []:
        made = made.variant(**variant)
    if "effects" in data:
        made = made.effects(*data["effects"])
    by_key = {
        "facts",
        "accept",
        "chaoslab",
        "pass_rate",
        "invalid_rate",
        "seed",
        "trials",
        "world",
        "timeout",
        "deadline",
    }
    by_key |= {"chaos_level", "families", "isolate", "elsewhere", "calls_max", "model_calls_max", "now", "order"}
    by_key |= {"says", "anyway", "undoes", "idempotent", "ordered", "real_limit", "settle", "memory_mb"}
    by_key |= {"secret_names", "explore", "found", "folder", "limits", "wishes", "files", "proxy"}
    return made.set(**{key: value for key, value in data.items() if key in by_key})


def test_every_key_is_tried() -> None:
    assert {*OPTIONAL, *CHOICES, "name", "effects", "turns_max", "resumes"} == set(ScenarioSpec.model_fields)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=scenarios, suffix=st.sampled_from([".yaml", ".json"]))
def test_a_file_becomes_python_and_a_file_again(data: dict[str, Any], suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, f"a{suffix}"), Path(folder, f"b{suffix}")
        said(data).to_file(first)
        lab.load_scenario(first).to_file(second)
        assert read_located_data(second).data == lab.load_scenario(first).data
        assert first.read_bytes() == second.read_bytes()
        written = read_located_data(first).data
        assert {key: value for key, value in written.items() if value not in ([], {})} == {
            key: value for key, value in data.items() if value not in ([], {})
        }
        assert [each.spec for each in load_file_scenarios(first)] == [each.spec for each in said(data).check()]


def of_python(make: Callable[[], Any] = naive) -> Any:
    return (
        lab.scenario("refund").fresh(make).tools(refund).state(state).judge(hears).ask("Refund order 17.")
        .fault("lost_reply", "refund", chance=0.4).expect(lab.expect.max_calls(3)).set(trials=8)
    )  # fmt: skip


def test_python_runs_what_a_file_runs(tmp_path: Path) -> None:
    results = of_python().run()
    assert not results.passed
    assert str(results).splitlines()[0].startswith("FAILED   refund: 2 of 8 trials passed")
    path = of_python().to_file(tmp_path / "refund.chaos.yaml")
    assert str(lab.load_scenario(path).run()).splitlines()[:3] == str(results).splitlines()[:3]
    assert of_python(careful).test().passed


def test_a_test_of_a_scenario_that_does_not_hold_fails() -> None:
    with pytest.raises(AssertionError, match=r"harm: refund twice"):
        of_python().test()
    with pytest.raises(AssertionError, match="it proves nothing: no trial met a fault"):
        of_python(careful).set(trials=1, faults=[{"fault": "lost_reply", "target": "refund", "chance": 1e-9}]).test()


def test_a_lambda_runs_and_cannot_be_written(tmp_path: Path) -> None:
    answered = lab.scenario("a").agent(lambda prompt: f"{prompt} {order(1)}").reads(order).ask("What is it?")
    assert answered.fault("latency", "order", delay_s=1).set(accept=["correct"], trials=1).test().passed
    assert answered.level(1).check()[0].injections[0].targets == ("order",)
    with pytest.raises(ScenarioError) as refused:
        answered.to_file(tmp_path / "a.yaml")
    assert str(refused.value) == (
        "scenario 'a' cannot be written: a lambda has no name that a file could give: define a function in a module"
    )


def order(number: int) -> str:
    return f"order {number}"


@dataclass(frozen=True)
class Own(Assertion):
    """An assertion of the user's own."""


class Tea:
    def __call__(self, prompt: str) -> str:
        return prompt


def local(prompt: str) -> Any:
    def inner(_: str) -> str:
        return prompt

    return inner


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda made: made.agent(local("")), "local.<locals>.inner is no function of a module and has no name"),
        (lambda made: made.agent(Tea()), "Tea is no function of a module and has no name that a file could give"),
        (lambda made: made.agent("a:b").expect(Own()), "expect holds Own, which is no installed assertion"),
        (lambda made: made.agent("a:b").effects({"effect": {1, 2}}), "effects.effect is a set, which no file can hold"),
        (lambda made: made.agent("a:b").effects({"effect": b"x"}), "effects.effect is a bytes, which no file can hold"),
        (lambda made: made.agent("a:b").effects({"effect": {1: 2}}), "effects.effect has the key 1: a file's keys"),
        (lambda made: made.agent("a:b").effects({"effect": float("nan")}), "effects.effect is nan, which is no number"),
        (lambda made: made.agent("a:b").effects({"effect": "\ud800"}), "has half a character, so no file can hold it"),
        (lambda made: made.agent("a:b").fault(Injection("x", (Choice("delay"), Choice("cut")), ("a",))),
         "'x' chooses between several faults: say level"),
        (lambda made: made.agent(None), "agent takes a callable, or command=[program, …]"),
        (lambda made: made.agent("a.b"), "scenario 'a': agent is 'a.b': it should be module:name"),
        (lambda made: made.agent("a:b").set(trails=3), "'trails' is not known here: did you mean 'trials'?"),
    ],
)  # fmt: skip
def test_what_no_file_can_hold_is_one_line(made: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises((ScenarioError, ValueError, TypeError)) as refused:
        made(lab.scenario("a").ask("Hello")).to_file(tmp_path / "a.yaml")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "a.yaml").exists()


@pytest.mark.parametrize("suffix", [".yml", ".json"])
def test_null_and_the_suffix(suffix: str, tmp_path: Path) -> None:
    made = lab.scenario("a").agent("a:b").ask("Hello").effects({"effect": "x", "note": None})
    assert read_located_data(made.to_file(tmp_path / f"a{suffix}")).data["effects"] == [{"effect": "x", "note": None}]
    for other in (".txt", ".toml"):  # TOML is read, and not written
        with pytest.raises(ScenarioError, match=rf"a file that ends in .yaml, .yml or .json, not in '{other}'"):
            made.to_file(tmp_path / f"a{other}")


def test_an_injection_and_an_assertion_are_said_as_in_a_file(tmp_path: Path) -> None:
    injection = lab.inject("latency", ["a", "b"], delay_s=2, chance=0.5, calls=[1], max_times=2, name="slow")
    asserted = lab.expect.called_with("refund", {"order": 17})
    made = lab.scenario("x").agent("a:b").tools("shop:a", "shop:b").ask("Hi").fault(injection)
    (again,) = load_file_scenarios(made.expect(asserted).to_file(tmp_path / "x.yaml"))
    assert (again.injections, again.expect) == ((injection,), (asserted,))
    with pytest.raises(TypeError, match="an injection has its target and arguments already"):
        lab.scenario("x").fault(injection, "a")
    with pytest.raises(TypeError, match=r"a fault is a name or lab.inject\(…\)"):
        lab.scenario("x").fault(3)
    with pytest.raises(TypeError, match="tools is 3: it should be a callable, or its name"):
        lab.scenario("x").tools(3)


def test_two_functions_of_one_name_are_two() -> None:
    made = lab.scenario("x").agent(local("a")).tools(local("b"), local("c"), shop_parts.refund)
    assert made.data["agent"] == "here:inner"
    assert made.data["tools"] == ["here:inner_2", "here:inner_3", "tests.scenarios.shop_parts:refund"]


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_small_numbers_and_texts_that_look_like_them_are_written_as_they_are(suffix: str, tmp_path: Path) -> None:
    path = lab.scenario("a").agent("a:b").ask("1e3").set(pass_rate=1e-7).to_file(tmp_path / f"a{suffix}")
    (scenario,) = load_file_scenarios(path)
    assert (scenario.spec.prompt, scenario.spec.pass_rate) == ("1e3", 1e-7)


def test_a_trial_of_a_scenario_in_python_is_run_again_by_its_number() -> None:
    made = lab.scenario("a").fresh(shop_parts.naive).tools(shop_parts.refund).ask("Refund order 17.").set(trials=8)
    made = made.fault("lost_reply", "refund", chance=0.4)
    said = str(made.run(seed=2))
    again = next(line for line in said.splitlines() if "rerun: " in line)
    found = re.fullmatch(r"    rerun: \.test\(trial=(\d+), seed=2\)", again)
    assert found is not None, again
    with pytest.raises(AssertionError, match="harm: refund"):
        made.test(trial=int(found[1]), seed=2)
