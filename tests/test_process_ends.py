"""A command whose process, or whose trial's process, ends before the verdict is exit code 3; a trial that goes on in
real time is ended from outside as hung."""

import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import coroutine
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.boundary import is_foreign_error
from chaoslab.core.events import PromptAttempt
from chaoslab.core.fault import BrokenFault
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import run_numbered_trials
from chaoslab.record.history import History
from tests.cli_parts import chaoslab, command, environment
from tests.hard.dying_parts import gone
from tests.plugin_parts import HEAD, STALE, installed
from tests.waiting import HUNG_S, eventually

AGENT = """
import ctypes, os, signal, sys, time
{at_import}

def refund(order):
    return "refunded"

def answer(prompt):
    try:
        return refund(17)
    except OSError:
        {when_it_fails}
    return "refunded"
"""
SCENARIO = """
name: refund
agent: ag:answer
tools: [ag:refund]
prompt: Refund order 17.
effects: [{effect: refund, order: 17}]
trials: 6
faults: [{fault: refused, target: refund, chance: 0.4}]
"""


def tried(
    folder: Path, *options: str, at_import: str = "", when_it_fails: str = "pass", more: str = ""
) -> subprocess.CompletedProcess[str]:
    (folder / "ag.py").write_text(AGENT.format(at_import=at_import, when_it_fails=when_it_fails))
    (folder / "s.yaml").write_text(SCENARIO + more)
    return chaoslab(folder, "test", "s.yaml", *options, "--logs", "logs")


@pytest.mark.parametrize(("ends", "jobs"), [("os._exit(0)", "1"), ("os.kill(os.getpid(), 9)", "2")])
def test_an_agent_that_ends_its_process_has_failed(tmp_path: Path, ends: str, jobs: str) -> None:
    ended = tried(tmp_path, "--jobs", jobs, "--junit", "j.xml", when_it_fails=ends)
    assert ended.returncode == 1
    assert "2 trials (1, 6):" in ended.stdout
    assert "ProcessEnded: it ended the process at ag.py:12 in answer" in ended.stdout
    assert (tmp_path / "j.xml").exists()


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ("os._exit(0)", "exit code 0"),
        ("ctypes.string_at(0)", "SIGSEGV: .*ag.py:12 in answer"),
    ],
)
def test_in_real_time_the_command_says_which_trial_it_was(tmp_path: Path, ends: str, how: str) -> None:
    ended = tried(tmp_path, when_it_fails=ends, more="world: local\n")
    assert ended.returncode == 3
    said = ended.stderr.strip().splitlines()[-1]
    assert re.fullmatch(rf"the lab is down: p1\.r1 kills the process that does it \({how}.*\)", said)


@pytest.mark.parametrize(("ends", "how"), [("os._exit(0)", "exit code 0"), ("os.kill(os.getpid(), 9)", "SIGKILL")])
def test_so_does_one_whose_modules_end_it(tmp_path: Path, ends: str, how: str) -> None:
    ended = tried(tmp_path, at_import=ends)
    assert ended.returncode == 3
    assert ended.stderr == f"the lab is down: its process ended before the verdict ({how})\n"
    assert not ended.stdout


def test_a_module_that_exits_is_one_line_as_any_other_error(tmp_path: Path) -> None:
    ended = tried(tmp_path, at_import="sys.exit(0)")
    assert ended.returncode == 2
    assert "cannot be imported: SystemExit: 0" in ended.stderr


@pytest.mark.parametrize(
    ("ends", "code", "why"),
    [
        ("import sys; sys.exit(0)", 2, "the package gremlins 1.0 cannot be used: SystemExit: 0"),
        ("import os; os._exit(0)", 3, "its process ended before the verdict (exit code 0)"),
    ],
)
def test_nor_is_a_plug_in_that_ends_it_at_its_import_taken_for_a_verdict(
    tmp_path: Path, ends: str, code: int, why: str
) -> None:
    with installed(tmp_path, STALE, head=f"{ends}\n{HEAD.replace('from __future__ import annotations', '')}"):
        ended = chaoslab(
            tmp_path, "run", "--world", "virtual", "ERRORS=gremlin:1", "ERROR_PROB=0.5", "--min-correct", "0.99",
            "--trials", "1", really=True,
        )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (code, "")
    assert why in ended.stderr
    assert ended.stderr.count("\n") == 1


HANGS = """
def spin():
    while True: pass

def sleep_in_c():
    ctypes.CDLL(None).sleep(1000)

def sleep_in_c_with_the_interpreter():
    ctypes.PyDLL(None).sleep(1000)

def read_a_pipe():
    os.read(os.pipe()[0], 1)

def hang():
    begun = len(os.listdir("hung"))
    open(f"hung/{begun}", "w").close()
    (spin, sleep_in_c, sleep_in_c_with_the_interpreter, read_a_pipe)[begun]()
"""


def test_a_trial_that_goes_on_in_real_time_has_hung_and_the_others_are_done(tmp_path: Path) -> None:
    """Each trial that meets the fault hangs in another way."""
    (tmp_path / "hung").mkdir()
    often = ("--set", "refused.chance=0.8")
    ended = tried(tmp_path, *often, at_import=HANGS, when_it_fails="hang()", more="real_limit: 3\n")
    assert ended.returncode == 1
    assert "2 of 6 trials passed" in ended.stdout
    assert re.search(r"hung: it had not ended after 3 s of real time: ag.py:\d+ in spin; .*in answer", ended.stdout)
    history = History.read(tmp_path / "logs" / "latest")
    assert len(history.trials) == 6
    errors = [event.error for _, event in history.find_events(PromptAttempt) if event.error_type == "hung"]
    places = [re.search(r"of real time(?:: |\n)ag\.py:\d+ in (\w+)\n", error) for error in errors]
    assert [place and place[1] for place in places] == [
        "spin", "sleep_in_c", "sleep_in_c_with_the_interpreter", "read_a_pipe",
    ], errors  # fmt: skip


def refund(order: int) -> str:
    return f"refunded {order}"


def test_a_trial_in_a_process_of_its_own_is_ended_too() -> None:
    def hangs(_: str) -> str:
        refund(17)
        ctypes.CDLL(None).sleep(1000)
        return "never"

    trial = lab.run(hangs, "go", tools=[refund], effects=[], isolate="fork", real_limit_s=4)
    assert trial.outcome is lab.Outcome.HUNG
    assert trial.why.startswith("it had not ended after 4 s of real time: test_process_ends.py:")
    assert trial.why.endswith(" in hangs")
    assert trial.warnings == ("what it did until its process was ended is not known",)


@pytest.mark.parametrize("wrong", [0, -1, "1", True, float("nan")])
def test_another_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"real_limit_s is .*: it should be a number of seconds above 0"):
        lab.run(lambda _: "", "go", real_limit_s=wrong)


def test_a_trial_in_a_child_has_the_bytes_of_one_in_this_process(tmp_path: Path) -> None:
    def agent(_: str) -> str:
        try:
            return refund(17)
        except OSError:
            return "refused"

    found = []
    for apart in (False, True):
        folder = tmp_path / str(apart)
        faults = [lab.inject("refused", "refund", chance=0.5)]
        asked = RunArguments(agent, "go", tools=[refund], faults=faults, seed=5, logs=folder)
        answers = [trial.answer for trial in run_numbered_trials(asked, range(70), apart=apart)]
        found.append((answers, (folder / "latest" / "info.log").read_bytes()))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 2


def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path) -> None:
    """Not even a trial that never gives the interpreter back."""
    (tmp_path / "ag.py").write_text(
        "import ctypes, os\n"
        "def answer(prompt):\n"
        "    with open('pids', 'w') as file:\n"
        "        file.write(f'{os.getppid()} {os.getpid()}')\n"
        "    ctypes.PyDLL(None).sleep(1000)\n"
    )
    (tmp_path / "s.yaml").write_text("name: x\nagent: ag:answer\nprompt: go\nworld: local\naccept: [hung]\n")
    with subprocess.Popen(command("test", "s.yaml"), cwd=tmp_path, env=environment()) as program:
        pids = tmp_path / "pids"
        try:
            eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2, within_s=HUNG_S)
        finally:
            program.kill()
    parent, child = map(int, pids.read_text().split())
    assert parent != program.pid
    eventually(lambda: gone(parent) and gone(child))


# Whatever foreign code raises is its own.

FLOW = """
@dataclass(frozen=True)
class Sock(Fault):
    '''It raises.'''

    layer = "tool"

    def flow(self, call, context):
        {raises}
        yield call
"""


class Odd(BaseException): ...


RAISES = [
    "raise SystemExit(0)",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "raise type('Odd', (BaseException,), {})",
    "import os; os._exit(0)",
]


@pytest.mark.parametrize("raises", RAISES)
def test_a_fault_that_would_end_the_lab_is_named(tmp_path: Path, raises: str) -> None:
    with installed(tmp_path, FLOW.format(raises=raises), head=HEAD), pytest.raises(BrokenFault) as error:
        lab.run(lambda _: refund(17), "go", tools=[refund], faults=[lab.inject("gremlin", "refund")])
    assert str(error.value).startswith(
        "the fault 'gremlin' of the package gremlins 1.0 cannot be used: its flow() raised "
    )


def raising(error: BaseException) -> Any:
    def fails(*_: Any) -> Any:
        raise error

    return fails


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), Odd("x"), GeneratorExit()])
def test_an_agent_a_tool_and_a_service_fail_with_whatever_they_raise(error: BaseException) -> None:
    trial = lab.run(raising(error), "go", effects=[])
    assert trial.outcome is lab.Outcome.FAILED
    assert trial.error is error
    with pytest.raises(lab.NoBaseline, match=f"its end state cannot be read .state raised {type(error).__name__}"):
        lab.run(lambda _: "done", "go", state=raising(error))
    trial = lab.run(lambda _: "done", "go", state=raising(error), anyway=True)
    assert "state raised" in str(trial.history)
    made = lab.run(lab.fresh(raising(error)), "go", effects=[])
    assert made.error is error


def test_the_end_of_a_generator_or_a_coroutine_that_is_closed_is_nobodys_error() -> None:
    ends = list[bool]()

    def yields() -> Generator[None]:
        try:
            yield
        except GeneratorExit as error:
            ends.append(is_foreign_error(error))
            raise

    async def waits() -> None:
        await coroutine(yields)()

    for begun in (yields(), waits()):
        begun.send(None)
        begun.close()
    assert ends == [False, False]


def test_ctrl_c_is_the_users() -> None:
    def agent(_: str) -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.run(agent, "go", world="local", effects=[])
    finally:
        signal.signal(signal.SIGINT, before)


WAITS = "os.write(1, b'waiting\\n'); time.sleep(3600)"  # in one write: two processes print it at once


@pytest.mark.parametrize(
    ("reaches", "jobs"), [(os.kill, "1"), (os.killpg, "2")], ids=["its first process", "all processes, of two workers"]
)
def test_a_signal_to_a_command_is_the_users_and_no_trial_is_blamed(
    tmp_path: Path, jobs: str, reaches: Callable[[int, int], None]
) -> None:
    code, said = signalled(tmp_path, "--jobs", jobs, reaches=reaches, when_it_fails=WAITS)
    assert code == 130, said
    assert "kills the process" not in said
    assert "a worker died" not in said


def test_a_signal_that_ends_the_child_at_once_ends_the_command_in_the_same_way(tmp_path: Path) -> None:
    """As where a library of the agent's lets signals do what they do by default."""
    default = "signal.signal(signal.SIGTERM, signal.SIG_DFL); "
    assert signalled(tmp_path, reaches=os.kill, at_import=default + WAITS) == (-signal.SIGTERM, "")


def test_an_agent_blocks_no_signal_unless_its_command_does(tmp_path: Path) -> None:
    """Its own children inherit the mask: with SIGCHLD blocked, shells and servers wait for ever."""
    mask = "os.write(1, f'mask {signal.pthread_sigmask(signal.SIG_BLOCK, ())}'.encode())"
    assert "mask set()" in tried(tmp_path, at_import=mask).stdout


def signalled(folder: Path, *options: str, reaches: Callable[[int, int], None], **agent: str) -> tuple[int, str]:
    """The exit code and the errors of a command that gets SIGTERM when its agent waits."""
    (folder / "ag.py").write_text(AGENT.format(**{"at_import": "", "when_it_fails": "pass", **agent}))
    (folder / "s.yaml").write_text(SCENARIO.replace("chance: 0.4", "chance: 1.0") + "world: local\n")
    process = subprocess.Popen(
        command("test", "s.yaml", *options), cwd=folder, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            reaches(process.pid, signal.SIGTERM)
            errors = process.communicate(timeout=HUNG_S)[1]
        finally:
            process.kill()
    return process.returncode, errors


def test_a_signal_that_an_agent_sends_to_itself_is_its_own(tmp_path: Path) -> None:
    done = tried(tmp_path, when_it_fails="os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", more="world: local\n")
    assert done.returncode == 3
    assert "kills the process that does it (SIGTERM" in done.stderr


def test_a_limit_of_real_time_that_nobody_could_keep_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^real_limit_s is 2: only a process of its own can be ended: give isolate="):
        lab.run(lambda _: "", "go", real_limit_s=2)
    assert lab.run(lambda _: "done", "go", real_limit_s=HUNG_S, isolate="fork", twin=False).answer == "done"
