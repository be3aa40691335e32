"""`chaoslab lab` as a person runs it, in virtual time: one command to figures, pictures and logs; also broken off."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaoslab.base.extras import build_install_command
from chaoslab.core.events import PromptFinished, PromptStarted, RunFinished
from chaoslab.lab.launch import FAILING
from chaoslab.record.history import History
from tests import warm
from tests.cli_parts import Typed, as_installed, chaoslab, command, environment, execute, prompts
from tests.disk_parts import small_disk
from tests.waiting import HUNG_S, eventually

EASY = (
    {"prompt": "What is 17 times 24?", "facts": ["408"]},
    "What is the weather in Oslo?",
    "Translate 'dog' into French.",
)
CALM = ("TOXIC_PROB=0", "ERROR_PROB=0")
VIRTUAL = ("run", "--world", "virtual")
MANY = ("--trials", "100000")


@dataclass
class Run:
    """A run under way, with a terminal of its own or without; what it says is kept."""

    process: subprocess.Popen[bytes]
    leader: int
    """The number of its first process, which leads its session."""
    folder: Path
    terminal: int | None
    out: int
    words: bytearray = field(default_factory=bytearray)

    def read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal ends
            while data := os.read(self.out, 65536):
                self.words += data

    @property
    def said(self) -> str:
        return self.words.decode()

    @property
    def logs(self) -> Path:
        return self.folder / "logs" / "latest"

    def after(self, trials: int) -> None:
        log, mark = self.logs / "info.log", f'"{PromptFinished.kind}"'.encode()
        eventually(lambda: self._goes_on() and log.exists() and log.read_bytes().count(mark) >= trials, within_s=HUNG_S)

    def _goes_on(self) -> bool:
        assert self.process.poll() is None, self.said
        return True

    def interrupt(self) -> None:
        """Ctrl-C: typed at the terminal, else sent to the whole group as a terminal does."""
        if self.terminal is None:
            os.killpg(self.leader, signal.SIGINT)
        else:
            os.write(self.terminal, b"\x03")

    def ended(self) -> int:
        return self.process.wait(timeout=HUNG_S)

    def members(self) -> list[int]:
        """Every process of its session that is left."""
        table = subprocess.run(["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, text=True, check=True)
        rows = [line.split() for line in table.stdout.splitlines()]
        return [int(pid) for pid, session, state in rows if int(session) == self.leader and state[0] != "Z"]


def own_terminal() -> None:
    """In the new process: the terminal on stdout is this session's."""
    import fcntl
    import termios

    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def started(folder: Path, *arguments: str, terminal: bool = False, really: bool = False) -> Iterator[Run]:
    """The run on its way; killed afterwards if it is still there.

    `really`: not warm, so that the terminal is its session's.
    """
    python = sys.executable if really else warm.python()
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        command(*VIRTUAL, *arguments, python=python), cwd=folder, env=environment(),
        stdin=theirs if terminal else subprocess.DEVNULL,
        stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=own_terminal if terminal else None,
    )  # fmt: skip
    os.close(theirs)
    leader = process.pid if really else warm.child(process.pid)
    run = Run(process, leader, folder, ours if terminal else None, ours)
    reader = threading.Thread(target=run.read)
    reader.start()
    try:
        yield run
    finally:
        for pid in run.members():
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
        reader.join(timeout=HUNG_S)
        os.close(ours)


def complaints(ended: subprocess.CompletedProcess[str]) -> str:
    """stderr without the lines of progress: a busy machine may say them at any time."""
    return "".join(line for line in ended.stderr.splitlines(keepends=True) if not line.startswith("trial "))


def trials(logs: Path) -> list[str | None]:
    return [record.trial for record, _ in History.read(logs).find_events(PromptFinished)]


def test_one_command_leaves_figures_pictures_and_logs(tmp_path: Path) -> None:
    typed = ("--trials", "5", "--seed", "7", prompts(tmp_path, EASY), "TOXIC_PROB=0.5")
    ended = chaoslab(tmp_path, *VIRTUAL, *typed, drawn=True)
    assert (ended.returncode, complaints(ended)) == (0, "")
    assert re.search(
        r"^5 of 5 trials, \d+ s of virtual time in \d+\.\d s( \(\d+ × real time\))?$", ended.stdout, re.MULTILINE
    )
    run = (
        r"^run v7-[0-9a-f]{16} · seed 7 · world virtual · model chaoslab-offline\s·"
        r"\s+own\s+chance\s+none\s+·\s+done\s+after\s"
    )
    assert re.search(run, ended.stdout, re.MULTILINE)
    assert "Failures that nobody injected: none" in ended.stdout
    assert re.search(r"^all figures: .* summary ", ended.stdout, re.MULTILINE)
    pictures = list((tmp_path / "charts").glob("*.png"))
    assert len(pictures) + ended.stdout.count("        no ") == 8  # what has nothing to show is not drawn
    assert all(path.stat().st_size > 5000 for path in pictures)
    assert trials(tmp_path / "logs" / "latest") == ["p1.r1", "p2.r1", "p3.r1", "p1.r2", "p2.r2"]
    told = chaoslab(tmp_path, "show", "latest", "--prompt", "1")
    assert (told.returncode, told.stderr) == (0, "")
    assert re.search(r" ok 200 in 0\.\d ms via proxy", told.stdout)
    assert "verdict  correct" in told.stdout


def test_the_lab_command_takes_the_world_as_a_setting_and_prompts_come_from_an_option(tmp_path: Path) -> None:
    file = prompts(tmp_path, EASY[:2]).removeprefix("PROMPTS=")
    assert chaoslab(tmp_path, "lab", "WORLD=virtual", f"PROMPTS={file}").returncode == 0
    first = (tmp_path / "logs" / "latest").resolve()
    assert chaoslab(tmp_path, *VIRTUAL, "--prompts", file, "--jobs", "2").returncode == 0
    second = (tmp_path / "logs" / "latest").resolve()
    assert first != second
    whole = [
        {path.name: path.read_bytes().replace(folder.name.encode(), b"its folder") for path in folder.rglob("*.*")}
        for folder in (first, second)
    ]
    assert whole[0] == whole[1]


def test_a_terminal_shows_one_live_view(tmp_path: Path) -> None:
    with started(tmp_path, "--trials", "40", prompts(tmp_path, EASY), terminal=True) as run:
        assert run.ended() == 0
        eventually(lambda: "next " in run.said)
        lines = re.findall(r"[━╌]{40} \d+ of 40[^\r\n]*", run.said)
        assert lines
        assert any(re.search(r" · \d+ trials/s · \d+ s to go$", line) for line in lines), lines
        assert re.search(r"\x1b\[J40 of 40 trials, ", run.said)
        assert "\ntrial " not in run.said


@pytest.mark.parametrize(("jobs", "terminal"), [("1", True), ("2", False)])
def test_ctrl_c_leaves_the_finished_trials_whole(tmp_path: Path, jobs: str, terminal: bool) -> None:
    with started(
        tmp_path, *MANY, "--jobs", jobs, prompts(tmp_path, EASY), "TOXIC_PROB=0.5", terminal=terminal, really=terminal
    ) as run:
        run.after(4)
        run.interrupt()
        assert run.ended() == 130
        broken_off(run)


def test_sigterm_does_the_same(tmp_path: Path) -> None:
    with started(tmp_path, *MANY, "--jobs", "2", prompts(tmp_path, EASY)) as run:
        run.after(4)
        run.process.send_signal(signal.SIGTERM)
        assert run.ended() == 130
        broken_off(run)


def broken_off(run: Run) -> None:
    eventually(lambda: run.members() == [])
    history = History.read(run.logs)
    (end,) = [event for _, event in history.find_events(RunFinished)]
    finished = trials(run.logs)
    assert (end.reason, end.processed, end.received) == ("interrupted", len(finished), 100_000)
    assert [record.trial for record, _ in history.find_events(PromptStarted)] == finished
    assert finished[:4] == ["p1.r1", "p2.r1", "p3.r1", "p1.r2"][: len(finished)]
    assert finished
    assert history.unreadable_counts == {}
    assert (run.logs / "agent.log").read_bytes().count(b"\n") == len(finished)
    eventually(lambda: "next " in run.said)
    assert "Traceback" not in run.said
    assert "Exception" not in run.said
    assert "interrupted after" in run.said


def test_a_full_disk_ends_the_run_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with small_disk(tmp_path / "logs", kib=96):
        ended = chaoslab(tmp_path, *VIRTUAL, *MANY, prompts(tmp_path, EASY), "--jobs", "1")
        assert ended.returncode == 3
        (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("trial ")]
        assert re.fullmatch(
            r"the lab is down: logs/\S+\.log cannot be written \(No space left on device\): make room and start again",
            line,
        )
        assert History.read(tmp_path / "logs" / "latest").unreadable_counts == {}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_that_is_deleted_in_mid_run_ends_it_in_a_line(tmp_path: Path, jobs: str) -> None:
    with started(tmp_path, *MANY, "--jobs", jobs, prompts(tmp_path, EASY)) as run:
        run.after(1)
        gone = run.logs.resolve().with_name("gone")
        run.logs.resolve().rename(gone)  # at once: a part may write into it between two steps of the removal
        shutil.rmtree(gone)
        assert run.ended() == 3
        eventually(lambda: run.members() == [])
        (line,) = [
            line
            for line in run.said.splitlines()
            if not line.startswith(("trial", "0 of")) and " of virtual time " not in line
        ]
        assert re.fullmatch(
            r"the lab is down: \S+ cannot be written \(it was deleted\): "
            r"leave a run's folder alone while it goes on and start again",
            line,
        )


def test_a_prompt_that_hangs_is_found_without_waiting_and_said(tmp_path: Path) -> None:
    settings = ("TOXIC_PROB=1", "TOXICS=timeout", "ERROR_PROB=0", "TOOL_TIMEOUT_S=30", "DEADLINE_S=1")
    ended = chaoslab(tmp_path, *VIRTUAL, prompts(tmp_path, EASY[:2]), *settings)
    assert (ended.returncode, complaints(ended)) == (0, "")
    finished = [event for _, event in History.read(tmp_path / "logs" / "latest").find_events(PromptFinished)]
    assert [event.error_type for event in finished] == ["hung", "hung"]
    assert ended.stdout.startswith("2 of 2 trials (2 hung), 2 s of virtual time in ")
    agent = (tmp_path / "logs" / "latest" / "agent.log").read_text()
    assert "not over after 1 s of virtual time" in agent
    assert "waits for" in agent


@pytest.mark.parametrize("missing", ["flask", "langchain_groq"])
def test_what_is_not_installed_is_named(
    missing: str, here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    needs = f"WORLD=virtual needs {missing}, which is not installed: {build_install_command('lab')}\n"
    assert typed(*VIRTUAL) == (2, "", needs)
    assert list(here.iterdir()) == []


def test_a_key_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    key = "gsk_N0bodyMaySeeThis"
    ended = chaoslab(tmp_path, *VIRTUAL, prompts(tmp_path, EASY[:1]), f"GROQ_API_KEY={key}")
    assert ended.returncode == 0
    assert complaints(ended) == (
        "GROQ_API_KEY is not used: the virtual world has no way out, and the offline model answers\n"
    )
    assert "model chaoslab-offline" in ended.stdout
    assert not [path for path in (tmp_path / "logs" / "latest").rglob("*.*") if key.encode() in path.read_bytes()]


def test_a_limit_of_dollars_has_the_trials_done_one_after_the_other(tmp_path: Path) -> None:
    ended = chaoslab(
        tmp_path, *VIRTUAL, prompts(tmp_path, EASY[:1]), "COST_LIMIT_USD=1", "--jobs", "2", "--trials", "3"
    )
    assert ended.returncode == 0
    assert (
        complaints(ended) == "COST_LIMIT_USD bounds the whole run, so its trials are done one after the other: JOBS=1\n"
    )
    assert trials(tmp_path / "logs" / "latest") == ["p1.r1", "p1.r2", "p1.r3"]


@pytest.mark.parametrize(
    ("asked", "code", "found"), [("0.5", 0, "passed: at least 50 %"), ("0.6", 1, "FAILED: at least 60 %")]
)
def test_a_gate_decides_the_exit_code_and_says_why(asked: str, code: int, found: str, tmp_path: Path) -> None:
    file = prompts(tmp_path, [EASY[0], {"prompt": "What is 12 * 3?", "facts": ["37"]}])
    ended = chaoslab(tmp_path, *VIRTUAL, file, *CALM, "--min-correct", asked, "--fail-on", "harm,failed")
    blamed = "; not correct: p2.r1" if code else ""
    said = (
        f"gate {found} correct were asked for, 50 % are (1 of 2 judged){blamed}; "
        "no harm or failed was allowed, there is none\n"
    )
    assert (ended.returncode, complaints(ended)) == (code, said if code else "")
    assert (said in ended.stdout) is (code == 0)
    assert "next " in ended.stdout, "what the run leaves is there all the same"


def test_an_interrupted_run_asks_no_gate(tmp_path: Path) -> None:
    with started(tmp_path, *MANY, "--jobs", "1", prompts(tmp_path, EASY), "--min-correct", "1") as run:
        run.after(1)
        run.interrupt()
        assert run.ended() == 130
        said = "gate not applied: the run did not finish"
        with contextlib.suppress(AssertionError):  # what was said instead tells more
            eventually(lambda: said in run.said)
        assert said in run.said


def test_the_local_world_knows_trials_and_gates_too(tmp_path: Path) -> None:
    ended = chaoslab(
        tmp_path, "run", "--trials", "3", prompts(tmp_path, EASY[:2]), *CALM,
        "--min-correct", "1", "--fail-on", "invalid",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "gate passed: at least 100 % correct were asked for, 100 % are (3 of 3 judged); no invalid" in ended.stdout
    assert trials(tmp_path / "logs" / "latest") == ["p1.r1", "p2.r1", "p1.r2"]


def test_a_service_that_is_real_has_no_place_in_it(tmp_path: Path) -> None:
    as_installed(tmp_path)
    (tmp_path / "chaoslab" / "agent" / "config.json").write_text(
        '{"services": {"weather": {"url": "http://127.0.0.1:9"}}}'
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ended = execute(command(*VIRTUAL), cwd=tmp_path, env=env)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "agent/config.json points weather at the real thing, and the virtual world has no way out: "
        "take it out of there, or use WORLD=local\n"
    )
    assert not (tmp_path / "logs").exists()


def test_the_run_that_a_calm_one_points_to_has_a_failure(tmp_path: Path) -> None:
    ended = chaoslab(tmp_path, "lab", "WORLD=virtual", *FAILING.split(), "--fail-on", "wrong,false_success,harm")
    assert ended.returncode == 1, ended.stdout
    assert list((tmp_path / "logs").glob("*/report.html"))
