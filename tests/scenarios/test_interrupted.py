"""Ctrl-C ends `chaoslab test` and `chaoslab stress` between two trials, with one line on what is done."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests import warm
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
