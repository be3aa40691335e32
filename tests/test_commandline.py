"""Output is written as well as it can be: no terminal, reader or stream can end a program in a traceback."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.record.runs import Run
from tests.cli_parts import environment
from tests.event_parts import prompt_finished
from tests.waiting import HUNG_S

ROOT = Path(__file__).parents[1]
DOORS = {
    "chaoslab": ("-m", "chaoslab"),
    "agent": ("-m", "chaoslab", "agent"),
    "tools": ("-m", "chaoslab", "tools"),
    "manager": ("-m", "chaoslab", "manager"),
    "charts.py": (str(ROOT / "charts.py"),),
}
NONE: Mapping[str, str] = {}
POOR = {
    "ASCII": {"PYTHONIOENCODING": "ascii"},
    "Latin-1": {"PYTHONIOENCODING": "latin-1"},
    "the C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, whose answer holds half a surrogate pair."""
    folder = tmp_path_factory.mktemp("there")
    run = Run("mine", folder / "logs/mine", 0.0, Settings().now)
    with run.open_log("info") as log:
        log.write(events.PromptStarted(prompt_index=1, prompt="What is it?"), trial="p1.r1")
        log.write(prompt_finished("\ud83d → – It is 42.", prompt="What is it?", duration_s=0.5), trial="p1.r1")
    return folder


def ended(
    folder: Path, *command: str, redirected: str = "", stdout: int = subprocess.PIPE, more: Mapping[str, str] = NONE
) -> subprocess.CompletedProcess[bytes]:
    """A door's program to its end; `redirected`: as a shell would be told."""
    door, *arguments = command
    typed = [sys.executable, *DOORS[door], *arguments]
    if redirected:
        typed = ["sh", "-c", f'exec "$@" {redirected}', "sh", *typed]
    env = {**environment(), "PYTHONUNBUFFERED": "", **more}
    return subprocess.run(
        typed, cwd=folder, env=env, stdout=stdout, stderr=subprocess.PIPE, timeout=HUNG_S, check=False
    )


@pytest.mark.parametrize("where", POOR)
def test_a_sign_that_the_terminal_lacks_is_told_by_the_nearest(where: str, there: Path) -> None:
    said = ended(there, "chaoslab", "show", "mine", "--prompt", "1", more=POOR[where])
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"? -> - It is 4" in said.stdout


def test_half_a_surrogate_pair_is_told_as_a_question_mark(there: Path) -> None:
    said = ended(there, "chaoslab", "show", "mine", "--prompt", "1", more={"PYTHONIOENCODING": "utf-8"})
    assert (said.returncode, said.stderr) == (0, b"")
    assert "? → – It is 4" in said.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "code"), [(["settings"], 0), (["settings", "TOXIC_PROB=2"], 2), (["nonsense"], 2)]
)
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_what_is_written_to_a_closed_stream_is_written_nowhere(
    closed: str, arguments: list[str], code: int, there: Path
) -> None:
    said = ended(there, "chaoslab", *arguments, redirected=closed)
    assert (said.returncode, said.stdout) == (code, b"")
    assert said.stderr.count(b"\n") == (1 if code and "2>" not in closed else 0)


@pytest.mark.parametrize(("door", "arguments"), [*((door, ["--help"]) for door in DOORS), ("chaoslab", ["faults"])])
def test_a_reader_that_is_gone_is_no_trouble(door: str, arguments: list[str], there: Path) -> None:
    reader, pipe = os.pipe()
    os.close(reader)
    try:
        said = ended(there, door, *arguments, stdout=pipe)
    finally:
        os.close(pipe)
    assert (said.returncode, said.stderr) == (0, b"")
