"""Scenarios are run by the command line: what holds, what does not, and what proves nothing."""

import json
import shlex
import sys
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.record.rulings import Rulings
from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios
from chaoslab.scenarios.running import run_scenario
from tests.cli_parts import Ended, Typed
from tests.sure import sure
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

FILE = """\
name: refund
description: A refund is paid once.
fresh: tests.scenarios.shop_parts:{agent}
tools: [tests.scenarios.shop_parts:refund]
state: tests.scenarios.shop_parts:state
judge: tests.scenarios.shop_parts:hears
prompt: Refund order 17.
trials: 8
faults:
  - {{fault: lost_reply, target: refund, chance: 0.4}}
expect:
  - max_calls: 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def put(folder: Path, agent: str = "naive", more: str = "", name: str = "refund.chaos.yaml") -> str:
    (folder / name).write_text(FILE.format(agent=agent) + more)
    return name


def tried(typed: Typed, *arguments: str, logs: bool = False) -> Ended:
    return typed("test", *arguments, *([] if logs else ["--no-logs"]))


def test_a_naive_agent_fails_and_a_careful_one_passes(here: Path, typed: Typed) -> None:
    put(here)
    code, said, err = tried(typed, logs=True)
    assert code == 1
    lines = said.splitlines()
    assert lines[0] == "FAILED   refund: 2 of 8 trials passed, 95 % interval 7%–59%; 6 met a fault"
    assert "    harm: refund twice; the state's 17 is 2 instead of 1" in lines
    assert "    each met lost_reply on refund" in lines
    assert err.startswith("change first: Send the same Idempotency-Key")
    again = next(line for line in lines if line.startswith("    rerun: "))
    put(here, "careful")
    told = (0, "PASSED   refund: 8 of 8 trials passed, 95 % interval 68%–100%; 6 met a fault\n", "")
    assert tried(typed) == told
    put(here)
    words = again.removeprefix("    rerun: chaoslab test ").split()
    code, said, _ = tried(typed, *words)
    assert code == 1
    assert "0 of 1 trials passed" in said
    assert "verdict  harm: refund twice" in said


def test_one_trial_is_the_same_alone_and_among_others(here: Path, typed: Typed) -> None:
    put(here)
    found = json.loads(tried(typed, "--json")[1])["scenarios"][0]["not_passed"]
    for each in found:
        (alone,) = json.loads(tried(typed, "--json", "--trial", str(each["trial"]))[1])["scenarios"]
        assert alone["not_passed"] == [each]


def test_an_assertion_that_does_not_hold_fails_a_trial_that_is_correct(here: Path, typed: Typed) -> None:
    put(here, "careful", "  - max_calls: 0\n")
    code, said, _ = tried(typed, "--set", "faults=[]")
    assert code == 1
    assert "max_calls(calls=0): 1 call, at most 0 were allowed (event 2 of the trial)" in said


def test_a_scenario_whose_faults_nobody_meets_proves_nothing(here: Path, typed: Typed) -> None:
    put(here, "careful")
    code, said, _ = tried(typed, "--set", "faults=[{fault: lost_reply, target: refund, chance: 0.0001}]")
    assert code == 4
    assert said.splitlines()[1] == "  it proves nothing: no trial met a fault (lost_reply on refund)"


def test_a_numbered_fault_that_never_comes_is_invalid(here: Path, typed: Typed) -> None:
    put(here, "careful")
    code, said, _ = tried(typed, "--set", "faults=[{fault: lost_reply, target: refund, calls: [5]}]")
    assert code == 4
    assert "'lost_reply on refund' is for request 5 of refund, and there were 1" in said


def test_a_share_of_trials_may_fail(here: Path, typed: Typed) -> None:
    put(here, more="pass_rate: 0.25\n")
    assert tried(typed)[0] == 0
    assert tried(typed, "--set", "pass_rate=0.9")[0] == 1


def test_fail_fast_stops_at_the_first_failure(here: Path, typed: Typed) -> None:
    put(here)
    put(here, name="second.chaos.yaml")
    (first,) = json.loads(tried(typed, "--fail-fast", "--json")[1])["scenarios"]
    assert (first["failed"], first["not_passed"][0]["trial"]) == (1, first["trials"])
    assert first["trials"] < 8


def test_a_dry_run_runs_nothing_and_foretells_the_hits(here: Path, typed: Typed) -> None:
    put(here)
    code, said, _ = tried(typed, "--dry-run")
    assert code == 0
    foretold = {n for n, line in enumerate(said.splitlines()) if "at request 1 of refund" in line}
    whole = json.loads(tried(typed, "--json")[1])["scenarios"][0]
    assert {each["trial"] for each in whole["not_passed"]} == foretold
    (here / "missing.chaos.yaml").write_text(FILE.format(agent="naive").replace("shop_parts", "no_such_module"))
    assert tried(typed, "missing.chaos.yaml", "--dry-run")[0] == 0


def test_seeds_and_numbers_of_trials_may_be_given(here: Path, typed: Typed) -> None:
    put(here)
    of_seed = {seed: tried(typed, "--json", "-n", "12", "--seed", str(seed))[1] for seed in (1, 2)}
    assert of_seed[1] != of_seed[2]
    assert json.loads(of_seed[1])["scenarios"][0]["trials"] == 12
    assert tried(typed, "--json", "-n", "12", "--seed", "1", "--jobs", "2")[1] == of_seed[1]


def test_scenarios_are_chosen_by_name(here: Path, typed: Typed) -> None:
    put(here, "careful", "variants: [{name: one}, {name: two, faults: []}]\n")
    code, said, _ = tried(typed, "-k", "two", "-q")
    assert (code, said) == (0, "")
    assert tried(typed)[1].splitlines()[-1] == "2 scenarios: 2 passed"
    assert tried(typed, "-k", "three") == (
        2, "", "no scenario has 'three' in its name: there are refund, one, refund, two\n"
    )  # fmt: skip


def test_logs_are_written_and_can_be_shown(here: Path, typed: Typed) -> None:
    put(here)
    _, _, said = tried(typed, logs=True)
    (page,) = (here / "logs").glob("2*/report.html")
    assert said.splitlines()[-1] == f"report {page.relative_to(here)}"
    assert (here / "logs" / ".gitignore").read_text() == "*\n"
    assert "6 of 8 judged trials failed" in page.read_text()
    assert "6 of 8 judged trials failed" in typed.out("summary", "latest")


def test_no_logs_are_written_where_none_are_wanted(here: Path, typed: Typed) -> None:
    put(here)
    assert tried(typed)[2] == ""
    assert typed("stress", "refund.chaos.yaml", "--iterations=2", "--levels=0,2", "--no-logs", "-q").code == 0
    assert not (here / "logs").exists()


def test_a_folder_of_logs_that_was_there_is_left_to_its_owner(here: Path, typed: Typed) -> None:
    (here / "kept").mkdir()
    put(here)
    tried(typed, "--logs", "kept", logs=True)
    assert (here / "kept" / "latest" / "report.html").is_file()
    assert not (here / "kept" / ".gitignore").exists()


def test_rulings_go_to_the_own_run_though_another_program_has_begun_one(here: Path) -> None:
    put(here)
    (scenario,) = load_file_scenarios(Path("refund.chaos.yaml"))
    trials = run_scenario(scenario, trials=2, logs=Path("logs"))
    folder = next(trials).trial.folder
    other = here / "logs" / "other"
    other.mkdir()
    (here / "logs" / "latest").unlink()
    (here / "logs" / "latest").symlink_to(other)
    assert [ruling.trial.folder for ruling in trials] == [folder]
    assert [*sure(Rulings.read(sure(folder))).by_trial] == ["p1.r1", "p1.r2"]
    assert [*other.iterdir()] == []


def test_each_level_leaves_a_run_with_its_report(here: Path, typed: Typed) -> None:
    put(here)
    ended = typed("stress", "refund.chaos.yaml", "--iterations=2", "--levels=0,2")
    assert ended.code == 0, "the level that breaks the agent is what was asked for"
    pages = [f"report {page.relative_to(here)}" for page in sorted((here / "logs").glob("2*/report.html"))]
    said = ended.err.splitlines()
    assert [line for line in said if not line.startswith(("change first: Send the same Idempotency-Key", "  "))] == [
        "refund at level 0: 1 of 2 trials passed; 1 met a fault", pages[0],
        "refund at level 2: 0 of 2 trials passed; 2 met a fault", pages[1],
    ]  # fmt: skip
    assert sum(line.startswith("change first: ") for line in said) == 2, (
        "what to change first, at each level that breaks"
    )


def test_quiet_prints_a_failure_and_its_command_alone(here: Path, typed: Typed) -> None:
    put(here, "careful")
    assert tried(typed, "-q", logs=True) == (0, "", "")
    assert (here / "logs" / "latest" / "report.html").is_file()
    put(here)
    code, out, err = tried(typed, "-q", logs=True)
    head, reason, command = out.splitlines()
    assert (code, head[:6], reason[:8], err) == (1, "FAILED", "  harm: ", "")
    assert command.startswith("  rerun: chaoslab test ")


def test_quiet_prints_a_failure_also_if_a_later_scenario_is_refused(here: Path, typed: Typed) -> None:
    put(here)
    (here / "broken.py").write_text("1 / 0\ndef make(): ...\n")
    (here / "z.chaos.yaml").write_text(
        (here / "refund.chaos.yaml").read_text().replace("tests.scenarios.shop_parts:naive", "broken:make")
    )
    code, out, err = tried(typed, "-q")
    head, reason, command = out.splitlines()
    assert (code, head[:6], reason[:8], command[:9]) == (2, "FAILED", "  harm: ", "  rerun: ")
    assert err.startswith("z.chaos.yaml: fresh broken:make cannot be imported: ZeroDivisionError")


@pytest.mark.parametrize(
    "words",
    [
        ("test", "--trial", "1"),
        ("explore", "-n", "40"),
        ("stress", "--iterations", "2"),
        ("plan",),
        ("compare", "-n", "12"),
    ],
)
def test_quiet_prints_five_lines_at_most(here: Path, typed: Typed, words: tuple[str, ...]) -> None:
    put(here)
    (file,) = (path.name for path in here.glob("*.chaos.*"))
    files = [file] * (1 + (words[0] == "compare"))
    lines = typed(*words[:1], *files, *words[1:], "-q").out.splitlines()
    assert 1 <= len(lines) <= 5
    assert len(lines) < 5 or lines[-1].endswith(" more lines without -q")
    assert len(typed(*words[:1], *files, *words[1:]).out.splitlines()) > 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("fresh=nowhere:make", "fresh nowhere:make cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("fresh=shop:make", "fresh=shop:make: shop:make cannot be imported: shop.py has no 'make'"),
        ("fresh=tests.scenarios.shop_parts:nobody", "cannot be imported: shop_parts.py has no 'nobody'"),
        ("fresh=tests.scenarios.shop_parts:careul", "has no 'careul': did you mean 'careful'?"),
        ("fresh=broken:make", "fresh broken:make cannot be imported: ZeroDivisionError: division by zero"),
        ("fresh=leaves:make", "fresh leaves:make cannot be imported: SystemExit: 3"),
        ("tools=[tests.scenarios.shop_parts:BOOK]", "tools"),
        ("faults=[{fault: lost_reply, target: refnd}]", "did you mean 'refund'?"),
    ],
)
def test_what_does_not_fit_is_one_line(change: str, said: str, here: Path, typed: Typed) -> None:
    (here / "shop.py").write_text("def refund(order): ...\n")
    (here / "broken.py").write_text("1 / 0\ndef make(): ...\n")
    (here / "leaves.py").write_text("raise SystemExit(3)\ndef make(): ...\n")
    put(here)
    err = typed.refused("test", "--set", change, "--no-logs")
    assert err.startswith(("refund.chaos.yaml: ", f"refund.chaos.yaml, --set {change}: "))
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--logs", "refund.chaos.yaml"], "refund.chaos.yaml: it should be a folder: rename it\n"),
        (["--logs", "/proc/none"], "/proc/none: No such file or directory\n"),
        (["--logs", "refund.chaos.yaml/none"], "refund.chaos.yaml/none: Not a directory\n"),
        (["--junit", "."], "--junit .: this is a folder; name a file in it\n"),
        (["--junit", "/dev/null"], "--junit /dev/null: this is no regular file; name one"),
        (["--junit", "none/out.xml"], "--junit none/out.xml: there is no folder none\n"),
        (["--set", "trials="], "refund.chaos.yaml, --set trials=: trials is '': it should be a whole number\n"),
        (
            ["--chaos-level", "11"],
            "refund.chaos.yaml, --set chaos_level=11: chaos_level is 11: it should be a number from 0",
        ),
        (["--set", "fresh=opens:make"], "refund.chaos.yaml: the host example.com (in opens.py, line 4, agent) is not"),
        (["nowhere"], "nowhere: there is no such file or folder\n"),
    ],
    ids=str,
)
def test_what_keeps_a_run_from_its_end_is_one_line(arguments: list[str], said: str, here: Path, typed: Typed) -> None:
    lines = [
        "import socket",
        "def make():",
        "    def agent(prompt):",
        '        socket.create_connection(("example.com", 80))',
    ]
    (here / "opens.py").write_text("\n".join([*lines, "    return agent"]))
    put(here)
    assert typed.refused("test", *arguments).startswith(said)
    assert not (here / "none").exists()


def test_all_files_of_a_folder_that_are_broken_are_told(here: Path, typed: Typed) -> None:
    put(here, more="trails: 3\n")
    put(here, more="nope: 1\nseed: x\n", name="second.chaos.yaml")
    put(here, name="sound.chaos.yaml")
    for words in (["test"], ["gate", ".", "--baseline", "none.json"]):
        code, out, err = typed(*words)
        assert (code, out) == (2, "")
        assert err == typed("check", ".").err
        assert [line.partition(": ")[0] for line in err.splitlines()] == [
            "refund.chaos.yaml:13:1", "second.chaos.yaml:13:1", "second.chaos.yaml:14:1",
        ]  # fmt: skip
    assert typed.refused("test", "--set", "trials") == "--set trials should be a key and a value, as in trials=50\n"


@pytest.mark.parametrize(("given", "noted"), [(("--trial", "8"), False), (("--trial", "9"), True),
                                              (("--trial", "9", "-n", "9"), False)])  # fmt: skip
def test_a_trial_beyond_the_scenarios_number_is_noted(
    given: tuple[str, ...], noted: bool, here: Path, typed: Typed
) -> None:
    put(here, "careful")
    _, _, err = tried(typed, *given)
    assert err == ("note: refund has 8 trials; 9 is none of them\n" if noted else "")


def test_the_line_that_runs_a_trial_again_has_all_that_it_depends_on(here: Path, typed: Typed) -> None:
    put(here, "careful")
    given = ("--set", "fresh=tests.scenarios.shop_parts:naive", "--seed", "3", "--chaos-level", "2")
    code, said, _ = tried(typed, *given)
    assert code == 1
    again = next(line for line in said.splitlines() if "rerun: " in line).partition("rerun: ")[2]
    words = shlex.split(again)
    assert words[:2] == ["chaoslab", "test"]
    assert words[-6:] == ["--seed", "3", "--set", given[1], "--set", "chaos_level=2"]
    number = words[words.index("--trial") + 1]
    code, alone, _ = tried(typed, *words[2:])
    assert code == 1
    told = said.splitlines()
    at = next(n for n, line in enumerate(told) if f"rerun: {again}" in line)
    assert told[at - 2] in alone.splitlines(), number


@pytest.mark.parametrize(
    "arguments", [("-n", "0"), ("-n", "-3"), ("-n", "x"), ("--seed", "-1"), ("--trial", "0"), ("--jobs", "0")], ids=str
)
def test_a_number_that_is_none_is_refused(arguments: tuple[str, ...], here: Path, typed: Typed) -> None:
    put(here)
    assert "should be a whole number from" in typed.refused("test", *arguments)


@pytest.mark.usefixtures("here")
def test_without_scenarios_there_is_nothing_to_test(typed: Typed) -> None:
    assert tried(typed) == (2, "", "no scenario is here: its file is called something.chaos.yaml\n")
    gone = "none.chaos.yaml: it cannot be read: No such file or directory\n"
    assert tried(typed, "none.chaos.yaml") == (2, "", gone)


def test_check_runs_nothing(here: Path, typed: Typed) -> None:
    (here / "loud.py").write_text("raise SystemExit('it was imported')\ndef naive(): ...\n")
    (here / "refund.chaos.yaml").write_text(
        FILE.format(agent="naive").replace("tests.scenarios.shop_parts:naive", "loud:naive")
    )
    assert typed.out("check") == "refund.chaos.yaml: 'refund': nothing is wrong with it\n"
    put(here, more="trails: 3\n", name="bad.chaos.yaml")
    code, _, error = typed("check", ".")
    assert (code, error) == (2, "bad.chaos.yaml:13:1: 'trails' is not known here: did you mean 'trials'?\n")


@pytest.mark.usefixtures("here")
def test_the_schema_knows_faults_and_assertions_and_takes_what_is_right(typed: Typed) -> None:
    import jsonschema
    import yaml

    schema = json.loads(typed.out("check", "--schema"))
    jsonschema.Draft7Validator.check_schema(schema)
    valid = jsonschema.Draft7Validator(schema)
    assert schema["title"] == "A scenario of the chaos lab"
    holders = {"": schema, **schema["definitions"]}
    for name, holder in holders.items():  # an editor shows them
        for key, of in holder.get("properties", {}).items():
            assert of.get("description"), f"{name}.{key} has no description"
            assert "title" not in of
    good = yaml.safe_load(FILE.format(agent="naive"))
    assert [error.message for error in valid.iter_errors(good)] == []
    assert valid.is_valid({**good, "timeout": "90s", "turns": ["a", {"reply": {"b": "c"}, "after": "2h"}]})
    for right in (
        {"agent": "lab"}, {"agent": {"command": ["node", "a.js"]}}, {"slo": [{"share": 0.9, "within": "2s"}]},
        {"budget": {"tokens": 5, "seconds": "2min"}}, {"user": [{"when": "a", "say": "b"}], "turns_max": 4},
        {"operations": [{"tool": "a", "args": {"b": 1}, "expect": [{"max_calls": 1}]}]},
        {"upstreams": {"crm": "http://127.0.0.1:1"}}, {"variants": [{"name": "a", "agent": "lab"}]},
        {"faults": [{"fault": "latency", "target": "x", "delay_s": {"from": 1, "to": 2}}]},
    ):  # fmt: skip
        assert [error.message for error in valid.iter_errors({**good, **right})] == [], right
    wrongs: tuple[dict[str, object], ...] = (
        {"agent": "labs"}, {"user": [{"when": "a"}]}, {"user": [{"say": "a", "when": "b", "if": 1}]},
        {"turns_max": 1}, {"budget": {"tokens": 0}}, {"budget": {"euros": 1}}, {"slo": [{"within": 1}]},
        {"slo": [{"share": 2}]}, {"operations": [{"args": {}}]}, {"upstreams": {"crm": 1}},
        {"trails": 3}, {"trials": 0}, {"chaos_level": 10.7}, {"faults": [{"fault": "nope", "target": "x"}]},
        {"expect": ["nope"]}, {"expect": [{"nope": 1}]}, {"timeout": "soon"}, {"agent": "a.b"},
    )  # fmt: skip
    for wrong in wrongs:
        assert not valid.is_valid({**good, **wrong}), wrong


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("lost_reply.chance=1.0", 1, "FAILED"),
        ("lost_reply.chance=0", 4, "INVALID"),
        ("lost_reply.chance=9", 2, "chance of lost_reply on refund is 9"),
        ("lost_repl.chance=1", 2, "'lost_repl.chance' is of no fault of this scenario: did you mean 'lost_reply'?"),
        ("nothing.chance=1", 2, "'nothing.chance' is of no fault of this scenario"),
    ],
)
def test_a_parameter_of_a_fault_is_set_from_the_command_line(
    here: Path, typed: Typed, given: str, code: int, said: str
) -> None:
    """Also over the value of a variant."""
    put(here, more="variants: [{name: rare, lost_reply.chance: 0.000001}]\n", name="set.chaos.yaml")
    ended, out, err = tried(typed, "set.chaos.yaml", "-n", "2", "--set", given)
    assert ended == code
    assert said in out + err
    assert err.count("set.chaos.yaml") <= 1


@pytest.mark.parametrize("name", ["no_such_module_of_anyone:x", "tests.scenarios.no_such_part:x"])
def test_check_names_a_module_that_is_not_there(here: Path, typed: Typed, name: str) -> None:
    (here / "x.chaos.yaml").write_text(f"name: x\nagent: {name}\nprompt: Go.\n")
    assert f"there is no module '{name.partition(':')[0]}'" in typed.refused("check", "x.chaos.yaml")
    (here / "tests" / "scenarios").mkdir(parents=True)
    assert typed("check", "x.chaos.yaml").code == 2


def test_a_dry_run_tells_a_fault_of_a_later_turn(here: Path, typed: Typed) -> None:
    (here / "x.chaos.yaml").write_text(
        "name: x\nfresh: tests.scenarios.shop_parts:naive\ntools: [tests.scenarios.shop_parts:refund]\n"
        "turns: [Refund order 17., Again.]\ntrials: 1\nfaults: [{fault: latency, target: refund, on_turn: [2]}]\n"
    )
    said = typed.out("test", "x.chaos.yaml", "--dry-run")
    assert said.splitlines()[-1] == "  trial 1: latency on refund at the calls that fit on_turn=[2]"


class Order:
    def __init__(self, number: int) -> None:
        self.number = number

    def run(self) -> str:
        return f"order {self.number} is paid back"


def test_a_mapping_names_the_tools_as_in_python(tmp_path: Path) -> None:
    made = lab.scenario("named").agent(lambda _: Order(17).run()).tools({"refund": Order.run}).ask("Refund order 17.")
    (result,) = made.fault("lost_reply", "refund", calls=[1]).set(trials=1, accept=["failed"]).run()
    assert [(effect["effect"], effect["number"]) for effect in result.rulings[0].trial.effects] == [("refund", 17)]
    file = tmp_path / "named.chaos.yml"
    file.write_text(
        "name: named\nagent: here:answer\nprompt: Refund order 17.\ntools: {refund: 'here:Order.run', pay: 'here:x'}\n"
        "faults: [{fault: lost_reply, target: refnd}]\n"
    )
    (tmp_path / "here.py").write_text("class Order:\n    def run(self): ...\ndef answer(prompt): ...\n")
    with pytest.raises(ScenarioErrors) as wrong:
        load_file_scenarios(file)
    said = str(wrong.value).splitlines()
    assert f"{file}:4:35: here:x cannot be imported: here.py has no 'x'" in said
    assert f"{file}:5:30: no tool is called 'refnd': did you mean 'refund'?" in said


def test_failures_that_differ_in_the_kind_of_5xx_alone_are_told_together(here: Path, typed: Typed) -> None:
    put(here, "careful")
    down = "faults=[{fault: server_error, target: refund, persistence: for_good}]"
    _, said, _ = tried(typed, "--set", down, "--set", "trials=12", "--set", "accept=[correct]")
    told = [line for line in said.splitlines() if line.endswith(":")]
    assert len(told) == 1, said
    assert told[0].startswith("  12 trials (1, 2, 3, 4, 5")
