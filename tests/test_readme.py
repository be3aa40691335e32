"""The README and the pages of docs/ are true: their commands run, their programs print what stands below them."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from chaoslab.reports.charts import list_charts
from tests import warm
from tests.cli_parts import chaoslab, command, environment, execute, free_base, prompts

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def commands() -> list[str]:
    """Every line of every shell block, without its comment."""
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def in_containers(line: str) -> bool:
    """Tried in tests/live."""
    return "docker compose" in line or line.startswith("curl")


INSTALL = ("export CHAOSLAB=", "pip install ")
"""The beginnings of lines that test_extras.py holds to their form: each would take minutes."""
PICTURES = len(list_charts())
RUN = ".venv/bin/chaoslab lab "
ONCE = list(dict.fromkeys(commands()))
LABS = [line for line in ONCE if line.startswith(("make lab", RUN)) and "mine.json" not in line]
REAL = [line for line in LABS if line == "make lab" or "service_" in line]
"""Runs on loopback: the usual one, and those that stop processes. All others differ in their settings alone, so they
run in virtual time; what they mean is held by test_makefile."""


@dataclass
class Ran:
    """The outcome of a lab command, and its folder."""

    folder: Path
    ended: subprocess.CompletedProcess[str]
    pictures: int


def one_by_one(folder: Path, lines: Iterable[str]) -> dict[str, Ran]:
    """With one prompt instead of all, and six trials of it in place of sixty."""
    folder.mkdir()
    made = {}
    for line in lines:
        words = ["lab", *shlex.split(line.replace("--trials 60", "--trials 6"))[2:]]
        shutil.rmtree(folder / "charts", ignore_errors=True)
        mine = prompts(folder, [{"prompt": "What is 6 times 7?", "facts": ["42"]}])
        quick = [] if line in REAL else ["WORLD=virtual"]
        ended = chaoslab(folder, *words, *quick, f"BASE_PORT={free_base()}", mine)
        made[line] = Ran(folder, ended, len(list((folder / "charts").glob("*.png"))))
    return made


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """In two folders side by side; the first command is the last in its folder."""
    folder = tmp_path_factory.mktemp("labs")
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(one_by_one, (folder / "one", folder / "other"), (LABS[::-2], LABS[-2::-2]))
    return one | other


@pytest.fixture(scope="module")
def lab(ran: dict[str, Ran]) -> Path:
    """A folder in which `make lab` was the last run."""
    return ran["make lab"].folder


@pytest.fixture(scope="module")
def once(lab: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a command in that folder, the first time that it is asked for; charts.py without arguments with a start of
    Python itself."""

    @cache
    def ended(line: str) -> subprocess.CompletedProcess[str]:
        program, *words = shlex.split(line)
        start = command(python=warm.python())
        if Path(program).name == "python":
            start = [sys.executable]
            words = [str(ROOT / word) if word == "charts.py" else word for word in words]
            if words[1:] and words[0] != "-c":
                start = [warm.python(), "-c", f"import runpy\nrunpy.run_path({words.pop(0)!r}, run_name='__main__')"]
        return execute([*start, *words], cwd=lab, env=environment())

    return ended


@pytest.mark.parametrize("line", LABS)
def test_each_lab_command_runs(line: str, ran: dict[str, Ran]) -> None:
    assert ran[line].ended.returncode == 0, ran[line].ended.stderr
    assert ran[line].pictures + ran[line].ended.stdout.count(".png") == PICTURES, "drawn, or why not"
    assert "\n\n\n" not in ran[line].ended.stdout


@pytest.mark.parametrize("line", [line for line in ONCE if line.startswith(".venv/bin/") and line not in LABS])
def test_each_other_command_runs(line: str, once: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    ended = once(line)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


def test_a_replay_says_what_is_shown_of_it(once: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    """Line by line, with other figures."""
    shown = re.search(r"\n```\n(logs/latest: .*?)\n```\n", TEXT, flags=re.DOTALL)
    assert shown is not None
    ended = once(".venv/bin/chaoslab replay latest")
    assert ended.returncode == 0, ended.stderr
    pattern = re.sub(r"\d+(\\\.\d+)?", r"\\d+(\\.\\d+)?", re.escape(shown[1])).replace("trials", "trials?")
    pattern = pattern.replace(r"\-\d+(\.\d+)?", r"\-\d+(\-\d+)?", 1)  # a second run of the same second has a number
    pattern = re.sub(r"\\ s\b", r"\\ m?s", pattern)  # one trial alone takes a part of a second
    pattern = re.sub(r"\\ \\\(.*?\\\)", lambda found: f"(?:{found[0]})?", pattern)  # and has no pace to tell
    assert re.fullmatch(pattern, ended.stdout.strip()), ended.stdout


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")], ids=lambda page: page.stem
)
def test_each_python_program_prints_what_stands_below_it(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python\n")
    for program, printed in blocks:
        ended = execute([warm.python(), "-c", program], cwd=tmp_path, env=environment())
        assert (ended.stdout, ended.stderr) == (printed, "")


def test_two_runs_are_laid_over_each_other(lab: Path) -> None:
    runs = sorted(path.name for path in (lab / "logs").glob("2*"))
    ended = chaoslab(lab, "charts", *runs)
    assert ended.returncode == 0, ended.stderr
    drawn = {"success_vs_toxic_prob", "mttr_vs_toxic_prob", "time_vs_toxic_prob", "pass_rate_vs_level"}
    assert {Path(name).stem for name in ended.stdout.split()} == drawn


def test_every_command_is_tried_by_a_test_or_is_one_of_makes_own() -> None:
    tried = [
        line for line in commands() if line.startswith((".venv/bin/", "make lab", *INSTALL)) or in_containers(line)
    ]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert {line.split()[1] for line in commands() if line not in tried} <= set(targets)
    assert len(ONCE) >= 30


SHOP = """\
def get_order(order):
    return {"id": order, "total": 30}


def refund(order, amount):
    return f"{amount} back for order {order}"


def answer(prompt):
    total = get_order(17)["total"]
    try:
        return refund(17, total)
    except TimeoutError:
        return refund(17, total)
"""


def test_the_four_lines_on_ones_own_agent_run_word_for_word(tmp_path: Path) -> None:
    (block,) = [each for each in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if "chaoslab init" in each]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "agent.py").write_text(SHOP)
    ended = [chaoslab(tmp_path, *shlex.split(line)[1:]) for line in lines]
    said = [each.stdout + each.stderr for each in ended]
    assert [each.returncode for each in ended[1:3]] == [1, 1], said
    assert "harm: refund twice" in said[1]
    assert "1. HARM: Refund twice" in said[2]
    assert [each.returncode for each in ended[::3]] == [0, 0], said
    assert (tmp_path / "chaos-baseline.json").exists()


def test_the_first_command_prints_what_stands_below_it(tmp_path: Path) -> None:
    """But for the seconds, and what the page leaves out."""
    block = next(each for each in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if each.startswith("$ "))
    line, *shown = block.splitlines()
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(ROOT / "benchmarks" / "planted.py", tmp_path / "benchmarks")
    ended = chaoslab(tmp_path, *shlex.split(line)[2:], "--no-logs")
    assert ended.returncode == 1, ended.stderr
    assert len(shown) > 10
    said = ended.stdout
    for each in shown:
        pattern = re.sub(r"\d\\.\d\\ s$", r"\\d+\\.\\d s", re.escape(each)).replace("…", ".*")
        found = re.search(f"^{pattern}$", said, flags=re.MULTILINE)
        assert found is not None, f"{each}\n{said}"
        said = said[found.end() :]
