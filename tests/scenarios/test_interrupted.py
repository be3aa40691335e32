"""Ctrl-C ends a command that runs scenarios between two trials, with one line on what is done."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.base import interrupts
from tests import warm
from tests.cli_parts import Typed
from tests.waiting import HUNG_S, eventually

SCENARIO = """
name: the price
agent: "shop:agent"
reads: ["shop:price"]
prompt: What is the price?
faults: [{fault: server_error, target: price, chance: 0.5}]
trials: 100000
"""
AGENT = """
def price():
    return 4


def agent(_):
    for _ in range(3):
        try:
            return f"It costs {price()}."
        except BaseException:  # swallows an interrupt, too
            continue
    return "I could not find the price."
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["test", "price.chaos.yaml"], r"interrupted: \d+ of 100000 trials of the price are done: \d+ passed.*"),
        (["stress", "price.chaos.yaml", "--iterations", "100000", "--levels", "0,1"], "interrupted: no level is done"),
    ],
    ids=["test", "stress"],
)
def test_it_ends_in_one_line_although_an_agent_swallows_the_interrupt(
    tmp_path: Path, command: list[str], said: str
) -> None:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "price.chaos.yaml").write_text(SCENARIO)
    rulings = tmp_path / "logs" / "latest" / "rulings.jsonl"
    with subprocess.Popen(
        [warm.python(), "-m", "chaoslab", *command, "--logs", "logs"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as program:  # fmt: skip
        eventually(lambda: rulings.is_file() and rulings.read_bytes().count(b"\n") > 20, within_s=HUNG_S)
        program.send_signal(signal.SIGINT)
        _, stderr = program.communicate(timeout=HUNG_S)
    assert program.returncode == 130
    assert re.fullmatch(said, stderr.strip().splitlines()[-1])
    assert "Traceback" not in stderr


EARLY = {
    "compare --set accept=[harm]": "no pair was tried",
    "compare --a-a 3": "not all 3 comparisons with itself are done, and none is kept",
    "gate --baseline base.json --write --budget 40": "0 of 1 scenarios are done, and no baseline was written",
    "shrink --trial 1": "the cause of trial 1 is not found yet, and nothing was written",
    "prove --try backoff -q": "0 proofs are done, and none is kept",
}


@pytest.mark.parametrize("words", EARLY)
def test_a_command_that_has_found_nothing_yet_says_so(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    look = interrupts.check_interrupt

    def check() -> None:
        signal.raise_signal(signal.SIGINT)
        look()

    monkeypatch.setattr(interrupts, "check_interrupt", check)
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "price.chaos.yaml").write_text(SCENARIO)
    command, _, options = words.partition(" ")
    code, out, err = typed(command, "price.chaos.yaml", *options.split())
    assert (code, out, err) == (130, "", f"interrupted: {EARLY[words]}\n")
    assert not (tmp_path / "base.json").exists()
