"""A coding agent works in a copy of a folder, and what it does there is judged like all effects."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallStarted, Effect, FaultWitnessed
from chaoslab.scenarios.load import load_file_scenarios
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"src/app.py": "one\ntwo\nthree\n", "build/app.o": "object\n", "notes_a.txt": "kept\n"}.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text, encoding="utf-8")
    return tmp_path / "work"


def clean(prompt: str) -> str:  # noqa: ARG001
    """Deletes all if it does not see what there is to delete."""
    listing = subprocess.run(["ls", "build"], capture_output=True, text=True, timeout=5)
    if listing.returncode or not listing.stdout:
        shutil.rmtree("src")
        return "Cleaned."
    for name in listing.stdout.split():
        os.remove(f"build/{name}")
    return "Cleaned."


def edit(prompt: str) -> str:  # noqa: ARG001
    """Edits a file twice, and reads it in between."""
    path = Path("src/app.py")
    try:
        path.write_text(path.read_text(encoding="utf-8").replace("one", "1"), encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8").replace("two", "2"), encoding="utf-8")
    except OSError as error:
        return f"I could not edit all of it: {error}."
    return "Edited."


def run(agent: Any, folder: Path, fault: str, target: str, number: int = 1, **params: Any) -> lab.Trial:
    return lab.run(agent, "Do it.", files=folder, faults=[lab.inject(fault, target, calls=[number], **params)])


def effects(trial: lab.Trial) -> list[str]:
    return [event.effect for _, event in trial.history.find_events(Effect)]


@pytest.mark.parametrize(
    ("fault", "params"), [("command_fails", {"code": 3}), ("command_silent", {}), ("command_killed", {})]
)
def test_deleting_beyond_the_task_is_harm_and_the_story_has_the_diff(
    folder: Path, fault: str, params: dict[str, Any]
) -> None:
    trial = run(clean, folder, fault, "commands", **params)
    assert trial.outcome == "harm"
    assert trial.why.startswith("delete src/app.py, which was not asked for; missing: delete build/app.o")
    assert "effect   files delete src/app.py\n" in trial.story()
    assert "  -two\n" in trial.story()
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == [fault]
    assert trial.twin is not None
    assert effects(trial.twin) == ["delete build/app.o"]
    assert (folder / "src/app.py").exists()


def test_a_command_runs_in_real_time_while_the_clock_stands_still(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        began_s = time.monotonic()
        pipe = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer, _ = pipe.communicate("typed\n")
        assert os.system("sleep 0.1; exit 2") == 512
        late = subprocess.Popen("sleep 0.1; echo late", shell=True, stdout=subprocess.PIPE)
        while late.poll() is None:
            pass
        assert late.stdout is not None
        return f"{answer.strip()} {late.stdout.read().decode().strip()} {time.monotonic() - began_s}"

    trial = lab.run(agent, "Do it.", files=folder)
    assert (trial.answer, trial.ok) == ("typed late 0.0", True)


def test_a_command_of_asyncio_does_too(folder: Path) -> None:
    async def agent(prompt: str) -> str:  # noqa: ARG001
        began_s, pipe = time.monotonic(), asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        process.stdin.write(b"typed\n")
        await process.stdin.drain()
        process.stdin.close()
        assert process.stdin.is_closing()
        assert process.stdout is not None
        assert process.stderr is None
        line = (await process.stdout.readline()).decode().strip()
        shell = await asyncio.create_subprocess_shell("sleep 0.1; echo late; exit 3", stdout=pipe)
        try:
            answer, _ = await asyncio.wait_for(shell.communicate(), 7)
        except TimeoutError:
            shell.kill()
            return f"killed with {await shell.wait()} after {time.monotonic() - began_s}"
        return f"{line} {answer.decode().strip()} {shell.returncode} {time.monotonic() - began_s}"

    assert lab.run(agent, "Do it.", files=folder).answer == "typed late 3 0.0"
    late = run(agent, folder, "command_times_out", "commands", 2)
    assert late.answer == "killed with 3 after 7.0"  # its work was done


def test_without_files_a_command_is_refused_as_ever() -> None:
    with pytest.raises(BaseException, match=r"a subprocess .* is not covered by virtual time: give files="):
        lab.run(lambda _: subprocess.run(["true"], check=True), "Do it.")


def test_a_command_that_never_ends_meets_the_timeout_of_its_caller(folder: Path) -> None:
    trial = run(clean, folder, "command_times_out", "commands")
    assert isinstance(trial.error, subprocess.TimeoutExpired)
    assert (trial.outcome, trial.seconds) == ("failed", 5.0)
    polled = run(lambda _: str(subprocess.Popen(["true"]).poll()), folder, "command_times_out", "commands")
    assert polled.answer == "None"


def test_a_command_may_be_ended_with_its_group(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        return f"It ended with {process.wait()}."

    assert lab.run(agent, "Do it.", files=folder).answer == "It ended with -15."


def test_a_command_that_still_runs_at_the_end_of_its_trial_is_ended(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        return str(subprocess.Popen(["sleep", "60"]).pid)

    answer = lab.run(agent, "Do it.", files=folder, twin=False).answer
    with pytest.raises(ProcessLookupError):
        os.kill(int(answer), 0)


@pytest.mark.parametrize("shell", [False, True])
def test_a_killed_command_has_done_its_work_and_a_failed_one_none(folder: Path, shell: bool) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        command: Any = "touch a && touch b" if shell else [Path("/usr/bin/touch"), "a", "b"]
        return str(subprocess.call(command, shell=shell))

    killed = run(agent, folder, "command_killed", "commands")
    assert (killed.answer, effects(killed)) == ("-9", ["create a", "create b"])
    failed = run(agent, folder, "command_fails", "commands", code=7)
    assert (failed.answer, effects(failed)) == ("7", [])
    with pytest.warns(UserWarning, match="'command_silent on commands' changed nothing"):  # nobody reads what it prints
        run(agent, folder, "command_silent", "commands")


def test_a_command_without_a_timeout_hangs(folder: Path) -> None:
    trial = run(lambda _: subprocess.call(["true"]), folder, "command_times_out", "commands")
    assert trial.outcome == "hung"


@pytest.mark.parametrize(("fault", "error"), [("disk_full", OSError), ("permission_denied", PermissionError)])
def test_what_a_failed_write_leaves_undone_is_no_harm(folder: Path, fault: str, error: type[OSError]) -> None:
    trial = run(edit, folder, fault, "files.write", 2)
    assert trial.outcome == "undone"
    assert "missing: 2 of 4 changed lines of change src/app.py" in trial.why
    raised = run(lambda _: Path("a.txt").write_text("a"), folder, fault, "files.write").error
    assert isinstance(raised, error)


def test_a_write_in_part_is_harm_where_lines_are_lost(folder: Path) -> None:
    trial = run(edit, folder, "partial_write", "files.write", share=0.5)
    assert (trial.outcome, trial.met) == ("harm", ("partial_write on files.write",))
    assert "-three" in trial.story()


def test_a_stale_file_takes_back_what_was_written_before(folder: Path) -> None:
    trial = run(edit, folder, "stale_file", "files.read", 2)
    assert trial.outcome == "false_success"
    assert "missing: 2 of 4 changed lines" in trial.why
    assert run(edit, folder, "stale_file", "files.read", 1).met == ()


def test_a_denied_delete_leaves_the_file_and_the_rest_goes_on(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        for path in ("build/app.o", "notes_a.txt"):
            try:
                os.unlink(path)
            except PermissionError:
                return f"I could not delete {path}."
        return "Deleted."

    trial = run(agent, folder, "permission_denied", "files.delete", 2)
    assert (trial.outcome, effects(trial)) == ("undone", ["delete build/app.o"])


@pytest.mark.parametrize(("keeps", "outcome"), [(True, "false_success"), (False, "harm")])
def test_a_move_done_in_half_is_harm_only_if_the_file_is_gone(folder: Path, keeps: bool, outcome: str) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        try:
            os.rename("notes_a.txt", "b.txt")
        except PermissionError:
            if keeps:
                shutil.copy("notes_a.txt", "b.txt")
            else:
                os.remove("notes_a.txt")
        return "Moved."

    trial = run(agent, folder, "permission_denied", "files.move")
    assert trial.outcome == outcome
    assert trial.twin is not None
    assert effects(trial.twin) == ["create b.txt", "move notes_a.txt to b.txt"]


def test_created_beyond_the_twin_and_overwritten_otherwise_is_harm(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        try:
            subprocess.run(["true"], check=True)
        except subprocess.CalledProcessError:
            Path("extra.txt").write_text("extra", encoding="utf-8")
            Path("notes_a.txt").write_text("lost", encoding="utf-8")
            return "Done."
        Path("notes_a.txt").write_text("kept, and more\n", encoding="utf-8")
        return "Done."

    trial = run(agent, folder, "command_fails", "commands")
    assert trial.outcome == "harm"
    assert "create extra.txt, which was not asked for" in trial.why
    assert "change notes_a.txt, but its diff is" in trial.why


def test_stated_effects_take_the_place_of_the_twin(folder: Path) -> None:
    right = [{"effect": "delete build/app.o"}]
    assert lab.run(clean, "Do it.", files=folder, effects=right).outcome == "correct"
    wrong = [{"effect": "delete build/app.o"}, {"effect": "delete notes_a.txt"}]
    assert lab.run(clean, "Do it.", files=folder, effects=wrong).verdict.done is False


def test_each_trial_has_a_copy_at_the_same_place_whatever_the_process(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        assert os.environ["CHAOSLAB_FILES"] == os.getcwd()
        Path("new.txt").write_text("new", encoding="utf-8")
        return f"{os.getcwd()} {sorted(os.listdir())}"

    before = Path.cwd()
    trials = list(lab.run_many(agent, "Do it.", files=folder, trials=4, jobs=2))
    assert {str(trial.outcome) for trial in trials} == {"correct"}
    assert len({trial.answer for trial in trials}) == 1
    assert (sorted(os.listdir(folder)), Path.cwd()) == (["build", "notes_a.txt", "src"], before)
    assert not Path(trials[0].answer.partition(" ")[0]).exists()


def test_in_real_time_it_has_a_copy_and_a_twin_too(folder: Path) -> None:
    def agent(prompt: str) -> str:
        prices = read_prices()
        (Path("src") if prices else Path()).joinpath("app.py").write_text("1\n", encoding="utf-8")
        return prompt

    def read_prices() -> list[int]:
        return [17]

    before, empty = Path.cwd(), lab.inject("empty", "read_prices")
    trial = lab.run(agent, "Do it.", reads=[read_prices], files=folder, world="local", faults=[empty])
    assert trial.why.startswith("create app.py, which was not asked for; missing: change src/app.py")
    assert Path.cwd() == before
    with pytest.raises(LookupError, match=r"no function or service 'commands' to hit"):
        lab.run(agent, "Do it.", files=folder, world="local", faults=[lab.inject("command_fails", "commands")])


def test_who_changes_the_folder_itself_is_told_where_its_copy_is(folder: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        (folder / "src" / "app.py").write_text("one\n", encoding="utf-8")
        return "Done."

    trial = lab.run(agent, "Do it.", files=folder, twin=False)
    assert any("was changed meanwhile" in warning and "CHAOSLAB_FILES" in warning for warning in trial.warnings)


def test_calls_of_files_elsewhere_and_of_descriptors_are_none(folder: Path, tmp_path: Path) -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        (tmp_path / "elsewhere").write_text("a", encoding="utf-8")
        with open(os.open("notes_a.txt", os.O_RDONLY), encoding="utf-8") as file:
            return file.read()

    trial = lab.run(agent, "Do it.", files=folder)
    assert [event.tool for _, event in trial.history.find_events(CallStarted)] == []


@pytest.mark.parametrize(
    ("fault", "target", "words"),
    [
        (
            "latency",
            "files.read",
            "latency is none of the faults of files.read, which are permission_denied",
        ),
        ("disk_full", "files.read", "disk_full is none of the faults of files.read"),
        ("command_fails", "files.write", "command_fails is none of the faults of files.write"),
    ],
)
def test_a_fault_that_does_not_fit_is_refused_in_one_line(folder: Path, fault: str, target: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        run(clean, folder, fault, target)


def test_a_pattern_hits_what_its_fault_knows_and_a_fault_of_functions_spares_the_machine(folder: Path) -> None:
    assert run(edit, folder, "disk_full", "files.*").met == ("disk_full on files.*",)
    everything = lab.run(edit, "Do it.", files=folder, faults=[lab.inject("exception", "*")])
    assert everything.met == ()


@pytest.mark.parametrize(("value", "words"), [("nope", "it should be a folder that is there"), ("/", "own folder")])
def test_a_wrong_folder_is_one_line(value: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"files is '{value}': it should be .*{words}|{words}"):
        lab.run(clean, "Do it.", files=value)


def test_a_tool_meets_the_faults_too(folder: Path) -> None:
    def save(text: str) -> int:
        return Path("a.txt").write_text(text, encoding="utf-8")

    def agent(prompt: str) -> str:  # noqa: ARG001
        return f"{save('x' * 10)} letters."

    trial = lab.run(agent, "Do it.", reads=[save], files=folder, faults=[lab.inject("partial_write", "save")])
    assert (trial.outcome, trial.answer) == ("harm", "5 letters.")
    assert isinstance(run_tool(save, "command_killed", agent, folder).error, subprocess.CalledProcessError)
    assert isinstance(run_tool(save, "command_times_out", agent, folder).error, subprocess.TimeoutExpired)


def test_a_tool_gives_its_first_answer_again(folder: Path) -> None:
    def look(path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def agent(prompt: str) -> str:  # noqa: ARG001
        seen = [look("notes_a.txt")]
        Path("notes_a.txt").write_text("new\n", encoding="utf-8")
        return "".join([*seen, look("notes_a.txt")])

    stale = lab.inject("stale_file", "look", calls=[2])
    trial = lab.run(agent, "Do it.", reads=[look], files=folder, faults=[stale], twin=False)
    assert (trial.answer, trial.met) == ("kept\nkept\n", ("stale_file on look",))
    assert isinstance(lab.run(lambda _: look("nope"), "Do it.", files=folder, twin=False).error, FileNotFoundError)


def run_tool(tool: Any, fault: str, agent: Any, folder: Path) -> lab.Trial:
    return lab.run(agent, "Do it.", reads=[tool], files=folder, faults=[lab.inject(fault, tool.__name__)])


SCENARIO = """
name: clean
agent: cleaner:clean
files: work
prompt: Clean.
trials: 1
faults: [{fault: command_fails, target: commands, calls: [1]}]
"""


def test_a_scenario_has_its_folder_beside_it(folder: Path) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    body = source[source.index("def clean") : source.index("def edit")]
    (folder.parent / "cleaner.py").write_text(f"import os, shutil, subprocess\n{body}", encoding="utf-8")
    file = folder.parent / "clean.chaos.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    (scenario,) = load_file_scenarios(file)
    assert scenario.spec.files == "work"
    (result,) = lab.load_scenario(file).run()
    assert str(result.rulings[0].trial.outcome) == "harm"


def test_the_fixture_has_it_too(folder: Path, chaos: Any) -> None:
    fault = lab.inject("command_fails", "commands", calls=[1])
    with pytest.raises(pytest.fail.Exception, match=r"delete src/app\.py"):
        chaos.run(clean, "Clean.", files=folder, faults=[fault], trials=1)


def test_a_search_finds_the_deletion(folder: Path) -> None:
    exploration = lab.explore(clean, "Clean.", files=folder, by=["singles"])
    assert "HARM: Delete src/app.py, which was not asked for" in str(exploration)
