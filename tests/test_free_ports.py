"""Tests that run side by side take no port from each other."""

import contextlib
import subprocess
import sys
from pathlib import Path

from tests.sure import sure

PROGRAM = """
import os
os.getpid = lambda: 40  # their numbers may be any
from tests.free_ports import fixed_ports, free_port
print(*fixed_ports(2), free_port(), free_port(), flush=True)
input()
"""


def test_two_processes_look_for_ports_in_places_of_their_own() -> None:
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[1], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True,
                )
            )
            for _ in range(2)
        ]  # fmt: skip
        ports = [int(port) for each in processes for port in sure(each.stdout).readline().split()]
        for each in processes:
            each.communicate("\n")
    assert len(ports) == len({*ports}) == 8
    assert max(ports) < 32_768  # where Linux begins to hand out ports by itself
