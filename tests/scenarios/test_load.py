"""A scenario's file is read without running anything, and each mistake in it is one line with its place."""

import json
from pathlib import Path

import pytest

from chaoslab.scenarios import located
from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios
from chaoslab.scenarios.located import ScenarioError, parse_located_data

GOOD = """\
name: refund
agent: shop:answer
tools: [shop:refund]
prompt: Refund order 17.
faults:
  - {fault: lost_reply, target: refund, calls: [1]}
expect:
  - max_calls: 3
"""


def written(folder: Path, text: str | bytes, name: str = "a.chaos.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def wrong(folder: Path, text: str | bytes, name: str = "a.chaos.yaml") -> str:
    with pytest.raises(ScenarioErrors) as refused:
        load_file_scenarios(written(folder, text, name))
    assert all(line.startswith(str(folder)) and "\n" not in line for line in refused.value.lines)
    return "\n".join(line.removeprefix(f"{folder}/") for line in refused.value.lines)


def test_a_scenario_is_read(tmp_path: Path) -> None:
    (scenario,) = load_file_scenarios(written(tmp_path, GOOD))
    assert (scenario.name, scenario.prompt, scenario.spec.trials) == ("refund", "Refund order 17.", 10)
    assert [injection.name for injection in scenario.injections] == ["lost_reply on refund"]
    assert [str(each) for each in scenario.expect] == ["max_calls(calls=3)"]


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    (yaml,) = load_file_scenarios(written(tmp_path, GOOD))
    (as_json,) = load_file_scenarios(
        written(tmp_path, json.dumps(parse_located_data(GOOD, "x").data, indent=1), "a.chaos.json")
    )
    toml = (
        'name = "refund"\nagent = "shop:answer"\ntools = ["shop:refund"]\nprompt = "Refund order 17."\n'
        'faults = [{fault = "lost_reply", target = "refund", calls = [1]}]\nexpect = [{max_calls = 3}]\n'
    )
    (as_toml,) = load_file_scenarios(written(tmp_path, toml, "a.chaos.toml"))
    assert yaml.spec == as_json.spec == as_toml.spec


def test_variants_are_scenarios_of_their_own(tmp_path: Path) -> None:
    text = (
        GOOD + "variants:\n  - name: calm\n    faults: []\n  - {name: stormy, chaos_level: 2, seed: 5, prompt: Now!}\n"
    )
    calm, stormy = load_file_scenarios(written(tmp_path, text))
    assert (calm.name, calm.injections, calm.prompt) == ("refund, calm", (), "Refund order 17.")
    assert (stormy.spec.seed, stormy.prompt) == (5, "Now!")
    assert stormy.injections[0].name == "lost_reply on refund"
    assert len(stormy.injections) == 5


def test_values_may_be_given_in_place_of_the_files(tmp_path: Path) -> None:
    (scenario,) = load_file_scenarios(written(tmp_path, GOOD), changed=["trials=50", "accept=[correct]", "timeout=90s"])
    assert (scenario.spec.trials, scenario.spec.accept, scenario.spec.timeout) == (50, ["correct"], 90.0)
    for given, said in (("trials", "--set trials should be a key and a value"), ("trials=x", "trials is 'x'")):
        with pytest.raises(ScenarioErrors, match=said):
            load_file_scenarios(written(tmp_path, GOOD), changed=[given])


def test_turns_are_texts_or_more(tmp_path: Path) -> None:
    turns = 'turns:\n  - Refund it.\n  - {say: Done?, after: 2h, expect: [{max_calls: 1}]}\n  - reply: {"(?i)sure": "Yes"}\n'
    (scenario,) = load_file_scenarios(written(tmp_path, GOOD.replace("prompt: Refund order 17.\n", turns)))
    assert [each.after_s for each in scenario.prompt.turns] == [0, 7200, 0]  # type: ignore[union-attr]
    assert [*scenario.by_turn] == [2]


def test_no_module_of_the_users_is_imported(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "raise SystemExit('imported')\n\ndef answer(prompt): ...\n\ndef refund(order): ...\n"
    )
    load_file_scenarios(written(tmp_path, GOOD))


def also(line: str) -> str:
    return GOOD + line + "\n"


def but(before: str, after: str) -> str:
    assert before in GOOD
    return GOOD.replace(before, after)


def calls(text: str) -> str:
    return f"name: refund\ntools: [shop:refund]\n{text}\n"


def runs(text: str) -> str:
    return f"name: refund\n{text}\nprompt: Go.\n"


ROOT = "a scenario is a mapping with name, agent, … and this is"
CASES: list[tuple[str | bytes, str]] = [
    # no data, or no text
    ("", "a.chaos.yaml: it is empty"),
    ("# only a comment\n", "a.chaos.yaml: it is empty"),
    ("[]", f"1:1: {ROOT} a list"),
    ("- name: x", f"1:1: {ROOT} a list"),
    ("just text", f"1:1: {ROOT} one value"),
    ("42", f"1:1: {ROOT} one value"),
    ("null", f"1:1: {ROOT} one value"),
    (b"\xff\xfe\x00\x01", "it is no UTF-8 text (byte 0 cannot be read)"),
    (b"\x89PNG\r\n\x1a\n\x00", "it is no UTF-8 text"),
    ("name: \0x", "it has a zero byte"),
    (b"name: x\n" + b"# " + b"x" * (1 << 20), "it is larger than 1024 KiB"),
    # broken YAML
    ("name: [1, 2", "this is no YAML"),
    ("name: {a: 1", "this is no YAML"),
    ("name: 'x", "this is no YAML"),
    ("name: x\r\nfaults:\r\n\t- {}\r\n", "3:1: this is no YAML: a tab stands here, where YAML takes spaces alone"),
    ("name: x: y", "1:8: this is no YAML: mapping values are not allowed in this context"),
    ("\tname: x", "this is no YAML"),
    ("name: *nobody", "1:7: this is no YAML: found undefined alias"),
    ("a: &a [*a]", "an alias stands inside of what it stands for"),
    ("name: x\nname: y", "2:1: 'name' stands here twice"),
    ("---\nname: x\n---\nname: y", "a second document begins here"),
    ("name: !!python/object/apply:os.system ['true']", "is not for scenarios: they hold plain data"),
    ("name: !mine x", "the tag !mine is not for scenarios"),
    ("name: !!binary aGk=", "is not for scenarios: they hold plain data"),
    ("name: !!set {a, b}", "is not for scenarios: they hold plain data"),
    ("? [1, 2]\n: x", "a key should be a text"),
    ("<<: {name: x}", "1:1: '<<' is not known here"),
    ("[" * 60 + "]" * 60, "it is nested more than 40 deep"),
    ("[" * 200_000, "it is nested more than 40 deep"),
    ("- " * 200_000, "it is nested more than 40 deep"),
    ("a: " + "{b: " * 50 + "1" + "}" * 50, "it is nested more than 40 deep"),
    ("a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{n}: &{n} [{', '.join([f'*{m}'] * 10)}]\n" for m, n in zip("abcdef", "bcdefg", strict=True)
    ), "it has more than 50000 values, aliases expanded"),
    # numbers
    (also('user: [{when: "(", say: a}]'), "9:9: the pattern '(' cannot be read"),
    (also("user: [{when: a, say: b}, {when: a, say: c}]"), "9:28: the pattern 'a' stands here twice"),
    (also("user: [{when: a}]"), "say is missing"),
    (also("user: [{wen: a, say: b}]"), "'wen' is not known here: did you mean 'when'?"),
    (also("turns_max: 4"), "9:1: turns_max bounds a scripted user, and there is no user"),
    (also("turns_max: 1"), "turns_max is 1: it should be 2 or more"),
    (also("timeout: .nan"), "9:10: .nan is no number to reckon with"),
    (also("timeout: .inf"), "9:10: .inf is no number to reckon with"),
    (also("timeout: -.inf"), "is no number to reckon with"),
    (also("timeout: 1e999"), "9:10: 1e999 is no number to reckon with"),
    (also("timeout: 1.0e+999"), "1.0e+999 is no number to reckon with"),
    (also("timeout: -1"), "9:1: timeout is -1: it should be 0 or more"),
    (also("timeout: fast"), "9:1: timeout is 'fast': it should be a duration, as in 90s, 5min or 2h"),
    (also("timeout: 5 parsecs"), "it should be a duration"),
    (also("timeout: true"), "timeout is True: it should be a number"),
    (also("timeout: [1]"), "timeout is [1]: it should be a number"),
    (also("deadline: 400d"), "deadline is '400d': it should be 31536000 or less"),
    (also("trials: 0"), "9:1: trials is 0: it should be 1 or more"),
    (also("trials: -3"), "9:1: trials is -3: it should be 1 or more"),
    (also("trials: many"), "9:1: trials is 'many': it should be a whole number"),
    (also("trials: 1.5"), "trials is 1.5: it should be a whole number"),
    (also("trials: true"), "trials is True: it should be a whole number"),
    (also("trials: null"), "trials is None: it should be a whole number"),
    (also("trials: 2000000"), "it should be 1000000 or less"),
    (also("seed: -1"), "seed is -1: it should be 0 or more"),
    (also("seed: '1'"), "seed is '1': it should be a whole number"),
    (also("seed: 99999999999999999999999"), "seed is 99999999999999999999999: it should be "),
    (also("pass_rate: 1.1"), "pass_rate is 1.1: it should be 1 or less"),
    (also("pass_rate: -0.1"), "pass_rate is -0.1: it should be 0 or more"),
    (also("pass_rate: high"), "pass_rate is 'high': it should be a number"),
    # keys and kinds
    (also("trails: 3"), "9:1: 'trails' is not known here: did you mean 'trials'?"),
    (also("zzz: 3"), "9:1: 'zzz' is not known here: known are "),
    (also("chaoslab: 2"), "9:1: chaoslab is 2: this version reads scenarios of version 1"),
    (also("chaoslab: one"), "chaoslab is 'one': this version reads"),
    (also("world: compose"), "9:1: world is 'compose': it should be virtual or local"),
    (also("world: [virtual]"), "world is ['virtual']: it should be virtual or local"),
    (also("accept: [good]"), "9:10: accept is 'good': it should be correct or degraded or wrong"),
    (also("accept: []"), "accept is []: it should be not empty"),
    (also("accept: correct"), "accept is 'correct': it should be a list"),
    (but("name: refund", "name: ''"), "1:1: name is '': it should be a short name"),
    (but("name: refund", "name: [a]"), "name is ['a']: it should be a text"),
    (but("name: refund", "name: 17"), "name is 17: it should be a text"),
    (but("name: refund\n", ""), "name is missing"),
    (but("name: refund", "name: 'a\\b;c'"), "it should be a short name, of letters, digits, spaces and . , ( ) ' + -"),
    # dotted paths
    (but("agent: shop:answer", "agent: shop.answer"), "2:1: agent is 'shop.answer': it should be module:name, as in shop.agent:answer"),
    (but("agent: shop:answer", "agent: ../shop:answer"), "it should be module:name"),
    (but("agent: shop:answer", "agent: 'shop:answer()'"), "it should be module:name"),
    (but("agent: shop:answer", "agent: 'os:system(1)'"), "it should be module:name"),
    (but("agent: shop:answer", "agent: 3"), "agent is 3: it should be a text"),
    (but("agent: shop:answer\n", ""), "agent or fresh is missing"),
    (also("fresh: shop:make"), "both agent and fresh are given"),
    (but("tools: [shop:refund]", "tools: shop:refund"), "3:1: tools is 'shop:refund': it should be a list"),
    (but("tools: [shop:refund]", "tools: [refund]"), "3:9: tools is 'refund': it should be module:name"),
    (also("services: [shop]"), "services is ['shop']: it should be a mapping"),
    (also("services: {Shop Test: shop:app}"), "'Shop Test' is no host name in lower case"),
    (also("services: {shop: 3}"), "shop is 3: it should be a text"),
    (also("models: [gpt]"), "9:10: no service is called 'gpt': there are none"),
    (also("services: {api.openai.com: shop:app}\nmodels: [api.openai.con]"), "did you mean 'api.openai.com'?"),
    (also("state: shop:state\neffects: []"), "a state is compared with a run without faults, which stated effects replace"),
    # prompts and turns
    (but("prompt: Refund order 17.\n", ""), "prompt or turns is missing"),
    (but("prompt: Refund order 17.", "prompt: ''"), "prompt is '': it should be not empty"),
    (but("prompt: Refund order 17.", "prompt: 17"), "prompt is 17: it should be a text"),
    (also("turns: [Hello]"), "both prompt and turns are given"),
    (also("resumes: 1"), "resumes is how often resume_with goes on: give resume_with, or leave it out"),
    (but("prompt: Refund order 17.", "turns: []"), "prompt or turns is missing"),
    (but("prompt: Refund order 17.", "turns: [{say: a, reply: {b: c}}]"), "a turn has either the user's words or reply="),
    (but("prompt: Refund order 17.", "turns: [{after: 2h}]"), "a turn has either the user's words or reply="),
    (but("prompt: Refund order 17.", "turns: [{reply: {a: b}}]"), "the first turn has no answer to reply to"),
    (but("prompt: Refund order 17.", "turns: [a, {reply: {'(': b}}]"), "the pattern '(' cannot be read"),
    (but("prompt: Refund order 17.", "turns: [a, {say: b, afte: 2h}]"), "'afte' is not known here: did you mean 'after'?"),
    (but("prompt: Refund order 17.", "turns: [a, {say: b, after: later}]"), "after is 'later': it should be a duration"),
    (but("prompt: Refund order 17.", "turns: [a, 3]"), "turns is 3: it should be a mapping"),
    (but("prompt: Refund order 17.", "turns: [a, {say: b, expect: [max_cals: 3]}]"), "did you mean 'max_calls'?"),
    # operations
    (but("prompt: Refund order 17.", "operations: [{tool: refund}]"), "2:1: operations are done without an agent: leave agent out"),
    (also("operations: [{tool: refund}]"), "4:1: operations are done without an agent: leave prompt out"),
    (calls("operations: [{tool: refnd}]"), "3:15: no tool is called 'refnd': did you mean 'refund'?"),
    (calls("operations: [{tol: refund}]"), "3:15: 'tol' is not known here: did you mean 'tool'?"),
    (calls("operations: [refund]"), "3:14: operations is 'refund': it should be a mapping"),
    (calls("operations: [{tool: refund, args: [17]}]"), "3:29: args is [17]: it should be a mapping"),
    (calls("operations: [{tool: refund, after: later}]"), "3:29: after is 'later': it should be a duration"),
    (calls("operations: [{tool: refund, expect: [max_cals: 3]}]"), "3:38: no assertion is called 'max_cals'"),
    (calls("operations: []"), "agent or fresh is missing"),
    # a command, and services in real time
    (runs("agent: {command: []}"), "2:9: command is []: it should be not empty"),
    (runs("agent: {command: python}"), "2:9: command is 'python': it should be a list"),
    (runs("agent: {comand: [python]}"), "2:9: 'comand' is not known here: did you mean 'command'?"),
    (runs("agent: {command: [python, 3]}"), "it should be a text"),
    (runs("agent: {command: [python]}\nworld: virtual"), "3:1: a command runs in real time: world should be local, or left out"),
    (runs("agent: {command: [python]}\nelsewhere: unreachable"), "3:1: a command is a process of its own: that is for an agent in"),
    (runs("agent: a:b\nelsewhere: reach"), "3:1: elsewhere is 'reach': it should be refuse or unreachable"),
    (runs("agent: {command: [python]}\ntools: [a:b]"), "3:1: a command is a process of its own: its functions cannot be reached"),
    (runs("agent: {command: [python]}\nservices: {a.test: a:b}"), "3:1: a command is a process of its own: it asks real addresses, so give upstreams"),
    (runs("agent: {command: [python]}\nstate: a:b"), "3:1: a command is a process of its own: it is compared with a run without faults"),
    (runs("agent: a:b\nupstreams: {crm: 'http://127.0.0.1:1'}"), "3:1: upstreams are services of real time: say world: local"),
    (runs("agent: a:b\nworld: local\nupstreams: {crm: '127.0.0.1:1'}"), "4:13: the route crm goes to '127.0.0.1:1': it should begin with http://"),
    (runs("agent: a:b\nworld: local\nupstreams: [crm]"), "upstreams is ['crm']: it should be a mapping"),
    # faults
    (but("fault: lost_reply", "fault: lost_replies"), "6:6: no fault is called 'lost_replies': did you mean 'lost_reply'?"),
    (but("calls: [1]", "calls: [0]"), "calls"),
    (but("calls: [1]", "calls: one"), "calls"),
    (but("calls: [1]", "calls: [1], chance: 0"), "chance"),
    (but("calls: [1]", "chance: 2"), "6:41: chance of lost_reply on refund is 2"),
    (but("calls: [1]", "chance: nearly"), "chance of lost_reply on refund is 'nearly'"),
    (but("calls: [1]", "chanc: 0.5"), "lost_reply has no parameter 'chanc': did you mean 'chance'?"),
    (but("calls: [1]", "delay_s: 3"), "lost_reply has no parameter 'delay_s': it has none"),
    (but("calls: [1]", "chanse: 0.5"), "lost_reply has no parameter 'chanse': it has none; did you mean the trigger 'c"),
    (but("calls: [1]", "every: 0"), "every"),
    (but("calls: [1]", "when: 'amount >'"), "when"),
    (but("calls: [1]", "when: '__import__(1)'"), "when"),
    (but("calls: [1]", "persistence: sometimes"), "persistence"),
    (but("target: refund, ", ""), "target is missing"),
    (but("target: refund", "target: []"), "target is []: it should be not empty"),
    (but("target: refund", "target: 3"), "target is 3: it should be a list"),
    (but("- {fault: lost_reply, target: refund, calls: [1]}", "- lost_reply"), "faults is 'lost_reply': it should be a mapping"),
    (but("  - {fault: lost_reply", "  - {fault: lost_reply, target: refund}\n  - {fault: lost_reply"), "'lost_reply on refund' stands here twice"),
    (but("fault: lost_reply, target: refund, calls: [1]", "fault: latency, target: refund, delay_s: 2s"), "delay_s of latency is '2s': it should be a number"),
    (but("fault: lost_reply, target: refund, calls: [1]", "fault: latency, target: refund, delay_s: -1"), "delay_s of latency is -1"),
    (but("calls: [1]", "chance: {from: 1}"), "6:41: chance of lost_reply: a value that each trial draws is {from: 1, to: 5} or {choices: [1, 5]}"),
    (but("calls: [1]", "chance: {from: 0.5, to: 0.1}"), "its range is from 0.5 to 0.1: it should be from a number to a larger one"),
    (but("calls: [1]", "chance: {from: a, to: b}"), "its range is from 'a' to 'b'"),
    (but("calls: [1]", "chance: {from: 0.5, to: 2}"), "6:41: chance of lost_reply on refund is 2"),
    (but("calls: [1]", "chance: {choices: []}"), "its choices are []: they should be a list of values"),
    (but("calls: [1]", "chance: {choices: [0.1, x]}"), "chance of lost_reply on refund is 'x'"),
    (but("calls: [1]", "name: {choices: [a, b]}"), "6:41: name of lost_reply: name is the same in all trials: give it one value"),
    (also("chaos_level: 10.5"), "9:1: chaos_level is 10.5: it should be a number from 0 to 10"),
    (also("chaos_level: high"), "chaos_level is 'high': it should be a number"),
    (also("families: [weather]"), "families is 'weather': it should be network or tool"),
    (also("chaos_level: 1\nfamilies: [model]"), "model faults are of models, and models names none"),
    (also("variants: [{name: a}, {name: a}]"), "a second variant is called 'a'"),
    (also("variants: [{nam: a}]"), "'nam' is not known here: did you mean 'name'?"),
    (also("variants: [{name: a, faults: [{fault: nope, target: x}]}]"), "no fault is called 'nope'"),
    (also("variants: [{name: a, trails: 3}]"), "9:22: 'trails' is not known here: did you mean 'trials'?"),
    (also("variants: [{name: a, trials: 0}]"), "9:22: trials is 0: it should be 1 or more"),
    (also("variants: [{name: a, lost_repl.chance: 1}]"), "9:22: 'lost_repl.chance' is of no fault of this scenario: did you mean 'lost_reply'?"),
    (also("variants: [{name: a, lost_reply.chance: 2}]"), "9:22: chance of lost_reply on refund is 2"),
    (also("variants: [{name: ''}]"), "9:13: name is '': it should be a short name"),
    (also("variants: [{seed: 3}]"), "9:12: name is missing"),
    (also("variants: [3]"), "9:12: variants is 3: it should be a mapping with a name"),
    (also("variants: 3"), "9:1: variants should be a list of mappings, or a mapping of lists of values"),
    (also("variants: {seed: 3}"), "9:12: seed is 3: in variants it should be a list of values"),
    (also("variants: {seed: []}"), "seed is []: in variants it should be a list of values"),
    (also("variants: {seed: [1, 1]}"), "9:12: seed has a value twice"),
    (also("variants: {seed: [1, x]}"), "9:22: seed is 'x': it should be a whole number"),
    (also("variants: {sed: [1]}"), "9:12: 'sed' is not known here: did you mean 'seed'?"),
    (also("variants: {lost_reply.chanc: [0.5]}"), "lost_reply has no parameter 'chanc': did you mean 'chance'?"),
    (also(f"variants: {{seed: {list(range(40))}, trials: {list(range(1, 41))}}}"), "9:1: these are 1600 variants: 1000 at most"),
    # budget and objectives
    (also("budget: 3"), "9:1: budget is 3: it should be a mapping"),
    (also("budget: {}"), "9:1: a budget has tokens, dollars, calls or seconds, as in budget: {tokens: 20000}"),
    (also("budget: {token: 3}"), "9:10: 'token' is not known here: did you mean 'tokens'?"),
    (also("budget: {calls: 0}"), "9:10: calls is 0: it should be 1 or more"),
    (also("budget: {seconds: soon}"), "9:10: seconds is 'soon': it should be a duration"),
    (also("budget: {calls: 3, mode: firm}"), "9:20: mode is 'firm': it should be hard or soft"),
    (also("budget: {dollars: 0}"), "9:10: dollars is 0: it should be more than 0"),
    (also("budget: {tokens: 5}"), "9:10: only models use tokens, and services has none"),
    ("name: x\nagent: shop:answer\nprompt: Go.\nbudget: {calls: 3}", "4:1: there is nothing to spend it on: give tools,"),
    (also("limits: {fault: 1}"), "limits has no key 'fault': did you mean 'faults'?"),
    (also("slo: {share: 1}"), "9:1: slo is {'share': 1}: it should be a list"),
    (also("slo: [{shar: 1}]"), "9:8: 'shar' is not known here: did you mean 'share'?"),
    (also("slo: [{tool: refund}]"), "9:7: share is missing"),
    (also("slo: [{share: 99}]"), "9:8: share is 99: it should be 1 or less"),
    (also("slo: [{share: 0.9, within: quick}]"), "9:20: within is 'quick': it should be a duration"),
    # assertions
    (but("- max_calls: 3", "- max_cals: 3"), "8:5: no assertion is called 'max_cals': did you mean 'max_calls'?"),
    (but("- max_calls: 3", "- {max_calls: 3, not_called: x}"), "an assertion is a name, or one name with its parameters"),
    (but("- max_calls: 3", "- {}"), "an assertion is a name, or one name with its parameters"),
    (but("- max_calls: 3", "- 3"), "an assertion is a name, or one name with its parameters"),
    (but("- max_calls: 3", "- max_calls: {call: 3}"), "max_calls has no parameter 'call': did you mean 'calls'?"),
    (but("- max_calls: 3", "- max_calls"), "calls of max_calls is missing"),
    (but("expect:\n  - max_calls: 3", "expect: max_calls"), "expect is 'max_calls': it should be a list"),
    (also("facts: [[]]"), "it should be not empty"),
    (also("effects: refund"), "effects is 'refund': it should be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), CASES, ids=[said[:50] + f" {n}" for n, (_, said) in enumerate(CASES)])
def test_a_mistake_is_one_line(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert said in wrong(tmp_path, text)


SHOP = "def refund(order): ...\n\ndef answer(prompt): return refund(17)\n\ndef make(): return answer\n"
LATE = "{fault: latency, target: refund, delay_s: 1}"
AT_ONCE: list[tuple[str, list[str]]] = [
    # of types, or of what only whole values tell
    (also("trials: x").replace("name: refund", "name: ''"), ["1:1: name is", "9:1: trials is"]),
    (but("max_calls", "nope").replace("agent:", "fresh: shop:make\nagent:"), ["both agent and fresh", "9:5: no assertion"]),
    (
        but("lost_reply", "nope").replace("max_calls", "nope").replace("agent:", "fresh: shop:make\nagent:"),
        ["both agent and fresh", "no fault is called", "no assertion is called"],
    ),
    (also("trials: x").replace("lost_reply", "nope"), ["9:1: trials"]),
    (but("target: refund", "target: 3").replace("calls: [1]", "calls: [0]"), ["target is 3"]),
    (but("fault: lost_reply, target: refund", "fault: nope, target: refnd"), ["6:6: no fault", "no tool is called 'refnd'"]),
    (but("calls: [1]", "chance: 2, evry: 3"), ["no parameter 'evry'"]),
    (but("calls: [1]", "chance: {from: 1}, name: {choices: [a]}"), ["chance of lost_reply", "name of lost_reply"]),
    (but("calls: [1]}", f"after: a}}\n  - {LATE[:-1]}, name: late, after: b}}"), ["'lost_reply on refund' is after 'a'", "after 'b'"]),
    # and nothing that follows from another mistake
    (but("agent: shop:answer", "agnt: shop:answer"), ["2:1: 'agnt' is not known here: did you mean 'agent'?"]),
    (but("agent: shop:answer", "agent: shop.answer"), ["2:1: agent is"]),
    (but("prompt:", "promt:"), ["4:1: 'promt' is not known"]),
    (but("tools: [shop:refund]", "tools: [refund]"), ["3:9: tools is 'refund'"]),
    (but("tools:", "tols:"), ["3:1: 'tols' is not known"]),
    (but("agent: shop:answer", "agent: {comand: [a]}"), ["command is missing", "'comand' is not known"]),
    (also("turns_max: 4\nuser: [{when: a}]"), ["say is missing"]),
    (but("prompt: Refund order 17.", "turns: [a, 3]").replace("calls: [1]", "on_turn: [2]"), ["turns is 3"]),
    (but("calls: [1]}", f"after: late}}\n  - {LATE.replace('latency', '5')}"), ["7:6: fault is 5"]),
    (also("services: {api.test: 3}\nmodels: [api.test]"), ["api.test is 3"]),
    (also("budget: {tokens: 5}\nservices: 3"), ["services is 3"]),
    (also("upstreams: {crm: 'http://127.0.0.1:1'}\nworld: real"), ["world is 'real'"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), AT_ONCE, ids=[" + ".join(said)[:60] for _, said in AT_ONCE])
def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(text: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    lines = wrong(tmp_path, text).splitlines()
    assert [[each for each in said if each in line] for line in lines] == [[each] for each in said]


def test_of_many_mistakes_the_number_of_the_others_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, also("\n".join(f"zz{n}: 1" for n in range(25))))
    with pytest.raises(ScenarioErrors) as refused:
        load_file_scenarios(path)
    assert (len(refused.value.lines), refused.value.lines[-1]) == (21, "and 5 more mistakes")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "x" 1}', "1:14: this is no JSON"), ('{"name": NaN}', "a.chaos.json: nan is no number"),
        ('{"name": "x", "trials": 1e400}', "a.chaos.json: inf is no number"), ("", "it is empty"), ('{"a": 1} {"b": 2}', "1:10: this is no JSON"),
        ("[" * 100_000, "it is nested more than 40 deep"), ("name: x", "1:1: this is no JSON"),
        ("[" * 50 + "]" * 50, "it is nested more than 40 deep"), ('{"name": 1,\n "name": 2}', "'name' stands in one mapping twice"),
        (f"[1{', 1' * 50_000}]", "it has more than 50000 values"), (f"[{'9' * 5000}]", "this is no JSON: Exceeds"),
    ],
)  # fmt: skip
def test_json_is_checked_alike(text: str, said: str, tmp_path: Path) -> None:
    assert said in wrong(tmp_path, text, "a.chaos.json")


@pytest.mark.parametrize("ending", ["json", "yaml", "toml"])
def test_a_file_may_be_nested_as_deep_as_its_message_says(ending: str, tmp_path: Path) -> None:
    # A TOML file is a mapping by itself, which is one level.
    begin, most, name = ("a = ", 39, "a.chaos.toml") if ending == "toml" else ("", 40, f"a.chaos.{ending}")
    assert "nested" not in wrong(tmp_path, begin + "[" * most + "]" * most, name)
    assert "it is nested more than 40 deep" in wrong(tmp_path, begin + "[" * (most + 1) + "]" * (most + 1), name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "this is no TOML"), ("name = 'x'\nname = 'y'", "this is no TOML"),
        ("name = 'x'\nagent = 'a:b'\nprompt = 'p'\ntrials = 0", "trials is 0: it should be 1 or more"),
        ("name = 'x'\nagent = 'a:b'\nprompt = 'p'\ntimeout = nan", "a.chaos.toml: nan is no number"),
        ("name = 2026-01-01", "agent or fresh is missing"),
        (f"a = {'[' * 50}{']' * 50}", "it is nested more than 40 deep"),
        (f"{'a.' * 100_000}a = 1", "a.chaos.toml:1: it is nested more than 40 deep"),
        (f"a = [{'1, ' * 50_000}]", "it has more than 50000 values"), (f"a = {'9' * 5000}", "this is no TOML: Exceeds"),
    ],
)  # fmt: skip
def test_toml_is_checked_alike(text: str, said: str, tmp_path: Path) -> None:
    assert said in wrong(tmp_path, text, "a.chaos.toml")


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(GOOD)
    for path, said in (
        (tmp_path / "none.chaos.yaml", "it cannot be read: No such file or directory"),
        (tmp_path / "*", "there is no such file or folder"),
        (tmp_path / "a.txt", "a scenario's file ends in .yaml, .yml, .json or .toml"),
        (tmp_path / "nowhere", "there is no such file or folder"),
    ):
        with pytest.raises(ScenarioError) as refused:
            load_file_scenarios(path)
        assert str(refused.value) == f"{path}: {said}"
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ScenarioError, match="this is a folder"):
        load_file_scenarios(tmp_path / "folder.yaml")


def test_numbers_with_an_exponent_are_numbers() -> None:
    assert parse_located_data("a: 1e-3\nb: -2.5E+2\nc: '1e3'\nd: 1e\ne: e3\nf: 1.e3\n", "x").data == {
        "a": 0.001, "b": -250.0, "c": "1e3", "d": "1e", "e": "e3", "f": 1000.0,
    }  # fmt: skip
    assert parse_located_data('{"a": 1e-3, "b": [1E2, "1e3"]}', "x", suffix=".json").data == {
        "a": 0.001,
        "b": [100.0, "1e3"],
    }


def test_json_is_read_as_json_and_not_as_the_yaml_that_it_nearly_is() -> None:
    name = "k" * 2000
    text = f'{{\n\t"a": "\\ud83d\\ude00 \\/",\n\t"{name}": [true, null, {{"b" : -0.5 }}], "c": {{}}, "d": [ ]\n}}'
    found = parse_located_data(text, "f.json", suffix=".json")
    assert found.data == json.loads(text)
    assert str(found.make_error((name, 2, "b"), "no")) == f"f.json: {name[:80]}: no"


def test_texts_that_look_like_other_things_stay_texts() -> None:
    data = parse_located_data("a: 1:30\nb: 2026-01-01\nc: 017\nd: yes\ne: 0x10\nf: ~\ng: 1_000\nh: =\n", "x").data
    assert data == {"a": "1:30", "b": "2026-01-01", "c": "017", "d": True, "e": 16, "f": None, "g": 1000, "h": "="}


def test_the_place_of_a_key_and_of_an_entry() -> None:
    found = parse_located_data("a:\n  - b: 1\n    c: 2\n", "f.yaml")
    assert str(found.make_error(("a", 0, "c"), "no")) == "f.yaml:3:5: no"
    assert str(found.make_error(("a", 0), "no")) == "f.yaml:2:5: no"
    assert str(found.make_error(("a", 0, "c", "deeper", 7), "no")) == "f.yaml:3:5: no"
    assert str(located.Located("f.toml", {}).make_error(("a",), "no")) == "f.toml: no"
    assert str(located.Located("f.toml", {}).make_error(("a", 0, "b"), "no")) == "f.toml: a[0].b: no"


def test_a_matrix_may_be_given_other_keys_than_those_that_vary(tmp_path: Path) -> None:
    path = written(tmp_path, also("budget: {calls: 9}\nvariants: {seed: [1, 2]}"))
    found = load_file_scenarios(path, changed=["trials=3", "budget.calls=5"])
    assert [(each.spec.seed, each.spec.trials, each.spec.budget.calls) for each in found if each.spec.budget] == [
        (seed, 3, 5) for seed in (1, 2)
    ]
    with pytest.raises(ScenarioError, match="seed varies in this file: choose a variant with -k"):
        load_file_scenarios(path, changed=["seed=3"])


def test_a_changed_key_takes_the_place_of_the_one_that_excludes_it(tmp_path: Path) -> None:
    (fresh,) = load_file_scenarios(written(tmp_path, GOOD), changed=["fresh=shop:make", "turns=[a, b]"])
    assert (fresh.spec.agent, fresh.spec.fresh, fresh.spec.prompt, len(fresh.spec.turns)) == (
        None,
        "shop:make",
        None,
        2,
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{fault: latency, target: crm.tset}", "8:22: no service is called 'crm.tset': did you mean 'crm.test'?"),
        ("{fault: latency, target: crm.test, on_turn: [5]}", "8:5: 'latency on crm.test' can never hit: "),
        ("{fault: latency, target: crm.test, after: nope}", "8:40: 'latency on crm.test' is after 'nope', which is no"),
        ("{fault: latency, target: '*.test', on_turn: [2]}", ""),
    ],
)
def test_a_fault_without_a_service_or_a_turn_to_hit_is_named(tmp_path: Path, fault: str, said: str) -> None:
    file = tmp_path / "one.chaos.yaml"
    file.write_text(
        "name: x\nagent: my:agent\nservices: {crm.test: 'my:crm'}\nturns:\n  - hello\n  - bye\nfaults:\n  - "
        + fault
        + "\n"
    )
    if not said:
        assert len(load_file_scenarios(file)) == 1
        return
    with pytest.raises(ScenarioErrors) as error:
        load_file_scenarios(file)
    assert str(error.value).startswith(f"{file}:{said}")
    assert "\n" not in str(error.value)
