"""The memory: filled from logs, made again, forgotten, and what is planned and predicted from it."""

import importlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab import cli
from chaoslab.base import levers
from chaoslab.memory import store as stored
from chaoslab.memory._lessons import find_knock_on_failures
from chaoslab.memory.planning import parse_budget, plan, predict_run
from chaoslab.memory.store import APPLICATION, FILE, VERSION, Memory, Unusable, memory
from chaoslab.record.rulings import Rulings
from chaoslab.scenarios.builder import ScenarioBuilder, scenario
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.evidence import Experiment
from tests.cli_parts import Typed
from tests.sure import sure

AGAIN = "it is made anew by `chaoslab memory add"


def charge(amount: int) -> str:
    return f"charged {amount}"


def search(what: str) -> str:
    return f"{what}: 12"


def shopper(prompt: str) -> str:
    """Pays again where no answer came."""
    search(prompt)
    try:
        charge(5)
    except TimeoutError:
        charge(5)
    return "It is charged."


def shopping(*faults: lab.Injection, logs: Path | None = None, trials: int = 1, seed: int = 1) -> Path:
    options: dict[str, Any] = {"tools": [charge], "reads": [search], "faults": faults, "seed": seed}
    trial = [*lab.run_many(shopper, "buy", **options, trials=trials, logs=logs)][-1]
    return sure(trial.folder)


SHOP = """
name: shop
agent: tests.test_memory:shopper
prompt: buy
tools: [tests.test_memory:charge]
reads: [tests.test_memory:search]
"""


def shop() -> ScenarioBuilder:
    return scenario("shop").agent(shopper).ask("buy").tools(charge).reads(search)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of three runs, with their memory."""
    logs = tmp_path_factory.mktemp("logs")
    shopping(lab.inject("lost_reply", "charge", calls=[1]), lab.inject("latency", "search", chance=0), logs=logs)
    shopping(lab.inject("rate_limit", "search", calls=[1]), logs=logs, trials=2)
    shopping(logs=logs)
    filled(logs)
    return logs


@pytest.fixture
def logs(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "logs", symlinks=True)
    return tmp_path / "logs"


def filled(logs: Path, *, anew: bool = False) -> Memory:
    if anew:
        (logs / FILE).unlink()
    store = Memory(logs / FILE, make=True)
    store.add(sorted(logs.glob("2*")))
    return store


def rows(store: Memory, table: str) -> list[dict[str, Any]]:
    columns, found = store.read_table(table)
    return [dict(zip(columns, row, strict=True)) for row in found]


def test_every_run_leaves_its_experiments_once(logs: Path) -> None:
    store = filled(logs)
    before = {
        table: store.read_table(table) for table in ("experiments", "components", "ranges", "relations", "lessons")
    }
    assert str(store.add(sorted(logs.glob("2*")))) == "0 new, 3 known already"
    assert {table: store.read_table(table) for table in before} == before
    lost, limited, calm = rows(store, "experiments")
    assert (lost["target"], lost["fault"], lost["how"], lost["tried"], lost["harm"]) == (
        "charge",
        "lost_reply",
        "once",
        1,
        1,
    )
    assert (limited["tried"], limited["bad"], limited["harm"]) == (2, 2, 0)
    assert (calm["fault"], json.loads(calm["outcomes"])) == ("", {"correct": 1})
    (mttr,) = [each for each in rows(store, "components") if each["fault"] == "lost_reply"]
    assert (mttr["incidents"], mttr["bad"], mttr["subject"]) == (1, 1, "shopper")
    assert mttr["low"] == pytest.approx(0.2065, abs=1e-3)
    again = filled(logs, anew=True)
    assert {table: again.read_table(table) for table in before} == before


def test_a_relation_is_the_share_of_trials_in_which_another_target_failed(tmp_path: Path) -> None:
    """A log in which a call of mail failed, too, without a fault of its own."""
    log = shopping(lab.inject("rate_limit", "search", calls=[1]), logs=tmp_path) / "info.log"
    whole: list[dict[str, Any]] = []
    for line in map(json.loads, log.read_text().splitlines()):
        of_mail = line["kind"] in ("call_started", "call_finished")
        whole += [line, {**line, "target": "mail", "tool": "mail"}] if of_mail else [line]
    log.write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n, line in enumerate(whole, 1)))
    store = filled(tmp_path)
    (found,) = rows(store, "relations")
    assert (found["target"], found["fault"], found["other"]) == ("search", "rate_limit", "mail")
    assert (found["failed"], found["n"], found["strength"], found["twin_failed"]) == (1, 1, 1.0, 0)
    told = "with rate_limit at search, calls of mail failed in 1 of 1 trials, not in their twins"
    assert told in str(rows(store, "lessons"))


FLAKY = """
import random
def s1() -> str: return "1"
def s2() -> str: return "2"
def s3() -> str: return "3"
def mail() -> str:
    if random.random() < 0.3: raise ConnectionError("busy")
    return "sent"
def agent(prompt):
    for tool in (s1, s2, s3, mail):
        try: tool()
        except Exception: pass
    return "Done."
"""


def flaky(logs: Path, monkeypatch: pytest.MonkeyPatch, *faults: lab.Injection, trials: int) -> None:
    """Runs an agent of which a call fails in 30 % of the trials, whatever the faults."""
    (logs.parent / "flaky.py").write_text(FLAKY)
    monkeypatch.syspath_prepend(str(logs.parent))
    import flaky as made  # type: ignore[import-not-found]

    tools: dict[str, Any] = {"tools": [made.mail], "reads": [made.s1, made.s2, made.s3], "anyway": True}
    assert len([*lab.run_many(made.agent, "go", **tools, faults=faults, trials=trials, logs=logs)]) == trials


def test_what_fails_by_chance_beside_faults_is_no_relation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials with several faults credit none, and chance hits the twin as it hits the trial."""
    several = [lab.inject("rate_limit", name, chance=0.5) for name in ("s1", "s2", "s3")]
    flaky(tmp_path / "logs", monkeypatch, *several, trials=40)
    store = filled(tmp_path / "logs")
    assert rows(store, "relations") == []
    assert sum(each["joint"] for each in rows(store, "components")) > 0
    assert sum(each["tried"] + each["joint"] for each in rows(store, "components")) > 40


def test_relations_of_an_agent_that_draws_are_corrected_for_the_number_of_tests() -> None:
    def row(fault: str, lost: int, regained: int) -> tuple[Any, list[Experiment]]:
        affected = {"mail": (lost, regained, 20)}
        own = Experiment("shop", Cell("s1", fault), 20, affected=affected, drew=True)
        return ("shop", "s1", fault, "once"), [own]

    strong, weak = row("exception", 12, 0), row("delay", 5, 0)  # 5 of 5 by chance: 0.03
    assert [each[2] for each in find_knock_on_failures([strong, weak])] == ["delay", "exception"]
    others = [row(fault, 4, 4) for fault in ("empty", "stale", "not_found")]
    assert [each[2] for each in find_knock_on_failures([strong, weak, *others])] == ["exception"]


def test_mended_code_stands_apart_from_the_code_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    """The file of the agent tells the two, though nothing was committed."""
    tools = "def charge():\n    return 'paid'\n"
    agent = "def agent(prompt):\n    try: charge()\n    except Exception: {}\n    return 'Paid.'\n"
    logs = tmp_path / "logs"
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, does in (("bad", "charge(); charge()"), ("good", "charge()")):
        (tmp_path / f"{name}_shop.py").write_text(tools + agent.format(does))
        made = importlib.import_module(f"{name}_shop")
        fault = lab.inject("timeout_before_effect", "charge", calls=[1])
        for seed in range(2):
            lab.run(made.agent, "pay", tools=[made.charge], faults=[fault], seed=seed, logs=logs)
    store = filled(logs)
    (found,) = rows(store, "components")
    assert (found["tried"], found["bad"], found["before_tried"], found["before_bad"]) == (2, 0, 2, 2)
    assert found["revision"] != found["before_revision"]
    out = typed.out("memory", "--logs", logs)
    assert "timeout_before_effect at charge, once, was survived 2 of 2 times" in out
    assert "before it, 2 of 2 ended badly, which it contradicts" in out
    assert store.collect_evidence("agent").sum_trial_tallies("charge").bad == 0


def test_its_tables_are_frames(logs: Path) -> None:
    filled(logs)
    found = lab.memory(logs)
    assert found.experiments.shape == (3, 24)
    assert list(found.components["fault"]) == ["lost_reply", "rate_limit"]
    assert found.relations.empty
    with pytest.raises(AttributeError, match=r"a memory has no lesson: its tables are runs, "):
        found.lesson  # noqa: B018
    assert repr(found) == f"Memory({str(logs / FILE)!r}: 3 runs, 3 experiments)"


def test_what_is_forgotten_counts_no_more_and_does_not_come_back(logs: Path) -> None:
    store = filled(logs, anew=True)
    first, second, _ = sorted(logs.glob("2*"))
    assert store.forget(run=str(first)) == 1
    assert "lost_reply" not in str(store.read_table("components"))
    assert store.add([first]).new == 0
    assert store.add([first], again=True).changed == 1
    assert "lost_reply" in str(store.read_table("components"))
    store.forget(subject="shopper")
    assert "lost_reply" not in str(store.read_table("components"))
    assert store.add([second]).known == 1
    with pytest.raises(LookupError, match=r"memory.db knows no subject 'shoper': did you mean 'shopper'\?"):
        store.forget(subject="shoper")


def test_a_run_that_was_ruled_or_labelled_since_is_read_again(logs: Path) -> None:
    store = filled(logs, anew=True)
    folder = sorted(logs.glob("2*"))[1]
    (folder / "rulings.jsonl").write_text(
        '{"scenario": "tolerant", "asked": [], "trials": 2}\n'
        '{"trial": "p1.r1", "state": "passed"}\n{"trial": "p1.r2", "state": "passed"}\n'
    )
    before = len(rows(store, "experiments"))
    assert str(store.add([folder])) == "0 new, 1 changed, 0 known already"
    assert len(rows(store, "experiments")) == before
    (row,) = [each for each in rows(store, "components") if each["fault"] == "rate_limit"]
    assert (row["subject"], row["tried"], row["bad"]) == ("shopper", 2, 0)
    assert store.find_agent("tolerant") == "shopper"


@pytest.mark.parametrize("damage", ["version", "garbage", "another's", "cut", "table"])
def test_a_memory_that_cannot_be_used_is_one_line_and_is_laid_aside(
    damage: str, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = filled(logs).path
    if damage == "garbage":
        path.write_bytes(b"no database" * 100)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        db = sqlite3.connect(path)
        db.executescript(
            {"version": f"PRAGMA user_version={VERSION + 1}", "another's": f"PRAGMA application_id={APPLICATION + 1}",
             "table": "DROP TABLE calls"}[damage]
        )  # fmt: skip
        db.close()
    was = path.read_bytes()
    with pytest.raises(Unusable) as error:
        memory(logs)
    assert AGAIN in error.value.args[0]
    assert "\n" not in error.value.args[0]
    assert cli.main(["memory", "show", "--logs", str(logs)]) == 2
    assert cli.main(["memory", "add", *map(str, sorted(logs.glob("*"))), "--logs", str(logs)]) == 0
    assert path.with_name("memory.db.old").read_bytes() == was
    assert len(memory(logs).read_table("runs")[1]) == 3
    assert capsys.readouterr().err.count("\n") == 2


def test_a_memory_that_another_process_holds_stays_as_it_is(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(logs).path
    monkeypatch.setattr(stored, "PATIENCE_S", 0.05)
    was = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for words in (["memory", "add", *map(str, sorted(logs.glob("2*")))], ["memory", "show"], ["plan"]):
            assert cli.main([*words, "--logs", str(logs)]) == 2
            told = capsys.readouterr().err
            assert ("database is locked" in told, told.count("\n")) == (True, 1)
        other.execute("ROLLBACK")
    assert path.read_bytes() == was
    assert [*logs.glob("memory.db?*")] == []


def test_a_copy_that_was_laid_aside_is_never_written_over(logs: Path) -> None:
    path = filled(logs).path
    for garbage in (b"first" * 99, b"second" * 99):
        path.write_bytes(garbage)
        assert cli.main(["memory", "add", *map(str, sorted(logs.glob("2*"))), "--logs", str(logs)]) == 0
    assert path.with_name("memory.db.old").read_bytes() == b"first" * 99
    assert path.with_name("memory.db.old.2").read_bytes() == b"second" * 99


def test_a_memory_that_lacks_a_column_is_one_line(logs: Path, typed: Typed) -> None:
    path = filled(logs).path
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE experiments DROP COLUMN harm")
    assert "it is damaged: it has no experiments.harm" in typed.refused("plan", "--logs", logs)


def test_what_is_no_run_is_skipped_with_its_reason(logs: Path) -> None:
    store = filled(logs)
    (logs / "empty").mkdir()
    (logs / "foreign").mkdir()
    (logs / "foreign" / "x.log").write_text("hello\n")
    found = store.add([logs / "empty", logs / "foreign"])
    assert found.new == 0
    assert len(found.skipped) == 2
    assert all("\n" not in each for each in found.skipped)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "nowhere"], "nowhere: there is no such folder: name the folders of runs, as in logs/*"),
        (["show", "lesson"], "the memory has no table 'lesson': did you mean 'lessons'?"),
        (["show", "lessons", "runs"], "show takes one table, and these are 2"),
        (["archive", "--before", "2026-06-01"], "memory forget RUN leaves a run out; or delete"),
        (["forget"], "forget takes one of a run, --subject and --target"),
        (["forget", "--target", "chargee"], "knows no target 'chargee': did you mean 'charge'?"),
        (["predict"], "predict takes one run's folder, or one scenario's file"),
    ],
)
def test_a_wrong_word_is_one_line(words: list[str], said: str, logs: Path, typed: Typed) -> None:
    filled(logs)
    assert said in typed.refused("memory", *words, "--logs", logs)


def test_it_is_shown(logs: Path, typed: Typed) -> None:
    filled(logs)
    out = typed.out("memory", "--logs", logs)
    assert (
        "shopper: with lost_reply at charge, once, 1 of 1 trials ended badly (21%–100% of further trials of the same "
        "prompts), 1 with harm" in out
    )
    out = typed.out("memory", "show", "components", "--target", "charge", "--logs", logs)
    assert " | 1 | 1 | 1 | 0.207 | 1 | 1 | 0 | 0 | 1 | 0 | – |  | 0 | 0" in out
    assert len(json.loads(typed.out("memory", "show", "runs", "--json", "--logs", logs))["rows"]) == 3


def test_runs_are_added_and_forgotten(logs: Path, typed: Typed) -> None:
    added = json.loads(typed.out("memory", "add", logs, "--json", "--logs", logs))
    assert (added["known"], added["skipped"]) == (3, [])
    (logs / "empty").mkdir()
    (logs / "empty" / "run.json").write_text("{}")
    assert "skipped: " in typed("memory", "add", logs / "empty", "--logs", logs).err
    assert "forgotten: " in typed.out("memory", "forget", "--target", "charge", "--logs", logs)
    (logs / FILE).unlink()
    assert "there is no memory yet" in typed("memory", "show", "--logs", logs).err


def test_a_scenario_s_trial_is_foretold(logs: Path, tmp_path: Path, typed: Typed) -> None:
    filled(logs)
    scenario_file = tmp_path / "shop.chaos.yaml"
    scenario_file.write_text(f"{SHOP}faults: [{{fault: lost_reply, target: charge, calls: [1]}}]\n")
    (told,) = json.loads(typed.out("memory", "predict", scenario_file, "--json", "--logs", logs))["predictions"]
    assert (told["name"], told["bad"]) == ("shop", None)
    assert typed.out("memory", "predict", scenario_file, "--logs", logs).startswith("shop: too little data")


def test_the_command_runs_what_it_proposes(tmp_path: Path, typed: Typed) -> None:
    scenario_file = tmp_path / "shop.chaos.yaml"
    scenario_file.write_text(SHOP)
    words = ("plan", scenario_file, "--run", "--budget", "24", "--target", "charge", "--logs", tmp_path, "--json")
    code, out, err = typed(*words)
    done = json.loads(out)["done"]
    assert code == 1
    assert len(done) == err.count(" at charge, ") == 24
    assert all(0 <= entry["brier"] <= 1 for entry in done if entry["brier"] is not None)
    assert done[-1]["brier"] is not None
    assert typed("plan", scenario_file, "--run", "--budget", "0.001s", "--logs", tmp_path).out.count("budget of ") == 1


def test_a_prediction_is_scored_by_what_came(logs: Path, typed: Typed) -> None:
    for seed in range(2, 10):
        shopping(lab.inject("rate_limit", "search", calls=[1]), logs=logs, seed=seed)
    store = filled(logs)
    twice, calm = (
        next(Path(each["folder"]) for each in rows(store, "runs") if (each["trials"], each["bad"]) == key)
        for key in ((2, 2), (1, 0))
    )
    found = predict_run(store, twice)
    assert (found.judged, found.bad, len(found.predicted)) == (2, 2, 2)
    assert max(found.scores) < 0.01
    out = typed.out("memory", "predict", twice, "--logs", logs)
    assert "2 of 2 judged trials ended badly; for 2 of them 100% was predicted, Brier" in out
    assert "that of the base rate 0.0" in out
    few = typed.out("memory", "predict", calm, "--logs", logs)
    assert "0 of 1 judged trial ended badly; nothing is predicted: too little data: 0 trials without faults" in few


# Notes.


def test_what_was_learnt_by_hand_counts_as_trials_do_and_outlives_the_memory(tmp_path: Path, typed: Typed) -> None:
    learnt: dict[str, Any] = {"target": "charge", "fault": "lost_reply", "tried": 9, "bad": 7, "harm": 7}
    lab.memory.note(tmp_path, "shopper", "seen in production", **learnt)
    of_shopper = ("--subject", "shopper", "--logs", tmp_path)
    typed("memory", "note", "ask Ann about refunds", "--target", "refund", *of_shopper)
    typed("memory", "note", "--target", "crm", "--fault", "delay", "--tried", "3", *of_shopper)
    noted = (tmp_path / "notes.jsonl").read_text()
    wrong = [{**json.loads(noted.splitlines()[0]), **wrong} for wrong in ({"tried": "many"}, {"at": "soon"})]
    (tmp_path / "notes.jsonl").write_text("\n".join([*map(json.dumps, wrong), "[]", noted]))
    for _ in range(2):
        store = memory(tmp_path)
        assert [(each["fault"], each["tried"], each["bad"]) for each in rows(store, "components")] == [
            ("lost_reply", 9, 7), ("delay", 3, 0),
        ]  # fmt: skip
        lessons = str(rows(store, "lessons"))
        assert "noted: ask Ann about refunds" in lessons
        assert "noted: seen in production" in lessons
        assert str(store.collect_evidence("shopper").sum_trial_tallies("charge")) == "Tally(tried=9, bad=7, harm=7)"
        (tmp_path / FILE).unlink()
        Memory(tmp_path / FILE, make=True).add([])
    assert lab.plan(tmp_path, n=99).entries


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a note needs an agent, and a text or a fault with its target"),
        (("x", "--subject", "a", "--bad", "2"), "tried 1, bad 2, harm 0: of 1 trial or more, bad ones"),
        (("x", "--subject", "a", "--bad", "1"), "bad trials without a fault: name the fault and its target"),
        (("--subject", "a", "--fault", "delai", "--target", "b"), "did you mean 'delay'?"),
        (("--subject", "a", "--fault", "delay"), "an experiment needs its target, as a name"),
    ],
)  # fmt: skip
def test_a_note_that_cannot_be_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path, typed: Typed) -> None:
    assert said in typed.refused("memory", "note", *words, "--logs", tmp_path)
    assert not (tmp_path / "notes.jsonl").exists()


# Planning.


def test_a_plan_of_the_memory_names_what_was_never_tried(logs: Path) -> None:
    found = lab.plan(filled(logs), n=20)
    wanted = Cell("charge", "rate_limit")
    (one,) = [each for each in found if each.proposal.cell == wanted]
    assert one.proposal.reason == "never tried: rate_limit at charge; at other targets it broke 2 of 2"
    assert one.command.startswith("faults=[lab.inject('rate_limit', 'charge', calls=[1])], limits=")
    assert 0 < one.proposal.risk.value < 1
    assert str(found) == str(lab.plan(logs, n=20))
    assert found.enhance({"target": "charge", "fault": "lost_reply"}).design.how == "once"


def test_a_plan_that_runs_learns_and_leaves_a_run(tmp_path: Path) -> None:
    store = Memory(tmp_path / FILE, make=True)
    tries = ("lost_reply", "delay")
    found = plan(store, shop(), tries=tries, budget=12, run=True, seed=1)
    assert len(found.done) == 12
    assert found.folder is not None
    assert len({each.cell for each in found.done}) == len(found.done)
    assert found.evidence.revision
    assert found.evidence.older == {}  # what it has learnt counts as of the agent's present revision
    assert any(each.tried.outcome == "harm" for each in found.done)
    assert len({each.cell.dose for each in found.done if each.cell.fault == "delay"}) > 1
    assert len(sure(Rulings.read(found.folder)).by_trial) == len(found.done)
    (run,) = rows(store, "runs")
    assert (run["subject"], run["scenario"], run["trials"]) == ("shopper", "shop", len(found.done))
    kept = {each.cell for each in store.collect_evidence("shopper").rows if each.tried}
    assert kept == {each.cell for each in found.done if not each.void}


def test_the_first_proposals_are_of_what_cannot_be_undone(tmp_path: Path) -> None:
    found = lab.plan(tmp_path / "logs", shop(), n=400)
    cell, reason = found.entries[0].proposal.cell, found.entries[0].proposal.reason
    assert (cell.target, reason.partition("; ")[2]) == ("charge", "it is done, and the caller sees an error")
    places = [str(each.proposal.cell) for each in found]
    assert places.index("lost_reply at charge, once") < 25  # 230 to 262 of 400 before
    first = [(each.proposal.cell.target, each.proposal.cell.fault) for each in found][: len(found) // 3]
    assert len(set(first)) == len(first)
    assert {each.proposal.prediction.why for each in found} == {
        "too little data: 0 trials with one fault alone at this revision, and 8 are needed"
    }
    assert (tmp_path / "logs" / FILE).exists()  # as the command makes one


def test_runs_explorations_and_plans_of_an_agent_are_held_under_its_name(tmp_path: Path) -> None:
    shopping(lab.inject("lost_reply", "charge", calls=[1]), logs=tmp_path)
    options: dict[str, Any] = {"tools": [charge], "reads": [search], "tries": ["rate_limit"], "seed": 1}
    lab.explore(shopper, "buy", **options, trials=10, logs=tmp_path)
    shop().fault("delay", "charge", mean_s=1.0).test(logs=tmp_path)
    plan(tmp_path, shop(), tries=("exception",), budget=2, run=True)
    store = filled(tmp_path)
    assert store.list_agents() == ["shopper"]
    assert {each["fault"] for each in rows(store, "components")} >= {"lost_reply", "rate_limit", "exception"}
    assert str(lab.plan(tmp_path, subject="shop")) == str(lab.plan(tmp_path, subject="shopper"))


def test_a_fault_that_was_not_met_teaches_nothing(tmp_path: Path) -> None:
    found = plan(Memory(tmp_path / FILE, make=True), shop(), tries=("stale",), budget=9, run=True)
    assert {(each.void, each.brier_scores) for each in found.done} == {(True, None)}
    assert "the fault was not met" in str(found)
    (store,) = [memory(tmp_path)]
    assert rows(store, "components") == []
    again = lab.plan(tmp_path, shop(), tries=("stale", "exception"), n=4)
    assert {each.proposal.cell.fault for each in again} == {"exception"}


def test_the_limits_of_a_plan_are_those_of_its_runs_and_of_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Memory(tmp_path / FILE, make=True)
    found = plan(store, shop(), tries=("lost_reply", "rate_limit"), budget=3, run=True, share=0.1, n=20)
    assert {each.held for each in found.done} == {"share 0.1"}  # by the dice of a first trial
    assert "held back, share 0.1" in str(found)
    assert not any(each.cell for each in store.collect_evidence("shopper").rows)
    assert {each.command.partition(", limits=")[2] for each in found} == {"{'share': 0.1}"}
    shopping(lab.inject("lost_reply", "charge", calls=[1]), logs=tmp_path, trials=4)
    risky = plan(filled(tmp_path), shop(), n=50)
    assert {each.command.partition(", limits=")[2] for each in risky if each.proposal.risk.value >= 0.3} == {
        "{'at_once': 1}"
    }
    monkeypatch.setattr(levers, "LEVER", tmp_path / "stop")
    levers.write_stop_file(levers.LEVER, "enough")
    stopped = plan(store, shop(), tries=("lost_reply",), run=True)
    assert (stopped.done, stopped.ended) == ([], f"lever {levers.LEVER}: enough")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"risk": 1.5}, "risk is 1.5: it should be a number from 0 to 1"),
        ({"budget": "5 parsecs"}, "the budget is '5 parsecs': it should be trials, as in 200, or a time, as in 10m"),
        ({"budget": 0}, "the budget is 0: it should be trials"),
        ({"targets": ["crm"]}, "shopper has no target 'crm': known are charge, search"),
        ({"subject": "nobody"}, "knows no agent 'nobody'; known are shopper"),
        ({"share": 0}, "share of limits is 0: it should be a share above 0 up to 1, as in 0.1 or 10%"),
        ({"run": True}, "run needs a scenario: name its file"),
        ({"critical": {"crm": 0.5}}, "shopper has no target 'crm': known are charge, search"),
        ({"critical": {"charge": 2}}, "critical of charge is 2: it should be a number from 0 to 1"),
    ],
)
def test_a_plan_that_cannot_be_is_one_line(options: dict[str, Any], said: str, logs: Path) -> None:
    filled(logs)
    with pytest.raises((ValueError, LookupError)) as error:
        lab.plan(logs, **options)
    assert said in error.value.args[0]


def test_a_budget_is_trials_or_a_time() -> None:
    assert parse_budget(200) == (200, None)
    assert parse_budget("10m")[1] == 600
    assert parse_budget(None) == (200, None)


def test_the_command_proposes_and_says_what_is_above_the_risk(logs: Path, typed: Typed) -> None:
    filled(logs)
    out = typed.out("plan", "shopper", "--logs", logs, "-n", "1", "--risk", "30%")
    assert out.startswith(
        "shopper\n1. lost_reply at search, once\n   never tried: lost_reply at search; at other targets"
    )
    assert "left out, above the risk allowed: " in out
    plain = json.loads(typed.out("plan", "shopper", "--logs", logs, "-n", "1", "--risk", "30%", "--json"))
    (proposal,) = plain["proposals"]
    assert (plain["subject"], plain["left_out"][0]) == ("shopper", "lost_reply at charge, once (risk 0.93)")
    assert (plain["done"], plain["run"]) == ([], None)
    assert proposal | {"risk": round(proposal["risk"], 3)} == {
        "target": "search", "fault": "lost_reply", "how": "once", "params": {},
        "reason": "never tried: lost_reply at search; at other targets it broke 1 of 1", "bad": None, "base": None,
        "trials": 3, "why": "too little data: 3 trials with one fault alone at this revision, and 8 are needed",
        "risk": 0.171, "factors": {"criticality": 0.5, "irreversibility": 0.0, "near misses": 0.0}, "cost": 1.0,
        "command": "faults=[lab.inject('lost_reply', 'search', calls=[1])]", "watch": ["calls of search"],
        "stop": ["harm > 0"], "limits": {}, "deadline_s": 1.0,
        "changes": [
            {"what": "deadline_s", "evidence": "2 past trials took 0 s ± 0 s"},
            {"what": "watch", "evidence": "no other target is known to fail with it"},
            {"what": "stop", "evidence": "the chance of harm is 20%"},
        ],
    }  # fmt: skip
    error = typed.refused("plan", "shopper", "--logs", logs, "--target", "crm")
    assert error == "shopper has no target 'crm': known are charge, search\n"
