"""Plays a newcomer's first hour with the wheel alone in an empty environment: prints each step's seconds and lines.

Usage: python .ci/first_hour.py [WHEEL]      it builds the wheel if none is given

The exit code is the number of steps that failed. A step that takes longer than it should is only marked, since a busy
machine is no failure of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "scenarios"
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@dataclass(frozen=True)
class Step:
    """A command with its exit codes, a text that it prints, and the seconds that it takes on two quiet cores."""

    command: str
    codes: tuple[int, ...]
    says: str
    within_s: float
    lines_max: int = 80


def steps_of(module: str, prompt: str) -> list[Step]:
    return [
        Step(f"init {module} --agent {module}:naive --prompt '{prompt}'", (0,), "next: chaoslab test", 5),
        Step(f"test {module}", (1, 4), "trials passed", 5),
        Step(f"explore {module}/naive.chaos.yaml --seconds 10 --no-logs", (1,), "harm", 15),
    ]


STEPS = [
    Step("demo", (0,), "harm: refund twice", 2),
    Step("init mine", (0,), "next: ", 5),
    Step("test mine", (0,), "PASSED", 5),
    Step("test mine --set fresh=support_agent:naive", (1,), "refund twice", 5),
    Step("show latest --failed", (0,), "refund", 2, lines_max=400),
    Step("exec --route shop=http://127.0.0.1:9 --fault reset_peer:shop -- echo done", (4,), "hit nothing", 5),
    *(
        step
        for module, prompt in {
            "paid_twice": "Refund order 17.", "says_done": "Refund order 17.", "half_an_order": "Order it.",
        }.items()
        for step in steps_of(module, prompt)
    ),
]  # fmt: skip


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else build(folder)
        began_s = time.monotonic()
        binaries = install(wheel, folder / "environment")
        print(
            f"| step | seconds | lines | |\n|---|---|---|---|\n| install | {time.monotonic() - began_s:.1f} | | |",
            flush=True,
        )
        work = folder / "work"
        work.mkdir()
        for path in EXAMPLES.glob("*.py"):
            shutil.copy(path, work)
        return sum(not play(step, binaries, work) for step in STEPS)


def build(folder: Path) -> Path:
    """Builds the wheel, and returns its path."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT]
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT] if UV else pip, check=True)
    (built,) = folder.glob("chaoslab-*.whl")
    return built


def install(wheel: Path, place: Path) -> Path:
    """Installs the wheel and what its base needs; returns the folder of its commands."""
    venv.create(place, with_pip=UV is None)
    python = place / "bin" / "python"
    tool = [UV, "pip", "install", "--python", python] if UV else [python, "-m", "pip", "install"]
    subprocess.run([*tool, "--quiet", wheel], check=True)
    return place / "bin"


def play(step: Step, binaries: Path, work: Path) -> bool:
    began_s = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", f"chaoslab {step.command}"], cwd=work, capture_output=True, text=True, check=False,
        env={"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(work)},
    )  # fmt: skip
    took_s = time.monotonic() - began_s
    said = done.stdout + done.stderr
    lines = len(said.splitlines())
    wrong = [
        *([f"exit code {done.returncode}"] if done.returncode not in step.codes else []),
        *([f"does not say {step.says!r}"] if step.says not in said else []),
        *([f"{lines} lines"] if lines > step.lines_max else []),
    ]
    slow = f" (slow: {step.within_s:g} s)" if took_s > step.within_s else ""
    print(f"| {step.command} | {took_s:.1f}{slow} | {lines} | {'; '.join(wrong) or 'ok'} |", flush=True)
    if wrong:
        print("\n".join(said.splitlines()[-20:]), file=sys.stderr)
    return not wrong


if __name__ == "__main__":
    sys.exit(main())
