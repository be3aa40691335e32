"""The walk-through of CONTRIBUTING.md, followed to the letter in a copy: each of its steps works."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli_parts import COMPILING, environment, execute
from tests.sure import sure
from tests.test_readme import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
KINDS = TEXT.partition("## Another kind of plug-in")[2].partition("## Rules")[0]
OTHERS = """
from chaoslab import cli
from chaoslab.core.events import FaultWitnessed
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.advice import load_rules
from chaoslab.reports.places import read_history
from chaoslab.wire import toxics


def often(prompt):
    for _ in range(4):
        weather("Oslo")


odd = lab.run(often, "Go.", reads=[weather], faults=[lab.inject("empty", "weather", odd=True)], logs="logs")
print("odd:", *(event.at.request for _, event in odd.history.find_events(FaultWitnessed)))
lab.check(odd, lab.expect.calls_something())
print(toxics.load_toxic("late_start")(wait=5))
contents = Contents.from_source(read_history(str(odd.folder)), where=str(odd.folder))
print(*formats.render_files("outcomes", contents).values(), end="")
print(len(lab.load(odd.folder).chart("slowest_call").axes[0].patches), "bar")
print(cli.main(["latest"]) == 0, *{"slow_success"} & load_rules().keys())
"""
SAID = r"odd: 1 3\nLateStart\(wait=5\)\np1\.r1 \w+\n1 bar\n[\d-]+\nTrue slow_success\n"
PALETTE = "chaoslab/reports/charts/_palette.py"
NEEDED = (
    "chaoslab",
    "agent",
    "flask_tools",
    "proxy_manager",
    "benchmarks",
    "docs",
    "tests",
    "pyproject.toml",
    "README.md",
)


def test_a_newcomer_who_follows_the_steps_has_a_fault(tmp_path: Path) -> None:
    copy = _copy(tmp_path / "copy")
    for name in ("chaoslab/faults/tool/empty_reply.py", "tests/faults/test_fault_empty_reply.py"):
        found = sure(re.search(rf"`{name}`.*?```python\n(.*?)```", TEXT, flags=re.DOTALL))
        (copy / name).write_text(found[1], encoding="utf-8")
    look = sure(re.search(r'`("empty_reply": Look\(.*\),)`', TEXT))
    palette = (copy / PALETTE).read_text(encoding="utf-8")
    seen_most, rest = palette.split('\n}\n"""The looks of the faults that are seen most.')
    (copy / PALETTE).write_text(
        f'{seen_most}\n    {look[1]}\n}}\n"""The looks of the faults that are seen most.{rest}', encoding="utf-8"
    )
    kinds = re.findall(
        r": `(chaoslab/[\w/]+\.py)`(?:, and [^\n]*(?:\n[^\n]+)?)?\n\n```python\n(.*?)```", KINDS, flags=re.DOTALL
    )
    assert len(kinds) == KINDS.count("```python")
    for name, text in kinds:
        (copy / name).write_text(text, encoding="utf-8")
    for name, listed in (
        ("chaoslab/cli/__init__.py", '"toxiproxy", "settings"'),
        ("chaoslab/cli/report.py", "FORMATS = ("),
    ):
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(listed) == 1
        added = f'{listed}, "latest"' if name.endswith("__init__.py") else f'{listed}"outcomes", '
        (copy / name).write_text(text.replace(listed, added), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    steps = re.findall(r"^\.venv/bin/python (.*)$", TEXT, flags=re.MULTILINE)
    assert len(steps) == 2
    for command in (
        *([sys.executable, *shlex.split(step)] for step in steps),
        [*ruff, "check"],
        [*ruff, "format", "--check"],
    ):
        ended = _run(copy, *command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "## empty_reply" in (copy / "docs" / "reference" / "faults.md").read_text(encoding="utf-8")
    program = sure(re.search(r"```python\n(import chaoslab.*?)```\n\n```\n(.*?)```", TEXT, flags=re.DOTALL))
    ended = _run(copy, sys.executable, "-c", f"{program[1]}\n{OTHERS}")
    assert ended.stderr == ""
    assert re.fullmatch(re.escape(program[2]) + SAID, ended.stdout), ended.stdout


def _copy(to: Path) -> Path:
    to.mkdir()
    for name in NEEDED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, to / name, ignore=COMPILING)
        else:
            shutil.copy(place, to)
    return to


def _run(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return execute(command, cwd=copy, env={**environment(), "PYTHONPATH": str(copy)})
